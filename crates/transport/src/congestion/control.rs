//! Interface of congestion control algorithms to TCP.
//!
//! An algorithm determines how the congestion window grows, and how far losses and ECN marks reduce
//! the window. It may also set the window at every ACK, and the pacing rate. An algorithm that
//! follows a model of the path sets both from its model. Loss detection, recovery, timers and the
//! handshake belong to TCP: the window after a timeout is one segment, and the window grows only
//! while it limits the sender.

use super::delivery_rate::RateSampler;
use super::rules::CongestionRules;
use super::window::Window;
use eastwest_engine::random::Stream;
use eastwest_settings::Section;
use eastwest_types::{HopTelemetry, Span, Time};
use std::fmt;

/// Largest window in bytes that an algorithm of a user may set. It is far above every receive
/// window (RFC 7323: 1 GiB), and far below an overflow.
pub const LARGEST_WINDOW: u64 = 1 << 40;

/// The congestion control of one sender: settings and state.
pub trait CongestionControl: fmt::Debug + Send {
    /// Increases the congestion window after an ACK of new bytes; called only if the window limited
    /// the sender.
    fn on_ack(&mut self, window: &mut Window, ack: &Ack);

    /// Returns the slow-start threshold in bytes after a loss. TCP then reduces the window to this
    /// threshold, or after a timeout to one segment. `flight`: bytes outstanding (FlightSize of RFC
    /// 5681); `segment`: payload bytes of a full segment. TCP raises a result below two segments to
    /// two segments.
    fn after_loss(&mut self, window: &Window, flight: u64, segment: u64) -> u64;

    /// Returns the slow-start threshold in bytes after ECN marks; the default is the result of
    /// [`CongestionControl::after_loss`]. TCP calls this function at most once per window of data
    /// (RFC 3168, section 6.1.2).
    fn after_marks(&mut self, window: &Window, flight: u64, segment: u64) -> u64 {
        self.after_loss(window, flight, segment)
    }

    /// Notifies the algorithm of the telemetry that an ACK returns, before TCP handles the ACK: the
    /// records of the switch ports on the path of the data packet that arrived last before the
    /// receiver sent this ACK, in the order of the path. Called only for algorithms that [read
    /// telemetry](super::custom::CongestionModel::reads_telemetry).
    fn on_telemetry(&mut self, hops: &[HopTelemetry]) {
        let _ = hops;
    }

    /// Notifies the algorithm of an ACK. Called for every ACK, even if the window does not grow.
    fn observe(&mut self, seen: &Seen) {
        let _ = seen;
    }

    /// Handles an ACK, and may set the congestion window. Returns the new window in bytes, or
    /// `None` if the window stays. TCP ignores the result while it recovers from a loss or reduces
    /// the window after marks. Afterwards the window may still [grow](CongestionControl::on_ack).
    /// The default calls [`CongestionControl::observe`].
    fn act(&mut self, window: &Window, seen: &Seen) -> Option<u64> {
        let _ = window;
        self.observe(seen);
        None
    }

    /// Handles a retransmission timeout; called after the slow-start threshold was set. `segment`:
    /// payload bytes of a full segment.
    fn after_timeout(&mut self, segment: u64) {
        let _ = segment;
    }

    /// Handles the restart of transmission after an idle time of `idle`, in which nothing was
    /// outstanding.
    fn after_idle(&mut self, now: Time, idle: Span) {
        let _ = (now, idle);
    }

    /// Updates the model of the path after an ACK, whose delivery-rate sample is in the
    /// [sampler](CongestionControl::sampler). Returns the congestion window of the model in bytes.
    /// Called only for algorithms that follow a model of the path; others return `None`.
    fn follow(&mut self, ack: &PathAck) -> Option<u64> {
        let _ = ack;
        None
    }

    /// Returns the sampler of delivery rates and the smallest round-trip time ([`Span::MAX`] before
    /// the first sample); `None` if the algorithm needs no samples. The sample of an ACK is in the
    /// sampler when [`CongestionControl::act`] is called for the ACK.
    fn sampler(&mut self) -> Option<(&mut RateSampler, Span)> {
        None
    }

    /// Returns the pacing rate in payload bytes per second, or `None` if the rate follows from the
    /// window. Called before each segment is sent.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }
}

/// Built-in congestion control algorithm: its name in scenarios, the behaviour of TCP that depends
/// on it, and the initial state of a sender.
pub trait BuiltIn: CongestionControl + Sized {
    /// Name of the algorithm in scenarios: `congestion = "cubic"`.
    const NAME: &'static str;
    /// Explanation of the algorithm in one line, for the reference of settings.
    const DOC: &'static str;
    /// Name of the algorithm in Linux (`net.ipv4.tcp_congestion_control`).
    const IN_LINUX: &'static str;
    /// Whether receivers echo each ECN mark (RFC 8257). If false, receivers set ECE in all ACKs
    /// until the sender has reacted (RFC 3168).
    const ECHOES_EACH_MARK: bool = false;
    /// Whether the algorithm needs ECN. If true, it sends all packets as ECN-capable unless the
    /// scenario says otherwise.
    const NEEDS_ECN: bool = false;
    /// Whether a loss reduces the window even if ECN marks have already reduced it in the same
    /// window of data.
    const CUTS_AFTER_MARKS: bool = false;
    /// Whether the algorithm sets window and pacing rate from a model of the path, as BBR does; see
    /// [`CongestionControl::follow`].
    const FOLLOWS_PATH: bool = false;
    /// Whether delivery-rate samples count the bytes in flight as `pipe` (RFC 6675), without lost
    /// segments. If false, they count all outstanding bytes.
    const SAMPLES_PIPE: bool = false;
    /// Whether Linux ends the slow start of the algorithm with HyStart.
    const HYSTART_IN_LINUX: bool = false;
    /// Settings of the algorithm, common to all senders.
    type Settings;

    /// Reads the settings of the algorithm from `[tcp]`.
    fn read(s: &mut Section) -> Self::Settings;

    /// Returns the initial state of a sender, which has sent nothing.
    fn start(settings: &Self::Settings, place: &SenderPlace) -> Self;
}

/// An ACK of new data that arrives while the congestion window limits the sender.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Arrival time of the ACK.
    pub now: Time,
    /// Bytes that this ACK newly acknowledges.
    pub acked: u64,
    /// Payload of a full segment in bytes.
    pub segment: u64,
    /// Whether the sender is recovering from a retransmission timeout.
    pub after_timeout: bool,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Span,
}

/// Properties of an ACK for an algorithm that follows a model of the path, in addition to the
/// sample of the delivery rate.
#[derive(Clone, Copy, Debug)]
pub struct PathAck {
    /// Arrival time of the ACK.
    pub now: Time,
    /// Bytes that the ACK newly acknowledges or SACKs.
    pub acked: u64,
    /// Bytes newly deemed lost because of the ACK.
    pub lost: u64,
    /// Bytes delivered since the connection began.
    pub delivered: u64,
    /// Bytes in flight (RFC 6675, `pipe`) before the ACK.
    pub in_flight_before: u64,
    /// Bytes in flight (RFC 6675, `pipe`) after the ACK.
    pub in_flight: u64,
    /// Whether the sender is in fast recovery or recovering from a timeout.
    pub recovering: bool,
    /// Payload of a full segment in bytes.
    pub segment: u64,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Span>,
    /// Seed of random choices, such as the phase in which BBR begins to probe for bandwidth.
    pub seed: u64,
}

/// Contents of an ACK and its effect, passed to [`CongestionControl::observe`].
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Arrival time of the ACK.
    pub now: Time,
    /// Bytes that the ACK newly acknowledges or SACKs.
    pub delivered: u64,
    /// Whether the ACK has ECE, which echoes an ECN mark. With RFC 3168 all ACKs have ECE until the
    /// sender has reacted. Only ACKs of marked packets have ECE if the algorithm [requires an echo
    /// of each mark](super::custom::CongestionModel::echoes_each_mark).
    pub marked: bool,
    /// First stream position not acknowledged (SND.UNA), after the ACK.
    pub una: u64,
    /// Next stream position to send (SND.NXT).
    pub next: u64,
    /// RTT sample of the ACK; `None` if the ACK gives no sample.
    pub rtt: Option<Span>,
}

/// Parameters of the sender for which a congestion control is created.
#[derive(Clone, Copy, Debug, Default)]
pub struct SenderPlace {
    /// Payload bytes of a full segment.
    pub segment: u32,
    /// Initial window in segments.
    pub initial_window: u32,
    /// Identifier of the sending endpoint (slot and generation), as a number.
    pub endpoint: u32,
    /// Rules of the scenario for the growth and the reductions of the window.
    pub rules: CongestionRules,
    /// Seed of the run.
    pub seed: u64,
}

impl SenderPlace {
    /// Returns the random-number stream with the name `what`. Each endpoint has its own stream.
    pub fn random(&self, what: &str) -> Stream {
        Stream::new(self.seed, &format!("congestion/{what}/{}", self.endpoint))
    }
}
