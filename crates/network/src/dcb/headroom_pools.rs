//! Checks whether the headroom pool of a switch can be too small: whether the headrooms of its
//! inputs together are larger than the pool.

use super::pfc::{Wire, headroom};
use crate::config::FabricConfig;
use crate::footprint::Footprint;
use crate::topology::Graph;

/// Largest memory in bytes for the nodes of a fabric that is built only for this check.
const MOST_BYTES: u64 = 256 << 20;

/// A switch whose headroom pool is smaller than the headrooms of its inputs together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverSubscribed {
    /// Name of the switch.
    pub switch: String,
    /// Size of the headroom pool of the switch in IP bytes.
    pub pool: u64,
    /// Headrooms of all lossless priorities of the inputs of the switch together, in IP bytes.
    pub sum: u64,
    /// Number of (input, lossless priority) pairs of the switch.
    pub count: u64,
}

/// Returns the switch whose headroom pool is smallest relative to the headrooms of its inputs;
/// `None` if every pool is large enough, if there are no pools, or if the fabric is very large.
pub fn most_over_subscribed(config: &FabricConfig) -> Option<OverSubscribed> {
    let pfc = config.dcb.pfc.as_ref()?;
    let shared = pfc.shared?;
    let pool = shared.headroom_pool?;
    if Footprint::of(config).nodes > MOST_BYTES {
        return None;
    }
    let graph = Graph::build(&config.topology);
    let wire = Wire { mtu: config.mtu, framing: config.framing, min_frame: config.min_frame };
    let priorities = u64::from(pfc.priorities.count_ones());
    let mut inputs = vec![(0u64, 0u64); graph.names.len()];
    for cable in &graph.cables {
        let own = headroom(&cable.config, &wire, pfc.response);
        let each = shared.headroom.unwrap_or(own).saturating_mul(priorities);
        for node in [cable.a, cable.b] {
            let (sum, count) = &mut inputs[node as usize];
            (*sum, *count) = (sum.saturating_add(each), *count + priorities);
        }
    }
    let switches = (0..).zip(&inputs).skip(graph.hosts as usize);
    let small = switches.filter(|(_, (sum, _))| pool.bytes(*sum) < *sum);
    let covered = |sum: u64| pool.bytes(sum) as f64 / sum as f64;
    let (node, &(sum, count)) =
        small.min_by(|(_, a), (_, b)| covered(a.0).total_cmp(&covered(b.0)))?;
    let switch = graph.names[node as usize].clone();
    Some(OverSubscribed { switch, pool: pool.bytes(sum), sum, count })
}
