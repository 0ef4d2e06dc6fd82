//! Interruption of long computations by the user.
//!
//! [`watched`] runs a computation (the work) with a callback. Long loops of the work report their
//! progress with [`steps`]. Every [`STEPS_PER_LOOK`] steps the callback is asked whether to
//! continue. If it answers no, the stack is unwound as by a panic, so that the memory of the work
//! is freed, and [`watched`] returns [`Stopped`]. Results do not change: work is either completed
//! or has no result.
//!
//! Without a callback, and in threads other than the one that called [`watched`], reporting steps
//! has no effect.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};

/// Number of steps between two calls of the callback. The time between the calls is less than 0.1 s
/// if a step takes about as long as one access to main memory.
const STEPS_PER_LOOK: u64 = 1 << 16;

/// Error of [`watched`]: the callback has interrupted the work, which therefore has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

type Look = Box<dyn FnMut() -> bool>;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
    static LOOK: RefCell<Option<Look>> = const { RefCell::new(None) };
}

/// Runs `work` and returns its result, or [`Stopped`] if the callback `look` has interrupted it.
/// `look` is called after about every 65,536 [`steps`] of this thread and returns true to continue.
/// In nested calls only the inner callback is asked.
pub fn watched<R>(
    look: impl FnMut() -> bool + 'static,
    work: impl FnOnce() -> R,
) -> Result<R, Stopped> {
    let before = (LOOK.replace(Some(Box::new(look))), LEFT.replace(STEPS_PER_LOOK));
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    LOOK.set(before.0);
    LEFT.set(before.1);
    done.map_err(|cause| match cause.downcast::<Stopped>() {
        Ok(stopped) => *stopped,
        Err(defect) => panic::resume_unwind(defect),
    })
}

/// Counts `steps` steps of long work. If the callback of [`watched`] interrupts the work, this
/// function unwinds the stack and does not return.
#[inline]
pub fn steps(steps: u64) {
    let left = LEFT.get();
    if left > steps {
        LEFT.set(left - steps);
    } else {
        look();
    }
}

/// Counts one step of long work. If the callback of [`watched`] interrupts the work, this function
/// unwinds the stack and does not return.
#[inline]
pub fn step() {
    steps(1);
}

#[cold]
fn look() {
    LEFT.set(STEPS_PER_LOOK);
    // The callback is removed while it runs, since it may count steps itself.
    let Some(mut look) = LOOK.take() else { return };
    let goes_on = look();
    LOOK.set(Some(look));
    if !goes_on {
        panic::resume_unwind(Box::new(Stopped));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[test]
    fn work_is_asked_now_and_then_and_ends_when_told_to() {
        let (looks, given_back) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
        struct Held(Rc<Cell<bool>>);
        impl Drop for Held {
            fn drop(&mut self) {
                self.0.set(true);
            }
        }
        let (counted, held) = (looks.clone(), Held(given_back.clone()));
        let ended = watched(
            move || {
                counted.set(counted.get() + 1);
                counted.get() < 3
            },
            move || {
                let _held = held;
                loop {
                    step();
                }
            },
        );
        assert_eq!((ended, looks.get(), given_back.get()), (Err::<(), _>(Stopped), 3, true));
        // After `watched` has returned, no callback is set, so that steps have no effect.
        steps(u64::MAX - 1);
        assert_eq!(looks.get(), 3);
    }

    #[test]
    fn work_that_is_let_go_on_gives_its_result() {
        let sum = || {
            (0..1_000_000u64).fold(0, |sum, n| {
                step();
                sum + n
            })
        };
        assert_eq!(watched(|| true, sum), Ok(499_999_500_000));
    }
}
