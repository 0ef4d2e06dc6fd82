//! Messages as raw Ethernet frames, without connections: those of MPI programs on a lossless network.
//!
//! The messages of one host to another for a workload form a stream, or several streams if the workload says
//! so. A message is split into full frames and a rest. The NIC of a host takes a frame from each of its streams
//! in turn while less than [`MAX_QUEUED_BYTES`] bytes are queued, and polls again when half of that may have
//! left. So it is never idle for lack of frames, and a long message does not fill memory. The network decides
//! how fast frames leave: line rate, the rate of QCN, or not at all while the priority is paused. Frames that
//! QCN limits have a separate queue, so they delay no other stream.
//!
//! Receivers put frames in order. A message has arrived when its last frame and all before it have, so the
//! messages of a stream keep their order. A lost frame is not retransmitted: the run then ends and names the
//! receiver that waits for it.

use crate::network::Network;
use crate::streams::Streams;
use eastwest_measure::streams::StreamRow;
use eastwest_types::{HostId, Time};
use eastwest_workload::Parcel;
use eastwest_workload::ethernet::EthernetConfig;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Queued bytes from which a NIC accepts no more frames: 32 full frames, 38 µs at 10 Gbit/s.
const MAX_QUEUED_BYTES: u64 = 48_000;
/// Frames that the streams of a NIC may have in flight, whatever is queued at the NIC.
const WINDOW: u64 = 32;
/// Most streams.
const MAX_STREAMS: usize = 1_000_000;

/// A message that has not arrived.
#[derive(Debug, Serialize, Deserialize)]
struct OutgoingMessage {
    tag: u64,
    /// Bytes that the NIC has not taken.
    left: u64,
    /// Number of its last frame, after the NIC has taken all frames.
    last: u64,
}

/// A stream of messages.
#[derive(Debug, Serialize, Deserialize)]
struct MessageStream {
    /// Bytes of a full frame.
    frame: u16,
    /// Messages that have not arrived, in order.
    messages: VecDeque<OutgoingMessage>,
    /// Number of messages that the NIC has taken completely.
    taken: usize,
}

/// NIC of a host with streams that wait.
#[derive(Debug, Default, Serialize, Deserialize)]
struct NicQueue {
    /// Streams with bytes that the NIC has not taken, in the order of service.
    ready: VecDeque<u32>,
    /// Whether a poll is scheduled.
    poll_pending: bool,
}

/// All streams of messages that travel as raw Ethernet frames, and the NICs that send them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct EthernetMessages {
    /// Number of the first message stream; lower numbers are streams of open sources.
    first: u32,
    /// Streams by workload, sender, receiver and index among their streams.
    numbers: BTreeMap<(u16, u32, u32, u8), u32>,
    streams_state: Vec<MessageStream>,
    nics: BTreeMap<u32, NicQueue>,
}

impl EthernetMessages {
    /// Returns the state without streams. Message streams are numbered from `first`, after the
    /// streams of open sources.
    pub fn new(first: u32) -> EthernetMessages {
        EthernetMessages { first, ..EthernetMessages::default() }
    }

    fn line(&mut self, stream: u32) -> &mut MessageStream {
        &mut self.streams_state[(stream - self.first) as usize]
    }

    /// Accepts a message that travels as raw Ethernet frames. Returns the host whose NIC has to be
    /// [fed](EthernetMessages::feed), or why the message cannot be sent.
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

    /// Returns the stream of a message; creates it if need be.
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
            return Err(format!("more than {MAX_STREAMS} streams of messages over Ethernet"));
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

    /// Moves frames of a host's streams to its NIC while the NIC has room. Returns the time at
    /// which the NIC is to be polled next; `None` if a poll is already scheduled or no frame waits.
    pub fn feed(
        &mut self,
        network: &mut Network,
        streams: &mut Streams,
        host: u32,
    ) -> Option<Time> {
        let mut nic = self.nics.remove(&host)?;
        // one frame of each stream in turn, until all streams have to wait
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

    /// Sends the next frame of a stream. Returns whether there are more.
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

    /// Notes that the scheduled poll of a host's NIC has happened.
    pub fn on_poll(&mut self, host: u32) {
        if let Some(nic) = self.nics.get_mut(&host) {
            nic.poll_pending = false;
        }
    }

    /// Removes the next message of a stream if all its frames, up to number `done`, have arrived,
    /// and returns its tag. `None` if a frame of the message is missing.
    pub fn next_arrived(&mut self, stream: u32, done: u64) -> Option<u64> {
        let line = self.line(stream);
        if line.taken == 0 || line.messages[0].last > done {
            return None;
        }
        line.taken -= 1;
        line.messages.pop_front().map(|message| message.tag)
    }
}

/// Whether a NIC takes a frame of a stream, which is one of `streams`. If other traffic, such as
/// connections, keeps the NIC full, the streams share a window, so that none waits for ever.
fn has_room(network: &Network, row: &StreamRow, streams: u64) -> bool {
    row.under_way() * streams < WINDOW
        || network.fabric.bytes_ahead(row.src, row.dst, network.dscp(row.class)) < MAX_QUEUED_BYTES
}
