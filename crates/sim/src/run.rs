//! One simulation from scenario to results.

use crate::flow_world::FlowWorld;
use crate::plan::Plan;
use crate::results::Results;
use crate::scenario::{Fidelity, Scenario};
use crate::threads::Team;
use crate::world::{Progress, RunError, World};

/// Runs a checked scenario to its end. `reference` forces every port into the two-event mode, which
/// must not change the digest. `look` is called some hundred times a second; where it returns false
/// the run stops with [`RunError::Interrupted`].
pub fn run(
    scenario: &Scenario,
    reference: bool,
    look: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Results, RunError> {
    run_on(scenario, reference, 1, look)
}

/// The same on several threads, where that can be done; the results are the same.
pub fn run_on(
    scenario: &Scenario,
    reference: bool,
    threads: usize,
    look: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Results, RunError> {
    let mut plan = Plan::new(scenario).map_err(|reasons| RunError::Limit(reasons.join("; ")))?;
    plan.fabric.reference_ports |= reference;
    if scenario.fidelity == Fidelity::Flow {
        let mut world = FlowWorld::new(plan).map_err(RunError::Limit)?;
        world.run(&mut |world| look(&world.progress()))?;
        return Ok(Results::new(world.finish()));
    }
    let mut team = (threads > 1).then(|| Team::new(&plan, threads));
    let mut world = World::new(plan).map_err(RunError::Limit)?;
    let mut look = |world: &mut World| look(&world.progress());
    match &mut team {
        Some(Ok(team)) => world.run_with(team, &mut look)?,
        _ => world.run(&mut look)?,
    }
    let mut results = Results::new(world);
    results.notes.extend(team.map(|team| note(&team)));
    Ok(results)
}

/// What is said of a run for which several threads were asked.
pub fn note(team: &Result<Team, String>) -> String {
    match team {
        Ok(team) => team.note(),
        Err(why) => format!("one thread: {why}"),
    }
}
