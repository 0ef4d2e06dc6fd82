//! `@NAME@`: a choice among equal paths, by flow but with a way out: the path that the flow's hash
//! gives, unless more packets wait there than on a second one.
//!
//! What to change: `Settings` are the keys of the scenario, below `[fabric.routing_parameters]`;
//! `choose` is the rule. It is asked for each packet with more than one shortest path.

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
            key("margin", "Packets that may wait more on the first path than on the second.")
                .default("10"),
        );
        Settings { margin }
    }
}

impl RoutingModel for Settings {
    /// Every switch gets a choice of its own.
    fn start(&self, place: &SwitchPlace) -> Box<dyn CustomRouting> {
        Box::new(WayOut { margin: self.margin as usize, switch: place.switch })
    }
}

/// The choice of one switch.
#[derive(Debug)]
struct WayOut {
    margin: usize,
    switch: u32,
}

/// Two different paths for a flow, below `paths`; each switch has its own order.
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

/// Adds it to what scenarios can name; further mechanisms of this crate are added here.
pub fn add(all: &mut Mechanisms) {
    all.routing("@NAME@", "by flow, unless much more waits there", Settings::read);
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
