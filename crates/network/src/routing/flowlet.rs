//! Flowlet routing: after a pause in a flow that is longer than the difference in delay between
//! paths, the next packets can use another path without reordering (Sinha, Kandula and Katabi,
//! HotNets 2004). Each new flowlet uses a random port, independent of load, as in LetFlow (Vanini
//! et al., *Let It Flow*, NSDI 2017). LetFlow balances load because flowlets are shorter on
//! congested paths.
//!
//! Each switch has a table with a fixed number of entries. A hash of flow and receiving host
//! selects the entry, and flows that share an entry are not distinguished, as in the hardware of
//! CONGA (Alizadeh et al., SIGCOMM 2014: 64 K entries, a gap of 500 µs). Unused parts of the table
//! need no memory.
//!
//! Difference from LetFlow: if the port in an entry is not on a shortest path to the receiver, a
//! new flowlet begins. The port was then chosen for another flow, or its link has failed since.

use super::chooser::{BuiltIn, Chooser, RoutingSettings};
use super::query::{Query, SwitchPlace, View};
use eastwest_engine::random::{Stream, mix};
use eastwest_settings::{Section, key};
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};

/// Settings of flowlet routing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowletConfig {
    /// Idle time of a flow after which its next packet begins a new flowlet.
    pub gap: Span,
    /// Number of entries in the table of each switch, a power of two up to 65,536.
    pub entries: u32,
}

impl BuiltIn for FlowletConfig {
    const NAME: &'static str = "flowlet";
    const DOC: &'static str = "at random for every burst of a flow (LetFlow, Vanini et al. 2017)";
    const KEYS: &'static [&'static str] = &["flowlet_gap", "flowlet_entries"];

    fn read(s: &mut Section) -> FlowletConfig {
        const GAP: &str = "With flowlet: idle time of a flow after which its next packet begins a \
                           new burst. Choose it longer than the delay differences between paths \
                           (CONGA, Alizadeh et al. 2014: 500 us).";
        const ENTRIES: &str = "With flowlet: number of entries of each switch's table, rounded up \
                               to a power of two. Flows with the same hash share an entry (CONGA: \
                               65536).";
        let gap = s.find(key("flowlet_gap", GAP).optional("500 us").range("0 s", "10 s"));
        let entries: Option<u32> =
            s.find(key("flowlet_entries", ENTRIES).optional("65536").range("1", "65536"));
        FlowletConfig {
            gap: gap.unwrap_or(Span::from_us(500)),
            entries: entries.unwrap_or(1 << 16).next_power_of_two(),
        }
    }
}

impl RoutingSettings for FlowletConfig {
    type Chooser = Flowlet;

    fn start(&self, switches: u32, seed: u64) -> Flowlet {
        let random = |switch| SwitchPlace { switch, seed }.random("flowlet");
        Flowlet((0..switches).map(|switch| Flowlets::new(*self, random(switch))).collect())
    }
}

/// Flowlet tables of all switches.
#[derive(Serialize, Deserialize)]
pub struct Flowlet(Vec<Flowlets>);

impl Chooser for Flowlet {
    fn deals(&self) -> bool {
        true
    }

    fn choose<'f>(&mut self, query: &Query, _: &mut u32, view: impl FnOnce() -> View<'f>) -> usize {
        self.0[query.switch as usize].choose(view().now, query)
    }
}

/// Number of consecutive table entries that are allocated together.
const PAGE: usize = 256;

/// Time and output link of the latest packet of a flowlet.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Entry {
    at: Time,
    link: u32,
}

/// Value of a table entry that no packet has used.
const UNUSED: Entry = Entry { at: Time::ZERO, link: u32::MAX };

/// Flowlet table of one switch.
#[derive(Serialize, Deserialize)]
struct Flowlets {
    gap: Span,
    mask: u64,
    pages: Vec<Vec<Entry>>,
    stream: Stream,
}

impl Flowlets {
    /// Returns an empty flowlet table; `stream` is the source of the random numbers of the switch.
    fn new(config: FlowletConfig, stream: Stream) -> Flowlets {
        let entries = config.entries.next_power_of_two() as usize;
        let pages = vec![Vec::new(); entries.div_ceil(PAGE)];
        Flowlets { gap: config.gap, mask: entries as u64 - 1, pages, stream }
    }

    /// Returns the index, among the eligible ports, of the port on which a packet leaves, and
    /// records the packet in the table.
    fn choose(&mut self, now: Time, query: &Query) -> usize {
        let flow = u64::from(query.flow_hash) | u64::from(query.dst.0) << 16;
        let place = (mix(flow) & self.mask) as usize;
        let page = &mut self.pages[place / PAGE];
        if page.is_empty() {
            page.resize(PAGE, UNUSED);
        }
        let entry = &mut page[place % PAGE];
        let going_on = now.since(entry.at) <= self.gap;
        let known = query.members.iter().position(|&link| link == entry.link);
        let port = match known.filter(|_| going_on) {
            Some(port) => port,
            None => self.stream.below(query.members.len() as u64) as usize,
        };
        *entry = Entry { at: now, link: query.members[port] };
        port
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eastwest_types::HostId;

    fn table(entries: u32) -> Flowlets {
        let config = FlowletConfig { gap: Span::from_us(500), entries };
        Flowlets::new(config, Stream::new(1, "flowlet"))
    }

    fn packet(flow_hash: u16) -> Query<'static> {
        Query { switch: 0, dst: HostId(9), flow_hash, members: &[10, 12, 14, 16] }
    }

    #[test]
    fn a_flow_keeps_its_port_until_it_pauses() {
        let mut table = table(1 << 16);
        let (mut now, mut changes) = (Time::ZERO, 0);
        for burst in 0..200 {
            let port = table.choose(now, &packet(7));
            for _ in 0..20 {
                now += Span::from_us(500);
                assert_eq!(table.choose(now, &packet(7)), port, "burst {burst}");
            }
            now += Span::from_us(501);
            changes += u32::from(table.choose(now, &packet(7)) != port);
        }
        // A new random choice among four ports differs from the last one in three of four cases.
        assert!((120..180).contains(&changes), "{changes}");
    }

    #[test]
    fn flows_on_one_entry_share_its_port_and_a_link_that_is_gone_is_left() {
        let mut table = table(1);
        let port = table.choose(Time::ZERO, &packet(1));
        for hash in 2..60 {
            assert_eq!(table.choose(Time::ZERO, &packet(hash)), port);
        }
        let left: Vec<u32> =
            packet(0).members.iter().copied().filter(|&l| l != packet(0).members[port]).collect();
        let fewer = Query { members: &left, ..packet(1) };
        let link = left[table.choose(Time::ZERO, &fewer)];
        for _ in 0..20 {
            assert_eq!(left[table.choose(Time::ZERO, &fewer)], link);
        }
    }

    #[test]
    fn only_pages_that_packets_meet_take_memory() {
        let mut table = table(1 << 16);
        table.choose(Time::ZERO, &packet(1));
        assert_eq!(table.pages.iter().filter(|page| !page.is_empty()).count(), 1);
    }
}
