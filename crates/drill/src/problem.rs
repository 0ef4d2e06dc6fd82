//! What is wrong with a script, and where.

use std::fmt;

/// A place in a script; both count from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Place {
    /// Line.
    pub line: u32,
    /// Column, in characters.
    pub column: u32,
}

impl Place {
    /// Returns the problem at this place as the result of what cannot go on.
    pub fn fail<T>(self, message: impl Into<String>) -> Result<T, Problem> {
        Err(Problem::new(self, message))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Why a script cannot be read, or does not pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// What, in one or more lines.
    pub message: String,
}

impl Problem {
    /// A problem at a place.
    pub fn new(place: Place, message: impl Into<String>) -> Problem {
        Problem { place, message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// The name in `known` that is closest to `name`, where one is close enough to be meant.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = (name.chars().count() / 3).max(1);
    let near = known.into_iter().map(|k| (distance(name, k), k)).min()?;
    (near.0 <= most).then_some(near.1)
}

/// "; did you mean …?" where a name is near.
pub fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map_or_else(String::new, |n| format!("; did you mean '{n}'?"))
}

/// Single characters to insert, leave out or change (Levenshtein); names only, at most 64 characters.
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
