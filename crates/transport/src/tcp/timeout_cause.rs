//! Causes of retransmission timeouts. Each timeout is counted under one cause, which is decided when the
//! timer expires ([`timeout_cause`](super::endpoint::Endpoint::timeout_cause) in `timer_expiry.rs`).
//!
//! A real sender can only guess the cause; here both ends are known, and what the receiver holds decides. The
//! classes follow the studies of incast: whole windows lost, and the last segments of a message lost
//! (Zhang, Ren and Lin, *Modeling and Understanding TCP Incast in Data Center Networks*, INFOCOM 2011,
//! call them block head and block tail timeouts), retransmissions lost (Vasudevan et al., SIGCOMM 2009),
//! and timers that expired although nothing was lost, which those studies could only suspect. A timeout that
//! a later ACK shows to be spurious ([detection](super::spurious_retransmission)) is moved to
//! [`TimeoutCause::Spurious`].
//!
//! A segment in a queue when the timer expires cannot be distinguished from a lost one at that time. The
//! timestamp that its ACK echoes shows the difference; without timestamps only F-RTO and DSACK can, and the
//! count of [`TimeoutCause::Spurious`] is a lower bound.

/// Cause of a retransmission timeout, decided by the state of both ends. *Hole*: the first segment
/// that is not acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum TimeoutCause {
    /// The SYN has not arrived.
    Syn = 0,
    /// The SYN-ACK, or the ACK of it, has not arrived.
    SynAck = 1,
    /// The hole is a whole message of one segment: a request, a short answer.
    Request = 2,
    /// Nothing of the outstanding data has arrived: a whole window or a whole message is lost.
    FullWindow = 3,
    /// The hole is near the end of the data to send: too few segments follow it for three duplicate
    /// ACKs, or less than a window was sent and all of it is lost.
    Tail = 4,
    /// One or two segments above the hole have arrived, too few for fast retransmit: most of a window was lost,
    /// or most of what was left in a fast recovery.
    FewDuplicates = 5,
    /// The hole had been retransmitted before, and the retransmission has not arrived either.
    LostRetransmission = 6,
    /// Enough segments had arrived for a fast retransmit; the timer expired before it was sent.
    Recovery = 7,
    /// Only the FIN is outstanding.
    Fin = 8,
    /// Only ACKs are lost: the receiver has the hole and has acknowledged it. This happens to requests whose
    /// ACK travels with an answer of which the first window is lost.
    Ack = 9,
    /// Nothing was lost: the hole, or its last retransmission, has arrived, and the ACK is delayed or late.
    Spurious = 10,
}

impl TimeoutCause {
    /// Number of causes of retransmission timeouts.
    pub const COUNT: usize = 11;

    /// Names of the causes in result files, in the order of their numbers.
    pub const NAMES: [&str; TimeoutCause::COUNT] = [
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
