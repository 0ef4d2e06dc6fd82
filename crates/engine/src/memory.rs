//! Memory hints for the processor (prefetch) and the kernel (huge pages). They do not change
//! results, and do nothing on platforms without support.
//!
//! A fabric of 1,600 hosts uses 20–50 MB, which events access in an irregular order. Without these
//! hints the simulator spends two thirds of its time waiting for memory (docs/internals/speed.md).

#![allow(unsafe_code)]

/// Prefetches the cache lines of the object `place` into the caches of the processor.
#[inline]
pub fn prefetch<T>(place: &T) {
    prefetch_at(place, size_of::<T>().div_ceil(64));
}

/// Prefetches the first `lines` cache lines of the object `place`, of 64 bytes each, into the
/// caches of the processor.
#[inline]
pub fn prefetch_lines<T>(place: &T, lines: usize) {
    prefetch_at(place, lines);
}

/// Prefetches the cache lines of `items[index]` into the caches of the processor. The index may be
/// out of range.
#[inline]
pub fn prefetch_item<T>(items: &[T], index: usize) {
    prefetch_at(items.as_ptr().wrapping_add(index), size_of::<T>().div_ceil(64));
}

/// Prefetches the cache lines of the object at `place` into the caches of the processor. Any address
/// is allowed.
#[inline]
pub fn prefetch_address<T>(place: *const T) {
    prefetch_at(place, size_of::<T>().div_ceil(64));
}

#[inline]
fn prefetch_at<T>(place: *const T, lines: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..lines {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch only changes caches and is allowed for every address, even an invalid
        // one.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(place.cast::<i8>().wrapping_add(line * 64));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (place, lines);
}

/// Size of a huge page in bytes: 2 MiB.
#[cfg(target_os = "linux")]
const HUGE: usize = 2 << 20;

/// Reserves space for at least 1,024 more items, and doubles the capacity of a full vector. Asks
/// the Linux kernel for huge pages if the vector contains at least two aligned blocks of 2 MiB.
pub fn grow<T>(items: &mut Vec<T>) {
    reserve(items, items.capacity().max(1024));
}

/// Reserves space for `more` more items; a vector that is too short at least doubles its capacity, so
/// that repeated calls cost little. Asks for huge pages like [`grow`].
pub fn reserve<T>(items: &mut Vec<T>, more: usize) {
    items.reserve(more);
    #[cfg(target_os = "linux")]
    {
        let start = items.as_ptr().addr().next_multiple_of(HUGE);
        let end = (items.as_ptr().addr() + items.capacity() * size_of::<T>()) / HUGE * HUGE;
        if end > start + HUGE {
            // SAFETY: the range lies within the allocation of the vector, and the advice neither
            // moves nor clears memory. The return value is ignored, since the advice is only a
            // hint.
            unsafe {
                libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growing_keeps_what_is_there() {
        let mut items: Vec<u64> = Vec::new();
        for i in 0..2_000_000 {
            if items.len() == items.capacity() {
                grow(&mut items);
            }
            items.push(i);
        }
        prefetch(&items[77]);
        prefetch_item(&items, usize::MAX);
        assert!(items.iter().enumerate().all(|(i, &n)| i as u64 == n));
    }
}
