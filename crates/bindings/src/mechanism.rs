//! Interface for mechanism crates: the traits to implement, their arguments, the reading of settings, and the
//! macro that makes a Python module (see [`mechanisms!`](crate::mechanisms!)).

pub use eastwest_engine::random::Stream;
pub use eastwest_sim::mechanisms::Mechanisms;
pub use eastwest_sim::parameters;
pub use eastwest_types::{HostId, PacketKind, Rate, Span, Time, ecn, flag};

/// Types with which a mechanism crate implements a queue discipline.
pub mod queue {
    pub use eastwest_network::pool::Stored;
    pub use eastwest_network::queue::{
        Arrival, Backlog, CustomQueue, Head, Place, Plan, Protection, QueueModel, Signal, Timer,
        Verdict,
    };
    pub use eastwest_types::Limit;
}

/// Types with which a mechanism crate implements a choice among equal paths.
pub mod routing {
    pub use eastwest_network::pool::Stored;
    pub use eastwest_network::queue::Backlog;
    pub use eastwest_network::routing::{
        Choice, CustomRouting, RoutingModel, SwitchPlace, Transit,
    };
}

/// Types with which a mechanism crate implements a congestion control.
pub mod congestion {
    pub use eastwest_transport::congestion::custom::CongestionModel;
    pub use eastwest_transport::congestion::rules::{CongestionRules, Counting};
    pub use eastwest_transport::congestion::{
        Ack, CongestionControl, PathAck, Seen, SenderPlace, Window, delivery_rate as rate, growth,
        new_reno,
    };
}

/// Types with which a mechanism crate implements an application.
pub mod application {
    pub use eastwest_workload::application::process::Kind;
    pub use eastwest_workload::application::{
        Application, ApplicationModel, Content, Message, Place, Process, Role,
    };
    pub use eastwest_workload::arrivals::exponential;
}

/// A mechanism crate: its name, its version and its mechanisms.
pub struct Own {
    /// Name of the crate.
    pub name: &'static str,
    /// Version of the crate.
    pub version: &'static str,
    /// Folder of the crate's `Cargo.toml`.
    pub folder: &'static str,
    /// Whether the crate was compiled for development, with checks of overflows.
    pub development: bool,
    /// Mechanisms of the crate, which scenarios may name.
    pub mechanisms: Mechanisms,
}

/// Makes the Python module of a mechanism crate, which `eastwest run --with FOLDER` loads. The
/// argument is a function that adds the mechanisms of the crate. The crate must depend on this one
/// under the name `eastwest`.
#[macro_export]
macro_rules! mechanisms {
    ($add:expr) => {
        #[$crate::pyo3::pymodule]
        #[pyo3(name = "mechanisms", crate = "eastwest::pyo3")]
        fn eastwest_mechanisms(
            m: &$crate::pyo3::Bound<'_, $crate::pyo3::types::PyModule>,
        ) -> $crate::pyo3::PyResult<()> {
            let add: fn(&mut $crate::Mechanisms) = $add;
            let mut mechanisms = $crate::Mechanisms::default();
            add(&mut mechanisms);
            let (name, version) = (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
            let (folder, development) = (env!("CARGO_MANIFEST_DIR"), cfg!(debug_assertions));
            $crate::fill(m, Some($crate::Own { name, version, folder, development, mechanisms }))
        }
    };
}
