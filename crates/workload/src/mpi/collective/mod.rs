//! Collective calls as messages: one file per family of algorithms.
//!
//! A rank executes a collective in steps. In each step it posts its receives, then its sends, and
//! continues when all of them are complete. [`Algorithms::step`] returns the step with a given
//! number, so that the state of a call is only its step number. Both ends of every message compute
//! the same size, and messages between two ranks are matched in order, as in a separate
//! communicator.
//!
//! A call has one or more lanes ([`Algorithms::lanes`]): independent sequences of steps, each for an
//! equal share of the data. The lanes are the chunks of the channels of a call. The tag of a message
//! is the number of its lane.
//!
//! The algorithms and their names are those of MPICH (Thakur, Rabenseifner and Gropp, *Optimization
//! of collective communication operations in MPICH*, IJHPCA 2005) and Open MPI (Pješivac-Grbović et
//! al., *Performance analysis of MPI collective operations*, 2007). Difference: the operations of a
//! reduction are computed once, at the end of the call, in the number given by the trace, as in
//! SimGrid.

mod algorithms;
mod call;
mod double_tree;
mod exchange;
mod names;
mod own;
mod ring;
mod rules;
mod teams;
mod tree;
mod two_level;

pub use algorithms::Algorithms;
pub use call::{Call, Kind, Seat, Step};
pub use names::{
    AllgatherBy, AllreduceBy, AlltoallBy, BarrierBy, BcastBy, GatherBy, ReduceBy, ReduceScatterBy,
    ScanBy,
};
pub use own::Own;
pub use teams::Teams;

#[cfg(test)]
mod tests;
