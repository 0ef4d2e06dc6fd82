//! Snippets: assertions between `%{` and `}%` in a small part of Python, parsed and evaluated here.
//!
//! Supported are `assert A, B`, `print(…)`, `name = A` and `name += A`, with whole numbers, texts,
//! formatting of texts with `%`, comparisons (also chained), `and or not`, arithmetic, and `abs min
//! max len str`. Anything else fails the script.

mod eval;
mod parse;
mod tree;
mod words;

pub use eval::{Variables, run};
pub use parse::parse;
pub use tree::Snippet;
