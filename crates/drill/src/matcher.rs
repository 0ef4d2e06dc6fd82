//! Comparison of sent packets with expected ones.
//!
//! The endpoint may send an expected packet as a run of segments (as with segmentation offload):
//! the run has the positions of its first and its last segment, and the flags of all. PSH is not
//! compared, since Linux also sets it at the ends of its own buffers.

use crate::script::{Packet, TcpOption};
use crate::wire::Seen;
use eastwest_types::flag;

/// TCP flags that must be equal in an expected packet and the sent packet; PSH and URG may differ.
const COMPARED: u8 = flag::FIN | flag::SYN | flag::RST | flag::ACK | flag::ECE | flag::CWR;

/// Returns a message for each difference between an expected packet and a sent packet, which is
/// joined from all segments of a run. `stamp_tolerance`: largest permitted difference of timestamp
/// values in ticks; with `None` they are not compared.
pub fn differences(expected: &Packet, seen: &Packet, stamp_tolerance: Option<u32>) -> Vec<String> {
    let mut all = Vec::new();
    let mut compare = |what: &str, expected: String, seen: String| {
        if expected != seen {
            all.push(format!("{what} is {seen}, not {expected}"));
        }
    };
    compare("the flags field", flags(expected.flags), flags(seen.flags));
    compare("the first sequence number", expected.start.to_string(), seen.start.to_string());
    compare("the payload length in bytes", expected.length.to_string(), seen.length.to_string());
    let number = |n: Option<u32>| n.map_or_else(|| "none".into(), |n| n.to_string());
    compare("the acknowledgement number", number(expected.ack), number(seen.ack));
    if let (Some(expected), Some(seen)) = (expected.window, seen.window) {
        compare("the window", expected.to_string(), seen.to_string());
    }
    if let (Some(expected), Some(seen)) = (expected.ecn, seen.ecn) {
        compare("the ECN field", ecn(expected).into(), ecn(seen).into());
    }
    if let (Some(expected), Some(seen)) = (&expected.options, &seen.options) {
        let (a, b) = (normal(expected, seen, stamp_tolerance), sorted(seen));
        compare("the options field", options(&a), options(&b));
    }
    all
}

/// Returns the expected options in a fixed order, in which they can be compared with the sent
/// options `seen`. The expected timestamp value is replaced by the sent value if they differ by at
/// most `tolerance` ticks, or if timestamps are not checked (`None`).
fn normal(expected: &[TcpOption], seen: &[TcpOption], tolerance: Option<u32>) -> Vec<TcpOption> {
    let seen_value = seen.iter().find_map(|o| match o {
        TcpOption::Timestamp(value, _) => Some(*value),
        _ => None,
    });
    let mut all = sorted(expected);
    for option in &mut all {
        if let (TcpOption::Timestamp(value, _), Some(seen)) = (option, seen_value) {
            let off = (seen.wrapping_sub(*value) as i32).unsigned_abs();
            if tolerance.is_none_or(|most| off <= most) {
                *value = seen;
            }
        }
    }
    all
}

fn sorted(options: &[TcpOption]) -> Vec<TcpOption> {
    let mut all = options.to_vec();
    all.sort_by_key(|o| match o {
        TcpOption::Mss(_) => 0,
        TcpOption::SackOk => 1,
        TcpOption::Timestamp(..) => 2,
        TcpOption::Wscale(_) => 3,
        TcpOption::Sack(_) => 4,
    });
    all
}

/// Appends the next data segment to a run of segments, if it begins at the end of the run and has
/// the same ACK and ECN field. A segment with SYN joins no run, and a FIN ends a run. Returns
/// whether the segment was appended.
pub fn join(run: &mut Packet, next: &Seen) -> bool {
    let p = &next.packet;
    let follows = p.start == run.start.wrapping_add(run.length) && p.length > 0;
    let plain = (run.flags | p.flags) & flag::SYN == 0 && run.flags & flag::FIN == 0;
    if !follows || !plain || p.ack != run.ack || p.ecn != run.ecn {
        return false;
    }
    run.length += p.length;
    run.flags |= p.flags;
    run.window = p.window;
    true
}

/// Returns a packet in the syntax of a script.
pub fn write(p: &Packet) -> String {
    let end = p.start.wrapping_add(p.length);
    let mut text = format!("{} {}:{end}({})", flags(p.flags), p.start, p.length);
    if let Some(ecn_field) = p.ecn.filter(|e| *e != 0) {
        text = format!("[{}] {text}", ecn(ecn_field));
    }
    if let Some(ack) = p.ack {
        text.push_str(&format!(" ack {ack}"));
    }
    if let Some(window) = p.window {
        text.push_str(&format!(" win {window}"));
    }
    match &p.options {
        None => text.push_str(" <...>"),
        Some(all) if all.is_empty() => {}
        Some(all) => text.push_str(&format!(" <{}>", options(all))),
    }
    text
}

fn flags(flags: u8) -> String {
    let flags = flags & COMPARED;
    let letters = [
        (flag::FIN, 'F'),
        (flag::SYN, 'S'),
        (flag::RST, 'R'),
        (flag::ECE, 'E'),
        (flag::CWR, 'W'),
        (flag::ACK, '.'),
    ];
    let text: String = letters.iter().filter(|l| flags & l.0 != 0).map(|l| l.1).collect();
    if text.is_empty() { "-".into() } else { text }
}

fn ecn(field: u8) -> &'static str {
    ["noecn", "ect1", "ect0", "ce"][usize::from(field & 3)]
}

fn options(all: &[TcpOption]) -> String {
    let one = |o: &TcpOption| match o {
        TcpOption::Mss(m) => format!("mss {m}"),
        TcpOption::Wscale(s) => format!("wscale {s}"),
        TcpOption::SackOk => "sackOK".into(),
        TcpOption::Sack(blocks) => {
            let blocks: Vec<String> = blocks.iter().map(|b| format!("{}:{}", b.0, b.1)).collect();
            format!("sack {}", blocks.join(" "))
        }
        TcpOption::Timestamp(value, echo) => format!("TS val {value} ecr {echo}"),
    };
    if all.is_empty() {
        return "none".into();
    }
    all.iter().map(one).collect::<Vec<_>>().join(",")
}
