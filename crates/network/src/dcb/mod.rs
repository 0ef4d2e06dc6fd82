//! Data-centre bridging (DCB): lossless Ethernet (PFC) and congestion notification (QCN).
//!
//! * [`pfc`]: priority-based flow control, which pauses the neighbour before a buffer overflows;
//! * [`ingress_pool`]: memory of a switch with its pools; `profiles`: memories of real switches;
//!   [`headroom_pools`]: check of the sizes of headroom pools;
//! * [`pause_log`]: optional log of the pauses of a port;
//! * [`deadlock`]: search for pauses that wait for each other in a cycle; [`dependency`]: check
//!   whether routes allow a cycle of pauses;
//! * [`qcn`]: congestion points of switches, which send [messages (CNM)](cnm) to sources;
//! * [`reaction`](self): reaction points of hosts, which reduce the rates of flows on CNMs and then
//!   increase them again;
//! * `priority_queues`: one queue per priority; `limited_flows`: one queue per rate-limited flow of
//!   a host;
//! * `port_state`: all other state of a port with DCB;
//! * `port` and `switching`: operations of ports and switches. An ingress buffer decides on XOFF
//!   and XON in `pfc` (`add_and_check_xoff`, `remove_and_check_xon`), `switching` requests the
//!   PAUSE frame (`request_pause`), and `port` sends it (`start_next_dcb`);
//! * `eventless`: ports that need no event at the end of a transmission, and departures that are
//!   decided at enqueue;
//! * [`settings`]: the tables of a scenario.
//!
//! Enhanced transmission selection (802.1Qaz) is part of the scheduler: [classes of
//! ports](crate::scheduler::PortClass) share a link. With PFC or QCN, every port of the fabric is a
//! *DCB port*. A DCB port works in the two-event mode, usually without the second event, the end of
//! a transmission.

pub mod cnm;
pub(crate) mod config;
pub mod deadlock;
pub mod dependency;
pub(crate) mod eventless;
pub mod headroom_pools;
pub mod ingress_pool;
pub(crate) mod limited_flows;
pub mod pause_log;
pub mod pfc;
pub(crate) mod port;
pub(crate) mod port_state;
pub(crate) mod priority_queues;
mod profiles;
pub mod qcn;
pub(crate) mod queued_packet;
mod reaction;
pub mod settings;
mod switching;

pub use cnm::Cnm;
pub use config::DcbConfig;
pub use deadlock::Deadlock;
pub use pfc::PfcConfig;
pub use port_state::{InputCounts, OutputCounts};
pub use qcn::QcnConfig;
