//! Report of the import of a trace: the file `trace.json` in the folder of the trace. A run repeats
//! the report in its notes, so that readers of a result know which records of the trace were left
//! out or changed.

use crate::scenario::files::find_below;
use eastwest_settings::problem::{shorten, shorten_to};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Name of the file with the report of the import, in the folder of a trace.
pub const FILE: &str = "trace.json";
/// Maximum size in bytes of a report file that is read, as in `python/eastwest/traces/opened.py`.
const MOST_BYTES: u64 = 4 << 20;
/// Maximum number of notes of each kind in a report, as in `python/eastwest/account.py`.
const MOST_NOTES: usize = 41;
/// Maximum length, in characters, of a reason or a consequence in a report.
const MOST_TEXT: usize = 300;

/// Returns the path of the import's report in the folder of a trace, and the notes of the report;
/// `name` is the name of the trace in the notes. Without a report, returns `None` and no notes.
pub fn of_folder(name: &str, folder: &Path) -> (Option<PathBuf>, Vec<String>) {
    let Ok(path) = find_below(folder, FILE) else { return (None, Vec::new()) };
    let read = path
        .metadata()
        .ok()
        .filter(|about| about.is_file() && about.len() <= MOST_BYTES)
        .and_then(|_| std::fs::read(&path).ok());
    let notes = match read.as_deref().and_then(|bytes| serde_json::from_slice(bytes).ok()) {
        Some(about) => said(name, &about),
        None => vec![format!(
            "{}: {FILE} cannot be read, so that it is unknown what the import left out",
            shorten(name)
        )],
    };
    (Some(path), notes)
}

/// Returns the notes in an import's report `about`, given as JSON; `name` is the name of the trace
/// in the notes.
fn said(name: &str, about: &Value) -> Vec<String> {
    let kinds = [("skipped", "left out"), ("changed", "changed"), ("noted", "noted")];
    let mut notes = Vec::new();
    for (key, word) in kinds {
        let entries = about.get(key).and_then(Value::as_array).into_iter().flatten();
        notes.extend(entries.take(MOST_NOTES).filter_map(|entry| {
            let reason = entry.get("reason")?.as_str()?;
            let count = entry.get("count")?.as_u64()?;
            let first = entry.get("first").and_then(|first| first.get(0)).map(place);
            let then = entry.get("consequence").and_then(Value::as_str);
            let then =
                then.map(|then| format!("; {}", shorten_to(then, MOST_TEXT))).unwrap_or_default();
            Some(format!(
                "{}: the import {word} {count} × {}{}{then}",
                shorten(name),
                shorten_to(reason, MOST_TEXT),
                first.unwrap_or_default(),
            ))
        }));
    }
    notes
}

/// Returns the place of the first record of a report entry, as text ` (file:line)`.
fn place(first: &Value) -> String {
    let file = first.get("file").and_then(Value::as_str).unwrap_or_default();
    match first.get("line").and_then(Value::as_u64) {
        Some(line) => format!(" ({}:{line})", shorten(file)),
        None if file.is_empty() => String::new(),
        None => format!(" ({})", shorten(file)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_account_becomes_notes_and_what_is_none_is_passed_over() {
        let about = json!({
            "skipped": [{"reason": "no number", "count": 2, "first": [{"file": "x.tsv", "line": 7}]}],
            "changed": [{"reason": "a \u{1b}[31m group", "count": 1, "consequence": "left out"}],
            "noted": [{"reason": "a file", "count": 1, "first": [{"file": "y", "line": null}]},
                      {"reason": "no count"}, 7],
        });
        let notes = said("t", &about);
        assert_eq!(notes[0], "t: the import left out 2 × no number (x.tsv:7)");
        assert!(notes[1].ends_with("group; left out"), "{}", notes[1]);
        assert!(!notes[1].contains('\u{1b}'));
        assert_eq!(notes[2], "t: the import noted 1 × a file (y)");
        assert_eq!(notes.len(), 3);
        assert!(said("t", &json!({"noted": "x"})).is_empty());
    }
}
