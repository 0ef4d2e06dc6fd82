//! One row per message that asked for it: when it was sent, when it had arrived, what it suffered.

use crate::table::{Column, Table};
use eastwest_types::{ClassId, HostId, Purpose, Span, Time};

/// A message that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct FlowRow {
    /// Index of the workload it belongs to.
    pub workload: u16,
    /// What it was for.
    pub purpose: Purpose,
    /// Traffic class.
    pub class: ClassId,
    /// Sender.
    pub src: HostId,
    /// Receiver.
    pub dst: HostId,
    /// Payload bytes.
    pub bytes: u64,
    /// When the application wrote it.
    pub start: Time,
    /// When its last byte had arrived in order.
    pub finish: Time,
    /// Time it would take alone on the idle path.
    pub ideal: Span,
    /// Segments the sender sent again meanwhile.
    pub retransmits: u32,
    /// Retransmission timeouts of the sender meanwhile.
    pub timeouts: u32,
    /// Of these, timeouts that found a whole window of data lost.
    pub lost_windows: u32,
    /// … and those that found every ACK of a window lost.
    pub lost_ack_windows: u32,
    /// The job it belongs to.
    pub job: Option<u32>,
    /// Number of the connection.
    pub connection: u64,
    /// Bytes of the sender's stream before it.
    pub stream_start: u64,
}

/// All rows, in order of arrival.
#[derive(Default)]
pub struct FlowTable {
    rows: Vec<FlowRow>,
}

impl FlowTable {
    /// Adds a row.
    pub fn push(&mut self, row: FlowRow) {
        self.rows.push(row);
    }

    /// All rows.
    pub fn rows(&self) -> &[FlowRow] {
        &self.rows
    }

    /// The table `flows`, with the names of workloads and classes. The rows are given back.
    pub fn into_table(self, workloads: &[String], classes: &[String]) -> Table {
        let r = &self.rows;
        let f64s = |f: &dyn Fn(&FlowRow) -> f64| Column::F64(r.iter().map(f).collect());
        let u32s = |f: &dyn Fn(&FlowRow) -> u32| Column::U32(r.iter().map(f).collect());
        let purposes = Purpose::ALL.map(|p| p.name().to_string()).to_vec();
        Table::new(
            "flows",
            vec![
                ("flow", Column::U64((0..r.len() as u64).collect())),
                (
                    "workload",
                    Column::Label(
                        r.iter().map(|f| u32::from(f.workload)).collect(),
                        workloads.to_vec(),
                    ),
                ),
                ("purpose", Column::Label(r.iter().map(|f| f.purpose as u32).collect(), purposes)),
                (
                    "class",
                    Column::Label(
                        r.iter().map(|f| u32::from(f.class.0)).collect(),
                        classes.to_vec(),
                    ),
                ),
                ("src", u32s(&|f| f.src.0)),
                ("dst", u32s(&|f| f.dst.0)),
                ("bytes", Column::U64(r.iter().map(|f| f.bytes).collect())),
                ("start_s", f64s(&|f| f.start.as_secs_f64())),
                ("finish_s", f64s(&|f| f.finish.as_secs_f64())),
                ("fct_us", f64s(&|f| f.finish.since(f.start).as_us_f64())),
                ("slowdown", f64s(&|f| f.finish.since(f.start).0 as f64 / f.ideal.0.max(1) as f64)),
                ("retransmits", u32s(&|f| f.retransmits)),
                ("timeouts", u32s(&|f| f.timeouts)),
                ("job", Column::I64(r.iter().map(|f| f.job.map_or(-1, i64::from)).collect())),
                ("connection", Column::U64(r.iter().map(|f| f.connection).collect())),
                ("stream_start", Column::U64(r.iter().map(|f| f.stream_start).collect())),
                ("lost_windows", u32s(&|f| f.lost_windows)),
                ("lost_ack_windows", u32s(&|f| f.lost_ack_windows)),
            ],
        )
    }
}
