//! Notes on a run in flow mode or link mode: the errors of the mode in comparisons with packet mode
//! (`flow_validation.json` and `link_validation.json`, made by `tools/flow_validation.py` and
//! `tools/link_validation.py`; docs/validation/flow-mode.md and link-mode.md), and whether this run
//! is outside the range for which the mode is made.

use eastwest_fluid::network::Overflows;
use serde_json::{Value, json};

/// Measured errors of flow mode against packet mode, as JSON.
const MEASURED: &str = include_str!("flow_validation.json");
/// Measured errors of link mode against packet mode, as JSON.
const LINKS_MEASURED: &str = include_str!("link_validation.json");

/// Counts of a run in link mode, which simulates links one by one.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkCounts {
    /// Number of cables that flows cross.
    pub links: u64,
    /// Number of cables that were simulated; the others use the delays of similar cables.
    pub simulated_links: u64,
    /// Number of all flows.
    pub flows: u64,
    /// Number of flows that cross a simulated cable.
    pub simulated_flows: u64,
    /// Number of these flows with a retransmission timeout at a simulated cable.
    pub flows_with_timeouts: u64,
    /// Number of flows that started and did not arrive before the end of the run.
    pub not_arrived: u64,
}

/// Counts of an approximate run, by its mode.
#[derive(Clone, Debug)]
pub enum Approximate {
    /// Flow mode.
    Flow(FlowCounts),
    /// Link mode.
    Links(LinkCounts),
}

/// Counts of a run in flow mode (without packets) that show whether its completion times are too
/// short.
#[derive(Clone, Debug)]
pub struct FlowCounts {
    /// Numbers of flow starts at which packets would or may have been lost, and number of all flow
    /// starts.
    pub overflows: Overflows,
    /// Number of ports at which packets of a starting flow would have been lost.
    pub ports: usize,
}

/// Returns the measured errors of a mode against packet mode.
fn measured(json: &str) -> Value {
    serde_json::from_str(json).expect("the measured errors are JSON")
}

/// Returns a fraction (JSON number) in percent, as text such as "1.5 %".
fn percent(v: &Value) -> String {
    v.as_f64().map_or("unknown".to_owned(), |share| format!("{:.1} %", 100.0 * share))
}

/// Returns one sentence on the measured errors of flow mode.
fn statement(m: &Value) -> String {
    let of = |of: &str| {
        let (m, typical, worst) = (&m[of], "typical", "worst");
        let error = |q: &str, which: &str| percent(&m[format!("{q}_{which}")]);
        format!(
            "{} (median) and {} (99th percentile), in the worst case {} and {}, in {} scenarios",
            error("p50", typical),
            error("p99", typical),
            error("p50", worst),
            error("p99", worst),
            m["scenarios"],
        )
    };
    format!(
        "flow-level: approximate; in comparisons with packet mode, job times differ by {}; times \
         of single flows differ by {}",
        of("jobs"),
        of("flows"),
    )
}

impl FlowCounts {
    /// Returns a warning that completion times of this run are too short if lost packets, which
    /// flow mode does not simulate, are frequent; `None` if they are rare.
    fn warning(&self, limit: f64) -> Option<String> {
        let Overflows { starts, at_full, of } = self.overflows;
        if starts as f64 > limit * of as f64 {
            return Some(format!(
                "loss-dominated: {starts} of {of} flows start at a queue that has no room for \
                 their window. With fidelity = \"packet\" these flows would lose whole windows \
                 and last longer"
            ));
        }
        (at_full as f64 > 0.01 * of as f64).then(|| {
            format!(
                "{at_full} of {of} flows start at a full queue. With fidelity = \"packet\" some of \
                 these flows would lose their first packets and wait for a timeout, so that the \
                 slowest flows would last longer"
            )
        })
    }

    /// Returns the section `flow_mode` of the summary: counts, a warning if completion times are
    /// too short, and the measured errors of flow mode.
    pub fn summary(&self) -> Value {
        let (m, Overflows { starts, at_full, of }) = (measured(MEASURED), self.overflows);
        let limit = m["loss_dominated_above"].as_f64().unwrap_or(1.0);
        json!({
            "starts": of, "overflowing_starts": starts, "overflowing_ports": self.ports,
            "starts_at_full_queues": at_full, "loss_dominated": starts as f64 > limit * of as f64,
            "warning": self.warning(limit), "error": statement(&m),
            "measured": { "jobs": m["jobs"], "flows": m["flows"] },
        })
    }
}

impl LinkCounts {
    /// Returns the section `flow_mode` of the summary: counts, a warning if timeouts are frequent,
    /// and the measured errors of link mode.
    fn summary(&self) -> Value {
        let m = measured(LINKS_MEASURED);
        let limit = m["loss_dominated_above"].as_f64().unwrap_or(1.0);
        let (waiting, of) = (self.flows_with_timeouts, self.simulated_flows);
        let loses = waiting as f64 > limit * of as f64;
        let warning = loses.then(|| {
            format!(
                "loss-dominated: {waiting} of {of} simulated flows wait for a retransmission \
                 timeout at a link. The mode simulates each link alone, which changes how many flows \
                 wait and how often, so that the slowest flows may be far from those of fidelity = \
                 \"packet\""
            )
        });
        let error = |of: &str, q: &str| percent(&m[of][q]);
        let statement = format!(
            "link by link: approximate; in comparisons with packet mode, completion times of single \
             flows differ by {} (median) and {} (99th percentile), in the worst case {} and {}, in {} \
             scenarios without frequent timeouts; with frequent timeouts the 99th percentile differs \
             by up to {}",
            error("open_loop", "p50_typical"),
            error("open_loop", "p99_typical"),
            error("open_loop", "p50_worst"),
            error("open_loop", "p99_worst"),
            m["open_loop"]["scenarios"],
            error("loss_dominated", "p99_worst"),
        );
        json!({
            "links": self.links, "simulated_links": self.simulated_links, "flows": self.flows,
            "simulated_flows": of, "flows_with_timeouts": waiting, "loss_dominated": loses,
            "warning": warning, "error": statement,
            "measured": { "open_loop": m["open_loop"], "loss_dominated": m["loss_dominated"] },
        })
    }
}

impl Approximate {
    /// Returns the name of the mode in scenarios.
    pub fn fidelity(&self) -> &'static str {
        match self {
            Approximate::Flow(_) => "flow",
            Approximate::Links(_) => "links",
        }
    }

    /// Returns the section `flow_mode` of the summary.
    pub fn summary(&self) -> Value {
        match self {
            Approximate::Flow(counts) => counts.summary(),
            Approximate::Links(counts) => counts.summary(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_result_quotes_the_measured_errors() {
        let m = measured(MEASURED);
        let n = |of: &str| m[of]["scenarios"].as_u64().unwrap();
        assert_eq!(n("jobs") + n("flows"), 23);
        let said = statement(&m);
        assert!(said.contains(&percent(&m["jobs"]["p50_typical"])), "{said}");
        assert!(!said.contains("unknown"), "{said}");
    }

    #[test]
    fn link_mode_quotes_its_errors_and_says_when_timeouts_are_frequent() {
        let of = |flows_with_timeouts| {
            let counts =
                LinkCounts { simulated_flows: 1000, flows_with_timeouts, ..LinkCounts::default() };
            Approximate::Links(counts).summary()
        };
        let m = measured(LINKS_MEASURED);
        let said = of(0)["error"].as_str().unwrap().to_owned();
        assert!(said.contains(&percent(&m["open_loop"]["p99_worst"])), "{said}");
        assert!(!said.contains("unknown") && said.len() < 400, "{said}");
        assert!(of(5)["warning"].is_null());
        assert!(of(6)["warning"].as_str().unwrap().contains("6 of 1000 simulated flows"));
    }

    #[test]
    fn a_run_full_of_overflows_says_so() {
        let of = |starts| {
            let overflows = Overflows { starts, at_full: starts, of: 100 };
            FlowCounts { overflows, ports: 1 }.summary()
        };
        assert!(of(1)["warning"].is_null());
        assert_eq!(of(2)["loss_dominated"], false);
        assert!(of(2)["warning"].as_str().unwrap().contains("full queue"));
        let said = of(60)["warning"].as_str().unwrap().to_owned();
        assert!(said.contains("60 of 100 flows"), "{said}");
    }
}
