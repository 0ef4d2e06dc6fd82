//! What a run leaves behind of transactions: a row for each, a row for each of their calls, and their
//! part of the summary.

use crate::energy;
use crate::records::Records;
use crate::results::{label, seconds};
use crate::world::World;
use eastwest_measure::table::{Column, Table};
use eastwest_types::{CallRecord, Span, Time, TransactionRecord};
use eastwest_workload::Workload;
use eastwest_workload::transactions::{Book, Call, Transactions};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The replay that a workload is.
fn replay(world: &World, workload: u16) -> &Transactions {
    match &world.drivers[usize::from(workload)].workload {
        Workload::Transactions(replay) => replay,
        other => unreachable!("transactions of {other:?}"),
    }
}

/// A finished transaction with what it replays.
struct Row<'a> {
    workload: u16,
    record: &'a TransactionRecord,
    book: &'a Book,
}

fn rows(world: &World) -> Vec<Row<'_>> {
    let all = world.records.transactions.iter();
    all.map(|(workload, record)| Row {
        workload: *workload,
        record,
        book: replay(world, *workload).book(),
    })
    .collect()
}

fn spans(spans: impl Iterator<Item = Span>) -> Column {
    Column::F64(spans.map(Span::as_us_f64).collect())
}

/// One row for each finished transaction.
pub fn table(world: &World, workloads: &[String]) -> Table {
    let rows = rows(world);
    let r = || rows.iter().map(|row| row.record);
    let name = |row: &Row| row.book.transactions[row.record.recorded as usize].name.clone();
    Table::new(
        "transactions",
        vec![
            ("transaction", Column::U32(r().map(|t| t.number).collect())),
            ("workload", label(rows.iter().map(|row| u32::from(row.workload)), workloads)),
            ("name", Column::Text(rows.iter().map(name).collect())),
            ("recorded", Column::U32(r().map(|t| t.recorded).collect())),
            ("client", Column::I64(r().map(|t| t.client.map_or(-1, |h| i64::from(h.0))).collect())),
            ("arrived_s", seconds(r().map(TransactionRecord::arrived))),
            ("finished_s", seconds(r().map(TransactionRecord::finished))),
            ("response_us", spans(r().map(TransactionRecord::response_time))),
            ("network_us", spans(r().map(|t| t.network))),
            ("compute_us", spans(r().map(|t| t.compute))),
            ("queued_us", spans(r().map(|t| t.queued))),
            ("calls", Column::U32(r().map(|t| t.calls.len() as u32).collect())),
        ],
    )
}

/// One row for each call of them.
pub fn calls(world: &World, workloads: &[String]) -> Table {
    let rows = rows(world);
    let c = || rows.iter().flat_map(|row| (0u32..).zip(&row.record.calls).map(move |c| (row, c)));
    fn recorded<'a>(row: &Row<'a>, call: u32) -> &'a Call {
        &row.book.transactions[row.record.recorded as usize].calls[call as usize]
    }
    let times = |of: fn(&CallRecord) -> Time| seconds(c().map(move |(_, (_, call))| of(call)));
    let took = |of: fn(&CallRecord) -> Span| spans(c().map(move |(_, (_, call))| of(call)));
    let text = |of: fn(&Book) -> &[String], which: fn(&Call) -> u32| {
        let mut names: Vec<String> = Vec::new();
        // names of workloads one behind the other; a workload's begin where it says
        let mut begins = BTreeMap::new();
        for row in &rows {
            begins.entry(row.workload).or_insert_with(|| {
                let begin = names.len() as u32;
                names.extend_from_slice(of(row.book));
                begin
            });
        }
        let index = c().map(|(row, (n, _))| begins[&row.workload] + which(recorded(row, n)));
        Column::Label(index.collect(), names)
    };
    Table::new(
        "calls",
        vec![
            ("transaction", Column::U32(c().map(|(row, _)| row.record.number).collect())),
            ("workload", label(c().map(|(row, _)| u32::from(row.workload)), workloads)),
            ("call", Column::U32(c().map(|(_, (n, _))| n).collect())),
            (
                "parent",
                Column::I64(
                    c().map(|(row, (n, _))| recorded(row, n).parent.map_or(-1, i64::from))
                        .collect(),
                ),
            ),
            ("component", text(|b| &b.components, |call| call.component)),
            ("service", text(|b| &b.services, |call| call.service)),
            ("operation", text(|b| &b.operations, |call| call.operation)),
            (
                "host",
                Column::U32(
                    c().map(|(row, (n, _))| {
                        let component = recorded(row, n).component as usize;
                        replay(world, row.workload).hosts()[component].0
                    })
                    .collect(),
                ),
            ),
            (
                "request_bytes",
                Column::U64(c().map(|(r, (n, _))| recorded(r, n).request_bytes).collect()),
            ),
            (
                "response_bytes",
                Column::U64(c().map(|(r, (n, _))| recorded(r, n).response_bytes).collect()),
            ),
            ("sent_s", times(|call| call.sent)),
            ("arrived_s", times(|call| call.arrived)),
            ("answered_s", times(|call| call.answered)),
            ("done_s", times(|call| call.done)),
            ("network_us", took(|call| call.network)),
            ("compute_us", took(|call| call.compute)),
        ],
    )
}

/// How many, how long they took, how many a second, and a second and watt.
pub fn summary(world: &World) -> Value {
    let all = || world.records.transactions.iter().map(|(_, t)| t);
    let count = all().count();
    if count == 0 {
        return json!({ "count": count });
    }
    let us =
        |of: fn(&TransactionRecord) -> Span| quantiles(all().map(|t| of(t).as_us_f64()).collect());
    let (per_second, per_watt) = rates(world, all());
    json!({
        "count": count,
        "response_us": us(TransactionRecord::response_time),
        "network_us": us(|t| t.network),
        "compute_us": us(|t| t.compute),
        "queued_us": us(|t| t.queued),
        "per_second": per_second, "per_second_per_watt": per_watt,
    })
}

/// Transactions over the time from the first arrival to the last response; and that over the mean
/// power of links and switches in the run.
fn rates<'a>(world: &World, of: impl Iterator<Item = &'a TransactionRecord> + Clone) -> (f64, f64) {
    let first = of.clone().map(TransactionRecord::arrived).min().unwrap_or_default();
    let last = of.clone().map(TransactionRecord::finished).max().unwrap_or_default();
    let per_second = of.count() as f64 / last.since(first).as_secs_f64().max(1e-12);
    let watts = energy::mean_watts(world);
    (per_second, if watts > 0.0 { per_second / watts } else { 0.0 })
}

/// Mean and percentiles of a sample that is not empty.
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

impl Records {
    /// A transaction has finished.
    pub fn transaction(&mut self, workload: u16, transaction: TransactionRecord) {
        self.digest.transaction(usize::from(workload), &transaction);
        self.transactions.push((workload, transaction));
    }
}
