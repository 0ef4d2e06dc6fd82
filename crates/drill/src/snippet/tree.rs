//! Syntax tree of a snippet: statements and their expressions.

use crate::problem::Place;

/// Syntax tree of the text between `%{` and `}%`: its statements in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snippet {
    /// Statements, each with its line and column in the script.
    pub statements: Vec<(Place, Statement)>,
}

/// A statement of a snippet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Statement {
    /// Assertion: condition, optional message, and text of the condition as written.
    Assert(Expression, Option<Expression>, String),
    /// `print(…)`: values that are added to the log of the script.
    Print(Vec<Expression>),
    /// Assignment: name, operator (`+` in `+=`, `None` for `=`), and value.
    Assign(String, Option<&'static str>, Expression),
}

/// An expression of a snippet, with its line and column in the script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expression {
    /// Line and column of the expression in the script.
    pub place: Place,
    /// Kind of the expression, with its operands.
    pub kind: Kind,
}

/// Kind of an expression, with its operands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A whole number.
    Number(i64),
    /// A text in quotation marks.
    Text(String),
    /// Name of a variable, of a field of `tcp_info` or of a constant.
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
