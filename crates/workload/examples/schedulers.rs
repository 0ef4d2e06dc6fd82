//! Measures the time per assignment of a map, by number of queued jobs and of workers, for every
//! scheduler.
//!
//! A cluster with two map slots per worker, in racks of forty workers, is full. When a task ends,
//! its worker asks for a task and gets a map. When the last map of a job is assigned, another job
//! is queued, so that the length of the queue is constant. Jobs have eight maps with three
//! replicas; there are ten pools or queues and five users.
//!
//! ```sh
//! cargo run --release -p eastwest-workload --example schedulers
//! ```

use eastwest_engine::random::Stream;
use eastwest_types::{Span, TaskKind, Time};
use eastwest_workload::mapreduce::racks::Racks;
use eastwest_workload::mapreduce::scheduler::{Owner, Scheduler};
use eastwest_workload::mapreduce::waiting::WaitingMaps;
use eastwest_workload::mapreduce::{
    DelayConfig, PoolConfig, QueueConfig, SchedulerKind, Scheduling, WHOLE,
};
use std::time::Instant;

const MAPS: u32 = 8;
const SLOTS: u32 = 2;
const ROUNDS: u32 = 4000;
const BATCHES: u32 = 9;
const GROUPS: u32 = 10;

struct Cluster {
    scheduler: Scheduler,
    racks: Racks,
    maps: Vec<WaitingMaps>,
    queued: u32,
    free: Vec<u32>,
    running: Vec<(u32, u32)>,
    now: Time,
}

impl Cluster {
    fn new(kind: SchedulerKind, config: &Scheduling, jobs: u32, workers: u32) -> Cluster {
        let switches: Vec<u32> = (0..workers).map(|w| w / 40).collect();
        let racks = Racks::new(&switches);
        let all = jobs + (ROUNDS + SLOTS * workers) / MAPS + 2;
        let owners = (0..all).map(|j| Owner { pool: j % GROUPS, user: j / GROUPS % 5 }).collect();
        let slots = [u64::from(SLOTS * workers); 2];
        let mut stream = Stream::new(1, "bench");
        let mut splits = |_| {
            let replicas = (0..MAPS).flat_map(|_| racks.place(None, 3, &mut stream)).collect();
            WaitingMaps::new((MAPS, 64_000_000 * u64::from(MAPS)), replicas, 3, &racks)
        };
        let maps = (0..all).map(&mut splits).collect();
        let mut cluster = Cluster {
            scheduler: Scheduler::new(kind, config, owners, slots, &racks),
            racks,
            maps,
            queued: 0,
            free: vec![SLOTS; workers as usize],
            running: Vec::new(),
            now: Time::ZERO,
        };
        (0..jobs).for_each(|_| cluster.queue());
        cluster
    }

    fn queue(&mut self) {
        self.scheduler.offer(TaskKind::Map, self.queued, MAPS);
        self.queued += 1;
    }

    /// Executes a heartbeat of a worker; returns the number of maps assigned to it.
    fn ask(&mut self, worker: u32) -> u32 {
        self.now += Span::from_us(1500);
        let free = &mut self.free[worker as usize];
        self.scheduler.asked(self.now, worker, *free);
        let mut given = 0;
        while *free > 0 {
            let next = self.scheduler.next_map(worker, &self.racks, &mut self.maps);
            let Some((job, _)) = next else { break };
            *free -= 1;
            given += 1;
            self.running.push((worker, job));
            if self.maps[job as usize].left() == 0 {
                self.scheduler.offer(TaskKind::Map, self.queued, MAPS);
                self.queued += 1;
            }
        }
        given
    }
}

/// Returns the median time per assignment in nanoseconds, without the assignments that fill the
/// empty cluster.
#[allow(clippy::disallowed_methods, reason = "a benchmark reads the machine's clock")]
fn measure(kind: SchedulerKind, config: &Scheduling, jobs: u32, workers: u32) -> u64 {
    let mut cluster = Cluster::new(kind, config, jobs, workers);
    let mut stream = Stream::new(2, "bench");
    for _ in 0..200 {
        (0..workers).for_each(|w| {
            cluster.ask(w);
        });
        if cluster.free.iter().all(|&n| n == 0) {
            break;
        }
    }
    // The median over batches, because other programs on the machine disturb some of them.
    let mut batches: Vec<u64> = (0..BATCHES)
        .map(|_| {
            let mut given = 0;
            let start = Instant::now();
            while given < ROUNDS / 2 / BATCHES {
                let ends = stream.below(cluster.running.len() as u64 + 1) as usize;
                if let Some(number) = ends.checked_sub(1) {
                    let (worker, job) = cluster.running.swap_remove(number);
                    cluster.free[worker as usize] += 1;
                    cluster.scheduler.finished(TaskKind::Map, job);
                    given += cluster.ask(worker);
                }
                // A random worker asks too, so that a job that waits for a nearer split does not
                // wait for ever.
                given += cluster.ask(stream.below(u64::from(workers)) as u32);
            }
            u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX) / u64::from(given)
        })
        .collect();
    batches.sort_unstable();
    batches[batches.len() / 2]
}

fn main() {
    let names = || (0..GROUPS).map(|n| n.to_string());
    let pools = names().map(PoolConfig::plain).collect();
    let queues = names().map(|name| QueueConfig {
        capacity: WHOLE / GROUPS,
        user_minimum: WHOLE / 5,
        user_factor_milli: 10_000,
        ..QueueConfig::plain(name)
    });
    let plain = Scheduling { pools, queues: queues.collect(), ..Scheduling::default() };
    let wait = Span::from_ms(4500);
    let delay = Some(DelayConfig { node: wait, rack: wait });
    let delayed = Scheduling { delay, ..plain.clone() };
    let all = [
        ("fifo", SchedulerKind::Fifo, &plain),
        ("fair", SchedulerKind::Fair, &plain),
        ("capacity", SchedulerKind::Capacity, &plain),
        ("fifo + delay", SchedulerKind::Fifo, &delayed),
        ("fair + delay", SchedulerKind::Fair, &delayed),
        ("quincy", SchedulerKind::Quincy, &plain),
    ];
    let sizes = [(100, 200), (1_000, 200), (10_000, 200), (10_000, 20), (10_000, 2_000)];
    print!("| jobs queued, workers |");
    sizes.iter().for_each(|(jobs, workers)| print!(" {jobs}, {workers} |"));
    println!("\n|---|{}", "---|".repeat(sizes.len()));
    for (name, kind, config) in all {
        print!("| {name} |");
        for (jobs, workers) in sizes {
            print!(" {:.1} µs |", measure(kind, config, jobs, workers) as f64 / 1000.0);
        }
        println!();
    }
}
