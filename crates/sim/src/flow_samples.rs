//! Throughput over time at the receivers of selected senders: the table `flow_samples`.
//!
//! Every byte counts once, when the receiver first stores it, even if earlier bytes are missing.
//! Queue pairs (RoCEv2) discard data after a missing packet, so this data counts after its
//! retransmission. For streams of raw frames, the bytes of every frame that has arrived count.

use crate::connections::Opened;
use crate::scenario::{FlowSamplesConfig, Senders};
use crate::stream_transports::number::TransportNumber;
use eastwest_measure::flow_samples::{FlowSamples, Meter, Whose};
use eastwest_measure::streams::StreamRow;
use eastwest_types::{ClassId, EndpointId, Time};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Receiving end of a connection or queue pair whose throughput is sampled.
#[derive(Debug, Serialize, Deserialize)]
struct Receiver {
    id: EndpointId,
    /// Number of bytes of the stream that have been counted so far.
    counted: u64,
    meter: Meter,
}

/// Throughput over time of the streams of selected senders (table `flow_samples`).
#[derive(Debug, Serialize, Deserialize)]
pub struct Sampler {
    senders: Senders,
    rows: FlowSamples,
    /// Sampled receivers, by [number of the transport](TransportNumber) and slot of the endpoint.
    receivers: Vec<Vec<Option<Receiver>>>,
    /// Byte counters of sampled streams of raw Ethernet frames, by number of the stream.
    streams: BTreeMap<u32, Meter>,
}

impl Sampler {
    /// Returns a sampler of the streams of the senders that `asked` selects.
    pub fn new(asked: FlowSamplesConfig) -> Sampler {
        Sampler {
            senders: asked.senders,
            rows: FlowSamples::new(asked.interval, asked.rows),
            receivers: Vec::new(),
            streams: BTreeMap::new(),
        }
    }

    /// Whether the stream of at least one sender is sampled.
    pub fn is_on(&self) -> bool {
        !self.senders.is_empty()
    }

    /// Registers a connection or queue pair that a workload has opened; the stream in each
    /// direction is sampled if its sender is selected. `of` are the number of the workload and the
    /// traffic class.
    pub fn open(
        &mut self,
        over: TransportNumber,
        client: EndpointId,
        opened: Opened,
        of: (u16, ClassId),
    ) {
        if !self.is_on() {
            return;
        }
        let transport = usize::from(over.0);
        if transport >= self.receivers.len() {
            self.receivers.resize_with(transport + 1, Vec::new);
        }
        let receivers = &mut self.receivers[transport];
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

    /// Returns the sampled receiver at this endpoint, and the rows of the table; `None` if the
    /// endpoint is not sampled.
    fn receiver(
        &mut self,
        over: TransportNumber,
        end: EndpointId,
    ) -> Option<(&mut Receiver, &mut FlowSamples)> {
        let receiver =
            self.receivers.get_mut(usize::from(over.0))?.get_mut(end.slot())?.as_mut()?;
        // Packets of an earlier connection with the same slot may still arrive.
        (receiver.id == end).then_some((receiver, &mut self.rows))
    }

    /// Records that `arrived` bytes in total, since the begin of the stream, have arrived at the
    /// endpoint `end`.
    pub fn arrived(&mut self, over: TransportNumber, end: EndpointId, now: Time, arrived: u64) {
        if let Some((receiver, rows)) = self.receiver(over, end) {
            // If a connection fails, data beyond a gap is dropped, and `arrived` decreases.
            rows.add(&mut receiver.meter, now, arrived.saturating_sub(receiver.counted));
            receiver.counted = arrived.max(receiver.counted);
        }
    }

    /// Records the arrival of a raw Ethernet frame of `bytes` bytes in stream number `stream`.
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

    /// Ends the sampling at the end of the run: closes the last intervals, and replaces the
    /// internal numbers of frame streams by the numbers of their rows in the table of streams.
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

    /// Returns the section `flow_samples` of the summary; `None` if no sender is sampled.
    pub fn summary(&self) -> Option<Value> {
        let (rows, left_out) = self.rows.counts();
        let interval_s = self.rows.interval().as_secs_f64();
        self.is_on()
            .then(|| json!({ "rows": rows, "left_out": left_out, "interval_s": interval_s }))
    }

    /// Returns the rows of the table `flow_samples`.
    pub fn into_rows(self) -> FlowSamples {
        self.rows
    }
}
