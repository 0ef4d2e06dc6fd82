//! Total order of events, independent of the order in which they are scheduled.
//!
//! Events are ordered by time, then by class, then by a seeded hash of (time, class, source). At
//! the same picosecond ports first complete transmissions, which frees room in their queues. Then
//! packets arrive, timers expire, workloads wake up, samples are taken, and faults change links.
//! The hash differs at every time, so that no source always goes first. Each link and each alarm of
//! a network card is one source; all other timers of transports together are one source, and
//! [`crate::timers`] orders them among themselves by the same rule.

use crate::random::mix;
use eastwest_types::Time;
use serde::{Deserialize, Serialize};

/// Class of an event. Events at the same time are executed in the order of their classes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[repr(u8)]
pub enum Class {
    /// Departure: a port has completed the transmission of a packet.
    Departure = 0,
    /// Arrival: a packet has reached the far end of a link.
    Arrival = 1,
    /// Expiry of a timer of a transport protocol.
    Timer = 2,
    /// Wake-up of a workload at a time that the workload has chosen.
    Wake = 3,
    /// Time at which a measurement takes a sample.
    Sample = 4,
    /// Beginning or end of a fault, or end of the run because of a PFC deadlock. This is the last
    /// class, so that a fault does not affect other events at the same time.
    Change = 5,
}

/// Sort key of an event: its time in ps and its class in one word, compared as (time, class).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Key(pub u64);

impl Key {
    /// Key later than every event.
    pub const NEVER: Key = Key(u64::MAX);

    /// Returns the key of an event of the class `class` at time `time`.
    #[inline]
    pub fn new(time: Time, class: Class) -> Key {
        debug_assert!(time <= Time::NEVER);
        Key(time.0 << 3 | class as u64)
    }

    /// Returns the largest key of events at or before `time`; with [`Time::NEVER`] the largest key
    /// below [`Key::NEVER`].
    pub fn last_until(time: Time) -> Key {
        Key((time.0 << 3 | 7).min(Key::NEVER.0 - 1))
    }

    /// Returns the time of the event.
    #[inline]
    pub fn time(self) -> Time {
        Time(self.0 >> 3)
    }

    /// Whether the event is a [`Class::Wake`].
    pub fn is_wake_up(self) -> bool {
        self.0 & 7 == Class::Wake as u64
    }

    /// Whether the event is a [`Class::Departure`].
    #[inline]
    pub fn is_departure(self) -> bool {
        self.0 & 7 == Class::Departure as u64
    }
}

/// Returns the rank of the event source `source` among events with equal keys: a hash with the seed
/// of the run. The event with the smallest rank is executed first.
#[inline]
pub fn tie_rank(key: Key, source: u32, seed: u64) -> u64 {
    mix(mix(key.0 ^ seed) ^ u64::from(source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_by_time_then_class() {
        let t = Time(5);
        assert!(Key::new(t, Class::Departure) < Key::new(t, Class::Arrival));
        assert!(Key::new(t, Class::Sample) < Key::new(Time(6), Class::Departure));
        assert!(Key::new(Time::NEVER, Class::Sample) < Key::NEVER);
        assert_eq!(Key::new(t, Class::Wake).time(), t);
        let last = Key::last_until(t);
        assert!(Key::new(t, Class::Change) <= last && last < Key::new(Time(6), Class::Departure));
        let last = Key::last_until(Time::NEVER);
        assert!(Key::new(Time::NEVER, Class::Change) <= last && last < Key::NEVER);
    }

    #[test]
    fn ties_favour_no_source() {
        let wins = (0..10_000)
            .filter(|&t| {
                let key = Key::new(Time(t), Class::Arrival);
                tie_rank(key, 1, 42) < tie_rank(key, 2, 42)
            })
            .count();
        assert!((4_800..5_200).contains(&wins), "{wins}");
    }
}
