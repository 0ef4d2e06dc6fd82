//! Tests of timers as in Linux: the formula of the timeout, ticks of the timer wheel, SYNs that are
//! retransmitted at a constant interval, and connections that fail after a time.

use super::super::Notice;
use super::super::config::TcpConfig;
use super::super::rules::{GiveUp, RtoRule, TimerRules};
use super::net::{Fate, Net, assert_dialogue, settings};
use eastwest_types::{Side, Span, Time};

fn linux(tick: Span) -> TcpConfig {
    TcpConfig {
        timers: TimerRules { rto: RtoRule::Linux, ticks: true, ..TimerRules::default() },
        granularity: tick,
        ..settings()
    }
}

/// Returns the times of the client's retransmissions in microseconds.
fn again_us(net: &Net) -> Vec<u64> {
    net.wires.log.iter().filter(|s| s.is_again()).map(|s| s.at.0 / 1_000_000).collect()
}

#[test]
fn the_timeout_is_the_round_trip_and_the_minimum_rounded_to_ticks_of_the_wheel() {
    // The timeout of 10 ms + 200 ms is 52.5 ticks of 4 ms: 53, set in tick 5. The wheel expires at
    // the tick after it, 5 + 53 + 1.
    let mut net = Net::established(linux(Span::from_ms(4)));
    net.lose(&[1, 2]);
    net.write(Side::Client, 100);
    net.run_to(2000);
    // The doubled timeout is 106 ticks from tick 59, on the wheel level of eight ticks: 165 / 8 + 1
    // = 21, times 8.
    assert_eq!(again_us(&net), [59 * 4_000, 168 * 4_000]);
    // With ticks of 1 ms: 210 ticks from tick 20, on the wheel level of eight ticks: 230 / 8 + 1 =
    // 29.
    let mut net = Net::established(linux(Span::from_ms(1)));
    net.lose(&[1]);
    net.write(Side::Client, 100);
    net.run_to(2000);
    assert_eq!(again_us(&net), [29 * 8_000]);
}

#[test]
fn a_minimum_below_the_tick_is_a_tick() {
    // With rto_min 1 ms and ticks of 4 ms, 10 ms + max(20, 1) ms are 8 ticks, from tick 5.
    let config = TcpConfig { min_rto: Span::from_ms(1), ..linux(Span::from_ms(4)) };
    let mut net = Net::established(config);
    net.lose(&[1]);
    net.write(Side::Client, 100);
    net.run_to(2000);
    assert_eq!(again_us(&net), [14 * 4_000]);
}

#[test]
fn delayed_acks_wait_for_a_tick_too() {
    let mut net = Net::established(TcpConfig { ack_every: 2, ..linux(Span::from_ms(4)) });
    net.write(Side::Client, 100);
    net.run_to(200);
    // The segment arrives in tick 6; its ACK is sent ten ticks later plus one.
    assert_dialogue(&net, Some(Side::Server), "68 < ack 101");
}

#[test]
fn the_first_syns_are_sent_again_at_an_even_pace() {
    let timers = TimerRules { linear_syns: 4, syn_retries: Some(6), ..TimerRules::default() };
    let mut net = Net::new(TcpConfig { timers, initial_rto: Span::from_secs(1), ..settings() });
    net.wires.fate = Box::new(|_| Fate::Drop);
    net.open();
    net.run_until(Time::ZERO + Span::from_secs(200));
    // tcp_syn_retries = 6 counts the timeouts that double: the last SYN is sent after 67 s, as
    // Linux documents.
    let at: Vec<u64> = net.wires.log.iter().map(|s| s.at.0 / 1_000_000_000_000).collect();
    assert_eq!(at, [0, 1, 2, 3, 4, 5, 7, 11, 19, 35, 67]);
    assert_eq!(net.told(Side::Client), [(131_000, Notice::Failed)]);
}

#[test]
fn a_connection_is_given_up_by_time() {
    // Three doublings from 200 ms are 3 s after the first retransmission at 220 ms. The timeouts at
    // 620, 1420 and 3020 ms are too early; at 6220 ms the connection fails.
    let timers = TimerRules { give_up: GiveUp::Time, ..TimerRules::default() };
    let mut net = Net::established(TcpConfig { timers, max_retries: 3, ..settings() });
    net.wires.fate = Box::new(|_| Fate::Drop);
    net.write(Side::Client, 100);
    net.run_to(60_000);
    assert_eq!(net.told(Side::Client), [(6220, Notice::Failed)]);
    assert_eq!(net.stack.totals().retransmits, 4);
}
