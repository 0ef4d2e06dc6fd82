//! Dialogues between two endpoints, packet by packet, and properties of random ones.

mod aimd;
mod closing;
mod growth;
mod handshake;
mod net;
mod properties;
mod receiving;
mod recovery;
mod timeouts;
