//! Stream of an endpoint: bytes written by the application, sent and acknowledged.

use serde::{Deserialize, Serialize};

/// The byte stream that an endpoint sends. Position 0 is the SYN, position 1 the first byte; the
/// FIN follows the last byte.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Stream {
    /// First position of the stream that is not acknowledged (SND.UNA).
    pub(super) una: u64,
    /// Next position of the stream to send for the first time (SND.NXT).
    pub(super) next: u64,
    /// Position after the last byte that the application has written.
    pub(super) end: u64,
    /// Position of the first byte of the application's last write.
    pub(super) written_from: u64,
}

impl Stream {
    /// Returns a stream to which nothing has been written, and of which nothing is sent.
    pub(super) fn new() -> Stream {
        Stream { una: 0, next: 0, end: 1, written_from: 1 }
    }

    /// Returns the bytes sent and not acknowledged; SYN and FIN count one byte each.
    #[inline]
    pub(super) fn outstanding(&self) -> u64 {
        self.next - self.una
    }

    /// Returns the bytes that the application has written and the endpoint has not sent.
    #[inline]
    pub(super) fn unsent(&self) -> u64 {
        self.end.saturating_sub(self.next.max(1))
    }

    /// Returns the bytes written and not acknowledged.
    #[inline]
    pub(super) fn remaining(&self) -> u64 {
        self.end.saturating_sub(self.una.max(1))
    }

    /// Adds `bytes` payload bytes that the application writes.
    pub(super) fn write(&mut self, bytes: u64) {
        self.written_from = self.end;
        self.end += bytes;
    }

    /// Drops the bytes written but not sent, except the first byte of the stream.
    pub(super) fn truncate(&mut self) {
        const AFTER_FIRST_BYTE: u64 = 2; // the SYN has sequence number 0
        self.end = self.end.min(self.next.max(AFTER_FIRST_BYTE));
        self.written_from = self.written_from.min(self.end);
    }
}
