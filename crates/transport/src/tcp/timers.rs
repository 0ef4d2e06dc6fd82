//! The retransmission, delayed-ACK and linger timers.
//!
//! Deadlines live in the endpoint and move with every ACK; a wake-up is asked for only where the
//! pending one would come too late, and one that comes too early just asks again.

use super::config::TcpConfig;
use super::endpoint::{Endpoint, Linger, State};
use super::{Notice, Repair, Sink};
use eastwest_types::Time;

impl Endpoint {
    /// Asks for a wake-up at the next deadline if none is pending before it.
    #[inline]
    pub(super) fn rearm(&mut self, sink: &mut impl Sink) {
        let next = self.rto_at.min(self.ack_at);
        if next < self.armed_at {
            self.armed_at = next;
            sink.arm(next, self.id);
        }
    }

    /// Carries out the deadlines that have come.
    pub(super) fn on_timers(&mut self, now: Time, config: &TcpConfig, sink: &mut impl Sink) {
        if self.ack_at <= now {
            self.send_ack(now, config, sink);
        }
        if self.rto_at <= now {
            match self.linger {
                Linger::NotYet => self.on_timeout(now, config, sink),
                Linger::Until | Linger::Over => {
                    self.linger = Linger::Over;
                    self.rto_at = Time::NEVER;
                }
            }
        }
    }

    fn on_timeout(&mut self, now: Time, config: &TcpConfig, sink: &mut impl Sink) {
        self.rto_at = Time::NEVER;
        self.counters.timeouts += 1;
        self.tell(Repair::Timeout, self.snd_una, self.snd_max, sink);
        if u32::from(self.retries) >= config.max_retries {
            self.state = State::Failed;
            self.ack_at = Time::NEVER;
            sink.notify(self.id, Notice::Failed);
            return;
        }
        self.retries += 1;
        self.rtt.backoff += 1;
        match self.state {
            State::SynSent | State::SynReceived => self.send_syn(now, config, sink),
            State::Established => self.enter_loss(now, config, sink),
            State::Listen | State::Failed => {}
        }
    }
}
