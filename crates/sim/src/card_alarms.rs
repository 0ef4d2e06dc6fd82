//! Alarms of network cards. A card that passes packets to its port one by one
//! ([`Link::takes_more_at`](eastwest_network::link::Link::takes_more_at)) arms an alarm for the time
//! at which the port accepts the next packet.
//!
//! Each queue of a card is an event source of its own, like a link. A hash of time and source
//! therefore decides the order of alarms at the same time (decision 2): no card is always first, and
//! the order does not depend on the order in which alarms are armed. All other timers of transports
//! together are one more source among these alarms.

use eastwest_engine::order::{Class, Key};
use eastwest_engine::tournament::Tournament;
use eastwest_types::Time;
use serde::{Deserialize, Serialize};

/// Alarms of all network cards in the event list: one for each card and codepoint (DSCP).
#[derive(Serialize, Deserialize)]
pub struct CardAlarms {
    /// Number of the first alarm among the event sources.
    first: u32,
    /// Number of cards of all hosts.
    cards: u32,
    /// Codepoints of all traffic classes, without repetition.
    dscps: Vec<u8>,
    /// By alarm, the identifier with which it was armed last.
    ids: Vec<u64>,
}

impl CardAlarms {
    /// Returns alarms that are not armed. `first` is the number of the first alarm among the event
    /// sources, `cards` the number of cards of all hosts, and `dscps` has the codepoints of all
    /// traffic classes.
    pub fn new(first: u32, cards: u32, mut dscps: Vec<u8>) -> CardAlarms {
        dscps.sort_unstable();
        dscps.dedup();
        let ids = vec![0; cards as usize * dscps.len()];
        CardAlarms { first, cards, dscps, ids }
    }

    /// Returns the number of alarms.
    pub fn count(&self) -> usize {
        self.ids.len()
    }

    /// Returns the number of the alarm of a card and a codepoint. `card` is the number of the card
    /// among the cards of all hosts.
    pub fn number(&self, card: u32, dscp: u8) -> u32 {
        let rank = self.dscps.iter().position(|other| *other == dscp);
        rank.expect("a traffic class has the codepoint") as u32 * self.cards + card
    }

    /// Removes the armed alarms of the cards for whose numbers `is_kept` returns false.
    pub fn retain(&self, events: &mut Tournament, is_kept: impl Fn(u32) -> bool) {
        for number in (0..self.ids.len() as u32).filter(|number| !is_kept(number % self.cards)) {
            events.set(self.first + number, Key::NEVER);
        }
    }

    /// Arms an alarm, which expires at time `at`; `id` is returned at its expiry. Replaces an alarm
    /// that was armed before.
    #[inline]
    pub fn arm(&mut self, events: &mut Tournament, number: u32, at: Time, id: u64) {
        self.ids[number as usize] = id;
        events.set(self.first + number, Key::new(at, Class::Timer));
    }

    /// Returns the identifier of the alarm that is the event source `source`; `None` if this source
    /// is not an alarm.
    #[inline]
    pub fn id_of(&self, source: u32) -> Option<u64> {
        self.ids.get(source.checked_sub(self.first)? as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arms the alarms `order` of three cards for time `at`, and returns the cards in the order in
    /// which their alarms expire.
    fn expiries(at: u64, order: &[u32]) -> Vec<u32> {
        let mut alarms = CardAlarms::new(5, 3, vec![24, 24]);
        let mut events = Tournament::new(5 + alarms.count(), 9);
        for &card in order {
            alarms.arm(&mut events, alarms.number(card, 24), Time(at), u64::from(card));
        }
        let mut expired = Vec::new();
        while events.winner().0 != Key::NEVER {
            let (key, source) = events.winner();
            assert_eq!(key, Key::new(Time(at), Class::Timer));
            expired.push(alarms.id_of(source).expect("the source is an alarm") as u32);
            events.set(source, Key::NEVER);
        }
        expired
    }

    #[test]
    fn alarms_at_one_time_favour_no_card_and_do_not_depend_on_the_order_of_arming() {
        let mut first = [0; 3];
        for at in 1..=9_000 {
            let order = expiries(at, &[0, 1, 2]);
            assert_eq!(order, expiries(at, &[2, 0, 1]));
            first[order[0] as usize] += 1;
        }
        // Each card is expected to be first 3,000 times, with a standard deviation of 45.
        assert!(first.iter().all(|n| (2_850..3_150).contains(n)), "{first:?}");
    }

    #[test]
    fn an_alarm_that_is_armed_again_expires_once_at_its_new_time() {
        let mut alarms = CardAlarms::new(2, 2, vec![0, 48, 0]);
        let mut events = Tournament::new(2 + alarms.count(), 9);
        assert_eq!((alarms.count(), alarms.number(1, 0), alarms.number(1, 48)), (4, 1, 3));
        alarms.arm(&mut events, 3, Time(10), 7);
        alarms.arm(&mut events, 3, Time(20), 8);
        assert_eq!(events.winner(), (Key::new(Time(20), Class::Timer), 5));
        assert_eq!([1, 5, 6].map(|source| alarms.id_of(source)), [None, Some(8), None]);
    }
}
