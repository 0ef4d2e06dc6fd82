//! `[fabric.switch_power]`: what switches draw apart from their links' transceivers.
//!
//! The model and its source are in [`crate::switch_power`].

use crate::switch_power::SwitchPower;
use eastwest_settings::quantity::Ratio;
use eastwest_settings::reader::{Section, key};
use eastwest_types::Rate;

/// Reads the table; without it switches draw nothing.
pub fn read(s: &mut Section) -> SwitchPower {
    let doc = "What switches draw, counted apart from links; without watts they are not counted.";
    s.table("switch_power", doc, |p| {
        let watts: [(&'static str, &'static str); 3] = [
            ("base_w", "Watts of every switch, whatever is plugged in."),
            (
                "port_w",
                "Watts of every port of a switch with a cable, beside active_w of its link.",
            ),
            ("lane_w", "Watts of every lane of such a port."),
        ];
        let [base_w, port_w, lane_w] = watts
            .map(|(name, doc)| p.get(key::<Ratio>(name, doc).default("0").range("0", "100000")).0);
        let lane_rate: Option<Rate> = p.find(
            key("lane_rate", "What a lane carries (IEEE 802.3 where absent).")
                .optional("25 Gbit/s where that divides the rate of a port, otherwise 10 Gbit/s")
                .range("1 Mbit/s", "1 Tbit/s"),
        );
        p.demand(lane_rate.is_none() || lane_w > 0.0, &["lane_rate", "lane_w"], || {
            "means nothing where a lane draws nothing: give lane_w".to_owned()
        });
        SwitchPower { base_w, port_w, lane_w, lane_rate }
    })
}
