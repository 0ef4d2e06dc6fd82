//! Transports beside TCP that carry the messages of workloads. A transport is its stack and settings in
//! `eastwest_transport`, its adapter in this folder, and one line of the list.

pub mod interface;
pub mod number;
pub mod rocev2;

use crate::stream_transports::number::TransportNumber;
use eastwest_settings::reader::Section;
use eastwest_transport::settings::{Below, TransportSettings};
use serde::{Deserialize, Serialize};

/// Calls the macro `$make` with the list of transports beside TCP. A line names the module (which is also the
/// name in scenarios), the settings, and the adapter.
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
            /// TCP.
            #[default]
            Tcp,
            $(
                #[doc = concat!("Transport `", stringify!($module), "`.")]
                $Adapter,
            )*
            /// No transport: messages travel as raw frames.
            Ethernet,
        }

        impl Transport {
            /// Transports of byte streams: name in scenarios, value, explanation.
            pub const STREAMS: &[(&str, Transport, &str)] = &[
                ("tcp", Transport::Tcp, "TCP connections, see [tcp]"),
                $((
                    <eastwest_transport::$module::$Settings as TransportSettings>::NAME,
                    Transport::$Adapter,
                    <eastwest_transport::$module::$Settings as TransportSettings>::CHOICE,
                ),)*
            ];
        }

        /// Settings of the transports other than TCP that workloads use.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct FurtherSettings {
            $(
                #[doc = concat!("Settings of `", stringify!($module), "`, if a workload uses it.")]
                pub $module: Option<eastwest_transport::$module::$Settings>,
            )*
        }

        impl FurtherSettings {
            /// Reads the tables of those transports other than TCP that are `used` or that the file
            /// sets.
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

            /// Whether a transport other than TCP reacts to ECN marks.
            pub fn asks_for_marks(&self) -> bool {
                false $(|| self.$module.as_ref().is_some_and(TransportSettings::asks_for_marks))*
            }
        }
    };
}
further_transports!(kinds_and_settings);

// Two bits of a packet number the transports beside TCP: see `Packet::stream_transport`.
const _: () = assert!(Transport::STREAMS.len() <= 1 + 4);

impl Transport {
    /// Returns the number of the transport that carries the connections of a workload. A workload
    /// with raw frames has no connections; its number is that of TCP.
    pub fn number(self) -> TransportNumber {
        match self {
            Transport::Ethernet => TransportNumber::TCP,
            stream => TransportNumber(stream as u8),
        }
    }
}
