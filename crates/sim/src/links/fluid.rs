//! Completion times of flows in a fluid: they share the links, but no queue delays them.
//!
//! The rates are those of [flow mode](crate::flow_world): max–min fair, with the handshake and slow
//! start of TCP. Queues are left out, because the simulations of the links in packets have them.

use eastwest_fluid::delay::{PortSpec, Queue};
use eastwest_fluid::network::{Network, Pace};
use eastwest_fluid::transfer::Rules;
use eastwest_types::{Side, Span, Time};

/// Number of events between two calls of `proceed`.
const EVENTS_PER_CHECK: u64 = 1 << 8;

/// A flow of the fluid.
pub struct FluidFlow {
    /// Time at which the connection is opened.
    pub start: Time,
    /// Ports of the path of the data, and of the path of the acknowledgements.
    pub paths: [Box<[u32]>; 2],
    /// Bytes of the flow.
    pub bytes: u64,
}

/// Returns the completion time of each flow; `flows` must be ordered by start. `pace` is the minimum
/// time between two computations of rates. `proceed` is called regularly; if it returns false, the
/// result is `None`.
pub fn completions(
    ports: impl IntoIterator<Item = PortSpec>,
    (rules, pace): (Rules, Pace),
    flows: &[FluidFlow],
    proceed: &mut dyn FnMut() -> bool,
) -> Option<Vec<Span>> {
    let without_queue = |p: PortSpec| {
        let queue = Queue::Aims(Span::ZERO, p.queue.room());
        PortSpec { queue, ..p }
    };
    let ports = ports.into_iter().map(without_queue).collect();
    let mut net = Network::new(ports, rules, pace);
    let mut times = vec![Span::ZERO; flows.len()];
    let mut flow_of: Vec<usize> = Vec::new(); // by number of the connection
    let mut next = 0;
    for event in 1u64.. {
        let now = net.next();
        if let Some(flow) = flows.get(next).filter(|flow| flow.start <= now) {
            let conn = net.open(flow.start, flow.paths.clone());
            flow_of.resize(flow_of.len().max(conn as usize + 1), next);
            flow_of[conn as usize] = next;
            net.send(flow.start, conn, Side::Client, flow.bytes);
            net.close(conn);
            next += 1;
        } else if now == Time::NEVER {
            break;
        } else if let Some(delivered) = net.advance() {
            let flow = flow_of[delivered.conn as usize];
            times[flow] = now.since(flows[flow].start);
            net.free_if_quiet(delivered.conn);
        }
        if event % EVENTS_PER_CHECK == 0 && !proceed() {
            return None;
        }
    }
    Some(times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::sharing::tests::rules;
    use eastwest_types::Rate;

    #[test]
    fn two_flows_share_a_link_and_no_queue_delays_them() {
        let port = PortSpec {
            rate: Rate::gbit(10),
            delay: Span::from_us(1),
            queue: Queue::DropTail(1_500_000),
        };
        let flow = |start_us: u64, port: u32| FluidFlow {
            start: Time::ZERO + Span::from_us(start_us),
            paths: [[port, 2].into(), [3].into()],
            bytes: 10_000_000,
        };
        let times = |flows: &[FluidFlow]| {
            completions([port; 4], (rules(), Pace::default()), flows, &mut || true)
                .expect("it ended")
        };
        let alone = times(&[flow(0, 0)])[0].as_secs_f64();
        let both = times(&[flow(0, 0), flow(0, 1)]);
        let wire = 8.0 * rules().train(10_000_000).wire as f64 / 10e9;
        assert!((alone - wire) / wire < 0.02, "{alone}");
        for time in both {
            let more = time.as_secs_f64() - alone;
            assert!((more / wire - 1.0).abs() < 0.01, "{more} {wire}");
        }
        let apart = times(&[flow(0, 0), flow(20_000, 1)]);
        assert_eq!(apart[0], apart[1]);
        let many: Vec<FluidFlow> = (0..300).map(|_| flow(0, 0)).collect();
        assert!(completions([port; 4], (rules(), Pace::default()), &many, &mut || false).is_none());
    }
}
