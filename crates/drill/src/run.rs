//! Runner of scripts: executes their events in order, in simulated time.
//!
//! Times follow packetdrill: a relative time counts from the actual time of the previous event. The
//! actual time of an event may differ from the expected one by the tolerance, or by an eighth of
//! the time since the previous event. Here this eighth is limited to [`MOST_TOLERANCE_US`]: that is
//! sufficient in simulated time, and every error of 50 ms is found.

use crate::calls::carry_out;
use crate::fields;
use crate::host::Host;
use crate::matcher;
use crate::problem::{Place, Problem};
use crate::profile::Profile;
use crate::script::{Action, Event, Packet, Script, TcpOption, When};
use crate::setup::Setup;
use crate::snippet::{self, Variables};
use crate::system::{START, System, seconds};
use crate::wire::Seen;
use eastwest_types::{Span, Time, flag};

/// Upper limit in µs of the tolerance that is a fraction of the time since the previous event.
const MOST_TOLERANCE_US: u64 = 20_000;
/// Largest payload in bytes of a packet that a script injects: 65,535 bytes less 100 bytes for the
/// headers of IP and TCP.
const MOST_PAYLOAD: u32 = 65_435;
/// Maximum number of timer expiries in one script.
const MOST_WAKES: u32 = 1_000_000;
/// Maximum number of lines of the log that an error message shows.
const SHOWN: usize = 60;

/// Runs a script with a TCP profile. The error message shows expected and actual values, and the
/// log so far.
pub fn run(script: &Script, profile: Profile) -> Result<(), Problem> {
    let mut player = Player {
        script,
        system: System::new(Setup::new(profile, script.options.mss)),
        variables: Variables::new(),
        wakes: 0,
        syn_seen: false,
    };
    for (i, event) in script.events.iter().enumerate() {
        player.event(i, event).map_err(|p| player.with_dialogue(p))?;
    }
    player.end().map_err(|p| player.with_dialogue(p))
}

/// A script during its execution, with the state of the host and the script's variables.
struct Player<'a> {
    script: &'a Script,
    system: System,
    variables: Variables,
    wakes: u32,
    /// Whether a SYN or SYN-ACK of the endpoint has already been compared.
    syn_seen: bool,
}

/// Expected time of an event, and its tolerance.
#[derive(Clone, Copy, Debug)]
struct Due {
    from: Time,
    to: Time,
    tolerance: Span,
    any: bool,
}

fn us(n: u64) -> Span {
    Span::from_us(n)
}

impl<'a> Player<'a> {
    fn due(&self, when: When) -> Due {
        let (from, to) = match when {
            When::Any => (self.system.now, Time::NEVER),
            When::At(from, to) => (START + us(from), START + us(to)),
            When::After(from, to) => (self.system.now + us(from), self.system.now + us(to)),
        };
        let options = &self.script.options;
        let share = from.since(self.system.now).0 / 1_000_000 * options.tolerance_permille / 1_000;
        let tolerance = us(options.tolerance_us.max(share.min(MOST_TOLERANCE_US)));
        Due { from, to, tolerance, any: when == When::Any }
    }

    fn event(&mut self, index: usize, event: &Event) -> Result<(), Problem> {
        let due = self.due(event.when);
        if let Action::Expect(packet) = &event.action {
            return self.expect(packet, due, event.place);
        }
        self.advance(due.from, event.place)?;
        self.check_blocked()?;
        match &event.action {
            Action::Expect(_) => Ok(()),
            Action::Inject(packet) => self.inject(packet, event.place),
            Action::Set(settings) => settings.iter().try_for_each(|setting| {
                if self.system.host.is_none() {
                    return self.system.setup.apply(setting);
                }
                // Checks the setting first, so that an unknown one is reported before any effect.
                self.system.setup.clone().apply(setting)?;
                setting.place.fail("this setting must come before the connection opens")
            }),
            Action::Check(code) => {
                let (host, now) = (self.system.host.as_ref(), self.system.now);
                let look_up = |name: &str| fields::look_up(name, host, now, self.system.setup.mss);
                let printed = snippet::run(code, &mut self.variables, &look_up)?;
                for line in printed {
                    self.system.note(now, '%', &line);
                }
                Ok(())
            }
            Action::Call(call) => {
                // The time of return counts from the previous event, as the start does.
                let returns = call.returns.map(|end| match event.when {
                    When::At(..) => START + us(end),
                    When::Any => due.from + us(end),
                    When::After(start, _) => due.from + us(end.saturating_sub(start)),
                });
                self.system.syn_ack = self.script.events[index..].iter().find_map(syn_ack);
                carry_out(&mut self.system, call, returns, due.tolerance)
            }
        }
    }

    /// Advances simulated time to `to`, and executes the timers that expire until then.
    fn advance(&mut self, to: Time, place: Place) -> Result<(), Problem> {
        while self.wake_by(to, place)? {}
        self.system.now = self.system.now.max(to);
        Ok(())
    }

    /// Executes the next timer if it expires at or before `to`; returns whether a timer was
    /// executed. `place`: event of the script that an error message names.
    fn wake_by(&mut self, to: Time, place: Place) -> Result<bool, Problem> {
        let Some(host) = &mut self.system.host else { return Ok(false) };
        match host.next_wake() {
            Some(at) if at <= to => {
                self.wakes += 1;
                if self.wakes > MOST_WAKES {
                    return place
                        .fail("more than a million timers expire in the script before this event");
                }
                host.wake();
                self.system.now = self.system.now.max(at);
                self.system.look();
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Checks the blocked system call, if there is one: that it returns at the expected time within
    /// the tolerance, and with the expected result.
    fn check_blocked(&mut self) -> Result<(), Problem> {
        self.system.look();
        self.system.sockets.check_blocked(self.system.now, START)
    }

    /// Checks at the end of the script that no system call still blocks.
    fn end(&mut self) -> Result<(), Problem> {
        if let Some(due) = self.system.sockets.blocked_until() {
            let place = self.script.events.last().map(|e| e.place).unwrap_or_default();
            self.advance(due, place)?;
            self.system.look();
            self.system.sockets.check_blocked(Time::NEVER, START)?;
        }
        Ok(())
    }

    fn inject(&mut self, packet: &Packet, place: Place) -> Result<(), Problem> {
        if packet.length > MOST_PAYLOAD {
            return place.fail(format!(
                "the packet has {} B of payload, but at most {MOST_PAYLOAD} B is allowed",
                packet.length
            ));
        }
        let system = &mut self.system;
        let syn = packet.flags & flag::SYN != 0;
        let first = syn && packet.flags & flag::ACK == 0;
        if syn {
            system.wire.remote_base = packet.start;
        }
        if first && system.host.is_none() {
            if !system.sockets.listens() {
                return place
                    .fail("the script injects a SYN, but no socket listens: call listen() before");
            }
            if !system.open(Some(packet), false) {
                return place.fail("the connection cannot be opened: TCP refuses this SYN");
            }
        }
        let Some(host) = &mut system.host else {
            return place.fail("the script injects a packet, but there is no connection");
        };
        let una = host.stack().endpoint(host.id()).acknowledged();
        let (mut inward, sack) = system.wire.inward(packet, system.now, una);
        if first {
            // Before the handshake the endpoint accepts any sequence number.
            inward.seq = 0;
        }
        host.receive(system.now, inward, sack.as_ref());
        system.note(system.now, '<', &matcher::write(packet));
        system.look();
        Ok(())
    }

    fn expect(&mut self, expected: &Packet, due: Due, place: Place) -> Result<(), Problem> {
        let latest = if due.any { Time::NEVER } else { due.to + due.tolerance };
        let mut run = match self.next_packet(latest, place)? {
            Some(seen) => seen,
            None => return Err(self.silence(expected, due, place)),
        };
        let (first_at, syn) = (run.at, run.packet.flags & flag::SYN != 0);
        if syn && !self.syn_seen {
            self.syn_seen = true;
            self.system.wire.local_base = expected.start;
            run.packet.start = expected.start;
        }
        self.note_timestamp(expected, &mut run);
        let mut last_at = first_at;
        while !self.script.options.strict_segments && run.packet.length < expected.length {
            let Some(next) = self.peek_packet(latest, place)? else { break };
            if !matcher::join(&mut run.packet, &next) {
                break;
            }
            last_at = next.at;
            self.take();
        }
        let text = matcher::write(&run.packet);
        let tick = self.script.options.timestamp_tick_us;
        let stamps = (tick > 0).then(|| (due.tolerance.0 / 1_000_000 / tick) as u32);
        let mut wrong = matcher::differences(expected, &run.packet, stamps);
        for at in [first_at, last_at] {
            if !due.any && (at + due.tolerance < due.from || at > latest) && wrong.len() < 16 {
                let message = format!("it left at {}", seconds(at));
                if !wrong.contains(&message) {
                    wrong.push(message);
                }
            }
        }
        if !wrong.is_empty() {
            let message = format!(
                "the packet is not the one expected: {}\n  expected: {}  {}\n  actual:   {}  {}",
                wrong.join("; "),
                self.describe(due),
                matcher::write(expected),
                seconds(first_at),
                text
            );
            return place.fail(message);
        }
        self.system.note(first_at, '>', &text);
        self.system.now = self.system.now.max(last_at);
        Ok(())
    }

    /// Records to which simulated time a timestamp value of the script corresponds.
    fn note_timestamp(&mut self, expected: &Packet, run: &mut Seen) {
        let value = expected.options.iter().flatten().find_map(|o| match o {
            TcpOption::Timestamp(value, _) => Some(*value),
            _ => None,
        });
        let Some(value) = value else { return };
        let first = self.system.wire.stamps.is_empty();
        self.system.wire.note_stamp(value, run.born_us);
        if first {
            for option in run.packet.options.iter_mut().flatten() {
                if let TcpOption::Timestamp(seen, _) = option {
                    *seen = value;
                }
            }
        }
    }

    /// Returns the next packet that the endpoint sends at or before `latest`, and advances time
    /// until it is sent; `None` if no packet is sent until then. `place`: event of the script that
    /// an error message names.
    fn peek_packet(&mut self, latest: Time, place: Place) -> Result<Option<Seen>, Problem> {
        loop {
            if let Some(sent) = self.system.host.as_ref().and_then(Host::next_sent) {
                return Ok((sent.at <= latest).then(|| self.system.wire.outward(sent)));
            }
            if !self.wake_by(latest, place)? {
                return Ok(None);
            }
        }
    }

    fn next_packet(&mut self, latest: Time, place: Place) -> Result<Option<Seen>, Problem> {
        let seen = self.peek_packet(latest, place)?;
        if seen.is_some() {
            self.take();
        }
        Ok(seen)
    }

    fn take(&mut self) {
        if let Some(sent) = self.system.host.as_mut().and_then(Host::take_sent) {
            self.system.now = self.system.now.max(sent.at);
        }
    }

    /// Returns the error that no packet was sent in time, with the next packet and its time.
    fn silence(&mut self, expected: &Packet, due: Due, place: Place) -> Problem {
        let later = match self.peek_packet(Time::NEVER, place) {
            Ok(Some(seen)) => format!("{}  {}", seconds(seen.at), matcher::write(&seen.packet)),
            _ => "no further packet is sent".into(),
        };
        let message = format!(
            "no packet was sent in time\n  expected: {}  {}\n  actual:   {later}",
            self.describe(due),
            matcher::write(expected)
        );
        Problem::new(place, message)
    }

    fn describe(&self, due: Due) -> String {
        if due.any {
            return "at any time".into();
        }
        let tolerance = due.tolerance.0 / 1_000_000;
        let range = if due.to > due.from { format!("~{}", seconds(due.to)) } else { String::new() };
        format!("{}{range} ±{}.{:03} ms", seconds(due.from), tolerance / 1_000, tolerance % 1_000)
    }

    fn with_dialogue(&self, mut problem: Problem) -> Problem {
        let skipped = self.system.log.len().saturating_sub(SHOWN);
        problem.message.push_str("\n  packets and calls until then:");
        if self.system.log.is_empty() {
            problem.message.push_str(" nothing");
        }
        if skipped > 0 {
            problem.message.push_str(&format!("\n    ({skipped} lines left out)"));
        }
        for line in &self.system.log[skipped..] {
            problem.message.push_str("\n    ");
            problem.message.push_str(line);
        }
        problem
    }
}

/// Returns the SYN-ACK that an event injects; `None` for other events.
fn syn_ack(event: &Event) -> Option<Packet> {
    const SYN_ACK: u8 = flag::SYN | flag::ACK;
    match &event.action {
        Action::Inject(p) if p.flags & SYN_ACK == SYN_ACK => Some(p.clone()),
        _ => None,
    }
}
