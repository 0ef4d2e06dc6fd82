//! Entries of the table of next hops.

use serde::{Deserialize, Serialize};

/// A set of equal ports, to which entries of the table of next hops refer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Group {
    /// Index of the first port of the set among the ports of all sets.
    pub first: u32,
    /// Number of ports of the set.
    pub count: u32,
    /// Index of the port that is next in turn.
    pub turn: u32,
}

/// Bit of a table entry that refers to a group. Other entries are links, or one of the constants below.
pub const GROUP_BIT: u32 = 1 << 31;
/// Entry of the table of next hops for a switch's own hosts.
pub const LOCAL: u32 = GROUP_BIT - 1;
/// Entry of the table of next hops where there is no path; no link has this number.
pub const NO_ROUTE: u32 = u32::MAX;
/// Number returned in place of the next link for a CNM that a switch has absorbed; no link has this
/// number.
pub const ABSORBED: u32 = u32::MAX - 1;
