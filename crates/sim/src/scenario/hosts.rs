//! Lists of hosts in settings of workloads: by name, or as a range such as `"h1..h32"`.

use super::nodes::Nodes;
use eastwest_settings::quantity::{Name, Quantity, instead};
use eastwest_settings::reader::{Section, key};
use eastwest_types::HostId;
use toml::Value;

/// A list of hosts as written in the scenario: names and ranges of names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostList(pub Vec<String>);

impl Quantity for HostList {
    const TYPE: &'static str = "hosts";
    fn parse(value: &Value) -> Result<HostList, String> {
        const FORM: &str = "write names and ranges such as [\"h0\", \"h4..h7\"]";
        let one = |item: &Value| match item {
            Value::String(text) if !text.is_empty() && text.len() <= 200 => {
                match text.chars().find(|c| c.is_control()) {
                    Some(_) => Err(format!("is not a host or a list of hosts; {FORM}")),
                    None => Ok(text.clone()),
                }
            }
            Value::String(_) => Err(format!("is not a host or a list of hosts; {FORM}")),
            other => Err(format!("{}; {FORM}", instead(other))),
        };
        match value {
            Value::Array(items) => items.iter().map(one).collect::<Result<_, _>>().map(HostList),
            single => Ok(HostList(vec![one(single)?])),
        }
    }
    fn show(&self) -> String {
        let items: Vec<String> =
            self.0.iter().map(|text| Value::String(text.clone()).to_string()).collect();
        format!("[{}]", items.join(", "))
    }
    fn placeholder() -> HostList {
        HostList(Vec::new())
    }
}

/// Maximum number of hosts in a list of hosts; limits the memory that workloads need.
pub const MOST_HOSTS: usize = 100_000;

impl HostList {
    /// Returns the numbers of the hosts in the list, or a message about the first wrong name.
    fn resolve(&self, nodes: &Nodes) -> Result<Vec<HostId>, String> {
        let number = |name: &str| match nodes.number(name) {
            Some(n) if n < nodes.hosts() => Ok(n),
            _ => {
                Err(format!("names {name}, which is not a host; hosts are {}", nodes.host_names()))
            }
        };
        let mut hosts = Vec::new();
        for item in &self.0 {
            let (first, last) = match item.split_once("..") {
                Some((from, to)) => (number(from.trim())?, number(to.trim())?),
                None => (number(item)?, number(item)?),
            };
            if first > last {
                return Err(format!("contains the range {item}, which ends before it starts"));
            }
            if hosts.len() + (last - first) as usize >= MOST_HOSTS {
                return Err(format!("names more than {MOST_HOSTS} hosts, the maximum of a list"));
            }
            hosts.extend((first..=last).map(HostId));
        }
        Ok(hosts)
    }
}

/// Reads the key `name`, a list of hosts. `said` tells users the meaning of an absent key; without
/// `said` the key is required. Returns `None` if the key is absent or wrong.
pub fn read_list(
    s: &mut Section,
    name: &'static str,
    doc: &'static str,
    said: Option<&'static str>,
    nodes: Option<&Nodes>,
) -> Option<Vec<HostId>> {
    let declared = key::<HostList>(name, doc);
    let list = s.find(match said {
        Some(said) => declared.optional(said),
        None => declared,
    })?;
    match list.resolve(nodes?) {
        Ok(hosts) => Some(hosts),
        Err(message) => {
            s.wrong(name, message);
            None
        }
    }
}

/// Reads the key `name`, one host. `said` tells users the meaning of an absent key; without `said`
/// the key is required. Returns `None` if the key is absent or wrong.
pub fn read_one(
    s: &mut Section,
    name: &'static str,
    doc: &'static str,
    said: Option<&'static str>,
    nodes: Option<&Nodes>,
) -> Option<HostId> {
    let declared = key::<Name>(name, doc);
    let given = s.find(match said {
        Some(said) => declared.optional(said),
        None => declared,
    })?;
    let nodes = nodes?;
    match nodes.number(&given.0) {
        Some(n) if n < nodes.hosts() => Some(HostId(n)),
        _ => {
            s.wrong(name, format!("is not a host; hosts are {}", nodes.host_names()));
            None
        }
    }
}
