//! TCP, split by concern.

pub mod config;
