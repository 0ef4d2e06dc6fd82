//! Workloads of `kind = "transactions"`: replay of recorded transactions.
//!
//! [`calls`] reads the table of recorded calls. This file reads the settings: arrival times of
//! transactions, and hosts of components (the programs that answer calls).

use super::calls;
use super::ground::Ground;
use crate::scenario::files::Files;
use crate::scenario::hosts;
use crate::scenario::nodes::Nodes;
use crate::scenario::rows;
use eastwest_settings::problem::shorten;
use eastwest_settings::quantity::{FileName, Quantity, Ratio};
use eastwest_settings::reader::{Section, key};
use eastwest_types::{ClassId, HostId, Span};
use eastwest_workload::transactions::{Arrivals, Book, Placement, TransactionsConfig};
use std::collections::BTreeMap;

/// Maximum size in bytes of a file with calls of transactions.
const MOST_FILE_BYTES: u64 = 512 << 20;
/// Maximum size in bytes of the file `places`, which assigns components to hosts.
const MOST_PLACES_BYTES: u64 = 16 << 20;
/// Name of the file with the calls, in a folder that `eastwest observe workload` wrote.
const FILE: &str = "transactions.tsv";

/// Reads the settings of the replay of recorded transactions, and the table of their calls. Returns
/// `None` if there is a problem, which is reported.
pub fn read(
    s: &mut Section,
    ground: &Ground,
    files: &mut Files,
    class: ClassId,
) -> Option<TransactionsConfig> {
    let file: FileName = s.get(key(
        "file",
        "Table of calls, or a folder written by `eastwest observe workload`, which contains one.",
    ));
    let placement = read_placement(s, ground);
    let doc = "Hosts of clients; each transaction starts at one of them, chosen at random.";
    let said = Some("no clients: a transaction begins on the host of its first call");
    let clients = hosts::read_list(s, "clients", doc, said, ground.nodes);
    let arrivals = read_arrivals(s);
    let start = s.get(
        key("start", "Earliest time at which a transaction arrives.")
            .default("0 s")
            .range("0 s", "480 h"),
    );
    let count: Option<u64> = s.find(
        key("transactions", "Number of transactions.")
            .optional("the number of recorded transactions")
            .range("1", "2147483648"),
    );
    let processors = s.find(
        key(
            "processors",
            "Number of calls that a component processes at once; further calls wait \
                           in order.",
        )
        .optional("any number")
        .range("1", "1000000"),
    );
    if !s.good(&["file"]) || s.describing() {
        return None;
    }
    let mut book = load(s, ground, files, &file.0)?;
    let placement = placement.place(s, ground, files, &book)?;
    let arrivals = arrivals.of(&mut book, s)?;
    Some(TransactionsConfig {
        count: count.unwrap_or(book.transactions.len() as u64),
        drawn: arrivals.1,
        arrivals: arrivals.0,
        book,
        placement,
        clients: clients.unwrap_or_default(),
        start,
        class,
        processors,
    })
}

/// Reads the table of calls from the file or folder `name`. Returns `None` if there is a problem,
/// which is reported.
fn load(s: &mut Section, ground: &Ground, files: &mut Files, name: &str) -> Option<Book> {
    let within = match ground.context.is_folder(name) {
        true => format!("{}/{FILE}", name.trim_end_matches('/')),
        false => name.to_owned(),
    };
    let attached = match files.load(ground.context, &within, MOST_FILE_BYTES) {
        Ok(attached) => attached,
        Err(message) => {
            s.wrong("file", message);
            return None;
        }
    };
    match calls::parse(&attached.bytes[..]) {
        Ok(book) => {
            s.resolve_as("file", FileName(attached.name).show());
            Some(book)
        }
        Err(message) => {
            s.wrong("file", format!("{}{message}", shorten(&within)));
            None
        }
    }
}

/// Arrival times of replayed transactions: as recorded, or from a distribution.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spread {
    Recorded,
    Poisson,
    Periodic,
}

/// Settings of the arrival times of transactions, before the table of calls is read.
struct ArrivalKeys {
    spread: Spread,
    drawn: bool,
    speed: f64,
    mean_gap: Option<Span>,
}

fn read_arrivals(s: &mut Section) -> ArrivalKeys {
    let spread = s.choice(
        "arrivals",
        "Arrival process of transactions.",
        Some("recorded"),
        &[
            ("recorded", Spread::Recorded, "as recorded, with times divided by `speed`"),
            ("poisson", Spread::Poisson, "exponential gaps: independent arrivals"),
            ("periodic", Spread::Periodic, "equal gaps"),
        ],
    );
    let speed = s.get(
        key::<Ratio>("speed", "Factor by which arrivals are faster than recorded.")
            .default("1")
            .range("0.000001", "1000000"),
    );
    let mean_gap = s.find(
        key("mean_gap", "Mean time between two arrivals; it is divided by `speed`.")
            .optional("the mean time of the recording")
            .range("1 ns", "480 h"),
    );
    let drawn = s.choice(
        "pick",
        "Order in which recorded transactions are used.",
        Some("in-order"),
        &[
            ("in-order", false, "in the recorded order; after the last, from the first again"),
            ("random", true, "at random, drawn from the seed; not with arrivals = \"recorded\""),
        ],
    );
    s.demand(spread != Spread::Recorded || mean_gap.is_none(), &["mean_gap", "arrivals"], || {
        "has an effect only with arrivals = \"poisson\" or \"periodic\"".to_owned()
    });
    ArrivalKeys { spread, drawn, speed: speed.0, mean_gap }
}

impl ArrivalKeys {
    /// Returns the arrival process of the transactions in `book`, and whether transactions are
    /// drawn at random. Recorded times are divided by the speed. Reports a missing `mean_gap` as a
    /// problem.
    fn of(self, book: &mut Book, s: &mut Section) -> Option<(Arrivals, bool)> {
        let faster = |span: Span| Span::from_secs_f64_nearest(span.as_secs_f64() / self.speed);
        let recorded = book.transactions.last().map_or(Span::ZERO, |last| last.start);
        if self.spread == Spread::Recorded {
            for transaction in &mut book.transactions {
                transaction.start = faster(transaction.start);
            }
            return Some((Arrivals::Recorded, self.drawn));
        }
        let gaps = (book.transactions.len() as u64).saturating_sub(1).max(1);
        let mean = faster(self.mean_gap.unwrap_or(Span(recorded.0 / gaps)));
        if mean == Span::ZERO {
            s.wrong(
                "mean_gap",
                "is required, because all recorded transactions arrive at the \
                                 same time",
            );
            return None;
        }
        match self.spread {
            Spread::Poisson => Some((Arrivals::Poisson(mean), self.drawn)),
            _ => Some((Arrivals::Periodic(mean), self.drawn)),
        }
    }
}

/// Rule by which components are placed on hosts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    ByName,
    Block,
    RoundRobin,
    Random,
    File,
}

/// Settings of the hosts of components, before the table of calls is read.
struct PlacementKeys {
    rule: Rule,
    hosts: Option<Vec<HostId>>,
    per_host: Option<u32>,
    places: Option<FileName>,
}

fn read_placement(s: &mut Section, ground: &Ground) -> PlacementKeys {
    let rule = s.choice(
        "placement",
        "Placement of components on hosts. Components are ordered by their first occurrence in \
         the table.",
        Some("round-robin"),
        &[
            (
                "round-robin",
                Rule::RoundRobin,
                "one component on each rack in turn: successive \
                                               components are in different racks",
            ),
            (
                "block",
                Rule::Block,
                "per_host components on the first host, then on the next: \
                                    successive components are close",
            ),
            ("random", Rule::Random, "in random order, drawn from the seed"),
            ("by-name", Rule::ByName, "each component runs on the host with its name"),
            ("file", Rule::File, "as given in a CSV file (key `places`)"),
        ],
    );
    let doc = "Hosts that components run on.";
    let hosts = hosts::read_list(s, "hosts", doc, Some("all hosts"), ground.nodes);
    let per_host = s.find(
        key("per_host", "Maximum number of components on each host.")
            .optional("the smallest number that suffices")
            .range("1", "1000000"),
    );
    let places: Option<FileName> = s.find(
        key("places", "CSV file with the columns component (or instance) and host.")
            .optional("none; needed with placement = \"file\""),
    );
    let listed = matches!(rule, Rule::ByName | Rule::File);
    s.demand(!listed || hosts.is_none(), &["hosts", "placement"], || {
        "has no effect with placement = \"by-name\" or \"file\", which name the hosts themselves"
            .to_owned()
    });
    s.demand(rule == Rule::Block || per_host.is_none(), &["per_host", "placement"], || {
        "has an effect only with placement = \"block\"".to_owned()
    });
    s.demand((rule == Rule::File) == places.is_some(), &["places", "placement"], || {
        "is required with placement = \"file\", and not allowed with any other placement".to_owned()
    });
    PlacementKeys { rule, hosts, per_host, places }
}

impl PlacementKeys {
    fn place(
        self,
        s: &mut Section,
        ground: &Ground,
        files: &mut Files,
        book: &Book,
    ) -> Option<Placement> {
        let nodes = ground.nodes?;
        if !s.good(&["placement", "hosts", "per_host", "places"]) {
            return None;
        }
        let hosts = self.hosts.unwrap_or_else(|| (0..nodes.hosts()).map(HostId).collect());
        let placed = match self.rule {
            Rule::Block => return Some(Placement::Block { hosts, per_host: self.per_host }),
            Rule::RoundRobin => return Some(Placement::RoundRobin(hosts)),
            Rule::Random => return Some(Placement::Random(hosts)),
            Rule::ByName => by_name(nodes, book).map_err(|why| ("placement", why)),
            Rule::File => {
                let FileName(name) = self.places?;
                let read = files.load(ground.context, &name, MOST_PLACES_BYTES);
                let placed = read.and_then(|attached| {
                    let placed = from_file(&attached.bytes, nodes, book)
                        .map_err(|why| format!("{}{why}", shorten(&name)))?;
                    s.resolve_as("places", FileName(attached.name).show());
                    Ok(placed)
                });
                placed.map_err(|why| ("places", why))
            }
        };
        match placed {
            Ok(hosts) => Some(Placement::Given(hosts)),
            Err((key, why)) => {
                s.wrong(key, why);
                None
            }
        }
    }
}

fn host(nodes: &Nodes, name: &str) -> Result<HostId, String> {
    let found = nodes.number(name).filter(|&n| n < nodes.hosts()).map(HostId);
    found.ok_or_else(|| {
        format!("there is no host \"{}\"; hosts are {}", shorten(name), nodes.host_names())
    })
}

fn by_name(nodes: &Nodes, book: &Book) -> Result<Vec<HostId>, String> {
    book.components.iter().map(|component| host(nodes, component)).collect()
}

/// Returns the host of each component of `book` from the file `places`, or the first problem of the
/// file, as `:line: message`.
fn from_file(text: &[u8], nodes: &Nodes, book: &Book) -> Result<Vec<HostId>, String> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text);
    let headers = reader.byte_headers().map_err(|e| rows::broken(&e))?.clone();
    let column = |names: &[&str]| {
        headers.iter().position(|h| names.iter().any(|n| n.as_bytes() == h)).ok_or_else(|| {
            format!(":1: has no column {}; it needs the columns component and host", names[0])
        })
    };
    let (of, at) = (column(&["component", "instance"])?, column(&["host"])?);
    let mut places: BTreeMap<Vec<u8>, HostId> = BTreeMap::new();
    let mut row = csv::ByteRecord::new();
    while reader.read_byte_record(&mut row).map_err(|e| rows::broken(&e))? {
        let line = row.position().map_or(0, csv::Position::line);
        let name = String::from_utf8_lossy(&row[at]);
        let host = host(nodes, &name).map_err(|why| format!(":{line}: {why}"))?;
        if places.insert(row[of].to_vec(), host).is_some_and(|other| other != host) {
            let shown = shorten(&String::from_utf8_lossy(&row[of]));
            return Err(format!(
                ":{line}: the component \"{shown}\" is already placed on another host"
            ));
        }
    }
    let of = |component: &String| {
        let found = places.get(component.as_bytes()).copied();
        found.ok_or_else(|| format!(": names no host for the component \"{}\"", shorten(component)))
    };
    book.components.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use eastwest_network::topology::{CableConfig, Topology};
    use eastwest_types::Rate;

    #[test]
    fn places_come_from_names_and_from_files() {
        let cable = CableConfig { rate: Rate::gbit(1), delay: Span::from_us(5) };
        let nodes = Nodes::new(&Topology::Star { hosts: 4, cards: 1, host: cable });
        let book = |names: &[&str]| Book {
            components: names.iter().map(|n| (*n).to_owned()).collect(),
            ..Book::default()
        };
        let (web, hosts) = (book(&["web", "db"]), book(&["h3", "h0"]));
        assert_eq!(by_name(&nodes, &hosts), Ok(vec![HostId(3), HostId(0)]));
        assert!(by_name(&nodes, &web).is_err_and(|e| e.contains("no host \"web\"")));
        let of = |text: &str| from_file(text.as_bytes(), &nodes, &web);
        assert_eq!(of("host,instance\nh2,web\nh1,db\n"), Ok(vec![HostId(2), HostId(1)]));
        for (text, expected) in [
            ("component\n", ":1: has no column host"),
            ("component,host\nweb,h9\n", ":2: there is no host \"h9\""),
            (
                "component,host\nweb,h1\nweb,h2\n",
                ":3: the component \"web\" is already placed on another host",
            ),
            ("component,host\nweb,h1\n", ": names no host for the component \"db\""),
        ] {
            let found = of(text).expect_err(text);
            assert!(found.contains(expected), "{text:?}: {found}");
        }
    }
}
