//! Interface for mechanism crates (queue disciplines, congestion controls … that users write in
//! Rust): the traits to implement, their arguments, functions that read settings, and the list of
//! mechanisms that a scenario may name. This crate does not depend on the simulator, so that the
//! compiler finds an error in a mechanism before it compiles the simulator.

pub mod parameters;
mod registry;

pub use eastwest_engine::random::Stream;
pub use eastwest_types::{HopTelemetry, HostId, PacketKind, Rate, Span, Time, ecn, flag};
pub use registry::{Mechanisms, name_problem};

/// Types with which a mechanism crate implements a queue discipline.
pub mod queue {
    pub use eastwest_network::pool::Stored;
    pub use eastwest_network::queue::{
        Arrival, Backlog, CustomQueue, Head, Place, Plan, Protection, QueueModel, Signal, Timer,
        Verdict,
    };
    pub use eastwest_types::Limit;
}

/// Types with which a mechanism crate implements a choice among equal-cost paths.
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
        Application, ApplicationModel, Content, Declared, Message, Place, Process, Role, Statistic,
    };
    pub use eastwest_workload::arrivals::exponential;
}
