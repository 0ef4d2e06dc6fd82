//! Tests of the scripts in this repository: each script passes, and fails if any of its
//! expectations is altered by a segment or 50 ms.

use eastwest_drill::drill;
use std::fs;
use std::path::{Path, PathBuf};

fn scripts(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(scripts(&path));
        } else if path.extension().is_some_and(|e| e == "pkt") {
            all.push(path);
        }
    }
    all.sort();
    all
}

#[test]
fn every_script_passes_and_notices_each_alteration() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let mut wrong = Vec::new();
    for path in scripts(&folder) {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.strip_prefix(&folder).unwrap().display();
        let outcome = drill(&text, None, true);
        match outcome.problem {
            Some(problem) => wrong.push(format!("{name}:{problem}")),
            None if outcome.alterations == 0 => wrong.push(format!("{name}: expects nothing")),
            None => {
                let missed = outcome.unnoticed.iter();
                wrong.extend(missed.map(|u| format!("{name}:{}: unnoticed: {}", u.place, u.what)));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
