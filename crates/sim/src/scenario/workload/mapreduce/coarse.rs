//! `detail` and the table `coarse`: traffic of Hadoop that is left out in runs with thousands of nodes.

use eastwest_settings::reader::{Section, key};
use eastwest_types::Span;
use eastwest_workload::mapreduce::CoarseConfig;

/// Reads whether all of Hadoop is modelled, and if not, what is left out.
pub fn read(s: &mut Section) -> CoarseConfig {
    let coarse = s.choice(
        "detail",
        "How much of Hadoop's traffic is modelled; coarse is for thousands of nodes.",
        Some("full"),
        &[
            ("full", false, "every message"),
            ("coarse", true, "no heartbeats, fetches in parts, whole blocks; no host can be lost"),
        ],
    );
    if !coarse && !s.describing() {
        return CoarseConfig::default();
    }
    s.table("coarse", "What is left out; with detail = coarse.", read_table)
}

fn read_table(s: &mut Section) -> CoarseConfig {
    let usual = CoarseConfig::all(Span::from_us(100));
    let heartbeats = s.get(
        key(
            "heartbeats",
            "Heartbeats of Hadoop 1 and their answers are no messages, and those of which nothing \
             can come are left out.",
        )
        .value(true),
    );
    let delay = s.get(
        key("heartbeat_delay", "Time each of them takes instead.")
            .value(usual.heartbeats.expect("it is on"))
            .range("1 ns", "250 ms"),
    );
    let parts = s
        .get(key("fetch_parts", "Reduces fetch their input in parts, not map by map.").value(true));
    let fetches = s.get(
        key("fetches", "In so many parts, or more where a reduce's memory holds less.")
            .value(usual.fetches.expect("it is on"))
            .range("1", "1000000"),
    );
    let blocks = s.get(
        key(
            "blocks",
            "A block or a remote split is one message for each hop, sent at once and as a whole.",
        )
        .value(usual.blocks),
    );
    CoarseConfig {
        heartbeats: heartbeats.then_some(delay),
        fetches: parts.then_some(fetches),
        blocks,
    }
}
