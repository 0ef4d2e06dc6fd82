//! Tests of links: ports of all modes with all queue disciplines, and how classes and flows share a
//! link.

use super::*;
use crate::energy::eee::{SleepBuffer, Trigger};
use crate::energy::phy::{KNOWN, Phy};
use crate::queue::{
    AdaptiveRedConfig, CoDelConfig, CustomQueue, CustomQueueConfig, FqCoDelConfig, Head, Level,
    PieConfig, Protection, QueueModel, RedConfig, Signal, Spread, StepMarkingConfig,
};
use crate::scheduler::SchedulerConfig;
use eastwest_engine::random::Stream;
use eastwest_types::{HostId, Packet, Rate, ecn};

const TEN_GIGABIT: Phy = KNOWN[2].2;

pub(super) fn spec(limit: Limit, mode: Mode) -> LinkSpec {
    LinkSpec {
        from: 0,
        to: 1,
        cable: CableConfig { rate: Rate::gbit(1), delay: Span::from_us(5) },
        queue: QueueConfig::DropTail(DropTail(limit)),
        framing: 38,
        min_frame: 84,
        mtu: 1500,
        jitter: Span::ZERO,
        jitter_seed: 7,
        mode,
        classes: Vec::new(),
        measured: false,
        sleep: None,
        dcb: None,
        shared: None,
        seed: (7, 3),
    }
}

pub(super) fn packet(ip_len: u16, priority: u8) -> Packet {
    Packet { ip_len, tos: priority << 5, ..Packet::blank(HostId(1)) }
}

/// Behaviour of a link in a test: arrivals (time, number of the packet), and the numbers of lost
/// and of marked packets.
#[derive(Debug, PartialEq, Default)]
struct Log {
    arrived: Vec<(Time, u32)>,
    lost: Vec<u32>,
    marked: Vec<u32>,
    queues: Vec<(u32, u64)>,
}

impl Log {
    fn take_dropped(&mut self, link: &mut Link, pool: &PacketPool, at: Time) {
        for (handle, cause) in link.take_dropped() {
            link.count_loss(at, &handle, pool.get(handle.slot()), cause);
            self.lost.push(handle.slot());
        }
        self.lost
            .extend(link.take_deferred_drops().into_iter().map(|(_, handle, _)| handle.slot()));
    }
}

/// Enqueues packets (time, packet) at one link and runs until it is empty. As in a simulation,
/// departures at or before the time of an enqueue are carried out first.
fn play(link: &mut Link, offers: &[(Time, Packet)]) -> Log {
    let mut log = Log::default();
    let mut next = Key::NEVER;
    let mut pool = PacketPool::default();
    for (at, packet) in offers {
        let number = pool.insert(packet);
        while next < Key::new(*at, Class::Arrival) {
            next = step(link, next, &mut log, &mut pool);
        }
        if link.is_lazy() {
            link.settle(*at, &mut pool);
        }
        log.take_dropped(link, &pool, *at);
        log.queues.push(link.queue(*at));
        let handle = PacketHandle::new(number, packet);
        match link.enqueue(*at, handle.words(), &mut pool) {
            Outcome::Dropped(cause) => {
                link.count_loss(*at, &handle, pool.get(number), cause);
                log.lost.push(number);
            }
            Outcome::Queued => {}
            Outcome::Displaced(key) => {
                log.take_dropped(link, &pool, *at);
                next = key;
            }
            Outcome::Sooner(key) => next = key,
        }
    }
    while next != Key::NEVER {
        next = step(link, next, &mut log, &mut pool);
    }
    assert_eq!(link.held(), 0);
    let is_marked = |slot: &u32| pool.remove(*slot).tos & ecn::MASK == ecn::CE;
    log.marked = (0..offers.len() as u32).filter(is_marked).collect();
    log
}

fn step(link: &mut Link, key: Key, log: &mut Log, pool: &mut PacketPool) -> Key {
    if key.is_departure() {
        let next = link.depart(key, pool).1;
        log.take_dropped(link, pool, key.time());
        return next;
    }
    let (handle, next) = link.arrive(key, pool);
    log.take_dropped(link, pool, key.time());
    log.arrived.push((key.time(), handle.slot()));
    next
}

/// Returns packets with bursts and pauses around the capacity of the link, on a coarse grid of
/// times, so that ties are frequent. Four of five packets are ECT.
fn traffic(seed: u64, mtu: u32) -> Vec<(Time, Packet)> {
    let mut random = Stream::new(seed, "traffic");
    let mut now = Time::ZERO;
    // With a very small MTU, only ACKs of up to 80 B are allowed.
    let sizes: &[u16] = if mtu < 80 { &[40, 52, 68, 68, 80] } else { &[40, 52, 80, 576, 1500] };
    (0..400)
        .map(|_| {
            if random.below(3) == 0 {
                now += Span::from_ns(672 * random.below(if mtu < 80 { 4 } else { 40 }));
            }
            let mut packet = packet(sizes[random.below(5) as usize], random.below(8) as u8);
            packet.tos |= [0, 1, 2, 2, 2][random.below(5) as usize];
            (now, packet)
        })
        .collect()
}

/// Returns settings of disciplines that decide at enqueue, each with whether it marks packets.
fn queues() -> Vec<(QueueConfig, bool)> {
    let packets = |n: u32| Limit::Packets(n);
    let drop_tail = [
        packets(0),
        packets(1),
        packets(9),
        Limit::Bytes(79),
        Limit::Bytes(1_500),
        Limit::Bytes(9_001),
    ];
    let mut queues: Vec<_> =
        drop_tail.map(|limit| (QueueConfig::DropTail(DropTail(limit)), false)).to_vec();
    for (threshold, limit, protection) in [
        (packets(0), packets(9), Protection::Bypass),
        (packets(4), Limit::Bytes(9_001), Protection::Bypass),
        (Limit::Bytes(300), packets(9), Protection::AckSyn),
    ] {
        let mark_from = threshold.plus_one();
        let config = StepMarkingConfig { mark_from, at_dequeue: false, protection, limit };
        queues.push((QueueConfig::StepMarking(config), true));
    }
    for (weight, ecn, limit) in
        [(1.0, true, packets(9)), (0.1, true, Limit::Bytes(9_001)), (0.02, false, packets(1))]
    {
        queues.push((QueueConfig::Red(red(weight, ecn, limit)), ecn));
    }
    for (weight, ecn) in [(1.0, true), (0.02, true), (0.01, false)] {
        queues.push((QueueConfig::Red(red_from_six(weight, ecn)), ecn));
    }
    // The probability reaches 0.5 at six packets, so that some signals are marks and others are
    // drops.
    let some = RedConfig { mark_below: Some(0.25), ..red(0.1, true, packets(9)) };
    queues.push((QueueConfig::Red(some), true));
    let (target, red) = (Span::from_us(20), red(0.3, true, packets(9)));
    queues.push((QueueConfig::AdaptiveRed(AdaptiveRedConfig { target, adapt: true, red }), true));
    let pie = PieConfig {
        target: Span::from_us(1),
        update: Span::from_us(10),
        alpha: 100_000.0,
        beta: 100_000.0,
        burst: Span::from_us(10),
        mark_up_to: 1.0,
        signal: Signal { ecn: true, protection: Protection::Default },
        limit: packets(9),
    };
    queues.push((QueueConfig::Pie(pie), true));
    queues
}

pub(super) fn red(weight: f64, ecn: bool, limit: Limit) -> RedConfig {
    RedConfig {
        min: Level::Packets(1.0),
        max: Level::Packets(6.0),
        weight,
        max_probability: 0.5,
        gentle: true,
        spread: Spread::Even,
        mean_packet: 500,
        signal: Signal { ecn, protection: Protection::Default },
        mark_below: None,
        limit,
    }
}

/// Returns settings of RED with which a port admits the first packets without a signal.
pub(super) fn red_from_six(weight: f64, ecn: bool) -> RedConfig {
    let (min, max) = (Level::Packets(6.0), Level::Packets(9.0));
    RedConfig { min, max, ..red(weight, ecn, Limit::Packets(40)) }
}

#[test]
fn the_count_of_waiting_packets_is_that_of_the_ring() {
    let queue = QueueConfig::Red(red(0.02, true, Limit::Packets(40)));
    let mut link = Link::new(LinkSpec { queue, ..spec(Limit::Packets(0), Mode::Eager) });
    let mut random = Stream::new(3, "waiting");
    let (mut pool, mut next, mut now) = (PacketPool::default(), Key::NEVER, Time::ZERO);
    let (mut longest, mut overtaken) = (0, 0);
    for _ in 0..3_000 {
        now += Span(random.below(2) * random.below(20_000_000));
        while next < Key::new(now, Class::Arrival) {
            next = link.arrive(next, &mut pool).1;
        }
        overtaken += u32::from(link.waiting as usize > link.on_wire.len());
        let (ring, counted) = (link.waits_in_ring(now), link.update_waiting(now));
        assert_eq!((counted.packets, counted.bytes), (ring.packets, ring.bytes));
        longest = longest.max(counted.packets);
        let one = packet(40 + random.below(1_461) as u16, 0);
        if let Outcome::Sooner(key) =
            link.enqueue(now, PacketHandle::new(pool.insert(&one), &one).words(), &mut pool)
        {
            next = key;
        }
    }
    assert!(longest > 3 && overtaken > 100, "{longest} packets, {overtaken} times");
}

/// Returns settings of disciplines that decide at dequeue, each with whether it marks packets.
fn queues_at_dequeue() -> Vec<(QueueConfig, bool)> {
    let mut queues = Vec::new();
    let limit = Limit::Packets(9);
    for (ecn, interval) in [(true, 10), (false, 40), (false, 2)] {
        let signal = Signal { ecn, protection: Protection::Default };
        let (target, interval) = (Span::from_us(4), Span::from_us(interval));
        queues.push((QueueConfig::CoDel(CoDelConfig { target, interval, signal, limit }), ecn));
    }
    let (mark_from, protection) = (Limit::Packets(3), Protection::Bypass);
    let config = StepMarkingConfig { mark_from, at_dequeue: true, protection, limit };
    queues.push((QueueConfig::StepMarking(config), true));
    queues
}

#[test]
fn all_modes_do_the_same_to_every_packet() {
    for ((queue, marks), mode) in
        queues().into_iter().flat_map(|q| [(q.clone(), Mode::Eager), (q, Mode::Lazy)])
    {
        assert_same(&queue, marks, mode, None);
    }
    for (queue, marks) in queues_at_dequeue() {
        assert_same(&queue, marks, Mode::Lazy, None);
    }
    // With a longer target, the port fixes many departures at enqueue.
    for (target, interval) in [(20, 1), (20, 10), (35, 5), (90, 10)] {
        let (target, interval) = (Span::from_us(target), Span::from_us(interval));
        for (signal, limit) in [(false, 9), (true, 9), (false, 30), (true, 30)]
            .map(|(ecn, n)| (Signal { ecn, ..Signal::default() }, Limit::Packets(n)))
        {
            let queue = QueueConfig::CoDel(CoDelConfig { target, interval, signal, limit });
            assert_same_with(&queue, &[], None, Mode::Lazy, None);
        }
    }
}

#[test]
fn links_sleep_alike_in_both_modes() {
    let hold = |us, trigger| Policy { hold: Span::from_us(us), trigger, ..Policy::STANDARD };
    for policy in [
        Policy::STANDARD,
        Policy { stall: Span::from_us(3), ..Policy::STANDARD },
        hold(6, Trigger::Packets(3)),
        hold(20, Trigger::Bytes(2_000)),
        hold(1_000, Trigger::Packets(7)),
        Policy { stall: Span::from_us(5), ..hold(15, Trigger::Packets(2)) },
        Policy { waste_ppm: Some(300_000), ..hold(30, Trigger::Bytes(9_000)) },
    ] {
        let sleep = Some((policy, TEN_GIGABIT));
        let wakes =
            queues().into_iter().map(|(q, marks)| assert_same(&q, marks, Mode::Eager, sleep));
        assert!(wakes.sum::<u64>() > 1_000, "{policy:?}");
    }
}

#[test]
fn ports_with_several_queues_do_the_same_in_both_modes() {
    let packets = |n| Limit::Packets(n);
    for (limit, ecn, quantum) in [
        (packets(0), false, 1514),
        (packets(1), false, 300),
        (packets(9), true, 1514),
        (packets(25), false, 100),
        (Limit::Bytes(79), false, 1514),
        (Limit::Bytes(9_000), true, 4_000),
    ] {
        let signal = Signal { ecn, protection: Protection::Default };
        let (target, interval) = (Span::from_us(4), Span::from_us(10));
        let codel = CoDelConfig { target, interval, signal, limit };
        for flows in [1, 7, 1024] {
            let queue = QueueConfig::FqCoDel(FqCoDelConfig { flows, quantum, codel });
            assert_same_with(&queue, &[], None, Mode::Lazy, None);
        }
    }
    let class = |dscps, weight, queue| PortClass { dscps, weight, queue };
    let codel = queues_at_dequeue().remove(1).0;
    let weighted = [
        class(0xffff, Some(1), None),
        class(0xffff_0000, None, Some(codel)),
        class(u64::MAX << 32, Some(3), Some(fq_codel(Limit::Packets(4)))),
    ];
    for classes in [&SchedulerConfig::StrictPriority.classes()[..], &weighted] {
        for (queue, _) in queues() {
            assert_same_with(&queue, classes, None, Mode::Lazy, None);
        }
    }
    let (model, limit) = (Arc::new(ByDscp::default()), Limit::Packets(5));
    let ranked = QueueConfig::Custom(CustomQueueConfig { model, limit });
    assert_same_with(&ranked, &[], Some(false), Mode::Lazy, None);
}

/// Checks that a port in mode `mode` treats every packet as a port in two-event mode does. Returns
/// the number of times that its link has woken up.
fn assert_same(queue: &QueueConfig, marks: bool, mode: Mode, sleep: Option<(Policy, Phy)>) -> u64 {
    assert_same_with(queue, &[], Some(marks), mode, sleep)
}

/// Checks like [`assert_same`] ports with traffic classes. `marks`: whether the port marks many
/// packets; `None` if this depends on the case.
fn assert_same_with(
    queue: &QueueConfig,
    classes: &[PortClass],
    marks: Option<bool>,
    mode: Mode,
    sleep: Option<(Policy, Phy)>,
) -> u64 {
    let mut wakes = 0;
    for (jitter, mtu) in [(0, 1500), (0, 68), (3_000, 1500), (40_000, 1500)] {
        let (mut lost, mut marked) = (0, 0);
        for seed in 0..20 {
            let offers = traffic(seed, mtu);
            let both = [mode, Mode::TwoEvent].map(|mode| {
                let (jitter, queue) = (Span::from_ns(jitter), queue.clone());
                let classes = classes.to_vec();
                let base = spec(Limit::Packets(0), mode);
                let mut link = Link::new(LinkSpec { jitter, mtu, queue, sleep, classes, ..base });
                let log = play(&mut link, &offers);
                let end = log.arrived.last().map_or(Time::ZERO, |a| a.0) + Span::from_us(1);
                let counts = (link.account().drops(), link.account().marks());
                (log, (counts, link.state_times(end)), (link.counters(), link.longest_wait()))
            });
            let [(ours, counts, counters), (reference, other_counts, others)] = &both;
            let what =
                || format!("{mode:?} {queue:?} {sleep:?}, {jitter} ns, {mtu} B, seed {seed}");
            assert!(ours == reference, "{}", what());
            assert_eq!(counts, other_counts, "{}", what());
            assert_eq!(counters, others);
            assert_eq!(ours.arrived.len() + ours.lost.len(), offers.len());
            assert_eq!(ours.marked.len() as u64, counts.0.1.iter().sum::<u64>());
            lost += ours.lost.len();
            marked += ours.marked.len();
            wakes += counts.1.map_or(0, |times| times.wakes);
        }
        assert!(lost > 100, "{queue:?}: a test with {lost} losses shows little");
        let some = marked > 100;
        assert_eq!(some, marks.unwrap_or(some), "{queue:?}: {marked} marks");
    }
    wakes
}

#[test]
fn a_packet_takes_its_bytes_framing_and_the_way() {
    let mut link = Link::new(spec(Limit::Packets(10), Mode::Eager));
    let offers = [(Time(7), packet(1500, 0)), (Time(7), packet(40, 0))];
    let log = play(&mut link, &offers);
    let first = Time(7) + Span::from_ns(12_304) + Span::from_us(5);
    // A packet of 40 B is padded to 84 B on the link.
    assert_eq!(log.arrived, [(first, 0), (first + Span::from_ns(672), 1)]);
    assert_eq!((link.counters().packets, link.counters().bytes), (2, 1538 + 84));
    assert_eq!(link.longest_wait(), Span::from_ns(12_304));
}

#[test]
fn the_limit_counts_what_waits_and_not_what_is_being_sent() {
    for mode in [Mode::Eager, Mode::Lazy, Mode::TwoEvent] {
        for (limit, fit) in
            [(Limit::Packets(3), 4), (Limit::Bytes(4_500), 4), (Limit::Bytes(4_499), 3)]
        {
            let offers = vec![(Time::ZERO, packet(1500, 0)); 6];
            let log = play(&mut Link::new(spec(limit, mode)), &offers);
            assert_eq!(log.arrived.len(), fit, "{limit:?} {mode:?}");
            assert_eq!(log.lost.first(), Some(&(fit as u32)));
        }
    }
}

#[test]
fn bytes_count_where_packets_are_larger_than_a_very_small_mtu() {
    for mode in [Mode::Eager, Mode::Lazy, Mode::TwoEvent] {
        let spec = LinkSpec { mtu: 68, ..spec(Limit::Bytes(4_000), mode) };
        let log = play(&mut Link::new(spec), &[(Time::ZERO, packet(80, 0)); 60]);
        assert_eq!(log.arrived.len(), 51, "{mode:?}");
    }
}

#[test]
fn a_place_is_free_at_the_picosecond_the_next_packet_starts() {
    let sent = 12_304_000;
    for mode in [Mode::Eager, Mode::Lazy, Mode::TwoEvent] {
        for (at, lost) in [(sent - 1, vec![2]), (sent, vec![])] {
            let offers =
                [(Time(0), packet(1500, 0)), (Time(0), packet(1500, 0)), (Time(at), packet(40, 0))];
            let log = play(&mut Link::new(spec(Limit::Packets(1), mode)), &offers);
            assert_eq!(log.lost, lost, "{mode:?} at {at}");
        }
    }
}

#[test]
fn jitter_delays_each_packet_by_less_than_its_width_and_keeps_the_order() {
    let width = Span::from_us(30);
    let plain = play(&mut Link::new(spec(Limit::Packets(99), Mode::Eager)), &traffic(3, 1500));
    let spec = LinkSpec { jitter: width, ..spec(Limit::Packets(99), Mode::Eager) };
    let shaken = play(&mut Link::new(spec), &traffic(3, 1500));
    assert_eq!(plain.lost, shaken.lost);
    let mut moved = 0;
    for (a, b) in plain.arrived.iter().zip(&shaken.arrived) {
        assert_eq!(a.1, b.1);
        assert!(b.0 >= a.0 && b.0 < a.0 + width);
        moved += usize::from(b.0 > a.0 + Span::from_us(10));
    }
    assert!(moved > 50 && shaken.arrived.windows(2).all(|w| w[0].0 <= w[1].0));
}

#[test]
fn urgent_packets_overtake_what_waits_but_not_what_is_being_sent() {
    let classes = SchedulerConfig::StrictPriority.classes();
    let spec = LinkSpec { classes, ..spec(Limit::Packets(2), Mode::TwoEvent) };
    let at = |us| Time::ZERO + Span::from_us(us);
    let offers = [
        (at(0), packet(1500, 0)),
        (at(1), packet(1500, 3)),
        (at(2), packet(1500, 4)),
        (at(3), packet(1500, 7)),
        (at(4), packet(1500, 5)), // the urgent queue is full
        (at(5), packet(1500, 0)),
        (at(6), packet(1500, 0)), // the other queue is full too
        (at(20), packet(1500, 4)),
    ];
    let mut link = Link::new(spec);
    let log = play(&mut link, &offers);
    assert_eq!(log.lost, [4, 6]);
    let order: Vec<u32> = log.arrived.iter().map(|a| a.1).collect();
    assert_eq!(order, [0, 2, 3, 7, 1, 5]);
    // The port is never idle while packets are queued.
    let sent = Span::from_ns(12_304);
    assert!(log.arrived.windows(2).all(|w| w[1].0 == w[0].0 + sent));
}

#[test]
#[should_panic(expected = "traffic classes cannot have mode Eager")]
fn classes_cannot_be_eager() {
    let classes = SchedulerConfig::StrictPriority.classes();
    Link::new(LinkSpec { classes, ..spec(Limit::Packets(2), Mode::Eager) });
}

/// Returns the bytes of each class that arrive while all classes have queued packets. `sizes` are
/// the IP bytes of the packets of each class.
fn shares(classes: &[PortClass], sizes: [u16; 3]) -> [u64; 3] {
    let spec =
        LinkSpec { classes: classes.to_vec(), ..spec(Limit::Packets(100_000), Mode::TwoEvent) };
    let mut offers = Vec::new();
    for n in 0..30_000 {
        let class = n % 3;
        offers.push((Time::ZERO, packet(sizes[class], class as u8)));
    }
    let log = play(&mut Link::new(spec), &offers);
    let mut bytes = [0; 3];
    for (_, slot) in &log.arrived[..9_000] {
        let class = *slot as usize % 3;
        bytes[class] += u64::from(sizes[class]);
    }
    bytes
}

#[test]
fn weights_share_what_strict_classes_leave() {
    let class =
        |priority: u8, weight| PortClass { dscps: 1 << (priority * 8), weight, queue: None };
    let rest = PortClass { dscps: !0xff_ffff, weight: Some(1), queue: None };
    let weighted = [class(0, Some(1)), class(1, Some(3)), class(2, Some(4)), rest.clone()];
    let [a, b, c] = shares(&weighted, [1500, 576, 1000]).map(|n| n as f64);
    assert!((b / a - 3.0).abs() < 0.02 && (c / a - 4.0).abs() < 0.02, "{a} {b} {c}");
    // The first packet of class 0 found the port idle.
    let [a, b, c] =
        shares(&[class(0, Some(1)), class(1, None), class(2, Some(1)), rest], [1500; 3]);
    assert!(a == 1500 && c == 0 && b == 8_999 * 1500, "{a} {b} {c}");
}

#[test]
fn each_class_has_a_queue_of_its_own() {
    let red = RedConfig {
        min: Level::Packets(0.0),
        max: Level::Packets(0.0),
        ..red(1.0, true, Limit::Packets(9))
    };
    let classes = [
        PortClass { dscps: u64::MAX >> 32, weight: Some(1), queue: None },
        PortClass { dscps: u64::MAX << 32, weight: Some(1), queue: Some(QueueConfig::Red(red)) },
    ];
    let spec = LinkSpec { classes: classes.to_vec(), ..spec(Limit::Packets(2), Mode::TwoEvent) };
    let mut offers = vec![(Time::ZERO, packet(1500, 0)); 4];
    let mut marked = packet(1500, 4);
    marked.tos |= ecn::ECT0;
    offers.extend(vec![(Time::ZERO, marked); 3]);
    let log = play(&mut Link::new(spec), &offers);
    assert_eq!((log.lost, log.marked), (vec![3], vec![4, 5, 6]));
}

fn fq_codel(limit: Limit) -> QueueConfig {
    let signal = Signal::default();
    let (target, interval) = (Span::from_ms(5), Span::from_ms(100));
    let codel = CoDelConfig { target, interval, signal, limit };
    QueueConfig::FqCoDel(FqCoDelConfig { flows: 1024, quantum: 1514, codel })
}

#[test]
fn flows_share_by_bytes_and_a_new_one_goes_first() {
    let queue = fq_codel(Limit::Packets(10_000));
    let spec = LinkSpec { queue, ..spec(Limit::Packets(0), Mode::TwoEvent) };
    let flow = |ip_len, hash| Packet { hash, ..packet(ip_len, 0) };
    let mut offers = vec![(Time::ZERO, flow(1500, 1)); 200];
    offers.extend(vec![(Time::ZERO, flow(500, 2)); 600]);
    // When both flows are in the list of old flows, a third flow sends a single packet.
    offers.push((Time::ZERO + Span::from_us(2_000), flow(100, 3)));
    let log = play(&mut Link::new(spec), &offers);
    assert!(log.lost.is_empty());
    let first: Vec<u32> = log.arrived.iter().take(400).map(|a| a.1).collect();
    let of = |range: std::ops::Range<u32>| first.iter().filter(|n| range.contains(n)).count();
    let (a, b) = (of(0..200) * 1500, of(200..800) * 500);
    assert!(a.abs_diff(b) <= 3_028, "{a} {b}");
    let at = log.arrived.iter().find(|a| a.1 == 800).expect("it arrives").0;
    assert!(at < Time::ZERO + Span::from_us(2_000 + 2 * 13 + 5), "{at:?}");
}

#[test]
fn beyond_the_limit_the_longest_flow_loses_at_its_head() {
    let queue = fq_codel(Limit::Packets(10));
    let spec = LinkSpec { queue, ..spec(Limit::Packets(0), Mode::TwoEvent) };
    let flow = |hash| Packet { hash, ..packet(1500, 0) };
    let mut offers = vec![(Time::ZERO, flow(1)); 11];
    offers.extend(vec![(Time(1), flow(2)); 3]);
    let log = play(&mut Link::new(spec), &offers);
    assert_eq!(log.lost, [1, 2, 3]);
    assert_eq!(log.arrived.len(), 11);
}

/// Test discipline that uses the codepoint as rank, and counts the bytes of packets that are pushed
/// out.
#[derive(Clone, Debug, Default)]
struct ByDscp {
    pushed_out: Arc<std::sync::atomic::AtomicU64>,
}

impl QueueModel for ByDscp {
    fn start(&self, _: &Place) -> Box<dyn CustomQueue> {
        Box::new(self.clone())
    }
    fn ranks(&self) -> bool {
        true
    }
}

impl CustomQueue for ByDscp {
    fn at_enqueue(&mut self, _: &Arrival) -> Verdict {
        Verdict::Enqueue
    }
    fn rank(&mut self, arrival: &Arrival) -> u64 {
        u64::from(arrival.packet.dscp())
    }
    fn at_push_out(&mut self, _: Time, packet: &Head) {
        assert_eq!(packet.rank, u64::from(packet.packet.dscp()));
        let bytes = u64::from(packet.ip_len());
        self.pushed_out.fetch_add(bytes, std::sync::atomic::Ordering::Relaxed);
    }
}

#[test]
fn the_smallest_rank_leaves_first_and_the_largest_is_pushed_out() {
    let model = ByDscp::default();
    let pushed_out = model.pushed_out.clone();
    let queue = |limit| {
        let model = Arc::new(model.clone());
        QueueConfig::Custom(CustomQueueConfig { model, limit })
    };
    for limit in [Limit::Packets(3), Limit::Bytes(4_500)] {
        let spec = LinkSpec { queue: queue(limit), ..spec(limit, Mode::TwoEvent) };
        // Packet 0 is sent at once. Packet 4 pushes out packet 1, and packet 5 is not admitted.
        let ranks = [5, 5, 1, 3, 1, 6];
        let offers: Vec<_> = ranks.map(|rank| (Time::ZERO, packet(1500, rank))).to_vec();
        let log = play(&mut Link::new(spec), &offers);
        let order: Vec<u32> = log.arrived.iter().map(|a| a.1).collect();
        assert_eq!((order, log.lost), (vec![0, 2, 4, 3], vec![1, 5]));
    }
    assert_eq!(pushed_out.load(std::sync::atomic::Ordering::Relaxed), 2 * 2 * 1_500);
    // A packet may push out several others and then still not be admitted.
    let limit = Limit::Bytes(3_000);
    let spec = LinkSpec { queue: queue(limit), ..spec(limit, Mode::TwoEvent) };
    let offers = [(1500, 0), (500, 1), (1000, 7), (1000, 7), (2600, 3)]
        .map(|(l, r)| (Time::ZERO, packet(l, r)));
    let log = play(&mut Link::new(spec), &offers);
    let order: Vec<u32> = log.arrived.iter().map(|a| a.1).collect();
    assert_eq!((order, log.lost), (vec![0, 1], vec![3, 2, 4]));
}

/// Ranks packets by codepoint; each flow keeps its order.
#[derive(Clone, Debug)]
struct ByFlow;

impl QueueModel for ByFlow {
    fn start(&self, _: &Place) -> Box<dyn CustomQueue> {
        Box::new(ByFlow)
    }
    fn ranks(&self) -> bool {
        true
    }
    fn keeps_flow_order(&self) -> bool {
        true
    }
}

impl CustomQueue for ByFlow {
    fn at_enqueue(&mut self, _: &Arrival) -> Verdict {
        Verdict::Enqueue
    }
    fn rank(&mut self, arrival: &Arrival) -> u64 {
        u64::from(arrival.packet.dscp())
    }
}

#[test]
fn the_flow_with_the_smallest_rank_sends_its_earliest_packet() {
    let limit = Limit::Packets(5);
    let model = Arc::new(ByFlow);
    let queue = QueueConfig::Custom(CustomQueueConfig { model, limit });
    let spec = LinkSpec { queue, ..spec(limit, Mode::TwoEvent) };
    // (flow, rank): packet 0 is sent at once; 6 pushes out 1, and 7 does not come in
    let offers = [(9, 0), (1, 7), (1, 5), (2, 4), (1, 6), (1, 3), (2, 6), (3, 6)]
        .map(|(hash, rank)| (Time::ZERO, Packet { hash, ..packet(1500, rank) }));
    let log = play(&mut Link::new(spec), &offers);
    let order: Vec<u32> = log.arrived.iter().map(|a| a.1).collect();
    // flow 1 has rank 3, and sends 2, 4 and 5 in their order; then flow 2 has rank 4
    assert_eq!((order, log.lost), (vec![0, 2, 4, 5, 3, 6], vec![1, 7]));
}

/// Cuts the packets that do not fit.
#[derive(Clone, Debug)]
struct Cutter(Limit);

impl QueueModel for Cutter {
    fn start(&self, _: &Place) -> Box<dyn CustomQueue> {
        Box::new(self.clone())
    }
    fn trims(&self) -> bool {
        true
    }
}

impl CustomQueue for Cutter {
    fn at_enqueue(&mut self, arrival: &Arrival) -> Verdict {
        match arrival.fits(self.0) {
            Verdict::Enqueue => Verdict::Enqueue,
            _ => Verdict::Trim,
        }
    }
}

#[test]
fn headers_of_cut_packets_keep_their_place_and_others_are_dropped() {
    let limit = Limit::Packets(2);
    let model = Arc::new(Cutter(limit));
    let queue = QueueConfig::Custom(CustomQueueConfig { model, limit });
    let spec = LinkSpec { queue, ..spec(limit, Mode::TwoEvent) };
    let data = Packet {
        payload: 1440,
        flags: eastwest_types::rocev2::DATA,
        notes: Packet::DATAGRAM,
        ..packet(1500, 0)
    };
    let tcp = Packet { flags: eastwest_types::flag::ACK, notes: 0, ..data };
    // 0 is sent, 1 and 2 wait, 3 cannot be cut, the others are
    let mut offers = vec![(Time::ZERO, data); 3];
    offers.push((Time::ZERO, tcp));
    offers.extend(vec![(Time::ZERO, data); 52]);
    // when 1 is being sent, there is room for another packet behind the headers
    let (header, whole) = (Span::from_ns(98 * 8), Span::from_ns(1_538 * 8));
    offers.push((Time::ZERO + whole + Span::from_ns(1), data));
    let mut link = Link::new(spec);
    let log = play(&mut link, &offers);
    // as many bytes of headers as two full packets have: 3,000 B are 50 headers of 60 B
    assert_eq!(log.lost, [3, 54, 55]);
    let order: Vec<u32> = log.arrived.iter().map(|a| a.1).collect();
    let expected: Vec<u32> = (0..3).chain(4..54).chain([56]).collect();
    assert_eq!(order, expected);
    // a header takes the time of a frame of 98 B: 60 B and the framing
    assert_eq!(log.arrived[4].0.since(log.arrived[3].0), header);
    let end = Time::ZERO + whole * 4 + header * 50 + Span::from_us(5);
    assert_eq!(log.arrived[53].0, end);
    // the port is idle then
    let next = play(&mut link, &[(end, data)]);
    assert_eq!(next.arrived, [(end + whole + Span::from_us(5), 0)]);
}

/// Returns a sleep policy with a buffer of the link layer of size `limit`, below the queue.
fn below(policy: Policy, limit: Option<Limit>) -> Option<(Policy, Phy)> {
    Some((Policy { buffer: SleepBuffer::Link(limit), ..policy }, TEN_GIGABIT))
}

/// Returns `packets` full packets at intervals of `gap` from 100 µs on, when the link is asleep.
fn steady(packets: usize, gap: Span) -> Vec<(Time, Packet)> {
    let mut at = Time::ZERO + Span::from_us(100);
    let next = |_| {
        at += gap;
        (at, Packet { tos: ecn::ECT0, ..packet(1500, 0) })
    };
    (0..packets).map(next).collect()
}

#[test]
fn links_with_a_buffer_of_their_own_sleep_alike_in_both_modes() {
    let hold = |us, trigger| Policy { hold: Span::from_us(us), trigger, ..Policy::STANDARD };
    for (policy, limit) in [
        (Policy::STANDARD, None),
        (Policy { stall: Span::from_us(3), ..Policy::STANDARD }, None),
        (hold(20, Trigger::Bytes(2_000)), None),
        (hold(1_000, Trigger::Packets(7)), None),
        (hold(1_000, Trigger::Packets(7)), Some(Limit::Packets(3))),
        (hold(30, Trigger::Packets(9)), Some(Limit::Bytes(2_000))),
        (Policy { waste_ppm: Some(300_000), ..hold(30, Trigger::Bytes(9_000)) }, None),
    ] {
        let sleep = below(policy, limit);
        let wakes =
            queues().into_iter().map(|(q, marks)| assert_same(&q, marks, Mode::Eager, sleep));
        assert!(wakes.sum::<u64>() > 1_000, "{policy:?}");
    }
}

#[test]
fn a_trigger_beyond_the_limit_of_the_queue_is_met_below_it() {
    let hold = Span::from_ms(100);
    let policy = Policy { hold, trigger: Trigger::Packets(1_000), ..Policy::STANDARD };
    // 1000 packets arrive in 1 ms. Then the queue has room for 85 packets, while the buffer needs
    // 12.3 ms to become empty.
    let offers = steady(1_100, Span::from_us(1));
    for mode in [Mode::Eager, Mode::TwoEvent] {
        let mut link =
            Link::new(LinkSpec { sleep: below(policy, None), ..spec(Limit::Packets(85), mode) });
        let log = play(&mut link, &offers);
        let awake = offers[999].0 + TEN_GIGABIT.wake;
        let sent = Span::from_ns(12_304);
        assert_eq!(log.arrived[0], (awake + sent + Span::from_us(5), 0), "{mode:?}");
        assert!(log.arrived.windows(2).all(|w| w[1].0 == w[0].0 + sent && w[1].1 > w[0].1));
        // Five packets arrive during the wake time of 4.48 µs, but the link is awake when the last
        // one does; four go to the buffer.
        let stored = 1_000 + 4;
        assert_eq!(log.queues[stored], (0, 0));
        // One packet of the buffer is in transmission; no packet of the queue is sent within 0.1
        // ms.
        let first_lost = stored as u32 + 85;
        assert_eq!(log.lost, (first_lost..1_100).collect::<Vec<_>>(), "{mode:?}");
        assert_eq!(log.queues[stored + 50], (50, 75_000));
        // The longest waiting time is that of a packet in the queue.
        let last = offers[first_lost as usize - 1].0;
        let wait = (awake + sent * (stored as u64 + 84)).since(last);
        assert_eq!(link.longest_wait(), wait, "{mode:?}");
        assert_eq!(link.state_times(Time::ZERO + Span::from_ms(90)).map(|t| t.wakes), Some(1));

        // If held packets are in the queue, 85 fit, the trigger is never reached, and all others
        // are lost.
        let sleep = Some((policy, TEN_GIGABIT));
        let mut link = Link::new(LinkSpec { sleep, ..spec(Limit::Packets(85), mode) });
        let log = play(&mut link, &offers);
        assert_eq!(
            log.arrived[0].0,
            offers[0].0 + hold + TEN_GIGABIT.wake + sent + Span::from_us(5)
        );
        assert_eq!(log.lost, (85..1_100).collect::<Vec<_>>());
    }
}

#[test]
fn disciplines_see_only_what_waits_in_the_queue() {
    let policy =
        Policy { hold: Span::from_ms(1), trigger: Trigger::Packets(200), ..Policy::STANDARD };
    let limit = Limit::Packets(1_000);
    let mark_from = Limit::Packets(21);
    let step = |at_dequeue| {
        let protection = Protection::Bypass;
        QueueConfig::StepMarking(StepMarkingConfig { mark_from, at_dequeue, protection, limit })
    };
    let (min, max) = (Level::Packets(20.0), Level::Packets(20.0));
    let red = QueueConfig::Red(RedConfig { min, max, gentle: false, ..red(1.0, true, limit) });
    let signal = Signal { ecn: true, protection: Protection::Default };
    let (target, interval) = (Span::from_us(500), Span::from_us(1));
    let codel = QueueConfig::CoDel(CoDelConfig { target, interval, signal, limit });
    // 200 packets go to the buffer, and 4 more during the wake time; the other 51 go to the queue.
    let offers = steady(255, Span::from_us(1));
    for (queue, two_event_only) in
        [(step(false), false), (step(true), true), (red, false), (codel, true)]
    {
        for mode in [Mode::Eager, Mode::TwoEvent] {
            if mode == Mode::Eager && two_event_only {
                continue;
            }
            for (sleep, least, most) in
                [(below(policy, None), 204, 255), (Some((policy, TEN_GIGABIT)), 0, 204)]
            {
                let mut link =
                    Link::new(LinkSpec { sleep, queue: queue.clone(), ..spec(limit, mode) });
                let log = play(&mut link, &offers);
                assert!(log.lost.is_empty(), "{queue:?}");
                assert_eq!(log.arrived.len(), 255);
                assert!(log.arrived.windows(2).all(|w| w[1].1 == w[0].1 + 1), "{queue:?}");
                let marked = log.marked.iter().filter(|n| (least..most).contains(*n)).count();
                assert!(marked > 3, "{queue:?} {mode:?}: {:?}", log.marked);
                if least > 0 {
                    assert_eq!(marked, log.marked.len(), "{queue:?} {mode:?}: {:?}", log.marked);
                }
            }
        }
    }
}

#[test]
fn a_buffer_with_a_limit_leaves_the_rest_to_the_queue() {
    let policy =
        Policy { hold: Span::from_ms(1), trigger: Trigger::Packets(10), ..Policy::STANDARD };
    let offers = steady(12, Span::from_us(1));
    for mode in [Mode::Eager, Mode::TwoEvent] {
        let sleep = below(policy, Some(Limit::Packets(4)));
        let mut link = Link::new(LinkSpec { sleep, ..spec(Limit::Packets(6), mode) });
        let log = play(&mut link, &offers);
        // Four packets in the buffer and six in the queue reach the trigger. Later packets find the
        // queue full.
        assert_eq!(log.queues[9], (5, 7_500), "{mode:?}");
        assert_eq!(log.lost, [10, 11], "{mode:?}");
        let awake = offers[9].0 + TEN_GIGABIT.wake;
        let first = awake + Span::from_ns(12_304) + Span::from_us(5);
        assert_eq!(log.arrived[0], (first, 0), "{mode:?}");
    }
}

#[test]
fn what_is_below_the_queue_leaves_first_whatever_its_class() {
    let policy =
        Policy { hold: Span::from_us(50), trigger: Trigger::Packets(9), ..Policy::STANDARD };
    let spec = LinkSpec {
        classes: SchedulerConfig::StrictPriority.classes(),
        sleep: below(policy, None),
        ..spec(Limit::Packets(1), Mode::TwoEvent)
    };
    let at = |us| Time::ZERO + Span::from_us(us);
    let offers = [
        (at(100), packet(1500, 0)),
        (at(110), packet(1500, 7)),
        (at(120), packet(1500, 0)),
        (at(160), packet(1500, 0)), // the link is awake since 154.48 µs
        (at(161), packet(1500, 7)),
        (at(162), packet(1500, 7)), // the urgent queue is full
    ];
    let mut link = Link::new(spec);
    let log = play(&mut link, &offers);
    assert_eq!(log.lost, [5]);
    let order: Vec<u32> = log.arrived.iter().map(|a| a.1).collect();
    assert_eq!(order, [0, 1, 2, 4, 3]);
}
