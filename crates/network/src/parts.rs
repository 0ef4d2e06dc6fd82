//! A fabric dealt to parts that are simulated at the same time, with the same result as in one.
//!
//! Part 0 has all hosts with all that goes on there: transport, workloads, records. The switches are dealt to
//! the others, with the links that they send on and those up from their hosts. Hosts stay together because
//! workloads act on any of them at once; between a host and its switch there is a cable, and its delay is
//! the lookahead of [`eastwest_engine::clocks`]. Edge switches go to the parts in blocks with equal numbers
//! of hosts; every other switch goes to where most of its cables lead.
//!
//! The first part also decides when the run is over, so no other may be ahead of it. What is after the end
//! is never simulated, and nothing has to be taken back.

use crate::cut::{Batch, Cut, End, Last, LostIn, Role};
use crate::fabric::Fabric;
use crate::link::Link;
use crate::topology::Graph;
use eastwest_engine::clocks::{Clocks, Watch};
use eastwest_engine::order::{Class, Key};
use eastwest_engine::tournament::Tournament;
use eastwest_types::{Span, Time};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The part with the hosts.
pub const LEADER: usize = 0;
/// Parts at most.
pub const MOST_PARTS: usize = 64;
/// A part lets others know how far it is so often within a lookahead.
const STEPS: u64 = 4;

/// Which part has which node.
pub struct Division {
    part_of: Vec<u8>,
    parts: usize,
    lookahead: Span,
}

impl Division {
    /// Deals the nodes of a fabric without packets to so many parts, or says why that cannot be done.
    pub fn new(fabric: &Fabric, parts: usize) -> Result<Division, &'static str> {
        let graph = &fabric.graph;
        let parts = parts.min(graph.switches() as usize + 1).min(MOST_PARTS);
        if !fabric.links.iter().all(|l| l.is_eager()) {
            return Err("its ports decide about packets after they have been enqueued");
        }
        if !fabric.routing.is_stateless() {
            return Err("its switches keep in mind how they have routed");
        }
        let part_of = deal(graph, parts);
        let part = |node: u32| part_of[node as usize];
        // switches come behind the hosts, so nothing has to be known of the links up
        let crossing = |l: &&Link| part(l.from) != LEADER as u8 && part(l.from) != part(l.to);
        let crossing = fabric.links.iter().filter(crossing);
        let lookahead = crossing.map(|l| l.least_time()).min().unwrap_or(Span::ZERO);
        if lookahead.0 < STEPS {
            return Err("its cables have no delay");
        }
        Ok(Division { part_of, parts, lookahead })
    }

    /// Number of parts, that of the hosts included.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// No event has effects in another part sooner than this.
    pub fn lookahead(&self) -> Span {
        self.lookahead
    }

    /// Owner and reader of a link. That up from a host belongs to its switch.
    fn ends(&self, fabric: &Fabric, link: usize) -> (usize, usize) {
        let l = &fabric.links[link];
        let part = |node: u32| usize::from(self.part_of[node as usize]);
        let owner = if part(l.from) == LEADER { part(l.to) } else { part(l.from) };
        (owner, part(l.to))
    }

    /// The links as `part` sees them.
    fn roles(&self, fabric: &Fabric, part: usize) -> Vec<End> {
        let end = |link| {
            let (owner, reader) = self.ends(fabric, link);
            let role = match (owner == part, reader == part) {
                (true, true) => Role::Inside,
                (true, false) => Role::Owner,
                (false, true) => Role::Reader,
                (false, false) => Role::Elsewhere,
            };
            End { role, reader: reader as u8, handed: 0, last: Time::ZERO }
        };
        (0..fabric.links.len()).map(end).collect()
    }
}

/// The part of every node.
fn deal(graph: &Graph, parts: usize) -> Vec<u8> {
    let (nodes, hosts) = (graph.names.len(), graph.hosts as usize);
    let mut part_of = vec![0; nodes];
    let others = parts - 1;
    let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for cable in &graph.cables {
        let (a, b) = (cable.a as usize, cable.b as usize);
        neighbours[a].push(b);
        neighbours[b].push(a);
    }
    let is_host = |node: &&usize| **node < hosts;
    let mut load = vec![0; parts];
    let mut seen = 0;
    for switch in hosts..nodes {
        let below = neighbours[switch].iter().filter(is_host).count();
        if below > 0 {
            let part = 1 + seen * others / hosts;
            seen += below;
            part_of[switch] = part as u8;
            load[part] += neighbours[switch].len();
        }
    }
    // from the edge inwards, those that have a neighbour with a part
    while let Some(front) = Some(unassigned(&part_of, hosts, &neighbours)).filter(|f| !f.is_empty())
    {
        let before = part_of.clone();
        for switch in front {
            let cables = |part: usize| {
                let there = |n: &&usize| usize::from(before[**n]) == part;
                neighbours[switch].iter().filter(there).count()
            };
            let best = (1..parts).max_by_key(|&p| (cables(p), std::cmp::Reverse((load[p], p))));
            let part = best.expect("there is a part with switches");
            part_of[switch] = part as u8;
            load[part] += neighbours[switch].len();
        }
    }
    part_of
}

/// Switches without a part that have a neighbour with one.
fn unassigned(part_of: &[u8], hosts: usize, neighbours: &[Vec<usize>]) -> Vec<usize> {
    let open = |&switch: &usize| {
        part_of[switch] == 0 && neighbours[switch].iter().any(|&n| part_of[n] != 0)
    };
    (hosts..part_of.len()).filter(open).collect()
}

/// The switches of a part: a fabric of the same plan that holds only their links, and their events.
pub struct Part {
    fabric: Fabric,
    events: Tournament,
    /// Events carried out.
    fired: u64,
}

impl Part {
    /// A part without packets; `fabric` is another one of the same plan, `seed` that of the run.
    pub fn new(fabric: Fabric, seed: u64, sources: usize) -> Part {
        Part { fabric, events: Tournament::new(sources, seed), fired: 0 }
    }

    /// Carries out all events before this time.
    fn run_before(&mut self, limit: Time) {
        let end = Key::new(limit, Class::Departure);
        loop {
            let (key, link) = self.events.winner();
            if self.fabric.offer_sent((key, link), end, &mut self.events) {
                continue;
            }
            if key >= end {
                return;
            }
            self.fire(key, link);
        }
    }

    /// Carries out all events that come before this one in the order of events, and what of this very
    /// event happens here.
    fn run_to_event(&mut self, last: Last) {
        let mut same = 0;
        loop {
            let next = self.events.winner();
            if self.fabric.offer_sent(next, Key::NEVER, &mut self.events) {
                continue;
            }
            if next == last.event {
                same += 1;
            }
            let order = self.events.order(next).cmp(&self.events.order(last.event));
            if next.0 == Key::NEVER || order.is_gt() || same > last.before + 1 {
                return;
            }
            self.fire(next.0, next.1);
        }
    }

    fn fire(&mut self, key: Key, link: u32) {
        if let Some(cut) = &mut self.fabric.cut {
            (cut.event, cut.number) = ((key, link), 0);
        }
        let arrived = self.fabric.fire_in_part(key, link, &mut self.events);
        debug_assert!(arrived.is_none(), "hosts belong to the first part");
        self.fired += 1;
    }

    /// Simulates until the first part says that the end has come.
    pub fn follow(&mut self, number: usize, exchange: &Exchange) {
        let clocks = &exchange.clocks;
        let _watch = Watch(clocks);
        loop {
            let now = clocks.of(number);
            // asked in this order: once it has stopped, the clock of the first part stands
            let stopped = exchange.stopped.load(Ordering::SeqCst);
            let (bound, lead) = (exchange.bound(number), clocks.of(LEADER));
            exchange.receive(number, &mut self.fabric, &mut self.events);
            if bound > now {
                let limit = bound.min(now + exchange.step);
                self.run_before(limit);
                exchange.send(number, &mut self.fabric);
                clocks.advance(number, limit);
            } else if stopped && lead == now {
                if let Some(last) = exchange.last_event() {
                    // what arrives at that very time is known once all others are there
                    let known = || clocks.least_of_others(number) >= now;
                    if clocks.wait(number, known) {
                        exchange.receive(number, &mut self.fabric, &mut self.events);
                        self.run_to_event(last);
                        exchange.send(number, &mut self.fabric);
                    }
                }
                return;
            } else {
                let over = || exchange.stopped.load(Ordering::SeqCst) && clocks.of(LEADER) == now;
                if !clocks.wait(number, || exchange.bound(number) > now || over()) {
                    return;
                }
            }
        }
    }
}

/// What parts tell each other.
pub struct Exchange {
    clocks: Clocks,
    lookahead: Span,
    step: Span,
    /// By sender and receiver.
    batches: Vec<Vec<Mutex<Batch>>>,
    stopped: AtomicBool,
    /// The event after which the run is over, where one has ended it.
    last: Mutex<Option<Last>>,
}

impl Exchange {
    /// Of parts that begin at `start`.
    pub fn new(division: &Division, start: Time) -> Exchange {
        let parts = division.parts;
        let row = |_| (0..parts).map(|_| Mutex::default()).collect();
        Exchange {
            clocks: Clocks::new(parts, start),
            lookahead: division.lookahead,
            step: Span(division.lookahead.0 / STEPS),
            batches: (0..parts).map(row).collect(),
            stopped: AtomicBool::new(false),
            last: Mutex::default(),
        }
    }

    /// The clocks of all parts.
    pub fn clocks(&self) -> &Clocks {
        &self.clocks
    }

    /// How far a part goes before it lets others know.
    pub fn step(&self) -> Span {
        self.step
    }

    /// Until when a part may go on now.
    pub fn bound(&self, part: usize) -> Time {
        let others = self.clocks.least_of_others(part) + self.lookahead;
        if part == LEADER { others } else { others.min(self.clocks.of(LEADER)) }
    }

    /// Hands over what a part has for others. Its clock may go on afterwards.
    pub fn send(&self, part: usize, fabric: &mut Fabric) {
        let Some(cut) = &mut fabric.cut else { return };
        if part != LEADER {
            cut.out[LEADER].losses.append(&mut cut.losses);
        }
        for (to, batch) in cut.out.iter_mut().enumerate().filter(|(_, batch)| !batch.is_empty()) {
            let place = &self.batches[part][to];
            place.lock().unwrap_or_else(PoisonError::into_inner).append(batch);
        }
    }

    /// Takes in what others have for a part.
    pub fn receive(&self, part: usize, fabric: &mut Fabric, events: &mut Tournament) {
        for row in &self.batches {
            let place = &row[part];
            let mut batch = Batch::default();
            let lock = || place.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::swap(&mut *lock(), &mut batch);
            if !batch.is_empty() {
                fabric.take_in(&mut batch, events);
                // its memory is used again
                let mut next = lock();
                if next.is_empty() {
                    std::mem::swap(&mut *next, &mut batch);
                }
            }
        }
    }

    /// The first part stops: where an event has ended the run, all go on until it;
    /// else all have gone on until the clock of the first part, and stop there.
    pub fn stop(&self, last: Option<Last>) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = last;
        self.stopped.store(true, Ordering::SeqCst);
        self.clocks.wake_all();
    }

    fn last_event(&self) -> Option<Last> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Deals a fabric and its events to the parts: what is left of it is the first of them.
pub fn divide(
    division: &Division,
    exchange: &Exchange,
    now: Time,
    (whole, events): (&mut Fabric, &mut Tournament),
    parts: &mut [Part],
) {
    let cut = |number, fabric: &Fabric| {
        let mut ends = division.roles(fabric, number);
        ends.iter_mut().for_each(|end| end.last = now);
        Some(Box::new(Cut::new(ends, division.parts)))
    };
    whole.cut = cut(LEADER, whole);
    for (part, number) in parts.iter_mut().zip(1..) {
        part.fabric.cut = cut(number, whole);
        part.fabric.losses.kept = whole.losses.kept;
        part.fired = 0;
    }
    for link in 0..whole.links.len() {
        let (owner, reader) = division.ends(whole, link);
        let number = link as u32;
        if owner == LEADER {
            continue;
        }
        let part = &mut parts[owner - 1];
        std::mem::swap(&mut whole.links[link], &mut part.fabric.links[link]);
        part.events.set(number, events.key(number));
        events.set(number, Key::NEVER);
        move_packets(whole, &mut part.fabric, link);
        if reader != owner {
            part.fabric.hand_over(number);
        }
    }
    exchange.send(LEADER, whole);
    for (part, number) in parts.iter_mut().zip(1..) {
        exchange.send(number, &mut part.fabric);
    }
}

/// The packets on a link of `to` lie in the pool of `from`: moves them.
fn move_packets(from: &mut Fabric, to: &mut Fabric, link: usize) {
    let wire = &mut to.links[link].on_wire;
    for place in 0..wire.len() as u32 {
        wire.change(place, |passage| {
            let stored = from.pool.take(passage.slot);
            let side = stored.has_sack().then(|| from.pool.take_side(&stored));
            passage.slot = to.pool.put(stored, side);
        });
    }
}

/// What came of parts that have been put together again.
pub struct United {
    /// Events that the others have carried out, without those that two of them had.
    pub events: u64,
    /// Events of the first part that others had, too.
    pub doubled: u64,
    /// What was lost since the first part last looked.
    pub losses: Vec<LostIn>,
}

/// Puts the parts, which have all stopped, together again.
pub fn unite(
    division: &Division,
    exchange: &Exchange,
    (whole, events): (&mut Fabric, &mut Tournament),
    parts: &mut [Part],
) -> United {
    exchange.receive(LEADER, whole, events);
    for (part, number) in parts.iter_mut().zip(1..) {
        exchange.receive(number, &mut part.fabric, &mut part.events);
    }
    for link in 0..whole.links.len() {
        let (owner, reader) = division.ends(whole, link);
        let number = link as u32;
        // packets that were handed over lie with the reader
        let handed = (owner != reader).then(|| {
            let fabric = match reader {
                LEADER => &mut *whole,
                _ => {
                    parts[reader - 1].events.set(number, Key::NEVER);
                    &mut parts[reader - 1].fabric
                }
            };
            std::mem::take(&mut fabric.links[link].on_wire)
        });
        if owner != LEADER {
            let part = &mut parts[owner - 1];
            std::mem::swap(&mut whole.links[link], &mut part.fabric.links[link]);
            events.set(number, part.events.key(number));
            part.events.set(number, Key::NEVER);
        }
        if let Some(handed) = handed {
            let wire = &mut whole.links[link].on_wire;
            assert_eq!(wire.len(), handed.len(), "all packets on a wire were handed over");
            for (place, there) in (0..).zip(handed.iter()) {
                wire.change(place, |passage| passage.slot = there.slot);
            }
        }
        if reader != LEADER {
            move_packets(&mut parts[reader - 1].fabric, whole, link);
        }
    }
    let cut = whole.cut.take().expect("the fabric was divided");
    let mut united = United { events: 0, doubled: cut.doubled, losses: cut.losses };
    for part in parts {
        assert_eq!(part.fabric.pool.in_use(), 0, "every packet is back");
        assert!(part.fabric.cut.as_ref().is_some_and(|cut| cut.sent.is_empty()), "all was sent");
        whole.dropped += std::mem::take(&mut part.fabric.dropped);
        let cut = part.fabric.cut.take().expect("the fabric was divided");
        united.events += part.fired - cut.doubled;
    }
    united
}
