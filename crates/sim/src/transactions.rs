//! Results of transactions: a table of transactions, a table of the calls of transactions, and a
//! section of the summary.

use crate::drivers::Drivers;
use crate::energy;
use crate::records::Records;
use crate::site::Site;
use eastwest_measure::table;
use eastwest_measure::table::{Names, Table};
use eastwest_types::{CallRecord, Span, TransactionRecord};
use eastwest_workload::Workload;
use eastwest_workload::transactions::{Book, Call, Recorded, Transactions};
use serde_json::{Value, json};

/// A finished transaction, together with the recorded transaction that it replays.
#[derive(Clone, Copy)]
struct Row<'a> {
    workload: u16,
    record: &'a TransactionRecord,
    replay: &'a Transactions,
}

impl<'a> Row<'a> {
    fn book(&self) -> &'a Book {
        self.replay.book()
    }

    /// Returns the recorded transaction that this transaction replays.
    fn recorded(&self) -> &'a Recorded {
        &self.book().transactions[self.record.recorded as usize]
    }

    /// Returns the recorded call with this number, from 0 within the transaction.
    fn call(&self, number: u32) -> &'a Call {
        &self.recorded().calls[number as usize]
    }
}

fn rows<'a>(drivers: &'a Drivers, records: &'a Records) -> impl Iterator<Item = Row<'a>> {
    records.transactions.iter().map(|(workload, record)| match &drivers.of(*workload).workload {
        Workload::Transactions(replay) => Row { workload: *workload, record, replay },
        other => unreachable!("transactions of {other:?}"),
    })
}

/// Returns the tables `transactions` and `calls`.
pub fn tables(drivers: &Drivers, records: &Records, names: &Names) -> [Table; 2] {
    let calls = rows(drivers, records)
        .flat_map(|row| (0..).zip(&row.record.calls).map(move |(n, c)| (row, n, c)));
    [Finished::of(rows(drivers, records), names), Calls::of(calls, names)]
}

table! {
    /// One row per finished [transaction](../mechanisms/replay.md).
    pub Finished = "transactions" since 6
    of row in Row<'a>, names: &'a Names;

    /// number of the transaction within its workload, from 0 in order of arrival
    transaction: u32 = row.record.number;

    /// name of the workload
    workload: label(&names.workloads) = row.workload;

    /// name of the transaction in the replayed table: untrusted text
    name: str = row.recorded().name.clone();

    /// number of the transaction that is replayed in the table of recorded transactions, from 0 in
    /// order of arrival
    recorded: u32 = row.record.recorded;

    /// number of the client's host, or −1 if the transaction began in its first component
    client: i64 = row.record.client.map_or(-1, |host| i64::from(host.0));

    /// time at which the transaction arrived
    arrived_s: seconds = row.record.arrived();

    /// time at which the response of the transaction had arrived
    finished_s: seconds = row.record.finished();

    /// response time: `finished_s` − `arrived_s`
    response_us: us = row.record.response_time();

    /// part of `response_us` in which messages of the critical path were in the network
    network_us: us = row.record.network;

    /// remaining part of `response_us`, in which components computed or calls waited for processors
    compute_us: us = row.record.compute;

    /// the part of `compute_us` in which calls waited for processors; 0 without `processors`
    queued_us since 7: us = row.record.queued;

    /// number of calls of the transaction
    calls: u32 = row.record.calls.len() as u32;
}

table! {
    /// One row per call of a finished transaction, ordered by the end of the transaction.
    pub Calls = "calls" since 6
    of (row, number, call) in (Row<'a>, u32, &'a CallRecord), names: &'a Names;

    /// number of the transaction, as in the table `transactions`
    transaction: u32 = row.record.number;

    /// name of the workload
    workload: label(&names.workloads) = row.workload;

    /// number of the call within the transaction, from 0
    call: u32 = number;

    /// number of the call that made this call, or −1 for the first call
    parent: i64 = row.call(number).parent.map_or(-1, i64::from);

    /// component that answers the call: untrusted text
    component: few = &row.book().components[row.call(number).component as usize];

    /// service to which the component belongs: untrusted text
    service: few = &row.book().services[row.call(number).service as usize];

    /// operation that the call requests: untrusted text
    operation: few = &row.book().operations[row.call(number).operation as usize];

    /// number of the host of the component
    host: u32 = row.replay.hosts()[row.call(number).component as usize].0;

    /// payload bytes of the request
    request_bytes: u64 = row.call(number).request_bytes;

    /// payload bytes of the response
    response_bytes: u64 = row.call(number).response_bytes;

    /// time at which the request of the call was sent
    sent_s: seconds = call.sent;

    /// time at which the request of the call had arrived
    arrived_s: seconds = call.arrived;

    /// time at which the response of the call was sent
    answered_s: seconds = call.answered;

    /// time at which the response of the call had arrived
    done_s: seconds = call.done;

    /// time in which the request and response of the call were in the network, on the critical path
    network_us: us = call.network;

    /// time in which the component computed, on the critical path
    compute_us: us = call.compute;
}

/// Returns the section `transactions` of the summary: number, response times, rate per second, and
/// rate per watt.
pub fn summary(site: &Site) -> Value {
    let all = || site.probes.records.transactions.iter().map(|(_, t)| t);
    let count = all().count();
    if count == 0 {
        return json!({ "count": count });
    }
    let us =
        |of: fn(&TransactionRecord) -> Span| quantiles(all().map(|t| of(t).as_us_f64()).collect());
    let (per_second, per_watt) = rates(site, all());
    json!({
        "count": count,
        "response_us": us(TransactionRecord::response_time),
        "network_us": us(|t| t.network),
        "compute_us": us(|t| t.compute),
        "queued_us": us(|t| t.queued),
        "per_second": per_second, "per_second_per_watt": per_watt,
    })
}

/// Returns the number of transactions per second between the first arrival and the last response,
/// and this rate divided by the mean power of links and switches in watts (0 if no power is used).
fn rates<'a>(site: &Site, of: impl Iterator<Item = &'a TransactionRecord> + Clone) -> (f64, f64) {
    let first = of.clone().map(TransactionRecord::arrived).min().unwrap_or_default();
    let last = of.clone().map(TransactionRecord::finished).max().unwrap_or_default();
    let per_second = of.count() as f64 / last.since(first).as_secs_f64().max(1e-12);
    let watts = energy::mean_watts(&site.network, &site.switch_power);
    (per_second, if watts > 0.0 { per_second / watts } else { 0.0 })
}

/// Returns mean and percentiles of values, as JSON; there must be at least one value.
fn quantiles(mut values: Vec<f64>) -> Value {
    values.sort_by(f64::total_cmp);
    let at =
        |q: f64| values[((q * values.len() as f64).ceil() as usize).clamp(1, values.len()) - 1];
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    json!({
        "mean": mean, "p50": at(0.5), "p95": at(0.95), "p99": at(0.99), "p999": at(0.999),
        "max": at(1.0),
    })
}
