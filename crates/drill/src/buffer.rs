//! Send buffer of a socket, if a script limits it: its size by `SO_SNDBUF`, or its unsent data by
//! `TCP_NOTSENT_LOWAT`. Without limits every write is accepted completely.
//!
//! As in Linux (`tcp_sendmsg_locked`), data is accepted in chunks of up to half of the largest
//! window that the other end has advertised, and only a new chunk needs free memory. In addition to
//! the data, 1,280 bytes of memory count for each ten segments; the real overhead depends on the
//! kernel's build and on how segments are cut.

use crate::host::Host;
use eastwest_types::Time;

/// Kernel memory in bytes for each [`PIECE`], in addition to the data.
const OVERHEAD: u64 = 1_280;
/// Number of segments in one piece of memory.
const PIECE: u64 = 10;
/// Largest chunk (Linux, `GSO_LEGACY_MAX_SIZE` less headers).
const MOST_CHUNK: u64 = 65_160;

/// Send buffer of a socket: its limits (`SO_SNDBUF`, `TCP_NOTSENT_LOWAT`), and the chunk that is
/// being filled.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendBuffer {
    /// Limit of the buffer's kernel memory in bytes, which is twice the value of `SO_SNDBUF`;
    /// `None` for no limit.
    pub size: Option<u64>,
    /// `TCP_NOTSENT_LOWAT` of the socket: limit of unsent bytes; 0 uses the limit of the host,
    /// `u32::MAX` is no limit.
    pub socket_lowat: u32,
    /// `net.ipv4.tcp_notsent_lowat` of the host: limit of unsent bytes; `None` for no limit.
    pub host_lowat: Option<u32>,
    /// First position of the current chunk.
    chunk: u64,
    /// Largest window of the other end so far, in bytes.
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

    /// Whether a blocked writer is woken: a third of the buffer is free, and less than half of the
    /// limit is unsent (Linux, `sk_stream_is_writeable`).
    pub fn is_writable(&self, host: &Host) -> bool {
        let memory = Self::memory(host);
        self.size.is_none_or(|size| size.saturating_sub(memory) >= memory / 2)
            && self.lowat().is_none_or(|lowat| 2 * host.unsent() < lowat)
    }

    /// Writes `bytes` bytes of the application to the connection as far as they fit into the
    /// buffer. Returns the number of bytes written. `more`: the last ones may be held back
    /// (`MSG_MORE`).
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
