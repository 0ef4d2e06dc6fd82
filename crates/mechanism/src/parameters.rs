//! Functions that read the settings of a mechanism from a scenario. Each key is declared once,
//! where it is read, with its default, its range and one line of meaning. See [`Section::get`] and
//! [`key`].

pub use eastwest_network::queue::read_signal;
pub use eastwest_settings::{
    Bytes, Choice, Fraction, Key, Name, Octets, Quantity, Ratio, Section, key,
};
