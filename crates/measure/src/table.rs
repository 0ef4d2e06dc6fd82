//! Tables of results.
//!
//! [`table!`](crate::table!) declares a table once: each column with its name, its type, its
//! meaning, the version of the result format that introduced it, and the expression that computes
//! its values. The Parquet schema, the tables that Python knows, and docs/reference/results.md are
//! generated from its [`Declared`].

use std::collections::BTreeMap;

/// Values of one column of a result table, one for each row.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Unsigned 32-bit integers.
    U32(Vec<u32>),
    /// Unsigned 64-bit integers.
    U64(Vec<u64>),
    /// Signed 64-bit integers.
    I64(Vec<i64>),
    /// Double-precision numbers.
    F64(Vec<f64>),
    /// Texts, which may be untrusted (names from a trace).
    Text(Vec<String>),
    /// Texts with few different values: an index for each row, and the list of texts to which it
    /// refers.
    Label(Vec<u32>, Vec<String>),
}

impl Column {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        match self {
            Column::U32(v) => v.len(),
            Column::U64(v) => v.len(),
            Column::I64(v) => v.len(),
            Column::F64(v) => v.len(),
            Column::Text(v) => v.len(),
            Column::Label(v, _) => v.len(),
        }
    }

    /// Returns the value of a row, converted to text.
    ///
    /// # Panics
    /// If the column has no row `row`.
    pub fn text(&self, row: usize) -> String {
        match self {
            Column::U32(v) => v[row].to_string(),
            Column::U64(v) => v[row].to_string(),
            Column::I64(v) => v[row].to_string(),
            Column::F64(v) => v[row].to_string(),
            Column::Text(v) => v[row].clone(),
            Column::Label(v, names) => names[v[row] as usize].clone(),
        }
    }

    /// Whether the column has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the name of the column's type in the documentation and in Python.
    pub fn kind(&self) -> &'static str {
        match self {
            Column::U32(_) => "u32",
            Column::U64(_) => "u64",
            Column::I64(_) => "i64",
            Column::F64(_) => "f64",
            Column::Text(_) | Column::Label(..) => "str",
        }
    }
}

/// A result table: named columns of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Name of the table, and of its file without extension (`flows`, `links` …).
    pub name: &'static str,
    /// Names and values of the columns, in order.
    pub columns: Vec<(&'static str, Column)>,
}

impl Table {
    /// Returns a table. All columns must have the same length.
    pub fn new(name: &'static str, columns: Vec<(&'static str, Column)>) -> Table {
        let rows = columns.first().map_or(0, |c| c.1.len());
        assert!(columns.iter().all(|c| c.1.len() == rows), "columns of {name} differ in length");
        Table { name, columns }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |c| c.1.len())
    }

    /// Returns the values of the column `name`; `None` if the table has no such column.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.0 == name).map(|c| &c.1)
    }
}

/// Declaration of a result table.
#[derive(Clone, Copy, Debug)]
pub struct Declared {
    /// Name of the table, and of its file without extension.
    pub name: &'static str,
    /// Meaning of a row, in Markdown. Links to other pages are relative to docs/reference/.
    pub about: &'static str,
    /// Version of the result format that introduced the table.
    pub since: u32,
    /// Declarations of the columns, in order.
    pub columns: &'static [DeclaredColumn],
}

/// Declaration of a column of a result table.
#[derive(Clone, Copy, Debug)]
pub struct DeclaredColumn {
    /// Name of the column, with its unit at the end (`time_s`).
    pub name: &'static str,
    /// Type of the values: `u32`, `u64`, `i64`, `f64` or `str`.
    pub kind: &'static str,
    /// Version of the result format that introduced the column.
    pub since: u32,
    /// Meaning of the values, in Markdown: the labels that occur, and the number that stands for no
    /// value.
    pub about: &'static str,
}

/// Names of workloads, traffic classes and tiers of a run. Columns of the kind `label` hold indices
/// of names.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Names of the workloads.
    pub workloads: Vec<String>,
    /// Names of the traffic classes.
    pub classes: Vec<String>,
    /// Names of the tiers of links.
    pub tiers: Vec<String>,
}

/// A column of texts with few different values, which are numbered in the order of their first use.
#[derive(Default)]
pub struct Few {
    rows: Vec<u32>,
    texts: Vec<String>,
    numbers: BTreeMap<String, u32>,
}

impl Few {
    /// Returns an empty column with room for `rows` rows.
    pub fn with_capacity(rows: usize) -> Few {
        Few { rows: Vec::with_capacity(rows), ..Few::default() }
    }

    /// Adds a row with the value `text`.
    pub fn push(&mut self, text: &str) {
        let last = self.rows.last().copied();
        let number = match last.filter(|last| self.texts[*last as usize] == text) {
            Some(last) => last,
            None => self.number(text),
        };
        self.rows.push(number);
    }

    fn number(&mut self, text: &str) -> u32 {
        // Comparing a few texts takes less time than a search in the tree.
        if let Some(found) = self.texts.iter().take(8).position(|t| t == text) {
            return found as u32;
        }
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

impl From<Few> for Column {
    fn from(few: Few) -> Column {
        Column::Label(few.rows, few.texts)
    }
}

/// Declares a table: a type with a constant `DECLARED`, and with a function `of` that makes the
/// table from rows.
///
/// ```
/// use eastwest_measure::table;
/// use eastwest_measure::table::Column;
/// use eastwest_types::Time;
///
/// table! {
///     /// One row per arrival.
///     pub Arrivals = "arrivals" since 7 of (host, at) in (u32, Time), names: &[&str];
///
///     /// name of the host
///     host: label(names) = host;
///
///     /// when it arrived
///     at_s since 8: seconds = at;
/// }
///
/// let table = Arrivals::of([(1, Time(3_000_000_000_000))], &["a", "b"]);
/// assert_eq!(table.column("at_s"), Some(&Column::F64(vec![3.0])));
/// assert_eq!(Arrivals::DECLARED.columns[1].about, " when it arrived");
/// ```
///
/// The values of a column of the kind `u32`, `u64`, `i64` or `f64` are numbers of this type or of a
/// smaller one. A `str` is a `String` that may be untrusted; a `few` is a `&str` with few different
/// values; a `label(texts)` is the index of one of the texts; `seconds` and `us` are a `Time` or
/// `Span`, which is stored as a double.
#[macro_export]
macro_rules! table {
    (
        $(#[doc = $doc:literal])+
        $vis:vis $Table:ident = $name:literal $(since $since:literal)?
        of $row:pat_param in $Row:ty, $at:ident: $At:ty;
        $(
            $(#[doc = $about:literal])+
            $column:ident $(since $later:literal)?: $kind:ident $(($texts:expr))? = $value:expr;
        )+
    ) => {
        $(#[doc = $doc])+
        $vis struct $Table;

        impl $Table {
            /// Declaration of this table: its name, the meaning of a row, and its columns.
            $vis const DECLARED: $crate::table::Declared = $crate::table::Declared {
                name: $name,
                about: concat!($($doc),+),
                since: $crate::table!(@since $($since)?),
                columns: &[$($crate::table::DeclaredColumn {
                    name: stringify!($column),
                    kind: $crate::table!(@kind $kind),
                    since: $crate::table!(@since $($later)?),
                    about: concat!($($about),+),
                }),+],
            };

            /// Returns the table with the rows `rows`.
            #[allow(clippy::extra_unused_lifetimes, clippy::useless_conversion)]
            #[allow(private_bounds, private_interfaces)]
            $vis fn of<'a>(
                rows: impl IntoIterator<Item = $Row>,
                $at: $At,
            ) -> $crate::table::Table {
                #[allow(non_snake_case)]
                struct Columns {
                    $($column: $crate::table!(@store $kind),)+
                }
                let rows = rows.into_iter();
                let room = rows.size_hint().0;
                let mut columns = Columns {
                    $($column: <$crate::table!(@store $kind)>::with_capacity(room),)+
                };
                for $row in rows {
                    $(columns.$column.push($crate::table!(@value $kind $value));)+
                }
                $crate::table::Table::new($name, vec![
                    $((
                        stringify!($column),
                        $crate::table!(@column $kind $(($texts))? columns.$column),
                    ),)+
                ])
            }
        }
    };
    (@since) => { 1 };
    (@since $since:literal) => { $since };
    (@kind seconds) => { "f64" };
    (@kind us) => { "f64" };
    (@kind few) => { "str" };
    (@kind label) => { "str" };
    (@kind $kind:ident) => { stringify!($kind) };
    (@store seconds) => { Vec<f64> };
    (@store us) => { Vec<f64> };
    (@store few) => { $crate::table::Few };
    (@store label) => { Vec<u32> };
    (@store str) => { Vec<String> };
    (@store $kind:ident) => { Vec<$kind> };
    (@value seconds $value:expr) => { $value.as_secs_f64() };
    (@value us $value:expr) => { $value.as_us_f64() };
    (@value few $value:expr) => { $value };
    (@value str $value:expr) => { $value };
    (@value label $value:expr) => { u32::from($value) };
    (@value $kind:ident $value:expr) => { $kind::from($value) };
    (@column label ($texts:expr) $values:expr) => {
        $crate::table::Column::Label($values, $texts.iter().map(|t| t.to_string()).collect())
    };
    (@column few $values:expr) => { $crate::table::Column::from($values) };
    (@column str $values:expr) => { $crate::table::Column::Text($values) };
    (@column u32 $values:expr) => { $crate::table::Column::U32($values) };
    (@column u64 $values:expr) => { $crate::table::Column::U64($values) };
    (@column i64 $values:expr) => { $crate::table::Column::I64($values) };
    (@column $kind:ident $values:expr) => { $crate::table::Column::F64($values) };
}
