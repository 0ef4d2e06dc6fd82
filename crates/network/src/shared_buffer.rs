//! Buffer shared by the ports of a switch, with dynamic thresholds (Choudhury and Hahne 1998).
//!
//! A queue may hold at most `alpha` times the free memory. A few long queues may therefore use much
//! of the memory, while many long queues share it equally (each of n greedy queues holds
//! `alpha·B/(1 + alpha·n)` of the memory B). A queue may always hold `reserve` bytes while memory
//! is free. The limit and the discipline of each queue apply as well. Bytes are IP bytes of queued
//! packets. Memory is not divided into cells, and the packet in transmission does not count.

use eastwest_settings::quantity::{Bytes, Ratio};
use eastwest_settings::reader::{Section, key};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};

/// Settings of the shared buffer of every switch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SharedBufferConfig {
    /// Memory for all ports of a switch together, in IP bytes.
    pub size: u64,
    /// Factor of the dynamic threshold: a queue may hold at most `alpha` times the free memory.
    pub alpha: f64,
    /// IP bytes that a queue may hold while the switch has free memory, whatever `alpha` allows.
    pub reserve: u64,
}

impl SharedBufferConfig {
    /// Reads the table `[fabric.shared_buffer]`; `None` if the scenario has no such table. `mtu` is
    /// the largest packet in bytes.
    pub fn read(s: &mut Section, mtu: u32) -> Option<SharedBufferConfig> {
        let given = s.has("shared_buffer");
        let doc = "Memory that all ports of a switch share, in addition to the limit of each \
                   queue (Choudhury and Hahne 1998); makes ports two-event ports. Without this \
                   table each port has its own memory.";
        if !given && !s.describing() {
            return None;
        }
        let config = s.table("shared_buffer", doc, |b| {
            let size: Bytes = b.get(
                key(
                    "size",
                    "Size of the shared memory of a switch, in IP bytes of all its \
                                   queues.",
                )
                .range("1 KB", "100 GB"),
            );
            let alpha: Ratio = b.get(
                key(
                    "alpha",
                    "Dynamic threshold: a queue may hold at most alpha times the free memory \
                     (Choudhury and Hahne 1998: 1).",
                )
                .default("1")
                .range("0.001", "1000"),
            );
            let reserve: Bytes = b.get(
                key(
                    "reserve",
                    "IP bytes that a queue may hold while the switch has free memory, \
                                whatever `alpha` allows.",
                )
                .default("0 B"),
            );
            b.demand(size.0 >= u64::from(mtu), &["size"], || {
                format!(
                    "is too small: there is no room for a single packet of {mtu} B \
                         (fabric.mtu)"
                )
            });
            b.demand(reserve.0 <= size.0, &["reserve", "size"], || {
                "must be at most `size`".to_owned()
            });
            SharedBufferConfig { size: size.0, alpha: alpha.0, reserve: reserve.0 }
        });
        given.then_some(config)
    }
}

/// Buffer shared by the ports of one switch.
// Only one thread uses the buffer; atomics are needed since several ports refer to the same buffer.
#[derive(Debug, Serialize, Deserialize)]
pub struct SharedBuffer {
    config: SharedBufferConfig,
    used: AtomicU64,
    /// Largest value of `used` so far.
    most: AtomicU64,
}

impl SharedBuffer {
    /// Returns an empty shared buffer.
    pub fn new(config: SharedBufferConfig) -> SharedBuffer {
        SharedBuffer { config, used: AtomicU64::new(0), most: AtomicU64::new(0) }
    }

    /// Returns the IP bytes in all queues of the switch together.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns the largest number of IP bytes so far in all queues of the switch together.
    pub fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }

    /// Whether a queue that holds `queue` IP bytes may accept a packet of `ip_len` IP bytes, by the
    /// dynamic threshold or the reserve.
    pub fn admits(&self, queue: u64, ip_len: u32) -> bool {
        let (c, ip_len) = (&self.config, u64::from(ip_len));
        let free = c.size.saturating_sub(self.used());
        let threshold = (c.alpha * free as f64) as u64;
        ip_len <= free && (queue + ip_len <= c.reserve || queue < threshold)
    }

    /// Records that the content of a queue has changed from `before` to `after` IP bytes.
    pub fn changed(&self, before: u64, after: u64) {
        let used = self.used().wrapping_sub(before).wrapping_add(after);
        self.used.store(used, Ordering::Relaxed);
        if used > self.most() {
            self.most.store(used, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(alpha: f64, reserve: u64) -> SharedBuffer {
        SharedBuffer::new(SharedBufferConfig { size: 1_000_000, alpha, reserve })
    }

    /// Returns the bytes that each of `n` queues holds after they have enqueued packets of 1000 B
    /// in turn until no more packet was admitted.
    fn filled(buffer: &SharedBuffer, n: usize) -> Vec<u64> {
        let mut queues = vec![0; n];
        loop {
            let mut grown = false;
            for queue in &mut queues {
                if buffer.admits(*queue, 1000) {
                    buffer.changed(*queue, *queue + 1000);
                    *queue += 1000;
                    grown = true;
                }
            }
            if !grown {
                return queues;
            }
        }
    }

    #[test]
    fn queues_get_what_the_equation_says() {
        for (alpha, n) in [(1.0, 1), (1.0, 4), (0.5, 2), (8.0, 3)] {
            let expected = alpha * 1e6 / (1.0 + alpha * n as f64);
            for queue in filled(&buffer(alpha, 0), n) {
                assert!((queue as f64 - expected).abs() <= 2_000.0, "{alpha} {n}: {queue}");
            }
        }
    }

    #[test]
    fn the_reserve_is_there_for_a_queue_that_comes_late_and_the_memory_is_never_exceeded() {
        let shared = buffer(1.0, 10_000);
        shared.changed(0, 995_000);
        assert!(shared.admits(4_000, 1_000) && shared.admits(0, 5_000));
        assert!(!shared.admits(0, 5_001));
        assert!(!shared.admits(9_001, 1_000) && shared.admits(4_999, 1_000));
        shared.changed(995_000, 500_000);
        assert_eq!(shared.used(), 500_000);
        assert!(shared.admits(499_999, 1_500) && !shared.admits(500_000, 1_500));
    }
}
