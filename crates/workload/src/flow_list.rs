//! A list of flows: sender, receiver, bytes and start time of each flow.
//!
//! Other simulators call it a flow file or traffic matrix. Each flow is one message over its own
//! TCP connection, which is opened at the flow's start time independent of earlier flows (open
//! loop). Flows with equal start times are opened in the order of the list. The list and the flows
//! in progress are in memory.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)
)]

use crate::demand::Objections;
use crate::names::Names;
use crate::protocol::{Action, Cluster, Event};
use eastwest_types::{ClassId, HostId, Purpose, Side, Span, Time};
use serde::{Deserialize, Serialize};

/// One flow of a list of flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ListedFlow {
    /// Time from the start of the simulation at which the flow's connection is opened.
    pub start: Span,
    /// Host that sends the flow.
    pub src: HostId,
    /// Host that receives the flow.
    pub dst: HostId,
    /// Payload bytes of the flow, at least 1.
    pub bytes: u64,
}

/// Settings of a list of flows.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowListConfig {
    /// List of the flows, in any order of their start times.
    pub flows: Vec<ListedFlow>,
    /// Traffic class of all packets of the flows.
    pub class: ClassId,
}

/// State of a list of flows during a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct FlowList {
    flows: Vec<ListedFlow>,
    class: ClassId,
    /// Index of the next flow to open, in the order of start times.
    next: usize,
    open: Names<()>,
}

impl FlowList {
    /// Returns the initial state of a list of flows, sorted by start time, or the reasons why the
    /// settings are invalid. A reason names a flow by its number in the list, from 1.
    pub fn new(config: FlowListConfig, cluster: &Cluster) -> Result<FlowList, Vec<String>> {
        let hosts = cluster.rack_of.len();
        let mut no = Objections::new();
        no.require(!config.flows.is_empty(), || "flows: at least one flow is needed".into());
        let mut refuse = |what: &str, bad: &dyn Fn(&ListedFlow) -> bool| {
            let at = config.flows.iter().position(bad);
            no.require(at.is_none(), || {
                format!("flows: flow number {} {what}", at.unwrap_or(0) + 1)
            });
        };
        refuse("sends nothing: bytes must be at least 1", &|f| f.bytes == 0);
        refuse("goes from a host to itself", &|f| f.src == f.dst);
        refuse(
            &format!(
                "names a host that does not exist; the fabric has {hosts} hosts, numbered from 0"
            ),
            &|f| f.src.0.max(f.dst.0) as usize >= hosts,
        );
        let FlowListConfig { mut flows, class } = config;
        no.unless_any(|| {
            flows.sort_by_key(|f| f.start);
            FlowList { flows, class, next: 0, open: Names::new() }
        })
    }

    /// Returns the numbers of finished flows and of all flows.
    pub fn progress(&self) -> (u64, u64) {
        ((self.next - self.open.in_use()) as u64, self.flows.len() as u64)
    }

    /// Returns the time at which the last flow starts.
    pub fn last_start(&self) -> Time {
        self.flows.last().map_or(Time::ZERO, |flow| Time::ZERO + flow.start)
    }

    /// Handles an event and appends the actions that follow from it to `out`.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Begin => {}
            Event::Wake { .. } => self.open_due(now, out),
            Event::Delivered { conn, .. } => {
                out.push(Action::Close { conn });
                self.open.release(conn);
                if self.next == self.flows.len() && self.open.in_use() == 0 {
                    out.push(Action::Finished);
                }
                return;
            }
            Event::Failed { .. } | Event::Received { .. } | Event::Arrived { .. } => {
                unreachable!(
                    "this workload requests neither failure nor progress events, so it receives none"
                )
            }
        }
        if let Some(flow) = self.flows.get(self.next) {
            out.push(Action::Wake { at: Time::ZERO + flow.start, token: 0 });
        }
    }

    /// Opens all flows whose start time has come.
    fn open_due(&mut self, now: Time, out: &mut Vec<Action>) {
        while let Some(flow) = self.flows.get(self.next)
            && Time::ZERO + flow.start <= now
        {
            let conn = self.open.take(());
            let (client, server) = (flow.src, flow.dst);
            out.push(Action::Open { conn, client, server, class: self.class, cards: None });
            out.push(Action::Send {
                conn,
                from: Side::Client,
                payload: flow.bytes,
                header: 0,
                tag: self.next as u64,
                purpose: Purpose::Flow,
                job: None,
                record: true,
            });
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ideal::{Ideal, cluster};

    fn flow(start_us: u64, src: u32, dst: u32, bytes: u64) -> ListedFlow {
        ListedFlow { start: Span::from_us(start_us), src: HostId(src), dst: HostId(dst), bytes }
    }

    fn list(flows: Vec<ListedFlow>) -> Result<FlowList, Vec<String>> {
        FlowList::new(FlowListConfig { flows, class: ClassId(0) }, &cluster(4))
    }

    #[test]
    fn flows_start_when_the_list_says_in_whatever_order_it_says_it() {
        let flows =
            vec![flow(30, 2, 1, 7), flow(0, 0, 1, 5), flow(30, 3, 0, 9), flow(900, 1, 2, 1)];
        let mut workload = list(flows).expect("possible");
        let run = Ideal::run(|now, event, out| workload.handle(now, event, out));
        assert!(run.finished);
        assert_eq!((run.opened, run.open, run.peak), (4, 0, 3));
        assert_eq!(workload.progress(), (4, 4));
        let rows: Vec<_> = run.rows.iter().map(|r| (r.sent, r.src.0, r.dst.0, r.payload)).collect();
        let at = |us| Time::ZERO + Span::from_us(us);
        let expected = [(at(0), 0, 1, 5), (at(30), 2, 1, 7), (at(30), 3, 0, 9), (at(900), 1, 2, 1)];
        assert_eq!(rows, expected);
        assert_eq!(run.pending, 4, "one wake-up waits, not one for each flow");
    }

    #[test]
    fn impossible_flows_are_refused_by_number() {
        let reasons = list(vec![flow(0, 0, 1, 5), flow(0, 2, 2, 0), flow(0, 9, 1, 1)]).unwrap_err();
        let expected = [
            "flow number 2 sends nothing",
            "number 2 goes from a host to itself",
            "number 3 names",
        ];
        for (reason, part) in reasons.iter().zip(expected) {
            assert!(reason.contains(part), "{reason}");
        }
        assert_eq!(reasons.len(), 3);
        assert!(list(Vec::new()).is_err());
    }
}
