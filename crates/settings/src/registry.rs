//! Registries of mechanisms that are not built in, by name.

use std::sync::Arc;

/// A mechanism that scenarios may name beside the built-in ones of its family.
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
