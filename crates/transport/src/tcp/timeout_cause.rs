//! Causes of retransmission timeouts. Each timeout is counted under one cause, which is decided
//! when the timer expires ([`timeout_cause`](super::endpoint::Endpoint::timeout_cause) in
//! `timer_expiry.rs`).
//!
//! A real sender can only guess the cause. In the simulation both ends are known, and the data that
//! has arrived at the receiver decides. The classes follow studies of incast. The loss of a whole
//! window, and the loss of the last segments of a message, are the causes of the block head and
//! block tail timeouts of Zhang, Ren and Lin, *Modeling and Understanding TCP Incast in Data Center
//! Networks*, INFOCOM 2011. The class of lost retransmissions follows Vasudevan et al., SIGCOMM
//! 2009. One more class has timeouts without any loss, which these studies could only suspect. A
//! timeout that a later ACK shows to be spurious ([detection](super::spurious_retransmission)) is
//! moved to [`TimeoutCause::Spurious`].
//!
//! When the timer expires, a segment that waits in a queue cannot be distinguished from a lost
//! segment. The timestamp that its ACK echoes shows the difference later. Without timestamps only
//! F-RTO and DSACK show it, and the count of [`TimeoutCause::Spurious`] is a lower bound.

/// Cause of a retransmission timeout, decided by the state of both ends. The descriptions call the
/// first segment that is not acknowledged the *hole*.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum TimeoutCause {
    /// The SYN has not arrived at the server.
    Syn = 0,
    /// The SYN-ACK has not arrived, or the ACK of the SYN-ACK has not arrived.
    SynAck = 1,
    /// The hole (first unacknowledged segment) is a whole message of one segment: a request or a
    /// short answer.
    Request = 2,
    /// None of the outstanding data has arrived: a whole window or a whole message is lost.
    FullWindow = 3,
    /// The hole (first unacknowledged segment) is near the end of the data to send: too few
    /// segments follow it for three duplicate ACKs, or less than a window was sent and all of it is
    /// lost.
    Tail = 4,
    /// One or two segments above the hole (first unacknowledged segment) have arrived, too few for
    /// a fast retransmit. Most of a window was lost, or most of the rest in a fast recovery.
    FewDuplicates = 5,
    /// The hole (first unacknowledged segment) had been retransmitted before, and this
    /// retransmission has not arrived either.
    LostRetransmission = 6,
    /// Enough segments above the hole (first unacknowledged segment) had arrived for a fast
    /// retransmit, but the timer expired first.
    Recovery = 7,
    /// Only the FIN is outstanding.
    Fin = 8,
    /// Only ACKs are lost: the receiver has the hole (first unacknowledged segment) and has
    /// acknowledged it. Requests have this cause if their ACK travels with an answer whose first
    /// window is lost.
    Ack = 9,
    /// Nothing was lost: the hole (first unacknowledged segment) has arrived, and its ACK is
    /// delayed or late.
    Spurious = 10,
}

impl TimeoutCause {
    /// Number of causes of retransmission timeouts.
    pub const COUNT: usize = 11;

    /// Names of the causes of retransmission timeouts in result files, in the order of their
    /// numbers.
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
