//! The two TCP profiles that scripts can choose, with the same values as in scenarios.

use eastwest_transport::tcp::config::TcpConfig;
use eastwest_transport::tcp::read_config::profile as tcp_profile;
use std::sync::OnceLock;

/// A TCP profile: a named set of settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Profile {
    /// Defaults of Linux 6.x.
    Linux,
    /// NewReno according to the RFCs, without later extensions.
    Classic,
}

/// TCP settings of each profile. They are parsed once, because a mutation test needs them thousands
/// of times.
static CONFIGS: [OnceLock<TcpConfig>; 2] = [OnceLock::new(), OnceLock::new()];

impl Profile {
    /// Names of profiles in scripts and on the command line.
    pub const NAMES: [(&'static str, Profile); 2] =
        [("linux", Profile::Linux), ("classic", Profile::Classic)];

    /// Returns the profile with the name `name`; `None` if there is none.
    pub fn named(name: &str) -> Option<Profile> {
        Profile::NAMES.iter().find(|p| p.0 == name).map(|p| p.1)
    }

    /// Returns the TCP settings of the profile: the settings of a scenario whose key `tcp.profile`
    /// has the name of this profile. Segment size, SACK and timestamps are negotiated with the
    /// other end later.
    pub fn config(self) -> TcpConfig {
        let (name, _) = Profile::NAMES[self as usize];
        let read = || tcp_profile(name).expect("a profile of scenarios");
        TcpConfig { segment: 1460, ..CONFIGS[self as usize].get_or_init(read).clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_known_by_their_names() {
        for (name, profile) in Profile::NAMES {
            assert_eq!(Profile::named(name), Some(profile));
            assert_eq!(profile.config().sack, profile == Profile::Linux);
        }
        assert_eq!(Profile::named("plain"), None);
        assert_eq!(tcp_profile("plane"), None);
    }
}
