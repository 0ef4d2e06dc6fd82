//! Tests of raw Ethernet and data-centre bridging in whole runs.

mod adaptive;
mod dcb;
mod ethernet;
mod flow_samples;
#[allow(dead_code)] // other test programs use more of this file
#[path = "../whole/harness.rs"]
mod harness;
mod memory;
mod messages;
mod pauses;
mod pool;
mod quiet;
mod rocev2;
mod shared;
