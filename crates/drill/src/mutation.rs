//! Mutation test of scripts: checks that a passing script detects errors. It changes one
//! expectation of the script at a time (an alteration): a sequence number or the window by one
//! segment, or a time by 50 ms. With each alteration the script must fail.

use crate::problem::Place;
use crate::profile::Profile;
use crate::run::run;
use crate::script::{Action, Event, Packet, Script, TcpOption, When};

/// Time in µs by which the mutation test moves an expected time.
const TIME_US: u64 = 50_000;

/// Function that changes an expected packet by one segment; the arguments are the packet, the
/// segment size in bytes, and the sign: 1 makes the number larger, -1 smaller. Returns false if the
/// packet has nothing to change.
type Alteration = fn(&mut Packet, u32, i8) -> bool;

const OF_PACKETS: [(&str, Alteration); 4] = [
    ("the sequence number", |p, mss, sign| {
        p.start = step(p.start, mss, sign);
        true
    }),
    ("the ACK", |p, mss, sign| match &mut p.ack {
        Some(ack) => {
            *ack = step(*ack, mss, sign);
            true
        }
        None => false,
    }),
    ("a SACK block", |p, mss, sign| {
        for option in p.options.iter_mut().flatten() {
            if let TcpOption::Sack(blocks) = option {
                for block in blocks {
                    *block = (step(block.0, mss, sign), step(block.1, mss, sign));
                }
                return true;
            }
        }
        false
    }),
    // A large field counts bytes. A small one may be scaled, with a unit larger than a segment; it
    // is changed by one unit.
    ("the window", |p, mss, sign| match &mut p.window {
        Some(window) => {
            let by = if u32::from(*window) > 4 * mss { mss as u16 } else { 1 };
            let altered = if sign > 0 { window.checked_add(by) } else { window.checked_sub(by) };
            *window = altered.unwrap_or(*window ^ 1);
            true
        }
        None => false,
    }),
];

fn step(n: u32, by: u32, sign: i8) -> u32 {
    if sign > 0 { n.wrapping_add(by) } else { n.wrapping_sub(by) }
}

/// An alteration (a change of one expected number or time) with which a script still passes,
/// although it should fail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unnoticed {
    /// Line and column of the altered event in the script.
    pub place: Place,
    /// Description of the change, such as its field and direction.
    pub what: String,
}

/// Runs a passing script with each alteration, which is a change of one expected number or time.
/// Returns the number of alterations, and those with which the script still passes.
pub fn mutate(script: &Script, profile: Profile) -> (usize, Vec<Unnoticed>) {
    let mut tried = 0;
    let mut unnoticed = Vec::new();
    let mut altered = script.clone();
    let mss = segment(script);
    for (i, event) in script.events.iter().enumerate() {
        for (what, new) in alterations(event, mss) {
            altered.events[i] = new;
            tried += 1;
            if run(&altered, profile).is_ok() {
                unnoticed.push(Unnoticed { place: event.place, what });
            }
        }
        altered.events[i] = event.clone();
    }
    (tried, unnoticed)
}

/// Returns the segment size of a script in bytes: the smallest MSS that a packet to the endpoint
/// announces.
fn segment(script: &Script) -> u32 {
    let of = |e: &Event| match &e.action {
        Action::Inject(p) => p.options.iter().flatten().find_map(|o| match o {
            TcpOption::Mss(m) => Some(*m),
            _ => None,
        }),
        _ => None,
    };
    u32::from(script.events.iter().filter_map(of).fold(script.options.mss, u16::min))
}

/// Returns all alterations of an expected packet, each with its description: the event with one
/// number or its time changed. Empty for events of another kind. `mss`: segment size in bytes.
fn alterations(event: &Event, mss: u32) -> Vec<(String, Event)> {
    let mut all = Vec::new();
    let Action::Expect(packet) = &event.action else { return all };
    for (sign, size, time) in [(1, "larger", "later"), (-1, "smaller", "earlier")] {
        for (name, alter) in OF_PACKETS {
            let mut packet = packet.clone();
            if alter(&mut packet, mss, sign) {
                let event = Event { action: Action::Expect(packet), ..event.clone() };
                all.push((format!("{name}, one segment {size}"), event));
            }
        }
        if let Some(when) = shifted(event.when, sign) {
            all.push((format!("the time, 50 ms {time}"), Event { when, ..event.clone() }));
        }
    }
    all
}

/// Returns the expected time, moved 50 ms later (`sign` above 0) or earlier; `None` if any time is
/// accepted or the result would be negative. A range moves by 50 ms plus its width, so that it does
/// not overlap the original range.
fn shifted(when: When, sign: i8) -> Option<When> {
    let shift = |from: u64, to: u64| {
        let by = TIME_US + (to - from);
        if sign > 0 { Some((from + by, to + by)) } else { Some((from.checked_sub(by)?, to - by)) }
    };
    match when {
        When::Any => None,
        When::At(from, to) => shift(from, to).map(|(from, to)| When::At(from, to)),
        When::After(from, to) => shift(from, to).map(|(from, to)| When::After(from, to)),
    }
}
