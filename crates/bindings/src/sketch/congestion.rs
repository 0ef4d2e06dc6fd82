//! Congestion controls in Python.

use super::object::{Object, Origin};
use eastwest_transport::congestion::custom::CongestionModel;
use eastwest_transport::congestion::rules::CongestionRules;
use eastwest_transport::congestion::{self, CongestionControl, SenderPlace, new_reno};
use eastwest_types::{Span, Time};
use pyo3::prelude::*;

/// A congestion control written in Python: a class and its settings.
#[derive(Debug)]
pub struct Model {
    /// The class and its settings.
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
        Box::new(SketchCongestion {
            object,
            rules: place.rules,
            on_ack: has("on_ack"),
            after_loss: has("after_loss"),
            after_marks: has("after_marks"),
            observe: has("observe"),
            after_timeout: has("after_timeout"),
            after_idle: has("after_idle"),
        })
    }

    fn echoes_each_mark(&self) -> bool {
        self.origin.sketch.has("echoes_each_mark")
    }
}

/// A sender. Methods that the class does not have behave as in RFC 5681.
#[derive(Debug)]
struct SketchCongestion {
    object: Object,
    rules: CongestionRules,
    on_ack: bool,
    after_loss: bool,
    after_marks: bool,
    observe: bool,
    after_timeout: bool,
    after_idle: bool,
}

impl SketchCongestion {
    fn threshold(&self, method: &str, w: &congestion::Window, flight: u64, segment: u64) -> u64 {
        let reno = || new_reno::threshold(w, flight, segment, &self.rules);
        let seen = Window { cwnd: w.cwnd, ssthresh: w.ssthresh };
        self.object.call(method, (seen, flight), |answer| answer.extract()).unwrap_or_else(reno)
    }
}

impl CongestionControl for SketchCongestion {
    fn on_ack(&mut self, w: &mut congestion::Window, ack: &congestion::Ack) {
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
        w.cwnd = cwnd.unwrap_or(w.cwnd).max(ack.segment);
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

    fn observe(&mut self, seen: &congestion::Seen) {
        if self.observe {
            let told = Seen {
                now_ps: seen.now.0,
                delivered: seen.delivered,
                marked: seen.marked,
                acked_to: seen.una,
                sent_to: seen.next,
                rtt_ps: seen.rtt.map(|rtt| rtt.0),
            };
            self.object.call("observe", (told,), |_| Ok(()));
        }
    }

    fn after_timeout(&mut self, _: u64) {
        if self.after_timeout {
            self.object.call("after_timeout", (), |_| Ok(()));
        }
    }

    fn after_idle(&mut self, now: Time, idle: Span) {
        if self.after_idle {
            self.object.call("after_idle", (now.0, idle.0), |_| Ok(()));
        }
    }
}

/// The window of a sender, in bytes.
#[pyclass(module = "eastwest", frozen, get_all)]
struct Window {
    cwnd: u64,
    ssthresh: u64,
}

/// An ACK that allows the window to grow.
#[pyclass(module = "eastwest", frozen, get_all)]
struct Ack {
    now_ps: u64,
    acked: u64,
    srtt_ps: u64,
    after_timeout: bool,
    in_slow_start: bool,
}

/// An ACK of any kind.
#[pyclass(module = "eastwest", frozen, get_all)]
struct Seen {
    now_ps: u64,
    delivered: u64,
    marked: bool,
    acked_to: u64,
    sent_to: u64,
    rtt_ps: Option<u64>,
}
