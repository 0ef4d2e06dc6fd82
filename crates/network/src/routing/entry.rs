//! Entries of the table of next hops.

use serde::{Deserialize, Serialize};

/// A set of equal ports, to which entries in the table of next hops refer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Group {
    /// Index of the first port of the set in the list of the ports of all sets.
    pub first: u32,
    /// Number of ports in the set.
    pub count: u32,
    /// Index, in the set, of the port on which the last packet left with round robin.
    pub turn: u32,
}

/// Bit of an entry in the table of next hops that refers to a set of ports ([`Group`]). Entries
/// without this bit are links or [`LOCAL`].
pub const GROUP_BIT: u32 = 1 << 31;
/// Entry in the table of next hops of an edge switch for its own hosts; no link has this number.
pub const LOCAL: u32 = GROUP_BIT - 1;
/// Entry in the table of next hops if there is no path; no link has this number.
pub const NO_ROUTE: u32 = u32::MAX;
/// Number returned instead of the next link for a CNM (congestion notification message) that a
/// switch has absorbed; no link has this number.
pub const ABSORBED: u32 = u32::MAX - 1;
