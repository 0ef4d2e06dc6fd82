//! Dumbbell: two switches with hosts, connected by one cable, the trunk. All traffic between the
//! two sides shares the trunk; traffic within a side does not use it.

use super::description::{CableConfig, Topology};

/// Builds a dumbbell with hosts `h0 …`, first the hosts of the left switch, and the switches `left`
/// and `right`. `trunk` is the cable between the switches.
pub fn build(left: u32, right: u32, host: CableConfig, trunk: CableConfig) -> Topology {
    let hosts = left + right;
    let (left_switch, right_switch) = (hosts, hosts + 1);
    let switch = |h| if h < left { left_switch } else { right_switch };
    let mut cables: Vec<_> = (0..hosts).map(|h| (h, switch(h), host)).collect();
    cables.push((left_switch, right_switch, trunk));
    Topology::Graph {
        hosts: (0..hosts).map(|i| format!("h{i}")).collect(),
        switches: vec!["left".to_owned(), "right".to_owned()],
        cables,
        regular: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Graph;
    use super::super::shape::Shape;
    use super::*;
    use eastwest_types::{Rate, Span};

    #[test]
    fn one_cable_joins_both_sides_and_has_its_own_rate() {
        let host = CableConfig { rate: Rate::mbit(50), delay: Span::from_us(20) };
        let trunk = CableConfig { rate: Rate::mbit(80), delay: Span::from_us(30) };
        let topology = build(3, 2, host, trunk);
        let shape = Shape::of(&topology);
        assert_eq!((shape.hosts, shape.switches(), shape.cables()), (5, 2, 6));
        assert_eq!((shape.paths(0, 4), shape.paths(0, 2), shape.diameter()), (1, 1, 3));
        let even = Shape::of(&build(2, 2, host, trunk));
        assert_eq!(even.bisection_of_hosts(), 1, "one cable between the halves");
        let graph = Graph::build(&topology);
        let between = graph.cables.iter().filter(|c| c.a >= graph.hosts);
        assert_eq!(between.map(|c| c.config).collect::<Vec<_>>(), [trunk]);
        let name = |n: u32| graph.names[n as usize].as_str();
        let edges: Vec<_> = graph.cables[..5].iter().map(|c| (name(c.a), name(c.b))).collect();
        let (left, right) = ("left", "right");
        let expected = [("h0", left), ("h1", left), ("h2", left), ("h3", right), ("h4", right)];
        assert_eq!(edges, expected);
    }
}
