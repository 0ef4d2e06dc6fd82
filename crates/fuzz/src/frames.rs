//! Frames of generated scenarios: a caller that receives the state of a run at random times and
//! checks it.

use eastwest_engine::random::Stream;
use eastwest_measure::table::Column;
use eastwest_sim::frame::Frame;
use eastwest_sim::results::Results;
use eastwest_sim::site::Site;
use eastwest_types::{Span, Time};

/// Mean number of random times in a run at which its caller receives frames. As many frames follow
/// directly after an event.
const TIMES: u64 = 30;

/// Caller of a run that receives frames at random times.
pub struct Observer {
    random: Stream,
    /// Maximum time between a frame and the next one at a random time.
    most: u64,
    last: Option<Frame>,
    /// First violation of a rule; `None` if there is none.
    violation: Option<String>,
}

impl Observer {
    /// Returns a caller for a run that takes `run_s` seconds.
    pub fn new(seed: u64, run_s: f64) -> Observer {
        let most = 2 * Span::from_secs_f64_nearest(run_s).0 / TIMES;
        let random = Stream::new(seed, "frames");
        Observer { random, most: most.max(1), last: None, violation: None }
    }

    /// Requests the frames of a run; a first frame may be at time 0.
    pub fn begin(&mut self, site: &mut Site) {
        let first = self.random.below(2) * self.random.below(self.most);
        site.request_frames(Time(first));
    }

    /// Receives the frame that is due, if any, and sets the time of the next one.
    pub fn look(&mut self, site: &mut Site) {
        let Some(frame) = site.take_frame() else { return };
        let now = frame.progress.now;
        site.set_next_frame(match self.random.below(2) {
            0 => now, // after the next events
            _ => now + Span(1 + self.random.below(self.most)),
        });
        if let Some(last) = &self.last
            && let Some(what) = decreased(last, &frame)
        {
            self.violation.get_or_insert(format!("{what} decreased before {now}"));
        }
        self.last = Some(frame);
    }

    /// Returns the first violation of a rule by the frames of a run that has these results.
    pub fn judged(self, results: &Results) -> Result<(), String> {
        let last = self.last.ok_or("the run had no last frame")?;
        self.violation.map_or(Ok(()), Err)?;
        agrees(&last, results)
    }
}

/// Returns the name of a counter that is smaller in the later of two frames; `None` if none is.
fn decreased(before: &Frame, after: &Frame) -> Option<&'static str> {
    let links = [
        ("bytes carried by a link", &before.carried, &after.carried),
        ("the losses of a link", &before.drops, &after.drops),
        ("the marks of a link", &before.marks, &after.marks),
    ];
    let of_links = |(what, before, after): (&'static str, &Vec<u64>, &Vec<u64>)| {
        before.iter().zip(after).any(|(before, after)| before > after).then_some(what)
    };
    let energy = before.energy.iter().zip(&after.energy);
    let numbers = [
        ("the time", before.progress.now.0, after.progress.now.0),
        ("the number of finished messages", before.flows_done, after.flows_done),
        ("the number of retransmissions", before.losses.0, after.losses.0),
        ("the number of timeouts", before.losses.1, after.losses.1),
        ("the number of packet-hops", before.progress.packet_hops, after.progress.packet_hops),
    ];
    let first = links.into_iter().find_map(of_links);
    let fell = |(before, after): (&(&str, f64), &(&str, f64))| before.1 > after.1 * (1.0 + 1e-9);
    first
        .or(numbers.into_iter().find(|n| n.1 > n.2).map(|n| n.0))
        .or(energy.into_iter().any(fell).then_some("the energy of a tier"))
}

/// Checks that the last frame of a run agrees with its tables and its summary.
fn agrees(frame: &Frame, results: &Results) -> Result<(), String> {
    let summary = &results.summary;
    if summary["simulated_s"].as_f64() != Some(frame.progress.now.as_secs_f64()) {
        return Err(format!("the last frame is at {}, not at the end", frame.progress.now));
    }
    for (name, values) in
        [("bytes", &frame.carried), ("drops", &frame.drops), ("marks", &frame.marks)]
    {
        let links = results.tables.iter().find(|table| table.name == "links");
        match links.and_then(|table| table.column(name)) {
            Some(Column::U64(column)) if column == values => {}
            other => return Err(format!("{name} of links: {values:?} in the frame, {other:?}")),
        }
    }
    let losses = |name: &str| {
        ["tcp", "rocev2"].iter().filter_map(|transport| summary[transport][name].as_u64()).sum()
    };
    for (name, in_frame, in_summary) in [
        ("packet-hops", frame.progress.packet_hops, summary["packet_hops"].as_u64().unwrap_or(0)),
        ("flows", frame.flows_done, summary["flows"]["completed"].as_u64().unwrap_or(0)),
        ("retransmissions", frame.losses.0, losses("retransmits")),
        ("timeouts", frame.losses.1, losses("timeouts")),
    ] {
        if in_frame != in_summary {
            return Err(format!(
                "{name}: {in_frame} in the last frame, {in_summary} in the summary"
            ));
        }
    }
    Ok(())
}
