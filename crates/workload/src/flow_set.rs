//! What stride, permutation and all-to-all share: every host has a list of equal flows to send,
//! each over a connection of its own.
//!
//! Flow number `k` of host `i` is flow `i · per_host + k`. Of each host, the first `parallel` flows
//! start at seeded times in `[0, start_window)`; each flow that ends lets the host's next one start.
//! Only flows under way are held in memory.

use crate::demand::Objections;
use crate::names::Names;
use crate::{Action, Event};
use eastwest_engine::random::Stream;
use eastwest_types::{ClassId, EndpointId, HostId, Purpose, Side, Span, Time};

/// The most flows that can be under way at once: a connection takes two endpoints.
pub(crate) const MAX_UNDER_WAY: u64 = EndpointId::MAX_SLOTS as u64 / 2;

/// Objects to more flows at once than endpoints can be told apart.
pub(crate) fn require_endpoints(no: &mut Objections, hosts: u64, parallel: u64) {
    no.require(hosts.saturating_mul(parallel) <= MAX_UNDER_WAY, || {
        format!(
            "{hosts} hosts with {parallel} flows each at once: at most {MAX_UNDER_WAY} flows can \
             be under way at once"
        )
    });
}

/// Who sends how much to whom, less the destinations.
#[derive(Clone, Debug)]
pub(crate) struct FlowSetConfig {
    pub hosts: u32,
    /// Flows of each host.
    pub per_host: u32,
    /// Flows a host has under way at once.
    pub parallel: u32,
    /// Payload of each flow.
    pub bytes: u64,
    pub start_window: Span,
    pub class: ClassId,
}

/// The flows of a pattern.
#[derive(Debug)]
pub(crate) struct FlowSet {
    config: FlowSetConfig,
    starts: Stream,
    /// Number of each host's next flow.
    next: Vec<u32>,
    /// The host behind each open connection.
    open: Names<u32>,
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
        (self.done, u64::from(self.config.hosts) * u64::from(self.config.per_host))
    }

    /// Takes an event; `destination(host, k)` names the receiver of the host's flow `k`.
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
                let per_host = u64::from(self.config.per_host);
                let (host, k) = ((token / per_host) as u32, (token % per_host) as u32);
                self.start(host, k, destination(host, k), out);
            }
            Event::Delivered { conn, .. } => {
                out.push(Action::Close { conn });
                let host = self.open.release(conn);
                self.done += 1;
                let k = self.next[host as usize];
                if k < self.config.per_host {
                    self.next[host as usize] += 1;
                    self.start(host, k, destination(host, k), out);
                } else if self.done == self.progress().1 {
                    out.push(Action::Finished);
                }
            }
            Event::Failed { .. } | Event::Received { .. } => {
                unreachable!("failures are not borne, progress is not asked for")
            }
        }
    }

    fn begin(&mut self, now: Time, out: &mut Vec<Action>) {
        for host in 0..self.config.hosts {
            for k in 0..self.next[host as usize] {
                let at = now + self.starts.within(self.config.start_window);
                out.push(Action::Wake { at, token: self.number(host, k) });
            }
        }
    }

    fn number(&self, host: u32, k: u32) -> u64 {
        u64::from(host) * u64::from(self.config.per_host) + u64::from(k)
    }

    fn start(&mut self, host: u32, k: u32, to: u32, out: &mut Vec<Action>) {
        let conn = self.open.take(host);
        out.push(Action::Open {
            conn,
            client: HostId(host),
            server: HostId(to),
            class: self.config.class,
        });
        out.push(Action::Send {
            conn,
            from: Side::Client,
            payload: self.config.bytes,
            header: 0,
            tag: self.number(host, k),
            purpose: Purpose::Flow,
            job: None,
            record: true,
        });
    }
}
