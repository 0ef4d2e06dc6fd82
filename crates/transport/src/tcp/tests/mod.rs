//! Tests of TCP: dialogues between two endpoints, packet by packet, and properties of random
//! dialogues.

mod aimd;
mod bbr;
mod bbr3;
mod closing;
mod cubic;
mod ecn;
mod growth;
mod handshake;
mod linux_acks;
mod linux_timers;
mod memory;
mod net;
mod offload;
mod persist;
mod properties;
mod rack;
mod receiving;
mod recovery;
mod reduction;
mod reset;
mod small_queues;
mod spurious_retransmission;
mod timeout_causes;
mod timeouts;
