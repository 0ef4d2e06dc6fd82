//! Runs a simulation, from a checked scenario to its results.

use crate::approximate_run::ApproximateRun;
use crate::flow_world::FlowWorld;
use crate::links::LinksWorld;
use crate::plan::Plan;
use crate::results::Results;
use crate::scenario::{Fidelity, Scenario};
use crate::world::{Progress, RunError, World};

/// Runs a checked scenario to its end. `reference` forces every port into the two-event mode (a
/// slower reference implementation), which must not change the digest. `look` is called regularly
/// (every 65,536 events or earlier) with the progress of the run; if it returns false, the run
/// stops with [`RunError::Interrupted`].
pub fn run(
    scenario: &Scenario,
    reference: bool,
    look: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Results, RunError> {
    let mut plan = Plan::new(scenario).map_err(|reasons| RunError::Limit(reasons.join("; ")))?;
    plan.fabric.reference_ports |= reference;
    match scenario.fidelity {
        Fidelity::Flow => approximate::<FlowWorld>(plan, look),
        Fidelity::Links => approximate::<LinksWorld>(plan, look),
        Fidelity::Packet => {
            let mut world = World::new(plan).map_err(RunError::Limit)?;
            world.run(&mut |world| look(&world.progress()))?;
            Ok(Results::new(world))
        }
    }
}

fn approximate<W: ApproximateRun>(
    plan: Plan,
    look: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Results, RunError> {
    let mut world = W::new(plan).map_err(RunError::Limit)?;
    world.run(1, &mut |site| look(&site.progress()))?;
    Ok(Results::new(world.finish()))
}
