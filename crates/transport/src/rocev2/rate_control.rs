//! Interface of rate controls to queue pairs.

use eastwest_settings::reader::Section;
use eastwest_types::{Rate, Time};

/// The rate control of one end of a queue pair: as a sender it limits the rate, as a receiver it decides which
/// marks the sender is told of.
pub trait RateControl: Sized {
    /// Its name in scenarios: `congestion = "dcqcn"`, and that of the table of its settings.
    const NAME: &'static str;
    /// One line of explanation.
    const DOC: &'static str;
    /// One line about the table.
    const TABLE: &'static str;
    /// Its settings, the same for all queue pairs.
    type Settings;

    /// Reads its settings.
    fn read(s: &mut Section) -> Self::Settings;

    /// Returns the control of an end that has sent nothing, on a link of rate `line`.
    fn start(line: Rate) -> Self;

    /// Returns the current rate.
    fn rate(&self) -> Rate;

    /// Returns whether nothing limits the rate but the link.
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
