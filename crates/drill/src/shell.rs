//! Shell commands in back-ticks: the settings in them are interpreted, and no command is executed.
//!
//! Supported are `sysctl name=value`, `defaults.sh` and `set_sysctls.py` of packetdrill's public
//! scripts with their documented meaning, queueing disciplines of the test device, the HyStart
//! parameter of CUBIC, the initial window of a route, and files of zeroes. Any other command fails
//! the script.

use crate::problem::{Place, Problem};

/// A setting of the host that a shell command of the script makes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Line and column of the setting in the script.
    pub place: Place,
    /// Kind and value of the setting of the host.
    pub what: What,
}

/// Kind and value of a setting of the host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// All settings in `defaults.sh` of packetdrill's public scripts.
    Defaults,
    /// Kernel setting: its name below `net.ipv4`, and its value.
    Sysctl(String, String),
    /// Queueing discipline of the host: true with pacing (`fq`), false without.
    Pacing(bool),
    /// Queueing discipline that accepts no packets of the host (`pfifo limit 0`).
    NoQueue,
    /// Signals by which CUBIC's HyStart ends slow start: 1 ACK trains, 2 delay, 3 both, 0 none.
    Hystart(u8),
    /// Initial congestion window of a route, in segments.
    InitialWindow(u32),
    /// File of zeroes: its name, and its size in bytes.
    File(String, u64),
}

/// A word of a shell command, with its line and column.
#[derive(Clone, Debug)]
struct Word {
    text: String,
    place: Place,
}

/// Returns the settings that shell commands make. `text`: text between the back-ticks; `place`:
/// line and column of the first back-tick.
pub fn settings(text: &str, place: Place) -> Result<Vec<Setting>, Problem> {
    let mut all = Vec::new();
    for command in commands(text, place)? {
        understand(&command, &mut all)?;
    }
    Ok(all)
}

fn understand(command: &[Word], all: &mut Vec<Setting>) -> Result<(), Problem> {
    let [first, rest @ ..] = command else { return Ok(()) };
    let unknown = || {
        Problem::new(
            first.place,
            format!(
                "the command '{}' is not supported (commands are interpreted, never executed; \
                 supported are sysctl, defaults.sh, set_sysctls.py, tc qdisc, ip route … \
                 initcwnd, echo to hystart_detect, and dd of zeroes)",
                command.iter().map(|w| w.text.as_str()).collect::<Vec<_>>().join(" ")
            ),
        )
    };
    let name = first.text.rsplit('/').next().unwrap_or("");
    let plain: Vec<&str> = rest.iter().map(|w| w.text.as_str()).collect();
    let mut set = |place, what| all.push(Setting { place, what });
    match name {
        "defaults.sh" => set(first.place, What::Defaults),
        "sysctl" | "set_sysctls.py" => {
            for word in rest.iter().filter(|w| !["-q", "-e", "-w", "-qw"].contains(&&*w.text)) {
                let what = sysctl(&word.text).ok_or_else(|| {
                    let message =
                        format!("'{}' is not a setting of the form net.ipv4.NAME=VALUE", word.text);
                    Problem::new(word.place, message)
                })?;
                set(word.place, what);
            }
        }
        "tc" => set(first.place, queue(&plain).ok_or_else(unknown)?),
        "ip" => match plain[..] {
            ["tcp_metrics", "flush", "all"] => {}
            ["route", "change" | "replace", .., "initcwnd", n] => {
                let n = n.parse().ok().filter(|n| (1..=1000).contains(n)).ok_or_else(unknown)?;
                set(first.place, What::InitialWindow(n));
            }
            _ => return Err(unknown()),
        },
        "echo" => match plain[..] {
            [n, ">", "/sys/module/tcp_cubic/parameters/hystart_detect"] => {
                let n = n.parse().ok().filter(|n| *n <= 3).ok_or_else(unknown)?;
                set(first.place, What::Hystart(n));
            }
            _ => return Err(unknown()),
        },
        // `rm` of a file is ignored: every script starts without files.
        "rm" if matches!(plain[..], ["-f", _]) => {}
        "dd" => set(first.place, zeroes(&plain).ok_or_else(unknown)?),
        // Offload of the test device has no effect: an expected long packet matches a run of
        // segments.
        "ethtool" => {}
        // This script restores what set_sysctls.py has changed. It is ignored, since every script
        // starts with the defaults.
        _ if first.text.starts_with("/tmp/sysctl_restore_") => {}
        _ => return Err(unknown()),
    }
    Ok(())
}

/// Parses `dd if=/dev/zero of=… bs=… count=…`. Returns the file that the command creates.
fn zeroes(words: &[&str]) -> Option<What> {
    let value = |name: &str| words.iter().find_map(|w| w.strip_prefix(name)?.strip_prefix('='));
    let size = |name: &str| value(name)?.parse::<u32>().ok().map(u64::from);
    let file = value("of").filter(|_| value("if") == Some("/dev/zero"))?;
    Some(What::File(file.to_string(), size("bs")? * size("count")?))
}

fn queue(words: &[&str]) -> Option<What> {
    match words {
        ["qdisc", "replace" | "add", "dev", _, "root", "fq"] => Some(What::Pacing(true)),
        ["qdisc", "replace" | "add", "dev", _, "root", "pfifo", "limit", "0"] => {
            Some(What::NoQueue)
        }
        ["qdisc", "replace" | "add", "dev", _, "root", "pfifo" | "pfifo_fast", ..] => {
            Some(What::Pacing(false))
        }
        _ => None,
    }
}

/// Parses a kernel setting: `net.ipv4.name=value`, `net/ipv4/name=value` or
/// `/proc/sys/net/ipv4/name=value`.
fn sysctl(text: &str) -> Option<What> {
    let (name, value) = text.split_once('=')?;
    let name = name.strip_prefix("/proc/sys/").unwrap_or(name).replace('/', ".");
    let name = name.strip_prefix("net.ipv4.")?;
    Some(What::Sysctl(name.to_string(), value.to_string()))
}

/// Returns the words of each command. Redirections to `/dev/null` are omitted.
fn commands(text: &str, place: Place) -> Result<Vec<Vec<Word>>, Problem> {
    let mut cursor = crate::lexer::Cursor::new(text, place);
    cursor.place.column += 1;
    let mut all = vec![Vec::new()];
    while let Some(c) = cursor.peek() {
        if c == '#' {
            cursor.take_while(|c| c != '\n');
        } else if c == '\n' || c == ';' {
            cursor.advance();
            all.push(Vec::new());
        } else if cursor.sees("\\\n") {
            cursor.skip(2);
        } else if c.is_whitespace() {
            cursor.advance();
        } else {
            let place = cursor.place;
            let text = word(&mut cursor)?;
            if let Some(command) = all.last_mut() {
                command.push(Word { text, place });
            }
        }
    }
    for command in &mut all {
        let nowhere = command.windows(2).position(|w| w[0].text == ">" && w[1].text == "/dev/null");
        if let Some(at) = nowhere {
            command.truncate(at);
        }
    }
    Ok(all)
}

fn word(cursor: &mut crate::lexer::Cursor<'_>) -> Result<String, Problem> {
    let mut text = String::new();
    while let Some(c) = cursor.peek() {
        if c.is_whitespace() || c == ';' {
            break;
        }
        cursor.advance();
        match c {
            '"' => text.push_str(cursor.take_to("\"", "a text")?),
            '\'' => text.push_str(cursor.take_to("'", "a text")?),
            c => text.push(c),
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(text: &str) -> Vec<What> {
        let all = settings(text, Place { line: 1, column: 1 }).unwrap();
        all.into_iter().map(|s| s.what).collect()
    }

    fn sysctl(name: &str, value: &str) -> What {
        What::Sysctl(name.into(), value.into())
    }

    #[test]
    fn settings_in_all_spellings() {
        assert_eq!(
            what(
                "../common/defaults.sh\nsysctl -q net.ipv4.tcp_sack=0 net/ipv4/tcp_frto=2 # why\n"
            ),
            [What::Defaults, sysctl("tcp_sack", "0"), sysctl("tcp_frto", "2")]
        );
        assert_eq!(
            what("set_sysctls.py /proc/sys/net/ipv4/tcp_ecn=1 \\\n  /proc/sys/net/ipv4/tcp_sack=1"),
            [sysctl("tcp_ecn", "1"), sysctl("tcp_sack", "1")]
        );
        assert_eq!(
            what("sysctl -q net.ipv4.tcp_rmem=\"1 2 3\" > /dev/null 2>&1")[..],
            [sysctl("tcp_rmem", "1 2 3")]
        );
        assert_eq!(what("tc qdisc replace dev tun0 root fq"), [What::Pacing(true)]);
        assert_eq!(what("/tmp/sysctl_restore_${PPID}.sh"), []);
    }

    #[test]
    fn other_commands_fail_where_they_stand() {
        let at = |text: &str| settings(text, Place { line: 3, column: 1 }).unwrap_err().to_string();
        assert!(
            at("defaults.sh\n  rm -rf /").starts_with("4:3: the command 'rm -rf /' is not sup")
        );
        assert!(at("sysctl kernel.panic=1").starts_with("3:9: 'kernel.panic=1' is not"));
        assert!(at("tc qdisc replace dev tun0 root netem").contains("not supported"));
    }
}
