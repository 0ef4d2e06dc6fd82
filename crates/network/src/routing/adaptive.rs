//! Adaptive routing on congestion notifications, as studied by Minkenberg, Scicchitano and Gusat (*Adaptive
//! Routing for Convergence Enhanced Ethernet*, HPSR 2009) and Gusat et al. (*Benchmarking the
//! Ethernet-Federated Datacenter*, 2009).
//!
//! QCN (IEEE 802.1Qau) sends a notification message (CNM) from a congested port to the source of a packet that
//! waits there. If the CNM takes the path of the flow backwards, it enters each switch by the port through
//! which the flow leaves. Switches read it:
//!
//! 1. The switch marks this output port as congested for the receiving host of the flow, with the severity that
//!    the CNM states (its quantised feedback).
//! 2. Eligible ports for a receiver are those on shortest paths. The static choice, receiver mod n, comes
//!    first, the others follow in their cyclic order; marked ports go behind all that are not marked, the more
//!    severe ones later.
//! 3. If an eligible port is left unmarked, the flow takes it from now on and the switch absorbs the CNM. If
//!    not, the CNM goes on upstream: the next switch may have another path, and the source reduces its rate
//!    only if no switch had.
//! 4. A mark expires when no CNM has renewed it for the time of a timer (250 ms in the study, which does not
//!    state what exactly expires).
//!
//! With [`Persistence`] the last step has two conditions, as in the study: "(ii) *if* all admissible
//! multi-pathing options have been exhausted *and* if the hotspot persists, to enable QCN to perform
//! source-injection rate control." While all eligible ports are marked, the flow is on the least severe one.
//! The switch absorbs the CNM that moves the flow there, and those about ports that the flow has left; of those
//! about the port that was taken it absorbs the first few (a number, or for a time), and all later ones go on:
//! the hotspot persists. This starts again when the flow goes to another port, since a mark has expired or
//! another port is now less severe.
//!
//! With `ageing` the severity of a mark is its feedback times the rest of its time, so that of two ports with
//! the same feedback the one with the older mark comes first.
//!
//! Differences: the papers leave open whether a CNM that a switch has acted upon still reaches the source; here
//! it does not, after the study's "only when no uncongested path is left does the source rate-limit". Nor do
//! they state how CNMs find the path backwards; here switches know it (a real switch could learn it from the
//! frames of the flow), and a CNM whose flow has taken another path meanwhile is routed like other packets.
//! Paths stay shortest, so there are no loops.

use super::chooser::{BuiltIn, Chooser, RoutingSettings};
use super::modulo::modulo;
use super::query::{Query, View};
use eastwest_settings::{Section, key};
use eastwest_types::{HostId, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Settings of adaptive routing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdaptiveConfig {
    /// Time after the last CNM for which a port counts as congested for a receiver (is marked).
    pub timer: Span,
    /// Whether the severity of a congested port decreases with time, linearly to zero at the end of
    /// `timer`.
    pub ageing: bool,
    /// Condition for a hotspot that persists; `None`: a CNM goes on towards its source as soon as
    /// all eligible ports are marked.
    pub persistence: Option<Persistence>,
}

/// Limits up to which a switch absorbs CNMs about a port that was taken while all eligible ports
/// were marked; beyond the first limit reached, the hotspot persists and CNMs go on to their
/// source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Persistence {
    /// Number of CNMs about the port that the switch absorbs; `None`: only `time` counts.
    pub cnms: Option<u32>,
    /// Time after the choice of the port in which the switch absorbs CNMs about it; `None`: only
    /// `cnms` counts.
    pub time: Option<Span>,
}

impl BuiltIn for AdaptiveConfig {
    const NAME: &'static str = "adaptive";
    const DOC: &'static str = "as modulo, but flows avoid ports whose congestion is known from \
                               passing QCN notifications (Minkenberg et al. 2009)";
    const KEYS: &'static [&'static str] =
        &["adaptive_timer", "adaptive_ageing", "adaptive_persist_cnms", "adaptive_persist_time"];

    fn read(s: &mut Section) -> AdaptiveConfig {
        const TIMER: &str = "With adaptive: time after the latest QCN notification during which a \
                             port counts as congested for a receiver (Gusat et al. 2009: 250 ms).";
        const AGEING: &str = "With adaptive: whether the severity of a congested port (its latest \
                              feedback) falls linearly with time, to 0 after adaptive_timer.";
        const CNMS: &str = "With adaptive, when all ports for a receiver are congested: the flow \
                            uses the least congested port, and the switch discards this number of \
                            notifications about it before it forwards one to the source (Gusat et \
                            al. 2009: \"if the hotspot persists\").";
        const TIME: &str = "With adaptive: time after the choice of the least congested port \
                            during which the switch discards notifications about it. If \
                            adaptive_persist_cnms is set too, the first of the two limits counts.";
        const AT_ONCE: &str = "no such limit; without both limits every notification goes on to \
                               the source while all ports for the receiver are congested";
        let timer = key("adaptive_timer", TIMER).optional("250 ms").range("1 us", "1000 s");
        let timer = s.find(timer).unwrap_or(Span::from_ms(250));
        let ageing = key("adaptive_ageing", AGEING).optional(
            "false: the severity stays at the \
             latest feedback",
        );
        let ageing = s.find(ageing).unwrap_or(false);
        let cnms = key("adaptive_persist_cnms", CNMS).optional(AT_ONCE).range("0", "1000000");
        let time = key("adaptive_persist_time", TIME).optional(AT_ONCE).range("0 s", "1000 s");
        let (cnms, time) = (s.find(cnms), s.find(time));
        let persists = cnms.is_some() || time.is_some();
        let persistence = persists.then_some(Persistence { cnms, time });
        AdaptiveConfig { timer, ageing, persistence }
    }
}

impl RoutingSettings for AdaptiveConfig {
    type Chooser = Adaptive;

    fn start(&self, switches: u32, _seed: u64) -> Adaptive {
        Adaptive::new(*self, switches)
    }

    fn weighs(&self) -> bool {
        false
    }
}

/// Action of a switch on a CNM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snooped {
    /// The CNM ends here: the flow takes another path.
    Absorbed,
    /// The CNM goes on towards the source.
    Pass,
}

/// Counts of adaptive routing, over all switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdaptiveCounts {
    /// Number of CNMs that marked a port as congested.
    pub marked: u64,
    /// Number of CNMs that a switch absorbed: its flow takes another port, or it is counted in
    /// `held`.
    pub absorbed: u64,
    /// Number of CNMs that were absorbed although all eligible ports were marked; `None` without
    /// [`Persistence`].
    pub held: Option<u64>,
    /// Number of packets that left by another port than that of static routing.
    pub moved: u64,
}

/// Congestion of an output port for a receiver.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Mark {
    until: Time,
    severity: u8,
}

/// Marks by receiver and link.
type Marks = BTreeMap<(u32, u32), Mark>;

/// Port to a receiver that was taken when all eligible ones were marked.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Taken {
    link: u32,
    since: Time,
    /// Number of CNMs about the port since it was taken.
    cnms: u32,
    /// Time at which the last mark expires.
    until: Time,
}

/// State of adaptive routing: marks and counts of all switches.
#[derive(Serialize, Deserialize)]
pub struct Adaptive {
    timer: Span,
    ageing: bool,
    persistence: Option<Persistence>,
    /// Marks by switch.
    marks: Vec<Marks>,
    /// Ports by switch and receiver, for [`Persistence`].
    taken: BTreeMap<(u32, u32), Taken>,
    /// Counts of the actions of all switches.
    pub counts: AdaptiveCounts,
}

impl Adaptive {
    /// Returns the state without congestion.
    fn new(config: AdaptiveConfig, switches: u32) -> Adaptive {
        Adaptive {
            timer: config.timer,
            ageing: config.ageing,
            persistence: config.persistence,
            marks: vec![Marks::new(); switches as usize],
            taken: BTreeMap::new(),
            counts: AdaptiveCounts {
                held: config.persistence.map(|_| 0),
                ..AdaptiveCounts::default()
            },
        }
    }

    /// Returns the index, among `members`, of the port that a packet to a host would take at a
    /// switch.
    pub fn prefer(&self, now: Time, switch: u32, dst: HostId, members: &[u32]) -> usize {
        best(&self.marks[switch as usize], self.ageing, now, dst, members).0
    }

    /// Marks output link `link` of a switch as congested for receiver `dst`, with the feedback of a
    /// CNM as severity; `members` are the links of eligible ports. Returns whether the CNM ends
    /// here.
    pub fn snoop(
        &mut self,
        now: Time,
        switch: u32,
        dst: HostId,
        members: &[u32],
        (link, severity): (u32, u8),
    ) -> Snooped {
        // the CNM entered by a port that does not lead to the receiver: it is not on the path of the flow
        if !members.contains(&link) {
            return Snooped::Pass;
        }
        let marks = &mut self.marks[switch as usize];
        if marks.len() > 64 {
            marks.retain(|_, mark| mark.until > now);
        }
        let before = best(marks, self.ageing, now, dst, members);
        let until = now + self.timer;
        marks.insert((dst.0, link), Mark { until, severity });
        self.counts.marked += 1;
        let after = best(marks, self.ageing, now, dst, members);
        if after.1.is_none() {
            self.counts.absorbed += 1;
            return Snooped::Absorbed;
        }
        let Some(persistence) = self.persistence else { return Snooped::Pass };
        // whether the flow was on this port, with all others marked as well, and stays there
        let stays = before.0 == after.0 && before.1.is_some();
        let port = (switch, dst, members[after.0]);
        if self.persists(persistence, (now, until), port, stays, link) {
            return Snooped::Pass;
        }
        self.counts.absorbed += 1;
        self.counts.held = self.counts.held.map(|held| held + 1);
        Snooped::Absorbed
    }

    /// Whether a CNM about `link` shows that the hotspot persists on the port that was taken as the least
    /// severe one; `stays` tells that it was taken before.
    fn persists(
        &mut self,
        persistence: Persistence,
        (now, until): (Time, Time),
        (switch, dst, port): (u32, HostId, u32),
        stays: bool,
        link: u32,
    ) -> bool {
        if self.taken.len() > 64 * self.marks.len() {
            self.taken.retain(|_, taken| taken.until > now);
        }
        let anew = Taken { link: port, since: now, cnms: 0, until };
        let taken = self.taken.entry((switch, dst.0)).or_insert(anew);
        if !stays || taken.link != port {
            *taken = anew;
        }
        taken.until = until;
        if link != port {
            return false;
        }
        taken.cnms = taken.cnms.saturating_add(1);
        persistence.cnms.is_some_and(|most| taken.cnms > most)
            || persistence.time.is_some_and(|time| now.since(taken.since) >= time)
    }
}

impl Chooser for Adaptive {
    fn deals(&self) -> bool {
        true
    }

    fn choose<'f>(&mut self, query: &Query, _: &mut u32, view: impl FnOnce() -> View<'f>) -> usize {
        let &Query { switch, dst, members, .. } = query;
        let first = modulo(dst, members.len());
        let marks = &self.marks[switch as usize];
        if marks.range((dst.0, 0)..=(dst.0, u32::MAX)).next().is_none() {
            return first;
        }
        let now = view().now;
        let best = best(marks, self.ageing, now, dst, members).0;
        self.counts.moved += u64::from(best != first);
        best
    }
}

/// Returns the index of the preferred port to a host, and its severity if it is marked: the feedback, times the
/// remaining time of the mark if marks age.
fn best(
    marks: &Marks,
    ageing: bool,
    now: Time,
    dst: HostId,
    members: &[u32],
) -> (usize, Option<u64>) {
    let first = modulo(dst, members.len());
    let severity = |port: usize| {
        let mark = marks.get(&(dst.0, members[port])).filter(|mark| mark.until > now)?;
        // 63 times 1000 s in ps is below 2^56
        let weight = if ageing { mark.until.since(now).0 } else { 1 };
        Some(u64::from(mark.severity) * weight)
    };
    let in_order = (0..members.len()).map(|step| (first + step) % members.len());
    in_order
        .map(|port| (port, severity(port)))
        .min_by_key(|&(_, severity)| severity)
        .expect("a set of ports is never empty")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::Stored;
    use eastwest_types::Packet;

    const PORTS: [u32; 3] = [20, 22, 24];
    const DST: HostId = HostId(4); // its static port is number 1

    const PLAIN: AdaptiveConfig =
        AdaptiveConfig { timer: Span::from_ms(250), ageing: false, persistence: None };

    fn adaptive() -> Adaptive {
        Adaptive::new(PLAIN, 2)
    }

    fn persistent(cnms: Option<u32>, time: Option<Span>) -> Adaptive {
        let persistence = Some(Persistence { cnms, time });
        Adaptive::new(AdaptiveConfig { persistence, ..PLAIN }, 2)
    }

    const fn at(ms: u64) -> Time {
        Time(Span::from_ms(ms).0)
    }

    /// Marks ports 1, 2 and 0 with feedback 9, 2 and 5, one each millisecond: port 2 is the least severe.
    fn exhaust(a: &mut Adaptive, from_ms: u64) -> [Snooped; 3] {
        let mut ms = from_ms;
        [(22, 9), (24, 2), (20, 5)].map(|told| {
            ms += 1;
            a.snoop(at(ms - 1), 0, DST, &PORTS, told)
        })
    }

    fn choose(a: &mut Adaptive, now: Time, switch: u32, dst: HostId) -> usize {
        let stored = Stored::new(&Packet::blank(dst));
        let view = || View { now, packet: &stored, links: &[], ingress: 0, tag: 0 };
        a.choose(&Query { switch, dst, flow_hash: 0, members: &PORTS }, &mut 0, view)
    }

    #[test]
    fn a_marked_port_is_left_by_this_receiver_at_this_switch_only() {
        let mut a = adaptive();
        let now = Time::ZERO + Span::from_ms(1);
        assert_eq!(choose(&mut a, now, 0, DST), 1);
        assert_eq!(a.snoop(now, 0, DST, &PORTS, (22, 9)), Snooped::Absorbed);
        assert_eq!(choose(&mut a, now, 0, DST), 2);
        assert_eq!(choose(&mut a, now, 1, DST), 1);
        assert_eq!(choose(&mut a, now, 0, HostId(7)), 1);
        assert_eq!(a.counts, AdaptiveCounts { marked: 1, absorbed: 1, held: None, moved: 1 });
    }

    #[test]
    fn unmarked_ports_come_first_then_the_least_severe() {
        let mut a = adaptive();
        let now = Time::ZERO;
        assert_eq!(a.snoop(now, 0, DST, &PORTS, (22, 9)), Snooped::Absorbed);
        assert_eq!(a.snoop(now, 0, DST, &PORTS, (24, 2)), Snooped::Absorbed);
        assert_eq!(choose(&mut a, now, 0, DST), 0);
        // no port is unmarked: the CNM goes on to the source, and packets take the least severe port
        assert_eq!(a.snoop(now, 0, DST, &PORTS, (20, 5)), Snooped::Pass);
        assert_eq!(choose(&mut a, now, 0, DST), 2);
        // the latest CNM counts
        assert_eq!(a.snoop(now, 0, DST, &PORTS, (24, 60)), Snooped::Pass);
        assert_eq!(choose(&mut a, now, 0, DST), 0);
    }

    #[test]
    fn marks_expire_and_are_renewed() {
        let mut a = adaptive();
        a.snoop(at(0), 0, DST, &PORTS, (22, 9));
        a.snoop(at(100), 0, DST, &PORTS, (22, 9));
        assert_eq!(choose(&mut a, at(349), 0, DST), 2);
        assert_eq!(choose(&mut a, at(350), 0, DST), 1);
    }

    #[test]
    fn notifications_from_elsewhere_pass_and_old_marks_take_no_memory_for_ever() {
        let mut a = adaptive();
        assert_eq!(a.snoop(Time::ZERO, 0, DST, &PORTS, (26, 9)), Snooped::Pass);
        assert_eq!(a.counts, AdaptiveCounts::default());
        for host in 0..10_000 {
            let now = Time::ZERO + Span::from_ms(10) * u64::from(host);
            a.snoop(now, 0, HostId(host), &PORTS, (22, 9));
        }
        assert!(a.marks[0].len() <= 65, "{}", a.marks[0].len());
    }

    #[test]
    fn the_notification_that_exhausts_all_ports_moves_the_flow_and_goes_no_further() {
        use Snooped::{Absorbed, Pass};
        let mut a = persistent(Some(0), None);
        assert_eq!(exhaust(&mut a, 0), [Absorbed; 3]);
        assert_eq!(choose(&mut a, at(3), 0, DST), 2);
        // late CNMs about ports that the flow has left
        assert_eq!(a.snoop(at(3), 0, DST, &PORTS, (22, 9)), Absorbed);
        assert_eq!(a.snoop(at(4), 0, DST, &PORTS, (20, 5)), Absorbed);
        // a CNM about the port that was taken, which stays the least severe: the hotspot persists
        assert_eq!(a.snoop(at(5), 0, DST, &PORTS, (24, 4)), Pass);
        // now another port is less severe, and the flow moves there
        assert_eq!(a.snoop(at(6), 0, DST, &PORTS, (24, 6)), Absorbed);
        assert_eq!(choose(&mut a, at(6), 0, DST), 0);
        assert_eq!(a.snoop(at(7), 0, DST, &PORTS, (20, 5)), Pass);
        let counts = AdaptiveCounts { marked: 8, absorbed: 6, held: Some(4), moved: 2 };
        assert_eq!(a.counts, counts);
    }

    #[test]
    fn a_hotspot_persists_after_so_many_notifications_about_the_port_taken() {
        use Snooped::{Absorbed, Pass};
        let mut a = persistent(Some(2), None);
        exhaust(&mut a, 0);
        let told = [(24, 1), (22, 9), (24, 1), (24, 1), (22, 9), (24, 1)];
        let became = told.map(|told| a.snoop(at(5), 0, DST, &PORTS, told));
        assert_eq!(became, [Absorbed, Absorbed, Absorbed, Pass, Absorbed, Pass]);
        // the flow moves, and moves back: both times counting starts again
        assert_eq!(a.snoop(at(6), 0, DST, &PORTS, (24, 8)), Absorbed);
        let became = [5, 5, 5, 9].map(|fb| a.snoop(at(7), 0, DST, &PORTS, (20, fb)));
        assert_eq!(became, [Absorbed, Absorbed, Pass, Absorbed]);
        let became = [8, 8, 8].map(|fb| a.snoop(at(8), 0, DST, &PORTS, (24, fb)));
        assert_eq!(became, [Absorbed, Absorbed, Pass]);
    }

    #[test]
    fn a_hotspot_persists_so_long_after_the_port_was_taken() {
        use Snooped::{Absorbed, Pass};
        for cnms in [None, Some(3)] {
            let mut a = persistent(cnms, Some(Span::from_ms(10)));
            // port 2 is taken at 2 ms
            exhaust(&mut a, 0);
            assert_eq!(a.snoop(at(11), 0, DST, &PORTS, (24, 2)), Absorbed);
            assert_eq!(a.snoop(at(12), 0, DST, &PORTS, (22, 9)), Absorbed);
            assert_eq!(a.snoop(at(12), 0, DST, &PORTS, (24, 2)), Pass);
        }
        // the condition that is met first ends the absorption
        let mut a = persistent(Some(1), Some(Span::from_ms(10)));
        exhaust(&mut a, 0);
        assert_eq!(a.snoop(at(3), 0, DST, &PORTS, (24, 2)), Absorbed);
        assert_eq!(a.snoop(at(4), 0, DST, &PORTS, (24, 2)), Pass);
    }

    #[test]
    fn a_mark_that_expires_ends_what_persisted_and_other_switches_know_nothing_of_it() {
        use Snooped::{Absorbed, Pass};
        let mut a = persistent(Some(1), None);
        exhaust(&mut a, 0);
        let became = [200, 201].map(|ms| a.snoop(at(ms), 0, DST, &PORTS, (24, 2)));
        assert_eq!(became, [Absorbed, Pass]);
        // the marks of ports 1 and 0 expired at 250 and 252 ms, so there are unmarked ports again
        assert_eq!(choose(&mut a, at(252), 0, DST), 1);
        assert_eq!(a.snoop(at(300), 0, DST, &PORTS, (22, 9)), Absorbed);
        // the third CNM marks the last port: port 2 is taken again
        let became = [(20, 5), (24, 2), (24, 2)].map(|n| a.snoop(at(301), 0, DST, &PORTS, n));
        assert_eq!(became, [Absorbed, Absorbed, Pass]);
        assert_eq!(a.snoop(at(302), 1, DST, &PORTS, (24, 2)), Absorbed);
        assert_eq!(a.snoop(at(302), 0, HostId(7), &PORTS, (24, 2)), Absorbed);
        // without the settings the third CNM goes on at once
        assert_eq!(exhaust(&mut adaptive(), 0), [Absorbed, Absorbed, Pass]);
    }

    #[test]
    fn severities_that_age_put_what_was_told_of_longer_ago_first() {
        let mut a = Adaptive::new(AdaptiveConfig { ageing: true, ..PLAIN }, 1);
        a.snoop(at(0), 0, DST, &PORTS, (22, 12));
        a.snoop(at(50), 0, DST, &PORTS, (24, 9));
        a.snoop(at(100), 0, DST, &PORTS, (20, 12));
        // severity at 99 ms: 12 · 151, 9 · 201, 12 · 251; then 12 · 150, 9 · 200; 12 · 149, 9 · 199
        assert_eq!(choose(&mut a, at(99), 0, DST), 2);
        assert_eq!(choose(&mut a, at(100), 0, DST), 1);
        assert_eq!(choose(&mut a, at(101), 0, DST), 1);
        let mut plain = adaptive();
        for (ms, told) in [(0, (22, 12)), (50, (24, 9)), (100, (20, 12))] {
            plain.snoop(at(ms), 0, DST, &PORTS, told);
        }
        assert_eq!(choose(&mut plain, at(101), 0, DST), 2);
    }

    #[test]
    fn ports_that_were_taken_take_no_memory_for_ever() {
        let mut a = persistent(Some(1), None);
        for host in 0..10_000u32 {
            let now = at(10 * u64::from(host));
            for port in PORTS {
                a.snoop(now, 0, HostId(host), &PORTS, (port, 9));
            }
        }
        assert!(a.taken.len() <= 129, "{}", a.taken.len());
    }
}
