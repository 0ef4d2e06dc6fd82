"""Classes and decorators for measures: runs, points with values by seed, and registries."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_type_hints

from eastwest.claims.selection import fits, names, shown
from eastwest.errors import InputError, nearest
from eastwest.reader import flat, meant
from eastwest.results import Result
from eastwest.stats import mean_interval
from eastwest.sweep.tables import RUN_COLUMNS, SweepResult

#: One row of a claim's table: numbers and texts by column.
Row = dict[str, float | int | str | None]
Settings = Mapping[str, Any]


class MeasureError(InputError):
    """Error of a measure that cannot be computed, for example because the runs lack a value."""


@dataclass(frozen=True)
class Measured:
    """A measured number with its interval, a text and rows of a table.

    ``low`` and ``high`` are the ends of the 95 % interval for means; they are None without an
    interval.
    """

    value: float
    low: float | None = None
    high: float | None = None
    #: Number of seeds (independent runs) of the measurement.
    seeds: int = 1
    #: Text shown before the number, or in place of a number that is not finite; may be empty.
    text: str = ""
    #: Rows for the figure and the CSV file of a claim; may be empty.
    rows: list[Row] = field(default_factory=list)


@dataclass(frozen=True)
class Sample:
    """A point of a sweep: its settings, and the values of one quantity in its runs, by seed."""

    #: Value of the first setting of each axis at this point, by path.
    settings: Settings
    values: Mapping[int, float]
    #: Settings that are equal at all points of the sweep, by path.
    fixed: Settings = field(default_factory=dict)
    #: Values of the other settings of each axis: path of the axis's first setting → path → value.
    moved: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def decided(self) -> dict[str, Any]:
        """All settings of the point by path: settings of all points, and settings of the axes."""
        others = {path: v for moved in self.moved.values() for path, v in moved.items()}
        return {**self.fixed, **others, **self.settings}

    def axes_but(self, named: Collection[str]) -> dict[str, Any]:
        """Return the settings by path of those axes that have none of the ``named`` paths.

        If the values of an axis are tables, the axis also has the paths of the keys in the tables.
        """
        axes = [
            {path: setting, **self.moved.get(path, {})} for path, setting in self.settings.items()
        ]
        free = [axis for axis in axes if not any(names(named, path) for path in axis)]
        return {path: setting for axis in free for path, setting in axis.items()}

    @property
    def mean(self) -> float:
        """Mean of the quantity at this point over the seeds."""
        return mean_interval(list(self.values.values())).value


RunValue = Callable[[Result], float]


class Data:
    """Runs of one or several sweeps, from which measures compute their numbers."""

    def __init__(self, *sweeps: SweepResult, values: Mapping[str, RunValue] | None = None) -> None:
        self.sweeps = sweeps
        #: Functions that compute a value of one run, by name: shared values, and values of a study.
        self.values = SHARED.values if values is None else values

    def samples(self, value: str, at: Settings | None = None) -> list[Sample]:
        """Return the points with the settings ``at``, each with the quantity ``value`` by seed.

        ``value`` names a metric or a registered value. ``at`` has a wanted value or a list of
        allowed values by path, of settings of axes or of all points; selection.py has the rules for
        tables. No point of a sweep matches if the sweep lacks a setting of ``at``. Raises
        ``MeasureError`` if no point is found, or no run has the value.
        """
        wanted = at or {}
        known = {path: None for sweep in self.sweeps for path in _paths(sweep)}
        for path in wanted:
            if not any(each == path or each.startswith(f"{path}.") for each in known):
                raise MeasureError(
                    f"{path} is not an axis or setting of these runs; {meant(path, known)}"
                )
        found = [sample for sweep in self.sweeps for _, sample in self._of(sweep, value, wanted)]
        if not found:
            what = shown(wanted)
            if what and not any(_fitting(sweep, wanted) for sweep in self.sweeps):
                raise MeasureError(f"no run has the settings {what}")
            which = f"the runs with {what}" if what else "all runs"
            raise MeasureError(f"{which} have no value {value!r}")
        return found

    def _of(self, sweep: SweepResult, value: str, wanted: Settings) -> Iterator[tuple[int, Sample]]:
        """Yield (number of the point, ``Sample``) for points of one sweep that match ``wanted``.

        Points without any run that has the number ``value`` are left out.
        """
        groups = [axis["paths"] for axis in sweep.summary["axes"]]
        fixed, axes, runs = sweep.summary["settings"], sweep.axes, sweep.runs
        columns = {path: f"set.{path}" if f"set.{path}" in runs.columns else path for path in axes}
        points: dict[int, tuple[dict[str, Any], dict[int, float]]] = {}
        fitting = _fitting(sweep, wanted)
        for row in runs.sort("point", "seed").iter_rows(named=True):
            if row["point"] not in fitting:
                continue
            settings = {path: row[column] for path, column in columns.items()}
            found = self._value(sweep, row, value)
            if found is not None:
                points.setdefault(row["point"], (settings, {}))[1][row["seed"]] = found
        for number, (settings, numbers) in points.items():
            first = {paths[0]: settings[paths[0]] for paths in groups}
            moved = {paths[0]: {path: settings[path] for path in paths[1:]} for paths in groups}
            yield number, Sample(first, numbers, fixed, moved)

    def sample(self, value: str, at: Settings | None = None) -> Sample:
        """Return the point with the settings ``at``; raise ``MeasureError`` if it is not unique."""
        found = self.samples(value, at)
        if len(found) > 1:
            raise MeasureError(
                f"{len(found)} points match, but exactly one is needed: {shown(at or {}) or 'all'}"
            )
        return found[0]

    def results(self, at: Settings | None = None) -> list[tuple[Settings, int, Result]]:
        """Return (settings, seed, result with tables) of each run with the settings ``at``.

        The settings are the first setting of each axis, by path.
        """
        found = [
            (sample.settings, seed, sweep.run(number, seed))
            for sweep in self.sweeps
            for number, sample in self._of(sweep, "packet_hops", at or {})
            for seed in sample.values
        ]
        if not found:
            raise MeasureError(f"no run has the settings {shown(at or {})}")
        return found

    def _value(self, sweep: SweepResult, row: Mapping[str, Any], value: str) -> float | None:
        if value in self.values:
            try:
                return self.values[value](sweep.run(row["point"], row["seed"]))
            except FileNotFoundError as error:  # the table was not kept
                run = f"run with {shown(sweep.settings(row['point']))}, seed {row['seed']}"
                raise MeasureError(f"{run}: {error}") from None
        if value not in row or value in RUN_COLUMNS:
            known = [*self.values, *(name for name in row if name not in RUN_COLUMNS)]
            near = nearest(value, known)
            hint = f"; did you mean {near}?" if near else ""
            raise MeasureError(f"runs have no value {value!r}{hint}")
        return None if row[value] is None else float(row[value])


def _fitting(sweep: SweepResult, wanted: Settings) -> set[int]:
    """Return the numbers of the points of a sweep whose settings match ``wanted``."""
    fixed, values = sweep.summary["settings"], _axis_values(sweep)
    return {
        number
        for number in set(sweep.runs["point"].to_list())
        if fits({**fixed, **sweep.settings(number)}, wanted, values)
    }


def _paths(sweep: SweepResult) -> Iterator[str]:
    """Yield the paths that a selection can name: axes, keys of tables on axes, other settings."""
    for path, values in _axis_values(sweep).items():
        yield path
        for value in values:
            yield from flat({path: value})
    yield from sweep.summary["settings"]


def _axis_values(sweep: SweepResult) -> dict[str, list[Any]]:
    """Return the values of each setting of an axis of the sweep, by path, one for each step."""
    return {
        path: [row[place] for row in axis["values"]]
        for axis in sweep.summary["axes"]
        for place, path in enumerate(axis["paths"])
    }


Measure = Callable[..., Measured]


@dataclass(frozen=True)
class Signature:
    """A registered measure: name, function, and the arguments that a claim file can set."""

    name: str
    function: Measure
    #: Type of each argument, by name.
    types: Mapping[str, Any]
    #: Names of the arguments that have no default.
    required: Sequence[str]
    #: Whether the measured number is a share, such as 0.074 for 7.4 %.
    share: bool = False

    @property
    def selections(self) -> list[str]:
        """Names of the arguments that select points by their settings."""
        return [name for name, kind in self.types.items() if kind in (Settings, Settings | None)]


@dataclass(frozen=True)
class Known:
    """Registry of measures and of functions for values that are not in a run's summary, by name."""

    measures: dict[str, Signature] = field(default_factory=dict)
    values: dict[str, RunValue] = field(default_factory=dict)


#: Measures and values of studies, by the name of the module that defines them.
REGISTERED: dict[str, Known] = {}
#: Measures and values that the claims of every study can use.
SHARED = Known()


def _known(function: Callable[..., Any]) -> Known:
    """Return the registry of a function: ``SHARED`` for Eastwest's own, else that of its module."""
    module = str(function.__module__)  # __module__ is None in a namespace without a name
    return SHARED if module.startswith("eastwest.") else REGISTERED.setdefault(module, Known())


def run_value(name: str) -> Callable[[RunValue], RunValue]:
    """Return a decorator that registers a function as the value ``name`` of a run.

    The function has the run's ``Result`` as its argument and returns a number.
    """

    def register(function: RunValue) -> RunValue:
        _known(function).values[name] = function
        return function

    return register


def measure(name: str, *, share: bool = False) -> Callable[[Measure], Measure]:
    """Return a decorator that registers a function as the measure ``name``.

    The first argument of the function is a ``Data``; a claim file sets the other arguments.
    ``share`` declares that the function returns a share (0.074 for 7.4 %): a claim with the unit
    ``%`` then needs a factor, mostly 100.
    """

    def register(function: Measure) -> Measure:
        hints = get_type_hints(function)
        arguments = list(inspect.signature(function).parameters.values())[1:]
        _known(function).measures[name] = Signature(
            name,
            function,
            {argument.name: hints[argument.name] for argument in arguments},
            [argument.name for argument in arguments if argument.default is argument.empty],
            share,
        )
        return function

    return register
