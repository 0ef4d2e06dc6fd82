//! Streams of frames: numbers them, tells what became of each, and lets a workload of frames end when the
//! last one has arrived or been lost.

use crate::carrier::CARDS;
use crate::world::World;
use eastwest_engine::random::mix;
use eastwest_measure::fairness::Shares;
use eastwest_measure::streams::StreamRow;
use eastwest_network::losses::Lost;
use eastwest_types::{EndpointId, Packet, Span, Time};
use eastwest_workload::{Event, Workload};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Token of the wake-ups at which a workload asks for frames that were lost; none of its own.
const ASK: u64 = u64::MAX;
/// Time between two of them.
const ASK_EVERY: Span = Span::from_ms(1);

/// All streams of a run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Streams {
    /// By number.
    pub rows: Vec<StreamRow>,
    /// By workload: the number of its first stream, frames that have neither arrived nor been lost, and
    /// whether it has sent all.
    workloads: Vec<(u32, u64, bool)>,
    /// Streams of open sources; those of [messages](crate::carrier) come after them.
    open: u32,
}

impl Streams {
    /// Those of all workloads, in order.
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

    /// Whether there are any.
    pub fn any(&self) -> bool {
        !self.rows.is_empty()
    }

    fn ends(&mut self, stream: u32) -> (&mut StreamRow, u16) {
        let row = &mut self.rows[stream as usize - 1];
        let workload = row.workload;
        self.workloads[usize::from(workload)].1 -= 1;
        (row, workload)
    }

    /// Counts a frame that was lost; returns its stream if it was one of messages.
    pub fn lose(&mut self, lost: &Lost) -> Option<u32> {
        let packet = &lost.packet;
        if packet.notes != Packet::DATAGRAM || packet.flags != 0 || packet.ack == 0 {
            return None;
        }
        self.ends(packet.ack as u32).0.loses(lost.at, packet.seq as u32);
        Some(packet.ack as u32 - 1).filter(|stream| *stream >= self.open)
    }

    /// What a summary says of them.
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

impl World {
    /// Sends a frame of a stream of a workload.
    pub(crate) fn frame(&mut self, workload: u16, bytes: u16, stream: u32) {
        let first = self.streams.workloads[usize::from(workload)].0;
        self.put_frame(first + stream, bytes);
    }

    /// Sends a frame of a stream, by the number of its row.
    pub(crate) fn put_frame(&mut self, stream: u32, bytes: u16) {
        let row = &mut self.streams.rows[stream as usize];
        let (workload, class, from, to) = (row.workload, row.class, row.src, row.dst);
        self.streams.workloads[usize::from(workload)].1 += 1;
        let mut packet = Packet::blank(to);
        packet.born = self.now;
        packet.dst_endpoint = EndpointId(u32::from(class.0));
        packet.ip_len = bytes;
        packet.payload = bytes;
        packet.tos = self.classes[usize::from(class.0)].dscp << 2;
        packet.notes = Packet::DATAGRAM;
        packet.window = from.0;
        let number = self.streams.rows[stream as usize].sends(self.now, bytes);
        packet.seq = u64::from(number);
        packet.ack = u64::from(stream) + 1;
        // one path for a stream
        packet.hash = self.fabric.flow_hash(from, to, mix(u64::from(stream) ^ 0x6574_6865 << 32));
        self.fabric.send(self.now, from, packet, None, &mut self.sources);
    }

    /// A frame has reached its host.
    pub(crate) fn frame_arrived(&mut self, packet: &Packet, latency: Span) {
        // the receiver knows at once of what was lost, whenever the fabric is asked for it otherwise
        let order = &self.streams.rows[packet.ack as usize - 1].order;
        if order.would_hold(packet.seq as u32) {
            self.note_losses(Time::NEVER);
        }
        let (row, workload) = self.streams.ends(packet.ack as u32);
        row.receives(self.now, packet.seq as u32, packet.payload, latency);
        if packet.ack > u64::from(self.streams.open) {
            self.parcels_arrived(packet.ack as u32 - 1);
        }
        if self.streams.workloads[usize::from(workload)].2 {
            self.end_if_all_arrived(workload);
        }
    }

    /// A workload has sent its last frame: it has finished when none is under way. Tells whether that is
    /// seen to here.
    pub(crate) fn awaits_frames(&mut self, workload: u16) -> bool {
        let is_ethernet =
            matches!(self.drivers[usize::from(workload)].workload, Workload::Ethernet(_));
        if is_ethernet {
            self.streams.workloads[usize::from(workload)].2 = true;
            self.ask_for_frames(workload);
        }
        is_ethernet
    }

    /// The frames that are lost last do not tell: they are asked for now and then.
    fn ask_for_frames(&mut self, workload: u16) {
        if !self.end_if_all_arrived(workload) {
            self.wake(workload, self.now + ASK_EVERY, ASK);
        }
    }

    fn end_if_all_arrived(&mut self, workload: u16) -> bool {
        self.note_losses(Time::NEVER);
        let none = self.streams.workloads[usize::from(workload)].1 == 0;
        if none {
            self.finish(workload);
        }
        none
    }

    /// Wakes a workload or a card, or asks for frames.
    pub(crate) fn wake_up(&mut self, workload: u16, token: u64) {
        if workload == CARDS {
            return self.look_at_card(token as u32);
        }
        let over = self.streams.workloads[usize::from(workload)].2;
        match (token, over) {
            (ASK, true) if self.drivers[usize::from(workload)].finished => {}
            (ASK, true) => self.ask_for_frames(workload),
            _ => self.tell(workload, Event::Wake { token }),
        }
    }
}
