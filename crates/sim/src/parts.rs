//! Behaviour of a world (the state of a run) that is one part of a partitioned run: it simulates
//! its own hosts, and informs the other parts of events that concern them before these events
//! occur.
//!
//! All parts count the connections of all parts in the same order, so that slots and hashes are
//! those of an undivided run. A connection is entered only in the parts of its two hosts. An
//! endpoint is simulated in the part of its host. Two effects reach the part of the peer without the
//! delay of a packet:
//!
//! * The arrival of a message adds a row with the sender's counters to the table of flows, and the
//!   workload closes both endpoints. The part of the receiver knows of the arrival early: when the
//!   packet that completes the message is enqueued at the last port, at least the delay of a cable
//!   before. It announces the arrival time to the part of the sender (a *promise*), where the
//!   arrival becomes an event of this last link.
//! * A timeout of a sender inspects the data of the receiver. The expiry of a retransmission timer
//!   is known in advance: a window ends at this time, and one thread executes the event with access
//!   to all parts ([`crate::threads`]).
//!
//! Any other effect on another part without the delay of a packet is detected, and the run is
//! repeated undivided.

use crate::messages::Delivered;
use crate::network::Source;
use crate::part_state::PartState;
use crate::progress::RunError;
use crate::site::Site;
use crate::stream_transports::interface::StreamTransport;
use crate::stream_transports::number::TransportNumber;
use crate::wakes::{Executed, WakeUp};
use crate::world::World;
use eastwest_engine::order::{Class, Key};
use eastwest_measure::flows::FlowRow;
use eastwest_network::losses::EventOrder;
use eastwest_network::partition::{Partition, Promise, within_link};
use eastwest_types::{ConnId, EndpointId, HostId, Purpose, Side, Span, Time};
use eastwest_workload::{Action, Event};
use std::cmp::Reverse;
use std::collections::VecDeque;

/// Number of time windows between two counts of packet transmissions for the progress display.
const WINDOWS_PER_COUNT: u64 = 64;

/// Largest number of connections for which a part reserves memory before they are opened.
const MOST_RESERVED: u64 = 1 << 20;

/// Bits of the rank of a wake-up that hold the number of opened connections.
const RANKS_OF_OPENED: u64 = (1 << 24) - 1;

/// Length of a byte stream in bytes from which on the 32 bits of a stream position in the log of
/// lost packets are ambiguous.
const LONGEST_STREAM: u64 = 1 << 31;

impl World {
    /// Returns the state of this part of a partitioned run.
    ///
    /// # Panics
    /// If the run is not divided into parts.
    pub(crate) fn part_state(&self) -> &PartState {
        self.part_state.as_deref().expect("the run is partitioned")
    }

    /// Returns mutable access to the state of this part of a partitioned run.
    pub(crate) fn part_state_mut(&mut self) -> &mut PartState {
        self.part_state.as_deref_mut().expect("the run is partitioned")
    }

    /// Returns how the fabric is divided among the parts of a partitioned run.
    ///
    /// # Panics
    /// If the run is not divided into parts.
    pub(crate) fn partition(&self) -> &Partition {
        self.site.network.fabric.partition.as_deref().expect("the run is partitioned")
    }

    /// Returns mutable access to the division of the fabric among parts; see [`World::partition`].
    pub(crate) fn partition_mut(&mut self) -> &mut Partition {
        self.site.network.fabric.partition.as_deref_mut().expect("the run is partitioned")
    }

    /// Whether this part of a partitioned run simulates the host of an endpoint.
    pub(crate) fn owns(&self, end: EndpointId) -> bool {
        let site = &self.site;
        site.network.owns(site.transports.tcp.stack.endpoint(end).local())
    }

    /// Returns the order of the current event at a host among the events of all parts of a
    /// partitioned run.
    pub(crate) fn order_of_event_at(&self, host: HostId) -> EventOrder {
        let down = self.site.network.fabric.down_to(host);
        self.site.network.fabric.event_at(self.site.network.now, down)
    }

    /// Whether other parts of the partitioned run execute this action of a workload: it concerns a
    /// connection between two of their hosts. A connection that is opened there is counted.
    pub(crate) fn is_done_elsewhere(&mut self, workload: u16, action: &Action) -> bool {
        let site = &mut self.site;
        match *action {
            Action::Open { client, server, .. } => {
                if site.network.owns(client) || site.network.owns(server) {
                    return false;
                }
                self.count_elsewhere();
                true
            }
            Action::Send { conn, .. }
            | Action::Shutdown { conn, .. }
            | Action::Truncate { conn, .. }
            | Action::Close { conn }
            | Action::Abort { conn }
            | Action::Ask { conn } => site.transports.tcp.messages.find(workload, conn.0).is_none(),
            _ => false,
        }
    }

    /// Counts a connection between hosts of other parts of the partitioned run, so that later
    /// connections have the numbers of an undivided run.
    fn count_elsewhere(&mut self) {
        let (network, tcp) = (&mut self.site.network, &mut self.site.transports.tcp);
        network.opened += 1;
        tcp.connections.number();
        if !tcp.stack.skip() {
            self.stop_without_slots(TransportNumber::TCP);
        }
    }

    /// Returns the parts that execute a wake-up which is scheduled for the time `at`; `None`: only
    /// other parts do. They open a connection then, which this part will count.
    pub(crate) fn executed_in_parts(&mut self, at: Time, wake_up: WakeUp) -> Option<Executed> {
        let executed = self.part_state().executed;
        if executed != Executed::Everywhere {
            return Some(executed); // a reaction at the host of the present event
        }
        let Site { drivers, network, .. } = &mut self.site;
        let workload = &mut drivers.all[usize::from(wake_up.workload)].workload;
        let Some((client, server)) = workload.opens(wake_up.token) else { return Some(executed) };
        match (network.owns(client), network.owns(server)) {
            (true, _) => Some(Executed::Here),
            (false, true) => Some(Executed::Copy),
            (false, false) => {
                let rank = drivers.wakes.rank(at, wake_up);
                self.part_state_mut().opened_elsewhere.push((at, rank));
                None
            }
        }
    }

    /// Notifies all workloads of this part that the run begins. Further calls do nothing.
    pub(crate) fn start_part(&mut self) {
        self.start_workloads();
        let opened = &mut self.part_state_mut().opened_elsewhere;
        opened.sort_unstable_by_key(|&opened| Reverse(opened));
    }

    /// Registers, if the receiver is in this part and the sender in another one, the stream
    /// position at which a written message ends. This part will promise the time of the message's
    /// arrival to the sender's part.
    pub(crate) fn expect_across(&mut self, sender: EndpointId, end: u64) {
        let receiver = sender.peer();
        if end >= LONGEST_STREAM {
            self.abort_partitioned("a connection carries more than 2 GiB");
        }
        if !self.owns(sender)
            && self.owns(receiver)
            && let Some(partition) = &mut self.site.network.fabric.partition
        {
            partition.watch(receiver, end + 1);
        }
    }

    /// Handles the arrival of a message at `receiver`, which this part of a partitioned run
    /// simulates. If the sender is in another part, checks that the arrival was promised.
    pub(crate) fn delivered_in_part(&mut self, receiver: EndpointId, d: &Delivered) {
        let down = self
            .site
            .network
            .fabric
            .down_to(self.site.transports.tcp.stack.endpoint(receiver).local());
        let (now, here) = (self.site.network.now, self.owns(receiver.peer()));
        let (event, number) = self.site.network.fabric.event_at(now, down);
        // actions of both endpoints belong to the event of this arrival, also the actions at the
        // sender's host
        self.set_other(Some((event, number | if here { 1 } else { 2 })));
        if let Some(part_state) = &mut self.part_state {
            part_state.executed = Executed::Here;
        }
        if here {
            let before = self.site.network.fabric.links[down as usize].counters.packets - 1;
            return self.complete(receiver, d, before & u64::from(u32::MAX));
        }
        let promised = self.part_state_mut().promised.get_mut(receiver.slot());
        if promised.and_then(VecDeque::pop_front) != Some(now) {
            self.abort_partitioned(
                "a thread could not predict when a simulated message would arrive",
            );
        }
    }

    /// Records a delivered message whose sender is in this part of a partitioned run.
    fn complete(&mut self, receiver: EndpointId, d: &Delivered, number: u64) {
        let (tcp, network) = (&self.site.transports.tcp, &self.site.network);
        let row = d.message.record.then(|| tcp.flow_row(network, receiver, d));
        let link = network.fabric.down_to(tcp.stack.endpoint(receiver).local());
        if let Some(part_state) = &mut self.part_state {
            let counts = part_state.awaited[usize::from(d.workload)];
            let is_request = d.message.purpose == Purpose::Request;
            part_state.done += u64::from(counts && !is_request);
            part_state.rows.extend(row.map(|row| (row, link, number)));
        }
    }

    /// Handles the arrival of a message at `receiver` in another part of a partitioned run, which
    /// has promised the arrival time. The sender is in this part. `number` is the number of packets
    /// that the last link had delivered before.
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
        self.part_state_mut().executed = Executed::Copy;
        self.complete_across(receiver, number);
        self.dispatch_notices();
        self.set_other(None);
    }

    fn complete_across(&mut self, receiver: EndpointId, number: u64) {
        if let Some(partition) = &mut self.site.network.fabric.partition {
            partition.kept += 1;
        }
        let Some(d) = self.site.transports.tcp.messages.pop(receiver, u64::MAX) else {
            return self.abort_partitioned(
                "a message did not arrive at the time announced to another thread",
            );
        };
        self.complete(receiver, &d, number);
        if let Some(name) = d.name {
            let event = Event::Delivered { conn: ConnId(name), from: d.from, tag: d.message.tag };
            self.notify_workload(d.workload, event);
        }
    }

    /// Requests that the partitioned run is repeated on one thread, for the reason `why`, which is
    /// shown to the user.
    pub(crate) fn abort_partitioned(&mut self, why: &'static str) {
        if let Some(part_state) = &mut self.part_state {
            part_state.abort_reason = part_state.abort_reason.or(Some(why));
        }
    }

    /// Executes an event that is not an event of a link (timer or wake-up) in one part of a
    /// partitioned run.
    pub(crate) fn dispatch_in_part(&mut self, source: Source) {
        let (class, rank) = match source {
            Source::Timers => (Class::Timer, self.site.network.timers.first_rank()),
            Source::Wakes => (Class::Wake, self.begin_wake_up()),
            Source::Samples | Source::Faults | Source::Processing => {
                return self.abort_partitioned(
                    "samples, faults and CPU cores of hosts need the state of all threads",
                );
            }
        };
        let network = &self.site.network;
        let key = Key::new(network.now, class);
        let order = (network.sources.order().of((key, network.number_of(source))), rank);
        if source == Source::Timers {
            self.check_timeout();
        }
        self.set_other(Some(order));
        self.dispatch(source);
        self.dispatch_notices();
        self.set_other(None);
    }

    /// Counts the wake-up that is executed next. Returns its rank among the wake-ups at the same
    /// time.
    fn begin_wake_up(&mut self) -> u64 {
        let site = &self.site;
        let Some((wake_up, rank)) = site.drivers.wakes.peek() else { return 0 };
        let now = (site.network.now, rank);
        while self.part_state().opened_elsewhere.last().is_some_and(|&opened| opened < now) {
            self.part_state_mut().opened_elsewhere.pop();
            self.count_elsewhere();
        }
        // wake-ups of equal rank follow each other in the same order in all parts that execute them
        let rank = rank & !RANKS_OF_OPENED | self.site.network.opened & RANKS_OF_OPENED;
        let part_state = self.part_state_mut();
        part_state.executed = wake_up.executed;
        match wake_up.executed {
            Executed::Everywhere => part_state.repeated += 1,
            Executed::Copy => part_state.copied += 1,
            Executed::Here => {}
        }
        rank
    }

    /// Executes the actions with which workloads end that close all their connections, after the
    /// last event `last` (key, source) of the run.
    pub(crate) fn end_workloads(&mut self, last: (Key, u32)) {
        self.site.network.now = last.0.time();
        self.set_other(Some((self.site.network.sources.order().of(last), u64::MAX)));
        for workload in 0..self.part_state().awaited.len() {
            let mut actions = Vec::new();
            if self.part_state().awaited[workload] {
                self.site.drivers.all[workload].workload.end(&mut actions);
            }
            for action in actions {
                self.execute(workload as u16, action);
            }
        }
        self.dispatch_notices();
        self.set_other(None);
    }

    /// Sets the order of the current event among the events of all parts. Events of links need no
    /// call: their order follows from the link. `None`: the event has ended.
    pub(crate) fn set_other(&mut self, order: Option<EventOrder>) {
        if order.is_none()
            && let Some(part_state) = &mut self.part_state
        {
            part_state.executed = Executed::Everywhere;
        }
        if let Some(partition) = &mut self.site.network.fabric.partition {
            partition.other = order;
        }
    }

    /// Aborts the partitioned run if the timer that expires now makes TCP inspect a peer in another
    /// part although the parts are not executed in step.
    fn check_timeout(&mut self) {
        if let Some(end) = self.timer_across()
            && self.site.transports.tcp.stack.peer_inspection_at(end) <= self.site.network.now
            && self.part_state.as_ref().is_some_and(|part_state| !part_state.in_step)
        {
            self.abort_partitioned(
                "a timer of TCP expired at a time that its thread had not announced to the \
                 others",
            );
        }
    }

    /// Returns the endpoint of the next timer to expire if its peer is in another part of a
    /// partitioned run; otherwise `None`.
    pub(crate) fn timer_across(&self) -> Option<EndpointId> {
        let end = EndpointId(self.site.network.timers.first_token()? as u32);
        (self.site.transports.tcp.stack.is_live(end) && !self.owns(end.peer())).then_some(end)
    }

    /// Returns the first simulated time before `bound` at which a timer of this part inspects a
    /// peer in another part; `bound` if there is none.
    pub(crate) fn next_look_across(&mut self, bound: Time) -> Time {
        if self.site.network.timers.first().time() >= bound {
            return bound;
        }
        let mut ends = Vec::new();
        self.site.network.timers.each_before(bound, |token| ends.push(EndpointId(token as u32)));
        let looks = ends
            .into_iter()
            .filter(|&end| self.site.transports.tcp.stack.is_live(end) && !self.owns(end.peer()));
        looks
            .map(|end| self.site.transports.tcp.stack.peer_inspection_at(end))
            .fold(bound, Time::min)
    }

    /// Requests that the run is repeated undivided if a packet has arrived at a finished endpoint
    /// whose peer is in another part: the end of a connection depends on both endpoints, and each
    /// part knows only one in time.
    pub(crate) fn check_late(&mut self) {
        if self
            .site
            .transports
            .tcp
            .stack
            .take_late_arrivals()
            .into_iter()
            .any(|end| !self.owns(end.peer()))
        {
            self.abort_partitioned(
                "a packet arrived at a connection that had already ended on its host",
            );
        }
    }

    /// Informs the other parts of a partitioned run of messages that are certain to arrive, with
    /// their arrival times (promises).
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
            let (next, mut held) =
                self.site.transports.tcp.stack.endpoint(receiver).received_ranges();
            // messages that are promised already, and are still in flight
            let promised = self.part_state().promised.get(receiver.slot()).map_or(0, VecDeque::len);
            let ends = self.site.transports.tcp.messages.ends(receiver).map(|end| end + 1);
            let ends: Vec<u64> = ends.skip(promised).collect();
            let sources = &self.site.network.sources;
            let range = (next.max(1), &ends[..]);
            let sure =
                self.site.network.fabric.completes(link, receiver, range, &mut held, sources);
            if !sure.is_empty() {
                let after = ends.get(sure.len()).copied();
                self.site.network.fabric.end_watch(link, receiver, after);
            }
            promises.extend(sure.into_iter().map(|(at, number)| (link, number, at, receiver)));
        }
        promises.sort_unstable();
        for (link, number, at, endpoint) in promises {
            let sender = self.site.transports.tcp.stack.endpoint(endpoint).remote();
            let (Some(partition), Some(part_state)) =
                (&mut self.site.network.fabric.partition, &mut self.part_state)
            else {
                return;
            };
            let slot = endpoint.slot();
            if slot >= part_state.promised.len() {
                part_state.promised.resize_with(slot + 1, VecDeque::new);
            }
            part_state.promised[slot].push_back(at);
            partition.promise(sender, Promise { link, at, endpoint, number });
        }
    }

    /// Makes this world, the complete state of a run, one part of a partitioned run.
    pub(crate) fn become_part(&mut self) {
        let flows = self.site.drivers.all.iter().filter_map(|driver| driver.workload.local_flows());
        let connections = flows.sum::<u64>().min(MOST_RESERVED) as usize;
        let tcp = &mut self.site.transports.tcp;
        tcp.stack.reserve(connections);
        tcp.connections.reserve(connections);
        tcp.messages.reserve(connections);
        let awaited = self.site.drivers.all.iter().map(|driver| !driver.background).collect();
        self.part_state = Some(Box::new(PartState { awaited, ..PartState::default() }));
        self.site.transports.tcp.stack.record_late_arrivals();
        for driver in &mut self.site.drivers.all {
            driver.background = true;
        }
        self.site.drivers.unfinished = 1;
        self.site.network.set(Source::Samples, Key::NEVER);
    }

    /// Executes all events of this part of a partitioned run before the time `end`.
    pub(crate) fn run_window(&mut self, end: Time) -> Result<(), RunError> {
        let over = self.site.transports.tcp.stack.has_ended();
        let start = self.site.network.now;
        self.site.until = Time(end.0 - 1);
        self.run_events::<false, false>(u64::MAX)?;
        self.promise();
        self.check_late();
        self.count_hops();
        if !over
            && self.site.transports.tcp.stack.has_ended()
            && let Some(part_state) = &mut self.part_state
        {
            part_state.first_over = Some(start);
        }
        Ok(())
    }

    /// Counts packet transmissions on all links every 64 windows, for the progress display.
    fn count_hops(&mut self) {
        let Some(part_state) = &mut self.part_state else { return };
        if part_state.windows % WINDOWS_PER_COUNT == 0 {
            part_state.hops = self.site.network.fabric.own_packet_hops();
        }
        part_state.windows += 1;
    }

    /// Returns the simulated time of the next sample. A sample visits all links, and therefore all
    /// parts.
    pub(crate) fn next_sample(&self) -> Time {
        self.site.probes.records.samples.next()
    }

    /// Merges the parts `others` of a partitioned run, which ended with the event `last` (key,
    /// source), into this part. The result equals the state of an undivided run.
    pub(crate) fn unite(mut self, mut others: Vec<World>, last: (Key, u32)) -> World {
        let partition = self.site.network.fabric.partition.as_ref().expect("the run has parts");
        let tcp = &mut self.site.transports.tcp;
        for (other, part) in others.iter_mut().zip(1..) {
            let other = &mut other.site.transports.tcp;
            tcp.stack.adopt_endpoints(&mut other.stack, |host| partition.is_in(host, part));
            tcp.connections.take_over(&other.connections);
            tcp.messages.take_over(&mut other.messages, |slot, side| {
                let client = EndpointId::new(slot, 0);
                let end = if side == Side::Client { client } else { client.peer() };
                partition.is_in(tcp.stack.endpoint(end).local(), part)
            });
        }
        let mut part_state = self.part_state.take().expect("the run is partitioned");
        self.site.events -= part_state.copied;
        for other in &mut others {
            let of_other = other.part_state.take().expect("the run is partitioned");
            self.site.events += other.site.events - of_other.repeated - of_other.copied;
            part_state.rows.extend(of_other.rows);
            part_state.events.extend(of_other.events);
            part_state.events_left_out += of_other.events_left_out;
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
        part_state.rows.sort_by_key(order);
        part_state.rows.into_iter().for_each(|(row, ..)| self.site.probes.records.flow(row));
        // Events of TCP precede losses at the same time, as in the undivided run, see
        // `Site::take_losses`.
        part_state.events.sort_by_key(|(order, row)| (row.at, row.drop.is_some(), *order));
        part_state
            .events
            .into_iter()
            .for_each(|(_, row)| self.site.probes.records.events.push(row));
        self.site.probes.records.events.leave_out(part_state.events_left_out);
        let mut fabrics: Vec<_> =
            others.into_iter().map(|other| other.site.network.fabric).collect();
        self.site.network.fabric.unite(&mut fabrics);
        self.site.network.now = last.0.time();
        self
    }
}

/// Returns the lookahead of a partitioned run: the simulated time by which a part can run ahead of
/// other parts. It is the smallest delay of all cables.
pub(crate) fn lookahead(world: &World) -> Span {
    world.site.network.fabric.links.iter().map(|l| l.cable.delay).min().unwrap_or(Span::ZERO)
}
