//! Pauses of chosen ports, one by one: the table `pauses`. Ports share its rows equally, so that it stays
//! bounded and says the same of a port whatever others do.

use crate::results::{names, seconds};
use crate::scenario::PausesConfig;
use eastwest_measure::table::{Column, Table};
use eastwest_network::dcb::pauses::{Ended, Pause, PauseLog};
use eastwest_network::fabric::Fabric;
use eastwest_types::Time;
use serde_json::{Value, json};

/// Logs the pauses of the ports that are asked for.
pub fn start(fabric: &mut Fabric, asked: &PausesConfig) {
    let chosen = |from, to| asked.ports.contains(from, to);
    let ports = fabric.links.iter().filter(|l| chosen(l.from, l.to)).count();
    let each = (asked.rows as usize / ports.max(1)).max(1);
    for link in fabric.links.iter_mut().filter(|l| chosen(l.from, l.to)) {
        link.log_pauses(PauseLog::new(each));
    }
}

/// What was logged.
#[derive(Default)]
pub struct Pauses {
    /// Links, with a pause each, by link and beginning.
    rows: Vec<(u32, Pause)>,
    left_out: u64,
}

impl Pauses {
    /// Takes all logs out of the links.
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

    /// For the summary.
    pub fn summary(&self) -> Value {
        json!({ "rows": self.rows.len(), "left_out": self.left_out })
    }

    /// The table `pauses`.
    pub fn table(&self) -> Table {
        let of = || self.rows.iter().map(|row| row.1);
        Table::new(
            "pauses",
            vec![
                ("link", Column::U32(self.rows.iter().map(|row| row.0).collect())),
                ("priority", Column::U32(of().map(|pause| u32::from(pause.priority)).collect())),
                ("began_s", seconds(of().map(|pause| pause.began))),
                ("until_s", seconds(of().map(|pause| pause.until))),
                (
                    "ended",
                    Column::Label(
                        of().map(|pause| pause.ended as u32).collect(),
                        names(Ended::ALL.map(Ended::name)),
                    ),
                ),
            ],
        )
    }
}
