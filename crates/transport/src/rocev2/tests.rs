//! Tests of queue pairs over links with one rate and delay, which lose the packets that a test
//! selects.

use super::control::ControlSettings;
use super::dcqcn::tests::config as dcqcn;
use super::*;
use eastwest_types::{EndpointId, HostId, Packet, Rate, Span, Time, ecn, rocev2};
use std::collections::BTreeMap;

const RATE: Rate = Rate::gbit(10);
const DELAY: Span = Span::from_us(5);
const FRAMING: u32 = 38;

#[derive(Debug)]
enum Event {
    Packet(Packet),
    TimerTarget(TimerTarget),
}

/// Function that decides the fate of the n-th packet with payload.
type Fate = Box<dyn Fn(u64, &Packet) -> What>;

#[derive(Clone, Copy, PartialEq, Debug)]
enum What {
    Pass,
    Mark,
    Lose,
    /// A queue cuts the payload.
    Trim,
}

struct Net {
    now: Time,
    events: BTreeMap<(Time, u64), Event>,
    count: u64,
    busy_until: BTreeMap<u32, Time>,
    fate: Fate,
    data: u64,
    /// All packets in the order of sending, with their send times.
    sent: Vec<(Time, Packet)>,
    notices: Vec<(Time, EndpointId, Notice)>,
}

impl Sink for Net {
    fn send(&mut self, from: HostId, mut packet: Packet) {
        let busy = self.busy_until.entry(from.0).or_insert(Time::ZERO);
        *busy =
            (*busy).max(self.now) + RATE.time_for(u64::from(packet.ip_len) + u64::from(FRAMING));
        let arrives = *busy + DELAY;
        self.sent.push((self.now, packet));
        if packet.flags & rocev2::DATA != 0 {
            self.data += 1;
            match (self.fate)(self.data - 1, &packet) {
                What::Pass => {}
                What::Mark => packet.tos |= ecn::CE,
                What::Lose => return,
                What::Trim => packet.payload = 0,
            }
        }
        // A packet in flight carries only 32 bits of its positions.
        packet.seq = u64::from(packet.seq as u32);
        packet.ack = u64::from(packet.ack as u32);
        self.push(arrives, Event::Packet(packet));
    }

    fn takes_more_at(&mut self, Flow { from, .. }: Flow, _: u8, _: u32, sent: bool) -> Time {
        if sent { self.busy_until[&from.0] } else { self.now }
    }

    fn arm(&mut self, at: Time, target: TimerTarget) {
        self.push(at, Event::TimerTarget(target));
    }

    fn notify(&mut self, endpoint: EndpointId, notice: Notice) {
        self.notices.push((self.now, endpoint, notice));
    }
}

impl Net {
    fn push(&mut self, at: Time, event: Event) {
        self.count += 1;
        self.events.insert((at, self.count), event);
    }
}

struct Bench {
    stack: Stack,
    net: Net,
}

fn config() -> RoceV2Config {
    RoceV2Config {
        mtu: 1024,
        ack_every: 64,
        timeout: Span::from_us(1_000),
        retries: 7,
        time_wait: Span::from_ms(10),
        control: ControlSettings::None,
        cnp_dscp: 48,
        framing: FRAMING,
    }
}

fn bench(config: RoceV2Config, fate: impl Fn(u64, &Packet) -> What + 'static) -> Bench {
    let net = Net {
        now: Time::ZERO,
        events: BTreeMap::new(),
        count: 0,
        busy_until: BTreeMap::new(),
        fate: Box::new(fate),
        data: 0,
        sent: Vec::new(),
        notices: Vec::new(),
    };
    Bench { stack: Stack::new(config), net }
}

impl Bench {
    fn open(&mut self, client: u32, server: u32) -> EndpointId {
        let connect = Connect {
            nics: (client, server),
            client: HostId(client),
            server: HostId(server),
            hashes: (1, 2),
            rates: (RATE, RATE),
            dscp: 24,
            class: 0,
        };
        self.stack.open(self.net.now, &connect).expect("there is room")
    }

    /// Posts a message of `bytes` bytes at end `id`, and requests a notification when it has
    /// arrived.
    fn write(&mut self, id: EndpointId, bytes: u64) {
        self.stack.write(self.net.now, id, bytes, &mut self.net);
        let all = self.stack.end(id).written();
        self.stack.expect(id.peer(), all);
    }

    fn run(&mut self, until: Time) {
        while let Some(((at, _), event)) = self.net.events.pop_first() {
            if at > until {
                self.net.now = until;
                return;
            }
            self.net.now = at;
            match event {
                Event::Packet(packet) => self.stack.on_packet(at, &packet, &mut self.net),
                Event::TimerTarget(target) => self.stack.on_timer(at, target, &mut self.net),
            }
        }
    }

    fn finish(&mut self) {
        self.run(Time::ZERO + Span::from_secs(10));
    }

    fn data(&self) -> impl Iterator<Item = &(Time, Packet)> {
        self.net.sent.iter().filter(|(_, p)| p.flags & rocev2::DATA != 0)
    }

    fn delivered(&self) -> Vec<Time> {
        let delivered = self.net.notices.iter().filter(|n| n.2 == Notice::Delivered);
        delivered.map(|n| n.0).collect()
    }
}

/// Returns the transmission time of a full packet on the link.
fn packet_time() -> Span {
    RATE.time_for(1024 + 44 + 38)
}

#[test]
fn one_flow_has_the_rate_of_its_link_to_the_byte() {
    let mut b = bench(config(), |_, _| What::Pass);
    let id = b.open(0, 1);
    b.write(id, 1024 * 1000 + 1);
    b.finish();
    let last = RATE.time_for(1 + 44 + 38);
    let expected = Time::ZERO + Span(1000 * packet_time().0) + last + DELAY;
    assert_eq!(b.delivered(), [expected]);
    // There is an acknowledgement for every 64 packets, and one for the end of the message.
    let c = b.stack.totals();
    assert_eq!((c.packets, c.acks, c.naks, c.retransmits, c.timeouts), (1001, 16, 0, 0, 0));
    let acks = b.net.sent.iter().filter(|(_, p)| p.flags == rocev2::ACK);
    assert!(acks.clone().all(|(_, p)| p.ip_len == 48));
    assert!(b.data().all(|(_, p)| u32::from(p.ip_len) == u32::from(p.payload) + 44));
}

#[test]
fn packets_never_span_two_messages() {
    let mut b = bench(config(), |_, _| What::Pass);
    let id = b.open(0, 1);
    for bytes in [1500, 100, 2048] {
        b.write(id, bytes);
    }
    b.finish();
    let sizes: Vec<u16> = b.data().map(|(_, p)| p.payload).collect();
    assert_eq!(sizes, [1024, 476, 100, 1024, 1024]);
    let asking: Vec<bool> = b.data().map(|(_, p)| p.flags & rocev2::ASKS != 0).collect();
    assert_eq!(asking, [false, true, true, false, true]);
}

#[test]
fn a_lost_packet_is_sent_again_with_all_that_came_after_it() {
    let mut b = bench(config(), |n, _| if n == 10 { What::Lose } else { What::Pass });
    let id = b.open(0, 1);
    b.write(id, 1024 * 1000);
    b.finish();
    let c = b.stack.totals();
    // Packet 11 arrives one packet time after packet 10 would have arrived. Its NAK arrives after
    // the transmission time of an acknowledgement and two delays. All packets sent until then are
    // retransmitted.
    let nak = RATE.time_for(48 + 38);
    let lost =
        (11 * packet_time().0 + packet_time().0 + 2 * DELAY.0 + nak.0) / packet_time().0 - 10;
    // One more packet may be retransmitted: the one that is being handed over at that time.
    assert!((lost..=lost + 1).contains(&c.retransmits), "{} for {lost}", c.retransmits);
    assert_eq!((c.naks, c.timeouts, c.duplicates), (1, 0, 0));
    assert_eq!(c.out_of_sequence, c.retransmits - 1);
    assert_eq!(c.retransmitted_bytes, 1024 * c.retransmits);
    assert_eq!(b.stack.end(id.peer()).received(), 1024 * 1000);
}

#[test]
fn a_trimmed_packet_is_requested_at_once() {
    // the last packet, which a loss would leave to the timer
    let mut b = bench(config(), |n, _| if n == 59 { What::Trim } else { What::Pass });
    let id = b.open(0, 1);
    b.write(id, 1024 * 60);
    b.finish();
    let c = b.stack.totals();
    assert_eq!((c.naks, c.timeouts, c.retransmits, c.trimmed), (1, 0, 1, 1));
    // the header takes as long as a whole packet here; then a NAK, and the packet again
    let nak = RATE.time_for(48 + 38);
    let arrived = packet_time() * 61 + nak + DELAY * 3;
    let late = b.delivered()[0].since(Time::ZERO + arrived);
    assert!(late < Span::from_ns(10), "{late:?}");

    // cut twice: the second header is a NAK again; a header of old bytes is none
    let mut b = bench(config(), |n, p| match (p.seq, n) {
        (10_240, 0..60) => What::Trim,
        (0, 12) => What::Trim,
        _ => What::Pass,
    });
    let id = b.open(0, 1);
    b.write(id, 1024 * 60);
    b.finish();
    let c = b.stack.totals();
    assert_eq!(b.stack.end(id.peer()).received(), 1024 * 60);
    assert_eq!(c.timeouts, 0);
    assert!(c.trimmed >= 2 && c.naks == c.trimmed, "{c:?}");
}

#[test]
fn a_packet_lost_twice_and_the_last_of_all_wait_for_the_timer() {
    // The packet with this position is lost twice.
    let twice = |n: u64, p: &Packet| match (p.seq, n) {
        (10_240, 0..60) => What::Lose,
        _ => What::Pass,
    };
    let mut b = bench(config(), twice);
    let id = b.open(0, 1);
    b.write(id, 1024 * 60);
    b.finish();
    let c = b.stack.totals();
    // Only one NAK is sent until the missing packet arrives, however many packets follow it.
    assert_eq!((c.naks, c.timeouts), (1, 1));
    let delivered = b.delivered()[0];
    assert!(delivered > Time::ZERO + Span::from_us(1_000), "{delivered:?}");

    let mut b = bench(config(), |n, _| if n == 59 { What::Lose } else { What::Pass });
    let id = b.open(0, 1);
    b.write(id, 1024 * 60);
    b.finish();
    let c = b.stack.totals();
    // No acknowledgement was requested before the lost packet.
    assert_eq!((c.naks, c.timeouts, c.retransmits, c.duplicates), (0, 1, 60, 59));
}

#[test]
fn a_queue_pair_fails_after_too_many_timeouts() {
    let mut b = bench(config(), |_, _| What::Lose);
    let id = b.open(0, 1);
    b.write(id, 1000);
    b.finish();
    assert_eq!(b.stack.totals().timeouts, 8);
    let failed = b.net.notices.iter().find(|n| n.2 == Notice::Failed).expect("it is told");
    let sent = b.data().next().expect("one was sent").0;
    assert_eq!(failed.0.since(sent), Span::from_us(8_000));
    assert_eq!(b.net.notices.len(), 1);
}

#[test]
fn queue_pairs_of_a_host_take_turns() {
    let mut b = bench(config(), |_, _| What::Pass);
    let ids = [b.open(0, 1), b.open(0, 2), b.open(0, 3)];
    for id in ids {
        b.write(id, 1024 * 300);
    }
    b.finish();
    let times = b.delivered();
    let all = Time::ZERO + Span(900 * packet_time().0) + DELAY;
    assert_eq!(times[2], all);
    // The first queue pair has sent two packets before the others had any data.
    assert!(times[2].since(times[0]) <= packet_time() * 4, "{times:?}");
}

/// Sends the first packet of the queue pair of `first` again, as a late copy.
fn arrive_late(b: &mut Bench, first: EndpointId) {
    let mut late = Packet::blank(HostId(1));
    (late.flags, late.payload) = (rocev2::DATA | rocev2::ASKS, 1024);
    late.dst_endpoint = first.peer();
    b.stack.on_packet(b.net.now, &late, &mut b.net);
}

#[test]
fn a_new_queue_pair_uses_the_slot_of_an_ended_one_after_time_wait() {
    let mut b = bench(config(), |_, _| What::Pass);
    let first = b.open(0, 1);
    b.write(first, 1024 * 10);
    for end in [first, first.peer()] {
        b.stack.close(b.net.now, end, &mut b.net);
    }
    b.finish();
    let ack = RATE.time_for(u64::from(RoceV2Config::ACK) + u64::from(FRAMING));
    let done = b.net.sent.last().expect("the last ACK").0 + ack + DELAY;
    arrive_late(&mut b, first);
    assert_eq!(b.stack.totals().acks, 2, "in TIME-WAIT, late copies are acknowledged");

    b.net.now = (done + config().time_wait).before(Span(1));
    let second = b.open(0, 1);
    assert_ne!(second.slot(), first.slot());
    b.net.now = done + config().time_wait;
    let third = b.open(0, 1);
    assert_eq!(third.slot(), first.slot());
    arrive_late(&mut b, first);
    assert_eq!(b.stack.end(third.peer()).received(), 0);
    assert_eq!((b.stack.totals().packets, b.stack.totals().acks), (10, 2));
}

#[test]
fn slots_of_queue_pairs_that_end_at_one_time_are_used_in_their_order() {
    let mut b = bench(config(), |_, _| What::Pass);
    let ids = [b.open(0, 1), b.open(0, 1), b.open(0, 1)];
    for end in [ids[2], ids[0].peer(), ids[2].peer(), ids[0]] {
        b.stack.close(b.net.now, end, &mut b.net);
    }
    b.stack.close(b.net.now, ids[1], &mut b.net); // its peer stays open
    b.net.now += config().time_wait;
    let slots = [b.open(0, 1), b.open(0, 1), b.open(0, 1)].map(EndpointId::slot);
    assert_eq!(slots, [ids[0].slot(), ids[2].slot(), 6]);
}

#[test]
fn an_abort_in_time_wait_frees_the_slot_at_once_and_only_once() {
    let mut b = bench(config(), |_, _| What::Pass);
    let first = b.open(0, 1);
    for end in [first, first.peer()] {
        b.stack.close(b.net.now, end, &mut b.net);
    }
    b.stack.abort(b.net.now, first);
    assert_eq!(b.open(0, 1).slot(), first.slot());
    b.net.now += config().time_wait;
    assert_eq!(b.open(0, 1).slot(), first.slot() + 2);
}

#[test]
fn marks_are_notified_at_intervals_and_cut_the_rate() {
    let limited = RoceV2Config { control: ControlSettings::Dcqcn(dcqcn()), ..config() };
    let mut b = bench(limited, |n, _| if n == 0 { What::Mark } else { What::Pass });
    let id = b.open(0, 1);
    b.write(id, 1_000_000_000);
    b.run(Time::ZERO + Span::from_us(40));
    assert_eq!(b.stack.end(id).rate(), Rate(RATE.0 / 2));
    let times: Vec<Time> = b.data().map(|d| d.0).collect();
    let gap = times[times.len() - 1].since(times[times.len() - 2]);
    assert_eq!(gap, packet_time() * 2);
    let cnps: Vec<&Packet> =
        b.net.sent.iter().filter(|(_, p)| p.flags == rocev2::NOTIFICATION).map(|s| &s.1).collect();
    assert_eq!((cnps.len(), cnps[0].ip_len, cnps[0].tos), (1, 60, 48 << 2));
    assert!(b.data().all(|(_, p)| p.tos == 24 << 2 | ecn::ECT0));

    let mut b = bench(limited, |_, _| What::Mark);
    let id = b.open(0, 1);
    b.write(id, 1_000_000_000);
    b.run(Time::ZERO + Span::from_us(1_000));
    let c = b.stack.totals();
    assert_eq!(c.marked, b.data().count() as u64 - under_way(&b));
    let cnp_times: Vec<Time> = b
        .net
        .sent
        .iter()
        .filter(|(_, p)| p.flags == rocev2::NOTIFICATION)
        .map(|(at, _)| *at)
        .collect();
    assert!(cnp_times.windows(2).all(|w| w[1].since(w[0]) >= Span::from_us(50)), "{cnp_times:?}");
    // Nearly every CNP halves the rate, so the gaps between packets soon exceed the interval of
    // CNPs.
    assert_eq!(cnp_times[0], Time::ZERO + packet_time() + DELAY);
    assert!((8..=16).contains(&cnp_times.len()) && c.cuts == c.cnps, "{} {}", c.cuts, c.cnps);
}

/// Returns the number of packets with payload that are in flight.
fn under_way(b: &Bench) -> u64 {
    let waits = |e: &&Event| matches!(e, Event::Packet(p) if p.flags & rocev2::DATA != 0);
    b.net.events.values().filter(waits).count() as u64
}

#[test]
fn positions_beyond_32_bits_are_told_apart() {
    let fast = RoceV2Config { mtu: 4096, ack_every: 1024, ..config() };
    let mut b = bench(fast, |n, _| if n % 400_000 == 399_999 { What::Lose } else { What::Pass });
    let id = b.open(0, 1);
    b.write(id, 5 << 30);
    b.finish();
    assert_eq!(b.stack.end(id.peer()).received(), 5 << 30);
    assert_eq!((b.stack.totals().naks, b.stack.totals().timeouts), (3, 0));
}

#[test]
fn alarms_are_numbers_and_back() {
    for target in [
        TimerTarget::QueuePair(EndpointId(u32::MAX)),
        TimerTarget::Nic(0),
        TimerTarget::Nic(70_000),
    ] {
        assert_eq!(TimerTarget::of_number(target.number()), target);
    }
}

#[test]
fn under_independent_marks_the_rate_is_what_the_rules_give() {
    // 1,201 of a hundred thousand packets are marked: the fixed point of the fluid model is then
    // 2.5 Gbit/s. A simulation of the rules with random draws in Python
    // (tests/models/test_models_dcqcn.py) has a mean of 3.01 Gbit/s.
    let limited = RoceV2Config { control: ControlSettings::Dcqcn(dcqcn()), ..config() };
    let marks = |n: u64, _: &Packet| match eastwest_engine::random::mix(n) % 100_000 {
        0..1_201 => What::Mark,
        _ => What::Pass,
    };
    let mut b = bench(limited, marks);
    let id = b.open(0, 1);
    b.write(id, 1 << 40);
    b.run(Time::ZERO + Span::from_ms(1_000));
    let gbit = b.data().count() as f64 * 1106.0 * 8.0 / 1e9;
    assert!((gbit / 3.01 - 1.0).abs() < 0.04, "{gbit}");
}
