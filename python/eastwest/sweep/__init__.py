"""Sweeps: a scenario run over grids, lists or samples of settings, with several seeds each.

``eastwest sweep FILE.toml`` on the command line, ``eastwest.sweep(...)`` in Python; the guide is
docs/guide/sweeps.md. Order of work: spec.py reads the file, check.py checks it with the scenario,
estimate.py estimates the time, driver.py runs the sweep (executor.py) in processes (pool.py,
worker.py) or on a Dask cluster (cluster.py, remote.py), tables.py writes the folder of results.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from eastwest import core
from eastwest.errors import InputError
from eastwest.mechanisms.load import Mechanism, Recipe
from eastwest.mechanisms.load import load as take_in
from eastwest.progress import SweepWords, watched
from eastwest.results import DEFAULT_PARENT, folder_stem
from eastwest.store import Store
from eastwest.sweep.check import load
from eastwest.sweep.driver import Driver
from eastwest.sweep.estimate import Estimate
from eastwest.sweep.executor import State, SweepStoppedError
from eastwest.sweep.spec import Spec
from eastwest.sweep.tables import SweepResult, check_target

__all__ = ["Estimate", "State", "SweepResult", "SweepStoppedError", "prepare", "sweep"]

#: Error message for a sweep with both ``jobs`` and ``dask``.
BOTH = (
    "jobs and dask cannot be combined: jobs is the number of processes on this machine, dask the "
    "address of a cluster"
)


def default_jobs() -> int:
    """Return the default number of processes of a sweep: the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def default_folder(spec: Spec) -> Path:
    """Return the default folder for the results of a sweep, below ``results/``."""
    stem = folder_stem(spec.name, 0).removesuffix("-0")
    return DEFAULT_PARENT / (stem if stem.split("-")[-1] == "sweep" else f"{stem}-sweep")


def prepare(
    spec: Spec,
    out: Path,
    *,
    jobs: int | None = None,
    dask: str | None = None,
    resume: bool = False,
    force: bool = False,
    retry: bool = False,
    store: str | Path | None = None,
    mechanisms: Recipe | None = None,
    confirm: Callable[[Estimate], bool],
    announce: Callable[[Estimate], None] = lambda _: None,
    progress: Callable[[State], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> Driver:
    """Check a sweep and its result folder ``out``, and return the ``Driver`` that executes it.

    ``dask`` is the address of a Dask scheduler, whose workers then execute the runs. ``confirm``
    returns whether a large sweep may start, given its estimated time; ``announce`` is called with
    the estimate before the first run, and ``say`` with messages for the user. Raises
    ``FolderError`` where ``out`` must not be written.
    """
    if dask is not None and jobs is not None:
        raise InputError(BOTH)
    driver = Driver(
        spec,
        Store(store),
        default_jobs() if jobs is None else jobs,
        dask=dask,
        retry=retry,
        mechanisms=mechanisms,
        confirm=confirm,
        announce=announce,
        progress=progress,
        say=say,
    )
    check_target(out, driver.source.text, core.version(), resume, force)
    return driver


def sweep(
    source: str | Path | Mapping[str, Any],
    axes: Mapping[str, Sequence[Any]] | None = None,
    *,
    seeds: int | Sequence[int] | Mapping[str, Any] | None = None,
    set: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    jobs: int | None = None,
    dask: str | None = None,
    resume: bool = False,
    force: bool = False,
    retry: bool = False,
    yes: bool = False,
    store: str | Path | None = None,
    mechanisms: Sequence[Mechanism] = (),
    progress: Callable[[State], None] | bool | None = None,
) -> SweepResult:
    """Run a sweep and return its result folder.

    ``source`` is a sweep file or a mapping with the keys of a sweep file. With ``axes`` (a list of
    values for each path), ``source`` is a scenario, as for ``eastwest.run``. ``seeds`` is a number
    of seeds, a list of seeds, or an adaptive rule; ``set`` has further settings of all points.
    ``seeds`` and ``set`` override the seeds and settings of the file.

    Runs that are in the run store (in the folder ``store``) are not simulated again. ``jobs`` is
    the number of processes (default: one for each core; 0: runs are executed in this process).
    ``dask`` is the address of a Dask scheduler, whose workers then execute the runs
    (docs/guide/cluster.md). ``resume`` continues or extends the sweep of an existing folder;
    ``force`` replaces the folder; ``retry`` runs failed runs again; ``yes`` confirms a sweep of any
    size; ``mechanisms`` are the user's own mechanisms that the scenario names, as for
    ``eastwest.run``. ``progress`` is a function that is called with the ``State`` of the sweep, or
    True, False or None, as for ``eastwest.run``. Failed runs are listed in ``failures`` of the
    result.

    Raises ``InputError`` for an invalid sweep (``ProblemsError``, a subclass, lists all problems),
    and ``SweepStoppedError`` where files cannot be written.
    """
    if axes is not None:
        listed = [{"path": path, "values": list(values)} for path, values in axes.items()]
        source = {"scenario": str(source), "axis": listed}
    wanted, recipe = take_in(mechanisms)
    with core.using(wanted):
        spec = load(source, {"seeds": seeds, "set": set})
    folder = Path(out) if out is not None else default_folder(spec)
    with core.using(wanted), watched(progress, spec.name, SweepWords()) as told:
        driver = prepare(
            spec,
            folder,
            jobs=jobs,
            dask=dask,
            resume=resume,
            force=force,
            retry=retry,
            store=store,
            mechanisms=recipe,
            confirm=lambda estimate: yes or _refuse(estimate),
            progress=told,
        )
        return driver.run(folder)


def _refuse(estimate: Estimate) -> bool:
    raise InputError(f"the sweep is large: {estimate.sentence()}; yes=True confirms the start")
