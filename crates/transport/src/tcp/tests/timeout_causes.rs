//! Tests of the causes of retransmission timeouts: one dialogue for each cause, without other
//! timeouts.

use super::super::TimeoutCause;
use super::super::config::TcpConfig;
use super::super::rules::RackRule;
use super::net::{Fate, Net, SEGMENT, settings};
use eastwest_types::{Side, Span};

/// Asserts that timeouts of these causes, in these numbers, and no others have occurred.
fn assert_causes(net: &Net, expected: &[(TimeoutCause, u32)]) {
    let totals = net.stack.totals();
    let mut causes = [0; TimeoutCause::COUNT];
    for (cause, n) in expected {
        causes[*cause as usize] = *n;
    }
    assert_eq!(totals.causes, causes, "in the order of {:?}", TimeoutCause::NAMES);
    assert_eq!(totals.causes.iter().sum::<u32>(), totals.timeouts);
}

fn lost(config: TcpConfig, packets: &'static [usize], segments: u64) -> Net {
    let mut net = Net::established(config);
    net.lose(packets);
    net.write_segments(segments);
    net.run_to(6000);
    net
}

#[test]
fn a_syn_and_a_syn_ack() {
    for (side, cause) in [(Side::Client, TimeoutCause::Syn), (Side::Server, TimeoutCause::SynAck)] {
        let mut net = Net::new(settings());
        net.wires.fate =
            Box::new(
                move |s| if s.from == side && s.nth == 1 { Fate::Drop } else { Fate::Deliver },
            );
        net.open();
        net.write(Side::Client, 100);
        net.run_to(3000);
        // If the SYN-ACK is lost, both ends wait for an answer.
        let n = if cause == TimeoutCause::Syn { 1 } else { 2 };
        assert_causes(&net, &[(cause, n)]);
    }
}

#[test]
fn a_request() {
    let mut net = Net::established(settings());
    net.lose(&[1]);
    net.write(Side::Client, 64);
    net.run_to(3000);
    assert_causes(&net, &[(TimeoutCause::Request, 1)]);
}

#[test]
fn a_whole_window_and_a_whole_message() {
    assert_causes(
        &lost(settings(), &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 20),
        &[(TimeoutCause::FullWindow, 1)],
    );
    assert_causes(&lost(settings(), &[1, 2], 2), &[(TimeoutCause::FullWindow, 1)]);
    // The second window is lost: the segments that the ACKs of the first have released.
    let config = TcpConfig { initial_window: 2, ..settings() };
    assert_causes(&lost(config, &[3, 4, 5, 6], 20), &[(TimeoutCause::FullWindow, 1)]);
}

#[test]
fn the_end_of_a_message() {
    // Lost are the last segment; the last two; the third last, which two segments follow.
    for packets in [&[10][..], &[9, 10], &[8]] {
        assert_causes(&lost(settings(), packets, 10), &[(TimeoutCause::Tail, 1)]);
    }
    // The last six of ten segments are lost: less than a window, with nothing after them.
    assert_causes(&lost(settings(), &[5, 6, 7, 8, 9, 10], 10), &[(TimeoutCause::Tail, 1)]);
}

#[test]
fn too_few_duplicates() {
    // Two of ten segments arrive above the hole. Limited transmit would add more.
    let config = TcpConfig { limited_transmit: false, ..settings() };
    let net = lost(config, &[1, 2, 3, 4, 5, 6, 7, 8], 40);
    assert_causes(&net, &[(TimeoutCause::FewDuplicates, 1)]);
}

#[test]
fn a_retransmission() {
    // The fourth segment and its fast retransmission are lost. When the timer expires, all before
    // it is acknowledged.
    for rack in [RackRule::Off, RackRule::Rfc8985] {
        let mut config = settings();
        config.recovery.rack = rack;
        let mut net = Net::established(config);
        net.wires.fate = Box::new(|s| match s.from {
            Side::Client if s.packet.seq == 1 + 3 * SEGMENT && s.at.as_secs_f64() < 0.2 => {
                Fate::Drop
            }
            _ => Fate::Deliver,
        });
        net.write_segments(10);
        net.run_to(3000);
        assert_causes(&net, &[(TimeoutCause::LostRetransmission, 1)]);
    }
}

#[test]
fn a_row_of_timeouts_begins_with_its_cause() {
    assert_causes(
        &lost(settings(), &[1, 2, 3, 4], 1),
        &[(TimeoutCause::Request, 1), (TimeoutCause::LostRetransmission, 3)],
    );
}

/// Returns the number of whole windows of data that were lost, and the number of whole windows of
/// ACKs.
fn windows(net: &Net) -> (u32, u32) {
    let totals = net.stack.totals();
    (totals.lost_windows, totals.lost_ack_windows)
}

#[test]
fn windows_of_which_nothing_arrives() {
    assert_eq!(windows(&lost(settings(), &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 20)), (1, 0));
    // One segment arrives, so this is not a loss of the whole window.
    assert_eq!(windows(&lost(settings(), &[1, 2, 3, 4, 5, 6, 7, 8, 9], 10)), (0, 0));
    // A window of one segment counts once, together with its lost retransmissions.
    assert_eq!(windows(&lost(settings(), &[1, 2, 3, 4], 1)), (1, 0));
    // First all ACKs of a window are lost; then all but one, which acknowledges everything.
    for (from, to, expected) in [(1, 10, (0, 1)), (1, 9, (0, 0))] {
        let mut net = Net::established(settings());
        net.wires.fate = Box::new(move |s| match (s.from, s.nth) {
            (Side::Server, nth) if (from..=to).contains(&nth) => Fate::Drop,
            _ => Fate::Deliver,
        });
        net.write_segments(10);
        net.run_to(3000);
        assert_eq!(windows(&net), expected, "ACKs {from} to {to}");
    }
    // Packets that are only late do not count as lost.
    let mut net = Net::established(settings());
    net.wires.fate = Box::new(|s| match (s.from, s.nth) {
        (Side::Client, 1) => Fate::Late(Span::from_ms(430)),
        (Side::Client, 2) => Fate::Late(Span::from_ms(230)),
        _ => Fate::Deliver,
    });
    net.write(Side::Client, 100);
    net.run_to(3000);
    assert_eq!(windows(&net), (0, 0));
}

#[test]
fn a_fin() {
    let mut net = Net::established(settings());
    net.write_segments(1);
    net.run_to(100);
    net.lose(&[1]);
    net.close(Side::Client);
    net.run_to(3000);
    assert_causes(&net, &[(TimeoutCause::Fin, 1)]);
}

#[test]
fn what_was_only_late_is_no_loss() {
    // Original and retransmission are both late in a queue, which the echoed timestamp shows.
    let mut net = Net::established(settings());
    net.wires.fate = Box::new(|s| match (s.from, s.nth) {
        (Side::Client, 1) => Fate::Late(Span::from_ms(430)),
        (Side::Client, 2) => Fate::Late(Span::from_ms(230)),
        _ => Fate::Deliver,
    });
    net.write(Side::Client, 100);
    net.run_to(3000);
    assert_causes(&net, &[(TimeoutCause::Spurious, 1)]);

    // The original is lost, and its retransmissions are only late: the second of two timeouts was
    // spurious.
    let mut net = Net::established(settings());
    net.wires.fate = Box::new(|s| match (s.from, s.nth) {
        (Side::Client, 1) => Fate::Drop,
        (Side::Client, 2) => Fate::Late(Span::from_ms(500)),
        (Side::Client, 3) => Fate::Late(Span::from_ms(200)),
        _ => Fate::Deliver,
    });
    net.write(Side::Client, 100);
    net.run_to(3000);
    assert_causes(&net, &[(TimeoutCause::Request, 1), (TimeoutCause::Spurious, 1)]);

    // The ACK is delayed. Without timestamps, no packet shows that the timeout was spurious.
    let delayed = Span::from_ms(300);
    let config = TcpConfig { ack_every: 2, delayed_ack_timeout: delayed, ..settings() };
    let mut net = Net::established(TcpConfig { timestamps: false, ..config });
    net.write(Side::Client, 100);
    net.run_to(3000);
    assert_eq!(net.stack.totals().spurious_timeouts, 0);
    assert_causes(&net, &[(TimeoutCause::Spurious, 1)]);
}

#[test]
fn an_ack_lost_and_an_ack_late() {
    for (fate, cause) in [
        (Fate::Drop, TimeoutCause::Ack),
        // The retransmission, sent at 220 ms, is acknowledged first.
        (Fate::Late(Span::from_ms(300)), TimeoutCause::Ack),
        (Fate::Late(Span::from_ms(195)), TimeoutCause::Spurious),
    ] {
        let mut net = Net::established(settings());
        net.wires.fate = Box::new(move |s| match (s.from, s.nth) {
            (Side::Server, 1) => fate,
            _ => Fate::Deliver,
        });
        net.write(Side::Client, 100);
        net.run_to(3000);
        assert_causes(&net, &[(cause, 1)]);
    }
}
