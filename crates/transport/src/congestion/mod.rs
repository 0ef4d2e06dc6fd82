//! Congestion control: growth and reduction of the congestion window.
//!
//! Each algorithm has its own file, with its settings and their names, and one line in the list
//! `family!` below. Other files have functions that several algorithms share. [`CongestionControl`]
//! is the interface to TCP.

pub mod bbr;
pub mod bbr3;
mod bbr3_bounds;
pub mod control;
pub mod cube_root;
pub mod cubic;
pub mod custom;
pub mod cwnd_usage;
pub mod dctcp;
pub mod delivery_rate;
pub mod growth;
pub mod hystart;
pub mod new_reno;
pub mod pacing;
pub mod rules;
pub mod small_queue;
mod window;
pub mod windowed_max;

pub use control::{Ack, BuiltIn, CongestionControl, LARGEST_WINDOW, PathAck, Seen, SenderPlace};
pub use window::Window;

use bbr::Bbr;
use bbr3::Bbr3;
use cubic::Cubic;
use custom::{CustomCongestionConfig, ReadCongestion};
use cwnd_usage::CwndUsage;
use dctcp::Dctcp;
use delivery_rate::RateSampler;
use eastwest_settings::{Choice, Entry, Section};
use eastwest_types::{HopTelemetry, Span, Time};
use hystart::HyStart;
use new_reno::NewReno;
use pacing::Pacing;
use rules::AlgorithmNeeds;
use serde::{Deserialize, Serialize};
use small_queue::SmallQueue;

/// Defines the names, the settings and the states of all algorithms, and forwards each call to the
/// chosen one. Large states are boxed. `$d` stands for the dollar sign in the macros that this
/// macro defines.
macro_rules! family {
    ($d:tt $($name:ident($algorithm:ty as $held:ty) $settings:ident),* $(,)?) => {
        /// Congestion control algorithm that a connection uses.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum CongestionKind {
            $(#[doc = concat!("The algorithm [`", stringify!($algorithm), "`].")] $name,)*
            /// A congestion control algorithm of a mechanism crate.
            Custom {
                /// Whether receivers echo each ECN mark, see [`CongestionKind::echoes_each_mark`].
                echoes_each_mark: bool,
                /// Whether the algorithm sets window and pacing rate from a model of the path, see
                /// [`CongestionKind::follows_path`].
                follows_path: bool,
                /// Whether segments are paced, see [`CongestionKind::paces`].
                paces: bool,
                /// Whether the algorithm samples delivery rates, see
                /// [`CongestionKind::samples_rate`].
                samples_rate: bool,
            },
        }

        /// Settings of all built-in congestion control algorithms, of which a connection uses one.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct Settings {
            $(
                #[doc = concat!("Settings of [`", stringify!($algorithm), "`].")]
                pub $settings: <$algorithm as BuiltIn>::Settings,
            )*
        }

        impl Settings {
            /// Reads the settings of all algorithms from `[tcp]`.
            pub fn read(s: &mut Section) -> Settings {
                Settings { $($settings: <$algorithm>::read(s)),* }
            }
        }

        /// State of the congestion control algorithm of one sender.
        #[derive(Debug, Serialize, Deserialize)]
        pub enum Algorithm {
            $(#[doc = concat!("The algorithm [`", stringify!($algorithm), "`].")] $name($held),)*
            /// A congestion control algorithm of a mechanism crate.
            #[serde(skip)]
            Custom(Box<dyn CongestionControl>),
        }

        /// Built-in congestion control algorithms, each with its name in scenarios, its kind and
        /// its explanation.
        pub const BUILT_IN: &[Choice<CongestionKind>] =
            &[$((<$algorithm>::NAME, CongestionKind::$name, <$algorithm>::DOC)),*];

        /// Built-in congestion control algorithms by their names in Linux
        /// (`net.ipv4.tcp_congestion_control`).
        pub const IN_LINUX: &[(&str, CongestionKind)] =
            &[$((<$algorithm>::IN_LINUX, CongestionKind::$name)),*];

        impl Algorithm {
            /// Returns the state of a sender that has sent nothing. `custom`: settings of an
            /// algorithm of a mechanism crate, required if `kind` is [`CongestionKind::Custom`].
            pub fn start(
                kind: CongestionKind,
                settings: &Settings,
                custom: Option<&CustomCongestionConfig>,
                place: &SenderPlace,
            ) -> Algorithm {
                match kind {
                    $(CongestionKind::$name => {
                        Algorithm::$name(<$held>::from(<$algorithm>::start(&settings.$settings, place)))
                    })*
                    CongestionKind::Custom { .. } => {
                        let custom = custom.expect("a custom congestion control has settings");
                        let place = SenderPlace { seed: custom.seed, ..*place };
                        Algorithm::Custom(custom.model.start(&place))
                    }
                }
            }
        }

        /// Returns a constant of a built-in algorithm; `otherwise` is its value for an algorithm of
        /// a mechanism crate.
        macro_rules! constant {
            ($d kind:expr, $d constant:ident, $d custom:pat => $d otherwise:expr) => {
                match $d kind {
                    $(CongestionKind::$name => <$algorithm>::$d constant,)*
                    $d custom => $d otherwise,
                }
            };
        }

        /// Forwards a call to the algorithm in use.
        macro_rules! algorithm {
            ($d this:ident, $d member:ident => $d call:expr) => {
                match $d this {
                    $(Algorithm::$name($d member) => $d call,)*
                    Algorithm::Custom($d member) => $d call,
                }
            };
        }
    };
}

family! {
    $
    NewReno(NewReno as NewReno) new_reno,
    Dctcp(Dctcp as Dctcp) dctcp,
    Cubic(Cubic as Cubic) cubic,
    Bbr(Bbr as Box<Bbr>) bbr,
    Bbr3(Bbr3 as Box<Bbr3>) bbr3,
}

impl CongestionKind {
    /// Whether receivers echo each ECN mark (RFC 8257). If false, receivers set ECE in all ACKs
    /// until the sender has reacted (RFC 3168).
    #[inline]
    pub fn echoes_each_mark(self) -> bool {
        constant!(self, ECHOES_EACH_MARK, CongestionKind::Custom { echoes_each_mark, .. } => echoes_each_mark)
    }

    /// Whether the algorithm sets window and pacing rate from a model of the path, as BBR does.
    #[inline]
    pub fn follows_path(self) -> bool {
        constant!(self, FOLLOWS_PATH, CongestionKind::Custom { follows_path, .. } => follows_path)
    }

    /// Whether the algorithm sets the pacing rate of the sender.
    #[inline]
    pub fn paces(self) -> bool {
        let own = matches!(self, CongestionKind::Custom { paces: true, .. });
        own || self.follows_path()
    }

    /// Whether the algorithm needs samples of the delivery rate.
    #[inline]
    pub fn samples_rate(self) -> bool {
        let own = matches!(self, CongestionKind::Custom { samples_rate: true, .. });
        own || self.follows_path()
    }

    /// Whether the algorithm may have a [sampler](CongestionControl::sampler) of delivery rates.
    #[inline]
    pub fn may_sample_rate(self) -> bool {
        let own = matches!(self, CongestionKind::Custom { .. });
        own || self.follows_path()
    }

    /// Whether the algorithm needs ECN, as DCTCP does.
    pub fn needs_ecn(self) -> bool {
        constant!(self, NEEDS_ECN, CongestionKind::Custom { .. } => false)
    }

    /// Whether a loss reduces the window even if ECN marks have already reduced it in the same
    /// window of data.
    pub fn cuts_after_marks(self) -> bool {
        constant!(self, CUTS_AFTER_MARKS, CongestionKind::Custom { .. } => false)
    }

    /// Whether delivery-rate samples count the bytes in flight as `pipe` (RFC 6675), without lost
    /// segments. If false, they count all outstanding bytes.
    #[inline]
    pub fn samples_pipe(self) -> bool {
        constant!(self, SAMPLES_PIPE, CongestionKind::Custom { .. } => false)
    }

    /// Whether Linux ends the slow start of the algorithm with HyStart.
    pub fn has_hystart_in_linux(self) -> bool {
        constant!(self, HYSTART_IN_LINUX, CongestionKind::Custom { .. } => false)
    }

    /// Returns the requirements of the algorithm on the rules in `[tcp]`: ECN and pacing.
    pub fn needs(self) -> AlgorithmNeeds {
        AlgorithmNeeds { needs_ecn: self.needs_ecn(), paces: self.paces() }
    }
}

impl CongestionControl for Algorithm {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        algorithm!(self, a => a.on_ack(window, ack));
    }
    fn after_loss(&mut self, window: &Window, flight: u64, segment: u64) -> u64 {
        algorithm!(self, a => a.after_loss(window, flight, segment))
    }
    fn after_marks(&mut self, window: &Window, flight: u64, segment: u64) -> u64 {
        algorithm!(self, a => a.after_marks(window, flight, segment))
    }
    fn on_telemetry(&mut self, hops: &[HopTelemetry]) {
        if let Algorithm::Custom(custom) = self {
            custom.on_telemetry(hops);
        }
    }
    #[inline]
    fn observe(&mut self, seen: &Seen) {
        algorithm!(self, a => a.observe(seen));
    }
    #[inline]
    fn act(&mut self, window: &Window, seen: &Seen) -> Option<u64> {
        algorithm!(self, a => a.act(window, seen))
    }
    fn after_timeout(&mut self, segment: u64) {
        algorithm!(self, a => a.after_timeout(segment));
    }
    #[inline]
    fn after_idle(&mut self, now: Time, idle: Span) {
        algorithm!(self, a => a.after_idle(now, idle));
    }
    #[inline]
    fn follow(&mut self, ack: &PathAck) -> Option<u64> {
        algorithm!(self, a => a.follow(ack))
    }
    #[inline]
    fn sampler(&mut self) -> Option<(&mut RateSampler, Span)> {
        algorithm!(self, a => a.sampler())
    }
    #[inline]
    fn pacing_rate(&self) -> Option<u64> {
        algorithm!(self, a => a.pacing_rate())
    }
}

/// Reads the key `congestion` of `[tcp]`. Returns the congestion control algorithm, and also its
/// settings if it is one of `others`, the algorithms of mechanism crates.
pub fn read_kind(
    s: &mut Section,
    others: &[Entry<ReadCongestion>],
) -> (CongestionKind, Option<CustomCongestionConfig>) {
    let built_in = BUILT_IN.iter().map(|&(name, kind, doc)| (name, Ok(kind), doc));
    let named = others.iter().map(|entry| (entry.name, Err(entry), entry.doc));
    let choices: Vec<_> = built_in.chain(named).collect();
    let kind = s.open_choice("congestion", "Congestion control.", Some(NewReno::NAME), &choices);
    let own = |s: &mut Section, entry: &Entry<ReadCongestion>| {
        s.table("parameters", entry.doc, |p| {
            p.belongs_to(entry.name);
            (entry.read)(p)
        })
    };
    if s.describing() {
        others.iter().for_each(|entry| drop(own(s, entry)));
    }
    let entry = match kind {
        Ok(kind) => return (kind, None),
        Err(entry) => entry,
    };
    let model = own(s, entry);
    let kind = CongestionKind::Custom {
        echoes_each_mark: model.echoes_each_mark(),
        follows_path: model.follows_path(),
        paces: model.paces(),
        samples_rate: model.samples_rate(),
    };
    (kind, Some(CustomCongestionConfig { model, seed: 0 }))
}

/// State of a sender's congestion control beside the window; not needed for plain NewReno.
#[derive(Debug, Serialize, Deserialize)]
pub struct Control {
    /// State of the congestion control algorithm.
    pub algorithm: Algorithm,
    /// State of HyStart, which ends slow start before a loss.
    pub hystart: HyStart,
    /// Pacing state: rate, and time of the next transmission.
    pub pacing: Pacing,
    /// Record of how far the congestion window is used, for the decision whether the window may
    /// grow.
    pub cwnd_usage: CwndUsage,
    /// With TCP small queues: the segments of the connection in the queue of its host's NIC; `None`
    /// if the sender has nothing outstanding.
    pub small_queue: Option<Box<SmallQueue>>,
}
