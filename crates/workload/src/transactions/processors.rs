//! Queues at the processors of components: at most as many calls compute at one time as the
//! component has processors; other calls wait, first come, first served.
//!
//! A call holds a processor while it computes, that is during the `gap` before a call that it makes
//! or the `rest` before its answer. It holds none while it waits for other calls, so components
//! that call each other cannot deadlock. Overlapping computing times of one call belong to one
//! recorded thread and use one processor. A call within a component takes over the processor of its
//! caller, and returns it.

use super::running::{Piece, Running, Step, wake};
use crate::protocol::Action;
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Processors of all components, with their queues.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Processors {
    each: u32,
    busy: Vec<u32>,
    /// Calls that wait for a processor, by component: (number of the transaction, number of the
    /// call).
    queues: Vec<VecDeque<(u32, u32)>>,
    /// Calls that hold a processor and may not need it any more: (component, number of the
    /// transaction, number of the call). Empty between two events.
    #[serde(skip)]
    idle: Vec<(u32, u32, u32)>,
}

impl Processors {
    pub fn new(each: u32, components: usize) -> Processors {
        let queues = vec![VecDeque::new(); components];
        Processors { each, busy: vec![0; components], queues, idle: Vec::new() }
    }

    /// Starts a computation of the duration `length` on `component`, or queues it if no processor
    /// is free. `owner`: the call, of the transaction `number`, that computes; after the
    /// computation, the step `step` of the call `of` is due.
    pub fn compute(
        &mut self,
        now: Time,
        (component, number, owner): (u32, u32, u32),
        (step, of, length): (Step, u32, Span),
        running: &mut Running,
        out: &mut Vec<Action>,
    ) {
        let piece = Piece { step, of, length, since: now };
        if !running.work[owner as usize].holds {
            if !running.work[owner as usize].waiting.is_empty() {
                running.work[owner as usize].waiting.push(piece);
                return;
            }
            if !self.takes(component, number, running) {
                running.work[owner as usize].waiting.push(piece);
                self.queues[component as usize].push_back((number, owner));
                return;
            }
            running.work[owner as usize].holds = true;
        }
        begin(now, number, owner, piece, running, out);
    }

    /// Allocates a processor of `component` for a call of the transaction `number`; returns whether
    /// one was available. The first choice is the processor of another call of this transaction whose
    /// computation has just ended, the second one a free processor.
    fn takes(&mut self, component: u32, number: u32, running: &mut Running) -> bool {
        let given = self.idle.iter().position(|&(k, n, call)| {
            (k, n) == (component, number) && running.work[call as usize].running == 0
        });
        if let Some(at) = given {
            let (_, _, call) = self.idle.swap_remove(at);
            running.work[call as usize].holds = false;
            return true;
        }
        let busy = &mut self.busy[component as usize];
        let free = *busy < self.each;
        *busy += u32::from(free);
        free
    }

    /// Handles the end of a computation of the call `owner`; its processor becomes idle if the call
    /// runs no other computation.
    pub fn passed(&mut self, component: u32, number: u32, owner: u32, running: &mut Running) {
        let work = &mut running.work[owner as usize];
        work.running -= 1;
        if work.running == 0 {
            self.idle.push((component, number, owner));
        }
    }

    /// Assigns idle processors to waiting calls, at the end of an event.
    pub fn hand_on(
        &mut self,
        now: Time,
        transactions: &mut BTreeMap<u32, Running>,
        out: &mut Vec<Action>,
    ) {
        while let Some((component, number, call)) = self.idle.pop() {
            // a call of a finished transaction needs no processor
            if let Some(running) = transactions.get_mut(&number) {
                let work = &mut running.work[call as usize];
                if work.running > 0 || !work.holds {
                    continue;
                }
                work.holds = false;
            }
            let Some((number, call)) = self.queues[component as usize].pop_front() else {
                self.busy[component as usize] -= 1;
                continue;
            };
            let running = transactions.get_mut(&number).expect("it waits to compute");
            let work = &mut running.work[call as usize];
            work.holds = true;
            for piece in std::mem::take(&mut work.waiting) {
                begin(now, number, call, piece, running, out);
            }
        }
    }
}

/// Starts a computation of the call `owner` on its processor.
fn begin(
    now: Time,
    number: u32,
    owner: u32,
    piece: Piece,
    running: &mut Running,
    out: &mut Vec<Action>,
) {
    running.work[owner as usize].running += 1;
    let which = usize::from(piece.step == Step::Answer);
    running.work[piece.of as usize].queued[which] = now.since(piece.since);
    out.push(wake(now + piece.length, piece.step, number, piece.of));
}
