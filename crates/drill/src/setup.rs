//! Settings of the host that a script changes before its connection opens, and their effects on the
//! simulated endpoint: sysctls, initial window, queueing discipline, files.

use crate::problem::{Problem, hint};
use crate::profile::Profile;
use crate::shell::{Setting, What};
use eastwest_transport::congestion::IN_LINUX;
use eastwest_transport::congestion::rules::{EcnRule, HyStartRule};
use eastwest_transport::tcp::config::TcpConfig;
use eastwest_transport::tcp::rules::RackRule;
use eastwest_types::Span;
use std::collections::BTreeMap;

/// Settings of the host under test, before its connection opens.
#[derive(Clone, Debug)]
pub struct Setup {
    /// TCP profile that the settings are based on.
    pub profile: Profile,
    /// TCP settings of the endpoint under test.
    pub config: TcpConfig,
    /// Maximum segment size in bytes that the endpoint announces.
    pub mss: u16,
    /// Whether the endpoint offers window scaling.
    pub window_scaling: bool,
    /// Largest receive buffer in bytes (`tcp_rmem`), from which the window scale follows.
    pub receive_buffer: u64,
    /// Maximum number of retransmissions of a SYN, and maximum number for a SYN-ACK.
    pub syn_retries: (u32, u32),
    /// Limit of unsent bytes above which writes wait (`tcp_notsent_lowat`); `None` for no limit.
    pub notsent_lowat: Option<u32>,
    /// Time for which data may stay unacknowledged after its first retransmission
    /// (`TCP_USER_TIMEOUT`); `None` for no limit.
    pub user_timeout: Option<Span>,
    /// Whether `TCP_CORK` is set, with which incomplete segments are held back.
    pub cork: bool,
    /// Files of zeroes that the script has created: sizes in bytes by name.
    pub files: BTreeMap<String, u64>,
    /// HyStart rule of CUBIC (Linux, `tcp_cubic.c`); other algorithms do not use it.
    hystart: HyStartRule,
}

/// Settings in `defaults.sh` of packetdrill's public scripts that concern a simulated endpoint.
const DEFAULTS: [(&str, &str); 14] = [
    ("tcp_rmem", "4096 540000 15728640"),
    ("tcp_wmem", "4096 262144 4194304"),
    ("tcp_timestamps", "1"),
    ("tcp_syn_retries", "5"),
    ("tcp_synack_retries", "5"),
    ("tcp_sack", "1"),
    ("tcp_slow_start_after_idle", "0"),
    ("tcp_ecn", "0"),
    // The classic profile lacks the following features, so these are set only for the Linux
    // profile.
    ("tcp_congestion_control", "cubic"),
    ("tcp_frto", "2"),
    ("tcp_dsack", "1"),
    ("tcp_reordering", "3"),
    ("tcp_early_retrans", "4"),
    ("tcp_recovery", "1"),
];
/// Number of [`DEFAULTS`], from the first on, that apply to every profile.
const FOR_ALL: usize = 8;

/// Kernel settings without effect on a simulated endpoint. They concern state that a kernel keeps
/// between connections, or features that the endpoint does not have.
const NO_MATTER: [&str; 20] = [
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
    "tcp_thin_linear_timeouts",
];

/// Function that applies a kernel setting to the settings of the host.
type Make = fn(&mut Setup, &Value) -> Result<(), String>;

/// Kernel settings with an effect, each with the function that applies it.
const SYSCTLS: [(&str, Make); 23] = [
    ("tcp_congestion_control", |s, v| s.set_congestion(v.text)),
    ("tcp_dsack", |s, v| v.flag().map(|on| s.config.recovery.dsack = on)),
    ("tcp_early_retrans", |s, v| v.number(0, 4).map(|n| s.config.recovery.probes = n >= 3)),
    ("tcp_ecn", |s, v| {
        let rules = [EcnRule::Off, EcnRule::On, EcnRule::Accept];
        v.number(0, 2).map(|n| s.config.rules.ecn.rule = rules[n as usize])
    }),
    ("tcp_ecn_fallback", |s, v| v.flag().map(|on| s.config.rules.ecn.fallback = on)),
    ("tcp_frto", |s, v| v.number(0, 2).map(|n| s.config.recovery.frto = n > 0)),
    ("tcp_min_tso_segs", |s, v| {
        v.number(1, 65_535).map(|n| s.config.offload.min_segments = n as u32)
    }),
    ("tcp_notsent_lowat", |s, v| {
        let limit = v.number(0, u64::from(u32::MAX))? as u32;
        s.notsent_lowat = (limit < u32::MAX).then_some(limit);
        Ok(())
    }),
    ("tcp_recovery", |s, v| {
        let rule = if v.flag()? { RackRule::Linux } else { RackRule::Off };
        s.config.recovery.rack = rule;
        Ok(())
    }),
    ("tcp_reordering", |s, v| v.number(1, 300).map(|n| s.config.recovery.reordering = n as u32)),
    ("tcp_retries2", |s, v| v.number(1, 255).map(|n| s.config.max_retries = n as u32)),
    ("tcp_rmem", |s, v| v.largest().map(|n| s.receive_buffer = n)),
    ("tcp_rto_max_ms", |s, v| v.number(1, 120_000).map(|n| s.config.max_rto = Span::from_ms(n))),
    ("tcp_rto_min_us", |s, v| v.number(1, 10_000_000).map(|n| s.config.min_rto = Span::from_us(n))),
    ("tcp_sack", |s, v| v.flag().map(|on| s.config.sack = on)),
    ("tcp_slow_start_after_idle", |s, v| v.flag().map(|on| s.config.idle_restart = on)),
    ("tcp_syn_linear_timeouts", |s, v| {
        v.number(0, 127).map(|n| s.config.timers.linear_syns = n as u32)
    }),
    ("tcp_syn_retries", |s, v| v.number(1, 127).map(|n| s.syn_retries.0 = n as u32)),
    ("tcp_synack_retries", |s, v| v.number(0, 255).map(|n| s.syn_retries.1 = n as u32)),
    ("tcp_timestamps", |s, v| v.number(0, 2).map(|n| s.config.timestamps = n > 0)),
    ("tcp_tso_win_divisor", |s, v| {
        v.number(1, 65_535).map(|n| s.config.offload.window_divisor = n as u32)
    }),
    ("tcp_window_scaling", |s, v| v.flag().map(|on| s.window_scaling = on)),
    ("tcp_wmem", |_, v| v.largest().map(|_| ())),
];

impl Setup {
    /// Returns the settings of a TCP profile, for a host that announces an MSS of `mss` bytes.
    pub fn new(profile: Profile, mss: u16) -> Setup {
        // A socket uses Nagle's algorithm until TCP_NODELAY is set; hosts of scenarios set it.
        let mut config = TcpConfig { nagle: true, ..profile.config() };
        // Linux hands bursts to any network card. The simulated endpoint does not see how they are
        // split into segments later.
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

    /// Returns the window scale (shift count) that the endpoint offers (Linux,
    /// `tcp_select_initial_window`). With it, the largest receive buffer fits into the window
    /// field.
    pub fn window_scale(&self) -> u8 {
        if !self.window_scaling {
            return 0;
        }
        let space = self.receive_buffer.max(65_535);
        (space.ilog2().saturating_sub(15)).min(14) as u8
    }

    /// Applies a setting of the script. Returns an error if the setting is not simulated, or if its
    /// value is not allowed.
    pub fn apply(&mut self, setting: &Setting) -> Result<(), Problem> {
        let wrong = |message: String| Problem::new(setting.place, message);
        match &setting.what {
            What::Defaults => {
                let known = if self.profile == Profile::Classic { FOR_ALL } else { DEFAULTS.len() };
                for (name, value) in &DEFAULTS[..known] {
                    self.sysctl(name, value).map_err(wrong)?;
                }
            }
            What::Sysctl(name, value) => self.sysctl(name, value).map_err(wrong)?,
            What::InitialWindow(segments) => self.config.initial_window = *segments,
            What::File(name, size) => drop(self.files.insert(name.clone(), *size)),
            What::NoQueue => {
                let message = "a queue discipline that drops all packets of its own host is not \
                               simulated: remove this command";
                return setting.place.fail(message);
            }
            What::Pacing(on) => self.config.rules.pacing = *on,
            What::Hystart(3) => self.set_hystart(HyStartRule::Linux),
            What::Hystart(0) => self.set_hystart(HyStartRule::Off),
            What::Hystart(n) => {
                let message = format!("hystart_detect = {n}: only 0 and 3 are simulated");
                return setting.place.fail(message);
            }
        }
        Ok(())
    }

    /// Sets the congestion control algorithm by its name in Linux. Returns an error message if it
    /// is not simulated.
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

    fn sysctl(&mut self, name: &str, text: &str) -> Result<(), String> {
        if let Some((_, make)) = SYSCTLS.iter().find(|known| known.0 == name) {
            return make(self, &Value { name, text });
        }
        if NO_MATTER.contains(&name) {
            return Ok(());
        }
        let near = hint(name, SYSCTLS.map(|known| known.0).into_iter().chain(NO_MATTER));
        Err(format!("the setting net.ipv4.{name} is unknown{near}"))
    }
}

/// Name and value of a kernel setting, as the script gives them.
struct Value<'a> {
    name: &'a str,
    text: &'a str,
}

impl Value<'_> {
    fn number(&self, least: u64, most: u64) -> Result<u64, String> {
        let parsed = self.text.trim().parse().ok().filter(|n| (least..=most).contains(n));
        parsed.ok_or_else(|| self.wrong(&format!("a whole number from {least} to {most}")))
    }

    fn flag(&self) -> Result<bool, String> {
        self.number(0, 1).map(|n| n == 1)
    }

    /// Returns the last of the three numbers of a buffer setting (minimum, default, maximum).
    fn largest(&self) -> Result<u64, String> {
        let numbers: Vec<Option<u64>> =
            self.text.split_whitespace().map(|n| n.parse().ok()).collect();
        match numbers[..] {
            [Some(a), Some(b), Some(c)] if a <= b && b <= c && c <= 1 << 30 => Ok(c),
            _ => Err(self.wrong("three numbers of bytes in ascending order, at most 1073741824")),
        }
    }

    fn wrong(&self, wanted: &str) -> String {
        format!("{} = {}: it must be {wanted}", self.name, self.text)
    }
}
