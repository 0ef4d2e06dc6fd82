//! Workloads of `kind = "bulk"`: connections that send for a given time, as iperf3 does.

use super::ground::Ground;
use super::patterns;
use crate::scenario::places::{self, Places};
use eastwest_settings::reader::{Section, key};
use eastwest_types::{ClassId, HostId};
use eastwest_workload::bulk::BulkConfig;

/// Reads the settings of bulk transfers. Returns `None` if there is a problem, which is reported.
pub fn read(s: &mut Section, ground: &Ground, class: ClassId) -> Option<BulkConfig> {
    let doc = "Pairs of sender and receiver, such as [\"h0->h4\", \"h1->h4\"].";
    let given: Option<Places> = s.find(key("pairs", doc));
    let connections = s.get(
        key("connections", "Number of connections of each pair (iperf3 -P).")
            .default("1")
            .range("1", "100000"),
    );
    let start = s.get(
        key("start", "Earliest time at which a connection is opened.")
            .default("0 s")
            .range("0 s", "480 h"),
    );
    let start_window = patterns::start_window(
        s,
        "Interval from `start` in which the connections are opened, at uniform random times.",
    );
    let duration = s.get(
        key(
            "duration",
            "Time after `start` at which all connections stop sending (iperf3 -t: 10 \
                         s).",
        )
        .default("10 s")
        .range("1 us", "480 h"),
    );
    s.demand(start_window < duration, &["duration", "start_window"], || {
        format!("must be above start_window ({start_window}), so that each connection sends")
    });
    let (given, nodes) = (given?, ground.nodes?);
    let mut pairs = Vec::new();
    for text in &given.0 {
        let pair = places::ends(text).ok_or_else(|| {
            let message = format!(
                "contains {text}, which is not a pair of hosts; write a pair as \
                                   \"h0->h4\""
            );
            (message, None)
        });
        let hosts = pair.and_then(|(from, to)| {
            Ok((HostId(places::host(from, nodes)?), HostId(places::host(to, nodes)?)))
        });
        match hosts {
            Ok(pair) => pairs.push(pair),
            Err((message, hint)) => s.wrong_hint("pairs", message, hint),
        }
    }
    s.good(&["pairs"]).then_some(BulkConfig {
        pairs,
        connections,
        start,
        start_window,
        duration,
        class,
    })
}
