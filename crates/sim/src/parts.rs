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
//! Workloads that react at any host are *replicated*: each part has a copy of every workload, passes
//! all events to it in the order of an undivided run, and carries out what concerns its own hosts.
//! Arrivals are promised to all parts. All parts know all connections, and also when TIME-WAIT of each
//! endpoint ends, after which its slot is used again.
//!
//! Any other effect on another part without the delay of a packet is detected, and the run is
//! repeated undivided.

use crate::messages::Delivered;
use crate::network::Source;
use crate::part_state::{PartEvent, PartState};
use crate::progress::RunError;
use crate::site::Site;
use crate::stream_transports::interface::{Arrived, Partitionable, StreamTransport};
use crate::stream_transports::number::TransportNumber;
use crate::tcp::TcpRequest;
use crate::wakes::{Executed, WakeUp};
use crate::world::World;
use eastwest_engine::order::{Class, Key};
use eastwest_measure::events::EventRow;
use eastwest_measure::flows::FlowRow;
use eastwest_network::fabric::Fabric;
use eastwest_network::losses::EventOrder;
use eastwest_network::partition::{Partition, Promise, within_link};
use eastwest_types::{ConnId, EndpointId, HostId, Purpose, Span, Time};
use eastwest_workload::{Action, Event};
use std::cmp::Reverse;
use std::collections::VecDeque;

/// Number of time windows between two counts of packet transmissions for the progress display.
const WINDOWS_PER_COUNT: u64 = 64;

/// Bits of the rank of a wake-up that hold the number of opened connections or, of replicated
/// workloads, of actions at this time.
const RANKS_OF_OPENED: u64 = (1 << 24) - 1;

/// Length of a byte stream in bytes from which on the 32 bits of a stream position in the log of
/// lost packets are ambiguous.
pub(crate) const LONGEST_STREAM: u64 = 1 << 31;

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

    /// Whether this is a part of a partitioned run whose parts all execute all events of workloads.
    pub(crate) fn replicates(&self) -> bool {
        let partition = self.site.network.fabric.partition.as_ref();
        partition.is_some_and(|partition| partition.replicates)
    }

    /// Whether this part of a partitioned run simulates the host of an endpoint.
    pub(crate) fn owns(&self, end: EndpointId) -> bool {
        self.site.network.owns(self.transport().hosts(end).0)
    }

    /// Returns the transport of all connections of this partitioned run.
    pub(crate) fn transport(&self) -> &dyn StreamTransport {
        self.site.transports.of(self.part_state().transport)
    }

    /// Returns mutable access to the transport of all connections of this partitioned run.
    fn transport_mut(&mut self) -> &mut dyn StreamTransport {
        self.site.transports.of_mut(self.part_state().transport)
    }

    /// Returns the functions of the transport that only partitioned runs need.
    pub(crate) fn transport_in_part(&mut self) -> &mut dyn Partitionable {
        self.transport_mut().partitionable().expect("a partitioned run has such a transport")
    }

    /// Returns the link from the switch of the host of an endpoint to the host.
    pub(crate) fn down_to(&self, end: EndpointId) -> u32 {
        self.site.network.fabric.down_to(self.transport().hosts(end).0)
    }

    /// Whether a connection of this part may have ended since the run began.
    pub(crate) fn has_ended(&mut self) -> bool {
        let now = self.site.network.now;
        self.transport_in_part().has_ended(now)
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
        if self.replicates() {
            return false;
        }
        let site = &mut self.site;
        match *action {
            Action::Open { client, server, .. } | Action::Declare { client, server, .. } => {
                if site.network.owns(client) || site.network.owns(server) {
                    return false;
                }
                self.count_elsewhere();
                true
            }
            Action::Connect { conn }
            | Action::Send { conn, .. }
            | Action::Shutdown { conn, .. }
            | Action::Truncate { conn, .. }
            | Action::Close { conn }
            | Action::Abort { conn }
            | Action::Ask { conn } => self.transport().messages().find(workload, conn.0).is_none(),
            _ => false,
        }
    }

    /// Counts a connection between hosts of other parts of the partitioned run, so that later
    /// connections have the numbers of an undivided run.
    fn count_elsewhere(&mut self) {
        self.site.network.opened += 1;
        self.site.transports.tcp.connections.number();
        if !self.transport_in_part().skip() {
            self.stop_without_slots(self.part_state().transport);
        }
    }

    /// Returns the parts that execute a wake-up which is scheduled for the time `at`; `None`: only
    /// other parts do. They open a connection then, which this part will count.
    pub(crate) fn executed_in_parts(&mut self, at: Time, wake_up: WakeUp) -> Option<Executed> {
        let replicates = self.replicates();
        let executed = self.part_state().executed;
        let Site { drivers, network, .. } = &mut self.site;
        if replicates {
            if drivers.of(wake_up.workload).workload.asks_at(wake_up.token) {
                self.part_state_mut().asks.insert(at);
            }
            return Some(Executed::Everywhere);
        }
        let workload = &mut drivers.all[usize::from(wake_up.workload)].workload;
        if workload.is_woken_at_one_host(wake_up.token) {
            return Some(Executed::Here);
        }
        if executed != Executed::Everywhere {
            return Some(executed); // a reaction at the host of the present event
        }
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

    /// Reserves memory for this number of connections of all parts of a partitioned run.
    pub(crate) fn reserve_in_part(&mut self, connections: usize) {
        self.partition_mut().reserve(2 * connections);
        let part_state = self.part_state_mut();
        part_state.promised.reserve(2 * connections);
        part_state.opened_elsewhere.reserve(connections);
    }

    /// Notifies all workloads of this part that the run begins. Further calls do nothing.
    pub(crate) fn start_part(&mut self) {
        self.start_workloads();
        let opened = &mut self.part_state_mut().opened_elsewhere;
        // One number of 128 bits is compared without branches.
        let place = |&(at, rank): &(Time, u64)| u128::from(at.0) << 64 | u128::from(rank);
        opened.sort_unstable_by_key(|opened| Reverse(place(opened)));
    }

    /// Registers the stream position at which a message ends that is about to be written, if the
    /// receiver is in this part and other parts must know of the arrival: the part of the sender, or
    /// all parts if they replicate workloads. This part will promise the time of the arrival to them.
    pub(crate) fn expect_across(&mut self, workload: u16, sender: EndpointId, end: u64) {
        let receiver = sender.peer();
        if self.site.drivers.of(workload).workload.truncates() {
            return; // see `watch_truncated`
        }
        if end >= LONGEST_STREAM {
            self.abort_partitioned("a connection carries more than 2 GiB");
        }
        if self.owns(receiver) && (self.replicates() || !self.owns(sender)) {
            let first = self.transport_in_part().arrived(receiver).first;
            self.partition_mut().watch(receiver, first + end);
        }
    }

    /// Registers the end of the last message to `receiver`, which has been truncated to what the sender
    /// has sent, so that its last byte may be in flight.
    pub(crate) fn watch_truncated(&mut self, receiver: EndpointId) {
        if self.part_state.is_none() {
            return;
        }
        let Some(end) = self.transport().messages().next_end(receiver) else { return };
        if end >= LONGEST_STREAM {
            return self.abort_partitioned("a connection carries more than 2 GiB");
        }
        if self.owns(receiver) && self.transport().received(receiver) < end {
            let down = self.down_to(receiver);
            let end = self.transport_in_part().arrived(receiver).first + end;
            self.site.network.fabric.watch_under_way(down, receiver, (end, end));
        }
    }

    /// Whether this part of a partitioned run executes the wake-up at which a workload truncates its
    /// messages, so that a message which is complete now has been truncated to what has arrived.
    pub(crate) fn truncates(&self, workload: u16) -> bool {
        let is_wake_up = || self.partition().other.is_some_and(|(event, _)| event.0.is_wake_up());
        self.site.drivers.of(workload).workload.truncates() && is_wake_up()
    }

    /// Handles the arrival of a message at `receiver`, which this part of a partitioned run
    /// simulates. If the sender is in another part, checks that the arrival was promised.
    pub(crate) fn delivered_in_part(&mut self, receiver: EndpointId, d: &Delivered) {
        if self.truncates(d.workload) {
            // All parts execute this, so that the rows of all parts have an order.
            let event = self.part_state().place.event;
            self.part_state_mut().begin_reports(event, false);
            if self.owns(receiver.peer()) {
                self.complete(receiver, d, 0);
            }
            return;
        }
        let down = self.down_to(receiver);
        let (now, here) = (self.site.network.now, self.owns(receiver.peer()));
        let (event, number) = self.site.network.fabric.event_at(now, down);
        let before = self.site.network.fabric.links[down as usize].counters().packets - 1;
        let before = before & u64::from(u32::MAX);
        // actions of both endpoints belong to the event of this arrival, also the actions at the
        // sender's host
        self.set_other(Some((event, number | reaction_of(receiver))));
        if let Some(part_state) = &mut self.part_state {
            part_state.executed = Executed::Here;
            part_state.begin_reports((event, before), false);
        }
        if here {
            self.complete(receiver, d, before);
            if !self.replicates() {
                return;
            }
        }
        let promised = self.part_state_mut().promised.get_mut(receiver.slot());
        if promised.and_then(VecDeque::pop_front) != Some(now) {
            self.abort_partitioned(
                "a thread could not predict when a simulated message would arrive",
            );
        }
    }

    /// Gives the next action of a replicated workload its place among the actions of the current event.
    /// Other parts carry out the actions at their hosts, and packets may be dropped in several of them.
    pub(crate) fn begin_action(&mut self) {
        let now = self.site.network.now;
        let (Some(part_state), Some(partition)) =
            (&mut self.part_state, &mut self.site.network.fabric.partition)
        else {
            return;
        };
        if let Some((event, place)) = partition.other.as_mut().filter(|_| partition.replicates) {
            let (before, at) = part_state.actions;
            let number = if at == now { before + 1 } else { 1 };
            part_state.actions = (number, now);
            let bits = if event.0.is_wake_up() { RANKS_OF_OPENED } else { u64::from(u32::MAX) };
            *place = *place & !bits | u64::from(number) & bits;
        }
    }

    /// Keeps a report of a workload. Of the equal reports of replicated workloads, the first part keeps
    /// its own.
    pub(crate) fn report_in_part(&mut self, workload: u16, report: Action) {
        if self.replicates() && self.partition().part > 0 {
            return;
        }
        let most = self.site.probes.records.mpi.most();
        self.part_state_mut().keep_report(workload, report, most);
    }

    /// Records a delivered message whose sender is in this part of a partitioned run.
    fn complete(&mut self, receiver: EndpointId, d: &Delivered, number: u64) {
        let network = &self.site.network;
        let row = d.message.record.then(|| self.transport().flow_row(network, receiver, d));
        let link = self.down_to(receiver);
        let reports = self.site.drivers.of(d.workload).workload.reports_progress_of_parts();
        if let Some(part_state) = &mut self.part_state {
            let counts = part_state.awaited[usize::from(d.workload)] && !reports;
            let is_request = d.message.purpose == Purpose::Request;
            part_state.done += u64::from(counts && !is_request);
            match row {
                Some(row) if part_state.has_reports => part_state.keep_row(row),
                row => part_state.rows.extend(row.map(|row| (row, link, number))),
            }
        }
    }

    /// Handles the arrival of a message at `receiver` in another part of a partitioned run, which
    /// has promised the arrival time. The sender is in this part, unless the parts replicate
    /// workloads. `number` is the number of packets that the last link had delivered before.
    pub(crate) fn delivered_across(&mut self, receiver: EndpointId, number: u64) {
        if !self.transport().is_live(receiver) {
            return self.keep_promise(); // the workload has aborted the connection
        }
        let link = self.down_to(receiver);
        let key = Key::new(self.site.network.now, Class::Arrival);
        let event = self.site.network.sources.order().of((key, link));
        self.set_other(Some((event, within_link(number, reaction_of(receiver.peer())))));
        self.part_state_mut().executed = Executed::Copy;
        self.part_state_mut().begin_reports((event, number & u64::from(u32::MAX)), true);
        self.complete_across(receiver, number);
        self.dispatch_notices();
        self.set_other(None);
    }

    /// Counts a promise of another part that was executed as an event in this part.
    fn keep_promise(&mut self) {
        self.partition_mut().kept += 1;
    }

    fn complete_across(&mut self, receiver: EndpointId, number: u64) {
        self.keep_promise();
        let Some(d) = self.transport_mut().messages_mut().pop(receiver, u64::MAX) else {
            return self.abort_partitioned(
                "a message did not arrive at the time announced to another thread",
            );
        };
        if self.owns(receiver.peer()) {
            self.complete(receiver, &d, number);
        }
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
            self.count_wait_elsewhere();
        }
        self.part_state_mut().begin_reports(order, false);
        self.set_other(Some(order));
        self.dispatch(source);
        self.dispatch_notices();
        self.set_other(None);
    }

    /// Counts the timer that expires now as a copy of one in another part if it ends the TIME-WAIT of
    /// an endpoint there.
    fn count_wait_elsewhere(&mut self) {
        let now = self.site.network.now;
        let Some(timer) = self.site.network.timers.first_token() else { return };
        let part_state = self.part_state_mut();
        part_state.copied += u64::from(part_state.waits_elsewhere.remove(&(now, timer)));
    }

    /// Receives the ends of TIME-WAIT of endpoints of another part, whose parts replicate workloads: at
    /// these times this part ends them, too, so that it knows which slots are free.
    pub(crate) fn receive_waits(&mut self, waits: &mut Vec<(EndpointId, Time)>) {
        for (end, until) in waits.drain(..) {
            if until <= self.site.network.now {
                self.abort_partitioned("TIME-WAIT of a connection is as short as a cable");
                continue;
            }
            if !self.transport().is_live(end) {
                continue;
            }
            if self.transport_in_part().wait_elsewhere(end, until) {
                self.part_state_mut().waits_elsewhere.insert((until, u64::from(end.0)));
                self.site.request_tcp(&TcpRequest::WaitElsewhere(end, until));
            }
        }
    }

    /// Returns the simulated time of the next wake-up at which a replicated workload asks for received
    /// bytes; [`Time::NEVER`] if there is none.
    pub(crate) fn next_ask(&mut self) -> Time {
        let now = self.site.network.now;
        let asks = &mut self.part_state_mut().asks;
        while asks.first().is_some_and(|&at| at <= now) {
            asks.pop_first();
        }
        asks.first().copied().unwrap_or(Time::NEVER)
    }

    /// Whether replicated workloads ask for received bytes at the time `at`.
    pub(crate) fn asks_at(&self, at: Time) -> bool {
        self.part_state().asks.contains(&at)
    }

    /// Copies how far the endpoints that the part `from` of a partitioned run simulates have received and
    /// sent, of all open connections.
    pub(crate) fn copy_progress(&mut self, from: &mut World) {
        let open: Vec<EndpointId> = self.transport().messages().clients().collect();
        for end in open.into_iter().flat_map(|client| [client, client.peer()]) {
            if from.owns(end) {
                let progress = from.transport_in_part().progress(end);
                self.transport_in_part().set_progress(end, progress);
            }
        }
    }

    /// Whether an event has ended the run, of which this is a part that replicates workloads.
    pub(crate) fn has_ended_run(&self) -> bool {
        self.part_state().ended.is_some()
    }

    /// Notes the current event as the one that has ended the run, if replicated workloads have all
    /// finished.
    pub(crate) fn note_end(&mut self) {
        if self.site.drivers.unfinished == 0 && self.replicates() {
            let event = self.part_state().event();
            self.part_state_mut().ended.get_or_insert(event);
        }
    }

    /// Forgets which messages an endpoint of this part waits for, because the workload has aborted its
    /// connection.
    pub(crate) fn expect_nothing(&mut self, end: EndpointId) {
        if !self.owns(end) {
            return;
        }
        let down = self.down_to(end);
        self.site.network.fabric.end_watch(down, end, None);
        if let Some(promised) = self.part_state_mut().promised.get_mut(end.slot()) {
            promised.clear();
        }
    }

    /// Whether all parts have a copy of the next event, which belongs to the event source `source`, and
    /// execute it.
    pub(crate) fn executes_everywhere(&self, source: u32) -> bool {
        let Site { network, drivers, .. } = &self.site;
        let is_wake_up = source == network.number_of(Source::Wakes);
        let wake_up = drivers.wakes.peek().filter(|_| is_wake_up);
        wake_up.is_some_and(|(wake_up, _)| wake_up.executed == Executed::Everywhere)
    }

    /// Handles the expiry of the alarm `id` of a card in this part of a partitioned run, which is the
    /// event (key, source).
    #[inline(never)]
    pub(crate) fn on_card_alarm_in_part(&mut self, (key, source): (Key, u32), id: u64) {
        self.set_other(Some((self.site.network.sources.order().of((key, source)), 0)));
        self.on_card_alarm((key, source), id);
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
        if self.part_state().transport != TransportNumber::TCP {
            return None; // only TCP inspects the peer
        }
        let end = EndpointId(self.site.network.timers.first_token()? as u32);
        let is_own = self.site.transports.tcp.stack.is_live(end) && self.owns(end);
        (is_own && !self.owns(end.peer())).then_some(end)
    }

    /// Returns the first simulated time before `bound` at which a timer of this part inspects a
    /// peer in another part; `bound` if there is none.
    pub(crate) fn next_look_across(&self, bound: Time) -> Time {
        if self.part_state().transport != TransportNumber::TCP {
            return bound;
        }
        let stack = &self.site.transports.tcp.stack;
        let mut first = bound;
        self.site.network.timers.each_before(bound, |token| {
            let end = EndpointId(token as u32);
            if stack.is_live(end) && self.owns(end) && !self.owns(end.peer()) {
                first = first.min(stack.peer_inspection_at(end));
            }
        });
        first
    }

    /// Requests that the run is repeated undivided if a packet has arrived at a finished endpoint
    /// whose peer is in another part: the end of a connection depends on both endpoints, and each
    /// part knows only one in time.
    pub(crate) fn check_late(&mut self) {
        let late = self.transport_in_part().take_late_arrivals();
        if late.into_iter().any(|end| !self.owns(end.peer())) {
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
            let Arrived { next, mut above, first } = self.transport_in_part().arrived(receiver);
            // messages that are promised already, and are still in flight
            let promised = self.part_state().promised.get(receiver.slot()).map_or(0, VecDeque::len);
            let ends = self.transport().messages().ends(receiver).map(|end| first + end);
            let ends: Vec<u64> = ends.skip(promised).collect();
            let now = self.site.network.now;
            let range = (next, &ends[..]);
            let sure = self.site.network.fabric.completes(link, receiver, range, &mut above, now);
            let fabric = &mut self.site.network.fabric;
            if !sure.is_empty() {
                let after = ends.get(sure.len()).copied();
                fabric.end_watch(link, receiver, after);
            }
            if fabric.checks_again(link, receiver)
                && let Some(partition) = &mut fabric.partition
            {
                partition.checks.push((link, receiver));
            }
            promises.extend(sure.into_iter().map(|(at, number)| (link, number, at, receiver)));
        }
        promises.sort_unstable();
        for (link, number, at, endpoint) in promises {
            let sender = self.transport().hosts(endpoint).1;
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
    /// `unused` is the fabric before the first event, if the run has begun.
    pub(crate) fn become_part(&mut self, partition: Partition, unused: Option<Fabric>) {
        let transport = self.site.drivers.transport_in_parts().number();
        let awaited = self.site.drivers.all.iter().map(|driver| !driver.background).collect();
        let mut all = self.site.drivers.all.iter();
        let replicates = partition.replicates;
        let has_reports = replicates || all.any(|driver| driver.workload.acts_only_at_own_hosts());
        let state = PartState { awaited, transport, has_reports, ..PartState::default() };
        self.part_state = Some(Box::new(state));
        if !replicates {
            self.transport_in_part().become_part();
            for driver in &mut self.site.drivers.all {
                driver.background = true;
                driver.workload.become_part(&|host| partition.owns(host));
            }
            self.site.drivers.unfinished = 1;
        }
        let network = &mut self.site.network;
        network.set(Source::Samples, Key::NEVER);
        network.fabric.become_part(partition, network.now, &mut network.sources, unused);
        if self.has_started() {
            self.keep_own_state();
        }
    }

    /// Executes all events of this part of a partitioned run before the time `end`.
    pub(crate) fn run_window(&mut self, end: Time) -> Result<(), RunError> {
        let over = self.has_ended();
        let start = self.site.network.now;
        self.site.until = Time(end.0 - 1);
        self.run_events_of_part(u64::MAX)?;
        self.note_end();
        // After the last event of the run, no transmission starts that it precedes.
        let until = match self.has_ended_run() {
            true => self.site.network.now.before(Span(1)),
            false => self.site.until,
        };
        self.finish_window(until);
        self.count_hops();
        if !over
            && self.has_ended()
            && let Some(part_state) = &mut self.part_state
        {
            part_state.first_over = Some(start);
        }
        Ok(())
    }

    /// Executes events of this part like [`World::run_events`].
    pub(crate) fn run_events_of_part(&mut self, events: u64) -> Result<(), RunError> {
        let fabric = &self.site.network.fabric;
        match (fabric.has_late_ports(), fabric.has_dcb()) {
            (_, true) => self.run_events::<true, true>(events),
            (true, false) => self.run_events::<true, false>(events),
            (false, false) => self.run_events::<false, false>(events),
        }
        .map(|_| ())
    }

    /// Prepares the messages to other parts after all events before or at the time `until`.
    pub(crate) fn finish_window(&mut self, until: Time) {
        self.site.network.fabric.hand_over(until);
        self.announce_lost_frames(until);
        self.promise();
        self.check_late();
        if let Some(why) = self.partition().abort_reason {
            self.abort_partitioned(why);
        }
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
    /// source), into this part. The results equal those of an undivided run.
    pub(crate) fn unite(
        mut self,
        mut others: Vec<World>,
        last: (Key, u32),
    ) -> Result<World, &'static str> {
        let partition = self.site.network.fabric.partition.as_ref().expect("the run has parts");
        for (other, part) in others.iter_mut().zip(1..) {
            let theirs = |host| partition.is_in(host, part);
            self.site.transports.take_over(&mut other.site.transports, &theirs);
        }
        let mut part_state = self.part_state.take().expect("the run is partitioned");
        self.site.events -= part_state.copied;
        for other in &mut others {
            let of_other = other.part_state.take().expect("the run is partitioned");
            self.site.events += other.site.events - of_other.repeated - of_other.copied;
            part_state.rows.extend(of_other.rows);
            part_state.events.extend(of_other.events);
            part_state.events_left_out += of_other.events_left_out;
            part_state.reports.extend(of_other.reports);
            part_state.rows_left_out += of_other.rows_left_out;
            for (mine, theirs) in
                self.site.probes.records.latency.iter_mut().zip(&other.site.probes.records.latency)
            {
                mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| mine.merge(theirs));
            }
        }
        let mut copies = self.partition_mut().copied_events();
        for other in &mut others {
            copies += other.partition_mut().copied_events();
        }
        self.site.events -= copies;
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
        let rows = std::mem::take(&mut part_state.rows);
        rows.into_iter().for_each(|(row, ..)| self.site.probes.records.flow(row));
        self.unite_reports(&mut part_state, &mut others)?;
        // Events of TCP precede losses at the same time, as in the undivided run, see
        // `Site::take_losses`.
        let transports = &self.site.transports;
        let mut events: Vec<(EventRow, EventOrder)> = (part_state.events.into_iter())
            .map(|event| match event {
                PartEvent::OfEndpoint(row, order) => (row, order),
                PartEvent::Lost(lost) => (transports.event_of(&lost), lost.order),
            })
            .collect();
        events.sort_by_key(|(row, order)| (row.at, row.drop.is_some(), *order));
        events.into_iter().for_each(|(row, _)| self.site.probes.records.events.push(row));
        self.site.probes.records.events.leave_out(part_state.events_left_out);
        let mut fabrics: Vec<_> =
            others.into_iter().map(|other| other.site.network.fabric).collect();
        self.site.network.fabric.unite(&mut fabrics);
        self.site.network.now = last.0.time();
        Ok(self)
    }
}

/// Returns the place of the reactions of an end of a connection to the arrival of a message, see
/// [`within_link`]. A part that simulates both ends carries them out in this order.
fn reaction_of(end: EndpointId) -> u64 {
    1 + end.side() as u64
}

/// Returns the lookahead of a partitioned run: the simulated time by which a part can run ahead of
/// other parts. It is the smallest delay of all cables.
pub(crate) fn lookahead(world: &World) -> Span {
    world.site.network.fabric.links.iter().map(|l| l.cable.delay).min().unwrap_or(Span::ZERO)
}
