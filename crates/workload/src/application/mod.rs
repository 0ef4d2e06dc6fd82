//! Applications: programs whose processes on hosts exchange messages and react to them.
//!
//! An [`Application`] is the state of one process. The simulator calls it when the process starts, when a
//! message arrives, when a timer expires and when a connection closes; it answers through its [`Process`]:
//! send, request, reply, start a timer, count, measure. A process shares nothing with other processes but
//! messages, and draws random numbers from a stream of its own, so that runs are reproducible. The
//! [deployment](deployment) connects processes with the network.
//!
//! The applications that come with Eastwest are a file each and a line of the list below. They use the same
//! interface as those of users, which come from other crates or from Python.

mod answers;
pub mod deployment;
mod family;
pub mod fan_out;
pub mod hedged;
pub mod interface;
pub mod key_value;
pub mod parameter_server;
pub mod process;
pub mod quorum;
pub mod role;
pub mod tally;

pub use deployment::{ApplicationConfig, Deployment};
pub use family::{ApplicationEntry, BUILT_IN, Model, Named, ReadApplication};
pub use interface::{Application, ApplicationModel};
pub use process::{Content, Message, Place, Process};
pub use role::Role;
