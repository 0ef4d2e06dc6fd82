//! Generated scenarios satisfy all oracles. More of them: `EASTWEST_CASES=3000`, from another one on:
//! `EASTWEST_FIRST=500`.

use eastwest_fuzz::campaign::Campaign;
use eastwest_fuzz::oracles::catch_panics;
use eastwest_fuzz::sources;
use eastwest_sim::scenario::Context;

/// Cases tried unless the environment says otherwise.
const CASES: u64 = 150;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |n| n.parse().expect("a number"))
}

#[test]
fn generated_scenarios_satisfy_all_oracles() {
    let folder = std::env::temp_dir().join(format!("eastwest-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    sources::write(&folder).expect("files");
    let campaign =
        Campaign::new(Context { base_dir: folder.clone(), ..Context::default() }, 1, None, 0);
    let cases = number("EASTWEST_CASES", CASES);
    let (covered, found) = {
        let _quiet = catch_panics();
        campaign.run((number("EASTWEST_FIRST", 0), cases), 2, &mut |_| true)
    };
    let _ = std::fs::remove_dir_all(&folder);
    println!(
        "{} cases, {} refused, {} too large, {} kept, {} in parts, {} events, {} packets",
        covered.cases,
        covered.refused,
        covered.too_large,
        covered.kept,
        covered.in_parts,
        covered.events,
        covered.packets
    );
    for one in &found {
        println!(
            "case {}, {} threads: {}: {}\n{}",
            one.case, one.threads, one.failure.oracle, one.failure.message, one.reduced
        );
    }
    assert!(found.is_empty(), "{} cases break an oracle", found.len());
    // weak cases prove nothing
    assert!(covered.cases > cases * 7 / 10 && covered.kept > cases / 4);
    assert!(covered.in_parts > cases / 100 && covered.packets > 20 * cases);
}
