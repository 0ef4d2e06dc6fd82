//! Streams of raw Ethernet frames: their numbers, and counts of frames sent, arrived and lost.

use crate::network::Network;
use eastwest_engine::random::mix;
use eastwest_measure::fairness::Shares;
use eastwest_measure::streams::StreamRow;
use eastwest_network::losses::Lost;
use eastwest_types::{Packet, Span, Time};
use eastwest_workload::Workload;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// All streams of raw Ethernet frames in a run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Streams {
    /// Rows of the table of streams, indexed by the number of the stream.
    pub rows: Vec<StreamRow>,
    /// By number of the workload: number of the workload's first stream, number of its frames in
    /// flight (neither arrived nor lost), and whether the workload has sent its last frame.
    workloads: Vec<(u32, u64, bool)>,
    /// Number of streams of open-loop Ethernet sources; streams of
    /// [messages](crate::ethernet_messages) follow them in `rows`.
    open: u32,
}

impl Streams {
    /// Returns the streams of the raw Ethernet sources of all workloads, in the order of workloads.
    pub fn new<'a>(workloads: impl Iterator<Item = &'a Workload>) -> Streams {
        let mut streams = Streams::default();
        for (number, workload) in (0..).zip(workloads) {
            streams.workloads.push((streams.rows.len() as u32, 0, false));
            if let Workload::Ethernet(ethernet) = workload {
                let config = ethernet.config();
                let row = |ends| StreamRow::new(number, config.class, ends);
                streams.rows.extend(config.streams().into_iter().map(row));
            }
        }
        streams.open = streams.rows.len() as u32;
        streams
    }

    /// Whether there are any streams of raw Ethernet frames.
    pub fn any(&self) -> bool {
        !self.rows.is_empty()
    }

    fn ends(&mut self, stream: u32) -> (&mut StreamRow, u16) {
        let row = &mut self.rows[stream as usize - 1];
        let workload = row.workload;
        self.workloads[usize::from(workload)].1 -= 1;
        (row, workload)
    }

    /// Counts a lost raw Ethernet frame. Returns the number of the frame's stream if the stream
    /// carries messages; `None` for frames of open-loop sources, and for packets that are not
    /// frames.
    pub fn lose(&mut self, lost: &Lost) -> Option<u32> {
        let packet = &lost.packet;
        if packet.notes != Packet::DATAGRAM || packet.flags != 0 || packet.ack == 0 {
            return None;
        }
        self.ends(packet.ack as u32).0.loses(lost.at, packet.seq as u32);
        Some(packet.ack as u32 - 1).filter(|stream| *stream >= self.open)
    }

    /// Sends a frame of `bytes` bytes for a workload; `stream` is the index of the stream among the
    /// streams of the workload.
    pub fn send_of(&mut self, network: &mut Network, workload: u16, stream: u32, bytes: u16) {
        let first = self.workloads[usize::from(workload)].0;
        self.send(network, first + stream, bytes);
    }

    /// Sends a frame of `bytes` bytes; `stream` is the number of the stream among all streams of
    /// the run.
    pub fn send(&mut self, network: &mut Network, stream: u32, bytes: u16) {
        let row = &mut self.rows[stream as usize];
        self.workloads[usize::from(row.workload)].1 += 1;
        let mut packet = network.datagram(row.src, row.dst, row.class, bytes);
        packet.payload = bytes;
        packet.seq = u64::from(row.sends(network.now, bytes));
        packet.ack = u64::from(stream) + 1;
        // one hash per stream, so that all frames of a stream have the same path
        let tuple = mix(u64::from(stream) ^ 0x6574_6865 << 32);
        packet.hash = network.fabric.flow_hash(row.src, row.dst, tuple);
        network.send(row.src, packet, None);
    }

    /// Whether the receiver would hold back this arriving frame because earlier frames of its
    /// stream are missing.
    pub fn would_hold(&self, packet: &Packet) -> bool {
        self.rows[packet.ack as usize - 1].order.would_hold(packet.seq as u32)
    }

    /// Counts a raw Ethernet frame that has reached its host. Returns the workload of the frame,
    /// and the number of the frame's stream if the stream carries messages, otherwise `None`.
    pub fn arrives(&mut self, now: Time, packet: &Packet, latency: Span) -> (u16, Option<u32>) {
        let (row, workload) = self.ends(packet.ack as u32);
        row.receives(now, packet.seq as u32, packet.payload, latency);
        let of_messages = packet.ack > u64::from(self.open);
        (workload, of_messages.then(|| packet.ack as u32 - 1))
    }

    /// Records that a workload of raw Ethernet sources has sent its last frame.
    pub fn sends_no_more(&mut self, workload: u16) {
        self.workloads[usize::from(workload)].2 = true;
    }

    /// Whether a workload of raw Ethernet sources has sent its last frame.
    pub fn has_sent_all(&self, workload: u16) -> bool {
        self.workloads[usize::from(workload)].2
    }

    /// Whether all frames of a workload have arrived or were lost.
    pub fn none_under_way(&self, workload: u16) -> bool {
        self.workloads[usize::from(workload)].1 == 0
    }

    /// Returns the section `streams` of the summary.
    pub fn summary(&self) -> Value {
        let used = || self.rows.iter().filter(|r| r.sent > 0);
        let sum = |of: fn(&StreamRow) -> u64| used().map(of).sum::<u64>();
        let first = used().map(|r| r.first).min().unwrap_or(Time::ZERO);
        let last = used().map(|r| r.last).max().unwrap_or(Time::ZERO);
        let run_s = Span(last.0.saturating_sub(first.0)).as_secs_f64();
        let of_fate = |fate| used().filter(|r| r.fate() == fate).count();
        let bits = sum(|r| r.received_bytes) as f64 * 8.0;
        json!({
            "count": used().count(),
            "frames_sent": sum(|r| r.sent), "frames_received": sum(|r| r.received),
            "frames_lost": sum(|r| r.lost), "frames_reordered": sum(|r| r.reordered),
            "frames_resequenced": sum(|r| r.order.waited()),
            "resequenced_most": used().map(|r| r.order.most()).max().unwrap_or(0),
            "bytes_sent": sum(|r| r.sent_bytes), "bytes_received": sum(|r| r.received_bytes),
            "throughput_bps": if run_s > 0.0 { bits / run_s } else { 0.0 },
            "jain": used().map(|r| r.received_bytes as f64).collect::<Shares>().jain(),
            "whole": of_fate(0), "partial": of_fate(1), "under_way": of_fate(2),
            "not_arrived": of_fate(3),
        })
    }
}
