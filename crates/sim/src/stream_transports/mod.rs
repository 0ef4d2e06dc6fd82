//! Transports beside TCP that carry the messages of workloads. Each transport consists of its
//! protocol stack and settings in the crate `eastwest_transport`, its adapter in this folder, and
//! one line in the list `further_transports`.

pub mod interface;
pub mod number;
pub mod rocev2;

use crate::stream_transports::number::TransportNumber;
use eastwest_settings::reader::Section;
use eastwest_transport::settings::{Below, TransportSettings};
use serde::{Deserialize, Serialize};

/// Calls the macro `$make` with the list of transports beside TCP. Each line of the list names the
/// module (also the name in scenarios), the type of the settings, and the type of the adapter.
macro_rules! further_transports {
    ($make:ident) => {
        $make! {
            rocev2: RoceV2Config => RoceV2,
        }
    };
}
pub(crate) use further_transports;

macro_rules! kinds_and_settings {
    ($($module:ident: $Settings:ident => $Adapter:ident,)*) => {
        /// Transport of the connections of a workload.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Transport {
            /// TCP connections, the default.
            #[default]
            Tcp,
            $(
                #[doc = concat!("Transport `", stringify!($module), "`.")]
                $Adapter,
            )*
            /// No transport protocol: messages travel as raw Ethernet frames.
            Ethernet,
        }

        impl Transport {
            /// All transports of byte streams: name in scenarios, value, one line of explanation.
            pub const STREAMS: &[(&str, Transport, &str)] = &[
                ("tcp", Transport::Tcp, "TCP connections, see [tcp]"),
                $((
                    <eastwest_transport::$module::$Settings as TransportSettings>::NAME,
                    Transport::$Adapter,
                    <eastwest_transport::$module::$Settings as TransportSettings>::CHOICE,
                ),)*
            ];
        }

        /// Settings of the transports other than TCP; `None` for a transport that no workload uses.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct FurtherSettings {
            $(
                #[doc = concat!("Settings of `", stringify!($module), "`, if a workload uses it.")]
                pub $module: Option<eastwest_transport::$module::$Settings>,
            )*
        }

        impl FurtherSettings {
            /// Reads the settings of the transports other than TCP that workloads use (`used`), or
            /// whose table is in the scenario.
            pub fn read(
                s: &mut Section,
                below: &Below,
                used: impl Fn(Transport) -> bool,
                notes: &mut Vec<String>,
            ) -> FurtherSettings {
                FurtherSettings {
                    $($module: TransportSettings::read_if_used(
                        s, below, used(Transport::$Adapter), notes,
                    ),)*
                }
            }

            /// Whether a workload uses a byte-stream transport other than TCP.
            pub fn are_used(&self) -> bool {
                false $(|| self.$module.is_some())*
            }

            /// Whether a transport other than TCP is used and reacts to ECN marks.
            pub fn asks_for_marks(&self) -> bool {
                false $(|| self.$module.as_ref().is_some_and(TransportSettings::asks_for_marks))*
            }
        }
    };
}
further_transports!(kinds_and_settings);

// Packets have two bits for the number of a transport beside TCP, see `Packet::stream_transport`.
const _: () = assert!(Transport::STREAMS.len() <= 1 + 4);

impl Transport {
    /// Returns the number of the transport that carries the connections of a workload. For raw
    /// Ethernet frames, which have no connections, the number is that of TCP.
    pub fn number(self) -> TransportNumber {
        match self {
            Transport::Ethernet => TransportNumber::TCP,
            stream => TransportNumber(stream as u8),
        }
    }

    /// Returns the name of the transport in scenarios; `ethernet` for raw Ethernet frames.
    pub fn name(self) -> &'static str {
        Self::STREAMS.iter().find(|row| row.1 == self).map_or("ethernet", |row| row.0)
    }
}
