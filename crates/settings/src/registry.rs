//! Registry entries of mechanisms that are not built in.

use std::sync::Arc;

/// A mechanism from another crate, which scenarios can select by its name like a built-in one.
pub struct Entry<R: ?Sized> {
    /// Name of the mechanism in scenarios.
    pub name: &'static str,
    /// One line that explains the mechanism.
    pub doc: &'static str,
    /// Function that reads the settings of the mechanism.
    pub read: Arc<R>,
}

impl<R: ?Sized> Clone for Entry<R> {
    fn clone(&self) -> Entry<R> {
        Entry { name: self.name, doc: self.doc, read: self.read.clone() }
    }
}
