//! Beginning of a partitioned run with an MPI program: every part executes it undivided, in its own
//! thread, until all connections of the program are open. All parts then have equal states.

use super::windows::{Coordinator, Windows};
use crate::progress::RunError;
use crate::world::World;
use eastwest_types::{Span, Time};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Simulated time between two checks whether all connections are open, in windows (delays of a cable).
const WINDOWS_PER_CHECK: u64 = 16;

/// Executes the beginning of the run in all parts, until the MPI program has opened `connections`
/// connections. Returns whether this happened before the end of the run.
pub fn run_beginning(
    worlds: &mut [World],
    connections: usize,
    coordinator: &mut Coordinator,
) -> Result<bool, RunError> {
    let slice = Span(coordinator.lookahead.0.saturating_mul(WINDOWS_PER_CHECK));
    let until = coordinator.until.min(Time(Time::NEVER.0 - 1));
    let stops = AtomicBool::new(false);
    let (first, others) = worlds.split_first_mut().expect("the run has parts");
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for world in others {
            let mut goes_on = |_: &mut World| !stops.load(Ordering::Relaxed);
            let work = move || begin(world, connections, (slice, until), &mut goes_on);
            match thread::Builder::new().spawn_scoped(scope, work) {
                Ok(thread) => threads.push(thread),
                Err(e) => {
                    stops.store(true, Ordering::Relaxed);
                    return Err(RunError::without_thread(&e));
                }
            }
        }
        let begun = begin(first, connections, (slice, until), &mut |world| {
            coordinator.on_beginning(world).is_none_or(|end| !matches!(end, Windows::Interrupted))
        });
        stops.store(begun.is_err(), Ordering::Relaxed);
        for thread in threads {
            _ = thread.join().unwrap_or_else(|e| resume_unwind(e));
        }
        match begun {
            Err(RunError::Interrupted) => Err(RunError::Interrupted),
            // the undivided run reports other errors
            begun => Ok(begun == Ok(true)),
        }
    })
}

/// Executes the run undivided until the MPI program has opened `connections` connections. Returns
/// whether this happened before the end of the run, at the latest `until`.
fn begin(
    world: &mut World,
    connections: usize,
    (slice, until): (Span, Time),
    goes_on: &mut dyn FnMut(&mut World) -> bool,
) -> Result<bool, RunError> {
    world.start_workloads();
    while world.mpi().is_some_and(|mpi| mpi.connections() < connections) {
        let next = world.site.network.sources.winner().0.time();
        if next >= until || world.site.drivers.unfinished == 0 {
            return Ok(false);
        }
        world.site.until = Time(next.0.saturating_add(slice.0)).min(until);
        world.run(goes_on)?;
    }
    Ok(world.site.drivers.unfinished > 0 && world.site.drivers.stuck.is_none())
}
