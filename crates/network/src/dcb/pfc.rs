//! Priority-based flow control (PFC; IEEE 802.1Q, clause 36, formerly 802.1Qbb): no frame of a
//! lossless priority is lost because of congestion.
//!
//! For every input port and priority, a switch counts the IP bytes that have arrived at this port
//! and have not left the switch yet (the *occupancy*). When the occupancy reaches XOFF, the switch
//! sends a PAUSE frame back on the cable: the neighbour stops the priority after the frame in
//! transmission. When the occupancy has fallen to XON, another frame ends the pause. A pause lasts
//! for a number of *quanta* of 512 bit times, and is refreshed before it expires. Packets that
//! still arrive after XOFF need *headroom*, see [`headroom`].
//!
//! A PAUSE frame has 64 B and is sent before all data at the next frame boundary. The frame uses
//! time on the link, and takes effect after the propagation delay and the response time of the
//! neighbour. One frame carries the pause times of all priorities that have changed since the
//! previous frame.

use super::ingress_pool::{Free, IngressPool, PoolUse, Used};
use super::pause_log::{Ended, Pause, PauseLog};
use crate::topology::CableConfig;
use eastwest_settings::narrow::{at_most, whole_part};
use eastwest_settings::{Bytes, Fraction, Section, key};
use eastwest_types::{Rate, Span, Time};
use serde::{Deserialize, Serialize};

/// Number of priorities of IEEE 802.1Q.
pub const PRIORITIES: usize = 8;

/// Length of a pause quantum in bit times of the link.
pub const QUANTUM_BITS: u64 = 512;

/// Length of a PAUSE frame in bytes, FCS included (IEEE 802.3, 31A and 31B).
pub const FRAME_BYTES: u32 = 64;

/// Settings of PFC, which apply to all links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PfcConfig {
    /// Mask of lossless priorities: bit p for priority p.
    pub priorities: u8,
    /// Buffer of each input port for all lossless priorities together, in IP bytes.
    pub buffer: u64,
    /// Memory shared by the inputs of a switch; `None` if each input has its own `buffer`.
    pub shared: Option<IngressPool>,
    /// XOFF threshold: a priority is paused when its occupancy in IP bytes is at or above this
    /// value.
    pub xoff: u64,
    /// XON threshold: a pause ends when the occupancy in IP bytes is at or below this value.
    pub xon: u64,
    /// Length of a pause in quanta of 512 bit times.
    pub quanta: u16,
    /// Fraction of the length of a pause after which it is refreshed, in 1/65536.
    pub refresh: u16,
    /// Time from the arrival of a PAUSE frame until the port has stopped sending.
    pub response: Span,
    /// Time in pause without a transmission after which the watchdog drops all packets of the
    /// queue; `None` if there is no watchdog.
    pub watchdog: Option<Span>,
}

impl PfcConfig {
    /// Reads the table `[fabric.pfc]`. `cables` are the cables of the fabric, and `frames` the
    /// sizes of frames on links.
    pub(super) fn read(
        s: &mut Section,
        cables: &[CableConfig],
        frames: &Wire,
        notes: &mut Vec<String>,
    ) -> PfcConfig {
        let priorities = read_priorities(
            s,
            "Lossless priorities, 0 to 7. The `priority` of its [[class]] decides whether traffic \
             is lossless (3: custom of FCoE and RoCE).",
            None,
        );
        let shared = IngressPool::read(s, frames.mtu);
        if let Some(pool) = shared {
            for name in ["buffer", "xoff", "xon"] {
                if s.former::<Bytes>(name).is_some() {
                    s.wrong(
                        name,
                        "has no effect with `shared`, since thresholds follow from `alpha` and \
                         the free memory: remove the key",
                    );
                }
            }
            let response = read_response(s);
            let (quanta, refresh, watchdog) = read_pauses(s);
            let config = PfcConfig {
                priorities,
                buffer: pool.size,
                shared,
                xoff: 0,
                xon: 0,
                quanta: at_most(quanta),
                refresh: at_most(whole_part(refresh.0 * 65_536.0)),
                response,
                watchdog,
            };
            check_refresh(s, &config, cables, frames);
            note_headroom(s, &pool, cables, (frames, response), notes);
            return config;
        }
        let count = u64::from(priorities.count_ones()).max(1);
        let buffer: Bytes = s.get(
            key(
                "buffer",
                "Buffer of each input port of a switch, in bytes, for all lossless priorities \
                 together (Gusat et al. 2009).",
            )
            .default("150 KB")
            .range("1 KB", "10 GB"),
        );
        let response = read_response(s);
        let room = |cable: &CableConfig| headroom(cable, frames, response);
        let most = cables.iter().max_by_key(|cable| room(cable));
        let needed = most.map_or(0, room);
        let each = buffer.0 / count;
        let free = each.saturating_sub(needed);
        let (xoff, xon) = read_thresholds(s, free, frames.mtu);
        let (quanta, refresh, watchdog) = read_pauses(s);
        if let Some(cable) = most {
            check_room(s, &Share { xoff, needed, each, count }, cable, frames.mtu);
        }
        s.demand(xon < xoff || xoff == 0, &["xon", "xoff", "buffer"], || {
            format!("must be below `xoff`, which is {xoff} B")
        });
        let config = PfcConfig {
            priorities,
            buffer: buffer.0,
            shared: None,
            xoff,
            xon,
            quanta: at_most(quanta),
            refresh: at_most(whole_part(refresh.0 * 65_536.0)),
            response,
            watchdog,
        };
        check_refresh(s, &config, cables, frames);
        config
    }

    /// Whether a priority is lossless.
    pub fn is_lossless(&self, priority: u8) -> bool {
        self.priorities >> priority & 1 == 1
    }

    /// Returns the duration of a pause of `quanta` quanta on a link with the rate `rate`.
    pub fn pause(rate: Rate, quanta: u16) -> Span {
        rate.time_for(u64::from(quanta) * QUANTUM_BITS / 8)
    }

    /// Returns the time from a PAUSE frame to the next frame that refreshes its pause, on a link
    /// with the rate `rate`.
    pub fn refresh_every(&self, rate: Rate) -> Span {
        let pause = PfcConfig::pause(rate, self.quanta);
        Span(((u128::from(pause.0) * u128::from(self.refresh)) >> 16) as u64)
    }
}

/// Sizes of frames on a link, from which follow the bytes on the link of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wire {
    /// Largest packet in IP bytes.
    pub mtu: u32,
    /// Framing in bytes: bytes of a packet on the link in addition to its IP length.
    pub framing: u32,
    /// Smallest length of a packet on the link in bytes, framing included.
    pub min_frame: u32,
}

impl Wire {
    /// Returns the bytes on the link of a packet of `ip_len` IP bytes, framing and padding
    /// included.
    pub fn bytes(&self, ip_len: u32) -> u32 {
        (ip_len + self.framing).max(self.min_frame)
    }

    fn largest(&self) -> u64 {
        u64::from(self.bytes(self.mtu))
    }

    /// Returns the bytes of a PAUSE frame on the link: 64 B, or the smallest frame with framing if
    /// this is larger.
    pub fn pfc_frame(&self) -> u64 {
        u64::from(FRAME_BYTES.max(self.min_frame))
    }
}

/// Returns the longest time from reaching XOFF at a switch until the last bit of the paused
/// neighbour has arrived. This time is the sum of the transmission times of the frame that the
/// switch is sending and of the PAUSE frame, the propagation delay, the response time, the
/// transmission time of the frame that the neighbour is sending, and again the propagation delay.
pub fn reaction_time(cable: &CableConfig, wire: &Wire, response: Span) -> Span {
    let frames = cable.rate.time_for(2 * wire.largest() + wire.pfc_frame());
    frames + cable.delay + cable.delay + response
}

/// Returns the headroom in bytes that an input port needs after reaching XOFF: the bytes that the
/// link carries in the [reaction time](reaction_time), and the packet that has reached XOFF.
pub fn headroom(cable: &CableConfig, wire: &Wire, response: Span) -> u64 {
    let span = u128::from(reaction_time(cable, wire, response).0) * u128::from(cable.rate.0);
    let bytes = span.div_ceil(8_000_000_000_000);
    u64::try_from(bytes).unwrap_or(u64::MAX).saturating_add(u64::from(wire.mtu))
}

/// Content of a PAUSE frame: pause quanta of each priority. 0 ends a pause, and `None` leaves the
/// priority unchanged.
pub type PauseFrame = [Option<u16>; PRIORITIES];

/// PAUSE frames that a port sends: one frame to be sent at the next frame boundary, and the frames
/// in flight.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PauseQueue {
    pending: PauseFrame,
    /// Whether `pending` has a change for at least one priority.
    has_pending: bool,
    /// PAUSE frames in flight, each with the time at which it takes effect at the far end.
    in_flight: std::collections::VecDeque<(Time, PauseFrame)>,
    /// Time at which the first frame in flight takes effect at the far end; [`Time::NEVER`] if no
    /// frame is in flight.
    pub next: Time,
    /// Number of PAUSE frames sent so far.
    pub frames_sent: u64,
}

impl PauseQueue {
    /// Returns a queue without PAUSE frames.
    pub fn new() -> PauseQueue {
        PauseQueue {
            pending: PauseFrame::default(),
            has_pending: false,
            in_flight: Default::default(),
            next: Time::NEVER,
            frames_sent: 0,
        }
    }

    /// Adds a pause of `quanta` quanta (0 ends a pause) for a priority to the PAUSE frame that is
    /// sent at the next frame boundary.
    pub fn set_pending(&mut self, priority: u8, quanta: u16) {
        self.pending[usize::from(priority)] = Some(quanta);
        self.has_pending = true;
    }

    /// Whether a PAUSE frame is to be sent at the next frame boundary.
    pub fn has_pending(&self) -> bool {
        self.has_pending
    }

    /// Sends the pending PAUSE frame, which takes effect at the far end at time `at`.
    pub fn transmit(&mut self, at: Time) {
        let frame = std::mem::take(&mut self.pending);
        self.has_pending = false;
        if self.in_flight.is_empty() {
            self.next = at;
        }
        self.in_flight.push_back((at, frame));
        self.frames_sent += 1;
    }

    /// Returns the PAUSE frames in flight after the first `sent` frames that the port has sent, each
    /// with the time at which it takes effect. These frames must still be in flight.
    pub fn sent_after(&self, sent: u64) -> impl Iterator<Item = &(Time, PauseFrame)> {
        let new = (self.frames_sent - sent) as usize;
        self.in_flight.iter().skip(self.in_flight.len() - new)
    }

    /// Returns the number of PAUSE frames that have taken effect, of those that the port has sent.
    pub fn frames_arrived(&self) -> u64 {
        self.frames_sent - self.in_flight.len() as u64
    }

    /// Adds a PAUSE frame that takes effect at time `at`, and that a port in another part of a
    /// partitioned fabric has sent.
    pub fn receive(&mut self, at: Time, frame: PauseFrame) {
        if self.in_flight.is_empty() {
            self.next = at;
        }
        self.in_flight.push_back((at, frame));
    }

    /// Whether a PAUSE frame that is pending or in flight ends the pause of the priority
    /// `priority`.
    pub fn resumes(&self, priority: u8) -> bool {
        let frame = self.in_flight.iter().map(|(_, frame)| frame).chain([&self.pending]);
        frame.into_iter().any(|frame| frame[usize::from(priority)] == Some(0))
    }

    /// Removes and returns the first PAUSE frame in flight if it has taken effect by `now`,
    /// otherwise `None`.
    pub fn take_due(&mut self, now: Time) -> Option<PauseFrame> {
        if self.next > now {
            return None;
        }
        let (_, frame) = self.in_flight.pop_front().expect("a frame in flight is due");
        self.next = self.in_flight.front().map_or(Time::NEVER, |f| f.0);
        Some(frame)
    }
}

/// PFC pauses that are in force at one output port.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PauseState {
    until: [Time; PRIORITIES],
    since: [Time; PRIORITIES],
    /// Mask of paused priorities: bit p for priority p.
    pub mask: u8,
    /// Time in pause of each priority, summed over pauses that have ended.
    total: [Span; PRIORITIES],
    /// Number of pauses so far, by priority.
    pub count: [u64; PRIORITIES],
    /// Log of pauses; `None` if the scenario does not ask for one.
    log: Option<Box<PauseLog>>,
}

impl PauseState {
    pub fn new() -> PauseState {
        PauseState {
            until: [Time::ZERO; PRIORITIES],
            since: [Time::ZERO; PRIORITIES],
            mask: 0,
            total: [Span::ZERO; PRIORITIES],
            count: [0; PRIORITIES],
            log: None,
        }
    }

    /// Starts to record the pauses of the port in `log`.
    pub fn keep_log(&mut self, log: PauseLog) {
        self.log = Some(Box::new(log));
    }

    /// Removes and returns the log of pauses; `None` if there is no log. Pauses that have not ended
    /// by `now` are included.
    pub fn take_log(&mut self, now: Time) -> Option<PauseLog> {
        let mut log = self.log.take()?;
        for p in 0..PRIORITIES {
            let Some(began) = self.since(p) else { continue };
            let (until, ended) = match self.until[p] {
                out if out <= now => (out, Ended::RanOut),
                _ => (now, Ended::NotYet),
            };
            log.note(Pause { priority: p as u8, began, until, ended });
        }
        Some(*log)
    }

    /// Applies a PAUSE frame to an output port whose link has the rate `rate`: begins, prolongs and
    /// ends pauses.
    pub fn apply(&mut self, now: Time, frame: &PauseFrame, rate: Rate) {
        for (p, quanta) in frame.iter().enumerate() {
            match quanta {
                None => {}
                Some(0) => self.end(p, now, Ended::Released),
                Some(quanta) => {
                    if self.mask >> p & 1 == 0 {
                        self.mask |= 1 << p;
                        self.since[p] = now;
                        self.count[p] += 1;
                    }
                    self.until[p] = now + PfcConfig::pause(rate, *quanta);
                }
            }
        }
    }

    fn end(&mut self, p: usize, at: Time, ended: Ended) {
        if self.mask >> p & 1 == 1 {
            self.mask &= !(1 << p);
            self.total[p] += at.since(self.since[p]);
            if let Some(log) = &mut self.log {
                log.note(Pause { priority: p as u8, began: self.since[p], until: at, ended });
            }
        }
    }

    /// Ends the pauses that have expired by `now`.
    pub fn expire(&mut self, now: Time) {
        if self.mask == 0 {
            return;
        }
        for p in 0..PRIORITIES {
            if self.mask >> p & 1 == 1 && self.until[p] <= now {
                self.end(p, self.until[p], Ended::RanOut);
            }
        }
    }

    /// Returns the time at which the next pause expires; [`Time::NEVER`] if no priority is paused.
    pub fn next(&self) -> Time {
        if self.mask == 0 {
            return Time::NEVER;
        }
        let paused = (0..PRIORITIES).filter(|p| self.mask >> p & 1 == 1);
        paused.map(|p| self.until[p]).min().unwrap_or(Time::NEVER)
    }

    /// Whether a priority is paused at `now`: a pause that has expired may still be in `mask`.
    pub fn is_in_force(&self, now: Time) -> bool {
        (0..PRIORITIES).any(|p| self.mask >> p & 1 == 1 && self.until[p] > now)
    }

    /// Returns the time at which the current pause of priority `p` began; `None` if the priority is
    /// not paused.
    pub fn since(&self, p: usize) -> Option<Time> {
        (self.mask >> p & 1 == 1).then(|| self.since[p])
    }

    /// Returns the total time in pause of priority `p` until `now`, the current pause included.
    pub fn total(&self, p: usize, now: Time) -> Span {
        self.total[p] + self.since(p).map_or(Span::ZERO, |since| now.since(since))
    }
}

/// Ingress buffer of the switch at the far end of a link. For each priority, counts the IP bytes
/// that have arrived on the link and have not left the switch.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[repr(C)] // fields that every packet accesses come first
pub(crate) struct Input {
    xoff: u64,
    lossless: u8,
    /// Mask of priorities whose packets cannot be counted on the fast path at XOFF or above: bit p
    /// for priority p.
    limited: u8,
    /// Mask of priorities that this buffer has paused (XOFF sent, XON not sent yet): bit p for
    /// priority p.
    pub xoff_sent: u8,
    /// Mask of priorities of which no packet has left since XOFF was last sent or refreshed: bit p
    /// for priority p.
    pub no_progress: u8,
    occupancies: [Occupancy; PRIORITIES],
    /// Time at which the pauses in force are next refreshed (XOFF sent again); [`Time::NEVER`] if
    /// no pause is in force.
    pub refresh_at: Time,
    xon: u64,
    headroom: u64,
    /// Use of the memory that the inputs of the switch share; `None` if they share none.
    pool_use: Option<Box<PoolUse>>,
    /// Numbers of XOFF, XON and refreshing XOFF messages that this buffer has sent, by priority.
    pub pause_counts: [[u64; 3]; PRIORITIES],
    /// Number of packets that did not fit into the ingress buffer.
    pub overflows: u64,
}

/// Occupancy of one priority of an ingress buffer, in IP bytes.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Occupancy {
    bytes: u64,
    /// Largest occupancy `bytes` so far, in IP bytes.
    max: u64,
}

impl Input {
    /// Returns an empty ingress buffer with `headroom` bytes of headroom. Without PFC (`pfc` is
    /// `None`), the buffer never sends XOFF.
    pub fn new(pfc: Option<&PfcConfig>, headroom: u64) -> Input {
        let lossless = pfc.map_or(0, |c| c.priorities);
        let pool_use = pfc.and_then(|c| c.shared).map(|pool| PoolUse::new(pool, lossless));
        Input {
            occupancies: Default::default(),
            xoff: pfc.map_or(u64::MAX, |c| c.xoff),
            xon: pfc.map_or(0, |c| c.xon),
            headroom,
            limited: pool_use.as_ref().map_or(lossless, PoolUse::counted),
            pool_use: pool_use.map(Box::new),
            lossless,
            xoff_sent: 0,
            refresh_at: Time::NEVER,
            no_progress: 0,
            pause_counts: [[0; 3]; PRIORITIES],
            overflows: 0,
        }
    }

    /// Returns the current occupancy of a priority in IP bytes.
    pub fn bytes(&self, priority: u8) -> u64 {
        self.occupancies[usize::from(priority)].bytes
    }

    /// Returns the largest occupancy of a priority so far, in IP bytes.
    pub fn max_bytes(&self, priority: u8) -> u64 {
        self.occupancies[usize::from(priority)].max
    }

    /// Returns the XON threshold: the occupancy in IP bytes at which a pause ends.
    pub fn xon(&self) -> u64 {
        self.xon
    }

    /// Returns the headroom: the bytes beyond XOFF that a lossless priority may occupy.
    pub fn headroom(&self) -> u64 {
        self.headroom
    }

    /// Counts a packet on the fast path, if the occupancy then stays below XOFF and sets no new
    /// maximum; otherwise [`Input::add_and_check_xoff`] is needed. The occupancy may still include
    /// packets that have left the switch. Returns whether the packet was counted.
    #[inline]
    pub fn add_fast_path(&mut self, priority: u8, bytes: u32) -> bool {
        let occupancy = &mut self.occupancies[usize::from(priority)];
        let then = occupancy.bytes + u64::from(bytes);
        let is_counted =
            then <= occupancy.max && (then < self.xoff || self.limited >> priority & 1 == 0);
        if is_counted {
            occupancy.bytes = then;
        }
        is_counted
    }

    /// Subtracts a packet from the occupancy without checking the XON threshold, because the packet
    /// was dropped or no pause is in force.
    pub fn subtract(&mut self, priority: u8, bytes: u32) {
        self.occupancies[usize::from(priority)].bytes -= u64::from(bytes);
    }

    /// Whether the ingress buffer has room for a packet of `bytes` IP bytes. If not, and the
    /// priority is lossless, counts an overflow. Lossy priorities have a limit only if they use the
    /// shared memory of the switch. `free` is the free memory of the switch.
    pub fn admits(&mut self, priority: u8, bytes: u32, free: Free) -> bool {
        let (p, packet, held) = (usize::from(priority), u64::from(bytes), self.bytes(priority));
        if self.lossless >> priority & 1 == 0 {
            let pool_use = self.pool_use.as_ref();
            return pool_use.is_none_or(|pool_use| pool_use.takes_lossy(held, packet, free.shared));
        }
        let fits = match &self.pool_use {
            None => held + packet <= self.xoff.saturating_add(self.headroom),
            Some(pool_use) => {
                pool_use.takes(p, held, packet, free.shared)
                    || (pool_use.in_headroom[p] + packet <= self.headroom
                        && packet <= free.headroom)
            }
        };
        self.overflows += u64::from(!fits);
        fits
    }

    /// Adds an arrived packet to the occupancy. Returns whether XOFF must be sent now. `free` is
    /// the free memory of the switch before the arrival of the packet.
    pub fn add_and_check_xoff(&mut self, priority: u8, bytes: u32, free: Free) -> bool {
        let (p, packet) = (usize::from(priority), u64::from(bytes));
        let bit = 1 << p;
        let occupancy = &mut self.occupancies[p];
        let mut full = occupancy.bytes + packet >= self.xoff;
        if self.lossless & bit != 0
            && let Some(pool_use) = &mut self.pool_use
        {
            let before = pool_use.used(p, occupancy.bytes).shared;
            if !pool_use.takes(p, occupancy.bytes, packet, free.shared) {
                pool_use.in_headroom[p] += packet;
            }
            let then = occupancy.bytes + packet;
            let taken = pool_use.used(p, then).shared - before;
            full = then - pool_use.in_headroom[p] >= pool_use.pool.limit(free.shared - taken)
                || pool_use.in_headroom[p] > 0;
        }
        occupancy.bytes += packet;
        occupancy.max = occupancy.max.max(occupancy.bytes);
        let send_xoff = full && self.xoff_sent & bit == 0 && self.lossless & bit != 0;
        if send_xoff {
            self.xoff_sent |= bit;
            self.no_progress |= bit;
            self.pause_counts[p][0] += 1;
        }
        send_xoff
    }

    /// Returns the bytes of the shared memory and of the headroom of the switch that a priority
    /// uses; 0 if inputs share no memory.
    pub fn used(&self, priority: u8) -> Used {
        let p = usize::from(priority);
        let pool_use = self.pool_use.as_ref();
        pool_use.map_or(Used::default(), |pool_use| pool_use.used(p, self.occupancies[p].bytes))
    }

    /// Whether the inputs of the switch share memory.
    #[inline]
    pub fn shares_memory(&self) -> bool {
        self.pool_use.is_some()
    }

    /// Returns the settings of the memory that inputs share; `None` if they share none.
    pub fn pool(&self) -> Option<&IngressPool> {
        self.pool_use.as_deref().map(|pool_use| &pool_use.pool)
    }

    /// Subtracts a packet that has left the switch from the occupancy. The packet frees headroom
    /// first, then shared memory.
    pub fn subtract_shared(&mut self, priority: u8, bytes: u32) {
        let p = usize::from(priority);
        if let Some(pool_use) = &mut self.pool_use {
            let headroom = &mut pool_use.in_headroom[p];
            *headroom -= u64::from(bytes).min(*headroom);
        }
        self.no_progress &= !(1 << p);
        self.subtract(priority, bytes);
    }

    /// Ends the pause of a priority if its occupancy is low enough while `free` bytes of the shared
    /// memory are free. Returns whether XON must be sent now.
    pub fn check_shared_xon(&mut self, priority: u8, free: u64) -> bool {
        let (p, bit) = (usize::from(priority), 1 << priority);
        let bytes = self.occupancies[p].bytes;
        let goes_on = self.pool_use.as_ref().is_some_and(|pool_use| {
            pool_use.in_headroom[p] == 0 && (bytes == 0 || pool_use.pool.resumes(bytes, free))
        });
        let send_xon = self.xoff_sent & bit != 0 && goes_on;
        if send_xon {
            self.xoff_sent &= !bit;
            self.pause_counts[p][1] += 1;
        }
        send_xon
    }

    /// Subtracts a packet that has left the switch from the occupancy. Returns whether XON must be
    /// sent now.
    pub fn remove_and_check_xon(&mut self, priority: u8, bytes: u32) -> bool {
        let (p, bit) = (usize::from(priority), 1 << priority);
        self.occupancies[p].bytes -= u64::from(bytes);
        self.no_progress &= !bit;
        let send_xon = self.xoff_sent & bit != 0 && self.occupancies[p].bytes <= self.xon;
        if send_xon {
            self.xoff_sent &= !bit;
            self.pause_counts[p][1] += 1;
        }
        send_xon
    }
}

/// Reads the key `priorities`, a list of priorities, as a mask: bit p for priority p.
pub(super) fn read_priorities(s: &mut Section, doc: &'static str, default: Option<u8>) -> u8 {
    let declared = key::<Vec<u32>>("priorities", doc);
    let list = s.get(match default {
        None => declared.value(vec![3]),
        Some(set_bits) => {
            let these = (0..8).filter(|p| set_bits >> p & 1 == 1).collect();
            declared.computed("those of fabric.pfc, else [3]", these)
        }
    });
    s.demand(!list.is_empty(), &["priorities"], || {
        "has no entry: at least one priority from 0 to 7 is needed".to_owned()
    });
    for &p in &list {
        s.demand(p < 8, &["priorities"], || {
            format!("{p} is not a priority; priorities are 0 to 7")
        });
    }
    list.iter().filter(|p| **p < 8).fold(0, |set_bits, p| set_bits | 1 << p)
}

/// Reads the keys `xoff` and `xon` in bytes. `free` is the buffer of one priority without its
/// headroom.
fn read_thresholds(s: &mut Section, free: u64, mtu: u32) -> (u64, u64) {
    let xoff: Bytes = s.get(
        key(
            "xoff",
            "XOFF threshold of an input port, in IP bytes of one priority: from this backlog on \
             the switch sends PAUSE frames.",
        )
        .computed("the buffer of one priority minus the headroom of the longest link", Bytes(free)),
    );
    let xon: Bytes = s.get(
        key(
            "xon",
            "XON threshold of an input port, in IP bytes of one priority: when the backlog falls \
             to this value, the switch ends the pause.",
        )
        .computed(
            "two largest packets below xoff",
            Bytes(xoff.0.saturating_sub(2 * u64::from(mtu))),
        ),
    );
    (xoff.0, xon.0)
}

/// Reads the key `response`, the response time to a PAUSE frame.
fn read_response(s: &mut Section) -> Span {
    s.get(
        key(
            "response",
            "Time from the arrival of a PAUSE frame until the port stops sending (IEEE 802.3, \
             31B.3.7: 60 quanta at 10 Gbit/s).",
        )
        .default("3072 ns")
        .range("0 s", "1 ms"),
    )
}

/// Reads the keys `quanta`, `refresh` and `watchdog`.
fn read_pauses(s: &mut Section) -> (u32, Fraction, Option<Span>) {
    let quanta: u32 = s.get(
        key(
            "quanta",
            "Duration in a PAUSE frame, in quanta of 512 bit times (IEEE 802.1Q: up to \
                       65535).",
        )
        .default("65535")
        .range("1", "65535"),
    );
    let refresh: Fraction = s.get(
        key("refresh", "Share of a pause's duration after which the PAUSE frame is sent again.")
            .default("0.5")
            .range("0.01", "0.99"),
    );
    let watchdog = s.find(
        key(
            "watchdog",
            "PFC watchdog: time without a departure after which a paused queue drops all its \
             packets, to end a deadlock. The drops are counted.",
        )
        .optional("no watchdog: no packet is dropped, and a deadlock ends the run")
        .range("1 us", "1 h"),
    );
    (quanta, refresh, watchdog)
}

/// Buffer of one lossless priority at an input, in bytes.
struct Share {
    xoff: u64,
    /// Headroom in bytes that the longest cable needs.
    needed: u64,
    /// Part of the buffer for each lossless priority, in bytes.
    each: u64,
    /// Number of lossless priorities that share the buffer.
    count: u64,
}

/// Reports an error if the XOFF threshold and the headroom of `cable` do not fit into the buffer.
fn check_room(s: &mut Section, share: &Share, cable: &CableConfig, mtu: u32) {
    let &Share { xoff, needed, each, count } = share;
    let why = || {
        format!(
            "a link of {} with a delay of {} needs {needed} B of headroom for packets of {mtu} B",
            cable.rate, cable.delay
        )
    };
    s.demand(needed < each, &["buffer", "response"], || {
        format!(
            "is too small: it has {each} B for each of the {count} lossless priorities, but {}",
            why()
        )
    });
    s.demand(xoff + needed <= each.max(needed), &["xoff", "buffer", "response"], || {
        format!(
            "is too high: the buffer has {} B above it, but {}",
            each.saturating_sub(xoff),
            why()
        )
    });
    s.demand(xoff > 0, &["xoff", "buffer"], || "must be above 0 B".to_owned());
}

/// Adds a note if the headroom of an input is smaller than the headroom that its cable needs.
fn note_headroom(
    s: &Section,
    pool: &IngressPool,
    cables: &[CableConfig],
    (frames, response): (&Wire, Span),
    notes: &mut Vec<String>,
) {
    let Some(given) = pool.headroom.filter(|_| s.all_good()) else { return };
    let room = |cable: &&CableConfig| headroom(cable, frames, response);
    let Some(cable) = cables.iter().max_by_key(room) else { return };
    let needed = room(&cable);
    if given < needed {
        notes.push(format!(
            "fabric.pfc.headroom: {given} B are fewer than the {needed} B of headroom that a link of \
             {} with a delay of {} needs for packets of {} B: lossless packets can be lost there \
             (dcb.overflow_drops)",
            cable.rate, cable.delay, frames.mtu
        ));
    }
}

/// Reports an error if a pause would expire before its refresh takes effect.
fn check_refresh(s: &mut Section, config: &PfcConfig, cables: &[CableConfig], frames: &Wire) {
    for cable in cables {
        let pause = PfcConfig::pause(cable.rate, config.quanta);
        let repeated =
            config.refresh_every(cable.rate) + reaction_time(cable, frames, config.response);
        s.demand(repeated < pause, &["quanta", "refresh"], || {
            format!(
                "is too short for a link of {} with a delay of {}: a pause lasts {pause}, but the \
                 next PAUSE frame can take effect as late as {repeated}",
                cable.rate, cable.delay
            )
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: CableConfig = CableConfig { rate: Rate::gbit(10), delay: Span::from_us(1) };

    #[test]
    fn a_quantum_is_512_bit_times_and_the_longest_pause_3_355_ms_at_10_gigabit() {
        assert_eq!(PfcConfig::pause(TEN.rate, 1), Span(51_200));
        let longest = PfcConfig::pause(TEN.rate, u16::MAX);
        assert_eq!(longest, Span(65_535 * 51_200));
        assert!((longest.as_secs_f64() * 1e3 - 3.355).abs() < 5e-4);
    }

    #[test]
    fn headroom_is_what_a_link_carries_in_a_round_trip() {
        let wire = Wire { mtu: 1500, framing: 38, min_frame: 84 };
        // Expected headroom: frames of 2 · 1538 + 84 B, 2 µs of cable and 3 µs of response time at
        // 1.25 B/ns, and one packet of 1500 B.
        let bytes = headroom(&TEN, &wire, Span::from_us(3));
        assert_eq!(bytes, 2 * 1538 + 84 + 2_500 + 3_750 + 1_500);
        let faster = CableConfig { rate: Rate::gbit(40), ..TEN };
        assert_eq!(headroom(&faster, &wire, Span::ZERO), 2 * 1538 + 84 + 10_000 + 1_500);
    }

    #[test]
    fn pauses_begin_end_run_out_and_add_up() {
        let us = |n| Time::ZERO + Span::from_us(n);
        let mut paused = PauseState::new();
        paused.keep_log(PauseLog::new(3));
        let mut xoff = PauseFrame::default();
        (xoff[3], xoff[5]) = (Some(1000), Some(200));
        paused.apply(us(10), &xoff, TEN.rate); // pauses of 51.2 µs and 10.24 µs
        assert_eq!((paused.mask, paused.next()), (0b101000, us(10) + Span(200 * 51_200)));
        paused.expire(us(30));
        assert_eq!(paused.mask, 0b1000);
        // the pause of priority 3 expires at 61.2 µs, although its bit in the mask remains
        assert!(paused.is_in_force(us(61)) && !paused.is_in_force(us(10) + Span(1000 * 51_200)));
        let mut xon = PauseFrame::default();
        xon[3] = Some(0);
        paused.apply(us(40), &xon, TEN.rate);
        assert_eq!((paused.mask, paused.next()), (0, Time::NEVER));
        assert!(!paused.is_in_force(us(40)));
        assert_eq!(paused.total(3, us(99)), Span::from_us(30));
        assert_eq!(paused.total(5, us(99)), Span(200 * 51_200));
        assert_eq!((paused.count[3], paused.count[0]), (1, 0));
        // Two more pauses begin: the first has not ended when the log is read, and the second does
        // not fit into the log.
        paused.apply(us(100), &xoff, TEN.rate);
        let log = paused.take_log(us(105)).unwrap();
        let pause = |priority, began, until, ended| Pause { priority, began, until, ended };
        let out = us(10) + Span(200 * 51_200);
        assert_eq!(
            log.pauses,
            [
                pause(5, us(10), out, Ended::RanOut),
                pause(3, us(10), us(40), Ended::Released),
                pause(3, us(100), us(105), Ended::NotYet),
            ]
        );
        assert_eq!((log.left_out, paused.take_log(us(105))), (1, None));
    }

    #[test]
    fn an_input_pauses_at_xoff_goes_on_at_xon_and_refuses_beyond_its_headroom() {
        let config = PfcConfig {
            priorities: 0b1000,
            buffer: 20_000,
            shared: None,
            xoff: 10_000,
            xon: 7_000,
            quanta: u16::MAX,
            refresh: u16::MAX / 2,
            response: Span::ZERO,
            watchdog: None,
        };
        let mut input = Input::new(Some(&config), 5_000);
        for n in 1..=10 {
            assert!(input.admits(3, 1_500, Free::UNLIMITED));
            // The seventh packet of 1500 B is the first to reach XOFF at 10,000 B.
            assert_eq!(input.add_and_check_xoff(3, 1_500, Free::UNLIMITED), n == 7);
        }
        let free = Free::UNLIMITED;
        assert!(!input.admits(3, 1_500, free) && input.admits(0, 1_500, free));
        // Priority 3 is full, and another priority would set a new maximum.
        assert!(!input.add_fast_path(3, 1_500) && !input.add_fast_path(0, 1_500));
        for n in (0..10).rev() {
            assert_eq!(input.remove_and_check_xon(3, 1_500), n == 4, "{n}");
        }
        assert_eq!((input.xoff_sent, input.max_bytes(3), input.overflows), (0, 15_000, 1));
        assert_eq!(input.pause_counts[3], [1, 1, 0]);
        // Six packets of 1500 B stay below XOFF and below the maximum so far.
        assert!((0..6).all(|_| input.add_fast_path(3, 1_500)) && !input.add_fast_path(3, 1_500));
        input.subtract(3, 1_500);
        assert_eq!((input.bytes(3), input.pause_counts[3]), (7_500, [1, 1, 0]));
    }
}
