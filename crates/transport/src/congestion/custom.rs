//! Congestion control from outside of this crate: what a mechanism crate (`eastwest new`) implements.
//!
//! A [`CongestionModel`] is what a scenario sets: from it every sender gets a [`CustomCongestion`] of
//! its own. It decides how the window grows and how far losses and marks cut it. Loss detection,
//! recovery, timers and the handshake are TCP's and stay what the scenario asks for: the window after
//! a timeout is one segment, and growth happens only while the window is what limits the sender.
//! [`growth`](super::growth) and [`new_reno`](super::new_reno) have the parts that most share.

use super::Window;
use super::rules::CongestionRules;
use eastwest_engine::random::Stream;
use eastwest_types::{Span, Time};
use std::fmt;
use std::sync::Arc;

pub use super::cubic::Ack;

/// The congestion control of one sender: settings and state.
pub trait CustomCongestion: fmt::Debug + Send {
    /// Bytes were acknowledged while the window was the limit: lets it grow.
    fn on_ack(&mut self, window: &mut Window, ack: &Ack);

    /// The slow start threshold after a loss, in bytes, with `flight` bytes outstanding; the window
    /// follows it. At least two segments are kept.
    fn after_loss(&mut self, window: &Window, flight: u64, segment: u64) -> u64;

    /// The same after marks; asked at most once per window of data.
    fn after_marks(&mut self, window: &Window, flight: u64, segment: u64) -> u64 {
        self.after_loss(window, flight, segment)
    }

    /// Every ACK, also while nothing grows.
    fn observe(&mut self, seen: &Seen) {
        let _ = seen;
    }

    /// A timeout has struck; the threshold is set already.
    fn after_timeout(&mut self) {}

    /// Something is sent after nothing was under way for this time.
    fn after_idle(&mut self, now: Time, idle: Span) {
        let _ = (now, idle);
    }
}

/// What an ACK reports.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// When it came.
    pub now: Time,
    /// Bytes that it reports as arrived for the first time.
    pub delivered: u64,
    /// Whether it echoes a mark (RFC 3168; of each marked packet where the model
    /// [asks for that](CongestionModel::echoes_each_mark)).
    pub marked: bool,
    /// All before this position is acknowledged.
    pub una: u64,
    /// The position that is sent next.
    pub next: u64,
    /// A round-trip time, where the ACK gives one.
    pub rtt: Option<Span>,
}

/// The settings of a congestion control, from which that of each sender is made.
pub trait CongestionModel: fmt::Debug + Send + Sync {
    /// A sender that has sent nothing.
    fn start(&self, place: &SenderPlace) -> Box<dyn CustomCongestion>;

    /// Whether receivers answer each mark, as with DCTCP (RFC 8257), and not only the first until
    /// the sender has reacted.
    fn echoes_each_mark(&self) -> bool {
        false
    }
}

/// What a congestion control knows of its sender.
#[derive(Clone, Copy, Debug)]
pub struct SenderPlace {
    /// Payload bytes of a full segment.
    pub segment: u32,
    /// Initial window in segments.
    pub initial_window: u32,
    /// Number of the sending end; used again by later connections.
    pub endpoint: u32,
    /// What the scenario says of growth and cuts in general.
    pub rules: CongestionRules,
    /// Seed of the run.
    pub seed: u64,
}

impl SenderPlace {
    /// The stream of random numbers of this name: one of its own for each sender.
    pub fn random(&self, what: &str) -> Stream {
        Stream::new(self.seed, &format!("congestion/{what}/{}", self.endpoint))
    }
}

/// A congestion control from outside as the scenario sets it.
#[derive(Clone, Debug)]
pub struct CustomCongestionConfig {
    /// Its settings.
    pub model: Arc<dyn CongestionModel>,
    /// Seed of the run.
    pub seed: u64,
}

impl PartialEq for CustomCongestionConfig {
    fn eq(&self, other: &CustomCongestionConfig) -> bool {
        self.seed == other.seed && format!("{:?}", self.model) == format!("{:?}", other.model)
    }
}
