//! Random dialogues over a network that loses, reorders and duplicates packets. Checks that every
//! byte arrives once and in order, that the connection closes, and that the counters agree with the
//! packets. Properties of single packets and events are asserted in `net`.

use super::super::Notice;
use super::super::config::TcpConfig;
use super::super::offload::OffloadRules;
use super::super::rules::{
    AckRule, PrrRule, RackRule, ReceiverRules, RecoveryRules, RtoRule, TimerRules,
};
use super::net::{Fate, Net, settings};
use crate::congestion::CongestionKind;
use crate::congestion::rules::{
    CongestionRules, Counting, EcnRule, EcnRules, HyStartRule, ReducedFrom,
};
use crate::congestion::small_queue::SmallQueueRules;
use eastwest_engine::random::Stream;
use eastwest_types::{Rate, Side, Span};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    loss_percent: u64,
    late_percent: u64,
    twice_percent: u64,
    rate: Option<Rate>,
    /// Writes of the applications: whether at the client, number of bytes, ms since the previous
    /// write.
    writes: Vec<(bool, u64, u64)>,
    sack: bool,
    timestamps: bool,
    limited_transmit: bool,
    ack_every: u32,
    max_window: u64,
    timers: TimerRules,
    recovery: RecoveryRules,
    receiver: ReceiverRules,
    nagle: bool,
    offload: bool,
    small_queues: bool,
    control: (CongestionKind, CongestionRules),
}

/// Generates congestion control algorithms with all mechanisms that can be combined with them.
fn control() -> impl Strategy<Value = (CongestionKind, CongestionRules)> {
    let kind = prop_oneof![
        2 => Just(CongestionKind::NewReno),
        1 => Just(CongestionKind::Dctcp),
        2 => Just(CongestionKind::Cubic),
        1 => Just(CongestionKind::Bbr),
        1 => Just(CongestionKind::Bbr3),
    ];
    let counting = prop_oneof![
        (1..9u16).prop_map(|limit| Counting::Bytes { limit }),
        Just(Counting::Acks),
        Just(Counting::Segments),
    ];
    let hystart =
        prop_oneof![Just(HyStartRule::Off), Just(HyStartRule::Linux), Just(HyStartRule::PlusPlus)];
    (kind, counting, hystart, any::<[bool; 6]>()).prop_map(|(kind, counting, hystart, on)| {
        let rule = if on[0] || kind == CongestionKind::Dctcp { EcnRule::On } else { EcnRule::Off };
        let rules = CongestionRules {
            counting,
            reduced_from: if on[1] { ReducedFrom::Window } else { ReducedFrom::Flight },
            idle_decay: on[2],
            hystart,
            pacing: on[3],
            ecn: EcnRules { rule, fallback: on[4], all_packets: on[5] },
        };
        (kind, rules)
    })
}

fn receiver() -> impl Strategy<Value = ReceiverRules> {
    (any::<[bool; 2]>(), prop::option::of(1000..70_000u64)).prop_map(|(on, from)| ReceiverRules {
        acks: if on[0] { AckRule::Linux } else { AckRule::Count },
        compress: on[0] && on[1],
        window_from: from,
    })
}

fn timers() -> impl Strategy<Value = TimerRules> {
    any::<[bool; 3]>().prop_map(|[linux, ticks, ack_ends_backoff]| TimerRules {
        ack_ends_backoff,
        rto: if linux { RtoRule::Linux } else { RtoRule::Rfc6298 },
        ticks,
        ..TimerRules::default()
    })
}

fn recovery() -> impl Strategy<Value = RecoveryRules> {
    let prr = prop_oneof![Just(PrrRule::Off), Just(PrrRule::Rfc6937), Just(PrrRule::Linux)];
    let rack = prop_oneof![Just(RackRule::Off), Just(RackRule::Rfc8985), Just(RackRule::Linux)];
    (prr, rack, 1..6u32, any::<[bool; 9]>()).prop_map(|(prr, rack, n, on)| RecoveryRules {
        prr,
        rack,
        probes: rack != RackRule::Off && on[1],
        dsack: on[2],
        frto: on[3],
        undo: on[4],
        one_cut: on[5],
        reordering: n,
        adapt_reordering: on[6],
        late_sacks: on[7],
        partial_acks: on[8] || prr != PrrRule::Off,
        ..RecoveryRules::default()
    })
}

fn case() -> impl Strategy<Value = Case> {
    let network = (any::<u64>(), 0..=20u64, 0..=20u64, 0..=10u64, prop::option::of(5..100u64));
    let writes = prop::collection::vec((any::<bool>(), 1..30_000u64, 0..40u64), 1..8);
    let window = prop_oneof![Just(1000u64), Just(4500), Just(65_535), Just(1 << 20)];
    let tcp = (any::<bool>(), any::<bool>(), any::<bool>(), 1..4u32, window);
    let rules = (receiver(), any::<[bool; 3]>(), control());
    (network, writes, tcp, timers(), recovery(), rules).prop_map(
        |(n, writes, t, timers, recovery, (receiver, [nagle, offload, small_queues], control))| {
            Case {
                offload,
                small_queues,
                seed: n.0,
                loss_percent: n.1,
                late_percent: n.2,
                twice_percent: n.3,
                rate: n.4.map(Rate::mbit),
                writes,
                sack: t.0,
                timestamps: t.1,
                limited_transmit: t.2,
                ack_every: t.3,
                max_window: t.4,
                timers,
                nagle,
                control,
                receiver: ReceiverRules {
                    window_from: receiver.window_from.map(|w| w.min(t.4)),
                    ..receiver
                },
                // These recovery mechanisms need SACK.
                recovery: if t.0 {
                    recovery
                } else {
                    RecoveryRules {
                        rack: RackRule::Off,
                        probes: false,
                        dsack: false,
                        late_sacks: false,
                        ..recovery
                    }
                },
            }
        },
    )
}

fn net_of(case: &Case) -> Net {
    let mut net = Net::new(TcpConfig {
        sack: case.sack,
        timestamps: case.timestamps,
        limited_transmit: case.limited_transmit,
        ack_every: case.ack_every,
        max_window: case.max_window,
        min_rto: Span::from_ms(20),
        initial_rto: Span::from_ms(50),
        max_rto: Span::from_ms(400),
        max_retries: 100,
        timers: case.timers.clone(),
        recovery: case.recovery.clone(),
        receiver: case.receiver.clone(),
        nagle: case.nagle,
        offload: OffloadRules { on: case.offload, ..OffloadRules::default() },
        small_queues: SmallQueueRules { on: case.small_queues, ..SmallQueueRules::default() },
        congestion: case.control.0,
        rules: case.control.1,
        ..settings()
    });
    net.wires.rate = case.rate;
    let mut random = Stream::new(case.seed, "fate");
    let (loss, late, twice) = (case.loss_percent, case.late_percent, case.twice_percent);
    net.wires.fate = Box::new(move |_| {
        let (draw, by) = (random.below(100), Span::from_us(random.below(20_000)));
        if draw < loss {
            Fate::Drop
        } else if draw < loss + late {
            Fate::Late(by)
        } else if draw < loss + late + twice {
            Fate::Twice(by)
        } else if draw % 10 == 0 {
            Fate::Mark
        } else {
            Fate::Deliver
        }
    });
    net
}

fn check(case: &Case) {
    let mut net = net_of(case);
    net.open();
    let mut written = [0u64; 2];
    let mut ms = 0;
    for &(by_client, bytes, pause) in &case.writes {
        ms += pause;
        net.run_to(ms);
        let side = if by_client { Side::Client } else { Side::Server };
        net.write(side, bytes);
        written[side as usize] += bytes;
        let receiver = net.id(side.other());
        let there = net.stack.expect(receiver, written[side as usize]);
        assert!(!there, "cannot have arrived yet");
    }
    net.close(Side::Client);
    net.close(Side::Server);
    for _ in 0..3000 {
        ms += 100;
        net.run_to(ms);
        if net.told(Side::Client).iter().any(|n| n.1 == Notice::Closed) {
            break;
        }
    }
    let closed: Vec<Notice> = net.told(Side::Client).iter().map(|n| n.1).collect();
    assert_eq!(closed.iter().filter(|&&n| n == Notice::Closed).count(), 1, "stalled");
    for side in [Side::Client, Side::Server] {
        let sent = written[side as usize];
        assert_eq!(net.end(side.other()).received(), sent);
        let told = net.told(side.other());
        let delivered = told.iter().filter(|n| n.1 == Notice::Delivered).count();
        // If anything was written, there is at least one notice, about the last position.
        assert!((delivered > 0) == (sent > 0), "{told:?}");
    }
    let marked = net.wires.log.iter().filter(|s| s.is_again()).count();
    let syns = net.wires.log.iter().filter(|s| s.has(eastwest_types::flag::SYN)).count();
    assert_eq!(net.stack.totals().retransmits as usize, marked + syns - 2);
    // The payload that was sent for the first time is exactly what was written.
    let first: u64 =
        net.wires.log.iter().filter(|s| !s.is_again()).map(|s| u64::from(s.packet.payload)).sum();
    assert_eq!(first, written[0] + written[1]);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        rng_seed: RngSeed::Fixed(1), // the same dialogues every time
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_byte_arrives_once_and_the_connection_closes(case in case()) {
        check(&case);
    }
}

/// Returns a test case with few mechanisms: SACK, timestamps and undo.
fn simple(seed: u64, max_window: u64) -> Case {
    Case {
        seed,
        loss_percent: 0,
        late_percent: 0,
        twice_percent: 0,
        rate: None,
        writes: vec![],
        sack: true,
        timestamps: true,
        limited_transmit: false,
        ack_every: 1,
        max_window,
        timers: TimerRules::default(),
        recovery: RecoveryRules {
            undo: true,
            timestamp_clock: Span::from_us(1),
            ..RecoveryRules::default()
        },
        receiver: ReceiverRules::default(),
        nagle: false,
        offload: false,
        small_queues: false,
        control: (CongestionKind::NewReno, CongestionRules::default()),
    }
}

/// Checks a timeout whose first segment is delayed by pacing, and that is found spurious before the
/// segment is sent. The timer must continue for data that is really lost.
#[test]
fn the_timer_runs_on_while_pacing_holds_the_segment_back() {
    let case = simple(12_967_472_748_507_154_978, 4500);
    let writes = [
        (false, 6001, 12),
        (false, 3501, 31),
        (false, 1196, 21),
        (false, 6304, 7),
        (true, 8500, 2),
    ];
    let rules = CongestionRules {
        counting: Counting::Bytes { limit: 1 },
        pacing: true,
        ..CongestionRules::default()
    };
    check(&Case {
        loss_percent: 13,
        late_percent: 13,
        twice_percent: 3,
        writes: writes.to_vec(),
        recovery: RecoveryRules { frto: true, ..case.recovery.clone() },
        control: (CongestionKind::NewReno, rules),
        ..case
    });
}

/// Checks a timeout shorter than the delay of ACKs, which is undone. Its retransmission must not
/// count as in flight.
#[test]
fn the_copies_of_a_timeout_taken_back_are_not_under_way() {
    let case = simple(5_013_117_966_392_724_586, 1000);
    check(&Case { ack_every: 2, writes: vec![(false, 1, 13), (false, 1, 27)], ..case });
}
