//! Operations of a link whose port has data-centre bridging (DCB): enqueue and transmission of
//! packets, transmission and effect of PAUSE frames, and expiry of timers.

use super::cnm::Cnm;
use super::pause_log::PauseLog;
use super::pfc::{Input, PRIORITIES, PauseFrame};
use super::port_state::{DcbPort, InputCounts, OutputCounts};
use super::priority_queues::{DcbAdmission, PriorityQueues, set_bits, transmission_time};
use super::qcn::QcnConfig;
use super::queued_packet::QueuedPacket;
use crate::link::{Link, PortQueues};
use crate::losses::Cause;
use crate::packet_handle::PacketHandle;
use crate::pool::PacketPool;
use crate::shared_buffer::SharedBuffer;
use eastwest_engine::memory;
use eastwest_engine::order::{Class, Key};
use eastwest_engine::random::Stream;
use eastwest_types::{Rate, Span, Time};

/// Operations of a port with data-centre bridging (DCB). At a port without DCB, private functions
/// panic, and public functions return `None`, zeros or empty lists.
impl Link {
    /// Whether the egress port of the link has data-centre bridging (DCB), because PFC or QCN is
    /// on.
    #[inline]
    pub(crate) fn has_dcb(&self) -> bool {
        self.queues.as_ref().is_some_and(|q| q.dcb.is_some())
    }

    fn dcb(&self) -> &DcbPort {
        self.queues.as_ref().and_then(|q| q.dcb.as_deref()).expect("the port has DCB")
    }

    fn dcb_mut(&mut self) -> &mut DcbPort {
        self.queues.as_mut().and_then(|q| q.dcb.as_deref_mut()).expect("the port has DCB")
    }

    /// Prefetches the memory that the next packet of this port will access.
    #[inline(always)]
    pub(super) fn prefetch_dcb(&self) {
        if !self.on_wire.is_empty() {
            self.on_wire.prefetch(0);
        }
        let Some(q) = self.queues.as_deref() else { return };
        if let Some(dcb) = q.dcb.as_deref() {
            memory::prefetch_lines(dcb, 2);
        }
        if let Some(queues) = q.priority_queues().next() {
            memory::prefetch_lines(queues, 2);
        }
    }

    /// Returns the ingress buffer at the far end of the link; `None` if the far end is a host, or
    /// without data-centre bridging.
    pub(crate) fn input(&self) -> Option<&Input> {
        self.queues.as_ref()?.dcb.as_ref()?.input.as_ref()
    }

    pub(crate) fn input_mut(&mut self) -> Option<&mut Input> {
        self.queues.as_mut()?.dcb.as_mut()?.input.as_mut()
    }

    /// Sets the time at which the ingress buffer at the far end sends XOFF again for its pauses in
    /// force.
    pub(super) fn set_refresh_at(&mut self, at: Time) {
        let b = self.dcb_mut();
        if let Some(input) = &mut b.input {
            input.refresh_at = at;
        }
        b.update_due();
    }

    /// Whether the port is in two-event mode and transmits nothing now.
    pub(crate) fn is_idle(&self) -> bool {
        self.queues.as_ref().is_some_and(|q| q.sent_at == Time::NEVER)
    }

    /// Whether the state of the port changes at `now` without an event: a transmission ends, or a
    /// rate-limited flow may start.
    pub(super) fn acts_without_event(&self, now: Time) -> bool {
        let b = self.dcb();
        let ends = || self.queues.as_ref().is_some_and(|q| q.sent_at == now);
        (b.is_eventless() && b.wakes_at == now) || (b.ends_without_event() && ends())
    }

    /// Makes the port schedule an event for the end of each transmission from now on.
    pub(super) fn require_events(&mut self) {
        let b = self.dcb_mut();
        b.always_events = true;
        b.update_due();
    }

    /// Whether the port needs no event at the end of a transmission, see [`super::eventless`].
    pub(super) fn is_eventless(&self) -> bool {
        self.dcb().is_eventless()
    }

    /// Sets whether any input of the switch of this port has a pause (XOFF) in force.
    pub(super) fn set_switch_xoff(&mut self, switch_xoff: bool) {
        let b = self.dcb_mut();
        b.switch_xoff = switch_xoff;
        b.update_due();
    }

    /// Whether a host sends on this link.
    pub(crate) fn feeds_from_host(&self) -> bool {
        self.dcb().from_host
    }

    /// Whether a priority is paused at this port, and no PAUSE frame of the opposite link `reverse`
    /// will end the pause.
    pub(crate) fn is_pause_in_force(&self, reverse: &Link, priority: u8) -> bool {
        self.dcb().paused.mask >> priority & 1 == 1 && !reverse.dcb().pause_queue.resumes(priority)
    }

    /// Returns the queued IP bytes of the port, by priority.
    pub(crate) fn bytes_waiting(&self) -> [u64; PRIORITIES] {
        let q = self.queues.as_ref().expect("the port has DCB");
        std::array::from_fn(|p| q.priority_queues().map(|queues| queues.bytes(p as u8)).sum())
    }

    /// Returns the queued IP bytes that a new packet with DSCP `dscp` to host `dst` would have
    /// ahead; 0 at a port without data-centre bridging.
    pub(crate) fn bytes_ahead(&self, dst: u32, dscp: u8) -> u64 {
        let Some(q) = self.queues.as_ref() else { return 0 };
        let queues = q.priority_queues().nth(usize::from(q.class_of(dscp)));
        queues.map_or(0, |queues| queues.bytes_ahead(dscp >> 3, dst))
    }

    /// Returns all queued packets, each with its priority.
    pub(crate) fn waiting_packets(&self) -> impl Iterator<Item = (u8, &QueuedPacket)> {
        let q = self.queues.as_ref().expect("the port has DCB");
        q.priority_queues().flat_map(|queues| queues.iter())
    }

    /// Enqueues a packet at a port with data-centre bridging. Returns whether its transmission has
    /// started, or the cause if it is dropped.
    pub(super) fn enqueue_dcb(
        &mut self,
        now: Time,
        handle: PacketHandle,
        (ingress, priority): (u32, u8),
        pool: &mut PacketPool,
    ) -> Result<bool, Cause> {
        self.catch_up(now.next(), pool);
        match self.enqueue_precommitted(now, handle, (ingress, priority), pool) {
            Some(taken) => taken,
            None => self.enqueue_dcb_slow(now, handle, (ingress, priority), pool).map(|()| false),
        }
    }

    /// Enqueues a packet in the queue of its priority; used if departures cannot be decided at
    /// enqueue (precommitted).
    #[inline(never)]
    fn enqueue_dcb_slow(
        &mut self,
        now: Time,
        handle: PacketHandle,
        (ingress, priority): (u32, u8),
        pool: &mut PacketPool,
    ) -> Result<(), Cause> {
        let before = self.queues.as_ref().expect("the port has DCB");
        let update_wake_time = if before.sent_at == Time::NEVER { now } else { before.sent_at };
        let backlog = before.backlog();
        let clear_at = update_wake_time
            + transmission_time(backlog, self.framing(), self.kind.ps_per_byte_q16);
        let clear_at = if before.sent_at == Time::NEVER && backlog.packets > 0 {
            clear_at.max(now.next()) // paused: the packet waits, and the queue must admit it
        } else {
            clear_at
        };
        let arrival = self.arrival(now, &handle, Default::default(), clear_at, pool);
        let send_time = arrival.send_time;
        let group = self.meter.is_some().then(|| self.group(arrival.packet));
        let q = self.queues.as_mut().expect("the port has DCB");
        if let (Some(meter), Some(group)) = (&mut self.meter, group) {
            meter.comes(group.class, q.backlog_of(group.class));
            self.account.get_or_insert_default().of(group).arrivals += 1;
        }
        let mark = match q.push_dcb(handle, (ingress, priority), &arrival) {
            DcbAdmission::Admitted { mark } => mark,
            DcbAdmission::Dropped(cause) => return Err(cause),
        };
        if mark {
            self.mark(now, handle.slot(), handle.identity(), pool);
        }
        self.note_wait(clear_at.since(now));
        self.busy_until = clear_at + send_time;
        Ok(())
    }

    /// Counts a packet of `bytes` IP bytes that has arrived, for QCN. Returns whether the
    /// congestion point of its priority must sample the queue now.
    #[inline]
    pub(super) fn is_due(&mut self, priority: u8, bytes: u32) -> bool {
        self.dcb_mut().samples_in.is_due(priority, bytes)
    }

    /// Takes a QCN sample, which must be [due](Link::is_due), of the queue of the priority
    /// `priority`. Returns the feedback for the source of the packet that has just arrived; `None`
    /// if no CNM must be sent.
    pub(super) fn sample(&mut self, priority: u8, bytes: u32, started: bool) -> Option<u8> {
        let q = self.queues.as_mut()?;
        // The sampled queue includes the packet that has just arrived, even if its transmission has
        // started.
        let own = if started { u64::from(bytes) } else { 0 };
        let queue = own + q.priority_queues().map(|queues| queues.bytes(priority)).sum::<u64>();
        let b = q.dcb.as_deref_mut()?;
        let point = b.congestion_points.get_mut(usize::from(priority))?.as_mut()?;
        let config = b.config.qcn.as_ref()?;
        let (fb, next) = point.sample(queue, config, &mut b.random);
        b.samples_in.set(priority, next);
        fb
    }

    /// Starts the next transmission if the port is idle. A pending PAUSE frame is sent before all
    /// packets.
    pub(crate) fn start_next_dcb(&mut self, now: Time, pool: &mut PacketPool) {
        if !self.is_idle() {
            return;
        }
        let delay = self.kind.delay;
        let ps_per_byte_q16 = self.kind.ps_per_byte_q16;
        let b = self.dcb_mut();
        if b.pause_queue.has_pending() {
            let bytes = b.wire.pfc_frame();
            let sent_at = now + Span((bytes * ps_per_byte_q16) >> 16);
            let response = b.config.pfc.as_ref().map_or(Span::ZERO, |c| c.response);
            b.pause_queue.transmit(sent_at + delay + response);
            b.update_due();
            b.update_fast_path();
            b.wakes_at = Time::NEVER;
            self.add_counts(0, bytes);
            self.queues.as_mut().expect("the port has DCB").sent_at = sent_at;
            return;
        }
        b.expire_pauses(now);
        if self.start_precommitted(now, pool) {
            return;
        }
        let q = self.queues.as_mut().expect("the port has DCB");
        let Some((queued, priority, mark)) = q.pop_unpaused(now, pool) else {
            return q.update_wake_time(now);
        };
        let mut handle = queued.handle;
        let ip_len = u32::from(handle.ip_len());
        let waited_since = handle.arrive;
        if mark {
            self.mark(now, handle.slot(), handle.identity(), pool);
        }
        if let Some(meter) = &mut self.meter {
            let q = self.queues.as_ref().expect("the port has DCB");
            meter.goes(q.class_of(pool.get(handle.slot()).dscp()), now.since(waited_since));
        }
        let sent_at = now + self.send_time(ip_len);
        handle.arrive = self.arrival_after(sent_at, self.on_wire.len());
        self.on_wire.hold(ip_len);
        self.on_wire.push(handle);
        let wire_bytes = self.wire_bytes(ip_len);
        let q = self.queues.as_mut().expect("the port has DCB");
        q.sent_at = sent_at;
        let b = q.dcb.as_deref_mut().expect("the port has DCB");
        b.wakes_at = Time::NEVER;
        b.sent_since_revoke += 1;
        b.sending_packet = true;
        if b.has_limits {
            q.on_transmit(now, (priority, handle.dst().0), wire_bytes);
        } else {
            self.precommit_backlog();
        }
    }

    /// Ends the current transmission of the port if its last bit has left by `now`. Returns whether
    /// it has ended.
    pub(crate) fn finish_transmission(&mut self, now: Time) -> bool {
        let q = self.queues.as_mut().expect("the port has DCB");
        let is_over = q.sent_at <= now;
        if is_over {
            q.sent_at = Time::NEVER;
            self.dcb_mut().sending_packet = false;
        }
        is_over
    }

    /// Whether queue disciplines have dropped queued packets since the last call of
    /// [`Link::take_dropped_queued`].
    pub(crate) fn has_dropped_queued(&self) -> bool {
        !self.dcb().dropped.is_empty()
    }

    /// Removes and returns the queued packets that queue disciplines have dropped since the last
    /// call, each with its priority.
    pub(crate) fn take_dropped_queued(&mut self) -> Vec<(QueuedPacket, u8)> {
        std::mem::take(&mut self.dcb_mut().dropped)
    }

    /// Schedules a PAUSE frame to the far end at the next frame boundary. The frame pauses a
    /// priority for `quanta` quanta; 0 ends the pause.
    pub(crate) fn queue_pause_frame(
        &mut self,
        now: Time,
        (priority, quanta): (u8, u16),
        pool: &PacketPool,
    ) {
        self.revoke_precommitted(now, pool);
        let b = self.dcb_mut();
        b.pause_queue.set_pending(priority, quanta);
        b.update_due();
        b.update_fast_path();
    }

    /// Removes and returns the PAUSE frame of this port that takes effect at the far end by `now`;
    /// `None` if no frame is due.
    pub(crate) fn take_pause_frame(&mut self, now: Time) -> Option<PauseFrame> {
        let b = self.dcb_mut();
        let frame = b.pause_queue.take_due(now);
        b.update_due();
        frame
    }

    /// Returns the PAUSE frames in flight that the port has sent after the first `sent` frames, each
    /// with the time at which it takes effect; none at a port without DCB.
    pub(crate) fn pause_frames_after(
        &self,
        sent: u64,
    ) -> impl Iterator<Item = &(Time, PauseFrame)> {
        let dcb = self.queues.as_ref().and_then(|q| q.dcb.as_deref());
        dcb.into_iter().flat_map(move |dcb| dcb.pause_queue.sent_after(sent))
    }

    /// Adds a PAUSE frame of this link that takes effect at time `at`, and that the port in another
    /// part of a partitioned fabric has sent. Returns the key of the next event of the link.
    pub(crate) fn receive_pause_frame(&mut self, at: Time, frame: PauseFrame) -> Key {
        let b = self.dcb_mut();
        b.pause_queue.receive(at, frame);
        b.update_due();
        self.next_key(Time::ZERO)
    }

    /// Whether a PAUSE frame of this port takes effect at the far end by `now`.
    pub(crate) fn is_pause_frame_due(&self, now: Time) -> bool {
        self.dcb().pause_queue.next <= now
    }

    /// Removes and returns the ingress buffer at the far end of the link; `None` if the far end is a
    /// host.
    pub(crate) fn take_input(&mut self) -> Option<Input> {
        self.dcb_mut().input.take()
    }

    /// Sets the ingress buffer at the far end of the link.
    pub(crate) fn put_input(&mut self, input: Option<Input>) {
        let b = self.dcb_mut();
        b.input = input;
        b.update_due();
    }

    /// Returns the number of PAUSE frames of this port that have taken effect; 0 without DCB.
    pub(crate) fn pause_frames_arrived(&self) -> u64 {
        let dcb = self.queues.as_ref().and_then(|q| q.dcb.as_deref());
        dcb.map_or(0, |dcb| dcb.pause_queue.frames_arrived())
    }

    /// Returns the time at which the port next starts to send a queued packet, as far as its state
    /// tells; [`Time::NEVER`] if no packet is queued. The start may be an event or not.
    pub(crate) fn next_start_dcb(&self) -> Time {
        let q = self.queues.as_ref().expect("the port has DCB");
        match self.precommitted() > 0 || q.waits() {
            true => q.sent_at.min(self.dcb().wakes_at),
            false => Time::NEVER,
        }
    }

    /// Applies a PAUSE frame from the far end to this port: begins, prolongs and ends pauses.
    pub(crate) fn apply_pause(&mut self, now: Time, frame: &PauseFrame, pool: &PacketPool) {
        self.revoke_precommitted(now, pool);
        let rate = self.cable.rate;
        let b = self.dcb_mut();
        b.paused.expire(now);
        b.paused.apply(now, frame, rate);
        b.update_due();
    }

    /// Starts to record the pauses of the port in `log`; no effect at a port without data-centre
    /// bridging.
    pub fn log_pauses(&mut self, log: PauseLog) {
        if self.has_dcb() {
            self.dcb_mut().paused.keep_log(log);
        }
    }

    /// Whether PFC pauses a priority of the port at `now`. All events until `now` must have been
    /// executed.
    pub fn is_paused(&self, now: Time) -> bool {
        let dcb = self.queues.as_ref().and_then(|q| q.dcb.as_deref());
        dcb.is_some_and(|dcb| dcb.paused.is_in_force(now))
    }

    /// Removes and returns the log of the pauses of the port until `now`; `None` if there is no
    /// log.
    pub fn take_pauses(&mut self, now: Time) -> Option<PauseLog> {
        self.queues.as_mut()?.dcb.as_deref_mut()?.paused.take_log(now)
    }

    /// Whether, by `now`, a PAUSE frame of this port has taken effect at the far end, or pauses
    /// must be refreshed.
    pub(super) fn is_control_due(&self, now: Time) -> bool {
        self.dcb().due <= now
    }

    /// Returns the key of the next event of the link. `first` is the key of the next arrival at the
    /// far end.
    #[inline]
    pub(crate) fn next_key_dcb(&self, first: Key, now: Time) -> Key {
        match self.due_dcb() {
            Time::NEVER => first,
            due => first.min(Key::new(due.max(now), Class::Departure)),
        }
    }

    /// Returns the time of the next event of the port other than an arrival at the far end.
    #[inline]
    fn due_dcb(&self) -> Time {
        let q = self.queues.as_ref().expect("the port has DCB");
        let b = q.dcb.as_deref().expect("the port has DCB");
        let mut due = b.due.min(b.timer_at).min(b.wakes_at);
        if !b.ends_without_event() {
            due = due.min(q.sent_at);
        }
        if b.paused.mask != 0 {
            due = due.min(b.paused.next()).min(self.watchdog_at());
        }
        due
    }

    /// Returns the time at which the PFC watchdog next drops packets; [`Time::NEVER`] if no paused
    /// priority has packets, or without watchdog.
    fn watchdog_at(&self) -> Time {
        let b = self.dcb();
        let Some(after) = b.config.pfc.as_ref().and_then(|c| c.watchdog) else {
            return Time::NEVER;
        };
        let stuck = set_bits(b.paused.mask).filter_map(|p| Some(self.stuck_since(p)? + after));
        stuck.min().unwrap_or(Time::NEVER)
    }

    /// Returns the time since which priority `p` has been paused with queued packets and without a
    /// departure; `None` if the priority is not paused or has no packets.
    fn stuck_since(&self, p: usize) -> Option<Time> {
        let since = self.dcb().paused.since(p)?;
        let q = self.queues.as_ref()?;
        let queues = q.priority_queues().filter(|queues| queues.occupied() >> p & 1 == 1);
        queues.map(|queues| queues.queue(p as u8).last_departure.max(since)).min()
    }

    /// Executes the PFC watchdog and the timers of rate limiters that have expired. Returns the
    /// packets that the watchdog has dropped, each with its priority.
    pub(crate) fn fire_timers(&mut self, now: Time) -> Vec<(QueuedPacket, u8)> {
        let b = self.dcb();
        if b.timer_at > now && b.paused.mask == 0 {
            return Vec::new();
        }
        self.fire_timers_slow(now)
    }

    #[inline(never)]
    fn fire_timers_slow(&mut self, now: Time) -> Vec<(QueuedPacket, u8)> {
        let mut dropped = Vec::new();
        self.dcb_mut().expire_pauses(now);
        let after = self.dcb().config.pfc.as_ref().and_then(|c| c.watchdog);
        for p in set_bits(self.dcb().paused.mask) {
            let (Some(after), Some(since)) = (after, self.stuck_since(p)) else { continue };
            if since + after <= now {
                let q = self.queues.as_mut().expect("the port has DCB");
                let before = q.shared_bytes();
                let queued = q.priority_queues_mut().flat_map(|queues| queues.drain(now, p as u8));
                dropped.extend(queued.map(|queued| (queued, p as u8)));
                q.update_shared(before);
            }
        }
        self.dcb_mut().watchdog_drops += dropped.len() as u64;
        if self.dcb().timer_at <= now {
            self.queues.as_mut().expect("the port has DCB").fire_timers(now);
        }
        dropped
    }

    /// Limits the rate of the flow that a congestion notification message (CNM) refers to, or
    /// decreases its limit. Departures of the port that are due must have been executed before.
    pub(crate) fn apply_cnm(&mut self, now: Time, cnm: &Cnm, pool: &PacketPool) {
        self.revoke_precommitted(now, pool);
        let line = self.cable.rate;
        let q = self.queues.as_mut().expect("the port has DCB");
        q.apply_cnm(now, cnm, line);
    }

    /// Returns (priority, destination host, rate) of each flow that QCN limits at this port.
    pub fn limited_rates(&self) -> Vec<(u8, u32, Rate)> {
        let q = self.queues.iter().filter(|q| q.dcb.is_some());
        q.flat_map(|q| q.priority_queues().flat_map(|queues| queues.rates())).collect()
    }

    /// Returns the counts of the ingress buffer at the far end, by priority; `None` if the far end
    /// is a host, or without data-centre bridging.
    pub fn input_counts(&self) -> Option<[InputCounts; PRIORITIES]> {
        let input = self.input()?;
        Some(std::array::from_fn(|p| InputCounts {
            most_bytes: input.max_bytes(p as u8),
            bytes: input.bytes(p as u8),
            pauses: input.pause_counts[p][0],
            releases: input.pause_counts[p][1],
            repeats: input.pause_counts[p][2],
            headroom_bytes: input.headroom(),
        }))
    }

    /// Returns the counts of this port until `now`, by priority; `None` without data-centre
    /// bridging.
    pub fn output_counts(&self, now: Time) -> Option<[OutputCounts; PRIORITIES]> {
        let q = self.queues.as_ref()?;
        let b = q.dcb.as_ref()?;
        let point = |p: usize| b.congestion_points.get(p).and_then(Option::as_ref);
        Some(std::array::from_fn(|p| OutputCounts {
            most_bytes: q
                .priority_queues()
                .map(|queues| queues.queue(p as u8).max_bytes)
                .max()
                .unwrap_or(0),
            pauses: b.paused.count[p],
            paused: b.paused.total(p, now),
            samples: point(p).map_or(0, |c| c.samples),
            messages: point(p).map_or(0, |c| c.messages),
        }))
    }

    /// Returns the memory that the queues of the switch of this port share; `None` if they share
    /// none.
    pub(super) fn shared_memory(&self) -> Option<&SharedBuffer> {
        self.queues.as_ref()?.shared_memory()
    }

    /// Returns the queued IP bytes of the port that use the shared memory of lossy queues.
    pub(super) fn shared_bytes(&self) -> u64 {
        self.queues.as_ref().map_or(0, |q| q.shared_bytes())
    }

    /// Returns three numbers: PAUSE frames sent by the port, packets dropped by its watchdog, and
    /// packets that did not fit into the ingress buffer at the far end. All are 0 without
    /// data-centre bridging.
    pub fn dcb_counts(&self) -> [u64; 3] {
        let dcb = self.queues.as_ref().and_then(|q| q.dcb.as_deref());
        dcb.map_or([0; 3], |b| {
            [
                b.pause_queue.frames_sent,
                b.watchdog_drops,
                b.input.as_ref().map_or(0, |i| i.overflows),
            ]
        })
    }
}

/// Functions of a port with data-centre bridging (DCB) that need both its queues and its DCB state.
impl PortQueues {
    /// Removes and returns the next packet of a priority that is not paused, with its priority, and
    /// whether it must be marked with CE; `None` if no packet may be sent.
    pub fn pop_unpaused(
        &mut self,
        now: Time,
        pool: &PacketPool,
    ) -> Option<(QueuedPacket, u8, bool)> {
        let dcb = self.dcb.as_ref().expect("the port has DCB");
        let (paused_mask, wire) = (dcb.paused_mask(), dcb.wire);
        let before = self.shared_memory().map(|_| self.shared_bytes());
        let mut dropped = Vec::new();
        let next = self.pop_by_priority(now, (paused_mask, wire), pool, &mut dropped);
        if let Some(before) = before {
            self.update_shared(before);
        }
        if !dropped.is_empty() {
            self.dcb.as_mut().expect("the port has DCB").dropped.extend(dropped);
        }
        next
    }

    /// Computes the time from which the first rate-limited flow may start. The port must be idle,
    /// and no packet may be allowed to start at `now`.
    pub fn update_wake_time(&mut self, now: Time) {
        let Some(b) = self.dcb.as_deref().filter(|b| b.has_limits) else { return };
        let next = self
            .priority_queues()
            .filter_map(|queues| queues.next_limited(now, b.paused_mask()))
            .min_by_key(|n| n.0);
        let (at, mut bytes) = next.unwrap_or((Time::NEVER, 0));
        if self.priority_queues().nth(1).is_some() {
            bytes = 0;
        }
        let b = self.dcb.as_mut().expect("the port has DCB");
        (b.wakes_at, b.wake_bytes) = (at.max(now.next()), bytes);
    }

    /// Updates the rate limiter of a flow when the transmission of a packet of `bytes` bytes on the
    /// link starts.
    pub fn on_transmit(&mut self, now: Time, (priority, dst): (u8, u32), bytes: u32) {
        self.with_qcn(|queues, config, random| {
            queues.on_transmit(now, (priority, dst), bytes, config, random);
        });
    }

    /// Executes the timers of rate limiters that have expired by `now`.
    pub fn fire_timers(&mut self, now: Time) {
        self.with_qcn(|queues, config, random| queues.expire_timers(now, config, random));
        self.set_timer();
    }

    /// Limits the rate of the flow that a congestion notification message (CNM) refers to, or
    /// decreases its limit. `line` is the rate of the link.
    pub fn apply_cnm(&mut self, now: Time, cnm: &Cnm, line: Rate) {
        let class = self.class_of(cnm.priority << 3);
        self.dcb.as_mut().expect("the port has DCB").has_limits = true;
        let mut number = 0;
        self.with_qcn(|queues, config, random| {
            if number == class {
                queues.apply_cnm(now, cnm, line, config, random);
            }
            number += 1;
        });
        self.set_timer();
    }

    fn set_timer(&mut self) {
        let first =
            self.priority_queues().map(PriorityQueues::next_timer).min().unwrap_or(Time::NEVER);
        self.dcb.as_mut().expect("the port has DCB").timer_at = first;
    }

    fn with_qcn(&mut self, mut f: impl FnMut(&mut PriorityQueues, &QcnConfig, &mut Stream)) {
        let mut dcb = self.dcb.take().expect("the port has DCB");
        if let Some(config) = &dcb.config.qcn {
            self.priority_queues_mut().for_each(|queues| f(queues, config, &mut dcb.random));
        }
        self.dcb = Some(dcb);
    }
}
