//! Results of data-centre bridging (PFC and QCN): pauses and buffers by link and priority, rate
//! limiters, deadlock.

use crate::network::Network;
use eastwest_measure::table;
use eastwest_measure::table::Table;
use eastwest_network::dcb::ingress_pool::MemoryCounts;
use eastwest_network::dcb::{InputCounts, OutputCounts};
use eastwest_network::fabric::Fabric;
use eastwest_types::Time;
use serde_json::{Value, json};

/// Counts of one priority of one link: at the port that sends into the link (output), and at the
/// ingress buffer at its receiving end (input).
struct Row {
    link: u32,
    priority: u32,
    output: OutputCounts,
    input: InputCounts,
}

fn rows(fabric: &Fabric, now: Time) -> Vec<Row> {
    let links = fabric.links.iter().zip(0u32..);
    let all = links.flat_map(|(l, link)| {
        let inputs = l.input_counts().unwrap_or_default();
        let outputs = l.output_counts(now).into_iter().flatten();
        (0u32..).zip(outputs.zip(inputs)).map(move |(priority, (output, input))| Row {
            link,
            priority,
            output,
            input,
        })
    });
    all.filter(|r| r.output.most_bytes > 0 || r.input.most_bytes > 0 || r.output.pauses > 0)
        .collect()
}

/// Returns the table `pfc`, with the counters at the simulated time `now`.
pub fn table(fabric: &Fabric, now: Time) -> Table {
    Pfc::of(&rows(fabric, now), ())
}

table! {
    /// One row for each link and priority that carried packets, if ports have
    /// [PFC](../mechanisms/pfc.md) or [QCN](../mechanisms/qcn.md). *Output* is the port that sends
    /// into the link, *input* the buffer at the other end of the link.
    pub Pfc = "pfc" since 5
    of row in &'a Row, _at: ();

    /// number of the link
    link: u32 = row.link;

    /// 802.1p priority, 0 to 7
    priority: u32 = row.priority;

    /// maximum backlog at the port in bytes
    output_most_bytes: u64 = row.output.most_bytes;

    /// number of pauses of the port for this priority
    pauses: u64 = row.output.pauses;

    /// total duration of the pauses in s
    paused_s: seconds = row.output.paused;

    /// maximum number of bytes in the switch that had arrived over the link
    input_most_bytes: u64 = row.input.most_bytes;

    /// bytes still in the switch at the end of the run that had arrived over the link
    input_bytes: u64 = row.input.bytes;

    /// XOFF frames that the input sent (first frames of a pause)
    xoff_sent: u64 = row.input.pauses;

    /// XON frames that the input sent to end a pause
    xon_sent: u64 = row.input.releases;

    /// XOFF frames that the input sent to refresh a pause
    xoff_repeated: u64 = row.input.repeats;

    /// headroom of the input buffer above its XOFF threshold, in bytes
    headroom_bytes: u64 = row.input.headroom_bytes;

    /// samples of the queue taken by the QCN congestion point of the port
    qcn_samples: u64 = row.output.samples;

    /// congestion notification messages (CNM) that the QCN congestion point of the port sent to
    /// sources
    qcn_messages: u64 = row.output.messages;
}

/// Returns the section `dcb` of the summary; `None` if no port uses data-centre bridging.
pub fn summary(network: &Network) -> Option<Value> {
    let Network { fabric, now, .. } = network;
    let rows = rows(fabric, *now);
    fabric.links.iter().find_map(|l| l.output_counts(*now))?;
    let mut counts = [0; 3];
    for link in &fabric.links {
        counts.iter_mut().zip(link.dcb_counts()).for_each(|(sum, n)| *sum += n);
    }
    let limited: usize = fabric.links.iter().map(|l| l.limited_rates().len()).sum();
    let sum = |of: fn(&Row) -> u64| rows.iter().map(of).sum::<u64>();
    let most = |of: fn(&Row) -> u64| rows.iter().map(of).max().unwrap_or(0);
    let mut summary = json!({
        "pfc_frames": counts[0], "watchdog_drops": counts[1], "overflow_drops": counts[2],
        "pauses": sum(|r| r.output.pauses),
        "paused_s": rows.iter().map(|r| r.output.paused.as_secs_f64()).sum::<f64>(),
        "input_most_bytes": most(|r| r.input.most_bytes),
        "output_most_bytes": most(|r| r.output.most_bytes),
        "qcn_samples": sum(|r| r.output.samples), "qcn_messages": sum(|r| r.output.messages),
        "limited_flows": limited,
        "deadlock": deadlock(network),
    });
    if let Some(memory) = memory(fabric) {
        summary["memory"] = memory;
    }
    Some(summary)
}

/// Returns the section `dcb.memory` of the summary, on the memory that the inputs and lossy queues
/// of a switch share: the maximum bytes in one switch during the run, and the bytes in all switches
/// at the end of the run. `None` if inputs share no memory.
fn memory(fabric: &Fabric) -> Option<Value> {
    let counts = fabric.memory_counts();
    let most = |of: fn(&MemoryCounts) -> u64| counts.iter().map(of).max();
    let now = |of: fn(&MemoryCounts) -> u64| counts.iter().map(of).sum::<u64>();
    Some(json!({
        "shared_most_bytes": most(|c| c.most.shared)?,
        "headroom_most_bytes": most(|c| c.most.headroom)?,
        "lossy_most_bytes": most(|c| c.most_queued)?,
        "shared_bytes": now(|c| c.used.shared),
        "headroom_bytes": now(|c| c.used.headroom),
        "lossy_bytes": now(|c| c.queued),
    }))
}

fn deadlock(network: &Network) -> Value {
    let Some(found) = network.fabric.deadlock() else { return Value::Null };
    let port = |link: &u32| network.port_name(*link as usize);
    json!({
        "at_s": found.at.as_secs_f64(), "priority": found.priority,
        "cycle": found.cycle.iter().map(port).collect::<Vec<_>>(),
        "bytes": found.bytes, "stuck_ports": found.stuck,
    })
}
