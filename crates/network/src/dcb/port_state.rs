//! State of a port with data-centre bridging (DCB, IEEE 802.1Q), without its queues: pauses in
//! force, PAUSE frames to be sent, rate limits, and the ingress buffer at the far end of its link.

use super::config::DcbConfig;
use super::pfc::{self, Input, PauseQueue, PauseState, PfcConfig, Wire, headroom};
use super::priority_queues::PriorityQueues;
use super::qcn::{CongestionPoint, Countdown};
use super::queued_packet::QueuedPacket;
use crate::queue::{Place, QueueConfig};
use crate::topology::CableConfig;
use eastwest_engine::random::Stream;
use eastwest_types::{Rate, Span, Time};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// State of a port with data-centre bridging (DCB), without its queues.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C, align(64))] // fields that every packet accesses come first: two cache lines and a counter
pub struct DcbPort {
    /// Time from which a packet can be enqueued on the fast path, without a count of the packets
    /// that have started; [`Time::NEVER`] if this is not possible.
    pub(super) fast_path_from: Time,
    /// Time at which the last packet whose departure was decided at enqueue will have been sent.
    pub(super) free_at: Time,
    /// Time from which the first rate-limited flow may send, while the port is idle and has no
    /// other packet to send; otherwise [`Time::NEVER`].
    pub(super) wakes_at: Time,
    /// Time at which the next timer of a rate limiter expires; [`Time::NEVER`] if no timer runs.
    pub(super) timer_at: Time,
    /// Earlier of two times: the next PAUSE frame of this port takes effect at the far end, or the
    /// ingress buffer there must refresh its pauses.
    pub(super) due: Time,
    /// Number of the outgoing link of this port.
    pub(super) link: u32,
    /// Number of packets at the head of the ring of packets on the wire that ingress buffers no
    /// longer count.
    pub(super) released: u32,
    /// IP bytes of the packet that may start at `wakes_at`. 0 if the port has several classes,
    /// since packets of two classes could start.
    pub(super) wake_bytes: u32,
    /// Whether a packet, not a PAUSE frame, is in transmission.
    pub(super) sending_packet: bool,
    /// Whether all queued packets are in the ring of packets on the wire, with departures decided
    /// at enqueue, see [`super::eventless`].
    pub(super) precommitted: bool,
    /// Whether the end of each transmission currently needs an event.
    pub(super) needs_events: bool,
    /// Whether the transmission time of a byte is a whole number of picoseconds.
    pub(super) whole_ps_per_byte: bool,
    /// Whether QCN has limited a flow at this port since the start of the run.
    pub(super) has_limits: bool,
    /// Whether departures can be decided at enqueue (precommitted): the port has one class, and
    /// nothing reads its queue between its own events.
    pub(super) can_precommit: bool,
    /// Whether an input of the switch of this port has a pause (XOFF) in force. Each packet that
    /// leaves may then lead to XON.
    pub(super) switch_xoff: bool,
    /// Whether the end of each transmission needs an event during the whole run.
    pub(super) always_events: bool,
    /// Whether the port belongs to a host. Packets at the port of a host occupy no ingress buffer,
    /// and its queue may drop packets of all priorities.
    pub(super) from_host: bool,
    /// Ingress buffer at the far end of the link; `None` if the far end is a host.
    pub(super) input: Option<Input>,
    /// Number of bytes until the next QCN sample, by priority.
    pub(super) samples_in: Countdown,
    /// QCN congestion points of a switch port, by priority; `None` for a priority without QCN.
    pub(super) congestion_points: Vec<Option<CongestionPoint>>,
    pub(super) config: Arc<DcbConfig>,
    /// Sizes of frames on the link.
    pub(super) wire: Wire,
    /// PFC pauses that are in force at this port.
    pub(super) paused: PauseState,
    /// PAUSE frames that this port sends.
    pub(super) pause_queue: PauseQueue,
    pub(super) random: Stream,
    /// Time until which the queue may contain a packet that is padded to the smallest frame.
    pub(super) padded_until: Time,
    /// Number of packets sent since decided departures were last revoked, see [`super::eventless`].
    pub(super) sent_since_revoke: usize,
    /// Number of packets that the PFC watchdog has dropped.
    pub(super) watchdog_drops: u64,
    /// Packets that queue disciplines have dropped and the fabric has not processed yet, each with
    /// its priority.
    pub(super) dropped: Vec<(QueuedPacket, u8)>,
}

// Fields that every packet accesses fill one cache line, and the ingress buffer begins the next
// one.
const _: () = assert!(std::mem::offset_of!(DcbPort, input) == 64);

/// Occupancy, numbers of pauses and headroom of one priority at the ingress buffer at the far end
/// of a link (PFC).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputCounts {
    /// Largest occupancy of the ingress buffer, in IP bytes.
    pub most_bytes: u64,
    /// Current occupancy of the ingress buffer, in IP bytes.
    pub bytes: u64,
    /// Number of pauses that the ingress buffer has requested (XOFF).
    pub pauses: u64,
    /// Number of pauses that the ingress buffer has ended (XON).
    pub releases: u64,
    /// Number of times that the ingress buffer has refreshed a pause (XOFF sent again).
    pub repeats: u64,
    /// Headroom: bytes beyond XOFF that the priority may occupy.
    pub headroom_bytes: u64,
}

/// Queue length, pauses and QCN samples of one priority at an output port with data-centre bridging
/// (DCB).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputCounts {
    /// Longest queue of the priority so far, in IP bytes.
    pub most_bytes: u64,
    /// Number of PFC pauses of the priority at this port.
    pub pauses: u64,
    /// Time for which the priority was paused.
    pub paused: Span,
    /// Number of samples that the QCN congestion point has taken.
    pub samples: u64,
    /// Number of congestion notification messages (CNM) that the QCN congestion point has sent.
    pub messages: u64,
}

/// Position of a port with data-centre bridging in the fabric, and properties that follow from it.
pub struct PortSite {
    /// Whether a host sends on the link of this port.
    pub from_host: bool,
    /// Whether a host is at the far end of the link of this port.
    pub to_host: bool,
    pub wire: Wire,
    /// Whether faults, the routing policy or a measurement read the queue between the events of the
    /// port.
    pub observed: bool,
    /// Whether all packets are in one traffic class. With several classes, the scheduler chooses at
    /// each departure.
    pub one_class: bool,
    pub seed: u64,
    pub link: u64,
}

impl DcbPort {
    /// Returns the state of a port without pauses and rate limits. `site` describes the port.
    pub(crate) fn new(config: &Arc<DcbConfig>, cable: &CableConfig, site: &PortSite) -> DcbPort {
        let mut random = Stream::new(site.seed, &format!("dcb/{}", site.link));
        let room = |c: &PfcConfig| {
            let given = c.shared.and_then(|pool| pool.headroom);
            given.unwrap_or_else(|| headroom(cable, &site.wire, c.response))
        };
        let pfc = config.pfc.as_ref();
        let qcn = config.qcn.as_ref().filter(|_| !site.from_host);
        let samples_in = Countdown::new(qcn, &mut random);
        // The shared memory of a switch changes with every departure, so that each departure needs
        // an event.
        let always_events = site.observed || config.has_pool();
        let point = |p| qcn.filter(|c| c.controls(p)).map(|_| CongestionPoint::default());
        DcbPort {
            wire: site.wire,
            from_host: site.from_host,
            paused: PauseState::new(),
            pause_queue: PauseQueue::new(),
            input: (!site.to_host).then(|| Input::new(pfc, pfc.map_or(0, room))),
            samples_in,
            congestion_points: (0..8).map(point).collect(),
            random,
            sending_packet: false,
            link: site.link as u32,
            released: 0,
            precommitted: false,
            fast_path_from: Time::NEVER,
            free_at: Time::ZERO,
            whole_ps_per_byte: cable.rate.ps_per_byte_q16() & 0xffff == 0,
            padded_until: Time::ZERO,
            sent_since_revoke: 0,
            can_precommit: !always_events && site.one_class,
            always_events,
            switch_xoff: false,
            needs_events: always_events,
            has_limits: false,
            timer_at: Time::NEVER,
            due: Time::NEVER,
            wakes_at: Time::NEVER,
            wake_bytes: 0,
            watchdog_drops: 0,
            dropped: Vec::new(),
            config: config.clone(),
        }
    }

    /// Ends the PFC pauses that have expired by `now`.
    #[inline]
    pub(super) fn expire_pauses(&mut self, now: Time) {
        if self.needs_events && self.paused.mask != 0 {
            self.paused.expire(now);
            self.update_due();
        }
    }

    /// Returns the empty queues of one class of this port.
    pub(crate) fn new_queues(&self, queue: &QueueConfig, place: &Place) -> PriorityQueues {
        let lossless = if self.from_host { 0 } else { self.config.lossless() };
        PriorityQueues::new(queue, place, lossless)
    }

    /// Returns the mask of priorities whose packets count in the shared memory of lossy queues, if
    /// there is such a memory: bit p for priority p.
    pub(crate) fn shared_priorities(&self) -> u8 {
        match self.config.lossy_pool() {
            Some(lossy) if lossy.counts_lossless => u8::MAX,
            _ => !self.config.lossless(),
        }
    }

    /// Whether nothing can block a queued packet: no pause, no rate limit, and no PAUSE frame to be
    /// sent.
    pub(super) fn is_unblocked(&self) -> bool {
        self.paused.mask == 0 && !self.has_limits && !self.pause_queue.has_pending()
    }

    /// Whether the port needs no event at the end of a transmission.
    #[inline]
    pub(super) fn is_eventless(&self) -> bool {
        !self.needs_events
    }

    /// Computes `needs_events` and `due` again after a change of pauses, PAUSE frames or the
    /// refresh time.
    pub(super) fn update_due(&mut self) {
        self.needs_events = self.always_events
            || self.switch_xoff
            || self.pause_queue.has_pending()
            || self.paused.mask != 0;
        let repeat = self.input.as_ref().map_or(Time::NEVER, |input| input.refresh_at);
        self.due = self.pause_queue.next.min(repeat);
    }

    /// Whether only rate limits can block packets, at a port with one class.
    pub(super) fn has_only_rate_limits(&self) -> bool {
        self.has_limits && self.can_precommit && self.is_eventless()
    }

    /// Updates the rate limiter of a flow when the transmission of one of its packets starts.
    /// `bytes` are the bytes of the packet on the link.
    #[inline]
    pub(super) fn on_transmit(
        &mut self,
        queues: &mut PriorityQueues,
        now: Time,
        (priority, flow): (u8, Option<usize>),
        bytes: u32,
    ) {
        let Some((index, config)) = flow.zip(self.config.qcn.as_ref()) else { return };
        if let Some(flows) = &mut queues.queue_mut(priority).flows {
            flows.on_transmit(now, index, bytes, config, &mut self.random);
        }
    }

    /// Sets `fast_path_from`. The fast path needs departures decided at enqueue, whole picoseconds
    /// per byte, and no PAUSE frame that is to be sent: the waiting time of a packet does not
    /// include such a frame.
    pub(super) fn update_fast_path(&mut self) {
        let has_fast_path =
            self.precommitted && self.whole_ps_per_byte && !self.pause_queue.has_pending();
        self.fast_path_from = if has_fast_path { self.padded_until } else { Time::NEVER };
    }

    /// Whether the end of the current transmission needs no event: a packet is in transmission, or
    /// the departure of the next packet is already decided.
    #[inline]
    pub(super) fn ends_without_event(&self) -> bool {
        self.is_eventless() && (self.sending_packet || self.precommitted)
    }

    /// Whether the start of the next rate-limited packet needs no event, since its arrival time is
    /// known.
    #[inline]
    pub(super) fn wakes_without_event(&self) -> bool {
        self.wake_bytes > 0 && self.is_eventless()
    }

    /// Returns the time of the next event of the port other than an arrival at the far end; `None`
    /// while a priority is paused. `sent_at` is the end of the current transmission.
    #[inline]
    pub(crate) fn due_unless_paused(&self, sent_at: Time) -> Option<Time> {
        if self.is_eventless() {
            return Some(self.eventless_due(sent_at));
        }
        let due = self.due.min(self.timer_at).min(self.wakes_at).min(sent_at);
        (self.paused.mask == 0).then_some(due)
    }

    /// Returns the time of the next event like [`DcbPort::due_unless_paused`], at a port that is
    /// [eventless](DcbPort::is_eventless).
    #[inline]
    pub(super) fn eventless_due(&self, sent_at: Time) -> Time {
        debug_assert!(self.is_eventless());
        let due = self.due.min(self.timer_at);
        let due = if self.wakes_without_event() { due } else { due.min(self.wakes_at) };
        if self.ends_without_event() { due } else { due.min(sent_at) }
    }

    /// Returns the mask of paused priorities: bit p for priority p.
    pub(crate) fn paused_mask(&self) -> u8 {
        self.paused.mask
    }
}

/// Returns the length of a pause in quanta, and the time until it is refreshed, on a link with the
/// rate `rate`; `None` without PFC.
pub(crate) fn pause_settings(config: &DcbConfig, rate: Rate) -> Option<(u16, Span)> {
    let pfc: &pfc::PfcConfig = config.pfc.as_ref()?;
    Some((pfc.quanta, pfc.refresh_every(rate)))
}
