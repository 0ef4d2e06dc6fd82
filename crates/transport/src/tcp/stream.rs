//! Stream of an endpoint: bytes written by the application, sent and acknowledged.

use serde::{Deserialize, Serialize};

/// The stream that an endpoint sends. Positions count bytes from 1; the SYN is position 0, the FIN comes
/// after the last byte.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Stream {
    /// First position not acknowledged.
    pub(super) una: u64,
    /// Next position to be sent for the first time.
    pub(super) next: u64,
    /// Position after the last byte written.
    pub(super) end: u64,
    /// First position of the last write.
    pub(super) written_from: u64,
}

impl Stream {
    /// Returns a stream of which nothing is written or sent.
    pub(super) fn new() -> Stream {
        Stream { una: 0, next: 0, end: 1, written_from: 1 }
    }

    /// Returns the bytes sent and not acknowledged, the SYN and FIN counting one each.
    #[inline]
    pub(super) fn outstanding(&self) -> u64 {
        self.next - self.una
    }

    /// Returns the bytes written and not sent.
    #[inline]
    pub(super) fn unsent(&self) -> u64 {
        self.end.saturating_sub(self.next.max(1))
    }

    /// Returns the bytes written and not acknowledged.
    #[inline]
    pub(super) fn remaining(&self) -> u64 {
        self.end.saturating_sub(self.una.max(1))
    }

    /// Adds bytes that the application writes.
    pub(super) fn write(&mut self, bytes: u64) {
        self.written_from = self.end;
        self.end += bytes;
    }

    /// Drops the bytes that are not sent, except the first byte of the stream.
    pub(super) fn truncate(&mut self) {
        const AFTER_FIRST_BYTE: u64 = 2; // the SYN has sequence number 0
        self.end = self.end.min(self.next.max(AFTER_FIRST_BYTE));
        self.written_from = self.written_from.min(self.end);
    }
}
