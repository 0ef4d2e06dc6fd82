//! Problems of a user's input: the place in the file, the value found there, the allowed values,
//! and the name that was probably meant.

use std::fmt;

/// A problem of a scenario. All problems of a file are collected and reported together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Dotted path of the key in the scenario, such as `fabric.queue.limit` or `workload.0.bytes`;
    /// empty for the file as a whole.
    pub path: String,
    /// Line in the file, counted from 1; `None` if it is not known.
    pub line: Option<usize>,
    /// Value found at the path, shortened; `None` if the path has no value.
    pub value: Option<String>,
    /// Message that says which rule the value violates, and which values are allowed.
    pub message: String,
    /// Known name that is most similar to an unknown name in the file; `None` if none is similar.
    pub hint: Option<String>,
}

impl Problem {
    /// Returns a problem of the file as a whole, with the message `message`.
    pub fn of_file(message: impl Into<String>) -> Problem {
        Problem {
            path: String::new(),
            line: None,
            value: None,
            message: message.into(),
            hint: None,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}", self.path)?;
            if let Some(value) = &self.value {
                write!(f, " = {value}")?;
            }
            write!(f, ": ")?;
        }
        write!(f, "{}", self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, " (did you mean {hint}?)")?;
        }
        Ok(())
    }
}

/// Largest number of characters of a value that a message quotes; longer values are cut.
const QUOTED: usize = 60;

/// Returns a value as messages quote it: on one line, without control characters, and shortened.
pub fn quote(value: &toml::Value) -> String {
    match value {
        toml::Value::Table(_) => "{…}".to_owned(),
        toml::Value::Array(items) if items.iter().any(|v| v.is_table() || v.is_array()) => {
            "[…]".to_owned()
        }
        toml::Value::Array(items) => {
            let inner: Vec<String> = items.iter().take(QUOTED / 4).map(quote).collect();
            shorten(&format!("[{}]", inner.join(", ")))
        }
        toml::Value::String(text) => format!("\"{}\"", shorten(text)),
        other => shorten(&other.to_string()),
    }
}

/// Returns `text` on one line, cut after sixty characters, with control characters escaped.
pub fn shorten(text: &str) -> String {
    shorten_to(text, QUOTED)
}

/// Returns untrusted text cut to `most` characters, with control characters escaped.
pub fn shorten_to(text: &str, most: usize) -> String {
    let mut short = String::new();
    for c in text.chars().take(most) {
        match c {
            '"' | '\'' | '\\' => short.push(c),
            _ => short.extend(c.escape_debug()),
        }
    }
    if text.chars().nth(most).is_some() {
        short.push('…');
    }
    short
}

/// Largest number of known names that are compared with an unknown one, since a topology may have
/// very many names.
const MOST_CANDIDATES: usize = 500;

/// Returns the candidate that is most similar to `name`: by edit distance, or because the candidate
/// begins or ends with `name`. `None` if no candidate is similar, or if `name` has more than 60
/// characters. Only the first 500 candidates are compared.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.chars().nth(QUOTED).is_some() {
        return None;
    }
    let folded = name.to_lowercase().replace(['-', ' '], "_");
    let sorted = |name: &str| {
        let mut words: Vec<&str> = name.split('_').collect();
        words.sort_unstable();
        words.join("_")
    };
    let own_words = sorted(&folded);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates.into_iter().take(MOST_CANDIDATES) {
        let other = candidate.to_lowercase().replace('-', "_");
        let mut distance = strsim::damerau_levenshtein(&folded, &other);
        if distance > 2
            && folded.len() >= 3
            && (other.starts_with(&folded) || other.ends_with(&folded))
        {
            distance = 2;
        }
        if distance > 1 && sorted(&other) == own_words {
            distance = 1; // the words of the name in another order
        }
        let close = distance * 3 <= folded.len().max(other.len()).max(3);
        if close && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_only_when_near() {
        let names = ["min_rto", "max_rto", "segment", "initial_window"];
        assert_eq!(nearest("minrto", names), Some("min_rto"));
        assert_eq!(nearest("rto_min", names), Some("min_rto"));
        assert_eq!(nearest("window_initial", names), Some("initial_window"));
        assert_eq!(nearest("Min-RTO", names), Some("min_rto"));
        assert_eq!(nearest("segmnet", names), Some("segment"));
        assert_eq!(nearest("window", names), Some("initial_window"));
        assert_eq!(nearest("colour", names), None);
        assert_eq!(nearest(&"x".repeat(1000), names), None);
    }

    #[test]
    fn quoted_values_are_short_and_on_one_line() {
        let text = quote(&toml::Value::String("a\nb".repeat(100)));
        assert!(text.len() < 100 && !text.contains('\n'), "{text}");
    }
}
