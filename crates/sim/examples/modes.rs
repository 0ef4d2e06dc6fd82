//! Example program for profilers and quick checks: runs a scenario file in packet mode or flow mode
//! and prints the summary. Usage: `cargo run --release --example modes -- FILE packet|flow
//! [path=value]…`.

use eastwest_sim::run::run;
use eastwest_sim::scenario::{Context, read};
use std::path::PathBuf;

/// The memory allocator that the Python extension also uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (file, mode) = (PathBuf::from(&args[0]), &args[1]);
    let text = std::fs::read_to_string(&file).expect("the scenario file can be read");
    let context = Context {
        base_dir: file.parent().map(PathBuf::from).unwrap_or_default(),
        data_dir: PathBuf::from("python/eastwest/data"),
        ..Context::default()
    };
    let mut set = vec![("fidelity".to_owned(), mode.clone())];
    for pair in &args[2..] {
        let (path, value) = pair.split_once('=').expect("path=value");
        set.push((path.to_owned(), value.to_owned()));
    }
    let scenario = read(&text, &context, &set).unwrap_or_else(|problems| panic!("{problems:#?}"));
    match run(&scenario, false, &mut |_| true) {
        Ok(results) => println!("{:#}", results.summary),
        Err(e) => panic!("{e}"),
    }
}
