//! State of an endpoint in the terms of Linux's `struct tcp_info`, for tests by scripts of
//! packetdrill.

use super::Stack;
use super::config::TcpConfig;
use super::ecn;
use super::states::{RecoveryPhase, State};
use eastwest_types::EndpointId;

/// State of loss recovery and congestion avoidance (Linux, `enum tcp_ca_state`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum CongestionState {
    /// No loss, reordering or ECE is known.
    Open = 0,
    /// Data has arrived out of order, as duplicate ACKs or SACK blocks show.
    Disorder = 1,
    /// ECE has reduced the window.
    Cwr = 2,
    /// Fast recovery is in progress.
    Recovery = 3,
    /// Recovery after a retransmission timeout is in progress.
    Loss = 4,
}

/// State of a connection (RFC 9293, 3.3.2), with the numbers of Linux (`enum` in `tcp_states.h`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ConnectionState {
    /// The handshake is complete, and neither end has closed.
    Established = 1,
    /// This end has sent a SYN.
    SynSent = 2,
    /// This end has answered a SYN with a SYN-ACK.
    SynReceived = 3,
    /// This end has closed; its FIN is not acknowledged yet.
    FinWait1 = 4,
    /// This end has closed; its FIN is acknowledged.
    FinWait2 = 5,
    /// Both ends have closed their directions; late packets are answered.
    TimeWait = 6,
    /// The connection has failed.
    Failed = 7,
    /// The other end has closed.
    CloseWait = 8,
    /// This end has closed after the other end; its FIN is not acknowledged yet.
    LastAck = 9,
    /// This end waits for a SYN.
    Listen = 10,
}

impl ConnectionState {
    /// Whether the handshake is not complete.
    pub fn is_opening(self) -> bool {
        use ConnectionState::{Listen, SynReceived, SynSent};
        matches!(self, Listen | SynSent | SynReceived)
    }

    /// Whether no more data will arrive: the other end has closed, or the connection has failed.
    pub fn is_over(self) -> bool {
        use ConnectionState::{CloseWait, Failed, LastAck, TimeWait};
        matches!(self, CloseWait | Failed | LastAck | TimeWait)
    }
}

/// State of one TCP endpoint in the terms of Linux's `struct tcp_info`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Info {
    /// State of the connection (RFC 9293, 3.3.2).
    pub connection: ConnectionState,
    /// State of loss recovery and congestion avoidance.
    pub congestion: CongestionState,
    /// Bytes sent and not acknowledged; SYN and FIN count one each.
    pub outstanding: u64,
    /// Outstanding bytes that are known to have arrived.
    pub sacked: u64,
    /// Outstanding bytes that are deemed lost, retransmitted or not.
    pub lost: u64,
    /// Bytes of retransmissions in flight.
    pub resent: u64,
    /// Bytes that the application has written and TCP has not sent.
    pub unsent: u64,
    /// Payload bytes that the other end has acknowledged.
    pub acknowledged: u64,
    /// Payload bytes received in order.
    pub received: u64,
    /// Receive window of the other end in bytes.
    pub peer_window: u32,
    /// Number of consecutive retransmission timeouts: all timeouts since SND.UNA last advanced.
    pub retries: u16,
    /// Number of consecutive window probes without an answer.
    pub probes: u16,
    /// Number of times that the retransmission timeout is currently doubled.
    pub backoff: u8,
    /// Degree of reordering: number of duplicate ACKs, or of segments SACKed above a hole, that
    /// indicates a loss.
    pub reordering: u32,
}

impl Stack {
    /// Returns the TCP settings with number 0, so that a caller can change them while a connection
    /// is open.
    pub fn config_mut(&mut self) -> &mut TcpConfig {
        &mut self.settings.first
    }

    /// Returns the state of an endpoint in the terms of Linux's `struct tcp_info`.
    pub fn info(&self, id: EndpointId) -> Info {
        let e = self.endpoint(id);
        let held = |position: u64| {
            let position = position.clamp(e.stream.una, e.stream.next);
            (position - e.stream.una) - e.recovery.sacked.below(position)
        };
        let (lost, resent) = match (&e.recovery.scoreboard, e.recovery.phase) {
            (Some(scoreboard), _) => (scoreboard.lost(), scoreboard.retransmitted_in_flight()),
            (None, RecoveryPhase::Open) => (0, 0),
            (None, _) => (held(e.recovery.lost_to()), held(e.recovery.retransmitted_to())),
        };
        let sacked = e.recovery.sacked_out(self.config_of(id)).min(e.outstanding());
        Info {
            connection: e.connection_state(),
            congestion: match e.recovery.phase {
                RecoveryPhase::Recovery => CongestionState::Recovery,
                RecoveryPhase::Loss => CongestionState::Loss,
                RecoveryPhase::Open if e.ecn & ecn::IN_CWR != 0 => CongestionState::Cwr,
                RecoveryPhase::Open if sacked > 0 => CongestionState::Disorder,
                RecoveryPhase::Open => CongestionState::Open,
            },
            outstanding: e.outstanding(),
            sacked,
            lost,
            resent,
            unsent: e.stream.unsent(),
            acknowledged: e.stream.una.clamp(1, e.stream.end) - 1,
            received: e.received(),
            peer_window: e.peer_window,
            retries: if e.is_blocked_by_window() { 0 } else { e.timers.retries },
            probes: if e.is_blocked_by_window() { e.timers.retries } else { 0 },
            backoff: e.timers.backoff,
            reordering: e.recovery.reordering_degree(self.config_of(id)),
        }
    }
}

impl super::Endpoint {
    fn connection_state(&self) -> ConnectionState {
        let fin_acknowledged = self.closing && self.stream.una == self.stream.end + 1;
        match self.state {
            State::Listen => ConnectionState::Listen,
            State::SynSent => ConnectionState::SynSent,
            State::SynReceived => ConnectionState::SynReceived,
            State::Failed => ConnectionState::Failed,
            State::Established => match (self.closing, self.receiver.next > self.receiver.fin_at) {
                (false, false) => ConnectionState::Established,
                (false, true) => ConnectionState::CloseWait,
                (true, false) if fin_acknowledged => ConnectionState::FinWait2,
                (true, false) => ConnectionState::FinWait1,
                (true, true) if fin_acknowledged => ConnectionState::TimeWait,
                (true, true) => ConnectionState::LastAck,
            },
        }
    }
}
