//! Messages of NAS CG: the conjugate gradient of the NAS parallel benchmarks (NPB 3.4, MPI) for any
//! power of two of ranks.
//!
//! Ranks form a grid of `rows × columns`, square or twice as wide as high. A sum over the ranks of
//! a row takes log2(columns) exchanges, at distances columns/2, …, 2, 1 for numbers and in reverse
//! order for vectors. A transpose exchanges a vector with the rank at the mirrored position of the
//! grid, which may be the rank itself. Every exchange is a posted receive, a send, and a wait. An
//! outer iteration consists of a sum of one number; 25 inner iterations (vector sum, transpose, two
//! sums of one number); a vector sum with transpose and a sum of one number for the residual; and a
//! sum of two numbers for the norms. One outer iteration, closed by a barrier, precedes the timed
//! ones. So most of the communication consists of log2(columns) exchanges and a transpose: five
//! phases for 128 ranks.
//!
//! The messages are equal to those in `shared/data/npb-cg-ti` for 4, 8 and 16 ranks (tested);
//! elements are eight bytes. If the rows cannot be divided equally, the first ranks have one row
//! more, as in NPB. The operations of a rank are counted by the algorithm: two for each nonzero of
//! its part of the matrix, which has `na · nonzer · (nonzer + 1) / ranks` nonzeros by the
//! benchmark's own count, and ten per iteration for each element of its part of a vector; the
//! generation of the matrix is left out, and memory accesses take no time.

use super::collective::{Call, Kind};
use super::record::{Record, Which};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Bytes of one number (double) in a message.
const NUMBER: u64 = 8;
/// Bytes of the setting that rank 0 broadcasts to the other ranks at the start.
const SETTING: u64 = 4;

/// Size of a NAS CG benchmark whose messages are generated: ranks, matrix and iterations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CgConfig {
    /// Number of MPI ranks, a power of two.
    pub ranks: u32,
    /// Number of rows of the sparse matrix.
    pub rows: u64,
    /// Nonzeros of a generating vector of the matrix; a row of the matrix has about `nonzeros ·
    /// (nonzeros + 1)` nonzeros.
    pub nonzeros: u64,
    /// Number of timed outer iterations; one untimed iteration precedes them.
    pub outer: u32,
    /// Number of inner iterations in each outer iteration.
    pub inner: u32,
}

impl CgConfig {
    /// Number of inner iterations in the benchmark's definition.
    pub const INNER: u32 = 25;
    /// Problem classes of the benchmark: name, rows, nonzeros, timed outer iterations (NPB 3.4,
    /// `npbparams`).
    pub const CLASSES: [(&'static str, u64, u64, u32); 7] = [
        ("S", 1_400, 7, 15),
        ("W", 7_000, 8, 15),
        ("A", 14_000, 11, 15),
        ("B", 75_000, 13, 75),
        ("C", 150_000, 15, 75),
        ("D", 1_500_000, 21, 100),
        ("E", 9_000_000, 26, 100),
    ];

    /// Returns the number of columns and the number of rows of the grid of ranks.
    fn grid(&self) -> (u32, u32) {
        let log = self.ranks.ilog2();
        (1 << log.div_ceil(2), 1 << (log / 2))
    }

    /// Returns the number of messages of all ranks, including messages of a rank to itself, without
    /// the messages of collectives.
    pub fn messages(&self) -> u64 {
        let sums = u64::from(self.grid().0.ilog2());
        let transposes = u64::from(self.ranks > 1);
        let inner = u64::from(self.inner);
        let each = sums * (3 + 2 * inner) + (inner + 1) * (sums + transposes);
        (u64::from(self.outer) + 1) * each * u64::from(self.ranks)
    }
}

impl CgConfig {
    /// Returns the number of records (actions) of all ranks together.
    pub fn records(&self) -> u64 {
        let inner = u64::from(self.inner);
        let computing = (u64::from(self.outer) + 1) * (inner * 4 + 5);
        let ranks = u64::from(self.ranks);
        3 * self.messages() + ranks * (computing + 5)
    }
}

/// Generator of the records (actions) of one rank of NAS CG.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Cg {
    config: CgConfig,
    rank: u32,
    /// Number of blocks of records generated so far; a block is one inner iteration, or the records
    /// of an outer iteration before or after its inner iterations.
    blocks: u64,
    /// Generated records that the rank has not executed yet.
    made: VecDeque<Record>,
}

impl Cg {
    pub fn new(config: CgConfig, rank: u32) -> Cg {
        Cg { config, rank, blocks: 0, made: VecDeque::new() }
    }

    pub fn next(&mut self) -> Option<Record> {
        while self.made.is_empty() {
            if !self.block() {
                return None;
            }
        }
        self.made.pop_front()
    }

    /// Generates the next block of records; returns false after the last block. An outer iteration
    /// has one block before its inner iterations, one block for each inner iteration, and one block
    /// after them.
    fn block(&mut self) -> bool {
        let per_outer = u64::from(self.config.inner) + 2;
        let Some(at) = self.blocks.checked_sub(1) else {
            self.blocks = 1;
            self.made.push_back(Record::Init { element: 1 });
            self.collective(Call::new(Kind::Bcast).size(SETTING));
            return true;
        };
        let outer = at / per_outer;
        if outer > u64::from(self.config.outer) {
            let ended = outer * per_outer == at;
            if ended {
                self.blocks += 1;
                self.collective(Call::new(Kind::Reduce).size(NUMBER));
                self.made.push_back(Record::Finalize);
            }
            return ended;
        }
        self.blocks += 1;
        let elements = self.elements();
        match at % per_outer {
            0 => {
                self.compute(2 * elements);
                self.sum(1);
            }
            step if step < per_outer - 1 => {
                self.multiply();
                self.compute(2 * elements);
                self.sum(1);
                self.compute(6 * elements);
                self.sum(1);
                self.compute(2 * elements);
            }
            _ => {
                self.multiply();
                self.compute(3 * elements);
                self.sum(1);
                self.compute(4 * elements);
                self.sum(2);
                self.compute(elements);
                if outer == 0 {
                    self.collective(Call::new(Kind::Barrier));
                }
            }
        }
        true
    }

    fn compute(&mut self, flops: u64) {
        self.made.push_back(Record::Compute { flops: flops as f64 });
    }

    fn collective(&mut self, call: Call) {
        self.made.push_back(Record::Collective { call: Box::new(call), blocking: true });
    }

    /// Generates the records of a matrix–vector product: computation of the rank's part, vector sum
    /// over the row of ranks, transpose.
    fn multiply(&mut self) {
        let CgConfig { ranks, rows, nonzeros, .. } = self.config;
        self.compute(2 * rows * nonzeros * (nonzeros + 1) / u64::from(ranks));
        let (columns, _) = self.config.grid();
        let (sent, other) = self.halves();
        for round in (1..=columns.ilog2()).rev() {
            let last = round == columns.ilog2() && self.is_wide();
            self.exchange(self.partner(round), round, if last { other } else { sent }, sent);
        }
        if ranks > 1 {
            let mirror = self.mirror();
            self.exchange(mirror, 1, sent, self.elements());
        }
    }

    /// Generates the records of a sum of `numbers` numbers over a row of ranks.
    fn sum(&mut self, numbers: u64) {
        let (columns, _) = self.config.grid();
        for round in 1..=columns.ilog2() {
            self.exchange(self.partner(round), round, numbers, numbers);
        }
    }

    fn exchange(&mut self, with: u32, tag: u32, sent: u64, received: u64) {
        let tag = i64::from(tag);
        let most = Some(received * NUMBER);
        let (src, dst) = (Some(with), Some(self.rank));
        let which = Which { src, dst, tag: Some(tag), collective: None };
        let receive = Record::Recv { from: which.src, tag: which.tag, most, blocking: false };
        let send = Record::Send { to: with, tag, bytes: sent * NUMBER, blocking: true };
        let wait = Record::Wait(which);
        self.made.extend([receive, send, wait]);
    }

    /// Whether the grid of ranks is twice as wide as high; otherwise it is square.
    fn is_wide(&self) -> bool {
        let (columns, rows) = self.config.grid();
        columns != rows
    }

    /// Returns the partner of this rank in a round (from 1) of a sum over a row of ranks.
    fn partner(&self, round: u32) -> u32 {
        let (columns, _) = self.config.grid();
        self.rank ^ (columns >> round)
    }

    /// Returns the rank at the mirrored position of the grid, the partner in a transpose.
    fn mirror(&self) -> u32 {
        let (_, rows) = self.config.grid();
        let swapped = |cell: u32| cell % rows * rows + cell / rows;
        match self.is_wide() {
            false => swapped(self.rank),
            true => 2 * swapped(self.rank / 2) + self.rank % 2,
        }
    }

    /// Returns the number of matrix rows in part `number`, if all rows are divided into `parts`
    /// parts.
    fn part(&self, parts: u32, number: u32) -> u64 {
        let (rows, parts) = (self.config.rows, u64::from(parts));
        rows / parts + u64::from(u64::from(number) < rows % parts)
    }

    /// Returns the number of elements that this rank keeps of its grid row's result, and the number
    /// of the remaining elements, which its neighbour keeps.
    fn halves(&self) -> (u64, u64) {
        let (columns, rows) = self.config.grid();
        let whole = self.part(rows, self.rank / columns);
        match (self.is_wide(), self.rank % 2) {
            (false, _) => (whole, 0),
            (true, 0) => (whole.div_ceil(2), whole / 2),
            (true, _) => (whole / 2, whole.div_ceil(2)),
        }
    }

    /// Returns the number of elements of this rank's part of a vector.
    fn elements(&self) -> u64 {
        let (columns, rows) = self.config.grid();
        let column = self.rank % columns;
        match self.is_wide() {
            false => self.part(columns, column),
            true => (self.part(rows, column / 2) + u64::from(column % 2 == 0)) / 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn config(ranks: u32, class: &str) -> CgConfig {
        let (_, rows, nonzeros, outer) =
            *CgConfig::CLASSES.iter().find(|c| c.0 == class).expect("a class");
        CgConfig { ranks, rows, nonzeros, outer, inner: CgConfig::INNER }
    }

    /// Source, destination and tag of a sequence of messages.
    type Stream = (u32, u32, i64);

    fn made(config: CgConfig, rank: u32) -> Vec<Record> {
        let mut cg = Cg::new(config, rank);
        std::iter::from_fn(|| cg.next()).collect()
    }

    #[test]
    fn whatever_is_sent_is_received_in_its_order_and_size() {
        for (ranks, class) in
            [(1, "S"), (2, "S"), (4, "W"), (8, "S"), (32, "B"), (64, "S"), (128, "B"), (256, "W")]
        {
            let config = CgConfig { outer: 1, inner: 2, ..config(ranks, class) };
            let mut balance: BTreeMap<Stream, (Vec<u64>, Vec<u64>)> = BTreeMap::new();
            let mut sends = 0;
            for rank in 0..ranks {
                for record in made(config, rank) {
                    match record {
                        Record::Send { to, tag, bytes, .. } => {
                            balance.entry((rank, to, tag)).or_default().0.push(bytes);
                            sends += 1;
                        }
                        Record::Recv { from: Some(from), tag: Some(tag), most, .. } => {
                            let received = &mut balance.entry((from, rank, tag)).or_default().1;
                            received.push(most.expect("sizes are known"));
                        }
                        _ => {}
                    }
                }
            }
            assert!(balance.values().all(|(sent, received)| sent == received), "{ranks} {class}");
            assert_eq!(sends, config.messages(), "{ranks} {class}");
        }
    }

    #[test]
    fn the_known_sizes_have_their_known_messages() {
        assert_eq!(config(16, "A").messages(), 47_104);
        assert_eq!(config(8, "S").messages(), 23_552);
        assert_eq!(config(4, "S").messages(), 6_720);
        let config = CgConfig { outer: 2, ..config(4, "S") };
        let made: usize = (0..4).map(|rank| made(config, rank).len()).sum();
        assert_eq!(made as u64, config.records());
    }
}
