//! Dependencies between the calls of a transaction. For each call there is a list of the calls that
//! it makes, and a list of the calls that wait for its end. The lists are concatenated, with the
//! start of each list, so that no search is necessary.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)
)]

use super::book::Call;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Dependencies between the calls of one transaction, and the numbers of dependencies that are not
/// fulfilled yet.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Shape {
    children: Lists,
    followers: Lists,
    /// For each call: number of unfinished calls that must be done before it can be made.
    pub before: Vec<u32>,
    /// For each call: number of unfinished calls that it makes and whose responses it waits for.
    pub awaited: Vec<u32>,
}

impl Shape {
    pub fn new(calls: &[Call]) -> Shape {
        let n = calls.len();
        let numbered = || calls.iter().zip(0u32..);
        let mut awaited = vec![0; n];
        for call in calls {
            if let (Some(parent), true) = (call.parent, call.waited) {
                awaited[parent as usize] += 1;
            }
        }
        Shape {
            children: Lists::new(n, || numbered().filter_map(|(c, i)| Some((c.parent?, i)))),
            followers: Lists::new(n, || {
                numbered().flat_map(|(c, i)| c.after.iter().map(move |&before| (before, i)))
            }),
            before: calls
                .iter()
                .map(|c| u32::try_from(c.after.len()).expect("fewer than 2^32 calls"))
                .collect(),
            awaited,
        }
    }

    /// Returns the numbers of the calls that a call makes.
    pub fn children(&self, call: u32) -> &[u32] {
        &self.children.items[self.children.range(call)]
    }

    /// Returns the positions, in the list of dependencies, of the calls that wait for the end of
    /// `call`; pass each position to [`Shape::follower`].
    pub fn followers_range(&self, call: u32) -> Range<usize> {
        self.followers.range(call)
    }

    /// Returns the number of the call at a position in the list of dependencies; `at` comes from
    /// [`Shape::followers_range`], which returns the positions of the calls that wait for one call.
    pub fn follower(&self, at: usize) -> u32 {
        self.followers.items[at]
    }
}

/// Lists of numbers, one for each call, stored one after another.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Lists {
    begins: Vec<u32>,
    items: Vec<u32>,
}

impl Lists {
    /// Returns `n` lists that contain the entries of `pairs`, each a pair (list, entry).
    fn new<I: Iterator<Item = (u32, u32)>>(n: usize, pairs: impl Fn() -> I) -> Lists {
        let mut begins = vec![0u32; n + 1];
        for (list, _) in pairs() {
            begins[list as usize + 1] += 1;
        }
        for i in 0..n {
            begins[i + 1] += begins[i];
        }
        let mut next = begins.clone();
        let mut items = vec![0; begins[n] as usize];
        for (list, item) in pairs() {
            let at = &mut next[list as usize];
            items[*at as usize] = item;
            *at += 1;
        }
        Lists { begins, items }
    }

    fn range(&self, list: u32) -> Range<usize> {
        let list = list as usize;
        self.begins[list] as usize..self.begins[list + 1] as usize
    }
}
