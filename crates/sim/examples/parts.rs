//! Example program: runs a scenario on several threads. Usage: `parts FILE THREADS [path=value]…`.
//! A run is divided into parts of the fabric. With the environment variable PACE=together the parts
//! always run in parallel, with PACE=alone always one after the other.

use eastwest_sim::plan::Plan;
use eastwest_sim::results::Results;
use eastwest_sim::scenario::{Context, read};
use eastwest_sim::threads::{self, TrialTimes};
use eastwest_sim::world::{Progress, RunError, World};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The memory allocator that the Python extension also uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[allow(clippy::disallowed_methods, reason = "a benchmark reads the machine's clock")]
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (file, n) = (PathBuf::from(&args[0]), args[1].parse::<usize>().unwrap());
    let text = std::fs::read_to_string(&file).expect("the scenario file can be read");
    let context = Context {
        base_dir: file.parent().map(PathBuf::from).unwrap_or_default(),
        data_dir: PathBuf::from("python/eastwest/data"),
        ..Context::default()
    };
    let mut set = Vec::new();
    for pair in &args[2..] {
        let (path, value) = pair.split_once('=').expect("path=value");
        set.push((path.to_owned(), value.to_owned()));
    }
    let scenario = read(&text, &context, &set).unwrap_or_else(|problems| panic!("{problems:#?}"));
    let begun = Instant::now();
    let plan = || Plan::new(&scenario).map_err(|e| RunError::Limit(e.join("; ")));
    let mut options = threads::ParallelOptions::default();
    if std::env::var("PACE").is_ok() {
        options.min_events_per_window = (0, 0);
    }
    match std::env::var("PACE").as_deref() {
        Ok("together") => options.spans = None,
        Ok("alone") => {
            let (never, always) = (Duration::ZERO, Duration::MAX);
            let max_failed_trials = u32::MAX;
            let spans = TrialTimes {
                try_together: never,
                try_alone: always,
                max_failed_trials,
                ..TrialTimes::default()
            };
            options.spans = Some(spans);
        }
        _ => {}
    }
    let (progress, results) =
        match threads::run(&plan, n, options, &|| begun.elapsed(), &mut |_: &Progress| true)
            .unwrap()
        {
            threads::Outcome::Done(run) => {
                println!("{:?}", run.parallel());
                (run.progress(), run.into_results())
            }
            threads::Outcome::Sequential(why) => {
                println!("one thread, since {why}: {:.3} s so far", begun.elapsed().as_secs_f64());
                let mut world = World::new(plan().unwrap()).unwrap();
                world.run(&mut |_| true).unwrap();
                (world.progress(), Results::new(world))
            }
        };
    let (p, took) = (progress, begun.elapsed().as_secs_f64());
    println!("hops {} events {} simulated {} wall {took:.3} s", p.packet_hops, p.events, p.now);
    println!("digest {}", results.summary["digest"]);
    if std::env::var("DUMP").is_ok() {
        eprintln!("{:#}\n{:#?}", results.summary, results.tables);
    }
}
