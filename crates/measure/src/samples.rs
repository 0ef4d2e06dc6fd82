//! Samples over time at an interval that adapts: when there are too many, every second one is
//! folded into its neighbour and the interval doubles, so that memory stays bounded however long
//! the run is and short runs keep fine detail.

use eastwest_types::{Span, Time};

/// Queue of one link at one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSample {
    /// Number of the sample it was taken at.
    sample: u32,
    /// Link.
    pub link: u32,
    /// Packets waiting.
    pub packets: u32,
    /// IP bytes waiting.
    pub bytes: u64,
}

/// Bytes carried per tier between samples, and queues at samples.
pub struct Samples {
    interval: Span,
    next: Time,
    most: usize,
    tiers: usize,
    /// Bytes per interval, `tiers` values a sample.
    carried: Vec<u64>,
    last_total: Vec<u64>,
    queues: Vec<QueueSample>,
    adaptive: bool,
}

impl Samples {
    /// Samples of `tiers` tiers from `interval` on. An adaptive series keeps at most `most` samples.
    pub fn new(interval: Span, adaptive: bool, most: usize, tiers: usize) -> Samples {
        let next = Time::ZERO + interval;
        Samples {
            interval,
            next,
            most,
            tiers,
            carried: Vec::new(),
            last_total: vec![0; tiers],
            queues: Vec::new(),
            adaptive,
        }
    }

    /// When the next sample is due.
    pub fn next(&self) -> Time {
        self.next
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.carried.len() / self.tiers.max(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.carried.is_empty()
    }

    /// Takes a sample: total bytes carried per tier so far, and the queues that are not empty.
    pub fn take(&mut self, totals: &[u64], queues: impl Iterator<Item = (u32, u32, u64)>) {
        let sample = self.len() as u32;
        for (last, &total) in self.last_total.iter_mut().zip(totals) {
            self.carried.push(total - *last);
            *last = total;
        }
        self.queues.extend(queues.map(|(link, packets, bytes)| QueueSample {
            sample,
            link,
            packets,
            bytes,
        }));
        if self.adaptive && self.len() >= self.most {
            self.halve();
        }
        self.next += self.interval;
    }

    fn halve(&mut self) {
        let pairs = self.len() / 2;
        let mut folded = Vec::with_capacity(pairs * self.tiers);
        for pair in self.carried.chunks(2 * self.tiers).take(pairs) {
            let (a, b) = pair.split_at(self.tiers);
            folded.extend(a.iter().zip(b).map(|(a, b)| a + b));
        }
        // an odd last sample stays as the start of the next pair's sum
        if self.len() % 2 == 1 {
            let rest = &self.carried[2 * pairs * self.tiers..];
            for (last, r) in self.last_total.iter_mut().zip(rest) {
                *last -= r;
            }
        }
        self.carried = folded;
        // sample k of the old series is at (k + 1)·interval: those at odd k remain
        self.queues.retain(|q| q.sample % 2 == 1 && ((q.sample / 2) as usize) < pairs);
        for q in &mut self.queues {
            q.sample /= 2;
        }
        self.interval = self.interval * 2;
        self.next = Time(self.interval.0 * pairs as u64);
    }

    /// (end of the interval in seconds, tier, bytes) of every sample.
    pub fn carried(&self) -> impl Iterator<Item = (f64, u32, u64)> + '_ {
        self.carried
            .iter()
            .enumerate()
            .map(|(i, &bytes)| (self.time_of(i / self.tiers), (i % self.tiers) as u32, bytes))
    }

    /// (time in seconds, sample) of every queue that was not empty.
    pub fn queues(&self) -> impl Iterator<Item = (f64, QueueSample)> + '_ {
        self.queues.iter().map(|q| (self.time_of(q.sample as usize), *q))
    }

    fn time_of(&self, sample: usize) -> f64 {
        (self.interval * (sample as u64 + 1)).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_keeps_totals_and_times() {
        let mut s = Samples::new(Span::from_ms(1), true, 8, 1);
        let mut times = Vec::new();
        for _ in 0..100 {
            let now = s.next();
            times.push(now);
            // one byte per microsecond
            s.take(&[now.0 / 1_000_000], [(3, 1, now.0)].into_iter());
        }
        assert!(times.windows(2).all(|w| w[0] < w[1]));
        assert!(s.len() <= 8);
        let end = s.carried().last().unwrap().0;
        let total: u64 = s.carried().map(|c| c.2).sum();
        assert_eq!(total as f64, end * 1e6);
        // every queue sample still tells the time it was taken at
        for (at, q) in s.queues() {
            assert_eq!(q.bytes, (at * 1e12) as u64);
        }
    }
}
