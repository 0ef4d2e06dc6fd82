//! Early stops of generated scenarios: a caller that observes at random times which values the
//! measures of a run must reach, and compares them with the values at the end.

use eastwest_engine::random::Stream;
use eastwest_sim::early_stop::{Limit, StopRule};
use eastwest_sim::results::Results;
use eastwest_sim::scenario::Scenario;
use eastwest_sim::site::Site;
use serde_json::Value;

/// Measures that are observed: values of the summary.
const MEASURES: [&str; 20] = [
    "simulated_s",
    "packet_hops",
    "packets.sent",
    "packets.dropped",
    "drops.full.all",
    "marks.all",
    "tcp.timeouts",
    "tcp.retransmits",
    "rocev2.retransmits",
    "dcb.pauses",
    "dcb.paused_s",
    "flows.fct_us.mean",
    "flows.fct_us.p50",
    "flows.fct_us.p99",
    "flows.fct_us.max",
    "flows.by_purpose.flow.fct_us.p50",
    "flows.by_purpose.incast.fct_us.mean",
    "jobs.runtime_s.mean",
    "jobs.runtime_s.max",
    "mpi.runtime_s",
];
/// Relative error of sums of durations that is not a violation.
const ROUNDING: f64 = 2e-9;

/// Caller of a run that observes the least values of measures at random times.
pub struct Observer {
    /// Limits, each with its own rule.
    limits: Vec<(Limit, StopRule)>,
    random: Stream,
    /// Number of events after which the next observation follows.
    next: u64,
    /// Largest least value of each measure so far.
    least: Vec<f64>,
    /// Numbers of the limits that the run surely misses, by their rules.
    missed: Vec<usize>,
    /// First violation of a rule; `None` if there is none.
    violation: Option<String>,
}

impl Observer {
    /// Returns a caller for a run of `scenario` that has not begun, whose state is `site` and whose
    /// results are `end`. The limits are near the values at the end.
    pub fn new(scenario: &Scenario, site: &Site, end: &Results, seed: u64) -> Observer {
        let mut random = Stream::new(seed, "early");
        let limits = MEASURES.map(|measure| {
            let bound = value(end, measure) * (random.below(22) as f64 / 20.0);
            let strict = random.below(2) == 0;
            let limit = Limit { measure: measure.to_owned(), bound, strict };
            let rule =
                StopRule::with_interval(scenario, std::slice::from_ref(&limit), site, (1, 1));
            (limit, rule)
        });
        let least = vec![0.0; limits.len()];
        let (limits, missed) = (Vec::from(limits), Vec::new());
        Observer { limits, random, next: 1, least, missed, violation: None }
    }

    /// Returns the number of events after which the run is observed next.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Observes the run between two events.
    pub fn look(&mut self, site: &Site) {
        let events = site.events;
        self.next = events + 1 + self.random.below(2 + events / 8);
        for (number, (limit, rule)) in self.limits.iter_mut().enumerate() {
            let measure = &limit.measure;
            let is_missed = rule.check(site).is_some();
            let Some((_, least)) = rule.least_values(site).next() else { continue };
            if least < self.least[number] * (1.0 - ROUNDING) {
                let what = format!("the least value of {measure} decreased at event {events}");
                self.violation.get_or_insert(what);
            }
            if least > limit.bound * (1.0 + ROUNDING) && !is_missed {
                let what = format!("at event {events} {measure} is beyond its bound unnoticed");
                self.violation.get_or_insert(what);
            }
            self.least[number] = self.least[number].max(least);
            if is_missed {
                self.missed.push(number);
            }
        }
    }

    /// Returns the first violation of a rule in a run that has these results.
    pub fn judged(self, end: &Results) -> Result<(), String> {
        self.violation.map_or(Ok(()), Err)?;
        for ((limit, _), least) in self.limits.iter().zip(&self.least) {
            let last = value(end, &limit.measure);
            if *least > last * (1.0 + ROUNDING) {
                return Err(format!("{} was to be at least {least}, but is {last}", limit.measure));
            }
        }
        for number in self.missed {
            let Limit { measure, bound, strict } = &self.limits[number].0;
            let last = value(end, measure);
            if !(last > *bound || (*strict && last == *bound)) {
                return Err(format!("{measure} was to miss {bound}, but is {last} at the end"));
            }
        }
        Ok(())
    }
}

/// Returns the value of a measure at the end of a run; 0 if the run does not have it.
fn value(end: &Results, measure: &str) -> f64 {
    let found = measure.split('.').try_fold(&end.summary, |value, name| value.get(name));
    found.and_then(Value::as_f64).unwrap_or(0.0)
}
