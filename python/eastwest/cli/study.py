"""Studies: every configuration of grids and sweeps by one command, which resumes where it stopped.

A study has a few *parts*, each some sweeps with names for their points. ``command`` estimates the
time of the runs that the store lacks, runs them under one progress bar, and calls the study to make
tables and pictures. ``papers/*/study.py`` use it.
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
    """Return the kept table of a part; ``make`` returns a new one, which is kept before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if make is not None:
        keep_table(make(), path)
    if path.suffix == ".csv":
        return pl.read_csv(path, infer_schema_length=None)
    return pl.read_parquet(path)


def keep_table(table: pl.DataFrame, path: Path) -> None:
    """Write a table as Parquet, or as CSV with six decimals for people.

    Parquet keeps every digit: a front of best points that is drawn from the table changes where
    rounding makes two points equal.
    """
    if path.suffix == ".csv":
        table.write_csv(path, float_precision=6)
    else:
        table.write_parquet(path, compression="zstd", statistics=False)


@dataclass(frozen=True)
class Part:
    """Sweeps of a study that belong together, each with its TCP."""

    name: str
    sweeps: Sequence[tuple[str, Spec]]
    #: Function from TCP, sweep and number of a point to its names.
    labels: Callable[[str, Spec, int], Labels]
    #: Expected CPU time of a run of a point in s, where no run of it is stored.
    cost_s: Callable[[Spec, int], float]


@dataclass(frozen=True)
class Point:
    """A configuration of a study with the numbers of its runs, by seed."""

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
    """Return the sweeps of a study's ``grid.toml`` with its own TCP, then with each profile's.

    ``read_as`` names the reading of the study whose settings they get, as claims do, or is empty
    for the best supported: settings of axes and of a profile stay. Values for single claims are
    left out, but those for ``claim``. ``names`` are the tables to take, in this order; without them
    all are.
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
    """Return all settings of a point of a sweep by path; ``number`` is that of the point."""
    return {**spec.settings, **dict(zip(spec.paths, spec.at(number), strict=True))}


def policy_of(settings: Mapping[str, Any]) -> str:
    """Return the policy of idle links with the label of E-EON, such as ``12us10+``."""
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
    """Return the points of a part with the numbers of their runs in the store, from summaries."""
    return [
        Point(
            part.labels(tcp, spec, number),
            {seed: numbers(kept.summary) for seed, kept in runs.items() if kept is not None},
        )
        for tcp, spec in part.sweeps
        for number, runs in _stored_runs(spec, store)
    ]


def interval(values: Sequence[float]) -> dict[str, Any]:
    """Return the mean over seeds with its 95 % interval, as columns; empty without values."""
    if not values:
        return {"n": 0, "mean": None, "low": None, "high": None}
    found = mean_interval(values)
    return {"n": found.n, "mean": found.value, "low": found.low, "high": found.high}


def common(point: Point) -> list[str]:
    """Return the names of the numbers that all runs of a point have."""
    each = [{*run} for run in point.runs.values()]
    return sorted(set.intersection(*each)) if each else []


def ratios(ours: Mapping[int, Numbers], theirs: Mapping[int, Numbers], name: str) -> list[float]:
    """Return the ratios of a number to that of another point, seed by seed."""
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
    """Return the means over seeds of all numbers of points, with their intervals.

    ``further`` returns values of a point by seed beside those of its runs. A point without any has
    one row, of the number ``always``.
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
    """Return the runs of each point that the store has, by seed."""
    source = source_of(spec)
    found = []
    for number in range(spec.count):
        wanted = plan(source, overrides(spec, spec.at(number)))
        found.append((number, {seed: store.find(wanted.key(seed)) for seed in spec.seeds}))
    return found


def missing_of(part: Part, store: Store) -> list[Missing]:
    """Return for each sweep of a part the runs that the store lacks, with their CPU time.

    The expected time of a run is that of stored runs of its point, or else the part's ``cost_s``.
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
    """A progress bar for all parts: runs done, and time left from their expected times."""

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
    """Run the runs that the store lacks of a part, here or on the workers of a Dask scheduler."""
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
                raise SystemExit(f"{name}: {len(found.failures)} failed: {found.failures[0]}")


def outlook(missing: Sequence[Missing]) -> str:
    """Return a sentence on the expected time of the missing runs."""
    runs = sum(each.runs for each in missing)
    if not runs:
        return "all runs are there"
    cpu_s, jobs = sum(each.cpu_s for each in missing), default_jobs()
    processes = "one process" if jobs == 1 else f"{jobs} processes"
    return f"{count(runs)} runs are missing: about {span(round(cpu_s / jobs))} on {processes}"


def command(
    arguments: Sequence[str],
    parts: Mapping[str, Callable[[], Part]],
    finish: Callable[[Part, Store, bool], None],
) -> None:
    """Run the parts named, or all, and finish each: the main program of a study.

    ``--plan`` prints only the missing runs and their time, ``--kept`` runs nothing, ``--draw`` does
    not even read the store; ``--dask ADDRESS`` runs on the workers of this scheduler. ``finish``
    gets the part, the store, and whether to read it.
    """
    arguments, dask = _without_dask(arguments)
    flags = {word for word in arguments if word.startswith("--")}
    chosen = [word for word in arguments if word not in flags] or [*parts]
    known = {*parts, "--plan", "--kept", "--draw"}
    if unknown := {*arguments} - known:
        known.add("--dask ADDRESS")
        raise SystemExit(
            f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(sorted(known))}"
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
    """Return arguments without ``--dask ADDRESS``, and the address or None."""
    words = list(arguments)
    if "--dask" not in words:
        return words, None
    place = words.index("--dask")
    if place + 1 == len(words):
        raise SystemExit("--dask needs the address of a scheduler, such as tcp://10.0.0.1:8786")
    address = words[place + 1]
    del words[place : place + 2]
    return words, address
