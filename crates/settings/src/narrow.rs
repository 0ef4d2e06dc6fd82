//! Numbers in fewer bits. What does not fit becomes the nearest that does, and never another number:
//! a value outside the range of its key is refused by name elsewhere, and may come by here before.

/// A type of numbers that others are brought into.
pub trait Narrow {
    /// The largest of its numbers.
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

/// The number, or the largest of the type where that is smaller.
pub fn at_most<T: Narrow + TryFrom<N>, N>(number: N) -> T {
    T::try_from(number).unwrap_or(T::LARGEST)
}

/// The whole part of a number; 0 for what is below 0 or no number.
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
