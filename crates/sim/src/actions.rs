//! Carrying out what workloads ask for.

use crate::flow_samples::Over;
use crate::messages::{Message, Suffered};
use crate::plan::Transport;
use crate::world::{Ask, RunError, World};
use eastwest_engine::random::mix;
use eastwest_transport::tcp::Connect;
use eastwest_types::{ClassId, EndpointId, HostId, Packet, Side, Time};
use eastwest_workload::{Action, Event};

impl World {
    /// Does what workload number `workload` asks for.
    pub(crate) fn act(&mut self, workload: u16, action: Action) {
        let action = match self.drivers[usize::from(workload)].transport {
            Transport::Tcp | Transport::Ethernet => action,
            Transport::RoceV2 => match self.act_on_queue_pair(workload, action) {
                None => return,
                Some(other) => other,
            },
        };
        match action {
            Action::Wake { at, token } => self.wake(workload, at, token),
            Action::Open { conn, client, server, class } => {
                self.open(workload, conn.0, client, server, class);
            }
            Action::Send { conn, from, payload, header, tag, purpose, job, record } => {
                let client = self.messages.endpoint(workload, conn.0);
                let endpoint = self.stack.endpoint(end_of(client, from));
                let start = endpoint.written();
                let end = start + payload + u64::from(header);
                let (sent, before) = (self.now, Suffered::by(endpoint));
                let message =
                    Message { start, end, tag, payload, purpose, job, record, sent, before };
                self.send(client, from, message);
            }
            Action::Shutdown { conn, from } => {
                let sender = end_of(self.messages.endpoint(workload, conn.0), from);
                self.ask_tcp(&Ask::Close(sender));
            }
            Action::Truncate { conn, from } => {
                let client = self.messages.endpoint(workload, conn.0);
                let sender = end_of(client, from);
                let end = self.stack.truncate(sender);
                self.messages.truncate(client, from, end);
                self.watch(sender.peer());
            }
            Action::Close { conn } => {
                let client = self.messages.close(workload, conn.0);
                for end in [client, client.peer()] {
                    if self.owns(end) {
                        self.ask_tcp(&Ask::Close(end));
                    }
                }
            }
            Action::Abort { conn } => {
                let client = self.messages.close(workload, conn.0);
                self.abort(client);
            }
            Action::Ask { conn } => {
                // a workload that asks about several may have closed this one at an earlier answer
                let Some(client) = self.messages.find(workload, conn.0) else { return };
                let received = |end| self.stack.endpoint(end).received();
                let bytes = [received(client), received(client.peer())];
                self.tell(workload, Event::Received { conn, bytes });
            }
            Action::Datagram { from, to, bytes, class } => self.datagram(from, to, bytes, class),
            Action::Job(job) => self.records.job(workload, *job),
            Action::Task(task) => self.records.task(workload, *task),
            Action::Transaction(transaction) => self.records.transaction(workload, *transaction),
            Action::Round { round, started, bytes } => {
                self.records.round(workload, round, started, self.now, bytes);
            }
            Action::Frame { bytes, stream, .. } => self.frame(workload, bytes, stream),
            Action::Parcel(parcel) => self.send_parcel(workload, &parcel),
            Action::MpiRank(rank) => {
                let records = &mut self.records;
                records.mpi.rank(workload, *rank, &mut records.digest);
            }
            Action::MpiState(state) => self.records.mpi.state(workload, state),
            Action::MpiMessage(message) => {
                let records = &mut self.records;
                records.mpi.message(workload, *message, &mut records.digest);
            }
            Action::Fail(why) => {
                let name = &self.drivers[usize::from(workload)].name;
                self.stuck = Some(RunError::Stuck(format!("at {}, {name}: {why}", self.now)));
            }
            Action::Finished => {
                if !self.awaits_frames(workload) {
                    self.finish(workload);
                }
            }
        }
    }

    /// A workload has nothing more to do.
    pub(crate) fn finish(&mut self, workload: u16) {
        let driver = &mut self.drivers[usize::from(workload)];
        if !driver.finished && !driver.background {
            self.unfinished -= 1;
        }
        driver.finished = true;
    }

    /// Hands a message to TCP.
    fn send(&mut self, client: EndpointId, from: Side, message: Message) {
        let (sender, bytes, end) = (end_of(client, from), message.end - message.start, message.end);
        let first = self.messages.push(client, from, message);
        self.ask_tcp(&Ask::Write(sender, bytes));
        self.trace(sender);
        if first {
            self.watch(sender.peer());
            self.watch_across(sender, end);
        }
    }

    /// Ends a connection that has no name any more.
    pub(crate) fn abort(&mut self, client: EndpointId) {
        if self.stack.knows(client) {
            // the slot is free at once: what was lost on it is noted while it is known
            self.note_losses(Time::NEVER);
            self.stack.abort(client);
            self.messages.gone(client);
        }
    }

    fn open(&mut self, workload: u16, name: u32, client: HostId, server: HostId, class: ClassId) {
        assert_ne!(client, server, "a host never talks to itself over the network");
        // stands for the client's port: connections of a pair of hosts hash differently
        self.opened += 1;
        if let Some(share) = &mut self.share {
            share.last_open = Some(self.now);
        }
        let tuple = mix(u64::from(client.0) << 32 | u64::from(server.0)) ^ self.opened;
        let connect = Connect {
            client,
            server,
            hashes: (
                self.fabric.flow_hash(client, server, mix(tuple)),
                self.fabric.flow_hash(server, client, mix(tuple ^ 1 << 63)),
            ),
            dscp: self.classes[usize::from(class.0)].dscp,
            class: class.0,
            settings: self.endpoint_settings.of(workload, client, server),
        };
        // the slot may be one that lost packets still name
        self.note_losses(Time::NEVER);
        let opened = match self.paths.is_on() {
            _ if !self.owns_host(client) => self.stack.enter(&connect),
            true => self.tcp_in::<true, false, _>(|stack, now, out| stack.open(now, &connect, out)),
            false => {
                self.tcp_in::<false, false, _>(|stack, now, out| stack.open(now, &connect, out))
            }
        };
        match opened {
            Some(endpoint) => {
                let number = self.connections.number();
                self.connections.open(number, endpoint, client, server, connect.settings);
                self.tracer.open(endpoint, client, server);
                let opened = self.connections.of(endpoint);
                self.flow_samples.open(Over::Tcp, endpoint, opened, (workload, class));
                self.messages.open(workload, name, endpoint, class);
            }
            None => {
                let most = EndpointId::MAX_SLOTS / 2;
                self.stuck =
                    Some(RunError::Limit(format!("more than {most} connections at one time")));
            }
        }
    }

    fn datagram(&mut self, from: HostId, to: HostId, bytes: u16, class: ClassId) {
        let mut packet = Packet::blank(to);
        packet.born = self.now;
        packet.dst_endpoint = EndpointId(u32::from(class.0));
        packet.ip_len = bytes;
        packet.payload = bytes.saturating_sub(28); // IPv4 20, UDP 8
        packet.tos = self.classes[usize::from(class.0)].dscp << 2;
        packet.notes = Packet::DATAGRAM;
        packet.window = from.0;
        self.opened += 1;
        packet.seq = self.opened;
        packet.hash = self.fabric.flow_hash(from, to, mix(self.opened));
        self.fabric.send(self.now, from, packet, None, &mut self.sources);
    }
}

/// The endpoint of one side of a connection.
fn end_of(client: EndpointId, side: Side) -> EndpointId {
    match side {
        Side::Client => client,
        Side::Server => client.peer(),
    }
}
