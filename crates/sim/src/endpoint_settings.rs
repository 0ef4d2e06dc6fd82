//! TCP settings of an endpoint: the first table `[[tcp.override]]` that matches the endpoint, or
//! the table `[tcp]` if no override matches.

use eastwest_transport::tcp::MAX_SETTINGS;
use eastwest_transport::tcp::config::TcpConfig;
use eastwest_types::{HostId, Side};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Maximum number of tables `[[tcp.override]]`. Two ends with different settings use the options
/// that both offer, so each pair of different settings may need two more entries in the stack's
/// list of settings, whose length is limited.
pub const MOST_OVERRIDES: usize = 10;
const _: () = assert!((MOST_OVERRIDES + 1) * (MOST_OVERRIDES + 1) <= MAX_SETTINGS);

/// A table `[[tcp.override]]`: TCP settings for the endpoints that match all filters. A filter that
/// is `None` matches every endpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpOverride {
    /// Filter: numbers of the workloads that open the connections of the endpoints.
    pub workloads: Option<BTreeSet<u16>>,
    /// Filter: hosts of the endpoints.
    pub hosts: Option<BTreeSet<HostId>>,
    /// Filter: hosts of the peers of the endpoints.
    pub peers: Option<BTreeSet<HostId>>,
    /// Filter: side of the endpoint in its connection, client (opens it) or server (accepts it).
    pub side: Option<Side>,
    /// TCP settings of the endpoints that match all filters.
    pub config: TcpConfig,
}

impl TcpOverride {
    fn matches(&self, workload: u16, side: Side, host: HostId, peer: HostId) -> bool {
        self.workloads.as_ref().is_none_or(|all| all.contains(&workload))
            && self.hosts.as_ref().is_none_or(|all| all.contains(&host))
            && self.peers.as_ref().is_none_or(|all| all.contains(&peer))
            && self.side.is_none_or(|wanted| wanted == side)
    }
}

/// Assignment of TCP settings to the endpoints of a run.
#[derive(Serialize, Deserialize)]
pub struct EndpointSettings {
    overrides: Vec<TcpOverride>,
    /// `agreed[i][j]` is the number, in the TCP stack, of the settings of an endpoint with the
    /// settings i whose peer has the settings j, after both have agreed on their options. Index 0
    /// stands for `[tcp]`, index k for the k-th override.
    agreed: Vec<Vec<u8>>,
}

impl EndpointSettings {
    /// Returns the assignment of TCP settings to endpoints, and the list of all TCP settings of the
    /// run. The index of settings in this list is their number in the TCP stack; number 0 is
    /// `base`.
    pub fn new(base: &TcpConfig, overrides: &[TcpOverride]) -> (EndpointSettings, Vec<TcpConfig>) {
        let own: Vec<&TcpConfig> =
            std::iter::once(base).chain(overrides.iter().map(|o| &o.config)).collect();
        let mut all: Vec<TcpConfig> = Vec::new();
        let mut number = |config: TcpConfig| {
            let found = all.iter().position(|c| *c == config);
            found.unwrap_or_else(|| {
                all.push(config);
                all.len() - 1
            }) as u8
        };
        let mut agreed: Vec<Vec<u8>> = Vec::new();
        for a in &own {
            agreed.push(own.iter().map(|b| number(a.agreed_with(b))).collect());
        }
        (EndpointSettings { overrides: overrides.to_vec(), agreed }, all)
    }

    /// Returns the numbers, in the TCP stack, of the settings of client and server for a connection
    /// that this workload opens.
    pub fn of(&self, workload: u16, client: HostId, server: HostId) -> (u8, u8) {
        if self.overrides.is_empty() {
            return (0, 0);
        }
        let first = |side, host, peer| {
            let matching = |o: &TcpOverride| o.matches(workload, side, host, peer);
            self.overrides.iter().position(matching).map_or(0, |i| i + 1)
        };
        let a = first(Side::Client, client, server);
        let b = first(Side::Server, server, client);
        (self.agreed[a][b], self.agreed[b][a])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eastwest_transport::tcp::read_config::profile;
    use eastwest_transport::tcp::rules::RackRule;

    fn with(config: TcpConfig) -> TcpOverride {
        TcpOverride { workloads: None, hosts: None, peers: None, side: None, config }
    }

    #[test]
    fn the_first_override_that_matches_an_end_gives_its_settings() {
        let base = profile("linux").expect("a profile");
        let slow = TcpConfig { initial_window: 1, ..base.clone() };
        let large = TcpConfig { initial_window: 100, ..base.clone() };
        let overrides = vec![
            TcpOverride {
                workloads: Some([1].into()),
                side: Some(Side::Server),
                ..with(slow.clone())
            },
            TcpOverride { hosts: Some([HostId(3)].into()), ..with(large.clone()) },
        ];
        let (rules, all) = EndpointSettings::new(&base, &overrides);
        assert_eq!(all, [base, slow, large]);
        assert_eq!(rules.of(0, HostId(1), HostId(2)), (0, 0));
        assert_eq!(rules.of(1, HostId(1), HostId(2)), (0, 1));
        assert_eq!(rules.of(1, HostId(3), HostId(2)), (2, 1));
        assert_eq!(rules.of(1, HostId(2), HostId(3)), (0, 1), "the first one wins");
        assert_eq!(rules.of(0, HostId(2), HostId(3)), (0, 2));
    }

    #[test]
    fn ends_use_what_both_offer() {
        let base = profile("linux").expect("a profile");
        let old = TcpConfig { sack: false, timestamps: false, segment: 536, ..base.clone() };
        let overrides = vec![TcpOverride { side: Some(Side::Server), ..with(old.clone()) }];
        let (rules, all) = EndpointSettings::new(&base, &overrides);
        let (client, server) = rules.of(0, HostId(0), HostId(1));
        let (client, server) = (&all[usize::from(client)], &all[usize::from(server)]);
        assert_eq!((client.sack, client.timestamps, client.segment), (false, false, 536));
        assert!(client.recovery.rack == RackRule::Off && !client.recovery.probes);
        assert_eq!(client.initial_window, base.initial_window);
        assert_eq!(server.segment, 536);
    }
}
