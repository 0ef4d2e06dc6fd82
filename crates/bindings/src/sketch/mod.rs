//! Mechanisms written in Python (sketches): a quick first version of an idea, several hundred times
//! slower than Rust.
//!
//! A sketch is a class; every port, sender, switch or process has its own object of this class. The
//! arguments and return values of its methods are described in
//! `python/eastwest/mechanisms/sketch.py`. The first exception ends the run: after it no sketch is
//! called, and the exception is the error of the run.

mod application;
mod congestion;
mod object;
mod queue;
mod routing;
mod settings;

pub use object::{Sketch, Watch};

use eastwest_mechanism::Mechanisms;
use eastwest_mechanism::parameters::read_signal;
use object::Origin;
use std::sync::Arc;

/// Adds sketches (mechanisms in Python) to the mechanisms of a run. `watch` counts the calls of
/// their methods and holds their first exception.
pub fn add(all: &mut Mechanisms, sketches: Vec<Sketch>, watch: &Arc<Watch>) {
    for sketch in sketches {
        let (name, doc) = (settings::lasting(&sketch.name), settings::lasting(&sketch.doc));
        let (sketch, watch) = (Arc::new(sketch), watch.clone());
        match sketch.kind.as_str() {
            "queue" => all.queue(name, doc, move |s, limit| queue::Model {
                origin: Origin::read(s, &sketch, &watch),
                signal: read_signal(s),
                limit,
            }),
            "congestion" => all.congestion(name, doc, move |s| congestion::Model {
                origin: Origin::read(s, &sketch, &watch),
            }),
            "application" => {
                let lasting = |(name, doc): &(String, String)| application::Role {
                    name: settings::lasting(name),
                    doc: settings::lasting(doc),
                };
                let roles: Vec<_> = sketch.roles.iter().map(lasting).collect();
                all.application(name, doc, &roles, move |s| {
                    application::Model::new(Origin::read(s, &sketch, &watch))
                });
            }
            _ => all.routing(name, doc, move |s| routing::Model {
                origin: Origin::read(s, &sketch, &watch),
            }),
        }
    }
}
