//! Sleep policy of links whose transitions need no time.

use super::eee::StateTimes;
use super::policy::LinkSettings;
use eastwest_settings::Section;
use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// Policy of a link whose transitions need neither time nor energy. This policy yields a lower
/// bound of the energy for given traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ideal;

impl LinkSettings for Ideal {
    const NAME: &'static str = "ideal";
    const DOC: &'static str = "the link sleeps and wakes in no time: a lower bound of the energy";

    fn read(_: &mut Section) -> Ideal {
        Ideal
    }

    fn states(&self, run: Span, busy: Span) -> StateTimes {
        StateTimes { awake: busy, asleep: Span(run.0 - busy.0), ..StateTimes::default() }
    }
}
