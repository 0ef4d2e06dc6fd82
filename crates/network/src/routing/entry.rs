//! Entries of the table of next hops.

use serde::{Deserialize, Serialize};

/// A set of equal ports.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Group {
    /// Place of its first port among those of all sets.
    pub first: u32,
    /// How many ports it has.
    pub count: u32,
    /// The next one in turn.
    pub turn: u32,
}

/// An entry of the table is a link, or a group where this bit is set, or one of the two below.
pub const GROUP_BIT: u32 = 1 << 31;
/// The host hangs on this switch.
pub const LOCAL: u32 = GROUP_BIT - 1;
/// No path; no link has this number.
pub const NO_ROUTE: u32 = u32::MAX;
/// A notification that has done its work; no link has this number.
pub const ABSORBED: u32 = u32::MAX - 1;
