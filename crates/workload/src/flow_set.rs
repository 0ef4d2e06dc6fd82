//! Common part of the patterns stride, permutation and all-to-all: every host has a list of equal
//! flows, each over its own connection.
//!
//! Flow number `k` of host `i` has the number `i · per_host + k` in the whole set. The first
//! `parallel` flows of each host start at seeded times in `[0, start_window)`. A flow is sent
//! `repeat` times, then the next flow of its host starts. Only flows in progress are in memory.
//!
//! With a request the roles are exchanged: the host connects to the destination and sends a
//! request, and the destination answers with the bytes of the flow and its FIN, as in a fetch of a
//! file or of map output.

use crate::demand::Objections;
use crate::names::Names;
use crate::protocol::{Action, Event};
use eastwest_engine::random::Stream;
use eastwest_types::{ClassId, ConnId, EndpointId, HostId, Purpose, Side, Span, Time};
use serde::{Deserialize, Serialize};

/// Largest number of flows in progress at one time: each connection needs two of the simulator's
/// endpoints.
pub(crate) const MAX_UNDER_WAY: u64 = EndpointId::MAX_SLOTS as u64 / 2;

/// Adds an objection if `hosts` hosts with `parallel` flows each need more endpoints than the
/// simulator has.
pub(crate) fn require_endpoints(no: &mut Objections, hosts: u64, parallel: u64) {
    no.require(hosts.saturating_mul(parallel) <= MAX_UNDER_WAY, || {
        format!(
            "{hosts} hosts with {parallel} simultaneous flows each are too many: at most \
             {MAX_UNDER_WAY} flows can be open at the same time"
        )
    });
}

/// Settings of a set of equal flows, without their destinations.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FlowSetConfig {
    pub hosts: u32,
    /// Number of flows of each host, each to one destination.
    pub per_host: u32,
    /// Largest number of flows that a host has in progress at one time.
    pub parallel: u32,
    /// Payload of each flow in bytes.
    pub bytes: u64,
    /// Number of times that each flow is sent, one after the other.
    pub repeat: u32,
    /// Bytes of the request for a flow; 0 if the host sends the flow itself.
    pub request_bytes: u64,
    pub start_window: Span,
    pub class: ClassId,
}

/// A flow in progress: host, number of the flow of this host, repetition.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Flow {
    host: u32,
    k: u32,
    /// Number of times that this flow was sent before.
    round: u32,
}

/// State of a set of equal flows: settings, next flow of each host, flows in progress.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FlowSet {
    config: FlowSetConfig,
    starts: Stream,
    /// Number of the next flow of each host, by host.
    next: Vec<u32>,
    /// Flow of each open connection.
    open: Names<Flow>,
    done: u64,
}

impl FlowSet {
    pub(crate) fn new(config: FlowSetConfig, starts: Stream) -> FlowSet {
        FlowSet {
            next: vec![config.parallel.min(config.per_host); config.hosts as usize],
            config,
            starts,
            open: Names::new(),
            done: 0,
        }
    }

    pub(crate) fn progress(&self) -> (u64, u64) {
        let c = &self.config;
        (self.done, u64::from(c.hosts) * u64::from(c.per_host) * u64::from(c.repeat))
    }

    /// Returns the number of rows in the table of flows at the end of the workload: one for each
    /// flow, and one for its request.
    pub(crate) fn recorded(&self) -> u64 {
        self.progress().1 * if self.config.request_bytes > 0 { 2 } else { 1 }
    }

    /// Returns the number of flows if all flows, or their requests, start at drawn times and none
    /// waits for another flow; otherwise `None`.
    pub(crate) fn local(&self) -> Option<u64> {
        let c = &self.config;
        let at_once = c.parallel >= c.per_host && c.repeat == 1;
        at_once.then(|| self.progress().1)
    }

    /// Handles an event and appends the actions that follow from it to `out`; `destination(host,
    /// k)` returns the receiver of flow `k` of a host.
    pub(crate) fn handle(
        &mut self,
        now: Time,
        event: Event,
        out: &mut Vec<Action>,
        mut destination: impl FnMut(u32, u32) -> u32,
    ) {
        match event {
            Event::Begin => self.begin(now, out),
            Event::Wake { token } => {
                let (host, k) = self.flow_of(token);
                self.start(Flow { host, k, round: 0 }, destination(host, k), out);
            }
            Event::Delivered { conn, from, tag } if from != self.sender() => {
                self.send(conn, tag, out);
                out.push(Action::Shutdown { conn, from: Side::Server });
            }
            Event::Delivered { conn, .. } => {
                out.push(Action::Close { conn });
                let flow = self.open.release(conn);
                self.done += 1;
                if let Some(next) = self.after(flow) {
                    self.start(next, destination(next.host, next.k), out);
                } else if self.done == self.progress().1 {
                    out.push(Action::Finished);
                }
            }
            Event::Failed { .. } | Event::Received { .. } | Event::Arrived { .. } => {
                unreachable!(
                    "this workload requests neither failure nor progress events, so it receives none"
                )
            }
        }
    }

    fn begin(&mut self, now: Time, out: &mut Vec<Action>) {
        out.reserve(self.next.iter().map(|&flows| flows as usize).sum());
        for host in 0..self.config.hosts {
            for k in 0..self.next[host as usize] {
                let at = now + self.starts.within(self.config.start_window);
                out.push(Action::Wake { at, token: self.number(host, k) });
            }
        }
    }

    /// Returns client and server of the flow that starts at the wake-up with this token;
    /// `destination(host, k)` is the receiver of flow `k` of a host.
    pub(crate) fn opens(
        &self,
        token: u64,
        destination: impl FnOnce(u32, u32) -> u32,
    ) -> (HostId, HostId) {
        let (host, k) = self.flow_of(token);
        (HostId(host), HostId(destination(host, k)))
    }

    /// Returns host and number of the flow that starts at the wake-up with this token.
    fn flow_of(&self, token: u64) -> (u32, u32) {
        let per_host = u64::from(self.config.per_host);
        ((token / per_host) as u32, (token % per_host) as u32)
    }

    fn number(&self, host: u32, k: u32) -> u64 {
        u64::from(host) * u64::from(self.config.per_host) + u64::from(k)
    }

    /// Returns the flow that a host starts after the end of `flow`: the next repetition, or its
    /// next flow; `None` if there is none.
    fn after(&mut self, flow: Flow) -> Option<Flow> {
        if flow.round + 1 < self.config.repeat {
            return Some(Flow { round: flow.round + 1, ..flow });
        }
        let k = self.next[flow.host as usize];
        (k < self.config.per_host).then(|| {
            self.next[flow.host as usize] += 1;
            Flow { host: flow.host, k, round: 0 }
        })
    }

    /// Returns the side of a connection that sends the flow.
    fn sender(&self) -> Side {
        if self.config.request_bytes > 0 { Side::Server } else { Side::Client }
    }

    fn start(&mut self, flow: Flow, to: u32, out: &mut Vec<Action>) {
        let conn = self.open.take(flow);
        let tag =
            self.number(flow.host, flow.k) * u64::from(self.config.repeat) + u64::from(flow.round);
        out.push(Action::Open {
            conn,
            client: HostId(flow.host),
            server: HostId(to),
            class: self.config.class,
            cards: None,
        });
        if self.config.request_bytes == 0 {
            return self.send(conn, tag, out);
        }
        out.push(Action::Send {
            conn,
            from: Side::Client,
            payload: self.config.request_bytes,
            header: 0,
            tag,
            purpose: Purpose::Request,
            job: None,
            record: true,
        });
    }

    fn send(&self, conn: ConnId, tag: u64, out: &mut Vec<Action>) {
        out.push(Action::Send {
            conn,
            from: self.sender(),
            payload: self.config.bytes,
            header: 0,
            tag,
            purpose: Purpose::Flow,
            job: None,
            record: true,
        });
    }
}
