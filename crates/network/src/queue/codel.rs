//! CoDel (RFC 8289; Nichols and Jacobson, ACM Queue 2012): a port drops packets at dequeue after
//! all packets have waited longer than a target for a whole interval. The time between drops then
//! decreases, until TCP reduces its rate and the queue empties.
//!
//! A packet is *above the target* if it waited for at least `target` and more than one full packet
//! is queued behind it. If all packets were above the target for `interval`, one packet is dropped.
//! Further drops follow after `interval`, `interval/√2`, `interval/√3` and so on, until a packet is
//! below the target (RFC 8289, 5). If dropping begins again within 16 intervals, the drops continue
//! at about the last rate. With `ecn`, ECT packets are marked instead of dropped (Linux,
//! `sch_codel`). A [protected](super::signal::Protection) packet is sent without mark, and the drop
//! or mark applies to the next packet.

use super::decision::{Arrival, Head, Place, Plan, Ports, Verdict, least_packets};
use super::discipline::{BuiltIn, Discipline, QueueSettings};
use super::inert::Inert;
use super::signal::{Signal, read_signal};
use eastwest_settings::{Section, key};
use eastwest_types::{Limit, Rate, Span, Time};
use serde::{Deserialize, Serialize};

/// Settings of CoDel at one port.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoDelConfig {
    /// Target of the queueing delay: longer delays lead to drops or marks if they last.
    pub target: Span,
    /// Time for which all packets must have waited longer than the target before the first drop or
    /// mark.
    pub interval: Span,
    /// How congestion is signalled: by marks or drops.
    pub signal: Signal,
    /// Limit of the queue; packets that do not fit are dropped.
    pub limit: Limit,
}

impl BuiltIn for CoDelConfig {
    const NAME: &'static str = "codel";
    const DOC: &'static str = "drops packets at the head of the queue while they wait too long \
                               (RFC 8289); ports are lazy";

    fn read(s: &mut Section, limit: Limit, _: &Ports) -> CoDelConfig {
        CoDelConfig {
            target: s.get(
                key(
                    "target",
                    "Target of the queueing delay (RFC 8289, 4.4; E-EON: 300 to 800 us).",
                )
                .default("5 ms")
                .range("1 us", "10 s"),
            ),
            interval: s.get(
                key(
                    "interval",
                    "Time for which all packets must have waited longer than `target` before one \
                     is dropped (RFC 8289, 4.3: the longest usual round-trip time; E-EON: 0.75 to \
                     20 ms).",
                )
                .default("100 ms")
                .range("10 us", "100 s"),
            ),
            signal: read_signal(s),
            limit,
        }
    }
}

impl QueueSettings for CoDelConfig {
    type Queue = Box<CoDel>;

    fn limit(&self) -> Limit {
        self.limit
    }

    fn start(&self, place: &Place) -> Box<CoDel> {
        Box::new(CoDel::new(*self, place.mtu))
    }

    fn decides_at_dequeue(&self) -> bool {
        true
    }

    fn target(&self, _: Rate, _: u32) -> Option<Span> {
        Some(self.target)
    }

    fn never_acts(&self, inert: &Inert) -> Vec<String> {
        inert.target(Self::NAME, self.target, self.limit)
    }
}

/// Rules of CoDel at one port: the settings and the MTU, which all queues of the port share.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct CoDelRules {
    config: CoDelConfig,
    /// Largest packet in IP bytes. A packet with at most this number of bytes queued behind it is
    /// not dropped.
    mtu: u64,
}

/// State of CoDel for one queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct CoDelState {
    /// Time from which packets may be dropped if all packets until then are above the target delay;
    /// [`Time::NEVER`] while packets are below the target delay.
    above_at: Time,
    drop_next: Time,
    count: u32,
    last_count: u32,
    dropping: bool,
}

/// CoDel queue: settings and state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CoDel {
    rules: CoDelRules,
    state: CoDelState,
}

impl CoDelRules {
    /// Returns the rules at a port whose MTU is `mtu` bytes.
    pub(super) fn new(config: CoDelConfig, mtu: u32) -> CoDelRules {
        CoDelRules { config, mtu: u64::from(mtu) }
    }

    /// Returns the settings.
    pub(super) fn config(&self) -> &CoDelConfig {
        &self.config
    }

    fn fate(&self, head: Option<Head>) -> Verdict {
        head.map_or(Verdict::Enqueue, |h| self.config.signal.verdict(h.packet))
    }

    /// Returns the time of the next drop after a drop at `from`: later by the interval divided by
    /// √`count` (RFC 8289, 5.4). `count` is the number of drops in the dropping state.
    fn next_drop(&self, from: Time, count: u32) -> Time {
        let interval = u128::from(self.config.interval.0);
        from + Span((interval * interval / u128::from(count.max(1))).isqrt() as u64)
    }
}

impl CoDel {
    /// Returns an empty queue at a port whose MTU is `mtu` bytes.
    pub fn new(config: CoDelConfig, mtu: u32) -> CoDel {
        CoDel { rules: CoDelRules::new(config, mtu), state: CoDelState::new() }
    }

    /// Decides at dequeue about queued packets, see [`CoDelState::next`].
    fn next<'p>(&mut self, now: Time, heads: impl Iterator<Item = Head<'p>>) -> Plan {
        self.state.next(&self.rules, now, heads)
    }
}

impl CoDelState {
    /// Returns the state of an empty queue.
    pub(super) fn new() -> CoDelState {
        CoDelState {
            above_at: Time::NEVER,
            drop_next: Time::ZERO,
            count: 0,
            last_count: 0,
            dropping: false,
        }
    }

    /// Updates the state when the port looks for a packet and the queue is empty.
    #[inline]
    pub(super) fn becomes_empty(&mut self) {
        self.above_at = Time::NEVER;
        self.dropping = false;
    }

    /// Whether a packet queued at `since` may be sent without a decision of CoDel. If the result is
    /// true, also updates the state as the decision would.
    #[inline]
    pub(super) fn passes_without_decision(
        &mut self,
        rules: &CoDelRules,
        now: Time,
        since: Time,
    ) -> bool {
        let calm = !self.dropping && since.after(rules.config.target) > now;
        if calm {
            self.above_at = Time::NEVER;
        }
        calm
    }

    /// Whether the packet at the head of the queue may be dropped, because all packets have been
    /// above the target delay for an interval. Also updates `above_at`, the time from which drops
    /// are allowed.
    fn is_late(&mut self, rules: &CoDelRules, now: Time, head: Option<Head>) -> bool {
        let target = rules.config.target;
        let above = head.is_some_and(|h| now.since(h.since) >= target && h.left.bytes > rules.mtu);
        if !above {
            self.above_at = Time::NEVER;
        } else if self.above_at == Time::NEVER {
            self.above_at = now + rules.config.interval;
        } else {
            return now >= self.above_at;
        }
        false
    }

    /// Decides at dequeue about queued packets, which `heads` yields from the head of the queue.
    /// Returns how many packets the port drops, and whether the port marks the next packet.
    pub(super) fn next<'p>(
        &mut self,
        rules: &CoDelRules,
        now: Time,
        mut heads: impl Iterator<Item = Head<'p>>,
    ) -> Plan {
        let head = heads.next();
        let late = self.is_late(rules, now, head);
        if self.dropping {
            return self.go_on(rules, now, (head, late), heads);
        }
        let mut plan = Plan::default();
        match rules.fate(head.filter(|_| late)) {
            Verdict::Enqueue => return plan,
            Verdict::Mark => plan.mark = true,
            Verdict::Drop | Verdict::DropEarly | Verdict::Trim => {
                plan.drop = 1;
                let head = heads.next();
                self.is_late(rules, now, head);
            }
        }
        let before = self.count - self.last_count;
        let recent = now.since(self.drop_next) < rules.config.interval * 16;
        self.dropping = true;
        self.count = if before > 1 && recent { before } else { 1 };
        self.last_count = self.count;
        self.drop_next = rules.next_drop(now, self.count);
        plan
    }

    /// Decides at dequeue in the dropping state: plans all drops that are due, and leaves the state
    /// if a packet is below the target delay. `head` is the first packet, and `late` whether it may
    /// be dropped.
    fn go_on<'p>(
        &mut self,
        rules: &CoDelRules,
        now: Time,
        (mut head, mut late): (Option<Head<'p>>, bool),
        mut heads: impl Iterator<Item = Head<'p>>,
    ) -> Plan {
        let mut plan = Plan::default();
        self.dropping = late;
        while self.dropping && now >= self.drop_next {
            let fate = rules.fate(head);
            if fate == Verdict::Enqueue {
                break;
            }
            self.count = self.count.saturating_add(1);
            plan.mark = fate == Verdict::Mark;
            if !plan.mark {
                plan.drop += 1;
                head = heads.next();
                late = self.is_late(rules, now, head);
                self.dropping = late;
            }
            if late {
                self.drop_next = rules.next_drop(self.drop_next, self.count);
            }
            if plan.mark {
                break;
            }
        }
        plan
    }
}

impl Discipline for CoDel {
    #[inline]
    fn at_enqueue(&mut self, arrival: &Arrival) -> Verdict {
        arrival.fits(self.rules.config.limit)
    }

    #[inline]
    fn at_dequeue<'p, I: Iterator<Item = Head<'p>>>(
        &mut self,
        now: Time,
        heads: impl FnOnce() -> I,
    ) -> Plan {
        self.next(now, heads())
    }

    fn admits_below(&self, mtu: u32) -> u32 {
        least_packets(self.rules.config.limit, mtu)
    }

    fn packet_thresholds(&self) -> Option<[u32; 2]> {
        match self.rules.config.limit {
            Limit::Packets(limit) => Some([limit; 2]),
            Limit::Bytes(_) => None,
        }
    }

    #[inline]
    fn passes_below(&self) -> Span {
        let at_rest = !self.state.dropping && self.state.above_at == Time::NEVER;
        if at_rest { self.rules.config.target } else { Span::ZERO }
    }

    #[inline]
    fn passes_without_decision(&mut self, now: Time, since: Time) -> bool {
        self.state.passes_without_decision(&self.rules, now, since)
    }
}

#[cfg(test)]
mod tests {
    use super::super::decision::Backlog;
    use super::super::signal::Protection;
    use super::*;
    use crate::packet_handle::PacketHandle;
    use crate::pool::Stored;
    use eastwest_types::{HostId, Packet, ecn};

    fn codel(ecn: bool) -> CoDel {
        let signal = Signal { ecn, protection: Protection::Bypass };
        let (target, interval) = (Span::from_ms(5), Span::from_ms(100));
        CoDel::new(CoDelConfig { target, interval, signal, limit: Limit::Packets(1000) }, 1500)
    }

    fn stored(tos: u8) -> Stored {
        Stored::new(&Packet { tos, payload: 1448, ..Packet::blank(HostId(1)) })
    }

    /// Returns a packet that has waited for `waited_ms` ms and has `left` IP bytes queued behind
    /// it.
    fn head(now: Time, waited_ms: u64, left: u64, packet: &Stored) -> Head<'_> {
        let since = Time(now.0 - Span::from_ms(waited_ms).0);
        let handle = PacketHandle::default().arriving(since);
        Head::new(&handle, Backlog { packets: 1, bytes: left }, packet)
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    /// Returns the times of drops from 1 s on, in units of 100 µs. Every 100 µs a packet is
    /// dequeued, which has waited for 10 ms and has `left` bytes queued behind it.
    fn drops(c: &mut CoDel, left: u64, until_ms: u64) -> Vec<u64> {
        let (ect, mut times) = (stored(ecn::ECT0), Vec::new());
        for step in 0..until_ms * 10 {
            let now = at(1_000_000 + step * 100);
            let plan = c.next(now, std::iter::repeat(head(now, 10, left, &ect)));
            times.extend(std::iter::repeat_n(step, plan.drop));
        }
        times
    }

    #[test]
    fn drops_come_at_the_times_of_check_12() {
        let times = drops(&mut codel(false), 100_000, 480);
        // The first drop is 100 ms after the queueing delay has exceeded the target. The times of
        // the others are relative to the first drop.
        assert_eq!(times[0], 1_000);
        let after: Vec<u64> = times[1..].iter().map(|t| t - 1_000).collect();
        let expected = [1_000, 1_707, 2_284, 2_784, 3_232, 3_640];
        assert!(after.len() == expected.len(), "{after:?}");
        for (time, expected) in after.iter().zip(expected) {
            assert!(time.abs_diff(expected) <= 1, "{after:?}");
        }
    }

    #[test]
    fn a_queue_of_less_than_a_full_packet_is_left_alone() {
        assert!(drops(&mut codel(false), 1_500, 1_000).is_empty());
    }

    #[test]
    fn one_packet_below_the_target_ends_it_and_soon_after_it_goes_on_faster() {
        let mut c = codel(false);
        assert!(drops(&mut c, 100_000, 400).len() >= 4);
        let ect = stored(ecn::ECT0);
        let short = head(at(1_400_100), 0, 100_000, &ect);
        let plan = c.next(at(1_400_100), std::iter::repeat(short));
        assert_eq!(plan, Plan::default());
        // The queueing delay exceeds the target again. After one interval, drops continue at the
        // last rate, not at the initial rate.
        let count = c.state.count;
        let mut times = Vec::new();
        for step in 0..1_600 {
            let now = at(1_400_200 + step * 100);
            let plan = c.next(now, std::iter::repeat(head(now, 10, 9_000, &ect)));
            times.extend(std::iter::repeat_n(step, plan.drop));
        }
        assert_eq!(times[0], 1_000);
        assert!(count > 3 && times[1] - times[0] < 600, "{times:?} after {count}");
    }

    #[test]
    fn with_ecn_packets_are_marked_instead() {
        let mut c = codel(true);
        let (ect, mut marks) = (stored(ecn::ECT0), 0);
        for step in 0..4_800 {
            let now = at(1_000_000 + step * 100);
            let plan = c.next(now, std::iter::repeat(head(now, 10, 100_000, &ect)));
            assert_eq!(plan.drop, 0);
            marks += usize::from(plan.mark);
        }
        assert_eq!(marks, 7);
    }

    #[test]
    fn a_spared_packet_leaves_the_next_one_in_its_place() {
        // Without ECN, the protection `Bypass` protects all packets that are not ECT.
        let mut c = codel(false);
        let (ect, other, mut drops) = (stored(ecn::ECT0), stored(ecn::NOT_ECT), Vec::new());
        for step in 0..2_000 {
            let now = at(1_000_000 + step * 100);
            // The packet is not ECT from 90 to 110 ms after the delay has exceeded the target; the
            // first drop is due in this time.
            let packet = if (900..1_100).contains(&step) { &other } else { &ect };
            if c.next(now, std::iter::repeat(head(now, 10, 9_000, packet))).drop > 0 {
                drops.push(step);
            }
        }
        assert_eq!(drops[0], 1_100);
    }
}
