//! State of IEEE 802.1Q at a port: what it is told to pause, what it has to say itself, the flows that it
//! limits, and the input at the far end of its link.

use super::config::DcbConfig;
use super::held::Held;
use super::lanes::Lanes;
use super::pfc::{self, Control, Input, Paused, PfcConfig, Wire, headroom};
use super::qcn::{CongestionPoint, Countdown};
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
pub struct Bridge {
    /// From when on a packet that comes needs no look at what has begun to be sent, or never.
    pub(super) swift_from: Time,
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
    pub(super) number: u32,
    /// Packets at the head of the wire's ring that no longer count where they came in.
    pub(super) gone: u32,
    /// Bytes of the packet that goes at `wakes_at`, with one class: with several, two of them may wake it.
    pub(super) wakes_with: u32,
    /// Whether what is being sent is a packet.
    pub(super) serving: bool,
    /// All that waits is on the wire: the port is calm, see [`super::quiet`].
    pub(super) calm: bool,
    /// Something can happen here that needs an event at the end of a transmission.
    pub(super) loud: bool,
    /// Whether a byte takes a whole number of picoseconds.
    pub(super) even: bool,
    /// Whether QCN has ever limited a flow here.
    pub(super) limits: bool,
    /// Whether departures can be decided ahead: the port has one class, and nobody looks at it between its
    /// own events.
    pub(super) can_go_ahead: bool,
    /// An input of the switch has asked for a pause: whoever leaves may end it.
    pub(super) watched: bool,
    /// The port is never quiet.
    pub(super) exact: bool,
    /// Whether a host feeds it: what waits there has taken no room of a switch, and may be lost.
    pub(super) from_host: bool,
    /// At the far end, if that is a switch.
    pub(super) input: Option<Input>,
    /// Bytes until QCN's next samples.
    pub(super) samples_in: Countdown,
    /// Congestion points of the priorities with QCN, at a switch.
    pub(super) points: Vec<Option<CongestionPoint>>,
    pub(super) config: Arc<DcbConfig>,
    /// What packets take on the link.
    pub(super) wire: Wire,
    pub(super) paused: Paused,
    pub(super) control: Control,
    pub(super) random: Stream,
    /// Until then a packet waits that is smaller than a frame.
    pub(super) uneven_until: Time,
    /// Packets sent since packets were last taken off the wire.
    pub(super) sent_apart: usize,
    /// Packets that the watchdog has dropped.
    pub(super) watchdog_drops: u64,
    /// What disciplines have dropped since somebody asked.
    pub(super) dropped: Vec<(Held, u8)>,
}

// what every packet touches fills one line, and the input begins the next
const _: () = assert!(std::mem::offset_of!(Bridge, input) == 64);

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
pub struct Site {
    /// Whether a host feeds the link, and whether one is at its far end.
    pub from_host: bool,
    pub to_host: bool,
    pub wire: Wire,
    /// Whether somebody else looks at the port between its own events.
    pub looked_at: bool,
    /// Whether all packets wait in one class. With several, the scheduler chooses at each departure.
    pub one_class: bool,
    pub seed: u64,
    pub number: u64,
}

impl Bridge {
    /// A port that nobody pauses.
    pub(crate) fn new(config: &Arc<DcbConfig>, cable: &CableConfig, site: &Site) -> Bridge {
        let mut random = Stream::new(site.seed, &format!("dcb/{}", site.number));
        let room = |c: &PfcConfig| headroom(cable, &site.wire, c.response);
        let pfc = config.pfc.as_ref();
        let qcn = config.qcn.as_ref().filter(|_| !site.from_host);
        let samples_in = Countdown::new(qcn, &mut random);
        let point = |p| qcn.filter(|c| c.controls(p)).map(|_| CongestionPoint::default());
        Bridge {
            wire: site.wire,
            from_host: site.from_host,
            paused: Paused::new(),
            control: Control::new(),
            input: (!site.to_host).then(|| Input::new(pfc, pfc.map_or(0, room))),
            samples_in,
            points: (0..8).map(point).collect(),
            random,
            serving: false,
            number: site.number as u32,
            gone: 0,
            calm: false,
            swift_from: Time::NEVER,
            free_at: Time::ZERO,
            even: cable.rate.ps_per_byte_q16() & 0xffff == 0,
            uneven_until: Time::ZERO,
            sent_apart: 0,
            can_go_ahead: !site.looked_at && site.one_class,
            exact: site.looked_at,
            watched: false,
            loud: site.looked_at,
            limits: false,
            timer_at: Time::NEVER,
            due: Time::NEVER,
            wakes_at: Time::NEVER,
            wakes_with: 0,
            watchdog_drops: 0,
            dropped: Vec::new(),
            config: config.clone(),
        }
    }

    /// Ends pauses that have run out.
    #[inline]
    pub(super) fn expire(&mut self, now: Time) {
        if self.loud && self.paused.mask != 0 {
            self.paused.expire(now);
            self.has_changed();
        }
    }

    /// Queues of a class of this port.
    pub(crate) fn lanes(&self, queue: &QueueConfig, place: &Place) -> Lanes {
        let lossless = if self.from_host { 0 } else { self.config.lossless() };
        Lanes::new(queue, place, lossless)
    }

    /// Whether packets leave as they come.
    pub(super) fn is_free(&self) -> bool {
        self.paused.mask == 0 && !self.limits && !self.control.waits()
    }

    /// Whether nothing can happen here that needs an event at the end of a transmission.
    #[inline]
    pub(super) fn is_quiet(&self) -> bool {
        !self.loud
    }

    /// What makes the port loud, or is due there, may have changed.
    pub(super) fn has_changed(&mut self) {
        self.loud = self.exact || self.watched || self.control.waits() || self.paused.mask != 0;
        let repeat = self.input.as_ref().map_or(Time::NEVER, |input| input.refresh_at);
        self.due = self.control.next.min(repeat);
    }

    /// Whether rate limits of flows are all that holds up packets here. The port has one class then.
    pub(super) fn only_limits(&self) -> bool {
        self.limits && self.can_go_ahead && self.is_quiet()
    }

    /// A packet of a host with limits begins to be sent.
    #[inline]
    pub(super) fn sends(
        &mut self,
        lanes: &mut Lanes,
        now: Time,
        (priority, flow): (u8, Option<usize>),
        bytes: u32,
    ) {
        let Some((place, config)) = flow.zip(self.config.qcn.as_ref()) else { return };
        if let Some(limits) = &mut lanes.lane_mut(priority).limits {
            limits.sends(now, place, bytes, config, &mut self.random);
        }
    }

    /// The port is swift while it is calm and even.
    pub(super) fn set_swift(&mut self) {
        let is_swift = self.calm && self.even;
        self.swift_from = if is_swift { self.uneven_until } else { Time::NEVER };
    }

    /// Whether the end of a transmission needs no event: it ends with a packet of the port, or brings one
    /// that is on the wire.
    pub(super) fn ends_quietly(&self) -> bool {
        self.is_quiet() && (self.serving || self.calm)
    }

    /// Whether a limited flow that goes on needs no event: the arrival of its packet is known.
    #[inline]
    pub(super) fn wakes_quietly(&self) -> bool {
        self.wakes_with > 0 && self.is_quiet()
    }

    /// When the next event is due that no packet on the wire brings, but at a paused port.
    #[inline]
    pub(crate) fn plain_due(&self, sent_at: Time) -> Option<Time> {
        if self.loud && self.paused.mask != 0 {
            return None;
        }
        let due = self.due.min(self.timer_at);
        let due = if self.wakes_quietly() { due } else { due.min(self.wakes_at) };
        Some(if self.ends_quietly() { due } else { due.min(sent_at) })
    }

    /// Priorities that are paused, as bits.
    pub(crate) fn mask(&self) -> u8 {
        self.paused.mask
    }
}

/// How often and how a pause is said: quanta, and the time until it is said again.
pub(crate) fn pause_of(config: &DcbConfig, rate: Rate) -> Option<(u16, Span)> {
    let pfc: &pfc::PfcConfig = config.pfc.as_ref()?;
    Some((pfc.quanta, pfc.refresh_every(rate)))
}
