//! Behaviour of a link under faults; the rules are in [`fault_state`](super::fault_state).

use super::fault_state::{EarlierRates, FaultState};
use super::{FAST_ENQUEUE, Link, PacketHandle};
use crate::fault::{Effect, LossChain};
use crate::losses::Cause;
use eastwest_engine::order::{Class, Key};
use eastwest_engine::random::{Stream, mix};
use eastwest_types::{Span, Time};
use std::sync::Arc;

impl Link {
    /// Prepares the link for faults. `seed` is the seed of the run; random numbers also depend on
    /// the number `number` of the link.
    pub(crate) fn expect_faults(&mut self, seed: u64, number: u32) {
        self.set_path(FAST_ENQUEUE, false);
        self.choose_arrival_path();
        self.fault_state = Some(Box::new(FaultState {
            own_ps_per_byte_q16: self.kind.ps_per_byte_q16,
            failures: 0,
            doomed: 0,
            loss: None,
            random: Stream::new(seed, &format!("fault/loss/{number}")),
            jitter: Span::ZERO,
            jitter_seed: Stream::new(seed, &format!("fault/jitter/{number}")).next_u64(),
            lost: 0,
            drawn: None,
            settled: Time::ZERO,
            longest: (Span::ZERO, 0),
            lost_bytes: 0,
            earlier: EarlierRates::default(),
        }));
    }

    fn faults(&mut self) -> &mut FaultState {
        self.fault_state.as_mut().expect("a faulty link has a fault state")
    }

    /// Applies the start (`begins` is true) or the end of a fault. Afterwards [`Link::next_key`]
    /// may return another event.
    pub(crate) fn change(&mut self, now: Time, effect: &Effect, begins: bool) {
        match effect {
            Effect::Loss(model) => {
                let f = self.faults();
                f.loss = begins.then(|| LossChain::new(*model, &mut f.random));
                // The next packet to arrive is the first one that the new model decides about.
                f.drawn = None;
            }
            Effect::Degrade(left) => {
                let own = self.faults().own_ps_per_byte_q16;
                let rate = left.of(self.cable.rate);
                self.end_rate(now);
                self.retime(now, |link| {
                    link.keep_longest();
                    Arc::make_mut(&mut link.kind).ps_per_byte_q16 =
                        if begins { rate.ps_per_byte_q16() } else { own };
                });
            }
            Effect::Delay { extra, jitter } => self.retime(now, |link| {
                let own = link.cable.delay;
                Arc::make_mut(&mut link.kind).delay = if begins { own + *extra } else { own };
                link.faults().jitter = if begins { *jitter } else { Span::ZERO };
            }),
            Effect::Down { .. } if begins => self.faults().failures += 1,
            Effect::Down { .. } => {
                let started = self.count_started(now);
                let f = self.faults();
                f.failures -= 1;
                if f.failures == 0 {
                    f.doomed = started;
                }
            }
        }
    }

    /// Records, before a fault changes the rate, which bytes are sent at the current rate.
    fn end_rate(&mut self, now: Time) {
        let started = self.count_started(now);
        let on_way = self.on_wire.iter().take(started);
        let bytes: u64 = on_way.map(|p| u64::from(self.wire_bytes(u32::from(p.ip_len())))).sum();
        let (before, rate) = (self.counters().bytes, self.kind.ps_per_byte_q16);
        let f = self.faults();
        let passed = before + f.lost_bytes;
        f.earlier.end(passed, passed + bytes, rate);
    }

    /// Returns the time in ps for which the port was transmitting the packets that have arrived or
    /// were lost in flight.
    pub(super) fn sent_for(&self) -> u128 {
        let (bytes, rate) = (self.counters().bytes, self.kind.ps_per_byte_q16);
        match &self.fault_state {
            Some(f) => f.earlier.sending(bytes + f.lost_bytes, rate),
            None => (u128::from(bytes) * u128::from(rate)) >> 16,
        }
    }

    /// Returns the bytes on the link, framing included, of packets that faults have removed in
    /// flight.
    pub(super) fn bytes_lost_in_flight(&self) -> u64 {
        self.fault_state.as_ref().map_or(0, |f| f.lost_bytes)
    }

    /// Returns the number of packets on the wire, including the packet in transmission.
    fn count_started(&self, now: Time) -> usize {
        match &self.queues {
            Some(_) => self.on_wire.len(),
            None => self.on_wire.len() - self.count_waiting(now).0 as usize,
        }
    }

    /// Returns number and IP bytes of the queued packets, and the end of the current transmission,
    /// at a port that fixes departures at enqueue (eager). The start of each transmission is found
    /// backwards from the last packet, since a packet starts when the previous one has been sent.
    pub(super) fn count_waiting(&self, now: Time) -> (u32, u64, Time) {
        let (mut waiting, mut bytes, mut sent) = (0, 0, self.busy_until);
        let settled = self.fault_state.as_ref().map_or(Time::ZERO, |f| f.settled);
        for handle in self.on_wire.iter().rev() {
            let ip_len = u32::from(handle.ip_len());
            let start = sent.0.saturating_sub(self.send_time(ip_len).0);
            if start <= now.0 || sent <= settled {
                break;
            }
            waiting += 1;
            bytes += u64::from(ip_len);
            sent = Time(start);
        }
        (waiting, bytes, sent)
    }

    /// Applies `change` to the link, and then computes new departure and arrival times for all
    /// packets whose transmission has not started.
    fn retime(&mut self, now: Time, change: impl FnOnce(&mut Link)) {
        let Some(q) = &self.queues else { return self.retime_eager(now, change) };
        let sent_at = q.sent_at;
        let waiting = q.lengths();
        change(self);
        if sent_at < Time::NEVER {
            let rest = waiting.into_iter().map(|ip_len| self.send_time(ip_len));
            self.busy_until = rest.fold(sent_at, |end, span| end + span);
        }
    }

    fn retime_eager(&mut self, now: Time, change: impl FnOnce(&mut Link)) {
        let (waiting, _, mut sent) = self.count_waiting(now);
        change(self);
        self.faults().settled = sent;
        let len = self.on_wire.len() as u32;
        for place in len - waiting..len {
            let handle = self.on_wire.get(place).expect("counted packets are in the ring");
            sent += self.send_time(u32::from(handle.ip_len()));
            let arrive = self.arrival_after(sent, place as usize);
            self.on_wire.change(place, |handle| handle.arrive = arrive);
        }
        self.busy_until = sent;
    }

    /// Returns the arrival time at the far end of a packet whose last bit leaves the port at
    /// `sent`. `place` is the position of the packet among those in flight.
    pub(crate) fn arrival_after(&self, sent: Time, place: usize) -> Time {
        let at = sent + self.kind.delay;
        match &self.fault_state {
            Some(f) if f.jitter > Span::ZERO => {
                let random = mix(f.jitter_seed ^ (self.counters().packets + f.lost + place as u64));
                at + Span(((u128::from(random) * u128::from(f.jitter.0)) >> 64) as u64)
            }
            _ => at,
        }
    }

    /// Returns the event key at which the first packet on the wire arrives or is lost;
    /// [`Key::NEVER`] if no packet is on the wire.
    pub(super) fn first_key(&mut self, now: Time) -> Key {
        let Some(&PacketHandle { arrive, .. }) = self.on_wire.get(0) else { return Key::NEVER };
        let key = self.arrival_key(now, arrive);
        let arrived = self.counters().packets;
        let Some(f) = &mut self.fault_state else { return key };
        f.draw(arrived + f.lost);
        let class = if f.cause().is_some() { Class::Departure } else { Class::Arrival };
        Key::new(key.time().max(now), class)
    }

    /// Removes and returns the first packet on the wire, with the cause of its loss, if it is lost
    /// in the event `key`; otherwise `None`.
    pub(crate) fn take_lost_in_flight(&mut self, key: Key) -> Option<(PacketHandle, Cause)> {
        if self.fault_state.is_none() || self.first_key(key.time()) != key {
            return None;
        }
        let cause = self.faults().cause()?;
        let handle = self.on_wire.pop().expect("a packet with an event key is on the wire");
        self.on_wire.release(handle.ip_len().into());
        let bytes = self.wire_bytes(u32::from(handle.ip_len()));
        let f = self.faults();
        f.lost_bytes += u64::from(bytes);
        f.lost += 1;
        f.doomed = f.doomed.saturating_sub(1);
        Some((handle, cause))
    }

    /// Records the longest waiting time before a change of rate, since at another rate this time
    /// corresponds to another queue length in bytes.
    fn keep_longest(&mut self) {
        let (wait, bytes) = self.longest();
        self.set_longest_wait(Span::ZERO);
        self.faults().longest = (wait, bytes);
    }

    /// Returns the longest time that a packet of this port waited for earlier packets, and the
    /// largest number of bytes on the link for which a packet waited.
    pub fn longest(&self) -> (Span, u64) {
        let wait = self.longest_wait();
        let bytes = (u128::from(wait.0) << 16) / u128::from(self.kind.ps_per_byte_q16.max(1));
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let before = self.fault_state.as_ref().map_or((Span::ZERO, 0), |f| f.longest);
        (wait.max(before.0), bytes.max(before.1))
    }

    /// Returns the transmission time of a packet of `ip_len` IP bytes at the rate without faults.
    pub(crate) fn own_send_time(&self, ip_len: u32) -> Span {
        let own =
            self.fault_state.as_ref().map_or(self.kind.ps_per_byte_q16, |f| f.own_ps_per_byte_q16);
        Span((u64::from(self.wire_bytes(ip_len)) * own) >> 16)
    }

    /// Whether the link is down, because at least one failure is in force.
    pub fn is_down(&self) -> bool {
        self.fault_state.as_ref().is_some_and(|f| f.failures > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LinkSpec, Mode, Outcome};
    use super::*;
    use crate::fault::{Degraded, LossModel};
    use crate::pool::PacketPool;
    use crate::queue::{DropTail, QueueConfig};
    use crate::topology::CableConfig;
    use eastwest_types::Limit;
    use eastwest_types::Rate;
    use eastwest_types::{HostId, Packet};

    const DELAY: Span = Span::from_us(5);
    /// Transmission time of a full packet at 1 Gbit/s; it has 1538 B on the link.
    const FULL: Span = Span::from_ns(12_304);

    fn link(limit: u32, mode: Mode, jitter: Span, delay: Span) -> Link {
        let mut link = Link::new(LinkSpec {
            from: 0,
            to: 1,
            cable: CableConfig { rate: Rate::gbit(1), delay },
            queue: QueueConfig::DropTail(DropTail(Limit::Packets(limit))),
            framing: 38,
            min_frame: 84,
            mtu: 1500,
            jitter,
            jitter_seed: 7,
            mode,
            classes: Vec::new(),
            measured: false,
            sleep: None,
            dcb: None,
            shared: None,
            seed: (7, 3),
        });
        link.expect_faults(3, 17);
        link
    }

    fn packet(ip_len: u16) -> Packet {
        Packet { ip_len, ..Packet::blank(HostId(1)) }
    }

    /// Record of the packets of a test: arrivals, losses, and the queue before each enqueue.
    #[derive(Debug, Default, PartialEq)]
    struct Log {
        arrived: Vec<(Time, u32)>,
        lost: Vec<(Time, u32, Cause)>,
        queues: Vec<(u32, u64)>,
    }

    struct Play {
        link: Link,
        pool: PacketPool,
        next: Key,
        log: Log,
    }

    impl Play {
        fn new(link: Link) -> Play {
            let (pool, log) = (PacketPool::default(), Log::default());
            Play { link, pool, next: Key::NEVER, log }
        }

        fn run_until(&mut self, end: Key) {
            while self.next < end {
                let key = self.next;
                if !key.is_departure() {
                    let (handle, next) = self.link.arrive(key, &mut self.pool);
                    self.log.arrived.push((key.time(), handle.slot()));
                    self.next = next;
                    continue;
                }
                let (lost, next) = self.link.depart(key, &mut self.pool);
                if let Some((handle, cause)) = lost {
                    self.log.lost.push((key.time(), handle.slot(), cause));
                }
                self.next = next;
            }
        }

        fn enqueue(&mut self, at: Time, packet: &Packet) {
            self.run_until(Key::new(at, Class::Arrival));
            let slot = self.pool.insert(packet);
            self.log.queues.push(self.link.queue(at));
            let handle = PacketHandle::new(slot, packet);
            match self.link.enqueue(at, handle.words(), &mut self.pool) {
                Outcome::Dropped(cause) => self.log.lost.push((at, slot, cause)),
                Outcome::Queued => {}
                Outcome::Sooner(key) | Outcome::Displaced(key) => self.next = key,
            }
        }

        fn change(&mut self, at: Time, effect: &Effect, begins: bool) {
            self.run_until(Key::new(at, Class::Change));
            self.link.change(at, effect, begins);
            self.next = self.link.next_key(at);
        }

        fn end(mut self) -> (Log, (Span, u64), u64) {
            self.run_until(Key::NEVER);
            assert_eq!(self.link.held(), 0);
            (self.log, self.link.longest(), self.link.counters().packets)
        }
    }

    fn some_effect(random: &mut Stream, kind: u64) -> Effect {
        match kind {
            0 if random.below(2) == 0 => Effect::Loss(LossModel::independent(0.3)),
            0 => Effect::Loss(LossModel::bursty(0.3, 4.0)),
            1 => Effect::Degrade(Degraded::Share(0.1 * (1 + random.below(9)) as f64)),
            2 => {
                let us = |n| Span::from_us(n);
                Effect::Delay { extra: us(random.below(40)), jitter: us(random.below(20)) }
            }
            _ => Effect::Down { reroute: Span::ZERO, flapping: None },
        }
    }

    /// A step of a test: a packet that is enqueued, or a fault that begins (`true`) or ends
    /// (`false`).
    type Step = (Time, Result<Packet, (Effect, bool)>);

    /// Returns a random sequence of packets and faults of all kinds, on a coarse grid of times, so
    /// that ties are frequent.
    fn script(seed: u64) -> Vec<Step> {
        let mut random = Stream::new(seed, "faults");
        let mut script = Vec::new();
        let mut now = Time::ZERO;
        for _ in 0..500 {
            if random.below(3) == 0 {
                now += Span::from_ns(672 * random.below(40));
            }
            script.push((now, Ok(packet([40, 576, 1500][random.below(3) as usize]))));
        }
        for kind in 0..4 {
            let mut at = Time::ZERO;
            for _ in 0..12 {
                let effect = some_effect(&mut random, kind);
                at += Span::from_ns(672 * random.below(200));
                script.push((at, Err((effect.clone(), true))));
                at += Span::from_ns(672 * random.below(200));
                script.push((at, Err((effect, false))));
            }
        }
        // At each time, packets are enqueued before faults change.
        script.sort_by_key(|(at, what)| (*at, what.is_err()));
        script
    }

    #[test]
    fn both_kinds_of_ports_do_the_same_to_every_packet_under_faults() {
        let (mut seen, mut packets) = ([0; 4], 0);
        for seed in 0..150 {
            let script = script(seed);
            let jitter = Span::from_us([0, 3, 30][seed as usize % 3]);
            let delay = if seed % 5 == 0 { Span::ZERO } else { DELAY };
            let both = [Mode::Eager, Mode::TwoEvent].map(|mode| {
                let mut play =
                    Play::new(link([3, 30, 1_000][seed as usize % 3], mode, jitter, delay));
                for (at, what) in &script {
                    match what {
                        Ok(packet) => play.enqueue(*at, packet),
                        Err((effect, begins)) => play.change(*at, effect, *begins),
                    }
                }
                play.end()
            });
            assert!(both[0] == both[1], "seed {seed}");
            let log = &both[0].0;
            assert_eq!(log.arrived.len() + log.lost.len(), 500);
            assert!(log.arrived.windows(2).all(|q| q[0].0 <= q[1].0), "in order");
            packets += log.arrived.len();
            log.lost.iter().for_each(|l| seen[l.2 as usize] += 1);
        }
        assert!(packets > 20_000, "{packets} arrived");
        let [full, random, down, _] = seen;
        assert!(full > 1_000 && random > 1_000 && down > 1_000, "{seen:?}");
    }

    /// Enqueues ten full packets at once, begins a fault at `change_at` and ends it at `over_at`.
    /// Returns the arrival time of each packet; `None` if it was lost.
    fn ten(change_at: Span, effect: Effect, over_at: Option<Span>) -> Vec<Option<Span>> {
        let [eager, reference] = [Mode::Eager, Mode::TwoEvent].map(|mode| {
            let mut play = Play::new(link(99, mode, Span::ZERO, DELAY));
            (0..10).for_each(|_| play.enqueue(Time::ZERO, &packet(1500)));
            play.change(Time::ZERO + change_at, &effect, true);
            if let Some(over) = over_at {
                play.change(Time::ZERO + over, &effect, false);
            }
            let mut times = vec![None; 10];
            for (at, slot) in play.end().0.arrived {
                times[slot as usize] = Some(at.since(Time::ZERO));
            }
            times
        });
        assert_eq!(eager, reference);
        eager
    }

    #[test]
    fn a_degraded_link_finishes_the_packet_being_sent_and_then_has_exactly_the_new_rate() {
        let tenth = Effect::Degrade(Degraded::Rate(Rate::mbit(100)));
        // The fault begins in the middle of the transmission of the third packet.
        let times = ten(FULL * 2 + Span(1), tenth.clone(), None);
        for (i, time) in times.iter().enumerate() {
            let slow = (i as u64).saturating_sub(2);
            assert_eq!(*time, Some(FULL * (1 + i as u64 - slow) + FULL * 10 * slow + DELAY));
        }
        // The fault ends in the middle of the transmission of the fifth packet.
        let back = FULL * 3 + FULL * 10 + Span(1);
        let times = ten(FULL * 2 + Span(1), tenth, Some(back));
        assert_eq!(times[4], Some(FULL * 3 + FULL * 20 + DELAY));
        assert_eq!(times[9], Some(FULL * 3 + FULL * 20 + FULL * 5 + DELAY));
    }

    #[test]
    fn extra_delay_adds_exactly_and_what_would_overtake_arrives_together() {
        let extra = Span::from_us(40);
        let slow = Effect::Delay { extra, jitter: Span::ZERO };
        let times = ten(FULL, slow, Some(FULL * 5));
        let plain = |i: u64| FULL * (i + 1) + DELAY;
        // A change at the instant at which the transmission of a packet starts does not apply to
        // this packet.
        for i in 0..10 {
            let time = match i {
                0 | 1 => plain(i),
                2..=5 => plain(i) + extra,
                // Packets behind the sixth would overtake it, so that they arrive together with it.
                _ => plain(i).max(plain(5) + extra),
            };
            assert_eq!(times[i as usize], Some(time), "{i}");
        }
    }

    #[test]
    fn jitter_stays_below_its_width_and_keeps_the_order() {
        let width = Span::from_us(10);
        let shaken = ten(Span::ZERO, Effect::Delay { extra: Span::ZERO, jitter: width }, None);
        let mut moved = 0;
        for (i, time) in shaken.iter().enumerate().skip(1) {
            let late = time.expect("no loss").0 - (FULL * (i as u64 + 1) + DELAY).0;
            assert!(late < width.0);
            moved += usize::from(late > width.0 / 4);
        }
        assert!(moved >= 4, "{shaken:?}");
    }

    #[test]
    fn a_failure_takes_what_is_sent_or_under_way_and_spares_what_starts_after_the_repair() {
        let down = Effect::Down { reroute: Span::ZERO, flapping: None };
        // The fault begins when the first packet has arrived, the second is on the wire and the
        // third is in transmission. It ends during the transmission of the sixth packet.
        let at = FULL * 2 + Span::from_us(6);
        let times = ten(at, down, Some(FULL * 5 + Span(1)));
        let arrived: Vec<usize> = (0..10).filter(|&i| times[i].is_some()).collect();
        assert_eq!(arrived, [0, 1, 6, 7, 8, 9]);
        for i in arrived {
            assert_eq!(times[i], Some(FULL * (i as u64 + 1) + DELAY));
        }
    }

    #[test]
    fn a_short_failure_takes_all_that_was_under_way() {
        let down = Effect::Down { reroute: Span::ZERO, flapping: None };
        // The link fails while the second packet is in transmission and the first is on the wire.
        let times = ten(FULL + Span::from_us(2), down, Some(FULL + Span::from_us(3)));
        assert_eq!(times.iter().position(Option::is_some), Some(2));
        assert_eq!(times.iter().flatten().count(), 8);
    }

    #[test]
    fn loss_on_one_link_does_not_depend_on_what_other_links_suffer() {
        let lost = |number| {
            let mut link = link(999, Mode::Eager, Span::ZERO, DELAY);
            link.expect_faults(3, number);
            let mut play = Play::new(link);
            play.change(Time::ZERO, &Effect::Loss(LossModel::independent(0.2)), true);
            (0..400).for_each(|_| play.enqueue(Time(1), &packet(100)));
            play.end().0.lost.iter().map(|l| l.1).collect::<Vec<u32>>()
        };
        assert_eq!(lost(1), lost(1));
        assert_ne!(lost(1), lost(2));
    }
}
