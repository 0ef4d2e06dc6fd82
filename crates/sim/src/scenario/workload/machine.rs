//! The key `machine`: a separate file with rates and delays of a machine, as `eastwest calibrate`
//! writes it.
//!
//! The file is TOML with the tables of a MapReduce workload (`[costs]`, `[control]` …). Its values
//! are presets: defaults for the keys that the workload does not contain. Hadoop properties have
//! priority over the file. The table `[calibration]` describes the source of the values and is
//! ignored.

use super::ground::Ground;
use crate::scenario::files::Files;
use eastwest_settings::narrow::at_most;
use eastwest_settings::problem::shorten;
use eastwest_settings::quantity::{FileName, Quantity};
use eastwest_settings::reader::{Section, key};
use eastwest_settings::syntax;
use toml::Value;

/// Maximum size of a machine file in bytes.
const MOST_BYTES: u64 = 64 << 10;
/// Name of the table of a machine file that describes the source of the values; this table is
/// ignored.
const REMARKS: &str = "calibration";

/// Reads the key `machine`. The values in the machine file become presets (defaults) of the keys of
/// the workload `s` that the scenario does not contain.
pub fn read(s: &mut Section, ground: &Ground, files: &mut Files) {
    let file: Option<FileName> = s.find(
        key(
            "machine",
            "Profile of a machine, written by eastwest calibrate. Its values set those keys of \
             this workload that the scenario does not give.",
        )
        .optional("none"),
    );
    let Some(FileName(name)) = file else { return };
    let loaded = files.load(ground.context, &name, MOST_BYTES).and_then(|attached| {
        let text = std::str::from_utf8(&attached.bytes).map_err(|_| "is not UTF-8".to_owned())?;
        let document = syntax::parse_within(text, at_most(MOST_BYTES))
            .map_err(|problems| problems.first().map(ToString::to_string).unwrap_or_default())?;
        Ok((attached.name, document.table))
    });
    match loaded {
        Ok((attached, tables)) => {
            s.resolve_as("machine", FileName(attached).show());
            let base = name.rsplit('/').next().unwrap_or(&name);
            for (table, content) in tables.into_iter().filter(|(table, _)| table != REMARKS) {
                let Value::Table(values) = content else {
                    let message = format!(
                        "has the key {} outside of its tables, where no key is allowed",
                        shorten(&table)
                    );
                    s.wrong("machine", message);
                    continue;
                };
                for (key, value) in values {
                    s.preset_below(&format!("{table}.{key}"), value, shorten(base));
                }
            }
        }
        Err(message) => s.wrong("machine", message),
    }
}
