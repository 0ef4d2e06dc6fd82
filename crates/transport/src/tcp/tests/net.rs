//! Test network: two TCP endpoints joined by a fixed delay in each direction, optionally a rate,
//! and a function that decides the fate of each packet. It logs all packets, and asserts the
//! properties that hold for every packet.

use super::super::config::{TcpConfig, test_config};
use super::super::range_set::RangeSet;
use super::super::{Connect, Endpoint, Notice, RecoveryEvent, Sink, Stack};
use eastwest_types::{EndpointId, HostId, Packet, Rate, SackBlocks, Side, Span, Time, ecn, flag};
use std::collections::BTreeMap;

/// Payload bytes of a full segment in these tests, so that positions are easy to read.
pub const SEGMENT: u64 = 1000;
/// One-way delay of packets in these tests: the RTT is 10 ms.
pub const DELAY: Span = Span::from_ms(5);

/// Returns TCP settings for tests: segments of 1000 payload bytes, one ACK for each segment.
pub fn settings() -> TcpConfig {
    TcpConfig { segment: SEGMENT as u32, ..test_config() }
}

/// A packet with the time of its transmission.
#[derive(Clone, Debug)]
pub struct Sent {
    pub at: Time,
    pub from: Side,
    /// Number of packets that the end `from` has sent, including this one.
    pub nth: usize,
    pub packet: Packet,
    pub sack: Vec<(u64, u64)>,
}

impl Sent {
    pub fn is_data(&self) -> bool {
        self.packet.payload > 0
    }

    pub fn is_again(&self) -> bool {
        self.packet.notes & Packet::RETRANSMISSION != 0
    }

    pub fn has(&self, flags: u8) -> bool {
        self.packet.flags & flags == flags
    }

    /// Returns the stream position after the last one in the segment.
    pub fn end(&self) -> u64 {
        let control = u64::from(self.has(flag::SYN)) + u64::from(self.has(flag::FIN));
        self.packet.seq + u64::from(self.packet.payload) + control
    }

    /// Returns a line of the log, such as `25 > 1:1001 ack 1` or `30 < ack 1001 sack 2001:3001`:
    /// time in milliseconds, `>` from the client, `*` for a retransmission, `ect` for an
    /// ECN-capable packet.
    fn line(&self) -> String {
        let us = self.at.0 / 1_000_000;
        let mut s = format!("{}", us / 1000);
        if us % 1000 > 0 {
            s += format!(".{:03}", us % 1000).trim_end_matches('0');
        }
        s += if self.from == Side::Client { " >" } else { " <" };
        for (bit, name) in
            [(flag::SYN, " SYN"), (flag::FIN, " FIN"), (flag::ECE, " ECE"), (flag::CWR, " CWR")]
        {
            s += if self.has(bit) { name } else { "" };
        }
        s += if self.packet.tos & ecn::MASK == ecn::ECT0 { " ect" } else { "" };
        if self.end() > self.packet.seq {
            s += &format!(" {}:{}", self.packet.seq, self.end());
        }
        s += if self.is_again() { "*" } else { "" };
        if self.has(flag::ACK) {
            s += &format!(" ack {}", self.packet.ack);
        }
        if !self.sack.is_empty() {
            s += " sack";
        }
        for (a, b) in &self.sack {
            s += &format!(" {a}:{b}");
        }
        s
    }
}

/// Treatment of a packet by the test network between the two TCP endpoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The packet arrives after the delay of the network.
    Deliver,
    /// The packet is lost.
    Drop,
    /// The packet arrives later by this time, behind packets that were sent after it.
    Late(Span),
    /// The packet arrives, and a copy arrives later by this time.
    Twice(Span),
    /// The packet arrives with a CE mark if it is ECN-capable.
    Mark,
}

enum Event {
    Arrive(Side, Packet, Option<SackBlocks>),
    Wake(EndpointId),
}

/// Links and clock of the test network, with the log of its packets.
pub struct Wires {
    now: Time,
    config: TcpConfig,
    events: BTreeMap<(Time, u64), Event>,
    count: u64,
    pub delay: Span,
    /// Rate of the client's link; `None` for no limit. The server's link has no limit.
    pub rate: Option<Rate>,
    busy_until: Time,
    pub fate: Box<dyn FnMut(&Sent) -> Fate>,
    pub log: Vec<Sent>,
    pub notices: Vec<(Time, EndpointId, Notice)>,
    sent: [usize; 2],
    /// Highest stream position that each end has sent: client, server.
    highest: [u64; 2],
    /// Stream positions that SACK has reported to each end: client, server.
    told: [RangeSet; 2],
}

impl Wires {
    fn push(&mut self, at: Time, event: Event) {
        self.count += 1;
        self.events.insert((at, self.count), event);
    }

    /// Checks every packet. A segment must be marked as a retransmission exactly if it is one, must
    /// lie completely below or above the highest position sent before, and must contain nothing
    /// that was SACKed.
    fn check(&mut self, sent: &Sent) {
        let (from, seq, end) = (sent.from as usize, sent.packet.seq, sent.end());
        assert!(u64::from(sent.packet.payload) <= u64::from(self.config.segment));
        if end == seq || sent.has(flag::SYN) {
            return;
        }
        if sent.is_again() {
            assert!(end <= self.highest[from].max(1), "new bytes in a retransmission: {sent:?}");
            let gap_end = self.told[from].gap_from(seq);
            assert!(gap_end.0 == seq && gap_end.1 >= end, "SACKed bytes sent again: {sent:?}");
        } else {
            assert_eq!(seq, self.highest[from].max(1), "not the next new byte: {sent:?}");
            self.highest[from] = end;
        }
    }
}

impl Sink for Wires {
    fn send(&mut self, from: HostId, mut packet: Packet, sack: Option<SackBlocks>) {
        let side = if from == HostId(0) { Side::Client } else { Side::Server };
        assert_eq!((packet.dst.0, packet.born), (1 - from.0, self.now));
        self.sent[side as usize] += 1;
        let blocks = sack.unwrap_or_default().into_iter().filter(|b| b.1 > 0).collect();
        let sent =
            Sent { at: self.now, from: side, nth: self.sent[side as usize], packet, sack: blocks };
        self.check(&sent);
        let fate = (self.fate)(&sent);
        self.log.push(sent);
        let mut departure = self.now;
        if side == Side::Client
            && let Some(rate) = self.rate
        {
            departure = self.now.max(self.busy_until) + rate.time_for(u64::from(packet.ip_len));
            self.busy_until = departure;
        }
        let arrival = departure + self.delay;
        let (first, second) = match fate {
            Fate::Drop => return,
            Fate::Deliver => (arrival, None),
            Fate::Mark => {
                packet.tos |= if packet.tos & ecn::MASK == 0 { 0 } else { ecn::CE };
                (arrival, None)
            }
            Fate::Late(by) => (arrival + by, None),
            Fate::Twice(by) => (arrival, Some(arrival + by)),
        };
        for at in std::iter::once(first).chain(second) {
            self.push(at, Event::Arrive(side.other(), packet, sack));
        }
    }

    fn leaves_at(&self, (from, _): (HostId, HostId), _hash: u16, _dscp: u8) -> Time {
        if from == HostId(0) { self.busy_until } else { Time::ZERO }
    }

    fn arm(&mut self, at: Time, endpoint: EndpointId) {
        assert!(at >= self.now);
        self.push(at, Event::Wake(endpoint));
    }

    fn notify(&mut self, endpoint: EndpointId, notice: Notice) {
        self.notices.push((self.now, endpoint, notice));
    }
}

/// Test network with a TCP stack on two hosts, the links between them, and one connection.
pub struct Net {
    pub stack: Stack,
    pub wires: Wires,
    pub client: EndpointId,
    pub server: EndpointId,
}

impl Net {
    /// Returns a test network without losses, before the SYN is sent.
    pub fn new(config: TcpConfig) -> Net {
        let wires = Wires {
            now: Time::ZERO,
            config: config.clone(),
            events: BTreeMap::new(),
            count: 0,
            delay: DELAY,
            rate: None,
            busy_until: Time::ZERO,
            fate: Box::new(|_| Fate::Deliver),
            log: Vec::new(),
            notices: Vec::new(),
            sent: [0; 2],
            highest: [0; 2],
            told: [RangeSet::default(), RangeSet::default()],
        };
        let nobody = EndpointId(0);
        Net { stack: Stack::new(config), wires, client: nobody, server: nobody }
    }

    /// Returns a test network with an established connection, at 20 ms and with an empty log.
    pub fn established(config: TcpConfig) -> Net {
        let mut net = Net::new(config);
        net.open();
        net.run_to(20);
        assert!(net.stack.endpoint(net.server).is_established());
        net.wires.log.clear();
        net.wires.sent = [0; 2];
        net
    }

    pub fn open(&mut self) {
        let connect = Connect {
            client: HostId(0),
            server: HostId(1),
            hashes: (1, 2),
            dscp: 0,
            class: 0,
            settings: (0, 0),
        };
        self.wires.highest = [0; 2];
        self.wires.told = [RangeSet::default(), RangeSet::default()];
        let now = self.wires.now;
        self.client = self.stack.open(now, &connect, &mut self.wires).expect("a free slot");
        self.server = self.client.peer();
    }

    pub fn id(&self, side: Side) -> EndpointId {
        if side == Side::Client { self.client } else { self.server }
    }

    pub fn end(&self, side: Side) -> &Endpoint {
        self.stack.endpoint(self.id(side))
    }

    pub fn now(&self) -> Time {
        self.wires.now
    }

    pub fn write(&mut self, side: Side, bytes: u64) {
        self.stack.write(self.wires.now, self.id(side), bytes, &mut self.wires);
    }

    /// Writes `n` full segments at the client.
    pub fn write_segments(&mut self, n: u64) {
        self.write(Side::Client, n * SEGMENT);
    }

    pub fn close(&mut self, side: Side) {
        self.stack.close(self.wires.now, self.id(side), &mut self.wires);
    }

    /// Loses the client's packets with these numbers; the next packet has number 1.
    pub fn lose(&mut self, client_packets: &'static [usize]) {
        let before = self.wires.sent[Side::Client as usize];
        self.wires.fate = Box::new(move |s| {
            let lost = s.from == Side::Client && client_packets.contains(&(s.nth - before));
            if lost { Fate::Drop } else { Fate::Deliver }
        });
    }

    /// Marks the client's packets with these numbers with CE; the next packet has number 1.
    pub fn mark(&mut self, client_packets: &'static [usize]) {
        let before = self.wires.sent[Side::Client as usize];
        self.wires.fate = Box::new(move |s| {
            let marked = s.from == Side::Client && client_packets.contains(&(s.nth - before));
            if marked { Fate::Mark } else { Fate::Deliver }
        });
    }

    /// Executes all events up to and including the time `end`.
    pub fn run_until(&mut self, end: Time) {
        while let Some(entry) = self.wires.events.first_entry() {
            let (at, _) = *entry.key();
            if at > end {
                break;
            }
            self.wires.now = at;
            let event = entry.remove();
            self.carry_out(event);
        }
        self.wires.now = end;
    }

    pub fn run_to(&mut self, ms: u64) {
        self.run_until(Time::ZERO + Span::from_ms(ms));
    }

    fn carry_out(&mut self, event: Event) {
        match event {
            Event::Wake(id) => self.stack.on_timer(self.wires.now, id, &mut self.wires),
            Event::Arrive(side, packet, sack) => {
                // SACK blocks of an ACK that arrives after a later ACK count only with
                // `late_sacks`.
                let late = packet.ack < self.end(side).stream.una;
                let heeded = !late || self.stack.config().recovery.late_sacks;
                if packet.dst_endpoint == self.id(side) && heeded {
                    let told = &mut self.wires.told[side as usize];
                    for (start, end) in sack.unwrap_or_default() {
                        if end > 0 {
                            told.insert(start, end);
                        }
                    }
                }
                self.stack.on_packet(self.wires.now, &packet, sack.as_ref(), &mut self.wires);
            }
        }
        for side in [Side::Client, Side::Server] {
            self.check_sender(side);
        }
    }

    /// Checks invariants of the sender at one end.
    fn check_sender(&self, side: Side) {
        let e = self.end(side);
        let config = self.stack.config();
        assert!(e.cwnd() >= u64::from(config.segment));
        assert!(e.ssthresh() >= 2 * u64::from(config.segment));
        assert!(e.stream.una <= e.stream.next && e.stream.next <= e.send_end().max(1));
        assert!(
            e.recovery.lost_to() <= e.stream.next && e.recovery.retransmitted_to() <= e.stream.next
        );
        assert!(e.outstanding() <= config.max_window);
        // Sums the bytes in flight (RFC 6675, SetPipe) step by step; each step lies within one
        // range.
        if let Some(scoreboard) = &e.recovery.scoreboard {
            scoreboard.check(e.stream.una, e.stream.next, &e.recovery.sacked);
        } else if config.sack && e.stream.next <= 200 * SEGMENT {
            let below = |p: u64, q: u64| u64::from(p < q);
            let octet = |p: u64| match e.recovery.sacked.containing(p) {
                Some(_) => 0,
                None => {
                    1 - below(p, e.recovery.lost_to()) + below(p, e.recovery.retransmitted_to())
                }
            };
            let pipe: u64 = (e.stream.una..e.stream.next).map(octet).sum();
            assert_eq!(e.pipe(config), pipe);
        }
    }

    /// Returns the log since it was last cleared, one line for each packet; with `side` only
    /// packets of this end.
    pub fn dialogue(&self, side: Option<Side>) -> String {
        let lines = self.wires.log.iter().filter(|s| side.is_none_or(|side| s.from == side));
        lines.map(Sent::line).collect::<Vec<_>>().join("\n")
    }

    /// Returns the notices to the application at `side`, as (milliseconds, notice).
    pub fn told(&self, side: Side) -> Vec<(u64, Notice)> {
        let mut all = self.all_told(side);
        all.retain(|n| !matches!(n.1, Notice::LossRecovery { .. }));
        all
    }

    /// Returns the steps of loss recovery at one end: (ms, step, first position, position after the
    /// last).
    pub fn repairs(&self, side: Side) -> Vec<(u64, RecoveryEvent, u64, u64)> {
        let of = |n: (u64, Notice)| match n.1 {
            Notice::LossRecovery { event: step, from, to } => Some((n.0, step, from, to)),
            _ => None,
        };
        self.all_told(side).into_iter().filter_map(of).collect()
    }

    fn all_told(&self, side: Side) -> Vec<(u64, Notice)> {
        let of_side = self.wires.notices.iter().filter(|n| n.1 == self.id(side));
        of_side.map(|n| (n.0.0 / 1_000_000_000, n.2)).collect()
    }
}

/// Asserts that the log is the dialogue `expected`, line by line; leading blanks are ignored.
#[track_caller]
pub fn assert_dialogue(net: &Net, side: Option<Side>, expected: &str) {
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let actual = net.dialogue(side);
    let actual: Vec<&str> = actual.lines().collect();
    assert_eq!(actual, expected, "\nthis is what happened:\n{}\n", actual.join("\n"));
}
