//! Roles of the processes of an application.

/// A role of processes of an application, such as client or server. A scenario lists the hosts of
/// each role under a key with the name of the role; each host of the list runs one process with
/// this role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Role {
    /// Name of the role, which is also the key of its list of hosts in scenarios.
    pub name: &'static str,
    /// Description of the role's key in one line.
    pub doc: &'static str,
}
