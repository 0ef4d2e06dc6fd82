//! The profiles of dialogues are those of scenarios.

use eastwest_drill::profile::Profile;
use eastwest_sim::scenario::{Context, read};

const SCENARIO: &str = "schema = 1
[fabric]
kind = 'leaf-spine'
leaves = 2
hosts_per_leaf = 2
spines = 1
host_rate = '1 Gbit/s'
uplink_rate = '1 Gbit/s'
[[workload]]
name = 'any'
kind = 'all-to-all'
bytes = '10 KB'
";

#[test]
fn profiles_are_those_of_scenarios() {
    for (name, profile) in Profile::NAMES {
        let text = format!("{SCENARIO}[tcp]\nprofile = '{name}'\n");
        let scenario = read(&text, &Context::default(), &[]).unwrap();
        let mut config = profile.config();
        // agreed on in the handshake
        config.segment = scenario.tcp.segment;
        // scenarios spell out what `None` stands for
        config.timers.syn_retries = config.timers.syn_retries.or(Some(config.max_retries));
        assert_eq!(config, scenario.tcp, "{name}");
    }
}
