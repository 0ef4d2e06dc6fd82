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
pub mod fan_out;
pub mod hedged;
pub mod key_value;
pub mod parameter_server;
pub mod process;
pub mod quorum;
pub mod tally;

pub use deployment::{ApplicationConfig, Deployment};
pub use process::{Content, Message, Place, Process};

use eastwest_settings::{Entry, Section};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// State of one process of an application, with its reactions.
pub trait Application: fmt::Debug + Send {
    /// Starts the process, at the `start` of the workload.
    fn on_start(&mut self, process: &mut Process);

    /// Handles a message whose last byte has arrived. Messages of one connection arrive in the
    /// order in which they were sent.
    fn on_message(&mut self, process: &mut Process, message: &Message) {
        let _ = (process, message);
    }

    /// Handles the end of a timer; `value` is that of [`Process::timer`].
    fn on_timer(&mut self, process: &mut Process, value: u64) {
        let _ = (process, value);
    }

    /// Handles the end of a connection with the process `peer`: the other process has closed it and
    /// all its messages have arrived, or (`failed`) the transport has given up and undelivered
    /// messages of both directions are lost.
    fn on_close(&mut self, process: &mut Process, peer: u32, failed: bool) {
        let _ = (process, peer, failed);
    }
}

/// Settings of an application, from which each of its processes is made.
pub trait ApplicationModel: fmt::Debug + Send + Sync {
    /// Returns objections to the numbers of processes of each role. Each begins with the key of the
    /// scenario: `"replicas: …"`.
    fn problems(&self, members: &[usize]) -> Vec<String> {
        let _ = members;
        Vec::new()
    }

    /// Returns a process before its start.
    fn start(&self, place: &Place) -> Box<dyn Application>;
}

/// A role of processes, such as client or server. A scenario names the hosts of each role by a key
/// with the name of the role; each host of the list runs one process with this role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Role {
    /// Name of the role: the key of the list of its hosts.
    pub name: &'static str,
    /// Meaning of the key, in one line.
    pub doc: &'static str,
}

/// An application that scenarios may name as `kind` of a workload.
#[derive(Clone)]
pub struct ApplicationEntry {
    /// Name, explanation, and how the settings are read.
    pub entry: Entry<ReadApplication>,
    /// Roles of its processes.
    pub roles: Arc<[Role]>,
}

/// Function that reads the settings of an application from its table `[[workload]]`.
pub type ReadApplication = dyn Fn(&mut Section) -> Model + Send + Sync;

/// An application of Eastwest: its settings, and how they are read.
pub(crate) trait BuiltIn: Sized {
    /// Kind of the workload in scenarios.
    const NAME: &'static str;
    /// One line that explains the application, with its source.
    const DOC: &'static str;
    /// Roles of its processes.
    const ROLES: &'static [Role];
    /// State of one process.
    type State: Application;

    /// Reads the settings.
    fn read(s: &mut Section) -> Self;

    /// Returns objections to the numbers of processes of each role; each begins with the key.
    fn problems(&self, members: &[usize]) -> Vec<String> {
        let _ = members;
        Vec::new()
    }

    /// Returns a process before its start.
    fn start(&self, place: &Place) -> Self::State;
}

/// A built-in application: name, explanation, roles, function that reads its settings.
pub struct Named {
    /// Kind of the workload in scenarios.
    pub name: &'static str,
    /// One line that explains the application.
    pub doc: &'static str,
    /// Roles of its processes.
    pub roles: &'static [Role],
    /// Reads the settings.
    pub read: fn(&mut Section) -> Model,
}

/// Defines the settings, the processes and the list of the family.
macro_rules! family {
    ($($name:ident($settings:ty)),* $(,)?) => {
        /// Settings of an application of any kind.
        #[derive(Clone, Debug)]
        pub enum Model {
            $(#[doc = concat!("See [`", stringify!($settings), "`].")] $name($settings),)*
            /// An application of the user, from another crate or a Python file.
            Custom(Arc<dyn ApplicationModel>),
        }

        /// State of one process of any application.
        #[derive(Debug, Serialize, Deserialize)]
        pub(crate) enum Program {
            $($name(<$settings as BuiltIn>::State),)*
            /// Checkpoints do not support applications of the user.
            #[serde(skip)]
            Custom(Box<dyn Application>),
        }

        /// Built-in applications.
        pub const BUILT_IN: &[Named] = &[$(Named {
            name: <$settings>::NAME,
            doc: <$settings>::DOC,
            roles: <$settings>::ROLES,
            read: |s| Model::$name(<$settings>::read(s)),
        }),*];

        impl Model {
            /// Returns objections to the numbers of processes of each role.
            pub(crate) fn problems(&self, members: &[usize]) -> Vec<String> {
                match self {
                    $(Model::$name(settings) => settings.problems(members),)*
                    Model::Custom(model) => model.problems(members),
                }
            }

            /// Returns a process before its start.
            pub(crate) fn start(&self, place: &Place) -> Program {
                match self {
                    $(Model::$name(settings) => Program::$name(settings.start(place)),)*
                    Model::Custom(model) => Program::Custom(model.start(place)),
                }
            }
        }

        impl Program {
            /// Returns the process as its application.
            pub(crate) fn application(&mut self) -> &mut dyn Application {
                match self {
                    $(Program::$name(state) => state,)*
                    Program::Custom(state) => state.as_mut(),
                }
            }
        }
    };
}

family! {
    FanOut(fan_out::FanOutConfig),
    Hedged(hedged::HedgedConfig),
    Quorum(quorum::QuorumConfig),
    KeyValue(key_value::KeyValueConfig),
    ParameterServer(parameter_server::ParameterServerConfig),
}

impl PartialEq for Model {
    fn eq(&self, other: &Model) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}
