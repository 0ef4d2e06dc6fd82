//! Test harness: runs scenario texts and reads their results.

use eastwest_measure::table::Column;
use eastwest_sim::approximate_run::ApproximateRun;
use eastwest_sim::flow_world::FlowWorld;
use eastwest_sim::frame::Frame;
use eastwest_sim::plan::Plan;
use eastwest_sim::results::Results;
use eastwest_sim::run::run;
use eastwest_sim::scenario::{Context, Fidelity, Scenario, read};
use eastwest_sim::site::Site;
use eastwest_sim::world::{RunError, World};
use eastwest_types::Time;
use std::path::{Path, PathBuf};

/// Returns the root folder of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the context for reading scenarios: the folder of shipped scenarios, and that of shipped
/// traces.
pub fn context() -> Context {
    Context {
        base_dir: root().join("scenarios"),
        data_dir: root().join("python/eastwest/data"),
        ..Context::default()
    }
}

/// Returns the context for reading scenarios, with one file in memory (`name`, `text`) beside the
/// scenario.
pub fn context_with(name: &str, text: &str) -> Context {
    let mut context = context();
    context.files.insert(name.to_owned(), text.as_bytes().into());
    context
}

/// Returns the text of a shipped scenario.
pub fn shipped(name: &str) -> String {
    let path = root().join(format!("scenarios/{name}.toml"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Reads a scenario that must be accepted; `sets` are overrides (path, value), as with `--set`.
pub fn scenario_in(context: &Context, text: &str, sets: &[(&str, &str)]) -> Scenario {
    let sets: Vec<(String, String)> =
        sets.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect();
    read(text, context, &sets).unwrap_or_else(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        panic!("refused:\n{}\n{text}", lines.join("\n"))
    })
}

/// Reads a scenario as [`scenario_in`] does, with shipped files only.
pub fn scenario(text: &str, sets: &[(&str, &str)]) -> Scenario {
    scenario_in(&context(), text, sets)
}

/// Results of a finished run.
pub struct Outcome(pub Results);

/// Runs a scenario to the end; `reference` forces the ports into the two-event mode.
pub fn attempt(scenario: &Scenario, reference: bool) -> Result<Outcome, RunError> {
    run(scenario, reference, &mut |_| true).map(Outcome)
}

/// Runs a scenario that must finish, and requests its frames: the first at time `first`, and after
/// each frame one at the time that `next` returns. Returns the results and all frames.
pub fn observed(
    scenario: &Scenario,
    first: Time,
    next: &mut dyn FnMut(&Frame) -> Time,
) -> (Outcome, Vec<Frame>) {
    let mut frames = Vec::new();
    let mut look = |site: &mut Site| {
        if let Some(frame) = site.take_frame() {
            site.set_next_frame(next(&frame));
            frames.push(frame);
        }
        true
    };
    let plan = Plan::new(scenario).unwrap_or_else(|p| panic!("{p:?}"));
    let site = if scenario.fidelity == Fidelity::Flow {
        let mut world = FlowWorld::new(plan).expect("routes");
        world.site_mut().request_frames(first);
        world.run(1, &mut look).unwrap_or_else(|e| panic!("{}: {e}", scenario.name));
        look(world.site_mut());
        world.finish()
    } else {
        let mut world = World::new(plan).expect("routes");
        world.site_mut().request_frames(first);
        let ended = world.run(&mut |world| look(world.site_mut()));
        ended.unwrap_or_else(|e| panic!("{}: {e}", scenario.name));
        look(world.site_mut());
        world.into()
    };
    (Outcome(Results::new(site)), frames)
}

/// Runs a scenario that must finish, and returns its results.
pub fn finish(scenario: &Scenario) -> Outcome {
    attempt(scenario, false).unwrap_or_else(|e| panic!("{}: {e}", scenario.name))
}

/// Reads and runs a scenario that must finish; `sets` are overrides (path, value).
pub fn outcome(text: &str, sets: &[(&str, &str)]) -> Outcome {
    finish(&scenario(text, sets))
}

impl Outcome {
    /// Returns the digest of the run.
    pub fn digest(&self) -> &str {
        self.0.summary["digest"].as_str().expect("every summary has a digest")
    }

    /// Returns the content of a file of the result by its name.
    pub fn file(&self, name: &str) -> Option<&[u8]> {
        self.0.files.iter().find(|f| f.0 == name).map(|f| f.1.as_slice())
    }

    /// Returns the value at a path of the summary, for example `packets.sent`; JSON null if there
    /// is none.
    pub fn value(&self, path: &str) -> &serde_json::Value {
        path.split('.').fold(&self.0.summary, |v, step| &v[step])
    }

    /// Returns the number at a path of the summary; fails if there is none.
    pub fn number(&self, path: &str) -> f64 {
        let value = self.value(path);
        value.as_f64().unwrap_or_else(|| panic!("{path} is {value}"))
    }

    /// Returns the whole number at a path of the summary; fails if there is none.
    pub fn count(&self, path: &str) -> u64 {
        let value = self.value(path);
        value.as_u64().unwrap_or_else(|| panic!("{path} is {value}"))
    }

    /// Returns the text at a path of the summary; fails if there is none.
    pub fn text(&self, path: &str) -> &str {
        let value = self.value(path);
        value.as_str().unwrap_or_else(|| panic!("{path} is {value}"))
    }

    fn column(&self, table: &str, column: &str) -> &Column {
        let found = self.0.tables.iter().find(|t| t.name == table);
        found
            .and_then(|t| t.column(column))
            .unwrap_or_else(|| panic!("there is no column {table}.{column}"))
    }

    /// Returns a column of floating-point numbers of a table.
    pub fn f64s(&self, table: &str, column: &str) -> &[f64] {
        match self.column(table, column) {
            Column::F64(values) => values,
            other => panic!("{table}.{column} is {other:?}"),
        }
    }

    /// Returns a column of whole numbers of a table.
    pub fn u64s(&self, table: &str, column: &str) -> Vec<u64> {
        match self.column(table, column) {
            Column::U32(values) => values.iter().map(|&v| u64::from(v)).collect(),
            Column::U64(values) => values.clone(),
            other => panic!("{table}.{column} is {other:?}"),
        }
    }

    /// Returns a column of whole numbers that may be negative.
    pub fn i64s(&self, table: &str, column: &str) -> &[i64] {
        match self.column(table, column) {
            Column::I64(values) => values,
            other => panic!("{table}.{column} is {other:?}"),
        }
    }

    /// Returns a column of texts or labels of a table.
    pub fn texts(&self, table: &str, column: &str) -> Vec<&str> {
        match self.column(table, column) {
            Column::Text(values) => values.iter().map(String::as_str).collect(),
            Column::Label(values, names) => {
                values.iter().map(|&i| names[i as usize].as_str()).collect()
            }
            other => panic!("{table}.{column} is {other:?}"),
        }
    }

    /// Returns a table as text: a line of column names, then the rows, with tabs between cells.
    pub fn table_text(&self, table: &str) -> String {
        let found = self.0.tables.iter().find(|t| t.name == table).expect("the table exists");
        let names: Vec<&str> = found.columns.iter().map(|c| c.0).collect();
        let mut text = names.join("\t") + "\n";
        for row in 0..found.rows() {
            let cells: Vec<String> = found.columns.iter().map(|c| c.1.text(row)).collect();
            text.push_str(&(cells.join("\t") + "\n"));
        }
        text
    }

    /// Checks that every packet and every byte of the run is accounted for.
    pub fn assert_conserved(&self) {
        let [sent, delivered, dropped, in_flight] = ["sent", "delivered", "dropped", "in_flight"]
            .map(|n| self.count(&format!("packets.{n}")));
        assert_eq!(sent, delivered + dropped + in_flight, "packets of all kinds");
        let lost: u64 = self.u64s("links", "drops").iter().sum();
        assert_eq!(lost, dropped, "drops of all links");
        let mut by_kind = 0;
        let kinds =
            ["data", "retransmission", "ack", "ece_ack", "syn", "syn_ack", "fin", "datagram"];
        for kind in kinds {
            let of_links: u64 = self.u64s("links", &format!("drops_{kind}")).iter().sum();
            let causes =
                ["full", "loss", "link_down", "no_route", "early", "shared_buffer", "sojourn"];
            let in_all: u64 = causes.iter().map(|c| self.count(&format!("drops.{c}.{kind}"))).sum();
            assert_eq!(of_links, in_all, "{kind}");
            by_kind += of_links;
        }
        assert_eq!(by_kind, dropped, "drops by kind");
        let causes = [
            "drops_queue_full",
            "drops_shared_buffer",
            "drops_early",
            "drops_sojourn",
            "lost_random",
            "lost_down",
            "lost_no_route",
        ];
        let by_cause = causes.iter().flat_map(|cause| self.u64s("links", cause)).sum::<u64>();
        assert_eq!(by_cause, dropped, "drops by cause");
        assert_eq!(self.count("latency_us.count"), delivered, "every delivery has a latency");
        let hops: u64 = self.u64s("links", "packets").iter().sum();
        assert_eq!(hops, self.count("packet_hops"));
    }
}

/// A cable of a topology file: both ends, rate and delay, as text.
pub type CableText<'a> = (&'a str, &'a str, &'a str, &'a str);

/// Returns the text of a topology file with these hosts, switches and cables.
pub fn graph(hosts: &[&str], switches: &[&str], cables: &[CableText]) -> String {
    let mut text = format!("hosts = {hosts:?}\nswitches = {switches:?}\n");
    for (a, b, rate, delay) in cables {
        text.push_str(&format!(
            "[[cable]]\na = \"{a}\"\nb = \"{b}\"\nrate = \"{rate}\"\ndelay = \"{delay}\"\n"
        ));
    }
    text
}
