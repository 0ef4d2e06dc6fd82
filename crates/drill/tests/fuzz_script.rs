//! Test with mutated scripts: every input is parsed or refused without a panic or a hang, and a
//! parsed script runs to its end or to its first error.
//!
//! The test is deterministic: input number `i` is always the same. `EASTWEST_FUZZ_INPUTS` sets the
//! number of inputs.

use eastwest_drill::drill;
use eastwest_engine::random::Stream;
use std::fs;
use std::path::Path;

/// Number of inputs, unless the variable `EASTWEST_FUZZ_INPUTS` sets another one.
const INPUTS: u64 = 20_000;

/// Texts that are inserted into scripts at random places.
const PIECES: [&str; 40] = [
    "+0 ",
    "+.1~+.2 ",
    "* ",
    "1.5 ",
    "< ",
    "> ",
    "S ",
    "S. ",
    "F. ",
    "P. ",
    "SEW ",
    "E. ",
    "- ",
    ". ",
    "1:1001(1000) ",
    "0:0(0) ",
    "4294967295:999(1000) ",
    "ack 1 ",
    "ack 4294967295 ",
    "win 0 ",
    "win 65535 ",
    "<sack 2001:3001,nop,nop>",
    "<sack 1:1 5:3>",
    "<...>",
    "[ce] ",
    "[ect0] ",
    "<mss 1,wscale 14,TS val 1 ecr 4294967295>",
    "write(4, ..., 1000) = 1000\n",
    "close(4) = 0\n",
    "`sysctl -q net.ipv4.tcp_sack=0`",
    "%{ assert tcpi_snd_cwnd == 10 }%",
    "%{ x = 1 << 62 }%",
    "`",
    "%{",
    "}%",
    "/*",
    "0x7fffffff",
    "99999999999999999999",
    "shutdown(4, SHUT_WR) = 0\n",
    "connect(3, ..., ...) = 0\n",
];

fn seeds() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let mut texts = Vec::new();
    let mut folders: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    folders.sort();
    for folder in folders {
        let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
        files.sort();
        texts.extend(files.iter().map(|f| fs::read_to_string(f).unwrap()));
    }
    texts
}

/// Returns the script with some characters, lines or pieces removed, doubled, exchanged or inserted
/// at random.
fn mutate(text: &str, random: &mut Stream) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    let at = |random: &mut Stream, n: usize| random.below(n.max(1) as u64) as usize;
    for _ in 0..1 + at(random, 4) {
        let place = at(random, characters.len());
        match at(random, 5) {
            0 => {
                let end = (place + 1 + at(random, 40)).min(characters.len());
                characters.drain(place..end);
            }
            1 => {
                let end = (place + 1 + at(random, 40)).min(characters.len());
                let copy: Vec<char> = characters[place..end].to_vec();
                characters.splice(place..place, copy);
            }
            2 if !characters.is_empty() => {
                let digit = char::from(b'0' + at(random, 10) as u8);
                let number = (place..characters.len()).find(|i| characters[*i].is_ascii_digit());
                characters[number.unwrap_or(place)] = digit;
            }
            3 => {
                let text: String = characters.iter().collect();
                let mut lines: Vec<&str> = text.lines().collect();
                let (a, b) = (at(random, lines.len()), at(random, lines.len()));
                if a < lines.len() && b < lines.len() {
                    lines.swap(a, b);
                }
                characters = lines.join("\n").chars().collect();
            }
            _ => {
                let piece = PIECES[at(random, PIECES.len())];
                characters.splice(place..place, piece.chars());
            }
        }
    }
    characters.into_iter().collect()
}

#[test]
fn no_script_makes_the_player_panic_or_hang() {
    let asked = std::env::var("EASTWEST_FUZZ_INPUTS").ok();
    let inputs = asked.and_then(|n| n.parse().ok()).unwrap_or(INPUTS);
    let seeds = seeds();
    let (mut read, mut passed) = (0, 0);
    for i in 0..inputs {
        let mut random = Stream::new(i, "drill-fuzz");
        let text = mutate(&seeds[random.below(seeds.len() as u64) as usize], &mut random);
        let outcome = drill(&text, None, false);
        read += u64::from(outcome.readable);
        match outcome.problem {
            None => passed += 1,
            Some(problem) => {
                let lines = text.matches('\n').count() as u32 + 1;
                assert!((1..=lines).contains(&problem.place.line), "{problem}\n{text}");
            }
        }
    }
    assert!(inputs < 1_000 || (read > inputs / 20 && passed > inputs / 100), "{read} {passed}");
}
