//! Send buffer of a socket, whose size a script can limit by `SO_SNDBUF`, and its unsent data by
//! `TCP_NOTSENT_LOWAT`. Without limits every write is accepted completely.
//!
//! As in Linux (`tcp_sendmsg_locked`), data is accepted in chunks of up to half of the largest
//! window that the other end has advertised. Only a new chunk needs free memory. In addition to the
//! data, 1,280 bytes of memory count for each ten segments. The real overhead depends on the build
//! of the kernel and on the sizes of segments.

use crate::host::Host;
use eastwest_types::Time;

/// Bytes of kernel memory for each [`PIECE`] segments, in addition to the data.
const OVERHEAD: u64 = 1_280;
/// Number of segments for which [`OVERHEAD`] bytes of memory count once.
const PIECE: u64 = 10;
/// Largest chunk of accepted data, in bytes (Linux, `GSO_LEGACY_MAX_SIZE` less headers).
const MOST_CHUNK: u64 = 65_160;

/// Send buffer of a socket: its limits (`SO_SNDBUF`, `TCP_NOTSENT_LOWAT`), and the chunk that is
/// being filled.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendBuffer {
    /// Limit of the buffer's kernel memory in bytes, twice the value of `SO_SNDBUF`; `None` for no
    /// limit.
    pub size: Option<u64>,
    /// `TCP_NOTSENT_LOWAT` of the socket: limit of unsent bytes. 0 stands for the limit of the
    /// host, `u32::MAX` for no limit.
    pub socket_lowat: u32,
    /// `net.ipv4.tcp_notsent_lowat` of the host: limit of unsent bytes; `None` for no limit.
    pub host_lowat: Option<u32>,
    /// Stream position of the first byte of the current chunk.
    chunk: u64,
    /// Largest receive window that the other end has advertised so far, in bytes.
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

    /// Whether there is memory for a new chunk of data (Linux, `sk_stream_memory_free`).
    fn is_free(&self, host: &Host) -> bool {
        self.size.is_none_or(|size| Self::memory(host) < size)
            && self.lowat().is_none_or(|lowat| host.unsent() < lowat)
    }

    /// Whether an application that is blocked in a write wakes up: at least a third of the send
    /// buffer's memory is free, and less than half of the permitted unsent bytes is used (Linux,
    /// `sk_stream_is_writeable`).
    pub fn is_writable(&self, host: &Host) -> bool {
        let memory = Self::memory(host);
        self.size.is_none_or(|size| size.saturating_sub(memory) >= memory / 2)
            && self.lowat().is_none_or(|lowat| 2 * host.unsent() < lowat)
    }

    /// Writes data of the application to the connection, at most `bytes` bytes and as many as the
    /// buffer accepts. Returns the number of bytes written. `more`: whether the last bytes may be
    /// held back (`MSG_MORE`).
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
