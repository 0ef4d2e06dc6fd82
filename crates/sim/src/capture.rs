//! Packet capture: taps at the receiving ends of links record packets, which are written to
//! `capture.pcapng`.
//!
//! A tap captures a packet when the simulator executes the event of its arrival. At a host, this
//! event can be up to one `processing_jitter` later than the arrival of the last bit. Captured
//! packets are held for this duration before they are written, so that the file is in order of
//! arrival.

use crate::network::Network;
use crate::scenario::CaptureConfig;
use eastwest_measure::frames;
use eastwest_measure::pcapng::Pcapng;
use eastwest_network::fabric::Fabric;
use eastwest_network::taps::Seen;
use eastwest_types::{HostId, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of an Ethernet header, which the IP length of a packet does not include.
const ETHERNET: u32 = 14;

/// Headers of a captured packet.
pub struct Headers {
    /// Bytes of all headers before the payload, from the Ethernet header on.
    pub bytes: Vec<u8>,
    /// Sending and receiving host of the packet.
    pub ends: [HostId; 2],
    /// Number of bytes that follow the payload, such as the ICRC of RoCEv2.
    pub trailer: u32,
}

/// A captured packet that is held until no packet with an earlier arrival can follow.
#[derive(Serialize, Deserialize)]
struct Waiting {
    headers: Vec<u8>,
    length: u32,
    ends: [HostId; 2],
}

/// State of a packet capture, which becomes a pcapng file.
#[derive(Serialize, Deserialize)]
pub struct Capture {
    file: Pcapng,
    /// Number of the pcapng interface of each captured link, by link number.
    interfaces: BTreeMap<u32, u32>,
    /// Held packets, ordered by time of arrival, number of the interface, and order of capture.
    waiting: BTreeMap<(Time, u32, u64), Waiting>,
    /// Time for which a captured packet is held before it is written, so that the file is in order
    /// of arrival.
    hold: Span,
    /// Hosts whose names have been written to the file.
    named: BTreeSet<HostId>,
    from: Time,
    until: Time,
    most: u64,
    taken: u64,
    left_out: u64,
}

impl Capture {
    /// Puts taps at the far ends of the links that `config` names. `hold` is the longest time from
    /// the arrival of a packet at a host to the event of this arrival. Returns `None` if no link is
    /// captured.
    pub fn new(config: &CaptureConfig, hold: Span, fabric: &mut Fabric) -> Option<Capture> {
        let chosen = |from: u32, to: u32| config.ports.contains(&(from, to));
        let links: Vec<u32> = (0..fabric.links.len() as u32)
            .filter(|&l| chosen(fabric.links[l as usize].from, fabric.links[l as usize].to))
            .collect();
        if links.is_empty() {
            return None;
        }
        let mut file = Pcapng::new(concat!("Eastwest ", env!("CARGO_PKG_VERSION")));
        let mut interfaces = BTreeMap::new();
        for &link in &links {
            let l = &fabric.links[link as usize];
            let to = &fabric.graph.names[l.to as usize];
            let description = format!("link {link}, at the end of {to}");
            let name = fabric.port_name(link as usize);
            let number = file.interface(&name, &description, l.cable.rate.0);
            interfaces.insert(link, number);
            fabric.taps.put(link, fabric.links.len());
        }
        Some(Capture {
            file,
            interfaces,
            waiting: BTreeMap::new(),
            hold,
            named: BTreeSet::new(),
            from: Time::ZERO + config.from,
            until: config.until.map_or(Time::NEVER, |end| Time::ZERO + end),
            most: config.packets,
            taken: 0,
            left_out: 0,
        })
    }

    /// Returns the number of packets captured, and the number of packets left out because the limit
    /// was reached.
    pub fn counts(&self) -> (u64, u64) {
        (self.taken, self.left_out)
    }

    /// Returns the content of the pcapng file with all captured packets; `names` are the names of
    /// all nodes by number.
    pub fn finish(mut self, names: &[String]) -> Vec<u8> {
        self.write_before(Time::NEVER, names);
        self.file.into_bytes()
    }

    /// Writes the held packets that arrived before `time`. The caller guarantees that all packets
    /// with an arrival before `time` have been captured.
    fn write_before(&mut self, time: Time, names: &[String]) {
        while let Some(first) = self.waiting.first_entry()
            && first.key().0 < time
        {
            let ((at, interface, _), packet) = first.remove_entry();
            for host in packet.ends {
                if self.named.insert(host) {
                    self.file.name(frames::address(host), &names[host.0 as usize]);
                }
            }
            self.file.packet(interface, at.0 / 1_000, &packet.headers, packet.length);
        }
    }

    /// Adds a packet that a tap has captured, if the time and the number of packets are within the
    /// limits of the capture. The function `headers` returns the headers of the packet.
    pub fn take(&mut self, network: &Network, seen: &Seen, headers: impl FnOnce() -> Headers) {
        if seen.at < self.from || seen.at >= self.until {
            return;
        }
        if self.taken == self.most {
            self.left_out += 1;
            return;
        }
        let packet = &seen.packet;
        let Headers { bytes: headers, ends, trailer: check } = headers();
        let all = headers.len() as u32 + u32::from(packet.payload) + check;
        let length = all.max(ETHERNET + u32::from(packet.ip_len));
        debug_assert!(
            packet.payload == 0 || length == all,
            "headers are as long as the simulated ones"
        );
        let place = (seen.at, self.interfaces[&seen.link], self.taken);
        self.taken += 1;
        self.waiting.insert(place, Waiting { headers, length, ends });
        let certain = Time(network.now.0.saturating_sub(self.hold.0));
        self.write_before(certain, &network.fabric.graph.names);
    }
}
