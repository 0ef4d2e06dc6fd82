//! Parser of snippets: from tokens to statements, with Python's operator precedence.

use super::tree::{Expression, Kind, Snippet, Statement};
use super::words::{Word, words};
use crate::problem::{Place, Problem};

/// Maximum nesting of expressions.
const DEEPEST: u32 = 32;
/// Maximum number of tokens in a statement. It bounds the recursion that evaluates a chain of
/// operators.
const LONGEST: usize = 500;
/// Binary operators from the lowest to the highest precedence.
const LEVELS: [&[&str]; 6] =
    [&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"], &["*", "//", "%"]];
const COMPARISONS: [&str; 6] = ["==", "!=", "<=", ">=", "<", ">"];
const ASSIGNMENTS: [(&str, &str); 7] =
    [("+=", "+"), ("-=", "-"), ("*=", "*"), ("|=", "|"), ("&=", "&"), ("<<=", "<<"), (">>=", ">>")];
/// Keywords of Python that are not supported. Their error message is clearer than "unknown name".
const KEYWORDS: [&str; 14] = [
    "if", "else", "elif", "for", "while", "def", "class", "import", "from", "lambda", "return",
    "with", "try", "in",
];
const FUNCTIONS: [&str; 5] = ["abs", "min", "max", "len", "str"];

/// Parses the text of a snippet that begins with `%{` at `place`.
pub fn parse(text: &str, place: Place) -> Result<Snippet, Problem> {
    let place = Place { column: place.column + 2, ..place };
    let words = words(text, place)?;
    let mut parser = Parser { words: &words, at: 0 };
    let mut statements = Vec::new();
    while parser.at < words.len() {
        if parser.peek() == Some(&Word::End) {
            parser.at += 1;
            continue;
        }
        let place = parser.place();
        if words[parser.at..].iter().take(LONGEST).all(|w| w.1 != Word::End) {
            return Err(parser.problem(format!(
                "the statement is too long: it may have at most {LONGEST} words and signs"
            )));
        }
        statements.push((place, parser.statement()?));
        match parser.peek() {
            Some(Word::End) | None => {}
            Some(_) => {
                return Err(parser.problem("the statement should end before this word or sign"));
            }
        }
    }
    Ok(Snippet { statements })
}

struct Parser<'a> {
    words: &'a [(Place, Word)],
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Word> {
        self.words.get(self.at).map(|w| &w.1)
    }

    fn place(&self) -> Place {
        self.words.get(self.at).or(self.words.last()).map(|w| w.0).unwrap_or_default()
    }

    fn problem(&self, message: impl Into<String>) -> Problem {
        Problem::new(self.place(), message)
    }

    fn takes(&mut self, sign: &str) -> bool {
        let there = matches!(self.peek(), Some(Word::Sign(s)) if *s == sign);
        self.at += usize::from(there);
        there
    }

    fn takes_name(&mut self, name: &str) -> bool {
        let there = matches!(self.peek(), Some(Word::Name(n)) if n == name);
        self.at += usize::from(there);
        there
    }

    /// Skips the next token if it is one of `signs`, and returns it; otherwise returns `None`.
    fn takes_one(&mut self, signs: &[&'static str]) -> Option<&'static str> {
        let found = match self.peek() {
            Some(Word::Sign(s)) => signs.iter().find(|x| *x == s).copied(),
            _ => None,
        };
        self.at += usize::from(found.is_some());
        found
    }

    fn statement(&mut self) -> Result<Statement, Problem> {
        if self.takes_name("assert") {
            let from = self.at;
            let condition = self.expression(0)?;
            let text = self.written(from);
            let message = if self.takes(",") { Some(self.expression(0)?) } else { None };
            return Ok(Statement::Assert(condition, message, text));
        }
        let Some(Word::Name(name)) = self.peek().cloned() else {
            return Err(self.problem("expected assert, print or an assignment"));
        };
        let start = self.place();
        self.at += 1;
        if name == "print" && self.takes("(") {
            return Ok(Statement::Print(self.arguments()?));
        }
        if self.takes("=") {
            return Ok(Statement::Assign(name, None, self.expression(0)?));
        }
        if let Some(sign) = self.takes_one(&ASSIGNMENTS.map(|a| a.0)) {
            let operator = ASSIGNMENTS.iter().find(|a| a.0 == sign).map(|a| a.1);
            return Ok(Statement::Assign(name, operator, self.expression(0)?));
        }
        let message = "only assert, print and assignments are supported in a snippet";
        start.fail(format!("'{name}': {message}"))
    }

    /// Returns the tokens from index `from` to the current one as text, for error messages.
    fn written(&self, from: usize) -> String {
        let mut text = String::new();
        for (_, word) in &self.words[from..self.at] {
            if !text.is_empty() {
                text.push(' ');
            }
            match word {
                Word::Name(n) => text.push_str(n),
                Word::Number(n) => text.push_str(&n.to_string()),
                Word::Text(t) => text.push_str(&format!("{t:?}")),
                Word::Sign(s) => text.push_str(s),
                Word::End => {}
            }
        }
        text
    }

    fn expression(&mut self, depth: u32) -> Result<Expression, Problem> {
        if depth > DEEPEST {
            return Err(self.problem("the expression is nested more than 32 levels deep"));
        }
        let mut left = self.conjunction(depth)?;
        while self.takes_name("or") {
            left = binary("or", left, self.conjunction(depth)?);
        }
        Ok(left)
    }

    fn conjunction(&mut self, depth: u32) -> Result<Expression, Problem> {
        let mut left = self.negation(depth)?;
        while self.takes_name("and") {
            left = binary("and", left, self.negation(depth)?);
        }
        Ok(left)
    }

    fn negation(&mut self, depth: u32) -> Result<Expression, Problem> {
        let place = self.place();
        let mut negated = 0u32;
        while self.takes_name("not") {
            negated += 1;
        }
        let mut inner = self.comparison(depth)?;
        for _ in 0..negated.min(2 + negated % 2) {
            inner = Expression { place, kind: Kind::Unary("not", Box::new(inner)) };
        }
        Ok(inner)
    }

    fn comparison(&mut self, depth: u32) -> Result<Expression, Problem> {
        let first = self.level(0, depth)?;
        let mut others = Vec::new();
        while let Some(sign) = self.takes_one(&COMPARISONS) {
            others.push((sign, self.level(0, depth)?));
        }
        if others.is_empty() {
            return Ok(first);
        }
        Ok(Expression { place: first.place, kind: Kind::Compare(Box::new(first), others) })
    }

    fn level(&mut self, level: usize, depth: u32) -> Result<Expression, Problem> {
        let Some(signs) = LEVELS.get(level) else { return self.unary(depth) };
        let mut left = self.level(level + 1, depth)?;
        while let Some(sign) = self.takes_one(signs) {
            left = binary(sign, left, self.level(level + 1, depth)?);
        }
        Ok(left)
    }

    fn unary(&mut self, depth: u32) -> Result<Expression, Problem> {
        if depth > DEEPEST {
            return Err(self.problem("the expression is nested more than 32 levels deep"));
        }
        let place = self.place();
        match self.takes_one(&["-", "~"]) {
            Some(sign) => {
                let inner = self.unary(depth + 1)?;
                Ok(Expression { place, kind: Kind::Unary(sign, Box::new(inner)) })
            }
            None => self.primary(depth),
        }
    }

    fn primary(&mut self, depth: u32) -> Result<Expression, Problem> {
        let place = self.place();
        let word = self.peek().cloned();
        self.at += 1;
        let kind = match word {
            Some(Word::Number(n)) => Kind::Number(n),
            Some(Word::Text(t)) => Kind::Text(t),
            Some(Word::Name(name)) if KEYWORDS.contains(&name.as_str()) => {
                return place.fail(format!("'{name}' is not supported in a snippet"));
            }
            Some(Word::Name(name)) if self.takes("(") => {
                if !FUNCTIONS.contains(&name.as_str()) {
                    let known = FUNCTIONS.join(", ");
                    let message = format!("unknown function '{name}'; known are {known}");
                    return place.fail(message);
                }
                Kind::Call(name, self.arguments_at(depth + 1)?)
            }
            Some(Word::Name(name)) => Kind::Name(name),
            Some(Word::Sign("(")) => {
                let mut inner = self.expression(depth + 1)?;
                if self.takes(")") {
                    return Ok(inner);
                }
                let mut all = Vec::new();
                while self.takes(",") {
                    all.push(inner);
                    inner = self.expression(depth + 1)?;
                }
                all.push(inner);
                if !self.takes(")") {
                    return Err(self.problem("')' is missing"));
                }
                Kind::Tuple(all)
            }
            _ => return place.fail("an expression is missing here"),
        };
        Ok(Expression { place, kind })
    }

    fn arguments(&mut self) -> Result<Vec<Expression>, Problem> {
        self.arguments_at(0)
    }

    /// Parses the arguments of a function call, after its opening bracket.
    fn arguments_at(&mut self, depth: u32) -> Result<Vec<Expression>, Problem> {
        let mut all = Vec::new();
        while !self.takes(")") {
            if !all.is_empty() && !self.takes(",") {
                return Err(self.problem("',' or ')' is missing"));
            }
            all.push(self.expression(depth + 1)?);
        }
        Ok(all)
    }
}

fn binary(sign: &'static str, left: Expression, right: Expression) -> Expression {
    let place = left.place;
    Expression { place, kind: Kind::Binary(sign, Box::new(left), Box::new(right)) }
}
