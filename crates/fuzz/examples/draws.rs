//! Prints generated scenarios and the reasons for refused ones: `cargo run --profile checked -p
//! eastwest-fuzz --example draws -- FIRST COUNT`.

use eastwest_fuzz::campaign::{Campaign, Covered};
use eastwest_fuzz::generate::text;
use eastwest_fuzz::oracles::catch_panics;
use eastwest_fuzz::sources;
use eastwest_sim::scenario::Context;
use std::collections::BTreeMap;

fn main() {
    let mut numbers = std::env::args().skip(1).map(|n| n.parse::<u64>().expect("a number"));
    let (first, count) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(20));
    let folder = std::env::temp_dir().join("eastwest-fuzz-draws");
    std::fs::create_dir_all(&folder).expect("a folder");
    sources::write(&folder).expect("files");
    let campaign = Campaign::new(Context { base_dir: folder, ..Context::default() }, 1, None, 0);
    println!("{} levels, {} pairs", campaign.features().levels(), campaign.pairs());
    let _quiet = catch_panics();
    let mut refusals: BTreeMap<String, u64> = BTreeMap::new();
    for number in first..first + count {
        let drawn = campaign.draw_case(number);
        match &drawn.case {
            Err(why) => *refusals.entry(format!("{:?}: {why}", drawn.names)).or_default() += 1,
            Ok(case) => {
                let mut covered = Covered::new(campaign.features());
                let found = campaign.judge_case(number, &drawn, &mut covered);
                println!(
                    "# case {number} {:?}: {} packets, {} events, parts {}, found {}\n{}",
                    drawn.names,
                    covered.packets,
                    covered.events,
                    covered.in_parts,
                    found.is_some(),
                    text(&case.given)
                );
            }
        }
    }
    for (why, count) in refusals {
        println!("refused {count}: {why}");
    }
}
