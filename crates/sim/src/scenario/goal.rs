//! The key `goal`: the values that measures in the results of a run should reach.
//!
//! Goals do not change a run. The simulator checks only the form of goals, and writes them into the
//! scenario text with all defaults. The Python package compares goals with results
//! (`python/eastwest/goals`).

use eastwest_settings::problem::{nearest, shorten};
use eastwest_settings::quantity::{Quantity, instead};
use eastwest_settings::reader::{Section, key};
use std::collections::BTreeMap;
use toml::{Table, Value};

/// Maximum number of goals of a scenario.
const MOST_GOALS: usize = 16;
/// Maximum length of the name of a measure in bytes.
const LONGEST_MEASURE: usize = 200;
/// Maximum length of the value of a goal in bytes.
const LONGEST_VALUE: usize = 60;
/// Values of a goal without a limit: the measure should be as small, or as large, as possible.
const EXTREMES: [&str; 2] = ["minimal", "maximal"];
const FORM: &str = "write a limit such as \"< 1 ms\" (with <, <=, > or >=), \"minimal\" or \
                    \"maximal\"";

/// Goals of a scenario: wanted value (such as `< 1 ms`) by the name of the measure.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct Goals(BTreeMap<String, String>);

impl Goals {
    /// Adds the goals in a TOML table. The name of a measure in nested tables is joined by dots,
    /// after the prefix `before`.
    fn collect(&mut self, table: &Table, before: &str) -> Result<(), String> {
        for (name, value) in table {
            let name = format!("{before}{name}");
            match value {
                Value::String(text) if self.0.len() < MOST_GOALS => {
                    self.0.insert(name, text.clone());
                }
                Value::String(_) => return Err(format!("has more than {MOST_GOALS} goals")),
                Value::Table(inner) => self.collect(inner, &format!("{name}."))?,
                other => return Err(format!("{} {}; {FORM}", shorten(&name), instead(other))),
            }
        }
        Ok(())
    }
}

impl Quantity for Goals {
    const TYPE: &'static str = "goals";
    fn parse(value: &Value) -> Result<Goals, String> {
        const TABLE: &str = "write { \"service.exchange_us.p99\" = \"< 1 ms\" }";
        let table = value.as_table().ok_or_else(|| format!("{}; {TABLE}", instead(value)))?;
        let mut found = Goals::default();
        found.collect(table, "").map(|()| found)
    }
    fn show(&self) -> String {
        let quoted = |text: &String| Value::String(text.clone()).to_string();
        let goals: Vec<String> = self
            .0
            .iter()
            .map(|(m, wanted)| format!("{} = {}", quoted(m), quoted(wanted)))
            .collect();
        format!("{{ {} }}", goals.join(", "))
    }
    fn placeholder() -> Goals {
        Goals::default()
    }
}

/// Returns a message about the problem of the value of a goal, which must be a limit, `minimal` or
/// `maximal`; `None` if the value is correct.
fn objection(wanted: &str) -> Option<String> {
    let wanted = wanted.trim();
    if EXTREMES.contains(&wanted) {
        return None;
    }
    let limit = ["<=", ">=", "<", ">"].iter().find_map(|sign| wanted.strip_prefix(sign));
    let Some(limit) = limit.map(str::trim) else { return Some(format!("is not a goal; {FORM}")) };
    let in_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+');
    let split = limit.find(|c: char| !in_number(c)).unwrap_or(limit.len());
    let (number, unit) = (&limit[..split], limit[split..].trim());
    if number.parse::<f64>().is_err()
        || unit.contains(|c: char| c.is_whitespace() || c.is_control())
    {
        return Some(format!("has no number after <, <=, > or >=; {FORM}"));
    }
    None
}

/// Reads the key `goal`. If there are no goals, also with an empty table, the scenario text with
/// all defaults does not contain the key.
pub fn read(s: &mut Section) {
    let goals = s.find(
        key::<Goals>(
            "goal",
            "Values that measures of a run should have: a limit (`\"< 1 ms\"`), `\"minimal\"` or \
             `\"maximal\"` for each. Reports and sweeps show which settings meet them. A run does \
             not depend on them.",
        )
        .optional("no goals"),
    );
    let Some(Goals(goals)) = goals else { return };
    if goals.is_empty() {
        s.resolve_without("goal");
    }
    for (measure, wanted) in &goals {
        if measure.trim().is_empty() || measure.len() > LONGEST_MEASURE {
            let message =
                format!("has a measure whose name is empty or longer than {LONGEST_MEASURE} bytes");
            s.wrong_below("goal", measure, message, None);
        } else if wanted.len() > LONGEST_VALUE {
            let message = format!("is longer than {LONGEST_VALUE} bytes; {FORM}");
            s.wrong_below("goal", measure, message, None);
        } else if let Some(message) = objection(wanted) {
            let hint = nearest(wanted, EXTREMES).map(str::to_owned);
            s.wrong_below("goal", measure, message, hint);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_and_extremes_are_goals() {
        for good in ["< 1 ms", "<=1ms", "> 9.4 Gbit/s", ">= 0", "< -1.5", "minimal", " maximal "] {
            assert_eq!(objection(good), None, "{good}");
        }
        for bad in ["", "1 ms", "= 1 ms", "<", "< ms", "< 1 m s", "< 1.2.3 s", "lowest", "< nan"] {
            assert!(objection(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn nested_names_are_joined() {
        let table: Table = "'a.b' = '< 1'\nc.d.e = 'minimal'".parse().expect("TOML");
        let goals = Goals::parse(&Value::Table(table)).expect("goals");
        assert_eq!(goals.show(), "{ \"a.b\" = \"< 1\", \"c.d.e\" = \"minimal\" }");
    }
}
