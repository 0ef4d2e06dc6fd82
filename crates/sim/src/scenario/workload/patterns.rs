//! Workloads other than MapReduce and MPI: regular patterns, incast, open-loop flows, services,
//! datagrams.
//!
//! The documentation of the crate `eastwest-workload` contains the defaults and their sources.

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

/// Maximum size of a flow.
const MOST_BYTES: &str = "1000 TB";

fn flow_bytes(s: &mut Section) -> u64 {
    s.get(key::<Bytes>("bytes", "Bytes of each flow.").range("1 B", MOST_BYTES)).0
}

/// Explanation of the key `start_window` of patterns whose flows start at the beginning of the run.
const START_WINDOW: &str = "Interval from 0 s in which the first flows start, at uniform random \
                            times (as in S1).";

/// Reads the key `start_window` with the explanation `doc`: the length of the interval in which the
/// first flows start, at uniform random times.
pub fn start_window(s: &mut Section, doc: &'static str) -> Span {
    s.get(key("start_window", doc).value(StrideConfig::START_WINDOW).range("0 s", "480 h"))
}

/// Reads the settings of a stride pattern, in which host i sends to hosts i + stride, i + 2·stride
/// …
pub fn stride(s: &mut Section, class: ClassId) -> StrideConfig {
    StrideConfig {
        stride: s.get(
            key("stride", "Distance between successive receivers, in host numbers.")
                .range("1", "1000000"),
        ),
        count: s.get(key("count", "Number of flows of each host.").range("1", "100000")),
        bytes: flow_bytes(s),
        start_window: start_window(s, START_WINDOW),
        class,
    }
}

/// Reads the settings of a permutation, in which every host sends to one other host.
pub fn permutation(s: &mut Section, class: ClassId) -> PermutationConfig {
    PermutationConfig {
        bytes: flow_bytes(s),
        repeat: s.get(
            key(
                "repeat",
                "Number of flows of each host, one after the other, each to another \
                           receiver.",
            )
            .default("1")
            .range("1", "100000"),
        ),
        start_window: start_window(s, START_WINDOW),
        class,
    }
}

/// Reads the settings of an all-to-all exchange, in which every host sends to every other host.
pub fn all_to_all(s: &mut Section, class: ClassId) -> AllToAllConfig {
    AllToAllConfig {
        bytes: flow_bytes(s),
        repeat: s.get(
            key(
                "repeat",
                "Number of flows of each pair of hosts, one after the other, each over \
                           a new connection.",
            )
            .default("1")
            .range("1", "100000"),
        ),
        request_bytes: s
            .get(
                key::<Bytes>(
                    "request_bytes",
                    "Bytes of the request with which a host starts a flow from another host; with \
                     0 hosts send without a request.",
                )
                .value(Bytes(0))
                .range("0 B", "1 GB"),
            )
            .0,
        parallel: s.find(
            key("parallel", "Maximum number of simultaneous flows of a host.")
                .optional("all at once")
                .range("1", "1000000"),
        ),
        start_window: start_window(s, START_WINDOW),
        class,
    }
}

/// Reads the settings of synchronized reads (incast). Returns `None` if there is a problem, which
/// is reported.
pub fn incast(s: &mut Section, ground: &Ground, class: ClassId) -> Option<IncastConfig> {
    let receiver =
        hosts::read_one(s, "receiver", "Host that reads from all senders.", None, ground.nodes);
    let doc = "Hosts that each send a part of every block.";
    let senders =
        hosts::read_list(s, "senders", doc, Some("all hosts but the receiver"), ground.nodes);
    let rounds = s.get(key("rounds", "Number of rounds.").default("1").range("1", "1000000"));
    let block = s.get(
        key::<Bytes>("block_bytes", "Bytes that each sender sends in a round.")
            .range("1 B", MOST_BYTES),
    );
    let request = s.get(
        key::<Bytes>(
            "request_bytes",
            "Bytes of the request to each sender; with 0 senders start without a request.",
        )
        .value(Bytes(IncastConfig::REQUEST_BYTES))
        .range("0 B", "1 GB"),
    );
    let persistent = s.get(
        key(
            "persistent",
            "Whether connections are kept for all rounds. If false, each round \
                           opens new connections.",
        )
        .default("true"),
    );
    let warm_up = s.get(
        key(
            "warm_up",
            "Time at which the first round starts; connections open before (as in the ns-3 \
             program to which S2 is compared).",
        )
        .value(IncastConfig::WARM_UP)
        .range("0 s", "1 h"),
    );
    let start_jitter = s.get(
        key(
            "start_jitter",
            "Upper end of the uniform random time before a sender writes (wake-up of a server \
             process).",
        )
        .value(IncastConfig::START_JITTER)
        .range("0 s", "1 h"),
    );
    let (receiver, nodes) = (receiver?, ground.nodes?);
    s.demand(
        senders.is_some() || nodes.hosts() as usize <= hosts::MOST_HOSTS,
        &["senders"],
        || format!("is required, because there are more than {} hosts", hosts::MOST_HOSTS),
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

/// Sizes of flows as written in the scenario: one size, or the name of a distribution.
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

/// Point of a cumulative distribution of flow sizes: a size, and the fraction of flows that are at
/// most as large.
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
        "Distribution of flow sizes: a single size, web-search (DCTCP 2010), data-mining (VL2 \
         2009), hadoop (Roy et al. 2015), or points (key size_points).",
    ));
    let interpolation = s.choice(
        "interpolation",
        "Interpolation between two points of a size distribution.",
        Some("logarithmic"),
        &[
            (
                "logarithmic",
                Interpolation::Logarithmic,
                "uniform in the logarithm of the size, the axis of the papers' figures",
            ),
            ("linear", Interpolation::Linear, "uniform in the size, as in older ns-2 scripts"),
        ],
    );
    let points: Option<Vec<Point>> = s.find(
        key(
            "size_points",
            "Points [size, share of flows up to this size] of your own \
                            distribution.",
        )
        .optional("none; needed with sizes = \"points\""),
    );
    if !s.good(&["sizes", "size_points", "interpolation"]) || s.describing() {
        return None;
    }
    let given = points.is_some();
    let SizesName::Named(name) = name else {
        s.demand(!given, &["size_points"], || {
            "has an effect only with sizes = \"points\"".to_owned()
        });
        let SizesName::Fixed(bytes) = name else { return None };
        return Some(Sizes::Fixed(bytes.0));
    };
    s.demand(!given || name == "points", &["size_points"], || {
        "has an effect only with sizes = \"points\"".to_owned()
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

/// Reads the key `name`: the number of flows or requests after which a workload stops. The key is
/// required unless the workload runs in the background or has the key `duration`.
pub(super) fn read_count(
    s: &mut Section,
    name: &'static str,
    doc: &'static str,
    background: bool,
) -> Option<u64> {
    let count: Option<u64> = s.find(
        key(name, doc)
            .optional("no end; background = true is then needed")
            .range("1", "1000000000000"),
    );
    let required = count.is_none() && !background && !s.has("duration");
    s.demand(!required, &[name, "background"], || {
        "is required, unless the workload runs in the background: it would not end".to_owned()
    });
    count
}

/// Reads the settings of open-loop flows, which arrive at random at a given load, whether or not
/// earlier flows have ended. Returns `None` if there is a problem, which is reported.
pub fn poisson(
    s: &mut Section,
    ground: &Ground,
    class: ClassId,
    background: bool,
) -> Option<PoissonConfig> {
    let doc = "Hosts that send and receive.";
    let hosts = hosts::read_list(s, "hosts", doc, Some("all hosts"), ground.nodes);
    let load = s.get(
        key::<Fraction>(
            "load",
            "Offered load: payload rate as a share of the sum of the rates of these hosts. Each \
             host sends and receives an equal part, whatever its own rate is.",
        )
        .range("0.000001", "1"),
    );
    let sizes = sizes(s);
    let start = s.get(
        key("start", "Time at which flows begin to arrive.").default("0 s").range("0 s", "480 h"),
    );
    let flows = read_count(s, "flows", "Number of flows.", background);
    let duration: Option<Span> = s.find(
        key("duration", "Time during which flows arrive.")
            .optional("no end, or until all flows have arrived")
            .range("1 ns", "480 h"),
    );
    s.demand(flows.is_none() || duration.is_none(), &["flows", "duration"], || {
        "cannot be set together with `duration`: give one of them".to_owned()
    });
    let until = match (flows, duration) {
        (Some(flows), _) => Until::Count(flows),
        (None, Some(span)) => Until::Elapsed(span),
        (None, None) => Until::Forever,
    };
    let hosts = hosts.unwrap_or_default();
    Some(PoissonConfig {
        load: load.0,
        mean_host_rate: ground.mean_host_rate(&hosts),
        hosts,
        sizes: sizes?,
        start,
        until,
        class,
    })
}

/// Reads the settings of a request–response service. Returns `None` if there is a problem, which is
/// reported.
pub fn service(
    s: &mut Section,
    ground: &Ground,
    class: ClassId,
    background: bool,
) -> Option<ServiceConfig> {
    let clients = hosts::read_list(s, "clients", "Hosts that send requests.", None, ground.nodes);
    let doc = "Hosts that send responses. A host can be client and server, but sends no request \
               to itself.";
    let servers = hosts::read_list(s, "servers", doc, None, ground.nodes);
    let mean_gap = s
        .get(key("mean_gap", "Mean time between two requests of a client.").range("1 ns", "480 h"));
    let request = s.get(
        key::<Bytes>("request_bytes", "Bytes of a request (Alizadeh et al. 2010, 2.2: 1.6 kB).")
            .value(Bytes(ServiceConfig::REQUEST_BYTES))
            .range("1 B", "1 TB"),
    );
    let response = s.get(
        key::<Bytes>(
            "response_bytes",
            "Bytes of a response (Alizadeh et al. 2010, 2.2: 1.6 to 2 \
                                        kB).",
        )
        .value(Bytes(ServiceConfig::RESPONSE_BYTES))
        .range("1 B", "1 TB"),
    );
    let server_time = s.get(
        key(
            "server_time",
            "Time from the arrival of a request until the server writes its \
                            response.",
        )
        .default("0 s")
        .range("0 s", "1 h"),
    );
    let warm_up = s.get(
        key("warm_up", "Time at which requests begin; connections open before.")
            .value(ServiceConfig::WARM_UP)
            .range("0 s", "1 h"),
    );
    let requests =
        read_count(s, "requests", "Number of requests of all clients together.", background);
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

/// Reads the settings of datagram traffic. Returns `None` if there is a problem, which is reported.
pub fn datagrams(
    s: &mut Section,
    ground: &Ground,
    class: ClassId,
    background: bool,
) -> Option<DatagramsConfig> {
    let sources = hosts::read_list(s, "sources", "Hosts that send.", None, ground.nodes);
    let destination = hosts::read_one(s, "destination", "Host that receives.", None, ground.nodes);
    let bytes = s.get(
        key::<Octets>("bytes", "IP bytes of each packet, at least 28 B of IP and UDP headers.")
            .range("28", "9216"),
    );
    if let Some(mtu) = ground.mtu {
        s.demand(bytes.0 <= mtu, &["bytes"], || {
            format!("must be at most the MTU, which is {mtu} B")
        });
    }
    let arrivals = s.choice(
        "arrivals",
        "Distribution of the gaps between packets.",
        Some("poisson"),
        &[
            (
                "poisson",
                Arrivals::Poisson,
                "exponential gaps: with packets of one size an M/D/1 \
                                            queue",
            ),
            ("periodic", Arrivals::Periodic, "equal gaps, with a random phase for each source"),
        ],
    );
    let mean_gap =
        s.get(key("mean_gap", "Mean time between two packets of a source.").range("1 ns", "480 h"));
    let start = s.get(
        key("start", "Time at which the sources begin to send.")
            .default("0 s")
            .range("0 s", "480 h"),
    );
    let packets =
        read_count(s, "packets", "Number of packets of all sources together.", background);
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
