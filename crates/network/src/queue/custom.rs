//! Disciplines from outside of this crate: what a mechanism crate (`eastwest new`) implements.
//!
//! A [`QueueModel`] is what a scenario sets: from it every port, or every class of a port, gets a
//! [`CustomQueue`] of its own. It sees what the built-in disciplines see and answers with the same
//! [`Verdict`] and [`Plan`]. Two things are kept whatever it answers: a packet that does not fit into
//! the limit of the queue is lost, and no more packets are dropped from a queue than wait in it.

use super::decision::{Arrival, Head, Place, Plan, Verdict};
use super::discipline::{Discipline, QueueSettings};
use eastwest_settings::Section;
use eastwest_types::{Limit, Time};
use std::fmt;
use std::sync::Arc;

/// The discipline of one queue: settings and state.
pub trait CustomQueue: fmt::Debug + Send {
    /// A packet comes to the port.
    fn at_enqueue(&mut self, arrival: &Arrival) -> Verdict;

    /// The port takes the next packet; `heads` gives what waits, the next one first. Only asked
    /// where the model [decides at dequeue](QueueModel::decides_at_dequeue).
    fn at_dequeue(&mut self, now: Time, heads: &mut dyn Iterator<Item = Head<'_>>) -> Plan {
        let _ = (now, heads);
        Plan::default()
    }
}

/// The settings of a discipline, from which each queue is made.
pub trait QueueModel: fmt::Debug + Send + Sync {
    /// A queue without packets.
    fn start(&self, place: &Place) -> Box<dyn CustomQueue>;

    /// Whether it decides about packets when they leave; its ports are then
    /// [lazy](crate::link::Mode::Lazy).
    fn decides_at_dequeue(&self) -> bool {
        false
    }

    /// Whether it has to see packets that come to an idle port, which wait for nothing: where it
    /// keeps an average, for instance. Without, runs are faster.
    fn sees_all(&self) -> bool {
        true
    }
}

/// A discipline from outside as the scenario sets it.
#[derive(Clone, Debug)]
pub struct CustomQueueConfig {
    /// Its settings.
    pub model: Arc<dyn QueueModel>,
    /// What does not fit is lost.
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

/// Reads the settings of a discipline from outside.
pub type ReadQueue = dyn Fn(&mut Section, Limit) -> Arc<dyn QueueModel> + Send + Sync;

/// A discipline from outside at work.
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
        let mut heads = heads();
        let (_, most) = heads.size_hint();
        let plan = self.queue.at_dequeue(now, &mut heads);
        Plan { drop: plan.drop.min(most.unwrap_or(0)), ..plan }
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

    /// Lets everything in and, at dequeue, drops everything.
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
