//! What the receivers of chosen senders got over time: the table `flow_samples`. Every byte counts once,
//! when it first arrives and its receiver keeps it, also behind a gap: those of a queue pair keep nothing
//! behind a gap. Of streams of frames those of every frame that has arrived count.

use crate::connections::Opened;
use crate::scenario::{FlowSamplesConfig, Senders};
use eastwest_measure::flow_samples::{FlowSamples, Meter, Whose};
use eastwest_measure::streams::StreamRow;
use eastwest_types::{ClassId, EndpointId, Time};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The receiving end of a connection or queue pair.
#[derive(Debug, Serialize, Deserialize)]
struct Receiver {
    id: EndpointId,
    /// Bytes of the stream that are counted.
    counted: u64,
    meter: Meter,
}

/// What a connection is of.
#[derive(Clone, Copy, Debug)]
pub enum StreamTransport {
    /// TCP.
    Tcp,
    /// Queue pairs, which have slots of their own.
    RoceV2,
}

/// Everything that is sampled.
#[derive(Debug, Serialize, Deserialize)]
pub struct Sampler {
    senders: Senders,
    rows: FlowSamples,
    /// By [what they are of](Over) and the slot of the end.
    receivers: [Vec<Option<Receiver>>; 2],
    /// By number.
    streams: BTreeMap<u32, Meter>,
}

impl Sampler {
    /// Samples what these senders send.
    pub fn new(asked: FlowSamplesConfig) -> Sampler {
        Sampler {
            senders: asked.senders,
            rows: FlowSamples::new(asked.interval, asked.rows),
            receivers: Default::default(),
            streams: BTreeMap::new(),
        }
    }

    /// Whether anyone is sampled.
    pub fn is_on(&self) -> bool {
        !self.senders.is_empty()
    }

    /// A workload has opened a connection, or a queue pair.
    pub fn open(
        &mut self,
        over: StreamTransport,
        client: EndpointId,
        opened: Opened,
        of: (u16, ClassId),
    ) {
        if !self.is_on() {
            return;
        }
        let receivers = &mut self.receivers[over as usize];
        let slot = client.slot() & !1;
        if slot + 2 > receivers.len() {
            receivers.resize_with(slot + 2, || None);
        }
        let (number, is_stream, (workload, class)) = (opened.number, false, of);
        for sender in [client, client.peer()] {
            let id = sender.peer();
            let (src, dst) = opened.stream_of(sender);
            let whose = Whose { number, is_stream, workload, class, src, dst };
            let receiver = Receiver { id, counted: 0, meter: Meter::new(whose) };
            let new = self.senders.contains(src, dst).then_some(receiver);
            if let Some(mut gone) = std::mem::replace(&mut receivers[id.slot()], new) {
                self.rows.close(&mut gone.meter);
            }
        }
    }

    /// The receiver at this end, if it is sampled.
    fn receiver(
        &mut self,
        over: StreamTransport,
        end: EndpointId,
    ) -> Option<(&mut Receiver, &mut FlowSamples)> {
        let receiver = self.receivers[over as usize].get_mut(end.slot())?.as_mut()?;
        // packets of the connection that had the slot before may still come
        (receiver.id == end).then_some((receiver, &mut self.rows))
    }

    /// Notes that `arrived` bytes of a stream have arrived at this end.
    pub fn arrived(&mut self, over: StreamTransport, end: EndpointId, now: Time, arrived: u64) {
        if let Some((receiver, rows)) = self.receiver(over, end) {
            // a connection that is given up forgets what waited behind a gap
            rows.add(&mut receiver.meter, now, arrived.saturating_sub(receiver.counted));
            receiver.counted = arrived.max(receiver.counted);
        }
    }

    /// A frame of a stream has arrived.
    pub fn frame(&mut self, stream: u32, row: &StreamRow, now: Time, bytes: u16) {
        if !self.senders.contains(row.src, row.dst) {
            return;
        }
        let meter = self.streams.entry(stream).or_insert_with(|| {
            let (number, is_stream) = (u64::from(stream), true);
            let (workload, class, src, dst) = (row.workload, row.class, row.src, row.dst);
            Meter::new(Whose { number, is_stream, workload, class, src, dst })
        });
        self.rows.add(meter, now, u64::from(bytes));
    }

    /// The run is over: takes what the last intervals hold, and numbers streams by their rows.
    pub fn end(&mut self, streams: &[StreamRow]) {
        if !self.is_on() {
            return;
        }
        let receivers = self.receivers.iter_mut().flatten().flatten().map(|r| &mut r.meter);
        for meter in receivers.chain(self.streams.values_mut()) {
            self.rows.close(meter);
        }
        let rows = streams.iter().scan(0, |rows, stream| {
            let row = *rows;
            *rows += u64::from(stream.sent > 0);
            Some(row)
        });
        self.rows.number_streams(&rows.collect::<Vec<u64>>());
    }

    /// For the summary, where anyone is sampled.
    pub fn summary(&self) -> Option<Value> {
        let (rows, left_out) = self.rows.counts();
        let interval_s = self.rows.interval().as_secs_f64();
        self.is_on()
            .then(|| json!({ "rows": rows, "left_out": left_out, "interval_s": interval_s }))
    }

    /// The rows.
    pub fn into_rows(self) -> FlowSamples {
        self.rows
    }
}
