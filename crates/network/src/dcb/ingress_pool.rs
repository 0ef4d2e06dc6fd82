//! Memory of a switch with PFC: thresholds that depend on the free memory.
//!
//! Real switches have one memory for all ports. Each packet counts twice: at the *input* on which
//! it arrived, and at the *queue* in which it waits. Counting at inputs decides on XOFF for
//! lossless priorities, and counting at queues decides on drops of lossy priorities.
//!
//! * **Lossless inputs.** A lossless priority of an input (a *priority group*) may hold `reserve`
//!   bytes, and beyond them `alpha` times the free memory (Choudhury and Hahne 1998). At this limit
//!   the input sends XOFF for the priority, and packets that arrive later use its headroom. The
//!   input sends XON when this headroom is empty and the priority holds at most its limit minus
//!   `xon_offset`, or at most its reserve. The limits of all inputs change with every packet of the
//!   switch. Therefore a pause can end because the occupancy of another input has fallen.
//! * **Headroom.** Each priority of an input has its own headroom, or all priorities of all inputs
//!   share a pool. A pool that is smaller than the sum of the headrooms is *over-subscribed*: a
//!   lossless packet that finds no room in the pool is lost.
//! * **Lossy queues.** With `lossy`, packets of lossy priorities use the same memory. An arriving
//!   packet needs room at its input (in the free memory, or below `lossy_input_alpha` times the
//!   free memory), and its queue must be below `lossy_alpha` times the free part of `lossy`
//!   ([`crate::shared_buffer`]). Otherwise the packet is dropped. Without `lossy`, lossy queues
//!   have only the limits of their ports.
//!
//! The names of the pools in SONiC are `ingress_lossless_pool` (`shared`; its `xoff` is
//! `headroom_pool`) and `egress_lossy_pool` (`lossy`); `dynamic_th` n means an alpha of 2^n.
//! Profiles of real switches are in [`super::profiles`].

use super::profiles::{PROFILES, Profile};
use crate::shared_buffer::SharedBufferConfig;
use eastwest_settings::quantity::{Bytes, Ratio};
use eastwest_settings::{Section, key};
use serde::{Deserialize, Serialize};

/// Settings of the memory of a switch with PFC.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IngressPool {
    /// Size of the memory in IP bytes, without headroom.
    pub size: u64,
    /// Factor of the dynamic threshold: an input may hold `alpha` times the free memory beyond its
    /// reserve.
    pub alpha: f64,
    /// IP bytes that each priority of an input may hold even if no shared memory is free.
    pub reserve: u64,
    /// Difference in IP bytes between the limit of an input and the occupancy at which it ends a
    /// pause.
    pub xon_offset: u64,
    /// Headroom of each priority of an input in IP bytes; `None` if the headroom is computed from
    /// the cable.
    pub headroom: Option<u64>,
    /// Memory for the headroom of all inputs together; `None` if each priority of an input has its
    /// own headroom.
    pub headroom_pool: Option<HeadroomPool>,
    /// Memory of lossy queues; `None` if lossy queues have only the limits of their ports.
    pub lossy: Option<LossyPool>,
}

/// Size of the headroom that all inputs of a switch share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum HeadroomPool {
    /// IP bytes for all inputs of a switch together.
    Size(u64),
    /// Sum of the headrooms of all inputs of a switch, divided by this ratio.
    OverSubscribed(f64),
}

impl HeadroomPool {
    /// Returns the size in IP bytes of the headroom pool of a switch whose inputs have headrooms of
    /// `sum` bytes together.
    pub fn bytes(self, sum: u64) -> u64 {
        match self {
            HeadroomPool::Size(bytes) => bytes,
            HeadroomPool::OverSubscribed(ratio) => (sum as f64 / ratio) as u64,
        }
    }
}

/// Settings of the part of a switch memory that lossy queues may use.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossyPool {
    /// Size, dynamic threshold and reserve of the lossy queues at the ports of the switch.
    pub queues: SharedBufferConfig,
    /// Whether packets in lossless queues reduce the free part of this memory, too.
    pub counts_lossless: bool,
    /// Factor of the dynamic threshold of a lossy priority at an input; `None` if only the free
    /// memory limits the priority.
    pub input_alpha: Option<f64>,
}

impl LossyPool {
    /// Reads the settings of lossy queues from the table `[fabric.pfc]`; `None` if lossy queues
    /// have only the limits of their ports. `mtu` is the largest packet in bytes.
    fn read(s: &mut Section, mtu: u32) -> Option<LossyPool> {
        let size = s.find(
            key::<Bytes>(
                "lossy",
                "With `shared`: lossy queues use the same memory, at most this number of IP bytes \
                 for all queues of a switch (SONiC: egress_lossy_pool).",
            )
            .optional("lossy queues have only the limits of their ports, and use no shared memory")
            .range("1 KB", "100 GB"),
        );
        if size.is_none() && s.good(&["lossy", "profile"]) && !s.describing() {
            return None;
        }
        let alpha: Ratio = s.get(
            key(
                "lossy_alpha",
                "With `lossy`: a lossy queue may hold alpha times the free part of `lossy` \
                 (Choudhury and Hahne 1998: 1; SONiC: mostly 8).",
            )
            .default("1")
            .range("0.001", "1000"),
        );
        let reserve: Bytes = s.get(
            key(
                "lossy_reserve",
                "With `lossy`: IP bytes that a lossy queue may hold while memory is free, whatever \
                 `lossy_alpha` allows.",
            )
            .default("0 B")
            .range("0 B", "1 GB"),
        );
        let counts_lossless = s.get(
            key::<bool>(
                "lossy_counts_lossless",
                "With `lossy`: whether packets in lossless queues reduce the free part of `lossy`, \
                 too, as in switches with one egress pool.",
            )
            .default("false"),
        );
        let input_alpha = s.find(
            key::<Ratio>(
                "lossy_input_alpha",
                "With `lossy`: a lossy priority of an input may hold alpha times the free memory.",
            )
            .optional("inputs of lossy priorities may use all free memory")
            .range("0.001", "1000"),
        );
        let size = size?.0;
        s.demand(size >= u64::from(mtu), &["lossy"], || {
            format!("is too small: there is no room for a single packet of {mtu} B (fabric.mtu)")
        });
        s.demand(reserve.0 <= size, &["lossy_reserve", "lossy"], || {
            format!("is above `lossy`, which is {size} B")
        });
        Some(LossyPool {
            queues: SharedBufferConfig { size, alpha: alpha.0, reserve: reserve.0 },
            counts_lossless,
            input_alpha: input_alpha.map(|alpha| alpha.0),
        })
    }
}

/// Adds the values of a profile as presets (defaults of keys). The size of the headroom pool is
/// left out if the scenario has `over_subscribe`.
fn preset(s: &mut Section, profile: &Profile) {
    let bytes = |n: u64| format!("{n} B");
    s.preset_texts(&[
        ("shared", bytes(profile.shared)),
        ("reserve", bytes(profile.reserve)),
        ("xon_offset", bytes(profile.xon_offset)),
        ("lossy", bytes(profile.lossy)),
        ("lossy_reserve", bytes(profile.lossy_reserve)),
    ]);
    s.preset_values(&[("alpha", profile.alpha), ("lossy_alpha", profile.lossy_alpha)]);
    s.preset_values(&[("lossy_counts_lossless", profile.lossy_counts_lossless)]);
    if let Some(alpha) = profile.lossy_input_alpha {
        s.preset_values(&[("lossy_input_alpha", alpha)]);
    }
    if !s.has("over_subscribe") {
        s.preset_texts(&[("headroom_pool", bytes(profile.headroom_pool))]);
    }
}

/// Reads the size of the headroom pool; `None` if each priority of an input has its own headroom.
fn read_headroom_pool(s: &mut Section) -> Option<HeadroomPool> {
    let size = s.find(
        key::<Bytes>(
            "headroom_pool",
            "With `shared`: memory in IP bytes for the headroom of all inputs of a switch together \
             (SONiC: `xoff` of the pool). If it is smaller than the sum of the headrooms, lossless \
             packets can be lost.",
        )
        .optional("each priority of an input has its own headroom")
        .range("0 B", "100 GB"),
    );
    let ratio = s.find(
        key::<Ratio>(
            "over_subscribe",
            "With `shared`: the headroom pool of a switch has the sum of the headrooms of its \
             inputs divided by this ratio (SONiC: over_subscribe_ratio). Excludes `headroom_pool`.",
        )
        .optional("the size of the headroom pool is `headroom_pool`")
        .range("1", "1000"),
    );
    s.demand(size.is_none() || ratio.is_none(), &["over_subscribe", "headroom_pool"], || {
        "cannot be set together with `headroom_pool`, since both set the size of the headroom \
         pool: remove one of them"
            .to_owned()
    });
    ratio.map(|r| HeadroomPool::OverSubscribed(r.0)).or(size.map(|b| HeadroomPool::Size(b.0)))
}

impl IngressPool {
    /// Reads the settings of the shared memory from the table `[fabric.pfc]`; `None` if each input
    /// has its own buffer. `mtu` is the largest packet in bytes.
    pub(super) fn read(s: &mut Section, mtu: u32) -> Option<IngressPool> {
        const PROFILE: &str = "Switch whose memory is used: its settings in SONiC are the defaults \
            of `shared`, `alpha`, `reserve`, `xon_offset`, `headroom_pool` and all keys that begin \
            with `lossy`.";
        let none = [("none", None, "no switch: the settings are those of this table")];
        let known = PROFILES.iter().map(|p| (p.name, Some(p), p.doc));
        let choices: Vec<_> = none.into_iter().chain(known).collect();
        if let Some(profile) = s.choice("profile", PROFILE, Some("none"), &choices) {
            preset(s, profile);
        }
        let shared = s.find(
            key::<Bytes>(
                "shared",
                "Memory that the lossless inputs of a switch share, in IP bytes, without headroom \
                 (SONiC: ingress_lossless_pool). With this key, `buffer`, `xoff` and `xon` are not \
                 allowed.",
            )
            .optional("each input has its own buffer")
            .range("1 KB", "100 GB"),
        );
        // with a wrong `shared` or `profile`, the other keys are checked as with a correct value
        if shared.is_none() && s.good(&["shared", "profile"]) && !s.describing() {
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
        let headroom = s.find(
            key::<Bytes>(
                "headroom",
                "With `shared`: headroom of each priority of an input in IP bytes (SONiC: `xoff` of \
                 a profile). If it is smaller than its cable needs, lossless packets can be lost.",
            )
            .optional("what the cable of the input needs")
            .range("0 B", "1 GB"),
        );
        let headroom_pool = read_headroom_pool(s);
        let lossy = LossyPool::read(s, mtu);
        if s.describing() {
            return None;
        }
        let size = shared.map_or(u64::from(mtu), |size| size.0);
        s.demand(size >= u64::from(mtu), &["shared"], || {
            format!("is too small: there is no room for a single packet of {mtu} B (fabric.mtu)")
        });
        Some(IngressPool {
            size,
            alpha: alpha.0,
            reserve: reserve.0,
            xon_offset: offset.0,
            headroom: headroom.map(|bytes| bytes.0),
            headroom_pool,
            lossy,
        })
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

/// Free memory of a switch in IP bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Free {
    /// Free bytes of the shared memory.
    pub shared: u64,
    /// Free bytes of the headroom pool.
    pub headroom: u64,
}

impl Free {
    /// Free memory of a node whose inputs share no memory.
    pub const UNLIMITED: Free = Free { shared: u64::MAX, headroom: u64::MAX };
}

/// Bytes of the memory of a switch that inputs use, in IP bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// Bytes in the shared memory.
    pub shared: u64,
    /// Bytes in the headroom of all inputs together.
    pub headroom: u64,
}

/// Current and largest use of the memory of one switch, in IP bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryCounts {
    /// Current use by inputs.
    pub used: Used,
    /// Largest use by inputs so far, of each part.
    pub most: Used,
    /// Current backlog of the queues that use the memory of lossy queues.
    pub queued: u64,
    /// Largest backlog so far of all queues together that use the memory of lossy queues.
    pub most_queued: u64,
}

/// Use of the memory of one switch by all its inputs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SwitchMemory {
    size: u64,
    /// Size of the headroom pool in IP bytes; `u64::MAX` if each input has its own headroom.
    headroom_size: u64,
    pub used: Used,
    /// Largest value of each field of `used` so far.
    pub most: Used,
}

impl SwitchMemory {
    /// Returns the empty memory of a switch whose inputs have headrooms of `headrooms` bytes
    /// together.
    pub fn new(pool: &IngressPool, headrooms: u64) -> SwitchMemory {
        SwitchMemory {
            size: pool.size,
            headroom_size: pool.headroom_pool.map_or(u64::MAX, |pool| pool.bytes(headrooms)),
            used: Used::default(),
            most: Used::default(),
        }
    }

    pub fn free(&self) -> Free {
        Free {
            shared: self.size.saturating_sub(self.used.shared),
            headroom: self.headroom_size.saturating_sub(self.used.headroom),
        }
    }

    /// Records that the use of the memory by an input has changed from `before` to `after`.
    pub fn changed(&mut self, before: Used, after: Used) {
        let used = &mut self.used;
        used.shared = used.shared - before.shared + after.shared;
        used.headroom = used.headroom - before.headroom + after.headroom;
        self.most.shared = self.most.shared.max(used.shared);
        self.most.headroom = self.most.headroom.max(used.headroom);
    }
}

/// Use of the memory of a switch by one input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PoolUse {
    pub pool: IngressPool,
    /// Mask of lossless priorities: bit p for priority p.
    lossless: u8,
    /// IP bytes in the headroom of the input, by priority.
    pub in_headroom: [u64; 8],
}

impl PoolUse {
    pub fn new(pool: IngressPool, lossless: u8) -> PoolUse {
        PoolUse { pool, lossless, in_headroom: [0; 8] }
    }

    /// Returns the mask of priorities whose packets use the memory: bit p for priority p.
    pub fn counted(&self) -> u8 {
        if self.pool.lossy.is_some() { u8::MAX } else { self.lossless }
    }

    /// Returns the use of the memory by a priority that holds `bytes` bytes. A lossless priority
    /// uses shared memory for its bytes beyond its headroom and its reserve, a lossy priority for
    /// all its bytes.
    pub fn used(&self, priority: usize, bytes: u64) -> Used {
        let headroom = self.in_headroom[priority];
        let shared = match (self.counted() >> priority & 1, self.lossless >> priority & 1) {
            (0, _) => 0,
            (_, 0) => bytes,
            _ => (bytes - headroom).saturating_sub(self.pool.reserve),
        };
        Used { shared, headroom }
    }

    /// Whether a packet of `packet` bytes of a lossless priority fits into the reserve or the
    /// shared memory, while `free` bytes of this memory are free. A packet that does not fit needs
    /// headroom. The priority already holds `bytes` bytes.
    pub fn takes(&self, priority: usize, bytes: u64, packet: u64, free: u64) -> bool {
        let own = bytes - self.in_headroom[priority];
        let more = (own + packet).saturating_sub(self.pool.reserve.max(own));
        own < self.pool.limit(free) && more <= free
    }

    /// Whether a packet of `packet` bytes of a lossy priority fits into the shared memory, while
    /// `free` bytes of this memory are free. The priority already holds `bytes` bytes.
    pub fn takes_lossy(&self, bytes: u64, packet: u64, free: u64) -> bool {
        let Some(lossy) = &self.pool.lossy else { return true };
        let below = |alpha: f64| bytes < (alpha * free as f64) as u64;
        packet <= free && lossy.input_alpha.is_none_or(below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(size: u64, alpha: f64, reserve: u64, xon_offset: u64) -> IngressPool {
        let (headroom, headroom_pool, lossy) = (None, None, None);
        IngressPool { size, alpha, reserve, xon_offset, headroom, headroom_pool, lossy }
    }

    #[test]
    fn limits_follow_the_free_memory() {
        let pool = pool(1_000_000, 0.5, 5_000, 3_000);
        assert_eq!((pool.limit(1_000_000), pool.limit(0)), (505_000, 5_000));
        assert!(pool.resumes(502_000, 1_000_000) && !pool.resumes(502_001, 1_000_000));
        // At or below the reserve an input can always end its pause.
        assert!(pool.resumes(5_000, 0) && !pool.resumes(5_001, 0));
    }

    #[test]
    fn the_headroom_is_used_at_the_limit_only() {
        let mut input = PoolUse::new(pool(10_000, 1.0, 2_000, 0), 1 << 3);
        assert!(input.takes(3, 0, 1_500, 0) && input.takes(3, 11_999, 1_500, 10_000));
        assert!(!input.takes(3, 12_000, 1_500, 10_000));
        // 1,500 bytes beyond the reserve do not fit into 1,000 free bytes.
        assert!(!input.takes(3, 2_000, 1_500, 1_000) && input.takes(3, 1_500, 1_500, 1_000));
        input.in_headroom[3] = 4_000;
        let [more, less] = [7_000, 5_000].map(|bytes| input.used(3, bytes));
        assert_eq!((more.shared, less.shared), (1_000, 0));
        assert_eq!((more.headroom, less.headroom), (4_000, 4_000));
        // Without `lossy`, other priorities use no memory.
        assert_eq!((input.used(0, 9_000), input.counted()), (Used::default(), 1 << 3));
    }

    #[test]
    fn lossy_priorities_use_the_free_memory_up_to_their_own_threshold() {
        let queues = SharedBufferConfig { size: 8_000, alpha: 1.0, reserve: 0 };
        let lossy = LossyPool { queues, counts_lossless: false, input_alpha: Some(2.0) };
        let with = IngressPool { lossy: Some(lossy), ..pool(10_000, 1.0, 2_000, 0) };
        let input = PoolUse::new(with, 1 << 3);
        assert_eq!((input.counted(), input.used(0, 3_000).shared), (u8::MAX, 3_000));
        // The reserve belongs to lossless priorities.
        assert_eq!(input.used(3, 3_000).shared, 1_000);
        assert!(input.takes_lossy(3_999, 1_500, 2_000) && !input.takes_lossy(4_000, 1_500, 2_000));
        assert!(!input.takes_lossy(0, 2_001, 2_000));
    }

    #[test]
    fn a_headroom_pool_has_its_size_or_a_part_of_the_sum() {
        let mut memory = SwitchMemory::new(&pool(10_000, 1.0, 0, 0), 40_000);
        assert_eq!(memory.free(), Free { shared: 10_000, headroom: u64::MAX });
        let headroom_pool = Some(HeadroomPool::OverSubscribed(4.0));
        memory = SwitchMemory::new(&IngressPool { headroom_pool, ..pool(9, 1.0, 0, 0) }, 40_000);
        assert_eq!(memory.free(), Free { shared: 9, headroom: 10_000 });
        let headroom_pool = Some(HeadroomPool::Size(7_000));
        memory = SwitchMemory::new(&IngressPool { headroom_pool, ..pool(9, 1.0, 0, 0) }, 40_000);
        memory.changed(Used::default(), Used { shared: 5, headroom: 6_000 });
        assert_eq!(memory.free(), Free { shared: 4, headroom: 1_000 });
        memory.changed(Used { shared: 5, headroom: 6_000 }, Used::default());
        assert_eq!((memory.used, memory.most.headroom), (Used::default(), 6_000));
    }
}
