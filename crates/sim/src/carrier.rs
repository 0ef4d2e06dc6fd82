//! Messages that travel as raw Ethernet frames, without connection: those of MPI programs on a lossless
//! network.
//!
//! What one host sends to another for a workload is a stream, or several where a workload says so. A message
//! is cut into full frames and a rest.
//! The card of a host takes a frame from each of its streams in turn, as long as less than [`AHEAD`] bytes
//! wait there before them, and looks again when half of that can have left: it is never idle for want of
//! frames, and a long message fills no memory.
//! How fast frames leave is the network's business: line rate, the rate of QCN, or not at all while
//! the priority is paused. Frames that QCN limits wait apart, so they hold up no other stream.
//!
//! Receivers put frames in order. A message has arrived when its last frame and all before it have, so
//! the messages of a stream keep their order. A frame that is lost is not sent again: the run then ends and
//! says who waits for it.

use crate::world::{RunError, World};
use eastwest_measure::streams::StreamRow;
use eastwest_network::losses::Lost;
use eastwest_types::HostId;
use eastwest_workload::ethernet::EthernetConfig;
use eastwest_workload::{Event, Parcel};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Bytes at a card before it takes no more: 32 full frames, 38 µs at 10 Gbit/s.
const AHEAD: u64 = 48_000;
/// Frames that the streams of a card may have under way, whatever waits at the card.
const WINDOW: u64 = 32;
/// Stands for a workload in wake-ups of cards; there are far fewer.
pub const CARDS: u16 = u16::MAX;
/// Most streams.
const MOST_STREAMS: usize = 1_000_000;

/// A message on its way.
#[derive(Debug, Serialize, Deserialize)]
struct Sending {
    tag: u64,
    /// Bytes that the card has not taken.
    left: u64,
    /// Number of its last frame, once the card has taken all.
    last: u64,
}

/// A stream of messages.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    /// Bytes of a full frame.
    frame: u16,
    /// Messages that have not arrived, in order.
    messages: VecDeque<Sending>,
    /// How many of them the card has taken whole.
    taken: usize,
}

/// A card that has more to take.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Card {
    /// Streams with bytes that it has not taken, the next one first.
    turns: VecDeque<u32>,
    /// Whether it will look again.
    looks: bool,
}

/// All streams of messages of a run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Carrier {
    /// The number of the first of these streams; before it are those of open sources.
    first: u32,
    /// By workload, sender, receiver and line between them.
    numbers: BTreeMap<(u16, u32, u32, u8), u32>,
    lines: Vec<Line>,
    cards: BTreeMap<u32, Card>,
}

impl Carrier {
    /// None yet; streams of messages are counted from `first`.
    pub fn new(first: u32) -> Carrier {
        Carrier { first, ..Carrier::default() }
    }

    fn line(&mut self, stream: u32) -> &mut Line {
        &mut self.lines[(stream - self.first) as usize]
    }
}

impl World {
    /// Takes a message that is to travel as frames.
    pub(crate) fn send_parcel(&mut self, workload: u16, parcel: &Parcel) {
        let Some(stream) = self.stream_of(workload, parcel) else {
            let what = format!("more than {MOST_STREAMS} streams of messages over Ethernet");
            self.stuck = Some(RunError::Limit(what));
            return;
        };
        let line = self.carrier.line(stream);
        let waits = line.taken < line.messages.len();
        line.messages.push_back(Sending { tag: parcel.tag, left: parcel.bytes.max(1), last: 0 });
        if !waits {
            self.carrier.cards.entry(parcel.from.0).or_default().turns.push_back(stream);
        }
        self.feed(parcel.from.0);
    }

    /// The stream of a message, new if need be; `None` where there are too many.
    fn stream_of(&mut self, workload: u16, parcel: &Parcel) -> Option<u32> {
        let (from, to) = (parcel.from, parcel.to);
        let rows = &mut self.streams.rows;
        let name = (workload, from.0, to.0, parcel.line);
        if let Some(stream) = self.carrier.numbers.get(&name) {
            return Some(*stream);
        }
        if self.carrier.lines.len() >= MOST_STREAMS {
            return None;
        }
        let stream = rows.len() as u32;
        rows.push(StreamRow::new(workload, parcel.class, (from, to)));
        self.carrier.numbers.insert(name, stream);
        let line = Line { frame: parcel.frame, messages: VecDeque::new(), taken: 0 };
        self.carrier.lines.push(line);
        Some(stream)
    }

    /// A card takes what it has room for.
    fn feed(&mut self, host: u32) {
        let Some(mut card) = self.carrier.cards.remove(&host) else { return };
        // one frame of each stream in turn, until all of them have had to wait
        let mut waited = 0;
        while waited < card.turns.len() {
            let Some(stream) = card.turns.pop_front() else { break };
            if !self.has_room(stream, card.turns.len() as u64 + 1) {
                card.turns.push_back(stream);
                waited += 1;
                continue;
            }
            waited = 0;
            if self.take_frame(stream) {
                card.turns.push_back(stream);
            }
        }
        if card.turns.is_empty() && !card.looks {
            return;
        }
        if !card.looks {
            card.looks = true;
            let again = self.now + self.fabric.host_rate(HostId(host)).time_for(AHEAD / 2);
            self.wake(CARDS, again, u64::from(host));
        }
        self.carrier.cards.insert(host, card);
    }

    /// Whether the card takes a frame of a stream, one of so many. Where others, such as connections, keep
    /// the card full, streams share a window: nobody is held up for ever.
    fn has_room(&self, stream: u32, streams: u64) -> bool {
        let row = &self.streams.rows[stream as usize];
        let dscp = self.classes[usize::from(row.class.0)].dscp;
        row.under_way() * streams < WINDOW
            || self.fabric.bytes_ahead(row.src, row.dst, dscp) < AHEAD
    }

    /// The card takes the next frame of a stream. Tells whether there are more.
    fn take_frame(&mut self, stream: u32) -> bool {
        let number = self.streams.rows[stream as usize].sent + 1;
        let line = self.carrier.line(stream);
        let message = &mut line.messages[line.taken];
        let bytes = message.left.min(u64::from(line.frame)) as u16;
        message.left -= u64::from(bytes);
        if message.left == 0 {
            message.last = number;
            line.taken += 1;
        }
        let more = line.taken < line.messages.len();
        self.put_frame(stream, bytes.max(EthernetConfig::MIN_BYTES));
        more
    }

    /// A card looks again what it has room for.
    pub(crate) fn look_at_card(&mut self, host: u32) {
        if let Some(card) = self.carrier.cards.get_mut(&host) {
            card.looks = false;
        }
        self.feed(host);
    }

    /// A frame of a stream of messages has arrived: so may have messages.
    pub(crate) fn parcels_arrived(&mut self, stream: u32) {
        let row = &self.streams.rows[stream as usize];
        let (done, workload) = (row.order.handed_on(), row.workload);
        loop {
            let line = self.carrier.line(stream);
            if line.taken == 0 || line.messages[0].last > done {
                return;
            }
            line.taken -= 1;
            let tag = line.messages.pop_front().map_or(0, |message| message.tag);
            self.tell(workload, Event::Arrived { tag });
        }
    }

    /// A frame of a stream of messages was lost: who waits for it waits for ever.
    pub(crate) fn parcel_lost(&mut self, stream: u32, lost: &Lost) {
        if self.stuck.is_some() {
            return;
        }
        let row = &self.streams.rows[stream as usize];
        let driver = &self.drivers[usize::from(row.workload)];
        let name = |node: u32| &self.fabric.graph.names[node as usize];
        let link = &self.fabric.links[lost.link as usize];
        let waiting = driver.workload.waiting().map_or(String::new(), |w| format!("; {w}"));
        self.stuck = Some(RunError::Stuck(format!(
            "at {}, {}: a frame from {} to {} was lost at {}->{} ({}), and nothing sends it \
             again{waiting}",
            lost.at,
            driver.name,
            name(row.src.0),
            name(row.dst.0),
            name(link.from),
            name(link.to),
            lost.cause.name(),
        )));
    }
}
