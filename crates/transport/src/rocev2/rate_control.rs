//! Interface of rate controls to queue pairs.

use eastwest_settings::reader::Section;
use eastwest_types::{Rate, Time};

/// Rate control of one end of a queue pair: as a sender it limits the rate, as a receiver it decides which
/// marks are reported to the sender.
pub trait RateControl: Sized {
    /// Name in scenarios, `congestion = "dcqcn"`, and of the table of settings.
    const NAME: &'static str;
    /// One line of explanation.
    const DOC: &'static str;
    /// One line of explanation of the table.
    const TABLE: &'static str;
    /// Settings of the control, common to all queue pairs.
    type Settings;

    /// Reads the settings of the control.
    fn read(s: &mut Section) -> Self::Settings;

    /// Returns the control of an end that has sent nothing, on a link of rate `line`.
    fn start(line: Rate) -> Self;

    /// Returns the current rate.
    fn rate(&self) -> Rate;

    /// Whether only the link limits the rate.
    fn is_free(&self) -> bool;

    /// Returns when [`RateControl::after_timer`] is to be called.
    fn timer_at(&self) -> Time;

    /// Notes that `bytes` have been sent, counted as on the link.
    fn after_sending(&mut self, bytes: u64, settings: &Self::Settings);

    /// Handles a congestion notification packet at the sender.
    fn after_notification(&mut self, now: Time, settings: &Self::Settings);

    /// Handles the expiry of the timer, at [`RateControl::timer_at`].
    fn after_timer(&mut self, now: Time, settings: &Self::Settings);

    /// Handles a marked packet at the receiver. Returns whether to send a congestion notification.
    fn notifies(&mut self, now: Time, settings: &Self::Settings) -> bool;
}
