//! Tests of a fabric without transports: packets and their SACK blocks are conserved at every step,
//! each packet stays on its path, and faults have equal effects in all modes of ports.

use eastwest_engine::order::{Class, Key};
use eastwest_engine::random::Stream;
use eastwest_engine::tournament::Tournament;
use eastwest_network::cards::CardsConfig;
use eastwest_network::config::{FabricConfig, PortSet};
use eastwest_network::energy::EnergyConfig;
use eastwest_network::fabric::Fabric;
use eastwest_network::fault::{Degraded, Effect, Fault, Flapping, LossModel};
use eastwest_network::losses::Cause;
use eastwest_network::queue::{DropTail, QueueConfig};
use eastwest_network::routing::{Ecmp, EqualPaths, RoundRobin, RoutingConfig};
use eastwest_network::scheduler::SchedulerConfig;
use eastwest_network::topology::{CableConfig, HostCards, Topology};
use eastwest_types::{HostId, Limit, NO_SACK, Packet, Rate, SackBlocks, Span, Time};

fn cable(rate: Rate) -> CableConfig {
    CableConfig { rate, delay: Span::from_us(1) }
}

fn config(topology: Topology, limit: Limit) -> FabricConfig {
    FabricConfig {
        topology,
        cards: CardsConfig::default(),
        mtu: 1500,
        framing: 38,
        min_frame: 84,
        switch_queue: QueueConfig::DropTail(DropTail(limit)),
        host_queue: QueueConfig::DropTail(DropTail(Limit::Packets(30))),
        shared_buffer: None,
        scheduler: SchedulerConfig::Fifo,
        dcb: Default::default(),
        routing: RoutingConfig::Ecmp(Ecmp),
        equal_paths: EqualPaths::default(),
        energy: EnergyConfig::default(),
        measured: PortSet::default(),
        processing_jitter: Span::from_us(12),
        reference_ports: false,
        telemetry: false,
        nics_read_queues: false,
        faults: Vec::new(),
    }
}

fn topologies() -> [Topology; 3] {
    let (host, uplink) = (cable(Rate::gbit(1)), cable(Rate::gbit(1)));
    [
        Topology::Star { hosts: 6, cards: 1, host },
        Topology::LeafSpine {
            leaves: 3,
            hosts_per_leaf: 4,
            spines: 2,
            cables_per_spine: 1,
            cards: HostCards::ONE,
            host,
            uplink,
        },
        Topology::FatTree { k: 4, hosts_per_edge: 2, host, uplink },
    ]
}

/// Returns SACK blocks that identify the packet with the number `number`.
fn blocks(number: u64) -> SackBlocks {
    [(number, number + 1), (0, 0), (0, 0), (0, 0)]
}

/// Results of a test run: numbers of lost packets, of lost packets with SACK blocks and of losses
/// by cause, and arrivals (time, packet).
#[derive(PartialEq)]
struct Fate {
    lost: u64,
    lost_with_sack: u64,
    causes: [u64; Cause::ALL.len()],
    arrivals: Vec<(Time, u64)>,
}

/// Sends `packets` random packets, every third with SACK blocks, and runs until none is in flight.
fn play(config: &FabricConfig, packets: u64) -> Fate {
    let mut fabric = Fabric::build(config, 5).expect("a fabric");
    let changes = fabric.links.len() as u32;
    let mut events = Tournament::new(fabric.links.len() + 1, 5);
    let change_key = |fabric: &Fabric| match fabric.next_change() {
        Time::NEVER => Key::NEVER,
        at => Key::new(at, Class::Change),
    };
    events.set(changes, change_key(&fabric));
    let mut arrivals = Vec::new();
    let mut random = Stream::new(5, "fabric");
    let hosts = u64::from(fabric.graph.hosts);
    let (mut now, mut with_sack) = (Time::ZERO, 0u64);
    let (mut arrived, mut arrived_with) = (0u64, 0u64);
    let mut number = 0;
    loop {
        let (key, source) = events.winner();
        if number < packets && (key == Key::NEVER || key.time() > now) {
            let from = HostId(random.below(hosts) as u32);
            // Half of all packets are for host 0, so that the queue of its port overflows.
            let to = if from.0 > 0 && number % 2 == 0 { 0 } else { (from.0 + 1) % hosts as u32 };
            let sack = (number % 3 == 0).then(|| blocks(number));
            with_sack += u64::from(sack.is_some());
            let mut packet = Packet { seq: number, ip_len: 1500, ..Packet::blank(HostId(to)) };
            packet.hash = fabric.flow_hash(from, HostId(to), random.next_u64());
            fabric.send(now, from, packet, sack, &mut events);
            number += 1;
            now += random.within(Span::from_us(4));
            continue;
        }
        if key == Key::NEVER {
            break;
        }
        now = now.max(key.time());
        if source == changes {
            fabric.change(key.time(), &mut events);
            events.set(changes, change_key(&fabric));
            continue;
        }
        if let Some(slot) = fabric.fire::<false, false>(key, source, &mut events) {
            let packet = fabric.pool.remove(slot);
            arrived += 1;
            arrivals.push((now, packet.seq));
            assert_eq!(packet.sack != NO_SACK, packet.seq % 3 == 0);
            if let Some(sack) = fabric.pool.take_sack(packet.sack) {
                assert_eq!(sack, blocks(packet.seq), "another packet's blocks");
                arrived_with += 1;
            }
        }
        let under_way = fabric.pool.in_use() as u64;
        assert_eq!(fabric.tally.sent, fabric.tally.delivered + fabric.tally.dropped + under_way);
        assert_eq!(under_way, fabric.links.iter().map(|l| l.held() as u64).sum::<u64>());
        assert!(fabric.pool.sacks_in_use() as u64 <= under_way);
    }
    assert_eq!((fabric.tally.sent, fabric.tally.delivered), (packets, arrived));
    assert_eq!((fabric.pool.in_use(), fabric.pool.sacks_in_use()), (0, 0));
    let lost: u64 = fabric.links.iter().map(|l| l.lost()).sum();
    assert_eq!(lost, fabric.tally.dropped);
    let of = |cause| fabric.links.iter().map(|l| l.account().lost_to(cause)).sum();
    let causes = Cause::ALL.map(of);
    assert_eq!(causes.iter().sum::<u64>(), lost);
    Fate { lost, lost_with_sack: with_sack - arrived_with, causes, arrivals }
}

#[test]
fn packets_and_their_sack_blocks_are_conserved_at_every_step() {
    for topology in topologies() {
        for limit in [Limit::Packets(2), Limit::Bytes(9_000), Limit::Packets(1_000_000)] {
            for (reference, routing) in
                [(false, RoutingConfig::Ecmp(Ecmp)), (true, RoutingConfig::RoundRobin(RoundRobin))]
            {
                let config = FabricConfig {
                    reference_ports: reference,
                    routing,
                    ..config(topology.clone(), limit)
                };
                let Fate { lost, lost_with_sack, causes, .. } = play(&config, 3_000);
                assert_eq!((causes[0], &causes[1..]), (lost, &[0; 6][..]));
                if limit != Limit::Packets(1_000_000) {
                    assert!(lost > 100 && lost_with_sack > 30, "{lost} {lost_with_sack}");
                }
            }
        }
    }
}

/// Returns faults of all kinds on random links, at random times.
fn some_faults(random: &mut Stream, links: u32) -> Vec<Fault> {
    let mut at = |us: u64| Time::ZERO + Span::from_us(random.below(us));
    let flapping = Some(Flapping { period: Span::from_us(600), down: Span::from_us(200) });
    let effects = [
        Effect::Loss(LossModel::bursty(0.2, 3.0)),
        Effect::Degrade(Degraded::Share(0.3)),
        Effect::Delay { extra: Span::from_us(30), jitter: Span::from_us(20) },
        Effect::Down { reroute: Span::from_us(300), flapping: None },
        Effect::Down { reroute: Span::from_us(100), flapping },
    ];
    let times: Vec<_> = effects.iter().map(|_| (at(2_000), at(6_000))).collect();
    let mut faults = Vec::new();
    for (effect, (from, until)) in effects.into_iter().zip(times) {
        let links = (0..links).filter(|_| random.below(4) == 0).collect();
        faults.push(Fault { links, effect, from, until: from.max(until) });
    }
    faults
}

#[test]
fn faults_do_the_same_to_every_packet_whatever_the_kind_of_ports() {
    let mut seen = [0; Cause::ALL.len()];
    for (topology, seed) in topologies().into_iter().cycle().zip(0..24) {
        let mut config = config(topology, Limit::Packets(20));
        let links = Fabric::build(&config, 5).expect("a fabric").links.len() as u32;
        config.faults = some_faults(&mut Stream::new(seed, "faults"), links);
        let eager = play(&config, 2_000);
        let reference = play(&FabricConfig { reference_ports: true, ..config }, 2_000);
        assert!(eager == reference, "seed {seed}");
        seen.iter_mut().zip(eager.causes).for_each(|(sum, n)| *sum += n);
    }
    // The queue discipline is drop-tail, so that there are no early drops.
    assert!(seen[..Cause::Early as usize].iter().all(|&n| n > 500), "{seen:?}");
    assert_eq!(seen[Cause::Early as usize..], [0; 3]);
}

#[test]
fn a_fault_moves_nothing_of_what_unconcerned_links_lose() {
    let [star, ..] = topologies();
    let lossy = |link| Fault {
        links: vec![link],
        effect: Effect::Loss(LossModel::independent(0.1)),
        from: Time::ZERO,
        until: Time::NEVER,
    };
    // Only host 3 sends to host 4, over links 6 and 9.
    let to_host_4 = |faults| {
        let config = FabricConfig { faults, ..config(star.clone(), Limit::Packets(1_000)) };
        let arrivals = play(&config, 3_000).arrivals;
        let mut random = Stream::new(5, "fabric");
        let from: Vec<u64> = (0..3_000)
            .map(|_| {
                let from = random.below(6);
                random.next_u64();
                random.next_u64();
                from
            })
            .collect();
        let mut seen: Vec<u64> = arrivals.into_iter().map(|a| a.1).collect();
        seen.retain(|&n| n % 2 == 1 && from[n as usize] == 3);
        seen.sort_unstable();
        seen
    };
    let alone = to_host_4(vec![lossy(6)]);
    assert!(alone.len() > 100);
    assert_eq!(alone, to_host_4(vec![lossy(6), lossy(0), lossy(11)]));
    assert_ne!(alone, to_host_4(vec![lossy(9)]));
}

#[test]
fn the_ideal_time_grows_with_bytes_and_distance() {
    let [_, leaf_spine, _] = topologies();
    let fabric = Fabric::build(&config(leaf_spine, Limit::Packets(9)), 1).expect("a fabric");
    let time = |to, bytes| fabric.ideal_time(HostId(0), HostId(to), bytes, 1448, 52);
    for bytes in [0, 1, 1_447, 1_448, 1_449, 100_000] {
        assert!(time(1, bytes) < time(5, bytes), "{bytes} B: two hops and four");
        assert!(time(5, bytes) <= time(5, bytes + 1), "{bytes} B and one more");
    }
    // There are 69 full packets and one of 88 + 52 + 38 B; this short packet waits for the last
    // full one.
    let wire = |bytes: u64| Span::from_ns(8 * bytes);
    assert_eq!(time(1, 100_000), wire(1538) * 70 + wire(178) + Span::from_us(2));
    // An empty message is one packet with headers only.
    assert_eq!(time(1, 0), wire(90) * 2 + Span::from_us(2));
}
