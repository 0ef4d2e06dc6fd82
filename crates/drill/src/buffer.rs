//! The send buffer of a socket, where a script limits it: by `SO_SNDBUF`, or by `TCP_NOTSENT_LOWAT` what
//! is not sent of it. Otherwise writes are taken whole.
//!
//! As in Linux (`tcp_sendmsg_locked`), data is taken in chunks of up to half of the largest window the
//! other end has offered, and only a new chunk asks for room. Memory counts 1,280 bytes for each ten
//! segments beside the bytes themselves; a kernel's own share depends on its build and on how segments
//! are cut.

use crate::host::Host;
use eastwest_types::Time;

/// Memory that a kernel takes beside the bytes, for each [`PIECE`].
const OVERHEAD: u64 = 1_280;
/// Segments that lie together in memory.
const PIECE: u64 = 10;
/// Largest chunk (Linux, `GSO_LEGACY_MAX_SIZE` less headers).
const MOST_CHUNK: u64 = 65_160;

/// Limits of a send buffer, and the chunk that is being filled.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendBuffer {
    /// Its size as the kernel has it: twice what `SO_SNDBUF` was given.
    pub size: Option<u64>,
    /// `TCP_NOTSENT_LOWAT` of the socket; 0 takes that of the host.
    pub socket_lowat: u32,
    /// The `tcp_notsent_lowat` of the host, where it limits anything.
    pub host_lowat: Option<u32>,
    /// First position of the chunk that was begun last.
    chunk: u64,
    /// Largest window of the other end so far, bytes.
    window: u64,
}

impl SendBuffer {
    fn lowat(&self) -> Option<u64> {
        match (self.socket_lowat, self.host_lowat) {
            (0, host) => host.map(u64::from),
            (u32::MAX, _) => None,
            (own, _) => Some(u64::from(own)),
        }
    }

    fn memory(host: &Host) -> u64 {
        let queued = host.written() - host.acknowledged();
        queued + OVERHEAD * queued.div_ceil(PIECE * host.segment())
    }

    /// Whether a new chunk may begin (Linux, `sk_stream_memory_free`).
    fn is_free(&self, host: &Host) -> bool {
        self.size.is_none_or(|size| Self::memory(host) < size)
            && self.lowat().is_none_or(|lowat| host.unsent() < lowat)
    }

    /// Whether a writer that waits is woken: a third of the buffer is free, and less than half of the
    /// limit is unsent (Linux, `sk_stream_is_writeable`).
    pub fn is_writable(&self, host: &Host) -> bool {
        let memory = Self::memory(host);
        self.size.is_none_or(|size| size.saturating_sub(memory) >= memory / 2)
            && self.lowat().is_none_or(|lowat| 2 * host.unsent() < lowat)
    }

    /// The application writes `bytes`, which may wait for `more`; returns how many fit.
    pub fn take(&mut self, host: &mut Host, now: Time, bytes: u64, more: bool) -> u64 {
        self.window = self.window.max(host.peer_window());
        if self.size.is_none() && self.lowat().is_none() {
            host.write(now, bytes, more);
            return bytes;
        }
        let segment = host.segment();
        let goal = ((self.window / 2).min(MOST_CHUNK) / segment * segment).max(segment);
        let mut taken = 0;
        while taken < bytes {
            let end = host.written() + 1;
            let unsent_from = end - host.unsent();
            let mut room = goal.saturating_sub(end - self.chunk.max(unsent_from).min(end));
            if end == unsent_from || room == 0 {
                if !self.is_free(host) {
                    break;
                }
                (self.chunk, room) = (end, goal);
            }
            let part = room.min(bytes - taken);
            host.write(now, part, more || taken + part < bytes);
            taken += part;
        }
        taken
    }
}
