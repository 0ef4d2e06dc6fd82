//! Common functions of the readers of CSV tables.

/// Returns a message about an error of the CSV reader, with the line number if it is known.
pub fn broken(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
            let line = pos.as_ref().map_or(0, csv::Position::line);
            format!(":{line}: has {len} columns where the first line has {expected_len}")
        }
        _ => format!(": cannot be read: {error}"),
    }
}

/// Returns the text `good` with one to three random faults: bytes changed, inserted (from `with`)
/// or removed, or the end cut off.
#[cfg(test)]
pub fn damaged(good: &[u8], with: &[u8], random: &mut eastwest_engine::random::Stream) -> Vec<u8> {
    let mut text = good.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(text.len() as u64) as usize;
        match random.below(4) {
            0 => text[at] = random.below(256) as u8,
            1 => drop(text.drain(at..)),
            2 => text.insert(at, with[random.below(with.len() as u64) as usize]),
            _ => drop(text.remove(at)),
        }
        text.push(b'\n');
    }
    text
}
