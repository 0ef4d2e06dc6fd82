//! Table of next hops on equal-cost shortest paths over usable cables.
//!
//! A table holds an entry for every switch and column; columns are edge switches, and hosts with
//! several cards that share an address. In [`regular`] fabrics, entries are first computed by
//! switch and direction (see [`directions`]): a few entries for each switch, from positions alone.
//! Cables that are down change some of these entries, see [`changes`]. In all other graphs a
//! breadth-first search for every edge switch fills the table (see [`shortest`]).
//!
//! A table of up to [`MOST_WHOLE`] bytes is always expanded to switch × column, which makes
//! look-ups fastest. Larger tables of regular fabrics store entries by direction.
//!
//! [`regular`]: crate::topology::regular
//! [`directions`]: super::directions
//! [`changes`]: super::changes
//! [`shortest`]: super::shortest

use super::changes::Changes;
use super::directions::{self, Directions, towards};
use super::entry::{GROUP_BIT, Group, LOCAL, NO_ROUTE};
use super::neighbours::Neighbours;
use super::sets::Sets;
use super::shortest;
use crate::topology::Graph;
use crate::topology::regular::Regular;
use eastwest_engine::interrupt;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Largest size in bytes up to which the table of a regular fabric is expanded to switch × column.
const MOST_WHOLE: u64 = 32 << 20;
/// Size of a table entry in bytes.
const ENTRY: u64 = size_of::<u32>() as u64;
/// Size in bytes of the record of a set of ports, without the ports themselves.
const SET: u64 = size_of::<Group>() as u64;

/// Table of next hops: entries of all switches, and the sets of equal ports to which entries refer.
#[derive(Serialize, Deserialize)]
pub struct Table {
    /// Number of columns, see [`Columns`].
    pub columns: u32,
    /// Entries by switch × column; empty if they are stored by direction.
    entries: Vec<u32>,
    /// Entries by direction, with the numbers of directions; `None` if entries are stored by switch
    /// × column.
    by_direction: Option<Box<(Directions, Vec<u32>)>>,
    /// Entries that differ from the entry of their direction because cables are down, by switch and
    /// column.
    changed: BTreeMap<(u32, u32), u32>,
    /// Sets of equal ports to which entries refer.
    pub groups: Vec<Group>,
    /// Links of all sets of equal ports; the links of one set are consecutive.
    pub members: Vec<u32>,
}

/// Columns of the table of next hops: first one column for each edge switch, then one for each host
/// with several cards that share its address.
pub struct Columns {
    /// By switch, its column as an edge switch; `u32::MAX` if the switch is not an edge switch.
    pub of_switch: Vec<u32>,
    /// Edge switches, by column.
    pub edges: Vec<u32>,
    /// Cables of each host with its own column, by column after the edge switches.
    pub hosts: Vec<Vec<u32>>,
}

/// Returns the columns of the table of a graph, in the order of hosts.
pub fn columns(graph: &Graph) -> Columns {
    let of_switch = vec![u32::MAX; graph.switches() as usize];
    let mut columns = Columns { of_switch, edges: Vec::new(), hosts: Vec::new() };
    let Some(cards) = graph.cables_of_cards() else {
        graph.edge_of_host().into_iter().for_each(|edge| columns.add(edge));
        return columns;
    };
    for cables in cards {
        if cables.len() > 1 && !graph.card_addresses {
            columns.hosts.push(cables);
            continue;
        }
        for cable in cables {
            columns.add(graph.cables[cable as usize].b - graph.hosts);
        }
    }
    columns
}

impl Columns {
    fn add(&mut self, edge: u32) {
        if edge != u32::MAX && self.of_switch[edge as usize] == u32::MAX {
            self.of_switch[edge as usize] = self.edges.len() as u32;
            self.edges.push(edge);
        }
    }
}

/// Whether a table of `switches` × `columns` entries is expanded to switch × column even in a
/// regular fabric.
fn is_small(switches: u64, columns: u64) -> bool {
    switches.saturating_mul(columns).saturating_mul(ENTRY) <= MOST_WHOLE
}

/// Returns (memory of a table of next hops, memory needed temporarily to build it), in bytes,
/// before any fault. `links` is the number of links between switches. In an irregular fabric, the
/// number of sets of ports is estimated as two for every link.
pub fn bytes(switches: u64, columns: u64, links: u64, regular: Option<&Regular>) -> (u64, u64) {
    let whole = switches.saturating_mul(columns).saturating_mul(ENTRY);
    let degree = links / switches.max(1) + 1;
    let neighbours = links * size_of::<(u32, u32)>() as u64;
    let of_sets = |sets: u64, members: u64| sets * SET + members * ENTRY;
    let Some(regular) = regular.filter(|regular| has_directions(regular)) else {
        return (whole + of_sets(2 * links, links * degree.min(8)), neighbours + whole / 8);
    };
    let by_direction = directions::count(regular);
    let sets = match regular {
        // In a torus, about half of the ports of a switch are in the set of a direction.
        Regular::Torus(_) => of_sets(by_direction, by_direction * degree.div_ceil(2)),
        Regular::Tree(_) => of_sets(switches, links / 2),
    };
    let places = Directions::bytes_of(regular);
    if is_small(switches, columns) {
        (whole + sets, neighbours + places + by_direction * ENTRY)
    } else {
        (by_direction * ENTRY + sets + places, neighbours)
    }
}

/// Whether the directions of all switches can be numbered in 31 bits.
fn has_directions(regular: &Regular) -> bool {
    directions::count(regular) < u64::from(GROUP_BIT)
}

impl Table {
    fn new(Sets { groups, members, .. }: Sets, columns: u32, entries: Vec<u32>) -> Table {
        Table { columns, entries, by_direction: None, changed: BTreeMap::new(), groups, members }
    }

    /// Computes the table of shortest paths over usable cables; `usable` returns whether the cable
    /// with a given number is usable. `weights` has the weights of links by link number; other
    /// links have weight 1.
    pub fn build(
        graph: &Graph,
        weights: &BTreeMap<u32, u32>,
        usable: &dyn Fn(usize) -> bool,
    ) -> Table {
        let Columns { edges, hosts, .. } = columns(graph);
        let rule = graph.regular.as_ref().filter(|regular| has_directions(regular));
        let mut sets = Sets::new(weights);
        let Some(regular) = rule else {
            let down = |cable: &u32| (graph.cables[*cable as usize].b - graph.hosts, 2 * cable + 1);
            let usable_cards = |cables: &Vec<u32>| {
                cables.iter().filter(|&&cable| usable(cable as usize)).map(down).collect()
            };
            let hosts: Vec<Vec<(u32, u32)>> = hosts.iter().map(usable_cards).collect();
            let neighbours = Neighbours::new(graph, usable);
            let entries = shortest::entries(&neighbours, (&edges, &hosts), &mut sets);
            return Table::new(sets, (edges.len() + hosts.len()) as u32, entries);
        };
        assert!(edges.iter().copied().eq(0..regular.edges()), "columns are edge switches");
        let mut table = Table::by_direction(graph, regular, sets, usable);
        if is_small(u64::from(graph.switches()), edges.len() as u64) {
            table.lay_out(graph.switches());
        }
        table
    }

    /// Returns the table of a regular fabric with entries by direction.
    fn by_direction(
        graph: &Graph,
        regular: &Regular,
        mut sets: Sets,
        usable: &dyn Fn(usize) -> bool,
    ) -> Table {
        let columns = regular.edges();
        let directions = Directions::new(regular);
        let all = Neighbours::new(graph, &|_| true);
        let entries = entries_by_direction(&directions, &all, &mut sets);
        let changed = match down(graph, usable) {
            none if none.is_empty() => BTreeMap::new(),
            down => {
                let usable = Neighbours::new(graph, usable);
                let changes = Changes { directions: &directions, all: &all, usable: &usable };
                changes.find(&down, columns, &entries, &mut sets)
            }
        };
        let by_direction = Some(Box::new((directions, entries)));
        Table { by_direction, changed, ..Table::new(sets, columns, Vec::new()) }
    }

    /// Expands the entries from switch × direction to switch × column; columns are edge switches.
    fn lay_out(&mut self, switches: u32) {
        let mut entries = Vec::with_capacity(switches as usize * self.columns as usize);
        for switch in 0..switches {
            interrupt::steps(u64::from(self.columns));
            entries.extend((0..self.columns).map(|column| *self.entry(switch, column)));
        }
        self.entries = entries;
        self.by_direction = None;
        self.changed = BTreeMap::new();
    }

    /// Returns the next hop of a switch for the edge switch of column `column`, as a table entry.
    #[inline(always)]
    pub fn entry(&self, switch: u32, column: u32) -> &u32 {
        match self.entries.get(switch as usize * self.columns as usize + column as usize) {
            Some(entry) => entry,
            None => self.entry_by_direction(switch, column),
        }
    }

    #[inline(never)]
    fn entry_by_direction(&self, switch: u32, column: u32) -> &u32 {
        let by_direction = self.by_direction.as_deref();
        let (directions, entries) = by_direction.expect("the table has no such switch or column");
        if !self.changed.is_empty()
            && let Some(entry) = self.changed.get(&(switch, column))
        {
            return entry;
        }
        &entries[directions.cell(switch, column)]
    }

    /// Returns the links of the set of equal ports to which the table entry `entry` refers.
    #[inline]
    pub fn members_of(&self, entry: u32) -> &[u32] {
        let group = self.groups[(entry & !GROUP_BIT) as usize];
        &self.members[group.first as usize..][..group.count as usize]
    }
}

/// Returns the two switches of each cable between switches that is not usable.
fn down(graph: &Graph, usable: &dyn Fn(usize) -> bool) -> Vec<(u32, u32)> {
    let between = graph.cables.iter().enumerate().filter(|(_, c)| c.a >= graph.hosts);
    between
        .filter(|(i, _)| !usable(*i))
        .map(|(_, c)| (c.a - graph.hosts, c.b - graph.hosts))
        .collect()
}

/// Returns the table entries (next hops) of all switches by direction, while all cables are usable.
fn entries_by_direction(directions: &Directions, all: &Neighbours, sets: &mut Sets) -> Vec<u32> {
    let (mut entries, mut ports) = (Vec::new(), Vec::new());
    for switch in 0..all.switches() {
        interrupt::steps(64);
        for example in directions.examples(switch) {
            entries.push(match example {
                None => NO_ROUTE,
                Some(edge) if edge == switch => LOCAL,
                Some(edge) => {
                    towards(directions, all, switch, edge, &mut ports);
                    sets.entry(&ports)
                }
            });
        }
        // The sets of this switch contain its own links, so that no other switch can have an equal
        // set.
        sets.forget();
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::torus;
    use crate::topology::xgft::Xgft;
    use crate::topology::{CableConfig, HostCards, Topology};
    use eastwest_engine::random::Stream;
    use eastwest_types::{Rate, Span};
    use std::collections::BTreeSet;

    const CABLE: CableConfig = CableConfig { rate: Rate::gbit(1), delay: Span::from_us(1) };

    fn regular_fabrics() -> Vec<Graph> {
        let xgft = |children: &[u32], parents: &[u32]| {
            let (children, parents) = (children.to_vec(), parents.to_vec());
            Xgft { children, parents }.build(CABLE, CABLE)
        };
        let leaf_spine = |leaves, spines, cables_per_spine| {
            let (host, uplink) = (CABLE, CABLE);
            Topology::LeafSpine {
                leaves,
                hosts_per_leaf: 2,
                spines,
                cables_per_spine,
                cards: HostCards::ONE,
                host,
                uplink,
            }
        };
        let fat_tree = |k| Topology::FatTree { k, hosts_per_edge: 2, host: CABLE, uplink: CABLE };
        let torus = |sizes: &[u32]| torus::build(sizes, 2, CABLE, CABLE);
        let all = [
            Topology::Star { hosts: 3, cards: 1, host: CABLE },
            leaf_spine(1, 2, 1),
            leaf_spine(5, 3, 2),
            fat_tree(2),
            fat_tree(6),
            xgft(&[2, 3, 2], &[1, 2, 3]),
            xgft(&[3, 2, 2, 2], &[1, 1, 2, 2]),
            xgft(&[2, 1, 3], &[1, 3, 1]),
            Xgft::k_ary_n_tree(3, 3).build(CABLE, CABLE),
            torus(&[2]),
            torus(&[7]),
            torus(&[6, 5]),
            torus(&[4, 2, 3]),
            torus(&[2, 2, 2, 2]),
        ];
        all.iter().map(Graph::build).collect()
    }

    /// Returns the ports of all table entries, by switch and column.
    fn all_ports(table: &Table, switches: u32) -> Vec<Vec<u32>> {
        let each = |switch| (0..table.columns).map(move |column| (switch, column));
        let ports = |(switch, column)| match *table.entry(switch, column) {
            entry if entry & GROUP_BIT != 0 && entry != NO_ROUTE => table.members_of(entry).into(),
            only => vec![only],
        };
        (0..switches).flat_map(each).map(ports).collect()
    }

    /// Compares a table of next hops by direction, before and after its expansion, with the table
    /// from a breadth-first search over the usable cables.
    fn compare(graph: &Graph, usable: &dyn Fn(usize) -> bool, weights: &BTreeMap<u32, u32>) {
        let edges = columns(graph).edges;
        let mut sets = Sets::new(weights);
        let neighbours = Neighbours::new(graph, usable);
        let entries = shortest::entries(&neighbours, (&edges, &[]), &mut sets);
        let searched = Table::new(sets, edges.len() as u32, entries);
        let regular = graph.regular.as_ref().expect("a regular fabric");
        let table = Table::by_direction(graph, regular, Sets::new(weights), usable);
        let expected = all_ports(&searched, graph.switches());
        assert_eq!(all_ports(&table, graph.switches()), expected, "{regular:?}");
        let laid_out = Table::build(graph, weights, usable);
        assert!(table.by_direction.is_some() && laid_out.by_direction.is_none());
        assert_eq!(all_ports(&laid_out, graph.switches()), expected, "{regular:?}");
        // Equal sets of a switch must be stored once, so that round robin covers all their packets.
        let named = laid_out.entries.iter().filter(|e| **e & GROUP_BIT != 0 && **e != NO_ROUTE);
        let named: BTreeSet<&u32> = named.collect();
        let different: BTreeSet<_> = expected.iter().filter(|ports| ports.len() > 1).collect();
        assert_eq!(named.len(), different.len());
    }

    #[test]
    fn positions_give_the_ports_that_a_search_finds() {
        for graph in regular_fabrics() {
            compare(&graph, &|_| true, &BTreeMap::new());
            let weights = (0..graph.cables.len() as u32).map(|link| (2 * link, 1 + link % 3));
            compare(&graph, &|_| true, &weights.collect());
        }
    }

    #[test]
    fn cables_that_are_down_change_what_a_search_would_change() {
        let mut random = Stream::new(7, "cables that are down");
        for graph in regular_fabrics() {
            let cables = graph.cables.len() as u64;
            for round in 0..12u64 {
                // The number of cables that are down is from one to more than half of all.
                let most = if round < 6 { 1 + round } else { round * cables / 16 };
                let down: Vec<u64> = (0..most).map(|_| random.below(cables)).collect();
                compare(&graph, &|cable| !down.contains(&(cable as u64)), &BTreeMap::new());
            }
        }
    }

    #[test]
    fn directions_take_less_room_than_columns() {
        let sizes = vec![300, 300];
        let (kept, besides) = bytes(90_000, 90_000, 360_000, Some(&Regular::Torus(sizes)));
        assert!(kept < 60_000_000 && besides < 20_000_000, "{kept} {besides}");
    }
}
