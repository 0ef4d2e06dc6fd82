//! Checks of the settings of workloads: all objections are collected before a workload is refused.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)
)]

use crate::protocol::Cluster;
use eastwest_types::HostId;

/// Reasons why the settings of a workload are invalid, in the order of the checks.
pub(crate) struct Objections(Vec<String>);

impl Objections {
    pub(crate) fn new() -> Objections {
        Objections(Vec::new())
    }

    /// Adds `reason` to the objections if `holds` is false.
    pub(crate) fn require(&mut self, holds: bool, reason: impl FnOnce() -> String) {
        if !holds {
            self.0.push(reason());
        }
    }

    /// Adds an objection for each host that does not exist in the fabric, and for each host that is
    /// named twice. `role`: name of the setting that lists the hosts, with which the objection
    /// begins.
    pub(crate) fn require_hosts(&mut self, role: &str, hosts: &[HostId], cluster: &Cluster) {
        let count = cluster.rack_of.len();
        let mut seen = vec![false; count];
        for host in hosts {
            match seen.get_mut(host.0 as usize) {
                None => self.0.push(format!(
                    "{role}: there is no host {}; the fabric has hosts 0 to {}",
                    host.0,
                    count.saturating_sub(1)
                )),
                Some(seen) => {
                    if std::mem::replace(seen, true) {
                        self.0.push(format!("{role}: host {} is named twice", host.0));
                    }
                }
            }
        }
    }

    /// Returns the result of `value` if there are no objections, otherwise all objections.
    pub(crate) fn unless_any<T>(self, value: impl FnOnce() -> T) -> Result<T, Vec<String>> {
        if self.0.is_empty() { Ok(value()) } else { Err(self.0) }
    }
}
