//! Family of all applications: built-in applications, and applications of users.

use super::declared::Declared;
use super::fan_out;
use super::hedged;
use super::interface::{Application, ApplicationModel, BuiltIn};
use super::key_value;
use super::parameter_server;
use super::process::Place;
use super::quorum;
use super::role::Role;
use eastwest_settings::{Entry, Section};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An application that a scenario may name as `kind` of a `[[workload]]`.
#[derive(Clone)]
pub struct ApplicationEntry {
    /// Name of the application, its explanation, and the function that reads its settings.
    pub entry: Entry<ReadApplication>,
    /// Roles of the application's processes.
    pub roles: Arc<[Role]>,
}

/// Function that reads the settings of an application from its table `[[workload]]`.
pub type ReadApplication = dyn Fn(&mut Section) -> Model + Send + Sync;

/// A built-in application: name, explanation, roles, and function that reads its settings.
pub struct Named {
    /// Name of the application, the `kind` of a `[[workload]]` in scenarios.
    pub name: &'static str,
    /// Description of the application in one line.
    pub doc: &'static str,
    /// Roles of the application's processes.
    pub roles: &'static [Role],
    /// Function that reads the settings of the application from its table `[[workload]]`.
    pub read: fn(&mut Section) -> Model,
}

/// Defines the types for settings and processes of all applications, and the list of built-in
/// applications.
macro_rules! family {
    ($($name:ident($settings:ty)),* $(,)?) => {
        /// Settings of an application; one variant for each built-in application.
        #[derive(Clone, Debug)]
        pub enum Model {
            $(#[doc = concat!("See [`", stringify!($settings), "`].")] $name($settings),)*
            /// Application of a user, from another crate or a Python file.
            Custom(Arc<dyn ApplicationModel>),
        }

        /// State of one process; one variant for each built-in application.
        #[derive(Debug, Serialize, Deserialize)]
        pub(crate) enum Program {
            $($name(<$settings as BuiltIn>::State),)*
            /// Process of a user's application; checkpoints do not support it.
            #[serde(skip)]
            Custom(Box<dyn Application>),
        }

        /// List of the built-in applications.
        pub const BUILT_IN: &[Named] = &[$(Named {
            name: <$settings>::NAME,
            doc: <$settings>::DOC,
            roles: <$settings>::ROLES,
            read: |s| Model::$name(<$settings>::read(s)),
        }),*];

        impl Model {
            /// Returns the reasons why an application cannot run with `members[r]` processes of
            /// each role `r`; empty if it can run.
            pub(crate) fn problems(&self, members: &[usize]) -> Vec<String> {
                match self {
                    $(Model::$name(settings) => settings.problems(members),)*
                    Model::Custom(model) => model.problems(members),
                }
            }

            /// Returns the counters and measures that the application declares.
            pub fn declared(&self) -> Declared {
                match self {
                    $(Model::$name(_) => {
                        Declared::all(<$settings>::COUNTERS, <$settings>::MEASURES)
                    })*
                    Model::Custom(model) => model.declared(),
                }
            }

            /// Returns the initial state of a process; `place` has its number, role and host, and
            /// the other processes of the application.
            pub(crate) fn start(&self, place: &Place) -> Program {
                match self {
                    $(Model::$name(settings) => Program::$name(settings.start(place)),)*
                    Model::Custom(model) => Program::Custom(model.start(place)),
                }
            }
        }

        impl Program {
            /// Returns the process as an object that handles events.
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
