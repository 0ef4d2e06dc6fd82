//! Streams of raw Ethernet frames: their numbers, and counts of frames sent, arrived and lost.

use crate::network::Network;
use eastwest_engine::random::mix;
use eastwest_measure::fairness::Shares;
use eastwest_measure::streams::StreamRow;
use eastwest_network::losses::Lost;
use eastwest_network::partition::Partition;
use eastwest_types::{HostId, Packet, Span, Time};
use eastwest_workload::Workload;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Counts of the raw Ethernet frames of a workload.
#[derive(Debug, Default, Serialize, Deserialize)]
struct FramesOfWorkload {
    /// Number of the first stream of the workload.
    first_stream: u32,
    /// Number of frames in flight, which have neither arrived nor been lost. In a part of a partitioned
    /// run, frames that come from other parts make the number smaller, even negative: only the sum over
    /// all parts is the number of frames in flight.
    under_way: i64,
    /// Whether the workload has sent its last frame.
    has_sent_all: bool,
}

/// All streams of raw Ethernet frames in a run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Streams {
    /// Rows of the table of streams, indexed by the number of the stream.
    pub rows: Vec<StreamRow>,
    /// Counts by number of the workload.
    workloads: Vec<FramesOfWorkload>,
    /// Number of streams of open-loop Ethernet sources; streams of
    /// [messages](crate::ethernet_messages) follow them in `rows`.
    open: u32,
}

impl Streams {
    /// Returns the streams of the raw Ethernet sources of all workloads, in the order of workloads.
    pub fn new<'a>(workloads: impl Iterator<Item = &'a Workload>) -> Streams {
        let mut streams = Streams::default();
        for (number, workload) in (0..).zip(workloads) {
            let first_stream = streams.rows.len() as u32;
            streams.workloads.push(FramesOfWorkload { first_stream, ..Default::default() });
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
        self.workloads[usize::from(workload)].under_way -= 1;
        (row, workload)
    }

    /// Counts a lost raw Ethernet frame. Returns the number of the frame's stream if the stream
    /// carries messages; `None` for frames of open-loop sources, and for packets that are not
    /// frames. `partition`: the part of a partitioned run in which the frame was lost; a loss of a frame
    /// to a host of another part is announced to this part.
    pub fn lose(&mut self, lost: &Lost, partition: Option<&mut Partition>) -> Option<u32> {
        let packet = &lost.packet;
        if packet.notes != Packet::DATAGRAM || packet.flags != 0 || packet.ack == 0 {
            return None;
        }
        self.ends(packet.ack as u32);
        match partition {
            Some(partition) if !partition.owns(lost.dst) => {
                let part = partition.part_of(lost.dst);
                partition.out[part].lost_frames.push(*lost);
            }
            _ => self.misses(lost),
        }
        Some(packet.ack as u32 - 1).filter(|stream| *stream >= self.open)
    }

    /// Records at the receiver that a raw Ethernet frame was lost.
    pub fn misses(&mut self, lost: &Lost) {
        self.rows[lost.packet.ack as usize - 1].loses(lost.at, lost.packet.seq as u32);
    }

    /// Sends a frame of `bytes` bytes for a workload; `stream` is the index of the stream among the
    /// streams of the workload.
    pub fn send_of(&mut self, network: &mut Network, workload: u16, stream: u32, bytes: u16) {
        let first = self.workloads[usize::from(workload)].first_stream;
        self.send(network, first + stream, bytes);
    }

    /// Sends a frame of `bytes` bytes; `stream` is the number of the stream among all streams of
    /// the run.
    pub fn send(&mut self, network: &mut Network, stream: u32, bytes: u16) {
        let row = &mut self.rows[stream as usize];
        self.workloads[usize::from(row.workload)].under_way += 1;
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
        self.workloads[usize::from(workload)].has_sent_all = true;
    }

    /// Whether a workload of raw Ethernet sources has sent its last frame.
    pub fn has_sent_all(&self, workload: u16) -> bool {
        self.workloads[usize::from(workload)].has_sent_all
    }

    /// Returns the number of frames of a workload that have neither arrived nor been lost. In a part of
    /// a partitioned run, only the sum over all parts has a meaning.
    pub fn under_way(&self, workload: u16) -> i64 {
        self.workloads[usize::from(workload)].under_way
    }

    /// Takes over the rows of streams to and from the hosts for which `theirs` is true, from another
    /// part of a partitioned run.
    pub fn take_over(&mut self, other: &Streams, theirs: &dyn Fn(HostId) -> bool) {
        for (mine, row) in self.rows.iter_mut().zip(&other.rows) {
            if theirs(row.dst) {
                let before = std::mem::replace(mine, row.clone());
                mine.take_sender(&before);
            }
            if theirs(row.src) {
                mine.take_sender(row);
            }
        }
        for (mine, other) in self.workloads.iter_mut().zip(&other.workloads) {
            mine.under_way += other.under_way;
        }
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
