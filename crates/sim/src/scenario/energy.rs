//! Checks of the energy settings of links against the rest of a scenario.

use eastwest_network::config::PortSet;
use eastwest_network::energy::{EnergyConfig, LinkRates};
use eastwest_types::Span;

/// Returns a note if sleeping links may delay a packet and its ACK, on paths of `hops` links each,
/// by at least `min_rto` in total; otherwise `None`.
pub fn note(energy: &EnergyConfig, hops: u64, min_rto: Span) -> Option<String> {
    let (host, fabric) = (energy.host.policy.hold(), energy.fabric.policy.hold());
    let way =
        host.0.saturating_mul(2).saturating_add(fabric.0.saturating_mul(hops.saturating_sub(2)));
    let both = Span(way.saturating_mul(2));
    (both >= min_rto).then(|| {
        format!(
            "fabric.energy: sleeping links may delay a packet and its ACK by {} ms in total on \
             {hops} links in each direction. This is not less than tcp.min_rto ({} ms): \
             retransmission timers may expire without any loss",
            both.as_us_f64() / 1000.0,
            min_rto.as_us_f64() / 1000.0
        )
    })
}

/// Returns a note for each group of links (of hosts, of switches) whose configured transceiver is
/// made for another rate than that of the links.
pub fn note_phys(energy: &EnergyConfig, rates: &LinkRates) -> Vec<String> {
    [("hosts", &energy.host, &rates.host), ("switches", &energy.fabric, &rates.fabric)]
        .into_iter()
        .filter_map(|(whose, class, rates)| {
            let (name, made_for) = class.phy?.known()?;
            let other = rates.iter().find(|rate| **rate != made_for)?;
            Some(format!(
                "fabric.energy: phy = \"{name}\" is made for {made_for}, but a link of {whose} has \
                 {other}: times and powers are those of {made_for}"
            ))
        })
        .collect()
}

/// Returns a note if low-power idle is logged although no link can fall asleep; otherwise `None`.
pub fn note_lpi(energy: &EnergyConfig, ports: &PortSet) -> Option<String> {
    let never = !energy.host.policy.falls_asleep() && !energy.fabric.policy.falls_asleep();
    (never && *ports != PortSet::default()).then(|| {
        "measure.lpi names ports, but no link falls asleep with this fabric.energy.kind: the \
         table lpi stays empty"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Context, read};

    #[test]
    fn transceivers_for_another_rate_are_said() {
        let notes = |energy: &str| {
            let text = format!(
                "schema = 1\n[fabric]\nkind = 'star'\nhosts = 2\nhost_rate = '10 Gbit/s'\n{energy}\n\
                 [[workload]]\nname = 'all'\nkind = 'all-to-all'\nbytes = '1 MB'"
            );
            read(&text, &Context::default(), &[]).unwrap_or_else(|p| panic!("{p:#?}")).notes
        };
        let named = |phy: &str| notes(&format!("energy = {{ kind = 'standard', phy = '{phy}' }}"));
        assert_eq!(named("10GBASE-T"), Vec::<String>::new());
        assert!(
            named("1000BASE-T")[0]
                .contains("is made for 1 Gbit/s, but a link of hosts has 10 Gbit/s")
        );
    }
}
