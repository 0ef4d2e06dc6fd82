//! What is remembered of MPI programs: their ranks, what these did when, and their messages.

use crate::digest::Digest;
use crate::results::{label, names, seconds};
use eastwest_measure::table::{Column, Table};
use eastwest_types::{Activity, MpiMessage, MpiRank, MpiState, Span, Time};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Rows of a table of which there may be too many.
#[derive(Serialize, Deserialize)]
struct Rows<T> {
    rows: Vec<(u16, T)>,
    left_out: u64,
}

impl<T> Rows<T> {
    fn push(&mut self, row: (u16, T), most: u64) {
        if (self.rows.len() as u64) < most {
            self.rows.push(row);
        } else {
            self.left_out += 1;
        }
    }
}

impl<T> Default for Rows<T> {
    fn default() -> Rows<T> {
        Rows { rows: Vec::new(), left_out: 0 }
    }
}

/// Of all MPI programs of a run.
#[derive(Default, Serialize, Deserialize)]
pub struct MpiRecords {
    /// Most rows of messages, and of states.
    most: u64,
    ranks: Vec<(u16, MpiRank)>,
    states: Rows<MpiState>,
    messages: Rows<MpiMessage>,
    /// Messages: how many, their bytes; those that crossed the network; those that asked first.
    count: u64,
    bytes: u64,
    over_network: u64,
    rendezvous: u64,
}

impl MpiRecords {
    /// Nothing yet; of messages and states at most so many are kept.
    pub fn new(most: u64) -> MpiRecords {
        MpiRecords { most, ..MpiRecords::default() }
    }

    /// A rank is through.
    pub fn rank(&mut self, workload: u16, rank: MpiRank, digest: &mut Digest) {
        digest.mpi_rank(workload, &rank);
        self.ranks.push((workload, rank));
    }

    /// A rank has done something for a while.
    pub fn state(&mut self, workload: u16, state: MpiState) {
        self.states.push((workload, state), self.most);
    }

    /// A message has been received.
    pub fn message(&mut self, workload: u16, message: MpiMessage, digest: &mut Digest) {
        digest.mpi_message(workload, &message);
        self.count += 1;
        self.bytes += message.bytes;
        self.over_network += u64::from(message.network);
        self.rendezvous += u64::from(message.rendezvous);
        self.messages.push((workload, message), self.most);
    }

    /// Takes out the tables.
    pub fn tables(&self, workloads: &[String]) -> [Table; 3] {
        [
            ranks(&self.ranks, workloads),
            states(&self.states.rows, workloads),
            messages(&self.messages.rows, workloads),
        ]
    }

    /// The sums, if there was any program.
    pub fn summary(&self) -> Option<Value> {
        if self.ranks.is_empty() && self.count == 0 {
            return None;
        }
        let finished = self.ranks.iter().map(|(_, r)| r.finished).max().unwrap_or(Time::ZERO);
        let mean = |activity: Activity| {
            let spent = self.ranks.iter().map(|(_, r)| r.spent[activity as usize]);
            spent.map(Span::as_secs_f64).sum::<f64>() / self.ranks.len().max(1) as f64
        };
        let mut of = Map::new();
        of.insert("ranks".into(), self.ranks.len().into());
        of.insert("runtime_s".into(), finished.as_secs_f64().into());
        for activity in Activity::ALL {
            of.insert(format!("{}_s", activity.name()), mean(activity).into());
        }
        of.insert(
            "messages".into(),
            json!({
                "count": self.count, "bytes": self.bytes, "over_network": self.over_network,
                "rendezvous": self.rendezvous,
            }),
        );
        let left_out = self.states.left_out + self.messages.left_out;
        of.insert("rows_left_out".into(), left_out.into());
        Some(of.into())
    }
}

/// A column of one thing in each row.
fn numbers<T>(rows: &[(u16, T)], of: impl Fn(&T) -> u32) -> Column {
    Column::U32(rows.iter().map(|(_, r)| of(r)).collect())
}

fn counts<T>(rows: &[(u16, T)], of: impl Fn(&T) -> u64) -> Column {
    Column::U64(rows.iter().map(|(_, r)| of(r)).collect())
}

fn times<T>(rows: &[(u16, T)], of: impl Fn(&T) -> Time) -> Column {
    seconds(rows.iter().map(|(_, r)| of(r)))
}

fn of_workload<T>(rows: &[(u16, T)], workloads: &[String]) -> Column {
    label(rows.iter().map(|(w, _)| u32::from(*w)), workloads)
}

/// The calls of rows as a column of labels.
fn calls<T>(rows: &[(u16, T)], of: impl Fn(&T) -> &'static str) -> Column {
    let mut known: Vec<String> = Vec::new();
    let indices: Vec<u32> = rows
        .iter()
        .map(|(_, r)| {
            let at = known.iter().position(|name| name == of(r));
            at.unwrap_or_else(|| {
                known.push(of(r).to_owned());
                known.len() - 1
            }) as u32
        })
        .collect();
    Column::Label(indices, known)
}

fn ranks(rows: &[(u16, MpiRank)], workloads: &[String]) -> Table {
    let mut columns = vec![
        ("workload", of_workload(rows, workloads)),
        ("rank", numbers(rows, |r| r.rank)),
        ("host", numbers(rows, |r| r.host.0)),
        ("finished_s", times(rows, |r| r.finished)),
    ];
    const NAMES: [&str; Activity::ALL.len()] =
        ["compute_s", "sleep_s", "send_s", "receive_s", "wait_s", "collective_s"];
    columns.extend(NAMES.into_iter().zip(Activity::ALL).map(|(name, activity)| {
        let spent = rows.iter().map(|(_, r)| r.spent[activity as usize].as_secs_f64());
        (name, Column::F64(spent.collect()))
    }));
    columns.extend([
        ("messages", counts(rows, |r| r.sent.0)),
        ("bytes", counts(rows, |r| r.sent.1)),
        ("collective_messages", counts(rows, |r| r.sent_in_collectives.0)),
        ("collective_bytes", counts(rows, |r| r.sent_in_collectives.1)),
        ("collectives", counts(rows, |r| r.collectives)),
    ]);
    Table::new("mpi_ranks", columns)
}

fn states(rows: &[(u16, MpiState)], workloads: &[String]) -> Table {
    let activities = names(Activity::ALL.map(Activity::name));
    Table::new(
        "mpi_states",
        vec![
            ("workload", of_workload(rows, workloads)),
            ("rank", numbers(rows, |r| r.rank)),
            ("state", label(rows.iter().map(|(_, r)| r.activity as u32), &activities)),
            ("call", calls(rows, |r| r.call)),
            ("began_s", times(rows, |r| r.began)),
            ("ended_s", times(rows, |r| r.ended)),
        ],
    )
}

fn messages(rows: &[(u16, MpiMessage)], workloads: &[String]) -> Table {
    let flag = |of: fn(&MpiMessage) -> bool, no_yes| {
        label(rows.iter().map(|(_, r)| u32::from(of(r))), &names(no_yes))
    };
    Table::new(
        "mpi_messages",
        vec![
            ("workload", of_workload(rows, workloads)),
            ("from", numbers(rows, |r| r.from)),
            ("to", numbers(rows, |r| r.to)),
            ("tag", Column::I64(rows.iter().map(|(_, r)| r.tag).collect())),
            ("call", calls(rows, |r| r.call)),
            ("bytes", counts(rows, |r| r.bytes)),
            ("protocol", flag(|r| r.rendezvous, ["eager", "rendezvous"])),
            ("over", flag(|r| r.network, ["memory", "network"])),
            ("sent_s", times(rows, |r| r.sent)),
            ("matched_s", times(rows, |r| r.matched)),
            ("arrived_s", times(rows, |r| r.arrived)),
            ("received_s", times(rows, |r| r.received)),
        ],
    )
}
