//! Recognizes panics of a mechanism crate (queue disciplines, congestion controls … that the user
//! has written in Rust). Their message names the crate, the file and the line.
//!
//! A panic belongs to the crate if it occurred in the crate's source, or if a frame of its stack is
//! a function of the crate. Every other panic is a bug of Eastwest, and its message is not changed.

use crate::convert::OWN;
use crate::own::Own;
use std::backtrace::Backtrace;
use std::panic::PanicHookInfo;
use std::path::Path;
use std::sync::Mutex;

/// Maximum number of lines of the stack that are shown for a panic of a mechanism crate.
const MOST_LINES: usize = 40;

/// A panic in a mechanism crate, the user's own Rust crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnPanic {
    /// Text for the user: name of the crate, file and line of the panic, and the message of the
    /// panic.
    pub message: String,
    /// Frames of the stack at the panic, the innermost first, from the first frame in the crate on;
    /// at most 40 lines.
    pub stack: String,
}

static LAST: Mutex<Option<OwnPanic>> = Mutex::new(None);

/// Installs a panic hook that stores panics of the mechanism crate instead of printing them. Other
/// panics are printed as before.
pub fn watch() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| match of_own(info) {
        Some(panic) => {
            if let Ok(mut last) = LAST.lock() {
                *last = Some(panic);
            }
        }
        None => before(info),
    }));
}

/// Removes and returns the last panic of the mechanism crate; `None` if there was none since the
/// last call.
pub fn take() -> Option<OwnPanic> {
    LAST.lock().ok()?.take()
}

/// Returns the message of a panic. If the panic belongs to the mechanism crate, the message names
/// that crate and shows the stack.
#[cfg(feature = "complete")]
pub fn describe(info: &PanicHookInfo<'_>) -> String {
    of_own(info).map_or_else(|| info.to_string(), |own| format!("{}\n{}", own.message, own.stack))
}

/// Returns the message and the stack that the user sees if the panic belongs to the mechanism
/// crate, otherwise `None`.
fn of_own(info: &PanicHookInfo<'_>) -> Option<OwnPanic> {
    let own = OWN.get()?;
    let payload = info.payload();
    let said = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned());
    let place = info.location().map(|at| (at.file().to_owned(), at.line()));
    judge(own, &said, place, &Backtrace::force_capture().to_string())
}

/// Returns the message and the stack that the user sees if the panic belongs to the crate `own`,
/// otherwise `None`. `said` is the message of the panic, `place` its file and line, `stack` the
/// text of its backtrace.
fn judge(own: &Own, said: &str, place: Option<(String, u32)>, stack: &str) -> Option<OwnPanic> {
    let symbol = format!("{}::", own.name.replace('-', "_"));
    let lines: Vec<&str> = stack.lines().map(str::trim).collect();
    // A frame is two lines of the backtrace: "12: my_queue::Ramp::at_enqueue" or "12:
    // <my_queue::Ramp as …", then "at ./src/lib.rs:41:9".
    let of_line = |line: &&str| {
        let file = line.strip_prefix("at ")?;
        let is_own = file.starts_with("./src/") || file.starts_with(own.folder);
        is_own.then(|| file.trim_start_matches("./").to_owned())
    };
    let is_own = |at: usize| {
        let call = lines[at].split_once(": ").map_or("", |(_, call)| call);
        let is_call = call.trim_start_matches('<').starts_with(&symbol);
        is_call || !call.is_empty() && lines.get(at + 1).is_some_and(|next| of_line(next).is_some())
    };
    let first = (0..lines.len()).find(|at| is_own(*at));
    let of_place = place
        .filter(|(file, _)| {
            Path::new(file).is_relative() || Path::new(file).starts_with(own.folder)
        })
        .map(|(file, line)| format!("{file}:{line}"));
    if of_place.is_none() && first.is_none() {
        return None;
    }
    let of_stack = || of_line(lines.get(first? + 1)?);
    let at = of_place.or_else(of_stack);
    let at = at.map_or_else(String::new, |at| format!(" at {at}"));
    let message = format!(
        "the mechanism crate {} ({}) panicked{at}: {said}; this is an error of this crate, not of \
         Eastwest",
        own.name, own.folder
    );
    let shown = &lines[first.unwrap_or(lines.len())..];
    let stack = shown[..shown.len().min(MOST_LINES)].join("\n");
    Some(OwnPanic { message, stack })
}

#[cfg(test)]
mod tests {
    use super::*;
    use eastwest_mechanism::Mechanisms;

    fn own() -> Own {
        let mechanisms = Mechanisms::default();
        let (name, folder) = ("my-queue", "/home/me/my-queue");
        Own { name, version: "0.1.0", folder, development: true, mechanisms }
    }

    #[test]
    fn a_panic_in_the_source_of_the_crate_is_its_own() {
        for file in ["src/lib.rs", "/home/me/my-queue/src/lib.rs"] {
            let panic = judge(&own(), "boom", Some((file.to_owned(), 7)), "").unwrap();
            assert!(panic.message.contains(&format!("at {file}:7: boom")), "{}", panic.message);
            assert!(panic.message.contains("my-queue"));
        }
        let elsewhere = Some(("/src/eastwest/crates/sim/src/world.rs".to_owned(), 7));
        assert_eq!(judge(&own(), "boom", elsewhere, ""), None);
    }

    #[test]
    fn a_panic_in_code_that_the_crate_has_called_is_its_own() {
        let stack = "   3: eastwest_network::routing::custom::Choice::waiting\n             at /e/c.rs:9:1\n   \
                     4: <my_queue::Least as eastwest::CustomRouting>::choose\n             at ./src/lib.rs:41:9\n   \
                     5: eastwest_network::switch::Switch::send\n";
        let place = Some(("/e/c.rs".to_owned(), 9));
        let panic = judge(&own(), "out of range", place.clone(), stack).unwrap();
        assert!(panic.message.contains("at src/lib.rs:41:9"), "{}", panic.message);
        assert!(panic.stack.starts_with("4: <my_queue::Least"), "{}", panic.stack);
        // the frame of an inlined function does not name the crate
        let inlined = stack.replace("<my_queue::Least as eastwest::CustomRouting>::", "");
        let panic = judge(&own(), "out of range", place.clone(), &inlined).unwrap();
        assert!(panic.message.contains("at src/lib.rs:41:9"), "{}", panic.message);
        let other = stack.replace("my_queue", "other").replace("./src", "/other/src");
        assert_eq!(judge(&own(), "out of range", place, &other), None);
    }
}
