//! Energy-Efficient Ethernet (IEEE 802.3az): low-power idle (LPI) of one direction of a link.
//!
//! A port that has nothing left to send stays awake for the stall timer, then goes to sleep, which takes Ts,
//! and is asleep. Packets that arrive after that are held until waking may begin, and for the wake time Tw
//! more. Waking may begin when the link is asleep and, where packets are coalesced, the first held packet has
//! waited for the holding timer or the trigger is reached (Christensen et al., IEEE Comm. Mag. 48(11), 2010;
//! Reviriego et al., IEEE Comm. Lett. 13(9), 2009). The transition to sleep cannot be interrupted. A packet
//! that comes at the instant at which the transition would begin finds the link awake: otherwise back-to-back
//! packets of equal rates would each meet a sleeping link.
//!
//! The holding timer may adapt. Where the transitions took more than a given share of the time since the last
//! wake, the next packets are held for twice as long, and otherwise for half: with little traffic sleeping
//! costs little and nothing is held, with more traffic several wakes become one. This rule is our own.
//!
//! Packets that come meanwhile wait in the queue of the port or, where the link layer has a buffer of its own
//! ([`SleepBuffer::Link`]), below it.
//!
//! Times are exact, nothing is sampled: the time in each state follows from when the link became idle and when
//! it woke.

use super::phy::Phy;
use crate::queue::Backlog;
use eastwest_settings::{Section, key};
use eastwest_types::{Limit, Span, Time};
use serde::{Deserialize, Serialize};

/// Held packets or bytes at which waking begins at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Trigger {
    /// This number of packets.
    Packets(u32),
    /// This number of IP bytes.
    Bytes(u64),
}

/// Buffer in which packets wait while the link goes to sleep, is asleep or wakes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum SleepBuffer {
    /// The queue of the port: held packets need room there, and its discipline counts them.
    #[default]
    Port,
    /// A buffer of the link layer below the queue, with this limit (`None`: no limit): held packets
    /// bypass the empty queue. Packets beyond the limit wait in the queue.
    Link(Option<Limit>),
}

impl SleepBuffer {
    /// Reads the setting from the table of links that sleep.
    pub(super) fn read(s: &mut Section) -> SleepBuffer {
        let below = s.choice(
            "sleep_buffer",
            "Buffer for packets that arrive while the link falls asleep, sleeps or wakes.",
            Some("port"),
            &[
                (
                    "port",
                    false,
                    "the port's queue: these packets count for its limit and its discipline",
                ),
                (
                    "link",
                    true,
                    "a buffer of the link layer below the queue: these packets do not count for \
                     the queue's limit and discipline, and they leave first (E-EON's module)",
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
                    "Size of the link layer's buffer, in packets or IP bytes; further packets \
                     wait in the queue.",
                )
                .optional("no limit"),
            ),
        )
    }

    /// Whether a packet of `ip_len` bytes goes to the buffer of the link layer while the link does not send,
    /// with `held` in that buffer and `queued` packets in the queue. No packet overtakes those in the queue.
    fn fits(self, held: Backlog, queued: usize, ip_len: u16) -> bool {
        let fits = match self {
            SleepBuffer::Port => false,
            SleepBuffer::Link(None) => true,
            SleepBuffer::Link(Some(Limit::Packets(n))) => held.packets < n as usize,
            SleepBuffer::Link(Some(Limit::Bytes(n))) => held.bytes + u64::from(ip_len) <= n,
        };
        fits && queued == 0
    }
}

/// Policy that decides when a link goes to sleep and wakes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Policy {
    /// Time for which the link stays awake with nothing to send.
    pub stall: Span,
    /// Time for which the first packet that finds the link asleep is held.
    pub hold: Span,
    /// Number of packets or bytes that ends holding before `hold` is over.
    pub trigger: Trigger,
    /// For an adaptive holding time of up to `hold`: share of time in transitions, in millionths,
    /// above which packets are held for longer. `None`: the holding time is always `hold`.
    pub waste_ppm: Option<u32>,
    /// Buffer in which packets wait while the link is not awake.
    pub buffer: SleepBuffer,
}

impl Policy {
    /// Policy of IEEE 802.3az: the link sleeps as soon as nothing is left to send, and wakes for
    /// the first packet.
    pub const STANDARD: Policy = Policy {
        stall: Span::ZERO,
        hold: Span::ZERO,
        trigger: Trigger::Packets(1),
        waste_ppm: None,
        buffer: SleepBuffer::Port,
    };
}

/// Time of a link in each state. Together they are the time that has passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StateTimes {
    /// Time awake: sending, or with nothing to send.
    pub awake: Span,
    /// Time in transition to sleep.
    pub falling: Span,
    /// Time asleep.
    pub asleep: Span,
    /// Time in transition to awake.
    pub waking: Span,
    /// Number of wakes that have begun.
    pub wakes: u64,
}

impl StateTimes {
    /// Returns these times with only `asleep` of the time asleep; the rest of that time counts as
    /// awake.
    pub fn asleep_only(self, asleep: Span) -> StateTimes {
        StateTimes { awake: self.awake + (self.asleep - asleep), asleep, ..self }
    }

    /// Returns the sum of the times in all states: the time that has passed.
    pub fn total(&self) -> Span {
        self.awake + self.falling + self.asleep + self.waking
    }

    /// Returns the energy in joules of a transceiver that was in the states for these times.
    pub fn joules(&self, phy: &Phy) -> f64 {
        let full = self.awake + self.falling + self.waking;
        phy.active_w * full.as_secs_f64() + phy.asleep_w * self.asleep.as_secs_f64()
    }
}

/// One period of low-power idle (LPI) of a link, from the start of the transition to sleep to the
/// next time awake.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LpiPeriod {
    /// Start of the transition to sleep.
    pub falls: Time,
    /// End of the transition to sleep.
    pub asleep: Time,
    /// Start of the transition to awake.
    pub wakes: Time,
    /// End of the transition to awake: the first packet can be sent.
    pub awake: Time,
}

/// First LPI periods of a link in a window of time, and the number of others.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LpiLog {
    /// LPI periods in the log, in order of time.
    pub periods: Vec<LpiPeriod>,
    /// Largest number of periods in the log.
    max_rows: usize,
    /// Start and end of the window: periods that end by its start or begin after its end are not logged.
    window: (Time, Time),
    /// Number of LPI periods of the window for which there was no room in the log.
    pub left_out: u64,
}

impl LpiLog {
    /// Returns a log for at most `max_rows` LPI periods that lie at least partly within the window
    /// (start, end).
    pub fn new(max_rows: usize, window: (Time, Time)) -> LpiLog {
        LpiLog { max_rows, window, ..LpiLog::default() }
    }

    fn note(&mut self, period: LpiPeriod) {
        if period.awake <= self.window.0 || period.falls >= self.window.1 {
            return;
        }
        if self.periods.len() < self.max_rows {
            self.periods.push(period);
        } else {
            self.left_out += 1;
        }
    }
}

/// State of low-power idle (LPI) of one direction of a link.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LpiState {
    policy: Policy,
    wake: Span,
    sleep: Span,
    /// Time since which nothing is left to send, or never.
    idle_since: Time,
    /// Time at which waking begins, or never; only while idle.
    wake_from: Time,
    /// Time for which the first packet that finds the link asleep is held now.
    hold: Span,
    /// Times in each state, up to the last wake.
    past: StateTimes,
    /// Time of the last wake.
    awake_since: Time,
    /// Time for which both directions slept: the sum of the spans of [`LpiState::add_common_sleep`].
    common_sleep: Span,
    /// Time at which a packet last bypassed the queue into the buffer of the link layer.
    last_bypass: Time,
    /// At eager ports with such a buffer: number, counted from 0, of the first packet of the link that is not
    /// in the buffer.
    buffered_until: u64,
    /// Packets in the queue while earlier packets are in the buffer.
    queued_behind: Backlog,
    /// Log of LPI periods, where the scenario wants one.
    log: Option<Box<LpiLog>>,
}

impl LpiState {
    /// Returns a link that is awake and idle at time zero.
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
            common_sleep: Span::ZERO,
            last_bypass: Time::ZERO,
            buffered_until: 0,
            queued_behind: Backlog::default(),
            log: None,
        }
    }

    /// Whether a packet that arrives while the link is not awake goes to the buffer of the link
    /// layer; `held` is that buffer's content and `queued` the number of packets in the queue.
    pub fn fits_link_buffer(&self, held: Backlog, queued: usize, ip_len: u16) -> bool {
        self.policy.buffer.fits(held, queued, ip_len)
    }

    /// Returns since when the queue that packets bypass has been empty: since the last bypass or, before the
    /// first one, since `clear_at`, when the last packet had been sent.
    pub fn queue_empty_since(&self, clear_at: Time) -> Time {
        if self.wake_from == Time::NEVER { clear_at } else { self.last_bypass }
    }

    /// Notes that a packet bypasses the queue into the buffer of the link layer.
    pub fn bypass_queue(&mut self, now: Time) {
        self.last_bypass = now;
    }

    /// Notes, at an eager port, that packet `number` of the link, counted from 0, bypasses the
    /// queue into the buffer of the link layer.
    pub fn bypass_queue_eager(&mut self, now: Time, number: u64) {
        self.last_bypass = now;
        self.buffered_until = number + 1;
        self.queued_behind = Backlog::default();
    }

    /// Returns, at an eager port, the part of the waiting packets that is in the queue and not in
    /// the buffer of the link layer; `next` is the number of the first waiting packet.
    pub fn queue_backlog(&self, next: u64, waits: Backlog) -> Backlog {
        if next < self.buffered_until { self.queued_behind } else { waits }
    }

    /// Counts, at an eager port, a packet of `ip_len` IP bytes that waits in the queue.
    pub fn count_queued(&mut self, ip_len: u16) {
        self.queued_behind.packets += 1;
        self.queued_behind.bytes += u64::from(ip_len);
    }

    /// Logs LPI periods from now on.
    pub fn keep_log(&mut self, log: LpiLog) {
        self.log = Some(Box::new(log));
    }

    /// Returns a copy of the state without its log, to predict states from.
    pub fn without_log(&self) -> LpiState {
        LpiState { log: None, ..*self }
    }

    /// Removes and returns the log of LPI periods; `None` if no log is kept. A period that has not
    /// ended by `now` ends at `now`.
    pub fn take_log(&mut self, now: Time) -> Option<LpiLog> {
        let mut log = self.log.take()?;
        let falls = self.sleep_from();
        if self.idle_since != Time::NEVER && falls < now {
            let [asleep, wakes] = [falls + self.sleep, self.wake_from].map(|at| at.min(now));
            log.note(LpiPeriod { falls, asleep, wakes, awake: now });
        }
        Some(*log)
    }

    /// Returns when the transition to sleep begins or has begun; only while idle.
    fn sleep_from(&self) -> Time {
        self.idle_since.max(self.awake_since) + self.policy.stall
    }

    /// Whether a packet that arrives now must wait for the link to wake; for a link that is not sending.
    pub fn is_asleep(&self, now: Time) -> bool {
        self.idle_since != Time::NEVER && now > self.idle_since + self.policy.stall
    }

    /// Notes that the port has nothing left to send from `now` on.
    pub fn become_idle(&mut self, now: Time) {
        self.idle_since = now;
    }

    /// Plans the wake of a link that [is asleep](LpiState::is_asleep) and holds `packets` packets
    /// of `bytes` IP bytes, including the packet that has just arrived. Returns the time at which
    /// the link will be awake. Later packets can only bring that time forward.
    pub fn plan_wake(&mut self, now: Time, packets: usize, bytes: u64) -> Time {
        let sleep_from = self.idle_since + self.policy.stall;
        let held_until = match self.policy.trigger {
            Trigger::Packets(n) if packets >= n as usize => now,
            Trigger::Bytes(n) if bytes >= n => now,
            _ => now + self.hold,
        };
        self.wake_from = self.wake_from.min(held_until.max(sleep_from + self.sleep));
        self.wake_from + self.wake
    }

    /// Notes that a packet is sent: the link was awake, or wakes now, at the time from [`LpiState::plan_wake`].
    pub fn send(&mut self, now: Time) {
        if self.wake_from == Time::NEVER {
            self.idle_since = Time::NEVER;
            return;
        }
        self.past = self.times(now);
        let (falls, wakes) = (self.sleep_from(), self.wake_from);
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

    /// Adapts the holding time, at a wake; `cycle` is the time since the last one.
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

    /// Brings the sleep state up to date at a port without an event for each departure; the port
    /// had sent all packets at `clear_at`.
    pub fn catch_up(&mut self, now: Time, clear_at: Time) {
        if self.wake_from != Time::NEVER {
            let ready = self.wake_from + self.wake;
            if ready > now {
                return;
            }
            self.send(ready);
        }
        if self.idle_since == Time::NEVER && clear_at <= now {
            self.become_idle(clear_at);
        }
    }

    /// Returns start and end of the sleep in the present LPI period; the end is never while no
    /// packet is held. `None` while the link is not idle.
    pub fn sleep_interval(&self) -> Option<(Time, Time)> {
        let sleep_from = self.sleep_from();
        (self.idle_since != Time::NEVER).then(|| (sleep_from + self.sleep, self.wake_from))
    }

    /// Adds time for which both directions of the cable slept.
    pub fn add_common_sleep(&mut self, span: Span) {
        self.common_sleep += span;
    }

    /// Returns the time for which both directions slept: the sum of the spans of
    /// [`LpiState::add_common_sleep`].
    pub fn common_sleep(&self) -> Span {
        self.common_sleep
    }

    /// Returns the time at which the link will be awake; `None` unless it is not awake and has held
    /// packets.
    pub fn awake_at(&self) -> Option<Time> {
        (self.wake_from != Time::NEVER).then(|| self.wake_from + self.wake)
    }

    /// Returns the time in each state until `now`.
    pub fn times(&self, now: Time) -> StateTimes {
        let mut times = self.past;
        let sleep_from = self.sleep_from();
        if self.idle_since == Time::NEVER || sleep_from >= now {
            times.awake += now.since(self.awake_since);
            return times;
        }
        let asleep_from = (sleep_from + self.sleep).min(now);
        let wakes_from = self.wake_from.min(now);
        times.awake += sleep_from.since(self.awake_since);
        times.falling += asleep_from.since(sleep_from);
        times.asleep += wakes_from.since(asleep_from);
        times.waking += now.since(wakes_from);
        times.wakes += u64::from(wakes_from < now);
        times
    }
}

/// Returns the time, until `now`, for which both directions of a cable are asleep together in their
/// current LPI periods.
pub fn common_sleep(a: &LpiState, b: &LpiState, now: Time) -> Span {
    let (Some(a), Some(b)) = (a.sleep_interval(), b.sleep_interval()) else { return Span::ZERO };
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
        assert!(link.is_asleep(at(100.0)));
        assert_eq!(link.plan_wake(at(100.0), 1, 1500), at(104.48));
        assert_eq!(link.plan_wake(at(101.0), 2, 3000), at(104.48));
        link.send(at(104.48));
        let times = link.times(at(104.48));
        assert_eq!((us(times.falling), us(times.asleep), us(times.waking)), (2.88, 97.12, 4.48));
        assert_eq!((times.awake, times.wakes), (Span::ZERO, 1));

        // while the link falls asleep
        link.become_idle(at(110.0));
        assert_eq!(link.plan_wake(at(111.0), 1, 1500), at(117.36));
        link.send(at(117.36));
        // at the instant of becoming idle, and while sending
        link.become_idle(at(120.0));
        assert!(!link.is_asleep(at(120.0)));
        link.send(at(120.0));
        assert!(!link.is_asleep(at(120.5)));
        let times = link.times(at(130.0));
        assert_eq!(us(times.awake), 5.52 + 12.64);
        assert_eq!((times.total(), times.wakes), (Span::from_us(130), 2));
    }

    #[test]
    fn a_stall_timer_keeps_a_link_awake() {
        let policy = Policy { stall: Span::from_us(50), ..Policy::STANDARD };
        let mut link = LpiState::new(policy, &PHY);
        assert!(!link.is_asleep(at(50.0)) && link.is_asleep(at(50.001)));
        link.send(at(50.0));
        link.become_idle(at(60.0));
        assert_eq!(link.plan_wake(at(111.0), 1, 1500), at(117.36));
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
                .filter_map(|of| links[of].awake_at().map(|ready| (ready, of)))
                .filter(|(ready, _)| *ready <= now)
                .min()
            {
                both += common_sleep(&links[0], &links[1], ready);
                let (from, to) = links[of].sleep_interval().expect("it sleeps");
                naps[of].push((from, to));
                links[of].send(ready);
                links[of].become_idle(ready + Span::from_ns(1 + random.below(500)));
            }
            let of = random.below(2) as usize;
            if random.below(4) == 0 && links[of].is_asleep(now) {
                links[of].plan_wake(now, 1, 1500);
            }
        }
        both += common_sleep(&links[0], &links[1], now);
        for (link, naps) in links.iter().zip(&mut naps) {
            naps.extend(link.sleep_interval().map(|(from, to)| (from, to.min(now))));
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
            let ready = link.plan_wake(at(now), 1, 1500);
            holds.push((us(ready.since(at(now))) - 4.48).round());
            link.send(ready);
            link.become_idle(ready);
            now = (ready.0 as f64) / 1e6 + gap;
        }
        assert_eq!(holds, [0.0, 0.0, 4.0, 9.0, 18.0, 36.0, 40.0, 40.0, 20.0, 10.0]);
    }

    #[test]
    fn frames_are_held_until_the_timer_or_the_trigger() {
        let mut link = LpiState::new(COALESCE, &PHY);
        assert_eq!(link.plan_wake(at(100.0), 1, 1500), at(116.48));
        assert_eq!(link.plan_wake(at(108.0), 9, 13_500), at(116.48));
        assert_eq!(link.plan_wake(at(109.0), 10, 15_000), at(113.48), "the tenth wakes it");
        assert_eq!(link.plan_wake(at(110.0), 11, 16_500), at(113.48));
        link.send(at(113.48));
        assert_eq!(us(link.times(at(113.48)).asleep), 109.0 - 2.88);

        let bytes = Policy { trigger: Trigger::Bytes(3000), ..COALESCE };
        let mut link = LpiState::new(bytes, &PHY);
        assert_eq!(link.plan_wake(at(1.0), 2, 3000), at(7.36), "asleep first");
    }

    /// Returns the power relative to active, and the mean wait in µs, for Poisson arrivals of 1500 B without
    /// framing.
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
                link.become_idle(free);
            }
            held.push(now);
            ready = link.plan_wake(now, held.len(), 1500 * held.len() as u64);
        }
        let times = link.times(free);
        (times.joules(&PHY) / (PHY.active_w * free.as_secs_f64()), wait / frames as f64)
    }

    #[test]
    fn power_and_wait_are_those_of_the_formulas() {
        // checks 18 to 20 of the model; the last ones are from `eastwest model eee`
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
