//! Why packets are lost.

/// Why a packet was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Cause {
    /// It found the queue full.
    QueueFull = 0,
    /// A fault of the link destroyed it at random.
    Loss = 1,
    /// The link was down.
    LinkDown = 2,
    /// There was no way on.
    NoRoute = 3,
}

impl Cause {
    /// All causes in the order of their numbers.
    pub const ALL: [Cause; 4] = [Cause::QueueFull, Cause::Loss, Cause::LinkDown, Cause::NoRoute];

    /// The name used in tables.
    pub fn name(self) -> &'static str {
        match self {
            Cause::QueueFull => "queue-full",
            Cause::Loss => "loss",
            Cause::LinkDown => "link-down",
            Cause::NoRoute => "no-route",
        }
    }
}
