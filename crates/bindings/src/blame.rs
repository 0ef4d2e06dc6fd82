//! Panics of a mechanism crate: they are the user's, and the message says so, with file and line.
//!
//! The panic of a mechanism crate has its place in the crate's source, or in code that the crate has
//! called: then a frame of the stack belongs to the crate. All other panics are bugs of Eastwest, and
//! stay what they are.

use crate::Own;
use crate::convert::OWN;
use std::backtrace::Backtrace;
use std::panic::PanicHookInfo;
use std::path::Path;
use std::sync::Mutex;

/// Maximum number of lines of a stack that are shown.
const MOST_LINES: usize = 40;

/// A panic of a mechanism crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnPanic {
    /// Crate, place and message of the panic.
    pub message: String,
    /// Calls that led to it, the last one first, from the crate on.
    pub stack: String,
}

static LAST: Mutex<Option<OwnPanic>> = Mutex::new(None);

/// Notes panics of the mechanism crate instead of printing them; other panics are printed as before.
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

/// Removes and returns the last panic that was noted.
pub fn take() -> Option<OwnPanic> {
    LAST.lock().ok()?.take()
}

/// Returns the message of a panic; it names the mechanism crate if the panic is the crate's.
#[cfg(feature = "complete")]
pub fn describe(info: &PanicHookInfo<'_>) -> String {
    of_own(info).map_or_else(|| info.to_string(), |own| format!("{}\n{}", own.message, own.stack))
}

/// Returns the panic if it is one of the mechanism crate.
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

/// Returns the panic with this message, place (file and line) and stack if it is one of the crate.
fn judge(own: &Own, said: &str, place: Option<(String, u32)>, stack: &str) -> Option<OwnPanic> {
    let symbol = format!("{}::", own.name.replace('-', "_"));
    let lines: Vec<&str> = stack.lines().map(str::trim).collect();
    // "12: my_queue::Ramp::at_enqueue", "12: <my_queue::Ramp as …", and then "at ./src/lib.rs:41:9"
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
    use crate::Mechanisms;

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
        // an inlined call has no name of its crate
        let inlined = stack.replace("<my_queue::Least as eastwest::CustomRouting>::", "");
        let panic = judge(&own(), "out of range", place.clone(), &inlined).unwrap();
        assert!(panic.message.contains("at src/lib.rs:41:9"), "{}", panic.message);
        let other = stack.replace("my_queue", "other").replace("./src", "/other/src");
        assert_eq!(judge(&own(), "out of range", place, &other), None);
    }
}
