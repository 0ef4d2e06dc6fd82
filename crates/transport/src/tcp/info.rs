//! What an endpoint can be asked, in the terms of Linux's `struct tcp_info`: for dialogue tests.

use super::Stack;
use super::config::TcpConfig;
use super::ecn;
use super::phases::{Phase, State};
use eastwest_types::EndpointId;

/// What a sender is doing about congestion (Linux, `enum tcp_ca_state`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum CongestionState {
    /// Nothing unusual.
    Open = 0,
    /// Something has arrived out of order.
    Disorder = 1,
    /// Marks have cut the window.
    Cwr = 2,
    /// Fast recovery.
    Recovery = 3,
    /// After a timeout.
    Loss = 4,
}

/// Where a connection stands (RFC 9293, 3.3.2), with the numbers of Linux (`enum` in `tcp_states.h`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ConnectionState {
    /// Both know of each other; neither has closed.
    Established = 1,
    /// Has sent a SYN.
    SynSent = 2,
    /// Has answered a SYN.
    SynReceived = 3,
    /// Has closed; the FIN is not acknowledged yet.
    FinWait1 = 4,
    /// Has closed; the FIN is acknowledged.
    FinWait2 = 5,
    /// Both have closed.
    TimeWait = 6,
    /// Given up.
    Failed = 7,
    /// The other end has closed.
    CloseWait = 8,
    /// Closed after the other end; the FIN is not acknowledged yet.
    LastAck = 9,
    /// Waits for a SYN.
    Listen = 10,
}

impl ConnectionState {
    /// Returns whether the handshake is under way.
    pub fn is_opening(self) -> bool {
        use ConnectionState::{Listen, SynReceived, SynSent};
        matches!(self, Listen | SynSent | SynReceived)
    }

    /// Returns whether nothing more will come.
    pub fn is_over(self) -> bool {
        use ConnectionState::{CloseWait, Failed, LastAck, TimeWait};
        matches!(self, CloseWait | Failed | LastAck | TimeWait)
    }
}

/// State of one end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Info {
    /// Where the connection stands.
    pub connection: ConnectionState,
    /// What the sender does about congestion.
    pub congestion: CongestionState,
    /// Bytes sent and not acknowledged, SYN and FIN one each.
    pub outstanding: u64,
    /// Outstanding bytes that are known to have arrived.
    pub sacked: u64,
    /// Outstanding bytes that are deemed lost, sent again or not.
    pub lost: u64,
    /// Outstanding bytes that are under way for at least the second time.
    pub resent: u64,
    /// Bytes written and not sent.
    pub unsent: u64,
    /// Bytes acknowledged by the other end.
    pub acknowledged: u64,
    /// Bytes received in order.
    pub received: u64,
    /// The other end's window, bytes.
    pub peer_window: u32,
    /// Timeouts since an ACK last moved on.
    pub retries: u16,
    /// Probes of a closed window in a row that nobody has answered.
    pub probes: u16,
    /// How often the timeout is doubled.
    pub backoff: u8,
    /// Segments out of order that mean a loss.
    pub reordering: u32,
}

impl Stack {
    /// The settings, for an application that changes one while its connection is open.
    pub fn config_mut(&mut self) -> &mut TcpConfig {
        &mut self.settings.first
    }

    /// The state of an endpoint, for looking on.
    pub fn info(&self, id: EndpointId) -> Info {
        let e = self.endpoint(id);
        let held = |position: u64| {
            let position = position.clamp(e.stream.una, e.stream.next);
            (position - e.stream.una) - e.recovery.sacked.below(position)
        };
        let (lost, resent) = match (&e.recovery.board, e.recovery.phase) {
            (Some(board), _) => (board.lost(), board.resent()),
            (None, Phase::Open) => (0, 0),
            (None, _) => (held(e.recovery.lost_to()), held(e.recovery.resent_to())),
        };
        let sacked = e.recovery.arrived(self.config_of(id)).min(e.outstanding());
        Info {
            connection: e.connection_state(),
            congestion: match e.recovery.phase {
                Phase::Recovery => CongestionState::Recovery,
                Phase::Loss => CongestionState::Loss,
                Phase::Open if e.ecn & ecn::HELD != 0 => CongestionState::Cwr,
                Phase::Open if sacked > 0 => CongestionState::Disorder,
                Phase::Open => CongestionState::Open,
            },
            outstanding: e.outstanding(),
            sacked,
            lost,
            resent,
            unsent: e.stream.unsent(),
            acknowledged: e.stream.una.clamp(1, e.stream.end) - 1,
            received: e.received(),
            peer_window: e.peer_window,
            retries: if e.waits_for_window() { 0 } else { e.timers.retries },
            probes: if e.waits_for_window() { e.timers.retries } else { 0 },
            backoff: e.timers.backoff,
            reordering: e.recovery.degree_of_reordering(self.config_of(id)),
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
