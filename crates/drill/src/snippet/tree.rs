//! What a snippet is after reading: statements of expressions.

use crate::problem::Place;

/// A snippet: its statements in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snippet {
    /// The statements and where they stand.
    pub statements: Vec<(Place, Statement)>,
}

/// A statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Statement {
    /// Fails unless the first is true; the second is the message. The text is how it was written.
    Assert(Expression, Option<Expression>, String),
    /// Shown in the dialogue.
    Print(Vec<Expression>),
    /// A name gets a value; with an operator, its value and the other.
    Assign(String, Option<&'static str>, Expression),
}

/// An expression and where it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expression {
    /// Where.
    pub place: Place,
    /// What.
    pub kind: Kind,
}

/// Kinds of expressions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A number.
    Number(i64),
    /// A text.
    Text(String),
    /// A variable, field or constant.
    Name(String),
    /// `-a`, `~a`, `not a`
    Unary(&'static str, Box<Expression>),
    /// `a + b` and the like, `a and b`, `a or b`
    Binary(&'static str, Box<Expression>, Box<Expression>),
    /// `a < b <= c`
    Compare(Box<Expression>, Vec<(&'static str, Expression)>),
    /// `name(a, b)`
    Call(String, Vec<Expression>),
    /// `(a, b)`
    Tuple(Vec<Expression>),
}
