//! Cost of merging in bytes. Files are merged in passes of at most `factor` files; the first pass
//! may merge fewer, so that all later passes are full (`getPassFactor` of Hadoop's Merger).
//!
//! With n files the first pass merges ((n − 1) mod (factor − 1)) + 1 of them, or `factor` files if
//! the remainder is 0; the smallest files are merged first. The last pass, over at most `factor`
//! files, is not counted here: a map writes it as its output, a reduce reads it record by record.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Returns the number of files that the next merge pass merges. `factor`: largest number of files
/// in a pass; `first`: whether it is the first pass, which may be smaller; `files`: number of files
/// to merge.
fn pass_factor(factor: usize, first: bool, files: usize) -> usize {
    if !first || files <= factor {
        return factor;
    }
    match (files - 1) % (factor - 1) {
        0 => factor,
        rest => rest + 1,
    }
}

/// Merges files in passes until at most `factor` (at least 2) are left. Returns the sum of bytes of
/// all passes; each byte is read and written.
pub fn passes(files: &mut Vec<u64>, factor: u32) -> u64 {
    let factor = factor.max(2) as usize;
    if files.len() <= factor {
        return 0;
    }
    let mut heap: BinaryHeap<Reverse<u64>> = files.drain(..).map(Reverse).collect();
    let (mut first, mut total) = (true, 0);
    while heap.len() > factor {
        let take = pass_factor(factor, first, heap.len());
        let merged: u64 = (0..take).map(|_| heap.pop().expect("there are more").0).sum();
        heap.push(Reverse(merged));
        total += merged;
        first = false;
    }
    files.extend(heap.into_iter().map(|Reverse(bytes)| bytes));
    files.sort_unstable();
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_pass_makes_the_others_full() {
        // Example of White, Hadoop: The Definitive Guide: 40 files with factor 10 are merged in
        // passes of 4, 10, 10 and 10 files, then a last pass over 10.
        assert_eq!(pass_factor(10, true, 40), 4);
        let mut files = vec![1; 40];
        assert_eq!(passes(&mut files, 10), 4 + 10 + 10 + 10);
        assert_eq!((files.len(), files.iter().sum::<u64>()), (10, 40));
        assert_eq!(pass_factor(10, true, 19), 10);
        assert_eq!(pass_factor(10, true, 11), 2);
    }

    #[test]
    fn few_files_need_no_pass_and_the_smallest_go_first() {
        let mut files = vec![5, 1];
        assert_eq!(passes(&mut files, 2), 0);
        let mut files = vec![100, 1, 50, 2];
        assert_eq!(passes(&mut files, 3), 3);
        assert_eq!(files, [3, 50, 100]);
        let mut files = vec![7; 9];
        assert!(passes(&mut files, 1) > 0);
        assert_eq!(files.iter().sum::<u64>(), 63);
    }
}
