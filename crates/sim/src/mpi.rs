//! Records of MPI programs: ranks, their states over time, and messages.

use crate::digest::Digest;
use eastwest_measure::mpi::{MpiCollectives, MpiIterations, MpiMessages, MpiRanks, MpiStates};
use eastwest_measure::table::{Names, Table};
use eastwest_types::{
    Activity, MpiCollective, MpiIteration, MpiMessage, MpiRank, MpiState, Span, Time,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Rows of a table, up to a limit, with the number of rows left out.
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

/// Records of all MPI programs of a run.
#[derive(Default, Serialize, Deserialize)]
pub struct MpiRecords {
    /// Maximum number of rows of each table but that of ranks.
    most: u64,
    ranks: Vec<(u16, MpiRank)>,
    states: Rows<MpiState>,
    messages: Rows<MpiMessage>,
    collectives: Rows<MpiCollective>,
    iterations: Rows<MpiIteration>,
    /// Counts of received messages between ranks. This field is their number; the next fields are
    /// their bytes, the number sent over the network, and the number sent with the rendezvous
    /// protocol.
    count: u64,
    bytes: u64,
    over_network: u64,
    rendezvous: u64,
}

impl MpiRecords {
    /// Returns empty records of MPI programs, with at most `most` rows for each table but that of
    /// ranks.
    pub fn new(most: u64) -> MpiRecords {
        MpiRecords { most, ..MpiRecords::default() }
    }

    /// Records that a rank of an MPI program has finished, and adds it to the digest.
    pub fn rank(&mut self, workload: u16, rank: MpiRank, digest: &mut Digest) {
        digest.mpi_rank(workload, &rank);
        self.ranks.push((workload, rank));
    }

    /// Records an interval in which a rank of an MPI program had one state, such as computing or
    /// waiting.
    pub fn state(&mut self, workload: u16, state: MpiState) {
        self.states.push((workload, state), self.most);
    }

    /// Records a received message between two MPI ranks, and adds it to the digest.
    pub fn message(&mut self, workload: u16, message: MpiMessage, digest: &mut Digest) {
        digest.mpi_message(workload, &message);
        self.count += 1;
        self.bytes += message.bytes;
        self.over_network += u64::from(message.network);
        self.rendezvous += u64::from(message.rendezvous);
        self.messages.push((workload, message), self.most);
    }

    /// Records a collective call that all its ranks have left.
    pub fn collective(&mut self, workload: u16, call: MpiCollective) {
        self.collectives.push((workload, call), self.most);
    }

    /// Records an iteration of a rank with a graph.
    pub fn iteration(&mut self, workload: u16, iteration: MpiIteration) {
        self.iterations.push((workload, iteration), self.most);
    }

    /// Returns the finished ranks, each with the number of its workload.
    pub fn ranks(&self) -> &[(u16, MpiRank)] {
        &self.ranks
    }

    /// Returns the tables of MPI programs.
    pub fn tables(&self, names: &Names) -> [Table; 5] {
        [
            MpiRanks::of(&self.ranks, names),
            MpiStates::of(&self.states.rows, names),
            MpiMessages::of(&self.messages.rows, names),
            MpiCollectives::of(&self.collectives.rows, names),
            MpiIterations::of(&self.iterations.rows, names),
        ]
    }

    /// Returns the section `mpi` of the summary; `None` if no MPI program ran.
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
        if let Some(iterations) = self.iterations() {
            of.insert("iterations".into(), iterations);
        }
        let left_out = self.states.left_out
            + self.messages.left_out
            + self.collectives.left_out
            + self.iterations.left_out;
        of.insert("rows_left_out".into(), left_out.into());
        Some(of.into())
    }

    /// Returns the mean duration of the iterations of all ranks, and its parts; `None` if no rank
    /// had a graph. The first iteration of each rank is left out if there are others, because it
    /// opens connections.
    fn iterations(&self) -> Option<Value> {
        let rows = &self.iterations.rows;
        let later = rows.iter().any(|(_, row)| row.number > 0);
        let counted: Vec<&MpiIteration> =
            rows.iter().map(|(_, row)| row).filter(|row| row.number > 0 || !later).collect();
        let mean = |of: fn(&MpiIteration) -> Span| {
            let sum: f64 = counted.iter().map(|row| of(row).as_secs_f64()).sum();
            sum / counted.len() as f64
        };
        let mean_s = mean(|row| row.ended.since(row.began));
        let (compute_s, exposed_s) = (mean(|row| row.computed), mean(|row| row.exposed));
        (!counted.is_empty()).then(|| {
            json!({
                "count": counted.len(), "mean_s": mean_s, "compute_s": compute_s,
                "exposed_s": exposed_s, "idle_s": (mean_s - compute_s - exposed_s).max(0.0),
            })
        })
    }
}
