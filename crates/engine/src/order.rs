//! The order of events: total, and independent of the order in which they were asked for.
//!
//! Events are ordered by time, then by class, then by a seeded hash of (time, source). At one
//! picosecond a port first finishes sending (which frees a place in its queue), then packets arrive,
//! then timers fire, then workloads wake, then samples are taken, then faults change what links do.
//! Among equals of one class the hash decides, afresh at every instant, so no sender wins ties.

use crate::random::mix;
use eastwest_types::Time;
use serde::{Deserialize, Serialize};

/// Classes of events in the order in which they happen at one instant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[repr(u8)]
pub enum Class {
    /// A port has finished sending a packet.
    Departure = 0,
    /// A packet has reached the far end of a link.
    Arrival = 1,
    /// A transport timer has expired.
    Timer = 2,
    /// A workload wakes.
    Wake = 3,
    /// Measuring looks at the world.
    Sample = 4,
    /// Faults begin or end: after all else, so that what happens at that instant is not concerned.
    Change = 5,
}

/// Time and class in one word: keys compare as (time, class).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Key(pub u64);

impl Key {
    /// Later than every event.
    pub const NEVER: Key = Key(u64::MAX);

    /// The key of an event of this class at this time.
    #[inline]
    pub fn new(time: Time, class: Class) -> Key {
        debug_assert!(time <= Time::NEVER);
        Key(time.0 << 3 | class as u64)
    }

    /// When it happens.
    #[inline]
    pub fn time(self) -> Time {
        Time(self.0 >> 3)
    }

    /// Whether it is a [`Class::Departure`].
    #[inline]
    pub fn is_departure(self) -> bool {
        self.0 & 7 == Class::Departure as u64
    }
}

/// Rank of `source` among events with the same key: the smaller goes first.
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
