//! Draws random values for settings. Only the documented type, range and default of a setting
//! determine the value. Small and busy scenarios are preferred: short times, few hosts, small
//! messages, queues of some packets.

use eastwest_engine::random::Stream;
use eastwest_settings::row::KeyDoc;
use eastwest_settings::{ByteRate, Bytes, Fraction, Octets, Quantity, Ratio};
use eastwest_types::{Limit, Rate, Span};
use std::collections::{BTreeMap, VecDeque};
use toml::Value;

/// Names to which a drawn value may refer, if they are already known.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Names of the hosts of the fabric.
    pub hosts: Vec<String>,
    /// Names of the switches of the fabric.
    pub switches: Vec<String>,
    /// Names of the two nodes at the ends of every cable.
    pub cables: Vec<(String, String)>,
    /// Names of the cards of hosts that have several.
    pub cards: Vec<String>,
    /// Names of traffic classes and workloads.
    pub others: Vec<String>,
    /// Names of files that the scenario may read.
    pub files: Vec<String>,
}

impl Names {
    /// Returns the names of the switches on a shortest path from one host to another; empty if
    /// there is no path.
    pub fn path(&self, from: &str, to: &str) -> Vec<String> {
        let mut came: BTreeMap<&str, &str> = BTreeMap::from([(from, from)]);
        let mut waiting = VecDeque::from([from]);
        while let Some(at) = waiting.pop_front().filter(|at| *at != to) {
            for (a, b) in &self.cables {
                for (near, far) in [(a, b), (b, a)] {
                    if near == at && !came.contains_key(far.as_str()) {
                        came.insert(far, near);
                        waiting.push_back(far);
                    }
                }
            }
        }
        let mut path = Vec::new();
        let mut at = to;
        while let Some(before) = came.get(at).filter(|before| **before != from && at != from) {
            path.push((*before).to_owned());
            at = before;
        }
        path.reverse();
        path
    }
}

/// Draws a value for the setting that `row` documents. Returns `None` if this module has no rule
/// for values of its type, or if the value needs a name (of a host, file …) and `names` has none.
pub fn value(row: &KeyDoc, random: &mut Stream, names: &Names) -> Option<Value> {
    if !row.choices.is_empty() {
        let choice = row.choices[random.below(row.choices.len() as u64) as usize].0;
        return Some(Value::String(choice.to_owned()));
    }
    let bounds = Bounds { row, random };
    Some(match row.kind_of_value {
        "time" => text(bounds.units::<Span>(|s| s.0, (100_000, 5_000_000_000)).map(Span)?),
        "rate" => rate(bounds),
        "byte rate" => {
            let units = bounds.units::<ByteRate>(|r| r.0.0, (8_000_000, 4_000_000_000))?;
            text(ByteRate(Rate((units / 8_000).max(1) * 8_000)))
        }
        "size" => text(bounds.units::<Bytes>(|b| b.0, (1_000, 200_000)).map(Bytes)?),
        "bytes" => text(bounds.units::<Octets>(|b| u64::from(b.0), (40, 9_000)).map(octets)?),
        "count" => integer(bounds.units::<u32>(|n| u64::from(*n), (2, 5))?),
        "whole number" => integer(bounds.units::<u64>(|n| *n, (1, 300))?),
        "number" => Value::Float(bounds.real::<Ratio>(|r| r.0, (0.1, 4.0))),
        "share" => Value::Float(bounds.real::<Fraction>(|f| f.0, (0.0, 1.0))),
        "true or false" => Value::Boolean(random.below(2) == 0),
        "packets or size" => match random.below(3) {
            0 => text(Limit::Bytes(logarithmic(random, (2_000, 300_000)))),
            _ => text(Limit::Packets(logarithmic(random, (1, 200)) as u32)),
        },
        // a setting called "name" defines a name, all others refer to one
        "name" if row.name == "name" => one_of(random, &names.others)?,
        "name" => name(random, names)?,
        "hosts" => hosts(random, names)?,
        "sizes" => text(Bytes(logarithmic(random, (100, 60_000)))),
        "DSCP" => integer(random.below(64)),
        "places" => list(random, 2, |random| place(random, names))?,
        "file" => one_of(random, &names.files)?,
        "list of counts" => list(random, 3, |random| Some(integer(random.below(8))))?,
        "list of DSCPs" => list(random, 4, |random| Some(integer(random.below(64))))?,
        "list of names" => list(random, 3, |random| one_of(random, &names.switches))?,
        "list of files" => list(random, 1, |random| one_of(random, &names.files))?,
        "list of points" => points(random),
        _ => return None,
    })
}

/// Types of settings for which no value is drawn, because [`value`] has no rule for them.
pub const NOT_DRAWN: [&str; 3] = ["properties", "point", "goals"];

/// Documentation of a setting, with its range and default, and a source of random numbers.
struct Bounds<'a> {
    row: &'a KeyDoc,
    random: &'a mut Stream,
}

impl Bounds<'_> {
    fn parsed<T: Quantity>(text: &str) -> Option<T> {
        let document: toml::Table = format!("v = {text}").parse().unwrap_or_default();
        let value = document.get("v").cloned().unwrap_or_else(|| Value::String(text.to_owned()));
        T::parse(&value).ok()
    }

    /// Draws a number in the smallest unit of the setting's type (such as ps for times): near the
    /// default, at the lower end of the range, or anywhere in `usual`, as far as the range allows.
    /// `of` converts a value of the type to this number.
    fn units<T: Quantity>(self, of: impl Fn(&T) -> u64, usual: (u64, u64)) -> Option<u64> {
        let Bounds { row, random } = self;
        let range = row.range.map(|(low, high)| (Self::parsed::<T>(low), Self::parsed::<T>(high)));
        let (low, high) = match range {
            Some((low, high)) => (of(&low?), of(&high?)),
            None => (u64::from(row.kind_of_value != "size"), u64::MAX),
        };
        let default = row.default.as_deref().and_then(Self::parsed::<T>).map(|value| of(&value));
        let drawn = match (default, random.below(8)) {
            (_, 0) => low,
            (Some(default), 1..5) if default > 0 => {
                let (from, to) = (default / 8, default.saturating_mul(4));
                logarithmic(random, (from.max(1), to.min(1 << 62)))
            }
            _ => logarithmic(random, (usual.0.max(low), usual.1.max(low.saturating_add(3)))),
        };
        Some(rounded(drawn.clamp(low, high)).clamp(low, high))
    }

    /// Draws a number with decimals: near the default, at an end of the setting's range, or
    /// anywhere in `usual`, as far as the range allows. `of` converts a value of the setting's type
    /// to a number.
    fn real<T: Quantity>(self, of: impl Fn(&T) -> f64, usual: (f64, f64)) -> f64 {
        let Bounds { row, random } = self;
        let end = |text: Option<&str>| text.and_then(Self::parsed::<T>).map(|value| of(&value));
        let low = end(row.range.map(|r| r.0)).unwrap_or(f64::MIN);
        let high = end(row.range.map(|r| r.1)).unwrap_or(f64::MAX);
        let default = end(row.default.as_deref());
        let drawn = match (default, random.below(8)) {
            (_, 0) if low > f64::MIN => low,
            (_, 1) if high - low <= 1.0 => high,
            (Some(default), 2..6) if default > 0.0 => default * (0.25 + 3.0 * random.unit()),
            _ => usual.0 + (usual.1 - usual.0) * random.unit(),
        };
        // few digits, because people read failing cases
        let digits = 10_000.0;
        ((drawn.clamp(low, high) * digits).round() / digits).clamp(low, high)
    }
}

/// Draws a number from `low` to `high` whose logarithm is uniformly distributed.
fn logarithmic(random: &mut Stream, (low, high): (u64, u64)) -> u64 {
    let (low, high) = (low.max(1) as f64, high.max(low.max(1)) as f64);
    libm::exp(libm::log(low) + random.unit() * (libm::log(high) - libm::log(low))).round() as u64
}

/// Rounds a number down to its two leading digits, because people read failing cases.
fn rounded(n: u64) -> u64 {
    let mut unit = 1;
    while n / unit >= 100 {
        unit *= 10;
    }
    n / unit * unit
}

fn text(value: impl Quantity) -> Value {
    let document: toml::Table = format!("v = {}", value.show()).parse().unwrap_or_default();
    document.get("v").cloned().unwrap_or_else(|| Value::String(value.show()))
}

fn octets(bytes: u64) -> Octets {
    Octets(u32::try_from(bytes).unwrap_or(u32::MAX))
}

fn integer(n: u64) -> Value {
    Value::Integer(i64::try_from(n).unwrap_or(i64::MAX))
}

/// Draws a rate in one of two ways: near the default of the setting, or a common rate of Ethernet;
/// at some of the rates a byte does not take an integer number of picoseconds.
fn rate(bounds: Bounds) -> Value {
    const MBIT: u64 = 1_000_000;
    const USUAL: [u64; 8] = [100, 333, 1_000, 1_000, 2_500, 10_000, 10_000, 40_000];
    let usual = USUAL[bounds.random.below(USUAL.len() as u64) as usize] * MBIT;
    let drawn = match bounds.row.default {
        Some(_) => bounds.units::<Rate>(|r| r.0, (MBIT, 10_000 * MBIT)),
        None => None,
    };
    text(Rate(drawn.unwrap_or(usual)))
}

fn one_of(random: &mut Stream, names: &[String]) -> Option<Value> {
    if names.is_empty() {
        return None;
    }
    Some(Value::String(names[random.below(names.len() as u64) as usize].clone()))
}

/// Draws the name of a host (in half of the draws), a switch, a class or a workload. If no name of
/// the drawn sort is known, invents a name.
fn name(random: &mut Stream, names: &Names) -> Option<Value> {
    let pool = match random.below(6) {
        0..3 => &names.hosts,
        3 => &names.switches,
        _ => &names.others,
    };
    one_of(random, pool).or_else(|| Some(Value::String(format!("n{}", random.below(9)))))
}

/// Draws a list of up to four hosts, or a range of hosts.
fn hosts(random: &mut Stream, names: &Names) -> Option<Value> {
    let all = names.hosts.len() as u64;
    if all == 0 {
        return None;
    }
    let (a, b) = (random.below(all) as usize, random.below(all) as usize);
    let (first, last) = (&names.hosts[a.min(b)], &names.hosts[a.max(b)]);
    match random.below(2) {
        0 => Some(Value::String(format!("{first}..{last}"))),
        _ => list(random, 4, |random| one_of(random, &names.hosts)),
    }
}

/// Draws a list of at most `most` different values.
fn list(
    random: &mut Stream,
    most: u64,
    mut draw: impl FnMut(&mut Stream) -> Option<Value>,
) -> Option<Value> {
    let mut items: Vec<Value> = Vec::new();
    for _ in 0..=random.below(most) {
        let item = draw(random)?;
        if !items.contains(&item) {
            items.push(item);
        }
    }
    Some(Value::Array(items))
}

/// Draws a node, a card, a cable, a port, the stream between two hosts, or `*`, which stands for
/// all.
fn place(random: &mut Stream, names: &Names) -> Option<Value> {
    let cable = |random: &mut Stream| {
        (!names.cables.is_empty())
            .then(|| &names.cables[random.below(names.cables.len() as u64) as usize])
    };
    let text = match random.below(6) {
        0 => "*".to_owned(),
        1 if !names.cards.is_empty() && random.below(2) == 0 => {
            return one_of(random, &names.cards);
        }
        1 => return one_of(random, &names.hosts),
        2 => return one_of(random, &names.switches),
        3 => cable(random).map(|(a, b)| format!("{a}--{b}"))?,
        4 => cable(random).map(|(a, b)| format!("{b}->{a}"))?,
        _ => {
            let (a, b) = (one_of(random, &names.hosts)?, one_of(random, &names.hosts)?);
            format!("{} -> {}", a.as_str()?, b.as_str()?)
        }
    };
    Some(Value::String(text))
}

/// Draws a distribution of sizes, given by two points of its CDF.
fn points(random: &mut Stream) -> Value {
    let sizes = [logarithmic(random, (64, 2_000)), logarithmic(random, (2_001, 60_000))];
    let point =
        |(size, share): (u64, f64)| Value::Array(vec![text(Bytes(size)), Value::Float(share)]);
    Value::Array(sizes.into_iter().zip([0.0, 1.0]).map(point).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use eastwest_sim::scenario::{Context, rows_with};

    #[test]
    fn every_type_of_the_schema_is_drawn() {
        let names = Names {
            hosts: vec!["h0".to_owned(), "h1".to_owned()],
            switches: vec!["s0".to_owned()],
            cables: vec![("h0".to_owned(), "s0".to_owned())],
            cards: Vec::new(),
            others: vec!["bulk".to_owned()],
            files: vec!["flows.csv".to_owned()],
        };
        let mut random = Stream::new(1, "types");
        for row in rows_with(&Context::default()) {
            let drawn = value(&row, &mut random, &names).is_some();
            let is_section = row.kind_of_value.starts_with("table");
            let not_drawn = is_section || NOT_DRAWN.contains(&row.kind_of_value);
            assert_ne!(drawn, not_drawn, "{} of type {}", row.path(), row.kind_of_value);
        }
    }
}
