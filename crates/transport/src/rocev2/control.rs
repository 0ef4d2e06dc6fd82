//! Rate controls of queue pairs. Each rate control has its own file, with its settings and their
//! names, and one line in the list `family!` at the end of this file. [`RateControl`] is their
//! interface to a queue pair.

use super::dcqcn::Dcqcn;
use super::rate_control::RateControl;
use eastwest_settings::reader::Section;
use eastwest_types::{Rate, Time};
use serde::{Deserialize, Serialize};

/// Defines the enumerations of the settings and the states of all rate controls, and forwards each
/// call to the chosen one.
macro_rules! family {
    ($($name:ident($control:ty)),* $(,)?) => {
        /// Rate control of queue pairs, with its settings.
        #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
        pub enum ControlSettings {
            /// No control: a queue pair sends at the rate of its link, and its packets are not
            /// ECN-capable.
            None,
            $(#[doc = concat!("The rate control [`", stringify!($control), "`].")]
            $name(<$control as RateControl>::Settings),)*
        }

        /// State of the rate control of one end of a queue pair.
        #[derive(Clone, Copy, Debug, Serialize, Deserialize)]
        pub enum Control {
            /// No control: the end sends at the rate of its link.
            None(Rate),
            $(#[doc = concat!("The rate control [`", stringify!($control), "`].")] $name($control),)*
        }

        impl ControlSettings {
            /// Reads the key `congestion` of `[rocev2]`, which names the rate control, and the
            /// settings of this rate control. The default is the first of the list.
            pub fn read(s: &mut Section) -> ControlSettings {
                let choices = [
                    $((<$control>::NAME, <$control>::NAME, <$control>::DOC),)*
                    ("none", "none", "no control: only the link limits the rate, and packets are \
                                      not ECN-capable"),
                ];
                let doc = "Congestion control of queue pairs.";
                let chosen = s.choice("congestion", doc, Some(choices[0].0), &choices);
                let mut settings = ControlSettings::None;
                $(
                    let name = <$control>::NAME;
                    if chosen == name || s.describing() {
                        let read = s.table(name, <$control>::TABLE, <$control>::read);
                        if chosen == name {
                            settings = ControlSettings::$name(read);
                        }
                    } else if s.has(name) {
                        let message = format!("has no effect because `congestion` is \"{chosen}\"");
                        s.wrong(name, message);
                    }
                )*
                settings
            }

            /// Returns the rate control of an end that has sent nothing, on a link of rate `line`.
            pub fn start(&self, line: Rate) -> Control {
                match self {
                    ControlSettings::None => Control::None(line),
                    $(ControlSettings::$name(_) => Control::$name(<$control>::start(line)),)*
                }
            }
        }

        impl Control {
            /// Returns the rate at which the end may send now.
            pub fn rate(&self) -> Rate {
                match self {
                    Control::None(line) => *line,
                    $(Control::$name(control) => control.rate(),)*
                }
            }

            /// Whether the link alone limits the rate, and the rate control does not.
            pub fn is_free(&self) -> bool {
                match self {
                    Control::None(_) => true,
                    $(Control::$name(control) => control.is_free(),)*
                }
            }

            /// Returns the time at which the timer of the rate control expires; [`Time::NEVER`] if
            /// the timer is not armed.
            pub fn timer_at(&self) -> Time {
                match self {
                    Control::None(_) => Time::NEVER,
                    $(Control::$name(control) => control.timer_at(),)*
                }
            }

            /// Records that the end has sent `bytes` bytes, counted as on the link (with framing).
            pub fn after_sending(&mut self, bytes: u64, settings: &ControlSettings) {
                match (self, settings) {
                    $((Control::$name(control), ControlSettings::$name(settings)) => {
                        control.after_sending(bytes, settings);
                    })*
                    _ => {}
                }
            }

            /// Handles a congestion notification packet at the sender. Returns whether the packet
            /// reduces the rate.
            pub fn after_notification(&mut self, now: Time, settings: &ControlSettings) -> bool {
                match (self, settings) {
                    $((Control::$name(control), ControlSettings::$name(settings)) => {
                        control.after_notification(now, settings);
                        true
                    })*
                    _ => false,
                }
            }

            /// Handles the expiry of the rate control's timer.
            pub fn after_timer(&mut self, now: Time, settings: &ControlSettings) {
                match (self, settings) {
                    $((Control::$name(control), ControlSettings::$name(settings)) => {
                        control.after_timer(now, settings);
                    })*
                    _ => {}
                }
            }

            /// Handles a packet with a CE mark at the receiver. Returns whether to send a
            /// congestion notification packet.
            pub fn notifies(&mut self, now: Time, settings: &ControlSettings) -> bool {
                match (self, settings) {
                    $((Control::$name(control), ControlSettings::$name(settings)) => {
                        control.notifies(now, settings)
                    })*
                    _ => false,
                }
            }
        }
    };
}

family! {
    Dcqcn(Dcqcn),
}
