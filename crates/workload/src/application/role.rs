//! Roles of the processes of an application.

/// A role of processes, such as client or server. A scenario names the hosts of each role by a key
/// with the name of the role; each host of the list runs one process with this role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Role {
    /// Name of the role: the key of the list of its hosts.
    pub name: &'static str,
    /// Meaning of the key, in one line.
    pub doc: &'static str,
}
