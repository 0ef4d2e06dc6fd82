//! Errors in scripts, with their line and column.

use std::fmt;

/// Line and column in a script, both from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Place {
    /// Line in the script, from 1.
    pub line: u32,
    /// Column in the script, from 1, in characters.
    pub column: u32,
}

impl Place {
    /// Returns an error with the text `message` at this place of the script.
    pub fn fail<T>(self, message: impl Into<String>) -> Result<T, Problem> {
        Err(Problem::new(self, message))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Error of a script that cannot be parsed, or that does not pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Line and column of the error in the script.
    pub place: Place,
    /// Error message of one or more lines.
    pub message: String,
}

impl Problem {
    /// Returns an error with the text `message` at `place` of the script.
    pub fn new(place: Place, message: impl Into<String>) -> Problem {
        Problem { place, message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Returns the name in `known` with the least Levenshtein distance to `name`; `None` if this
/// distance is above a third of the length of `name` (at least 1 is allowed).
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = (name.chars().count() / 3).max(1);
    let near = known.into_iter().map(|k| (distance(name, k), k)).min()?;
    (near.0 <= most).then_some(near.1)
}

/// Returns "; did you mean …?" with the most similar name in `known`; an empty text if none is
/// similar.
pub fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map_or_else(String::new, |n| format!("; did you mean '{n}'?"))
}

/// Returns the number of characters to insert, delete or change between two names (Levenshtein
/// distance). Only the first 64 characters of each name count.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_finds_its_name() {
        assert_eq!(nearest("wscal", ["mss", "wscale"]), Some("wscale"));
        assert_eq!(nearest("bananas", ["mss", "wscale"]), None);
    }
}
