//! Lexer of snippets: their tokens, here called words.

use crate::lexer::{Cursor, begins_name, in_name};
use crate::problem::{Place, Problem};

/// A token of a snippet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Word {
    /// A name, or a keyword of Python.
    Name(String),
    /// A whole number.
    Number(i64),
    /// A text in quotation marks.
    Text(String),
    /// An operator or bracket.
    Sign(&'static str),
    /// The end of a statement: a line end or a semicolon.
    End,
}

/// Operators and brackets. Longer ones come first, because the first match counts.
const SIGNS: [&str; 28] = [
    "<<=", ">>=", "==", "!=", "<=", ">=", "+=", "-=", "*=", "|=", "&=", "//", "<<", ">>", "=", "<",
    ">", "+", "-", "*", "%", "&", "|", "^", "~", "(", ")", ",",
];

/// Returns the tokens of a snippet whose text begins at `place`, with [`Word::End`] after each
/// statement.
pub fn words(text: &str, place: Place) -> Result<Vec<(Place, Word)>, Problem> {
    let mut cursor = Cursor::new(text, place);
    let mut all = Vec::new();
    let mut open = 0i32;
    while let Some(c) = cursor.peek() {
        let place = cursor.place;
        if c == '#' {
            cursor.take_while(|c| c != '\n');
            continue;
        }
        if cursor.sees("\\\n") {
            cursor.skip(2);
            continue;
        }
        if c == ';' || (c == '\n' && open <= 0) {
            cursor.advance();
            all.push((place, Word::End));
            continue;
        }
        if c.is_whitespace() {
            cursor.advance();
            continue;
        }
        let word = word(&mut cursor, c)?;
        open += match word {
            Word::Sign("(") => 1,
            Word::Sign(")") => -1,
            _ => 0,
        };
        all.push((place, word));
    }
    all.push((cursor.place, Word::End));
    Ok(all)
}

fn word(cursor: &mut Cursor<'_>, c: char) -> Result<Word, Problem> {
    let place = cursor.place;
    if begins_name(c) {
        return Ok(Word::Name(cursor.take_while(in_name).to_string()));
    }
    if c.is_ascii_digit() {
        let digits = cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_').replace('_', "");
        let hex = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
        let number = match hex {
            Some(hex) => i64::from_str_radix(hex, 16),
            None => digits.parse(),
        };
        return match number {
            Ok(n) => Ok(Word::Number(n)),
            Err(_) => {
                place.fail(format!("'{digits}' is not a whole number that fits into 64 bits"))
            }
        };
    }
    if c == '\'' || c == '"' {
        cursor.advance();
        let quote = c.to_string();
        let inside = cursor.take_to(&quote, "a text")?;
        return Ok(Word::Text(inside.replace("\\n", "\n")));
    }
    match SIGNS.iter().find(|s| cursor.sees(s)) {
        Some(sign) => {
            cursor.skip(sign.len());
            Ok(Word::Sign(sign))
        }
        None => place.fail(format!("the character {c:?} is not allowed in a snippet")),
    }
}
