//! State of IEEE 802.1Q at a port: what it is told to pause, what it has to say itself, the flows that it
//! limits, and the input at the far end of its link.

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

/// What a bridged port has beside its queues. What every packet touches comes first: two cache lines and
/// a counter.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C, align(64))]
pub struct DcbPort {
    /// From when on a packet that comes needs no look at what has begun to be sent, or never.
    pub(super) fast_path_from: Time,
    /// When all that is on the wire of a calm port will have been sent.
    pub(super) free_at: Time,
    /// When a limited flow may go on, while the port is idle and has nothing else to send.
    pub(super) wakes_at: Time,
    /// When the timer of a limiter next rings.
    pub(super) timer_at: Time,
    /// When something is due that does not come with a packet: a PFC frame takes effect, a pause is to be
    /// repeated.
    pub(super) due: Time,
    /// The number of its link.
    pub(super) link: u32,
    /// Packets at the head of the wire's ring that no longer count where they came in.
    pub(super) released: u32,
    /// Bytes of the packet that goes at `wakes_at`, with one class: with several, two of them may wake it.
    pub(super) wake_bytes: u32,
    /// Whether what is being sent is a packet.
    pub(super) sending_packet: bool,
    /// All that waits is on the wire: the port is calm, see [`super::quiet`].
    pub(super) precommitted: bool,
    /// Something can happen here that needs an event at the end of a transmission.
    pub(super) needs_events: bool,
    /// Whether a byte takes a whole number of picoseconds.
    pub(super) whole_ps_per_byte: bool,
    /// Whether QCN has ever limited a flow here.
    pub(super) has_limits: bool,
    /// Whether departures can be decided ahead: the port has one class, and nobody looks at it between its
    /// own events.
    pub(super) can_precommit: bool,
    /// An input of the switch has asked for a pause: whoever leaves may end it.
    pub(super) switch_xoff: bool,
    /// The port is never quiet.
    pub(super) always_events: bool,
    /// Whether a host feeds it: what waits there has taken no room of a switch, and may be lost.
    pub(super) from_host: bool,
    /// At the far end, if that is a switch.
    pub(super) input: Option<Input>,
    /// Bytes until QCN's next samples.
    pub(super) samples_in: Countdown,
    /// Congestion points of the priorities with QCN, at a switch.
    pub(super) congestion_points: Vec<Option<CongestionPoint>>,
    pub(super) config: Arc<DcbConfig>,
    /// What packets take on the link.
    pub(super) wire: Wire,
    pub(super) paused: PauseState,
    pub(super) pause_queue: PauseQueue,
    pub(super) random: Stream,
    /// Until then a packet waits that is smaller than a frame.
    pub(super) padded_until: Time,
    /// Packets sent since packets were last taken off the wire.
    pub(super) sent_since_revoke: usize,
    /// Packets that the watchdog has dropped.
    pub(super) watchdog_drops: u64,
    /// What disciplines have dropped since somebody asked.
    pub(super) dropped: Vec<(QueuedPacket, u8)>,
}

// what every packet touches fills one line, and the input begins the next
const _: () = assert!(std::mem::offset_of!(DcbPort, input) == 64);

/// What of a priority came in at the far end of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputCounts {
    /// The most bytes that were in the switch at one time.
    pub most_bytes: u64,
    /// Bytes that are in it now.
    pub bytes: u64,
    /// Pauses asked for.
    pub pauses: u64,
    /// Ends of pauses.
    pub releases: u64,
    /// Repetitions.
    pub repeats: u64,
    /// Room beyond XOFF.
    pub headroom_bytes: u64,
}

/// What a port has done in a priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputCounts {
    /// The most bytes that waited.
    pub most_bytes: u64,
    /// How often it was paused.
    pub pauses: u64,
    /// For how long.
    pub paused: Span,
    /// Samples that its congestion point has taken.
    pub samples: u64,
    /// Messages that it has sent.
    pub messages: u64,
}

/// Where a bridged port is.
pub struct PortSite {
    /// Whether a host feeds the link, and whether one is at its far end.
    pub from_host: bool,
    pub to_host: bool,
    pub wire: Wire,
    /// Whether somebody else looks at the port between its own events.
    pub observed: bool,
    /// Whether all packets wait in one class. With several, the scheduler chooses at each departure.
    pub one_class: bool,
    pub seed: u64,
    pub link: u64,
}

impl DcbPort {
    /// A port that nobody pauses.
    pub(crate) fn new(config: &Arc<DcbConfig>, cable: &CableConfig, site: &PortSite) -> DcbPort {
        let mut random = Stream::new(site.seed, &format!("dcb/{}", site.link));
        let room = |c: &PfcConfig| headroom(cable, &site.wire, c.response);
        let pfc = config.pfc.as_ref();
        let qcn = config.qcn.as_ref().filter(|_| !site.from_host);
        let samples_in = Countdown::new(qcn, &mut random);
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
            can_precommit: !site.observed && site.one_class,
            always_events: site.observed,
            switch_xoff: false,
            needs_events: site.observed,
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

    /// Ends pauses that have run out.
    #[inline]
    pub(super) fn expire_pauses(&mut self, now: Time) {
        if self.needs_events && self.paused.mask != 0 {
            self.paused.expire(now);
            self.update_due();
        }
    }

    /// Queues of a class of this port.
    pub(crate) fn new_queues(&self, queue: &QueueConfig, place: &Place) -> PriorityQueues {
        let lossless = if self.from_host { 0 } else { self.config.lossless() };
        PriorityQueues::new(queue, place, lossless)
    }

    /// Whether packets leave as they come.
    pub(super) fn is_unblocked(&self) -> bool {
        self.paused.mask == 0 && !self.has_limits && !self.pause_queue.has_pending()
    }

    /// Whether nothing can happen here that needs an event at the end of a transmission.
    #[inline]
    pub(super) fn is_eventless(&self) -> bool {
        !self.needs_events
    }

    /// What makes the port loud, or is due there, may have changed.
    pub(super) fn update_due(&mut self) {
        self.needs_events = self.always_events
            || self.switch_xoff
            || self.pause_queue.has_pending()
            || self.paused.mask != 0;
        let repeat = self.input.as_ref().map_or(Time::NEVER, |input| input.refresh_at);
        self.due = self.pause_queue.next.min(repeat);
    }

    /// Whether rate limits of flows are all that holds up packets here. The port has one class then.
    pub(super) fn has_only_rate_limits(&self) -> bool {
        self.has_limits && self.can_precommit && self.is_eventless()
    }

    /// A packet of a host with limits begins to be sent.
    #[inline]
    pub(super) fn on_transmit(
        &mut self,
        queues: &mut PriorityQueues,
        now: Time,
        (priority, flow): (u8, Option<usize>),
        bytes: u32,
    ) {
        let Some((place, config)) = flow.zip(self.config.qcn.as_ref()) else { return };
        if let Some(flows) = &mut queues.queue_mut(priority).flows {
            flows.on_transmit(now, place, bytes, config, &mut self.random);
        }
    }

    /// The port is swift while it is calm and even.
    pub(super) fn update_fast_path(&mut self) {
        let has_fast_path = self.precommitted && self.whole_ps_per_byte;
        self.fast_path_from = if has_fast_path { self.padded_until } else { Time::NEVER };
    }

    /// Whether the end of a transmission needs no event: it ends with a packet of the port, or brings one
    /// that is on the wire.
    pub(super) fn ends_without_event(&self) -> bool {
        self.is_eventless() && (self.sending_packet || self.precommitted)
    }

    /// Whether a limited flow that goes on needs no event: the arrival of its packet is known.
    #[inline]
    pub(super) fn wakes_without_event(&self) -> bool {
        self.wake_bytes > 0 && self.is_eventless()
    }

    /// When the next event is due that no packet on the wire brings, but at a paused port.
    #[inline]
    pub(crate) fn due_unless_paused(&self, sent_at: Time) -> Option<Time> {
        if self.needs_events && self.paused.mask != 0 {
            return None;
        }
        let due = self.due.min(self.timer_at);
        let due = if self.wakes_without_event() { due } else { due.min(self.wakes_at) };
        Some(if self.ends_without_event() { due } else { due.min(sent_at) })
    }

    /// Priorities that are paused, as bits.
    pub(crate) fn paused_mask(&self) -> u8 {
        self.paused.mask
    }
}

/// How often and how a pause is said: quanta, and the time until it is said again.
pub(crate) fn pause_settings(config: &DcbConfig, rate: Rate) -> Option<(u16, Span)> {
    let pfc: &pfc::PfcConfig = config.pfc.as_ref()?;
    Some((pfc.quanta, pfc.refresh_every(rate)))
}
