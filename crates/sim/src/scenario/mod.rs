//! The scenario: what a user writes, checked, with every default spelled out.
//!
//! This module is the one home of the schema and its defaults. Each key is declared where it is read
//! ([`reader`]), and that declaration also gives the schema, the reference page and the resolved
//! text of a result folder. Reading collects all problems of a file before it gives up.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)
)]

mod classes;
mod dcb;
mod dscp;
mod energy;
mod ets;
mod fabric;
mod faults;
mod fidelity;
mod files;
mod graph;
mod hosts;
mod measure;
mod nodes;
mod places;
mod queues;
mod reference;
mod rocev2;
mod routes;
mod rows;
mod shapes;
mod switch_power;
mod tcp_overrides;
mod workload;

pub use classes::TrafficClassConfig;
pub use fidelity::Fidelity;
pub use files::{Attached, Context};
pub use measure::{
    CaptureConfig, FlowSamplesConfig, LpiConfig, MeasureConfig, PausesConfig, Senders,
};
pub use nodes::{Nodes, racks};
pub use reference::{reference_page, rows_with, schema};
pub use workload::{WorkloadKind, WorkloadSpec};

use crate::endpoint_settings::TcpOverride;
use crate::plan::Transport;
use crate::switch_power::SwitchPower;
use eastwest_engine::random::Stream;
use eastwest_network::config::FabricConfig;
use eastwest_settings::problem::Problem;
use eastwest_settings::quantity::Name;
use eastwest_settings::reader::{Section, State, key, read_table};
use eastwest_settings::{overrides, syntax};
use eastwest_transport::congestion::rules::EcnRule;
use eastwest_transport::rocev2::RoceV2Config;
use eastwest_transport::tcp::{self, config::TcpConfig};
use eastwest_types::Span;
use files::Files;

/// Version of the scenario format this program reads.
pub const SCHEMA: u32 = 1;

/// A checked scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Version of the format.
    pub schema: u32,
    /// Its name.
    pub name: String,
    /// Seed of all random streams.
    pub seed: u64,
    /// Packets, or flows in their place.
    pub fidelity: Fidelity,
    /// When the simulation ends even if there is work left; `None` when it ends with its work.
    pub duration: Option<Span>,
    /// Nodes, cables, queues, routes.
    pub fabric: FabricConfig,
    /// What switches draw.
    pub switch_power: SwitchPower,
    /// Settings of every TCP endpoint that no override matches.
    pub tcp: TcpConfig,
    /// Settings of some endpoints: the first that matches counts.
    pub tcp_overrides: Vec<TcpOverride>,
    /// Settings of all queue pairs, where a workload has such.
    pub rocev2: Option<RoceV2Config>,
    /// Traffic classes, by [`eastwest_types::ClassId`].
    pub classes: Vec<TrafficClassConfig>,
    /// What drives the network.
    pub workloads: Vec<WorkloadSpec>,
    /// What is sampled.
    pub measure: MeasureConfig,
    /// What the user should know, though nothing is wrong.
    pub notes: Vec<String>,
    /// Files the scenario refers to, under the names of the resolved text. They belong beside it.
    pub attached: Vec<Attached>,
    resolved: String,
}

impl Scenario {
    /// The scenario as TOML with every default spelled out. Reading it, with [`Scenario::attached`]
    /// beside it, gives the same scenario.
    pub fn resolved(&self) -> &str {
        &self.resolved
    }
}

/// Reads a scenario, with `--set` overrides of paths by values; gives all problems where there are
/// any.
pub fn read(
    text: &str,
    context: &Context,
    overrides: &[(String, String)],
) -> Result<Scenario, Vec<Problem>> {
    let mut document = syntax::parse(text)?;
    let mut state =
        State { lines: document.lines, schema: Some(reference::rows), ..State::default() };
    if is_newer(&mut state, &document.table) {
        return Err(state.into_problems());
    }
    let (problems, set) = overrides::apply(&mut document.table, overrides);
    state.problems = problems;
    let inherited = tcp_overrides::inherit(&mut document.table);
    // What stands in these lines is not what is read.
    for path in set {
        state.lines.remove(&path);
    }
    let (scenario, out) =
        read_table(&mut state, "", Some(&document.table), |top| read_top(top, context));
    tcp_overrides::drop_repeated(&mut state.problems, &inherited);
    if !state.problems.is_empty() {
        return Err(state.into_problems());
    }
    Ok(Scenario { resolved: out.text(), ..scenario })
}

/// The names of the built-in mechanisms of a kind: `queue`, `congestion` or `routing`.
pub(crate) fn built_in(kind: &str) -> Vec<&'static str> {
    match kind {
        "queue" => eastwest_network::queue::BUILT_IN.iter().map(|c| c.0).collect(),
        "congestion" => eastwest_transport::congestion::BUILT_IN.iter().map(|c| c.0).collect(),
        _ => routes::ROUTINGS.iter().map(|c| c.0).collect(),
    }
}

/// Whether the file is of a newer format: then this is its only problem, as nothing else in it can
/// be judged.
fn is_newer(state: &mut State, table: &toml::Table) -> bool {
    let Some(found) = table.get("schema") else { return false };
    let newer = found.as_integer().is_some_and(|version| version > i64::from(SCHEMA));
    if newer {
        let message = format!(
            "is a newer format than this Eastwest ({}) reads, which is {SCHEMA}: run the file with \
             a newer version; nothing else in it was looked at",
            env!("CARGO_PKG_VERSION")
        );
        state.problem("schema", Some(found), message, None);
    }
    newer
}

/// Reads the top of the file.
fn read_top(s: &mut Section, context: &Context) -> Scenario {
    let (mut notes, mut files) = (Vec::new(), Files::default());
    let schema: u32 = s.get(key("schema", "Version of the scenario format: 1.").range("1", "1"));
    let name: Name =
        s.get(key("name", "Name of the scenario, for tables and reports.").default("scenario"));
    let seed = s.get(
        key::<u64>("seed", "Seed of all random streams; another seed is another sample.")
            .default("1"),
    );
    let duration = s.find(
        key("duration", "When the simulation ends even if there is work left.")
            .optional("it ends with its work")
            .range("1 ns", "480 h"),
    );
    let fidelity = fidelity::read(s);
    let mut fabric = s.table("fabric", "Nodes, cables, queues and routes.", |f| {
        fabric::read(f, context, &mut files, &mut notes)
    });
    fabric.config.faults = faults::read(s, &fabric);
    if s.all_good() && !s.describing() {
        dcb::note_cycles(&fabric.config, &mut notes);
    }
    let (tcp, unplaced) = s.table("tcp", "Settings of every TCP endpoint.", |t| {
        let tcp = tcp::read::read(t, fabric.mtu, &context.mechanisms.congestion, &mut notes);
        (tcp, tcp_overrides::read(t, fabric.mtu, fabric.nodes.as_ref(), context, &mut notes))
    });
    let uptime_seed = Stream::new(seed, "timer ticks").next_u64();
    let seeded = |mut tcp: TcpConfig| {
        tcp.timers.uptime_seed = Some(uptime_seed);
        if let Some(custom) = &mut tcp.custom {
            custom.seed = seed;
        }
        tcp
    };
    let tcp = seeded(tcp);
    let mut classes = classes::read(s);
    let ground = workload::Ground::new(&fabric, seed, context);
    let workloads = workload::read(s, &ground, &mut classes, &mut files, &mut notes);
    let all_names = workload::names(s);
    let tcp_overrides = tcp_overrides::place(s, unplaced, &workloads, &all_names, &mut notes);
    let tcp_overrides: Vec<TcpOverride> =
        tcp_overrides.into_iter().map(|o| TcpOverride { config: seeded(o.config), ..o }).collect();
    let shortest = tcp_overrides.iter().map(|o| o.config.min_rto).fold(tcp.min_rto, Span::min);
    let hops = fabric.nodes.as_ref().map_or(2, Nodes::longest_way);
    notes.extend(energy::note(&fabric.config.energy, hops, shortest));
    let queue_pairs = workloads.iter().any(|w| w.transport == Transport::RoceV2);
    let below = rocev2::Below { mtu: fabric.mtu, framing: fabric.config.framing };
    let rocev2 = rocev2::read(s, &below, queue_pairs, &mut notes);
    let connections = workloads.iter().any(|w| w.transport == Transport::Tcp);
    let mut settings = std::iter::once(&tcp).chain(tcp_overrides.iter().map(|o| &o.config));
    let asks = settings.any(|c| c.rules.ecn.rule == EcnRule::On)
        || (!connections && rocev2.is_some_and(|r| r.dcqcn.is_some()));
    if fabric.config.only_marks() && !asks && !s.describing() {
        notes.push(
            "queues are to mark packets, but connections do not ask for marks (tcp.ecn): what \
             would be marked is dropped, or left alone where it is protected"
                .to_owned(),
        );
    }
    let ends = duration.is_some() || workloads.iter().any(|w| !w.background);
    s.demand(ends, &["duration", "workload"], || {
        "is required: every workload runs in the background, so nothing else ends it".to_owned()
    });
    classes.finish(s, &fabric.config, &mut notes);
    dcb::refuse_lossy(s, &workloads, &classes.list, &fabric.config.dcb);
    let measure =
        s.table("measure", "What is sampled and remembered while the simulation runs.", |m| {
            measure::read(m, fabric.nodes.as_ref())
        });
    notes.extend(energy::note_lpi(&fabric.config.energy, &measure.lpi.ports));
    notes.extend(dcb::note_pauses(&fabric.config.dcb, &measure.pauses.ports));
    let scenario = Scenario {
        schema,
        name: name.0,
        seed,
        fidelity,
        duration,
        fabric: fabric.config,
        switch_power: fabric.switch_power,
        tcp,
        tcp_overrides,
        rocev2,
        classes: classes.list,
        workloads,
        measure,
        notes,
        attached: files.attached,
        resolved: String::new(),
    };
    fidelity::check(s, scenario)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_is_what_its_specification_says() {
        let text = include_str!("../../../../scenarios/s1.toml");
        let scenario = read(text, &Context::default(), &[]).unwrap_or_else(|p| panic!("{p:#?}"));
        assert_eq!(scenario.tcp.segment, 1448);
        assert_eq!(scenario.classes[0].name, "bulk");
        let WorkloadKind::Stride(stride) = &scenario.workloads[0].kind else {
            panic!("S1 is a stride pattern")
        };
        assert_eq!((stride.stride, stride.count, stride.bytes), (19, 8, 4_000_000));
        assert_eq!(
            scenario.notes,
            ["the leaf–spine is 2:1 over-subscribed: 40 Gbit/s of hosts on 20 Gbit/s of uplinks \
                 per leaf"]
        );
    }
}
