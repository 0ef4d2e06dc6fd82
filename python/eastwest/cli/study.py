"""Main program of a study: runs all configurations of its sweeps, and resumes where it stopped.

A study consists of *parts*: sets of sweeps whose points have names. The function ``command``
estimates the time of the runs that are not in the run store, executes them with one progress bar,
and calls functions of the study that make tables and pictures. The scripts ``papers/*/study.py``
use this module.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl

from eastwest.claims.grid import tables
from eastwest.claims.profiles import profile, varied
from eastwest.claims.readings import FIRST, reading
from eastwest.cli.guard import errors
from eastwest.cli.progress import Bar
from eastwest.partial import Partial
from eastwest.reader import read_file
from eastwest.results import Result
from eastwest.stats import mean_interval
from eastwest.store import Store, plan
from eastwest.sweep import State, default_jobs, prepare
from eastwest.sweep.check import load, overrides, source_of
from eastwest.sweep.spec import Spec
from eastwest.units import count, span

Labels = dict[str, str]
Numbers = Mapping[str, float]


def kept_table(path: Path, make: Callable[[], pl.DataFrame] | None) -> pl.DataFrame:
    """Return the table in the file ``path``; if ``make`` is given, first write its result there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if make is not None:
        keep_table(make(), path)
    if path.suffix == ".csv":
        return pl.read_csv(path, infer_schema_length=None)
    return pl.read_parquet(path)


def keep_table(table: pl.DataFrame, path: Path) -> None:
    """Write a table to ``path``: as CSV with six decimals for ``.csv``, else as Parquet.

    Parquet has every digit. Rounded values of two points could be equal, so that a Pareto front
    drawn from the table would change.
    """
    if path.suffix == ".csv":
        table.write_csv(path, float_precision=6)
    else:
        table.write_parquet(path, compression="zstd", statistics=False)


@dataclass(frozen=True)
class Part:
    """Part of a study: sweeps that belong together, as (name of the TCP profile, sweep)."""

    name: str
    sweeps: Sequence[tuple[str, Spec]]
    #: Function (TCP profile, sweep, number of a point) that returns the names of the point.
    labels: Callable[[str, Spec, int], Labels]
    #: Function (sweep, number of a point) that returns the expected CPU time of a run in s; it is
    #: used for points without stored runs.
    cost_s: Callable[[Spec, int], float]


@dataclass(frozen=True)
class Point:
    """A configuration of a study: names (labels), and the numbers of each run by seed."""

    labels: Labels
    runs: Mapping[int, Numbers]


@dataclass(frozen=True)
class Missing:
    """Number of runs of a sweep that are not in the run store, and their estimated CPU time."""

    runs: int
    cpu_s: float


def grid_sweeps(
    study: Path,
    *others: str,
    read_as: str = FIRST,
    names: Sequence[str] = (),
    claim: str = "",
) -> list[tuple[str, Spec]]:
    """Return (TCP profile, sweep) for the tables of a study's ``grid.toml``, for each TCP profile.

    The first profile is ``plain``, the study's own TCP; ``others`` are further profiles.
    ``read_as`` is the reading of the study (empty: the best-supported one) whose settings the
    sweeps get; it does not change settings of axes and of a profile. Values of the reading for
    single claims are left out, except those for ``claim``. ``names`` are the tables of the grid, in
    this order; without ``names``, all tables are used.
    """
    content, _ = read_file(study / "grid.toml")
    chosen, grid = reading(study, read_as), tables(content, study)
    found: list[tuple[str, Spec]] = []
    for name in ("plain", *others):
        for table_name in names or grid:
            table = grid[table_name]
            own = {
                "name": table_name,
                **{key: value for key, value in table.items() if key != "quick"},
            }
            kept = varied(own)
            if name != "plain":
                other = profile(study, name)
                kept |= {*other.settings} - {*own.get("set", {})}
                own = other.applied(own)
            found.append((name, load(chosen.applied(own, claim, kept))))
    return found


def decided(spec: Spec, number: int) -> dict[str, Any]:
    """Return all settings of the point ``number`` of a sweep, by path."""
    return {**spec.settings, **dict(zip(spec.paths, spec.at(number), strict=True))}


def policy_of(settings: Mapping[str, Any]) -> str:
    """Return the label of the E-EON studies for the energy policy in ``settings``.

    For example, ``12us10``: frames are held for 12 µs or until 10 frames wait. If hosts and
    switches differ, the label is that of the hosts with a ``+``.
    """
    kind = settings.get("fabric.energy.kind", "always-on")
    if kind == "stall-timer":
        return f"stall {settings['fabric.energy.stall']}"
    if kind != "coalescing":
        return {"always-on": "legacy", "standard": "nopa"}.get(kind, str(kind))
    ours = _label(settings, "fabric.energy")
    if settings.get("fabric.host_energy.kind") != "coalescing":
        return ours
    hosts = _label(settings, "fabric.host_energy")
    return ours if hosts == ours else f"{hosts}+"


def _label(settings: Mapping[str, Any], links: str) -> str:
    hold, trigger = settings[f"{links}.hold"], settings[f"{links}.trigger"]
    if hold == "0 s":
        return "nopa"
    return str(hold).replace(" ", "") + str(trigger).partition(" ")[0]


def points_of(
    part: Part, store: Store, numbers: Callable[[Mapping[str, Any]], Numbers]
) -> list[Point]:
    """Return the points of a part, with the numbers of the runs that the run store has.

    ``numbers`` returns the numbers of a run from its summary.
    """
    return [
        Point(
            part.labels(tcp, spec, number),
            {seed: numbers(kept.summary) for seed, kept in runs.items() if kept is not None},
        )
        for tcp, spec in part.sweeps
        for number, runs in _stored_runs(spec, store)
    ]


def interval(values: Sequence[float]) -> dict[str, Any]:
    """Return number (``n``), ``mean``, and ``low`` and ``high`` (95 % interval) of values by seed.

    Unknown values are None.
    """
    if not values:
        return {"n": 0, "mean": None, "low": None, "high": None}
    found = mean_interval(values)
    return {"n": found.n, "mean": found.value, "low": found.low, "high": found.high}


def common(point: Point) -> list[str]:
    """Return the names of the numbers that all runs of a point have."""
    each = [{*run} for run in point.runs.values()]
    return sorted(set.intersection(*each)) if each else []


def ratios(ours: Mapping[int, Numbers], theirs: Mapping[int, Numbers], name: str) -> list[float]:
    """Return ``ours`` / ``theirs`` of the number ``name``, for each seed that both points have.

    Seeds for which the number of ``theirs`` is 0 are left out.
    """
    return [
        ours[seed][name] / theirs[seed][name]
        for seed in ours
        if seed in theirs and theirs[seed][name]
    ]


def averages(
    points: Sequence[Point],
    further: Callable[[Point], Mapping[str, Sequence[float]]] = lambda _: {},
    always: str = "runtime_s",
) -> pl.DataFrame:
    """Return a table with a row for each point and number: mean over seeds, with its interval.

    ``further`` returns additional numbers of a point: name → values of the seeds. A point without
    numbers has one row, with the metric ``always`` and n = 0.
    """
    rows: list[dict[str, Any]] = []
    for point in points:
        samples = {name: [run[name] for run in point.runs.values()] for name in common(point)}
        found = {name: values for name, values in {**samples, **further(point)}.items() if values}
        rows += [
            {**point.labels, "metric": name, **interval(values)}
            for name, values in (found or {always: []}).items()
        ]
    return pl.DataFrame(rows, infer_schema_length=None)


def _stored_runs(spec: Spec, store: Store) -> list[tuple[int, dict[int, Result | None]]]:
    """Return (number of the point, result by seed) for each point of a sweep.

    The result of a run that is not in the run store is None.
    """
    source = source_of(spec)
    found = []
    for number in range(spec.count):
        wanted = plan(source, overrides(spec, spec.at(number)))
        found.append((number, {seed: store.find(wanted.key(seed)) for seed in spec.seeds}))
    return found


def missing_of(part: Part, store: Store) -> list[Missing]:
    """Return the missing runs of each sweep of a part: their number and expected CPU time.

    The expected time of a run is the mean CPU time of the stored runs of the point; without stored
    runs, it is ``cost_s`` of the part.
    """
    found = []
    for _, spec in part.sweeps:
        runs, cpu_s = 0, 0.0
        for number, kept in _stored_runs(spec, store):
            known = [float(run.summary["cpu_s"]) for run in kept.values() if run is not None]
            absent = len(kept) - len(known)
            runs += absent
            if absent:
                cpu_s += absent * (fmean(known) if known else part.cost_s(spec, number))
        found.append(Missing(runs, cpu_s))
    return found


class Overall(Bar):
    """A progress bar for all parts of a study, with the number of runs and the time left.

    ``missing`` has the missing runs of all sweeps of the study.
    """

    def __init__(self, missing: Sequence[Missing]) -> None:
        super().__init__(errors(), "study")
        self._runs = sum(each.runs for each in missing)
        self._cpu_s = sum(each.cpu_s for each in missing)
        self._done_runs, self._done_s = 0, 0.0
        self._began = time.monotonic()

    def sweep(self, name: str, missing: Missing) -> Callable[[State], None]:
        """Return the callback for the progress of the next sweep, which has ``missing`` runs.

        ``name`` is shown beside the bar.
        """
        runs, cpu_s = self._done_runs, self._done_s
        self._done_runs, self._done_s = runs + missing.runs, cpu_s + missing.cpu_s

        def tell(state: State) -> None:
            made = state.done + state.failed - state.reused
            done_s = cpu_s + missing.cpu_s * made / max(1, missing.runs)
            text = f"{count(runs + made)}/{count(self._runs)} runs"
            if done_s > 0:
                rate = (time.monotonic() - self._began) / done_s
                text += f" · {span(round(rate * max(0.0, self._cpu_s - done_s)))} left"
            self.show(text, done_s / max(1.0, self._cpu_s), name)

        return tell


def run(
    part: Part, missing: Sequence[Missing], bar: Overall, store: Store, dask: str | None = None
) -> None:
    """Execute the missing runs of a part, on this machine or on workers of a Dask scheduler.

    ``missing`` has the missing runs of each sweep; sweeps without any are skipped. Exits with a
    message if a run fails.
    """
    for (tcp, spec), absent in zip(part.sweeps, missing, strict=True):
        if not absent.runs:
            continue
        with Partial.scratch() as scratch:
            name = " ".join(word for word in (part.name, spec.name, tcp) if word)
            out = scratch.path / "sweep"
            driver = prepare(
                spec,
                out,
                dask=dask,
                store=store.path,
                confirm=lambda _: True,
                progress=bar.sweep(name, absent),
            )
            found = driver.run(out)
            if found.failures:
                raise SystemExit(
                    f"{name}: {len(found.failures)} runs failed; the first: {found.failures[0]}"
                )


def outlook(missing: Sequence[Missing]) -> str:
    """Return a text: the number of missing runs, and their expected wall time on all cores."""
    runs = sum(each.runs for each in missing)
    if not runs:
        return "no runs are missing"
    cpu_s, jobs = sum(each.cpu_s for each in missing), default_jobs()
    processes = "one process" if jobs == 1 else f"{jobs} processes"
    return f"{count(runs)} runs are missing: about {span(round(cpu_s / jobs))} on {processes}"


def command(
    arguments: Sequence[str],
    parts: Mapping[str, Callable[[], Part]],
    finish: Callable[[Part, Store, bool], None],
) -> None:
    """Run the main program of a study: execute parts, then call ``finish`` for each part.

    ``arguments`` are names of parts (default: all) and options. ``--plan`` prints only the number
    of missing runs and their time. ``--kept`` executes no runs. ``--draw`` executes no runs and
    does not read the run store. ``--dask ADDRESS`` executes runs on the workers of this Dask
    scheduler. ``finish`` gets the part, the run store, and whether to read the store.
    """
    arguments, dask = _without_dask(arguments)
    flags = {word for word in arguments if word.startswith("--")}
    chosen = [word for word in arguments if word not in flags] or [*parts]
    known = {*parts, "--plan", "--kept", "--draw"}
    if unknown := {*arguments} - known:
        known.add("--dask ADDRESS")
        raise SystemExit(
            f"unknown arguments: {', '.join(sorted(unknown))}; allowed: {', '.join(sorted(known))}"
        )
    store, made = Store(), {name: parts[name]() for name in chosen}
    if not flags or "--plan" in flags:
        absent = {name: missing_of(part, store) for name, part in made.items()}
        everything = [each for sweeps in absent.values() for each in sweeps]
        print(outlook(everything), file=sys.stderr, flush=True)
        if "--plan" in flags:
            return
        with Overall(everything) as bar:
            for name, part in made.items():
                run(part, absent[name], bar, store, dask)
    for part in made.values():
        finish(part, store, "--draw" not in flags)
        print(part.name, flush=True)


def _without_dask(arguments: Sequence[str]) -> tuple[list[str], str | None]:
    """Return (arguments without ``--dask ADDRESS``, the address or None)."""
    words = list(arguments)
    if "--dask" not in words:
        return words, None
    place = words.index("--dask")
    if place + 1 == len(words):
        raise SystemExit("--dask needs the address of a Dask scheduler: tcp://10.0.0.1:8786")
    address = words[place + 1]
    del words[place : place + 2]
    return words, address
