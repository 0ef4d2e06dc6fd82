//! Energy-Efficient Ethernet (IEEE 802.3az): when one direction of a link sleeps and wakes.
//!
//! A port that has nothing left to send stays awake for the stall timer, then falls asleep for Ts and
//! sleeps. What comes after that is held: until waking may begin, and for Tw more. Waking may begin
//! when the link is asleep and, where frames are coalesced, the first held frame has waited for the
//! holding timer or the trigger is reached (Christensen et al., IEEE Comm. Mag. 48(11), 2010;
//! Reviriego et al., IEEE Comm. Lett. 13(9), 2009). Falling asleep cannot be broken off. A frame that
//! comes at the instant at which falling asleep would begin finds the link awake: back-to-back frames
//! of equal rates would otherwise all meet a closed door.
//!
//! The holding timer may adapt. Where falling asleep and waking took more than a given share of the
//! time since the link woke last, the next frames are held for twice as long, and otherwise for half:
//! with little to send sleeping is nearly free and nothing is held, with more to send wakes are put
//! together. This rule is ours.
//!
//! Packets that come meanwhile wait in the port's queue or, where the link layer has a buffer of
//! its own ([`SleepBuffer::Link`]), below it.
//!
//! Times are exact, nothing is sampled: how long the link was in each state follows from when it
//! became idle and when it woke, whenever one asks.

use super::phy::Phy;
use crate::queue::Backlog;
use eastwest_settings::{Section, key};
use eastwest_types::{Limit, Span, Time};
use serde::{Deserialize, Serialize};

/// How much has to be held for waking to begin at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Trigger {
    /// This number of packets.
    Packets(u32),
    /// This number of IP bytes.
    Bytes(u64),
}

/// Where packets wait that come while the link falls asleep, sleeps or wakes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum SleepBuffer {
    /// In the queue of the port: they need room there, and its discipline counts them.
    #[default]
    Port,
    /// In a buffer of the link layer below the queue, with this limit, if any: they pass the empty
    /// queue at once. What does not fit waits in the queue.
    Link(Option<Limit>),
}

impl SleepBuffer {
    /// Reads it from the table of links that sleep.
    pub(super) fn read(s: &mut Section) -> SleepBuffer {
        let below = s.choice(
            "sleep_buffer",
            "Where packets wait that come while the link falls asleep, sleeps or wakes.",
            Some("port"),
            &[
                (
                    "port",
                    false,
                    "in the port's queue: they need room, and its discipline counts them",
                ),
                (
                    "link",
                    true,
                    "in a buffer of the link layer below the queue: no limit or discipline of the \
                     queue counts them, and they leave first (E-EON's module)",
                ),
            ],
        );
        if !below && !s.describing() {
            return SleepBuffer::Port;
        }
        SleepBuffer::Link(
            s.find(
                key(
                    "sleep_buffer_limit",
                    "Room of the link layer's buffer; the rest waits in the queue.",
                )
                .optional("no limit"),
            ),
        )
    }

    /// Whether the link layer takes a packet of `ip_len` bytes while it does not send, with so much
    /// in its buffer and so much in the queue. Nothing passes what waits in the queue.
    fn takes(self, held: Backlog, queued: usize, ip_len: u16) -> bool {
        let fits = match self {
            SleepBuffer::Port => false,
            SleepBuffer::Link(None) => true,
            SleepBuffer::Link(Some(Limit::Packets(n))) => held.packets < n as usize,
            SleepBuffer::Link(Some(Limit::Bytes(n))) => held.bytes + u64::from(ip_len) <= n,
        };
        fits && queued == 0
    }
}

/// When a link falls asleep and wakes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Policy {
    /// How long it stays awake with nothing to send.
    pub stall: Span,
    /// How long the first frame that finds it asleep is held.
    pub hold: Span,
    /// What ends holding before.
    pub trigger: Trigger,
    /// Where the timer adapts, up to `hold`: the millionths of time that may go into falling asleep
    /// and waking before frames are held for longer.
    pub waste_ppm: Option<u32>,
    /// Where packets wait meanwhile.
    pub buffer: SleepBuffer,
}

impl Policy {
    /// Asleep as soon as nothing is left to send, awake for the first frame.
    pub const STANDARD: Policy = Policy {
        stall: Span::ZERO,
        hold: Span::ZERO,
        trigger: Trigger::Packets(1),
        waste_ppm: None,
        buffer: SleepBuffer::Port,
    };
}

/// How long a link was in each state. Together they are the time that has passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StateTimes {
    /// Sending, or awake with nothing to send.
    pub awake: Span,
    /// Falling asleep.
    pub falling: Span,
    /// Asleep.
    pub asleep: Span,
    /// Waking.
    pub waking: Span,
    /// How often it has begun to wake.
    pub wakes: u64,
}

impl StateTimes {
    /// Returns the times with `asleep` of sleep; the rest of the sleep counts as awake.
    pub fn asleep_only(self, asleep: Span) -> StateTimes {
        StateTimes { awake: self.awake + (self.asleep - asleep), asleep, ..self }
    }

    /// All of it.
    pub fn total(&self) -> Span {
        self.awake + self.falling + self.asleep + self.waking
    }

    /// Joules of a transceiver that was in these states for these times.
    pub fn joules(&self, phy: &Phy) -> f64 {
        let full = self.awake + self.falling + self.waking;
        phy.active_w * full.as_secs_f64() + phy.asleep_w * self.asleep.as_secs_f64()
    }
}

/// One sleep of a link, from the end of being awake to the beginning of the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LpiPeriod {
    /// It begins to fall asleep.
    pub falls: Time,
    /// It is asleep.
    pub asleep: Time,
    /// It begins to wake.
    pub wakes: Time,
    /// It is awake.
    pub awake: Time,
}

/// The first naps of a link in a stretch of time, and how many more there were.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LpiLog {
    /// The first of them.
    pub naps: Vec<LpiPeriod>,
    /// How many are kept.
    most: usize,
    /// Naps that ended by then are of no interest, nor are those that began when the second comes.
    window: (Time, Time),
    /// Those that found no room.
    pub left_out: u64,
}

impl LpiLog {
    /// No naps yet; at most so many, of those that lie at least partly within the window.
    pub fn new(most: usize, window: (Time, Time)) -> LpiLog {
        LpiLog { most, window, ..LpiLog::default() }
    }

    fn note(&mut self, nap: LpiPeriod) {
        if nap.awake <= self.window.0 || nap.falls >= self.window.1 {
            return;
        }
        if self.naps.len() < self.most {
            self.naps.push(nap);
        } else {
            self.left_out += 1;
        }
    }
}

/// One direction of a link that sleeps.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LpiState {
    policy: Policy,
    wake: Span,
    sleep: Span,
    /// Since when nothing is left to send, or never.
    idle_since: Time,
    /// When waking begins, or never; only while idle.
    wake_from: Time,
    /// How long the first frame that finds it asleep is held now.
    hold: Span,
    /// Up to the last time it woke.
    past: StateTimes,
    /// When that was.
    awake_since: Time,
    /// How long the other direction slept, too, as far as [`LpiState::note_both`] was told.
    both: Span,
    /// When a packet last passed the queue into the buffer of the link layer.
    passed: Time,
    /// At eager ports with such a buffer: the number, counted from 0, of the first packet of the
    /// link that is not in it, and what waits in the queue while packets before that are in it.
    stored_until: u64,
    behind: Backlog,
    /// Every nap, where they are asked for.
    log: Option<Box<LpiLog>>,
}

impl LpiState {
    /// A link that is awake and idle at time zero.
    pub fn new(policy: Policy, phy: &Phy) -> LpiState {
        LpiState {
            policy,
            wake: phy.wake,
            sleep: phy.sleep,
            idle_since: Time::ZERO,
            wake_from: Time::NEVER,
            hold: if policy.waste_ppm.is_some() { Span::ZERO } else { policy.hold },
            past: StateTimes::default(),
            awake_since: Time::ZERO,
            both: Span::ZERO,
            passed: Time::ZERO,
            stored_until: 0,
            behind: Backlog::default(),
            log: None,
        }
    }

    /// See [`SleepBuffer::takes`]; not to be asked of a link that is awake.
    pub fn takes(&self, held: Backlog, queued: usize, ip_len: u16) -> bool {
        self.policy.buffer.takes(held, queued, ip_len)
    }

    /// Since when the queue is empty into which packets come that pass it at once; the last packet
    /// had been sent at `clear_at`, if none has passed since.
    pub fn queue_empty_since(&self, clear_at: Time) -> Time {
        if self.wake_from == Time::NEVER { clear_at } else { self.passed }
    }

    /// A packet passes the queue into the buffer of the link layer.
    pub fn pass(&mut self, now: Time) {
        self.passed = now;
    }

    /// At eager ports: packet `number` has passed the queue.
    pub fn store(&mut self, now: Time, number: u64) {
        self.passed = now;
        self.stored_until = number + 1;
        self.behind = Backlog::default();
    }

    /// At eager ports: what waits in the queue, of all that waits, of which `next` is the number of
    /// the first.
    pub fn queued(&self, next: u64, waits: Backlog) -> Backlog {
        if next < self.stored_until { self.behind } else { waits }
    }

    /// At eager ports: a packet waits in the queue.
    pub fn queue(&mut self, ip_len: u16) {
        self.behind.packets += 1;
        self.behind.bytes += u64::from(ip_len);
    }

    /// Logs its naps from now on.
    pub fn keep_log(&mut self, log: LpiLog) {
        self.log = Some(Box::new(log));
    }

    /// Returns a copy of the link without its log, to predict its states from.
    pub fn without_log(&self) -> LpiState {
        LpiState { log: None, ..*self }
    }

    /// Its log until `now`, if it has one: a nap that has not ended by then ends with it.
    pub fn take_log(&mut self, now: Time) -> Option<LpiLog> {
        let mut log = self.log.take()?;
        let falls = self.falls_from();
        if self.idle_since != Time::NEVER && falls < now {
            let [asleep, wakes] = [falls + self.sleep, self.wake_from].map(|at| at.min(now));
            log.note(LpiPeriod { falls, asleep, wakes, awake: now });
        }
        Some(*log)
    }

    /// When falling asleep begins, or has begun; only while idle.
    fn falls_from(&self) -> Time {
        self.idle_since.max(self.awake_since) + self.policy.stall
    }

    /// Whether a frame that comes now must wait for the link to wake; not to be asked of a link that
    /// is sending.
    pub fn sleeps(&self, now: Time) -> bool {
        self.idle_since != Time::NEVER && now > self.idle_since + self.policy.stall
    }

    /// Nothing is left to send.
    pub fn rest(&mut self, now: Time) {
        self.idle_since = now;
    }

    /// When the link will be awake that [sleeps](Sleeper::sleeps) at `now`, with so much held, the
    /// frame that has just come included. Later frames may bring it nearer, never put it off.
    pub fn ready_at(&mut self, now: Time, packets: usize, bytes: u64) -> Time {
        let falls_from = self.idle_since + self.policy.stall;
        let held_until = match self.policy.trigger {
            Trigger::Packets(n) if packets >= n as usize => now,
            Trigger::Bytes(n) if bytes >= n => now,
            _ => now + self.hold,
        };
        self.wake_from = self.wake_from.min(held_until.max(falls_from + self.sleep));
        self.wake_from + self.wake
    }

    /// Something is sent: the link was awake, or is so now, at the time that [`LpiState::ready_at`] has
    /// given.
    pub fn send(&mut self, now: Time) {
        if self.wake_from == Time::NEVER {
            self.idle_since = Time::NEVER;
            return;
        }
        self.past = self.times(now);
        let (falls, wakes) = (self.falls_from(), self.wake_from);
        if let Some(log) = &mut self.log {
            log.note(LpiPeriod { falls, asleep: falls + self.sleep, wakes, awake: now });
        }
        if let Some(waste_ppm) = self.policy.waste_ppm {
            self.adapt(now.since(self.awake_since), waste_ppm);
        }
        self.awake_since = now;
        self.idle_since = Time::NEVER;
        self.wake_from = Time::NEVER;
    }

    /// It has woken for the first time in `cycle`.
    fn adapt(&mut self, cycle: Span, waste_ppm: u32) {
        let spent = u128::from((self.wake + self.sleep).0) * 1_000_000;
        self.hold = if spent > u128::from(cycle.0) * u128::from(waste_ppm) {
            Span(self.hold.0 * 2).max(self.wake).min(self.policy.hold)
        } else if self.hold > self.wake {
            Span(self.hold.0 / 2)
        } else {
            Span::ZERO
        };
    }

    /// At ports without an event for every departure: what has happened by now on a link that has
    /// sent all it was given at `clear_at`.
    pub fn catch_up(&mut self, now: Time, clear_at: Time) {
        if self.wake_from != Time::NEVER {
            let ready = self.wake_from + self.wake;
            if ready > now {
                return;
            }
            self.send(ready);
        }
        if self.idle_since == Time::NEVER && clear_at <= now {
            self.rest(clear_at);
        }
    }

    /// From when until when it sleeps, the time being; the end is never while nothing is held.
    pub fn nap(&self) -> Option<(Time, Time)> {
        let falls_from = self.falls_from();
        (self.idle_since != Time::NEVER).then(|| (falls_from + self.sleep, self.wake_from))
    }

    /// Both directions slept for so long.
    pub fn note_both(&mut self, span: Span) {
        self.both += span;
    }

    /// How long both have slept, by what was noted.
    pub fn both(&self) -> Span {
        self.both
    }

    /// When the link will be awake, if it is asleep with frames held.
    pub fn planned(&self) -> Option<Time> {
        (self.wake_from != Time::NEVER).then(|| self.wake_from + self.wake)
    }

    /// How long it was in each state until `now`.
    pub fn times(&self, now: Time) -> StateTimes {
        let mut times = self.past;
        let falls_from = self.falls_from();
        if self.idle_since == Time::NEVER || falls_from >= now {
            times.awake += now.since(self.awake_since);
            return times;
        }
        let asleep_from = (falls_from + self.sleep).min(now);
        let wakes_from = self.wake_from.min(now);
        times.awake += falls_from.since(self.awake_since);
        times.falling += asleep_from.since(falls_from);
        times.asleep += wakes_from.since(asleep_from);
        times.waking += now.since(wakes_from);
        times.wakes += u64::from(wakes_from < now);
        times
    }
}

/// How long two directions sleep together of what they sleep the time being, until `now`.
pub fn together(a: &LpiState, b: &LpiState, now: Time) -> Span {
    let (Some(a), Some(b)) = (a.nap(), b.nap()) else { return Span::ZERO };
    a.1.min(b.1).min(now).since(a.0.max(b.0))
}

#[cfg(test)]
mod tests {
    use super::super::phy::KNOWN;
    use super::*;
    use eastwest_engine::random::Stream;

    const PHY: Phy = KNOWN[2].2;
    const COALESCE: Policy =
        Policy { hold: Span::from_us(12), trigger: Trigger::Packets(10), ..Policy::STANDARD };

    fn at(us: f64) -> Time {
        Time((us * 1e6) as u64)
    }

    fn us(span: Span) -> f64 {
        span.as_us_f64()
    }

    #[test]
    fn a_frame_wakes_a_standard_link_when_it_has_fallen_asleep() {
        let mut link = LpiState::new(Policy::STANDARD, &PHY);
        assert!(link.sleeps(at(100.0)));
        assert_eq!(link.ready_at(at(100.0), 1, 1500), at(104.48));
        assert_eq!(link.ready_at(at(101.0), 2, 3000), at(104.48));
        link.send(at(104.48));
        let times = link.times(at(104.48));
        assert_eq!((us(times.falling), us(times.asleep), us(times.waking)), (2.88, 97.12, 4.48));
        assert_eq!((times.awake, times.wakes), (Span::ZERO, 1));

        // while it falls asleep
        link.rest(at(110.0));
        assert_eq!(link.ready_at(at(111.0), 1, 1500), at(117.36));
        link.send(at(117.36));
        // at the instant of becoming idle, and while sending
        link.rest(at(120.0));
        assert!(!link.sleeps(at(120.0)));
        link.send(at(120.0));
        assert!(!link.sleeps(at(120.5)));
        let times = link.times(at(130.0));
        assert_eq!(us(times.awake), 5.52 + 12.64);
        assert_eq!((times.total(), times.wakes), (Span::from_us(130), 2));
    }

    #[test]
    fn a_stall_timer_keeps_a_link_awake() {
        let policy = Policy { stall: Span::from_us(50), ..Policy::STANDARD };
        let mut link = LpiState::new(policy, &PHY);
        assert!(!link.sleeps(at(50.0)) && link.sleeps(at(50.001)));
        link.send(at(50.0));
        link.rest(at(60.0));
        assert_eq!(link.ready_at(at(111.0), 1, 1500), at(117.36));
        assert_eq!(us(link.times(at(111.5)).falling), 1.5);
    }

    #[test]
    fn what_both_directions_sleep_is_the_intersection_of_what_each_does() {
        let mut random = Stream::new(3, "both");
        let mut links = [COALESCE, Policy::STANDARD].map(|policy| LpiState::new(policy, &PHY));
        let (mut naps, mut both) = ([Vec::new(), Vec::new()], Span::ZERO);
        let mut now = Time::ZERO;
        for _ in 0..5_000 {
            now += Span::from_ns(random.below(9_000));
            // wake-ups that are due, in order of time
            while let Some((ready, of)) = [0, 1]
                .into_iter()
                .filter_map(|of| links[of].planned().map(|ready| (ready, of)))
                .filter(|(ready, _)| *ready <= now)
                .min()
            {
                both += together(&links[0], &links[1], ready);
                let (from, to) = links[of].nap().expect("it sleeps");
                naps[of].push((from, to));
                links[of].send(ready);
                links[of].rest(ready + Span::from_ns(1 + random.below(500)));
            }
            let of = random.below(2) as usize;
            if random.below(4) == 0 && links[of].sleeps(now) {
                links[of].ready_at(now, 1, 1500);
            }
        }
        both += together(&links[0], &links[1], now);
        for (link, naps) in links.iter().zip(&mut naps) {
            naps.extend(link.nap().map(|(from, to)| (from, to.min(now))));
        }
        let parts = naps[0].iter().flat_map(|a| naps[1].iter().map(move |b| (a, b)));
        let expected: u64 = parts.map(|(a, b)| a.1.min(b.1).since(a.0.max(b.0)).0).sum();
        assert!(naps[0].len() > 300 && naps[1].len() > 300);
        assert_eq!(both.0, expected);
    }

    #[test]
    fn an_adaptive_timer_follows_what_transitions_take() {
        // 7.36 µs for falling asleep and waking are a tenth of 73.6 µs
        let hold = Span::from_us(40);
        let policy = Policy { hold, waste_ppm: Some(100_000), ..COALESCE };
        let mut link = LpiState::new(Policy { trigger: Trigger::Packets(99), ..policy }, &PHY);
        let mut holds = Vec::new();
        let mut now = 1_000.0;
        for gap in [20.0, 20.0, 20.0, 20.0, 20.0, 20.0, 500.0, 500.0, 500.0, 500.0] {
            let ready = link.ready_at(at(now), 1, 1500);
            holds.push((us(ready.since(at(now))) - 4.48).round());
            link.send(ready);
            link.rest(ready);
            now = (ready.0 as f64) / 1e6 + gap;
        }
        assert_eq!(holds, [0.0, 0.0, 4.0, 9.0, 18.0, 36.0, 40.0, 40.0, 20.0, 10.0]);
    }

    #[test]
    fn frames_are_held_until_the_timer_or_the_trigger() {
        let mut link = LpiState::new(COALESCE, &PHY);
        assert_eq!(link.ready_at(at(100.0), 1, 1500), at(116.48));
        assert_eq!(link.ready_at(at(108.0), 9, 13_500), at(116.48));
        assert_eq!(link.ready_at(at(109.0), 10, 15_000), at(113.48), "the tenth wakes it");
        assert_eq!(link.ready_at(at(110.0), 11, 16_500), at(113.48));
        link.send(at(113.48));
        assert_eq!(us(link.times(at(113.48)).asleep), 109.0 - 2.88);

        let bytes = Policy { trigger: Trigger::Bytes(3000), ..COALESCE };
        let mut link = LpiState::new(bytes, &PHY);
        assert_eq!(link.ready_at(at(1.0), 2, 3000), at(7.36), "asleep first");
    }

    /// Poisson arrivals of 1500 B without framing: power relative to active, mean wait in µs.
    fn under_poisson(policy: Policy, load: f64) -> (f64, f64) {
        const FRAME: Span = Span::from_ns(1200);
        let mut random = Stream::new(3, "eee");
        let mut gap = || -libm::log(1.0 - random.unit()) * 1.2 / load;
        let mut link = LpiState::new(policy, &PHY);
        let (mut now, mut free, mut wait, mut frames) = (Time::ZERO, Time::ZERO, 0.0, 0_u64);
        let mut held: Vec<Time> = Vec::new();
        let mut ready = Time::NEVER;
        while frames < 400_000 {
            now += Span((gap() * 1e6) as u64);
            if !held.is_empty() && now >= ready {
                link.send(ready);
                free = ready;
                for came in held.drain(..) {
                    wait += us(free.since(came));
                    free += FRAME;
                    frames += 1;
                }
            }
            if held.is_empty() && now <= free {
                link.send(now);
                wait += us(free.since(now));
                free += FRAME;
                frames += 1;
                continue;
            }
            if held.is_empty() {
                link.rest(free);
            }
            held.push(now);
            ready = link.ready_at(now, held.len(), 1500 * held.len() as u64);
        }
        let times = link.times(free);
        (times.joules(&PHY) / (PHY.active_w * free.as_secs_f64()), wait / frames as f64)
    }

    #[test]
    fn power_and_wait_are_those_of_the_formulas() {
        // checks 18 to 20; the last ones from `eastwest model eee`
        let count = Policy { hold: Span::MAX, ..COALESCE };
        for (policy, load, power, wait) in [
            (Policy::STANDARD, 0.1, 0.545, 4.196),
            (Policy::STANDARD, 0.3, 0.868, 4.105),
            (Policy::STANDARD, 0.5, 0.960, 4.352),
            (count, 0.1, 0.238, 56.52),
            (count, 0.3, 0.474, 20.70),
            (count, 0.5, 0.666, 13.83),
            (COALESCE, 0.1, 0.399, 11.78),
            (COALESCE, 0.5, 0.727, 9.744),
        ] {
            let (p, w) = under_poisson(policy, load);
            assert!((p - power).abs() < 0.005, "{policy:?} at {load}: power {p}");
            assert!((w / wait - 1.0).abs() < 0.03, "{policy:?} at {load}: wait {w}");
        }
    }
}
