//! The schema of scenario files (all keys with types, defaults and ranges), as rows, as JSON and as
//! the reference page.

use super::checked::SCHEMA;
use super::files::Context;
use super::top::read_top;
use eastwest_settings::describe;
use eastwest_settings::row::{KeyDoc, row_json};
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::OnceLock;

/// Returns all rows of the schema, one for each setting, in the order of reading.
pub fn rows() -> &'static [KeyDoc] {
    static ROWS: OnceLock<Vec<KeyDoc>> = OnceLock::new();
    ROWS.get_or_init(|| rows_with(&Context::default()))
}

/// Returns all rows of the schema, one for each setting, in the order of reading. The choices
/// include the mechanisms of `context`.
pub fn rows_with(context: &Context) -> Vec<KeyDoc> {
    describe::rows(|top| {
        read_top(top, context);
    })
}

/// Returns the schema of scenarios as JSON: one object per setting, with its path, type, default,
/// range and meaning.
pub fn schema() -> Value {
    let keys: Vec<Value> = rows().iter().map(row_json).collect();
    json!({ "schema": SCHEMA, "keys": keys })
}

const INTRODUCTION: &str = r#"# Scenario files

*Generated from the code that reads them (`crates/sim/src/scenario`): `eastwest schema` prints the
same as JSON. To change this page, change the code and run the tests with `EASTWEST_WRITE_DOCS=1`.*

A scenario is a TOML file. Every value carries its unit; everything that has a default may be left
out, and the file `scenario.toml` of a result folder spells all of it out. `eastwest check FILE.toml`
lists all problems of a file at once; `--set path=value` replaces one value, such as
`--set fabric.queue.limit="64 KB"` or, in arrays, `--set workload.0.bytes="1 MB"` (by number) and
`--set workload.bulk.bytes="1 MB"` (by name).

| type | how it is written |
|---|---|
| time | `"5 us"`, `"200 ms"`, `"1.5 s"`; also `ps`, `ns`, `min`, `h`; at most 20 days |
| rate | `"10 Gbit/s"` (10⁹; also `Gbps`), `Mbit/s`, `kbit/s`, `bit/s` |
| byte rate | of disks and computing: `"100 MB/s"`, `GB/s`, `KB/s`, `B/s` |
| size | `"64 KB"` (10³), `"64 KiB"` (2¹⁰), `MB`, `MiB`, `GB`, `GiB`, `TB`, `TiB`, `B` |
| bytes | bytes of a packet: `1500` or `"1500 B"` |
| packets or size | room of a queue: `"200 packets"` or a size |
| share | `0.4` or `"40 %"` |
| count, whole number | `8` |
| number | `1.5` |
| name | letters, digits, `-`, `_` and `.`, at most 64 |
| hosts | one name, or a list of names and ranges: `"h0"`, `["h0", "h4..h7"]` (both ends included) |
| sizes | a size, or the name of a distribution |
| places | hosts, ports and cables, one or a list: `"h0"`, `["leaf0->h3", "h1--leaf0"]`; `"*"` for all |
| list of … | in brackets: `[3, 4]`, `["leaf0", "spine1"]`; of points: `[["1 KB", 0], ["1 MB", 1]]` |
| file | a path below the directory of the scenario |
| goals | the table `[goal]`: `"service.exchange_us.p99" = "< 1 ms"` (also `<=`, `>`, `>=`), `"hadoop.runtime_s.mean" = "minimal"` or `"maximal"` ([guide](../guide/goals.md)) |
"#;

/// Returns the reference page of all settings, in Markdown.
pub fn reference_page() -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut places: Vec<&str> = Vec::new();
    for row in rows() {
        if !places.contains(&row.place.as_str()) {
            places.push(&row.place);
        }
    }
    for place in places {
        let keys: Vec<&KeyDoc> = rows().iter().filter(|r| r.place == place).collect();
        write_place(&mut page, place, &keys);
    }
    page
}

fn write_place(page: &mut String, place: &str, keys: &[&KeyDoc]) {
    let above = rows().iter().find(|r| {
        r.path() == place.strip_suffix(".*").unwrap_or(place)
            && r.kind_of_value.starts_with("table")
    });
    // The path of a section in another file is the file, a colon and the section.
    let (file, section) = match place.rsplit_once(": ") {
        Some((file, section)) => (format!("{file}: "), section),
        None => (String::new(), place),
    };
    let heading = match section.strip_suffix(".*") {
        Some(array) => format!("{file}`[[{}]]`", array.replace(".*", "")),
        None if !section.is_empty() => format!("{file}`[{}]`", section.replace(".*", "")),
        None => format!("{file}top of the file"),
    };
    let _ = writeln!(page, "\n## {heading}\n");
    if let Some(row) = above {
        let _ = writeln!(page, "{}{}\n", row.doc, only_for(row));
    }
    let values = || keys.iter().copied().filter(|r| !r.kind_of_value.starts_with("table"));
    write_rows(page, values().filter(|r| r.kinds.is_empty()));
    for row in keys.iter().filter(|r| !r.choices.is_empty()) {
        let _ = writeln!(page, "\nChoices of `{}`:\n", row.name);
        for (name, doc) in &row.choices {
            let _ = writeln!(page, "- `{name}`: {doc}");
        }
    }
    let switch = keys.iter().find(|r| r.name == "kind");
    for (kind, _) in switch.into_iter().flat_map(|r| &r.choices) {
        let mut rows = values().filter(|r| r.kinds.contains(kind)).peekable();
        if rows.peek().is_some() {
            let _ = writeln!(page, "\nWith `kind = \"{kind}\"`:\n");
            write_rows(page, rows);
        }
    }
}

fn write_rows<'a>(page: &mut String, rows: impl Iterator<Item = &'a KeyDoc>) {
    let _ = writeln!(page, "| key | type | default | allowed | meaning |\n|---|---|---|---|---|");
    for row in rows {
        let default = match (&row.default, row.absent) {
            _ if row.required => "*required*".to_owned(),
            (Some(text), _) if text.starts_with("auto: ") => text.clone(),
            (Some(text), _) => format!("`{text}`"),
            (None, Some(said)) => format!("*absent*: {said}"),
            (None, None) => String::new(),
        };
        let allowed = match row.range {
            Some((low, high)) if low == high => low.to_owned(),
            Some((low, high)) => format!("{low} to {high}"),
            None => {
                row.choices.iter().map(|(n, _)| format!("`{n}`")).collect::<Vec<_>>().join(", ")
            }
        };
        let (name, kind, doc) = (row.name, row.kind_of_value, row.doc.replace('|', "\\|"));
        let _ = writeln!(page, "| `{name}` | {kind} | {default} | {allowed} | {doc} |");
    }
}

fn only_for(row: &KeyDoc) -> String {
    if row.kinds.is_empty() { String::new() } else { format!(" *(kind {})*", row.kinds.join(", ")) }
}
