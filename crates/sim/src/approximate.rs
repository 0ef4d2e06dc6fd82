//! What a run without packets says of itself: how far off the mode was where it was compared with packet
//! mode (`flow_validation.json`, made by `tools/flow_validation.py`; docs/validation/flow-mode.md), and
//! whether this run is one of those it is not made for.

use eastwest_fluid::network::Overflows;
use serde_json::{Value, json};

/// Errors against packet mode, measured.
const MEASURED: &str = include_str!("flow_validation.json");

/// A run of flows in place of packets.
#[derive(Clone, Debug)]
pub struct Approximate {
    /// Starts that packets would have paid for with losses.
    pub overflows: Overflows,
    /// Ports at which that was so.
    pub ports: usize,
}

/// What was measured.
fn measured() -> Value {
    serde_json::from_str(MEASURED).expect("the measured errors are JSON")
}

/// A share in per cent, for people.
fn percent(v: &Value) -> String {
    v.as_f64().map_or("unknown".to_owned(), |share| format!("{:.1} %", 100.0 * share))
}

/// The mode's errors in one sentence.
fn statement(m: &Value) -> String {
    let (all, calm) = (&m["all"]["scenarios"], &m["without_loss"]);
    format!(
        "flow-level: approximate; job times within {} (median) and {} (p99) of packet mode in the \
         middle of {} scenarios without heavy loss, {} and {} at worst ({} scenarios in all)",
        percent(&calm["p50_typical"]),
        percent(&calm["p99_typical"]),
        calm["scenarios"],
        percent(&calm["p50_worst"]),
        percent(&calm["p99_worst"]),
        all,
    )
}

impl Approximate {
    /// `flow_mode` of the summary.
    pub fn summary(&self) -> Value {
        let (m, Overflows { starts, of }) = (measured(), self.overflows);
        let limit = m["loss_dominated_above"].as_f64().unwrap_or(1.0);
        let dominated = starts as f64 > limit * of as f64;
        let warning = dominated.then(|| {
            format!(
                "loss-dominated: {starts} of {of} starts meet a queue that has no room for their \
                 window; with packets whole windows are lost there and times are longer than \
                 these"
            )
        });
        json!({
            "starts": of, "overflowing_starts": starts, "overflowing_ports": self.ports,
            "loss_dominated": dominated, "warning": warning, "error": statement(&m),
            "measured": { "all": m["all"], "without_loss": m["without_loss"] },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_result_quotes_the_measured_errors() {
        let m = measured();
        let calm = &m["without_loss"];
        assert!(calm["scenarios"].as_u64().unwrap() >= 15, "{calm}");
        let said = statement(&m);
        assert!(said.contains(&percent(&calm["p50_typical"])), "{said}");
        assert!(!said.contains("unknown"), "{said}");
    }

    #[test]
    fn a_run_full_of_overflows_says_so() {
        let of =
            |starts| Approximate { overflows: Overflows { starts, of: 100 }, ports: 1 }.summary();
        assert_eq!(of(2)["loss_dominated"], false);
        assert!(of(2)["warning"].is_null());
        let said = of(60)["warning"].as_str().unwrap().to_owned();
        assert!(said.contains("60 of 100 starts"), "{said}");
    }
}
