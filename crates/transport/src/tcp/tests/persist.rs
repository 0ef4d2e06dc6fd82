//! Tests of a closed window. Receivers in the simulation never close their window, so the test
//! delivers packets with a zero window to the client that the server has not sent.

use super::super::Notice;
use super::super::config::TcpConfig;
use super::net::{Net, SEGMENT, settings};
use eastwest_types::{EndpointId, HostId, NO_SACK, Packet, Side, Span, flag};

/// Delivers to the client an ACK of all that it has sent, with the receive window `window`.
fn window(net: &mut Net, window: u32) {
    let (una, next) = (net.end(Side::Client).acknowledged(), net.end(Side::Client).stream.next);
    assert_eq!(una, next);
    let packet = Packet {
        born: net.now(),
        seq: 1,
        ack: next,
        dst_endpoint: net.client,
        dst: HostId(0),
        window,
        ts_echo_us: 0,
        sack: NO_SACK,
        hash: 0,
        ip_len: 52,
        payload: 0,
        flags: flag::ACK,
        tos: 0,
        notes: 0,
    };
    net.stack.on_packet(net.now(), &packet, None, &mut net.wires);
}

/// Returns the times in ms at which the client sent window probes.
fn probes(net: &Net) -> Vec<u64> {
    let sent = net.wires.log.iter().filter(|s| s.from == Side::Client && !s.is_data());
    sent.map(|s| s.at.0 / 1_000_000_000).collect()
}

#[test]
fn a_closed_window_is_probed_until_it_opens() {
    let mut net = Net::established(settings());
    window(&mut net, 0);
    net.wires.delay = Span::from_secs(100); // the server's answers do not arrive
    net.write_segments(3);
    net.run_to(1_900);
    // The first probe is sent after 200 ms, the minimum timeout; then the interval doubles each
    // time.
    assert_eq!(probes(&net), [220, 620, 1_420]);
    assert_eq!(net.end(Side::Client).outstanding(), 0);
    window(&mut net, 1 << 20);
    assert_eq!(net.end(Side::Client).outstanding(), 3 * SEGMENT);
    assert_eq!(net.stack.totals().timeouts, 0);
}

#[test]
fn a_server_answers_a_probe_with_its_window() {
    let mut net = Net::established(settings());
    window(&mut net, 0);
    net.write_segments(3);
    net.run_to(300);
    // The probe is sent at 220 ms, and its answer opens the window at 230 ms.
    assert_eq!(probes(&net), [220]);
    let data: Vec<u64> =
        (net.wires.log.iter().filter(|s| s.is_data())).map(|s| s.at.0 / 1_000_000_000).collect();
    assert_eq!(data, [230, 230, 230]);
    assert_eq!(net.end(Side::Server).received(), 3 * SEGMENT);
}

#[test]
fn probes_that_nobody_answers_end_the_connection() {
    let mut net = Net::established(TcpConfig { max_retries: 2, ..settings() });
    window(&mut net, 0);
    net.wires.delay = Span::from_secs(100);
    net.write_segments(1);
    net.run_to(3_000);
    assert_eq!(probes(&net), [220, 620]);
    let failed: Vec<EndpointId> =
        net.wires.notices.iter().filter(|n| n.2 == Notice::Failed).map(|n| n.1).collect();
    assert_eq!(failed, [net.client]);
}
