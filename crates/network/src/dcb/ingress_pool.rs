//! Shared memory of the lossless inputs of a switch: the thresholds of PFC depend on the free
//! memory.
//!
//! Real switches have one memory for all ports (see [`crate::shared_buffer`] for lossy queues). A
//! lossless input, or *priority group*, may hold `reserve` bytes, and beyond them `alpha` times the
//! free memory (Choudhury and Hahne 1998). At this limit it sends XOFF, and packets that arrive
//! later use its own headroom. It sends XON when its headroom is empty and it holds at most its
//! limit minus `xon_offset`, or at most its reserve. The limits of all inputs change with every
//! packet of the switch. Therefore a pause can end because another input has become shorter.
//!
//! The profiles are settings of SONiC from its repository sonic-buildimage:
//! `buffers_defaults_t0.j2` (size of `ingress_lossless_pool`) and `pg_profile_lookup.ini` (`size`,
//! `threshold`, `xon_offset`) of the devices. A `threshold` of 0 means an alpha of 2^0 = 1. The
//! headroom is computed from the cables, as without shared memory.

use eastwest_settings::quantity::{Bytes, Ratio};
use eastwest_settings::{Section, key};
use serde::{Deserialize, Serialize};

/// Settings of the memory that the lossless inputs of a switch share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IngressPool {
    /// Size of the shared memory in IP bytes, without headroom.
    pub size: u64,
    /// Factor of the dynamic threshold: an input may hold `alpha` times the free memory beyond its
    /// reserve.
    pub alpha: f64,
    /// IP bytes that each priority of an input may hold even if no shared memory is free.
    pub reserve: u64,
    /// Difference in IP bytes between the limit of an input and the occupancy at which it ends a
    /// pause.
    pub xon_offset: u64,
}

/// Settings of a switch: name, description with source, and the values of `shared`, `reserve` and
/// `xon_offset` in bytes. `alpha` is 1.
type Profile = (&'static str, &'static str, [u64; 3]);

const PROFILES: [Profile; 3] = [
    (
        "arista-7050cx3",
        "Arista 7050CX3 (Broadcom Trident 3), SONiC: 32.7 MB",
        [32_732_160, 4_608, 4_608],
    ),
    (
        "arista-7060x6",
        "Arista 7060X6 (Broadcom Tomahawk 5), SONiC: 164.5 MB",
        [164_505_640, 18_796, 3_556],
    ),
    // The profile of this switch has a fixed XON threshold, the reserve; therefore the offset is
    // the whole memory.
    (
        "nvidia-sn4280",
        "NVIDIA SN4280 (Spectrum-3), SONiC: 52.1 MB",
        [52_064_208, 19_456, 52_064_208],
    ),
];

impl IngressPool {
    /// Reads the settings of the shared memory from the table `[fabric.pfc]`; `None` if each input
    /// has its own buffer. `mtu` is the largest packet in bytes.
    pub(super) fn read(s: &mut Section, mtu: u32) -> Option<IngressPool> {
        const PROFILE: &str =
            "Switch whose settings of `shared`, `reserve` and `xon_offset` are used.";
        let none = [("none", None, "no switch: the settings are those of this table")];
        let known = PROFILES.iter().map(|p| (p.0, Some(p.2), p.1));
        let choices: Vec<_> = none.into_iter().chain(known).collect();
        if let Some([size, reserve, offset]) = s.choice("profile", PROFILE, Some("none"), &choices)
        {
            let bytes = |n: u64| format!("{n} B");
            s.preset_texts(&[
                ("shared", bytes(size)),
                ("reserve", bytes(reserve)),
                ("xon_offset", bytes(offset)),
            ]);
        }
        let shared = s.find(
            key::<Bytes>(
                "shared",
                "Memory that the lossless inputs of a switch share, in IP bytes, without headroom. \
                 `buffer`, `xoff` and `xon` are no keys then.",
            )
            .optional("each input has its own buffer")
            .range("1 KB", "100 GB"),
        );
        if shared.is_none() && !s.describing() {
            return None;
        }
        let alpha: Ratio = s.get(
            key(
                "alpha",
                "With `shared`: a priority of an input may hold alpha times the free memory (SONiC: 1).",
            )
            .default("1")
            .range("0.001", "1000"),
        );
        let reserve: Bytes = s.get(
            key(
                "reserve",
                "With `shared`: IP bytes that a priority of an input may hold whatever `alpha` allows.",
            )
            .default("0 B")
            .range("0 B", "1 GB"),
        );
        let offset: Bytes = s.get(
            key(
                "xon_offset",
                "With `shared`: a pause ends at this number of IP bytes below the limit of the input, \
                 or at its reserve.",
            )
            .computed("two largest packets", Bytes(2 * u64::from(mtu)))
            .range("0 B", "100 GB"),
        );
        let size = shared?.0;
        s.demand(size >= u64::from(mtu), &["shared"], || {
            format!("is too small: there is no room for a single packet of {mtu} B (fabric.mtu)")
        });
        Some(IngressPool { size, alpha: alpha.0, reserve: reserve.0, xon_offset: offset.0 })
    }

    /// Returns the limit in bytes of one priority of an input, while `free` bytes of the shared
    /// memory are free.
    pub fn limit(&self, free: u64) -> u64 {
        self.reserve.saturating_add((self.alpha * free as f64) as u64)
    }

    /// Whether an input that holds `bytes` bytes may end its pause while `free` bytes of the shared
    /// memory are free.
    pub fn resumes(&self, bytes: u64, free: u64) -> bool {
        bytes <= self.limit(free).saturating_sub(self.xon_offset).max(self.reserve)
    }
}

/// Use of the shared memory of a switch by one input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PoolUse {
    pub pool: IngressPool,
    /// IP bytes in the headroom of the input, by priority.
    pub in_headroom: [u64; 8],
}

impl PoolUse {
    pub fn new(pool: IngressPool) -> PoolUse {
        PoolUse { pool, in_headroom: [0; 8] }
    }

    /// Returns how many bytes of the shared memory a priority uses that holds `bytes` bytes: those
    /// beyond its headroom and its reserve.
    pub fn shared(&self, priority: usize, bytes: u64) -> u64 {
        (bytes - self.in_headroom[priority]).saturating_sub(self.pool.reserve)
    }

    /// Whether a packet of `packet` bytes fits into the reserve or the shared memory, while `free`
    /// bytes of this memory are free; if not, it goes to the headroom. The priority already holds
    /// `bytes` bytes.
    pub fn takes(&self, priority: usize, bytes: u64, packet: u64, free: u64) -> bool {
        let own = bytes - self.in_headroom[priority];
        let more = (own + packet).saturating_sub(self.pool.reserve.max(own));
        own < self.pool.limit(free) && more <= free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_follow_the_free_memory() {
        let pool = IngressPool { size: 1_000_000, alpha: 0.5, reserve: 5_000, xon_offset: 3_000 };
        assert_eq!((pool.limit(1_000_000), pool.limit(0)), (505_000, 5_000));
        assert!(pool.resumes(502_000, 1_000_000) && !pool.resumes(502_001, 1_000_000));
        // At or below the reserve an input can always end its pause.
        assert!(pool.resumes(5_000, 0) && !pool.resumes(5_001, 0));
    }

    #[test]
    fn the_headroom_is_used_at_the_limit_only() {
        let pool = IngressPool { size: 10_000, alpha: 1.0, reserve: 2_000, xon_offset: 0 };
        let mut input = PoolUse::new(pool);
        assert!(input.takes(3, 0, 1_500, 0) && input.takes(3, 11_999, 1_500, 10_000));
        assert!(!input.takes(3, 12_000, 1_500, 10_000));
        // 1,500 bytes beyond the reserve do not fit into 1,000 free bytes.
        assert!(!input.takes(3, 2_000, 1_500, 1_000) && input.takes(3, 1_500, 1_500, 1_000));
        input.in_headroom[3] = 4_000;
        assert_eq!((input.shared(3, 7_000), input.shared(3, 5_000)), (1_000, 0));
    }
}
