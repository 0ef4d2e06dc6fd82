//! Execution in step: one thread executes the events of all parts of a partitioned run in the order
//! of the undivided run. Execution in step is needed to find the last event of the run, for
//! samples, which visit all links, and for TCP timers that inspect the peer of a connection.

use super::part_messages::PartMessages;
use super::report::PartReport;
use crate::network::Source;
use crate::site::Site;
use crate::world::World;
use eastwest_engine::order::{Class, Key};
use eastwest_types::{Span, Time};
use std::collections::BTreeMap;

/// Executes the events of all parts on this thread in the order of the undivided run, until the
/// simulated time `until` (inclusive) or until `flows` flows are done. Returns the last event (key,
/// source) if the flows are done, otherwise `None`.
pub fn in_step(worlds: &mut [&mut World], until: Time, flows: u64) -> Option<(Key, u32)> {
    for world in worlds.iter_mut() {
        world.site.until = until;
        world.part_state_mut().in_step = true;
    }
    let last = until_done(worlds, until, flows);
    for world in worlds.iter_mut() {
        world.part_state_mut().in_step = false;
    }
    last
}

fn until_done(worlds: &mut [&mut World], until: Time, flows: u64) -> Option<(Key, u32)> {
    let mut last = None;
    loop {
        let report = PartReport::of_all(worlds);
        if report.obstacle().is_some() {
            return None;
        }
        if report.done >= flows || worlds.iter().all(|world| world.has_ended_run()) {
            return last;
        }
        let (part, first) = first_event(worlds);
        let sample = Key::new(worlds[0].next_sample(), Class::Sample);
        // Transmissions that start without an event follow all events at their time.
        let starts = worlds.iter().map(|w| w.site.network.fabric.next_hand_over()).zip(0..);
        let (start, from) = starts.min().expect("the run has parts");
        if start <= until && start < first.0.time().min(sample.time()) {
            worlds[from].finish_window(start);
            deliver(worlds, from);
            continue;
        }
        if sample < first.0 && sample.time() <= until {
            sample_all(worlds, sample.time());
            continue;
        }
        if first.0.time() > until {
            return None;
        }
        last = Some(first);
        if first.0.is_wake_up() && worlds[part].asks_at(first.0.time()) {
            copy_progress(worlds);
        }
        if worlds[part].executes_everywhere(first.1) {
            // no part hears of what another one writes in this event before its own copy of it
            (0..worlds.len()).for_each(|part| run_event(worlds[part]));
            (0..worlds.len()).for_each(|part| deliver(worlds, part));
        } else {
            one_event(worlds, part, first.1);
        }
        end_of_frames(worlds, first);
    }
}

/// Finishes in all parts the workloads of raw Ethernet frames whose last frame has arrived or was lost
/// in the event `last` (key, source), or schedules the next search for lost frames.
fn end_of_frames(worlds: &mut [&mut World], last: (Key, u32)) {
    let mut workloads = BTreeMap::new();
    for world in worlds.iter_mut() {
        workloads.append(&mut world.part_state_mut().last_frames);
    }
    if workloads.is_empty() {
        return;
    }
    for world in worlds.iter_mut() {
        world.site.network.now = last.0.time();
        world.record_losses(Time::NEVER);
    }
    deliver_lost_frames(worlds);
    for (workload, polls) in workloads {
        let under_way = |world: &&mut World| world.site.transports.streams.under_way(workload);
        let is_done = worlds.iter().map(under_way).sum::<i64>() == 0;
        for world in worlds.iter_mut() {
            match is_done {
                true => world.end_frames(workload, last),
                false if polls => world.poll_lost_frames_later(workload),
                false => {}
            }
        }
    }
}

/// Announces to all parts the lost raw Ethernet frames to their hosts.
pub fn deliver_lost_frames(worlds: &mut [&mut World]) {
    for from in 0..worlds.len() {
        for to in 0..worlds.len() {
            let mut lost = std::mem::take(&mut worlds[from].partition_mut().out[to].lost_frames);
            worlds[to].receive_lost_frames(&mut lost);
        }
    }
}

/// Copies to all parts how far the endpoints of all open connections have received and sent.
fn copy_progress(worlds: &mut [&mut World]) {
    for part in 0..worlds.len() {
        let (before, rest) = worlds.split_at_mut(part);
        let (world, after) = rest.split_first_mut().expect("the run has this part");
        for other in before.iter_mut().chain(after) {
            world.copy_progress(other);
        }
    }
}

/// Returns the number of the part whose next event is the first one of all parts, and this event (key,
/// source). A part that has executed the last event of the run has no next one.
fn first_event(worlds: &mut [&mut World]) -> (usize, (Key, u32)) {
    let next = |world: &mut World| match world.has_ended_run() {
        true => (Key::NEVER, u32::MAX),
        false => world.site.network.sources.winner(),
    };
    let mut first = (0, next(worlds[0]));
    for part in 1..worlds.len() {
        let event = next(worlds[part]);
        let place = |part: usize, event: (Key, u32)| {
            let world = &*worlds[part];
            (world.site.network.sources.order().of(event), place_at_source(world, event.1))
        };
        let (before, other) = (first.1.0, first);
        let ties = event.0 == before && before != Key::NEVER;
        if event.0 < before || ties && place(part, event) < place(other.0, other.1) {
            first = (part, event);
        }
    }
    first
}

/// Returns the place of a part's next event, which belongs to the event source `source`, in the
/// order of the events that all parts have at this source at the same time.
fn place_at_source(world: &World, source: u32) -> u64 {
    let Site { network, drivers, .. } = &world.site;
    if network.card_alarms.id_of(source).is_some() {
        return 0; // one part has the card
    }
    match network.source(source) {
        None => network.fabric.place_on_link(source),
        Some(Source::Timers) => network.timers.first_rank(),
        Some(Source::Wakes) => drivers.wakes.peek().map_or(0, |(_, rank)| rank),
        Some(_) => 0,
    }
}

/// Executes the next event of the part number `part`, and immediately passes its messages to the
/// other parts.
fn one_event(worlds: &mut [&mut World], part: usize, source: u32) {
    if worlds[part].site.network.number_of(Source::Timers) == source
        && let Some(end) = worlds[part].timer_across()
    {
        let cut = worlds[part].partition();
        let other =
            cut.part_of(worlds[part].site.transports.tcp.stack.endpoint(end.peer()).local());
        let (low, high) = worlds.split_at_mut(part.max(other));
        let (one, two) = (&mut *low[part.min(other)], &mut *high[0]);
        let (this, other) = if part < other { (one, two) } else { (two, one) };
        this.site
            .transports
            .tcp
            .stack
            .copy_peer_state(end.peer(), &other.site.transports.tcp.stack);
    }
    run_event(worlds[part]);
    deliver(worlds, part);
}

/// Executes the next event of a part, and prepares the messages to other parts.
fn run_event(world: &mut World) {
    let over = world.has_ended();
    if world.run_events_of_part(world.site.events + 1).is_err() {
        world.abort_partitioned("a thread could not finish its part of the run");
    }
    world.note_end();
    let now = world.site.network.now;
    // Other events at this time may precede the transmissions that start now.
    world.finish_window(now.before(Span(1)));
    if !over && world.has_ended() {
        world.part_state_mut().first_over = Some(now);
    }
}

/// Passes the messages of the part number `part` to the other parts.
fn deliver(worlds: &mut [&mut World], part: usize) {
    worlds[part].partition_mut().first_out = Time::NEVER;
    let mut messages = PartMessages::default();
    for to in 0..worlds.len() {
        if to == part || !PartMessages::are_in(worlds[part], to) {
            continue;
        }
        messages.take(worlds[part], to);
        messages.deliver(worlds[to]);
        messages.take(worlds[part], to); // the memory of the empty lists is used again
    }
}

/// Records a sample (bytes, queue lengths) over the links of all parts at the time `now`.
fn sample_all(worlds: &mut [&mut World], now: Time) {
    let rest = worlds.iter().all(|world| world.site.is_idle());
    for world in worlds.iter_mut() {
        let last = (Key::new(now, Class::Sample), 0);
        world.site.network.fabric.count_elsewhere(last, world.site.network.sources.order());
        world.site.network.fabric.settle(now);
    }
    let (first, others) = worlds.split_first_mut().expect("the run has parts");
    for (other, part) in others.iter_mut().zip(1u8..) {
        first.site.network.fabric.swap_links(&mut other.site.network.fabric, part);
    }
    let Site { network, probes, .. } = &mut first.site;
    probes.records.sample(&network.fabric, now);
    first.site.events += 1;
    for (other, part) in others.iter_mut().zip(1u8..) {
        first.site.network.fabric.swap_links(&mut other.site.network.fabric, part);
    }
    for part in 0..worlds.len() {
        worlds[part].finish_window(now);
        deliver(worlds, part);
    }
    if rest {
        worlds[0].abort_partitioned("no events were left although flows had not finished");
    }
}
