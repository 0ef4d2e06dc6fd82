//! Overrides `--set path=value`. Overrides change the parsed TOML table before the settings are
//! read, so that their values are checked like values of the file. In a path, a member of an array
//! is named by its number, counted from 0, or by the value of its key `name`.

use crate::problem::{Problem, nearest, shorten};
use crate::quantity::literal;
use toml::{Table, Value};

/// Puts `overrides` (path, text of the value) one after the other into the table of a scenario.
/// Returns the problems, and the paths that were set; in these paths, members of arrays are named
/// by their numbers.
pub fn apply(table: &mut Table, overrides: &[(String, String)]) -> (Vec<Problem>, Vec<String>) {
    let (mut problems, mut paths) = (Vec::new(), Vec::new());
    for (path, text) in overrides {
        match set(table, path, literal(text)) {
            Ok(path) => paths.push(path),
            Err((message, hint)) => {
                let (path, value) = (shorten(path), Some(shorten(text)));
                problems.push(Problem { path, line: None, value, message, hint });
            }
        }
    }
    (problems, paths)
}

/// Largest number of names and numbers in the path of an override `--set path=value`; no key of a
/// scenario has a longer path.
const MOST_STEPS: usize = 16;

type Refusal = (String, Option<String>);

fn set(table: &mut Table, path: &str, value: Value) -> Result<String, Refusal> {
    let steps: Vec<&str> = path.split('.').map(str::trim).collect();
    if steps.iter().any(|s| s.is_empty()) || steps.len() > MOST_STEPS {
        return Err((
            "is not a path; write 1 to 16 names joined by dots, such as fabric.queue.limit"
                .to_owned(),
            None,
        ));
    }
    let (mut here, mut rest) = (table, steps.as_slice());
    let mut walked = String::new();
    while let [step, inner @ ..] = rest {
        // A key may itself contain dots, such as a property of Hadoop.
        let dotted = rest.join(".");
        if !inner.is_empty() && here.contains_key(&dotted) {
            here.insert(dotted.clone(), value);
            return Ok(walked + &dotted);
        }
        rest = inner;
        if inner.is_empty() {
            here.insert((*step).to_owned(), value);
            break;
        }
        walked.push_str(&format!("{step}."));
        here = match here.entry(*step).or_insert_with(|| Value::Table(Table::new())) {
            Value::Table(below) => below,
            Value::Array(items) => {
                let (member, inner) = inner.split_first().unwrap_or((&"", &[]));
                rest = inner;
                if inner.is_empty() {
                    return Err((
                        format!(
                            "names a whole entry of {step}; write the path of one of its keys, \
                             such as workload.0.bytes"
                        ),
                        None,
                    ));
                }
                let (number, below) = member_of(items, step, member)?;
                walked.push_str(&format!("{number}."));
                below
            }
            _ => {
                return Err((
                    format!("leads through {step}, which is a value and not a table with keys"),
                    None,
                ));
            }
        };
    }
    Ok(walked + steps.last().unwrap_or(&""))
}

/// Returns the member of an array with the number or the name `member`, and its number. `items` are
/// the members of the array; `array` is the name of the array in messages.
fn member_of<'a>(
    items: &'a mut [Value],
    array: &str,
    member: &str,
) -> Result<(usize, &'a mut Table), Refusal> {
    fn name_of(item: &Value) -> Option<&str> {
        item.get("name").and_then(Value::as_str)
    }
    let index = match member.parse::<usize>() {
        Ok(index) => Some(index),
        Err(_) => items.iter().position(|item| name_of(item) == Some(member)),
    };
    let count = items.len();
    let Some(index) = index else {
        let hint = nearest(member, items.iter().filter_map(name_of))
            .map(|n| format!("{array}.{}", shorten(n)));
        return Err((format!("there is no {array} named {}", shorten(member)), hint));
    };
    match items.get_mut(index) {
        Some(Value::Table(table)) => Ok((index, table)),
        Some(_) => Err((format!("{array}.{index} is not a table"), None)),
        None => Err((
            format!(
                "{array} has no entry with this number: it has {count} entries, counted from 0"
            ),
            None,
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, &str)]) -> (Table, Vec<Problem>) {
        let mut table: Table =
            "[[workload]]\nname = 'bulk'\nbytes = '1 MB'\n[[workload]]\nname = 'pings'"
                .parse()
                .expect("TOML");
        let owned: Vec<(String, String)> =
            pairs.iter().map(|(p, v)| ((*p).to_owned(), (*v).to_owned())).collect();
        let (problems, paths) = apply(&mut table, &owned);
        assert_eq!(problems.len() + paths.len(), pairs.len());
        assert!(!paths.iter().any(|p| p.contains("pings")), "members by number: {paths:?}");
        (table, problems)
    }

    #[test]
    fn members_of_arrays_go_by_number_and_by_name() {
        let (table, problems) = with(&[
            ("workload.0.bytes", "2 MB"),
            ("workload.pings.count", "3"),
            ("tcp.min_rto", "1 ms"),
        ]);
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(table["workload"][0]["bytes"].as_str(), Some("2 MB"));
        assert_eq!(table["workload"][1]["count"].as_integer(), Some(3));
        assert_eq!(table["tcp"]["min_rto"].as_str(), Some("1 ms"));
    }

    #[test]
    fn paths_that_lead_nowhere_are_refused() {
        let (_, problems) = with(&[
            ("workload.bluk.bytes", "1"),
            ("workload.7.bytes", "1"),
            ("workload.0.bytes.x", "1"),
            ("workload.0", "1"),
            ("a..b", "1"),
            ("", "1"),
        ]);
        assert_eq!(problems.len(), 6, "{problems:?}");
        assert_eq!(problems[0].hint.as_deref(), Some("workload.bulk"));
        assert!(problems[1].message.contains("2 entries"));
    }
}
