//! Prints hashes of the results of runs: `cargo run --release -p eastwest-fuzz --example digests --
//! files FILE...` or `-- generated COUNT`. `benches/digests.py` compares them with the committed
//! hashes.
//!
//! A line of output is `file PATH HASH` or `case NUMBER TEXT HASH`. TEXT is a hash of the generated
//! scenario, by which a changed scenario is distinguished from a changed result. HASH covers the
//! summary (which includes the digest of the run) without the number of events, all tables and all
//! files; if the run has no result, it covers the reason.

use eastwest_fuzz::campaign::Campaign;
use eastwest_fuzz::generate::text;
use eastwest_fuzz::oracles::catch_panics;
use eastwest_fuzz::sources;
use eastwest_sim::plan::Plan;
use eastwest_sim::results::Results;
use eastwest_sim::scenario::{Context, Fidelity, Scenario, read};
use eastwest_sim::world::World;
use sha2::{Digest, Sha256};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

/// Memory allocator of this program, the same as in the Python extension.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Largest number of events of a generated scenario, as in a campaign.
const MOST_EVENTS: u64 = 150_000;

/// Largest number of events of a scenario file, so that the largest ones take half a minute.
const MOST_OF_FILE: u64 = 200_000_000;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.split_first() {
        Some((what, files)) if what == "files" => files.iter().for_each(|file| of_file(file)),
        Some((what, count)) if what == "generated" && count.len() == 1 => {
            of_generated(count[0].parse().expect("a number of cases"));
        }
        _ => panic!("digests files FILE... or digests generated COUNT"),
    }
}

fn of_file(name: &str) {
    let file = PathBuf::from(name);
    let given = std::fs::read_to_string(&file).expect("the scenario file can be read");
    let context = Context {
        base_dir: file.parent().map(PathBuf::from).unwrap_or_default(),
        data_dir: PathBuf::from("python/eastwest/data"),
        ..Context::default()
    };
    // the whole day of the Facebook trace takes an hour to simulate
    let set = match file.file_stem() {
        Some(stem) if stem == "fb2010" => vec![("duration".to_owned(), "1 h".to_owned())],
        _ => Vec::new(),
    };
    let scenario = read(&given, &context, &set).unwrap_or_else(|problems| panic!("{problems:#?}"));
    println!("file {name} {}", hash_of(&scenario, MOST_OF_FILE));
}

fn of_generated(count: u64) {
    let folder = std::env::temp_dir().join(format!("eastwest-digests-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    sources::write(&folder).expect("files");
    let context = Context { base_dir: folder.clone(), ..Context::default() };
    let campaign = Campaign::new(context, 1, None, 0);
    let _quiet = catch_panics();
    for number in 0..count {
        let drawn = campaign.draw_case(number);
        match &drawn.case {
            Err(why) => {
                let why = why.to_string().replace(&*folder.to_string_lossy(), "FOLDER");
                println!("case {number} {} refused", short(why.as_bytes()));
            }
            Ok(case) => {
                let hash = catch_unwind(AssertUnwindSafe(|| hash_of(&case.scenario, MOST_EVENTS)));
                let hash = hash.unwrap_or_else(|_| "panics".to_owned());
                println!("case {number} {} {hash}", short(text(&case.given).as_bytes()));
            }
        }
    }
    std::fs::remove_dir_all(&folder).expect("the folder can be removed");
}

/// Returns the hash of the results of a scenario, run for at most `most` events.
fn hash_of(scenario: &Scenario, most: u64) -> String {
    let mut looks = 0;
    let results = match scenario.fidelity {
        Fidelity::Flow | Fidelity::Links => eastwest_sim::run::run(scenario, false, &mut |_| {
            looks += 1;
            most == MOST_OF_FILE || looks < 4
        })
        .map_err(|error| error.to_string()),
        Fidelity::Packet => Plan::new(scenario)
            .map_err(|reasons| reasons.join("; "))
            .and_then(World::new)
            .and_then(|mut world| match world.run_to(most, &mut |_| true) {
                Ok(()) => Ok(Results::new(world)),
                Err(error) => Err(format!("{error} {:?} {}", world.progress(), world.digest())),
            }),
    };
    match results {
        Ok(results) => short(&left_behind(&results)),
        Err(why) => format!("stops-{}", short(why.as_bytes())),
    }
}

/// Returns the summary, all tables with rows and all files of a result as bytes, without the number
/// of events, which depends on the modes of ports and not on the model.
fn left_behind(results: &Results) -> Vec<u8> {
    let mut summary = results.summary.clone();
    summary["events"] = serde_json::Value::Null;
    let mut all = summary.to_string().into_bytes();
    for table in &results.tables {
        if table.name == "mpi_collectives" || table.name == "mpi_iterations" {
            continue;
        }
        all.extend(table.name.bytes());
        for (name, column) in &table.columns {
            all.extend(name.bytes());
            for row in 0..column.len() {
                all.push(0);
                all.extend(column.text(row).bytes());
            }
        }
    }
    for (name, content) in &results.files {
        all.extend(name.bytes());
        all.extend(content);
    }
    all
}

fn short(bytes: &[u8]) -> String {
    Sha256::digest(bytes)[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}
