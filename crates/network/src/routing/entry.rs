//! Entries of the table of next hops.

use serde::{Deserialize, Serialize};

/// A set of equal ports.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Group {
    /// Index of the first port of the set among the ports of all sets.
    pub first: u32,
    /// Number of ports.
    pub count: u32,
    /// Index of the port that is next in turn.
    pub turn: u32,
}

/// Bit of a table entry that refers to a group. Other entries are links, or one of the constants below.
pub const GROUP_BIT: u32 = 1 << 31;
/// Entry for a host that is attached to this switch.
pub const LOCAL: u32 = GROUP_BIT - 1;
/// Entry without a path; no link has this number.
pub const NO_ROUTE: u32 = u32::MAX;
/// Result for a CNM that was absorbed; no link has this number.
pub const ABSORBED: u32 = u32::MAX - 1;
