//! Enhanced transmission selection (ETS; IEEE 802.1Q, clause 37, formerly 802.1Qaz): the key
//! `share` of a `[[fabric.class]]`.
//!
//! A class is either strict, or has a share, in whole percent, of the rate that strict classes
//! leave unused. The shares of a port add up to 100. Shares are converted to the smallest
//! equivalent integer weights of deficit round robin, so that rounds are short: with 50 % and 50 %,
//! each class sends one packet per round.

use eastwest_settings::narrow::{at_most, whole_part};
use eastwest_settings::quantity::Fraction;
use eastwest_settings::reader::{Section, key};

/// Reads the share of a class in whole percent; `None` if the class has no share.
pub fn read_share(c: &mut Section) -> Option<u32> {
    let share: Option<Fraction> = c.find(
        key(
            "share",
            "Share of this class in the rate that strict classes do not use, as in ETS \
             (802.1Qaz): whole percents; the shares of all classes must add up to 100 %. Replaces \
             `weight`.",
        )
        .range("0.01", "1")
        .optional("`weight` decides"),
    );
    let percent = share.map(|share| at_most::<u32, _>(whole_part(share.0 * 100.0 + 0.5)));
    let whole =
        share.is_none_or(|share| (share.0 * 100.0 - (share.0 * 100.0 + 0.5).floor()).abs() < 1e-9);
    c.demand(whole, &["share"], || {
        "must be a whole number of percent, such as \"25 %\"".to_owned()
    });
    c.demand(share.is_none() || !c.has("weight"), &["share", "weight"], || {
        "cannot be set together with `weight`: set only one of them".to_owned()
    });
    percent
}

/// Returns the weight of each class for deficit round robin; `None` in the list means a strict
/// class. Returns `None` if no class has a share, or if shares are wrong. `has_weights` means that
/// at least one class has the key `weight`, which cannot be combined with shares.
pub fn weights(
    s: &mut Section,
    shares: &[Option<u32>],
    has_weights: bool,
) -> Option<Vec<Option<u32>>> {
    if shares.iter().all(Option::is_none) || !s.good(&["class"]) {
        return None;
    }
    let sum: u32 = shares.iter().flatten().sum();
    if has_weights {
        s.wrong("class", "some classes have a `weight` and others a `share`: set only one of them");
        return None;
    }
    if sum != 100 {
        s.wrong("class", format!("the shares add up to {sum} %, but must add up to 100 %"));
        return None;
    }
    let divisor = shares.iter().flatten().copied().fold(0, gcd);
    Some(shares.iter().map(|share| share.map(|percent| percent / divisor)).collect())
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
