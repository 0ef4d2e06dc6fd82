//! Generator of scenarios: draws whole scenarios from the documentation of all settings (types,
//! ranges, choices), and repairs them until the reader accepts them.
//!
//! A scenario is drawn section by section. The reader then reports every problem with its path. The
//! value at this path is drawn again, removed, or added if it is required, until no problem is
//! left. So the generator needs no knowledge of the dependencies between settings.
//!
//! The fabric is drawn first, because other settings name its nodes and cables.

use crate::draw::{self, Names};
use crate::features::GIVEN;
use crate::sources::{self, Files};
use eastwest_engine::interrupt::{Stopped, watched};
use eastwest_engine::random::Stream;
use eastwest_network::topology::Graph;
use eastwest_settings::problem::Problem;
use eastwest_settings::row::KeyDoc;
use eastwest_sim::scenario::{Context, Scenario, read, rows_with};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Deref;
use toml::{Table, Value};

/// Maximum number of rounds in which a scenario is read and changed; after them the generator gives
/// the scenario up.
const MOST_ROUNDS: usize = 60;

/// Maximum number of nodes of a generated fabric; larger fabrics find no more failures.
const MOST_NODES: usize = 60;

/// Probability that a scenario contains an optional section, to which the probability of an
/// optional setting is added.
const SECTIONS: f64 = 0.1;

/// Minimum number of hosts of a generated fabric; with fewer hosts hardly any traffic is possible.
const LEAST_HOSTS: u32 = 3;

/// Requested value of a setting: a value that a generated scenario should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Dotted path of the setting, such as `workload.*.kind`; `*` stands for any entry of a list.
    pub path: String,
    /// Requested value as text; [`GIVEN`] for a table or a list that the scenario should contain.
    pub level: String,
    /// Whether the scenario must have this value. If true, the generator does not change the value
    /// when it repairs the scenario, and finds no scenario if none with this value is valid. If
    /// false, the generator may change the value.
    pub is_firm: bool,
}

impl Wish {
    /// Returns the request for the value `level` of the setting `path`, which the scenario must
    /// have.
    pub fn firm(path: &str, level: &str) -> Wish {
        Wish { path: path.to_owned(), level: level.to_owned(), is_firm: true }
    }
}

/// A generated scenario that the reader accepts.
pub struct Case {
    /// The scenario as drawn by the generator, as a TOML table without defaults.
    pub given: Table,
    /// Content of the files that the scenario may name, by file name.
    pub files: Files,
    /// The scenario as the reader returns it, with all defaults.
    pub scenario: Scenario,
}

/// Reason why no valid scenario was found: the last problem that the reader of scenarios reported.
pub type Refusal = String;

/// The documentation of one key of a scenario, and its path (such as `workload.*.kind`), computed
/// once because it is used very often.
struct Row {
    doc: KeyDoc,
    path: String,
}

impl Deref for Row {
    type Target = KeyDoc;

    fn deref(&self) -> &KeyDoc {
        &self.doc
    }
}

thread_local! {
    static LAST_READ: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Returns the scenario that this thread has passed last to the reader of scenarios, as TOML. If
/// the reader has panicked, for example in a mechanism of the user, this scenario caused the panic.
pub fn last_read() -> String {
    LAST_READ.with(|last| last.borrow().clone())
}

/// Generator of random valid scenarios from the documentation of all settings: their types, ranges,
/// defaults and choices.
pub struct Generator {
    rows: BTreeMap<String, Vec<Row>>,
    context: Context,
}

/// Input of the functions that draw one section of a scenario at random: the random numbers, the
/// names (of nodes, cables, classes, workloads and files) to which values can refer, and the
/// requested values.
struct Hand<'a> {
    random: &'a mut Stream,
    names: &'a Names,
    wishes: &'a [Wish],
    /// Whether the settings that determine the nodes and cables of the fabric must not change,
    /// because other settings already refer to their names.
    shaped: bool,
    /// Probability that the scenario contains an optional setting which is not requested.
    density: f64,
}

impl Hand<'_> {
    /// Whether the setting `row` must not change because it determines the nodes and cables of the
    /// fabric, to whose names other settings already refer.
    fn keeps(&self, row: &Row) -> bool {
        self.shaped && row.place == "fabric" && (row.name == "kind" || !row.kinds.is_empty())
    }

    /// Returns the requested values that the scenario must have.
    fn firm(&self) -> impl Iterator<Item = &Wish> {
        self.wishes.iter().filter(|wish| wish.is_firm)
    }
}

impl Generator {
    /// Returns a generator of scenarios, which also name the mechanisms of `context`. Generated
    /// scenarios have no goals, since goals have no effect on a run.
    pub fn new(context: Context) -> Generator {
        let mut rows: BTreeMap<String, Vec<Row>> = BTreeMap::new();
        for doc in rows_with(&context).into_iter().filter(|doc| doc.kind_of_value != "goals") {
            let path = doc.path();
            rows.entry(doc.place.clone()).or_default().push(Row { doc, path });
        }
        Generator { rows, context }
    }

    /// Returns the documentation of all settings, one element for each setting.
    pub fn rows(&self) -> Vec<KeyDoc> {
        self.rows.values().flatten().map(|row| row.doc.clone()).collect()
    }

    /// Returns the context for reading a scenario that may name the files in `files`.
    pub fn context(&self, files: &Files) -> Context {
        let mut context = self.context.clone();
        let bytes = files.iter().map(|(name, text)| (name.clone(), text.as_bytes().into()));
        context.files.extend(bytes);
        context
    }

    /// Draws a random scenario with the requested values `wishes`, and repairs it until the reader
    /// accepts it. It may lack requested values that are not firm. Returns the last problem of the
    /// reader if no valid scenario is found.
    pub fn case(&self, random: &mut Stream, wishes: &[Wish]) -> Result<Case, Refusal> {
        let density = [0.02, 0.05, 0.1, 0.2][random.below(4) as usize];
        let (fabric, mut files, mut names) = self.fabric(random, wishes, density)?;
        files.extend(sources::files(&names));
        names.files = sources::listed(&files);
        let mut hand = Hand { random, names: &names, wishes, shaped: true, density };
        let mut given = self.section("", &mut hand);
        given.insert("fabric".to_owned(), Value::Table(self.named(fabric, &mut hand)));
        given.insert("duration".to_owned(), duration(&given, hand.random));
        let scenario = self.repair(&mut given, &files, &mut hand)?;
        Ok(Case { given, files, scenario })
    }

    /// Adds to a fabric its lists of tables (such as faults) for which values are requested. They
    /// are drawn after the nodes and cables because their entries name these.
    fn named(&self, mut fabric: Table, hand: &mut Hand) -> Table {
        let rows = self.rows_at("fabric").iter().filter(|row| row.kind_of_value == "tables");
        for row in rows {
            if hand.wishes.iter().any(|wish| is_on(&wish.path, &row.path)) {
                let entries = self.entries(&format!("{}.*", row.path), 1, hand);
                fabric.insert(row.name.to_owned(), entries);
            }
        }
        fabric
    }

    /// Draws a small fabric that has the requested values. Returns its section of the scenario, its
    /// topology file, and the names of its nodes and cables. `density`: probability of an optional
    /// setting.
    fn fabric(
        &self,
        random: &mut Stream,
        wishes: &[Wish],
        density: f64,
    ) -> Result<(Table, Files, Names), Refusal> {
        let files = Files::from([("graph.toml".to_owned(), sources::graph(random))]);
        let mut refusal = format!(
            "no drawn fabric has at least {LEAST_HOSTS} hosts and at most {MOST_NODES} nodes"
        );
        // entries of lists name nodes, which do not exist before the fabric is drawn
        let is_later = |wish: &&Wish| {
            let mut rows = self.rows_at("fabric").iter();
            rows.any(|row| row.kind_of_value == "tables" && is_on(&wish.path, &row.path))
        };
        let wishes: Vec<Wish> = wishes.iter().filter(|wish| !is_later(wish)).cloned().collect();
        for _ in 0..12 {
            let mut names = Names { files: sources::listed(&files), ..Names::default() };
            names.files.retain(|name| files.contains_key(name));
            let mut hand = Hand { random, names: &names, wishes: &wishes, shaped: false, density };
            let fabric = self.section("fabric", &mut hand);
            let alone =
                "schema = 1\n[[workload]]\nname = 'w'\nkind = 'permutation'\nbytes = '1 KB'";
            let mut given: Table = alone.parse().unwrap_or_default();
            given.insert("fabric".to_owned(), Value::Table(fabric));
            let scenario = match self.repair(&mut given, &files, &mut hand) {
                Ok(scenario) => scenario,
                Err(why) => {
                    refusal = why;
                    continue;
                }
            };
            let graph = Graph::build(&scenario.fabric.topology);
            if graph.names.len() > MOST_NODES || graph.hosts < LEAST_HOSTS {
                continue;
            }
            let Some(Value::Table(fabric)) = given.remove("fabric") else { continue };
            return Ok((fabric, files, names_of(&graph)));
        }
        Err(refusal)
    }

    fn rows_at(&self, place: &str) -> &[Row] {
        self.rows.get(place).map_or(&[], Vec::as_slice)
    }

    /// Draws a section or table of the scenario; `place` is its dotted path, such as `workload.*`
    /// for an entry of the list of workloads.
    fn section(&self, place: &str, hand: &mut Hand) -> Table {
        let mut table = Table::new();
        let kind = self.kind(place, hand);
        for row in self.rows_at(place) {
            let fits =
                row.kinds.is_empty() || kind.as_deref().is_some_and(|k| row.kinds.contains(&k));
            if row.name == "kind" || !fits {
                continue;
            }
            if let Some(value) = self.setting(row, hand) {
                table.insert(row.name.to_owned(), value);
            }
        }
        if let Some(kind) = kind {
            table.insert("kind".to_owned(), Value::String(kind));
        }
        table
    }

    /// Chooses the setting `kind` of a section. Prefers kinds which allow all requested values of
    /// the section; then kinds which allow those that the scenario must have; then any kind.
    fn kind(&self, place: &str, hand: &mut Hand) -> Option<String> {
        let row = self.rows_at(place).iter().find(|row| row.name == "kind")?;
        let firm: Vec<Wish> = hand.firm().cloned().collect();
        let mut able = self.kinds_with(row, hand.wishes);
        if able.is_empty() {
            able = self.kinds_with(row, &firm);
        }
        if able.is_empty() {
            able = row.choices.iter().map(|choice| choice.0).collect();
        }
        Some(able[hand.random.below(able.len() as u64) as usize].to_owned())
    }

    /// Returns the kinds of a section that allow all of its settings for which `wishes` requests
    /// values. `row` documents the setting `kind` of this section.
    fn kinds_with(&self, row: &Row, wishes: &[Wish]) -> Vec<&'static str> {
        let grants = |kind: &str, wish: &Wish| {
            if wish.path == row.path {
                return wish.level == kind;
            }
            let same = self.rows_at(&row.place).iter().filter(|r| is_on(&wish.path, &r.path));
            let mut same = same.peekable();
            let allows = |r: &Row| {
                let is_above = wish.path != r.path || r.choices.is_empty();
                is_above || r.choices.iter().any(|choice| choice.0 == wish.level)
            };
            let is_in = |r: &Row| r.kinds.is_empty() || r.kinds.contains(&kind);
            same.peek().is_none() || same.any(|r| is_in(r) && allows(r))
        };
        let here = || wishes.iter().filter(|wish| is_on(&wish.path, &row.place));
        let kinds = row.choices.iter().map(|choice| choice.0);
        kinds.filter(|kind| here().all(|wish| grants(kind, wish))).collect()
    }

    /// Draws the value of the setting that `row` documents; `None` if this scenario does not
    /// contain the setting.
    fn setting(&self, row: &Row, hand: &mut Hand) -> Option<Value> {
        let path = &row.path;
        let wish = hand.wishes.iter().find(|wish| wish.path == *path);
        let wished_below = hand.wishes.iter().any(|wish| is_on(&wish.path, path));
        let chance = hand.random.unit();
        match row.kind_of_value {
            "table" => (wished_below || chance < SECTIONS + hand.density)
                .then(|| Value::Table(self.section(path, hand))),
            "tables" => {
                let few = u64::from(chance < SECTIONS + 2.0 * hand.density || wished_below);
                // a scenario needs at least one workload
                let least = u64::from(row.place.is_empty() && row.name == "workload");
                let count = few.max(least) + least * hand.random.below(3);
                (count > 0).then(|| self.entries(&format!("{path}.*"), count, hand))
            }
            _ => match wish {
                Some(wish) if wish.level != GIVEN => Some(level_value(row, &wish.level)),
                Some(_) => draw::value(row, hand.random, hand.names),
                None if row.required || chance < hand.density => {
                    draw::value(row, hand.random, hand.names)
                }
                None => None,
            },
        }
    }

    /// Draws the entries of a list of tables, at least `count`: one entry for each group of
    /// requested values that one entry can have together, and further entries without requested
    /// values.
    fn entries(&self, place: &str, count: u64, hand: &mut Hand) -> Value {
        let kind = self.rows_at(place).iter().find(|row| row.name == "kind");
        let mut groups: Vec<Vec<Wish>> = Vec::new();
        for wish in hand.wishes.iter().filter(|wish| is_on(&wish.path, place)) {
            let fits = |group: &&mut Vec<Wish>| {
                let mut together = (*group).clone();
                together.push(wish.clone());
                let twice = group.iter().any(|other| other.path == wish.path);
                !twice && kind.is_none_or(|row| !self.kinds_with(row, &together).is_empty())
            };
            match groups.iter_mut().find(fits) {
                Some(group) => group.push(wish.clone()),
                None => groups.push(vec![wish.clone()]),
            }
        }
        groups.resize(groups.len().max(count as usize), Vec::new());
        let mut entries = Vec::new();
        for group in &groups {
            let Hand { ref mut random, names, shaped, density, .. } = *hand;
            let mut own = Hand { random, names, wishes: group, shaped, density };
            entries.push(Value::Table(self.section(place, &mut own)));
        }
        Value::Array(entries)
    }

    /// Reads a scenario and changes the values that the reader refuses, until the reader accepts
    /// the scenario.
    fn repair(
        &self,
        given: &mut Table,
        files: &Files,
        hand: &mut Hand,
    ) -> Result<Scenario, Refusal> {
        let context = self.context(files);
        let mut last = String::new();
        for round in 0..MOST_ROUNDS {
            // a scenario that takes long to read is too large: the check for interruption, which
            // comes every some thousand steps, stops the reader
            let written = text(given);
            LAST_READ.with(|last| last.borrow_mut().clone_from(&written));
            let problems = match watched(|| false, || read(&written, &context, &[])) {
                Ok(Ok(scenario)) => return Ok(scenario),
                Ok(Err(problems)) => problems,
                Err(Stopped) => {
                    return Err(
                        "the scenario takes too long to read, since its fabric is too large"
                            .to_owned(),
                    );
                }
            };
            for problem in problems.iter().take(4) {
                last = problem.to_string();
                self.mend(given, problem, round, hand);
            }
        }
        Err(last)
    }

    /// Changes or removes the value to which a problem reported by the reader of scenarios refers.
    /// `round`: number of earlier rounds of repair.
    fn mend(&self, given: &mut Table, problem: &Problem, round: usize, hand: &mut Hand) {
        let steps: Vec<&str> = problem.path.split('.').filter(|step| !step.is_empty()).collect();
        let (depth, place) = deepest(given, &steps);
        let Some(table) = table_at(given, &steps[..depth]) else { return };
        let kind = table.get("kind").and_then(Value::as_str).map(str::to_owned);
        let fits = |row: &&Row| {
            row.kinds.is_empty() || kind.as_deref().is_some_and(|k| row.kinds.contains(&k))
        };
        let name = steps.get(depth).copied().unwrap_or("");
        let row = self.rows_at(&place).iter().filter(|row| row.name == name).find(fits);
        let path = if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
        // if only the presence of a setting is requested, its value may be changed
        let is_fixed =
            |wish: &Wish| is_on(&wish.path, &path) && !(wish.path == path && wish.level == GIVEN);
        let is_wished = hand.firm().any(|wish| is_on(&wish.path, &path));
        let may_change = !hand.firm().any(is_fixed);
        let is_kept = row.is_some_and(|row| hand.keeps(row));
        let is_needed = row.is_some_and(|row| row.required) || is_wished || is_kept;
        let redraws = hand.random.below(5) < 3;
        match row {
            Some(row) if !table.contains_key(name) => {
                let drawn = match row.kind_of_value {
                    "table" => Some(Value::Table(self.section(&path, hand))),
                    "tables" => Some(self.entries(&format!("{path}.*"), 1, hand)),
                    _ => draw::value(row, hand.random, hand.names),
                };
                table.extend(drawn.map(|value| (name.to_owned(), value)));
            }
            Some(row) if row.kind_of_value.starts_with("table") && !is_needed => {
                table.remove(name);
            }
            Some(row) if row.kind_of_value.starts_with("table") => {}
            Some(row) if may_change && !is_kept => {
                let before = table.remove(name);
                if redraws || is_needed {
                    let drawn = self.related(row, before.as_ref(), table, hand);
                    table.extend(drawn.map(|value| (name.to_owned(), value)));
                }
            }
            None if !is_wished => {
                table.remove(name);
            }
            _ => {}
        }
        if is_wished || round % 4 == 3 {
            self.thin(given, &steps[..depth], hand);
        }
        if round % 2 == 1 {
            self.redraw_another(given, &steps[..depth], &problem.message, hand);
        }
    }

    /// Draws a new value for another setting of the section at the path `steps`: a setting that the
    /// reader's `message` names, or a required one. The reader reports a problem at the first of
    /// several settings, of which another one may be wrong.
    fn redraw_another(&self, given: &mut Table, steps: &[&str], message: &str, hand: &mut Hand) {
        let place = place_of(steps);
        let Some(table) = table_at(given, steps) else { return };
        let kind = table.get("kind").and_then(Value::as_str).map(str::to_owned);
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let words: Vec<&str> = message.split(|c| !is_word(c)).collect();
        let others = self.rows_at(&place).iter().filter(|row| {
            let is_in =
                row.kinds.is_empty() || kind.as_deref().is_some_and(|k| row.kinds.contains(&k));
            let is_concerned = row.required && table.contains_key(row.name);
            is_in
                && row.name != "kind"
                && (is_concerned || words.contains(&row.name))
                && !row.kind_of_value.starts_with("table")
                && !hand.keeps(row)
                && !hand.firm().any(|wish| wish.path == row.path)
        });
        let others: Vec<&Row> = others.collect();
        if !others.is_empty() {
            let row = others[hand.random.below(others.len() as u64) as usize];
            let drawn = draw::value(row, hand.random, hand.names);
            table.extend(drawn.map(|value| (row.name.to_owned(), value)));
        }
    }

    /// Draws a new value for a setting whose value so far is `before`. A list of names in a table
    /// with the nodes `from` and `to` becomes a path between them. A file becomes the next known
    /// file, so that each file is tried.
    fn related(
        &self,
        row: &KeyDoc,
        before: Option<&Value>,
        table: &Table,
        hand: &mut Hand,
    ) -> Option<Value> {
        let ends: Vec<&str> = ["from", "to"]
            .iter()
            .filter_map(|end| table.get(*end).and_then(Value::as_str))
            .collect();
        if let (&[from, to], "list of names") = (ends.as_slice(), row.kind_of_value) {
            let path = hand.names.path(from, to);
            return Some(Value::Array(path.into_iter().map(Value::String).collect()));
        }
        if let (Some(name), "file") = (before.and_then(Value::as_str), row.kind_of_value) {
            let files = &hand.names.files;
            let place = files.iter().position(|file| file == name)?;
            return Some(Value::String(files[(place + 1) % files.len()].clone()));
        }
        draw::value(row, hand.random, hand.names)
    }

    /// Removes one optional setting or optional table, chosen at random, of the section at the path
    /// `steps`; if this section has none, of the section that contains it.
    fn thin(&self, given: &mut Table, steps: &[&str], hand: &mut Hand) {
        for depth in (0..=steps.len()).rev() {
            let place = place_of(&steps[..depth]);
            let Some(table) = table_at(given, &steps[..depth]) else { continue };
            let optional: Vec<String> = table
                .keys()
                .filter(|name| {
                    let path =
                        if place.is_empty() { (*name).clone() } else { format!("{place}.{name}") };
                    let mut rows = self.rows_at(&place).iter().filter(|row| row.name == **name);
                    let needed = rows.any(|row| row.required || hand.keeps(row));
                    // these settings are the base of every scenario
                    let is_base =
                        ["fabric", "workload", "kind", "duration"].contains(&name.as_str());
                    !needed && !is_base && !hand.firm().any(|wish| is_on(&wish.path, &path))
                })
                .cloned()
                .collect();
            if !optional.is_empty() {
                table.remove(&optional[hand.random.below(optional.len() as u64) as usize]);
                return;
            }
        }
    }
}

/// Draws the maximum simulated duration: some milliseconds, or 20 or 60 seconds with MapReduce,
/// whose heartbeats are about a second apart.
fn duration(given: &Table, random: &mut Stream) -> Value {
    let workloads = given.get("workload").and_then(Value::as_array);
    let is_slow = |entry: &Value| {
        entry.get("kind").and_then(Value::as_str).is_some_and(|kind| kind == "mapreduce")
    };
    let us = if workloads.is_some_and(|all| all.iter().any(is_slow)) {
        [20_000_000, 60_000_000][random.below(2) as usize]
    } else {
        [1_000, 5_000, 20_000, 50_000][random.below(4) as usize]
    };
    Value::String(format!("{us} us"))
}

/// Returns the TOML value of the setting `row` for `level`, its value as text.
fn level_value(row: &KeyDoc, level: &str) -> Value {
    match row.kind_of_value {
        "true or false" => Value::Boolean(level == "true"),
        "count" => level.parse().map_or(Value::String(level.to_owned()), Value::Integer),
        // a list of numbers, such as the priorities with PFC
        _ if level.starts_with('[') => level.parse().unwrap_or(Value::String(level.to_owned())),
        _ => Value::String(level.to_owned()),
    }
}

/// Whether the dotted path `path` equals the path `above` or begins with it and a dot.
fn is_on(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns the documented path of a section of a scenario: in its path `steps`, indices of list
/// entries become `*`.
fn place_of(steps: &[&str]) -> String {
    let star = |step: &&str| if step.parse::<usize>().is_ok() { "*" } else { *step }.to_owned();
    steps.iter().map(star).collect::<Vec<_>>().join(".")
}

/// Returns how many of the first `steps` of a path lead to the deepest table that exists in the
/// scenario, and the documented path of this table, in which indices of list entries are `*`.
fn deepest(given: &Table, steps: &[&str]) -> (usize, String) {
    let mut copy = given.clone();
    let last = steps.len().saturating_sub(1);
    let depth = (0..=last).rev().find(|depth| table_at(&mut copy, &steps[..*depth]).is_some());
    let depth = depth.unwrap_or(0);
    (depth, place_of(&steps[..depth]))
}

/// Returns the table at the path `steps` in a scenario; `None` if there is no table at this path.
fn table_at<'t>(given: &'t mut Table, steps: &[&str]) -> Option<&'t mut Table> {
    let Some((first, rest)) = steps.split_first() else { return Some(given) };
    let mut at = given.get_mut(*first)?;
    for step in rest {
        at = match at {
            Value::Table(table) => table.get_mut(*step)?,
            Value::Array(items) => items.get_mut(step.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    at.as_table_mut()
}

/// Returns the names of the nodes and cables of a fabric, with fixed names of classes and
/// workloads.
fn names_of(graph: &Graph) -> Names {
    let name = |node: u32| graph.names[node as usize].clone();
    let (hosts, switches) = graph.names.split_at(graph.hosts as usize);
    let of_hosts = graph.cables_of_cards().unwrap_or_default();
    let several = hosts.iter().zip(&of_hosts).filter(|(_, cables)| cables.len() > 1);
    let cards = several
        .flat_map(|(host, cables)| (0..cables.len()).map(move |card| format!("{host}:eth{card}")));
    Names {
        hosts: hosts.to_vec(),
        switches: switches.to_vec(),
        cables: graph.cables.iter().map(|cable| (name(cable.a), name(cable.b))).collect(),
        cards: cards.collect(),
        others: ["bulk", "urgent", "web"].map(str::to_owned).to_vec(),
        files: Vec::new(),
    }
}

/// Returns a scenario, given as a table, as TOML text.
pub fn text(given: &Table) -> String {
    let mut text = String::new();
    write_table(&mut text, given, "", &mut |_| {});
    text
}

/// Returns a scenario, given as a table, as TOML text with the settings of each table in random
/// order.
pub fn shuffled(given: &Table, random: &mut Stream) -> String {
    let mut text = String::new();
    write_table(&mut text, given, "", &mut |names| random.shuffle(names));
    text
}

fn write_table(
    text: &mut String,
    table: &Table,
    path: &str,
    order: &mut dyn FnMut(&mut Vec<&String>),
) {
    let is_table = |value: &Value| match value {
        Value::Table(_) => true,
        Value::Array(items) => items.first().is_some_and(Value::is_table),
        _ => false,
    };
    let mut names: Vec<&String> = table.keys().collect();
    order(&mut names);
    for name in names.iter().filter(|name| !is_table(&table[**name])) {
        text.push_str(&format!("{name} = {}\n", table[*name]));
    }
    for name in names.iter().filter(|name| is_table(&table[**name])) {
        let path = if path.is_empty() { (*name).clone() } else { format!("{path}.{name}") };
        let entries = match &table[*name] {
            Value::Array(items) => items.as_slice(),
            single => std::slice::from_ref(single),
        };
        let is_list = table[*name].is_array();
        for entry in entries.iter().filter_map(Value::as_table) {
            text.push_str(&if is_list { format!("[[{path}]]\n") } else { format!("[{path}]\n") });
            write_table(text, entry, &path, order);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_written_as_toml_reads_them() {
        let table: Table = "a = 1\n[b]\nc = [1, 2]\n[[b.d]]\ne = 'x'\n[[b.d]]\n".parse().unwrap();
        assert_eq!(text(&table).parse::<Table>().unwrap(), table);
        let other = shuffled(&table, &mut Stream::new(3, "order"));
        assert_eq!(other.parse::<Table>().unwrap(), table);
    }

    #[test]
    fn a_case_is_valid_and_the_same_each_time() {
        let generator = Generator::new(Context::default());
        for case in 0..40 {
            let drawn = || generator.case(&mut Stream::new(case, "cases"), &[]);
            let (first, second) = (drawn(), drawn());
            let shown = |case: Result<Case, Refusal>| case.map(|case| text(&case.given));
            assert_eq!(shown(first), shown(second));
        }
    }

    #[test]
    fn wishes_are_granted_where_the_reader_allows_it() {
        let generator = Generator::new(Context::default());
        let wishes =
            [Wish::firm("fabric.scheduler", "strict-priority"), Wish::firm("fabric.qcn", GIVEN)];
        let mut granted = 0;
        for case in 0..10 {
            if let Ok(case) = generator.case(&mut Stream::new(case, "wishes"), &wishes) {
                let fabric = &case.given["fabric"];
                assert_eq!(fabric["scheduler"].as_str(), Some("strict-priority"));
                assert!(fabric.get("qcn").is_some());
                granted += 1;
            }
        }
        assert!(granted >= 8, "{granted} of 10");
    }
}
