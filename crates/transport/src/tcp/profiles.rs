//! Profiles of `[tcp]`: named sets of values for keys that the scenario file does not give. Each
//! profile is a TOML file in `profiles/`, with the source of every value. Without a profile, keys
//! have their own defaults.

use crate::congestion::{BUILT_IN, CongestionKind};
use eastwest_settings::Section;
use toml::{Table, Value};

const LINUX: &str = include_str!("profiles/linux.toml");
const CLASSIC: &str = include_str!("profiles/classic.toml");
const NS2: &str = include_str!("profiles/ns2.toml");

/// Reads the key `profile` of `[tcp]`. The values of this profile apply to keys that the scenario
/// file does not give.
pub fn read(s: &mut Section) {
    let text = s.choice(
        "profile",
        "Set of defaults for the keys of this table that the file does not give.",
        Some("plain"),
        &[
            (
                "plain",
                "",
                "the rules of the RFCs with the parameters of Linux: the defaults in this table",
            ),
            (
                "classic",
                CLASSIC,
                "NewReno as common around 2008: no SACK, every ACK counts as one \
                                  segment",
            ),
            ("ns2", NS2, "ns-2's Agent/TCP/FullTcp (Reno) with the defaults of ns 2.35"),
            ("linux", LINUX, "the defaults of Linux 6.x"),
        ],
    );
    let mut rules: Table = text.parse().expect("a profile is TOML");
    let congestion = s.own("congestion").or(rules.get("congestion")).and_then(Value::as_str);
    let kind = BUILT_IN.iter().find(|(name, ..)| Some(*name) == congestion).map(|c| c.1);
    if !kind.is_some_and(CongestionKind::has_hystart_in_linux) {
        // In Linux, HyStart is a part of CUBIC (tcp_cubic.c). Reno, DCTCP and BBR have no HyStart.
        rules.remove("hystart");
    }
    if s.own("sack") == Some(&Value::Boolean(false)) {
        // Without SACK these mechanisms have no effect (Linux: `tcp_is_sack`), so they are off by
        // default.
        for name in ["rack", "tail_loss_probe", "dsack", "late_sacks"] {
            rules.remove(name);
        }
    }
    s.preset(rules);
}
