//! Random loss of packets on a link, independent or in bursts.

use eastwest_engine::random::Stream;
use serde::{Deserialize, Serialize};

/// Loss of packets by a Markov chain with a good and a bad state, with one step for every packet
/// (Gilbert 1960, Elliott 1963). If the bad state is never entered, losses are independent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossModel {
    /// Probability that the chain changes from the good to the bad state after a packet.
    pub good_to_bad: f64,
    /// Probability that the chain changes from the bad to the good state after a packet.
    pub bad_to_good: f64,
    /// Probability that a packet is lost in the good state.
    pub loss_in_good: f64,
    /// Probability that a packet is lost in the bad state.
    pub loss_in_bad: f64,
}

impl LossModel {
    /// Returns a model that loses each packet with probability `share`, independently of other
    /// packets.
    pub fn independent(share: f64) -> LossModel {
        LossModel { good_to_bad: 0.0, bad_to_good: 1.0, loss_in_good: share, loss_in_bad: 1.0 }
    }

    /// Returns Gilbert's model, which loses all packets in the bad state and none in the good
    /// state. The model loses a fraction `share` of the packets, in bursts of `mean_burst` packets
    /// on average. Both states last at least one packet, so that `share` / (1 − `share`) must not
    /// exceed `mean_burst`.
    pub fn bursty(share: f64, mean_burst: f64) -> LossModel {
        let bad_to_good = 1.0 / mean_burst;
        let good_to_bad = bad_to_good * share / (1.0 - share);
        LossModel { good_to_bad, bad_to_good, loss_in_good: 0.0, loss_in_bad: 1.0 }
    }

    /// Returns the long-run fraction of packets that find the chain in the bad state.
    pub fn share_of_bad(&self) -> f64 {
        match self.good_to_bad + self.bad_to_good {
            0.0 => 0.0,
            both => self.good_to_bad / both,
        }
    }
}

/// State of the random loss on one link.
#[derive(Serialize, Deserialize)]
pub(crate) struct LossChain {
    model: LossModel,
    bad: bool,
}

impl LossChain {
    /// Returns a chain whose first state is random, with the long-run probabilities of the two
    /// states.
    pub fn new(model: LossModel, random: &mut Stream) -> LossChain {
        LossChain { model, bad: random.unit() < model.share_of_bad() }
    }

    /// Steps the chain by one packet, and returns whether this packet is lost.
    pub fn loses(&mut self, random: &mut Stream) -> bool {
        let m = &self.model;
        let (loss, turn) =
            if self.bad { (m.loss_in_bad, m.bad_to_good) } else { (m.loss_in_good, m.good_to_bad) };
        let lost = random.unit() < loss;
        self.bad ^= random.unit() < turn;
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns (fraction of packets lost, mean length of loss bursts, variance of this length),
    /// with lengths in packets.
    fn measure(model: LossModel, packets: u32, seed: u64) -> (f64, f64, f64) {
        let mut random = Stream::new(seed, "loss");
        let mut chain = LossChain::new(model, &mut random);
        let (mut lost, mut bursts, mut run) = (0u32, Vec::new(), 0u32);
        for _ in 0..packets {
            if chain.loses(&mut random) {
                lost += 1;
                run += 1;
            } else if run > 0 {
                bursts.push(f64::from(std::mem::take(&mut run)));
            }
        }
        let n = bursts.len() as f64;
        let mean = bursts.iter().sum::<f64>() / n;
        let variance = bursts.iter().map(|b| (b - mean) * (b - mean)).sum::<f64>() / n;
        (f64::from(lost) / f64::from(packets), mean, variance)
    }

    #[test]
    fn independent_losses_have_their_share_and_the_bursts_that_chance_gives() {
        for p in [0.01, 0.1, 0.5] {
            let (share, burst, _) = measure(LossModel::independent(p), 400_000, 1);
            // The tolerance is four standard deviations of a binomial fraction.
            assert!((share - p).abs() < 4.0 * (p * (1.0 - p) / 400_000.0).sqrt(), "{p}: {share}");
            // Burst lengths are geometric with mean 1 / (1 − p).
            assert!((burst * (1.0 - p) - 1.0).abs() < 0.03, "{p}: {burst}");
        }
        assert_eq!(measure(LossModel::independent(1.0), 100, 1).0, 1.0);
    }

    #[test]
    fn bursts_have_the_length_and_the_share_that_were_asked_for() {
        for (p, length) in [(0.01, 5.0), (0.05, 20.0), (0.3, 2.0)] {
            let (share, burst, variance) = measure(LossModel::bursty(p, length), 2_000_000, 2);
            assert!((share / p - 1.0).abs() < 0.06, "{p}: {share}");
            assert!((burst / length - 1.0).abs() < 0.05, "{length}: {burst}");
            // Times in the bad state are geometric with variance (1 − r) / r², where r = 1 /
            // length.
            let expected = length * length - length;
            assert!((variance / expected - 1.0).abs() < 0.15, "{length}: {variance}");
        }
    }

    #[test]
    fn a_chain_of_both_states_loses_what_its_formula_says() {
        // Elliott's formula is P(loss) = π_good · k + π_bad · h. π is the long-run probability of a
        // state, and k and h are the loss probabilities in the good and the bad state.
        let model =
            LossModel { good_to_bad: 0.02, bad_to_good: 0.1, loss_in_good: 0.01, loss_in_bad: 0.4 };
        let bad = 0.02 / 0.12;
        assert!((model.share_of_bad() - bad).abs() < 1e-12);
        let (share, ..) = measure(model, 2_000_000, 3);
        let expected = (1.0 - bad) * 0.01 + bad * 0.4;
        assert!((share / expected - 1.0).abs() < 0.03, "{share} {expected}");
    }
}
