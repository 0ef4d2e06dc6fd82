//! Table `streams`: frames sent and received, latency and jitter of streams of raw Ethernet frames,
//! which have no transport.
//!
//! *Jitter* is the mean absolute difference of the latencies of consecutive arrivals. RFC 3550,
//! 6.4.1 smooths this quantity.

use crate::resequence::Resequencer;
use crate::table;
use crate::table::{Names, Table};
use eastwest_types::{ClassId, HostId, Span, Time};
use serde::{Deserialize, Serialize};

/// Row of the table `streams`: counters of one stream of raw Ethernet frames.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StreamRow {
    /// Index of the workload to which the stream belongs, from 0.
    pub workload: u16,
    /// Traffic class of the stream.
    pub class: ClassId,
    /// Sending host.
    pub src: HostId,
    /// Receiving host.
    pub dst: HostId,
    /// Number of frames generated at the source.
    pub sent: u64,
    /// Bytes of the frames generated at the source, without framing.
    pub sent_bytes: u64,
    /// Number of frames that have arrived.
    pub received: u64,
    /// Bytes of the frames that have arrived, without framing.
    pub received_bytes: u64,
    /// Number of frames lost in the network.
    pub lost: u64,
    /// Number of frames that arrived after a frame that was sent later.
    pub reordered: u64,
    /// Resequencing buffer of the receiver, with statistics of the frames that it held.
    pub order: Resequencer,
    /// Time at which the first frame was generated; [`Time::NEVER`] before the first frame.
    pub first: Time,
    /// Arrival time of the latest frame; zero before the first arrival.
    pub last: Time,
    latency_sum_ps: u128,
    latency_max: Span,
    latency_before: Span,
    jitter_sum_ps: u128,
    /// Highest number of a frame that has arrived (low 32 bits), to detect frames that arrive late.
    newest: u32,
}

impl StreamRow {
    /// Returns the counters of a stream without frames.
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

    /// Counts a frame generated at the source. Returns the number of the frame, from 1.
    pub fn sends(&mut self, now: Time, bytes: u16) -> u32 {
        self.first = self.first.min(now);
        self.sent += 1;
        self.sent_bytes += u64::from(bytes);
        self.sent as u32
    }

    /// Counts a frame that has arrived. `number`: low 32 bits of the frame's number; `latency`:
    /// time since the frame was generated.
    pub fn receives(&mut self, now: Time, number: u32, bytes: u16, latency: Span) {
        self.order.arrives(now, number);
        if self.received > 0 {
            self.jitter_sum_ps += u128::from(latency.0.abs_diff(self.latency_before.0));
        }
        // Frame numbers wrap after 2³² frames.
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

    /// Counts a lost frame; `number`: low 32 bits of the frame's number.
    pub fn loses(&mut self, at: Time, number: u32) {
        self.lost += 1;
        self.order.misses(at, number);
    }

    /// Takes over what the sender of the stream counts from the row of another part of a partitioned
    /// run (one run on several threads).
    pub fn take_sender(&mut self, other: &StreamRow) {
        (self.sent, self.sent_bytes, self.first) = (other.sent, other.sent_bytes, other.first);
    }

    /// Returns the number of frames in flight, which have neither arrived nor been lost.
    pub fn under_way(&self) -> u64 {
        self.sent - self.received - self.lost
    }

    /// Returns the throughput in bit/s: received bits divided by the time from the first frame to
    /// the latest arrival.
    fn throughput_bps(&self) -> f64 {
        let span = self.last.0.saturating_sub(self.first.0);
        if span == 0 { 0.0 } else { self.received_bytes as f64 * 8e12 / span as f64 }
    }

    fn mean_us(sum_ps: u128, n: u64) -> f64 {
        if n == 0 { 0.0 } else { sum_ps as f64 / n as f64 / 1e6 }
    }

    /// Returns the state of the stream as an index into [`FATES`]: whether its frames have arrived.
    pub fn fate(&self) -> u32 {
        match (self.received, self.lost, self.under_way()) {
            (_, 0, 0) => 0,
            (0, ..) => 3,
            (_, _, 0) => 1,
            _ => 2,
        }
    }
}

/// Names of the states of a stream: all frames have arrived; some were lost; some are in flight;
/// none has arrived.
pub const FATES: [&str; 4] = ["whole", "partial", "under-way", "not-arrived"];

/// Returns the table `streams`, with a row for every stream that has sent a frame.
pub fn table(rows: &[StreamRow], names: &Names) -> Table {
    Streams::of(rows.iter().filter(|stream| stream.sent > 0), names)
}

table! {
    /// One row for each stream of [raw Ethernet](../mechanisms/raw-ethernet.md) frames that has
    /// sent a frame. Streams of [messages over
    /// Ethernet](../mechanisms/mpi.md#over-lossless-ethernet) come last, in the order of their
    /// first message.
    pub Streams = "streams" since 5
    of stream in &'a StreamRow, names: &'a Names;

    /// name of the workload
    workload: label(&names.workloads) = stream.workload;

    /// traffic class of the stream
    class: label(&names.classes) = stream.class.0;

    /// sending host
    src: u32 = stream.src.0;

    /// receiving host
    dst: u32 = stream.dst.0;

    /// number of frames that the source generated
    frames_sent: u64 = stream.sent;

    /// bytes of the frames that the source generated, without framing
    bytes_sent: u64 = stream.sent_bytes;

    /// number of frames that arrived
    frames_received: u64 = stream.received;

    /// bytes of the frames that arrived, without framing
    bytes_received: u64 = stream.received_bytes;

    /// number of frames lost in the network
    frames_lost: u64 = stream.lost;

    /// number of frames that arrived after a frame that was sent later
    frames_reordered: u64 = stream.reordered;

    /// number of frames that a receiver would have to hold to deliver all frames in order
    resequenced since 6: u64 = stream.order.waited();

    /// largest number of frames that a receiver would hold at one time to deliver all frames in
    /// order
    resequenced_most since 6: u64 = stream.order.most();

    /// mean number of frames that a receiver would hold to deliver all frames in order, from the
    /// first sent frame to the last arrived frame
    resequenced_mean since 6: f64 = stream.order.mean(stream.first, stream.last);

    /// time at which the first frame was generated
    first_s: seconds = stream.first;

    /// time at which the last frame arrived, so far
    last_s: seconds = stream.last;

    /// throughput in bit/s: received bits divided by (`last_s` − `first_s`)
    throughput_bps: f64 = stream.throughput_bps();

    /// mean latency of the frames, including the waiting time at the source
    latency_us_mean: f64 = StreamRow::mean_us(stream.latency_sum_ps, stream.received);

    /// maximum latency of a frame, including the waiting time at the source
    latency_us_max: us = stream.latency_max;

    /// mean absolute difference between the latencies of two consecutive arrivals
    jitter_us: f64 = StreamRow::mean_us(stream.jitter_sum_ps, stream.received.saturating_sub(1));

    /// state of the stream. `whole`: all frames arrived; `partial`: some were lost, the rest
    /// arrived; `under-way`: some are still in the network; `not-arrived`: none has arrived
    fate: label(&FATES) = stream.fate();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Column;

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
        let one = |name: &str| vec![name.to_owned()];
        let names = Names { workloads: one("w"), classes: one("c"), ..Names::default() };
        let table = table(&[r, row()], &names);
        assert_eq!(table.rows(), 1);
        assert_eq!(table.column("jitter_us"), Some(&Column::F64(vec![1.5])));
        // Throughput: 3000 B were received in 14 µs.
        let Some(Column::F64(bps)) = table.column("throughput_bps") else { panic!() };
        assert!((bps[0] - 24_000.0 / 14e-6).abs() < 1.0, "{bps:?}");
    }
}
