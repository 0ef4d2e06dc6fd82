//! Tests of TCP by scripts in the language of packetdrill, run against the simulated TCP endpoint
//! in simulated time.
//!
//! A script lists the packets that arrive (`<`), the packets expected from the endpoint (`>`) with
//! their times, the system calls of the application, and assertions about `tcp_info` (`%{ assert …
//! }%`). The stages are [`lexer`] → [`parser`] → [`script`] → [`run`]. The last stage executes the
//! events on a [`host`], converts sequence numbers and times with a [`wire`], and compares packets
//! with the [`matcher`]. The language follows packetdrill's syntax document and public scripts, and
//! the rules of its runner for times, tolerances and defaults. No code of packetdrill is copied.

mod buffer;
mod calls;
mod cork;
mod epoll;
mod fields;
mod files;
mod host;
pub mod lexer;
mod limits;
mod matcher;
mod messages;
pub mod mutation;
mod notifications;
mod options;
pub mod parser;
mod parser_packet;
mod poll;
pub mod problem;
pub mod profile;
pub mod run;
pub mod script;
mod setup;
mod shell;
mod snippet;
mod sockets;
mod system;
mod transfer;
mod wire;

use problem::Problem;
use profile::Profile;

/// Result of running a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Whether the script could be parsed.
    pub readable: bool,
    /// Error for which the script failed; `None` if the script passed.
    pub problem: Option<Problem>,
    /// Number of alterations that were tried: changes of one expected number or time, with which
    /// the script must fail (see [mutation]). 0 if they were not requested.
    pub alterations: usize,
    /// Alterations with which the script still passed: errors that the script does not detect.
    pub unnoticed: Vec<mutation::Unnoticed>,
}

/// Runs a script. If it passes and `altered` is set, also runs it with each alteration: one
/// expected number or time is changed, and the script must fail. `profile` replaces the script's
/// own option `--profile`; if both are missing, the profile is Linux.
pub fn drill(text: &str, profile: Option<Profile>, altered: bool) -> Outcome {
    let none = Outcome { readable: false, problem: None, alterations: 0, unnoticed: Vec::new() };
    let script = match parser::parse(text) {
        Ok(script) => script,
        Err(problem) => return Outcome { problem: Some(problem), ..none },
    };
    let played = Outcome { readable: true, ..none };
    let profile = profile.or(script.options.profile).unwrap_or(Profile::Linux);
    if let Err(problem) = run::run(&script, profile) {
        return Outcome { problem: Some(problem), ..played };
    }
    if !altered {
        return played;
    }
    let (alterations, unnoticed) = mutation::mutate(&script, profile);
    Outcome { alterations, unnoticed, ..played }
}
