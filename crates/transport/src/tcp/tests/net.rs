//! Two endpoints joined by a small deterministic network: a fixed delay each way, optionally a rate,
//! and a script that says what happens to each packet. Every packet is written down, and what must
//! hold for every packet ever sent is asserted on the way.

use super::super::config::{TcpConfig, test_config};
use super::super::range_set::RangeSet;
use super::super::{Connect, Endpoint, Notice, RecoveryEvent, Sink, Stack};
use eastwest_types::{EndpointId, HostId, Packet, Rate, SackBlocks, Side, Span, Time, ecn, flag};
use std::collections::BTreeMap;

/// Payload of a full segment in these tests: positions are easy to read.
pub const SEGMENT: u64 = 1000;
/// One way in these tests: a round trip is 10 ms.
pub const DELAY: Span = Span::from_ms(5);

/// S1's settings with segments of 1000 bytes, one ACK per segment.
pub fn settings() -> TcpConfig {
    TcpConfig { segment: SEGMENT as u32, ..test_config() }
}

/// A packet as it was sent.
#[derive(Clone, Debug)]
pub struct Sent {
    pub at: Time,
    pub from: Side,
    /// How many packets this side has sent with this one.
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

    /// One past the last position it takes.
    pub fn end(&self) -> u64 {
        let control = u64::from(self.has(flag::SYN)) + u64::from(self.has(flag::FIN));
        self.packet.seq + u64::from(self.packet.payload) + control
    }

    /// A line such as `25 > 1:1001 ack 1` or `30 < ack 1001 sack 2001:3001`; times in milliseconds,
    /// `>` from the client, `*` marks what is sent again, `ect` what understands marks.
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

/// What the network does with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    Deliver,
    Drop,
    /// Arrives this much later, behind packets that left after it.
    Late(Span),
    /// Arrives a second time this much later.
    Twice(Span),
    /// Arrives marked "congestion experienced" if it understands marks.
    Mark,
}

enum Event {
    Arrive(Side, Packet, Option<SackBlocks>),
    Wake(EndpointId),
}

/// The cables and the clock.
pub struct Wires {
    now: Time,
    config: TcpConfig,
    events: BTreeMap<(Time, u64), Event>,
    count: u64,
    pub delay: Span,
    /// Rate of the client's link; the server's is without limit.
    pub rate: Option<Rate>,
    busy_until: Time,
    pub fate: Box<dyn FnMut(&Sent) -> Fate>,
    pub log: Vec<Sent>,
    pub notices: Vec<(Time, EndpointId, Notice)>,
    sent: [usize; 2],
    /// Highest position sent, and what the sender has been told to have arrived out of order.
    highest: [u64; 2],
    told: [RangeSet; 2],
}

impl Wires {
    fn push(&mut self, at: Time, event: Event) {
        self.count += 1;
        self.events.insert((at, self.count), event);
    }

    /// Holds for every packet: a segment is marked as sent again exactly if it is, lies wholly on one
    /// side of that border, and holds nothing that was SACKed.
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

    fn leaves_at(&self, from: HostId, _dscp: u8) -> Time {
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

/// A stack on two hosts, the wires between them, and one connection.
pub struct Net {
    pub stack: Stack,
    pub wires: Wires,
    pub client: EndpointId,
    pub server: EndpointId,
}

impl Net {
    /// A network that loses nothing, before the SYN.
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

    /// A network with an established connection; the clock stands at 20 ms and nothing is logged.
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

    /// The client writes this many full segments.
    pub fn write_segments(&mut self, n: u64) {
        self.write(Side::Client, n * SEGMENT);
    }

    pub fn close(&mut self, side: Side) {
        self.stack.close(self.wires.now, self.id(side), &mut self.wires);
    }

    /// Loses the client's packets with these ordinals, counted from now on.
    pub fn lose(&mut self, client_packets: &'static [usize]) {
        let before = self.wires.sent[Side::Client as usize];
        self.wires.fate = Box::new(move |s| {
            let lost = s.from == Side::Client && client_packets.contains(&(s.nth - before));
            if lost { Fate::Drop } else { Fate::Deliver }
        });
    }

    /// Marks the client's packets with these ordinals, counted from now on.
    pub fn mark(&mut self, client_packets: &'static [usize]) {
        let before = self.wires.sent[Side::Client as usize];
        self.wires.fate = Box::new(move |s| {
            let marked = s.from == Side::Client && client_packets.contains(&(s.nth - before));
            if marked { Fate::Mark } else { Fate::Deliver }
        });
    }

    /// Carries out what happens up to and at this time.
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
                // SACK blocks of an ACK that a later one has overtaken are heeded only where so set
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

    /// Holds for every sender at any time.
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
        // RFC 6675, SetPipe, octet by octet in steps that no range border falls between
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

    /// The log since it was last cleared, a line for each packet, those of one side only if given.
    pub fn dialogue(&self, side: Option<Side>) -> String {
        let lines = self.wires.log.iter().filter(|s| side.is_none_or(|side| s.from == side));
        lines.map(Sent::line).collect::<Vec<_>>().join("\n")
    }

    /// What `side` has been told: milliseconds and notice.
    pub fn told(&self, side: Side) -> Vec<(u64, Notice)> {
        let mut all = self.all_told(side);
        all.retain(|n| !matches!(n.1, Notice::LossRecovery { .. }));
        all
    }

    /// The steps of repairing losses at one side: (ms, step, first position, position after).
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

/// Asserts a dialogue line by line; leading blanks of `expected` do not count.
#[track_caller]
pub fn assert_dialogue(net: &Net, side: Option<Side>, expected: &str) {
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let actual = net.dialogue(side);
    let actual: Vec<&str> = actual.lines().collect();
    assert_eq!(actual, expected, "\nthis is what happened:\n{}\n", actual.join("\n"));
}
