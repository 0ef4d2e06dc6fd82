//! Collective algorithms of users: a text file with the steps of each rank.
//!
//! ```text
//! allreduce 2
//! # rank, lane, ranks from which it receives, ranks to which it sends with their share of the data
//! 0 0 from 1 to 1 1/2
//! 1 0 from 0 to 0 1/2
//! 0 0 from 1 to 1 0.5
//! 1 0 from 0 to 0 0.5
//! ```
//!
//! The first line names the collective call and the number of ranks for which the algorithm is used.
//! Each other line is the next step of a rank in a lane: the rank posts its receives, then its sends,
//! and goes on when all of them are complete. Lanes are independent sequences of steps. A share
//! counts in the vector of a bcast, reduce, allreduce or scan, and in the part of one rank in other
//! calls. A file may contain several algorithms, one after the other. The idea is that of the XML
//! files of MSCCL (Cowan et al., *MSCCLang*, ASPLOS 2023), reduced to the messages.

use super::call::{Call, Kind, Step};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Largest number of ranks of an algorithm in a file.
const MOST_RANKS: u32 = 4096;
/// Largest number of lanes of an algorithm in a file.
const MOST_LANES: u32 = 4096;
/// Largest share of the data that a message can have.
const MOST_SHARE: f64 = 65_536.0;

/// Calls that an algorithm in a file can have.
const KINDS: [Kind; 11] = [
    Kind::Barrier,
    Kind::Bcast,
    Kind::Reduce,
    Kind::Allreduce,
    Kind::Alltoall,
    Kind::Gather,
    Kind::Scatter,
    Kind::Allgather,
    Kind::ReduceScatter,
    Kind::Scan,
    Kind::Exscan,
];

/// A step of a rank: ranks from which it receives, and ranks to which it sends, each with the share
/// of the data.
type Shares = (Vec<u32>, Vec<(u32, f64)>);

/// A collective algorithm of a user.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Own {
    kind: Kind,
    ranks: u32,
    lanes: u32,
    /// Steps by rank and lane.
    steps: BTreeMap<(u32, u32), Vec<Shares>>,
}

impl Own {
    /// Largest size in bytes of a file of algorithms.
    pub const MOST_BYTES: u64 = 16 << 20;

    /// Reads the algorithms of a file and checks them: every message that is sent is received, and
    /// no rank waits for ever.
    pub fn read(text: &str) -> Result<Vec<Own>, String> {
        let mut all: Vec<(usize, Own)> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let words: Vec<&str> =
                line.split('#').next().unwrap_or_default().split_whitespace().collect();
            let Some(first) = words.first() else { continue };
            let wrong = |message: String| format!("line {}: {message}", at + 1);
            if first.starts_with(|c: char| c.is_ascii_digit()) {
                let Some((_, own)) = all.last_mut() else {
                    return Err(wrong(
                        "expected the name of a collective call and the number of ranks, such as \
                         \"allreduce 8\""
                            .to_owned(),
                    ));
                };
                own.add(&words).map_err(wrong)?;
            } else {
                let own = Own::new(&words).map_err(wrong)?;
                if all.iter().any(|(_, other)| (other.kind, other.ranks) == (own.kind, own.ranks)) {
                    return Err(wrong(format!(
                        "there are two algorithms of {} for {} ranks",
                        own.kind.name(),
                        own.ranks
                    )));
                }
                all.push((at + 1, own));
            }
        }
        for (line, own) in &all {
            own.check()
                .map_err(|message| format!("{} in line {line}: {message}", own.kind.name()))?;
        }
        match all.is_empty() {
            true => Err("contains no algorithm".to_owned()),
            false => Ok(all.into_iter().map(|(_, own)| own).collect()),
        }
    }

    fn new(words: &[&str]) -> Result<Own, String> {
        let names = || KINDS.map(Kind::name).join(", ");
        let kind = KINDS
            .into_iter()
            .find(|kind| kind.name() == words[0])
            .ok_or_else(|| format!("found {:?}, expected one of {}", shown(words[0]), names()))?;
        let ranks = number(words.get(1), "the number of ranks", 2, MOST_RANKS)?;
        match words.get(2) {
            Some(word) => Err(format!("found {:?} after the number of ranks", shown(word))),
            None => Ok(Own { kind, ranks, lanes: 1, steps: BTreeMap::new() }),
        }
    }

    fn add(&mut self, words: &[&str]) -> Result<(), String> {
        let rank = number(words.first(), "a rank", 0, self.ranks - 1)?;
        let lane = number(words.get(1), "a lane", 0, MOST_LANES - 1)?;
        let (mut receives, mut sends) = (Vec::new(), Vec::new());
        let mut words = words[2..].iter().peekable();
        while let Some(word) = words.next() {
            let is_send = match *word {
                "from" => false,
                "to" => true,
                word => return Err(format!("found {:?}, expected from or to", shown(word))),
            };
            while words.peek().is_some_and(|word| !matches!(**word, "from" | "to"))
                || (receives.is_empty() && !is_send)
                || (sends.is_empty() && is_send)
            {
                let other = number(words.next(), "a rank", 0, self.ranks - 1)?;
                if other == rank {
                    return Err(format!("rank {rank} sends to or receives from itself"));
                }
                match is_send {
                    true => sends.push((other, share(words.next())?)),
                    false => receives.push(other),
                }
            }
        }
        self.lanes = self.lanes.max(lane + 1);
        self.steps.entry((rank, lane)).or_default().push((receives, sends));
        Ok(())
    }

    /// Executes all steps with messages that are complete when their receive is posted.
    fn check(&self) -> Result<(), String> {
        for lane in 0..self.lanes {
            self.check_lane(lane)?;
        }
        Ok(())
    }

    fn check_lane(&self, lane: u32) -> Result<(), String> {
        // posted sends and receives of each pair (sender, receiver), and those that have met
        let mut posted: BTreeMap<(u32, u32), [Vec<u32>; 2]> = BTreeMap::new();
        let mut open = vec![0_usize; self.ranks as usize];
        let mut next = vec![0_usize; self.ranks as usize];
        let mut ready: Vec<u32> = (0..self.ranks).collect();
        while let Some(rank) = ready.pop() {
            let r = rank as usize;
            let steps = self.steps.get(&(rank, lane)).map_or(&[][..], Vec::as_slice);
            let Some((receives, sends)) = steps.get(next[r]) else { continue };
            next[r] += 1;
            open[r] = receives.len() + sends.len();
            let pairs = receives.iter().map(|&from| ((from, rank), 1));
            let pairs = pairs.chain(sends.iter().map(|&(to, _)| ((rank, to), 0)));
            for (pair, side) in pairs {
                let of_pair = posted.entry(pair).or_default();
                match of_pair[1 - side].pop() {
                    None => of_pair[side].push(rank),
                    Some(other) => {
                        open[r] -= 1;
                        open[other as usize] -= 1;
                        if open[other as usize] == 0 {
                            ready.push(other);
                        }
                    }
                }
            }
            if open[r] == 0 {
                ready.push(rank);
            }
        }
        let waits = (0..self.ranks).find(|&rank| open[rank as usize] > 0);
        let Some(rank) = waits else { return Ok(()) };
        let step = next[rank as usize];
        let for_what = posted.iter().find_map(|(&(from, to), [sends, receives])| {
            let sent = sends.contains(&rank).then(|| format!("to send to rank {to}"));
            sent.or_else(|| {
                receives.contains(&rank).then(|| format!("for a message of rank {from}"))
            })
        });
        Err(format!(
            "rank {rank} waits for ever in its step {step} of lane {lane}, {}",
            for_what.unwrap_or_default()
        ))
    }

    /// Whether the algorithm is used for a call of `ranks` ranks.
    pub(super) fn is_for(&self, call: &Call, ranks: u32) -> bool {
        (self.kind, self.ranks) == (call.kind, ranks)
    }

    pub(super) fn lanes(&self) -> u32 {
        self.lanes
    }

    /// Returns step `k` of a rank in a lane.
    pub(super) fn step(&self, call: &Call, rank: u32, lane: u32, k: u32) -> Option<Step> {
        let (receives, sends) = self.steps.get(&(rank, lane))?.get(k as usize)?;
        let bytes = |share: f64| (call.size as f64 * share).round() as u64;
        Some(Step {
            receives: receives.clone(),
            sends: sends.iter().map(|&(to, share)| (to, bytes(share))).collect(),
        })
    }
}

/// Returns the first characters of a word, for messages.
fn shown(word: &str) -> String {
    word.chars().take(40).collect()
}

fn number(word: Option<&&str>, what: &str, least: u32, most: u32) -> Result<u32, String> {
    let Some(word) = word else { return Err(format!("expected {what} at the end of the line")) };
    let number = word.parse::<u32>().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("found {:?}, expected {what} from {least} to {most}", shown(word)))
}

fn share(word: Option<&&str>) -> Result<f64, String> {
    let Some(word) = word else {
        return Err("expected a share of the data at the end of the line".to_owned());
    };
    let share = match word.split_once('/') {
        Some((a, b)) => a.parse::<f64>().ok().zip(b.parse::<f64>().ok()).map(|(a, b)| a / b),
        None => word.parse().ok(),
    };
    share.filter(|share| (0.0..=MOST_SHARE).contains(share)).ok_or_else(|| {
        format!(
            "found {:?}, expected a share of the data from 0 to {MOST_SHARE}, such as 1/8 or 0.125",
            shown(word)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RING: &str = "allreduce 3 # a ring\n\n\
        0 0 from 2 to 1 1/3\n1 0 from 0 to 2 1/3\n2 0 from 1 to 0 1/3\n\
        0 1 to 1 0.5\n1 1 from 0\n";

    #[test]
    fn steps_are_those_of_the_file() {
        let own = Own::read(RING).expect("correct");
        assert_eq!((own.len(), own[0].lanes()), (1, 2));
        let call = Call::new(Kind::Allreduce).size(300);
        assert!(own[0].is_for(&call, 3) && !own[0].is_for(&call, 4));
        assert_eq!(own[0].step(&call, 1, 0, 0), Some(Step::exchange(0, 2, 100)));
        assert_eq!(own[0].step(&call, 0, 1, 0), Some(Step::send(1, 150)));
        assert_eq!(own[0].step(&call, 0, 0, 1), None);
        assert_eq!(own[0].step(&call, 2, 1, 0), None);
    }

    #[test]
    fn damaged_files_are_refused() {
        let wrong = |text: &str, expected: &str| {
            let why = Own::read(text).expect_err(text);
            assert!(why.contains(expected), "{text}: {why}");
        };
        wrong("", "contains no algorithm");
        wrong("0 0 to 1 1", "line 1: expected the name of a collective call");
        wrong("allredux 4", "line 1: found \"allredux\", expected one of barrier");
        wrong("allreduce 1", "expected the number of ranks from 2 to 4096");
        wrong("allreduce", "expected the number of ranks at the end of the line");
        wrong("allreduce 2 3", "after the number of ranks");
        wrong("allreduce 2\nallreduce 2", "line 2: there are two algorithms");
        wrong("allreduce 2\n\n0 0 to 2 1", "line 3: found \"2\", expected a rank from 0 to 1");
        wrong("allreduce 2\n0 0 to 0 1", "itself");
        wrong("allreduce 2\n0 0 to 1", "expected a share of the data at the end");
        wrong("allreduce 2\n0 0 to", "expected a rank at the end");
        wrong("allreduce 2\n0 0 to 1 1/0", "expected a share of the data from 0");
        wrong("allreduce 2\n0 0 to 1 -1", "expected a share of the data from 0");
        wrong("allreduce 2\n0 9999 to 1 1", "expected a lane");
        wrong("allreduce 2\n0 0 by 1 1", "found \"by\", expected from or to");
        let never = "allreduce in line 1: rank 0 waits for ever in its step 1 of lane 0";
        wrong("allreduce 2\n0 0 to 1 1", never);
        wrong("allreduce 2\n0 0 from 1", never);
        wrong("allreduce 2\n0 0 from 1\n0 0 to 1 1\n1 0 from 0\n1 0 to 0 1", never);
        wrong("allreduce 2\n0 0 to 1 1\n1 1 from 0", "to send to rank 1");
    }
}
