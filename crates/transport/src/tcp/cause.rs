//! Why a retransmission timer struck: each timeout is counted under one cause, decided when the timer
//! strikes and at no other time.
//!
//! A real sender can only guess; here both ends are known, so what the receiver holds decides. The
//! classes follow the studies of incast: whole windows lost, and the last segments of a message lost
//! (Zhang, Ren and Lin, *Modeling and Understanding TCP Incast in Data Center Networks*, INFOCOM 2011,
//! call them block head and block tail timeouts), retransmissions lost (Vasudevan et al., SIGCOMM 2009),
//! and timers that struck although nothing was lost, which those studies could only suspect. A timeout
//! that an ACK later shows to have been needless ([`undo`](super::undo)) is moved to [`Cause::Spurious`].
//!
//! A copy that is still in a queue when the timer strikes cannot be told from a lost one then; the
//! timestamp echoed by the ACK that it brings tells. Without timestamps only F-RTO and DSACK can, and
//! [`Cause::Spurious`] is a lower bound.

/// Why a timer struck. *Hole*: the first segment that is not acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Cause {
    /// The SYN has not arrived.
    Syn = 0,
    /// The SYN-ACK, or the ACK that answers it, has not.
    SynAck = 1,
    /// The hole is all that is outstanding, and a message of its own: a request, a short answer.
    Request = 2,
    /// Nothing arrived of all that is outstanding: a whole window or a whole message.
    FullWindow = 3,
    /// The hole is near the end of what there is to send: too few segments follow it for enough
    /// duplicate ACKs, or less than a window and all of it lost.
    Tail = 4,
    /// One or two segments above the hole arrived: too few to show it, of a window of which most was
    /// lost, or of what a fast recovery has left.
    FewDuplicates = 5,
    /// The hole had been sent again before, and that copy has not arrived either.
    LostRetransmission = 6,
    /// Enough had arrived for a fast retransmit; the timer was faster than that, or than its turn.
    Recovery = 7,
    /// Only the FIN is outstanding.
    Fin = 8,
    /// Only ACKs: the receiver has the hole and has acknowledged it. Requests meet this whose ACK comes
    /// with an answer of which the first window is lost.
    Ack = 9,
    /// Nothing was lost: the hole has arrived, or its last copy has; the ACK is delayed or late.
    Spurious = 10,
}

impl Cause {
    /// Number of causes.
    pub const COUNT: usize = 11;

    /// Names in results, in the order of the numbers.
    pub const NAMES: [&str; Cause::COUNT] = [
        "syn",
        "syn_ack",
        "request",
        "full_window",
        "tail",
        "few_duplicates",
        "lost_retransmission",
        "recovery",
        "fin",
        "ack",
        "spurious",
    ];
}
