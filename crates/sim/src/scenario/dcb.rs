//! What data-centre bridging means for the rest of a scenario.

use eastwest_network::config::PortSet;
use eastwest_network::dcb::DcbConfig;

/// What is asked to be logged of ports that nobody pauses.
pub fn note_pauses(dcb: &DcbConfig, ports: &PortSet) -> Option<String> {
    (dcb.pfc.is_none() && *ports != PortSet::default()).then(|| {
        "measure.pauses names ports, but nothing is paused without [fabric.pfc]: the table pauses stays \
         empty"
            .to_owned()
    })
}
