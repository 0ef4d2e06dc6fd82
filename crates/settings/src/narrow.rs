//! Conversion of numbers to types with fewer bits. A number that does not fit becomes the nearest
//! number that fits; it never wraps around. The reader of settings reports a value outside the
//! range of its key, but sometimes only after the value was converted.

/// An integer type to which larger integers are converted.
pub trait Narrow {
    /// The largest number of the type.
    const LARGEST: Self;
}

impl Narrow for u8 {
    const LARGEST: u8 = u8::MAX;
}

impl Narrow for u16 {
    const LARGEST: u16 = u16::MAX;
}

impl Narrow for u32 {
    const LARGEST: u32 = u32::MAX;
}

impl Narrow for usize {
    const LARGEST: usize = usize::MAX;
}

/// Converts `number` to the target type; a number that is too large becomes the largest number of
/// this type.
pub fn at_most<T: Narrow + TryFrom<N>, N>(number: N) -> T {
    T::try_from(number).unwrap_or(T::LARGEST)
}

/// Returns the whole part of a number: 0 if the number is negative or NaN, [`u64::MAX`] if it does
/// not fit into 64 bits.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` takes the nearest number of 64 bits, and 0 for what is no number"
)]
pub fn whole_part(x: f64) -> u64 {
    x as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_the_nearest_that_does() {
        assert_eq!((at_most::<u8, u32>(255), at_most::<u8, u32>(256)), (255, 255));
        assert_eq!(at_most::<u16, u64>(u64::MAX), u16::MAX);
        assert_eq!((whole_part(2.9), whole_part(-1.0), whole_part(f64::NAN)), (2, 0, 0));
        assert_eq!(whole_part(f64::INFINITY), u64::MAX);
    }
}
