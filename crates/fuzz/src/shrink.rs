//! Reduction of a scenario that violates an oracle: removes everything that is not needed for the
//! failure, and makes numbers small.

use crate::generate::{Case, Generator, text};
use crate::oracles::{Failure, Reported, Verdict, judge_with};
use eastwest_sim::scenario::read;
use toml::{Table, Value};

/// Largest number of scenarios that are tried to reduce one failing scenario.
const MOST_TRIES: usize = 600;

/// Largest number of scenarios that are tried to reduce one failing scenario with mechanisms of the
/// user, which may be slow.
const MOST_TRIES_OF_OWN: usize = 60;

/// A step of a path in a scenario: the name of a key, or the index of a list entry.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Name(String),
    Entry(usize),
}

/// Returns the smallest scenario found that violates the same oracle as `case`, and its failure.
/// `threads`, `seed` and `fault` are passed to [`judge_with`]. The search is greedy: each change
/// that does not remove the failure is accepted.
pub fn shrink(
    generator: &Generator,
    case: &Case,
    failure: &Failure,
    (threads, seed): (usize, u64),
    fault: &Reported,
) -> (Table, Failure) {
    let context = generator.context(&case.files);
    let (mut best, mut broken) = (case.given.clone(), failure.clone());
    let has_own = !context.mechanisms.names().is_empty();
    let most_tries = if has_own { MOST_TRIES_OF_OWN } else { MOST_TRIES };
    let mut tries = 0;
    let mut breaks = |given: &Table| -> Option<Failure> {
        tries += 1;
        if tries > most_tries {
            return None;
        }
        let scenario = read(&text(given), &context, &[]).ok()?;
        let smaller = Case { given: given.clone(), files: case.files.clone(), scenario };
        match judge_with(&smaller, &context, (threads, seed), fault) {
            Verdict::Fails(other) if other.oracle == failure.oracle => Some(other),
            _ => None,
        }
    };
    loop {
        let mut changed = false;
        for path in paths(&best) {
            let mut smaller = best.clone();
            if remove(&mut smaller, &path)
                && let Some(other) = breaks(&smaller)
            {
                (best, broken, changed) = (smaller, other, true);
                break;
            }
        }
        if changed {
            continue;
        }
        for path in paths(&best) {
            for simpler in simpler(value_at(&best, &path)) {
                let mut smaller = best.clone();
                if let Some(value) = value_at_mut(&mut smaller, &path) {
                    *value = simpler;
                }
                if let Some(other) = breaks(&smaller) {
                    (best, broken, changed) = (smaller, other, true);
                    break;
                }
            }
        }
        if !changed {
            return (best, broken);
        }
    }
}

/// Returns the paths of all values of a scenario; a table or list comes before the values in it.
fn paths(given: &Table) -> Vec<Vec<Step>> {
    let mut found = Vec::new();
    for (name, value) in given {
        below(value, vec![Step::Name(name.clone())], &mut found);
    }
    found.sort_by_key(Vec::len);
    found
}

fn below(value: &Value, path: Vec<Step>, found: &mut Vec<Vec<Step>>) {
    let deeper = |step| [path.clone(), vec![step]].concat();
    match value {
        Value::Table(table) => {
            for (name, value) in table {
                below(value, deeper(Step::Name(name.clone())), found);
            }
        }
        Value::Array(items) => {
            for (place, value) in items.iter().enumerate() {
                below(value, deeper(Step::Entry(place)), found);
            }
        }
        _ => {}
    }
    found.push(path);
}

fn value_at<'t>(given: &'t Table, path: &[Step]) -> Option<&'t Value> {
    let (Step::Name(first), rest) = path.split_first()? else { return None };
    rest.iter().try_fold(given.get(first)?, |value, step| match step {
        Step::Name(name) => value.get(name),
        Step::Entry(place) => value.get(*place),
    })
}

fn value_at_mut<'t>(given: &'t mut Table, path: &[Step]) -> Option<&'t mut Value> {
    let (Step::Name(first), rest) = path.split_first()? else { return None };
    rest.iter().try_fold(given.get_mut(first)?, |value, step| match step {
        Step::Name(name) => value.get_mut(name),
        Step::Entry(place) => value.get_mut(*place),
    })
}

/// Removes the value at a path of a scenario; returns false if there is none, or if it is the only
/// entry of a list.
fn remove(given: &mut Table, path: &[Step]) -> bool {
    match path {
        [Step::Name(name)] => given.remove(name).is_some(),
        [above @ .., last] => match (value_at_mut(given, above), last) {
            (Some(Value::Table(table)), Step::Name(name)) => table.remove(name).is_some(),
            (Some(Value::Array(items)), Step::Entry(place)) if items.len() > 1 => {
                items.remove(*place);
                true
            }
            _ => false,
        },
        [] => false,
    }
}

/// Returns smaller values that may have the same effect, for an integer or a number with a unit.
fn simpler(value: Option<&Value>) -> Vec<Value> {
    match value {
        Some(Value::Integer(n)) => {
            let fewer = [1, 2, n / 4, n / 2, n - 1];
            let fewer = fewer.into_iter().filter(|m| m < n && *m >= 0);
            fewer.map(Value::Integer).collect()
        }
        Some(Value::String(text)) => {
            // text that consists of a number and a unit
            let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
            let Ok(number) = number.parse::<f64>() else { return Vec::new() };
            let whole = |n: f64| Value::String(format!("{} {unit}", n.round()).trim().to_owned());
            [1.0, number / 10.0, number / 2.0]
                .into_iter()
                .filter(|n| n.round() < number && n.round() >= 1.0)
                .map(whole)
                .collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_can_be_removed_or_made_smaller() {
        let given: Table = "a = 9\n[b]\nc = '10 us'\n[[d]]\ne = 1\n[[d]]\nf = 2".parse().unwrap();
        let all = paths(&given);
        assert_eq!(all.len(), 8);
        let mut removed = 0;
        for path in &all {
            removed += usize::from(remove(&mut given.clone(), path));
        }
        assert_eq!(removed, 8);
        let c = [Step::Name("b".into()), Step::Name("c".into())];
        let values = simpler(value_at(&given, &c));
        assert_eq!(values, ["1 us", "1 us", "5 us"].map(|v| Value::String(v.into())));
        assert!(!remove(&mut given.clone(), &[Step::Name("z".into())]));
    }
}
