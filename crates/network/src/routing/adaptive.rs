//! Adaptive routing on congestion notifications, as studied by Minkenberg, Scicchitano and Gusat
//! (*Adaptive Routing for Convergence Enhanced Ethernet*, HPSR 2009) and Gusat et al. (*Benchmarking the
//! Ethernet-Federated Datacenter*, 2009).
//!
//! QCN (IEEE 802.1Qau) sends a notification from a congested port to the source of a packet that waits
//! there. On its way it comes into each switch by the very port through which that flow goes out, if it
//! takes the way of the flow backwards. Switches look at it:
//!
//! 1. The switch marks this output port as congested for the receiving host of the flow, with the
//!    severity that the notification tells (its quantised feedback).
//! 2. Eligible ports for a receiver are those on shortest paths. The static choice, receiver mod n,
//!    comes first, the others follow in their cyclic order; marked ports go behind all that are not
//!    marked, the more severe ones farther.
//! 3. If an eligible port is left unmarked, the flow takes it from now on, and the notification has
//!    done its work: it goes no further. If not, it goes on upstream: the next switch may have another
//!    way, and the source reduces its rate only if no switch had.
//! 4. A mark expires when no notification has renewed it for the time of a timer (250 ms in the study,
//!    which does not say what exactly expires).
//!
//! Departs from these: the papers leave open whether a notification that a switch has acted upon still
//! reaches the source; here it does not, after the study's "only when no uncongested path is left
//! does the source rate-limit". How notifications find the way backwards is not said either; here
//! switches know it (a bridge could learn it from the frames of the flow), and one whose flow has taken
//! another way meanwhile is routed as others are. Paths stay shortest, so there are no loops.

use super::chooser::{Asked, modulo};
use super::custom::View;
use crate::config::AdaptiveConfig;
use eastwest_types::{HostId, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What becomes of a notification at a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snooped {
    /// It has done its work: the flow goes another way.
    Absorbed,
    /// It goes on towards the source.
    Pass,
}

/// How often switches acted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdaptiveCounts {
    /// Notifications that marked a port.
    pub marked: u64,
    /// Of these, those that found another way for the flow.
    pub absorbed: u64,
    /// Packets that left by another port than the static one.
    pub moved: u64,
}

/// An output port is congested for a receiver.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Mark {
    until: Time,
    severity: u8,
}

/// By receiver and link.
type Marks = BTreeMap<(u32, u32), Mark>;

/// Tables of all switches.
#[derive(Serialize, Deserialize)]
pub struct Adaptive {
    timer: Span,
    /// By switch.
    marks: Vec<Marks>,
    pub counts: AdaptiveCounts,
}

impl Adaptive {
    /// Nothing is congested.
    pub fn new(config: AdaptiveConfig, switches: u32) -> Adaptive {
        let marks = vec![Marks::new(); switches as usize];
        Adaptive { timer: config.timer, marks, counts: AdaptiveCounts::default() }
    }

    /// The number of the port that a packet takes.
    pub fn choose<'f>(&mut self, view: impl FnOnce() -> View<'f>, asked: &Asked) -> usize {
        let &Asked { switch, dst, members, .. } = asked;
        let first = modulo(dst, members.len());
        let marks = &self.marks[switch as usize];
        if marks.range((dst.0, 0)..=(dst.0, u32::MAX)).next().is_none() {
            return first;
        }
        let now = view().now;
        let best = best(marks, now, dst, members).0;
        self.counts.moved += u64::from(best != first);
        best
    }

    /// The number of the port that a packet to a host would take at a switch.
    pub fn prefer(&self, now: Time, switch: u32, dst: HostId, members: &[u32]) -> usize {
        best(&self.marks[switch as usize], now, dst, members).0
    }

    /// A notification, see above; `members` are the links of eligible ports.
    pub fn snoop(
        &mut self,
        now: Time,
        switch: u32,
        dst: HostId,
        members: &[u32],
        (link, severity): (u32, u8),
    ) -> Snooped {
        // it came by a port that does not lead to the receiver: not on the way of the flow
        if !members.contains(&link) {
            return Snooped::Pass;
        }
        let marks = &mut self.marks[switch as usize];
        if marks.len() > 64 {
            marks.retain(|_, mark| mark.until > now);
        }
        marks.insert((dst.0, link), Mark { until: now + self.timer, severity });
        self.counts.marked += 1;
        match best(marks, now, dst, members).1 {
            None => {
                self.counts.absorbed += 1;
                Snooped::Absorbed
            }
            Some(_) => Snooped::Pass,
        }
    }
}

/// The number of the preferred port to a host, and how congested it is, if it is.
fn best(marks: &Marks, now: Time, dst: HostId, members: &[u32]) -> (usize, Option<u8>) {
    let first = modulo(dst, members.len());
    let severity = |port: usize| {
        let mark = marks.get(&(dst.0, members[port])).filter(|mark| mark.until > now);
        mark.map(|mark| mark.severity)
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

    fn adaptive() -> Adaptive {
        Adaptive::new(AdaptiveConfig { timer: Span::from_ms(250) }, 2)
    }

    fn choose(a: &mut Adaptive, now: Time, switch: u32, dst: HostId) -> usize {
        let stored = Stored::new(&Packet::blank(dst));
        let view = || View { now, packet: &stored, links: &[], came: 0 };
        a.choose(view, &Asked { switch, dst, flow_hash: 0, members: &PORTS })
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
        assert_eq!(a.counts, AdaptiveCounts { marked: 1, absorbed: 1, moved: 1 });
    }

    #[test]
    fn unmarked_ports_come_first_then_the_least_severe() {
        let mut a = adaptive();
        let now = Time::ZERO;
        assert_eq!(a.snoop(now, 0, DST, &PORTS, (22, 9)), Snooped::Absorbed);
        assert_eq!(a.snoop(now, 0, DST, &PORTS, (24, 2)), Snooped::Absorbed);
        assert_eq!(choose(&mut a, now, 0, DST), 0);
        // nothing is left: it goes on to the source, and packets take the least evil
        assert_eq!(a.snoop(now, 0, DST, &PORTS, (20, 5)), Snooped::Pass);
        assert_eq!(choose(&mut a, now, 0, DST), 2);
        // the latest word counts
        assert_eq!(a.snoop(now, 0, DST, &PORTS, (24, 60)), Snooped::Pass);
        assert_eq!(choose(&mut a, now, 0, DST), 0);
    }

    #[test]
    fn marks_expire_and_are_renewed() {
        let mut a = adaptive();
        let at = |ms| Time::ZERO + Span::from_ms(ms);
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
}
