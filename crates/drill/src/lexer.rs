//! Lexer: tokens of a script, the terminals of packetdrill's public syntax document.
//!
//! Comments (`//`, `/* */`) and blanks are skipped. Text in back-ticks, or between `%{` and `}%`,
//! is a single token; [`shell`](crate::shell) and [`snippet`](crate::snippet) parse it.

use crate::problem::{Place, Problem};

/// A token of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Token {
    /// A name, or letters that stand for TCP flags.
    Word(String),
    /// A whole number, decimal or hexadecimal.
    Number(u64),
    /// A decimal fraction, in millionths: 0.5 is 500,000.
    Fraction(u64),
    /// Text in quotation marks, without the marks.
    Text(String),
    /// Shell commands in back-ticks, without the back-ticks.
    Shell(String),
    /// Assertions between `%{` and `}%`.
    Code(String),
    /// Option of a script: `--name` or `--name=value`.
    Option(String, Option<String>),
    /// The sign `...`.
    Dots,
    /// Any other single character.
    Sign(char),
}

impl Token {
    /// Returns the description of the token for error messages.
    pub fn describe(&self) -> String {
        match self {
            Token::Word(w) => format!("'{w}'"),
            Token::Number(n) => format!("'{n}'"),
            Token::Fraction(_) => "a fraction".into(),
            Token::Text(_) => "text in quotation marks".into(),
            Token::Shell(_) => "text in back-ticks".into(),
            Token::Code(_) => "a %{ }% snippet".into(),
            Token::Option(name, _) => format!("'--{name}'"),
            Token::Dots => "'...'".into(),
            Token::Sign(c) => format!("'{c}'"),
        }
    }
}

/// A token with its line and column in the script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lexeme {
    /// The token itself.
    pub token: Token,
    /// Line and column of the first character of the token.
    pub place: Place,
    /// Whether the token directly follows the previous token, without a blank.
    pub glued: bool,
}

/// Reader of characters that tracks its line and column.
pub struct Cursor<'a> {
    rest: std::str::Chars<'a>,
    /// Line and column of the next character.
    pub place: Place,
}

impl<'a> Cursor<'a> {
    /// Returns a reader at the beginning of `text`, which is at `place` in the script.
    pub fn new(text: &'a str, place: Place) -> Cursor<'a> {
        Cursor { rest: text.chars(), place }
    }

    /// Returns the next character without skipping it; `None` at the end of the text.
    pub fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    /// Whether the remaining text begins with `text`.
    pub fn sees(&self, text: &str) -> bool {
        self.rest.as_str().starts_with(text)
    }

    /// Returns the remaining text, which has not been read yet.
    pub fn rest(&self) -> &'a str {
        self.rest.as_str()
    }

    /// Skips and returns the next character; `None` at the end of the text.
    pub fn advance(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        if c == '\n' {
            self.place.line += 1;
            self.place.column = 1;
        } else {
            self.place.column += 1;
        }
        Some(c)
    }

    /// Skips the next `n` characters.
    pub fn skip(&mut self, n: usize) {
        for _ in 0..n {
            self.advance();
        }
    }

    /// Skips and returns the following characters, up to the first for which `wanted` is false.
    pub fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let before = self.rest.as_str();
        while self.peek().is_some_and(&wanted) {
            self.advance();
        }
        &before[..before.len() - self.rest.as_str().len()]
    }

    /// Returns the text before the next `end`, and skips both the text and `end`. If there is no
    /// `end`, returns an error message that calls the text `what`.
    pub fn take_to(&mut self, end: &str, what: &str) -> Result<&'a str, Problem> {
        let start = self.place;
        let before = self.rest.as_str();
        let Some(length) = before.find(end) else {
            return start.fail(format!("{what} has no end: '{end}' is missing"));
        };
        let inside = &before[..length];
        self.skip(inside.chars().count() + end.chars().count());
        Ok(inside)
    }
}

/// Whether a name may begin with this character.
pub fn begins_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

/// Whether a name may contain this character after its first character.
pub fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns all tokens of a script, or the first error in it.
pub fn tokens(text: &str) -> Result<Vec<Lexeme>, Problem> {
    let mut cursor = Cursor::new(text, Place { line: 1, column: 1 });
    let mut all = Vec::new();
    loop {
        let apart = skip_blanks(&mut cursor)?;
        let place = cursor.place;
        let Some(c) = cursor.peek() else { return Ok(all) };
        let token = token(&mut cursor, c)?;
        all.push(Lexeme { token, place, glued: !apart && !all.is_empty() });
    }
}

/// Skips blanks and comments. Returns whether there were any.
fn skip_blanks(cursor: &mut Cursor<'_>) -> Result<bool, Problem> {
    let start = cursor.rest().len();
    loop {
        cursor.take_while(char::is_whitespace);
        if cursor.sees("//") {
            cursor.take_while(|c| c != '\n');
        } else if cursor.sees("/*") {
            cursor.take_to("*/", "a comment")?;
        } else {
            return Ok(cursor.rest().len() < start);
        }
    }
}

fn token(cursor: &mut Cursor<'_>, c: char) -> Result<Token, Problem> {
    let place = cursor.place;
    if begins_name(c) {
        return Ok(Token::Word(cursor.take_while(in_name).to_string()));
    }
    if c.is_ascii_digit()
        || (c == '.' && cursor.rest()[1..].starts_with(|d: char| d.is_ascii_digit()))
    {
        return number(cursor);
    }
    if cursor.sees("...") {
        cursor.skip(3);
        return Ok(Token::Dots);
    }
    if cursor.sees("%{") {
        cursor.skip(2);
        return Ok(Token::Code(cursor.take_to("}%", "a snippet")?.to_string()));
    }
    if cursor.sees("--") && cursor.rest()[2..].starts_with(begins_name) {
        cursor.skip(2);
        let name = cursor.take_while(in_name).to_string();
        let value = cursor.sees("=").then(|| {
            cursor.skip(1);
            cursor.take_while(|c| !c.is_whitespace()).to_string()
        });
        return Ok(Token::Option(name, value));
    }
    cursor.advance();
    match c {
        '`' => Ok(Token::Shell(cursor.take_to("`", "a shell command")?.to_string())),
        '"' => Ok(Token::Text(cursor.take_to("\"", "a text")?.to_string())),
        '<' | '>' | '(' | ')' | '[' | ']' | '{' | '}' | ',' | ':' | '=' | '|' | '+' | '~' | '*'
        | '.' | '-' => Ok(Token::Sign(c)),
        other => place.fail(format!("the character {other:?} is not allowed here")),
    }
}

fn number(cursor: &mut Cursor<'_>) -> Result<Token, Problem> {
    let place = cursor.place;
    let too_large = || Problem::new(place, "the number is too large: it must fit into 64 bits");
    if cursor.sees("0x") || cursor.sees("0X") {
        cursor.skip(2);
        let digits = cursor.take_while(|c| c.is_ascii_hexdigit());
        return u64::from_str_radix(digits, 16).map(Token::Number).map_err(|_| too_large());
    }
    let whole = cursor.take_while(|c| c.is_ascii_digit());
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| too_large())? };
    let fraction = cursor.sees(".") && cursor.rest()[1..].starts_with(|d: char| d.is_ascii_digit());
    if !fraction {
        return Ok(Token::Number(whole));
    }
    cursor.skip(1);
    let digits = cursor.take_while(|c| c.is_ascii_digit());
    let millionths = digits.chars().chain("000000".chars()).take(6);
    let millionths = millionths.fold(0, |n, d| 10 * n + u64::from(d.to_digit(10).unwrap_or(0)));
    let whole = whole.checked_mul(1_000_000).ok_or_else(too_large)?;
    whole.checked_add(millionths).map(Token::Fraction).ok_or_else(too_large)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Vec<Token> {
        tokens(text).unwrap().into_iter().map(|l| l.token).collect()
    }

    #[test]
    fn times_flags_and_ranges_fall_apart_as_meant() {
        use Token::{Dots, Fraction, Number, Sign, Word};
        assert_eq!(
            plain("+.1~+0.02"),
            [Sign('+'), Fraction(100_000), Sign('~'), Sign('+'), Fraction(20_000)]
        );
        assert_eq!(plain("+0...0.010"), [Sign('+'), Number(0), Dots, Fraction(10_000)]);
        assert_eq!(plain("> P. 1:9(8)")[..3], [Sign('>'), Word("P".into()), Sign('.')]);
        assert_eq!(plain("0x10 // gone\n/* gone */"), [Number(16)]);
    }

    #[test]
    fn what_has_no_end_and_what_has_no_meaning_is_told_with_its_place() {
        let at = |text: &str| tokens(text).unwrap_err().to_string();
        assert!(at("a\n  `ls").starts_with("2:4: a shell command has no end"));
        assert!(at("+0 %{ assert").starts_with("1:6: a snippet has no end"));
        assert!(at("+0 ?").starts_with("1:4: the character '?' is not allowed"));
        assert!(at("99999999999999999999").contains("too large"));
    }

    #[test]
    fn options_keep_their_value_as_text() {
        assert_eq!(
            plain("--tolerance_usecs=20000 --strict_segments"),
            [
                Token::Option("tolerance_usecs".into(), Some("20000".into())),
                Token::Option("strict_segments".into(), None),
            ]
        );
    }
}
