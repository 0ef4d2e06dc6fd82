//! What receivers got over time: the bytes of every stream in every interval in which it got some.
//!
//! An interval is open at its beginning and closed at its end, as those of [samples](crate::samples) are,
//! which come after all else at their instant. What a stream gets is added up until something of a later
//! interval comes, so a stream without bytes costs nothing, and an interval without bytes has no row.

use crate::table::{Column, Table};
use eastwest_types::{ClassId, HostId, Span, Time};
use serde::{Deserialize, Serialize};

/// Whose bytes they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whose {
    /// Number of the connection or queue pair, or of the stream.
    pub number: u64,
    /// Whether it is a stream of frames.
    pub is_stream: bool,
    /// Index of the workload.
    pub workload: u16,
    /// Traffic class.
    pub class: ClassId,
    /// Sender.
    pub src: HostId,
    /// Receiver.
    pub dst: HostId,
}

/// The interval that a stream is in.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Meter {
    whose: Whose,
    /// Number of the interval, from 1; 0 before the first byte.
    interval: u64,
    /// Bytes in it so far.
    bytes: u64,
}

impl Meter {
    /// Nothing has come.
    pub fn new(whose: Whose) -> Meter {
        Meter { whose, interval: 0, bytes: 0 }
    }
}

/// A stream in an interval.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Row {
    interval: u64,
    whose: Whose,
    bytes: u64,
}

/// Rows of a run, the first `most` that were complete.
#[derive(Debug, Serialize, Deserialize)]
pub struct FlowSamples {
    interval: Span,
    rows: Vec<Row>,
    most: u64,
    left_out: u64,
}

impl FlowSamples {
    /// An empty table for at most this many rows.
    pub fn new(interval: Span, most: u64) -> FlowSamples {
        FlowSamples { interval, rows: Vec::new(), most, left_out: 0 }
    }

    /// A receiver has got bytes.
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

    /// Nothing more comes in the interval that a stream is in.
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

    /// Gives streams other numbers: each that of its row in the table `streams`.
    pub fn number_streams(&mut self, row_of: &[u64]) {
        for whose in self.rows.iter_mut().map(|row| &mut row.whose).filter(|w| w.is_stream) {
            whose.number = row_of[whose.number as usize];
        }
    }

    /// Length of an interval.
    pub fn interval(&self) -> Span {
        self.interval
    }

    /// Rows kept, and those that found the table full.
    pub fn counts(&self) -> (usize, u64) {
        (self.rows.len(), self.left_out)
    }

    /// The table `flow_samples`, in the order of time.
    pub fn into_table(mut self, workloads: &[String], classes: &[String]) -> Table {
        self.rows.sort_by_key(|row| {
            let whose = row.whose;
            (row.interval, whose.is_stream, whose.workload, whose.number, whose.src)
        });
        let r = &self.rows;
        let ends = |row: &Row| (self.interval * row.interval).as_secs_f64();
        let number = |is_stream: bool| {
            let of = |row: &Row| match row.whose.is_stream == is_stream {
                true => row.whose.number as i64,
                false => -1,
            };
            Column::I64(r.iter().map(of).collect())
        };
        let label = |of: fn(&Whose) -> u32, names: &[String]| {
            Column::Label(r.iter().map(|row| of(&row.whose)).collect(), names.to_vec())
        };
        Table::new(
            "flow_samples",
            vec![
                ("time_s", Column::F64(r.iter().map(ends).collect())),
                ("connection", number(false)),
                ("stream", number(true)),
                ("workload", label(|w| u32::from(w.workload), workloads)),
                ("class", label(|w| u32::from(w.class.0), classes)),
                ("src", Column::U32(r.iter().map(|row| row.whose.src.0).collect())),
                ("dst", Column::U32(r.iter().map(|row| row.whose.dst.0).collect())),
                ("bytes", Column::U64(r.iter().map(|row| row.bytes).collect())),
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(number: u64) -> Meter {
        let (class, src, dst) = (ClassId(0), HostId(1), HostId(2));
        Meter::new(Whose { number, is_stream: false, workload: 0, class, src, dst })
    }

    fn rows(samples: FlowSamples) -> Vec<(f64, i64, u64)> {
        let table = samples.into_table(&["w".to_owned()], &["c".to_owned()]);
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
