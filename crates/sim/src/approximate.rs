//! Notes on a run in flow mode (without packets): the errors of flow mode in comparisons with
//! packet mode (`flow_validation.json`, made by `tools/flow_validation.py`;
//! docs/validation/flow-mode.md), and whether this run is outside the range for which flow mode is
//! made.

use eastwest_fluid::network::Overflows;
use serde_json::{Value, json};

/// Measured errors of flow mode against packet mode, as JSON.
const MEASURED: &str = include_str!("flow_validation.json");

/// Counts of a run in flow mode (without packets) that show whether its completion times are too
/// short.
#[derive(Clone, Debug)]
pub struct Approximate {
    /// Numbers of flow starts at which packets would or may have been lost, and number of all flow
    /// starts.
    pub overflows: Overflows,
    /// Number of ports at which packets of a starting flow would have been lost.
    pub ports: usize,
}

/// Returns the measured errors of flow mode against packet mode.
fn measured() -> Value {
    serde_json::from_str(MEASURED).expect("the measured errors are JSON")
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

impl Approximate {
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
        let (m, Overflows { starts, at_full, of }) = (measured(), self.overflows);
        let limit = m["loss_dominated_above"].as_f64().unwrap_or(1.0);
        json!({
            "starts": of, "overflowing_starts": starts, "overflowing_ports": self.ports,
            "starts_at_full_queues": at_full, "loss_dominated": starts as f64 > limit * of as f64,
            "warning": self.warning(limit), "error": statement(&m),
            "measured": { "jobs": m["jobs"], "flows": m["flows"] },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_result_quotes_the_measured_errors() {
        let m = measured();
        let n = |of: &str| m[of]["scenarios"].as_u64().unwrap();
        assert_eq!(n("jobs") + n("flows"), 23);
        let said = statement(&m);
        assert!(said.contains(&percent(&m["jobs"]["p50_typical"])), "{said}");
        assert!(!said.contains("unknown"), "{said}");
    }

    #[test]
    fn a_run_full_of_overflows_says_so() {
        let of = |starts| {
            let overflows = Overflows { starts, at_full: starts, of: 100 };
            Approximate { overflows, ports: 1 }.summary()
        };
        assert!(of(1)["warning"].is_null());
        assert_eq!(of(2)["loss_dominated"], false);
        assert!(of(2)["warning"].as_str().unwrap().contains("full queue"));
        let said = of(60)["warning"].as_str().unwrap().to_owned();
        assert!(said.contains("60 of 100 flows"), "{said}");
    }
}
