//! Reading of a scenario: from text to a checked scenario.

use super::checked::{SCHEMA, Scenario};
use super::files::Context;
use super::top::read_top;
use super::{reference, tcp_overrides};
use eastwest_settings::problem::Problem;
use eastwest_settings::reader::{State, read_table};
use eastwest_settings::{overrides, syntax};

/// Reads a scenario from its text. `overrides` are pairs (path of a setting, value), as in `--set`,
/// which replace values of the text. Returns all problems if there are any.
pub fn read(
    text: &str,
    context: &Context,
    overrides: &[(String, String)],
) -> Result<Scenario, Vec<Problem>> {
    let mut document = syntax::parse(text)?;
    let mut state =
        State { lines: document.lines, schema: Some(reference::rows), ..State::default() };
    if is_newer(&mut state, &document.table) {
        return Err(state.into_problems());
    }
    let (problems, set) = overrides::apply(&mut document.table, overrides);
    state.problems = problems;
    let inherited = tcp_overrides::inherit(&mut document.table);
    // The file does not contain the values of overrides, so messages about these values must not
    // contain a line number.
    for path in set {
        state.lines.remove(&path);
    }
    let (scenario, out) =
        read_table(&mut state, "", Some(&document.table), |top| read_top(top, context));
    tcp_overrides::drop_repeated(&mut state.problems, &inherited);
    if !state.problems.is_empty() {
        return Err(state.into_problems());
    }
    Ok(Scenario { resolved: out.text(), ..scenario })
}

/// Whether the file has a newer format than this program reads. If so, reports this as the only
/// problem, because the rest of the file cannot be checked.
fn is_newer(state: &mut State, table: &toml::Table) -> bool {
    let Some(found) = table.get("schema") else { return false };
    let newer = found.as_integer().is_some_and(|version| version > i64::from(SCHEMA));
    if newer {
        let message = format!(
            "is newer than the format that this Eastwest ({}) reads, which is {SCHEMA}: use a \
             newer version of Eastwest. The rest of the file was not checked",
            env!("CARGO_PKG_VERSION")
        );
        state.problem("schema", Some(found), message, None);
    }
    newer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::WorkloadKind;

    #[test]
    fn s1_is_what_its_specification_says() {
        let text = include_str!("../../../../scenarios/s1.toml");
        let scenario = read(text, &Context::default(), &[]).unwrap_or_else(|p| panic!("{p:#?}"));
        assert_eq!(scenario.tcp.segment, 1448);
        assert_eq!(scenario.classes[0].name, "bulk");
        let WorkloadKind::Stride(stride) = &scenario.workloads[0].kind else {
            panic!("S1 is a stride pattern")
        };
        assert_eq!((stride.stride, stride.count, stride.bytes), (19, 8, 4_000_000));
        assert_eq!(
            scenario.notes,
            ["the leaf–spine is over-subscribed 2:1: the links of the hosts of each leaf have 40 \
              Gbit/s in total, but its uplinks only 20 Gbit/s"]
        );
    }
}
