//! Small files that generated scenarios may name, one for each format that settings of type *file*
//! read. The generator does not know which setting reads which format: the reader refuses a wrong
//! file, and another one is drawn.

use crate::draw::Names;
use eastwest_engine::random::Stream;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::{fs, io};

/// Contents of files, by file name.
pub type Files = BTreeMap<String, String>;

/// File name of the small, fixed MPI trace that generated scenarios may name. Unlike the other
/// files, the simulator reads it from disk.
const CALLS: &str = "calls.ti";

/// Number of ranks in the MPI trace `calls.ti`.
const RANKS: usize = 4;

/// Writes `calls.ti` into a folder: the small, fixed MPI trace that generated scenarios may name.
/// Unlike the other files, the simulator reads it from disk.
pub fn write(folder: &Path) -> io::Result<()> {
    fs::write(folder.join(CALLS), calls())
}

/// Returns the text of the MPI trace `calls.ti`: four ranks that send messages in a ring, and
/// collective calls.
fn calls() -> String {
    let mut text = String::new();
    for rank in 0..RANKS {
        let (next, before) = ((rank + 1) % RANKS, (rank + RANKS - 1) % RANKS);
        let _ = write!(
            text,
            "{rank} init\n{rank} compute 20000\n{rank} irecv {before} 7 3000\n{rank} isend {next} 7 3000\n\
             {rank} waitall 2\n{rank} allreduce 4000 0\n{rank} barrier\n{rank} finalize\n"
        );
    }
    text
}

/// Returns the text of a random topology file: up to five switches in a chain, up to two more
/// cables between switches, and up to seven hosts on random switches. One host in four has two
/// cables.
pub fn graph(random: &mut Stream) -> String {
    let (switches, hosts) = (1 + random.below(5), 2 + random.below(6));
    let mut text = format!(
        "hosts = {:?}\nswitches = {:?}\n",
        (0..hosts).map(|h| format!("h{h}")).collect::<Vec<_>>(),
        (0..switches).map(|s| format!("s{s}")).collect::<Vec<_>>(),
    );
    let rate =
        |random: &mut Stream| ["10 Gbit/s", "1 Gbit/s", "2.5 Gbit/s"][random.below(3) as usize];
    let mut cable = |random: &mut Stream, a: String, b: String, rate: &str| {
        let delay = ["1 us", "100 ns", "10 us", "0 s"][random.below(4) as usize];
        let _ =
            write!(text, "[[cable]]\na = '{a}'\nb = '{b}'\nrate = '{rate}'\ndelay = '{delay}'\n");
    };
    for h in 0..hosts {
        // one host in four has two cards, mostly with one rate
        let own = rate(random);
        for second in 0..1 + u64::from(random.below(4) == 0) {
            let s = random.below(switches);
            let other = if second > 0 && random.below(8) == 0 { rate(random) } else { own };
            cable(random, format!("h{h}"), format!("s{s}"), other);
        }
    }
    for s in 1..switches {
        let rate = rate(random);
        cable(random, format!("s{}", s - 1), format!("s{s}"), rate);
    }
    for _ in 0..random.below(3) {
        let (a, b) = (random.below(switches), random.below(switches));
        if a != b {
            let rate = rate(random);
            cable(random, format!("s{a}"), format!("s{b}"), rate);
        }
    }
    text
}

/// Returns the files of a generated scenario, by name: one small file each of flows, transactions,
/// jobs and the placement of ranks. They name nodes of the fabric, whose names are `names`.
pub fn files(names: &Names) -> Files {
    let (hosts, n) = (&names.hosts, names.hosts.len().max(1));
    let host = |i: usize| hosts.get(i % n).map_or("h0", String::as_str);
    let mut flows = String::from("src,dst,bytes,start_s\n");
    let mut transactions = String::from(
        "transaction\tcall\tparent\tstart_s\tcomponent\tservice\toperation\trequest_bytes\t\
         response_bytes\tafter\tgap_s\trest_s\n",
    );
    // components of transactions have names of hosts, so that they can be placed by name
    let (web, cart, ads) = (host(0), host(1), host(2));
    let mut placed = String::new();
    for i in 0..6 {
        let (bytes, at) = (500 + 7_000 * i, 0.0002 * i as f64);
        let _ = writeln!(flows, "{},{},{bytes},{at}", host(i), host(i + 1));
        let _ = write!(
            transactions,
            "t{i}\t0\t\t{at}\t{web}\tshop\tGET\t500\t20000\t\t0\t0.0001\n\
             t{i}\t1\t0\t\t{cart}\tshop\tlist\t1000\t1400\t\t0.00005\t0.0002\n\
             t{i}\t2\t0\t\t{ads}\tads\tpick\t1000\t30000\t\t0.00005\t0.0001\n"
        );
        if i < RANKS {
            let _ = writeln!(placed, "{}", host(i));
        }
    }
    let jobs = "job0\t0\t0\t200000\t0\t30000\njob1\t1\t1\t300000\t60000\t9000\n";
    Files::from([
        ("flows.csv".to_owned(), flows),
        ("transactions.tsv".to_owned(), transactions),
        ("ranks.txt".to_owned(), placed),
        ("jobs.tsv".to_owned(), jobs.to_owned()),
    ])
}

/// Returns the names of all files that a generated scenario may name: those in `files`, which are
/// in memory, and the MPI trace `calls.ti` on disk.
pub fn listed(files: &Files) -> Vec<String> {
    files.keys().cloned().chain([CALLS.to_owned()]).collect()
}
