//! Work on many cables, which are independent of each other, on several threads.

use crate::progress::RunError;
use crate::site::Site;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// Wall-clock time between two calls of the caller of the run.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Work on a cable. The second argument must be called regularly; if it returns false, the work
/// stops.
type Work<'a, T> = dyn Fn(u32, &dyn Fn() -> bool) -> Result<T, RunError> + Sync + 'a;

/// Does the `work` on each of the `cables` on at most `threads` threads. `note` is called with each
/// result, as soon as it exists. Returns the results in the order of the cables.
pub fn each_cable<T: Send>(
    site: &mut Site,
    (cables, threads): (&[u32], usize),
    look: &mut dyn FnMut(&mut Site) -> bool,
    work: &Work<T>,
    mut note: impl FnMut(&mut Site, &T),
) -> Result<Vec<T>, RunError> {
    let (next, stop) = (&AtomicUsize::new(0), &AtomicBool::new(false));
    let proceed = || !stop.load(Ordering::Relaxed);
    let mut results: Vec<Option<T>> = cables.iter().map(|_| None).collect();
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, cables.len().max(1)) {
            let sender = sender.clone();
            scope.spawn(move || {
                while proceed() {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&cable) = cables.get(index) else { return };
                    let done = work(cable, &proceed);
                    sender.send((index, done)).expect("the receiver outlives the threads");
                }
            });
        }
        drop(sender);
        let ended = loop {
            match receiver.recv_timeout(LOOK_EVERY) {
                Ok((index, Ok(result))) => {
                    note(site, &result);
                    results[index] = Some(result);
                }
                Ok((index, Err(RunError::Stuck(why)))) => {
                    let port = site.network.port_name(2 * cables[index] as usize);
                    break Err(RunError::Stuck(format!("{port}, simulated alone: {why}")));
                }
                Ok((_, Err(error))) => break Err(error),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break Ok(()),
            }
            if !look(site) {
                break Err(RunError::Interrupted);
            }
        };
        stop.store(ended.is_err(), Ordering::Relaxed);
        ended
    })?;
    Ok(results.into_iter().map(|result| result.expect("no cable was left out")).collect())
}
