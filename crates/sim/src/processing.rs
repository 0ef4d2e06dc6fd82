//! Time that hosts need to process packets: CPU cores, interrupts of the network card, merging of
//! received segments.
//!
//! Each host has a number of cores. All packets of a connection are processed by one core, as with
//! receive-side scaling, and a core processes one segment or burst at a time. A segment that TCP
//! sends waits for its core, which then passes it to the network card. A segment that the card
//! receives waits in a ring until the core is interrupted, and then until the core is free. While
//! the core has work it polls the ring, as Linux does (NAPI).
//!
//! When the core removes a segment from the ring, it merges all later segments in the ring that
//! continue it, as GRO does. TCP receives one merged segment and acknowledges it once. Segments of
//! one connection that are queued together are sent as one burst, as with segmentation offload.
//!
//! The time of a received segment is `receive_frame` per frame, `receive_segment` once, and its
//! payload at `receive_rate`. The time of a sent burst is `send_segment` once, and its payload at
//! `send_rate`. A segment without payload takes `ack` in both directions; if it is received, it
//! also takes `receive_frame`. A message takes `message` when it is written and when it is read.
//!
//! The defaults are derived from measurements of one core of an Intel Xeon Gold 6128 (3.4 GHz) at
//! 100 Gbit/s with an MTU of 9,000 bytes (Cai et al., *Understanding Host Network Stack Overheads*,
//! SIGCOMM 2021): it receives 42 Gbit/s and sends 89 Gbit/s, and about half of the time of the
//! receiver copies data. The record of `benches/hosts.py` tells where each number was read.

use eastwest_engine::order::{Class, Key};
use eastwest_engine::random::mix;
use eastwest_engine::timers::Timers;
use eastwest_settings::quantity::Bytes;
use eastwest_settings::reader::{Section, key};
use eastwest_types::{EndpointId, HostId, Packet, Rate, SackBlocks, Span, Time, flag};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// Settings of the processing of packets by hosts, the table `[hosts]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessingConfig {
    cores: u32,
    ring: u32,
    interrupt_delay: Span,
    interrupt_frames: u32,
    merge: u64,
    burst: u64,
    receive_frame: Span,
    receive_segment: Span,
    receive_rate: Rate,
    send_segment: Span,
    send_rate: Rate,
    ack: Span,
    message: Span,
}

/// Maximum number of frames of other connections that a core skips in its ring while it searches
/// for frames to merge (the default budget of NAPI in Linux is also 64 frames).
const BUDGET: usize = 64;

impl ProcessingConfig {
    /// Returns the number of cores of each host.
    pub fn cores(&self) -> u64 {
        u64::from(self.cores)
    }

    /// Reads the table `[hosts]`, the processing of packets by hosts; `None` if the scenario does
    /// not have this table.
    pub fn read(s: &mut Section) -> Option<ProcessingConfig> {
        let given = s.has("hosts");
        let doc = "Time that hosts take for packets. Without this table they take none.";
        if !given && !s.describing() {
            return None;
        }
        let config = s.table("hosts", doc, Self::read_table);
        given.then_some(config)
    }

    fn read_table(h: &mut Section) -> ProcessingConfig {
        const CORES: &str = "Number of cores of each host that process packets. A connection takes one of \
                             them, chosen by a hash.";
        const RING: &str = "Frames that the card can store for a core; further ones are lost (Linux: drivers \
                            have 1024 by default).";
        const DELAY: &str = "Time from the first received frame to the interrupt, if the core is idle (ethtool: \
                             rx-usecs; mlx5 has 8 us).";
        const FRAMES: &str = "Received frames after which the interrupt follows at once (ethtool: rx-frames; mlx5 \
                              has 128).";
        const MERGE: &str = "Largest segment into which received segments are merged (GRO: 64 KB); with 0 B they are \
                             not merged.";
        const BURST: &str = "Largest burst of segments that is sent as one (TSO: 64 KB); with 0 B each segment is sent \
                             alone.";
        let time = |name, doc| key::<Span>(name, doc).range("0 s", "1 s");
        ProcessingConfig {
            cores: h.get(key("cores", CORES).default("1").range("1", "1024")),
            ring: h.get(key("ring", RING).default("1024").range("1", "1000000")),
            interrupt_delay: h.get(time("interrupt_delay", DELAY).default("8 us")),
            interrupt_frames: h
                .get(key("interrupt_frames", FRAMES).default("128").range("1", "1000000")),
            merge: h.get(key::<Bytes>("merge", MERGE).default("65000 B").range("0 B", "65000 B")).0,
            burst: h.get(key::<Bytes>("burst", BURST).default("65000 B").range("0 B", "65000 B")).0,
            receive_frame: h.get(
                time("receive_frame", "Time of a core for each received frame.").default("400 ns"),
            ),
            receive_segment: h.get(
                time(
                    "receive_segment",
                    "Time of a core for each received segment after merging, with its wake-up of the \
                     application.",
                )
                .default("2.5 us"),
            ),
            receive_rate: h.get(
                key("receive_rate", "Rate at which a core copies received payload to the application.")
                    .default("86 Gbit/s")
                    .range("1 Mbit/s", "100 Tbit/s"),
            ),
            send_segment: h.get(
                time("send_segment", "Time of a core for each burst of segments that it sends.")
                    .default("1 us"),
            ),
            send_rate: h.get(
                key("send_rate", "Rate at which a core copies payload from the application.")
                    .default("200 Gbit/s")
                    .range("1 Mbit/s", "100 Tbit/s"),
            ),
            ack: h.get(
                time("ack", "Time of a core for a segment without payload, sent or received.")
                    .default("1 us"),
            ),
            message: h.get(
                time("message", "Time of a core for each message that is written or has arrived.")
                    .default("0 s"),
            ),
        }
    }
}

/// A segment with its SACK blocks.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Segment {
    /// The packet of the segment. Its SACK index is not valid; the SACK blocks are in `sack`.
    pub packet: Packet,
    /// SACK blocks of the segment, if any.
    pub sack: Option<SackBlocks>,
    /// Number of the segment's path in the recorder of [critical paths](crate::critical_path); 0 if
    /// critical paths are not recorded.
    pub path: u32,
    /// Payload bytes that the sender had written and that were not acknowledged when it sent this
    /// segment, including the segment; 0 at the receiver.
    pub remaining: u64,
}

/// A received frame that has been merged into a segment.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Frame {
    /// Time at which TCP created the frame.
    pub born: Time,
    /// Number of the critical path of the frame, see [`Segment::path`].
    pub path: u32,
}

/// Times of work that a CPU core has finished: its duration, and when the core began to work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Processing time of the work.
    pub processing: Span,
    /// Time at which the core last left the idle state, because of an interrupt or of a segment to
    /// send. Frames that arrived earlier waited for the core from their arrival until this time.
    pub woken: Time,
}

/// Work that a CPU core of a host has finished.
#[derive(Debug, Serialize, Deserialize)]
pub enum Work {
    /// A received segment, and the frames that were merged into it, in the order of their bytes.
    Received(Segment, Vec<Frame>),
    /// A burst of segments that the given host has processed and that now leaves for its network
    /// card.
    Sent(HostId, Vec<Segment>),
    /// Processing of a message that an application has written or read. Its end has no further
    /// effect.
    Message,
}

/// State of a CPU core of a host.
#[derive(Debug, Default, Serialize, Deserialize)]
enum State {
    #[default]
    Idle,
    /// The core is idle, frames are in its ring, and the interrupt is scheduled.
    Interrupt,
    /// The core begins its next work at the current simulated time, as an event after the current
    /// event.
    Starting,
    Busy(Work),
}

/// A CPU core of a host: its receive ring, its queue of work to send, and its current work.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Core {
    ring: VecDeque<Segment>,
    sends: VecDeque<Outgoing>,
    state: State,
    /// Number of the core's latest timer. Earlier timers of the core have no effect when they
    /// expire.
    turn: u32,
    busy: Span,
    /// Processing time of the core's current work.
    takes: Span,
    /// Time at which the core last left the idle state, because of an interrupt or of a segment to
    /// send.
    woken: Time,
}

/// Entry of a core's send queue: a segment to send, or the processing time of a message.
#[derive(Debug, Serialize, Deserialize)]
enum Outgoing {
    Segment(Segment),
    Message,
}

/// Counts of frames, segments and interrupts, over all hosts.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Counts {
    frames: u64,
    segments: u64,
    sent: u64,
    bursts: u64,
    interrupts: u64,
    lost: u64,
}

/// CPU cores of all hosts, and their scheduled events.
#[derive(Serialize, Deserialize)]
pub struct Processing {
    config: ProcessingConfig,
    cores: Vec<Core>,
    timers: Timers,
    counts: Counts,
}

impl Processing {
    /// Returns idle cores for `hosts` hosts. The seed determines the order of events at the same
    /// time.
    pub fn new(config: ProcessingConfig, hosts: u32, seed: u64) -> Processing {
        let cores = (0..u64::from(hosts) * u64::from(config.cores)).map(|_| Core::default());
        let timers = Timers::new(Class::Timer, seed);
        Processing { config, cores: cores.collect(), timers, counts: Counts::default() }
    }

    /// Returns the memory in bytes of the state of `cores` idle cores.
    pub fn bytes(cores: u64) -> u64 {
        cores.saturating_mul(size_of::<Core>() as u64)
    }

    /// Returns the event key (time and order) of the next event of any core.
    pub fn first(&self) -> Key {
        self.timers.first()
    }

    fn core_of(&self, host: HostId, end: EndpointId) -> usize {
        // The slots of both endpoints of a connection differ in the last bit only. Without this
        // bit, both endpoints have an equal hash.
        let chosen = mix((end.slot() as u64) >> 1) % u64::from(self.config.cores);
        host.0 as usize * self.config.cores as usize + chosen as usize
    }

    fn schedule(&mut self, at: Time, core: usize) {
        let turn = self.cores[core].turn.wrapping_add(1);
        self.cores[core].turn = turn;
        self.timers.push(at, core as u64, (core as u64) << 32 | u64::from(turn));
    }

    /// Puts a segment that a host has received into the ring of its core. Returns whether the ring
    /// had room; otherwise the segment is lost.
    pub fn receive(&mut self, now: Time, host: HostId, segment: Segment) -> bool {
        let at = self.core_of(host, segment.packet.dst_endpoint);
        let core = &mut self.cores[at];
        if core.ring.len() >= self.config.ring as usize {
            self.counts.lost += 1;
            return false;
        }
        self.counts.frames += 1;
        core.ring.push_back(segment);
        let waiting = core.ring.len() as u32;
        match core.state {
            State::Idle => {
                core.state = State::Interrupt;
                self.counts.interrupts += 1;
                let is_due = waiting >= self.config.interrupt_frames;
                let delay = if is_due { Span::ZERO } else { self.config.interrupt_delay };
                self.schedule(now + delay, at);
            }
            State::Interrupt if waiting == self.config.interrupt_frames => self.schedule(now, at),
            State::Interrupt | State::Starting | State::Busy(_) => {}
        }
        true
    }

    /// Enqueues a segment at the core of its connection, which later sends the segment.
    pub fn send(&mut self, now: Time, from: HostId, segment: Segment) {
        let at = self.core_of(from, segment.packet.dst_endpoint);
        self.cores[at].sends.push_back(Outgoing::Segment(segment));
        self.wake(now, at);
    }

    /// Enqueues, at the core of a connection, the processing time of a message that the endpoint
    /// `end` on this host writes or reads.
    pub fn message(&mut self, now: Time, host: HostId, end: EndpointId) {
        if self.config.message > Span::ZERO {
            let at = self.core_of(host, end);
            self.cores[at].sends.push_back(Outgoing::Message);
            self.wake(now, at);
        }
    }

    /// Makes an idle core begin work after the current event, in which TCP may still send further
    /// segments of the same burst. A pending interrupt is cancelled: the core polls the ring after
    /// its work.
    fn wake(&mut self, now: Time, at: usize) {
        let core = &mut self.cores[at];
        if !matches!(core.state, State::Busy(_) | State::Starting) {
            core.state = State::Starting;
            core.woken = now;
            self.schedule(now, at);
        }
    }

    /// Removes the next event of the cores. Returns the work that a core has finished and the time
    /// that the core has spent on it, or `None` if the event only starts work.
    pub fn next(&mut self, now: Time) -> Option<(Work, Spent)> {
        let token = self.timers.pop()?;
        let (at, turn) = ((token >> 32) as usize, token as u32);
        if self.cores[at].turn != turn {
            return None; // the core has a later timer, which replaces this one
        }
        match std::mem::take(&mut self.cores[at].state) {
            State::Busy(work) => {
                // The core begins its next work in a later event, so that the effects of the
                // finished work come first.
                self.cores[at].state = State::Starting;
                self.schedule(now, at);
                let Core { takes, woken, .. } = self.cores[at];
                Some((work, Spent { processing: takes, woken }))
            }
            State::Interrupt => {
                self.cores[at].woken = now;
                self.start(now, at);
                None
            }
            State::Idle | State::Starting => {
                self.start(now, at);
                None
            }
        }
    }

    /// Starts the next work of a core; the core becomes idle if there is none. The send queue has
    /// priority over the receive ring.
    fn start(&mut self, now: Time, at: usize) {
        let core = &mut self.cores[at];
        let (work, takes) = match core.sends.pop_front() {
            Some(Outgoing::Message) => (Work::Message, self.config.message),
            Some(Outgoing::Segment(first)) => self.burst(at, first),
            None => match core.ring.pop_front() {
                Some(first) => self.merge(at, first),
                None => {
                    core.state = State::Idle;
                    return;
                }
            },
        };
        let core = &mut self.cores[at];
        core.busy = Span(core.busy.0 + takes.0);
        core.takes = takes;
        core.state = State::Busy(work);
        self.schedule(now + takes, at);
    }

    /// Removes the segments that continue `first` from the send queue of a core, up to the size of
    /// a burst. Returns the burst of `first` and these segments, with its processing time.
    fn burst(&mut self, at: usize, first: Segment) -> (Work, Span) {
        let config = self.config;
        let from = HostId((at / config.cores as usize) as u32);
        self.counts.bursts += 1;
        self.counts.sent += 1;
        let mut bytes = u64::from(first.packet.payload);
        let mut burst = vec![first];
        if bytes == 0 {
            return (Work::Sent(from, burst), config.ack);
        }
        let sends = &mut self.cores[at].sends;
        while let Some(Outgoing::Segment(next)) = sends.front() {
            let last = burst[burst.len() - 1].packet;
            let total = bytes + u64::from(next.packet.payload);
            if total > config.burst || !continues(&last, &next.packet) {
                break;
            }
            bytes = total;
            burst.push(*next);
            sends.pop_front();
        }
        self.counts.sent += burst.len() as u64 - 1;
        let takes = config.send_segment + config.send_rate.time_for(bytes);
        (Work::Sent(from, burst), takes)
    }

    /// Merges the received segment `first` with the segments in the ring of a core that continue
    /// it, and removes these segments from the ring. Returns the merged segment with its processing
    /// time.
    fn merge(&mut self, at: usize, first: Segment) -> (Work, Span) {
        let config = self.config;
        self.counts.segments += 1;
        let frame = |of: &Segment| Frame { born: of.packet.born, path: of.path };
        let mut frames = vec![frame(&first)];
        let mut merged = first;
        let whole = |s: &Segment| s.packet.payload > 0 && s.sack.is_none();
        let (ring, mut place) = (&mut self.cores[at].ring, 0);
        while whole(&merged) && place < ring.len().min(BUDGET) {
            let next = ring[place];
            if next.packet.dst_endpoint != merged.packet.dst_endpoint {
                place += 1;
                continue;
            }
            let total = u64::from(merged.packet.payload) + u64::from(next.packet.payload);
            if total > config.merge || !whole(&next) || !continues(&merged.packet, &next.packet) {
                break;
            }
            ring.remove(place);
            frames.push(frame(&next));
            let ip_len = u32::from(merged.packet.ip_len) + u32::from(next.packet.payload);
            merged.packet = Packet {
                payload: total as u16,
                ip_len: ip_len.min(u32::from(u16::MAX)) as u16,
                seq: merged.packet.seq,
                // The last merged segment has the newest acknowledgement, window and time stamps.
                ..next.packet
            };
        }
        let each = Span(config.receive_frame.0 * frames.len() as u64);
        let takes = match merged.packet.payload {
            0 => each + config.ack,
            bytes => each + config.receive_segment + config.receive_rate.time_for(u64::from(bytes)),
        };
        (Work::Received(merged, frames), takes)
    }

    /// Returns the section `hosts` of the summary: counts, and the utilization of cores in a run of
    /// the duration `run`.
    pub fn summary(&self, run: Span) -> Value {
        let share = |core: &Core| core.busy.0 as f64 / run.0.max(1) as f64;
        let busiest = self.cores.iter().map(share).fold(0.0, f64::max);
        let mean = self.cores.iter().map(share).sum::<f64>() / self.cores.len().max(1) as f64;
        let c = &self.counts;
        let unprocessed = |core: &Core| {
            let in_work = match &core.state {
                State::Busy(Work::Received(_, frames)) => frames.len(),
                _ => 0,
            };
            core.ring.len() + in_work
        };
        let unprocessed: usize = self.cores.iter().map(unprocessed).sum();
        json!({
            "busy_mean": mean, "busy_max": busiest, "received_frames": c.frames,
            "received_segments": c.segments, "sent_segments": c.sent, "bursts": c.bursts,
            "interrupts": c.interrupts, "ring_drops": c.lost, "unprocessed_frames": unprocessed,
        })
    }
}

/// Whether the segment `next` can be merged with `last`: its payload follows that of `last` on one
/// connection, and flags (except PSH), type of service and notes are equal.
fn continues(last: &Packet, next: &Packet) -> bool {
    const MAY_DIFFER: u8 = flag::PSH;
    last.dst_endpoint == next.dst_endpoint
        && next.payload > 0
        && last.seq.wrapping_add(u64::from(last.payload)) as u32 == next.seq as u32
        && (last.flags ^ next.flags) & !MAY_DIFFER == 0
        && next.flags & (flag::SYN | flag::FIN | flag::RST) == 0
        && last.tos == next.tos
        && last.notes == next.notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> ProcessingConfig {
        ProcessingConfig {
            cores: 1,
            ring: 8,
            interrupt_delay: Span::from_us(5),
            interrupt_frames: 4,
            merge: 65_000,
            burst: 65_000,
            receive_frame: Span::from_us(1),
            receive_segment: Span::from_us(10),
            receive_rate: Rate::gbit(8),
            send_segment: Span::from_us(2),
            send_rate: Rate::gbit(8),
            ack: Span::from_us(3),
            message: Span::ZERO,
        }
    }

    fn segment(seq: u64, payload: u16) -> Segment {
        let packet = Packet {
            seq,
            payload,
            flags: flag::ACK,
            dst_endpoint: EndpointId::new(2, 0),
            ..Packet::blank(HostId(0))
        };
        Segment { packet, sack: None, path: 0, remaining: 0 }
    }

    /// Executes events until all cores are idle. Returns the finished work on segments: time in µs,
    /// payload in bytes, number of frames or segments.
    fn finished(all: &mut Processing) -> Vec<(u64, u64, usize)> {
        let mut found = Vec::new();
        while all.first() != Key::NEVER {
            let now = all.first().time();
            match all.next(now) {
                Some((Work::Received(s, frames), _)) => {
                    found.push((now.0 / 1_000_000, u64::from(s.packet.payload), frames.len()));
                }
                Some((Work::Sent(_, burst), _)) => {
                    let bytes = burst.iter().map(|s| u64::from(s.packet.payload)).sum();
                    found.push((now.0 / 1_000_000, bytes, burst.len()));
                }
                _ => {}
            }
        }
        found
    }

    #[test]
    fn frames_that_arrive_before_the_interrupt_are_one_segment() {
        let mut all = Processing::new(config(), 1, 1);
        for i in 0..3 {
            all.receive(Time(i), HostId(0), segment(i * 1_000, 1_000));
        }
        // interrupt after 5 µs, 3 frames of 1 µs each, 10 µs for the merged segment, 3 µs to copy
        // 3,000 bytes
        assert_eq!(finished(&mut all), [(5 + 3 + 10 + 3, 3_000, 3)]);
        assert_eq!(all.counts.interrupts, 1);
    }

    #[test]
    fn the_fourth_frame_interrupts_at_once() {
        let mut all = Processing::new(config(), 1, 1);
        for i in 0..4 {
            all.receive(Time(0), HostId(0), segment(i * 1_000, 1_000));
        }
        assert_eq!(finished(&mut all), [(4 + 10 + 4, 4_000, 4)]);
    }

    #[test]
    fn an_interrupt_for_each_frame_has_no_delay() {
        let mut all = Processing::new(ProcessingConfig { interrupt_frames: 1, ..config() }, 1, 1);
        all.receive(Time(0), HostId(0), segment(0, 1_000));
        assert_eq!(finished(&mut all), [(1 + 10 + 1, 1_000, 1)]);
    }

    #[test]
    fn only_what_continues_a_segment_is_merged() {
        let mut all = Processing::new(config(), 1, 1);
        let other = Segment {
            packet: Packet { dst_endpoint: EndpointId::new(4, 0), ..segment(0, 500).packet },
            ..segment(0, 500)
        };
        let marked = Segment {
            packet: Packet { tos: 3, ..segment(2_000, 1_000).packet },
            ..segment(2_000, 1_000)
        };
        all.receive(Time(0), HostId(0), segment(0, 1_000));
        all.receive(Time(0), HostId(0), other);
        all.receive(Time(0), HostId(0), segment(1_000, 1_000));
        all.receive(Time(0), HostId(0), marked);
        let payloads: Vec<(u64, usize)> = finished(&mut all).iter().map(|f| (f.1, f.2)).collect();
        assert_eq!(payloads, [(2_000, 2), (500, 1), (1_000, 1)]);
    }

    #[test]
    fn a_hole_or_a_sack_ends_a_merged_segment() {
        let mut all = Processing::new(ProcessingConfig { merge: 2_500, ..config() }, 1, 1);
        for seq in [0, 1_000, 2_000, 5_000] {
            all.receive(Time(0), HostId(0), segment(seq, 1_000));
        }
        let payloads: Vec<u64> = finished(&mut all).iter().map(|f| f.1).collect();
        assert_eq!(payloads, [2_000, 1_000, 1_000]);
        let sack = Segment { sack: Some([(9, 10); 4]), ..segment(6_000, 1_000) };
        all.receive(Time(0), HostId(0), segment(5_000, 1_000));
        all.receive(Time(0), HostId(0), sack);
        assert_eq!(finished(&mut all).len(), 2);
    }

    #[test]
    fn a_burst_leaves_together_and_before_what_was_received() {
        let mut all = Processing::new(config(), 1, 1);
        all.receive(Time(0), HostId(0), segment(0, 1_000));
        for i in 0..3 {
            all.send(Time(0), HostId(0), segment(i * 1_000, 1_000));
        }
        assert_eq!(finished(&mut all), [(2 + 3, 3_000, 3), (5 + 1 + 10 + 1, 1_000, 1)]);
    }

    #[test]
    fn a_full_ring_loses_frames_and_counts_them() {
        let mut all = Processing::new(ProcessingConfig { interrupt_frames: 100, ..config() }, 1, 1);
        for i in 0..10 {
            all.receive(Time(0), HostId(0), segment(i * 1_000, 1_000));
        }
        assert_eq!(finished(&mut all)[0].1, 8_000);
        assert_eq!(all.counts.lost, 2);
    }

    #[test]
    fn cores_work_at_the_same_time() {
        let mut all = Processing::new(ProcessingConfig { cores: 64, ..config() }, 2, 1);
        for slot in 0..20u32 {
            let packet = Packet {
                dst_endpoint: EndpointId::new(2 * slot as usize, 0),
                ..segment(0, 1_000).packet
            };
            all.receive(Time(0), HostId(0), Segment { packet, sack: None, path: 0, remaining: 0 });
        }
        let ended: Vec<u64> = finished(&mut all).iter().map(|f| f.0).collect();
        assert!(ended.iter().filter(|&&us| us == 17).count() > 12, "{ended:?}");
    }
}
