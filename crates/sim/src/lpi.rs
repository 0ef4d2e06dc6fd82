//! Periods of low-power idle (LPI) of selected ports: the table `lpi`. Each selected port has an
//! equal share of the rows, so that the size of the table is bounded and the rows of a port do not
//! depend on other ports.

use crate::scenario::MeasureConfig;
use eastwest_measure::table;
use eastwest_measure::table::Table;
use eastwest_network::energy::eee::{LpiLog, LpiPeriod};
use eastwest_network::fabric::Fabric;
use eastwest_types::Time;
use serde_json::{Value, json};

/// Starts the log of low-power idle (LPI) periods at the ports that `measure.lpi` names and whose
/// links sleep.
pub fn start(fabric: &mut Fabric, measure: &MeasureConfig) {
    let lpi = &measure.lpi;
    let chosen = |from, to| lpi.ports.contains(from, to);
    let sleeping = fabric.links.iter().filter(|l| chosen(l.from, l.to) && l.sleeps_at_all());
    let each = (lpi.rows as usize / sleeping.count().max(1)).max(1);
    let until = lpi.until.map_or(Time::NEVER, |until| Time::ZERO + until);
    for link in fabric.links.iter_mut().filter(|l| chosen(l.from, l.to)) {
        link.log_lpi(LpiLog::new(each, (Time::ZERO + lpi.from, until)));
    }
}

/// Logged low-power idle (LPI) periods of all selected ports.
#[derive(Default)]
pub struct Naps {
    rows: Vec<(u32, LpiPeriod)>,
    left_out: u64,
}

impl Naps {
    /// Removes and returns the logged low-power idle (LPI) periods of all links; a period in
    /// progress ends at `now`.
    pub fn take(fabric: &mut Fabric, now: Time) -> Naps {
        let mut naps = Naps::default();
        for (number, link) in fabric.links.iter_mut().enumerate() {
            if let Some(log) = link.take_lpi_log(now) {
                naps.rows.extend(log.periods.into_iter().map(|nap| (number as u32, nap)));
                naps.left_out += log.left_out;
            }
        }
        naps
    }

    /// Returns the section `lpi` of the summary: the number of rows, and the number of periods left
    /// out because of the limit.
    pub fn summary(&self) -> Value {
        json!({ "rows": self.rows.len(), "left_out": self.left_out })
    }

    /// Returns the table `lpi` of low-power idle periods.
    pub fn table(&self) -> Table {
        Lpi::of(&self.rows, ())
    }
}

table! {
    /// Low-power idle periods of the links whose ports `measure.lpi` names, ordered by link and
    /// time. The table has at most `measure.lpi_rows` rows; each port has an equal share of them,
    /// at least one row, for its first periods. A period that lasts beyond the run ends with the
    /// run. Periods are those of one direction, even with `both_directions`; `links` and `power`
    /// then count only the time in which both directions sleep.
    pub Lpi = "lpi" since 5
    of (link, nap) in &'a (u32, LpiPeriod), _at: ();

    /// number of the link
    link: u32 = *link;

    /// time at which the link began to fall asleep
    falls_asleep_s: seconds = nap.falls;

    /// time at which the link was asleep
    asleep_s: seconds = nap.asleep;

    /// time at which the link began to wake up
    wakes_s: seconds = nap.wakes;

    /// time at which the link was awake again
    awake_s: seconds = nap.awake;
}
