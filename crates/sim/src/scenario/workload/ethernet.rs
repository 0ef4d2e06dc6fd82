//! Workloads of `kind = "ethernet"`: sources of raw Ethernet frames.
//!
//! The default size of a frame is 1500 B, as in the study of the Ethernet-federated data centre
//! (Gusat et al. 2009).

use super::ground::Ground;
use super::patterns::read_count;
use crate::scenario::hosts;
use eastwest_settings::narrow::{at_most, whole_part};
use eastwest_settings::quantity::{Fraction, Octets};
use eastwest_settings::reader::{Section, key};
use eastwest_types::{ClassId, HostId, Rate, Span};
use eastwest_workload::arrivals::Arrivals;
use eastwest_workload::ethernet::{BurstSpread, EthernetConfig, Pattern};

/// Reads the settings of raw Ethernet sources. Returns `None` if there is a problem, which is
/// reported.
pub fn read(
    s: &mut Section,
    ground: &Ground,
    class: ClassId,
    background: bool,
) -> Option<EthernetConfig> {
    let all = Some("all hosts");
    let sources = hosts::read_list(s, "sources", "Hosts that send.", all, ground.nodes);
    let doc = "Hosts that receive.";
    let destinations = hosts::read_list(s, "destinations", doc, all, ground.nodes);
    let pattern = s.choice(
        "pattern",
        "Choice of the destination for each source.",
        Some("uniform"),
        &[
            (
                "uniform",
                Pattern::Uniform,
                "each burst goes to a random destination other than its \
                                           source",
            ),
            (
                "pairs",
                Pattern::Pairs,
                "the first source sends to the first destination, the \
                                       second to the second, and so on",
            ),
        ],
    );
    let bytes = s.get(
        key::<Octets>(
            "bytes",
            "Size of each frame in bytes, without fabric.framing (Gusat et al. \
                                2009: 1500 B).",
        )
        .default("1500")
        .range("46", "9216"),
    );
    if let Some(mtu) = ground.mtu {
        s.demand(bytes.0 <= mtu, &["bytes"], || {
            format!("must be at most the MTU, which is {mtu} B")
        });
    }
    let rate = read_rate(s, ground)?;
    let (arrivals, burst, burst_spread) = read_bursts(s);
    let start = s.get(
        key("start", "Time at which the sources begin to send.")
            .default("0 s")
            .range("0 s", "480 h"),
    );
    let frames = read_count(s, "frames", "Number of frames of all sources together.", background);
    let duration: Option<Span> = s.find(
        key("duration", "Time for which the sources send.")
            .optional("no end, or until all frames are sent")
            .range("1 ns", "480 h"),
    );
    let everyone = || (0..ground.nodes.map_or(0, |n| n.hosts())).map(HostId).collect();
    let few = ground.nodes.is_none_or(|n| n.hosts() as usize <= hosts::MOST_HOSTS);
    s.demand(few || (sources.is_some() && destinations.is_some()), &["sources"], || {
        format!("is required, because there are more than {} hosts", hosts::MOST_HOSTS)
    });
    if !s.good(&["sources", "destinations"]) {
        return None;
    }
    Some(EthernetConfig {
        sources: sources.unwrap_or_else(everyone),
        destinations: destinations.unwrap_or_else(everyone),
        pattern,
        bytes: at_most(bytes.0),
        rate,
        arrivals,
        burst,
        burst_spread,
        start,
        duration,
        frames,
        class,
    })
}

/// Reads the mean rate of a source: the key `rate`, or `load` as a fraction of the rate of the
/// slowest host cable. Exactly one of the two keys is required; without them the result is `None`.
fn read_rate(s: &mut Section, ground: &Ground) -> Option<Rate> {
    let rate: Option<Rate> = s.find(
        key(
            "rate",
            "Mean rate of each source; it counts the bytes of frames without \
                     fabric.framing.",
        )
        .optional("load decides")
        .range("1 kbit/s", "10 Tbit/s"),
    );
    let load: Option<Fraction> = s.find(
        key("load", "Mean rate of each source as a share of the rate of the slowest host cable.")
            .optional("rate decides")
            .range("0.000001", "1"),
    );
    s.demand(rate.is_some() != load.is_some(), &["rate", "load"], || {
        "give either `rate` or `load`: exactly one of them is required".to_owned()
    });
    let of_load =
        |load: Fraction| Rate(whole_part(ground.slowest_host_rate().0 as f64 * load.0 + 0.5));
    rate.or(load.map(of_load)).or_else(|| s.describing().then_some(Rate(1)))
}

/// Reads the settings of bursts: the distribution of the gaps between bursts, the mean number of
/// frames in a burst, and the distribution of this number.
fn read_bursts(s: &mut Section) -> (Arrivals, u32, BurstSpread) {
    let arrivals = s.choice(
        "arrivals",
        "Distribution of the gaps between bursts.",
        Some("poisson"),
        &[
            ("poisson", Arrivals::Poisson, "exponential gaps"),
            ("periodic", Arrivals::Periodic, "equal gaps, with a random phase for each source"),
        ],
    );
    let burst: u32 = s.get(
        key("burst", "Mean number of frames that a source sends at one instant.")
            .default("1")
            .range("1", "100000"),
    );
    let burst_spread = s.choice(
        "burst_spread",
        "Distribution of the number of frames in a burst.",
        Some("fixed"),
        &[
            ("fixed", BurstSpread::Fixed, "always `burst`"),
            ("geometric", BurstSpread::Geometric, "a geometric distribution with mean `burst`"),
        ],
    );
    (arrivals, burst, burst_spread)
}
