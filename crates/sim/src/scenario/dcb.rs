//! Check of the log of PFC pauses against the settings of data-centre bridging.

use eastwest_network::config::PortSet;
use eastwest_network::dcb::DcbConfig;

/// Returns a note if pauses are logged although no port has PFC; otherwise `None`.
pub fn note_pauses(dcb: &DcbConfig, ports: &PortSet) -> Option<String> {
    (dcb.pfc.is_none() && *ports != PortSet::default()).then(|| {
        "measure.pauses names ports, but without [fabric.pfc] no port is paused: the table pauses \
         stays empty"
            .to_owned()
    })
}
