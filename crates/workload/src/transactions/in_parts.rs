//! Transactions in the parts of a partitioned run (one run on several threads). Each part executes the
//! components and clients on its own hosts.
//!
//! All parts know the arrivals of all transactions, which do not depend on the network. A part creates
//! the state of a transaction when one of its hosts makes or answers a call. It knows the times that
//! its hosts observe: of sending and of the response for calls that they make, of arrival and of
//! answering for calls that they answer. After the run, the times of all parts are united, and the
//! critical path is followed.

use super::replay::Transactions;
use super::running::{Running, step_of};
use eastwest_types::HostId;

impl Transactions {
    /// Begins to execute only the components and clients on hosts for which `owns` is true.
    pub fn become_part(&mut self, owns: &dyn Fn(HostId) -> bool) {
        let all = self.hosts().iter().chain(&self.config.clients);
        let hosts = all.map(|host| host.0 + 1).max().unwrap_or(0);
        self.own = Some((0..hosts).map(|host| owns(HostId(host))).collect());
    }

    /// Whether this part of a partitioned run, or the undivided run, executes a host.
    pub(super) fn acts_at(&self, host: HostId) -> bool {
        self.own.as_ref().is_none_or(|own| own[host.0 as usize])
    }

    /// Whether the wake-up with this token is for a step of a call. Otherwise a transaction arrives,
    /// which all parts of a partitioned run count.
    pub fn is_step(&self, token: u64) -> bool {
        step_of(token).is_some()
    }

    /// Whether, after the parts were united, all calls of a transaction are done.
    pub fn is_done(&self, number: u32) -> bool {
        self.running.get(&number).is_some_and(|running| running.left == 0)
    }

    /// Makes this part of a partitioned run undivided again, after its end: takes over what the part
    /// `other` has observed.
    pub fn unite(&mut self, other: &mut Transactions) {
        self.own = None;
        self.completed += other.completed;
        for (number, theirs) in std::mem::take(&mut other.running) {
            match self.running.get_mut(&number) {
                Some(mine) => mine.unite(theirs),
                None => _ = self.running.insert(number, theirs),
            }
        }
    }
}

impl Running {
    /// Takes over what another part has observed of this transaction. A time that a part has not
    /// observed is zero there.
    fn unite(&mut self, other: Running) {
        self.left += other.left;
        for (mine, theirs) in self.calls.iter_mut().zip(other.calls) {
            mine.sent = mine.sent.max(theirs.sent);
            mine.arrived = mine.arrived.max(theirs.arrived);
            mine.answered = mine.answered.max(theirs.answered);
            mine.done = mine.done.max(theirs.done);
        }
        for (mine, theirs) in self.work.iter_mut().zip(other.work) {
            for (mine, theirs) in mine.queued.iter_mut().zip(theirs.queued) {
                *mine = (*mine).max(theirs);
            }
        }
    }
}
