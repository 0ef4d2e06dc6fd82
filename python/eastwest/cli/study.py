"""Main program of a study: runs all configurations of its sweeps, and resumes where it stopped.

A study consists of *parts*: sets of sweeps whose points have names. ``command`` estimates the time
of the runs that the run store lacks, runs them with one progress bar, and calls functions of the
study that make tables and pictures. ``papers/*/study.py`` use this module.
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
    """Return the table stored at ``path``; with ``make``, first store the result of ``make()``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if make is not None:
        keep_table(make(), path)
    if path.suffix == ".csv":
        return pl.read_csv(path, infer_schema_length=None)
    return pl.read_parquet(path)


def keep_table(table: pl.DataFrame, path: Path) -> None:
    """Write a table as Parquet, or as CSV with six decimals, by the ending of ``path``.

    Parquet keeps every digit. Rounding could make two points equal, and so change a Pareto front
    that is drawn from the table.
    """
    if path.suffix == ".csv":
        table.write_csv(path, float_precision=6)
    else:
        table.write_parquet(path, compression="zstd", statistics=False)


@dataclass(frozen=True)
class Part:
    """Part of a study: sweeps that belong together, each with the name of its TCP profile."""

    name: str
    sweeps: Sequence[tuple[str, Spec]]
    #: Function that returns the names of a point; arguments: TCP profile, sweep, number of point.
    labels: Callable[[str, Spec, int], Labels]
    #: Function that returns the expected CPU time in s of a run of a point without stored runs.
    cost_s: Callable[[Spec, int], float]


@dataclass(frozen=True)
class Point:
    """A configuration of a study: its names, and the numbers of its runs by seed."""

    labels: Labels
    runs: Mapping[int, Numbers]


@dataclass(frozen=True)
class Missing:
    """Number of a sweep's runs that the store lacks, and their estimated CPU time in s."""

    runs: int
    cpu_s: float


def grid_sweeps(
    study: Path,
    *others: str,
    read_as: str = FIRST,
    names: Sequence[str] = (),
    claim: str = "",
) -> list[tuple[str, Spec]]:
    """Return (TCP profile, sweep) of a study's ``grid.toml``: the study's own TCP comes first.

    ``others`` are further TCP profiles. ``read_as`` names the reading of the study (empty: the best
    supported) whose settings the sweeps get; settings of axes and of a profile stay. Values of the
    reading for single claims are left out, except those for ``claim``. ``names`` are the tables of
    the grid to use, in this order; without ``names``, all are used.
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
    """Return E-EON's label of the energy policy in ``settings``, such as ``12us10+``."""
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
    """Return the points of a part; ``numbers`` returns the numbers of a run from its summary."""
    return [
        Point(
            part.labels(tcp, spec, number),
            {seed: numbers(kept.summary) for seed, kept in runs.items() if kept is not None},
        )
        for tcp, spec in part.sweeps
        for number, runs in _stored_runs(spec, store)
    ]


def interval(values: Sequence[float]) -> dict[str, Any]:
    """Return columns of values by seed: n, mean, low and high (95 % interval); None if unknown."""
    if not values:
        return {"n": 0, "mean": None, "low": None, "high": None}
    found = mean_interval(values)
    return {"n": found.n, "mean": found.value, "low": found.low, "high": found.high}


def common(point: Point) -> list[str]:
    """Return the names of the numbers that all runs of a point have."""
    each = [{*run} for run in point.runs.values()]
    return sorted(set.intersection(*each)) if each else []


def ratios(ours: Mapping[int, Numbers], theirs: Mapping[int, Numbers], name: str) -> list[float]:
    """Return the ratios of the number ``name``, ours to theirs, for seeds that both points have.

    Seeds where their number is 0 are left out.
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
    """Return a table of means over seeds, with intervals, of all numbers of points.

    ``further`` returns additional numbers of a point, each with its values by seed. A point without
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
    """Return (number of the point, result by seed) for each point; None: not in the store."""
    source = source_of(spec)
    found = []
    for number in range(spec.count):
        wanted = plan(source, overrides(spec, spec.at(number)))
        found.append((number, {seed: store.find(wanted.key(seed)) for seed in spec.seeds}))
    return found


def missing_of(part: Part, store: Store) -> list[Missing]:
    """Return for each sweep of a part the number of missing runs and their expected CPU time.

    The expected time of a run is the mean CPU time of the stored runs of its point; without stored
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
    """A progress bar for all parts of a study: runs done, and estimate of the time left."""

    def __init__(self, missing: Sequence[Missing]) -> None:
        super().__init__(errors(), "study")
        self._runs = sum(each.runs for each in missing)
        self._cpu_s = sum(each.cpu_s for each in missing)
        self._done_runs, self._done_s = 0, 0.0
        self._began = time.monotonic()

    def sweep(self, name: str, missing: Missing) -> Callable[[State], None]:
        """Return the callback for the progress of a sweep of this name."""
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
    """Execute the runs of a part that the store lacks, here or on workers of a Dask scheduler."""
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
    """Return a sentence on the expected time of the missing runs."""
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
    """Run the named parts of a study, or all, and finish each: the main program of a study.

    ``--plan`` prints only the number of missing runs and their time. ``--kept`` runs nothing.
    ``--draw`` runs nothing and does not read the store. ``--dask ADDRESS`` runs on the workers of
    this Dask scheduler. ``finish`` gets the part, the store, and whether to read the store.
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
    """Return the arguments without ``--dask ADDRESS``, and the address; None without it."""
    words = list(arguments)
    if "--dask" not in words:
        return words, None
    place = words.index("--dask")
    if place + 1 == len(words):
        raise SystemExit("--dask needs the address of a Dask scheduler: tcp://10.0.0.1:8786")
    address = words[place + 1]
    del words[place : place + 2]
    return words, address
