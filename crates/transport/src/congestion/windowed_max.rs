//! Maximum of the values of the last rounds, stored as three candidates (Kathleen Nichols'
//! algorithm, as in Linux's `win_minmax.c`): the maximum, the largest value measured after it, and
//! the largest value measured after that second one.

use serde::{Deserialize, Serialize};

/// A value and the number of the round trip in which it was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Candidate {
    round: u64,
    value: u64,
}

/// Maximum of the values of the last round trips (Kathleen Nichols' algorithm, as in Linux's
/// `win_minmax.c`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowedMax {
    best: [Candidate; 3],
}

impl WindowedMax {
    /// Returns the maximum of the values of the last round trips.
    pub fn get(&self) -> u64 {
        self.best[0].value
    }

    /// Adds a value measured in round trip number `round`, and drops values more than `window`
    /// round trips old.
    pub fn update(&mut self, window: u64, round: u64, value: u64) {
        let new = Candidate { round, value };
        let b = &mut self.best;
        if value >= b[0].value || round - b[2].round > window {
            *b = [new; 3];
            return;
        }
        if value >= b[1].value {
            (b[1], b[2]) = (new, new);
        } else if value >= b[2].value {
            b[2] = new;
        }
        let age = round - b[0].round;
        if age > window {
            *b = [b[1], b[2], new];
            if round - b[0].round > window {
                *b = [b[1], b[2], new];
            }
        } else if b[1].round == b[0].round && age > window / 4 {
            (b[1], b[2]) = (new, new);
        } else if b[2].round == b[1].round && age > window / 2 {
            b[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_values_drop_out() {
        let mut m = WindowedMax::default();
        let values = [5, 9, 3, 4, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1];
        let seen: Vec<u64> = (0..)
            .zip(values)
            .map(|(round, value)| {
                m.update(4, round, value);
                m.get()
            })
            .collect();
        assert_eq!(seen[1], 9);
        assert_eq!(seen[5], 9);
        assert!(seen[6] <= 4 && seen[6] >= 2, "{seen:?}");
        assert_eq!(seen[14], 1);
    }
}
