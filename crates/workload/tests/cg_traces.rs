//! Compares the generator of NAS CG with traces of the real benchmark: messages are equal for 4, 8
//! and 16 ranks.

use eastwest_workload::mpi::cg::CgConfig;
use eastwest_workload::mpi::check::{Summary, check};
use eastwest_workload::mpi::groups::Groups;
use eastwest_workload::mpi::record::Record;
use eastwest_workload::mpi::{Program, TraceFile};
use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;

/// A trace that is unpacked into a temporary folder for a test, deleted at its end.
struct Unpacked(PathBuf);

impl Drop for Unpacked {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Unpacked {
    /// Unpacks a `.tar.gz` file of traces for a test. The tar format has blocks of 512 bytes, with
    /// a header block before each file.
    fn new(name: &str, test: &str) -> Unpacked {
        let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/npb-cg-ti");
        let packed = std::fs::read(format!("{data}/{name}.ti.tar.gz")).expect("the trace");
        let mut tar = Vec::new();
        GzDecoder::new(&packed[..]).read_to_end(&mut tar).expect("gzip");
        let folder =
            std::env::temp_dir().join(format!("eastwest-{test}-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut at = 0;
        while at + 512 <= tar.len() && tar[at] != 0 {
            let text = |from: usize, to: usize| {
                let field = tar[at + from..at + to].split(|b| *b == 0).next().expect("one part");
                String::from_utf8(field.to_vec()).expect("text")
            };
            let size = usize::from_str_radix(text(124, 136).trim(), 8).expect("an octal size");
            let path = text(0, 100);
            if size > 0 {
                let base = path.rsplit('/').next().expect("a name");
                std::fs::write(folder.join(base), &tar[at + 512..at + 512 + size])
                    .expect("written");
            }
            at += 512 + size.div_ceil(512) * 512;
        }
        Unpacked(folder)
    }

    fn program(&self, ranks: u32) -> Program {
        let file = |rank| {
            let name = format!("rank-{rank:03}.txt");
            TraceFile { path: self.0.join(&name), name }
        };
        Program::Files((0..ranks).map(file).collect())
    }
}

/// Returns the records of a rank, without computations.
fn calls(program: &Program, rank: u32) -> Vec<Record> {
    let groups = Groups::default();
    let all = program.nodes(rank, &groups).map(|node| node.expect("a good trace").record);
    all.filter(|record| !matches!(record, Record::Compute { .. })).collect()
}

#[test]
fn the_generator_makes_the_messages_of_the_benchmark() {
    for ranks in [4, 8, 16] {
        let trace = Unpacked::new(&format!("cg.S.{ranks}"), "made");
        let recorded = trace.program(ranks);
        let config = CgConfig { ranks, rows: 1_400, nonzeros: 7, outer: 15, inner: 25 };
        let made = Program::Cg(config);
        for rank in 0..ranks {
            let (recorded, made) = (calls(&recorded, rank), calls(&made, rank));
            let differs = recorded.iter().zip(&made).position(|(a, b)| a != b);
            let at = differs.unwrap_or(0);
            assert_eq!(differs, None, "{ranks}: {:?} is not {:?}", made[at], recorded[at]);
            assert_eq!(recorded.len(), made.len(), "rank {rank} of {ranks}");
        }
        let Summary { messages, bytes, collectives, .. } = check(&recorded).expect("a good trace");
        let made = check(&made).expect("a good program");
        assert_eq!((made.messages, made.bytes), (messages, bytes));
        assert_eq!((made.collectives, made.messages), (collectives, config.messages()));
        assert_eq!(made.records, config.records());
    }
}

#[test]
fn four_ranks_send_what_their_matrix_says() {
    let trace = Unpacked::new("cg.S.4", "matrix");
    let mut sent: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
    for rank in 0..4 {
        for record in calls(&trace.program(4), rank) {
            if let Record::Send { to, bytes, .. } = record {
                let of = sent.entry((rank, to)).or_default();
                *of = (of.0 + 1, of.1 + bytes);
            }
        }
    }
    let matrix = include_str!("data/npb-cg-ti/cg.S.4.matrix.csv");
    let rows: Vec<Vec<u64>> = matrix
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(|cell| cell.trim().parse().expect("a number")).collect())
        .collect();
    assert_eq!(rows.len(), sent.len());
    for row in rows {
        assert_eq!(sent[&(row[0] as u32, row[1] as u32)], (row[2], row[3]));
    }
}
