//! Completion times of messages on idle paths, with the handshake and slow start of TCP.

use crate::flow_world::{port, rules};
use eastwest_fluid::delay::PortSpec;
use eastwest_fluid::network::{Network, Pace};
use eastwest_fluid::transfer::Rules;
use eastwest_network::config::FabricConfig;
use eastwest_network::topology::CableConfig;
use eastwest_transport::tcp::config::TcpConfig;
use eastwest_types::{Side, Span, Time};

/// Calculates completion times of messages that are alone on their paths.
pub struct Idle<'a> {
    config: &'a FabricConfig,
    rules: Rules,
}

impl<'a> Idle<'a> {
    /// Returns the calculation for a fabric and the settings of TCP.
    pub fn new(config: &'a FabricConfig, tcp: &TcpConfig) -> Idle<'a> {
        Idle { config, rules: rules(tcp, config) }
    }

    /// Returns the time from opening a connection to the arrival of the last byte of a message of
    /// `bytes` bytes. The cables are those of the path from client to server, and of the path back.
    pub fn time(&self, there: &[CableConfig], back: &[CableConfig], bytes: u64) -> Span {
        let ports = [there, back].into_iter().flat_map(|path| self.ports(path)).collect();
        let mut net = Network::new(ports, self.rules, Pace::default());
        let split = there.len() as u32;
        let all = split + back.len() as u32;
        let conn = net.open(Time::ZERO, [(0..split).collect(), (split..all).collect()]);
        net.send(Time::ZERO, conn, Side::Client, bytes);
        loop {
            let now = net.next();
            if net.advance().is_some() || now == Time::NEVER {
                return now.since(Time::ZERO);
            }
        }
    }

    /// Returns the ports of a path; the first belongs to a host, and the last link ends at a host.
    fn ports(&self, path: &[CableConfig]) -> impl Iterator<Item = PortSpec> {
        let last = path.len() - 1;
        let of = move |(i, &cable)| port(self.config, cable, (i == 0, i == last));
        path.iter().enumerate().map(of)
    }
}
