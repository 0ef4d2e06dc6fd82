//! `[fabric.energy]` and `[fabric.host_energy]`: what links draw, and whether they sleep.
//!
//! Settings and their sources are those of `eastwest_network::energy`.

use eastwest_network::config::PortSet;
use eastwest_network::energy::eee::{Policy, SleepBuffer, Trigger};
use eastwest_network::energy::phy::{KNOWN, Phy};
use eastwest_network::energy::{Adaptive, ClassEnergy, EnergyConfig, LinkPolicy, OwnPhy};
use eastwest_settings::narrow::{at_most, whole_part};
use eastwest_settings::quantity::{Fraction, Ratio};
use eastwest_settings::reader::{Section, key};
use eastwest_types::{Limit, Rate, Span};

#[derive(Clone, Copy)]
enum Kind {
    AlwaysOn,
    Ideal,
    Standard,
    StallTimer,
    Coalescing,
    Adaptive,
}

/// Rates of the links that each table is about.
pub struct LinkRates {
    /// Those of hosts.
    pub host: Vec<Rate>,
    /// Those between switches.
    pub fabric: Vec<Rate>,
}

/// Reads both tables.
pub fn read(s: &mut Section, rates: &LinkRates) -> EnergyConfig {
    let apart = s.has("host_energy");
    let all: Vec<Rate> = match apart {
        true => rates.fabric.clone(),
        false => rates.fabric.iter().chain(&rates.host).copied().collect(),
    };
    let doc = "What links draw, and whether they sleep (IEEE 802.3az).";
    let fabric = s.table("energy", doc, |e| read_class(e, &all));
    if !apart && !s.describing() {
        return EnergyConfig { host: fabric, fabric };
    }
    let doc = "The same for cables of hosts alone; without it they are as fabric.energy says.";
    let host = s.table("host_energy", doc, |e| read_class(e, &rates.host));
    EnergyConfig { host, fabric }
}

fn read_class(s: &mut Section, rates: &[Rate]) -> ClassEnergy {
    let kind = s.kind(
        "What a link does with nothing to send.",
        Some("always-on"),
        &[
            ("always-on", Kind::AlwaysOn, "it stays awake (legacy)"),
            ("ideal", Kind::Ideal, "it sleeps and wakes in no time: the lower bound"),
            ("standard", Kind::Standard, "it falls asleep at once and wakes for the first packet"),
            ("stall-timer", Kind::StallTimer, "it falls asleep after an idle period"),
            (
                "coalescing",
                Kind::Coalescing,
                "it falls asleep at once and wakes when the first packet has waited for a timer, \
                 or enough wait",
            ),
            (
                "adaptive",
                Kind::Adaptive,
                "the same with a timer that follows the load, within what the queue aims at",
            ),
        ],
    );
    let policy = match kind {
        Some(Kind::Ideal) => LinkPolicy::Ideal,
        Some(Kind::Standard) => LinkPolicy::Sleeping(Policy::STANDARD),
        Some(Kind::StallTimer) => LinkPolicy::Sleeping(Policy {
            stall: s.get(
                key("stall", "How long it stays awake with nothing to send (E-EON: 50 µs).")
                    .default("50 us")
                    .range("1 ns", "1 s"),
            ),
            ..Policy::STANDARD
        }),
        Some(Kind::Coalescing) => LinkPolicy::Sleeping(read_coalescing(s)),
        Some(Kind::Adaptive) => LinkPolicy::Adaptive(read_adaptive(s)),
        Some(Kind::AlwaysOn) | None => LinkPolicy::AlwaysOn,
    };
    let sleeps = matches!(policy, LinkPolicy::Sleeping(_) | LinkPolicy::Adaptive(_));
    let (phy, own) = read_phy(s, rates, sleeps);
    let both = sleeps
        && s.get(
            key(
                "both_directions",
                "Power is saved only while both directions of a cable sleep, as 1000BASE-T has it.",
            )
            .default("false"),
        );
    let buffer = if sleeps { read_sleep_buffer(s) } else { SleepBuffer::Port };
    ClassEnergy { policy, phy, own, both, buffer }
}

/// Where packets wait that come to a link that is not awake.
fn read_sleep_buffer(s: &mut Section) -> SleepBuffer {
    let below = s.choice(
        "sleep_buffer",
        "Where packets wait that come while the link falls asleep, sleeps or wakes.",
        Some("port"),
        &[
            ("port", false, "in the port's queue: they need room, and its discipline counts them"),
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

fn read_coalescing(s: &mut Section) -> Policy {
    let hold = s.get(
        key(
            "hold",
            "How long the first packet that finds it asleep is held (E-EON: 12 µs to 10 ms).",
        )
        .default("120 us")
        .range("0 s", "1 s"),
    );
    let trigger: Limit = s.get(
        key("trigger", "Packets or IP bytes that end holding at once (E-EON: 10 to 1000 packets).")
            .default("100 packets"),
    );
    let trigger = match trigger {
        Limit::Packets(n) => Trigger::Packets(n),
        Limit::Bytes(n) => Trigger::Bytes(n),
    };
    Policy { hold, trigger, ..Policy::STANDARD }
}

fn read_adaptive(s: &mut Section) -> Adaptive {
    let delay = s.find(
        key("delay", "How long a packet may be held, and what is held may take to be sent.")
            .optional("half of what the port's queue aims at, or 100 us")
            .range("1 ns", "1 s"),
    );
    let waste: Fraction = s.get(
        key(
            "waste",
            "Share of time that may go into falling asleep and waking before packets are held longer.",
        )
        .default("0.05")
        .range("0.001", "1"),
    );
    Adaptive { delay, waste_ppm: at_most(whole_part(waste.0 * 1e6)) }
}

/// The transceivers, where they are not those of the links' rates, and what the file says of them.
fn read_phy(s: &mut Section, rates: &[Rate], sleeps: bool) -> (Option<Phy>, OwnPhy) {
    const DOC: &str = "Transceivers; auto takes those of each link's rate, or the next faster \
                       ones for links that do not sleep.";
    let mut choices = vec![("auto", None, "those of the rate")];
    choices.extend(KNOWN.iter().map(|(name, _, phy)| (*name, Some(*phy), "see the page on EEE")));
    let named = s.choice("phy", DOC, Some("auto"), &choices);
    let times: [(&'static str, &'static str); 2] =
        [("wake_time", "Time to wake (Tw)."), ("sleep_time", "Time to fall asleep (Ts).")];
    let [wake, sleep] = times
        .map(|(name, doc)| s.find(key::<Span>(name, doc).optional("phy's").range("0 s", "100 ms")));
    let active: Option<Ratio> = s.find(
        key("active_w", "Watts of a port that is awake, falling asleep or waking.")
            .optional("phy's")
            .range("0", "1000"),
    );
    let share: Option<Fraction> = s.find(
        key("sleep_power", "Power asleep, refreshes included, as a share of active power.")
            .optional("phy's")
            .range("0", "1"),
    );
    let odd = rates.iter().find(|&&rate| !Phy::of_rate(rate).1);
    if let (true, None, Some(rate)) = (sleeps, named, odd) {
        s.demand(wake.is_some() && sleep.is_some(), &["phy"], || {
            let known: Vec<&str> = KNOWN.iter().map(|k| k.0).collect();
            format!(
                "auto knows no transceivers of {} Mbit/s that sleep: name one of {}, or give \
                 wake_time and sleep_time",
                rate.0 / 1_000_000,
                known.join(", ")
            )
        });
    }
    let (active_w, asleep_share) = (active.map(|w| w.0), share.map(|s| s.0));
    (named, OwnPhy { wake, sleep, active_w, asleep_share })
}

/// What a holding timer means for retransmission timers: a packet and its ACK may be held at every
/// link of the way.
pub fn note(energy: &EnergyConfig, hops: u64, min_rto: Span) -> Option<String> {
    let hold = |class: &ClassEnergy| match class.policy {
        LinkPolicy::Sleeping(policy) => policy.hold,
        LinkPolicy::Adaptive(adaptive) => adaptive.delay.unwrap_or(Adaptive::DELAY),
        LinkPolicy::AlwaysOn | LinkPolicy::Ideal => Span::ZERO,
    };
    let (host, fabric) = (hold(&energy.host), hold(&energy.fabric));
    let way =
        host.0.saturating_mul(2).saturating_add(fabric.0.saturating_mul(hops.saturating_sub(2)));
    let both = Span(way.saturating_mul(2));
    (both >= min_rto).then(|| {
        format!(
            "holding timers may keep a packet and its ACK for {} ms on {hops} links each way, which \
             is beyond tcp.min_rto ({} ms): timers may expire without any loss",
            both.as_us_f64() / 1000.0,
            min_rto.as_us_f64() / 1000.0
        )
    })
}

/// What is asked to be logged of links that never sleep.
pub fn note_lpi(energy: &EnergyConfig, ports: &PortSet) -> Option<String> {
    let sleeps =
        |class: &ClassEnergy| !matches!(class.policy, LinkPolicy::AlwaysOn | LinkPolicy::Ideal);
    let never = !sleeps(&energy.host) && !sleeps(&energy.fabric);
    (never && *ports != PortSet::default()).then(|| {
        "measure.lpi names ports, but no link falls asleep (fabric.energy.kind): the table lpi stays \
         empty"
            .to_owned()
    })
}
