//! Throughput at receivers over time: the bytes of every stream that arrive in each sampling
//! interval.
//!
//! An interval includes its end, but not its start, because [samples](crate::samples) too are taken
//! after all other events of the same time. The bytes of a stream are summed until bytes of a later
//! interval arrive. A stream without bytes therefore costs nothing, and an interval without bytes
//! has no row.

use crate::table;
use crate::table::{Names, Table};
use eastwest_types::{ClassId, HostId, Span, Time};
use serde::{Deserialize, Serialize};

/// Identity of a stream: one direction of a connection or queue pair, or a stream of raw Ethernet
/// frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whose {
    /// Number of the connection or queue pair, or of the stream of frames.
    pub number: u64,
    /// Whether the stream consists of raw Ethernet frames, without a connection or queue pair.
    pub is_stream: bool,
    /// Index of the workload, from 0.
    pub workload: u16,
    /// Traffic class of the stream.
    pub class: ClassId,
    /// Sending host.
    pub src: HostId,
    /// Receiving host.
    pub dst: HostId,
}

/// Counter of the bytes of one stream that have arrived in its current sampling interval.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Meter {
    whose: Whose,
    /// Number of the current interval, from 1; 0 before the first byte.
    interval: u64,
    /// Bytes that have arrived in the current interval so far.
    bytes: u64,
}

impl Meter {
    /// Returns the counter of a stream before any of its bytes has arrived.
    pub fn new(whose: Whose) -> Meter {
        Meter { whose, interval: 0, bytes: 0 }
    }
}

/// Bytes of a stream that arrived in one sampling interval.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Row {
    interval: u64,
    whose: Whose,
    bytes: u64,
}

/// Rows of the table `flow_samples` (bytes received per stream and sampling interval). The first
/// `most` rows are stored; later rows are only counted.
#[derive(Debug, Serialize, Deserialize)]
pub struct FlowSamples {
    interval: Span,
    rows: Vec<Row>,
    most: u64,
    left_out: u64,
}

impl FlowSamples {
    /// Returns an empty table that stores at most `most` rows, for sampling intervals of length
    /// `interval`.
    pub fn new(interval: Span, most: u64) -> FlowSamples {
        FlowSamples { interval, rows: Vec::new(), most, left_out: 0 }
    }

    /// Adds `bytes` that arrived at a receiver at time `now` to the counter of their stream. If a
    /// new sampling interval has begun, first adds the row of the earlier interval.
    pub fn add(&mut self, meter: &mut Meter, now: Time, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let interval = now.0.div_ceil(self.interval.0).max(1);
        if interval != meter.interval {
            self.close(meter);
            meter.interval = interval;
        }
        meter.bytes += bytes;
    }

    /// Ends the current sampling interval of a stream: adds its row, if bytes have arrived in it.
    pub fn close(&mut self, meter: &mut Meter) {
        let bytes = std::mem::take(&mut meter.bytes);
        if bytes == 0 {
            return;
        }
        if (self.rows.len() as u64) < self.most {
            self.rows.push(Row { interval: meter.interval, whose: meter.whose, bytes });
        } else {
            self.left_out += 1;
        }
    }

    /// Replaces the number of each stream of frames by the number of its row in the table
    /// `streams`. `row_of`: number of the row, indexed by the number of the stream.
    pub fn number_streams(&mut self, row_of: &[u64]) {
        for whose in self.rows.iter_mut().map(|row| &mut row.whose).filter(|w| w.is_stream) {
            whose.number = row_of[whose.number as usize];
        }
    }

    /// Returns the length of the sampling interval.
    pub fn interval(&self) -> Span {
        self.interval
    }

    /// Returns the number of stored rows, and the number of rows that are not stored because the
    /// table was full.
    pub fn counts(&self) -> (usize, u64) {
        (self.rows.len(), self.left_out)
    }

    /// Returns the table `flow_samples` in order of time; `names`: names of the workloads and
    /// traffic classes.
    pub fn into_table(mut self, names: &Names) -> Table {
        self.rows.sort_by_key(|row| {
            let whose = row.whose;
            (row.interval, whose.is_stream, whose.workload, whose.number, whose.src)
        });
        Samples::of(self.rows.iter().map(|row| (self.interval * row.interval, row)), names)
    }
}

table! {
    /// [Throughput at receivers over time](../mechanisms/measuring.md#throughput-over-time): one
    /// row for each stream of the senders that `measure.flow_samples` names and each interval of
    /// `measure.flow_samples_interval` in which bytes of the stream arrived, in order of time; the
    /// first `measure.flow_samples_rows` rows. Intervals without bytes have no row. The sum of the
    /// bytes of all rows of a stream is the number of its received bytes.
    pub Samples = "flow_samples" since 7
    of (end, Row { whose, bytes, .. }) in (Span, &'a Row), names: &'a Names;

    /// end of the interval; the interval includes its end, but not its start
    time_s: seconds = end;

    /// number of the connection or queue pair, as in the table `flows`; −1 for a stream of frames
    connection: i64 = if whose.is_stream { -1 } else { whose.number as i64 };

    /// number of the row of the stream in the table `streams`, from 0; −1 for a connection
    stream: i64 = if whose.is_stream { whose.number as i64 } else { -1 };

    /// name of the workload
    workload: label(&names.workloads) = whose.workload;

    /// traffic class of the stream
    class: label(&names.classes) = whose.class.0;

    /// number of the sending host; each direction of a connection has its own rows
    src: u32 = whose.src.0;

    /// number of the receiving host
    dst: u32 = whose.dst.0;

    /// for a connection, new bytes that arrived in the interval, including headers of the
    /// application; for a stream of frames, bytes of the frames that arrived
    bytes: u64 = *bytes;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Column;

    fn meter(number: u64) -> Meter {
        let (class, src, dst) = (ClassId(0), HostId(1), HostId(2));
        Meter::new(Whose { number, is_stream: false, workload: 0, class, src, dst })
    }

    fn rows(samples: FlowSamples) -> Vec<(f64, i64, u64)> {
        let one = |name: &str| vec![name.to_owned()];
        let names = Names { workloads: one("w"), classes: one("c"), ..Names::default() };
        let table = samples.into_table(&names);
        let (Some(Column::F64(at)), Some(Column::I64(number)), Some(Column::U64(bytes))) =
            (table.column("time_s"), table.column("connection"), table.column("bytes"))
        else {
            panic!("the columns are of these types")
        };
        at.iter()
            .zip(number)
            .zip(bytes)
            .map(|((at, number), bytes)| (*at, *number, *bytes))
            .collect()
    }

    #[test]
    fn intervals_hold_what_comes_up_to_their_ends_and_empty_ones_have_no_row() {
        let mut samples = FlowSamples::new(Span::from_ms(1), 10);
        let us = |n| Time::ZERO + Span::from_us(n);
        let (mut a, mut b) = (meter(0), meter(1));
        for (at, bytes) in [(0, 1), (999, 2), (1000, 4), (1001, 8), (5500, 16), (5501, 0)] {
            samples.add(&mut a, us(at), bytes);
        }
        samples.add(&mut b, us(1), 32);
        samples.add(&mut b, us(9000), 0);
        samples.close(&mut b);
        samples.close(&mut a);
        samples.close(&mut a);
        assert_eq!(samples.counts(), (4, 0));
        let expect = [(0.001, 0, 7), (0.001, 1, 32), (0.002, 0, 8), (0.006, 0, 16)];
        assert_eq!(rows(samples), expect);
    }

    #[test]
    fn what_finds_the_table_full_is_counted() {
        let mut samples = FlowSamples::new(Span::from_us(1), 2);
        let mut a = meter(7);
        for n in 1..=5 {
            samples.add(&mut a, Time::ZERO + Span::from_us(n), 100);
        }
        samples.close(&mut a);
        assert_eq!(samples.counts(), (2, 3));
        assert_eq!(rows(samples), [(1e-6, 7, 100), (2e-6, 7, 100)]);
    }
}
