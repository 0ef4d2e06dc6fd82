//! Records of a run: rows of tables, histograms and samples over time.

use crate::digest::Digest;
use crate::energy;
use crate::mpi::MpiRecords;
use crate::plan::Plan;
use eastwest_engine::histogram::Histogram;
use eastwest_measure::events::EventLog;
use eastwest_measure::flows::{FlowRow, FlowTable};
use eastwest_measure::power::Used;
use eastwest_measure::rounds::Round;
use eastwest_measure::samples::{LinkTotals, Samples};
use eastwest_network::fabric::Fabric;
use eastwest_types::{JobRecord, Packet, Span, TaskRecord, Time, TransactionRecord};
use eastwest_workload::Action;
use serde::{Deserialize, Serialize};

/// Maximum number of values (samples × links) of a series of queue lengths with an adaptive
/// interval. The number of samples is between 50 and 1,000 nevertheless.
const MOST_QUEUE_SAMPLES: usize = 500_000;
/// First interval of a series over time with an adaptive interval: the interval is doubled when the
/// series is full.
const FIRST_INTERVAL: Span = Span::from_ms(1);

/// Records of a run: rows of tables, histograms and samples over time.
#[derive(Serialize, Deserialize)]
pub struct Records {
    /// Histograms of latency for each traffic class: of packets with payload, and of packets
    /// without payload.
    pub latency: Vec<[Histogram; 2]>,
    /// Rows of the table of flows: messages that have arrived.
    pub flows: FlowTable,
    /// Events of connections (drops, timeouts, recoveries): the table of events.
    pub events: EventLog,
    /// Finished jobs, each with the number of its workload.
    pub jobs: Vec<(u16, JobRecord)>,
    /// Finished tasks, each with the number of its workload. Rows that the caller of the run has
    /// already received are not included.
    pub tasks: Vec<(u16, TaskRecord)>,
    /// Number of rows of tasks that the caller of the run has already received.
    pub tasks_handed_out: u64,
    /// Start of the first task and end of the last one; `None` before a task has finished.
    pub tasks_span: Option<(Time, Time)>,
    /// Finished rounds of synchronized reads.
    pub rounds: Vec<Round>,
    /// Finished transactions, each with the number of its workload.
    pub transactions: Vec<(u16, TransactionRecord)>,
    /// Records of MPI programs.
    pub mpi: MpiRecords,
    /// Samples over time: bytes per tier, queue lengths and energy.
    pub samples: Samples,
    /// Names of the tiers of links.
    #[serde(with = "eastwest_types::name")]
    pub tiers: Vec<&'static str>,
    /// Tier of every link, an index into [`Records::tiers`].
    pub tier_of_link: Vec<u8>,
    /// Whether energy is sampled over time: at least one link can save power.
    saves_power: bool,
    /// Digest of the run, a hash over its results.
    pub digest: Digest,
}

impl Records {
    /// Returns empty records for a run of `plan` on `fabric`.
    pub fn new(fabric: &Fabric, plan: &Plan) -> Records {
        let mut tiers: Vec<&'static str> = Vec::new();
        let mut tier_of_link = Vec::with_capacity(fabric.links.len());
        for cable in &fabric.graph.cables {
            for tier in [cable.tiers.0, cable.tiers.1] {
                let known = tiers.iter().position(|t| *t == tier);
                tier_of_link.push(known.unwrap_or_else(|| {
                    tiers.push(tier);
                    tiers.len() - 1
                }) as u8);
            }
        }
        let most = (MOST_QUEUE_SAMPLES / fabric.links.len().max(1)).clamp(50, 1_000);
        let links = fabric.links.len();
        let samples = match plan.measure.sample_interval {
            Some(interval) => Samples::new(interval, None, tiers.len(), links),
            None => Samples::new(FIRST_INTERVAL, Some(most), tiers.len(), links),
        };
        let energy = &plan.fabric.energy;
        Records {
            latency: plan.classes.iter().map(|_| Default::default()).collect(),
            flows: FlowTable::default(),
            events: EventLog::new(plan.measure.events as usize),
            jobs: Vec::new(),
            tasks: Vec::new(),
            tasks_handed_out: 0,
            tasks_span: None,
            rounds: Vec::new(),
            transactions: Vec::new(),
            mpi: MpiRecords::new(plan.measure.mpi_rows),
            samples,
            tiers,
            tier_of_link,
            saves_power: energy.host.policy.saves_power() || energy.fabric.policy.saves_power(),
            digest: Digest::default(),
        }
    }

    /// Records the latency of a packet of a connection when the packet reaches its host; `class` is
    /// the traffic class of the packet.
    #[inline]
    pub fn latency(&mut self, class: u8, packet: &Packet, latency: Span) {
        self.latency[usize::from(class)][usize::from(packet.payload == 0)].record(latency);
    }

    /// Records the latency of a datagram when the datagram reaches its host. The field
    /// `dst_endpoint` of a datagram contains the traffic class.
    pub fn datagram(&mut self, packet: &Packet, latency: Span) {
        self.latency[packet.dst_endpoint.0 as usize][0].record(latency);
    }

    /// Records a message that has arrived, and adds it to the digest.
    pub fn flow(&mut self, row: FlowRow) {
        self.digest.flow(&row);
        self.flows.push(row);
    }

    /// Records a finished job, and adds it to the digest.
    fn job(&mut self, workload: u16, job: JobRecord) {
        self.digest.job(usize::from(workload), &job);
        self.jobs.push((workload, job));
    }

    /// Records a finished task, and adds it to the digest.
    fn task(&mut self, workload: u16, task: TaskRecord) {
        self.digest.task(usize::from(workload), &task);
        let (first, last) = self.tasks_span.unwrap_or((task.started, task.finished));
        self.tasks_span = Some((first.min(task.started), last.max(task.finished)));
        self.tasks.push((workload, task));
    }

    /// Records a report of a workload, such as a finished job or task; `now` is the time of the
    /// report.
    ///
    /// # Panics
    /// If the action is not a report but a request to the network.
    pub fn take(&mut self, workload: u16, now: Time, report: Action) {
        match report {
            Action::Job(job) => self.job(workload, *job),
            Action::Task(task) => self.task(workload, *task),
            Action::Transaction(transaction) => self.transaction(workload, *transaction),
            Action::Round { round, started, bytes } => {
                self.round(workload, round, started, now, bytes);
            }
            Action::MpiRank(rank) => self.mpi.rank(workload, *rank, &mut self.digest),
            Action::MpiState(state) => self.mpi.state(workload, state),
            Action::MpiMessage(message) => {
                self.mpi.message(workload, *message, &mut self.digest);
            }
            Action::MpiCollective(call) => self.mpi.collective(workload, *call),
            Action::MpiIteration(iteration) => self.mpi.iteration(workload, *iteration),
            other => unreachable!("{other:?} is not a report"),
        }
    }

    /// Records a finished transaction, and adds it to the digest.
    fn transaction(&mut self, workload: u16, transaction: TransactionRecord) {
        self.digest.transaction(usize::from(workload), &transaction);
        self.transactions.push((workload, transaction));
    }

    /// Records a finished round of a synchronized read, and adds it to the digest.
    fn round(&mut self, workload: u16, round: u32, started: Time, finished: Time, bytes: u64) {
        self.digest.round(usize::from(workload), round, started, finished);
        self.rounds.push(Round { workload, round, started, finished, bytes });
    }

    /// Records a sample of bytes sent, queue length and energy of all links at the simulated time
    /// `now`.
    pub fn sample(&mut self, fabric: &Fabric, now: Time) {
        let used = self.energy(fabric, now);
        let links = self.tier_of_link.iter().copied().zip(link_totals(fabric));
        self.samples.take(links, queues(fabric, now), &used);
    }

    /// Returns the energy that the links of each tier have used until `now`; empty if no link can
    /// save power.
    pub fn energy(&self, fabric: &Fabric, now: Time) -> Vec<Used> {
        match self.saves_power {
            true => energy::by_tier(fabric, now, &self.tier_of_link, self.tiers.len()),
            false => Vec::new(),
        }
    }
}

/// Yields the counters of each link since the start of the run.
pub fn link_totals(fabric: &Fabric) -> impl Iterator<Item = LinkTotals> + '_ {
    fabric.links.iter().map(|l| LinkTotals {
        bytes: l.counters().bytes,
        drops: l.lost(),
        marks: l.account().marked(),
    })
}

/// Yields (number of the link, packets, IP bytes) of each queue that is not empty at `now`. All
/// departures that are due by `now` must have been executed ([`Fabric::settle`]).
pub fn queues(fabric: &Fabric, now: Time) -> impl Iterator<Item = (u32, u32, u64)> + '_ {
    let queues = fabric.links.iter().enumerate().filter(|(_, l)| l.held() > 0);
    let queues = queues.map(move |(i, l)| {
        let (packets, bytes) = l.queue(now);
        (i as u32, packets, bytes)
    });
    queues.filter(|q| q.1 > 0)
}
