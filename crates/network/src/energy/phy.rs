//! Transceivers for Energy-Efficient Ethernet: transition times, and power in each state.
//!
//! | name | Tw, µs | Ts, µs | active, W | asleep, share of active |
//! |---|---|---|---|---|
//! | 100BASE-TX | 30.5 | 200 | 0.5 | 10 % |
//! | 1000BASE-T | 16.5 | 182 | 0.5 | 10 % |
//! | 10GBASE-T | 4.48 | 2.88 | 2.5 | 10 % |
//! | 25GBASE-R, 40GBASE-R, 100GBASE-R (deep sleep) | 5.5 | 0.9 | 1, 1.5, 3.5 | 10 % |
//! | these three with `-fast-wake` | 0.34 | 0.18 | 1, 1.5, 3.5 | 70 % |
//!
//! Times up to 10 Gbit/s are from IEEE 802.3az-2010, tables 78-2 and 78-4, as in table 2.1 of
//! E-EON. Powers up to 10 Gbit/s are from E-EON: full power while going to sleep and waking, and a
//! tenth while asleep, which includes refreshes. Above 10 Gbit/s, times and shares are the values
//! of S. Herrería-Alonso et al. (*Frame coalescing in dual-mode EEE*, 2016) for IEEE 802.3bj, where
//! fast wake continues to send a signal; here the values also apply to 802.3by and 802.3bm. Powers
//! in W above 10 Gbit/s are assumptions from the power classes of modules (SFP28 level I, QSFP+
//! class 1, QSFP28 class 4).

use eastwest_settings::{Fraction, Ratio, Section, key};
use eastwest_types::{Rate, Span};
use serde::{Deserialize, Serialize};

/// Times and powers of an energy-efficient transceiver, for one direction of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phy {
    /// Time from the start of waking until the first bit can be sent (Tw), in ps.
    pub wake: Span,
    /// Duration of the transition to sleep (Ts), in ps.
    pub sleep: Span,
    /// Power in W while awake, going to sleep or waking.
    pub active_w: f64,
    /// Power in W while asleep, which includes refresh signals.
    pub asleep_w: f64,
}

/// Known transceivers as (name, rate, values): in order of rate and, for each rate, first the
/// transceiver that saves most power.
pub const KNOWN: [(&str, Rate, Phy); 9] = [
    ("100BASE-TX", Rate::mbit(100), phy(30_500, 200_000, 0.5, 0.1)),
    ("1000BASE-T", Rate::gbit(1), phy(16_500, 182_000, 0.5, 0.1)),
    ("10GBASE-T", Rate::gbit(10), phy(4_480, 2_880, 2.5, 0.1)),
    ("25GBASE-R", Rate::gbit(25), phy(5_500, 900, 1.0, 0.1)),
    ("25GBASE-R-fast-wake", Rate::gbit(25), phy(340, 180, 1.0, 0.7)),
    ("40GBASE-R", Rate::gbit(40), phy(5_500, 900, 1.5, 0.1)),
    ("40GBASE-R-fast-wake", Rate::gbit(40), phy(340, 180, 1.5, 0.7)),
    ("100GBASE-R", Rate::gbit(100), phy(5_500, 900, 3.5, 0.1)),
    ("100GBASE-R-fast-wake", Rate::gbit(100), phy(340, 180, 3.5, 0.7)),
];

const fn phy(wake_ns: u64, sleep_ns: u64, active_w: f64, share: f64) -> Phy {
    let (wake, sleep) = (Span::from_ns(wake_ns), Span::from_ns(sleep_ns));
    Phy { wake, sleep, active_w, asleep_w: active_w * share }
}

impl Phy {
    /// Returns the slowest known transceiver that is fast enough for a link of the rate `rate`, or
    /// the fastest known transceiver. Also returns whether the transceiver is made for exactly this
    /// rate.
    pub fn of_rate(rate: Rate) -> (Phy, bool) {
        let found = KNOWN.iter().find(|(_, r, _)| *r >= rate);
        let (_, made_for, phy) = found.unwrap_or(&KNOWN[KNOWN.len() - 2]);
        (*phy, *made_for == rate)
    }

    /// Returns the name of the known transceiver with these values, and the rate of this
    /// transceiver; `None` if no known transceiver has these values.
    pub fn known(&self) -> Option<(&'static str, Rate)> {
        KNOWN.iter().find(|(_, _, phy)| phy == self).map(|(name, rate, _)| (*name, *rate))
    }
}

/// Values of a transceiver that a scenario sets. `None` means the value of the known transceiver.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct OwnPhy {
    /// Time to wake (Tw); `None`: the value of the known transceiver.
    pub wake: Option<Span>,
    /// Duration of the transition to sleep (Ts); `None`: the value of the known transceiver.
    pub sleep: Option<Span>,
    /// Power in W while awake, going to sleep or waking; `None`: the value of the known
    /// transceiver.
    pub active_w: Option<f64>,
    /// Power while asleep as a fraction of the power while awake; `None`: the value of the known
    /// transceiver.
    pub asleep_share: Option<f64>,
}

/// Reads the keys of a transceiver. Returns the transceiver that the scenario names (`None`: the
/// transceiver for the rate of each link), and the values that the scenario sets. `rates` are the
/// rates of the links, and `sleeps` means that these links go to sleep.
pub(super) fn read(s: &mut Section, rates: &[Rate], sleeps: bool) -> (Option<Phy>, OwnPhy) {
    const DOC: &str = "Type of the transceivers. With auto the rate of each link decides; a link \
                       that does not sleep may use the next faster type.";
    let mut choices = vec![("auto", None, "the type for the rate of each link")];
    choices.extend(KNOWN.iter().map(|(name, _, phy)| (*name, Some(*phy), "see the page on EEE")));
    let named = s.choice("phy", DOC, Some("auto"), &choices);
    let times: [(&'static str, &'static str); 2] = [
        ("wake_time", "Time a link needs to wake (Tw)."),
        (
            "sleep_time",
            "Time a link needs to fall asleep \
             (Ts).",
        ),
    ];
    let [wake, sleep] = times
        .map(|(name, doc)| s.find(key::<Span>(name, doc).optional("phy's").range("0 s", "100 ms")));
    let active: Option<Ratio> = s.find(
        key("active_w", "Power in W of a port that is awake, falling asleep or waking.")
            .optional("phy's")
            .range("0", "1000"),
    );
    let share: Option<Fraction> = s.find(
        key(
            "sleep_power",
            "Power of a sleeping port, with its refresh signals, as a share of \
                            active_w.",
        )
        .optional("phy's")
        .range("0", "1"),
    );
    let odd = rates.iter().find(|&&rate| !Phy::of_rate(rate).1);
    if let (true, None, Some(rate)) = (sleeps, named, odd) {
        s.demand(wake.is_some() && sleep.is_some(), &["phy"], || {
            let known: Vec<&str> = KNOWN.iter().map(|k| k.0).collect();
            format!(
                "has no energy-efficient transceivers for {rate} (auto): set phy to one of {}, or \
                 set wake_time and sleep_time",
                known.join(", ")
            )
        });
    }
    let (active_w, asleep_share) = (active.map(|w| w.0), share.map(|s| s.0));
    (named, OwnPhy { wake, sleep, active_w, asleep_share })
}
