//! Applications: programs whose processes on hosts exchange messages and react to them.
//!
//! An [`Application`] is the state of one process. The simulator calls it when the process starts,
//! when a message arrives, when a timer expires and when a connection closes; the state answers
//! with calls of its [`Process`]: send, request, reply, start a timer, count, measure. A process
//! communicates with other processes by messages only, and draws random numbers from its own
//! stream, so that runs are reproducible. The [deployment](deployment) connects processes with the
//! network.
//!
//! Each application that comes with Eastwest has a file in this folder and a line in `family`.
//! Applications of users, from other crates or from Python, use the same interface.

mod answers;
pub mod declared;
pub mod deployment;
mod family;
pub mod fan_out;
pub mod hedged;
pub mod interface;
pub mod key_value;
pub mod parameter_server;
pub mod process;
pub mod quorum;
pub mod requests;
pub mod role;
pub mod tally;

pub use declared::{Declared, Statistic};
pub use deployment::{ApplicationConfig, Deployment};
pub use family::{ApplicationEntry, BUILT_IN, Model, Named, ReadApplication};
pub use interface::{Application, ApplicationModel};
pub use process::{Content, Message, Place, Process};
pub use requests::Requests;
pub use role::Role;
