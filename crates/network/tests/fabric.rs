//! A fabric without transport: packets and their SACK blocks are conserved at every step, and each
//! packet keeps to its path.

use eastwest_engine::order::Key;
use eastwest_engine::random::Stream;
use eastwest_engine::tournament::Tournament;
use eastwest_network::config::{
    CableConfig, FabricConfig, Limit, QueueConfig, RoutingConfig, SchedulerConfig, Topology,
};
use eastwest_network::fabric::Fabric;
use eastwest_types::{HostId, NO_SACK, Packet, Rate, SackBlocks, Span, Time};

fn cable(rate: Rate) -> CableConfig {
    CableConfig { rate, delay: Span::from_us(1) }
}

fn config(topology: Topology, limit: Limit) -> FabricConfig {
    FabricConfig {
        topology,
        mtu: 1500,
        framing: 38,
        min_frame: 84,
        switch_queue: QueueConfig::DropTail(limit),
        host_queue: QueueConfig::DropTail(Limit::Packets(30)),
        scheduler: SchedulerConfig::Fifo,
        routing: RoutingConfig::Ecmp,
        processing_jitter: Span::from_us(12),
        reference_ports: false,
    }
}

fn topologies() -> [Topology; 3] {
    let (host, uplink) = (cable(Rate::gbit(1)), cable(Rate::gbit(1)));
    [
        Topology::Star { hosts: 6, host },
        Topology::LeafSpine {
            leaves: 3,
            hosts_per_leaf: 4,
            spines: 2,
            cables_per_spine: 1,
            host,
            uplink,
        },
        Topology::FatTree { k: 4, hosts_per_edge: 2, host, uplink },
    ]
}

/// Blocks that name the packet they belong to.
fn blocks(number: u64) -> SackBlocks {
    [(number, number + 1), (0, 0), (0, 0), (0, 0)]
}

/// Sends packets at random, every third with SACK blocks, and runs until all are gone; returns how
/// many of each kind were lost.
fn play(config: &FabricConfig, packets: u64) -> (u64, u64) {
    let mut fabric = Fabric::build(config, 5).expect("a fabric");
    let mut events = Tournament::new(fabric.links.len(), 5);
    let mut random = Stream::new(5, "fabric");
    let hosts = u64::from(fabric.graph.hosts);
    let (mut now, mut with_sack) = (Time::ZERO, 0u64);
    let (mut arrived, mut arrived_with) = (0u64, 0u64);
    let mut number = 0;
    loop {
        let (key, source) = events.winner();
        if number < packets && (key == Key::NEVER || key.time() > now) {
            let from = HostId(random.below(hosts) as u32);
            // half of all packets go to host 0, whose port overflows
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
        if let Some(packet) = fabric.fire::<false>(key, source, &mut events) {
            arrived += 1;
            assert_eq!(packet.sack != NO_SACK, packet.seq % 3 == 0);
            if let Some(sack) = fabric.pool.take_sack(packet.sack) {
                assert_eq!(sack, blocks(packet.seq), "another packet's blocks");
                arrived_with += 1;
            }
        }
        let under_way = fabric.pool.in_use() as u64;
        assert_eq!(fabric.sent, fabric.delivered + fabric.dropped + under_way);
        assert_eq!(under_way, fabric.links.iter().map(|l| l.held() as u64).sum::<u64>());
        assert!(fabric.pool.sacks_in_use() as u64 <= under_way);
    }
    assert_eq!((fabric.sent, fabric.delivered), (packets, arrived));
    assert_eq!((fabric.pool.in_use(), fabric.pool.sacks_in_use()), (0, 0));
    let lost: u64 = fabric.links.iter().flat_map(|l| l.drops()).sum();
    assert_eq!(lost, fabric.dropped);
    (lost, with_sack - arrived_with)
}

#[test]
fn packets_and_their_sack_blocks_are_conserved_at_every_step() {
    for topology in topologies() {
        for limit in [Limit::Packets(2), Limit::Bytes(9_000), Limit::Packets(1_000_000)] {
            for (reference, routing) in
                [(false, RoutingConfig::Ecmp), (true, RoutingConfig::RoundRobin)]
            {
                let config = FabricConfig {
                    reference_ports: reference,
                    routing,
                    ..config(topology.clone(), limit)
                };
                let (lost, lost_with_sack) = play(&config, 3_000);
                if limit != Limit::Packets(1_000_000) {
                    assert!(lost > 100 && lost_with_sack > 30, "{lost} {lost_with_sack}");
                }
            }
        }
    }
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
    // 69 full packets and one of 88 + 52 + 38 B: the short one waits for the last full one
    let wire = |bytes: u64| Span::from_ns(8 * bytes);
    assert_eq!(time(1, 100_000), wire(1538) * 70 + wire(178) + Span::from_us(2));
    // an empty message is one packet of headers
    assert_eq!(time(1, 0), wire(90) * 2 + Span::from_us(2));
}
