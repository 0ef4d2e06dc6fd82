//! The section `measure`: settings of the samples and logs of a run.

use super::nodes::Nodes;
use super::places::{self, Places};
use super::window::{self, WindowConfig};
use eastwest_network::config::PortSet;
use eastwest_settings::reader::{Section, key};
use eastwest_types::{HostId, Span};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Settings of the measurements of a run.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct MeasureConfig {
    /// Interval between samples over time, in simulated time; `None`: 1 ms at first, doubled
    /// whenever there are too many samples.
    pub sample_interval: Option<Span>,
    /// Maximum number of rows of the table of events; 0 records none.
    pub events: u64,
    /// Ports whose queue length and waiting time are measured for each packet.
    pub ports: PortSet,
    /// TCP senders whose congestion windows are traced.
    pub tcp_trace: Senders,
    /// Maximum number of rows of the table of congestion windows, `tcp_trace`.
    pub tcp_trace_rows: u64,
    /// Senders whose flow completion times are split into parts.
    pub flow_parts: Senders,
    /// Maximum number of rows of the table `flow_parts`.
    pub flow_parts_rows: u64,
    /// Senders whose throughput over time is sampled, with interval and limit.
    pub flow_samples: FlowSamplesConfig,
    /// Senders whose packets are followed from hop to hop, with the limit of rows.
    pub packet_hops: PacketHopsConfig,
    /// Maximum number of rows of each table of MPI programs but that of ranks.
    pub mpi_rows: u64,
    /// Settings of the packet capture.
    pub capture: CaptureConfig,
    /// Ports whose low-power idle periods are logged, with time range and limit.
    pub lpi: LpiConfig,
    /// Ports whose PFC pauses are logged, with the limit of rows.
    pub pauses: PausesConfig,
    /// Time interval of the run in which measures of workloads, such as flow completion times, are
    /// recorded.
    pub window: WindowConfig,
}

/// Settings of the samples of throughput over time (table `flow_samples`).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct FlowSamplesConfig {
    /// The senders whose throughput is sampled.
    pub senders: Senders,
    /// Length of the intervals over which throughput is averaged, in simulated time.
    pub interval: Span,
    /// Maximum number of rows of the table `flow_samples`.
    pub rows: u64,
}

/// Settings of the table of the ways of packets (table `packet_hops`).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PacketHopsConfig {
    /// The senders whose packets are recorded at every hop.
    pub senders: Senders,
    /// Maximum number of rows of the table `packet_hops`.
    pub rows: u64,
}

/// Settings of the log of PFC pauses (table `pauses`).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PausesConfig {
    /// The ports whose pauses are logged.
    pub ports: PortSet,
    /// Maximum number of rows of the table `pauses`, over all ports.
    pub rows: u64,
}

/// Settings of the log of low-power idle (table `lpi`).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LpiConfig {
    /// The ports whose low-power idle periods are logged.
    pub ports: PortSet,
    /// Maximum number of rows of the table `lpi`, over all ports.
    pub rows: u64,
    /// Simulated time from which periods are logged: a period is logged if its end is later.
    pub from: Span,
    /// Simulated time until which periods are logged: a period is logged if its begin is earlier.
    /// `None`: until the end of the run.
    pub until: Option<Span>,
}

/// Settings of the packet capture.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct CaptureConfig {
    /// Captured links, each as the numbers of its sending and receiving node.
    pub ports: BTreeSet<(u32, u32)>,
    /// Maximum number of captured packets, over all ports.
    pub packets: u64,
    /// Simulated time at which the capture starts.
    pub from: Span,
    /// Simulated time at which the capture ends; `None`: at the end of the run.
    pub until: Option<Span>,
}

/// Selection of data streams, each from one host to another.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Senders {
    /// Whether all streams are selected.
    all: bool,
    /// Hosts whose streams to all receivers are selected.
    hosts: BTreeSet<u32>,
    /// Selected streams as pairs of host numbers, sender and receiver.
    pairs: BTreeSet<(u32, u32)>,
}

impl Senders {
    /// Whether no stream is selected.
    pub fn is_empty(&self) -> bool {
        !self.all && self.hosts.is_empty() && self.pairs.is_empty()
    }

    /// Whether the stream from one host to another is selected.
    pub fn contains(&self, src: HostId, dst: HostId) -> bool {
        self.all || self.hosts.contains(&src.0) || self.pairs.contains(&(src.0, dst.0))
    }

    /// Adds the streams that `text` names to the selection: `*` (all streams), a host (all streams
    /// that it sends), or a pair such as `h0->h3`. Fails if a name is not a host.
    fn add(&mut self, text: &str, nodes: &Nodes) -> Result<(), places::Wrong> {
        if text == "*" {
            self.all = true;
        } else if let Some((from, to)) = places::ends(text) {
            let src = places::host(from, nodes)
                .map_err(|(m, near)| (m, near.map(|near| format!("{near}->{to}"))))?;
            let dst = places::host(to, nodes)
                .map_err(|(m, near)| (m, near.map(|near| format!("{from}->{near}"))))?;
            self.pairs.insert((src, dst));
        } else {
            self.hosts.insert(places::host(text, nodes)?);
        }
        Ok(())
    }
}

/// Adds the ports that `text` names to `ports`: `*` (all ports), a node (all its egress ports), or
/// a port such as `leaf0->h3`. Fails if there is no such node or cable.
fn add_ports(ports: &mut PortSet, text: &str, nodes: &Nodes) -> Result<(), places::Wrong> {
    if text == "*" {
        ports.all = true;
    } else if places::ends(text).is_some() {
        ports.ports.insert(places::port(text, nodes)?);
    } else {
        ports.nodes.insert(places::node(text, nodes)?);
    }
    Ok(())
}

/// Maximum value of the settings that limit the rows of a table or the packets of a capture.
const MOST_ROWS: &str = "100000000";

/// Reads the section `measure`. `workloads` are the names of all workloads of the file.
pub(super) fn read(
    s: &mut Section,
    nodes: Option<&Nodes>,
    workloads: &BTreeSet<String>,
) -> MeasureConfig {
    let sample_interval = s.find(
        key("sample_interval", "Interval of the time series (throughput, queue lengths).")
            .optional("1 ms at first, doubled whenever the series becomes too long")
            .range("1 us", "1 h"),
    );
    let events = s.get(
        key(
            "events",
            "Maximum number of rows of the table of events (drops, timeouts, recoveries); with 0 \
             no events are recorded.",
        )
        .default("500000")
        .range("0", MOST_ROWS),
    );
    let mut ports = PortSet::default();
    read_places(
        s,
        "ports",
        "Ports that record the kind, the backlog at arrival and the waiting time of every packet \
         (tables drops, depths, sojourn): one direction of a cable \"leaf0->h3\", all ports of a \
         node \"leaf0\", or \"*\" for every port. They become two-event ports, which are slower \
         and have identical results.",
        nodes,
        |text, nodes| add_ports(&mut ports, text, nodes),
    );
    let mut tcp_trace = Senders::default();
    read_places(
        s,
        "tcp_trace",
        "Senders whose congestion windows are traced: streams \"h0->h3\", all streams from a host \
         \"h0\", or \"*\" for all.",
        nodes,
        |text, nodes| tcp_trace.add(text, nodes),
    );
    let tcp_trace_rows = s.get(
        key("tcp_trace_rows", "Maximum number of rows of the table of congestion windows.")
            .default("1000000")
            .range("1", MOST_ROWS),
    );
    let (flow_parts, flow_parts_rows) = read_flow_parts(s, nodes);
    let flow_samples = read_flow_samples(s, nodes);
    let packet_hops = read_packet_hops(s, nodes);
    let mpi_rows = s.get(
        key(
            "mpi_rows",
            "Maximum number of rows of each table of MPI programs but that of ranks: states, \
             messages, collective calls and iterations.",
        )
        .default("1000000")
        .range("0", MOST_ROWS),
    );
    let capture = read_capture(s, nodes);
    let lpi = read_lpi(s, nodes);
    let pauses = read_pauses(s, nodes);
    let window = s.table(
        "window",
        "Part of the run in which the measures of workloads are taken (summary: workloads, while): \
         what starts in it counts.",
        |w| window::read(w, workloads),
    );
    MeasureConfig {
        sample_interval,
        events,
        ports,
        tcp_trace,
        tcp_trace_rows,
        flow_parts,
        flow_parts_rows,
        flow_samples,
        packet_hops,
        mpi_rows,
        capture,
        lpi,
        pauses,
        window,
    }
}

/// Reads the senders whose completion times are split into parts, and the maximum number of rows of
/// their table.
fn read_flow_parts(s: &mut Section, nodes: Option<&Nodes>) -> (Senders, u64) {
    let mut senders = Senders::default();
    read_places(
        s,
        "flow_parts",
        "Senders of flows whose times are split into injection, queueing, flight and \
         retransmission (table flow_parts): streams \"h0->h3\", all streams from a host \"h0\", \
         or \"*\" for all.",
        nodes,
        |text, nodes| senders.add(text, nodes),
    );
    let rows = s.get(
        key("flow_parts_rows", "Maximum number of rows of the table flow_parts.")
            .default("1000000")
            .range("1", MOST_ROWS),
    );
    (senders, rows)
}

fn read_flow_samples(s: &mut Section, nodes: Option<&Nodes>) -> FlowSamplesConfig {
    let mut senders = Senders::default();
    read_places(
        s,
        "flow_samples",
        "Senders whose throughput over time is recorded at the receivers (table flow_samples): \
         streams \"h0->h3\", all streams from a host \"h0\", or \"*\" for all.",
        nodes,
        |text, nodes| senders.add(text, nodes),
    );
    let interval = s.get(
        key(
            "flow_samples_interval",
            "Interval of the table flow_samples, in which received bytes \
                                      are added up.",
        )
        .default("1 ms")
        .range("1 us", "1 h"),
    );
    let rows = s.get(
        key(
            "flow_samples_rows",
            "Maximum number of rows of the table flow_samples. Each row is an interval in which \
             bytes of a stream arrived.",
        )
        .default("1000000")
        .range("1", MOST_ROWS),
    );
    FlowSamplesConfig { senders, interval, rows }
}

fn read_packet_hops(s: &mut Section, nodes: Option<&Nodes>) -> PacketHopsConfig {
    let mut senders = Senders::default();
    read_places(
        s,
        "packet_hops",
        "Senders whose packets are followed from hop to hop (table packet_hops): streams \
         \"h0->h3\", all streams from a host \"h0\", or \"*\" for all.",
        nodes,
        |text, nodes| senders.add(text, nodes),
    );
    let rows = s.get(
        key(
            "packet_hops_rows",
            "Maximum number of rows of the table packet_hops: a row for each link that a packet \
             crosses, with about 100 bytes of memory.",
        )
        .default("1000000")
        .range("1", MOST_ROWS),
    );
    PacketHopsConfig { senders, rows }
}

fn read_pauses(s: &mut Section, nodes: Option<&Nodes>) -> PausesConfig {
    let mut ports = PortSet::default();
    read_places(
        s,
        "pauses",
        "Ports whose pauses by PFC are logged (table pauses): one direction of a cable \
         \"h3->leaf0\", all ports of a node \"leaf0\", or \"*\" for every port.",
        nodes,
        |text, nodes| add_ports(&mut ports, text, nodes),
    );
    let rows = s.get(
        key(
            "pauses_rows",
            "Maximum number of rows of the table pauses; each port has an equal \
                            share of them.",
        )
        .default("1000000")
        .range("1", MOST_ROWS),
    );
    PausesConfig { ports, rows }
}

fn read_lpi(s: &mut Section, nodes: Option<&Nodes>) -> LpiConfig {
    let mut ports = PortSet::default();
    read_places(
        s,
        "lpi",
        "Ports whose low-power idle periods are logged, if their links sleep (table lpi): one \
         direction of a cable \"leaf0->h3\", all ports of a node \"leaf0\", or \"*\" for every \
         port.",
        nodes,
        |text, nodes| add_ports(&mut ports, text, nodes),
    );
    let rows = s.get(
        key(
            "lpi_rows",
            "Maximum number of rows of the table lpi; each port has an equal share of \
                         them.",
        )
        .default("1000000")
        .range("1", MOST_ROWS),
    );
    let from = s.find(
        key("lpi_from", "Time before which low-power idle periods are not logged.")
            .optional("from the start")
            .range("0 s", "480 h"),
    );
    let until = s.find(
        key("lpi_until", "Time from which low-power idle periods are no longer logged.")
            .optional("to the end")
            .range("0 s", "480 h"),
    );
    let from = from.unwrap_or(Span::ZERO);
    s.demand(until.is_none_or(|end| end > from), &["lpi_until", "lpi_from"], || {
        format!("must be after lpi_from, which is {from}")
    });
    LpiConfig { ports, rows, from, until }
}

fn read_capture(s: &mut Section, nodes: Option<&Nodes>) -> CaptureConfig {
    let mut ports = BTreeSet::new();
    read_places(
        s,
        "capture",
        "Ports whose packets are written to capture.pcapng when they arrive at the other end of \
         the cable: directions of cables, such as \"leaf0->h3\".",
        nodes,
        |text, nodes| {
            ports.insert(places::port(text, nodes)?);
            Ok(())
        },
    );
    let packets = s.get(
        key(
            "capture_packets",
            "Maximum number of captured packets of all ports; each needs about \
                                120 bytes of memory.",
        )
        .default("1000000")
        .range("1", MOST_ROWS),
    );
    let from = s.find(
        key("capture_from", "Time at which the capture begins.")
            .optional("at the start")
            .range("0 s", "480 h"),
    );
    let until = s.find(
        key("capture_until", "Time at which the capture ends.")
            .optional("at the end")
            .range("0 s", "480 h"),
    );
    let from = from.unwrap_or(Span::ZERO);
    s.demand(until.is_none_or(|end| end > from), &["capture_until", "capture_from"], || {
        format!("must be after capture_from, which is {from}")
    });
    CaptureConfig { ports, packets, from, until }
}

/// Reads the key `name`, a list of places (ports, hosts or streams), and calls `take` for each
/// place until one fails, which is reported as a problem. Calls nothing if `nodes` is `None`.
fn read_places(
    s: &mut Section,
    name: &'static str,
    doc: &'static str,
    nodes: Option<&Nodes>,
    mut take: impl FnMut(&str, &Nodes) -> Result<(), places::Wrong>,
) {
    let given = s.find(key::<Places>(name, doc).optional("none"));
    let (Some(given), Some(nodes)) = (given, nodes) else { return };
    if let Some((message, near)) = given.0.iter().find_map(|text| take(text, nodes).err()) {
        s.wrong_hint(name, message, near);
    }
}
