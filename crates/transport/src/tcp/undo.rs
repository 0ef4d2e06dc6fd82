//! Timeouts and recoveries that turn out to have been needless.
//!
//! Eifel detection (RFC 3522): the first ACK after a timeout that moves on echoes a time before the
//! timer struck, so it answers the original.

use super::endpoint::Endpoint;
use super::{Repair, Sink};
use eastwest_types::Packet;

impl Endpoint {
    /// The first ACK after a timeout that moves on tells whether the timeout was spurious.
    pub(super) fn judge_timeout(&mut self, packet: &Packet, acked: u64, sink: &mut impl Sink) {
        let rare = self.rare();
        let struck = std::mem::take(&mut rare.timed_out_at_us);
        if struck != 0 {
            let original = (packet.ts_echo_us.wrapping_sub(struck) as i32) < 0;
            if original {
                rare.counters.spurious_timeouts += 1;
                self.tell(Repair::Spurious, self.snd_una - acked, self.snd_una, sink);
            }
        }
    }
}
