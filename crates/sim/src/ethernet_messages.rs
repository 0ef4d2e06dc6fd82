//! Messages sent as raw Ethernet frames, without connections, for example by MPI programs on a
//! lossless network.
//!
//! The messages of a workload from one host to another form a stream, or several streams if the
//! workload requests them. A message is split into full frames and a last, shorter frame. While
//! less than [`MAX_QUEUED_BYTES`] bytes are queued at the NIC of a host, the NIC accepts frames
//! from the streams of the host, one frame per stream (round robin). The NIC polls the streams
//! again after the time in which half of these bytes can be sent. Therefore the NIC is never idle
//! while frames wait, and a long message does not occupy memory. The network determines how fast
//! frames leave: at line rate, at the rate of QCN, or not at all while the priority is paused.
//! Frames whose rate QCN limits have a separate queue, so they do not delay other streams.
//!
//! Receivers put frames in order. A message has arrived when its last frame and all frames before
//! it have arrived, so the messages of a stream keep their order. A lost frame is not
//! retransmitted: the run then ends, and the error names the receiver that waits for the frame.

use crate::network::Network;
use crate::streams::Streams;
use eastwest_measure::streams::StreamRow;
use eastwest_types::{HostId, Time};
use eastwest_workload::Parcel;
use eastwest_workload::ethernet::EthernetConfig;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Number of queued bytes from which on a NIC accepts no more frames: 32 full frames, or 38 µs at
/// 10 Gbit/s.
const MAX_QUEUED_BYTES: u64 = 48_000;
/// Number of frames that all streams of a NIC together may have in flight even if the queue of the
/// NIC is full.
const WINDOW: u64 = 32;
/// Maximum number of streams of messages in a run.
const MAX_STREAMS: usize = 1_000_000;

/// A message of a stream that has not arrived completely.
#[derive(Debug, Serialize, Deserialize)]
struct OutgoingMessage {
    tag: u64,
    /// Bytes of the message that the NIC has not accepted yet.
    left: u64,
    /// Number, in its stream, of the last frame of the message; valid once the NIC has accepted all
    /// its frames.
    last: u64,
}

/// A stream of messages from one host to another, as raw Ethernet frames.
#[derive(Debug, Serialize, Deserialize)]
struct MessageStream {
    /// Payload bytes of a full frame of the stream.
    frame: u16,
    /// Messages that have not arrived, in order of sending.
    messages: VecDeque<OutgoingMessage>,
    /// Number of messages at the front of `messages` whose frames the NIC has all accepted.
    taken: usize,
}

/// Streams of a host that wait until the NIC of the host accepts frames.
#[derive(Debug, Default, Serialize, Deserialize)]
struct NicQueue {
    /// Streams with bytes that the NIC has not accepted yet, in the order of service.
    ready: VecDeque<u32>,
    /// Whether the next poll of the waiting streams by the NIC is scheduled.
    poll_pending: bool,
}

/// All streams of messages over raw Ethernet, and the NICs that send their frames.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct EthernetMessages {
    /// Number of the first stream of messages; lower numbers are streams of open-loop Ethernet
    /// sources, which send frames and no messages.
    first: u32,
    /// Stream numbers by workload, sender, receiver, and index among the streams of this triple.
    numbers: BTreeMap<(u16, u32, u32, u8), u32>,
    streams_state: Vec<MessageStream>,
    nics: BTreeMap<u32, NicQueue>,
}

impl EthernetMessages {
    /// Returns the state without streams. Streams of messages are numbered from `first`; lower
    /// numbers belong to open-loop Ethernet sources, which send frames and no messages.
    pub fn new(first: u32) -> EthernetMessages {
        EthernetMessages { first, ..EthernetMessages::default() }
    }

    fn line(&mut self, stream: u32) -> &mut MessageStream {
        &mut self.streams_state[(stream - self.first) as usize]
    }

    /// Appends a message to its stream. Returns the sending host, for whose NIC the caller must
    /// then call [`EthernetMessages::feed`], or the reason why the message cannot be sent.
    pub fn take(
        &mut self,
        streams: &mut Streams,
        workload: u16,
        parcel: &Parcel,
    ) -> Result<u32, String> {
        let stream = self.stream_of(streams, workload, parcel)?;
        let line = self.line(stream);
        let waits = line.taken < line.messages.len();
        line.messages.push_back(OutgoingMessage {
            tag: parcel.tag,
            left: parcel.bytes.max(1),
            last: 0,
        });
        if !waits {
            self.nics.entry(parcel.from.0).or_default().ready.push_back(stream);
        }
        Ok(parcel.from.0)
    }

    /// Returns the number of the stream of a message; creates the stream for the first message.
    fn stream_of(
        &mut self,
        streams: &mut Streams,
        workload: u16,
        parcel: &Parcel,
    ) -> Result<u32, String> {
        let (from, to) = (parcel.from, parcel.to);
        let name = (workload, from.0, to.0, parcel.line);
        if let Some(stream) = self.numbers.get(&name) {
            return Ok(*stream);
        }
        if self.streams_state.len() >= MAX_STREAMS {
            return Err(format!(
                "the messages over raw Ethernet need more than {MAX_STREAMS} streams (pairs of \
                 hosts), which is the maximum of the simulator"
            ));
        }
        let stream = streams.rows.len() as u32;
        streams.rows.push(StreamRow::new(workload, parcel.class, (from, to)));
        self.numbers.insert(name, stream);
        self.streams_state.push(MessageStream {
            frame: parcel.frame,
            messages: VecDeque::new(),
            taken: 0,
        });
        Ok(stream)
    }

    /// Moves frames of a host's streams to its NIC while the NIC accepts them. Returns the time at
    /// which the NIC must be polled next; `None` if a poll is already scheduled or no frame waits.
    pub fn feed(
        &mut self,
        network: &mut Network,
        streams: &mut Streams,
        host: u32,
    ) -> Option<Time> {
        let mut nic = self.nics.remove(&host)?;
        // round robin: one frame of each stream, until every stream has to wait
        let mut waited = 0;
        while waited < nic.ready.len() {
            let Some(stream) = nic.ready.pop_front() else { break };
            let row = &streams.rows[stream as usize];
            if !has_room(network, row, nic.ready.len() as u64 + 1) {
                nic.ready.push_back(stream);
                waited += 1;
                continue;
            }
            waited = 0;
            if self.take_frame(network, streams, stream) {
                nic.ready.push_back(stream);
            }
        }
        if nic.ready.is_empty() && !nic.poll_pending {
            return None;
        }
        let rate = network.fabric.host_rate(HostId(host));
        let again = (!nic.poll_pending).then(|| network.now + rate.time_for(MAX_QUEUED_BYTES / 2));
        nic.poll_pending = true;
        self.nics.insert(host, nic);
        again
    }

    /// Sends the next frame of a stream. Returns whether the stream has more frames to send.
    fn take_frame(&mut self, network: &mut Network, streams: &mut Streams, stream: u32) -> bool {
        let number = streams.rows[stream as usize].sent + 1;
        let line = self.line(stream);
        let message = &mut line.messages[line.taken];
        let bytes = message.left.min(u64::from(line.frame)) as u16;
        message.left -= u64::from(bytes);
        if message.left == 0 {
            message.last = number;
            line.taken += 1;
        }
        let more = line.taken < line.messages.len();
        streams.send(network, stream, bytes.max(EthernetConfig::MIN_BYTES));
        more
    }

    /// Records that the scheduled poll of a host's NIC has happened.
    pub fn on_poll(&mut self, host: u32) {
        if let Some(nic) = self.nics.get_mut(&host) {
            nic.poll_pending = false;
        }
    }

    /// Removes the next message of a stream if all its frames have arrived; frames up to number
    /// `done` have arrived. Returns the tag of the message, or `None` if a frame of it is missing.
    pub fn next_arrived(&mut self, stream: u32, done: u64) -> Option<u64> {
        let line = self.line(stream);
        if line.taken == 0 || line.messages[0].last > done {
            return None;
        }
        line.taken -= 1;
        line.messages.pop_front().map(|message| message.tag)
    }
}

/// Whether a NIC accepts a frame of a stream; `streams` is the number of streams that wait at this
/// NIC. If other traffic, such as TCP, fills the queue of the NIC, the streams share a window of
/// [`WINDOW`] frames in flight, so that each stream progresses.
fn has_room(network: &Network, row: &StreamRow, streams: u64) -> bool {
    row.under_way() * streams < WINDOW
        || network.fabric.bytes_ahead(row.src, row.dst, network.dscp(row.class)) < MAX_QUEUED_BYTES
}
