//! Collective calls as the messages they are made of: one file per family of algorithms.
//!
//! A rank goes through a collective in steps. In each it posts its receives, then its sends, and
//! goes on when all of them are done. [`Algorithms::step`] gives the step with a number, so that
//! nothing is kept of a call but the call itself. Both ends of every message name the same size,
//! and messages between two ranks are matched in their order, as in a communicator of its own.
//!
//! The algorithms and their names are those of MPICH (Thakur, Rabenseifner and Gropp, *Optimization of
//! collective communication operations in MPICH*, IJHPCA 2005) and Open MPI (Pješivac-Grbović et al.,
//! *Performance analysis of MPI collective operations*, 2007). Departure: the operations of a
//! reduction are done once, at the end of the call and as many as the trace says, as SimGrid does.

mod algorithms;
mod call;
mod exchange;
mod ring;
mod tree;

pub use algorithms::{
    Algorithms, AllgatherBy, AllreduceBy, AlltoallBy, BarrierBy, BcastBy, GatherBy, ReduceBy,
    ReduceScatterBy, ScanBy,
};
pub use call::{Call, Kind, Step};

#[cfg(test)]
mod tests;
