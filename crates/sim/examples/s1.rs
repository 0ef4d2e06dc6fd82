//! Example program for profilers: runs scenario S1. Usage: `cargo run --release --example s1
//! [ARGUMENT]…`. The arguments are
//!
//! * `short`, `x10`, `reference`, `capture`: variants of the run;
//! * `classic` or `linux`: this profile of TCP, with an ACK for each segment;
//! * `step`, `red`, `red-silent`, `red-now`, `pie`, `codel` or `fq-codel`: this queue discipline at
//!   all ports;
//! * `eee` or `coalescing`: links that sleep;
//! * `pfc` and `qcn`: data-centre bridging at all ports.

use eastwest_network::cards::CardsConfig;
use eastwest_network::config::{FabricConfig, PortSet};
use eastwest_network::dcb::{DcbConfig, PfcConfig, QcnConfig};
use eastwest_network::energy::eee::Trigger;
use eastwest_network::energy::{
    AlwaysOn, ClassEnergy, Coalescing, EnergyConfig, LinkPolicy, Standard,
};
use eastwest_network::queue::{
    CoDelConfig, DropTail, FqCoDelConfig, Level, PieConfig, Protection, QueueConfig, RedConfig,
    Signal, Spread, StepMarkingConfig,
};
use eastwest_network::routing::{Ecmp, EqualPaths, RoutingConfig};
use eastwest_network::scheduler::SchedulerConfig;
use eastwest_network::topology::{CableConfig, HostCards, Topology};
use eastwest_sim::plan::*;
use eastwest_sim::scenario::{CaptureConfig, MeasureConfig};
use eastwest_sim::switch_power::SwitchPower;
use eastwest_sim::world::World;
use eastwest_transport::congestion::CongestionKind;
use eastwest_transport::tcp::config::*;
use eastwest_types::*;
use eastwest_workload::stride::*;
use eastwest_workload::*;

/// The memory allocator that the Python extension also uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Returns the energy settings of all links: standard Energy-Efficient Ethernet, or coalescing of
/// ten packets for at most 12 µs.
fn energy(args: &[String]) -> EnergyConfig {
    let named = |name: &str| args.iter().any(|a| a == name);
    let policy = if named("eee") {
        LinkPolicy::Standard(Standard)
    } else if named("coalescing") {
        let (hold, trigger) = (Span::from_us(12), Trigger::Packets(10));
        LinkPolicy::Coalescing(Coalescing { hold, trigger })
    } else {
        LinkPolicy::AlwaysOn(AlwaysOn)
    };
    let class = ClassEnergy { policy, ..EnergyConfig::default().host };
    EnergyConfig { host: class, fabric: class }
}

/// Returns the settings of PFC and QCN at all ports. Each port has a buffer of 150 KB.
fn dcb(args: &[String]) -> DcbConfig {
    let named = |name: &str| args.iter().any(|a| a == name);
    let pfc = PfcConfig {
        shared: None,
        priorities: 1,
        buffer: 150_000,
        xoff: 120_000,
        xon: 117_000,
        quanta: u16::MAX,
        refresh: u16::MAX / 2,
        response: Span::from_ns(3_072),
        watchdog: None,
    };
    let qcn = QcnConfig {
        priorities: 1,
        q_eq: 33_000,
        weight: 2.0,
        sample: 150_000,
        jitter: 0.15,
        cnm_priority: 7,
        cnm_bytes: 64,
        gain: 1.0 / 128.0,
        min_decrease: 0.5,
        min_rate: Rate(100_000),
        byte_limit: 150_000,
        timer: Span::from_ms(15),
        threshold: 5,
        active_increase: Rate::mbit(5),
        hyper_increase: Rate::mbit(50),
        extra_fast_recovery: true,
    };
    DcbConfig { pfc: named("pfc").then_some(pfc), qcn: named("qcn").then_some(qcn) }
}

/// Returns TCP settings of scenario S1: NewReno with SACK, an ACK for each segment.
fn tcp() -> TcpConfig {
    TcpConfig {
        segment: 1448,
        initial_window: 10,
        max_window: 1 << 20,
        min_rto: Span::from_ms(200),
        max_rto: Span::from_secs(120),
        initial_rto: Span::from_ms(200),
        granularity: Span::from_us(10),
        sack: true,
        timestamps: true,
        ack_every: 1,
        delayed_ack_timeout: Span::from_ms(40),
        limited_transmit: true,
        idle_restart: true,
        congestion: CongestionKind::NewReno,
        custom: None,
        max_retries: 15,
        time_wait: Span::from_secs(1),
        timers: Default::default(),
        recovery: Default::default(),
        receiver: Default::default(),
        offload: Default::default(),
        small_queues: Default::default(),
        nagle: false,
        rules: Default::default(),
        algorithms: Default::default(),
    }
}

/// Returns the TCP settings of scenario S1 with the rules of a profile.
fn tcp_of(profile: &str) -> TcpConfig {
    let own = tcp();
    let rules =
        eastwest_transport::tcp::read_config::profile(profile).expect("there is such a profile");
    TcpConfig {
        congestion: own.congestion,
        receiver: own.receiver,
        recovery: rules.recovery,
        timers: rules.timers,
        rules: rules.rules,
        ..own
    }
}

/// Returns the queue discipline of all ports that the arguments select, with thresholds that the
/// queues of S1 reach.
fn queue(args: &[String]) -> QueueConfig {
    let limit = Limit::Packets(200);
    let signal = Signal { ecn: true, protection: Protection::Default };
    let named = |name: &str| args.iter().any(|a| a == name);
    if named("step") {
        let (mark_from, protection) = (Limit::Packets(66), Protection::Bypass);
        QueueConfig::StepMarking(StepMarkingConfig {
            mark_from,
            at_dequeue: false,
            protection,
            limit,
        })
    } else if named("red") || named("red-silent") || named("red-now") {
        // `red-silent` averages the queue but never signals: it shows the cost of RED without the
        // reaction of TCP. `red-now` uses the current queue length instead of the average.
        let (min, max) = if named("red-silent") { (1e6, 2e6) } else { (50.0, 150.0) };
        QueueConfig::Red(RedConfig {
            min: Level::Packets(min),
            max: Level::Packets(max),
            weight: if named("red-now") { 1.0 } else { 0.002 },
            max_probability: 0.1,
            gentle: true,
            spread: Spread::Even,
            mean_packet: 1000,
            signal,
            mark_below: None,
            limit,
        })
    } else if named("pie") {
        QueueConfig::Pie(PieConfig {
            target: Span::from_us(500),
            update: Span::from_us(500),
            alpha: 4.0,
            beta: 40.0,
            burst: Span::from_ms(5),
            mark_up_to: 0.1,
            signal,
            limit,
        })
    } else if named("codel") || named("fq-codel") {
        let (target, interval) = (Span::from_us(500), Span::from_ms(10));
        let codel = CoDelConfig { target, interval, signal, limit };
        match named("codel") {
            true => QueueConfig::CoDel(codel),
            false => QueueConfig::FqCoDel(FqCoDelConfig { flows: 1024, quantum: 1500, codel }),
        }
    } else {
        QueueConfig::DropTail(DropTail(limit))
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let reference = args.iter().any(|a| a == "reference");
    let short = args.iter().any(|a| a == "short");
    let profile = args.iter().find(|a| ["classic", "linux"].contains(&a.as_str()));
    let big = args.iter().any(|a| a == "x10");
    let (leaves, spines, bytes) = match (big, short) {
        (true, true) => (40, 8, 20_000),
        (true, false) => (40, 8, 1_000_000),
        (false, true) => (4, 2, 200_000),
        (false, false) => (4, 2, 4_000_000),
    };
    let hosts = leaves * 40;
    let cable = |rate| CableConfig { rate, delay: Span::from_us(5) };
    let queue = queue(&args);
    let cluster = Cluster { rack_of: (0..hosts).map(|h| h / 40).collect(), seed: 1 };
    let stride = StrideConfig {
        stride: 19,
        count: 8,
        bytes,
        start_window: Span::from_ms(1),
        class: ClassId(0),
    };
    // capture at the port from the first leaf switch to the fourth host
    let ports = if args.iter().any(|a| a == "capture") { [(hosts, 3)].into() } else { [].into() };
    let capture = CaptureConfig { ports, packets: 1_000_000, ..CaptureConfig::default() };
    let plan = Plan {
        seed: 1,
        until: Time::ZERO + Span::from_secs(300),
        fabric: FabricConfig {
            topology: Topology::LeafSpine {
                leaves,
                hosts_per_leaf: 40,
                spines,
                cables_per_spine: 1,
                cards: HostCards::ONE,
                host: cable(Rate::gbit(1)),
                uplink: cable(Rate::gbit(10)),
            },
            cards: CardsConfig::default(),
            mtu: 1500,
            framing: 0,
            min_frame: 0,
            switch_queue: queue.clone(),
            host_queue: queue,
            shared_buffer: None,
            scheduler: SchedulerConfig::Fifo,
            dcb: dcb(&args),
            routing: RoutingConfig::Ecmp(Ecmp),
            equal_paths: EqualPaths::default(),
            energy: energy(&args),
            measured: PortSet::default(),
            processing_jitter: Span::from_us(12),
            reference_ports: reference,
            telemetry: false,
            nics_read_queues: false,
            faults: Vec::new(),
        },
        switch_power: SwitchPower::default(),
        tcp: profile.map_or_else(tcp, |name| tcp_of(name)),
        tcp_overrides: Vec::new(),
        classes: vec![ClassPlan { name: "bulk".into(), dscp: 0 }],
        further: Default::default(),
        hosts: None,
        workloads: vec![WorkloadPlan {
            transport: Transport::Tcp,
            name: "stride".into(),
            background: false,
            workload: Workload::Stride(Stride::new(stride, &cluster).unwrap()),
        }],
        measure: MeasureConfig { events: 500_000, capture, ..MeasureConfig::default() },
    };
    let mut world = World::new(plan).unwrap();
    world.run(&mut |_| true).unwrap();
    let p = world.progress();
    println!(
        "hops {} events {} simulated {} digest {}",
        p.packet_hops,
        p.events,
        p.now,
        world.digest()
    );
}
