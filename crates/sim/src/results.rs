//! Tables and summary of a finished run.

use crate::approximate::Approximate;
use crate::capture::Capture;
use crate::dcb;
use crate::dcb::Pfc;
use crate::drivers::Drivers;
use crate::energy;
use crate::lpi::{Lpi, Naps};
use crate::network::Network;
use crate::pauses::{PauseRows, Pauses};
use crate::ports;
use crate::ports::{Depths, Drops, Links, Sojourn};
use crate::probes::Probes;
use crate::records::Records;
use crate::site::Site;
use crate::stream_transports::Transport;
use crate::transactions;
use crate::transactions::{Calls, Finished};
use eastwest_engine::histogram::Histogram;
use eastwest_measure::application_times::ApplicationTimes;
use eastwest_measure::events::Events;
use eastwest_measure::fairness::Shares;
use eastwest_measure::flow_parts::{FlowHops, FlowParts, Parts, PartsTable};
use eastwest_measure::flow_samples::Samples;
use eastwest_measure::flows::{FlowTotals, Flows};
use eastwest_measure::jobs::{Counters, Jobs, Tasks};
use eastwest_measure::latency::Latency;
use eastwest_measure::mpi::{MpiCollectives, MpiIterations, MpiMessages, MpiRanks, MpiStates};
use eastwest_measure::packet_hops::PacketHops;
use eastwest_measure::rounds::Rounds;
use eastwest_measure::samples::{LinkSamples, Power, Queues, Traffic};
use eastwest_measure::streams::Streams;
use eastwest_measure::table::{Declared, Names, Table};
use eastwest_measure::tcp_trace::TcpTrace;
use eastwest_network::losses::Cause;
use eastwest_transport::tcp::sender_state::WindowPhase;
use eastwest_transport::tcp::{Stack, TimeoutCause};
use eastwest_types::{Purpose, Span, Time};
use eastwest_workload::Workload;
use eastwest_workload::application::tally::Tally;
use eastwest_workload::application::{Deployment, Requests};
use serde_json::{Map, Value, json};

/// All tables that a run can have, in the order of docs/reference/results.md.
pub const TABLES: [Declared; 32] = [
    Jobs::DECLARED,
    Tasks::DECLARED,
    Counters::DECLARED,
    Flows::DECLARED,
    FlowParts::DECLARED,
    FlowHops::DECLARED,
    Samples::DECLARED,
    PacketHops::DECLARED,
    Events::DECLARED,
    Links::DECLARED,
    Drops::DECLARED,
    Depths::DECLARED,
    Sojourn::DECLARED,
    LinkSamples::DECLARED,
    Queues::DECLARED,
    Traffic::DECLARED,
    Power::DECLARED,
    Latency::DECLARED,
    ApplicationTimes::DECLARED,
    Rounds::DECLARED,
    Finished::DECLARED,
    Calls::DECLARED,
    MpiRanks::DECLARED,
    MpiStates::DECLARED,
    MpiMessages::DECLARED,
    MpiCollectives::DECLARED,
    MpiIterations::DECLARED,
    TcpTrace::DECLARED,
    Lpi::DECLARED,
    Streams::DECLARED,
    Pfc::DECLARED,
    PauseRows::DECLARED,
];

/// Results of a finished run: tables, files and summary.
pub struct Results {
    /// All tables of the run. The name of a table is the name of its file without extension.
    pub tables: Vec<Table>,
    /// Further files of the result folder: name and content of each.
    pub files: Vec<(&'static str, Vec<u8>)>,
    /// Summary of the run: the fields of `eastwest run --json` that do not depend on the machine.
    pub summary: Value,
}

impl Results {
    /// Makes the results from the state of a finished run. The memory of records is released as
    /// soon as their table is made, so that the peak of memory does not exceed the peak during the
    /// run.
    pub fn new(run: impl Into<Site>) -> Results {
        let mut site: Site = run.into();
        let digest = site.digest();
        let now = site.network.now;
        site.take_losses(now, Time::NEVER, &mut |events, transports, lost| {
            events.push(transports.event_of(&lost));
        });
        site.conserved().unwrap_or_else(|broken| panic!("{broken}"));
        let naps = Naps::take(&mut site.network.fabric, now);
        let pauses = Pauses::take(&mut site.network.fabric, now);
        let streams = &site.transports.streams.rows;
        site.probes.paths.end_frames(streams);
        site.probes.flow_samples.end(streams);
        let summary = summary(&site, (&naps, &pauses), &digest);
        let names = names(&site.drivers, &site.network, &site.probes.records);
        let fabric = &site.network.fabric;
        let capture = site.probes.capture.take().map(|c| c.finish(&fabric.graph.names));
        let ports = [
            ports::links(&site.network, &site.probes.records),
            ports::drops(fabric),
            ports::depths(fabric),
            ports::sojourn(fabric),
        ];
        let pfc = dcb::table(fabric, now);
        let transactions = transactions::tables(&site.drivers, &site.probes.records, &names);
        let application_times = application_times(&site.drivers, &names);
        let Site { probes, transports, .. } = site;
        let Probes { mut records, tracer, paths, flow_samples, packet_hops, .. } = probes;
        let events = std::mem::take(&mut records.events)
            .into_table(&Cause::ALL.map(Cause::name), &TimeoutCause::NAMES);
        let samples = &records.samples;
        let mut tables = vec![
            Jobs::of(&records.jobs, &names),
            Tasks::of(&records.tasks, &names),
            Counters::of(&records.jobs, &names),
            records.flows.hand_out(&names),
            paths.rows.table(&names),
            paths.rows.hops(&names),
            flow_samples.into_rows().into_table(&names),
            packet_hops.rows.table(),
            events,
        ];
        tables.extend(ports);
        tables.extend([
            LinkSamples::of(samples.links(), ()),
            Queues::of(samples.queues(), ()),
            Traffic::of(samples.carried(), &names),
            Power::of(samples.power(), &names),
            latency(&records, &names),
            application_times,
            Rounds::of(&records.rounds, &names),
            eastwest_measure::streams::table(&transports.streams.rows, &names),
            pfc,
        ]);
        tables.extend(records.mpi.tables(&names));
        tables.extend([tracer.rows.table(&WindowPhase::NAMES), naps.table(), pauses.table()]);
        tables.extend(transactions);
        let files = capture.map(|bytes| ("capture.pcapng", bytes)).into_iter().collect();
        Results { tables, files, summary }
    }
}

/// Returns the names of the tables that grow with the run (flows, tasks), each with the number of
/// its rows that the caller of the run has already received.
pub fn handed_out(site: &Site) -> [(&'static str, u64); 2] {
    let records = &site.probes.records;
    [("flows", records.flows.handed_out()), ("tasks", records.tasks_handed_out)]
}

/// Whether a table that grows with the run (flows, tasks) holds at least `most` rows.
pub fn holds(site: &Site, most: usize) -> bool {
    let records = &site.probes.records;
    records.flows.held().max(records.tasks.len()) >= most
}

/// Returns all rows of a table that grows with the run (flows or tasks) if it holds at least `most`
/// rows, and removes them; `None` if both tables are shorter. The results at the end of the run
/// contain only the remaining rows.
pub fn hand_out(site: &mut Site, most: usize) -> Option<Table> {
    let names = names(&site.drivers, &site.network, &site.probes.records);
    let records = &mut site.probes.records;
    if records.flows.held() >= most {
        return Some(records.flows.hand_out(&names));
    }
    if records.tasks.len() >= most {
        let rows = std::mem::take(&mut records.tasks);
        records.tasks_handed_out += rows.len() as u64;
        return Some(Tasks::of(&rows, &names));
    }
    None
}

/// Returns the names (workloads, nodes, classes …) to which the tables of a run refer by number.
fn names(drivers: &Drivers, network: &Network, records: &Records) -> Names {
    Names {
        workloads: drivers.all.iter().map(|d| d.name.clone()).collect(),
        classes: network.classes.iter().map(|c| c.name.clone()).collect(),
        tiers: records.tiers.iter().map(|t| t.to_string()).collect(),
    }
}

fn application_times(drivers: &Drivers, names: &Names) -> Table {
    let rows = (0u16..).zip(&drivers.all).flat_map(|(number, driver)| {
        let durations = match &driver.workload {
            Workload::Application(application) => Some(application.tally().durations()),
            _ => None,
        };
        let all = durations.into_iter().flatten();
        all.flat_map(move |(name, found)| found.rows().map(move |row| (number, name, row)))
    });
    ApplicationTimes::of(rows, names)
}

fn latency(r: &Records, names: &Names) -> Table {
    let rows = (0u32..).zip(&r.latency).flat_map(|(class, both)| {
        let kinds = ["data", "ack"].into_iter().zip(both);
        kinds.flat_map(move |(kind, all)| all.rows().map(move |row| (class, kind, row)))
    });
    Latency::of(rows, names)
}

/// Returns mean and percentiles of values, as JSON; an empty object if there are no values.
fn spread(mut values: Vec<f64>) -> Value {
    if values.is_empty() {
        return json!({});
    }
    values.sort_unstable_by(f64::total_cmp);
    let at =
        |q: f64| values[((q * values.len() as f64).ceil() as usize).clamp(1, values.len()) - 1];
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    json!({ "mean": mean, "p50": at(0.5), "p99": at(0.99), "max": at(1.0) })
}

/// Returns number, mean and percentiles of durations in µs, as JSON; without durations only their
/// number, which is 0.
fn latencies<'a>(histograms: impl Iterator<Item = &'a Histogram>) -> Value {
    let mut all = Histogram::default();
    histograms.for_each(|h| all.merge(h));
    if all.count() == 0 {
        return json!({ "count": 0 });
    }
    json!({
        "count": all.count(), "mean": all.mean_us(), "p50": all.quantile_us(0.5),
        "p99": all.quantile_us(0.99), "p999": all.quantile_us(0.999), "max": all.max_us(),
    })
}

fn summary(site: &Site, (naps, pauses): (&Naps, &Pauses), digest: &str) -> Value {
    let Site { network, transports, probes, .. } = site;
    let (fabric, r) = (&network.fabric, &probes.records);
    let run_s = network.now.as_secs_f64();
    let flows = r.flows.totals();
    let bytes: u64 = flows.iter().map(|t| t.bytes).sum();
    let hosts = f64::from(fabric.graph.hosts);
    let traced = probes.tracer.rows.counts();
    let captured = probes.capture.as_ref().map_or((0, 0), Capture::counts);
    let (failures, reroutings) = fabric.failures();
    let mut summary = json!({
        "digest": digest,
        "simulated_s": run_s,
        "packet_hops": fabric.packet_hops(),
        "events": site.events,
        "packets": {
            "sent": fabric.tally.sent, "delivered": fabric.tally.delivered,
            "dropped": fabric.tally.dropped, "in_flight": fabric.pool.in_use(),
        },
        "jobs": jobs_summary(r),
        "flows": flows_summary(site, &flows),
        "rounds": {
            "count": r.rounds.len(), "goodput_bps": goodput_bps(r),
        },
        "transactions": transactions::summary(site),
        "latency_us": latency_summary(network, r),
        "throughput_bps": if run_s > 0.0 { bytes as f64 * 8.0 / run_s / hosts } else { 0.0 },
        "drops": ports::lost(fabric.links.iter()),
        "marks": ports::marked(fabric.links.iter()),
        "ports": ports::summary(fabric),
        "event_log": { "rows": r.events.len(), "left_out": r.events.left_out() },
        "capture": { "packets": captured.0, "left_out": captured.1 },
        "tcp_trace": { "rows": traced.0, "left_out": traced.1 },
        "lpi": naps.summary(),
        "pauses": pauses.summary(),
        "faults": { "failures": failures, "reroutings": reroutings },
        "tcp": tcp_summary(&transports.tcp.stack),
        "energy_j": energy::summary(network, &site.switch_power, (bytes, r.jobs.len())),
    });
    if transports.streams.any() {
        summary["streams"] = transports.streams.summary();
    }
    if probes.paths.is_on() {
        summary["flow_parts"] = parts_summary(&probes.paths.rows);
    }
    if let Some(samples) = probes.flow_samples.summary() {
        summary["flow_samples"] = samples;
    }
    if let Some(hops) = probes.packet_hops.summary() {
        // `packet_hops` is the number of packets that crossed links.
        summary["packet_hop_rows"] = hops;
    }
    if let Some(counts) = fabric.adaptive_counts() {
        summary["adaptive"] = json!({
            "marked": counts.marked, "absorbed": counts.absorbed, "moved": counts.moved,
        });
        if let Some(held) = counts.held {
            summary["adaptive"]["held"] = held.into();
        }
    }
    if let Some(bridging) = dcb::summary(network) {
        summary["dcb"] = bridging;
    }
    for (name, transport) in transports.further.all() {
        summary[name] = transport.summary();
    }
    let applications = applications(site);
    if !applications.is_empty() {
        summary["applications"] = applications.into();
    }
    if let Some(processing) = &network.processing {
        summary["hosts"] = processing.summary(network.now.since(Time::ZERO));
    }
    if let Some(window) = probes.window.summary() {
        summary["window"] = window;
    }
    if let Some(mpi) = r.mpi.summary() {
        summary["mpi"] = mpi;
    }
    if let Some(approximate) = &site.approximate {
        summary["flow_mode"] = approximate.summary();
    }
    summary["fidelity"] = site.approximate.as_ref().map_or("packet", Approximate::fidelity).into();
    summary
}

/// Returns, by the name of the workload, the counters and measures of each application, the numbers
/// of its operations and requests, the cause of its end, and the name of its transport.
fn applications(site: &Site) -> Map<String, Value> {
    let of = |application: &Deployment, transport: Transport| {
        let tally = application.tally();
        let named = |names: &[&str], numbers: &[u64]| {
            let both = names.iter().zip(numbers);
            Value::from(both.map(|(&name, &n)| (name.into(), n.into())).collect::<Map<_, _>>())
        };
        let operations = named(&Tally::OPERATIONS, &tally.operations());
        let requests = named(&Requests::NAMES, &application.requests().numbers());
        let ended = match application.has_ended() {
            true => "by itself",
            false if site.network.now >= site.until => "at the duration",
            false => "with the run",
        };
        let counters: Map<_, _> =
            tally.counters().map(|(name, n)| (name.into(), n.into())).collect();
        let measures =
            tally.durations().map(|(name, h)| (format!("{name}_us"), latencies([h].into_iter())));
        let counted = [
            ("operations".to_owned(), operations),
            ("requests".to_owned(), requests),
            ("counters".to_owned(), Value::from(counters)),
            ("ended".to_owned(), ended.into()),
            ("transport".to_owned(), transport.name().into()),
        ];
        Value::from(counted.into_iter().chain(measures).collect::<Map<_, _>>())
    };
    let own = site.drivers.all.iter().filter_map(|driver| match &driver.workload {
        Workload::Application(application) => {
            Some((driver.name.clone(), of(application, driver.transport)))
        }
        _ => None,
    });
    own.collect()
}

/// Returns the distributions over flows of each part of completion times, in µs: injection,
/// queueing, CPU cores, flight, retransmission. Sums over flows are not reported: flow sizes are
/// heavy-tailed, so a few flows would determine them.
fn parts_summary(rows: &PartsTable) -> Value {
    let counts = rows.counts();
    let us = |of: fn(&Parts) -> Span| spread(rows.parts().map(|p| of(p).as_us_f64()).collect());
    json!({
        "rows": counts.0, "left_out": counts.1,
        "injection_us": us(Parts::injection), "queueing_us": us(|p| p.queueing),
        "cores_us": us(Parts::cores), "flight_us": us(Parts::flight), "retransmission_us": us(|p| p.retransmission),
    })
}

fn jobs_summary(r: &Records) -> Value {
    let runtimes =
        r.jobs.iter().map(|(_, j)| j.finished.since(j.submitted).as_secs_f64()).collect();
    let first = r.jobs.iter().map(|(_, j)| j.submitted).min().unwrap_or(Time::ZERO);
    let last = r.jobs.iter().map(|(_, j)| j.finished).max().unwrap_or(Time::ZERO);
    let (began, ended) = r.tasks_span.unwrap_or_default();
    json!({
        "count": r.jobs.len(), "runtime_s": spread(runtimes),
        "makespan_s": last.since(first).as_secs_f64(),
        "tasks_s": ended.since(began).as_secs_f64(),
    })
}

fn flows_summary(site: &Site, totals: &[FlowTotals]) -> Value {
    let fct = |totals: &[FlowTotals]| {
        spread(totals.iter().flat_map(|t| &t.times).map(|time| time.as_us_f64()).collect())
    };
    let mut by_purpose = Map::new();
    for (purpose, t) in Purpose::ALL.into_iter().zip(totals) {
        if !t.times.is_empty() {
            let fct_us = fct(std::slice::from_ref(t));
            let row = json!({
                "count": t.times.len(), "bytes": t.bytes, "fct_us": fct_us,
                "jain": t.rates.jain(),
            });
            by_purpose.insert(purpose.name().into(), row);
        }
    }
    let sum = |of: fn(&FlowTotals) -> u64| totals.iter().map(of).sum::<u64>();
    let completed = site.probes.records.flows.len();
    let [partial, not_arrived] = unfinished(site);
    let with_loss = sum(|t| t.with_loss);
    let rates = totals.iter().fold(Shares::default(), |all, t| all.and(&t.rates));
    json!({
        "count": completed + partial + not_arrived, "completed": completed, "bytes": sum(|t| t.bytes),
        "with_lost_windows": sum(|t| t.with_lost_windows),
        "with_lost_ack_windows": sum(|t| t.with_lost_ack_windows),
        "whole_without_loss": completed - with_loss, "whole_with_loss": with_loss,
        "partial": partial, "not_arrived": not_arrived, "jain": rates.jain(),
        "fct_us": fct(totals), "by_purpose": by_purpose,
    })
}

/// Returns two numbers of undelivered messages: messages of which a part has arrived, and messages
/// of which nothing has arrived. Flow mode and link mode cannot distinguish the two: all count as
/// arrived in part.
fn unfinished(site: &Site) -> [u64; 2] {
    match &site.approximate {
        None => site.transports.unfinished(),
        Some(Approximate::Flow(_)) => {
            let messages = site.transports.tcp.messages.outstanding();
            [messages.filter(|(.., m)| m.record).count() as u64, 0]
        }
        Some(Approximate::Links(counts)) => [counts.not_arrived, 0],
    }
}

/// Returns the distributions of packet latency in µs: of all packets, of packets with payload, of
/// packets without payload, and by traffic class.
fn latency_summary(network: &Network, r: &Records) -> Value {
    let all = &r.latency;
    let mut latency = latencies(all.iter().flatten());
    latency["data"] = latencies(all.iter().map(|both| &both[0]));
    latency["ack"] = latencies(all.iter().map(|both| &both[1]));
    let by_class = network.classes.iter().zip(all);
    latency["classes"] = by_class
        .map(|(c, both)| (c.name.clone(), latencies(both.iter())))
        .collect::<Map<_, _>>()
        .into();
    latency
}

/// Returns the section `tcp` of the summary: counts of all connections.
pub(crate) fn tcp_summary(stack: &Stack) -> Value {
    let tcp = stack.totals();
    json!({
        "retransmits": tcp.retransmits, "timeouts": tcp.timeouts,
        "spurious_timeouts": tcp.spurious_timeouts, "fast_recoveries": tcp.fast_recoveries,
        "spurious_recoveries": tcp.spurious_recoveries,
        "lost_retransmits": tcp.lost_retransmits, "probes": tcp.probes,
        "probe_recoveries": tcp.probe_recoveries, "dsacks": tcp.dsacks,
        "ecn_reductions": tcp.ecn_reductions,
        "lost_windows": tcp.lost_windows, "lost_ack_windows": tcp.lost_ack_windows,
        "timeout_causes": TimeoutCause::NAMES
            .into_iter()
            .zip(tcp.causes)
            .map(|(name, n)| (name.into(), n.into()))
            .collect::<Map<_, _>>(),
    })
}

/// Returns the goodput of synchronized reads in bit/s: the bytes of all rounds divided by the time
/// from the first request to the last byte.
fn goodput_bps(r: &Records) -> f64 {
    let r = &r.rounds;
    let (Some(first), Some(last)) =
        (r.iter().map(|r| r.started).min(), r.iter().map(|r| r.finished).max())
    else {
        return 0.0;
    };
    let bytes: u64 = r.iter().map(|r| r.bytes).sum();
    bytes as f64 * 8.0 / last.since(first).as_secs_f64().max(1e-12)
}
