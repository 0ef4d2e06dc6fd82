//! Connections and messages over ports with fair rates, and the events of their transfer.

use crate::agenda::Agenda;
use crate::delay::{PortSpec, is_over, standing};
use crate::share::{Demand, LoadTimes, NO_LIMIT, Share};
use crate::stream::{Pending, Stream};
use crate::transfer::{Rules, Train, Window};
use eastwest_types::{Side, Span, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Minimum time between two computations of fair rates. It grows with the number of flows in the
/// last computation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// Constant part of the minimum time between two computations of fair rates.
    pub least: Span,
    /// Additional minimum time between two computations of rates, for each flow in the last
    /// computation.
    pub per_flow: Span,
}

/// Number of packets and bytes that a port has carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Number of packets that the port has carried.
    pub packets: u64,
    /// Bytes that the port has carried, including framing on the link.
    pub bytes: u64,
}

/// Numbers of flow starts at which the first burst would have lost packets in a real network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overflows {
    /// Number of flow starts at which the window of the flow did not fit into the queue of a port
    /// on its path, beside the windows of other starting flows.
    pub starts: u64,
    /// Number of flow starts at which a port on the path was full and the windows of its flows
    /// exceeded its capacity, so that packets may have been lost.
    pub at_full: u64,
    /// Number of all starts of flows with more than one packet.
    pub of: u64,
}

/// A message that has arrived. The messages of one side of a connection arrive in the order in
/// which they were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// Number of the connection, see [`Network::open`].
    pub conn: u32,
    /// Side of the connection that sent the message.
    pub from: Side,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Deliver,
    Finish,
    Tick,
    Start,
    /// Recomputation of the fair rates, after all other events of the same time.
    Settle,
}

/// Arrival of a message: time, tie rank, number of the stream, and how often the number of its
/// connection was used before, by which arrivals of aborted connections are recognized.
type Arrival = (Time, u64, u32, u32);
/// Number of low bits of a tie rank that count scheduled events; the higher bits are the kind of
/// the event.
const ASKED_BITS: u32 = 60;

#[derive(Clone, Debug)]
struct Conn {
    generation: u32,
    open: bool,
    /// Whether the connection closes once everything sent has arrived.
    closing: bool,
    paths: [Box<[u32]>; 2],
    /// One-way propagation delay of each direction, client to server first.
    flight: [Span; 2],
    /// Round-trip time of a full packet and its acknowledgement without queues.
    base: Span,
    /// Time from which each side may send: the end of its handshake.
    ready: [Time; 2],
    streams: [Stream; 2],
}

/// Network in flow mode: ports, connections whose messages get fair rates, and scheduled events.
pub struct Network {
    rules: Rules,
    ports: Vec<PortSpec>,
    share: Share,
    carried: Vec<Carried>,
    /// Part of `carried` that belongs to single-packet messages.
    singles: Vec<Carried>,
    /// Sum of the largest windows of the flows at each port, in bits.
    windows: Vec<u64>,
    /// For each port: bits of the windows of starting flows that the port has not sent yet, and the
    /// time at which these bits were counted.
    bursts: Vec<(f64, Time)>,
    overflows: Overflows,
    overflows_of: Vec<u32>,
    conns: Vec<Conn>,
    free: Vec<u32>,
    /// Number of the stream for every flow number; stream 2n is sent by the client of connection n,
    /// stream 2n + 1 by its server.
    stream_of: Vec<u32>,
    arrivals: BinaryHeap<Reverse<Arrival>>,
    /// Scheduled events of streams; the function [`place`] gives each stream two numbers in this
    /// list.
    agenda: Agenda,
    asked: u64,
    pace: Pace,
    /// Time before which fair rates are not computed again.
    rests_until: Time,
    /// Time and tie rank of the next computation of fair rates; `None` if none is scheduled.
    settles: Option<(Time, u64)>,
    /// Number of events executed so far.
    pub happened: u64,
}

/// Returns the number in the event list (place) of a stream's event. Each stream has two: the first
/// for its start or the check whether a message has been sent, the second for the doubling of its
/// window (`What::Tick`).
fn place(stream: u32, what: What) -> u32 {
    2 * stream + u32::from(what == What::Tick)
}

fn of(stream: u32) -> (usize, usize) {
    (stream as usize / 2, stream as usize % 2)
}

impl Network {
    /// Returns a network with these ports and without traffic; paths refer to ports by their index.
    pub fn new(ports: Vec<PortSpec>, rules: Rules, pace: Pace) -> Network {
        Network {
            share: Share::new(ports.iter().map(|p| p.rate.0)),
            carried: vec![Carried::default(); ports.len()],
            singles: vec![Carried::default(); ports.len()],
            windows: vec![0; ports.len()],
            bursts: vec![(0.0, Time::ZERO); ports.len()],
            overflows_of: vec![0; ports.len()],
            ports,
            rules,
            overflows: Overflows::default(),
            conns: Vec::new(),
            free: Vec::new(),
            stream_of: Vec::new(),
            arrivals: BinaryHeap::new(),
            agenda: Agenda::default(),
            asked: 0,
            pace,
            rests_until: Time::ZERO,
            settles: None,
            happened: 0,
        }
    }

    /// Returns the memory in bytes of a port without connections.
    pub fn bytes_per_port() -> u64 {
        let counts = 2 * size_of::<Carried>() + size_of::<(f64, Time)>() + size_of::<u64>();
        (size_of::<PortSpec>() + counts + size_of::<u32>()) as u64 + Share::bytes_per_port()
    }

    /// Opens a connection. The client sends over the ports of the first path, the server over the
    /// ports of the second. Returns the number of the connection; the number of a freed connection
    /// is used again.
    pub fn open(&mut self, now: Time, paths: [Box<[u32]>; 2]) -> u32 {
        let flight = [0, 1].map(|side: usize| {
            paths[side].iter().fold(Span::ZERO, |sum, &l| sum + self.ports[l as usize].delay)
        });
        let r = &self.rules;
        let full = r.wire(r.segment + r.header);
        let bare = r.wire(r.ack);
        let base = flight[0]
            + flight[1]
            + self.sending(&paths[0], full, false)
            + self.sending(&paths[1], bare, false);
        let there = flight[0] + self.sending(&paths[0], bare, false) + self.queues(&paths[0], base);
        let back = flight[1] + self.sending(&paths[1], bare, false) + self.queues(&paths[1], base);
        // The handshake: SYN and SYN-ACK. One way later, the server receives the ACK or the data
        // with the ACK.
        let ready = [now + there + back, now + there + back + there];
        let window = Window::initial(r);
        let streams = [Stream::new(window), Stream::new(window)];
        for (side, packets) in [(0, 2), (1, 1)] {
            self.count(&paths[side], packets, packets * bare);
        }
        let id = self.free.pop();
        let generation = id.map_or(0, |id| self.conns[id as usize].generation + 1);
        let conn =
            Conn { generation, open: true, closing: false, paths, flight, base, ready, streams };
        match id {
            Some(id) => {
                self.conns[id as usize] = conn;
                id
            }
            None => {
                self.conns.push(conn);
                (self.conns.len() - 1) as u32
            }
        }
    }

    /// Sends a message of `bytes` payload bytes from one side of a connection.
    pub fn send(&mut self, now: Time, conn: u32, from: Side, bytes: u64) {
        self.share.at(now);
        let side = from as usize;
        let stream = conn * 2 + side as u32;
        let train = self.rules.train(bytes);
        let c = &mut self.conns[conn as usize];
        let s = &mut c.streams[side];
        s.written += bytes;
        if train.packets == 1 && s.waiting.is_empty() {
            let at = c.ready[side].max(now);
            self.pass(at, stream, bytes, &train);
            return;
        }
        s.waiting.push_back(Pending { train, bytes });
        if s.flow.is_some() {
            s.progress(now);
            s.left_in_all += train.wire as f64 * 8.0;
            self.hold(stream, self.can_hold(stream));
            self.review_window(now, stream);
        } else if !s.starting {
            let at = c.ready[side].max(now);
            s.starting = true;
            if at > now {
                self.plan(at, What::Start, stream);
            } else {
                self.start(now, stream);
            }
        }
    }

    /// Closes a connection after everything sent has arrived. Returns whether the connection is
    /// closed now, so that its number is free.
    pub fn close(&mut self, conn: u32) -> bool {
        self.conns[conn as usize].closing = true;
        self.free_if_quiet(conn)
    }

    /// Aborts a connection at once: messages that have not arrived are lost.
    pub fn abort(&mut self, now: Time, conn: u32) {
        self.share.at(now);
        for stream in [2 * conn, 2 * conn + 1] {
            let (c, side) = of(stream);
            let s = &mut self.conns[c].streams[side];
            s.waiting.clear();
            s.under_way.clear();
            self.agenda.clear(place(stream, What::Start));
            self.agenda.clear(place(stream, What::Tick));
            if let Some(flow) = s.flow.take() {
                self.share.remove(flow);
            }
            self.hold(stream, 0);
        }
        self.settle_soon(now);
        self.conns[conn as usize].closing = true;
        self.free_if_quiet(conn);
    }

    /// Returns the payload bytes that have arrived in order at the client, and those at the server.
    pub fn received(&self, conn: u32) -> [u64; 2] {
        let s = &self.conns[conn as usize].streams;
        [s[1].received, s[0].received]
    }

    /// Returns the time of the next event; [`Time::NEVER`] if there is none.
    pub fn next(&self) -> Time {
        self.first().map_or(Time::NEVER, |(at, ..)| at)
    }

    /// Returns the time and tie rank of the next event, and its stream; `None` instead of the
    /// stream for arrivals and computations of rates.
    fn first(&self) -> Option<(Time, u64, Option<u32>)> {
        let arrival = self.arrivals.peek().map(|Reverse(a)| (a.0, a.1, None));
        let settle = self.settles.map(|(at, rank)| (at, rank, None));
        let planned = self.agenda.first().map(|(at, rank, place)| (at, rank, Some(place / 2)));
        [arrival, settle, planned].into_iter().flatten().min()
    }

    /// Executes the next event. Returns the message that the event delivers, or `None`.
    pub fn advance(&mut self) -> Option<Delivered> {
        let (now, rank, planned) = self.first()?;
        self.happened += 1;
        self.share.at(now);
        let Some(stream) = planned else {
            if self.settles == Some((now, rank)) {
                self.settle(now);
                return None;
            }
            return self.deliver();
        };
        match rank >> ASKED_BITS {
            kind if kind == What::Start as u64 => {
                self.agenda.clear(place(stream, What::Start));
                self.start(now, stream);
            }
            kind if kind == What::Finish as u64 => self.look_after(now, stream),
            _ => self.tick(now, stream),
        }
        None
    }

    /// Executes the next arrival. Returns the delivered message, or `None` if its connection has
    /// ended.
    fn deliver(&mut self) -> Option<Delivered> {
        let Reverse((_, _, stream, generation)) = self.arrivals.pop()?;
        let (conn, side) = of(stream);
        let c = &mut self.conns[conn];
        if c.generation != generation || !c.open {
            return None;
        }
        let bytes = c.streams[side].under_way.pop_front()?;
        c.streams[side].received += bytes;
        let from = if side == 0 { Side::Client } else { Side::Server };
        Some(Delivered { conn: conn as u32, from })
    }

    /// Returns the payload bytes that the client has written, and those that the server has
    /// written.
    pub fn written(&self, conn: u32) -> [u64; 2] {
        [0, 1].map(|side: usize| self.conns[conn as usize].streams[side].written)
    }

    /// Frees the number of a closed connection if everything has arrived; must be called after each
    /// delivery. Returns whether the number was freed.
    pub fn free_if_quiet(&mut self, conn: u32) -> bool {
        let c = &mut self.conns[conn as usize];
        if !(c.open && c.closing && c.streams.iter().all(Stream::is_quiet)) {
            return false;
        }
        c.open = false;
        let paths = std::mem::take(&mut c.paths);
        // A FIN and its acknowledgement are counted for each side.
        let bare = self.rules.wire(self.rules.ack);
        paths.iter().for_each(|path| self.count(path, 2, 2 * bare));
        self.free.push(conn);
        true
    }

    /// Returns the packets and bytes that every port has carried until `now`. The rest of each
    /// message in transfer is computed anew from its rate, with rounding, so that a call may change
    /// later events by a picosecond.
    pub fn carried(&mut self, now: Time) -> &[Carried] {
        for flow in 0..self.stream_of.len() {
            let Some((conn, side)) = self.sender(flow) else { continue };
            let c = &mut self.conns[conn];
            let s = &mut c.streams[side];
            let more = s.uncounted(now);
            s.progress(now);
            s.counted += more;
            for &port in &c.paths[side] {
                self.carried[port as usize].bytes += more;
            }
        }
        &self.carried
    }

    /// Returns the packets and bytes that every port has carried until `now`, like
    /// [`Network::carried`], but without any effect on later events.
    pub fn carried_so_far(&self, now: Time) -> Vec<Carried> {
        let mut carried = self.carried.clone();
        for (conn, side) in (0..self.stream_of.len()).filter_map(|flow| self.sender(flow)) {
            let c = &self.conns[conn];
            let more = c.streams[side].uncounted(now);
            for &port in &c.paths[side] {
                carried[port as usize].bytes += more;
            }
        }
        carried
    }

    /// Returns the connection and the side that send the flow number `flow`; `None` if the number
    /// is not in use.
    fn sender(&self, flow: usize) -> Option<(usize, usize)> {
        let (conn, side) = of(self.stream_of[flow]);
        (self.conns[conn].streams[side].flow == Some(flow as u32)).then_some((conn, side))
    }

    /// Starts to record the time for which each port has each load.
    pub fn keep_times(&mut self) {
        self.share.keep_times();
    }

    /// Returns, for each port, the time that it had no load, and the time that it had each of the
    /// 32 levels of load, from the call of [`Network::keep_times`] until `now`; empty without this
    /// call.
    pub fn times(&mut self, now: Time) -> &[LoadTimes] {
        self.share.times(now)
    }

    /// Returns, for each port, the packets and bytes of single-packet messages, to which the fair
    /// rates do not apply.
    pub fn singles(&self) -> &[Carried] {
        &self.singles
    }

    /// Returns the numbers of flow starts at which packets would have been lost in a real network.
    pub fn overflows(&self) -> Overflows {
        self.overflows
    }

    /// Returns, for each port, the number of flow starts at which this port was the first port of
    /// the path whose queue had no room for the window.
    pub fn overflows_of(&self) -> &[u32] {
        &self.overflows_of
    }

    /// Returns the number of flows that have data to send.
    pub fn sending_now(&self) -> usize {
        self.conns.iter().flat_map(|c| &c.streams).filter(|s| s.flow.is_some()).count()
    }

    /// Returns the tie rank of an event among events of the same time: by kind, then in the order
    /// of scheduling.
    fn rank(&mut self, what: What) -> u64 {
        self.asked += 1;
        (what as u64) << ASKED_BITS | self.asked
    }

    fn plan(&mut self, at: Time, what: What, stream: u32) {
        let rank = self.rank(what);
        self.agenda.set(place(stream, what), at, rank);
    }

    /// Returns the sum of the transmission times of a packet at all ports of a path; `but_slowest`:
    /// except the slowest port.
    fn sending(&self, path: &[u32], bytes: u64, but_slowest: bool) -> Span {
        let times = path.iter().map(|&l| self.ports[l as usize].rate.time_for(bytes));
        let (sum, most) = times.fold((Span::ZERO, Span::ZERO), |(s, m), t| (s + t, m.max(t)));
        if but_slowest { Span(sum.0 - most.0) } else { sum }
    }

    /// Returns the sum of the queueing delays at the full ports of a path; `base`: round-trip time
    /// without queues.
    fn queues(&self, path: &[u32], base: Span) -> Span {
        let full = path.iter().filter(|&&l| self.share.is_full(l));
        full.fold(Span::ZERO, |sum, &l| sum + self.queue(l, base))
    }

    fn queue(&self, port: u32, base: Span) -> Span {
        let windows = self.windows[port as usize] as f64;
        standing(&self.ports[port as usize], self.share.count(port), windows, base)
    }

    /// Replaces the window of a stream by `bits` in the sums of windows at the ports of its path.
    fn hold(&mut self, stream: u32, bits: u64) {
        let (conn, side) = of(stream);
        let c = &mut self.conns[conn];
        let before = std::mem::replace(&mut c.streams[side].held, bits);
        for &port in &c.paths[side] {
            let held = &mut self.windows[port as usize];
            *held = *held - before + bits;
        }
    }

    /// Returns the number of bits that a stream may have in flight: its window in slow start, later
    /// the maximum window, but at most the data that it has to send.
    fn can_hold(&self, stream: u32) -> u64 {
        let (conn, side) = of(stream);
        let s = &self.conns[conn].streams[side];
        let window = if s.window.slow_start { s.window.bytes } else { self.rules.max_window };
        self.rules.window_bits(window).min(s.left_in_all) as u64
    }

    fn round_trip(&self, conn: usize) -> Span {
        let c = &self.conns[conn];
        c.base + self.queues(&c.paths[0], c.base) + self.queues(&c.paths[1], c.base)
    }

    fn count(&mut self, path: &[u32], packets: u64, bytes: u64) {
        for &port in path {
            let c = &mut self.carried[port as usize];
            c.packets += packets;
            c.bytes += bytes;
        }
    }

    /// Adds a sent message to the counters of the ports: its packets, its bytes without the first
    /// `counted`, which are already included, and on the return path its acknowledgements.
    fn count_train(&mut self, stream: u32, train: &Train, counted: u64) {
        let (conn, side) = of(stream);
        let acks = self.rules.wire(self.rules.ack) * train.acks;
        for &port in &self.conns[conn].paths[side] {
            let c = &mut self.carried[port as usize];
            c.packets += train.packets;
            c.bytes += train.wire - counted;
        }
        for &port in &self.conns[conn].paths[1 - side] {
            let c = &mut self.carried[port as usize];
            c.packets += train.acks;
            c.bytes += acks;
        }
    }

    /// Sends a message of a single packet at time `at`. It has latency, but no share of the rates
    /// of ports.
    fn pass(&mut self, at: Time, stream: u32, bytes: u64, train: &Train) {
        let (conn, side) = of(stream);
        let c = &self.conns[conn];
        let path = &c.paths[side];
        let way = c.flight[side] + self.sending(path, train.last, false);
        let arrival = at + way + self.queues(path, c.base);
        let bare = self.rules.wire(self.rules.ack);
        for (path, bytes) in [(&c.paths[side], train.wire), (&c.paths[1 - side], bare)] {
            for &port in path {
                self.singles[port as usize].packets += 1;
                self.singles[port as usize].bytes += bytes;
            }
        }
        self.count_train(stream, train, 0);
        self.arrive(arrival, stream, bytes);
    }

    fn arrive(&mut self, at: Time, stream: u32, bytes: u64) {
        let (conn, side) = of(stream);
        let c = &mut self.conns[conn];
        let s = &mut c.streams[side];
        s.last_arrival = s.last_arrival.max(at);
        s.under_way.push_back(bytes);
        let (at, generation) = (s.last_arrival, c.generation);
        let rank = self.rank(What::Deliver);
        self.arrivals.push(Reverse((at, rank, stream, generation)));
    }

    /// Starts to send the waiting messages of a stream.
    fn start(&mut self, now: Time, stream: u32) {
        let (conn, side) = of(stream);
        let echo_ppm = self.rules.echo_ppm();
        let lag = self.queues(&self.conns[conn].paths[side], self.conns[conn].base);
        let c = &mut self.conns[conn];
        let s = &mut c.streams[side];
        s.starting = false;
        if s.waiting.is_empty() {
            return;
        }
        if self.rules.idle_restart.is_some_and(|idle| now.since(s.active) > idle) {
            s.window = Window::initial(&self.rules);
        }
        s.lag = lag;
        s.take_up();
        s.left_in_all = s.waiting.iter().map(|m| m.train.wire as f64 * 8.0).sum();
        let (path, back) = (&c.paths[side], &c.paths[1 - side]);
        let flow = self.share.add(&Demand { path, back, echo_ppm, weight: 1, cap_bps: NO_LIMIT });
        s.flow = Some(flow);
        if self.stream_of.len() <= flow as usize {
            self.stream_of.resize(flow as usize + 1, 0);
        }
        self.stream_of[flow as usize] = stream;
        (s.since, s.rate_bps) = (now, self.share.rate(flow));
        s.look = Time::NEVER;
        s.tick = Time::NEVER;
        self.hold(stream, self.can_hold(stream));
        self.note_burst(now, stream);
        self.review_window(now, stream);
        self.replan(now, stream);
        self.settle_soon(now);
    }

    /// Limits the rate of the stream's flow to window / round-trip time if the window is too small
    /// for the waiting data. To be called after more data was written or the window has grown.
    fn review_window(&mut self, now: Time, stream: u32) {
        let (conn, side) = of(stream);
        let rtt = self.round_trip(conn);
        let c = &mut self.conns[conn];
        let s = &mut c.streams[side];
        let Some(flow) = s.flow.filter(|_| s.tick == Time::NEVER) else { return };
        let window = self.rules.window_bits(s.window.bytes);
        let per_s = |span: Span| (window / span.0 as f64 * 1e12) as u64;
        // Half a packet more or less is a rounding error, and not a further round trip.
        let slack = self.rules.wire(self.rules.segment) as f64 * 4.0;
        let cap = if s.left_in_all <= window + slack {
            NO_LIMIT
        } else if s.window.slow_start {
            s.tick = now + rtt;
            per_s(rtt)
        } else {
            // Above this rate the largest window would limit the flow even without queues.
            let largest = self.rules.window_bits(self.rules.max_window);
            (largest / c.base.0 as f64 * 1e12) as u64
        };
        let (tick, rate) = (s.tick, s.rate_bps);
        self.share.set_cap(flow, cap);
        if tick < Time::NEVER {
            self.plan(tick, What::Tick, stream);
        }
        if cap < rate {
            // The rate holds until the fair rates are computed; it never exceeds the rate that the
            // window allows.
            self.share.lower(flow, cap);
            let s = &mut self.conns[conn].streams[side];
            s.progress(now);
            s.rate_bps = self.share.rate(flow);
            self.replan(now, stream);
        }
        self.settle_soon(now);
    }

    /// Ends a round trip of slow start: doubles the window of a stream, or ends slow start if the
    /// windows of all flows at a port of its path exceed the capacity of path and queue.
    fn tick(&mut self, now: Time, stream: u32) {
        self.agenda.clear(place(stream, What::Tick));
        let (conn, side) = of(stream);
        let rtt = self.round_trip(conn);
        let c = &self.conns[conn];
        let over = c.paths[side].iter().any(|&l| {
            let windows = self.windows[l as usize] as f64;
            is_over(&self.ports[l as usize], windows, c.base)
        });
        let s = &mut self.conns[conn].streams[side];
        s.tick = Time::NEVER;
        s.progress(now);
        let rate = s.rate_bps;
        let window = &mut self.conns[conn].streams[side].window;
        if over {
            window.follow(&self.rules, rate, rtt);
        } else {
            window.double(&self.rules);
        }
        self.hold(stream, self.can_hold(stream));
        self.review_window(now, stream);
    }

    /// Computes the time at which the current message of a stream will have been sent, after its
    /// rate has changed, and schedules the check at this time.
    fn replan(&mut self, now: Time, stream: u32) {
        let (conn, side) = of(stream);
        let c = &mut self.conns[conn];
        let s = &mut c.streams[side];
        s.plan(now);
        if s.due < s.look {
            s.look = s.due;
            let at = s.look;
            self.plan(at, What::Finish, stream);
        }
    }

    /// Checks whether the current message of a stream has been sent; if not, schedules the next
    /// check.
    fn look_after(&mut self, now: Time, stream: u32) {
        let (conn, side) = of(stream);
        let c = &mut self.conns[conn];
        let s = &mut c.streams[side];
        if s.due > now {
            s.look = s.due;
            let at = s.look;
            self.plan(at, What::Finish, stream);
            return;
        }
        self.leave(now, stream);
    }

    /// Ends the transfer of the current message and schedules its arrival.
    fn leave(&mut self, now: Time, stream: u32) {
        let (conn, side) = of(stream);
        let c = &mut self.conns[conn];
        let s = &mut c.streams[side];
        s.progress(now);
        s.left_in_all -= s.left;
        s.look = Time::NEVER;
        s.active = now;
        let sent = s.waiting.pop_front().expect("a message was being sent");
        let counted = s.counted;
        let full = u64::from(sent.train.packets > 1);
        let lag = s.lag;
        s.take_up();
        let more = !s.waiting.is_empty();
        self.agenda.clear(place(stream, What::Finish));
        if !more {
            self.agenda.clear(place(stream, What::Tick));
            s.left_in_all = 0.0;
            s.tick = Time::NEVER;
            if let Some(flow) = s.flow.take() {
                self.share.remove(flow);
            }
        }
        let r = &self.rules;
        let packet = if full == 1 { r.wire(r.segment + r.header) } else { sent.train.last };
        let c = &self.conns[conn];
        let arrival = now + c.flight[side] + self.sending(&c.paths[side], packet, true) + lag;
        self.count_train(stream, &sent.train, counted);
        self.arrive(arrival, stream, sent.bytes);
        if more {
            self.replan(now, stream);
        } else {
            self.hold(stream, 0);
        }
        self.settle_soon(now);
    }

    fn settle_soon(&mut self, now: Time) {
        if self.settles.is_none() && self.share.is_touched() {
            let at = now.max(self.rests_until);
            self.settles = Some((at, self.rank(What::Settle)));
        }
    }

    fn settle(&mut self, now: Time) {
        self.settles = None;
        let before = self.share.work;
        let changed = self.share.settle().to_vec();
        let flows = self.share.work - before;
        self.rests_until = now + self.pace.least + self.pace.per_flow * flows;
        for (flow, _) in changed {
            let stream = self.stream_of[flow as usize];
            let (conn, side) = of(stream);
            let s = &mut self.conns[conn].streams[side];
            s.progress(now);
            s.rate_bps = self.share.rate(flow);
            self.replan(now, stream);
        }
    }

    /// Counts the burst of a starting flow. Its window is sent at once, so the queue of a port
    /// through which several bursts pass may overflow.
    fn note_burst(&mut self, now: Time, stream: u32) {
        let (conn, side) = of(stream);
        let c = &self.conns[conn];
        let s = &c.streams[side];
        let bits = self.rules.window_bits(s.window.bytes).min(s.left_in_all);
        self.overflows.of += 1;
        let full = |&l: &u32| {
            is_over(&self.ports[l as usize], self.windows[l as usize] as f64, c.base)
                && self.share.is_full(l)
        };
        self.overflows.at_full += u64::from(c.paths[side].iter().any(full));
        let (mut at, mut over) = (now, None);
        for (hop, &port) in c.paths[side].iter().enumerate() {
            let spec = &self.ports[port as usize];
            let (held, since) = &mut self.bursts[port as usize];
            *held = (*held - crate::delay::bits(spec.rate.0, at.since(*since))).max(0.0);
            *since = (*since).max(at);
            // The network card of a host (hop 0) sends packets one after the other, so its queue
            // does not overflow.
            if hop > 0 && *held + bits > spec.queue.room() as f64 * 8.0 && *held > 0.0 {
                over = over.or(Some(port));
            } else {
                *held += bits;
            }
            at += spec.delay;
            if hop == 0 {
                at += Span((*held / spec.rate.0 as f64 * 1e12) as u64);
            }
        }
        if let Some(port) = over {
            self.overflows.starts += 1;
            self.overflows_of[port as usize] += 1;
        }
    }
}
