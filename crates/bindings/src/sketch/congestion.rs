//! Congestion controls written in Python.

use super::object::{Object, Origin};
use eastwest_transport::congestion::custom::CongestionModel;
use eastwest_transport::congestion::delivery_rate::RateSampler;
use eastwest_transport::congestion::rules::CongestionRules;
use eastwest_transport::congestion::{
    self, CongestionControl, LARGEST_WINDOW, SenderPlace, new_reno,
};
use eastwest_types::{HopTelemetry, Span, Time};
use pyo3::prelude::*;

/// A congestion control written in Python: the user's class and its settings.
#[derive(Debug)]
pub struct Model {
    /// The Python class and its settings.
    pub origin: Origin,
}

impl CongestionModel for Model {
    fn start(&self, place: &SenderPlace) -> Box<dyn CongestionControl> {
        let object = self.origin.object(
            |what| place.random(what),
            |object| {
                object.setattr("segment", place.segment)?;
                object.setattr("initial_window", place.initial_window)
            },
        );
        let has = |method| self.origin.sketch.has(method);
        let mut sender = SketchCongestion {
            object,
            rules: place.rules,
            paces: has("paces"),
            pacing_rate: None,
            sampler: has("observe").then(|| Box::new((RateSampler::default(), Span::MAX))),
            window_set: false,
            telemetry: Vec::new(),
            on_ack: has("on_ack"),
            after_loss: has("after_loss"),
            after_marks: has("after_marks"),
            after_timeout: has("after_timeout"),
            after_idle: has("after_idle"),
        };
        sender.read_pacing_rate();
        Box::new(sender)
    }

    fn echoes_each_mark(&self) -> bool {
        self.origin.sketch.has("echoes_each_mark")
    }

    fn paces(&self) -> bool {
        self.origin.sketch.has("paces")
    }

    fn samples_rate(&self) -> bool {
        self.origin.sketch.has("observe")
    }

    fn reads_telemetry(&self) -> bool {
        self.origin.sketch.has("reads_telemetry")
    }
}

/// Congestion control of one sender, written in Python. If the class does not define a method, the
/// rule of RFC 5681 applies; if it defines `after_loss` but not `after_marks`, `after_loss` is also
/// called for marks.
#[derive(Debug)]
struct SketchCongestion {
    object: Object,
    rules: CongestionRules,
    paces: bool,
    /// Pacing rate in bytes per second; `None`: the sender does not pace.
    pacing_rate: Option<u64>,
    /// Estimator of the delivery rate, and the smallest round-trip time so far; `None` if the
    /// Python class does not define `observe`.
    sampler: Option<Box<(RateSampler, Span)>>,
    /// Whether the Python method `observe` has set the congestion window for the latest ACK.
    window_set: bool,
    /// Telemetry that the ACK returns; empty if it returns none.
    telemetry: Vec<HopRecord>,
    on_ack: bool,
    after_loss: bool,
    after_marks: bool,
    after_timeout: bool,
    after_idle: bool,
}

impl SketchCongestion {
    fn threshold(
        &mut self,
        method: &str,
        w: &congestion::Window,
        flight: u64,
        segment: u64,
    ) -> u64 {
        let seen = Window { cwnd: w.cwnd, ssthresh: w.ssthresh };
        let answer = self.object.call(method, (seen, flight), |answer| answer.extract());
        self.read_pacing_rate();
        answer.unwrap_or_else(|| new_reno::threshold(w, flight, segment, &self.rules))
    }

    /// Reads the pacing rate that the Python class has set. It is called after each call of a
    /// Python method, which may change the rate.
    fn read_pacing_rate(&mut self) {
        if self.paces {
            let bits = self.object.number("pacing_rate_bps", 8, false);
            self.pacing_rate = bits.map(|bits| bits / 8);
        }
    }
}

impl CongestionControl for SketchCongestion {
    fn on_ack(&mut self, w: &mut congestion::Window, ack: &congestion::Ack) {
        if !self.on_ack && self.window_set {
            return;
        }
        if !self.on_ack {
            return new_reno::on_ack(w, ack.acked, ack.segment, ack.after_timeout, &self.rules);
        }
        let seen = Ack {
            now_ps: ack.now.0,
            acked: ack.acked,
            srtt_ps: ack.srtt.0,
            after_timeout: ack.after_timeout,
            in_slow_start: w.in_slow_start(),
        };
        let window = Window { cwnd: w.cwnd, ssthresh: w.ssthresh };
        let cwnd = self.object.call("on_ack", (window, seen), |answer| answer.extract::<u64>());
        self.read_pacing_rate();
        w.cwnd = cwnd.unwrap_or(w.cwnd).clamp(ack.segment, LARGEST_WINDOW);
    }

    fn after_loss(&mut self, w: &congestion::Window, flight: u64, segment: u64) -> u64 {
        match self.after_loss {
            true => self.threshold("after_loss", w, flight, segment),
            false => new_reno::threshold(w, flight, segment, &self.rules),
        }
    }

    fn after_marks(&mut self, w: &congestion::Window, flight: u64, segment: u64) -> u64 {
        match self.after_marks {
            true => self.threshold("after_marks", w, flight, segment),
            false => self.after_loss(w, flight, segment),
        }
    }

    fn on_telemetry(&mut self, hops: &[HopTelemetry]) {
        self.telemetry = hops.iter().map(HopRecord::from).collect();
    }

    fn act(&mut self, w: &congestion::Window, seen: &congestion::Seen) -> Option<u64> {
        let (sampler, min_rtt) = self.sampler.as_deref_mut()?;
        *min_rtt = seen.rtt.map_or(*min_rtt, |rtt| rtt.min(*min_rtt));
        let sample = sampler.sample.take();
        let rate = sample.map(|sample| sample.rate()).filter(|&rate| rate > 0);
        let told = Seen {
            now_ps: seen.now.0,
            delivered: seen.delivered,
            marked: seen.marked,
            acked_to: seen.una,
            sent_to: seen.next,
            rtt_ps: seen.rtt.map(|rtt| rtt.0),
            delivery_rate_bps: rate.map(|bytes| bytes.saturating_mul(8)),
            app_limited: sample.is_some_and(|sample| sample.app_limited),
            cwnd: w.cwnd,
            telemetry: std::mem::take(&mut self.telemetry),
        };
        let cwnd = self.object.call("observe", (told,), |answer| answer.extract::<Option<u64>>());
        self.read_pacing_rate();
        self.window_set = matches!(cwnd, Some(Some(_)));
        cwnd.flatten()
    }

    fn sampler(&mut self) -> Option<(&mut RateSampler, Span)> {
        self.sampler.as_deref_mut().map(|(sampler, min_rtt)| (sampler, *min_rtt))
    }

    fn pacing_rate(&self) -> Option<u64> {
        self.pacing_rate
    }

    fn after_timeout(&mut self, _: u64) {
        if self.after_timeout {
            self.object.call("after_timeout", (), |_| Ok(()));
            self.read_pacing_rate();
        }
    }

    fn after_idle(&mut self, now: Time, idle: Span) {
        if self.after_idle {
            self.object.call("after_idle", (now.0, idle.0), |_| Ok(()));
            self.read_pacing_rate();
        }
    }
}

/// Congestion window `cwnd` and slow-start threshold `ssthresh` of a sender, in bytes, for Python
/// methods.
#[pyclass(module = "eastwest", frozen, get_all)]
struct Window {
    cwnd: u64,
    ssthresh: u64,
}

/// An ACK after which the congestion window may grow, as the Python method `on_ack` receives it.
#[pyclass(module = "eastwest", frozen, get_all)]
struct Ack {
    now_ps: u64,
    acked: u64,
    srtt_ps: u64,
    after_timeout: bool,
    in_slow_start: bool,
}

/// An ACK of any kind, as the Python method `observe` receives it.
#[pyclass(module = "eastwest", frozen, get_all)]
struct Seen {
    now_ps: u64,
    delivered: u64,
    marked: bool,
    acked_to: u64,
    sent_to: u64,
    rtt_ps: Option<u64>,
    delivery_rate_bps: Option<u64>,
    app_limited: bool,
    cwnd: u64,
    telemetry: Vec<HopRecord>,
}

/// Telemetry record of one switch port on the path of a data packet.
#[pyclass(module = "eastwest", name = "HopTelemetry", frozen, get_all, skip_from_py_object)]
#[derive(Clone, Debug)]
struct HopRecord {
    time_ps: u64,
    queued_bytes: u64,
    sent_bytes: u64,
    rate_bps: u64,
}

impl From<&HopTelemetry> for HopRecord {
    fn from(hop: &HopTelemetry) -> HopRecord {
        HopRecord {
            time_ps: hop.at.0,
            queued_bytes: hop.queued_bytes,
            sent_bytes: hop.sent_bytes,
            rate_bps: hop.rate.0,
        }
    }
}
