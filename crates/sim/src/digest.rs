//! The digest of a run, a SHA-256 hash that shows whether two runs treated every packet equally.
//! The digest covers every flow, job, task, round, transaction, MPI rank and MPI message when it
//! finishes, and at the end the counters of every port (with a running hash over the arrival or
//! loss of each packet) and the final simulated time.

use eastwest_engine::interrupt;
use eastwest_measure::flows::FlowRow;
use eastwest_network::link::Link;
use eastwest_types::{
    JobRecord, MpiMessage, MpiRank, PacketKind, TaskRecord, Time, TransactionRecord,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Returns packet counts by kind, with pure acknowledgements with and without ECE added up: digests
/// of earlier versions did not distinguish them.
fn kinds(counts: [u64; PacketKind::COUNT]) -> [u64; PacketKind::COUNT - 1] {
    let [data, retransmission, ack, ece_ack, syn, syn_ack, fin, datagram] = counts;
    [data, retransmission, ack + ece_ack, syn, syn_ack, fin, datagram]
}

/// State of the digest of a run, a SHA-256 hash over its results.
#[derive(Default, Serialize, Deserialize)]
pub struct Digest {
    #[serde(with = "state")]
    hash: Sha256,
}

impl Digest {
    fn words(&mut self, kind: u8, words: &[u64]) {
        self.hash.update([kind]);
        for w in words {
            self.hash.update(w.to_le_bytes());
        }
    }

    /// Adds to the digest a message that has arrived.
    pub fn flow(&mut self, f: &FlowRow) {
        let ends = u64::from(f.src.0) << 32 | u64::from(f.dst.0);
        let losses = u64::from(f.retransmits) << 32 | u64::from(f.timeouts);
        self.words(1, &[ends, f.bytes, f.start.0, f.finish.0, losses]);
    }

    /// Adds to the digest a finished job of workload number `workload`.
    pub fn job(&mut self, workload: usize, j: &JobRecord) {
        let id = (workload as u64) << 32 | u64::from(j.job);
        let tasks = u64::from(j.maps) << 32 | u64::from(j.reduces);
        let bytes = [j.input_bytes, j.shuffle_bytes, j.shuffle_local_bytes, j.output_bytes];
        self.words(2, &[id, j.submitted.0, j.started.0, j.finished.0, tasks]);
        self.words(2, &bytes);
        if j.failed.is_some() {
            self.words(2, &[1]);
        }
    }

    /// Adds to the digest a finished task of workload number `workload`.
    pub fn task(&mut self, workload: usize, t: &TaskRecord) {
        let id = (workload as u64) << 32 | u64::from(t.job);
        let task = (t.kind as u64) << 32 | u64::from(t.task);
        let place = u64::from(t.host.0) << 8 | t.locality as u64;
        let times = [t.assigned.0, t.started.0, t.input_done.0, t.finished.0];
        self.words(3, &[id, task, place, t.bytes_in, t.bytes_out]);
        self.words(3, &times);
    }

    /// Adds to the digest a finished round of a synchronized read. `workload` is the number of its
    /// workload.
    pub fn round(&mut self, workload: usize, round: u32, started: Time, finished: Time) {
        self.words(4, &[(workload as u64) << 32 | u64::from(round), started.0, finished.0]);
    }

    /// Adds to the digest a finished transaction of workload number `workload`.
    pub fn transaction(&mut self, workload: usize, t: &TransactionRecord) {
        let id = (workload as u64) << 32 | u64::from(t.number);
        self.words(8, &[id, u64::from(t.recorded), t.network.0, t.compute.0]);
        for call in &t.calls {
            self.words(8, &[call.sent.0, call.arrived.0, call.answered.0, call.done.0]);
        }
    }

    /// Adds to the digest a rank of an MPI program that has finished; `workload` is the number of
    /// the program's workload.
    pub fn mpi_rank(&mut self, workload: u16, r: &MpiRank) {
        let id = u64::from(workload) << 32 | u64::from(r.rank);
        self.words(12, &[id, u64::from(r.host.0), r.finished.0, r.sent.0, r.sent.1]);
    }

    /// Adds to the digest a received message between two MPI ranks; `workload` is the number of the
    /// program's workload.
    pub fn mpi_message(&mut self, workload: u16, m: &MpiMessage) {
        let ends = u64::from(m.from) << 32 | u64::from(m.to);
        let times = [m.sent.0, m.arrived.0, m.matched.0, m.received.0];
        self.words(13, &[u64::from(workload), ends, m.bytes]);
        self.words(13, &times);
    }

    /// Adds to the digest the counters of all ports and the final simulated time `clock`. Returns
    /// the digest of the run: 32 hexadecimal digits.
    pub fn finish(mut self, links: &[Link], clock: Time) -> String {
        for l in links {
            interrupt::steps(4);
            let c = l.counters();
            self.words(5, &[c.packets, c.bytes, c.trail, l.longest_wait().0]);
            self.words(5, &kinds(l.account().drops()));
            let marks = l.account().marks();
            if marks.iter().any(|n| *n > 0) {
                self.words(7, &kinds(marks));
            }
        }
        self.words(6, &[clock.0]);
        self.hash.finalize().iter().take(16).map(|b| format!("{b:02x}")).collect()
    }
}

/// Serialization of the state of an unfinished SHA-256 hash in checkpoints.
mod state {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use sha2::Sha256;
    use sha2::digest::common::hazmat::{SerializableState, SerializedState};

    pub fn serialize<S: Serializer>(hash: &Sha256, to: S) -> Result<S::Ok, S::Error> {
        hash.serialize().as_slice().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Sha256, D::Error> {
        let bytes = Vec::<u8>::deserialize(from)?;
        let state = SerializedState::<Sha256>::try_from(bytes.as_slice());
        let state = state.map_err(|_| Error::custom("the state of a hash has another length"))?;
        Sha256::deserialize(&state).map_err(|_| Error::custom("the saved hash state is invalid"))
    }
}
