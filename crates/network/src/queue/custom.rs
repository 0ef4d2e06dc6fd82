//! Interface for queue disciplines from other crates (`eastwest new` creates such a crate).
//!
//! A [`QueueModel`] contains the settings of a discipline. From these settings, a [`CustomQueue`]
//! is created for every port, or every class of a port. This queue decides about packets with a
//! [`Verdict`] or a [`Plan`] like a built-in discipline. Two rules apply to every decision: a
//! packet that exceeds the limit of the queue is dropped, and no more packets are dropped than are
//! queued.
//!
//! A discipline may assign a [rank](CustomQueue::rank) to each packet, which decides the order of
//! departures ([`super::ranked`]). A discipline may also have a periodic
//! [timer](CustomQueue::update_period). The simulator calls the timer late: all calls that are due
//! are made before the next other call of the discipline. Results do not change, since the state of
//! a discipline is visible only through its decisions. The built-in discipline PIE executes its
//! updates in the same way.

use super::decision::{Arrival, Head, Place, Plan, Verdict};
use super::discipline::{Discipline, QueueSettings};
use eastwest_settings::Section;
use eastwest_types::{Limit, Span, Time};
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

/// Queue discipline from another crate, at one port or one class of a port: settings and state.
pub trait CustomQueue: fmt::Debug + Send {
    /// Returns the decision about a packet that arrives at the port: enqueue, mark or drop.
    fn at_enqueue(&mut self, arrival: &Arrival) -> Verdict;

    /// Decides at dequeue which of the next packets the port drops or marks; `heads` yields queued
    /// packets from the head of the queue. Called only if the model [decides at
    /// dequeue](QueueModel::decides_at_dequeue).
    fn at_dequeue(&mut self, now: Time, heads: &mut dyn Iterator<Item = Head<'_>>) -> Plan {
        let _ = (now, heads);
        Plan::default()
    }

    /// Returns the rank of an arriving packet that [`CustomQueue::at_enqueue`] has admitted. The
    /// queued packet with the smallest rank leaves first; among equal ranks, the packet that
    /// arrived first. If the queue is full, the packet with the largest rank is dropped. Called
    /// only if the model [has ranks](QueueModel::ranks).
    fn rank(&mut self, arrival: &Arrival) -> u64 {
        let _ = arrival;
        0
    }

    /// Informs the discipline that a packet is dropped because the queue is full. The dropped
    /// packet has the largest rank, and may be the arriving packet. Called only if the model [has
    /// ranks](QueueModel::ranks).
    fn at_push_out(&mut self, now: Time, packet: &Head) {
        let _ = (now, packet);
    }

    /// Returns the time between two calls of [`CustomQueue::at_timer`], at least 100 ns; `None` for
    /// no timer. Called once, before the first packet.
    fn update_period(&self) -> Option<Span> {
        None
    }

    /// Handles the end of a timer period. Returns true if further calls would change nothing until
    /// the next packet arrives; the simulator may then skip these calls while the port is idle.
    fn at_timer(&mut self, timer: &Timer) -> bool {
        let _ = timer;
        false
    }
}

/// End of a timer period, see [`CustomQueue::update_period`]. The first period begins at time zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// Time at which the period ends.
    pub now: Time,
    /// Time until the port will have sent all packets that it now holds: the queueing delay of a
    /// packet that arrives at `now`. Drops at dequeue shorten this time only from the next arrival
    /// on.
    pub delay: Span,
}

/// Shortest period of a timer, 100 ns. With shorter periods a run would spend most of its time in
/// timers.
const SHORTEST_PERIOD: Span = Span(100_000);

/// Settings of a queue discipline from another crate, from which the queue of each port is created.
pub trait QueueModel: fmt::Debug + Send + Sync {
    /// Returns an empty queue; `place` describes the port of the queue (rate, MTU, seed).
    fn start(&self, place: &Place) -> Box<dyn CustomQueue>;

    /// Whether the discipline decides about packets at dequeue. Its ports are then in
    /// [`Mode::Lazy`](crate::link::Mode::Lazy), in which departures are decided at dequeue.
    fn decides_at_dequeue(&self) -> bool {
        false
    }

    /// Whether the discipline must also see packets that arrive at an idle port and do not wait,
    /// for example to update an average. With `false`, simulations are faster.
    fn sees_all(&self) -> bool {
        true
    }

    /// Whether packets leave in the order of [`CustomQueue::rank`] instead of the order of arrival.
    /// Ports are then in [`Mode::TwoEvent`](crate::link::Mode::TwoEvent), in which an event ends
    /// every transmission.
    fn ranks(&self) -> bool {
        false
    }

    /// Whether the packets of a flow leave in the order of their arrival although they have ranks.
    /// The smallest rank then selects a flow, and the first packet of this flow to arrive leaves
    /// (pFabric, section 4.2). Needs [`QueueModel::ranks`].
    fn keeps_flow_order(&self) -> bool {
        false
    }

    /// Whether the discipline trims packets ([`Verdict::Trim`]): only their headers are queued. Has
    /// no effect together with [`QueueModel::ranks`]. The queue calls the discipline neither for
    /// packets that an earlier switch has trimmed, nor for packets that do not fit into the shared
    /// memory of the switch: the queue trims these.
    fn trims(&self) -> bool {
        false
    }

    /// Whether the discipline reads [`Arrival::remaining`], which transports then have to set. The
    /// default is true for disciplines with ranks.
    fn reads_remaining(&self) -> bool {
        self.ranks()
    }
}

/// Settings of a queue whose discipline is from another crate.
#[derive(Clone, Debug)]
pub struct CustomQueueConfig {
    /// Discipline with its settings, from which the queue of each port or class is created.
    pub model: Arc<dyn QueueModel>,
    /// Limit of the queue; packets that do not fit are dropped.
    pub limit: Limit,
}

impl PartialEq for CustomQueueConfig {
    fn eq(&self, other: &CustomQueueConfig) -> bool {
        self.limit == other.limit && format!("{:?}", self.model) == format!("{:?}", other.model)
    }
}

impl QueueSettings for CustomQueueConfig {
    type Queue = Box<Custom>;

    fn limit(&self) -> Limit {
        self.limit
    }

    fn start(&self, place: &Place) -> Box<Custom> {
        Box::new(Custom::new(self, place))
    }

    fn decides_at_dequeue(&self) -> bool {
        self.model.decides_at_dequeue()
    }

    fn is_one_fifo(&self) -> bool {
        !self.model.ranks() && !self.model.trims()
    }
}

/// Function that reads the settings of a discipline from another crate.
pub type ReadQueue = dyn Fn(&mut Section, Limit) -> Arc<dyn QueueModel> + Send + Sync;

/// Queue of one port or class whose discipline is from another crate: state and limit.
#[derive(Debug)]
pub struct Custom {
    queue: Box<dyn CustomQueue>,
    decides_at_dequeue: bool,
    sees_all: bool,
    ranks: bool,
    keeps_flow_order: bool,
    trims: bool,
    limit: Limit,
    periods: Option<Periods>,
}

/// State of the periodic timer of one queue.
#[derive(Debug)]
struct Periods {
    period: Span,
    /// End of the last timer period that the discipline has handled.
    handled: Time,
    /// Time at which the port will have sent all packets that it has admitted so far.
    clear_at: Time,
}

impl Custom {
    fn new(config: &CustomQueueConfig, place: &Place) -> Custom {
        let queue = config.model.start(place);
        let period = queue.update_period().map(|period| period.max(SHORTEST_PERIOD));
        Custom {
            queue,
            decides_at_dequeue: config.model.decides_at_dequeue(),
            sees_all: config.model.sees_all() || period.is_some(),
            ranks: config.model.ranks(),
            keeps_flow_order: config.model.keeps_flow_order(),
            trims: config.model.trims() && !config.model.ranks(),
            limit: config.limit,
            periods: period.map(|period| Periods {
                period,
                handled: Time::ZERO,
                clear_at: Time::ZERO,
            }),
        }
    }

    /// Whether packets leave in the order of their ranks instead of the order of arrival.
    pub(crate) fn ranks(&self) -> bool {
        self.ranks
    }

    /// Whether the discipline trims packets (removes payloads and queues headers).
    pub(crate) fn trims(&self) -> bool {
        self.trims
    }

    /// Whether the packets of a flow leave in the order of their arrival.
    pub(super) fn keeps_flow_order(&self) -> bool {
        self.keeps_flow_order
    }

    /// Returns the limit of the queue.
    pub(super) fn limit(&self) -> Limit {
        self.limit
    }

    /// Returns the rank of an admitted packet.
    pub(super) fn rank(&mut self, arrival: &Arrival) -> u64 {
        self.queue.rank(arrival)
    }

    /// Informs the discipline that the packet with the largest rank is dropped.
    pub(super) fn at_push_out(&mut self, now: Time, packet: &Head) {
        self.queue.at_push_out(now, packet);
    }

    /// Calls the timer of the discipline for every period that has ended by `now`.
    fn catch_up(&mut self, now: Time) {
        let Some(periods) = &mut self.periods else { return };
        while periods.handled + periods.period <= now {
            let due = periods.handled + periods.period;
            let timer = Timer { now: due, delay: Span(periods.clear_at.0.saturating_sub(due.0)) };
            periods.handled = due;
            if self.queue.at_timer(&timer) && periods.clear_at <= due {
                let left_out = now.since(due).0 / periods.period.0;
                periods.handled += periods.period * left_out;
            }
        }
    }

    fn judge(&mut self, arrival: &Arrival) -> Verdict {
        let verdict = self.queue.at_enqueue(arrival);
        if verdict == Verdict::Trim {
            return if self.trims && arrival.trimmable() { verdict } else { Verdict::Drop };
        }
        let fits = || self.ranks || arrival.fits(self.limit) == Verdict::Enqueue;
        if verdict.loss().is_none() && !fits() {
            return Verdict::Drop;
        }
        verdict
    }
}

impl Discipline for Custom {
    fn at_enqueue(&mut self, arrival: &Arrival) -> Verdict {
        self.catch_up(arrival.now);
        let verdict = self.judge(arrival);
        if let Some(periods) = &mut self.periods {
            periods.clear_at = match verdict.loss() {
                // The transmission time of a header is neglected.
                None if verdict == Verdict::Trim => arrival.clear_at,
                None => arrival.clear_at.max(arrival.now) + arrival.send_time,
                Some(_) => arrival.clear_at,
            };
        }
        verdict
    }

    fn at_dequeue<'p, I: Iterator<Item = Head<'p>>>(
        &mut self,
        now: Time,
        heads: impl FnOnce() -> I,
    ) -> Plan {
        if !self.decides_at_dequeue {
            return Plan::default();
        }
        self.catch_up(now);
        let seen = Cell::new(0);
        let mut heads = heads().inspect(|_| seen.set(seen.get() + 1));
        let plan = self.queue.at_dequeue(now, &mut heads);
        // The port cannot drop more packets than are queued. The discipline may drop packets that
        // it has not read from `heads`; reading these packets here counts them.
        heads.take(plan.drop.saturating_sub(seen.get())).for_each(drop);
        Plan { drop: plan.drop.min(seen.get()), ..plan }
    }

    fn sees_all(&self) -> bool {
        self.sees_all
    }
}

#[cfg(test)]
mod tests {
    use super::super::decision::Backlog;
    use super::super::decision::tests::{Port, arrive};
    use super::super::{Queue, QueueConfig};
    use super::*;
    use crate::packet_handle::PacketHandle;
    use eastwest_types::Rate;
    use std::sync::Mutex;

    /// Test discipline that admits every packet at enqueue and drops every packet at dequeue,
    /// without regard to the limit.
    #[derive(Debug)]
    struct Careless;

    impl CustomQueue for Careless {
        fn at_enqueue(&mut self, _: &Arrival) -> Verdict {
            Verdict::Enqueue
        }
        fn at_dequeue(&mut self, _: Time, heads: &mut dyn Iterator<Item = Head<'_>>) -> Plan {
            heads.next();
            Plan { drop: usize::MAX, mark: false }
        }
    }

    impl QueueModel for Careless {
        fn start(&self, _: &Place) -> Box<dyn CustomQueue> {
            Box::new(Careless)
        }
        fn decides_at_dequeue(&self) -> bool {
            true
        }
    }

    fn careless(packets: u32) -> Queue {
        let limit = Limit::Packets(packets);
        let place = Place { rate: Rate::gbit(1), mtu: 1500, framing: 38, seed: 1, number: 0 };
        let config = CustomQueueConfig { model: Arc::new(Careless), limit };
        QueueConfig::Custom(config).start(&place)
    }

    #[test]
    fn the_limit_holds_whatever_the_discipline_says() {
        let mut queue = careless(10);
        assert_eq!(arrive(&Port::waiting(9), |a| queue.at_enqueue(a)), Verdict::Enqueue);
        assert_eq!(arrive(&Port::waiting(10), |a| queue.at_enqueue(a)), Verdict::Drop);
        assert!(queue.sees_all() && queue.admits_below(1500) == 0);
    }

    #[test]
    fn no_more_is_dropped_than_waits() {
        let packet =
            crate::pool::Stored::new(&eastwest_types::Packet::blank(eastwest_types::HostId(1)));
        let handle = PacketHandle::default().arriving(Time(1));
        let waiting = [Head::new(&handle, Backlog::default(), &packet); 3];
        let plan = careless(10).at_dequeue(Time(2), || waiting.into_iter());
        assert_eq!(plan.drop, 3);
    }

    /// Test discipline that records the calls of its timer. If `rests` is set, it answers that
    /// further calls would change nothing while the port is idle.
    #[derive(Clone, Debug)]
    struct Ticks {
        rests: bool,
        seen: Arc<Mutex<Vec<Timer>>>,
    }

    impl CustomQueue for Ticks {
        fn at_enqueue(&mut self, _: &Arrival) -> Verdict {
            Verdict::Enqueue
        }
        fn update_period(&self) -> Option<Span> {
            Some(Span::from_us(10))
        }
        fn at_timer(&mut self, timer: &Timer) -> bool {
            self.seen.lock().unwrap().push(*timer);
            self.rests
        }
    }

    impl QueueModel for Ticks {
        fn start(&self, _: &Place) -> Box<dyn CustomQueue> {
            Box::new(self.clone())
        }
        fn sees_all(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_timer_is_called_at_each_period_with_the_delay_of_that_time() {
        for rests in [false, true] {
            let seen = Arc::new(Mutex::new(Vec::new()));
            let model = Arc::new(Ticks { rests, seen: seen.clone() });
            let place = Place { rate: Rate::gbit(1), mtu: 1500, framing: 38, seed: 1, number: 0 };
            let limit = Limit::Packets(10);
            let mut queue = QueueConfig::Custom(CustomQueueConfig { model, limit }).start(&place);
            assert!(queue.sees_all(), "else a timer would not know all packets");
            // A packet needs 12 µs. After the first packet the port is busy until time 17 µs, after
            // the second until time 120 µs.
            for (us, clear_us) in [(5, 0), (20, 108), (1_000, 120)] {
                let (now, clear_at) = (Time::ZERO + Span::from_us(us), Span::from_us(clear_us));
                let port = Port { now, packets: 1, bytes: 1500, clear_at: Time::ZERO + clear_at };
                arrive(&port, |a| queue.at_enqueue(a));
            }
            let seen = seen.lock().unwrap();
            let us = |span: Span| span.0 / 1_000_000;
            let calls: Vec<_> =
                seen.iter().map(|t| (us(t.now.since(Time::ZERO)), us(t.delay))).collect();
            assert_eq!(calls[..4], [(10, 7), (20, 0), (30, 90), (40, 80)]);
            assert_eq!(calls.len(), if rests { 12 } else { 100 });
        }
    }
}
