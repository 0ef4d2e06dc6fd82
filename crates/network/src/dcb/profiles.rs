//! Memories of real switches, as SONiC configures them: profiles of `[fabric.pfc]`.
//!
//! The values are from the repository sonic-net/sonic-buildimage at commit 086b03bd (23 August
//! 2026). `buffers_defaults_t0.j2` of each device has the pools, and `pg_profile_lookup.ini` has
//! the `size`, `threshold` and `xon_offset` of lossless priority groups:
//!
//! | key | SONiC |
//! |---|---|
//! | `shared` | `ingress_lossless_pool.size` |
//! | `headroom_pool` | `ingress_lossless_pool.xoff` |
//! | `alpha` | 2 to the power of `threshold` of the priority group |
//! | `reserve` | `size` of the priority group |
//! | `lossy` | `egress_lossy_pool.size`; `egress_lossless_pool.size` in the devices without it |
//! | `lossy_alpha`, `lossy_reserve` | 2 to the power of `dynamic_th`, and `size`, of the profile of lossy queues |
//! | `lossy_input_alpha` | 2 to the power of `dynamic_th` of `ingress_lossy_profile` |
//!
//! Static thresholds have no key. In the switches below, these thresholds are as large as their
//! pool (`egress_lossless_profile`, and `ingress_lossy_profile` of the 7050CX3), or, in the 7060X6,
//! as large as one of the two halves of the memory (82,434,938 B).

/// Memory of a switch. Sizes are in bytes.
#[derive(Debug)]
pub(super) struct Profile {
    pub name: &'static str,
    pub doc: &'static str,
    pub shared: u64,
    pub alpha: f64,
    pub reserve: u64,
    pub xon_offset: u64,
    pub headroom_pool: u64,
    pub lossy: u64,
    pub lossy_alpha: f64,
    pub lossy_reserve: u64,
    pub lossy_counts_lossless: bool,
    pub lossy_input_alpha: Option<f64>,
}

pub(super) const PROFILES: [Profile; 4] = [
    // device/arista/x86_64-arista_7050cx3_32s/Arista-7050CX3-32S-C32/BALANCED
    Profile {
        name: "arista-7050cx3",
        doc: "Arista 7050CX3 (Broadcom Trident 3), SONiC: 32.7 MB",
        shared: 32_732_160,
        alpha: 1.0,
        reserve: 4_608,
        xon_offset: 4_608,
        headroom_pool: 1_622_016,
        lossy: 24_709_632,
        lossy_alpha: 8.0,
        lossy_reserve: 1_792,
        lossy_counts_lossless: false,
        lossy_input_alpha: None,
    },
    // device/common/profiles/th/gen/BALANCED, to which Arista-7060CX-32S-C32 refers
    Profile {
        name: "arista-7060cx",
        doc: "Arista 7060CX (Broadcom Tomahawk), SONiC: 10.9 MB",
        shared: 10_875_072,
        alpha: 1.0,
        reserve: 1_248,
        xon_offset: 2_288,
        headroom_pool: 4_194_112,
        lossy: 9_243_812,
        lossy_alpha: 8.0,
        lossy_reserve: 1_518,
        lossy_counts_lossless: false,
        lossy_input_alpha: Some(8.0),
    },
    // device/arista/x86_64-arista_7060x6_64pe_b/Arista-7060X6-64PE-B-O128: one egress pool for all
    // queues
    Profile {
        name: "arista-7060x6",
        doc: "Arista 7060X6 (Broadcom Tomahawk 5), SONiC: 164.5 MB",
        shared: 164_505_640,
        alpha: 1.0,
        reserve: 18_796,
        xon_offset: 3_556,
        headroom_pool: 22_010_624,
        lossy: 164_505_640,
        lossy_alpha: 1.0,
        lossy_reserve: 1_778,
        lossy_counts_lossless: true,
        lossy_input_alpha: None,
    },
    // device/mellanox/x86_64-nvidia_sn4280-r0/Mellanox-SN4280-O28, whose profiles are in
    // buffers_defaults_objects.j2 of Mellanox-SN4700-O28. The XON threshold is fixed, at the
    // reserve; therefore the offset is the whole memory.
    Profile {
        name: "nvidia-sn4280",
        doc: "NVIDIA SN4280 (Spectrum-3), SONiC: 52.1 MB",
        shared: 52_064_208,
        alpha: 1.0,
        reserve: 19_456,
        xon_offset: 52_064_208,
        headroom_pool: 3_461_040,
        lossy: 52_064_208,
        lossy_alpha: 8.0,
        lossy_reserve: 0,
        lossy_counts_lossless: false,
        lossy_input_alpha: Some(8.0),
    },
];
