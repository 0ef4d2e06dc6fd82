//! PFC pauses of selected ports: the table `pauses`. Each selected port has an equal share of the
//! rows, so that the size of the table is bounded and the rows of a port do not depend on other
//! ports.

use crate::scenario::PausesConfig;
use eastwest_measure::table;
use eastwest_measure::table::Table;
use eastwest_network::dcb::pause_log::{Pause, PauseLog};
use eastwest_network::fabric::Fabric;
use eastwest_types::Time;
use serde_json::{Value, json};

/// Starts the log of PFC pauses at the ports that `measure.pauses` names.
pub fn start(fabric: &mut Fabric, asked: &PausesConfig) {
    let chosen = |from, to| asked.ports.contains(from, to);
    let ports = fabric.links.iter().filter(|l| chosen(l.from, l.to)).count();
    let each = (asked.rows as usize / ports.max(1)).max(1);
    for link in fabric.links.iter_mut().filter(|l| chosen(l.from, l.to)) {
        link.log_pauses(PauseLog::new(each));
    }
}

/// Logged PFC pauses of all selected ports.
#[derive(Default)]
pub struct Pauses {
    /// Rows (number of the link, pause), ordered by link and begin of the pause.
    rows: Vec<(u32, Pause)>,
    left_out: u64,
}

impl Pauses {
    /// Removes and returns the logged PFC pauses of all ports; a pause in progress ends at `now`.
    pub fn take(fabric: &mut Fabric, now: Time) -> Pauses {
        let mut all = Pauses::default();
        for (number, link) in fabric.links.iter_mut().enumerate() {
            if let Some(log) = link.take_pauses(now) {
                all.rows.extend(log.pauses.into_iter().map(|pause| (number as u32, pause)));
                all.left_out += log.left_out;
            }
        }
        all.rows.sort_by_key(|(link, pause)| (*link, pause.began, pause.priority));
        all
    }

    /// Returns the section `pauses` of the summary: the number of rows, and the number of pauses
    /// left out because of the limit.
    pub fn summary(&self) -> Value {
        json!({ "rows": self.rows.len(), "left_out": self.left_out })
    }

    /// Returns the table of PFC pauses, `pauses`.
    pub fn table(&self) -> Table {
        PauseRows::of(&self.rows, ())
    }
}

table! {
    /// Pauses by [PFC](../mechanisms/pfc.md) of the ports that `measure.pauses` names, ordered by
    /// link, start and priority. The table has at most `measure.pauses_rows` rows; each port has an
    /// equal share of them, at least one row, for the pauses that ended first. If no share is full,
    /// the number of rows of a link and priority equals `pauses` in the table `pfc`, and their
    /// durations add up to `paused_s` there.
    pub PauseRows = "pauses" since 7
    of (link, pause) in &'a (u32, Pause), _at: ();

    /// number of the link into which the port sends
    link: u32 = *link;

    /// priority (802.1p) that was paused, 0 to 7
    priority: u32 = pause.priority;

    /// time at which the pause took effect; a frame in transmission at that time is completed
    began_s: seconds = pause.began;

    /// time at which the port could send again, or the end of the run
    until_s: seconds = pause.until;

    /// cause of the end of the pause: `released`: by an XON frame; `ran-out`: its time had expired;
    /// `not-yet`: it was still in effect at the end of the run
    ended: few = pause.ended.name();
}
