//! Settings of the host that a script changes before its connection opens, and what they mean for the
//! simulated endpoint.

use crate::problem::{Problem, hint};
use crate::profile::Profile;
use crate::shell::{Setting, What};
use eastwest_transport::congestion::IN_LINUX;
use eastwest_transport::congestion::rules::{EcnRule, HyStartRule};
use eastwest_transport::tcp::config::TcpConfig;
use eastwest_transport::tcp::rules::RackRule;
use eastwest_types::Span;
use std::collections::BTreeMap;

/// The host under test before it has a connection.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The profile it started from.
    pub profile: Profile,
    /// The endpoint's settings.
    pub config: TcpConfig,
    /// Largest segment it announces.
    pub mss: u16,
    /// Whether it offers window scaling.
    pub window_scaling: bool,
    /// Largest receive buffer, bytes: gives the window scale.
    pub receive_buffer: u64,
    /// How often a SYN, or a SYN-ACK, is sent again.
    pub syn_retries: (u32, u32),
    /// What may be unsent before writes wait, bytes; `None` is no limit.
    pub notsent_lowat: Option<u32>,
    /// How long data may stay unacknowledged after it was first sent again.
    pub user_timeout: Option<Span>,
    /// Whether parts of segments wait for more.
    pub cork: bool,
    /// Files of zeroes with their sizes, bytes.
    pub files: BTreeMap<String, u64>,
    /// HyStart of CUBIC (Linux, `tcp_cubic.c`); other algorithms go without.
    hystart: HyStartRule,
}

/// What the public collection's `defaults.sh` sets, as far as it bears on a simulated endpoint.
const DEFAULTS: [(&str, &str); 14] = [
    ("tcp_rmem", "4096 540000 15728640"),
    ("tcp_wmem", "4096 262144 4194304"),
    ("tcp_timestamps", "1"),
    ("tcp_syn_retries", "5"),
    ("tcp_synack_retries", "5"),
    ("tcp_sack", "1"),
    ("tcp_slow_start_after_idle", "0"),
    ("tcp_ecn", "0"),
    // the classic profile goes without those below, so they are set for the other only
    ("tcp_congestion_control", "cubic"),
    ("tcp_frto", "2"),
    ("tcp_dsack", "1"),
    ("tcp_reordering", "3"),
    ("tcp_early_retrans", "4"),
    ("tcp_recovery", "1"),
];
/// How many of [`DEFAULTS`] hold for every profile.
const FOR_ALL: usize = 8;

/// Settings that make no difference to a simulated endpoint: what is
/// remembered between connections, and what it does not do at all.
const NO_MATTER: [&str; 21] = [
    "tcp_autocorking",
    "tcp_challenge_ack_limit",
    "tcp_early_demux",
    "tcp_ecn_option",
    "tcp_fack",
    "tcp_fastopen",
    "tcp_fastopen_key",
    "tcp_fin_timeout",
    "tcp_invalid_ratelimit",
    "tcp_limit_output_bytes",
    "tcp_max_syn_backlog",
    "tcp_mtu_probing",
    "tcp_no_metrics_save",
    "tcp_pacing_ca_ratio",
    "tcp_pacing_ss_ratio",
    "tcp_retries1",
    "tcp_syncookies",
    "tcp_tso_rtt_log",
    "tcp_tw_reuse",
    "tcp_wmem",
    "tcp_thin_linear_timeouts",
];
const MATTER: [&str; 22] = [
    "tcp_congestion_control",
    "tcp_dsack",
    "tcp_early_retrans",
    "tcp_ecn",
    "tcp_ecn_fallback",
    "tcp_frto",
    "tcp_min_tso_segs",
    "tcp_notsent_lowat",
    "tcp_recovery",
    "tcp_reordering",
    "tcp_retries2",
    "tcp_rmem",
    "tcp_rto_max_ms",
    "tcp_rto_min_us",
    "tcp_sack",
    "tcp_slow_start_after_idle",
    "tcp_syn_linear_timeouts",
    "tcp_syn_retries",
    "tcp_synack_retries",
    "tcp_timestamps",
    "tcp_tso_win_divisor",
    "tcp_window_scaling",
];

impl Setup {
    /// As the profile has it.
    pub fn new(profile: Profile, mss: u16) -> Setup {
        // a socket holds small segments back until TCP_NODELAY; hosts of scenarios set it
        let mut config = TcpConfig { nagle: true, ..profile.config() };
        // a kernel hands bursts down whatever its card can do; what is behind it is not seen here
        config.offload.on = profile == Profile::Linux;
        let hystart = config.rules.hystart;
        let retries = config.timers.syn_retries.unwrap_or(config.max_retries);
        Setup {
            profile,
            config,
            mss,
            window_scaling: true,
            receive_buffer: 6 << 20,
            syn_retries: (retries, 5),
            notsent_lowat: None,
            user_timeout: None,
            cork: false,
            files: BTreeMap::new(),
            hystart,
        }
    }

    /// The window scale it offers (Linux, `tcp_select_initial_window`): the largest receive buffer
    /// must fit into the field.
    pub fn window_scale(&self) -> u8 {
        if !self.window_scaling {
            return 0;
        }
        let space = self.receive_buffer.max(65_535);
        (space.ilog2().saturating_sub(15)).min(14) as u8
    }

    /// Carries a setting out.
    pub fn apply(&mut self, setting: &Setting) -> Result<(), Problem> {
        let wrong = |message: String| Problem::new(setting.place, message);
        match &setting.what {
            What::Defaults => {
                let known = if self.profile == Profile::Classic { FOR_ALL } else { DEFAULTS.len() };
                for (name, value) in &DEFAULTS[..known] {
                    self.sysctl(name, value).map_err(wrong)?;
                }
                Ok(())
            }
            What::Sysctl(name, value) => self.sysctl(name, value).map_err(wrong),
            What::InitialWindow(segments) => {
                self.config.initial_window = *segments;
                Ok(())
            }
            What::File(name, size) => {
                self.files.insert(name.clone(), *size);
                Ok(())
            }
            What::NoQueue => Err(wrong(
                "a queue that takes no packets from its own host is not simulated".into(),
            )),
            What::Pacing(on) => {
                self.config.rules.pacing = *on;
                Ok(())
            }
            What::Hystart(3) => {
                self.set_hystart(HyStartRule::Linux);
                Ok(())
            }
            What::Hystart(0) => {
                self.set_hystart(HyStartRule::Off);
                Ok(())
            }
            What::Hystart(n) => {
                Err(wrong(format!("hystart_detect = {n}: only 0 and 3 are simulated")))
            }
        }
    }

    /// Takes an algorithm by the name it has in Linux.
    pub fn set_congestion(&mut self, name: &str) -> Result<(), String> {
        let Some((_, kind)) = IN_LINUX.iter().find(|(known, _)| *known == name) else {
            let near = hint(name, IN_LINUX.iter().map(|(known, _)| *known));
            return Err(format!("the congestion control '{name}' is not simulated{near}"));
        };
        self.config.congestion = *kind;
        self.set_hystart(self.hystart);
        Ok(())
    }

    fn set_hystart(&mut self, of_cubic: HyStartRule) {
        self.hystart = of_cubic;
        let has = self.config.congestion.has_hystart_in_linux();
        self.config.rules.hystart = if has { of_cubic } else { HyStartRule::Off };
    }

    fn sysctl(&mut self, name: &str, value: &str) -> Result<(), String> {
        let config = &mut self.config;
        match name {
            "tcp_sack" => config.sack = flag(name, value)?,
            "tcp_timestamps" => config.timestamps = number(name, value, 0, 2)? > 0,
            "tcp_window_scaling" => self.window_scaling = flag(name, value)?,
            "tcp_congestion_control" => self.set_congestion(value)?,
            "tcp_slow_start_after_idle" => config.idle_restart = flag(name, value)?,
            "tcp_ecn" => {
                config.rules.ecn.rule = match number(name, value, 0, 2)? {
                    0 => EcnRule::Off,
                    1 => EcnRule::On,
                    _ => EcnRule::Accept,
                };
            }
            "tcp_ecn_fallback" => config.rules.ecn.fallback = flag(name, value)?,
            "tcp_early_retrans" => config.recovery.probes = number(name, value, 0, 4)? >= 3,
            "tcp_recovery" => {
                let on = number(name, value, 0, 1)? > 0;
                config.recovery.rack = if on { RackRule::Linux } else { RackRule::Off };
            }
            "tcp_frto" => config.recovery.frto = number(name, value, 0, 2)? > 0,
            "tcp_dsack" => config.recovery.dsack = flag(name, value)?,
            "tcp_reordering" => config.recovery.reordering = number(name, value, 1, 300)? as u32,
            "tcp_min_tso_segs" => {
                config.offload.min_segments = number(name, value, 1, 65_535)? as u32;
            }
            "tcp_tso_win_divisor" => {
                config.offload.window_divisor = number(name, value, 1, 65_535)? as u32;
            }
            "tcp_notsent_lowat" => {
                let limit = number(name, value, 0, u64::from(u32::MAX))? as u32;
                self.notsent_lowat = (limit < u32::MAX).then_some(limit);
            }
            "tcp_retries2" => config.max_retries = number(name, value, 1, 255)? as u32,
            "tcp_syn_retries" => self.syn_retries.0 = number(name, value, 1, 127)? as u32,
            "tcp_synack_retries" => self.syn_retries.1 = number(name, value, 0, 255)? as u32,
            "tcp_syn_linear_timeouts" => {
                config.timers.linear_syns = number(name, value, 0, 127)? as u32;
            }
            "tcp_rto_min_us" => config.min_rto = Span::from_us(number(name, value, 1, 10_000_000)?),
            "tcp_rto_max_ms" => config.max_rto = Span::from_ms(number(name, value, 1, 120_000)?),
            "tcp_rmem" => self.receive_buffer = largest(name, value)?,
            "tcp_wmem" => {
                largest(name, value)?;
            }
            other if NO_MATTER.contains(&other) => {}
            other => {
                let near = hint(other, MATTER.into_iter().chain(NO_MATTER));
                return Err(format!("the setting net.ipv4.{other} is not known{near}"));
            }
        }
        Ok(())
    }
}

fn number(name: &str, value: &str, least: u64, most: u64) -> Result<u64, String> {
    let parsed = value.trim().parse().ok().filter(|n| (least..=most).contains(n));
    parsed.ok_or_else(|| match least == most {
        true => format!("{name} = {value}: only {least} is simulated"),
        false => format!("{name} = {value}: it must be from {least} to {most}"),
    })
}

fn flag(name: &str, value: &str) -> Result<bool, String> {
    number(name, value, 0, 1).map(|n| n == 1)
}

/// The last of the three numbers of a buffer.
fn largest(name: &str, value: &str) -> Result<u64, String> {
    let numbers: Vec<Option<u64>> = value.split_whitespace().map(|n| n.parse().ok()).collect();
    match numbers[..] {
        [Some(a), Some(b), Some(c)] if a <= b && b <= c && c <= 1 << 30 => Ok(c),
        _ => Err(format!("{name} = {value}: it must be three numbers of bytes that do not fall")),
    }
}
