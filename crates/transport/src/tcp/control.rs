//! Where an endpoint meets its congestion control: what an ACK tells it, how it lets the window grow,
//! and how far losses and marks cut.

use super::config::{CongestionKind, TcpConfig};
use super::endpoint::Endpoint;
use crate::congestion::dctcp::Dctcp;
use crate::congestion::{Control, new_reno};

impl Endpoint {
    /// The state that the algorithm needs from the start.
    pub(super) fn new_control(config: &TcpConfig) -> Option<Box<Control>> {
        match config.congestion {
            CongestionKind::NewReno => None,
            CongestionKind::Dctcp => {
                Some(Box::new(Control::Dctcp(Dctcp::new(&config.rules.dctcp))))
            }
        }
    }

    /// Tells the algorithm of an ACK that has reported `delivered` bytes.
    #[inline(never)]
    pub(super) fn inform(&mut self, delivered: u64, ece: bool, config: &TcpConfig) {
        let (una, next) = (self.snd_una, self.snd_max);
        match self.control.as_deref_mut() {
            Some(Control::Dctcp(d)) => d.observe(delivered, ece, una, next, &config.rules.dctcp),
            None => {}
        }
    }

    /// `acked` bytes were acknowledged while the window was the limit. `after_timeout` is true until
    /// all that was outstanding at a timeout is acknowledged.
    #[inline]
    pub(super) fn grow(&mut self, acked: u64, after_timeout: bool, config: &TcpConfig) {
        let segment = u64::from(config.segment);
        match config.congestion {
            CongestionKind::NewReno | CongestionKind::Dctcp => {
                new_reno::on_ack(&mut self.window, acked, segment, after_timeout, &config.rules);
            }
        }
    }

    /// The threshold after a loss with `flight` bytes outstanding. Where marks have cut the window
    /// already it stays, but DCTCP halves it all the same (Linux, `dctcp_react_to_loss`).
    pub(super) fn threshold_after_loss(&mut self, flight: u64, config: &TcpConfig) -> u64 {
        let held = self.release_hold();
        if held && config.congestion != CongestionKind::Dctcp {
            return self.window.ssthresh;
        }
        match config.congestion {
            CongestionKind::NewReno | CongestionKind::Dctcp => {
                new_reno::threshold(&self.window, flight, u64::from(config.segment), &config.rules)
            }
        }
    }

    /// The threshold after marks with `flight` bytes outstanding.
    pub(super) fn threshold_after_mark(&mut self, flight: u64, config: &TcpConfig) -> u64 {
        let segment = u64::from(config.segment);
        match self.control.as_deref() {
            Some(Control::Dctcp(d)) => d.reduced(self.window.cwnd).max(2 * segment),
            None => new_reno::threshold(&self.window, flight, segment, &config.rules),
        }
    }
}
