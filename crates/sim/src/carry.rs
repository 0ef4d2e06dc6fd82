//! Between workloads and transports: does what workloads ask for, and tells them what has happened.

use crate::flow_samples::Over;
use crate::messages::{Message, Messages, Suffered, end_of};
use crate::plan::Transport;
use crate::tcp::Ask;
use crate::world::World;
use eastwest_engine::order::Key;
use eastwest_engine::random::mix;
use eastwest_measure::events::{EventRow, What};
use eastwest_network::losses::EventOrder;
use eastwest_transport::rocev2;
use eastwest_transport::tcp::{Notice, RecoveryEvent};
use eastwest_types::{ClassId, ConnId, EndpointId, HostId, Packet, Side, Span, Time};
use eastwest_workload::{Action, Event, Workload};

/// Stands for a workload in wake-ups of cards; there are far fewer.
const CARDS: u16 = u16::MAX;
/// Token of the wake-ups at which a workload asks for frames that were lost; none of its own.
const ASK: u64 = u64::MAX;
/// Time between two of them.
const ASK_EVERY: Span = Span::from_ms(1);

impl World {
    /// Tells a workload what has happened and does what it asks for.
    pub(crate) fn tell(&mut self, workload: u16, event: Event) {
        for action in self.site.drivers.handle(workload, self.site.network.now, event) {
            self.act(workload, action);
        }
    }

    /// Does what workload number `workload` asks for.
    fn act(&mut self, workload: u16, action: Action) {
        let over = match self.site.drivers.of(workload).transport {
            Transport::Tcp | Transport::Ethernet => Over::Tcp,
            Transport::RoceV2 => Over::RoceV2,
        };
        let site = &mut self.site;
        match action {
            Action::Wake { at, token } => {
                site.drivers.wake(&mut site.network, workload, at, token);
            }
            Action::Open { conn, client, server, class } => {
                self.open(over, (workload, conn.0, class), (client, server));
            }
            Action::Send { conn, from, payload, header, tag, purpose, job, record } => {
                let client = self.messages(over).endpoint(workload, conn.0);
                let (start, before) = self.written(over, client, from);
                let end = start + payload + u64::from(header);
                let sent = self.site.network.now;
                let message =
                    Message { start, end, tag, payload, purpose, job, record, sent, before };
                self.send(over, client, from, message);
            }
            Action::Shutdown { conn, from } => {
                // over queue pairs nothing is said at the end of a stream
                if matches!(over, Over::Tcp) {
                    let client = site.transports.tcp.messages.endpoint(workload, conn.0);
                    self.site.ask_tcp(&Ask::Close(end_of(client, from)));
                }
            }
            Action::Truncate { conn, from } => {
                let client = self.messages(over).endpoint(workload, conn.0);
                match over {
                    Over::Tcp => self.site.transports.tcp.truncate(client, from),
                    Over::RoceV2 => self.site.transports.queue_pairs().truncate(client, from),
                }
            }
            Action::Close { conn } => {
                let client = self.messages(over).close(workload, conn.0);
                self.close(over, client);
            }
            Action::Abort { conn } => {
                let client = self.messages(over).close(workload, conn.0);
                self.abort(over, client);
            }
            Action::Ask { conn } => {
                // a workload that asks about several may have closed this one at an earlier answer
                let Some(client) = self.messages(over).find(workload, conn.0) else { return };
                let transports = &mut self.site.transports;
                let bytes = match over {
                    Over::Tcp => transports.tcp.received(client),
                    Over::RoceV2 => transports.queue_pairs().received(client),
                };
                self.tell(workload, Event::Received { conn, bytes });
            }
            Action::Datagram { from, to, bytes, class } => self.datagram(from, to, bytes, class),
            Action::Frame { bytes, stream, .. } => {
                let streams = &mut site.transports.streams;
                streams.send_of(&mut site.network, workload, stream, bytes);
            }
            Action::Parcel(parcel) => {
                let transports = &mut site.transports;
                match transports.carrier.take(&mut transports.streams, workload, &parcel) {
                    Ok(host) => self.feed(host),
                    Err(limit) => site.drivers.stop_at_limit(limit),
                }
            }
            Action::Fail(why) => {
                let name = &site.drivers.of(workload).name;
                let why = format!("at {}, {name}: {why}", site.network.now);
                site.drivers.stop(why);
            }
            Action::Finished => {
                if matches!(site.drivers.of(workload).workload, Workload::Ethernet(_)) {
                    site.transports.streams.sends_no_more(workload);
                    self.ask_for_frames(workload);
                } else {
                    site.drivers.finish(workload);
                }
            }
            record => site.probes.records.take(workload, site.network.now, record),
        }
    }

    /// Returns the messages under way over a transport.
    fn messages(&mut self, over: Over) -> &mut Messages {
        match over {
            Over::Tcp => &mut self.site.transports.tcp.messages,
            Over::RoceV2 => &mut self.site.transports.queue_pairs().messages,
        }
    }

    fn open(&mut self, over: Over, of: (u16, u32, ClassId), ends: (HostId, HostId)) {
        if let Some(share) = &mut self.share {
            share.last_open = Some(self.site.network.now);
        }
        // the slot may be one that lost packets still name
        self.note_losses(Time::NEVER);
        let site = &mut self.site;
        let (transports, network, probes) =
            (&mut site.transports, &mut site.network, &mut site.probes);
        let most = EndpointId::MAX_SLOTS / 2;
        match over {
            Over::Tcp => {
                if !transports.tcp.open(network, probes, of, ends) {
                    let limit = format!("more than {most} connections at one time");
                    site.drivers.stop_at_limit(limit);
                }
            }
            Over::RoceV2 => {
                let number = transports.tcp.connections.number();
                match transports.queue_pairs().open(network, number, of, ends) {
                    Some((end, opened)) => {
                        probes.flow_samples.open(Over::RoceV2, end, opened, (of.0, of.2));
                    }
                    None => {
                        let limit = format!("more than {most} queue pairs at one time");
                        site.drivers.stop_at_limit(limit);
                    }
                }
            }
        }
    }

    /// Returns what a side has written so far, and what its sender has suffered.
    fn written(&mut self, over: Over, client: EndpointId, from: Side) -> (u64, Suffered) {
        match over {
            Over::Tcp => {
                let sender = self.site.transports.tcp.stack.endpoint(end_of(client, from));
                (sender.written(), Suffered::by(sender))
            }
            Over::RoceV2 => self.site.transports.queue_pairs().written(client, from),
        }
    }

    /// Hands a message to its transport.
    fn send(&mut self, over: Over, client: EndpointId, from: Side, message: Message) {
        let site = &mut self.site;
        let (transports, network) = (&mut site.transports, &mut site.network);
        match over {
            Over::Tcp => {
                let end = message.end;
                if transports.tcp.send(network, &mut site.probes, client, from, message) {
                    self.watch_across(end_of(client, from), end);
                }
            }
            Over::RoceV2 => transports.queue_pairs().send(network, client, from, message),
        }
    }

    fn close(&mut self, over: Over, client: EndpointId) {
        match over {
            Over::Tcp => {
                for end in [client, client.peer()] {
                    if self.owns(end) {
                        self.site.ask_tcp(&Ask::Close(end));
                    }
                }
            }
            Over::RoceV2 => {
                let site = &mut self.site;
                site.transports.queue_pairs().close(&mut site.network, client);
            }
        }
    }

    /// Ends a connection that has no name any more.
    fn abort(&mut self, over: Over, client: EndpointId) {
        let transports = &mut self.site.transports;
        let known = match over {
            Over::Tcp => transports.tcp.stack.is_live(client),
            Over::RoceV2 => transports.queue_pairs().stack.is_live(client),
        };
        if known {
            // the slot is free at once: what was lost on it is noted while it is known
            self.note_losses(Time::NEVER);
            let transports = &mut self.site.transports;
            match over {
                Over::Tcp => transports.tcp.stack.abort(client),
                Over::RoceV2 => transports.queue_pairs().stack.abort(client),
            }
            self.messages(over).gone(client);
        }
    }

    fn datagram(&mut self, from: HostId, to: HostId, bytes: u16, class: ClassId) {
        let network = &mut self.site.network;
        let mut packet = network.datagram(from, to, class, bytes);
        packet.payload = bytes.saturating_sub(28); // IPv4 20, UDP 8
        network.opened += 1;
        packet.seq = network.opened;
        packet.hash = network.fabric.flow_hash(from, to, mix(network.opened));
        network.send(from, packet, None);
    }

    /// Passes on what endpoints had to say to applications.
    pub(crate) fn carry_notices(&mut self) {
        while !self.site.transports.tcp.notices.is_empty() {
            let tcp = &mut self.site.transports.tcp;
            let (endpoint, notice) = tcp.notices.remove(0);
            if notice != Notice::Closed && !tcp.stack.is_live(endpoint) {
                continue; // the connection was ended meanwhile
            }
            match notice {
                Notice::Delivered => self.deliver_messages(endpoint),
                Notice::Closed => tcp.messages.gone(endpoint),
                Notice::LossRecovery { event, from, to } => {
                    self.note_recovery(endpoint, event, from, to)
                }
                Notice::Failed if self.share.is_some() => {
                    self.go_wrong("a connection was given up");
                }
                // a goodbye that was given up after everything had arrived: nobody misses it
                Notice::Failed if !tcp.messages.is_needed(endpoint) => self.note_failure(endpoint),
                Notice::Failed => {
                    self.note_failure(endpoint);
                    self.given_up(Over::Tcp, endpoint);
                }
            }
        }
        if self.site.transports.rocev2.is_some() {
            self.carry_queue_pair_notices();
        }
    }

    /// Passes on what queue pairs had to say to applications.
    pub(crate) fn carry_queue_pair_notices(&mut self) {
        while let Some((end, notice)) = self.site.transports.queue_pairs().next_notice() {
            match notice {
                rocev2::Notice::Delivered => self.deliver_queue_pair_messages(end),
                rocev2::Notice::Failed => self.given_up(Over::RoceV2, end),
                rocev2::Notice::Closed => {}
            }
        }
    }

    /// Delivers the messages of a connection whose last bytes have arrived.
    fn deliver_messages(&mut self, receiver: EndpointId) {
        let received = self.site.transports.tcp.stack.endpoint(receiver).received();
        while let Some(d) = self.site.transports.tcp.messages.pop(receiver, received) {
            if self.share.is_some() {
                self.delivered_in_part(receiver, &d);
            } else if d.message.record {
                let site = &mut self.site;
                let row = site.transports.tcp.flow_row(&site.network, receiver, &d);
                let (paths, records) = (&mut site.probes.paths, &mut site.probes.records);
                if paths.is_on() {
                    let number = records.flows.len();
                    paths.ends(site.network.now, receiver, (number, &row), &d.message);
                }
                records.flow(row);
            }
            if let Some(name) = d.name {
                let (conn, tag) = (ConnId(name), d.message.tag);
                self.tell(d.workload, Event::Delivered { conn, from: d.from, tag });
            }
            if self.share.is_some() {
                self.set_other(None);
            }
        }
        self.site.transports.tcp.watch(receiver);
    }

    /// Delivers the messages of a queue pair whose last bytes have arrived.
    fn deliver_queue_pair_messages(&mut self, receiver: EndpointId) {
        let received = self.site.transports.queue_pairs().stack.end(receiver).received();
        while let Some(d) = self.site.transports.queue_pairs().messages.pop(receiver, received) {
            if d.message.record {
                let site = &mut self.site;
                let row = site.transports.queue_pairs().flow_row(&site.network, receiver, &d);
                site.probes.records.flow(row);
            }
            if let Some(name) = d.name {
                let (conn, tag) = (ConnId(name), d.message.tag);
                self.tell(d.workload, Event::Delivered { conn, from: d.from, tag });
            }
            if !self.site.transports.queue_pairs().stack.is_live(receiver) {
                return; // its workload has ended it
            }
        }
        self.site.transports.queue_pairs().watch(receiver);
    }

    /// A transport has given up a connection that is still needed. Who bears that is told; others are stuck.
    fn given_up(&mut self, over: Over, end: EndpointId) {
        let owner = self.messages(over).owner(end);
        let bears = |w: u16| self.site.drivers.of(w).workload.bears_failures();
        if let Some((workload, name)) = owner.filter(|&(w, _)| bears(w)) {
            let client = if end.side() == Side::Client { end } else { end.peer() };
            if let Some(name) = name {
                self.messages(over).close(workload, name);
            }
            self.abort(over, client);
            if let Some(name) = name {
                self.tell(workload, Event::Failed { conn: ConnId(name) });
            }
            return;
        }
        let transports = &mut self.site.transports;
        let (what, ends, timeouts) = match over {
            Over::Tcp => {
                let (stack, e) = (&transports.tcp.stack, transports.tcp.stack.endpoint(end));
                let timeouts = stack.config_of(end).max_retries + 1;
                ("connection", (e.local(), e.remote()), timeouts)
            }
            Over::RoceV2 => {
                let stack = &transports.queue_pairs().stack;
                let e = stack.end(end);
                ("queue pair", (e.local(), e.remote()), stack.config().retries + 1)
            }
        };
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

    /// Lets a card take frames of the messages that wait for it.
    fn feed(&mut self, host: u32) {
        let site = &mut self.site;
        let (transports, network) = (&mut site.transports, &mut site.network);
        if let Some(again) = transports.carrier.feed(network, &mut transports.streams, host) {
            site.drivers.wake(network, CARDS, again, u64::from(host));
        }
    }

    /// Delivers a frame that has reached its host.
    pub(crate) fn frame_arrived(&mut self, packet: &Packet, latency: Span) {
        // the receiver knows at once of what was lost, whenever the network is asked for it otherwise
        if self.site.transports.streams.would_hold(packet) {
            self.note_losses(Time::NEVER);
        }
        let (streams, now) = (&mut self.site.transports.streams, self.site.network.now);
        let (workload, of_messages) = streams.arrives(now, packet, latency);
        if let Some(stream) = of_messages {
            let done = streams.rows[stream as usize].order.handed_on();
            while let Some(tag) = self.site.transports.carrier.next_arrived(stream, done) {
                self.tell(workload, Event::Arrived { tag });
            }
        }
        if self.site.transports.streams.has_sent_all(workload) {
            self.end_if_all_arrived(workload);
        }
    }

    /// Asks for frames that were lost: those that are lost last do not tell.
    fn ask_for_frames(&mut self, workload: u16) {
        if !self.end_if_all_arrived(workload) {
            let (drivers, network) = (&mut self.site.drivers, &mut self.site.network);
            drivers.wake(network, workload, network.now + ASK_EVERY, ASK);
        }
    }

    /// Ends a workload of frames, which has sent its last one, if none is under way. Returns whether it has.
    fn end_if_all_arrived(&mut self, workload: u16) -> bool {
        self.note_losses(Time::NEVER);
        let none = self.site.transports.streams.none_under_way(workload);
        if none {
            self.site.drivers.finish(workload);
        }
        none
    }

    /// Wakes a workload or a card, or asks for frames.
    pub(crate) fn wake_up(&mut self, workload: u16, token: u64) {
        if workload == CARDS {
            self.site.transports.carrier.looks(token as u32);
            return self.feed(token as u32);
        }
        match (token, self.site.transports.streams.has_sent_all(workload)) {
            (ASK, true) if self.site.drivers.of(workload).finished => {}
            (ASK, true) => self.ask_for_frames(workload),
            _ => self.tell(workload, Event::Wake { token }),
        }
    }

    /// Makes events of what was lost before this time.
    #[cold]
    pub(crate) fn note_losses(&mut self, before: Time) {
        let share = &mut self.share;
        self.site.take_losses(before, &mut |events, row, order| match share {
            None => events.push(row),
            Some(share) => share.keep_event(events.most(), row, order),
        });
    }

    /// Makes an event of a step of repairing losses, which concerns these positions.
    fn note_recovery(&mut self, end: EndpointId, event: RecoveryEvent, from: u64, to: u64) {
        let (what, cause) = match event {
            RecoveryEvent::Timeout(cause) => (What::Timeout, Some(cause as u8)),
            RecoveryEvent::Recovery => (What::Recovery, None),
            RecoveryEvent::Recovered => (What::Recovered, None),
            RecoveryEvent::Spurious => (What::Spurious, None),
        };
        self.note(end, what, cause, (from, to));
    }

    /// Makes an event of a connection that is given up.
    fn note_failure(&mut self, end: EndpointId) {
        let e = self.site.transports.tcp.stack.endpoint(end);
        let (from, to) = (e.acknowledged(), e.acknowledged() + e.outstanding());
        self.note(end, What::Failed, None, (from, to));
    }

    /// Makes an event of a connection; `timeout` is the number of the cause of a timeout.
    fn note(&mut self, end: EndpointId, what: What, timeout: Option<u8>, (from, to): (u64, u64)) {
        if !self.site.probes.records.events.is_on() {
            return;
        }
        let now = self.site.network.now;
        self.note_losses(now);
        let tcp = &self.site.transports.tcp;
        let (connection, e) = (tcp.connections.of(end), tcp.stack.endpoint(end));
        let (src, dst) = connection.stream_of(end);
        // neither the SYN nor the FIN is payload
        let first = from.max(1) - 1;
        let after = to.max(1) - 1;
        let bytes = after.min(e.written()).saturating_sub(first);
        let order: EventOrder = match self.share {
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
        match &mut self.share {
            None => events.push(row),
            Some(share) => share.keep_event(events.most(), row, order),
        }
    }
}
