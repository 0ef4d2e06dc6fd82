//! Dispatch between workloads and transports: executes the actions of workloads, and notifies
//! workloads of the events of transports.

use crate::messages::{Message, end_of};
use crate::part_state::PartEvent;
use crate::site::Site;
use crate::stream_transports::interface::StreamNotice;
use crate::stream_transports::number::TransportNumber;
use crate::wakes::{Executed, WakeUp};
use crate::world::World;
use eastwest_engine::order::Key;
use eastwest_engine::random::mix;
use eastwest_measure::events::{EventRow, What};
use eastwest_network::losses::EventOrder;
use eastwest_transport::tcp::{Notice, RecoveryEvent};
use eastwest_types::{ClassId, ConnId, EndpointId, HostId, Packet, Side, Span, Time};
use eastwest_workload::{Action, Event, Workload};

/// Number in place of a workload number in the wake-ups that poll a NIC. No workload has this
/// number, since there are far fewer workloads.
const NIC_WAKEUP: u16 = u16::MAX;
/// Token of the wake-ups that search for lost raw Ethernet frames of a workload. The tokens of the
/// workloads' own wake-ups are different.
const POLL_LOSSES: u64 = u64::MAX;
/// Simulated time between two searches for lost raw Ethernet frames of a workload.
const POLL_INTERVAL: Span = Span::from_ms(1);

impl World {
    /// Notifies a workload of an event and executes the actions that the workload returns, up to
    /// one that ends the run.
    pub(crate) fn notify_workload(&mut self, workload: u16, event: Event) {
        let mut actions = std::mem::take(&mut self.actions);
        self.site.drivers.handle(workload, self.site.network.now, event, &mut actions);
        for action in actions.drain(..) {
            self.execute(workload, action);
            if self.site.drivers.stuck.is_some() {
                return; // the next actions may use a connection that could not be opened
            }
        }
        self.actions = actions;
    }

    /// Executes an action that workload number `workload` requests.
    pub(crate) fn execute(&mut self, workload: u16, action: Action) {
        let via = self.site.drivers.of(workload).transport.number();
        if self.part_state.is_some() {
            if self.is_done_elsewhere(workload, &action) {
                return;
            }
            self.begin_action();
        }
        let site = &mut self.site;
        match action {
            Action::Wake { at, token } => self.wake(at, workload, token),
            Action::Open { conn, client, server, class, cards } => {
                let of = (workload, conn.0, class);
                if let Some(endpoint) = self.allocate(via, of, (client, server), cards) {
                    self.connect(via, endpoint);
                }
            }
            Action::Declare { conn, client, server, class, cards } => {
                self.allocate(via, (workload, conn.0, class), (client, server), cards);
            }
            Action::Connect { conn } => {
                let client = site.transports.of(via).messages().endpoint(workload, conn.0);
                self.connect(via, client);
            }
            Action::Send { conn, from, payload, header, tag, purpose, job, record } => {
                let transport = site.transports.of_mut(via);
                let client = transport.messages().endpoint(workload, conn.0);
                let (start, before) = transport.written(client, from);
                let end = start + payload + u64::from(header);
                let sent = site.network.now;
                let message =
                    Message { start, end, tag, payload, purpose, job, record, sent, before };
                if self.part_state.is_some() {
                    self.expect_across(workload, end_of(client, from), end);
                }
                let site = &mut self.site;
                let transport = site.transports.of_mut(via);
                let (network, probes) = (&mut site.network, &mut site.probes);
                if via == TransportNumber::TCP && network.processing.is_some() {
                    let end = end_of(client, from);
                    network.message_by_core(transport.hosts(end).0, end);
                }
                transport.send(network, probes, client, from, message);
                if self.part_state.is_some() {
                    self.announce(workload, end_of(client, from), message);
                }
            }
            Action::Shutdown { conn, from } => {
                let transport = site.transports.of_mut(via);
                let client = transport.messages().endpoint(workload, conn.0);
                let (network, probes) = (&mut site.network, &mut site.probes);
                transport.shut_down(network, probes, end_of(client, from));
            }
            Action::Truncate { conn, from } => {
                let transport = site.transports.of_mut(via);
                let client = transport.messages().endpoint(workload, conn.0);
                transport.truncate(client, from);
                self.watch_truncated(end_of(client, from).peer());
            }
            Action::Close { conn } => {
                let transport = site.transports.of_mut(via);
                let client = transport.messages_mut().close(workload, conn.0);
                transport.close(&mut site.network, &mut site.probes, client);
                self.begin_action(); // the packet of each end has its own place
                let site = &mut self.site;
                let transport = site.transports.of_mut(via);
                transport.close(&mut site.network, &mut site.probes, client.peer());
            }
            Action::Abort { conn } => {
                let client = site.transports.of_mut(via).messages_mut().close(workload, conn.0);
                self.abort(via, client);
            }
            Action::Ask { conn } => {
                let transport = site.transports.of(via);
                // The workload may have closed this connection when it was notified of an earlier
                // answer.
                let Some(client) = transport.messages().find(workload, conn.0) else { return };
                let bytes = [client, client.peer()].map(|end| transport.received(end));
                if self.part_state.as_ref().is_some_and(|part_state| !part_state.in_step) {
                    self.abort_partitioned("a workload asked for received bytes unannounced");
                }
                self.notify_workload(workload, Event::Received { conn, bytes });
            }
            Action::Datagram { from, to, bytes, class } => self.datagram(from, to, bytes, class),
            Action::Frame { from, bytes, stream, .. } => {
                if site.network.owns(from) {
                    let streams = &mut site.transports.streams;
                    streams.send_of(&mut site.network, workload, stream, bytes);
                }
            }
            Action::Parcel(parcel) => {
                let transports = &mut site.transports;
                match transports.ethernet_messages.take(&mut transports.streams, workload, &parcel)
                {
                    Ok(host) => self.feed_nic(host),
                    Err(limit) => site.drivers.stop_at_limit(limit),
                }
            }
            Action::Fail(why) => {
                site.drivers.fail(workload, site.network.now, &why);
            }
            Action::Finished => {
                if matches!(site.drivers.of(workload).workload, Workload::Ethernet(_)) {
                    site.transports.streams.sends_no_more(workload);
                    self.poll_lost_frames(workload);
                } else {
                    site.drivers.finish(workload);
                }
            }
            record => match self.part_state {
                None => site.probes.records.take(workload, site.network.now, record),
                Some(_) => self.report_in_part(workload, record),
            },
        }
    }

    /// Allocates a connection over the transport `via`, and returns the endpoint of its client. `of`
    /// is the number of the workload, its name for the connection and the traffic class; `ends` are
    /// client and server; `cards` are their network cards. Stops the run if no slot is free.
    fn allocate(
        &mut self,
        via: TransportNumber,
        of: (u16, u32, ClassId),
        ends: (HostId, HostId),
        cards: Option<(u32, u32)>,
    ) -> Option<EndpointId> {
        if self.replicates() {
            // all parts know which slots are free
        } else if let Some(part_state) = &mut self.part_state {
            part_state.last_open = Some(self.site.network.now);
            if self.site.drivers.of(of.0).workload.mpi().is_some() {
                self.abort_partitioned("an MPI program opened a connection late");
            }
        }
        // packets lost earlier may refer to the slot that the new connection reuses, so the losses
        // are recorded first
        self.record_losses(Time::NEVER);
        let site = &mut self.site;
        let (network, probes) = (&mut site.network, &mut site.probes);
        let number = site.transports.tcp.connections.number();
        match site.transports.of_mut(via).allocate(network, probes, number, of, ends, cards) {
            Some((client, opened)) => {
                probes.flow_samples.open(via, client, opened, (of.0, of.2));
                Some(client)
            }
            None => {
                self.stop_without_slots(via);
                None
            }
        }
    }

    /// Opens an allocated connection, whose client has the endpoint `client`. In a partitioned run,
    /// the part of the client does this.
    fn connect(&mut self, via: TransportNumber, client: EndpointId) {
        let Site { network, transports, probes, .. } = &mut self.site;
        let transport = transports.of_mut(via);
        if network.owns(transport.hosts(client).0) {
            transport.connect(network, probes, client);
        }
    }

    /// Stops the run, because no slot is free for another connection of the transport `via`.
    pub(crate) fn stop_without_slots(&mut self, via: TransportNumber) {
        let most = EndpointId::MAX_SLOTS / 2;
        let what = self.site.transports.of(via).noun();
        self.site.drivers.stop_at_limit(format!(
            "the run needs more than {most} simultaneous {what}s, which is the maximum of the \
             simulator"
        ));
    }

    /// Aborts a connection that the workload has closed, or that has failed.
    fn abort(&mut self, via: TransportNumber, client: EndpointId) {
        if self.site.transports.of(via).is_live(client) {
            // The slot is free after the abort, so losses of this connection are recorded before.
            self.record_losses(Time::NEVER);
            if self.replicates() {
                self.expect_nothing(client);
                self.expect_nothing(client.peer());
            }
            let now = self.site.network.now;
            let transport = self.site.transports.of_mut(via);
            transport.abort(now, client);
            transport.messages_mut().gone(client);
        }
    }

    /// Sends a datagram of a workload.
    fn datagram(&mut self, from: HostId, to: HostId, bytes: u16, class: ClassId) {
        let network = &mut self.site.network;
        let mut packet = network.datagram(from, to, class, bytes);
        packet.payload = bytes.saturating_sub(28); // headers: IPv4 20 B, UDP 8 B
        network.opened += 1;
        packet.seq = network.opened;
        packet.hash = network.hash_of_datagram(from, to, mix(network.opened));
        if network.owns(from) {
            network.send(from, packet, None);
        }
    }

    /// Passes the pending notices of all transports (message delivered, connection closed …) to
    /// workloads and to the event log.
    pub(crate) fn dispatch_notices(&mut self) {
        while !self.site.transports.tcp.notices.is_empty() {
            let tcp = &mut self.site.transports.tcp;
            let (endpoint, notice) = tcp.notices.remove(0);
            if notice != Notice::Closed && !tcp.stack.is_live(endpoint) {
                continue; // the connection was aborted after the notice
            }
            match notice {
                Notice::Delivered => self.deliver_messages(TransportNumber::TCP, endpoint),
                Notice::Closed => tcp.messages.gone(endpoint),
                Notice::LossRecovery { event, from, to } => {
                    self.record_recovery(endpoint, event, from, to)
                }
                Notice::Failed if self.part_state.is_some() => {
                    self.abort_partitioned("a connection was given up after too many timeouts");
                }
                // Only a FIN has failed, after all data had arrived: no workload needs the
                // connection.
                Notice::Failed if !tcp.messages.is_needed(endpoint) => {
                    self.record_failure(endpoint)
                }
                Notice::Failed => {
                    self.record_failure(endpoint);
                    self.on_connection_failed(TransportNumber::TCP, endpoint);
                }
            }
        }
        for number in self.site.transports.further.numbers() {
            self.dispatch_further_notices(number);
        }
    }

    /// Passes the pending notices of a transport other than TCP to workloads.
    pub(crate) fn dispatch_further_notices(&mut self, via: TransportNumber) {
        while let Some((end, notice)) = self.site.transports.further_mut(via).next_notice() {
            match notice {
                StreamNotice::Delivered => self.deliver_messages(via, end),
                StreamNotice::Failed if self.part_state.is_some() => {
                    self.abort_partitioned("a connection was given up after too many timeouts");
                }
                StreamNotice::Failed => self.on_connection_failed(via, end),
            }
        }
    }

    /// Delivers all messages whose last byte has arrived at `receiver`: records them and notifies
    /// their workload.
    fn deliver_messages(&mut self, via: TransportNumber, receiver: EndpointId) {
        let received = self.site.transports.of(via).received(receiver);
        loop {
            let transport = self.site.transports.of_mut(via);
            let Some(d) = transport.messages_mut().pop(receiver, received) else { break };
            if self.part_state.is_some() {
                self.delivered_in_part(receiver, &d);
            } else if d.message.record {
                let site = &mut self.site;
                let row = site.transports.of(via).flow_row(&site.network, receiver, &d);
                let (paths, records) = (&mut site.probes.paths, &mut site.probes.records);
                if via == TransportNumber::TCP && paths.is_on() {
                    let number = records.flows.len();
                    paths.ends(site.network.now, receiver, (number, &row), &d.message);
                }
                records.flow(row);
            }
            if via == TransportNumber::TCP && self.site.network.processing.is_some() {
                let host = self.site.transports.of(via).hosts(receiver).0;
                self.site.network.message_by_core(host, receiver);
            }
            if let Some(name) = d.name {
                let (conn, tag) = (ConnId(name), d.message.tag);
                self.notify_workload(d.workload, Event::Delivered { conn, from: d.from, tag });
            }
            if self.part_state.is_some() && !self.truncates(d.workload) {
                self.set_other(None);
            }
            if !self.site.transports.of(via).is_live(receiver) {
                return; // the workload has aborted the connection
            }
        }
        self.site.transports.of_mut(via).watch(receiver);
    }

    /// Handles the failure of a connection that is still needed: notifies its workload if the
    /// workload can handle failures, otherwise stops the run with an error.
    fn on_connection_failed(&mut self, via: TransportNumber, end: EndpointId) {
        let owner = self.site.transports.of(via).messages().owner(end);
        let bears = |w: u16| self.site.drivers.of(w).workload.bears_failures();
        if let Some((workload, name)) = owner.filter(|&(w, _)| bears(w)) {
            let client = if end.side() == Side::Client { end } else { end.peer() };
            if let Some(name) = name {
                self.site.transports.of_mut(via).messages_mut().close(workload, name);
            }
            self.abort(via, client);
            if let Some(name) = name {
                self.notify_workload(workload, Event::Failed { conn: ConnId(name) });
            }
            return;
        }
        let transport = self.site.transports.of(via);
        let (what, ends, timeouts) =
            (transport.noun(), transport.hosts(end), transport.timeouts_to_failure(end));
        let network = &self.site.network;
        let name = |host: HostId| &network.fabric.graph.names[host.0 as usize];
        let why = format!(
            "at {} the {what} from {} to {} was given up after {timeouts} timeouts in a row{}",
            network.now,
            name(ends.0),
            name(ends.1),
            network.describe_failures(),
        );
        self.site.drivers.stop(why);
    }

    /// Moves raw Ethernet frames of the messages that wait at a host to its NIC, and schedules the
    /// next poll of the NIC.
    fn feed_nic(&mut self, host: u32) {
        let site = &mut self.site;
        let (transports, network) = (&mut site.transports, &mut site.network);
        if let Some(again) =
            transports.ethernet_messages.feed(network, &mut transports.streams, host)
        {
            self.wake(again, NIC_WAKEUP, u64::from(host));
        }
    }

    /// Schedules a wake-up at time `at`.
    fn wake(&mut self, at: Time, workload: u16, token: u64) {
        let mut wake_up = WakeUp { workload, token, executed: Executed::default() };
        if self.part_state.is_some() {
            match self.executed_in_parts(at, wake_up) {
                Some(executed) => wake_up.executed = executed,
                None => return,
            }
        }
        let site = &mut self.site;
        site.drivers.wake(&mut site.network, at, wake_up);
    }

    /// Handles the arrival of a raw Ethernet frame at its host: counts the frame, and notifies the
    /// workload of messages that are now complete.
    pub(crate) fn frame_arrived(&mut self, packet: &Packet, latency: Span) {
        // Losses are recorded first, so that the receiver does not wait for lost frames.
        if self.site.transports.streams.would_hold(packet) {
            self.record_losses(Time::NEVER);
            self.check_frame_order(packet);
        }
        let (streams, now) = (&mut self.site.transports.streams, self.site.network.now);
        let (workload, of_messages) = streams.arrives(now, packet, latency);
        if let Some(stream) = of_messages {
            let done = streams.rows[stream as usize].order.handed_on();
            while let Some(tag) = self.site.transports.ethernet_messages.next_arrived(stream, done)
            {
                self.notify_workload(workload, Event::Arrived { tag });
            }
        }
        if self.site.transports.streams.has_sent_all(workload) {
            self.finish_if_delivered(workload);
        }
    }

    /// Searches for lost raw Ethernet frames of a workload, and repeats the search until all frames
    /// have arrived or are lost: no later frame reveals the loss of the last frames.
    fn poll_lost_frames(&mut self, workload: u16) {
        if self.part_state.is_some() {
            self.look_for_last_frame(workload, true);
        } else if !self.finish_if_delivered(workload) {
            self.poll_lost_frames_later(workload);
        }
    }

    /// Schedules the next search for lost raw Ethernet frames of a workload.
    pub(crate) fn poll_lost_frames_later(&mut self, workload: u16) {
        self.wake(self.site.network.now + POLL_INTERVAL, workload, POLL_LOSSES);
    }

    /// Marks a workload that has sent its last frame as finished, if none of its frames is in
    /// flight. Returns whether the workload is finished.
    fn finish_if_delivered(&mut self, workload: u16) -> bool {
        if self.part_state.is_some() {
            self.look_for_last_frame(workload, false);
            return false;
        }
        self.record_losses(Time::NEVER);
        let none = self.site.transports.streams.under_way(workload) == 0;
        if none {
            self.site.drivers.finish(workload);
        }
        none
    }

    /// Handles a wake-up that was scheduled by a workload, for the poll of a NIC, or for a search
    /// for lost frames.
    pub(crate) fn on_wakeup(&mut self, workload: u16, token: u64) {
        if workload == NIC_WAKEUP {
            self.site.transports.ethernet_messages.on_poll(token as u32);
            return self.feed_nic(token as u32);
        }
        match (token, self.site.transports.streams.has_sent_all(workload)) {
            (POLL_LOSSES, true) if self.site.drivers.of(workload).finished => {}
            (POLL_LOSSES, true) => self.poll_lost_frames(workload),
            _ => self.notify_workload(workload, Event::Wake { token }),
        }
    }

    /// Records in the event log the packets that were lost before the time `before`.
    #[cold]
    pub(crate) fn record_losses(&mut self, before: Time) {
        self.record_losses_until(self.site.network.now, before);
    }

    /// Records losses like [`World::record_losses`], after all departures until `until`.
    pub(crate) fn record_losses_until(&mut self, until: Time, before: Time) {
        let replicates = self.replicates();
        let part_state = &mut self.part_state;
        self.site.take_losses(until, before, &mut |events, transports, lost| match part_state {
            None => events.push(transports.event_of(&lost)),
            // All parts know all connections, whose slots may be used again.
            Some(part_state) if replicates => {
                let row = transports.event_of(&lost);
                part_state.keep_event(events.most(), PartEvent::OfEndpoint(row, lost.order));
            }
            Some(part_state) => part_state.keep_event(events.most(), PartEvent::Lost(lost)),
        });
    }

    /// Records a step of loss recovery of an endpoint (timeout, begin or end of a recovery) in the
    /// event log; `from..to` are the stream positions concerned.
    fn record_recovery(&mut self, end: EndpointId, event: RecoveryEvent, from: u64, to: u64) {
        let (what, cause) = match event {
            RecoveryEvent::Timeout(cause) => (What::Timeout, Some(cause as u8)),
            RecoveryEvent::Recovery => (What::Recovery, None),
            RecoveryEvent::Recovered => (What::Recovered, None),
            RecoveryEvent::Spurious => (What::Spurious, None),
        };
        self.record_event(end, what, cause, (from, to));
    }

    /// Records the failure of a connection in the event log.
    fn record_failure(&mut self, end: EndpointId) {
        let e = self.site.transports.tcp.stack.endpoint(end);
        let (from, to) = (e.acknowledged(), e.acknowledged() + e.outstanding());
        self.record_event(end, What::Failed, None, (from, to));
    }

    /// Records an event of a connection in the event log. `timeout` is the number of the cause if
    /// the event is a timeout; `from..to` are the stream positions concerned.
    fn record_event(
        &mut self,
        end: EndpointId,
        what: What,
        timeout: Option<u8>,
        (from, to): (u64, u64),
    ) {
        if !self.site.probes.records.events.is_on() {
            return;
        }
        let now = self.site.network.now;
        self.record_losses(now);
        let tcp = &self.site.transports.tcp;
        let (connection, e) = (tcp.connections.of(end), tcp.stack.endpoint(end));
        let (src, dst) = connection.stream_of(end);
        // Stream positions include the SYN and the FIN, which are not payload.
        let first = from.max(1) - 1;
        let after = to.max(1) - 1;
        let bytes = after.min(e.written()).saturating_sub(first);
        let order: EventOrder = match self.part_state {
            None => ((Key::NEVER, 0), 0),
            Some(_) => self.order_of_event_at(e.local()),
        };
        let row = EventRow {
            at: now,
            what,
            connection: Some(connection.number),
            src,
            dst,
            stream_start: first,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            drop: None,
            timeout,
        };
        let events = &mut self.site.probes.records.events;
        match &mut self.part_state {
            None => events.push(row),
            Some(part_state) => {
                part_state.keep_event(events.most(), PartEvent::OfEndpoint(row, order))
            }
        }
    }
}
