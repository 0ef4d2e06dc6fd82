//! Top level of a scenario file: reads all keys and tables, and checks settings of different tables
//! against each other.

use super::checked::Scenario;
use super::files::{Context, Files};
use super::nodes::Nodes;
use super::workload::Workloads;
use super::workload::ground::Ground;
use super::{
    cables, classes, dcb, dcb_notes, energy, fabric, faults, fidelity, flows_only, goal, measure,
    several_cards, tcp_overrides, traps, workload,
};
use crate::endpoint_settings::TcpOverride;
use crate::processing::ProcessingConfig;
use crate::stream_transports::{FurtherSettings, Transport};
use eastwest_engine::random::Stream;
use eastwest_settings::quantity::Name;
use eastwest_settings::reader::{Section, key};
use eastwest_transport::congestion::rules::EcnRule;
use eastwest_transport::settings::Below;
use eastwest_transport::tcp::{self, config::TcpConfig};
use eastwest_types::Span;

/// Reads all settings of a scenario from `s`, the top level of its file. Reports problems in `s`;
/// with problems, the returned scenario has placeholder values.
pub fn read_top(s: &mut Section, context: &Context) -> Scenario {
    let (mut notes, mut files) = (Vec::new(), Files::default());
    let schema: u32 = s.get(key("schema", "Version of the scenario format: 1.").range("1", "1"));
    let name: Name =
        s.get(key("name", "Name of the scenario, for tables and reports.").default("scenario"));
    let seed = s.get(
        key::<u64>("seed", "Seed of all random numbers. Use other seeds for further samples.")
            .default("1"),
    );
    let duration = s.find(
        key("duration", "Time at which the simulation ends, even if workloads have not finished.")
            .optional("the simulation ends when all workloads have finished")
            .range("1 ns", "480 h"),
    );
    let fidelity = fidelity::read(s);
    goal::read(s);
    let mut fabric = s.table("fabric", "Nodes, cables, queues and routes of the network.", |f| {
        fabric::read(f, context, &mut files, &mut notes)
    });
    fabric.config.faults = faults::read(s, &fabric);
    if s.all_good() && !s.describing() {
        dcb_notes::note_cycles(&fabric.config, &mut notes);
        dcb_notes::note_headroom(&fabric.config, &mut notes);
    }
    let (tcp, unplaced) = s.table("tcp", "Settings of every TCP endpoint.", |t| {
        let tcp = tcp::read_config::read(t, fabric.mtu, &context.mechanisms.congestion, &mut notes);
        (tcp, tcp_overrides::read(t, fabric.mtu, fabric.nodes.as_ref(), context, &mut notes))
    });
    let uptime_seed = Stream::new(seed, "timer ticks").next_u64();
    let seeded = |mut tcp: TcpConfig| {
        tcp.timers.uptime_seed = tcp.timers.own_ticks.then_some(uptime_seed);
        if let Some(custom) = &mut tcp.custom {
            custom.seed = seed;
        }
        tcp
    };
    let tcp = seeded(tcp);
    let mut classes = classes::read(s);
    let ground = Ground::new(&fabric, seed, context);
    let Workloads { specs: workloads, foreground_unread } =
        workload::read(s, &ground, &mut classes, &mut files, &mut notes);
    let all_names = workload::names(s);
    let tcp_overrides = tcp_overrides::place(s, unplaced, &workloads, &all_names, &mut notes);
    let tcp_overrides: Vec<TcpOverride> =
        tcp_overrides.into_iter().map(|o| TcpOverride { config: seeded(o.config), ..o }).collect();
    let shortest = tcp_overrides.iter().map(|o| o.config.min_rto).fold(tcp.min_rto, Span::min);
    let hops = fabric.nodes.as_ref().map_or(2, Nodes::longest_way);
    notes.extend(energy::note(&fabric.config.energy, hops, shortest));
    notes.extend(energy::note_phys(
        &fabric.config.energy,
        &cables::link_rates(Some(&fabric.config.topology)),
    ));
    let used = |transport| workloads.iter().any(|w| w.transport == transport);
    let below = Below { mtu: fabric.mtu, framing: fabric.config.framing };
    let further = FurtherSettings::read(s, &below, used, &mut notes);
    let settings: Vec<&TcpConfig> =
        std::iter::once(&tcp).chain(tcp_overrides.iter().map(|o| &o.config)).collect();
    fabric.config.telemetry = used(Transport::Tcp) && settings.iter().any(|c| reads_telemetry(c));
    fabric.config.nics_read_queues = used(Transport::RoceV2);
    let tcp_asks = settings.iter().any(|c| c.rules.ecn.rule == EcnRule::On);
    let asks = tcp_asks || (!used(Transport::Tcp) && further.asks_for_marks());
    if used(Transport::Tcp) && !s.describing() {
        notes.extend(traps::notes(&fabric.config, &settings, tcp_asks));
    }
    notes.extend(several_cards::note_rails(&fabric.config, &workloads));
    notes.extend(traps::note_costs(&workloads));
    notes.extend(traps::note_paths(&fabric.config.routing, used));
    if !asks && !s.describing() {
        let of_tcp = if used(Transport::Tcp) { settings.as_slice() } else { &[] };
        notes.extend(traps::note_marks(&fabric.config, of_tcp));
    }
    let ends = duration.is_some() || foreground_unread || workloads.iter().any(|w| !w.background);
    s.demand(ends, &["duration", "workload"], || {
        "is required, because every workload runs in the background and cannot end the simulation"
            .to_owned()
    });
    classes.finish(s, &fabric.config, &mut notes);
    dcb_notes::refuse_lossy(s, &workloads, &classes.list, &fabric.config.dcb);
    let measure = s.table(
        "measure",
        "Samples, traces and tables that are recorded during the simulation.",
        |m| measure::read(m, fabric.nodes.as_ref(), &all_names),
    );
    notes.extend(energy::note_lpi(&fabric.config.energy, &measure.lpi.ports));
    notes.extend(dcb::note_pauses(&fabric.config.dcb, &measure.pauses.ports));
    let hosts = ProcessingConfig::read(s);
    if hosts.is_some() && !used(Transport::Tcp) && !s.describing() {
        notes.push(
            "[hosts] has no effect: only packets of TCP are delayed in hosts, and no workload has \
             transport = \"tcp\""
                .to_owned(),
        );
    }
    if fabric.config.telemetry {
        let dcb = fabric.config.dcb.is_on();
        for (refused, what) in [
            (dcb, "the ports of fabrics with PFC or QCN write no telemetry"),
            (hosts.is_some(), "hosts with a processing time ([hosts]) return no telemetry"),
        ] {
            if refused {
                s.object(&format!("tcp.congestion: the algorithm reads telemetry, but {what}"));
            }
        }
    }
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
        further,
        hosts,
        classes: classes.list,
        workloads,
        measure,
        notes,
        attached: files.attached,
        resolved: String::new(),
    };
    several_cards::check(s, &scenario);
    flows_only::check(s, scenario)
}

/// Whether the congestion control of these settings reads telemetry.
fn reads_telemetry(config: &TcpConfig) -> bool {
    config.custom.as_ref().is_some_and(|custom| custom.model.reads_telemetry())
}
