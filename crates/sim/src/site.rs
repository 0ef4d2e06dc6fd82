//! The state of a run that all modes share: network, transports, workloads, probes. An event loop
//! (packet mode or flow mode) advances this state, and the results are made from it.

use crate::approximate::Approximate;
use crate::drivers::Drivers;
use crate::frame::{Frame, Frames};
use crate::messages::Message;
use crate::network::{Network, Source};
use crate::plan::Plan;
use crate::probes::Probes;
use crate::progress::Progress;
use crate::switch_power::SwitchPower;
use crate::tcp::TcpRequest;
use crate::transports::Transports;
use eastwest_engine::order::{Class, Key};
use eastwest_measure::events::EventLog;
use eastwest_network::fabric::Fabric;
use eastwest_network::losses::Lost;
use eastwest_types::{HostId, Time};
use serde::{Deserialize, Serialize};

/// State of a simulated data centre between two events.
#[derive(Serialize, Deserialize)]
pub struct Site {
    /// Links, switches, and the list of next events.
    pub network: Network,
    /// Transports (TCP, RoCEv2, raw frames), which carry the data of workloads.
    pub transports: Transports,
    /// Workloads and their wake-ups. A workload starts transfers and is notified when they are
    /// complete.
    pub drivers: Drivers,
    /// Recorders of measurements.
    pub probes: Probes,
    /// Power model of switches.
    pub switch_power: SwitchPower,
    /// Simulated time at which the run ends at the latest.
    pub until: Time,
    /// Number of events executed so far.
    pub events: u64,
    /// Counts of a run in flow mode (without packets), set at its end; `None` in other runs.
    #[serde(skip)]
    pub approximate: Option<Approximate>,
    /// Numbers of simulated and of chosen cables of a run in link mode, which are its progress until
    /// all of them are simulated; `None` in other runs.
    #[serde(skip)]
    pub(crate) cables: Option<(u64, u64)>,
    /// Frames that the caller of the run requests; `None` if it requests none.
    #[serde(skip)]
    pub(crate) frames: Option<Box<Frames>>,
}

/// Largest number of connections for which memory is reserved before they are opened.
const MOST_RESERVED: u64 = 1 << 20;

impl Site {
    /// Builds the state of a run from its plan. Fails if the fabric cannot be built, for example
    /// because a host has no path to another one.
    pub fn new(plan: Plan) -> Result<Site, String> {
        let fabric = Fabric::build(&plan.fabric, plan.seed).map_err(|e| e.to_string())?;
        let mut network = Network::new(
            fabric,
            plan.classes.clone(),
            plan.hosts,
            plan.further.are_used(),
            plan.seed,
        );
        let probes = Probes::new(&plan, &mut network);
        let transports = Transports::new(&plan);
        let parcels = plan.workloads.iter().any(|w| w.workload.sends_parcels());
        let frames = transports.streams.any() || parcels;
        network.fabric.losses.kept = probes.records.events.is_on() || frames;
        if frames {
            network.fabric.require_host_events();
        }
        network.set(Source::Samples, Key::new(probes.records.samples.next(), Class::Sample));
        Ok(Site {
            network,
            transports,
            probes,
            switch_power: plan.switch_power,
            until: plan.until,
            events: 0,
            drivers: Drivers::new(plan.workloads, plan.seed),
            approximate: None,
            cables: None,
            frames: None,
        })
    }

    /// Reserves memory for the connections that workloads will open, as far as their number is known,
    /// so that tables with an entry for each connection are not copied while they grow. Returns this
    /// number.
    pub(crate) fn reserve_connections(&mut self) -> usize {
        let flows = self.drivers.all.iter().filter_map(|driver| driver.workload.local_flows());
        let connections = flows.sum::<u64>().min(MOST_RESERVED) as usize;
        if connections > 0 {
            for driver in &self.drivers.all {
                self.transports.of_mut(driver.transport.number()).reserve(connections);
            }
            self.network.timers.reserve(connections);
            self.drivers.wakes.reserve(connections);
        }
        connections
    }

    /// Passes a request to TCP: a timer has expired, or an application writes or closes.
    pub fn request_tcp(&mut self, request: &TcpRequest) {
        self.transports.tcp.request(&mut self.network, &mut self.probes.paths, request);
    }

    /// Returns the progress of the run.
    pub fn progress(&self) -> Progress {
        // The cables of link mode are simulated one by one, so that the simulated time has no
        // relation to the progress.
        let (until, done) = match self.cables {
            Some(cables) => (Time::NEVER, cables),
            None => (self.until, self.drivers.done()),
        };
        Progress {
            now: self.network.now,
            until,
            done,
            packet_hops: self.network.fabric.packet_hops(),
            events: self.events,
        }
    }

    /// Requests [frames](crate::frame): the first at time `first`, and one at the end of the run.
    /// When a frame is due, the run calls its caller, who takes the frame and sets the time of the
    /// next one. The last frame is due when the run has returned.
    pub fn request_frames(&mut self, first: Time) {
        self.frames = Some(Box::new(Frames { next: first, due: None }));
    }

    /// Removes and returns the frame that is due; `None` if none is due.
    pub fn take_frame(&mut self) -> Option<Frame> {
        self.frames.as_mut()?.due.take()
    }

    /// Sets the time of the next frame. If the time is not later than the current time, the next
    /// frame shows the state after the next events.
    pub fn set_next_frame(&mut self, at: Time) {
        if let Some(frames) = &mut self.frames {
            frames.next = at;
        }
    }

    /// Returns the time of the next frame; [`Time::NEVER`] if none is requested.
    pub(crate) fn next_frame(&self) -> Time {
        self.frames.as_ref().map_or(Time::NEVER, |frames| frames.next)
    }

    /// Advances the current time to that of the next frame, which no event precedes.
    pub(crate) fn advance_to_frame(&mut self) {
        self.network.now = self.network.now.max(self.next_frame());
    }

    /// Makes the frame of the current time available to the caller of the run, if frames are
    /// requested. All departures that are due by now must have been executed ([`Fabric::settle`]).
    pub(crate) fn show(&mut self) {
        let progress = self.progress();
        if let Some(frames) = &mut self.frames {
            let records = &self.probes.records;
            frames.due = Some(Frame::of(progress, &self.network, &self.transports, records));
        }
    }

    /// Defers the next frame to the time `next` of the next event if the caller of the run has set
    /// no time later than now.
    pub(crate) fn defer_frame(&mut self, next: Time) {
        let now = self.network.now;
        if let Some(frames) = self.frames.as_mut().filter(|frames| frames.next <= now) {
            frames.next = next;
        }
    }

    /// Whether no event can follow except samples and faults: there is no packet in flight, no
    /// timer of a transport, and no wake-up of a workload. Samples and faults alone must not
    /// prolong the run.
    pub fn is_idle(&self) -> bool {
        self.network.timers.first() == Key::NEVER
            && self.drivers.wakes.first() == Key::NEVER
            && self.network.fabric.pool.in_use() == 0
    }

    /// Describes, for an error message, why no event is left although workloads are unfinished.
    /// `outstanding` has sender, receiver and content of each undelivered message.
    pub fn describe_stuck<'a>(
        &self,
        outstanding: impl Iterator<Item = (HostId, HostId, &'a Message)>,
    ) -> String {
        let name = |h: HostId| &self.network.fabric.graph.names[h.0 as usize];
        let line = |(from, to, m): (HostId, HostId, &Message)| {
            format!(
                "the {} message of {} B from {} to {}, sent at {}, has not arrived",
                m.purpose.name(),
                m.payload,
                name(from),
                name(to),
                m.sent
            )
        };
        let mut lines: Vec<String> = outstanding.take(5).map(line).collect();
        lines.push(format!(
            "at {} no events are left, although these workloads are not finished: {}{}",
            self.network.now,
            self.drivers.waiting(),
            self.network.describe_failures(),
        ));
        lines.join("; ")
    }

    /// Checks that every packet is delivered, lost, absorbed by a switch, or in flight on exactly
    /// one link, that only packets in flight hold SACK blocks, and that inputs and queues use as
    /// much memory of each switch as the switch counts. This must hold between any two events.
    /// Returns a description of a violation.
    pub fn conserved(&self) -> Result<(), String> {
        let f = &self.network.fabric;
        let under_way = f.pool.in_use() as u64;
        let known = f.tally.delivered + f.tally.dropped + f.tally.absorbed + under_way;
        if f.tally.sent != known {
            return Err(format!("packets are not conserved: {} sent, {known} found", f.tally.sent));
        }
        let held: usize = f.links.iter().map(|l| l.held()).sum();
        if held as u64 != under_way {
            return Err(format!("{under_way} packets are in flight, but links hold {held}"));
        }
        if f.pool.sacks_in_use() as u64 > under_way {
            return Err("packets that are not in flight still hold SACK blocks".to_owned());
        }
        let memories = f.memory_counts();
        for (counts, (used, queued)) in memories.iter().zip(f.memory_sums()) {
            if (counts.used, counts.queued) != (used, queued) {
                return Err(format!(
                    "the memory of a switch is {counts:?}, but its inputs and queues use {used:?} \
                     and {queued} B"
                ));
            }
        }
        Ok(())
    }

    /// Executes the departures of all ports until the time `until`, and removes the packets lost before
    /// the time `before` from the log of the network. If events are recorded, the function `keep`
    /// receives each lost packet.
    ///
    /// The network stores lost packets, with 32 bits of their stream positions, until this function
    /// removes them: before another event is recorded, before a connection is opened (which may
    /// reuse a slot), and every 65,536 events. A stream cannot advance by 2 GiB between two
    /// removals, so the upper bits of a position follow from the sender's SND.UNA. Events of TCP
    /// precede losses at the same picosecond, because the packets that TCP sends in reaction may be
    /// lost at once.
    pub fn take_losses(
        &mut self,
        until: Time,
        before: Time,
        keep: &mut dyn FnMut(&mut EventLog, &Transports, Lost),
    ) {
        let fabric = &mut self.network.fabric;
        if fabric.losses.kept {
            fabric.settle_lazy(until);
        }
        while let Some(lost) = self.network.fabric.losses.take_before(before) {
            let partition = self.network.fabric.partition.as_deref_mut();
            if let Some(stream) = self.transports.streams.lose(&lost, partition)
                && self.drivers.stuck.is_none()
            {
                let why = self.describe_lost_frame(stream, &lost);
                self.drivers.stop(why);
            }
            let events = &mut self.probes.records.events;
            if events.is_on() {
                keep(events, &self.transports, lost);
            }
        }
    }

    /// Describes, for the error that ends the run, a lost frame of a message over raw Ethernet. Raw
    /// Ethernet does not retransmit frames, so the message can never arrive.
    fn describe_lost_frame(&self, stream: u32, lost: &Lost) -> String {
        let row = &self.transports.streams.rows[stream as usize];
        let driver = self.drivers.of(row.workload);
        let name = |host: HostId| &self.network.fabric.graph.names[host.0 as usize];
        let waiting = driver.workload.waiting().map_or(String::new(), |w| format!("; {w}"));
        format!(
            "at {}, {}: a frame from {} to {} was lost at {} ({}), and raw Ethernet does not \
             retransmit it{waiting}",
            lost.at,
            driver.name,
            name(row.src),
            name(row.dst),
            self.network.port_name(lost.link as usize),
            lost.cause.name(),
        )
    }

    /// Returns the digest of the run, 32 hexadecimal digits. This function must be called only
    /// once, at the end of the run.
    pub fn digest(&mut self) -> String {
        let digest = std::mem::take(&mut self.probes.records.digest);
        digest.finish(&self.network.fabric.links, self.network.now)
    }
}
