//! Disciplines from other crates: the interface for a mechanism crate (`eastwest new`).
//!
//! A [`QueueModel`] has the settings of a scenario: from it every port, or every class of a port, gets its own
//! [`CustomQueue`]. It sees what the built-in disciplines see and answers with a [`Verdict`] or [`Plan`] as
//! they do. Two rules hold for every answer: a packet beyond the limit of the queue is lost, and no more
//! packets are dropped than are queued.

use super::decision::{Arrival, Head, Place, Plan, Verdict};
use super::discipline::{Discipline, QueueSettings};
use eastwest_settings::Section;
use eastwest_types::{Limit, Time};
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

/// Queue discipline from another crate: settings and state of one queue.
pub trait CustomQueue: fmt::Debug + Send {
    /// Returns the decision about a packet that arrives at the port: enqueue, mark or drop.
    fn at_enqueue(&mut self, arrival: &Arrival) -> Verdict;

    /// Decides about the packets that the port would send next; `heads` yields queued packets in order. Called
    /// only if the model [decides at dequeue](QueueModel::decides_at_dequeue).
    fn at_dequeue(&mut self, now: Time, heads: &mut dyn Iterator<Item = Head<'_>>) -> Plan {
        let _ = (now, heads);
        Plan::default()
    }
}

/// Settings of a queue discipline from another crate, from which each queue is made.
pub trait QueueModel: fmt::Debug + Send + Sync {
    /// Returns an empty queue at a port with these properties.
    fn start(&self, place: &Place) -> Box<dyn CustomQueue>;

    /// Whether the discipline decides about packets at dequeue; its ports are then
    /// [lazy](crate::link::Mode::Lazy).
    fn decides_at_dequeue(&self) -> bool {
        false
    }

    /// Whether the discipline has to see packets that arrive at an idle port and do not wait, for example to
    /// update an average. Runs are faster if it need not.
    fn sees_all(&self) -> bool {
        true
    }
}

/// Settings of a queue with a discipline from another crate.
#[derive(Clone, Debug)]
pub struct CustomQueueConfig {
    /// The discipline with its settings: each port or class starts its queue from it.
    pub model: Arc<dyn QueueModel>,
    /// Limit of the queue: packets beyond it are lost.
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
}

/// Function that reads the settings of a discipline from another crate.
pub type ReadQueue = dyn Fn(&mut Section, Limit) -> Arc<dyn QueueModel> + Send + Sync;

/// State of a discipline from another crate.
#[derive(Debug)]
pub struct Custom {
    queue: Box<dyn CustomQueue>,
    decides_at_dequeue: bool,
    sees_all: bool,
    limit: Limit,
}

impl Custom {
    fn new(config: &CustomQueueConfig, place: &Place) -> Custom {
        Custom {
            queue: config.model.start(place),
            decides_at_dequeue: config.model.decides_at_dequeue(),
            sees_all: config.model.sees_all(),
            limit: config.limit,
        }
    }
}

impl Discipline for Custom {
    fn at_enqueue(&mut self, arrival: &Arrival) -> Verdict {
        let verdict = self.queue.at_enqueue(arrival);
        if verdict.loss().is_none() && arrival.fits(self.limit) != Verdict::Enqueue {
            return Verdict::Drop;
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
        let seen = Cell::new(0);
        let mut heads = heads().inspect(|_| seen.set(seen.get() + 1));
        let plan = self.queue.at_dequeue(now, &mut heads);
        // The port cannot drop more packets than wait. The discipline need not have seen all that it drops.
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
    use eastwest_types::Rate;

    /// Admits every packet and drops every packet at dequeue.
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
        let waiting = [Head { since: Time(1), left: Backlog::default(), packet: &packet }; 3];
        let plan = careless(10).at_dequeue(Time(2), || waiting.into_iter());
        assert_eq!(plan.drop, 3);
    }
}
