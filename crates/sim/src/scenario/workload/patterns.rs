//! Workloads other than MapReduce: regular patterns, incast, open-loop flows, services, datagrams.
//!
//! The defaults of the settings and their sources are those of `eastwest-workload`.

use super::ground::Ground;
use crate::scenario::hosts;
use eastwest_settings::narrow::at_most;
use eastwest_settings::quantity::{Bytes, Fraction, Octets, Quantity, instead};
use eastwest_settings::reader::{Section, key};
use eastwest_types::{ClassId, HostId, Span};
use eastwest_workload::all_to_all::AllToAllConfig;
use eastwest_workload::arrivals::Arrivals;
use eastwest_workload::datagrams::DatagramsConfig;
use eastwest_workload::incast::IncastConfig;
use eastwest_workload::permutation::PermutationConfig;
use eastwest_workload::poisson::{PoissonConfig, Until};
use eastwest_workload::service::ServiceConfig;
use eastwest_workload::sizes::{EmpiricalCdf, Interpolation, Sizes};
use eastwest_workload::stride::StrideConfig;
use toml::Value;

/// Largest flow.
const MOST_BYTES: &str = "1000 TB";

fn flow_bytes(s: &mut Section) -> u64 {
    s.get(key::<Bytes>("bytes", "Bytes of each flow.").range("1 B", MOST_BYTES)).0
}

/// Reads the key `start_window`.
pub fn start_window(s: &mut Section) -> Span {
    s.get(
        key("start_window", "Width of the uniform start times of the first flows (as in S1).")
            .value(StrideConfig::START_WINDOW)
            .range("0 s", "480 h"),
    )
}

/// Reads the settings of a stride pattern.
pub fn stride(s: &mut Section, class: ClassId) -> StrideConfig {
    StrideConfig {
        stride: s.get(
            key("stride", "Distance between successive receivers, in hosts.").range("1", "1000000"),
        ),
        count: s.get(key("count", "Flows per host.").range("1", "100000")),
        bytes: flow_bytes(s),
        start_window: start_window(s),
        class,
    }
}

/// Reads the settings of a permutation.
pub fn permutation(s: &mut Section, class: ClassId) -> PermutationConfig {
    PermutationConfig {
        bytes: flow_bytes(s),
        repeat: s.get(
            key("repeat", "Flows of each host, one after the other, each to another receiver.")
                .default("1")
                .range("1", "100000"),
        ),
        start_window: start_window(s),
        class,
    }
}

/// Reads the settings of an all-to-all exchange.
pub fn all_to_all(s: &mut Section, class: ClassId) -> AllToAllConfig {
    AllToAllConfig {
        bytes: flow_bytes(s),
        repeat: s.get(
            key("repeat", "Flows of each pair, one after the other over a fresh connection each.")
                .default("1")
                .range("1", "100000"),
        ),
        request_bytes: s
            .get(
                key::<Bytes>(
                    "request_bytes",
                    "Bytes with which each host asks every other for the flow, which the other then \
                     sends back; with 0 hosts send unasked.",
                )
                .value(Bytes(0))
                .range("0 B", "1 GB"),
            )
            .0,
        parallel: s.find(
            key("parallel", "Flows a host has under way at once.")
                .optional("all at once")
                .range("1", "1000000"),
        ),
        start_window: start_window(s),
        class,
    }
}

/// Reads the settings of synchronized reads.
pub fn incast(s: &mut Section, ground: &Ground, class: ClassId) -> Option<IncastConfig> {
    let receiver = hosts::read_one(s, "receiver", "The host that reads.", None, ground.nodes);
    let doc = "Hosts that each send a part of every block.";
    let senders =
        hosts::read_list(s, "senders", doc, Some("all hosts but the receiver"), ground.nodes);
    let rounds = s.get(key("rounds", "Number of rounds.").default("1").range("1", "1000000"));
    let block = s.get(
        key::<Bytes>("block_bytes", "Bytes each sender sends in a round.").range("1 B", MOST_BYTES),
    );
    let request = s.get(
        key::<Bytes>(
            "request_bytes",
            "Bytes of the request to each sender; with 0 the senders start by themselves.",
        )
        .value(Bytes(IncastConfig::REQUEST_BYTES))
        .range("0 B", "1 GB"),
    );
    let persistent = s.get(
        key("persistent", "Whether connections last for all rounds, or are opened for each.")
            .default("true"),
    );
    let warm_up = s.get(
        key(
            "warm_up",
            "When the first round starts: connections open before (as in the \
                        ns-3 program S2 is compared with).",
        )
        .value(IncastConfig::WARM_UP)
        .range("0 s", "1 h"),
    );
    let start_jitter = s.get(
        key(
            "start_jitter",
            "Width of the uniform time a sender takes before it writes \
                         (wake-up of a server process).",
        )
        .value(IncastConfig::START_JITTER)
        .range("0 s", "1 h"),
    );
    let (receiver, nodes) = (receiver?, ground.nodes?);
    s.demand(
        senders.is_some() || nodes.hosts() as usize <= hosts::MOST_HOSTS,
        &["senders"],
        || format!("is required: there are more than {} hosts", hosts::MOST_HOSTS),
    );
    if !s.good(&["senders"]) {
        return None;
    }
    let others = || (0..nodes.hosts()).map(HostId).filter(|h| *h != receiver).collect();
    Some(IncastConfig {
        receiver,
        senders: senders.unwrap_or_else(others),
        rounds,
        block_bytes: block.0,
        request_bytes: request.0,
        persistent,
        warm_up,
        start_jitter,
        class,
    })
}

/// Sizes of flows: one size, or the name of a distribution.
#[derive(Clone)]
enum SizesName {
    Fixed(Bytes),
    Named(&'static str),
}

const DISTRIBUTIONS: [&str; 4] = ["web-search", "data-mining", "hadoop", "points"];

impl Quantity for SizesName {
    const TYPE: &'static str = "sizes";
    fn parse(value: &Value) -> Result<SizesName, String> {
        let text = value.as_str().unwrap_or("");
        if let Some(name) = DISTRIBUTIONS.into_iter().find(|d| *d == text) {
            return Ok(SizesName::Named(name));
        }
        match Bytes::parse(value) {
            Ok(Bytes(0)) => Err("must be at least 1 B".to_owned()),
            Ok(bytes) => Ok(SizesName::Fixed(bytes)),
            Err(_) => Err(format!(
                "must be a size such as \"10 KB\" or one of {}",
                DISTRIBUTIONS.join(", ")
            )),
        }
    }
    fn show(&self) -> String {
        match self {
            SizesName::Fixed(bytes) => bytes.show(),
            SizesName::Named(name) => Value::String((*name).to_owned()).to_string(),
        }
    }
    fn placeholder() -> SizesName {
        SizesName::Fixed(Bytes(1))
    }
}

/// A point of a CDF: size, and the fraction of flows up to that size.
#[derive(Clone)]
struct Point(Bytes, Fraction);

impl Quantity for Point {
    const TYPE: &'static str = "point";
    const LIST: &'static str = "list of points";
    fn parse(value: &Value) -> Result<Point, String> {
        match value {
            Value::Array(pair) => match pair.as_slice() {
                [size, share] => Ok(Point(Bytes::parse(size)?, Fraction::parse(share)?)),
                _ => Err("must be a pair such as [\"10 KB\", 0.4]".to_owned()),
            },
            other => Err(format!("{}; must be a pair such as [\"10 KB\", 0.4]", instead(other))),
        }
    }
    fn show(&self) -> String {
        format!("[{}, {}]", self.0.show(), self.1.show())
    }
    fn placeholder() -> Point {
        Point(Bytes(1), Fraction(0.0))
    }
}

fn sizes(s: &mut Section) -> Option<Sizes> {
    let name: SizesName = s.get(key(
        "sizes",
        "Sizes of flows: one size, web-search (DCTCP 2010), data-mining (VL2 2009), \
         hadoop (Roy et al. 2015), or points.",
    ));
    let interpolation = s.choice(
        "interpolation",
        "How sizes between two points of a distribution are found.",
        Some("logarithmic"),
        &[
            (
                "logarithmic",
                Interpolation::Logarithmic,
                "uniform in the logarithm of the size, the axis of the papers' figures",
            ),
            ("linear", Interpolation::Linear, "uniform in the size, as older ns-2 scripts do"),
        ],
    );
    let points: Option<Vec<Point>> = s.find(
        key("size_points", "Points [size, share of flows up to it] of a distribution of your own.")
            .optional("none; needed with sizes = \"points\""),
    );
    if !s.good(&["sizes", "size_points", "interpolation"]) || s.describing() {
        return None;
    }
    let given = points.is_some();
    let SizesName::Named(name) = name else {
        s.demand(!given, &["size_points"], || "needs sizes = \"points\"".to_owned());
        let SizesName::Fixed(bytes) = name else { return None };
        return Some(Sizes::Fixed(bytes.0));
    };
    s.demand(!given || name == "points", &["size_points"], || {
        "needs sizes = \"points\"".to_owned()
    });
    match name {
        "web-search" => Some(Sizes::Empirical(EmpiricalCdf::web_search(interpolation))),
        "data-mining" => Some(Sizes::Empirical(EmpiricalCdf::data_mining(interpolation))),
        "hadoop" => Some(Sizes::Empirical(EmpiricalCdf::hadoop(interpolation))),
        _ => {
            let points = points.unwrap_or_default().iter().map(|p| (p.0.0, p.1.0)).collect();
            match EmpiricalCdf::new(points, interpolation) {
                Ok(cdf) => Some(Sizes::Empirical(cdf)),
                Err(wrong) => {
                    for reason in wrong {
                        let reason = reason.strip_prefix("sizes: ").unwrap_or(&reason);
                        s.wrong("size_points", reason.to_owned());
                    }
                    None
                }
            }
        }
    }
}

/// Reads the number after which a workload without natural end stops; required unless it runs in the
/// background.
pub(super) fn read_count(
    s: &mut Section,
    name: &'static str,
    doc: &'static str,
    background: bool,
) -> Option<u64> {
    let count: Option<u64> = s.find(
        key(name, doc)
            .optional("it never ends, which needs background = true")
            .range("1", "1000000000000"),
    );
    let required = count.is_none() && !background && !s.has("duration");
    s.demand(!required, &[name, "background"], || {
        "is required, unless the workload runs in the background".to_owned()
    });
    count
}

/// Reads the settings of open-loop flows.
pub fn poisson(
    s: &mut Section,
    ground: &Ground,
    class: ClassId,
    background: bool,
) -> Option<PoissonConfig> {
    let doc = "Hosts that send and receive.";
    let hosts = hosts::read_list(s, "hosts", doc, Some("all hosts"), ground.nodes);
    let load = s.get(
        key::<Fraction>("load", "Offered payload as a share of the summed rate of these hosts.")
            .range("0.000001", "1"),
    );
    let sizes = sizes(s);
    let start = s.get(key("start", "When arrivals begin.").default("0 s").range("0 s", "480 h"));
    let flows = read_count(s, "flows", "Number of flows.", background);
    let duration: Option<Span> = s.find(
        key("duration", "For how long flows arrive.")
            .optional("without end, or until all flows have arrived")
            .range("1 ns", "480 h"),
    );
    s.demand(flows.is_none() || duration.is_none(), &["flows", "duration"], || {
        "stands beside duration: only one of them can end the arrivals".to_owned()
    });
    let until = match (flows, duration) {
        (Some(flows), _) => Until::Count(flows),
        (None, Some(span)) => Until::Elapsed(span),
        (None, None) => Until::Forever,
    };
    Some(PoissonConfig {
        hosts: hosts.unwrap_or_default(),
        load: load.0,
        host_rate: ground.host_rate,
        sizes: sizes?,
        start,
        until,
        class,
    })
}

/// Reads the settings of a request–response service.
pub fn service(
    s: &mut Section,
    ground: &Ground,
    class: ClassId,
    background: bool,
) -> Option<ServiceConfig> {
    let clients = hosts::read_list(s, "clients", "Hosts that ask.", None, ground.nodes);
    let doc = "Hosts that answer; a host can be both and does not ask itself.";
    let servers = hosts::read_list(s, "servers", doc, None, ground.nodes);
    let mean_gap =
        s.get(key("mean_gap", "Mean time between requests of one client.").range("1 ns", "480 h"));
    let request = s.get(
        key::<Bytes>("request_bytes", "Bytes of a request (Alizadeh et al. 2010, 2.2: 1.6 kB).")
            .value(Bytes(ServiceConfig::REQUEST_BYTES))
            .range("1 B", "1 TB"),
    );
    let response = s.get(
        key::<Bytes>("response_bytes", "Bytes of a response (the same source: 1.6 to 2 kB).")
            .value(Bytes(ServiceConfig::RESPONSE_BYTES))
            .range("1 B", "1 TB"),
    );
    let server_time = s.get(
        key("server_time", "From the arrival of a request to the writing of its response.")
            .default("0 s")
            .range("0 s", "1 h"),
    );
    let warm_up = s.get(
        key("warm_up", "When requests begin: connections open before.")
            .value(ServiceConfig::WARM_UP)
            .range("0 s", "1 h"),
    );
    let requests = read_count(s, "requests", "Requests of all clients together.", background);
    Some(ServiceConfig {
        clients: clients?,
        servers: servers?,
        mean_gap,
        request_bytes: request.0,
        response_bytes: response.0,
        server_time,
        warm_up,
        requests,
        class,
    })
}

/// Reads the settings of datagram traffic.
pub fn datagrams(
    s: &mut Section,
    ground: &Ground,
    class: ClassId,
    background: bool,
) -> Option<DatagramsConfig> {
    let sources = hosts::read_list(s, "sources", "Hosts that send.", None, ground.nodes);
    let destination =
        hosts::read_one(s, "destination", "The host that receives.", None, ground.nodes);
    let bytes = s.get(
        key::<Octets>("bytes", "IP bytes of each packet; the least are IP and UDP headers.")
            .range("28", "9216"),
    );
    if let Some(mtu) = ground.mtu {
        s.demand(bytes.0 <= mtu, &["bytes"], || format!("is above the MTU of {mtu} B"));
    }
    let arrivals = s.choice(
        "arrivals",
        "How gaps between packets are spread.",
        Some("poisson"),
        &[
            ("poisson", Arrivals::Poisson, "exponential gaps: with one size the M/D/1 queue"),
            ("periodic", Arrivals::Periodic, "equal gaps, each source with a phase of its own"),
        ],
    );
    let mean_gap =
        s.get(key("mean_gap", "Mean time between packets of one source.").range("1 ns", "480 h"));
    let start = s.get(key("start", "When sending begins.").default("0 s").range("0 s", "480 h"));
    let packets = read_count(s, "packets", "Packets of all sources together.", background);
    Some(DatagramsConfig {
        sources: sources?,
        destination: destination?,
        bytes: at_most(bytes.0),
        arrivals,
        mean_gap,
        start,
        packets,
        class,
    })
}
