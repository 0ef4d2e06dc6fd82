//! Conversion between the numbers in a script and those in the simulation.
//!
//! In a script, sequence numbers count from the first one that each end uses, windows are as in the
//! TCP header, and timestamps have any unit. The simulated endpoint uses stream positions (the SYN
//! is 0), windows in bytes and timestamps in microseconds. Its packets carry no options, so the
//! result of the handshake is stored here.

use crate::host::Sent;
use crate::script;
use crate::script::TcpOption;
use crate::setup::Setup;
use eastwest_transport::tcp::rules::RackRule;
use eastwest_types::{Packet, SackBlocks, Time, flag};

/// Bytes of the timestamp option with its padding in the TCP header.
const TIMESTAMPS: u32 = 12;
/// MSS in bytes if the other end announces none (RFC 9293, 3.7.1).
const DEFAULT_MSS: u16 = 536;

/// Features that the handshake has negotiated, and the conversion of sequence numbers and
/// timestamps between script and simulation.
#[derive(Clone, Debug, Default)]
pub struct Wire {
    /// Sequence number of the other end's SYN in the script; in the simulation it is 0.
    pub remote_base: u32,
    /// Sequence number of the endpoint's SYN in the script; in the simulation it is 0.
    pub local_base: u32,
    /// Window scales (shift counts) of the other end and of the endpoint; both 0 without window
    /// scaling.
    pub scales: (u8, u8),
    /// Whether both ends use TCP timestamps.
    pub timestamps: bool,
    /// Options that the endpoint's SYN or SYN-ACK carries, without timestamps.
    pub offered: Vec<TcpOption>,
    /// Whether the endpoint's SYN or SYN-ACK offers TCP timestamps.
    pub offers_timestamps: bool,
    /// Timestamp values in the script, each with the send time of its packet in µs of the
    /// simulation.
    pub stamps: Vec<(u32, u32)>,
    /// Latest timestamp of the other end, as a time; `None` before the first one. A segment without
    /// a timestamp does not change it.
    pub their_stamp: Option<Time>,
}

/// A packet that the endpoint has sent, with its sequence numbers, window and timestamps converted
/// to those of the script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Time at which the endpoint sent the packet.
    pub at: Time,
    /// The packet in the form of a script, with all fields set.
    pub packet: script::Packet,
    /// Send time in µs of the simulation, to which the packet's timestamp corresponds.
    pub born_us: u32,
}

impl Wire {
    /// Negotiates features with the other end's SYN or SYN-ACK `theirs` (`None` if there will be
    /// none). Changes the settings to the features that both ends have. `active`: whether the
    /// endpoint sends the SYN, not the SYN-ACK.
    pub fn agree(setup: &mut Setup, theirs: Option<&script::Packet>, active: bool) -> Wire {
        let options = theirs.and_then(|p| p.options.as_deref());
        let own_scale = setup.window_scale();
        let config = &mut setup.config;
        let all = |wanted: fn(&TcpOption) -> bool| {
            theirs.is_none() || options.is_some_and(|o| o.iter().any(wanted))
        };
        let sack = config.sack && all(|o| *o == TcpOption::SackOk);
        let timestamps = config.timestamps && all(|o| matches!(o, TcpOption::Timestamp(..)));
        let scaling = setup.window_scaling && all(|o| matches!(o, TcpOption::Wscale(_)));
        let find = |of: fn(&TcpOption) -> Option<u16>| options?.iter().find_map(of);
        let their_scale =
            find(|o| if let TcpOption::Wscale(s) = o { Some((*s).into()) } else { None });
        let their_mss = find(|o| if let TcpOption::Mss(m) = o { Some(*m) } else { None });
        let their_mss = their_mss.unwrap_or(if theirs.is_some() { DEFAULT_MSS } else { setup.mss });

        let setup_mss = setup.mss;
        let offer = |wanted: bool, agreed: bool| if active { wanted } else { agreed };
        let mut offered = vec![TcpOption::Mss(setup_mss)];
        if offer(config.sack, sack) {
            offered.push(TcpOption::SackOk);
        }
        if offer(setup.window_scaling, scaling) {
            offered.push(TcpOption::Wscale(own_scale));
        }
        let offers_timestamps = offer(config.timestamps, timestamps);

        config.sack = sack;
        if !sack {
            // These features need SACK.
            config.recovery.rack = RackRule::Off;
            config.recovery.probes = false;
            config.recovery.dsack = false;
        }
        config.timestamps = timestamps;
        let room = u32::from(their_mss.min(setup_mss));
        config.segment = room.saturating_sub(if timestamps { TIMESTAMPS } else { 0 }).max(1);
        let retries = setup.syn_retries;
        config.timers.syn_retries = Some(if active { retries.0 } else { retries.1 });
        let scales = if scaling { (their_scale.unwrap_or(0) as u8, own_scale) } else { (0, 0) };
        Wire { scales, timestamps, offered, offers_timestamps, ..Wire::default() }
    }

    /// Converts a packet of the script to the numbers of the simulation: stream positions, window
    /// in bytes, timestamps in µs. `una`: first position of the endpoint's stream that is not
    /// acknowledged (SND.UNA).
    pub fn inward(
        &mut self,
        p: &script::Packet,
        now: Time,
        una: u64,
    ) -> (Packet, Option<SackBlocks>) {
        let base = self.local_base;
        let own = |n: u32| Packet::widen(u64::from(n.wrapping_sub(base)), una);
        let mut packet = Packet::blank(eastwest_types::HostId(0));
        packet.born = self.their_stamp.filter(|_| self.timestamps).unwrap_or(now);
        packet.seq = u64::from(p.start.wrapping_sub(self.remote_base));
        packet.ack = p.ack.map_or(0, own);
        let scale = if p.flags & flag::SYN != 0 { 0 } else { self.scales.0 };
        packet.window = u32::from(p.window.unwrap_or(u16::MAX)) << scale;
        packet.payload = p.length as u16;
        packet.flags = p.flags;
        packet.tos = p.ecn.unwrap_or(0);
        packet.ip_len = (40 + p.length).min(u32::from(u16::MAX)) as u16;
        let mut sack = None;
        for option in p.options.iter().flatten() {
            match option {
                TcpOption::Sack(blocks) => {
                    // Omits blocks whose end is before their start (Linux,
                    // `tcp_is_sackblock_valid`).
                    let blocks = blocks.iter().map(|(start, end)| (own(*start), own(*end)));
                    let mut all: SackBlocks = [(0, 0); 4];
                    for (block, valid) in all.iter_mut().zip(blocks.filter(|b| b.0 < b.1)) {
                        *block = valid;
                    }
                    sack = Some(all).filter(|all| all[0].1 > 0);
                }
                TcpOption::Timestamp(value, echo) if self.timestamps => {
                    packet.born = Time(u64::from(*value) * 1_000_000);
                    self.their_stamp = Some(packet.born);
                    packet.ts_echo_us = self.echo(*echo);
                }
                _ => {}
            }
        }
        (packet, sack)
    }

    /// Returns the send time, in µs of the simulation, of the packet whose timestamp value in the
    /// script is `echo`; 0 if it is unknown.
    fn echo(&self, echo: u32) -> u32 {
        let exact = self.stamps.iter().rev().find(|s| s.0 == echo);
        match (exact, self.stamps.first()) {
            (Some(stamp), _) => stamp.1,
            (None, Some(first)) if echo != 0 => {
                first.1.wrapping_add(echo.wrapping_sub(first.0).wrapping_mul(1_000))
            }
            _ => 0,
        }
    }

    /// Converts a packet of the endpoint to the numbers of the script: sequence numbers, window,
    /// timestamps.
    pub fn outward(&self, sent: &Sent) -> Seen {
        let p = &sent.packet;
        let syn = p.flags & flag::SYN != 0;
        let number = |position: u64, base: u32| (position as u32).wrapping_add(base);
        let born_us = (p.born.0 / 1_000_000) as u32;
        let mut options = if syn { self.offered.clone() } else { Vec::new() };
        // A reset without ACK is sent by a host without connection, which has negotiated no
        // options.
        let bare = p.flags & (flag::RST | flag::ACK) == flag::RST;
        if if syn { self.offers_timestamps } else { self.timestamps && !bare } {
            options.push(TcpOption::Timestamp(self.value(born_us), p.ts_echo_us));
        }
        let blocks: Vec<(u32, u32)> = (sent.sack.iter().filter(|b| b.1 > 0))
            .map(|b| (number(b.0, self.remote_base), number(b.1, self.remote_base)))
            .collect();
        if !blocks.is_empty() {
            options.push(TcpOption::Sack(blocks));
        }
        let scale = if syn { 0 } else { self.scales.1 };
        let packet = script::Packet {
            ecn: Some(p.tos & eastwest_types::ecn::MASK),
            flags: p.flags,
            start: number(p.seq, self.local_base),
            length: u32::from(p.payload),
            ack: (p.flags & flag::ACK != 0).then(|| number(p.ack, self.remote_base)),
            window: Some((p.window >> scale).min(u32::from(u16::MAX)) as u16),
            options: Some(options),
        };
        Seen { at: sent.at, packet, born_us }
    }

    /// Returns the timestamp value in the script for the time `born_us` (µs of the simulation).
    fn value(&self, born_us: u32) -> u32 {
        match self.stamps.first() {
            Some(first) => first.0.wrapping_add(born_us.wrapping_sub(first.1) / 1_000),
            None => born_us / 1_000,
        }
    }

    /// Records the timestamp value `value` in the script for a packet sent at time `born_us` (µs).
    pub fn note_stamp(&mut self, value: u32, born_us: u32) {
        if self.stamps.len() < 1 << 16 {
            self.stamps.push((value, born_us));
        }
    }
}
