//! Identifiers of a workload's connections. Freed identifiers are used again, so that tables are
//! only as large as the largest number of open connections.

use eastwest_types::ConnId;
use serde::{Deserialize, Serialize};

/// A value for each open connection of a workload, by the identifier of the connection.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Names<T> {
    held: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Names<T> {
    pub(crate) fn new() -> Names<T> {
        Names { held: Vec::new(), free: Vec::new() }
    }

    /// Returns an unused connection identifier and stores `value` for it.
    pub(crate) fn take(&mut self, value: T) -> ConnId {
        match self.free.pop() {
            Some(slot) => {
                self.held[slot as usize] = Some(value);
                ConnId(slot)
            }
            None => {
                self.held.push(Some(value));
                ConnId(self.held.len() as u32 - 1)
            }
        }
    }

    /// Frees a connection identifier, which must be in use, and returns its value.
    pub(crate) fn release(&mut self, conn: ConnId) -> T {
        let value = self.held[conn.0 as usize].take();
        self.free.push(conn.0);
        value.expect("a connection in use")
    }

    /// Returns the number of connection identifiers in use.
    pub(crate) fn in_use(&self) -> usize {
        self.held.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_used_again_so_tables_stay_small() {
        let mut names = Names::new();
        for round in 0..1000 {
            let a = names.take(round);
            let b = names.take(round + 1);
            assert_ne!(a, b);
            assert!(a.0 < 2 && b.0 < 2, "{a:?} {b:?}");
            assert_eq!((names.release(a), names.release(b)), (round, round + 1));
        }
        assert_eq!(names.in_use(), 0);
    }
}
