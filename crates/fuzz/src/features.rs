//! Settings whose values the fuzzer combines in pairs, and the number of times that each pair was
//! tried.
//!
//! An axis is a setting with few values: a choice, true or false, or whether an optional table or
//! list is in the scenario. Its values are called levels. The axes are found in the documentation
//! of all settings: settings of the sections of a scenario, of their entries, and of the tables of
//! `[fabric]` and other single sections. One additional axis is the number of threads.

use eastwest_settings::row::KeyDoc;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// Name of the only level of an optional table or list: the scenario contains it.
pub const GIVEN: &str = "given";

/// Name of the axis for the number of threads, in place of the path of a setting.
pub const THREADS: &str = "threads";

/// Numbers of threads, one of which is chosen for the parallel run of each generated scenario.
pub const THREAD_COUNTS: [usize; 3] = [2, 3, 4];

/// A setting with few values. The fuzzer combines the values of two settings in pairs; it calls the
/// setting an axis and each value a level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Dotted path of the setting, such as `workload.*.kind`, where `*` stands for each entry of a
    /// list; [`THREADS`] for the number of threads.
    pub path: String,
    /// Values of the setting as text; for an optional table or list only [`GIVEN`].
    pub levels: Vec<String>,
}

/// One value of a setting with few values, given by the index of the setting and the index of the
/// value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level {
    /// Index of the setting in [`Features::axes`].
    pub axis: usize,
    /// Index of the value in [`Axis::levels`].
    pub level: usize,
}

/// All axes: the settings with few values, whose values (levels) the fuzzer combines in pairs.
#[derive(Clone, Debug, Default)]
pub struct Features {
    axes: Vec<Axis>,
    /// For each axis the number of its first level, if the levels of all axes are counted from 0
    /// one after another. One further element, the last, is the number of levels of all axes.
    first: Vec<usize>,
}

impl Features {
    /// Returns the axes (settings with few values) among the settings that `rows` documents. The
    /// last axis is the number of threads.
    pub fn of(rows: &[KeyDoc]) -> Features {
        let mut by_path: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for row in rows.iter().filter(|row| is_near_the_top(&row.place)) {
            let levels = by_path.entry(row.path()).or_default();
            for level in levels_of(row) {
                if !levels.contains(&level) {
                    levels.push(level);
                }
            }
        }
        let threads = THREAD_COUNTS.map(|n| n.to_string()).to_vec();
        let axes = by_path.into_iter().filter(|(_, levels)| !levels.is_empty());
        let axes: Vec<Axis> = axes
            .map(|(path, levels)| Axis { path, levels })
            .chain([Axis { path: THREADS.to_owned(), levels: threads }])
            .collect();
        let mut first = vec![0];
        for axis in &axes {
            first.push(first[first.len() - 1] + axis.levels.len());
        }
        Features { axes, first }
    }

    /// Returns the axes (settings with few values) in alphabetical order of their paths; the number
    /// of threads is last.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Returns the number of levels (values of settings) of all axes together.
    pub fn levels(&self) -> usize {
        self.first.last().copied().unwrap_or(0)
    }

    /// Returns the number of a level (value of a setting): the levels of all axes are counted from
    /// 0, axis after axis.
    pub fn number(&self, level: Level) -> usize {
        self.first[level.axis] + level.level
    }

    /// Returns the level (value of a setting) whose number [`Features::number`] is `number`.
    pub fn level(&self, number: usize) -> Level {
        let axis = self.first.partition_point(|first| *first <= number) - 1;
        Level { axis, level: number - self.first[axis] }
    }

    /// Returns a level as text: the path of the setting, such as `workload.*.kind`, and its value.
    pub fn name(&self, level: Level) -> (&str, &str) {
        let axis = &self.axes[level.axis];
        (&axis.path, &axis.levels[level.level])
    }

    /// Returns the levels (values of settings) that a scenario has. Values come from `resolved`,
    /// the scenario with all defaults; a table or list counts as given if `given`, the scenario as
    /// drawn, contains it. `threads` is the number of threads of the scenario's parallel run.
    pub fn of_scenario(&self, given: &Table, resolved: &Table, threads: usize) -> Vec<Level> {
        let mut found = Vec::new();
        for (axis, Axis { path, levels }) in self.axes.iter().enumerate() {
            let steps: Vec<&str> = path.split('.').collect();
            let mut met: Vec<String> = Vec::new();
            if path == THREADS {
                met.push(threads.to_string());
            } else if levels.first().is_some_and(|level| level == GIVEN) {
                visit(&Value::Table(given.clone()), &steps, &mut |_| met.push(GIVEN.to_owned()));
            } else {
                visit(&Value::Table(resolved.clone()), &steps, &mut |value| met.push(bare(value)));
            }
            let is_met = |level: &String| met.contains(level);
            let of_axis = levels.iter().enumerate().filter(|(_, level)| is_met(level));
            found.extend(of_axis.map(|(level, _)| Level { axis, level }));
        }
        found
    }
}

/// Whether `place`, the dotted path of a table of a scenario, is a section (`tcp`), an entry of a
/// list of tables (`workload.*`), or a table in a single section (`fabric.queue`).
fn is_near_the_top(place: &str) -> bool {
    let steps: Vec<&str> = place.split('.').collect();
    !place.contains(": ") && steps.len() <= 2 && !steps[..steps.len() - 1].contains(&"*")
}

fn levels_of(row: &KeyDoc) -> Vec<String> {
    match row.kind_of_value {
        _ if row.required && row.choices.is_empty() => Vec::new(),
        "choice" => row.choices.iter().map(|choice| choice.0.to_owned()).collect(),
        "true or false" => vec!["true".to_owned(), "false".to_owned()],
        "table" | "tables" | "places" => vec![GIVEN.to_owned()],
        _ => Vec::new(),
    }
}

/// Calls `seen` with every value of a scenario at the path `steps`; the step `*` stands for each
/// entry of a list.
fn visit(value: &Value, steps: &[&str], seen: &mut dyn FnMut(&Value)) {
    match (steps, value) {
        ([], value) => seen(value),
        (["*", rest @ ..], Value::Array(items)) => {
            items.iter().for_each(|item| visit(item, rest, seen));
        }
        ([step, rest @ ..], Value::Table(table)) => {
            if let Some(value) = table.get(*step) {
                visit(value, rest, seen);
            }
        }
        _ => {}
    }
}

/// Returns a TOML value as text; strings are written without quotes.
fn bare(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// For each pair of levels (values of two settings): how many checked scenarios had it, and how
/// often no valid scenario with it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pairs {
    levels: usize,
    tried: Vec<u32>,
    refused: Vec<u32>,
}

impl Pairs {
    /// Returns zero counts for all pairs of levels (values of settings), whose number is `levels`.
    pub fn new(levels: usize) -> Pairs {
        let pairs = levels * levels.saturating_sub(1) / 2;
        Pairs { levels, tried: vec![0; pairs], refused: vec![0; pairs] }
    }

    /// Returns the counts of all pairs of levels (values of settings), given as (tried, refused) in
    /// the order of [`Pairs::iter`]. `levels`: number of levels. Fails if the number of counts is
    /// not that of the pairs.
    pub fn from_counts(levels: usize, counts: &[(u32, u32)]) -> Result<Pairs, String> {
        let mut pairs = Pairs::new(levels);
        if counts.len() != pairs.tried.len() {
            let (found, expected) = (counts.len(), pairs.tried.len());
            return Err(format!(
                "the file has counts of {found} pairs of values, but the {levels} values of this \
                 version have {expected} pairs"
            ));
        }
        (pairs.tried, pairs.refused) = counts.iter().copied().unzip();
        Ok(pairs)
    }

    fn place(&self, a: usize, b: usize) -> usize {
        let (low, high) = (a.min(b), a.max(b));
        debug_assert!(low < high && high < self.levels);
        high * (high - 1) / 2 + low
    }

    /// Adds 1 to the trials of every pair of levels that a checked scenario has; `levels` are the
    /// numbers of its levels (values of settings, see [`Features::number`]).
    pub fn count(&mut self, levels: &[usize]) {
        for (i, &a) in levels.iter().enumerate() {
            for &b in &levels[..i] {
                let place = self.place(a, b);
                self.tried[place] = self.tried[place].saturating_add(1);
            }
        }
    }

    /// Counts that no valid scenario with the levels number `a` and `b` (see [`Features::number`])
    /// was found.
    pub fn refuse(&mut self, a: usize, b: usize) {
        let place = self.place(a, b);
        self.refused[place] = self.refused[place].saturating_add(1);
    }

    /// Returns how many checked scenarios had both levels number `a` and `b` (see
    /// [`Features::number`]).
    pub fn tried(&self, a: usize, b: usize) -> u32 {
        self.tried[self.place(a, b)]
    }

    /// Returns how often no valid scenario with the levels number `a` and `b` (see
    /// [`Features::number`]) was found.
    pub fn refused(&self, a: usize, b: usize) -> u32 {
        self.refused[self.place(a, b)]
    }

    /// Adds the counts of other campaigns, `others`, which must have as many levels (values of
    /// settings).
    pub fn add(&mut self, others: &Pairs) {
        let sum = |own: &mut Vec<u32>, theirs: &[u32]| {
            own.iter_mut().zip(theirs).for_each(|(a, b)| *a = a.saturating_add(*b));
        };
        sum(&mut self.tried, &others.tried);
        sum(&mut self.refused, &others.refused);
    }

    /// Yields for every pair of levels (values of settings): the numbers of both levels, the lower
    /// first; how many checked scenarios had the pair; how often no valid scenario with it was
    /// found.
    pub fn iter(&self) -> impl Iterator<Item = ((usize, usize), u32, u32)> {
        let pairs = (0..self.levels).flat_map(|high| (0..high).map(move |low| (low, high)));
        pairs.zip(self.tried.iter().zip(&self.refused)).map(|(pair, (t, r))| (pair, *t, *r))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eastwest_sim::scenario::{Context, rows_with};

    #[test]
    fn axes_are_those_of_the_schema() {
        let features = Features::of(&rows_with(&Context::default()));
        let levels = |path: &str| {
            let axis = features.axes().iter().find(|axis| axis.path == path);
            axis.map_or(Vec::new(), |axis| axis.levels.clone())
        };
        assert!(levels("fabric.scheduler").contains(&"strict-priority".to_owned()));
        assert!(levels("workload.*.kind").contains(&"datagrams".to_owned()));
        assert_eq!(levels("fabric.qcn"), [GIVEN]);
        assert_eq!(levels("measure.capture"), [GIVEN]);
        assert_eq!(levels("tcp.sack"), ["true", "false"]);
        for number in 0..features.levels() {
            assert_eq!(features.number(features.level(number)), number);
        }
    }

    #[test]
    fn a_scenario_has_the_levels_that_its_resolved_text_says() {
        let features = Features::of(&rows_with(&Context::default()));
        let given: Table = "[fabric]\nqcn = {}\n[[workload]]\nkind = 'incast'".parse().unwrap();
        let resolved: Table =
            "[fabric]\nscheduler = 'fifo'\n[[workload]]\nkind = 'incast'\n".parse().unwrap();
        let levels = features.of_scenario(&given, &resolved, 2);
        let names: Vec<_> = levels.iter().map(|level| features.name(*level)).collect();
        for level in
            [("fabric.qcn", GIVEN), ("fabric.scheduler", "fifo"), ("workload.*.kind", "incast")]
        {
            assert!(names.contains(&level), "{level:?}: {names:?}");
        }
        assert!(names.contains(&(THREADS, "2")) && !names.iter().any(|n| n.0 == "tcp"));
    }

    #[test]
    fn pairs_add_up() {
        let mut pairs = Pairs::new(4);
        pairs.count(&[0, 2, 3]);
        pairs.refuse(1, 0);
        let mut sum = pairs.clone();
        sum.add(&pairs);
        assert_eq!((sum.tried(3, 0), sum.tried(1, 2), sum.refused(0, 1)), (2, 0, 2));
        assert_eq!(sum.iter().map(|(_, tried, _)| tried).sum::<u32>(), 6);
    }
}
