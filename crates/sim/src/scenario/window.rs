//! The section `measure.window`: time interval of a run to which the measures of workloads are
//! limited.

use eastwest_settings::problem::nearest;
use eastwest_settings::quantity::Name;
use eastwest_settings::reader::{Section, key};
use eastwest_types::{Purpose, Span};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Time interval of a run to which the measures of workloads are limited. An exchange, flow, job,
/// rank, round or transaction counts if its start satisfies all limits that are set.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WindowConfig {
    /// Simulated time of the earliest start that counts; `None`: the begin of the run.
    pub from: Option<Span>,
    /// Simulated time from which starts do not count; `None`: the end of the run.
    pub until: Option<Span>,
    /// Length of the time before the end of the run in which starts do not count; `None`: zero.
    pub cool_down: Option<Span>,
    /// Name of a workload: only the time in which this workload is active is counted. `None`: the
    /// whole run.
    pub during: Option<String>,
    /// Purpose (such as shuffle) of the flows by which the workload `during` counts as active;
    /// `None`: flows of all purposes and all other activity.
    pub purpose: Option<Purpose>,
}

impl WindowConfig {
    /// Returns the limits that are set, as the section `window` of the summary; `None` if there are
    /// no limits.
    pub fn summary(&self) -> Option<Value> {
        let times =
            [("from_s", self.from), ("until_s", self.until), ("cool_down_s", self.cool_down)];
        let mut found = Map::new();
        for (name, time) in times {
            if let Some(time) = time {
                found.insert(name.to_owned(), json!(time.as_secs_f64()));
            }
        }
        if let Some(workload) = &self.during {
            found.insert("while".to_owned(), json!(workload));
        }
        if let Some(purpose) = self.purpose {
            found.insert("purpose".to_owned(), json!(purpose.name()));
        }
        (!found.is_empty()).then_some(Value::Object(found))
    }
}

/// Reads the section `measure.window`. `names` are the names of all workloads of the scenario.
pub fn read(s: &mut Section, names: &BTreeSet<String>) -> WindowConfig {
    let from = s.find(
        key("from", "Time before which nothing counts.")
            .optional("the start of the run")
            .range("0 s", "480 h"),
    );
    let until = s.find(
        key("until", "Time from which nothing counts.")
            .optional("the end of the run")
            .range("1 ns", "480 h"),
    );
    let cool_down = s.find(
        key(
            "cool_down",
            "Length of the last part of the run: what starts in this part does not count.",
        )
        .optional("none")
        .range("0 s", "480 h"),
    );
    let during = s.find(
        key::<Name>(
            "while",
            "Workload: only the time counts in which it is active: a job, rank, round or flow of \
             it is in progress.",
        )
        .optional("the whole run"),
    );
    let purpose = s.find(
        key::<Name>(
            "purpose",
            "With `while`: purpose of the flows of this workload that count as its activity, such \
             as shuffle.",
        )
        .optional("everything that the workload does"),
    );
    let purpose = purpose.and_then(|Name(name)| {
        let found = Purpose::ALL.into_iter().find(|p| p.name() == name);
        s.demand(found.is_some() || s.describing(), &["purpose"], || {
            let all: Vec<&str> = Purpose::ALL.iter().map(|p| p.name()).collect();
            format!("is not a purpose of flows; the purposes are {}", all.join(", "))
        });
        found
    });
    s.demand(purpose.is_none() || during.is_some() || s.describing(), &["purpose"], || {
        "needs `while`, the workload whose flows have this purpose".to_owned()
    });
    let start = from.unwrap_or(Span::ZERO);
    s.demand(until.is_none_or(|end| end > start), &["until", "from"], || {
        format!("must be after from, which is {start}")
    });
    let during = during.map(|Name(name)| name);
    if let Some(name) = during.as_ref().filter(|name| !names.contains(*name) && !s.describing()) {
        let near = nearest(name, names.iter().map(String::as_str)).map(str::to_owned);
        let path = format!("{}.while", s.path());
        s.state().problem(&path, None, format!("there is no workload named {name}"), near);
    }
    WindowConfig { from, until, cool_down, during, purpose }
}
