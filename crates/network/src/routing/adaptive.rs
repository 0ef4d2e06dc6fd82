//! Adaptive routing on congestion notifications, as studied by Minkenberg, Scicchitano and Gusat
//! (*Adaptive Routing for Convergence Enhanced Ethernet*, HPSR 2009) and Gusat et al.
//! (*Benchmarking the Ethernet-Federated Datacenter*, 2009).
//!
//! QCN (IEEE 802.1Qau) sends a notification message (CNM) from a congested port to the source of a
//! packet that is queued at this port. If the CNM uses the path of the flow in reverse, it enters
//! each switch by the port through which the flow leaves. Switches read the CNM:
//!
//! 1. The switch marks this output port as congested for the receiving host of the flow. The
//!    severity of the mark is the quantised feedback in the CNM.
//! 2. Eligible ports for a receiver are the ports on shortest paths. The static choice, port number
//!    receiver mod n, is first, and the other ports follow in cyclic order. Unmarked ports are
//!    preferred to marked ports, and marked ports of low severity to marked ports of high severity.
//! 3. If an eligible port is unmarked, the flow uses this port from now on, and the switch absorbs
//!    the CNM. If not, the CNM continues upstream: the next switch may have another path, and the
//!    source reduces its rate only if no switch has another path.
//! 4. A mark expires when no CNM has renewed it for a given time (250 ms in the study, which does
//!    not state what exactly expires).
//!
//! With [`Persistence`], step 3 has two conditions, as in the study: "(ii) *if* all admissible
//! multi-pathing options have been exhausted *and* if the hotspot persists, to enable QCN to
//! perform source-injection rate control." While all eligible ports are marked, the flow uses the
//! port with the lowest severity. The switch absorbs the CNM that moves the flow to this port, and
//! CNMs about ports that the flow has left. The switch also absorbs the first CNMs about the port
//! in use, up to a number or for a time. Later CNMs about this port continue to the source: the
//! hotspot persists. The count and the time restart when the flow moves to another port, because a
//! mark has expired or another port now has a lower severity.
//!
//! With `ageing`, the severity of a mark is its feedback times its remaining lifetime. Between two
//! ports with equal feedback, the port with the older mark is then preferred.
//!
//! Differences from the papers: the papers do not state whether a CNM that has changed a route
//! still reaches the source. Here the CNM does not, following the study's "only when no uncongested
//! path is left does the source rate-limit". The papers also do not state how CNMs find the path of
//! the flow in reverse. Here switches know this path; a real switch could learn it from the frames
//! of the flow. A CNM whose flow has moved to another path is routed like other packets. Paths are
//! always shortest, so that there are no loops.

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
    /// Lifetime of a congestion mark: time after the last CNM for which a port counts as congested
    /// for a receiver.
    pub timer: Span,
    /// Whether the severity of a mark decreases linearly with time, to zero at the end of `timer`.
    pub ageing: bool,
    /// Limits after which a hotspot persists while all eligible ports are marked; later CNMs are
    /// sent on to their source. `None`: while all eligible ports are marked, all CNMs are sent on.
    pub persistence: Option<Persistence>,
}

/// Limits up to which a switch absorbs CNMs about the port in use while all eligible ports are
/// marked. When the first limit is exceeded, the hotspot persists and CNMs are sent on to their
/// source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Persistence {
    /// Number of CNMs about the port in use that the switch absorbs; `None`: only `time` counts.
    pub cnms: Option<u32>,
    /// Time, from the choice of the port, in which the switch absorbs CNMs about this port; `None`:
    /// only `cnms` counts.
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

/// Action of a switch that has read a CNM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snooped {
    /// The switch absorbs the CNM: the source does not receive it.
    Absorbed,
    /// The switch sends the CNM on towards its source.
    Pass,
}

/// Counts of adaptive routing, over all switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdaptiveCounts {
    /// Number of CNMs that marked a port as congested.
    pub marked: u64,
    /// Number of CNMs that a switch absorbed, including the CNMs in `held`.
    pub absorbed: u64,
    /// Number of CNMs that were absorbed although all eligible ports were marked; `None` if the
    /// settings have no [`Persistence`].
    pub held: Option<u64>,
    /// Number of packets that left by another port than the port of static routing (receiver mod
    /// n).
    pub moved: u64,
}

/// Congestion mark of an output port for one receiver.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Mark {
    until: Time,
    severity: u8,
}

/// Congestion marks of one switch, by receiver and output link.
type Marks = BTreeMap<(u32, u32), Mark>;

/// Port towards a receiver that is in use although it is marked, since all eligible ports are
/// marked.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Taken {
    link: u32,
    since: Time,
    /// Number of CNMs about the port since its choice (`since`).
    cnms: u32,
    /// Time at which the latest mark of the eligible ports expires; after this time, the entry can
    /// be removed.
    until: Time,
}

/// State of adaptive routing: congestion marks of all switches, and counts.
#[derive(Serialize, Deserialize)]
pub struct Adaptive {
    timer: Span,
    ageing: bool,
    persistence: Option<Persistence>,
    /// Congestion marks, by switch.
    marks: Vec<Marks>,
    /// Marked ports in use by (switch, receiver), for [`Persistence`].
    taken: BTreeMap<(u32, u32), Taken>,
    /// Counts of the actions of all switches together.
    pub counts: AdaptiveCounts,
}

impl Adaptive {
    /// Returns the state of `switches` switches without congestion marks.
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

    /// Returns the index in `members`, the eligible ports, of the port on which `switch` would send
    /// a packet to `dst`.
    pub fn prefer(&self, now: Time, switch: u32, dst: HostId, members: &[u32]) -> usize {
        best(&self.marks[switch as usize], self.ageing, now, dst, members).0
    }

    /// Marks output link `link` of a switch as congested for receiver `dst`, with the feedback of a
    /// CNM as severity. `members` are the links of the eligible ports. Returns whether the CNM is
    /// absorbed or sent on.
    pub fn snoop(
        &mut self,
        now: Time,
        switch: u32,
        dst: HostId,
        members: &[u32],
        (link, severity): (u32, u8),
    ) -> Snooped {
        // The CNM did not enter by a port that leads to the receiver, so that it is not on the path
        // of the flow.
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
        // True if the flow already used the preferred port while all ports were marked, and
        // continues to use this port.
        let stays = before.0 == after.0 && before.1.is_some();
        let port = (switch, dst, members[after.0]);
        if self.persists(persistence, (now, until), port, stays, link) {
            return Snooped::Pass;
        }
        self.counts.absorbed += 1;
        self.counts.held = self.counts.held.map(|held| held + 1);
        Snooped::Absorbed
    }

    /// Whether a CNM about `link` shows that the hotspot persists on `port`, the port with the
    /// lowest severity, which the flow now uses. `stays` means that the flow already used this port
    /// before this CNM.
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

/// Returns the index in `members` of the preferred port towards `dst`, and its severity; `None` if
/// the port is unmarked. The severity is the feedback; with `ageing`, it is the feedback times the
/// remaining lifetime of the mark.
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
        // The product is at most 63 times 1000 s in ps, which is below 2^56.
        let weight = if ageing { mark.until.since(now).0 } else { 1 };
        Some(u64::from(mark.severity) * weight)
    };
    let in_order = (0..members.len()).map(|step| (first + step) % members.len());
    in_order
        .map(|port| (port, severity(port)))
        .min_by_key(|&(_, severity)| severity)
        .expect("a set of ports has members")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::Stored;
    use eastwest_types::Packet;

    const PORTS: [u32; 3] = [20, 22, 24];
    const DST: HostId = HostId(4); // static routing (4 mod 3) gives port 1

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

    /// Marks ports 1, 2 and 0 with feedback 9, 2 and 5, with one CNM each millisecond. Afterwards
    /// port 2 is the least severe.
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
        // All ports are marked: the CNM is sent on to the source, and packets take the least severe
        // port.
        assert_eq!(a.snoop(now, 0, DST, &PORTS, (20, 5)), Snooped::Pass);
        assert_eq!(choose(&mut a, now, 0, DST), 2);
        // A new CNM replaces the severity of the mark, even if it is higher.
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
        // These CNMs are about ports that the flow has left.
        assert_eq!(a.snoop(at(3), 0, DST, &PORTS, (22, 9)), Absorbed);
        assert_eq!(a.snoop(at(4), 0, DST, &PORTS, (20, 5)), Absorbed);
        // This CNM is about the port in use, which remains the least severe: the hotspot persists.
        assert_eq!(a.snoop(at(5), 0, DST, &PORTS, (24, 4)), Pass);
        // Now another port is less severe, and the flow moves to it.
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
        // The flow moves to another port and back; the counting of CNMs restarts both times.
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
            // After this call, the flow uses port 2 from 2 ms on.
            exhaust(&mut a, 0);
            assert_eq!(a.snoop(at(11), 0, DST, &PORTS, (24, 2)), Absorbed);
            assert_eq!(a.snoop(at(12), 0, DST, &PORTS, (22, 9)), Absorbed);
            assert_eq!(a.snoop(at(12), 0, DST, &PORTS, (24, 2)), Pass);
        }
        // The limit that is exceeded first ends the absorption.
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
        // The marks of ports 1 and 0 expired at 250 and 252 ms, so that these ports are unmarked
        // again.
        assert_eq!(choose(&mut a, at(252), 0, DST), 1);
        assert_eq!(a.snoop(at(300), 0, DST, &PORTS, (22, 9)), Absorbed);
        // The third CNM marks the last unmarked port, and port 2 is in use again.
        let became = [(20, 5), (24, 2), (24, 2)].map(|n| a.snoop(at(301), 0, DST, &PORTS, n));
        assert_eq!(became, [Absorbed, Absorbed, Pass]);
        assert_eq!(a.snoop(at(302), 1, DST, &PORTS, (24, 2)), Absorbed);
        assert_eq!(a.snoop(at(302), 0, HostId(7), &PORTS, (24, 2)), Absorbed);
        // Without `Persistence`, the third CNM is sent on to the source at once.
        assert_eq!(exhaust(&mut adaptive(), 0), [Absorbed, Absorbed, Pass]);
    }

    #[test]
    fn severities_that_age_put_what_was_told_of_longer_ago_first() {
        let mut a = Adaptive::new(AdaptiveConfig { ageing: true, ..PLAIN }, 1);
        a.snoop(at(0), 0, DST, &PORTS, (22, 12));
        a.snoop(at(50), 0, DST, &PORTS, (24, 9));
        a.snoop(at(100), 0, DST, &PORTS, (20, 12));
        // Severities (feedback times remaining ms) are 12 · 151, 9 · 201 and 12 · 251 at 99 ms.
        // Later the first two are 12 · 150 and 9 · 200, then 12 · 149 and 9 · 199.
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
