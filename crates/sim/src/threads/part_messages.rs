//! Messages between the parts of a partitioned run.

use crate::part_state::Written;
use crate::world::World;
use eastwest_network::partition::Mail;

/// Messages from one part of a partitioned run to another one.
#[derive(Default)]
pub struct PartMessages {
    /// Messages of workloads that were written to endpoints of the other part.
    written: Vec<Written>,
    /// Packets and promises (announced deliveries).
    mail: Mail,
}

impl PartMessages {
    /// Whether a part of the run has messages to the part number `to`.
    pub fn are_in(from: &World, to: usize) -> bool {
        let written = from.part_state().written.get(to);
        !from.partition().out[to].is_empty() || written.is_some_and(|all| !all.is_empty())
    }

    /// Takes the messages of a part of the run to the part number `to`. Those taken before must have
    /// been delivered.
    pub fn take(&mut self, from: &mut World, to: usize) {
        std::mem::swap(&mut self.mail, &mut from.partition_mut().out[to]);
        if let Some(written) = from.part_state_mut().written.get_mut(to) {
            std::mem::swap(&mut self.written, written);
        }
    }

    /// Delivers the messages to a part of the run.
    pub fn deliver(&mut self, to: &mut World) {
        to.receive_written(&mut self.written);
        to.receive_waits(&mut self.mail.waits);
        to.receive_lost_frames(&mut self.mail.lost_frames);
        if !self.mail.is_empty() {
            to.site.network.fabric.receive(&mut self.mail, &mut to.site.network.sources);
        }
    }
}
