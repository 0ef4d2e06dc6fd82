//! `[[class]]`: traffic classes. The name of a class identifies its rows in tables of results. The
//! class also sets the codepoint (DSCP) of packets.
//!
//! A workload may name a class without a table `[[class]]`; the table is only needed to set the
//! priority or the DSCP of the class. Priority p means the class selector CSp (RFC 2474, 4.2.2).

use eastwest_network::config::FabricConfig;
use eastwest_network::scheduler::SchedulerConfig;
use eastwest_settings::dscp::Dscp;
use eastwest_settings::narrow::at_most;
use eastwest_settings::quantity::{Name, Quantity};
use eastwest_settings::reader::{Section, key};
use eastwest_settings::resolve::{Body, Out};
use eastwest_types::ClassId;

/// Traffic class of a scenario: name and codepoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrafficClassConfig {
    /// Name of the class.
    pub name: String,
    /// Differentiated services codepoint (DSCP) of the packets of the class, 0–63.
    pub dscp: u8,
}

/// Maximum number of traffic classes of a scenario.
const MOST: usize = 64;

/// Traffic classes that tables `[[class]]` and workloads have named so far, while a scenario is
/// read.
pub struct Classes {
    /// Traffic classes, indexed by [`ClassId`].
    pub list: Vec<TrafficClassConfig>,
    /// Number of classes that tables `[[class]]` declare; they are the first in `list`. The other
    /// classes are only named by workloads.
    declared: usize,
    used: Vec<bool>,
}

/// Reads the traffic classes that the scenario declares (`[[class]]`).
pub fn read(s: &mut Section) -> Classes {
    let mut names: Vec<String> = Vec::new();
    let doc = "Priority or DSCP of a traffic class. A class that a workload names needs no entry \
               here.";
    let list = s.tables("class", doc, MOST, |c, _| {
        let name: Name = c.get(key(
            "name",
            "Name of the class, which the key `class` of workloads \
                                            refers to.",
        ));
        let priority: u32 = c.get(
            key(
                "priority",
                "Priority of the class, 0 to 7, where 7 is the most urgent (IEEE \
                             802.1Q has eight).",
            )
            .default("0")
            .range("0", "7"),
        );
        let given = c.has("priority");
        let dscp: Option<Dscp> = c.find(
            key(
                "dscp",
                "DSCP of the packets of the class, as a name of RFC 4594 or a number: \"AF21\", \
                 \"EF\", 18. Replaces `priority`.",
            )
            .optional("the class selector of the priority: CS0 for 0 … CS7 for 7"),
        );
        c.demand(dscp.is_none() || !given, &["dscp", "priority"], || {
            "cannot be set together with `priority`, which sets another codepoint: give one of \
             them"
                .to_owned()
        });
        c.demand(!names.contains(&name.0), &["name"], || {
            "is already the name of another class".to_owned()
        });
        names.push(name.0.clone());
        let dscp = dscp.unwrap_or(Dscp::of_priority(at_most(priority)));
        TrafficClassConfig { name: name.0, dscp: dscp.0 }
    });
    Classes { declared: list.len(), used: vec![false; list.len()], list }
}

impl Classes {
    /// Returns the number of the traffic class with this name. Creates the class, with DSCP 0, if
    /// it is new.
    pub fn id(&mut self, name: &str) -> ClassId {
        let index = self.list.iter().position(|c| c.name == name).unwrap_or_else(|| {
            self.list.push(TrafficClassConfig { name: name.to_owned(), dscp: 0 });
            self.used.push(false);
            self.list.len() - 1
        });
        self.used[index] = true;
        ClassId(at_most(index))
    }

    /// Writes the traffic classes into the scenario text with all defaults, and adds notes about
    /// classes and priorities without effect.
    pub fn finish(&self, s: &mut Section, fabric: &FabricConfig, notes: &mut Vec<String>) {
        if s.describing() {
            return;
        }
        if self.list.len() > MOST {
            s.wrong("class", format!("there are more than {MOST} traffic classes, the maximum"));
        }
        for class in
            self.list.iter().zip(&self.used).take(self.declared).filter(|(_, used)| !**used)
        {
            notes.push(format!("class {}: no workload belongs to this class", class.0.name));
        }
        let high = self.list.iter().filter(|c| Dscp(c.dscp).priority() >= 4).count();
        let scheduler = &fabric.scheduler;
        let strict = *scheduler == SchedulerConfig::StrictPriority;
        if strict && (high == 0 || high == self.list.len()) {
            notes.push(
                "fabric.scheduler = \"strict-priority\" has no effect: it sends priorities 4–7 \
                 before 0–3, but here the priorities of all classes are in the same of these two \
                 groups"
                    .to_owned(),
            );
        }
        if *scheduler == SchedulerConfig::Fifo
            && !fabric.dcb.is_on()
            && self.list.iter().any(|c| c.dscp > 0)
        {
            notes.push(
                "priorities and codepoints have no effect with fabric.scheduler = \"fifo\""
                    .to_owned(),
            );
        }
        let rows = self.list.iter().map(|class| {
            let mut out = Out::default();
            out.value("name", Name(class.name.clone()).show());
            match Dscp(class.dscp) {
                dscp if dscp.is_selector() => out.value("priority", dscp.priority().to_string()),
                dscp => out.value("dscp", dscp.show()),
            }
            out
        });
        s.resolve_table("class", Body::Array(rows.collect()));
    }
}
