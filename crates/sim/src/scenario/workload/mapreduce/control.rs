//! The table `control` of a MapReduce workload: heartbeats, assignment of tasks, set-up and
//! clean-up of jobs.

use super::fields::small;
use eastwest_settings::quantity::Fraction;
use eastwest_settings::reader::{Section, key};
use eastwest_workload::mapreduce::ControlConfig;

/// Reads the table `control`: heartbeats, assignment of tasks, set-up and clean-up of jobs. `usual`
/// are the defaults.
pub fn read(s: &mut Section, usual: &ControlConfig) -> ControlConfig {
    let heartbeat = s.get(
        key("heartbeat", "Time between two heartbeats of a worker (Hadoop's jobtracker: 3 s).")
            .value(usual.heartbeat)
            .range("1 ms", "1 h"),
    );
    let out_of_band_heartbeat = s.get(
        key(
            "out_of_band_heartbeat",
            "Whether a worker sends a heartbeat at once when a task has finished \
             (mapreduce.tasktracker.outofband.heartbeat).",
        )
        .value(usual.out_of_band_heartbeat),
    );
    let (maps_per_heartbeat, reduces_per_heartbeat) = read_answers(s, usual);
    let spread = s.get(
        key(
            "spread",
            "Whether the scheduler spreads tasks evenly over the cluster, as Hadoop's schedulers \
             do: a worker gets no more tasks than its share.",
        )
        .value(usual.spread),
    );
    let slowstart = s.get(
        key(
            "slowstart",
            "Share of a job's maps that must have finished before its reduces are assigned \
             (mapreduce.job.reduce.slowstart.completedmaps).",
        )
        .value(Fraction(usual.slowstart))
        .range("0", "1"),
    );
    let job_setup = s.get(
        key(
            "job_setup",
            "Time from the submission of a job until its maps can be assigned (measured: 4 to 5 s \
             to the first map).",
        )
        .value(usual.job_setup)
        .range("0 s", "1 h"),
    );
    let job_cleanup = s.get(
        key(
            "job_cleanup",
            "Time from the report of the last task until the job has finished (measured: 40 to 60 \
             ms).",
        )
        .value(usual.job_cleanup)
        .range("0 s", "1 h"),
    );
    ControlConfig {
        heartbeat,
        out_of_band_heartbeat,
        maps_per_heartbeat,
        reduces_per_heartbeat,
        spread,
        slowstart: slowstart.0,
        job_setup,
        job_cleanup,
        ..read_sizes(s, usual)
    }
}

/// Reads the sizes of Hadoop's control messages in bytes.
fn read_sizes(s: &mut Section, usual: &ControlConfig) -> ControlConfig {
    ControlConfig {
        heartbeat_bytes: small(
            s,
            "heartbeat_bytes",
            "Application bytes of a heartbeat (estimate).",
            usual.heartbeat_bytes,
        ),
        answer_bytes: small(
            s,
            "answer_bytes",
            "Application bytes of a heartbeat's answer without a task (estimate).",
            usual.answer_bytes,
        ),
        assignment_bytes: small(
            s,
            "assignment_bytes",
            "Application bytes of each task in a heartbeat's answer (estimate).",
            usual.assignment_bytes,
        ),
        map_event_bytes: small(
            s,
            "map_event_bytes",
            "Application bytes of the event of one finished map in a heartbeat's answer \
             (estimate).",
            usual.map_event_bytes,
        ),
        ..usual.clone()
    }
}

/// Reads the maximum numbers of maps and of reduces that one heartbeat response assigns.
fn read_answers(s: &mut Section, usual: &ControlConfig) -> (u32, u32) {
    let maps_per_heartbeat = s.find(
        key("maps_per_heartbeat", "Maximum number of maps assigned in one heartbeat's answer.")
            .optional("the number of free slots, as with Hadoop's FIFO scheduler")
            .range("1", "4294967295"),
    );
    let reduces_per_heartbeat = s.get(
        key(
            "reduces_per_heartbeat",
            "Maximum number of reduces assigned in one heartbeat's \
                                      answer (Hadoop's FIFO: 1).",
        )
        .value(usual.reduces_per_heartbeat)
        .range("1", "4294967295"),
    );
    (maps_per_heartbeat.unwrap_or(usual.maps_per_heartbeat), reduces_per_heartbeat)
}
