//! Mechanisms from outside, by their names.

use std::sync::Arc;

/// A mechanism: a scenario may name it beside the built-in ones of its family.
pub struct Entry<R: ?Sized> {
    /// Its name in scenarios.
    pub name: &'static str,
    /// One line of explanation.
    pub doc: &'static str,
    /// Reads its settings.
    pub read: Arc<R>,
}

impl<R: ?Sized> Clone for Entry<R> {
    fn clone(&self) -> Entry<R> {
        Entry { name: self.name, doc: self.doc, read: self.read.clone() }
    }
}
