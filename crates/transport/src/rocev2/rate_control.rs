//! Interface of rate controls to queue pairs.

use eastwest_settings::reader::Section;
use eastwest_types::{Rate, Time};

/// Rate control of one end of a queue pair. As a sender it limits the rate; as a receiver it
/// decides which ECN marks are reported to the sender.
pub trait RateControl: Sized {
    /// Name of the rate control in scenarios (`congestion = "dcqcn"`), and of the table with its
    /// settings.
    const NAME: &'static str;
    /// Explanation of the rate control in one line, for the reference of settings.
    const DOC: &'static str;
    /// Explanation of the rate control's table in one line, for the reference of settings.
    const TABLE: &'static str;
    /// Settings of the rate control, common to all queue pairs.
    type Settings;

    /// Reads the settings of the rate control from its table.
    fn read(s: &mut Section) -> Self::Settings;

    /// Returns the rate control of an end that has sent nothing, on a link of rate `line`.
    fn start(line: Rate) -> Self;

    /// Returns the rate at which the end may send now.
    fn rate(&self) -> Rate;

    /// Whether the link alone limits the rate, and the rate control does not.
    fn is_free(&self) -> bool;

    /// Returns the time at which [`RateControl::after_timer`] must be called; [`Time::NEVER`] if no
    /// timer is armed.
    fn timer_at(&self) -> Time;

    /// Records that the end has sent `bytes` bytes, counted as on the link (with framing).
    fn after_sending(&mut self, bytes: u64, settings: &Self::Settings);

    /// Handles a congestion notification packet at the sender.
    fn after_notification(&mut self, now: Time, settings: &Self::Settings);

    /// Handles the expiry of the rate control's timer, at the time [`RateControl::timer_at`].
    fn after_timer(&mut self, now: Time, settings: &Self::Settings);

    /// Handles a packet with a CE mark at the receiver. Returns whether to send a congestion
    /// notification packet.
    fn notifies(&mut self, now: Time, settings: &Self::Settings) -> bool;
}
