//! What a world does that is one part of a run: it acts for its own hosts, and tells the others what
//! they have to know in time.
//!
//! Every part has all connections and is told of all openings, in the same order, so that slots and
//! hashes are those of one run; an end is simulated where its host is. Two things reach from one end to
//! the other at once, faster than any packet:
//!
//! * A message that has arrived makes a row with the sender's counters, and the workload closes both
//!   ends. The part of the receiver knows it early: when the packet that completes the message enters
//!   the last port, which is at least the delay of a cable before. It *promises* the time to the part of
//!   the sender, where it is an event of that link.
//! * A timeout of a sender looks at what the receiver has. Such a timer is known before; a window ends
//!   there, and the event is carried out with all parts at that time ([`crate::threads`]).
//!
//! What comes otherwise than foreseen is noticed, and the run is done in one.

use crate::messages::Delivered;
use crate::network::Source;
use crate::progress::RunError;
use crate::share::Share;
use crate::world::World;
use eastwest_engine::order::{Class, Key};
use eastwest_measure::flows::FlowRow;
use eastwest_network::losses::EventOrder;
use eastwest_network::partition::{Partition, Promise, within_link};
use eastwest_types::{ConnId, EndpointId, HostId, Side, Span, Time};
use eastwest_workload::Event;

/// Windows between two counts of packet transmissions.
const WINDOWS_PER_COUNT: u64 = 64;

/// Streams beyond this length have positions of which 32 bits are not enough to tell what was lost.
const LONGEST_STREAM: u64 = 1 << 31;

impl World {
    /// Returns what this part keeps for the end of the run.
    ///
    /// # Panics
    /// Where the run is not divided into parts.
    pub(crate) fn share(&self) -> &Share {
        self.share.as_deref().expect("it is a part")
    }

    /// Returns what this part keeps for the end of the run, for changes; see [`World::share`].
    pub(crate) fn share_mut(&mut self) -> &mut Share {
        self.share.as_deref_mut().expect("it is a part")
    }

    /// Returns how the fabric is divided among parts.
    ///
    /// # Panics
    /// Where the run is not divided into parts.
    pub(crate) fn partition(&self) -> &Partition {
        self.site.network.fabric.partition.as_deref().expect("it is a part")
    }

    /// Returns how the fabric is divided among parts, for changes; see [`World::partition`].
    pub(crate) fn partition_mut(&mut self) -> &mut Partition {
        self.site.network.fabric.partition.as_deref_mut().expect("it is a part")
    }

    /// Whether it simulates this end of a connection.
    pub(crate) fn owns(&self, end: EndpointId) -> bool {
        let site = &self.site;
        site.network.owns(site.transports.tcp.stack.endpoint(end).local())
    }

    /// What orders the event at a host that is being carried out; it is asked for in parts only.
    pub(crate) fn order_of_event_at(&self, host: HostId) -> EventOrder {
        let down = self.site.network.fabric.down_to(host);
        self.site.network.fabric.event_at(self.site.network.now, down)
    }

    /// A message was written: the part of the receiver waits for its end where the sender is in another.
    pub(crate) fn watch_across(&mut self, sender: EndpointId, end: u64) {
        let receiver = sender.peer();
        let Some(share) = &mut self.share else { return };
        if end >= LONGEST_STREAM {
            share.wrong = Some("a stream is longer than 2 GiB");
        }
        if !self.owns(sender)
            && self.owns(receiver)
            && let Some(partition) = &mut self.site.network.fabric.partition
        {
            partition.watch(receiver, end + 1);
        }
    }

    /// A message has arrived here.
    pub(crate) fn delivered_in_part(&mut self, receiver: EndpointId, d: &Delivered) {
        let down = self
            .site
            .network
            .fabric
            .down_to(self.site.transports.tcp.stack.endpoint(receiver).local());
        let (now, here) = (self.site.network.now, self.owns(receiver.peer()));
        let (event, number) = self.site.network.fabric.event_at(now, down);
        // what the ends do now is of this event, also at the sender's host
        self.set_other(Some((event, number | if here { 1 } else { 2 })));
        if here {
            let before = self.site.network.fabric.links[down as usize].counters.packets - 1;
            return self.complete(receiver, d, before & u64::from(u32::MAX));
        }
        if let Some(share) = &mut self.share
            && share.promised.get(receiver.slot()).copied().flatten() != Some(now)
        {
            share.wrong = Some("a message arrived that was not foreseen");
        }
    }

    /// A message from here has arrived.
    fn complete(&mut self, receiver: EndpointId, d: &Delivered, number: u64) {
        let (tcp, network) = (&self.site.transports.tcp, &self.site.network);
        let row = d.message.record.then(|| tcp.flow_row(network, receiver, d));
        let link = network.fabric.down_to(tcp.stack.endpoint(receiver).local());
        if let Some(share) = &mut self.share {
            share.done += 1;
            share.rows.extend(row.map(|row| (row, link, number)));
        }
    }

    /// What another part has promised comes true: a message from here has reached its receiver.
    pub(crate) fn delivered_across(&mut self, receiver: EndpointId, number: u64) {
        let link = self
            .site
            .network
            .fabric
            .down_to(self.site.transports.tcp.stack.endpoint(receiver).local());
        let key = Key::new(self.site.network.now, Class::Arrival);
        self.set_other(Some((
            self.site.network.sources.order().of((key, link)),
            within_link(number, 1),
        )));
        self.complete_across(receiver, number);
        self.carry_notices();
        self.set_other(None);
    }

    fn complete_across(&mut self, receiver: EndpointId, number: u64) {
        if let Some(partition) = &mut self.site.network.fabric.partition {
            partition.kept += 1;
        }
        let Some(d) = self.site.transports.tcp.messages.pop(receiver, u64::MAX) else {
            return self.go_wrong("a promised message is not on its way");
        };
        self.complete(receiver, &d, number);
        if let Some(name) = d.name {
            let event = Event::Delivered { conn: ConnId(name), from: d.from, tag: d.message.tag };
            self.tell(d.workload, event);
        }
    }

    /// The run has to be done in one.
    pub(crate) fn go_wrong(&mut self, why: &'static str) {
        if let Some(share) = &mut self.share {
            share.wrong = share.wrong.or(Some(why));
        }
    }

    /// Carries out an event that is not a link's.
    pub(crate) fn fire_in_part(&mut self, source: Source) {
        let network = &self.site.network;
        let (class, rank) = match source {
            Source::Timers => (Class::Timer, network.timers.first_rank()),
            Source::Wakes => (Class::Wake, network.opened),
            Source::Samples | Source::Faults => {
                return self.go_wrong("samples and faults are not for one part");
            }
        };
        let key = Key::new(network.now, class);
        let order = (network.sources.order().of((key, network.number_of(source))), rank);
        if source == Source::Timers {
            self.check_timeout();
        }
        if let Some(share) = &mut self.share {
            share.repeated += u64::from(source == Source::Wakes);
        }
        self.set_other(Some(order));
        self.fire(source);
        self.carry_notices();
        self.set_other(None);
    }

    pub(crate) fn set_other(&mut self, order: Option<EventOrder>) {
        if let Some(partition) = &mut self.site.network.fabric.partition {
            partition.other = order;
        }
    }

    /// A timer strikes: if it looks at the other end, that one has to be here or up to date.
    fn check_timeout(&mut self) {
        if let Some(end) = self.timer_across()
            && self.site.transports.tcp.stack.looks_across(end) <= self.site.network.now
            && self.share.as_ref().is_some_and(|share| !share.in_step)
        {
            self.go_wrong("a timer struck that was not foreseen");
        }
    }

    /// Returns the end that the next timer is for, if the other end is in another part.
    pub(crate) fn timer_across(&self) -> Option<EndpointId> {
        let end = EndpointId(self.site.network.timers.first_token()? as u32);
        (self.site.transports.tcp.stack.knows(end) && !self.owns(end.peer())).then_some(end)
    }

    /// The first time before `bound` at which a sender here looks at a receiver elsewhere, or the bound.
    pub(crate) fn next_look_across(&mut self, bound: Time) -> Time {
        if self.site.network.timers.first().time() >= bound {
            return bound;
        }
        let mut ends = Vec::new();
        self.site.network.timers.each_before(bound, |token| ends.push(EndpointId(token as u32)));
        let looks = ends
            .into_iter()
            .filter(|&end| self.site.transports.tcp.stack.knows(end) && !self.owns(end.peer()));
        looks.map(|end| self.site.transports.tcp.stack.looks_across(end)).fold(bound, Time::min)
    }

    /// A packet that finds a connection gone finds nobody; whether it is gone depends on both ends.
    pub(crate) fn check_late(&mut self) {
        if self.site.transports.tcp.stack.take_late().into_iter().any(|end| !self.owns(end.peer()))
        {
            self.go_wrong("a packet came to a connection that was nearly gone");
        }
    }

    /// Tells other parts of messages that are now sure to arrive, and when.
    pub(crate) fn promise(&mut self) {
        let Some(partition) = &mut self.site.network.fabric.partition else { return };
        if partition.checks.is_empty() {
            return;
        }
        let mut checks = std::mem::take(&mut partition.checks);
        checks.sort_unstable();
        checks.dedup();
        let mut promises = Vec::new();
        for (link, receiver) in checks {
            let (next, mut held) = self.site.transports.tcp.stack.endpoint(receiver).has_come();
            let Some(end) = self.site.transports.tcp.messages.next_end(receiver) else { continue };
            let range = (next.max(1), end + 1);
            let sources = &self.site.network.sources;
            let sure =
                self.site.network.fabric.completes(link, receiver, range, &mut held, sources);
            promises.extend(sure.map(|(at, number)| (link, number, at, receiver)));
        }
        promises.sort_unstable();
        for (link, number, at, endpoint) in promises {
            let sender = self.site.transports.tcp.stack.endpoint(endpoint).remote();
            let (Some(partition), Some(share)) =
                (&mut self.site.network.fabric.partition, &mut self.share)
            else {
                return;
            };
            partition.forget(endpoint);
            let slot = endpoint.slot();
            if slot >= share.promised.len() {
                share.promised.resize(slot + 1, None);
            }
            share.promised[slot] = Some(at);
            partition.promise(sender, Promise { link, at, endpoint, number });
        }
    }

    /// Makes this world one part of a run.
    pub(crate) fn become_part(&mut self) {
        self.share = Some(Box::default());
        self.site.transports.tcp.stack.keep_late();
        for driver in &mut self.site.drivers.all {
            driver.background = true;
        }
        self.site.drivers.unfinished = 1;
        self.site.network.set(Source::Samples, Key::NEVER);
    }

    /// Carries out all events before `end`.
    pub(crate) fn run_window(&mut self, end: Time) -> Result<(), RunError> {
        let over = self.site.transports.tcp.stack.has_ended();
        let start = self.site.network.now;
        self.site.until = Time(end.0 - 1);
        self.stretch::<false, false>(u64::MAX)?;
        self.promise();
        self.check_late();
        self.count_hops();
        if !over
            && self.site.transports.tcp.stack.has_ended()
            && let Some(share) = &mut self.share
        {
            share.first_over = Some(start);
        }
        Ok(())
    }

    /// Looks at all links every so many windows, for whoever watches the run.
    fn count_hops(&mut self) {
        let Some(share) = &mut self.share else { return };
        if share.windows % WINDOWS_PER_COUNT == 0 {
            share.hops = self.site.network.fabric.own_packet_hops();
        }
        share.windows += 1;
    }

    /// Samples are taken of the whole.
    pub(crate) fn next_sample(&self) -> Time {
        self.site.probes.records.samples.next()
    }

    /// Puts the parts of a run together that has ended with this event: afterwards the first of them is
    /// what it had been in one.
    pub(crate) fn unite(mut self, mut others: Vec<World>, last: (Key, u32)) -> World {
        let partition = self.site.network.fabric.partition.as_ref().expect("it is a part");
        let part_of = |host: HostId| partition.part_of(host);
        for (other, part) in others.iter_mut().zip(1..) {
            self.site.transports.tcp.messages.take_over(
                &mut other.site.transports.tcp.messages,
                |slot, side| {
                    let client = EndpointId::new(slot, 0);
                    let end = if side == Side::Client { client } else { client.peer() };
                    part_of(self.site.transports.tcp.stack.endpoint(end).local()) == part
                },
            );
        }
        for (other, part) in others.iter_mut().zip(1..) {
            self.site
                .transports
                .tcp
                .stack
                .take_over(&mut other.site.transports.tcp.stack, |host| part_of(host) == part);
        }
        let mut share = self.share.take().expect("it is a part");
        for other in &mut others {
            let of_other = other.share.take().expect("it is a part");
            self.site.events += other.site.events - of_other.repeated;
            share.rows.extend(of_other.rows);
            share.events.extend(of_other.events);
            share.events_left_out += of_other.events_left_out;
            for (mine, theirs) in
                self.site.probes.records.latency.iter_mut().zip(&other.site.probes.records.latency)
            {
                mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| mine.merge(theirs));
            }
        }
        self.site.events -=
            self.site.network.fabric.partition.as_ref().map_or(0, |partition| partition.kept);
        for other in &others {
            self.site.events -=
                other.site.network.fabric.partition.as_ref().map_or(0, |partition| partition.kept);
        }
        let order = |row: &(FlowRow, u32, u64)| {
            (
                self.site
                    .network
                    .sources
                    .order()
                    .of((Key::new(row.0.finish, Class::Arrival), row.1)),
                row.2,
            )
        };
        share.rows.sort_by_key(order);
        share.rows.into_iter().for_each(|(row, ..)| self.site.probes.records.flow(row));
        // at one time what TCP does goes first, see `incidents`
        share.events.sort_by_key(|(order, row)| (row.at, row.drop.is_some(), *order));
        share.events.into_iter().for_each(|(_, row)| self.site.probes.records.events.push(row));
        self.site.probes.records.events.leave_out(share.events_left_out);
        let mut fabrics: Vec<_> =
            others.into_iter().map(|other| other.site.network.fabric).collect();
        self.site.network.fabric.unite(&mut fabrics);
        self.site.network.now = last.0.time();
        self
    }
}

/// How far a part can run ahead of what others do: the least delay of all cables.
pub(crate) fn lookahead(world: &World) -> Span {
    world.site.network.fabric.links.iter().map(|l| l.cable.delay).min().unwrap_or(Span::ZERO)
}
