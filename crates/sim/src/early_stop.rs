//! Rule that stops a run before its end: as soon as the run misses the limit of a goal, whatever
//! happens in the rest of the run.
//!
//! The rule uses measures of which a *least value* at the end of the run is known at any time of
//! the run, and never decreases:
//!
//! | measure | least value at the end |
//! |---|---|
//! | a count, such as `tcp.timeouts` | its current value |
//! | a mean or a percentile of durations, such as `flows.fct_us.p99` | the mean or percentile of all units (flows, jobs, rounds, ranks) of the run, where a unit that has not finished has the duration 0, or its age if it must finish before the run ends |
//!
//! Without the number of all units, only the maximum of durations has a least value above 0. If the
//! run ends with fewer units than planned, because of its `duration` or because a workload runs in
//! the background, the value is not below this least value: leaving out units of duration 0
//! increases means and percentiles.
//!
//! The rule depends only on the simulated state between two events, so that a run always stops at
//! the same event.

use crate::drivers::Driver;
use crate::messages::Message;
use crate::scenario::{Fidelity, Scenario};
use crate::site::Site;
use crate::{dcb, ports, results};
use eastwest_types::{Purpose, Span, Time};
use eastwest_workload::Workload;
use serde_json::Value;

/// Least and largest number of events between two checks of a run in packet mode.
const PACKET_INTERVAL: (u64, u64) = (1 << 12, 1 << 20);
/// Least and largest number of events between two checks of a run in flow mode, whose events take
/// longer.
const FLOW_INTERVAL: (u64, u64) = (1 << 6, 1 << 14);
/// Between these limits, the number of events between two checks is this part of all events so far,
/// so that a short run stops soon and a long run has few checks.
const PART_OF_RUN: u64 = 16;
/// Relative distance that a mean or percentile of durations must have from its bound, so that the
/// rounding of sums and differences does not decide.
const ROUNDING: f64 = 1e-9;

/// Upper limit of a measure.
#[derive(Clone, Debug)]
pub struct Limit {
    /// Name of the measure, as in goals.
    pub measure: String,
    /// Bound in the unit of the measure.
    pub bound: f64,
    /// Whether the bound itself is not allowed.
    pub strict: bool,
}

/// A limit that a run misses, whatever happens in the rest of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Missed {
    /// Number of the limit, from 0, in the order in which the rule was given the limits.
    pub limit: usize,
    /// Simulated time at which this became known.
    pub at: Time,
    /// Least value of the measure at the end of the run, in the unit of the measure.
    pub at_least: f64,
}

/// Rule that stops a run as soon as the run misses one of its limits.
pub struct StopRule {
    watches: Vec<Watch>,
    /// Least and largest number of events between two checks.
    interval: (u64, u64),
    /// Number of events after which the limits are checked next.
    next_check: u64,
}

impl StopRule {
    /// Returns the rule for a run of `scenario` that has not begun and whose state is `site`.
    /// Limits of measures without a [least value](self) are ignored.
    pub fn new(scenario: &Scenario, limits: &[Limit], site: &Site) -> StopRule {
        let interval = match scenario.fidelity {
            Fidelity::Flow => FLOW_INTERVAL,
            _ => PACKET_INTERVAL,
        };
        StopRule::with_interval(scenario, limits, site, interval)
    }

    /// Returns a rule as [`StopRule::new`], with another least and largest number of events between
    /// two checks.
    pub fn with_interval(
        scenario: &Scenario,
        limits: &[Limit],
        site: &Site,
        interval: (u64, u64),
    ) -> StopRule {
        let watch = |(number, limit): (usize, &Limit)| {
            let measure = Measure::parse(scenario, &limit.measure).ok()?;
            Some(Watch::new(number, limit, measure, site))
        };
        let watches = limits.iter().enumerate().filter_map(watch).collect();
        StopRule { watches, interval, next_check: interval.0 }
    }

    /// Returns the number of events of the run at which the next check is due.
    pub fn next_check(&self) -> u64 {
        self.next_check
    }

    /// Returns the first limit that the run surely misses, if a check is due; otherwise `None`.
    pub fn check(&mut self, site: &Site) -> Option<Missed> {
        if site.events < self.next_check {
            return None;
        }
        let (least, most) = self.interval;
        self.next_check = site.events + (site.events / PART_OF_RUN).clamp(least, most);
        self.watches.iter_mut().find_map(|watch| watch.missed(site))
    }

    /// Yields the number of each limit whose measure has a least value, and this value.
    pub fn least_values<'a>(&'a self, site: &'a Site) -> impl Iterator<Item = (usize, f64)> + 'a {
        self.watches.iter().map(|watch| (watch.number, watch.least(site)))
    }
}

/// Returns why a measure cannot stop runs of `scenario` early; `None` if it can.
pub fn obstacle(scenario: &Scenario, measure: &str) -> Option<String> {
    Measure::parse(scenario, measure).err()
}

/// A measure with a [least value](self).
enum Measure {
    Count(Count),
    Durations(Durations),
}

/// A count that never decreases: a number in a section of the summary.
struct Count {
    section: fn(&Site) -> Value,
    /// Names that lead from the section to the number.
    path: Vec<String>,
}

/// Sections of the summary with counts, each with the names of those counts that never decrease; an
/// empty list stands for all counts of the section.
type Section = (&'static str, fn(&Site) -> Value, &'static [&'static str]);

const SECTIONS: [Section; 9] = [
    ("simulated_s", |site| site.network.now.as_secs_f64().into(), &[]),
    ("packet_hops", |site| site.network.fabric.packet_hops().into(), &[]),
    ("packets", packets, &["sent", "delivered", "dropped"]),
    ("drops", |site| ports::lost(site.network.fabric.links.iter()), &[]),
    ("marks", |site| ports::marked(site.network.fabric.links.iter()), &[]),
    ("ports", |site| ports::summary(&site.network.fabric), &[]),
    (
        "tcp",
        |site| results::tcp_summary(&site.transports.tcp.stack),
        &["retransmits", "timeouts", "fast_recoveries", "probes", "dsacks", "ecn_reductions"],
    ),
    (
        "rocev2",
        rocev2,
        &["packets", "retransmits", "timeouts", "naks", "out_of_sequence", "marked", "cnps"],
    ),
    (
        "dcb",
        |site| dcb::summary(&site.network).unwrap_or_default(),
        &["pfc_frames", "watchdog_drops", "overflow_drops", "pauses", "paused_s", "qcn_messages"],
    ),
];

fn packets(site: &Site) -> Value {
    let tally = &site.network.fabric.tally;
    serde_json::json!({
        "sent": tally.sent, "delivered": tally.delivered, "dropped": tally.dropped,
    })
}

fn rocev2(site: &Site) -> Value {
    let found = site.transports.further.all().find(|(name, _)| *name == "rocev2");
    found.map_or(Value::Null, |(_, transport)| transport.summary())
}

impl Count {
    fn parse(name: &str) -> Option<Count> {
        let (head, rest) = name.split_once('.').unwrap_or((name, ""));
        let (_, section, names) = SECTIONS.into_iter().find(|section| section.0 == head)?;
        let path: Vec<String> =
            rest.split('.').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let is_named = path.first().is_some_and(|first| names.contains(&first.as_str()));
        (names.is_empty() || is_named).then_some(Count { section, path })
    }

    /// Returns the current value; `None` if the run has no count of this name.
    fn value(&self, site: &Site) -> Option<f64> {
        let section = (self.section)(site);
        self.path.iter().try_fold(&section, |value, name| value.get(name))?.as_f64()
    }
}

/// Units of work whose durations are measured.
#[derive(Clone, Copy)]
enum Units {
    /// Rows of the table of flows; `None`: with any purpose.
    Flows(Option<Purpose>),
    Jobs,
    Rounds,
    /// Ranks of MPI programs, which start at the begin of the run.
    Ranks,
}

/// Statistic of durations.
#[derive(Clone, Copy)]
enum Statistic {
    Mean,
    /// Least duration that is not below this share of all durations, as in the summary.
    Quantile(f64),
}

impl Statistic {
    fn parse(name: &str) -> Option<Statistic> {
        let quantiles = [("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)];
        let quantile = quantiles.into_iter().find(|(each, _)| *each == name);
        match name {
            "mean" => Some(Statistic::Mean),
            _ => quantile.map(|(_, share)| Statistic::Quantile(share)),
        }
    }

    /// Returns the rank, from 1, of this percentile among `total` sorted durations.
    fn rank(share: f64, total: u64) -> u64 {
        ((share * total as f64).ceil() as u64).clamp(1, total.max(1))
    }
}

/// A statistic of the durations of units of work.
struct Durations {
    units: Units,
    /// Number of the workload to which the units belong; `None`: any workload.
    workload: Option<u16>,
    statistic: Statistic,
    /// Whether the unit of the measure is µs; otherwise s.
    in_us: bool,
}

impl Measure {
    fn parse(scenario: &Scenario, name: &str) -> Result<Measure, String> {
        if scenario.fidelity == Fidelity::Links {
            return Err("with fidelity = \"links\", measures are known only at the end".to_owned());
        }
        if let Some(count) = Count::parse(name) {
            return Ok(Measure::Count(count));
        }
        if name == "mpi.runtime_s" {
            let statistic = Statistic::Quantile(1.0);
            let (units, workload, in_us) = (Units::Ranks, None, false);
            return Ok(Measure::Durations(Durations { units, workload, statistic, in_us }));
        }
        let unknown = || "a run does not know it before its end".to_owned();
        let (stem, last) = name.rsplit_once('.').ok_or_else(unknown)?;
        let statistic = Statistic::parse(last).ok_or_else(unknown)?;
        let in_summary = |units, in_us| {
            Ok(Measure::Durations(Durations { units, workload: None, statistic, in_us }))
        };
        match stem {
            _ if last == "p999" => {} // only measures of a workload have it
            "flows.fct_us" => return in_summary(Units::Flows(None), true),
            "jobs.runtime_s" => return in_summary(Units::Jobs, false),
            _ => {
                let named = stem.strip_prefix("flows.by_purpose.");
                let named = named.and_then(|rest| rest.strip_suffix(".fct_us"));
                let all = Purpose::ALL.into_iter();
                if let Some(one) = all.clone().find(|each| Some(each.name()) == named) {
                    return in_summary(Units::Flows(Some(one)), true);
                }
            }
        }
        let own = stem.strip_prefix("workloads.").unwrap_or(stem);
        let (of, unit) = own.rsplit_once('.').ok_or_else(unknown)?;
        let workload = scenario.workloads.iter().position(|each| each.name == of);
        let workload = Some(workload.ok_or_else(unknown)? as u16);
        let (units, in_us) = match unit {
            "fct_us" => (Units::Flows(None), true),
            "runtime_s" => (Units::Jobs, false),
            "round_s" => (Units::Rounds, false),
            "rank_s" => (Units::Ranks, false),
            _ => return Err(unknown()),
        };
        if scenario.measure.window != Default::default() {
            return Err("it counts only a part of the run (measure.window)".to_owned());
        }
        Ok(Measure::Durations(Durations { units, workload, statistic, in_us }))
    }
}

impl Durations {
    fn is_of(&self, workload: u16) -> bool {
        self.workload.is_none_or(|mine| mine == workload)
    }

    fn value(&self, span: Span) -> f64 {
        if self.in_us { span.as_us_f64() } else { span.as_secs_f64() }
    }

    /// Returns the number of rows in the table of finished units.
    fn rows(&self, site: &Site) -> usize {
        let records = &site.probes.records;
        match self.units {
            Units::Flows(_) => records.flows.rows().len(),
            Units::Jobs => records.jobs.len(),
            Units::Rounds => records.rounds.len(),
            Units::Ranks => records.mpi.ranks().len(),
        }
    }

    /// Yields the durations of finished units, from this row of their table on.
    fn finished<'a>(&'a self, site: &'a Site, from: usize) -> Box<dyn Iterator<Item = f64> + 'a> {
        let records = &site.probes.records;
        let value = |(workload, span): (u16, Span)| self.is_of(workload).then(|| self.value(span));
        match self.units {
            Units::Flows(purpose) => {
                let rows = records.flows.rows()[from..].iter();
                let rows = rows.filter(move |row| purpose.is_none_or(|one| row.purpose == one));
                Box::new(rows.map(|r| (r.workload, r.finish.since(r.start))).filter_map(value))
            }
            Units::Jobs => {
                let rows = records.jobs[from..].iter();
                let spans = rows.map(|(w, job)| (*w, job.finished.since(job.submitted)));
                Box::new(spans.filter_map(value))
            }
            Units::Rounds => {
                let rows = records.rounds[from..].iter();
                let spans = rows.map(|row| (row.workload, row.finished.since(row.started)));
                Box::new(spans.filter_map(value))
            }
            Units::Ranks => {
                let rows = records.mpi.ranks()[from..].iter();
                let spans = rows.map(|(w, rank)| (*w, rank.finished.since(Time::ZERO)));
                Box::new(spans.filter_map(value))
            }
        }
    }

    /// Returns the number of all units at the end of the run, or more if the run may end before all
    /// of them have finished; `None` if it is unknown. The run has not begun.
    fn total(&self, site: &Site) -> Option<u64> {
        let of_each = (0..).zip(&site.drivers.all).filter(|(number, _)| self.is_of(*number));
        let units = |(_, driver): (u16, &Driver)| match (self.units, &driver.workload) {
            (Units::Flows(_), workload) => workload.recorded_flows(),
            (Units::Jobs, workload @ Workload::MapReduce(_))
            | (Units::Rounds, workload @ Workload::Incast(_)) => Some(workload.progress().1),
            (Units::Ranks, Workload::Mpi(program)) => Some(u64::from(program.ranks())),
            _ => Some(0),
        };
        of_each.map(units).sum()
    }

    /// Returns the ages of units that are in progress and must finish before the run ends.
    fn ages(&self, site: &Site, is_complete: &[bool]) -> Vec<f64> {
        // The run may end before they finish: at its duration, or with a deadlock of PFC.
        if site.until < Time::NEVER || site.network.fabric.has_dcb() {
            return Vec::new();
        }
        let now = site.network.now;
        let must_finish = |w: u16| self.is_of(w) && !site.drivers.of(w).background;
        let age = |start: Time| self.value(now.since(start));
        if let Units::Flows(purpose) = self.units {
            let messages = site.transports.outstanding_of_workloads();
            let counts = |(w, message): &(u16, &Message)| {
                message.record
                    && purpose.is_none_or(|one| message.purpose == one)
                    && must_finish(*w)
                    && is_complete[usize::from(*w)]
            };
            return messages.filter(counts).map(|(_, message)| age(message.sent)).collect();
        }
        let records = &site.probes.records;
        let mut ages = Vec::new();
        for (number, driver) in (0u16..).zip(&site.drivers.all) {
            match (self.units, &driver.workload) {
                _ if !must_finish(number) => {}
                (Units::Jobs, Workload::MapReduce(workload)) => {
                    let mut done = vec![false; workload.progress().1 as usize];
                    let own = records.jobs.iter().filter(|(w, _)| *w == number);
                    own.for_each(|(_, job)| done[job.job as usize] = true);
                    let begun =
                        workload.submissions().zip(done).filter(|(at, done)| *at < now && !done);
                    ages.extend(begun.map(|(at, _)| age(at)));
                }
                (Units::Ranks, Workload::Mpi(program)) => {
                    let done = records.mpi.ranks().iter().filter(|(w, _)| *w == number).count();
                    let left = (program.ranks() as usize).saturating_sub(done);
                    ages.extend(std::iter::repeat_n(age(Time::ZERO), left));
                }
                _ => {}
            }
        }
        ages
    }
}

/// Limit of a measure during a run.
struct Watch {
    /// Number of the limit.
    number: usize,
    /// Bound, and whether the bound itself is not allowed.
    bound: (f64, bool),
    measure: Measure,
    /// Number of all units of a measure of durations; `None`: unknown.
    total: Option<u64>,
    /// For each workload, whether each message that it sends arrives before its end.
    is_complete: Vec<bool>,
    /// Number of rows of finished units that the next fields include.
    rows: usize,
    /// Number of finished units whose duration is beyond the bound.
    beyond: u64,
    /// Sum of the durations of finished units.
    sum: f64,
}

impl Watch {
    fn new(number: usize, limit: &Limit, measure: Measure, site: &Site) -> Watch {
        let (bound, total) = match &measure {
            Measure::Count(_) => (limit.bound, None),
            Measure::Durations(durations) => {
                (limit.bound * (1.0 + ROUNDING), durations.total(site))
            }
        };
        let is_complete =
            site.drivers.all.iter().map(|d| d.workload.recorded_flows().is_some()).collect();
        let bound = (bound, limit.strict);
        Watch { number, bound, measure, total, is_complete, rows: 0, beyond: 0, sum: 0.0 }
    }

    /// Returns the limit if the least value of its measure is beyond the bound.
    fn missed(&mut self, site: &Site) -> Option<Missed> {
        let is_missed = match &self.measure {
            Measure::Count(count) => {
                count.value(site).is_some_and(|value| is_beyond(self.bound, value))
            }
            Measure::Durations(_) => self.misses_duration(site),
        };
        let at = site.network.now;
        is_missed.then(|| Missed { limit: self.number, at, at_least: self.least(site) })
    }

    /// Whether the least value of a measure of durations is beyond the bound. Units that have
    /// finished since the last call are added to the counts.
    fn misses_duration(&mut self, site: &Site) -> bool {
        let Measure::Durations(durations) = &self.measure else { return false };
        for value in durations.finished(site, self.rows) {
            self.beyond += u64::from(is_beyond(self.bound, value));
            self.sum += value;
        }
        self.rows = durations.rows(site);
        let ages = || durations.ages(site, &self.is_complete);
        let needed = match (durations.statistic, self.total) {
            (Statistic::Mean, Some(total)) => {
                let sum = self.sum + ages().iter().sum::<f64>();
                return sum > 0.0 && is_beyond(self.bound, sum / total as f64);
            }
            (Statistic::Quantile(share), Some(total)) => {
                (total + 1).saturating_sub(Statistic::rank(share, total)).max(1)
            }
            (Statistic::Quantile(1.0), None) => 1,
            (_, None) => return false,
        };
        // No unit is older than the run.
        let oldest = durations.value(site.network.now.since(Time::ZERO));
        let mut beyond = self.beyond;
        if beyond < needed && is_beyond(self.bound, oldest) {
            beyond += ages().into_iter().filter(|&age| is_beyond(self.bound, age)).count() as u64;
        }
        beyond >= needed
    }

    /// Returns the least value that the measure can have at the end of the run.
    fn least(&self, site: &Site) -> f64 {
        let durations = match &self.measure {
            Measure::Count(count) => return count.value(site).unwrap_or(0.0),
            Measure::Durations(durations) => durations,
        };
        let mut known: Vec<f64> = durations.finished(site, 0).collect();
        known.extend(durations.ages(site, &self.is_complete));
        known.sort_by(f64::total_cmp);
        let total = match (durations.statistic, self.total) {
            (_, Some(total)) => total,
            (Statistic::Quantile(1.0), None) => known.len() as u64,
            (_, None) => return 0.0,
        };
        debug_assert!(known.len() as u64 <= total, "there are more units than planned");
        match durations.statistic {
            Statistic::Mean => known.iter().sum::<f64>() / total.max(1) as f64,
            Statistic::Quantile(share) => {
                // All other units have the duration 0.
                let zeros = total - known.len() as u64;
                let place = Statistic::rank(share, total).checked_sub(zeros + 1);
                place.map_or(0.0, |place| known.get(place as usize).copied().unwrap_or(0.0))
            }
        }
    }
}

fn is_beyond((bound, strict): (f64, bool), value: f64) -> bool {
    if strict { value >= bound } else { value > bound }
}
