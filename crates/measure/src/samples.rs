//! Samples over time, at a fixed or an adaptive interval. An adaptive series with too many samples
//! doubles its interval: the traffic of each two neighbouring intervals is added, and every second
//! sample of queues and energy is removed. So memory is bounded for long runs, and short runs have
//! fine detail.

use crate::power::{PowerSeries, Used};
use crate::table;
use crate::table::Names;
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};

/// Length of the queue of one link at one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueSample {
    /// Number of the sample, from 0.
    sample: u32,
    /// Number of the link to which the queue belongs.
    pub link: u32,
    /// Number of packets in the queue, without the packet in transmission.
    pub packets: u32,
    /// IP bytes in the queue, without the packet in transmission.
    pub bytes: u64,
}

/// Traffic of one link between two samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkSample {
    /// Number of the sample at the end of the interval, from 0.
    sample: u32,
    /// Number of the link whose traffic is counted.
    pub link: u32,
    /// Number of packets lost on the link in the interval.
    pub drops: u32,
    /// Number of packets that the link's port marked with CE in the interval.
    pub marks: u32,
    /// Bytes carried by the link in the interval, including framing.
    pub bytes: u64,
}

/// Counters of one link, from the start of the run until now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkTotals {
    /// Bytes that the link has carried, including framing.
    pub bytes: u64,
    /// Number of packets lost on the link.
    pub drops: u64,
    /// Number of packets that the link's port has marked with CE.
    pub marks: u64,
}

/// Time series of a run: bytes carried per tier and per link between samples, queue lengths at
/// samples, and energy of links.
#[derive(Serialize, Deserialize)]
pub struct Samples {
    interval: Span,
    next: Time,
    /// For an adaptive series: number of samples at which it doubles its interval; `None` for a
    /// fixed interval.
    most: Option<usize>,
    tiers: usize,
    /// Bytes carried in each interval, with `tiers` values for each sample.
    carried: Vec<u64>,
    queues: Vec<QueueSample>,
    /// Intervals in which a link had traffic, losses or marks, in order of sample and link.
    links: Vec<LinkSample>,
    /// Counters of every link at the time of the last sample.
    last_of_link: Vec<LinkTotals>,
    power: PowerSeries,
}

impl Samples {
    /// Bytes of memory that [`Samples`] needs for each link, without the memory of the samples.
    pub const BYTES_PER_LINK: u64 = size_of::<LinkTotals>() as u64;

    /// Returns an empty series for `tiers` tiers and `links` links, with a sample every `interval`.
    /// With `most` the series is adaptive: when it has `most` samples, it halves their number and
    /// doubles the interval.
    pub fn new(interval: Span, most: Option<usize>, tiers: usize, links: usize) -> Samples {
        let next = Time::ZERO + interval;
        Samples {
            interval,
            next,
            most,
            tiers,
            carried: Vec::new(),
            queues: Vec::new(),
            links: Vec::new(),
            last_of_link: vec![LinkTotals::default(); links],
            power: PowerSeries::default(),
        }
    }

    /// Returns the time of the next sample.
    pub fn next(&self) -> Time {
        self.next
    }

    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.carried.len() / self.tiers.max(1)
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.carried.is_empty()
    }

    /// Adds a sample. `links`: tier and counters since the start of each link; `queues`: number of
    /// the link, packets and IP bytes of each queue that is not empty; `used`: energy that each tier
    /// has used since the start, empty if it is not recorded.
    pub fn take(
        &mut self,
        links: impl Iterator<Item = (u8, LinkTotals)>,
        queues: impl Iterator<Item = (u32, u32, u64)>,
        used: &[Used],
    ) {
        self.power.take(used);
        let sample = self.len() as u32;
        let first = self.carried.len();
        self.carried.resize(first + self.tiers, 0);
        let carried = &mut self.carried[first..];
        for (link, (last, (tier, now))) in self.last_of_link.iter_mut().zip(links).enumerate() {
            if *last != now {
                carried[usize::from(tier)] += now.bytes - last.bytes;
                let few = |now: u64, last: u64| u32::try_from(now - last).unwrap_or(u32::MAX);
                self.links.push(LinkSample {
                    sample,
                    link: link as u32,
                    drops: few(now.drops, last.drops),
                    marks: few(now.marks, last.marks),
                    bytes: now.bytes - last.bytes,
                });
                *last = now;
            }
        }
        self.queues.extend(queues.map(|(link, packets, bytes)| QueueSample {
            sample,
            link,
            packets,
            bytes,
        }));
        if self.most.is_some_and(|most| self.len() >= most) {
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
        self.carried = folded;
        // Sample k of the old series was taken at time (k + 1) · interval, so the samples with odd
        // k remain.
        self.queues.retain(|q| q.sample % 2 == 1 && ((q.sample / 2) as usize) < pairs);
        for q in &mut self.queues {
            q.sample /= 2;
        }
        self.halve_links(pairs as u32);
        self.power.halve();
        self.interval = self.interval * 2;
        self.next = Time(self.interval.0 * pairs as u64);
    }

    /// Adds the traffic of each link in two neighbouring intervals, for the first `pairs` pairs of
    /// intervals. If the last interval has no partner, its traffic is counted in the next sample.
    fn halve_links(&mut self, pairs: u32) {
        let mut folded: Vec<LinkSample> = Vec::with_capacity(self.links.len());
        for pair in self.links.chunk_by(|a, b| a.sample / 2 == b.sample / 2) {
            if pair[0].sample / 2 >= pairs {
                for odd in pair {
                    let last = &mut self.last_of_link[odd.link as usize];
                    *last = LinkTotals {
                        bytes: last.bytes - odd.bytes,
                        drops: last.drops - u64::from(odd.drops),
                        marks: last.marks - u64::from(odd.marks),
                    };
                }
                continue;
            }
            let from = folded.len();
            folded.extend(pair.iter().map(|l| LinkSample { sample: l.sample / 2, ..*l }));
            folded[from..].sort_by_key(|l| l.link);
            let mut kept = from;
            for i in from + 1..folded.len() {
                if folded[i].link == folded[kept].link {
                    folded[kept].bytes += folded[i].bytes;
                    folded[kept].drops = folded[kept].drops.saturating_add(folded[i].drops);
                    folded[kept].marks = folded[kept].marks.saturating_add(folded[i].marks);
                } else {
                    kept += 1;
                    folded[kept] = folded[i];
                }
            }
            folded.truncate(kept + 1);
        }
        folded.shrink_to_fit();
        self.links = folded;
    }

    /// Returns, for every link and interval with traffic, losses or marks, the end of the interval
    /// in seconds and the traffic.
    pub fn links(&self) -> impl Iterator<Item = (f64, LinkSample)> + '_ {
        self.links.iter().map(|l| (self.time_of(l.sample as usize), *l))
    }

    /// Returns, for every interval and tier, the end of the interval in seconds, the index of the
    /// tier, and the bytes carried in the interval.
    pub fn carried(&self) -> impl Iterator<Item = (f64, u32, u64)> + '_ {
        self.carried
            .iter()
            .enumerate()
            .map(|(i, &bytes)| (self.time_of(i / self.tiers), (i % self.tiers) as u32, bytes))
    }

    /// Returns, for every sample of a queue that was not empty, its time in seconds and the sample.
    pub fn queues(&self) -> impl Iterator<Item = (f64, QueueSample)> + '_ {
        self.queues.iter().map(|q| (self.time_of(q.sample as usize), *q))
    }

    /// Returns, for every interval and tier, the end of the interval in seconds, the index of the
    /// tier, and the energy and times in the interval.
    pub fn power(&self) -> impl Iterator<Item = (f64, u32, Used)> + '_ {
        self.power.rows().map(|(sample, tier, used)| (self.time_of(sample), tier, used))
    }

    fn time_of(&self, sample: usize) -> f64 {
        (self.interval * (sample as u64 + 1)).as_secs_f64()
    }
}

table! {
    /// One row for each interval and link in which the link carried, lost or marked a packet. The
    /// interval is that of the table `queues`. Traffic after the last whole interval is only in the
    /// table `links`.
    pub LinkSamples = "link_samples" since 2
    of (time_s, sample) in (f64, LinkSample), _names: ();

    /// end of the interval in seconds
    time_s: f64 = time_s;

    /// number of the link
    link: u32 = sample.link;

    /// bytes on the link, including framing, that arrived at its far end in the interval
    bytes: u64 = sample.bytes;

    /// number of packets lost on the link in the interval
    drops: u32 = sample.drops;

    /// number of packets that the port of the link marked "congestion experienced" (CE) in the
    /// interval
    marks since 9: u32 = sample.marks;
}

table! {
    /// One row for each sample and link at which packets waited; links with an empty queue have no
    /// row. The interval is `measure.sample_interval`. Without it the interval is 1 ms at first,
    /// and doubles whenever the series would become too long.
    pub Queues = "queues"
    of (time_s, sample) in (f64, QueueSample), _names: ();

    /// time at which the sample was taken, in seconds
    time_s: f64 = time_s;

    /// number of the link to which the queue belongs
    link: u32 = sample.link;

    /// number of packets in the queue, without the packet in transmission
    packets: u32 = sample.packets;

    /// IP bytes in the queue, without the packet in transmission
    bytes: u64 = sample.bytes;
}

table! {
    /// One row for each interval and tier of links. The interval is that of the table `queues`.
    /// Traffic after the last whole interval is only in the table `links`.
    pub Traffic = "traffic"
    of (time_s, tier, bytes) in (f64, u32, u64), names: &'a Names;

    /// end of the interval in seconds
    time_s: f64 = time_s;

    /// tier of the links, as in the table `links`
    tier: label(&names.tiers) = tier;

    /// bytes on the links of the tier, including framing, of packets whose last bit arrived in the
    /// interval: at most one packet of each link more than the link carries in this time
    bytes: u64 = bytes;
}

table! {
    /// One row for each interval and tier of links. The interval is that of the table `traffic`.
    /// Tiers whose links are always awake have no rows, because their power is constant. The time
    /// after the last whole interval is only in the table `links`.
    pub Power = "power" since 5
    of (time_s, tier, used) in (f64, u32, Used), names: &'a Names;

    /// end of the interval in seconds
    time_s: f64 = time_s;

    /// tier of the links, as in the table `links`
    tier: label(&names.tiers) = tier;

    /// energy in J that the links of the tier used in the interval; divided by the length of the
    /// interval, it is their power in W
    energy_j: f64 = used.joules;

    /// energy in J that the links would have used if they had been awake all the time
    energy_always_on_j: f64 = used.always_on_j;

    /// energy in J that the links would have used if they had slept whenever they had nothing to
    /// send, with transitions that take no time
    energy_ideal_j: f64 = used.ideal_j;

    /// time in seconds that the links were awake, summed over the links
    awake_s: f64 = used.awake_s;

    /// time in seconds that the links were falling asleep, summed over the links
    falling_asleep_s: f64 = used.falling_s;

    /// time in seconds that the links were asleep, summed over the links
    asleep_s: f64 = used.asleep_s;

    /// time in seconds that the links were waking up, summed over the links
    waking_s: f64 = used.waking_s;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_keeps_totals_and_times() {
        for most in [7, 8] {
            let mut s = Samples::new(Span::from_ms(1), Some(most), 1, 2);
            let mut times = Vec::new();
            for i in 1..=100u64 {
                let now = s.next();
                times.push(now);
                // The first link carries one byte per microsecond, and the second loses a packet in
                // every fifth interval.
                let used = Used { joules: now.as_secs_f64(), ..Used::default() };
                let totals = |bytes, drops, marks| LinkTotals { bytes, drops, marks };
                let links = [(0, totals(now.0 / 1_000_000, 0, i)), (0, totals(0, i / 5, 0))];
                s.take(links.into_iter(), [(3, 1, now.0)].into_iter(), &[used]);
            }
            assert!(times.windows(2).all(|w| w[0] < w[1]));
            assert!(s.len() <= most);
            let end = s.carried().last().unwrap().0;
            let total: u64 = s.carried().map(|c| c.2).sum();
            assert_eq!(total as f64, end * 1e6);
            // Merging does not change the time of a queue sample that remains.
            for (at, q) in s.queues() {
                assert_eq!(q.bytes, (at * 1e12) as u64);
            }
            // The energy is one watt times the length of every interval.
            let step = s.power().next().unwrap().0;
            assert_eq!(s.power().count(), s.len());
            assert!(s.power().all(|p| (p.2.joules - step).abs() < 1e-12));
            // The first link has all the traffic of its tier, and every loss is in some interval.
            let first: Vec<_> = s.links().filter(|l| l.1.link == 0).collect();
            let tier: Vec<_> = s.carried().map(|c| (c.0, c.2)).collect();
            assert_eq!(first.iter().map(|l| (l.0, l.1.bytes)).collect::<Vec<_>>(), tier);
            let at_end = times.iter().position(|t| t.as_secs_f64() >= end).unwrap() as u64 + 1;
            let lost: u64 = s.links().map(|l| u64::from(l.1.drops)).sum();
            assert_eq!(lost, at_end / 5);
            let marked: u64 = s.links().map(|l| u64::from(l.1.marks)).sum();
            assert_eq!(marked, at_end);
            let order: Vec<_> = s.links().map(|l| (l.0, l.1.link)).collect();
            assert!(order.is_sorted());
        }
    }
}
