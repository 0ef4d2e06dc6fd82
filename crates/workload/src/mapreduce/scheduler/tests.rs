//! Tests of schedulers on a minimal cluster: cases computed by hand, and properties for any cluster
//! and load.

use super::*;
use crate::mapreduce::waiting::WaitingMaps;
use eastwest_engine::random::Stream;
use eastwest_types::{Locality, Span};
use proptest::prelude::*;

const MAP: TaskKind = TaskKind::Map;

/// Minimal cluster: workers with map slots, whose tasks end when the test calls `end`.
struct Bare {
    scheduler: Scheduler,
    racks: Racks,
    maps: Vec<WaitingMaps>,
    free: Vec<u32>,
    /// Running tasks of the cluster, each as (worker, job, map).
    running: Vec<(u32, u32, u32)>,
    now: Time,
}

struct Setting<'a> {
    kind: SchedulerKind,
    config: &'a Scheduling,
    /// Pool, user and number of maps of every job; all maps wait from the beginning.
    jobs: &'a [(u32, u32, u32)],
    copies: u32,
    switches: &'a [u32],
    slots: u32,
}

impl Bare {
    fn new(setting: &Setting) -> Bare {
        let racks = Racks::new(setting.switches);
        let workers = setting.switches.len();
        let owners = setting.jobs.iter().map(|&(pool, user, _)| Owner { pool, user }).collect();
        let slots = [u64::from(setting.slots) * workers as u64; 2];
        let mut scheduler = Scheduler::new(setting.kind, setting.config, owners, slots, &racks);
        let mut stream = Stream::new(5, "bare");
        let mut maps = Vec::new();
        for (job, &(.., n)) in (0..).zip(setting.jobs) {
            let copies = setting.copies.min(workers as u32);
            let replicas = (0..n).flat_map(|_| racks.place(None, copies, &mut stream)).collect();
            let input = (u64::from(n) * 100, n);
            maps.push(WaitingMaps::new((input.1, input.0), replicas, copies as usize, &racks));
            scheduler.offer(MAP, job, n);
        }
        let free = vec![setting.slots; workers];
        Bare { scheduler, racks, maps, free, running: Vec::new(), now: Time::ZERO }
    }

    /// Executes a worker's request for tasks; returns the maps that the scheduler assigns, as (job,
    /// map).
    fn ask(&mut self, worker: u32) -> Vec<(u32, u32)> {
        self.now += Span::from_ms(10);
        self.scheduler.asked(self.now, worker, self.free[worker as usize]);
        let mut given = Vec::new();
        while self.free[worker as usize] > 0 {
            let next = self.scheduler.next_map(worker, &self.racks, &mut self.maps);
            let Some((job, map)) = next else { break };
            self.free[worker as usize] -= 1;
            self.running.push((worker, job, map));
            given.push((job, map));
        }
        given
    }

    fn end(&mut self, number: usize) {
        let (worker, job, _) = self.running.swap_remove(number);
        self.free[worker as usize] += 1;
        self.scheduler.finished(MAP, job);
    }

    fn all_ask(&mut self) {
        (0..self.free.len() as u32).for_each(|w| {
            self.ask(w);
        });
    }

    fn by_job(&self) -> Vec<u32> {
        (0..self.maps.len() as u32).map(|j| self.scheduler.load(MAP, j).running).collect()
    }
}

fn bare(kind: SchedulerKind, config: &Scheduling, jobs: &[(u32, u32, u32)], workers: u32) -> Bare {
    let switches: Vec<u32> = (0..workers).map(|w| w / 4).collect();
    Bare::new(&Setting { kind, config, jobs, copies: 2, switches: &switches, slots: 2 })
}

fn pool(weight_milli: u32, min_maps: u32) -> PoolConfig {
    PoolConfig { weight_milli, min_share: [min_maps, 0], ..PoolConfig::plain("p") }
}

#[test]
fn fifo_serves_the_first_job_only() {
    let mut b = bare(SchedulerKind::Fifo, &Scheduling::default(), &[(0, 0, 30), (1, 0, 9)], 10);
    b.all_ask();
    assert_eq!(b.by_job(), [20, 0]);
    (0..15).for_each(|_| b.end(0));
    b.all_ask();
    assert_eq!(b.by_job(), [15, 5]);
}

#[test]
fn pools_share_by_weight_and_jobs_within_a_pool_equally() {
    let config = Scheduling { pools: vec![pool(1000, 0), pool(3000, 0)], ..Scheduling::default() };
    let jobs = [(0, 0, 99), (0, 0, 99), (1, 0, 99)];
    let mut b = bare(SchedulerKind::Fair, &config, &jobs, 8);
    b.all_ask();
    // 16 slots for pools with weights 1 : 3; the first pool has two jobs.
    assert_eq!(b.by_job(), [2, 2, 12]);
}

#[test]
fn minimum_shares_go_first_and_only_as_far_as_wanted() {
    let config = Scheduling {
        pools: vec![pool(1000, 0), pool(1000, 10), pool(1000, 8)],
        ..Scheduling::default()
    };
    // The third pool wants only 4 slots. Of 20 slots, 10 and 4 are used by minimum shares; the
    // other 6 go to the pool with the fewest running tasks.
    let mut b = bare(SchedulerKind::Fair, &config, &[(0, 0, 99), (1, 0, 99), (2, 0, 4)], 10);
    b.all_ask();
    assert_eq!(b.by_job(), [6, 10, 4]);
}

#[test]
fn a_pool_may_serve_its_jobs_in_order() {
    let first = PoolConfig { order: PoolOrder::Fifo, ..PoolConfig::plain("p") };
    let config = Scheduling { pools: vec![first], ..Scheduling::default() };
    let mut b = bare(SchedulerKind::Fair, &config, &[(0, 0, 7), (0, 0, 9), (1, 0, 99)], 10);
    b.all_ask();
    assert_eq!(b.by_job(), [7, 3, 10]);
}

#[test]
fn a_newcomer_catches_up_first() {
    let mut b = bare(SchedulerKind::Fair, &Scheduling::default(), &[(0, 0, 99), (1, 0, 0)], 10);
    b.all_ask();
    assert_eq!(b.by_job(), [20, 0]);
    b.maps[1] = WaitingMaps::new((50, 0), Vec::new(), 0, &b.racks);
    b.scheduler.offer(MAP, 1, 50);
    (0..8).for_each(|_| b.end(0));
    b.all_ask();
    assert_eq!(b.by_job(), [12, 8]);
}

fn queue(name: &str, parent: Option<u32>, percent: u32, most: u32) -> QueueConfig {
    QueueConfig {
        parent,
        capacity: percent * 1000,
        maximum: most * 1000,
        user_factor_milli: 100_000,
        ..QueueConfig::plain(name)
    }
}

#[test]
fn queues_get_their_capacity_and_lend_what_they_do_not_use() {
    let queues = vec![
        queue("a", None, 60, 100),
        queue("b", None, 40, 50),
        queue("a1", Some(0), 25, 100),
        queue("a2", Some(0), 75, 100),
    ];
    let config = Scheduling { queues, ..Scheduling::default() };
    // Of 20 slots, queue a1 gets 3, a2 9, b 8.
    let all = [(2, 0, 99), (3, 0, 99), (1, 0, 99)];
    let mut b = bare(SchedulerKind::Capacity, &config, &all, 10);
    b.all_ask();
    assert_eq!(b.by_job(), [3, 9, 8]);
    // If a2 has no waiting tasks, a1 may use the whole capacity of its parent a; b never exceeds
    // half of the cluster.
    let mut b = bare(SchedulerKind::Capacity, &config, &[(2, 0, 99), (1, 0, 99)], 10);
    b.all_ask();
    assert_eq!(b.by_job(), [12, 8]);
    let mut b = bare(SchedulerKind::Capacity, &config, &[(1, 0, 99)], 10);
    b.all_ask();
    assert_eq!(b.by_job(), [10]);
}

#[test]
fn users_of_a_queue_share_it_and_one_alone_is_held_to_the_factor() {
    let mut only = queue("q", None, 100, 100);
    only.user_minimum = 25_000;
    let config = Scheduling { queues: vec![only.clone()], ..Scheduling::default() };
    let jobs = [(0, 0, 99), (0, 0, 99), (0, 1, 99), (0, 2, 99)];
    let mut b = bare(SchedulerKind::Capacity, &config, &jobs, 9);
    b.all_ask();
    // 18 slots for three users; of the first user's jobs, the first one is served first.
    assert_eq!(b.by_job(), [6, 0, 6, 6]);
    only.user_factor_milli = 500;
    let config = Scheduling { queues: vec![only], ..Scheduling::default() };
    let mut b = bare(SchedulerKind::Capacity, &config, &[(0, 0, 99)], 9);
    b.all_ask();
    assert_eq!(b.by_job(), [9]);
}

/// Returns a cluster with one job of one map, whose split is on worker 0. Workers 0 and 1 form a
/// rack, workers 2 and 3 another rack.
fn lone_split(kind: SchedulerKind, node: u64, rack: u64) -> Bare {
    let delay = DelayConfig { node: Span::from_ms(node), rack: Span::from_ms(rack) };
    let config = Scheduling { delay: Some(delay), ..Scheduling::default() };
    let switches = [0, 0, 1, 1];
    let setting = Setting {
        kind,
        config: &config,
        jobs: &[(0, 0, 1)],
        copies: 1,
        switches: &switches,
        slots: 1,
    };
    let mut b = Bare::new(&setting);
    b.maps[0] = WaitingMaps::new((1, 100), vec![0], 1, &b.racks);
    b
}

#[test]
fn a_job_waits_for_its_node_then_its_rack_then_takes_any() {
    for kind in [SchedulerKind::Fifo, SchedulerKind::Fair, SchedulerKind::Capacity] {
        // A heartbeat every 10 ms. The job is passed over at the first one, so at the second one it
        // has waited for 10 ms.
        let asks = |worker| {
            let mut b = lone_split(kind, 50, 30);
            (1..).find(|_| !b.ask(worker).is_empty()).unwrap()
        };
        assert_eq!((asks(0), asks(1), asks(3)), (1, 6, 9));
    }
}

#[test]
fn only_time_after_being_passed_over_counts_as_waiting() {
    let mut b = lone_split(SchedulerKind::Fifo, 20, 0);
    b.free[3] = 0;
    // Worker 3 has no free slot, so at its heartbeats no job is passed over.
    (0..100).for_each(|_| assert!(b.ask(3).is_empty()));
    assert!(b.ask(1).is_empty());
    assert!(b.ask(1).is_empty());
    assert_eq!(b.ask(1), [(0, 0)]);
}

#[test]
fn who_is_passed_over_leaves_the_slot_to_the_next() {
    let delay = Some(DelayConfig { node: Span::from_secs(9), rack: Span::from_secs(9) });
    let config = Scheduling { delay, ..Scheduling::default() };
    let mut b = bare(SchedulerKind::Fifo, &config, &[(0, 0, 1), (0, 0, 1)], 4);
    b.maps[0] = WaitingMaps::new((1, 100), vec![0], 1, &b.racks);
    b.maps[1] = WaitingMaps::new((1, 100), vec![2], 1, &b.racks);
    assert_eq!(b.ask(2), [(1, 0)]);
    assert_eq!(b.ask(1), []);
    assert_eq!(b.ask(0), [(0, 0)]);
}

#[test]
fn quincy_leaves_a_worker_to_the_map_that_needs_it() {
    // Map 0 has replicas on workers 0 and 1, map 1 on worker 0 only. If worker 0 got map 0, map 1
    // would have to run elsewhere.
    let mut b = bare(SchedulerKind::Quincy, &Scheduling::default(), &[(0, 0, 2)], 4);
    b.free = vec![1; 4];
    b.maps[0] = WaitingMaps::new((2, 200), vec![0, 1, 0, 0], 2, &b.racks);
    let workers: Vec<u32> = vec![3, 2, 1, 0];
    workers.iter().for_each(|&w| b.scheduler.asked(b.now, w, 1));
    let given: Vec<_> = workers.iter().map(|&w| b.ask(w)).collect();
    assert_eq!(given, [vec![], vec![], vec![(0, 0)], vec![(0, 1)]]);
}

#[test]
fn what_quincy_meant_for_a_lost_worker_comes_back() {
    let mut b = bare(SchedulerKind::Quincy, &Scheduling::default(), &[(0, 0, 2), (0, 0, 1)], 4);
    b.maps[0] = WaitingMaps::new((2, 200), vec![1, 1], 1, &b.racks);
    b.maps[1] = WaitingMaps::new((1, 100), vec![0], 1, &b.racks);
    b.scheduler.asked(b.now, 1, 2);
    assert_eq!(b.ask(0).len(), 1);
    assert_eq!(b.scheduler.lost(1), [(0, 0), (0, 1)]);
    assert_eq!(b.scheduler.lost(1), []);
    assert_eq!(b.scheduler.load(MAP, 0), Load { waiting: 0, running: 2 });
}

/// Returns the least cost of assigning `quotas` (job, number of maps) to free slots, found by
/// trying all possibilities.
fn cheapest(
    maps: &[WaitingMaps],
    quotas: &[(u32, u32)],
    from: u32,
    free: &mut Vec<u32>,
    racks: &Racks,
) -> u64 {
    let Some(&(job, quota)) = quotas.first() else { return 0 };
    if quota == 0 {
        return cheapest(maps, &quotas[1..], 0, free, racks);
    }
    let mut best = u64::MAX;
    for map in maps[job as usize].first(99).filter(|&m| m >= from).collect::<Vec<_>>() {
        for w in 0..free.len() {
            if free[w] == 0 {
                continue;
            }
            free[w] -= 1;
            let mut rest = quotas.to_vec();
            rest[0].1 -= 1;
            let more = cheapest(maps, &rest, map + 1, free, racks);
            free[w] += 1;
            best = best.min(more.saturating_add(cost(&maps[job as usize], map, w as u32, racks)));
        }
    }
    best
}

fn cost(maps: &WaitingMaps, map: u32, worker: u32, racks: &Racks) -> u64 {
    match maps.locality(map, worker, racks) {
        Locality::Node | Locality::None => 0,
        Locality::Rack => maps.split_bytes(),
        Locality::Remote => 2 * maps.split_bytes(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn quincy_places_as_cheaply_as_can_be(
        free in proptest::collection::vec(0..3u32, 2..5),
        jobs in proptest::collection::vec((1..4u32, 1..300u64, 1..3u32), 1..4),
        fair in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let switches: Vec<u32> = (0..free.len() as u32).map(|w| w / 2).collect();
        let racks = Racks::new(&switches);
        let mut config = Scheduling::default();
        config.quincy.fair = fair;
        let owners = (0..jobs.len() as u32).map(|pool| Owner { pool, user: 0 }).collect();
        let mut s = Scheduler::new(SchedulerKind::Quincy, &config, owners, [10; 2], &racks);
        let mut stream = Stream::new(seed, "t");
        let mut maps = Vec::new();
        for (job, &(n, bytes, copies)) in (0..).zip(&jobs) {
            let copies = copies.min(free.len() as u32);
            let replicas = (0..n).flat_map(|_| racks.place(None, copies, &mut stream)).collect();
            maps.push(WaitingMaps::new((n, bytes * u64::from(n)), replicas, copies as usize, &racks));
            s.offer(MAP, job, n);
        }
        let before = maps.clone();
        for (w, &n) in (0..).zip(&free) {
            s.asked(Time::ZERO, w, n);
        }
        let mut spent = 0;
        for (w, &n) in (0..).zip(&free) {
            let mut got = 0;
            while let Some((job, map)) = s.next_map(w, &racks, &mut maps) {
                spent += cost(&before[job as usize], map, w, &racks);
                got += 1;
            }
            prop_assert!(got <= n);
        }
        let quotas: Vec<(u32, u32)> =
            (0..jobs.len() as u32).map(|j| (j, s.load(MAP, j).running)).collect();
        let all: u32 = jobs.iter().map(|j| j.0).sum();
        prop_assert_eq!(s.running(MAP), u64::from(all.min(free.iter().sum())));
        prop_assert_eq!(spent, cheapest(&before, &quotas, 0, &mut free.clone(), &racks));
    }

    #[test]
    fn slots_never_idle_while_maps_wait_and_all_is_repeatable(
        kind in prop_oneof![
            Just(SchedulerKind::Fifo), Just(SchedulerKind::Fair),
            Just(SchedulerKind::Capacity), Just(SchedulerKind::Quincy),
        ],
        jobs in proptest::collection::vec((0..3u32, 0..3u32, 0..20u32), 1..12),
        weights in proptest::collection::vec((1..5000u32, 0..9u32), 3),
        steps in proptest::collection::vec((any::<bool>(), any::<u32>()), 1..120),
        workers in 2..9u32,
    ) {
        let pools = weights.iter().map(|&(w, min)| pool(w, min)).collect();
        let queues = vec![queue("a", None, 20, 100), queue("b", None, 30, 100), queue("c", None, 50, 100)];
        let config = Scheduling { pools, queues, ..Scheduling::default() };
        let run = || {
            let mut b = bare(kind, &config, &jobs, workers);
            let mut log = Vec::new();
            for &(ask, n) in &steps {
                if ask || b.running.is_empty() {
                    let worker = n % workers;
                    log.extend(b.ask(worker));
                    let idle = b.free[worker as usize] > 0 && kind != SchedulerKind::Quincy;
                    assert!(!idle || b.scheduler.waiting(MAP) == 0);
                } else {
                    b.end(n as usize % b.running.len());
                }
            }
            // Every worker asks for tasks, and asks a second time for maps planned while other
            // workers asked.
            b.all_ask();
            b.all_ask();
            assert!(b.scheduler.waiting(MAP) == 0 || b.free.iter().all(|&n| n == 0));
            while !b.running.is_empty() {
                b.end(b.running.len() / 2);
                b.all_ask();
                b.all_ask();
            }
            assert_eq!((b.scheduler.waiting(MAP), b.scheduler.running(MAP)), (0, 0));
            log
        };
        prop_assert_eq!(run(), run());
    }

    #[test]
    fn nobody_starves_and_shares_are_weighted_fair(
        set in proptest::collection::vec((1..50u32, 0..12u32, 0..40u32), 1..6),
        workers in 1..20u32,
    ) {
        let pools: Vec<PoolConfig> = set.iter().map(|&(w, min, _)| pool(w * 100, min)).collect();
        let jobs: Vec<_> = (0..).zip(&set).map(|(i, &(.., maps))| (i, 0, maps)).collect();
        let config = Scheduling { pools, ..Scheduling::default() };
        let mut b = bare(SchedulerKind::Fair, &config, &jobs, workers);
        b.all_ask();
        let got = b.by_job();
        let slots = u64::from(2 * workers);
        let wanted: Vec<u32> = set.iter().map(|&(_, min, maps)| min.min(maps)).collect();
        if wanted.iter().map(|&n| u64::from(n)).sum::<u64>() <= slots {
            prop_assert!(got.iter().zip(&wanted).all(|(g, w)| g >= w), "{got:?} {wanted:?}");
        }
        // A pool with waiting maps has at least as many running tasks per weight as any other pool
        // above its minimum share had before that pool's last map.
        for (i, &(w, min, maps)) in set.iter().enumerate() {
            for (j, &(v, least, _)) in set.iter().enumerate() {
                let hungry = got[i] < maps && got[i] >= min;
                let fed = got[j] > least && got[j] > 0;
                if hungry && fed && i != j {
                    prop_assert!((got[j] - 1) * w <= got[i] * v, "{got:?} {set:?}");
                }
            }
        }
    }

    #[test]
    fn queues_keep_what_they_are_guaranteed_and_their_maximum(
        split in (5..95u32, 5..95u32),
        most in (0..100u32, 0..100u32),
        steps in proptest::collection::vec(any::<u32>(), 0..200),
        workers in 1..20u32,
    ) {
        let (a, a1) = split;
        let queues = vec![
            queue("a", None, a, a.max(most.0)),
            queue("b", None, 100 - a, (100 - a).max(most.1)),
            queue("a1", Some(0), a1, 100),
            queue("a2", Some(0), 100 - a1, 100),
        ];
        let config = Scheduling { queues, ..Scheduling::default() };
        let jobs = [(2, 0, 400), (3, 0, 400), (1, 0, 400)];
        let mut b = bare(SchedulerKind::Capacity, &config, &jobs, workers);
        b.all_ask();
        let slots = 2 * workers;
        for step in steps {
            b.end(step as usize % b.running.len());
            b.all_ask();
            let got = b.by_job();
            prop_assert_eq!(got.iter().sum::<u32>(), slots);
            let exact = |percent: u32| f64::from(slots * percent) / 100.0;
            let (in_a, in_b) = (got[0] + got[1], got[2]);
            for (got, percent) in [(in_a, a), (in_b, 100 - a)] {
                prop_assert!((f64::from(got) - exact(percent)).abs() <= 1.0, "{got} {percent}");
            }
            let share = f64::from(in_a * a1) / 100.0;
            prop_assert!((f64::from(got[0]) - share).abs() <= 1.0, "{got:?}");
        }
    }

    #[test]
    fn delays_are_bounded(
        node in 0..300u64, rack in 0..300u64, asked in proptest::collection::vec(1..4u32, 100),
    ) {
        let mut b = lone_split(SchedulerKind::Fair, node, rack);
        let given = asked.iter().position(|&w| !b.ask(w).is_empty()).expect("at last any will do");
        // The first heartbeat passes the job over; each later heartbeat adds 10 ms to its wait.
        let waited = 10 * given as u64;
        prop_assert!(waited < node + rack + 10);
        let enough = if asked[given] == 1 { node } else { node + rack };
        prop_assert!(waited >= enough);
    }
}
