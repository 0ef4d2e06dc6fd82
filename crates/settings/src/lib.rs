//! A declarative reader of settings in TOML: each key is declared once, where it is read, with its
//! default, its range and a one-line explanation.
//!
//! Mechanisms use [`Section`], [`key`] and the types of [`quantity`]. The other modules work on a
//! whole file: [`syntax`] parses it and records the line of each key, [`overrides`] replaces
//! values, [`describe`] collects the documentation of all keys, and [`resolve`] writes the file
//! with all defaults.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)
)]

pub mod describe;
pub mod dscp;
pub mod narrow;
pub mod overrides;
pub mod problem;
pub mod quantity;
pub mod reader;
pub mod registry;
pub mod resolve;
pub mod row;
pub mod syntax;
pub mod units;

pub use dscp::Dscp;
pub use quantity::{ByteRate, Bytes, Fraction, Name, Octets, Quantity, Ratio};
pub use reader::{Choice, Key, Section, key};
pub use registry::Entry;
