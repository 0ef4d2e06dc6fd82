//! Scenarios: reading of the user's text into checked settings with all defaults.
//!
//! This module defines all keys and their defaults. Each key is declared where it is read
//! ([`reader`](eastwest_settings::reader)). The same declaration produces the schema, the reference
//! page, and the text with all defaults that a result folder stores. Reading collects all problems
//! of a file before it fails.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)
)]

mod cables;
mod checked;
mod classes;
mod dcb;
mod dcb_notes;
mod energy;
mod fabric;
mod faults;
mod fidelity;
mod files;
mod flows_only;
mod goal;
mod graph;
mod hosts;
mod measure;
mod nodes;
mod places;
mod read;
mod reference;
mod routes;
mod rows;
mod several_cards;
mod shapes;
mod tcp_overrides;
mod top;
mod traps;
mod window;
mod workload;

pub use checked::{SCHEMA, Scenario};
pub use classes::TrafficClassConfig;
pub use fidelity::Fidelity;
pub use files::{Attached, Context};
pub use measure::{
    CaptureConfig, FlowSamplesConfig, LpiConfig, MeasureConfig, PacketHopsConfig, PausesConfig,
    Senders,
};
pub use nodes::{Nodes, racks};
pub use read::read;
pub use reference::{reference_page, rows_with, schema};
pub use window::WindowConfig;
pub use workload::spec::{WorkloadKind, WorkloadSpec};
