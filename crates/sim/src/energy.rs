//! Energy of links, as columns and in the summary: what each used, and what it would have used awake
//! all the time or, for the same traffic, with transitions that take no time.

use crate::world::World;
use eastwest_measure::table::Column;
use eastwest_network::energy::Joules;
use eastwest_network::energy::eee::StateTimes;
use eastwest_types::{Span, Time};
use serde_json::{Value, json};

/// Energy and states of every link until now.
fn of_links(w: &World) -> Vec<(Joules, StateTimes)> {
    (0..w.fabric.links.len()).map(|link| w.fabric.energy_of(link, w.now)).collect()
}

/// Columns of the table `links`.
pub fn columns(w: &World) -> Vec<(&'static str, Column)> {
    let links = of_links(w);
    let joules =
        |of: &dyn Fn(&Joules) -> f64| Column::F64(links.iter().map(|l| of(&l.0)).collect());
    let times = |of: &dyn Fn(&StateTimes) -> Span| {
        Column::F64(links.iter().map(|l| of(&l.1).as_secs_f64()).collect())
    };
    vec![
        ("energy_j", joules(&|j| j.used)),
        ("energy_always_on_j", joules(&|j| j.always_on)),
        ("energy_ideal_j", joules(&|j| j.ideal)),
        ("awake_s", times(&|t| t.awake)),
        ("falling_asleep_s", times(&|t| t.falling)),
        ("asleep_s", times(&|t| t.asleep)),
        ("waking_s", times(&|t| t.waking)),
        ("wakes", Column::U64(links.iter().map(|l| l.1.wakes).collect())),
    ]
}

/// Sums over all links, those of hosts and those between switches.
pub fn summary(w: &World, bytes: u64) -> Value {
    let links = of_links(w);
    let hosts = w.fabric.graph.hosts;
    let sum = |of_hosts: Option<bool>| {
        let mut all = Joules::default();
        for ((joules, _), link) in links.iter().zip(&w.fabric.links) {
            if of_hosts.is_none_or(|wanted| wanted == (link.from.min(link.to) < hosts)) {
                all.used += joules.used;
                all.always_on += joules.always_on;
                all.ideal += joules.ideal;
            }
        }
        all
    };
    let one = |of_hosts| {
        let Joules { used, always_on, ideal } = sum(of_hosts);
        let over = |whole: f64| if whole > 0.0 { used / whole } else { 1.0 };
        json!({
            "total": used, "always_on": always_on, "ideal": ideal,
            "of_always_on": over(always_on), "of_ideal": over(ideal),
        })
    };
    let mut whole = one(None);
    let run_s = w.now.since(Time::ZERO).as_secs_f64();
    let used = whole["total"].as_f64().unwrap_or(0.0);
    whole["host_links"] = one(Some(true));
    whole["fabric_links"] = one(Some(false));
    whole["delay_product_js"] = (used * run_s).into();
    whole["per_gb"] = if bytes > 0 { (used / (bytes as f64 / 1e9)).into() } else { Value::Null };
    let jobs = w.records.jobs.len();
    whole["per_job"] = if jobs > 0 { (used / jobs as f64).into() } else { Value::Null };
    whole
}
