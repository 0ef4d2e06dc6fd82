//! Plain columns: what leaves the simulator. Names carry units, see docs/reference/results.md.

/// Values of one column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Unsigned 32-bit.
    U32(Vec<u32>),
    /// Unsigned 64-bit.
    U64(Vec<u64>),
    /// Signed 64-bit.
    I64(Vec<i64>),
    /// Double.
    F64(Vec<f64>),
    /// Text that may be untrusted.
    Text(Vec<String>),
    /// Text out of few values: index into the second list.
    Label(Vec<u32>, Vec<String>),
}

impl Column {
    /// Number of rows.
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

    /// The value of a row as text.
    ///
    /// # Panics
    /// Where there is no such row.
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

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A named table of columns of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// File stem: `flows`, `links` …
    pub name: &'static str,
    /// Columns in order.
    pub columns: Vec<(&'static str, Column)>,
}

impl Table {
    /// A table; all columns must have the same length.
    pub fn new(name: &'static str, columns: Vec<(&'static str, Column)>) -> Table {
        let rows = columns.first().map_or(0, |c| c.1.len());
        assert!(columns.iter().all(|c| c.1.len() == rows), "columns of {name} differ in length");
        Table { name, columns }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |c| c.1.len())
    }

    /// A column by name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.0 == name).map(|c| &c.1)
    }
}
