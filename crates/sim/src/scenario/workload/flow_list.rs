//! Workloads of `kind = "flow-list"`: flows from a CSV file.
//!
//! The file has the columns `src`, `dst`, `bytes` and `start_s` in any order, named in the first
//! line; other columns are ignored. `flows.parquet` in a result folder has these columns too, so
//! that the flows of one run can drive another run. Hosts are names (`h3`) or numbers (3).

use super::ground::Ground;
use crate::scenario::files::Files;
use crate::scenario::nodes::Nodes;
use crate::scenario::rows;
use eastwest_engine::interrupt;
use eastwest_settings::problem::shorten;
use eastwest_settings::quantity::{FileName, Quantity};
use eastwest_settings::reader::{Section, key};
use eastwest_types::{ClassId, HostId, Span};
use eastwest_workload::flow_list::{FlowListConfig, ListedFlow};
use std::io::Read;

/// Maximum size of a file of flows, in bytes.
const MOST_FILE_BYTES: u64 = 256 << 20;
/// Maximum number of flows in a file.
const MOST_FLOWS: usize = 5_000_000;
/// Maximum size of a flow in bytes: 1000 TB.
const MOST_BYTES: u64 = 1_000_000_000_000_000;
/// Latest start of a flow in seconds of simulated time: 480 h.
const LATEST_S: f64 = 480.0 * 3600.0;

/// Reads the settings of a list of flows, and the flows in its file. Returns `None` if there is a
/// problem, which is reported.
pub fn read(
    s: &mut Section,
    ground: &Ground,
    files: &mut Files,
    class: ClassId,
) -> Option<FlowListConfig> {
    const DOC: &str = "CSV file of flows, with columns src, dst, bytes and start_s (those of \
                       flows.parquet).";
    let file: FileName = s.get(key("file", DOC));
    if !s.good(&["file"]) {
        return None;
    }
    let attached = match files.load(ground.context, &file.0, MOST_FILE_BYTES) {
        Ok(attached) => attached,
        Err(message) => {
            s.wrong("file", message);
            return None;
        }
    };
    match parse(&attached.bytes[..], ground.nodes?) {
        Ok(flows) => {
            s.resolve_as("file", FileName(attached.name).show());
            Some(FlowListConfig { flows, class })
        }
        Err(message) => {
            s.wrong("file", format!("{}{message}", shorten(&file.0)));
            None
        }
    }
}

/// Positions of the columns in the first line of a file of flows, counted from 0.
struct Columns {
    src: usize,
    dst: usize,
    bytes: usize,
    start_s: usize,
}

/// Returns the flows of a file, or its first problem, as `:line: message`.
fn parse(text: impl Read, nodes: &Nodes) -> Result<Vec<ListedFlow>, String> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text);
    let columns = columns(reader.byte_headers().map_err(|e| rows::broken(&e))?)?;
    let mut flows = Vec::new();
    let mut row = csv::ByteRecord::new();
    while reader.read_byte_record(&mut row).map_err(|e| rows::broken(&e))? {
        interrupt::steps(16);
        let line = row.position().map_or(0, csv::Position::line);
        if flows.len() == MOST_FLOWS {
            return Err(format!(":{line}: more than {MOST_FLOWS} flows, the maximum"));
        }
        flows.push(flow(&row, &columns, nodes).map_err(|what| format!(":{line}: {what}"))?);
    }
    if flows.is_empty() {
        return Err(": has no flow; at least one line must follow the first line".to_owned());
    }
    Ok(flows)
}

fn columns(header: &csv::ByteRecord) -> Result<Columns, String> {
    let column = |name: &str| {
        header.iter().position(|h| h == name.as_bytes()).ok_or_else(|| {
            let names: Vec<_> = header.iter().map(String::from_utf8_lossy).collect();
            let found = shorten(&names.join(","));
            format!(":1: has no column {name}; the first line must name src, dst, bytes and start_s, not \"{found}\"")
        })
    };
    Ok(Columns {
        src: column("src")?,
        dst: column("dst")?,
        bytes: column("bytes")?,
        start_s: column("start_s")?,
    })
}

fn flow(row: &csv::ByteRecord, columns: &Columns, nodes: &Nodes) -> Result<ListedFlow, String> {
    let cell = |column: usize| std::str::from_utf8(&row[column]).unwrap_or("�");
    let host = |name: &str, column: usize| {
        let text = cell(column);
        let number = text.parse::<u32>().ok().or_else(|| nodes.number(text));
        number.filter(|&n| n < nodes.hosts()).map(HostId).ok_or_else(|| {
            let (shown, hosts) = (shorten(text), nodes.host_names());
            format!(
                "{name}: there is no host \"{shown}\"; hosts are {hosts}, or their numbers \
                     from 0"
            )
        })
    };
    let (src, dst) = (host("src", columns.src)?, host("dst", columns.dst)?);
    let bytes = cell(columns.bytes);
    let bytes = bytes.parse().ok().filter(|n| (1..=MOST_BYTES).contains(n)).ok_or_else(|| {
        format!("bytes: \"{}\" is not a whole number from 1 to {MOST_BYTES}", shorten(bytes))
    })?;
    let start = cell(columns.start_s);
    let start = start.parse().ok().filter(|t| (0.0..=LATEST_S).contains(t)).ok_or_else(|| {
        format!("start_s: \"{}\" is not a number of seconds from 0 to {LATEST_S}", shorten(start))
    })?;
    if src == dst {
        return Err(format!("goes from {} to itself", shorten(cell(columns.src))));
    }
    Ok(ListedFlow { start: Span::from_secs_f64_nearest(start), src, dst, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::rows::damaged;
    use eastwest_engine::random::Stream;
    use eastwest_network::topology::{CableConfig, Topology};
    use eastwest_types::Rate;

    const GOOD: &str =
        "start_s,src,dst,bytes,purpose\n0.5,h3,0,4000,flow\n 0 , h1 ,h2, 1 ,\"a, b\"\n";

    fn star() -> Nodes {
        let host = CableConfig { rate: Rate::gbit(1), delay: Span::from_us(5) };
        Nodes::new(&Topology::Star { hosts: 4, cards: 1, host })
    }

    #[test]
    fn columns_are_found_by_name_and_hosts_by_name_or_number() {
        let flows = parse(GOOD.as_bytes(), &star()).expect("two flows");
        let flow = |start_ms, src, dst, bytes| ListedFlow {
            start: Span::from_ms(start_ms),
            src: HostId(src),
            dst: HostId(dst),
            bytes,
        };
        assert_eq!(flows, [flow(500, 3, 0, 4000), flow(0, 1, 2, 1)]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let cases = [
            ("", ":1: has no column src"),
            ("src,dst,bytes,start_s\n", "has no flow"),
            ("src,dst,bytes,start\nh0,h1,1,0\n", "no column start_s"),
            ("src,dst,bytes,start_s\nh0,h1,1,0\nh0,h4,1,0\n", ":3: dst: there is no host \"h4\""),
            ("src,dst,bytes,start_s\nh0,h1,0,0\n", ":2: bytes: \"0\""),
            ("src,dst,bytes,start_s\nh0,h1,1,-1\n", ":2: start_s: \"-1\""),
            ("src,dst,bytes,start_s\nh0,h1,1,NaN\n", ":2: start_s"),
            ("src,dst,bytes,start_s\nh0,0,1,0\n", ":2: goes from h0 to itself"),
            ("src,dst,bytes,start_s\nh0,h1,1\n", ":2: has 3 columns"),
        ];
        for (text, expected) in cases {
            let found = parse(text.as_bytes(), &star()).expect_err(text);
            assert!(found.contains(expected), "{text:?}: {found}");
        }
    }

    #[test]
    fn damaged_files_give_flows_or_a_reason() {
        let mut random = Stream::new(1, "fuzz/flow-list");
        let nodes = star();
        let (mut good, mut bad) = (0, 0);
        for _ in 0..20_000 {
            let text = damaged(GOOD.as_bytes(), b"\",\n\0-9e", &mut random);
            match parse(&text[..], &nodes) {
                Ok(flows) => {
                    good += 1;
                    assert!(flows.iter().all(|f| f.src != f.dst && f.bytes > 0 && f.dst.0 < 4));
                }
                Err(message) => {
                    bad += 1;
                    assert!(message.starts_with(':') && !message.contains('\0'), "{message}");
                }
            }
        }
        assert!(good > 1000 && bad > 1000, "{good} good, {bad} bad");
    }
}
