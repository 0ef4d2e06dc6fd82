//! Jain's index of fairness `(Σx)² / (n Σx²)` (Jain, Chiu and Hawe, *A quantitative measure of
//! fairness and discrimination for resource allocation in shared computer systems*, DEC-TR-301,
//! 1984, equation 2). It is 1 if all n shares x are equal, and 1/n if one of n users has
//! everything.

use serde::{Deserialize, Serialize};

/// Number, sum and sum of squares of the shares of users. [`Shares::jain`] computes Jain's index of
/// fairness from these three values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shares {
    n: f64,
    sum: f64,
    squares: f64,
}

impl Shares {
    /// Adds the share of one user. All shares must have the same unit.
    pub fn add(&mut self, share: f64) {
        *self = self.and(&Shares { n: 1.0, sum: share, squares: share * share });
    }

    /// Returns the number, sum and sum of squares of the shares of `self` and `other` together.
    #[must_use]
    pub fn and(&self, other: &Shares) -> Shares {
        Shares {
            n: self.n + other.n,
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
        }
    }

    /// Returns Jain's index of fairness, from 1/n for n users (unfair) to 1 (fair); 1 if there are
    /// no shares or all are 0.
    pub fn jain(&self) -> f64 {
        if self.squares == 0.0 { 1.0 } else { self.sum * self.sum / (self.n * self.squares) }
    }
}

impl FromIterator<f64> for Shares {
    fn from_iter<T: IntoIterator<Item = f64>>(shares: T) -> Shares {
        let mut all = Shares::default();
        shares.into_iter().for_each(|share| all.add(share));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jain(shares: &[f64]) -> f64 {
        shares.iter().copied().collect::<Shares>().jain()
    }

    #[test]
    fn it_is_one_for_equals_and_one_in_n_for_a_winner() {
        assert_eq!(jain(&[3.0; 7]), 1.0);
        assert_eq!(jain(&[0.0, 5.0, 0.0, 0.0]), 0.25);
        assert_eq!(jain(&[]), 1.0);
        // If k of n users share equally, the index is k/n (Jain, Chiu and Hawe, section 2).
        assert_eq!(jain(&[2.0, 2.0, 2.0, 0.0, 0.0]), 0.6);
    }
}
