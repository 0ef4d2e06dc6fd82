//! Open-loop Poisson flows at a given load, the usual workload for the evaluation of data-centre
//! transports.
//!
//! Flows arrive as one Poisson process over the fabric, each between two different hosts drawn
//! uniformly, with a size drawn from a distribution ([`crate::sizes`]). Arrivals do not wait for
//! earlier flows: above the capacity of the fabric the number of flows in progress grows without
//! limit.
//!
//! The load is the offered payload rate divided by the summed link rate of the hosts. It does not
//! count headers and retransmissions: at load 0.9 a fabric with 5 % of headers is 95 % busy. Each
//! flow opens its own connection. Only the next arrival and the flows in progress are in memory.

use crate::arrivals::exponential;
use crate::demand::Objections;
use crate::names::Names;
use crate::protocol::{Action, Cluster, Event};
use crate::sizes::Sizes;
use eastwest_engine::random::Stream;
use eastwest_types::{ClassId, ConnId, HostId, Purpose, Side, Span, Time};
use serde::{Deserialize, Serialize};

/// Rule for the end of an open-loop workload's arrivals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Until {
    /// Arrivals end after this number of flows.
    Count(u64),
    /// Arrivals end when this time has passed since their start.
    Elapsed(Span),
    /// Arrivals never end: for background traffic.
    Forever,
}

/// Settings of open-loop flows with Poisson arrivals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoissonConfig {
    /// Hosts that send and receive flows; empty: all hosts.
    pub hosts: Vec<HostId>,
    /// Offered payload rate as a fraction of the summed link rate of these hosts.
    pub load: f64,
    /// Mean over these hosts of the rate at which a host can send, in bit/s.
    pub mean_host_rate: f64,
    /// Distribution of the flow sizes in bytes.
    pub sizes: Sizes,
    /// Time from the start of the simulation at which arrivals begin.
    pub start: Span,
    /// Rule for the end of arrivals.
    pub until: Until,
    /// Traffic class of all packets of the flows.
    pub class: ClassId,
}

/// State of open-loop flows during a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Poisson {
    config: PoissonConfig,
    mean_gap: Span,
    /// Time from which no more flows arrive; `Time::NEVER` without a duration.
    end: Time,
    gaps: Stream,
    pairs: Stream,
    sizes: Stream,
    open: Names<()>,
    arrived: u64,
    arrivals_over: bool,
}

impl Poisson {
    /// Returns the initial state of open-loop flows, or the reasons why the settings are invalid.
    pub fn new(config: PoissonConfig, cluster: &Cluster) -> Result<Poisson, Vec<String>> {
        let mut config = config;
        if config.hosts.is_empty() {
            config.hosts = (0..cluster.rack_of.len() as u32).map(HostId).collect();
        }
        let hosts = config.hosts.len();
        let mut no = Objections::new();
        no.require_hosts("hosts", &config.hosts, cluster);
        no.require(hosts >= 2, || format!("hosts: flows need two hosts, but there are {hosts}"));
        no.require(config.load > 0.0 && config.load.is_finite(), || {
            format!("load: {} is not a number above 0", config.load)
        });
        no.require(config.mean_host_rate > 0.0, || "mean_host_rate: must be above 0 bit/s".into());
        no.require(config.sizes.mean() >= 1.0, || {
            "sizes: the mean must be at least one byte".into()
        });
        let bits_per_s = config.load * hosts as f64 * config.mean_host_rate;
        let mean_gap = Span::from_secs_f64_nearest(config.sizes.mean() * 8.0 / bits_per_s);
        no.require(!(config.load > 0.0 && bits_per_s.is_finite()) || mean_gap > Span::ZERO, || {
            format!(
                "load: {} is too high: there would be more than one flow each picosecond",
                config.load
            )
        });
        no.unless_any(|| Poisson {
            mean_gap,
            end: match config.until {
                Until::Elapsed(span) => Time::ZERO + config.start + span,
                Until::Count(_) | Until::Forever => Time::NEVER,
            },
            gaps: Stream::new(cluster.seed, "poisson/gaps"),
            pairs: Stream::new(cluster.seed, "poisson/pairs"),
            sizes: Stream::new(cluster.seed, "poisson/sizes"),
            open: Names::new(),
            arrived: 0,
            arrivals_over: false,
            config,
        })
    }

    /// Returns the number of finished flows and the number of all flows. If arrivals end after a
    /// duration, the second number is an estimate until the last arrival; without an end it is 0.
    pub fn progress(&self) -> (u64, u64) {
        let done = self.arrived - self.open.in_use() as u64;
        let total = match self.config.until {
            Until::Count(count) => count,
            Until::Elapsed(_) if self.arrivals_over => self.arrived,
            Until::Elapsed(span) => (span.0 / self.mean_gap.0).max(self.arrived),
            Until::Forever => 0,
        };
        (done, total)
    }

    /// Returns the number of flows before the first one has arrived; 0 if arrivals never end.
    pub fn flows(&self) -> u64 {
        match self.config.until {
            Until::Count(count) => count,
            Until::Forever => 0,
            Until::Elapsed(_) => {
                let (mut gaps, mut at) = (self.gaps.clone(), Time::ZERO + self.config.start);
                let next = || {
                    at += exponential(self.mean_gap, &mut gaps);
                    at
                };
                std::iter::repeat_with(next).take_while(|at| *at < self.end).count() as u64
            }
        }
    }

    /// Returns the mean of the time at which the last flow arrives; [`Time::NEVER`] if arrivals never
    /// end.
    pub fn mean_last_arrival(&self) -> Time {
        let start = Time::ZERO + self.config.start;
        match self.config.until {
            Until::Count(count) => {
                Time(start.0.saturating_add(self.mean_gap.0.saturating_mul(count)))
            }
            Until::Elapsed(_) => self.end,
            Until::Forever => Time::NEVER,
        }
    }

    /// Handles an event and appends the actions that follow from it to `out`.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Begin => self.await_next(now + self.config.start, out),
            Event::Wake { .. } => {
                self.start_flow(out);
                self.await_next(now, out);
            }
            Event::Delivered { conn, .. } => {
                out.push(Action::Close { conn });
                self.open.release(conn);
            }
            Event::Failed { .. } | Event::Received { .. } | Event::Arrived { .. } => {
                unreachable!(
                    "this workload requests neither failure nor progress events, so it receives none"
                )
            }
        }
        if self.arrivals_over && self.open.in_use() == 0 {
            out.push(Action::Finished);
        }
    }

    /// Draws the time of the next arrival after `from` and schedules it, unless arrivals have
    /// ended.
    fn await_next(&mut self, from: Time, out: &mut Vec<Action>) {
        let at = from + exponential(self.mean_gap, &mut self.gaps);
        let enough = matches!(self.config.until, Until::Count(count) if self.arrived >= count);
        if enough || at >= self.end {
            self.arrivals_over = true;
        } else {
            out.push(Action::Wake { at, token: 0 });
        }
    }

    fn start_flow(&mut self, out: &mut Vec<Action>) {
        let hosts = &self.config.hosts;
        let client = self.pairs.below(hosts.len() as u64);
        let server = (client + 1 + self.pairs.below(hosts.len() as u64 - 1)) % hosts.len() as u64;
        let conn: ConnId = self.open.take(());
        out.push(Action::Open {
            conn,
            client: hosts[client as usize],
            server: hosts[server as usize],
            class: self.config.class,
            cards: None,
        });
        out.push(Action::Send {
            conn,
            from: Side::Client,
            payload: self.config.sizes.draw(&mut self.sizes),
            header: 0,
            tag: self.arrived,
            purpose: Purpose::Flow,
            job: None,
            record: true,
        });
        self.arrived += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ideal::{Ideal, cluster};
    use crate::sizes::{EmpiricalCdf, Interpolation};

    fn config() -> PoissonConfig {
        PoissonConfig {
            hosts: Vec::new(),
            load: 0.5,
            mean_host_rate: 1e9,
            sizes: Sizes::Fixed(10_000),
            start: Span::from_ms(5),
            until: Until::Count(50_000),
            class: ClassId(0),
        }
    }

    fn run(config: PoissonConfig, hosts: usize) -> (Ideal, (u64, u64)) {
        let mut poisson = Poisson::new(config, &cluster(hosts)).expect("possible");
        let run = Ideal::run(|now, event, out| poisson.handle(now, event, out));
        assert!(run.finished);
        assert_eq!(run.open, 0);
        (run, poisson.progress())
    }

    #[test]
    fn the_offered_load_is_the_one_asked_for() {
        let (run, progress) = run(config(), 20);
        assert_eq!(progress, (50_000, 50_000));
        let last = run.rows.iter().map(|r| r.sent).max().expect("rows");
        let spent = last.since(Time::ZERO + Span::from_ms(5)).as_secs_f64();
        let load = 50_000.0 * 80_000.0 / spent / 20e9;
        assert!((load / 0.5 - 1.0).abs() < 0.02, "offered {load}");
        assert!(run.rows.iter().all(|r| r.src != r.dst));
        for host in 0..20 {
            let sent = run.rows.iter().filter(|r| r.src.0 == host).count();
            let received = run.rows.iter().filter(|r| r.dst.0 == host).count();
            assert!((2250..2750).contains(&sent) && (2250..2750).contains(&received));
        }
    }

    #[test]
    fn only_flows_under_way_take_memory() {
        let (run, _) = run(config(), 20);
        // Little's law: 125,000 flows a second of 50 µs each are 6.25 flows in progress on average.
        assert!(run.peak < 30, "{} connections at once", run.peak);
        assert!(run.pending < 30, "{} events waiting", run.pending);
    }

    #[test]
    fn a_duration_ends_arrivals_and_all_flows_are_awaited() {
        let until = Until::Elapsed(Span::from_ms(100));
        let (run, progress) = run(PoissonConfig { until, ..config() }, 20);
        let count = run.rows.len() as u64;
        assert!((12_000..13_000).contains(&count), "{count} for 12,500 expected");
        assert_eq!(progress, (count, count));
        let last = run.rows.iter().map(|r| r.sent).max().expect("rows");
        assert!(last < Time::ZERO + Span::from_ms(105));
        assert!(run.ended >= last + Ideal::LATENCY);
    }

    #[test]
    fn background_traffic_never_finishes() {
        let config = PoissonConfig { until: Until::Forever, ..config() };
        let mut poisson = Poisson::new(config, &cluster(4)).expect("possible");
        let end = Time::ZERO + Span::from_ms(50);
        let run = Ideal::run_until(end, |now, event, out| poisson.handle(now, event, out));
        assert!(!run.finished && run.rows.len() > 500);
        assert_eq!(poisson.progress().1, 0);
    }

    #[test]
    fn chosen_hosts_and_sizes_of_a_distribution_are_used() {
        let sizes = Sizes::Empirical(EmpiricalCdf::hadoop(Interpolation::Logarithmic));
        let mean = sizes.mean();
        let hosts = vec![HostId(3), HostId(7), HostId(8)];
        let (run, _) = run(PoissonConfig { hosts: hosts.clone(), sizes, ..config() }, 20);
        assert!(run.rows.iter().all(|r| hosts.contains(&r.src) && hosts.contains(&r.dst)));
        let bytes: u64 = run.rows.iter().map(|r| r.payload).sum();
        let measured = bytes as f64 / run.rows.len() as f64;
        assert!((measured / mean - 1.0).abs() < 0.05, "{measured} for {mean}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let wrong = PoissonConfig {
            hosts: vec![HostId(1)],
            load: f64::NAN,
            mean_host_rate: 0.0,
            sizes: Sizes::Fixed(0),
            ..config()
        };
        let reasons = Poisson::new(wrong, &cluster(4)).expect_err("impossible");
        assert_eq!(reasons.len(), 4, "{reasons:?}");
        let flood = PoissonConfig { load: 1e12, ..config() };
        let reasons = Poisson::new(flood, &cluster(4)).expect_err("impossible");
        assert!(reasons[0].contains("each picosecond"), "{reasons:?}");
    }
}
