//! Checkpoints: a run is saved between two events. The run can be continued later, in another
//! process, with results exactly equal to an uninterrupted run.
//!
//! **The rule.** The complete state of a [`World`] is saved, including the plan's values. Every
//! type in it derives its serialization, so a new field is saved automatically or does not compile.
//! A field is marked `#[serde(skip)]` in two cases: it is empty between two events, or it belongs
//! to a mechanism of another crate, whose state is unknown. A run with such mechanisms cannot be
//! saved, and [`obstacle`] explains why. The memory that the ports of a switch share is saved with
//! each port; on loading, these copies become one object again. Nothing is recomputed on loading.
//!
//! **The file.** It consists of [`MAGIC`], the number of the format, the [`Identity`] of the run,
//! the world (or all parts of a run on several threads), and the SHA-256 of all preceding bytes.
//! Identity and worlds are in the format of postcard: integers have a variable length, and fields
//! have no names. A build with other types cannot interpret the file. Therefore only the build that
//! wrote the file loads it, and only for the plan of the saved run.
//!
//! **Trust.** A file is loaded only if its hash is correct, so a truncated or damaged file is
//! refused before it is interpreted. Lengths in the file never determine the size of an allocation.

use crate::scenario::{Fidelity, Scenario, WorkloadKind};
use crate::site::Site;
use crate::threads::{Parts, PartsSnapshot};
use crate::world::World;
use eastwest_network::config::FabricConfig;
use eastwest_network::queue::QueueConfig;
use eastwest_network::routing::RoutingConfig;
use eastwest_network::scheduler::SchedulerConfig;
use eastwest_types::Time;
use eastwest_workload::application::Model;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::fs::File;
use std::io::{self, Write};

/// The first bytes of every checkpoint file, which identify its type.
const MAGIC: &[u8; 20] = b"eastwest checkpoint\n";

/// Version of the layout of the checkpoint file.
const FORMAT: u32 = 3;

/// Length of a SHA-256 hash in bytes.
const HASH: usize = 32;

/// Identity of a checkpoint: the build of the simulator that wrote the file, and the plan of the
/// saved run. A checkpoint is loaded only by an equal build for an equal plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Version and build of the simulator.
    pub build: String,
    /// Hash of everything that determines the results, see [`plan`].
    pub plan: String,
}

/// Reason why a checkpoint cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The file is not a checkpoint: it does not begin with [`MAGIC`].
    Foreign,
    /// The file has another layout; the value is the version number of the layout.
    Format(u32),
    /// The file is truncated or damaged.
    Damaged,
    /// Another build of the simulator, which the value names, wrote the file.
    Build(String),
    /// The file belongs to a run with another plan; the value is the [hash](plan) of that plan.
    Plan(String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Foreign => write!(f, "the file is not a checkpoint of Eastwest"),
            Refused::Format(format) => {
                write!(
                    f,
                    "the file has format {format}, but this version of Eastwest reads format \
                     {FORMAT}"
                )
            }
            Refused::Damaged => write!(f, "the file is damaged or truncated"),
            Refused::Build(build) => write!(f, "another Eastwest build wrote the file: {build:?}"),
            Refused::Plan(plan) => write!(f, "the file belongs to another scenario (hash {plan})"),
        }
    }
}

/// Returns a hash (hexadecimal SHA-256) of everything that determines the results of a scenario:
/// its text with all defaults, the files that it reads, and `reference`, whether all ports are
/// forced into the two-event mode.
pub fn plan(scenario: &Scenario, reference: bool) -> String {
    let mut hash = Sha256::new();
    hash.update(scenario.resolved());
    for file in &scenario.attached {
        hash.update(format!("\n{:?} {}\n", file.name, file.bytes.len()));
        hash.update(&file.bytes);
        if let Some(path) = &file.path {
            // Errors of reading are ignored here: the run itself reports files that it cannot read.
            let _ = File::open(path).and_then(|mut file| io::copy(&mut file, &mut Into(&mut hash)));
        }
    }
    hash.update([u8::from(reference)]);
    hex(&hash.finalize())
}

/// Writer that adds all bytes written to it to a hash.
struct Into<'a>(&'a mut Sha256);

impl Write for Into<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Returns the reason why a run of this scenario cannot be saved as a checkpoint, as a clause for
/// the user; `None` if the run can be saved.
pub fn obstacle(scenario: &Scenario) -> Option<&'static str> {
    if !cfg!(feature = "checkpoints") {
        return Some("a mechanism crate of the scenario was compiled without checkpoints");
    }
    match scenario.fidelity {
        Fidelity::Packet => {}
        Fidelity::Flow => {
            return Some("the state of a run with fidelity = \"flow\" cannot be saved yet");
        }
        Fidelity::Links => {
            return Some("the state of a run with fidelity = \"links\" cannot be saved yet");
        }
    }
    let FabricConfig { switch_queue, host_queue, scheduler, routing, .. } = &scenario.fabric;
    let classes = match scheduler {
        SchedulerConfig::Classes(classes) => classes.as_slice(),
        SchedulerConfig::Fifo | SchedulerConfig::StrictPriority => &[],
    };
    let own = |queue: &QueueConfig| matches!(queue, QueueConfig::Custom(_));
    let own_queue = own(switch_queue)
        || own(host_queue)
        || classes.iter().filter_map(|class| class.queue.as_ref()).any(own);
    let mut settings =
        std::iter::once(&scenario.tcp).chain(scenario.tcp_overrides.iter().map(|o| &o.config));
    let own_control = settings.any(|config| config.custom.is_some());
    let own_application = scenario.workloads.iter().any(|w| match &w.kind {
        WorkloadKind::Application(c) => matches!(c.model, Model::Custom(_)),
        _ => false,
    });
    let own_mechanism =
        own_queue || matches!(routing, RoutingConfig::Custom(_)) || own_control || own_application;
    own_mechanism.then_some("the state of a mechanism of your own cannot be saved")
}

/// Writer that forwards bytes to another writer and adds them to a hash.
struct Hashing<W> {
    to: W,
    hash: Sha256,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// State to save in a checkpoint: the [`World`] of a run between two events, or all parts of a run
/// on several threads between two windows of simulated time.
#[derive(Serialize)]
pub enum Keep<'a> {
    /// A run on one thread.
    One(&'a World),
    /// A run on several threads.
    Parts(&'a PartsSnapshot<'a>),
}

impl Keep<'_> {
    /// Returns the simulated time at which the state is saved.
    pub fn now(&self) -> Time {
        match self {
            Keep::One(world) => world.site.network.now,
            Keep::Parts(parts) => parts.now(),
        }
    }
}

/// State of a run that was loaded from a checkpoint.
#[derive(Deserialize)]
pub enum Kept {
    /// A run on one thread.
    One(Box<World>),
    /// A run on several threads.
    Parts(Parts),
}

impl Kept {
    /// Returns the simulated time at which the state was saved.
    pub fn now(&self) -> Time {
        match self {
            Kept::One(world) => world.site.network.now,
            Kept::Parts(parts) => parts.now(),
        }
    }

    /// Returns network, transports, workloads and records of a run on one thread, or of the first
    /// part of a run on several threads.
    pub fn first(&self) -> &Site {
        match self {
            Kept::One(world) => &world.site,
            Kept::Parts(parts) => &parts.first().site,
        }
    }

    /// Returns the complete state of a run on one thread; `None` for a run on several threads.
    pub fn into_world(self) -> Option<World> {
        match self {
            Kept::One(world) => Some(*world),
            Kept::Parts(_) => None,
        }
    }

    fn worlds(&mut self) -> &mut [World] {
        match self {
            Kept::One(world) => std::slice::from_mut(world),
            Kept::Parts(parts) => parts.worlds_mut(),
        }
    }
}

/// Writes a checkpoint of a run, with its identity, to `to`.
pub fn save(run: &Keep, identity: &Identity, to: impl Write) -> io::Result<()> {
    let mut to = io::BufWriter::new(Hashing { to, hash: Sha256::new() });
    to.write_all(MAGIC)?;
    to.write_all(&FORMAT.to_le_bytes())?;
    postcard::to_io(identity, &mut to).map_err(io::Error::other)?;
    write_run(run, &mut to)?;
    let Hashing { mut to, hash } = to.into_inner().map_err(io::IntoInnerError::into_error)?;
    to.write_all(&hash.finalize())
}

/// Loads the run of a checkpoint from the bytes of its file. Fails if the file is damaged or has
/// another format, or if its build or plan differs from `identity`.
pub fn load(bytes: &[u8], identity: &Identity) -> Result<Kept, Refused> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(Refused::Foreign)?;
    let (format, _) = rest.split_first_chunk().ok_or(Refused::Damaged)?;
    let format = u32::from_le_bytes(*format);
    if format != FORMAT {
        return Err(Refused::Format(format));
    }
    let (content, hash) = bytes.split_last_chunk::<HASH>().ok_or(Refused::Damaged)?;
    if Sha256::digest(content).as_slice() != hash {
        return Err(Refused::Damaged);
    }
    let content = content.get(MAGIC.len() + size_of::<u32>()..).ok_or(Refused::Damaged)?;
    let (of, content): (Identity, _) =
        postcard::take_from_bytes(content).map_err(|_| Refused::Damaged)?;
    if of.build != identity.build {
        return Err(Refused::Build(of.build));
    }
    if of.plan != identity.plan {
        return Err(Refused::Plan(of.plan));
    }
    let mut run = read_run(content)?;
    if run.worlds().is_empty() {
        return Err(Refused::Damaged);
    }
    run.worlds().iter_mut().for_each(|world| world.site.network.fabric.share_memory());
    Ok(run)
}

/// Writes the state of a run. The code that serializes all types needs a third of the compile time
/// of this crate, so builds of mechanism crates under development omit the feature `checkpoints`.
#[cfg(feature = "checkpoints")]
fn write_run(run: &Keep, to: impl Write) -> io::Result<()> {
    postcard::to_io(run, to).map_err(io::Error::other)?;
    Ok(())
}

/// Returns the state of a run from `content`; fails if the state ends before the last byte.
#[cfg(feature = "checkpoints")]
fn read_run(content: &[u8]) -> Result<Kept, Refused> {
    match postcard::take_from_bytes(content) {
        Ok((run, [])) => Ok(run),
        _ => Err(Refused::Damaged),
    }
}

/// Returns an error: this build contains no code that writes the state of a run.
#[cfg(not(feature = "checkpoints"))]
fn write_run(_: &Keep, _: impl Write) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns an error: this build contains no code that reads the state of a run.
#[cfg(not(feature = "checkpoints"))]
fn read_run(_: &[u8]) -> Result<Kept, Refused> {
    Err(Refused::Build("a build with checkpoints".into()))
}
