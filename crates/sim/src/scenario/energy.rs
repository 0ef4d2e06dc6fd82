//! Consequences of the energy settings of links for the rest of a scenario.

use eastwest_network::config::PortSet;
use eastwest_network::energy::EnergyConfig;
use eastwest_types::Span;

/// Returns a note if sleeping links may delay a packet and its ACK, on a path of `hops` links each,
/// by at least `min_rto`; otherwise `None`.
pub fn note(energy: &EnergyConfig, hops: u64, min_rto: Span) -> Option<String> {
    let (host, fabric) = (energy.host.policy.hold(), energy.fabric.policy.hold());
    let way =
        host.0.saturating_mul(2).saturating_add(fabric.0.saturating_mul(hops.saturating_sub(2)));
    let both = Span(way.saturating_mul(2));
    (both >= min_rto).then(|| {
        format!(
            "fabric.energy: sleeping links may delay a packet and its ACK by {} ms in total on \
             {hops} links in each direction. This is more than tcp.min_rto ({} ms): \
             retransmission timers may expire without any loss",
            both.as_us_f64() / 1000.0,
            min_rto.as_us_f64() / 1000.0
        )
    })
}

/// Returns a note if low-power idle is logged although no link falls asleep; otherwise `None`.
pub fn note_lpi(energy: &EnergyConfig, ports: &PortSet) -> Option<String> {
    let never = !energy.host.policy.falls_asleep() && !energy.fabric.policy.falls_asleep();
    (never && *ports != PortSet::default()).then(|| {
        "measure.lpi names ports, but no link falls asleep with this fabric.energy.kind: the \
         table lpi stays empty"
            .to_owned()
    })
}
