//! A parsed snippet: statements of expressions.

use crate::problem::Place;

/// The parsed text between `%{` and `}%`: its statements in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snippet {
    /// Statements with their places.
    pub statements: Vec<(Place, Statement)>,
}

/// A statement of a snippet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Statement {
    /// Assertion: condition, message if it has one, and text as written.
    Assert(Expression, Option<Expression>, String),
    /// `print(…)`: values that are added to the log.
    Print(Vec<Expression>),
    /// Assignment: name, operator (`+` in `+=`; `None` for `=`), value.
    Assign(String, Option<&'static str>, Expression),
}

/// An expression of a snippet, and its place in the script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expression {
    /// Place in the script.
    pub place: Place,
    /// Kind of expression.
    pub kind: Kind,
}

/// Kind of an expression, with its operands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A number.
    Number(i64),
    /// A text.
    Text(String),
    /// A variable, field or constant.
    Name(String),
    /// Unary operation: `-a`, `~a`, `not a`.
    Unary(&'static str, Box<Expression>),
    /// Binary operation: `a + b`, `a and b`.
    Binary(&'static str, Box<Expression>, Box<Expression>),
    /// Chain of comparisons: `a < b <= c`.
    Compare(Box<Expression>, Vec<(&'static str, Expression)>),
    /// Function call: `name(a, b)`.
    Call(String, Vec<Expression>),
    /// Tuple: `(a, b)`.
    Tuple(Vec<Expression>),
}
