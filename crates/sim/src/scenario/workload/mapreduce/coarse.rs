//! The key `detail` and the table `coarse`: traffic of Hadoop that is left out to speed up runs
//! with thousands of nodes.

use eastwest_settings::reader::{Section, key};
use eastwest_types::Span;
use eastwest_workload::mapreduce::CoarseConfig;

/// Reads the keys `detail` and `coarse`, which determine the traffic of Hadoop that is left out:
/// none, or the traffic that the table `coarse` names.
pub fn read(s: &mut Section) -> CoarseConfig {
    let coarse = s.choice(
        "detail",
        "Level of detail of Hadoop's traffic; coarse is for thousands of nodes.",
        Some("full"),
        &[
            ("full", false, "every message"),
            (
                "coarse",
                true,
                "no heartbeat messages, fetches in parts, whole blocks; no host can \
                              fail",
            ),
        ],
    );
    if !coarse && !s.describing() {
        return CoarseConfig::default();
    }
    s.table("coarse", "Simplifications of Hadoop's traffic, with detail = coarse.", read_table)
}

fn read_table(s: &mut Section) -> CoarseConfig {
    let usual = CoarseConfig::all(Span::from_us(100));
    let heartbeats = s.get(
        key(
            "heartbeats",
            "Whether heartbeats of Hadoop 1 are not sent as messages, and heartbeats without any \
             effect are left out.",
        )
        .value(true),
    );
    let delay = s.get(
        key(
            "heartbeat_delay",
            "Time that a heartbeat or its answer needs when it is not sent as \
                                a message.",
        )
        .value(usual.heartbeats.expect("it is on"))
        .range("1 ns", "250 ms"),
    );
    let parts = s.get(
        key(
            "fetch_parts",
            "Whether a reduce fetches its whole input in a few large parts (fetches) instead of one \
             fetch for each map.",
        )
        .value(true),
    );
    let fetches = s.get(
        key(
            "fetches",
            "Number of parts in which a reduce fetches its input; more if a part does \
                        not fit into its memory.",
        )
        .value(usual.fetches.expect("it is on"))
        .range("1", "1000000"),
    );
    let blocks = s.get(
        key("blocks", "Whether a block or a remote split is sent as one message on each hop.")
            .value(usual.blocks),
    );
    CoarseConfig {
        heartbeats: heartbeats.then_some(delay),
        fetches: parts.then_some(fetches),
        blocks,
    }
}
