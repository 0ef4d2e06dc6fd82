//! Flow sizes: a fixed size, or an empirical distribution given by points of its CDF.
//!
//! Three published workloads are built in. None of the papers prints its points: each shows a
//! curve, and later simulators and traffic generators use tables that were read from the curve.
//! These tables are used here; the tests of this file check them against the numbers in the text of
//! the papers.
//!
//! Between two points the size is interpolated on a logarithmic axis (the axis of the papers'
//! figures): uniform in log(size). The older ns-2 scripts interpolate linearly, which makes flows
//! larger on average (web search: 1.71 MB instead of 1.60 MB); [`Interpolation::Linear`] is for
//! comparisons with them. [`Sizes::mean`] is exact for both, so that a load has the same meaning.

use eastwest_engine::random::Stream;
use serde::{Deserialize, Serialize};

/// Distribution of flow sizes in bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Sizes {
    /// All flows have this size in bytes.
    Fixed(u64),
    /// Sizes are drawn from an empirical distribution.
    Empirical(EmpiricalCdf),
}

/// Interpolation of flow sizes between two points of a CDF.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Interpolation {
    /// Between two points, the logarithm of the size is uniformly distributed.
    Logarithmic,
    /// Between two points, the size is uniformly distributed.
    Linear,
}

/// Distribution of flow sizes, given by points of its cumulative distribution function (CDF).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmpiricalCdf {
    /// Points of the CDF: size in bytes, and fraction of flows of at most this size.
    points: Vec<(u64, f64)>,
    interpolation: Interpolation,
}

/// Flow sizes of web search: background flows of a production cluster, figure 4 of Alizadeh et al.,
/// "Data Center TCP (DCTCP)", SIGCOMM 2010. Points as read from the figure by pFabric (2013) and
/// used since by the HKUST traffic generator and HPCC (2019); the smallest flow is one packet of
/// 1,500 bytes.
const WEB_SEARCH: [(u64, f64); 12] = [
    (1_500, 0.0),
    (10_000, 0.15),
    (20_000, 0.2),
    (30_000, 0.3),
    (50_000, 0.4),
    (80_000, 0.53),
    (200_000, 0.6),
    (1_000_000, 0.7),
    (2_000_000, 0.8),
    (5_000_000, 0.9),
    (10_000_000, 0.97),
    (30_000_000, 1.0),
];

/// Flow sizes of data mining: figure 2 of Greenberg et al., "VL2: A Scalable and Flexible Data
/// Center Network", SIGCOMM 2009. Points below 3.16 MB are those of the HKUST traffic generator
/// (pFabric has them rounded to packets). At 100 MB, copies of the table have 0.98 or 0.99; here it
/// is 0.99, because the paper says that 99 % of the flows are smaller than 100 MB. The smallest
/// size, 100 bytes, is the left end of the figure's axis.
const DATA_MINING: [(u64, f64); 13] = [
    (100, 0.0),
    (180, 0.1),
    (216, 0.2),
    (560, 0.3),
    (900, 0.4),
    (1_100, 0.5),
    (1_870, 0.6),
    (3_160, 0.7),
    (10_000, 0.8),
    (400_000, 0.9),
    (3_160_000, 0.95),
    (100_000_000, 0.99),
    (1_000_000_000, 1.0),
];

/// Flow sizes of Hadoop: figure 6 of Roy et al., "Inside the Social Network's (Datacenter)
/// Network", SIGCOMM 2015, flows of a Hadoop node. Points as read from the figure by HPCC (2019).
/// Its first point, 0 bytes, is impossible on a logarithmic axis and is one byte here, which
/// changes 1 % of the flows by less than 100 bytes.
const HADOOP: [(u64, f64); 20] = [
    (1, 0.0),
    (100, 0.01),
    (200, 0.02),
    (300, 0.05),
    (350, 0.15),
    (400, 0.2),
    (500, 0.3),
    (600, 0.4),
    (700, 0.5),
    (1_000, 0.6),
    (2_000, 0.67),
    (7_000, 0.7),
    (30_000, 0.72),
    (50_000, 0.82),
    (80_000, 0.87),
    (120_000, 0.9),
    (300_000, 0.95),
    (1_000_000, 0.975),
    (2_000_000, 0.99),
    (10_000_000, 1.0),
];

impl Sizes {
    /// Draws a flow size in bytes, at least one.
    pub fn draw(&self, stream: &mut Stream) -> u64 {
        match self {
            Sizes::Fixed(bytes) => *bytes,
            Sizes::Empirical(cdf) => cdf.quantile(stream.unit()),
        }
    }

    /// Returns the mean flow size in bytes.
    pub fn mean(&self) -> f64 {
        match self {
            Sizes::Fixed(bytes) => *bytes as f64,
            Sizes::Empirical(cdf) => cdf.mean(),
        }
    }
}

impl EmpiricalCdf {
    /// Returns a distribution from points of its CDF, or all errors. There must be at least two
    /// points; sizes and fractions must not fall; the first fraction must be 0, the last 1. Two
    /// points of equal size are a step of the CDF, two points of equal fraction a gap.
    pub fn new(
        points: Vec<(u64, f64)>,
        interpolation: Interpolation,
    ) -> Result<EmpiricalCdf, Vec<String>> {
        let mut wrong = Vec::new();
        if points.len() < 2 {
            wrong.push(format!("sizes: a CDF needs at least two points, but has {}", points.len()));
        }
        for (i, &(size, share)) in points.iter().enumerate() {
            if size == 0 {
                wrong.push(format!("sizes: point {i} has 0 bytes, but must have at least 1"));
            }
            // This form of the condition also refuses NaN.
            if !(0.0..=1.0).contains(&share) {
                wrong.push(format!("sizes: point {i} has share {share}, which is not in 0 to 1"));
            }
        }
        for (i, pair) in points.windows(2).enumerate() {
            if pair[1].0 < pair[0].0 || pair[1].1 < pair[0].1 {
                wrong.push(format!("sizes: point {} must not be below the point before it", i + 1));
            }
        }
        if points.first().is_some_and(|&(_, share)| share != 0.0) {
            wrong.push("sizes: the first point must have share 0".into());
        }
        if points.last().is_some_and(|&(_, share)| share != 1.0) {
            wrong.push("sizes: the last point must have share 1".into());
        }
        if wrong.is_empty() { Ok(EmpiricalCdf { points, interpolation }) } else { Err(wrong) }
    }

    /// Returns the distribution of flow sizes of background traffic in a web search cluster (DCTCP,
    /// 2010).
    pub fn web_search(interpolation: Interpolation) -> EmpiricalCdf {
        EmpiricalCdf { points: WEB_SEARCH.to_vec(), interpolation }
    }

    /// Returns the distribution of flow sizes in a data mining cluster (VL2, 2009).
    pub fn data_mining(interpolation: Interpolation) -> EmpiricalCdf {
        EmpiricalCdf { points: DATA_MINING.to_vec(), interpolation }
    }

    /// Returns the distribution of flow sizes in a Hadoop cluster (Facebook, 2015).
    pub fn hadoop(interpolation: Interpolation) -> EmpiricalCdf {
        EmpiricalCdf { points: HADOOP.to_vec(), interpolation }
    }

    /// Returns the `u` quantile of the flow size in bytes, for `u` in [0, 1), rounded to the
    /// nearest byte.
    pub fn quantile(&self, u: f64) -> u64 {
        let upper = self.points.partition_point(|&(_, share)| share <= u);
        let upper = upper.clamp(1, self.points.len() - 1);
        let ((low, from), (high, to)) = (self.points[upper - 1], self.points[upper]);
        let part = if to > from { (u - from) / (to - from) } else { 1.0 };
        let (low, high) = (low as f64, high as f64);
        let size = match self.interpolation {
            Interpolation::Linear => low + part * (high - low),
            Interpolation::Logarithmic => low * libm::exp(part * libm::log(high / low)),
        };
        ((size + 0.5) as u64).max(1)
    }

    /// Returns the mean flow size in bytes of the interpolated distribution.
    pub fn mean(&self) -> f64 {
        let segment = |pair: &[(u64, f64)]| {
            let (low, high) = (pair[0].0 as f64, pair[1].0 as f64);
            let mean = match self.interpolation {
                Interpolation::Linear => (low + high) / 2.0,
                // With equal ends the quotient below is 0 / 0; its limit is `low`.
                Interpolation::Logarithmic if pair[0].0 == pair[1].0 => low,
                Interpolation::Logarithmic => (high - low) / libm::log(high / low),
            };
            (pair[1].1 - pair[0].1) * mean
        };
        self.points.windows(2).map(segment).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share_below(cdf: &EmpiricalCdf, size: u64) -> f64 {
        (0..100_000).filter(|&i| cdf.quantile(f64::from(i) / 1e5) < size).count() as f64 / 1e5
    }

    /// Returns the part of the mean size that flows between two points of the CDF contribute, with
    /// linear interpolation.
    fn weight(pair: &[(u64, f64)]) -> f64 {
        (pair[1].1 - pair[0].1) * (pair[0].0 + pair[1].0) as f64 / 2.0
    }

    #[test]
    fn the_tables_agree_with_what_their_sources_say() {
        // Mean that ns-2 scripts state for this workload, with linear interpolation from zero.
        let web = EmpiricalCdf::web_search(Interpolation::Linear).mean();
        assert!((web / 1_711_250.0 - 1.0).abs() < 1e-4, "{web}");
        // Alizadeh et al. 2013: the 30 % of web search flows above 1 MB carry over 95 % of the
        // bytes, and 3.6 % of data mining flows are larger than 35 MB; both with linear
        // interpolation.
        let web = EmpiricalCdf::web_search(Interpolation::Linear);
        assert!((share_below(&web, 1_000_000) - 0.7).abs() < 1e-3);
        let large: f64 = web.points.windows(2).skip(7).map(weight).sum();
        assert!((large / web.mean() - 0.95).abs() < 0.005, "{}", large / web.mean());
        let mining = EmpiricalCdf::data_mining(Interpolation::Linear);
        assert!((share_below(&mining, 35_000_000) - 0.964).abs() < 0.002);
        // Mean that ns-2 scripts state for data mining: 5,117 packets of 1,460 bytes.
        let mining = EmpiricalCdf::data_mining(Interpolation::Linear).mean();
        assert!((mining / (5117.0 * 1460.0) - 1.0).abs() < 0.05, "{mining}");
        // Greenberg et al. 2009: 99 % of the flows are below 100 MB.
        let mining = EmpiricalCdf::data_mining(Interpolation::Logarithmic);
        assert!((share_below(&mining, 100_000_000) - 0.99).abs() < 1e-3);
        // Roy et al. 2015: the median is below 1 kB, 70 % of flows are below 10 kB, fewer than 5 %
        // are above 1 MB.
        let hadoop = EmpiricalCdf::hadoop(Interpolation::Logarithmic);
        assert!(hadoop.quantile(0.5) < 1_000);
        assert!(share_below(&hadoop, 10_000) >= 0.7);
        assert!(share_below(&hadoop, 1_000_000) > 0.95);
    }

    #[test]
    fn the_stated_mean_is_that_of_what_is_drawn() {
        for interpolation in [Interpolation::Logarithmic, Interpolation::Linear] {
            for cdf in [
                EmpiricalCdf::web_search(interpolation),
                EmpiricalCdf::data_mining(interpolation),
                EmpiricalCdf::hadoop(interpolation),
            ] {
                // The mean is the integral of the quantile function, computed from the midpoints of
                // a fine grid.
                let n = 1_000_000;
                let sum: f64 =
                    (0..n).map(|i| cdf.quantile((f64::from(i) + 0.5) / 1e6) as f64).sum();
                let measured = sum / f64::from(n);
                assert!((measured / cdf.mean() - 1.0).abs() < 1e-3, "{measured} {}", cdf.mean());
            }
        }
    }

    #[test]
    fn quantiles_pass_through_the_points_and_rise() {
        let cdf = EmpiricalCdf::hadoop(Interpolation::Logarithmic);
        for (size, share) in HADOOP {
            let q = cdf.quantile(share);
            assert!(q.abs_diff(size) <= size / 1_000_000 + 1, "{share}: {q} for {size}");
        }
        let grid: Vec<u64> = (0..10_000).map(|i| cdf.quantile(f64::from(i) / 1e4)).collect();
        assert!(grid.is_sorted());
    }

    #[test]
    fn steps_and_gaps_are_allowed() {
        let points = vec![(10, 0.0), (10, 0.5), (1000, 0.5), (2000, 1.0)];
        let cdf = EmpiricalCdf::new(points, Interpolation::Logarithmic).expect("valid");
        assert_eq!(cdf.quantile(0.25), 10);
        assert_eq!(cdf.quantile(0.4999), 10);
        assert_eq!(cdf.quantile(0.5), 1000);
        assert!((cdf.mean() - (5.0 + 0.5 * 1000.0 / libm::log(2.0))).abs() < 1e-9);
    }

    #[test]
    fn points_that_are_no_cdf_are_refused() {
        let wrong = |points: &[(u64, f64)]| {
            EmpiricalCdf::new(points.to_vec(), Interpolation::Linear).expect_err("no CDF").len()
        };
        assert_eq!(wrong(&[]), 1);
        assert_eq!(wrong(&[(1, 0.0), (2, f64::NAN)]), 2);
        assert_eq!(wrong(&[(1, 0.1), (2, 0.9)]), 2);
        assert_eq!(wrong(&[(0, 0.0), (2, 1.0)]), 1);
        assert_eq!(wrong(&[(5, 0.0), (2, 1.0)]), 1);
        assert_eq!(wrong(&[(1, 0.0), (2, 0.7), (3, 0.5), (4, 1.0)]), 1);
    }
}
