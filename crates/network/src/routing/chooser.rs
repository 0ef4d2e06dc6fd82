//! Choices among equal ports that are not made by the hash of the flow alone.
//!
//! - **in turn**: each switch deals packets for one edge switch to the ports one after the other.
//! - **modulo**: of n ports the one with number d mod n, d the number of the receiving host: static,
//!   and the same for all who send to d (the routing of Gusat et al., *Benchmarking the
//!   Ethernet-Federated Datacenter*, 2009).
//! - **spray**: every packet at random (Dixit et al., *On the Impact of Packet Spraying in Data Center
//!   Networks*, INFOCOM 2013).
//! - **flowlets**, **adaptive**, and **mechanisms from outside**: see the files beside this one.

use super::adaptive::Adaptive;
use super::custom::{Choice, CustomRouting, SwitchPlace, View};
use super::flowlet::Flowlets;
use crate::config::RoutingConfig;
use eastwest_engine::random::Stream;
use eastwest_types::HostId;
use serde::{Deserialize, Serialize};

/// What chooses.
#[derive(Serialize, Deserialize)]
pub enum Chooser {
    /// The hash of the flow.
    Hash,
    /// Turns.
    InTurn,
    /// The number of the receiving host.
    Modulo,
    /// Chance; a stream for every switch.
    Spray(Vec<Stream>),
    /// Chance, for bursts of packets; a table for every switch.
    Flowlet(Vec<Flowlets>),
    /// The number of the receiving host, and what notifications tell.
    Adaptive(Adaptive),
    /// Mechanisms from outside, one for every switch; runs with such are not written down.
    #[serde(skip)]
    Custom(Vec<Box<dyn CustomRouting>>),
}

/// A packet at a switch with several ports for it.
pub struct Asked<'f> {
    /// The switch.
    pub switch: u32,
    /// Receiving host.
    pub dst: HostId,
    /// See [`Choice::flow_hash`].
    pub flow_hash: u16,
    /// The links of these ports.
    pub members: &'f [u32],
}

/// The number among `ports` ports that static routing takes to a host.
pub fn modulo(dst: HostId, ports: usize) -> usize {
    dst.0 as usize % ports
}

impl Chooser {
    /// What a scenario asks for, before any packet.
    pub fn new(config: &RoutingConfig, switches: u32, seed: u64) -> Chooser {
        let each = |what: &str| {
            let stream = |switch| SwitchPlace { switch, seed }.random(what);
            (0..switches).map(stream).collect::<Vec<Stream>>()
        };
        match config {
            RoutingConfig::Ecmp | RoutingConfig::Explicit(_) => Chooser::Hash,
            RoutingConfig::RoundRobin => Chooser::InTurn,
            RoutingConfig::Modulo => Chooser::Modulo,
            RoutingConfig::Spray => Chooser::Spray(each("spray")),
            RoutingConfig::Flowlet(c) => {
                let streams = each("flowlet").into_iter();
                Chooser::Flowlet(streams.map(|stream| Flowlets::new(*c, stream)).collect())
            }
            RoutingConfig::Adaptive(c) => Chooser::Adaptive(Adaptive::new(*c, switches)),
            RoutingConfig::Custom(c) => {
                let start = |switch| c.0.start(&SwitchPlace { switch, seed });
                Chooser::Custom((0..switches).map(start).collect())
            }
        }
    }

    /// Whether packets of one flow may be spread over ports.
    pub fn deals(&self) -> bool {
        match self {
            Chooser::InTurn | Chooser::Spray(_) | Chooser::Flowlet(_) | Chooser::Adaptive(_) => {
                true
            }
            Chooser::Hash | Chooser::Modulo | Chooser::Custom(_) => false,
        }
    }

    /// The number of the port that a packet takes; `turn` is that of the one before at this set of ports.
    pub fn choose<'f>(
        &mut self,
        asked: &Asked,
        turn: &mut u32,
        view: impl FnOnce() -> View<'f>,
    ) -> usize {
        let &Asked { switch, dst, flow_hash, members } = asked;
        let (switch, ports) = (switch as usize, members.len());
        match self {
            Chooser::Hash => unreachable!("the table itself knows the hash"),
            Chooser::InTurn => {
                *turn = if *turn as usize + 1 == ports { 0 } else { *turn + 1 };
                *turn as usize
            }
            Chooser::Modulo => modulo(dst, ports),
            Chooser::Spray(streams) => streams[switch].below(ports as u64) as usize,
            Chooser::Flowlet(tables) => tables[switch].choose(view().now, asked),
            Chooser::Adaptive(adaptive) => adaptive.choose(view, asked),
            Chooser::Custom(customs) => {
                let View { now, packet, links, .. } = view();
                let choice = Choice { now, dst, flow_hash, packet, members, links };
                customs[switch].choose(&choice) % ports
            }
        }
    }
}
