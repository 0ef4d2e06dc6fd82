//! Times in the power states of links that sleep, in flow mode (without packets). The times follow
//! from the time that a link spent at each load, by closed forms of Energy-Efficient Ethernet under
//! Poisson arrivals (S. Herrería-Alonso et al., IEEE Trans. Commun. 60(11), 2012;
//! python/eastwest/models/eee.py has the same formulas with their sources).
//!
//! Flows determine the load of a link, but not the arrival times of packets. The bursts of TCP
//! within a flow are therefore replaced by Poisson arrivals of full packets.

use eastwest_fluid::share::{LOADS, LoadTimes};
use eastwest_network::energy::eee::{Policy, StateTimes, Trigger};
use eastwest_network::energy::phy::Phy;
use eastwest_types::{Rate, Span};

/// Maximum number of waiting frames at which a coalescing link wakes, in the sums of this file. The
/// maximum limits the length of the sums.
const MOST_FRAMES: u32 = 10_000;
/// Load (fraction of the link rate) below which a link counts as idle.
const NO_LOAD: f64 = 1e-9;

/// Sleep of a link at a constant load.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rest {
    /// Fraction of time that the link is asleep.
    asleep: f64,
    /// Number of wake-ups per second.
    wakes_per_s: f64,
}

/// Returns the conditions on which a sleeping link begins to wake: the number of waiting frames,
/// and the maximum time for which the first frame is held, in seconds.
fn holding(policy: &Policy, frame_bytes: f64) -> (u32, f64) {
    let frames = match policy.trigger {
        Trigger::Packets(n) => n,
        Trigger::Bytes(n) => (n as f64 / frame_bytes).ceil() as u32,
    };
    (frames.clamp(1, MOST_FRAMES), policy.hold.as_secs_f64())
}

/// Returns the cumulative Poisson probabilities: of at most 0, 1, 2 … arrivals if `mean` arrivals
/// are expected.
fn at_most(mean: f64) -> impl Iterator<Item = f64> {
    let (mut term, mut sum, mut k) = (libm::exp(-mean), 0.0, 0.0);
    std::iter::repeat_with(move || {
        sum += term;
        k += 1.0;
        term *= mean / k;
        sum
    })
}

/// Returns the mean time in seconds from the end of the transition to sleep until the link begins
/// to wake, with `arrivals` frames per second. The mean is the integral over time of the
/// probability that waking has not begun.
fn off_s(policy: &Policy, frame_bytes: f64, arrivals: f64, sleep_s: f64) -> f64 {
    let (frames, hold_s) = holding(policy, frame_bytes);
    if frames == 1 || hold_s == 0.0 {
        return libm::exp(-arrivals * sleep_s) / arrivals;
    }
    // until `hold_s` after the begin of the transition to sleep: the link sleeps as long as fewer
    // than `frames` frames have arrived
    let mut off = 0.0;
    if hold_s > sleep_s {
        let pairs = at_most(arrivals * sleep_s).zip(at_most(arrivals * hold_s));
        off = pairs.take(frames as usize).map(|(from, to)| from - to).sum::<f64>() / arrivals;
    }
    // later: the link sleeps if no frame arrived before the last `hold_s` (the hold timer of this
    // frame would have expired), and fewer than `frames` frames within the last `hold_s`
    let late = libm::exp(-arrivals * (sleep_s - hold_s).max(0.0)) / arrivals;
    let fewer = at_most(arrivals * hold_s).nth(frames as usize - 1);
    off + late * fewer.expect("there is one for every number")
}

/// Returns the sleep of a link at a constant load.
fn at_load(policy: &Policy, phy: &Phy, load: f64, frame_bytes: f64, rate: Rate) -> Rest {
    if load >= 1.0 {
        return Rest { asleep: 0.0, wakes_per_s: 0.0 };
    }
    if load <= NO_LOAD {
        return Rest { asleep: 1.0, wakes_per_s: 0.0 };
    }
    let arrivals = load * rate.0 as f64 / (8.0 * frame_bytes);
    let (sleep_s, wake_s) = (phy.sleep.as_secs_f64(), phy.wake.as_secs_f64());
    let off = off_s(policy, frame_bytes, arrivals, sleep_s);
    let sleeps = libm::exp(-arrivals * policy.stall.as_secs_f64());
    let idle_s = (1.0 - sleeps) / arrivals + sleeps * (sleep_s + off + wake_s);
    let cycles_per_s = (1.0 - load) / idle_s;
    Rest { asleep: cycles_per_s * sleeps * off, wakes_per_s: cycles_per_s * sleeps }
}

/// Returns the time that a link which can sleep spent in each power state, by closed forms. `times`
/// is the time that the link spent at each load, `run` the duration of the run, and `busy` the time
/// in which the link was sending, and therefore awake. Of its bytes, `single_bytes` were in
/// `single` packets that do not belong to flows.
pub fn states(
    (policy, phy): &(Policy, Phy),
    times: &LoadTimes,
    rate: Rate,
    frame_bytes: f64,
    (single, single_bytes): (u64, u64),
    (run, busy): (Span, Span),
) -> StateTimes {
    let (mut asleep_s, mut wakes) = (0.0, 0.0);
    let idle = Span(run.0.saturating_sub(times.iter().skip(1).map(|t| t.0).sum()));
    let mut add = |span: Span, rest: Rest| {
        asleep_s += rest.asleep * span.as_secs_f64();
        wakes += rest.wakes_per_s * span.as_secs_f64();
    };
    for (bin, &span) in times.iter().enumerate().skip(1).filter(|(_, t)| t.0 > 0) {
        // the load in the middle of the histogram bin
        let load = (bin as f64 - 0.5) / LOADS as f64;
        add(span, at_load(policy, phy, load, frame_bytes, rate));
    }
    if idle.0 > 0 {
        let bytes = if single > 0 { single_bytes as f64 / single as f64 } else { frame_bytes };
        let load = single_bytes as f64 * 8.0 / (rate.0 as f64 * idle.as_secs_f64());
        add(idle, at_load(policy, phy, load, bytes, rate));
    }
    let span = Span::from_secs_f64_nearest;
    let wakes = (wakes as u64).min(run.0 / (phy.sleep + phy.wake).0.max(1));
    let rest = Span(run.0.saturating_sub(busy.0));
    let asleep = span(asleep_s).min(rest);
    let falling = Span((phy.sleep.0 * wakes).min(rest.0 - asleep.0));
    let waking = Span((phy.wake.0 * wakes).min(rest.0 - asleep.0 - falling.0));
    let awake = Span(run.0 - asleep.0 - falling.0 - waking.0);
    StateTimes { awake, falling, asleep, waking, wakes }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phy() -> Phy {
        Phy::of_rate(Rate::gbit(10)).0
    }

    #[test]
    fn standard_sleep_is_what_the_closed_form_says() {
        // Values printed by `eastwest model eee` for 10GBASE-T, 1500 B, load 0.1: 83,333 arrivals
        // per second.
        let rest = at_load(&Policy::STANDARD, &phy(), 0.1, 1500.0, Rate::gbit(10));
        let lambda = 0.1 * 1e10 / 12_000.0;
        let off = libm::exp(-lambda * 2.88e-6) / lambda;
        let share = 0.9 * off / (off + 2.88e-6 + 4.48e-6);
        assert!((rest.asleep - share).abs() < 1e-12);
        assert!((rest.wakes_per_s * off - share).abs() < 1e-12);
    }

    #[test]
    fn holding_frames_sleeps_longer_than_waking_for_the_first() {
        let held =
            Policy { hold: Span::from_us(12), trigger: Trigger::Packets(10), ..Policy::STANDARD };
        let at = |policy: &Policy| at_load(policy, &phy(), 0.3, 1500.0, Rate::gbit(10)).asleep;
        assert!(at(&held) > at(&Policy::STANDARD) + 0.1);
        assert!(at(&held) < 0.7);
    }

    #[test]
    fn states_fill_the_run() {
        let mut times = [Span::ZERO; LOADS + 1];
        times[3] = Span::from_ms(40);
        times[LOADS] = Span::from_ms(10);
        let run = Span::from_ms(100);
        let pair = (Policy::STANDARD, phy());
        let of = |busy| states(&pair, &times, Rate::gbit(10), 1538.0, (100, 9_000), (run, busy));
        let s = of(Span::from_ms(12));
        assert_eq!(s.total(), run);
        assert!(s.asleep > Span::from_ms(50) && s.asleep < Span::from_ms(90), "{s:?}");
        assert!(s.wakes > 100);
        // a link is awake at least while it sends, even if the closed form gives less time
        let busy = of(Span::from_ms(95));
        assert_eq!((busy.total(), busy.awake.0 >= Span::from_ms(95).0), (run, true));
    }
}
