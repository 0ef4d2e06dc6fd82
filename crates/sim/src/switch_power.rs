//! Power of switches, without the transceivers of their links: base + ports + lanes.
//!
//! P = base + Σ over ports (port + lanes of the port × lane), constant over time. It is the linear
//! model of P. Mahadevan et al. (*A Power Benchmarking Framework for Network Devices*, Networking
//! 2009) for one configuration, without its line cards and its load factor. A port is an end of a
//! cable; ports without a cable use no power.
//!
//! A lane carries 25 Gbit/s if the rate of the port is a multiple of 25 Gbit/s, and 10 Gbit/s
//! otherwise, as in IEEE 802.3 (40GBASE-R has four lanes, 25GBASE-R one, 100GBASE-R four), unless
//! the scenario sets the rate of a lane. No values are valid for all switches, so the defaults are
//! 0 W.

use eastwest_network::topology::Graph;
use eastwest_settings::quantity::Ratio;
use eastwest_settings::reader::{Section, key};
use eastwest_types::Rate;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Power of a switch, in watts.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SwitchPower {
    /// Power of a switch without cables, in watts: chassis, fans, processor, switching chip.
    pub base_w: f64,
    /// Power of a port that has a cable, in watts.
    pub port_w: f64,
    /// Power of each lane of a port that has a cable, in watts.
    pub lane_w: f64,
    /// Rate of a lane; `None`: 25 Gbit/s if the rate of the port is a multiple of 25 Gbit/s,
    /// otherwise 10 Gbit/s.
    pub lane_rate: Option<Rate>,
}

/// Energy of all switches of a fabric in joules, without the transceivers of their links.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct SwitchJoules {
    /// Energy of all chassis in joules, independent of cables.
    pub base: f64,
    /// Energy of all ports with a cable, in joules.
    pub ports: f64,
    /// Energy of the lanes of all ports with a cable, in joules.
    pub lanes: f64,
}

impl SwitchPower {
    /// Reads the table `[fabric.switch_power]`; without this table switches use no power.
    pub fn read(s: &mut Section) -> SwitchPower {
        let doc = "Power of switches, in addition to the power of links; without any watts it is \
                   not reported.";
        s.table("switch_power", doc, |p| {
            let watts: [(&'static str, &'static str); 3] = [
                ("base_w", "Power in W of every switch, independent of its ports."),
                (
                    "port_w",
                    "Power in W of every switch port with a cable, in addition to active_w of its \
                     link.",
                ),
                ("lane_w", "Power in W of every lane of a switch port with a cable."),
            ];
            let [base_w, port_w, lane_w] = watts.map(|(name, doc)| {
                p.get(key::<Ratio>(name, doc).default("0").range("0", "100000")).0
            });
            let lane_rate: Option<Rate> = p.find(
                key("lane_rate", "Rate of a lane (if absent, as in IEEE 802.3).")
                    .optional("25 Gbit/s if it divides the rate of the port, otherwise 10 Gbit/s")
                    .range("1 Mbit/s", "1 Tbit/s"),
            );
            p.demand(lane_rate.is_none() || lane_w > 0.0, &["lane_rate", "lane_w"], || {
                "has an effect only together with lane_w".to_owned()
            });
            SwitchPower { base_w, port_w, lane_w, lane_rate }
        })
    }

    /// Returns the number of lanes of a port with this rate.
    pub fn lanes(&self, rate: Rate) -> u64 {
        let by_rate = if rate.0 % Rate::gbit(25).0 == 0 { 25 } else { 10 };
        let each = self.lane_rate.unwrap_or(Rate::gbit(by_rate));
        rate.0.div_ceil(each.0)
    }

    /// Returns the energy that all switches of a fabric use in `seconds`, without the transceivers
    /// of their links.
    pub fn joules(&self, graph: &Graph, seconds: f64) -> SwitchJoules {
        let (mut ports, mut lanes) = (0, 0);
        for cable in &graph.cables {
            let ends = [cable.a, cable.b].into_iter().filter(|&node| node >= graph.hosts).count();
            ports += ends as u64;
            lanes += ends as u64 * self.lanes(cable.config.rate);
        }
        SwitchJoules {
            base: self.base_w * f64::from(graph.switches()) * seconds,
            ports: self.port_w * ports as f64 * seconds,
            lanes: self.lane_w * lanes as f64 * seconds,
        }
    }
}

impl SwitchJoules {
    /// Returns the sum of the energy of chassis, ports and lanes, in joules.
    pub fn total(&self) -> f64 {
        self.base + self.ports + self.lanes
    }

    /// Returns the energy of switches in joules for the summary: `total`, `base` (chassis), `ports`
    /// and `lanes`.
    pub fn summary(&self) -> Value {
        json!({
            "total": self.total(), "base": self.base, "ports": self.ports, "lanes": self.lanes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eastwest_network::topology::{CableConfig, HostCards, Topology};
    use eastwest_types::Span;

    #[test]
    fn lanes_are_those_of_the_standards() {
        let auto = SwitchPower::default();
        for (gbit, lanes) in [(1, 1), (10, 1), (25, 1), (40, 4), (50, 2), (100, 4), (400, 16)] {
            assert_eq!(auto.lanes(Rate::gbit(gbit)), lanes, "{gbit} Gbit/s");
        }
        let fast = SwitchPower { lane_rate: Some(Rate::gbit(50)), ..auto };
        assert_eq!((fast.lanes(Rate::gbit(400)), fast.lanes(Rate::mbit(100))), (8, 1));
    }

    #[test]
    fn every_switch_and_every_end_of_a_cable_counts_once() {
        let cable = |rate| CableConfig { rate, delay: Span::ZERO };
        let graph = Graph::build(&Topology::LeafSpine {
            leaves: 2,
            hosts_per_leaf: 3,
            spines: 2,
            cables_per_spine: 1,
            cards: HostCards::ONE,
            host: cable(Rate::gbit(10)),
            uplink: cable(Rate::gbit(40)),
        });
        let power = SwitchPower { base_w: 100.0, port_w: 2.0, lane_w: 0.5, lane_rate: None };
        // 4 switches; 6 ports to hosts with one lane each; 4 cables between switches, so 8 ports
        // with 4 lanes each
        let used = power.joules(&graph, 10.0);
        assert_eq!(used, SwitchJoules { base: 4000.0, ports: 280.0, lanes: 190.0 });
        assert_eq!(used.total(), 4470.0);
    }
}
