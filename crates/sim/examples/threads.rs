//! A scenario file on several threads, for profilers: `cargo run --release --example threads -- FILE N
//! [path=value]…`. It is divided as soon as there is something to do, and stays so even where threads
//! have to wait for cores, which runs for their results do not.

use eastwest_sim::plan::Plan;
use eastwest_sim::results::Results;
use eastwest_sim::scenario::{Context, read};
use eastwest_sim::threads::{Habits, Team};
use eastwest_sim::world::World;
use std::path::PathBuf;

/// As in the Python extension.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (file, threads) = (PathBuf::from(&args[0]), args[1].parse().expect("a number of threads"));
    let text = std::fs::read_to_string(&file).expect("the scenario file can be read");
    let context = Context {
        base_dir: file.parent().map(PathBuf::from).unwrap_or_default(),
        data_dir: PathBuf::from("python/eastwest/data"),
        ..Context::default()
    };
    let pairs = args[2..].iter().map(|pair| pair.split_once('=').expect("path=value"));
    let set: Vec<_> = pairs.map(|(path, value)| (path.to_owned(), value.to_owned())).collect();
    let scenario = read(&text, &context, &set).unwrap_or_else(|problems| panic!("{problems:#?}"));
    let plan = Plan::new(&scenario).expect("the plan can be made");
    let mut team = Team::new(&plan, threads).unwrap_or_else(|why| panic!("one thread: {why}"));
    let again = 1 << 6;
    team.habits = Habits { taste: again, alone: again, patience: 0, pays: 1, ..team.habits };
    let mut world = World::new(plan).expect("the world can be built");
    world.run_with(&mut team, &mut |_| true).expect("the run gets to its end");
    let note = team.note();
    println!("{} {note}", Results::new(world).summary["digest"]);
}
