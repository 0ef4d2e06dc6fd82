//! A scenario on several threads: `parts FILE THREADS [path=value]…`.

use eastwest_sim::plan::Plan;
use eastwest_sim::scenario::{Context, read};
use eastwest_sim::threads;
use std::path::PathBuf;
use std::time::Instant;

/// As in the Python extension.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
    let world = if n == 1 {
        let mut world = eastwest_sim::world::World::new(Plan::new(&scenario).unwrap()).unwrap();
        world.run(&mut |_| true).unwrap();
        world
    } else {
        match threads::run(&scenario, n, Default::default(), &mut |_| true).unwrap() {
            threads::Ended::Done(world) => *world,
            threads::Ended::InOne(why) => {
                return println!("IN ONE: {why} {:.3} s", begun.elapsed().as_secs_f64());
            }
        }
    };
    let p = world.progress();
    let took = begun.elapsed().as_secs_f64();
    println!("hops {} events {} simulated {} wall {took:.3} s", p.packet_hops, p.events, p.now);
    let results = eastwest_sim::results::Results::new(world);
    println!("digest {}", results.summary["digest"]);
    if std::env::var("DUMP").is_ok() {
        eprintln!("{:#}\n{:#?}", results.summary, results.tables);
    }
}
