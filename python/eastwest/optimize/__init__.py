"""Search for the best settings of a scenario under limits: ``eastwest optimize FILE.toml``.

The guide is docs/guide/optimize.md. Order of work: spec.py reads the file, check.py checks it with
the scenario, search.py proposes points (space.py) and measures them through evaluate.py,
goals/judge.py compares points, verdict.py decides on the recommended point, folder.py writes the
folder of results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from eastwest import core
from eastwest.errors import InputError
from eastwest.mechanisms.load import Mechanism, Recipe
from eastwest.mechanisms.load import load as take_in
from eastwest.optimize.check import load, source_of
from eastwest.optimize.evaluate import Evaluator
from eastwest.optimize.folder import OptimizeResult, target, write
from eastwest.optimize.search import Plan, Search
from eastwest.optimize.spec import Spec
from eastwest.optimize.verdict import Verdict
from eastwest.progress import SweepWords, watched
from eastwest.results import DEFAULT_PARENT, folder_stem
from eastwest.store import Store
from eastwest.sweep import BOTH, State, default_jobs
from eastwest.sweep.driver import ASK_FROM_S
from eastwest.units import count, span

__all__ = ["OptimizeResult", "Plan", "default_folder", "load", "optimize", "run", "sentence"]


def default_folder(spec: Spec) -> Path:
    """Return the default folder for the results of an optimisation, below ``results/``."""
    return DEFAULT_PARENT / f"{folder_stem(spec.name, 0).removesuffix('-0')}-optimize"


def sentence(plan: Plan, jobs: int) -> str:
    """Return one line of text: the number of points and runs of a search, and their time.

    ``jobs`` is the number of processes.
    """
    number = count(plan.proposals)
    what = f"all {number} points of the space" if plan.exhaustive else f"{number} proposals"
    runs = f"up to {count(plan.runs)} runs"
    if plan.reused:
        runs += f", {count(plan.reused)} of them in the store"
    return (
        f"{what}, {runs}, about {span(plan.wall_s)} on {jobs} process{'es' * (jobs > 1)} "
        "(from runs of the baseline)"
    )


def run(
    spec: Spec,
    out: Path,
    *,
    jobs: int | None = None,
    dask: str | None = None,
    force: bool = False,
    retry: bool = False,
    store: str | Path | None = None,
    mechanisms: Recipe | None = None,
    confirm: Callable[[Plan, int], bool] = lambda *_: True,
    announce: Callable[[Plan, int], None] = lambda *_: None,
    progress: Callable[[State], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> OptimizeResult:
    """Search the space, write the result folder ``out`` and return this folder.

    ``confirm`` returns whether a search of more than eight hours may start, and ``announce`` is
    called before each search; both get the ``Plan`` and the number of processes. ``say`` is called
    with messages for the user. Raises ``InputError`` if the search is not confirmed, or if the
    baseline fails.
    """
    if dask is not None and jobs is not None:
        raise InputError(BOTH)
    place = target(out, force)
    place.check()
    kept = Store(store)
    kept.check()
    kept.tidy()
    evaluator = Evaluator(
        source_of(spec),
        kept,
        default_jobs() if jobs is None else jobs,
        dask=dask,
        retry=retry,
        mechanisms=mechanisms,
        progress=progress,
        say=say,
    )

    def planned(plan: Plan) -> None:
        size = evaluator.pool.size
        if plan.wall_s > ASK_FROM_S and not confirm(plan, size):
            raise InputError(
                f"the search was not confirmed and is not started: {sentence(plan, size)}"
            )
        announce(plan, size)

    try:
        evaluator.pool.open()
        search = Search(spec, evaluator)
        search.run(planned)
    finally:
        evaluator.pool.close()
    return write(search, Verdict(search), place)


def optimize(
    source: str | Path,
    *,
    out: str | Path | None = None,
    jobs: int | None = None,
    dask: str | None = None,
    force: bool = False,
    retry: bool = False,
    yes: bool = False,
    store: str | Path | None = None,
    mechanisms: Sequence[Mechanism] = (),
    progress: Callable[[State], None] | bool | None = None,
) -> OptimizeResult:
    """Search for the best settings of a scenario under limits; ``source`` is an optimisation file.

    ``recommended`` of the result is the recommended point with its settings, and its changes
    against the baseline with intervals. ``recommended`` is None if no point keeps the limits;
    ``summary["reason"]`` has the reason. Runs in the run store are not simulated again, so a second
    call continues an interrupted search. The other arguments are those of ``eastwest.sweep``.

    Raises ``InputError`` for an invalid file (``ProblemsError``, a subclass, lists all problems),
    or where a search of more than eight hours is not confirmed by ``yes``.
    """
    wanted, recipe = take_in(mechanisms)
    with core.using(wanted):
        spec = load(source)
        with watched(progress, spec.name, SweepWords()) as told:
            return run(
                spec,
                Path(out) if out is not None else default_folder(spec),
                jobs=jobs,
                dask=dask,
                force=force,
                retry=retry,
                store=store,
                mechanisms=recipe,
                confirm=lambda *_: yes,
                progress=told,
            )
