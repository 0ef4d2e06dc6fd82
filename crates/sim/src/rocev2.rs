//! Queue pairs of workloads with `transport = "rocev2"`: carries what they ask for to the
//! [stack](eastwest_transport::rocev2), and back what has arrived.

use crate::connections::{Connections, Opened};
use crate::flow_samples::Over;
use crate::messages::{Message, Messages, Suffered};
use crate::world::{RunError, World};
use eastwest_engine::random::mix;
use eastwest_engine::timers::Timers;
use eastwest_engine::tournament::Tournament;
use eastwest_network::fabric::Fabric;
use eastwest_transport::rocev2::{Alarm, Connect, Notice, QueuePair, RoceV2Config, Sink, Stack};
use eastwest_types::{ClassId, ConnId, EndpointId, HostId, Packet, Side, Span, Time};
use eastwest_workload::{Action, Event};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Timers of queue pairs have this bit, by which they are told from those of TCP.
pub const ALARM: u64 = 1 << 40;

/// All queue pairs of a run, and the messages on them.
#[derive(Serialize, Deserialize)]
pub struct RoceV2 {
    pub(crate) stack: Stack,
    pub(crate) messages: Messages,
    connections: Connections,
    /// Empty between two events.
    #[serde(skip)]
    notices: Vec<(EndpointId, Notice)>,
}

impl RoceV2 {
    /// No queue pairs yet.
    pub fn new(config: RoceV2Config, workloads: usize) -> RoceV2 {
        RoceV2 {
            stack: Stack::new(config),
            messages: Messages::new(workloads),
            connections: Connections::default(),
            notices: Vec::new(),
        }
    }

    /// The queue pair that a packet belongs to, its sender, and the position of its payload.
    pub fn origin_of(&self, packet: &Packet) -> (Opened, EndpointId, u64) {
        let sender = packet.dst_endpoint.peer();
        let near = self.stack.end(sender).acknowledged();
        (self.connections.of(sender), sender, Packet::widen(packet.seq, near))
    }

    /// What is under way: sender, receiver, message.
    pub fn outstanding(&self) -> impl Iterator<Item = (HostId, HostId, &Message)> {
        self.messages.outstanding().map(|(slot, side, message)| {
            let end = self.stack.end(EndpointId::new(slot + side as usize, 0));
            (end.local(), end.remote(), message)
        })
    }

    /// What the summary says of them.
    pub fn summary(&self) -> Value {
        let c = self.stack.totals();
        json!({
            "packets": c.packets, "retransmits": c.retransmits,
            "retransmitted_bytes": c.retransmitted_bytes, "timeouts": c.timeouts,
            "acks": c.acks, "naks": c.naks, "out_of_sequence": c.out_of_sequence,
            "duplicates": c.duplicates, "marked": c.marked, "cnps": c.cnps, "rate_cuts": c.cuts,
        })
    }
}

/// What queue pairs say goes here.
struct Out<'a> {
    now: Time,
    fabric: &'a mut Fabric,
    sources: &'a mut Tournament,
    timers: &'a mut Timers,
    /// The source of timers in the order of events.
    source: u32,
    notices: &'a mut Vec<(EndpointId, Notice)>,
}

impl Sink for Out<'_> {
    fn send(&mut self, from: HostId, packet: Packet) {
        self.fabric.send(self.now, from, packet, None, self.sources);
    }

    fn takes_more_at(&self, from: HostId, dscp: u8, ip_len: u32, sent: bool) -> Time {
        self.fabric.takes_more_at(self.now, from, dscp, ip_len, sent)
    }

    fn arm(&mut self, at: Time, alarm: Alarm) {
        let number = ALARM | alarm.number();
        if self.timers.push(at, number, number) {
            self.sources.set(self.source, self.timers.first());
        }
    }

    fn notify(&mut self, endpoint: EndpointId, notice: Notice) {
        self.notices.push((endpoint, notice));
    }
}

fn suffered(sender: &QueuePair) -> Suffered {
    let c = sender.counters();
    Suffered::of(c.retransmits as u32, c.timeouts as u32)
}

impl World {
    /// Those of this run; there are some where a workload has them.
    fn queue_pairs(&mut self) -> &mut RoceV2 {
        self.rocev2.as_mut().expect("a workload has queue pairs")
    }

    /// Lets queue pairs work; what they have to say to applications waits.
    fn with_queue_pairs<R>(&mut self, f: impl FnOnce(&mut Stack, Time, &mut Out) -> R) -> R {
        let source = self.timer_source();
        let all = self.rocev2.as_mut().expect("a workload has queue pairs");
        let mut out = Out {
            now: self.now,
            fabric: &mut self.fabric,
            sources: &mut self.sources,
            timers: &mut self.transport_timers,
            source,
            notices: &mut all.notices,
        };
        f(&mut all.stack, self.now, &mut out)
    }

    /// Does what a workload with queue pairs asks for, where it concerns one; hands back anything else.
    pub(crate) fn act_on_queue_pair(&mut self, workload: u16, action: Action) -> Option<Action> {
        match action {
            Action::Open { conn, client, server, class } => {
                self.open_queue_pair(workload, conn.0, (client, server), class);
            }
            Action::Send { conn, from, payload, header, tag, purpose, job, record } => {
                let now = self.now;
                let all = self.queue_pairs();
                let client = all.messages.endpoint(workload, conn.0);
                let sender = if from == Side::Client { client } else { client.peer() };
                let bytes = payload + u64::from(header);
                let start = all.stack.end(sender).written();
                let before = suffered(all.stack.end(sender));
                let end = start + bytes;
                let message =
                    Message { start, end, tag, payload, purpose, job, record, sent: now, before };
                let first = all.messages.push(client, from, message);
                self.with_queue_pairs(|stack, now, out| stack.write(now, sender, bytes, out));
                if first {
                    self.watch_queue_pair(sender.peer());
                }
            }
            // nothing is said at the end of a stream
            Action::Shutdown { .. } => {}
            Action::Truncate { conn, from } => {
                let all = self.queue_pairs();
                let client = all.messages.endpoint(workload, conn.0);
                let sender = if from == Side::Client { client } else { client.peer() };
                let end = all.stack.truncate(sender);
                all.messages.truncate(client, from, end);
                self.watch_queue_pair(sender.peer());
            }
            Action::Close { conn } => {
                let client = self.queue_pairs().messages.close(workload, conn.0);
                self.with_queue_pairs(|stack, _, out| stack.close(client, out));
            }
            Action::Abort { conn } => {
                let client = self.queue_pairs().messages.close(workload, conn.0);
                self.abort_queue_pair(client);
            }
            Action::Ask { conn } => {
                let all = self.queue_pairs();
                // as over TCP: an earlier answer may have led to its end
                let client = all.messages.find(workload, conn.0)?;
                let received = |end| all.stack.end(end).received();
                let bytes = [received(client), received(client.peer())];
                self.tell(workload, Event::Received { conn, bytes });
            }
            other => return Some(other),
        }
        None
    }

    fn open_queue_pair(
        &mut self,
        workload: u16,
        name: u32,
        (client, server): (HostId, HostId),
        class: ClassId,
    ) {
        assert_ne!(client, server, "a host never talks to itself over the network");
        // stands for the UDP source port, which differs by queue pair
        self.opened += 1;
        let tuple = mix(u64::from(client.0) << 32 | u64::from(server.0)) ^ self.opened;
        let connect = Connect {
            client,
            server,
            hashes: (
                self.fabric.flow_hash(client, server, mix(tuple)),
                self.fabric.flow_hash(server, client, mix(tuple ^ 1 << 63)),
            ),
            rates: (self.fabric.host_rate(client), self.fabric.host_rate(server)),
            dscp: self.classes[usize::from(class.0)].dscp,
            class: class.0,
        };
        // the slot may be one that lost packets still name
        self.note_losses(Time::NEVER);
        let number = self.connections.number();
        let all = self.queue_pairs();
        match all.stack.open(&connect) {
            Some(end) => {
                all.connections.open(number, end, client, server, (0, 0));
                all.messages.open(workload, name, end, class);
                let opened = all.connections.of(end);
                self.flow_samples.open(Over::RoceV2, end, opened, (workload, class));
            }
            None => {
                let most = EndpointId::MAX_SLOTS / 2;
                self.stuck =
                    Some(RunError::Limit(format!("more than {most} queue pairs at one time")));
            }
        }
    }

    fn abort_queue_pair(&mut self, client: EndpointId) {
        if self.queue_pairs().stack.knows(client) {
            self.note_losses(Time::NEVER);
            let all = self.queue_pairs();
            all.stack.abort(client);
            all.messages.gone(client);
        }
    }

    /// A packet of a queue pair has reached its host.
    pub(crate) fn queue_pair_packet<const INSIDE: bool>(&mut self, packet: &Packet, latency: Span) {
        let class = self.queue_pairs().stack.end(packet.dst_endpoint).class;
        self.records.latency(class, packet, latency);
        self.with_queue_pairs(|stack, now, out| stack.on_packet(now, packet, out));
        if INSIDE && self.flow_samples.is_on() {
            self.sample_queue_pair(packet.dst_endpoint);
        }
        self.carry_queue_pair_notices();
    }

    /// A timer of a queue pair or a card has expired.
    #[cold]
    pub(crate) fn queue_pair_alarm(&mut self, number: u64) {
        let alarm = Alarm::of_number(number & !ALARM);
        self.with_queue_pairs(|stack, now, out| stack.on_alarm(now, alarm, out));
        self.carry_queue_pair_notices();
    }

    /// Passes on what queue pairs had to say to applications.
    pub(crate) fn carry_queue_pair_notices(&mut self) {
        while !self.queue_pairs().notices.is_empty() {
            let all = self.queue_pairs();
            let (end, notice) = all.notices.remove(0);
            match notice {
                Notice::Closed => all.messages.gone(end),
                _ if !all.stack.knows(end) => {} // it was ended meanwhile
                Notice::Delivered => self.deliver_queue_pair_messages(end),
                Notice::Failed => self.queue_pair_failed(end),
            }
        }
    }

    fn deliver_queue_pair_messages(&mut self, receiver: EndpointId) {
        let received = self.queue_pairs().stack.end(receiver).received();
        while let Some(d) = self.queue_pairs().messages.pop(receiver, received) {
            if d.message.record {
                let all = self.rocev2.as_ref().expect("a workload has queue pairs");
                let sender = all.stack.end(receiver.peer());
                let ends = (sender.local(), sender.remote());
                let mtu = all.stack.config().mtu;
                let (bytes, headers) = (d.message.payload, RoceV2Config::HEADERS);
                let ideal = self.fabric.ideal_time(ends.0, ends.1, bytes, mtu, headers);
                let number = all.connections.of(receiver).number;
                let row = d.row(self.now, ends, suffered(sender), number, ideal);
                self.records.flow(row);
            }
            if let Some(name) = d.name {
                let (conn, tag) = (ConnId(name), d.message.tag);
                self.tell(d.workload, Event::Delivered { conn, from: d.from, tag });
            }
            if !self.queue_pairs().stack.knows(receiver) {
                return; // its workload has ended it
            }
        }
        self.watch_queue_pair(receiver);
    }

    /// Asks a receiver to tell when its next message is complete.
    fn watch_queue_pair(&mut self, receiver: EndpointId) {
        let all = self.queue_pairs();
        if let Some(end) = all.messages.next_end(receiver)
            && all.stack.expect(receiver, end)
        {
            all.notices.push((receiver, Notice::Delivered));
        }
    }

    /// A queue pair has been given up. Who bears that is told; others are stuck.
    fn queue_pair_failed(&mut self, end: EndpointId) {
        let client = if end.side() == Side::Client { end } else { end.peer() };
        let owner = self.queue_pairs().messages.owner(client);
        let bearing = |&(w, _): &(u16, _)| self.drivers[usize::from(w)].workload.bears_failures();
        if let Some((workload, name)) = owner.filter(bearing) {
            if let Some(name) = name {
                self.queue_pairs().messages.close(workload, name);
            }
            self.abort_queue_pair(client);
            if let Some(name) = name {
                self.tell(workload, Event::Failed { conn: ConnId(name) });
            }
            return;
        }
        let all = self.queue_pairs();
        let (e, timeouts) = (all.stack.end(end), all.stack.config().retries + 1);
        let (from, to) = (e.local().0 as usize, e.remote().0 as usize);
        let names = &self.fabric.graph.names;
        self.stuck = Some(RunError::Stuck(format!(
            "at {} the queue pair from {} to {} was given up after {timeouts} timeouts in a row{}",
            self.now,
            names[from],
            names[to],
            self.describe_failures(),
        )));
    }
}
