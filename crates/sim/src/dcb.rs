//! What data-centre bridging leaves behind: pauses and buffers by link and priority, limiters, deadlock.

use crate::world::World;
use eastwest_measure::table::{Column, Table};
use eastwest_network::dcb::{InputCounts, OutputCounts};
use eastwest_network::fabric::Fabric;
use eastwest_types::Time;
use serde_json::{Value, json};

/// A link and a priority: what happened at the port that feeds the link, and at the input at its far end.
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

/// The table `pfc`: a row for every link and priority that was of use, where ports are bridged.
pub fn table(fabric: &Fabric, now: Time) -> Table {
    let rows = rows(fabric, now);
    let output =
        |of: fn(&OutputCounts) -> u64| Column::U64(rows.iter().map(|r| of(&r.output)).collect());
    let input =
        |of: fn(&InputCounts) -> u64| Column::U64(rows.iter().map(|r| of(&r.input)).collect());
    Table::new(
        "pfc",
        vec![
            ("link", Column::U32(rows.iter().map(|r| r.link).collect())),
            ("priority", Column::U32(rows.iter().map(|r| r.priority).collect())),
            ("output_most_bytes", output(|c| c.most_bytes)),
            ("pauses", output(|c| c.pauses)),
            ("paused_s", Column::F64(rows.iter().map(|r| r.output.paused.as_secs_f64()).collect())),
            ("input_most_bytes", input(|c| c.most_bytes)),
            ("input_bytes", input(|c| c.bytes)),
            ("xoff_sent", input(|c| c.pauses)),
            ("xon_sent", input(|c| c.releases)),
            ("xoff_repeated", input(|c| c.repeats)),
            ("headroom_bytes", input(|c| c.headroom_bytes)),
            ("qcn_samples", output(|c| c.samples)),
            ("qcn_messages", output(|c| c.messages)),
        ],
    )
}

/// What the summary says of bridging, where there is any.
pub fn summary(w: &World) -> Option<Value> {
    let fabric = &w.fabric;
    let rows = rows(fabric, w.now);
    fabric.links.iter().find_map(|l| l.output_counts(w.now))?;
    let mut counts = [0; 3];
    for link in &fabric.links {
        counts.iter_mut().zip(link.bridge_counts()).for_each(|(sum, n)| *sum += n);
    }
    let limited: usize = fabric.links.iter().map(|l| l.limited_rates().len()).sum();
    let sum = |of: fn(&Row) -> u64| rows.iter().map(of).sum::<u64>();
    let most = |of: fn(&Row) -> u64| rows.iter().map(of).max().unwrap_or(0);
    Some(json!({
        "pfc_frames": counts[0], "watchdog_drops": counts[1], "overflow_drops": counts[2],
        "pauses": sum(|r| r.output.pauses),
        "paused_s": rows.iter().map(|r| r.output.paused.as_secs_f64()).sum::<f64>(),
        "input_most_bytes": most(|r| r.input.most_bytes),
        "output_most_bytes": most(|r| r.output.most_bytes),
        "qcn_samples": sum(|r| r.output.samples), "qcn_messages": sum(|r| r.output.messages),
        "limited_flows": limited,
        "deadlock": deadlock(fabric),
    }))
}

fn deadlock(fabric: &Fabric) -> Value {
    let Some(found) = fabric.deadlock() else { return Value::Null };
    let name = |node: u32| &fabric.graph.names[node as usize];
    let port = |link: &u32| {
        let l = &fabric.links[*link as usize];
        format!("{}->{}", name(l.from), name(l.to))
    };
    json!({
        "at_s": found.at.as_secs_f64(), "priority": found.priority,
        "cycle": found.cycle.iter().map(port).collect::<Vec<_>>(),
        "bytes": found.bytes, "stuck_ports": found.stuck,
    })
}
