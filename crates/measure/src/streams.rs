//! Streams of frames without transport: what was sent, what arrived, how late and how evenly.
//!
//! *Jitter* is the mean difference of the latencies of a frame and the one that arrived before it, without
//! sign (the quantity that RFC 3550, 6.4.1 smooths).

use crate::resequence::Resequencer;
use crate::table::{Column, Table};
use eastwest_types::{ClassId, HostId, Span, Time};
use serde::{Deserialize, Serialize};

/// One stream.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StreamRow {
    /// Index of the workload it belongs to.
    pub workload: u16,
    /// Traffic class.
    pub class: ClassId,
    /// Sender.
    pub src: HostId,
    /// Receiver.
    pub dst: HostId,
    /// Frames that came up at the source.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Frames that have arrived.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Frames lost.
    pub lost: u64,
    /// Frames that arrived after one that was sent later.
    pub reordered: u64,
    /// What its receiver holds to put frames in order.
    pub order: Resequencer,
    /// When the first frame came up; never where none did.
    pub first: Time,
    /// When the last one so far arrived.
    pub last: Time,
    latency_sum_ps: u128,
    latency_max: Span,
    latency_before: Span,
    jitter_sum_ps: u128,
    /// The largest number that has arrived.
    newest: u32,
}

impl StreamRow {
    /// A stream without frames.
    pub fn new(workload: u16, class: ClassId, (src, dst): (HostId, HostId)) -> StreamRow {
        StreamRow {
            workload,
            class,
            src,
            dst,
            sent: 0,
            sent_bytes: 0,
            received: 0,
            received_bytes: 0,
            lost: 0,
            reordered: 0,
            order: Resequencer::default(),
            first: Time::NEVER,
            last: Time::ZERO,
            latency_sum_ps: 0,
            latency_max: Span::ZERO,
            latency_before: Span::ZERO,
            jitter_sum_ps: 0,
            newest: 0,
        }
    }

    /// A frame has come up at the source; returns its number, from 1.
    pub fn sends(&mut self, now: Time, bytes: u16) -> u32 {
        self.first = self.first.min(now);
        self.sent += 1;
        self.sent_bytes += u64::from(bytes);
        self.sent as u32
    }

    /// A frame has arrived.
    pub fn receives(&mut self, now: Time, number: u32, bytes: u16, latency: Span) {
        self.order.arrives(now, number);
        if self.received > 0 {
            self.jitter_sum_ps += u128::from(latency.0.abs_diff(self.latency_before.0));
        }
        // numbers wrap after 2³² frames
        if self.received > 0 && number.wrapping_sub(self.newest) > u32::MAX / 2 {
            self.reordered += 1;
        } else {
            self.newest = number;
        }
        self.received += 1;
        self.received_bytes += u64::from(bytes);
        self.last = now;
        self.latency_sum_ps += u128::from(latency.0);
        self.latency_max = self.latency_max.max(latency);
        self.latency_before = latency;
    }

    /// A frame was lost.
    pub fn loses(&mut self, at: Time, number: u32) {
        self.lost += 1;
        self.order.misses(at, number);
    }

    /// Frames that have neither arrived nor been lost.
    pub fn under_way(&self) -> u64 {
        self.sent - self.received - self.lost
    }

    /// Received bits over the time from the first frame to the last that arrived.
    fn throughput_bps(&self) -> f64 {
        let span = self.last.0.saturating_sub(self.first.0);
        if span == 0 { 0.0 } else { self.received_bytes as f64 * 8e12 / span as f64 }
    }

    fn mean_us(sum_ps: u128, n: u64) -> f64 {
        if n == 0 { 0.0 } else { sum_ps as f64 / n as f64 / 1e6 }
    }

    /// Index into [`FATES`].
    pub fn fate(&self) -> u32 {
        match (self.received, self.lost, self.under_way()) {
            (_, 0, 0) => 0,
            (0, ..) => 3,
            (_, _, 0) => 1,
            _ => 2,
        }
    }
}

/// What became of a stream: everything arrived; some of it was lost; some of it is under way; nothing has
/// arrived.
pub const FATES: [&str; 4] = ["whole", "partial", "under-way", "not-arrived"];

/// The table `streams`: a row for every stream with a frame.
pub fn table(rows: &[StreamRow], workloads: &[String], classes: &[String]) -> Table {
    let rows: Vec<&StreamRow> = rows.iter().filter(|r| r.sent > 0).collect();
    let u64s = |of: fn(&StreamRow) -> u64| Column::U64(rows.iter().map(|r| of(r)).collect());
    let f64s = |of: fn(&StreamRow) -> f64| Column::F64(rows.iter().map(|r| of(r)).collect());
    let label = |of: fn(&StreamRow) -> u32, names: Vec<String>| {
        Column::Label(rows.iter().map(|r| of(r)).collect(), names)
    };
    Table::new(
        "streams",
        vec![
            ("workload", label(|r| u32::from(r.workload), workloads.to_vec())),
            ("class", label(|r| u32::from(r.class.0), classes.to_vec())),
            ("src", Column::U32(rows.iter().map(|r| r.src.0).collect())),
            ("dst", Column::U32(rows.iter().map(|r| r.dst.0).collect())),
            ("frames_sent", u64s(|r| r.sent)),
            ("bytes_sent", u64s(|r| r.sent_bytes)),
            ("frames_received", u64s(|r| r.received)),
            ("bytes_received", u64s(|r| r.received_bytes)),
            ("frames_lost", u64s(|r| r.lost)),
            ("frames_reordered", u64s(|r| r.reordered)),
            ("resequenced", u64s(|r| r.order.waited())),
            ("resequenced_most", u64s(|r| r.order.most())),
            ("resequenced_mean", f64s(|r| r.order.mean(r.first, r.last))),
            ("first_s", f64s(|r| r.first.as_secs_f64())),
            ("last_s", f64s(|r| r.last.as_secs_f64())),
            ("throughput_bps", f64s(StreamRow::throughput_bps)),
            ("latency_us_mean", f64s(|r| StreamRow::mean_us(r.latency_sum_ps, r.received))),
            ("latency_us_max", f64s(|r| r.latency_max.as_us_f64())),
            (
                "jitter_us",
                f64s(|r| StreamRow::mean_us(r.jitter_sum_ps, r.received.saturating_sub(1))),
            ),
            ("fate", label(StreamRow::fate, FATES.map(str::to_owned).to_vec())),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> StreamRow {
        StreamRow::new(0, ClassId(0), (HostId(1), HostId(2)))
    }

    #[test]
    fn what_arrives_is_counted_with_jitter_order_and_fate() {
        let mut r = row();
        let us = |n| Time::ZERO + Span::from_us(n);
        let numbers: Vec<u32> = (0..4).map(|i| r.sends(us(i), 1000)).collect();
        assert_eq!(numbers, [1, 2, 3, 4]);
        assert_eq!(FATES[r.fate() as usize], "not-arrived");
        r.receives(us(10), 1, 1000, Span::from_us(10));
        r.receives(us(13), 3, 1000, Span::from_us(11));
        r.receives(us(14), 2, 1000, Span::from_us(13));
        assert_eq!((r.reordered, r.under_way(), FATES[r.fate() as usize]), (1, 1, "under-way"));
        r.loses(us(15), 4);
        assert_eq!(FATES[r.fate() as usize], "partial");
        let table = table(&[r, row()], &["w".to_owned()], &["c".to_owned()]);
        assert_eq!(table.rows(), 1);
        assert_eq!(table.column("jitter_us"), Some(&Column::F64(vec![1.5])));
        // 3000 B in 14 µs
        let Some(Column::F64(bps)) = table.column("throughput_bps") else { panic!() };
        assert!((bps[0] - 24_000.0 / 14e-6).abs() < 1.0, "{bps:?}");
    }
}
