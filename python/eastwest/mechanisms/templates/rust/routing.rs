//! `@NAME@`: a choice among equal paths: the path of the flow's hash, or a second path if many more
//! packets wait for the first.
//!
//! Parts to change: `Settings` has the keys of the scenario, in `[fabric.routing_parameters]`;
//! `choose` is the rule. It is called for each packet that has more than one shortest path.

use eastwest::Mechanisms;
use eastwest::parameters::{Section, key};
use eastwest::routing::{Choice, CustomRouting, RoutingModel, SwitchPlace};

/// Settings of the scenario, in `[fabric.routing_parameters]`.
#[derive(Clone, Debug)]
struct Settings {
    margin: u32,
}

impl Settings {
    fn read(s: &mut Section) -> Settings {
        let margin = s.get(
            key("margin", "Packets by which the first queue may be longer than the second.")
                .default("10"),
        );
        Settings { margin }
    }
}

impl RoutingModel for Settings {
    /// Returns the routing of one switch; each switch has its own.
    fn start(&self, place: &SwitchPlace) -> Box<dyn CustomRouting> {
        Box::new(WayOut { margin: self.margin as usize, switch: place.switch })
    }
}

/// Routing of one switch.
#[derive(Debug)]
struct WayOut {
    margin: usize,
    switch: u32,
}

/// Returns the numbers (below `paths`) of two different paths of a flow; they depend on the switch.
fn two_paths(flow_hash: u16, switch: u32, paths: usize) -> (usize, usize) {
    let mixed = (u32::from(flow_hash) ^ switch.wrapping_mul(0x9e37_79b9)).wrapping_mul(0x85eb_ca6b);
    let (first, further) = ((mixed >> 16) as usize, (mixed & 0xffff) as usize);
    let first = first % paths;
    (first, (first + 1 + further % (paths - 1)) % paths)
}

impl CustomRouting for WayOut {
    fn choose(&mut self, choice: &Choice) -> usize {
        let (first, second) = two_paths(choice.flow_hash, self.switch, choice.paths());
        let waiting = |path| choice.waiting(path).packets;
        if waiting(first) > waiting(second) + self.margin { second } else { first }
    }
}

/// Registers the mechanism under its name in scenarios; register further mechanisms here.
pub fn add(all: &mut Mechanisms) {
    all.routing("@NAME@", "the path of the flow's hash, or a second path if many more packets wait for the first", Settings::read);
}

#[cfg(not(test))]
eastwest::mechanisms!(add);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_paths_differ_and_all_are_used() {
        for paths in 2..6 {
            let mut used = vec![0; paths];
            for flow_hash in 0..1_000 {
                let (first, second) = two_paths(flow_hash, 3, paths);
                assert_ne!(first, second);
                used[first] += 1;
            }
            assert!(used.iter().all(|&n| n > 500 / paths), "{used:?}");
        }
    }
}
