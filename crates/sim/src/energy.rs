//! Energy of links for tables, time series and summary: the energy used, the energy that always-on
//! links would use for equal traffic, and the energy of ideal links whose transitions take no time.

use crate::network::Network;
use crate::switch_power::SwitchPower;
use eastwest_measure::power::Used;
use eastwest_network::energy::Joules;
use eastwest_network::energy::eee::StateTimes;
use eastwest_network::fabric::Fabric;
use eastwest_types::Time;
use serde_json::{Value, json};

/// Returns, for every link, the energy in joules and the time that its transceiver spent in each
/// state, since the begin of the run.
pub fn of_links(network: &Network) -> Vec<(Joules, StateTimes)> {
    let Network { fabric, now, .. } = network;
    (0..fabric.links.len()).map(|link| fabric.energy_of(link, *now)).collect()
}

fn used((joules, times): &(Joules, StateTimes)) -> Used {
    Used {
        joules: joules.used,
        always_on_j: joules.always_on,
        ideal_j: joules.ideal,
        awake_s: times.awake.as_secs_f64(),
        falling_s: times.falling.as_secs_f64(),
        asleep_s: times.asleep.as_secs_f64(),
        waking_s: times.waking.as_secs_f64(),
    }
}

/// Returns, for every tier of links, the energy in joules and the seconds that its transceivers
/// spent in each state, from the begin of the run until `now`. `tier_of_link` has the tier number
/// of every link.
pub fn by_tier(fabric: &Fabric, now: Time, tier_of_link: &[u8], tiers: usize) -> Vec<Used> {
    let mut sums = vec![Used::default(); tiers];
    for (link, &tier) in tier_of_link.iter().enumerate() {
        sums[usize::from(tier)] += used(&fabric.energy_of(link, now));
    }
    sums
}

/// Energy, times in power states and number of wake-ups, summed over links.
#[derive(Default)]
struct Sum {
    used: Used,
    wakes: u64,
}

impl Sum {
    /// Returns sums over the links of hosts (`of_hosts` is true), over links between switches
    /// (false), or over all links (`None`).
    fn over(fabric: &Fabric, links: &[(Joules, StateTimes)], of_hosts: Option<bool>) -> Sum {
        let hosts = fabric.graph.hosts;
        let mut sum = Sum::default();
        for (energy, link) in links.iter().zip(&fabric.links) {
            if of_hosts.is_none_or(|wanted| wanted == (link.from.min(link.to) < hosts)) {
                sum.used += used(energy);
                sum.wakes += energy.1.wakes;
            }
        }
        sum
    }

    fn summary(&self) -> Value {
        let u = &self.used;
        json!({
            "total": u.joules, "always_on": u.always_on_j, "ideal": u.ideal_j,
            "of_always_on": share(u.joules, u.always_on_j), "of_ideal": share(u.joules, u.ideal_j),
            "awake_s": u.awake_s, "falling_asleep_s": u.falling_s, "asleep_s": u.asleep_s,
            "waking_s": u.waking_s, "wakes": self.wakes,
        })
    }
}

/// Returns `part` as a fraction of `whole`; 1 if `whole` is 0.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 1.0 }
}

/// Returns the section `energy_j` of the summary: energy of all links, of links of hosts, of links
/// between switches, and of switches. The energy of links per gigabyte and per job is computed with
/// `bytes`, the payload that has arrived, and `jobs`, the number of finished jobs.
pub fn summary(
    network: &Network,
    switch_power: &SwitchPower,
    (bytes, jobs): (u64, usize),
) -> Value {
    let links = of_links(network);
    let [all, hosts, fabric] = [None, Some(true), Some(false)]
        .map(|of_hosts| Sum::over(&network.fabric, &links, of_hosts));
    let run_s = network.now.since(Time::ZERO).as_secs_f64();
    let Used { joules: used, always_on_j: always_on, ideal_j: ideal, .. } = all.used;
    let switches = switch_power.joules(&network.fabric.graph, run_s);
    let with = |joules: f64| joules + switches.total();
    let mut whole = all.summary();
    whole["host_links"] = hosts.summary();
    whole["fabric_links"] = fabric.summary();
    whole["delay_product_js"] = (used * run_s).into();
    whole["per_gb"] = if bytes > 0 { (used / (bytes as f64 / 1e9)).into() } else { Value::Null };
    whole["per_job"] = if jobs > 0 { (used / jobs as f64).into() } else { Value::Null };
    whole["switches"] = switches.summary();
    whole["with_switches"] = json!({
        "total": with(used), "of_always_on": share(with(used), with(always_on)),
        "of_ideal": share(with(used), with(ideal)),
    });
    whole
}

/// Returns the mean power of all links and switches since the begin of the run, in watts; 0 at
/// simulated time 0.
pub fn mean_watts(network: &Network, switch_power: &SwitchPower) -> f64 {
    let run_s = network.now.since(Time::ZERO).as_secs_f64();
    let links = Sum::over(&network.fabric, &of_links(network), None).used.joules;
    let switches = switch_power.joules(&network.fabric.graph, run_s).total();
    if run_s > 0.0 { (links + switches) / run_s } else { 0.0 }
}
