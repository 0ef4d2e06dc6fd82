"""Reader of sweep files, which reports all problems of a file at once.

A sweep file is TOML; docs/guide/sweeps.md explains it by examples. Problems of the file alone are
found here; problems of its settings in the scenario are found in check.py.
"""

from __future__ import annotations

import contextlib
import difflib
import itertools
import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eastwest import shipped
from eastwest.core import Problem
from eastwest.errors import InputError, ProblemsError
from eastwest.stats import CONFIDENCE
from eastwest.sweep.tables import read_summary
from eastwest.sweep.values import Bound, between, evenly, same_kind, sample, toml

#: Version of the sweep file's format.
SCHEMA = 1
#: Number of seeds, from 1 on, where a sweep names none: with five the interval of the mean is 1.24
#: standard deviations to each side.
DEFAULT_SEEDS = 5
#: Most points times seeds: the table of more runs would not fit into memory.
MOST_RUNS = 10_000_000
_MOST_VALUES = 1_000_000
_MOST_DEPTH = 32
_MOST_DOTS = 60
_MOST_KEYS = 20_000
_MOST_COORDINATES = 10_000_000
_MOST_SEED = 2**64 - 1
_MOST_SHOWN = 20
_LARGEST_FILE = 64 * 1024 * 1024

_KEYS = (
    "sweep", "name", "scenario", "set", "axis", "sample", "seeds", "warm_up", "keep", "baseline",
    "confidence", "show",
)  # fmt: skip
#: Key for the version of the format in other kinds of files.
_ELSEWHERE = {"schema": "sweep", "version": "sweep"}
_AXIS_KEYS = ("path", "values", "names", "from", "to", "count", "scale")
_SAMPLE_KEYS = ("kind", "count", "seed")
_SEEDS_KEYS = ("first", "count", "metric", "half_width", "at_least", "at_most")


@dataclass(frozen=True)
class Axis:
    """Settings that are varied together: one or more paths, and one row of values for each step."""

    paths: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    #: Names of the steps in tables and pictures, where they have names.
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Adaptive:
    """Rule for more seeds until the interval of a metric's mean is narrow enough."""

    metric: str
    #: Wanted half of the interval's width, as a share of the mean.
    half_width: float
    at_least: int
    at_most: int


@dataclass(frozen=True)
class Spec:
    """A sweep: the settings that vary, the seeds of each point, and the results that are kept."""

    name: str
    scenario: str
    base_dir: Path
    text: str
    settings: dict[str, Any]
    axes: tuple[Axis, ...]
    #: Seeds of every point; with an adaptive rule, the seeds to take in order.
    seeds: tuple[int, ...]
    adaptive: Adaptive | None
    warm_up_ps: int
    keep_tables: bool
    baseline: dict[str, Any]
    confidence: float
    #: Metrics in the table on the screen; empty where the table chooses.
    show: tuple[str, ...] = ()

    @property
    def paths(self) -> list[str]:
        """All paths that are varied."""
        return [path for axis in self.axes for path in axis.paths]

    @property
    def count(self) -> int:
        """Number of points."""
        return math.prod(len(axis.values) for axis in self.axes)

    @property
    def first_seeds(self) -> int:
        """Number of seeds with which every point starts."""
        return self.adaptive.at_least if self.adaptive else len(self.seeds)

    def at(self, number: int) -> tuple[Any, ...]:
        """Return the values of a point in the order of ``paths``; the last axis varies fastest."""
        rows: list[tuple[Any, ...]] = []
        for axis in reversed(self.axes):
            number, place = divmod(number, len(axis.values))
            rows.append(axis.values[place])
        return tuple(itertools.chain.from_iterable(reversed(rows)))

    @property
    def baseline_point(self) -> int:
        """Number of the first point with the baseline's values, with which others are compared."""
        number = 0
        for axis in self.axes:
            number = number * len(axis.values) + (_fitting(axis, self.baseline) or 0)
        return number


def _fitting(axis: Axis, wanted: Mapping[str, Any]) -> int | None:
    """Return the number of the first row of an axis with the wanted values, or None."""
    for place, row in enumerate(axis.values):
        named = zip(axis.paths, row, strict=True)
        if all(wanted.get(path, value) == value for path, value in named):
            return place
    return None


def load(source: str | Path | Mapping[str, Any], changes: Mapping[str, Any] | None = None) -> Spec:
    """Read a sweep as ``read`` does; raise ``ProblemsError`` with all of its problems."""
    spec, problems = read(source, changes)
    if problems:
        raise ProblemsError(problems)
    return spec


def read(
    source: str | Path | Mapping[str, Any], changes: Mapping[str, Any] | None = None
) -> tuple[Spec, list[Problem]]:
    """Read a sweep from a file, by the name of a shipped one, or from a mapping.

    ``changes`` replace keys of the file, except that ``set`` is added to; changes of None do
    nothing. Returns the sweep, as far as it could be read, and all problems. Raises
    ``FileNotFoundError`` where there is no file.
    """
    if isinstance(source, Mapping):
        table, text, base_dir = dict(source), "", Path.cwd()
        scenario = table.get("scenario")
        stem = (
            Path(scenario).stem if isinstance(scenario, str) and "\n" not in scenario else "sweep"
        )
    else:
        path = find_file(source)
        table, text = read_file(path)
        base_dir = path.resolve().parent
        stem = _name_of_folder(path) or path.stem
    changed = {key: value for key, value in (changes or {}).items() if value is not None}
    if "set" in changed and isinstance(table.get("set"), dict):
        changed["set"] = {**dict(flat(table["set"])), **changed["set"]}
    table.update(changed)
    if changed or not text:
        text = "".join(f"{key} = {toml(value)}\n" for key, value in table.items())
    reader = Reader(table, base_dir, stem, text)
    return reader.spec(), reader.problems


def find_file(source: str | Path, kind: str = "sweep") -> Path:
    """Return a file by its path or the name of a shipped one; ``kind`` is its kind in messages."""
    path = Path(source)
    if path.is_file():
        return path
    folder = shipped.SWEEPS if kind == "sweep" else shipped.OPTIMISATIONS
    found = shipped.find_in(folder, str(source))
    if found is None:
        names = ", ".join(sorted(p.stem for p in folder.glob("*.toml")))
        raise FileNotFoundError(f"no {kind} file {str(source)!r}; shipped {kind}s: {names}")
    return found


def _name_of_folder(path: Path) -> str | None:
    """Return the name of the sweep in whose folder its own file is, or None."""
    summary = read_summary(path.parent) if path.name == "sweep.toml" else None
    name = (summary or {}).get("name")
    return name if isinstance(name, str) else None


def read_file(path: Path) -> tuple[dict[str, Any], str]:
    """Return the content of a TOML file, and its text."""
    if path.stat().st_size > _LARGEST_FILE:
        raise InputError(f"{path}: larger than any file of this kind")
    try:
        text = path.read_text(encoding="utf-8")
        _refuse_slow(path, text)
        return tomllib.loads(text), text
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not TOML: {error}") from None


def _refuse_slow(path: Path, text: str) -> None:
    """Refuse a text for which the TOML reader takes hours: its time is quadratic in the keys."""
    if text.count("=") > _MOST_KEYS:
        raise InputError(f"{path}: more than {_MOST_KEYS:,} keys")
    for number, line in enumerate(text.splitlines(), 1):
        if any(part.count(".") > _MOST_DOTS for part in line.split(",")):
            raise InputError(f"{path}: line {number}: a name with more than {_MOST_DOTS} dots")


class Reader:
    """Reader of one sweep, which collects problems."""

    def __init__(self, table: dict[str, Any], base_dir: Path, stem: str, text: str) -> None:
        self.table = table
        self.base_dir = base_dir
        self.stem = stem
        self.text = text
        self.problems: list[Problem] = []
        #: Paths of all axes, also of those that have problems.
        self.named: list[str] = []

    def wrong(self, path: str, value: object, message: str, hint: str | None = None) -> None:
        """Note a problem."""
        shown = None if value is None else f"{value!r:.60}"
        self.problems.append({"path": path, "value": shown, "message": message, "hint": hint})

    def depth(self) -> None:
        """Refuse a file that is nested too deeply for the reader."""
        if _deeper_than(self.table, _MOST_DEPTH):
            raise InputError(
                f"nested too deeply: at most {_MOST_DEPTH} levels of tables and lists are allowed"
            )

    def spec(self) -> Spec:
        """Read the whole sweep."""
        self.depth()
        self._known(self.table, _KEYS, "")
        if self.table.get("sweep", SCHEMA) != SCHEMA:
            self.wrong("sweep", self.table["sweep"], f"the version of the format is {SCHEMA}")
        scenario = self._text("scenario", "")
        if not scenario:
            self.wrong("scenario", None, "is missing: a file, or the name of a shipped scenario")
        settings = self._table("set")
        axes = self._axes()
        seeds, adaptive = self._seeds()
        keep = self.table.get("keep", "summary")
        if keep not in {"summary", "tables"}:
            self.wrong("keep", keep, 'allowed: "summary" or "tables"')
        confidence = self._number(self.table, "confidence", "confidence", CONFIDENCE, 0.5, 0.9999)
        spec = Spec(
            name=self._text("name", self.stem),
            scenario=scenario,
            base_dir=self.base_dir,
            text=self.text,
            settings=settings,
            axes=tuple(axes),
            seeds=seeds,
            adaptive=adaptive,
            warm_up_ps=self._warm_up(),
            keep_tables=keep == "tables",
            baseline=self._table("baseline"),
            confidence=confidence,
            show=self._show(),
        )
        self._baseline(spec)
        runs = spec.count * len(spec.seeds)
        if runs > MOST_RUNS and not self.problems:
            raise InputError(
                f"{spec.count:,} points with up to {len(spec.seeds):,} seeds are {runs:,} runs; "
                f"a sweep has at most {MOST_RUNS:,}. Take fewer values, or a [sample]"
            )
        return spec

    def _known(self, table: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
        for key in table:
            if key not in keys:
                near = difflib.get_close_matches(_ELSEWHERE.get(key, key), keys, n=1)
                allowed = f"no such key; there are {', '.join(keys)}"
                self.wrong(f"{where}{key}", None, allowed, near[0] if near else None)

    def _text(self, key: str, otherwise: str) -> str:
        value = self.table.get(key, otherwise)
        if not isinstance(value, str):
            self.wrong(key, value, "must be text")
            return otherwise
        return value

    def _table(self, key: str) -> dict[str, Any]:
        value = self.table.get(key, {})
        if not isinstance(value, dict):
            self.wrong(key, value, 'must be a table of paths and values, such as "fabric.mtu"')
            return {}
        return dict(flat(value))

    def _number(
        self,
        table: Mapping[str, Any],
        key: str,
        where: str,
        otherwise: float,
        low: float,
        high: float,
    ) -> float:
        value = table.get(key, otherwise)
        if isinstance(value, str) and value.strip().endswith("%"):
            with contextlib.suppress(ValueError):
                value = float(value.strip()[:-1]) / 100
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.wrong(where, value, "must be a number")
            return otherwise
        if not low <= value <= high:
            self.wrong(where, value, f"allowed: {low:g} to {high:g}")
            return otherwise
        return float(value)

    def _whole(
        self,
        table: Mapping[str, Any],
        key: str,
        where: str,
        otherwise: int | None,
        low: int,
        high: int,
    ) -> int:
        value = table.get(key, otherwise)
        if isinstance(value, bool) or not isinstance(value, int):
            missing = f"is missing: a whole number from {low} to {high}"
            self.wrong(where, value, missing if value is None else "must be a whole number")
            return low
        if not low <= value <= high:
            self.wrong(where, value, f"allowed: {low} to {high}")
            return low
        return value

    def _show(self) -> tuple[str, ...]:
        given = self.table.get("show", [])
        if (
            not isinstance(given, list)
            or len(given) > _MOST_SHOWN
            or not all(isinstance(name, str) and name for name in given)
        ):
            wanted = 'must be a list of metrics, such as ["jobs.makespan_s"]'
            self.wrong("show", given, f"{wanted}, at most {_MOST_SHOWN}")
            return ()
        return tuple(dict.fromkeys(given))

    def _warm_up(self) -> int:
        bound = Bound.read(self.table.get("warm_up", "0 s"))
        if bound is None or bound.kind != "time" or bound.number < 0:
            self.wrong("warm_up", self.table["warm_up"], 'must be a time, such as "100 ms"')
            return 0
        return round(bound.number)

    def _baseline(self, spec: Spec) -> None:
        for path in spec.baseline:
            if path not in self.named:
                near = difflib.get_close_matches(path, self.named, n=1)
                hint = near[0] if near else None
                self.wrong(f"baseline.{path}", None, "is not a path of an axis", hint)
        for axis in spec.axes:
            if _fitting(axis, spec.baseline) is None:
                wanted = [spec.baseline[path] for path in axis.paths if path in spec.baseline]
                path = f"baseline.{axis.paths[0]}"
                self.wrong(path, wanted[0], "is not a value of its axis")

    def _axes(self) -> list[Axis]:
        entries = self.table.get("axis", [])
        if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
            self.wrong("axis", None, "must be tables, each beginning with [[axis]]")
            return []
        axes: list[Axis | None] = []
        spans: list[tuple[str, Bound, Bound, bool]] = []
        for number, entry in enumerate(entries):
            where = f"axis.{number}."
            self._known(entry, _AXIS_KEYS, where)
            paths = self._paths(entry, where)
            if "values" in entry:
                listed = self._listed(entry, paths, where)
                names = self._names(entry, len(listed.values), where) if listed else ()
                axes.append(listed and replace(listed, names=names))
            else:
                if "names" in entry:
                    self.wrong(f"{where}names", None, "are those of values, which must be listed")
                span = self._span(entry, paths, where)
                if span is None:
                    continue
                if "count" in entry:
                    axes.append(self._range(entry, span, where))
                else:
                    spans.append(span)
        sampled = self._sampled(spans)
        return [axis for axis in (*axes, sampled) if axis is not None]

    def _paths(self, entry: Mapping[str, Any], where: str) -> tuple[str, ...]:
        given = entry.get("path")
        named = given if isinstance(given, list) else [given]
        paths = [path for path in named if isinstance(path, str) and path.strip()]
        if not paths or len(paths) < len(named):
            self.wrong(f"{where}path", given, 'must be a setting, such as "tcp.min_rto", or a list')
            return ()
        found = tuple(".".join(step.strip() for step in path.split(".")) for path in paths)
        self.named += found
        return found

    def _listed(self, entry: Mapping[str, Any], paths: tuple[str, ...], where: str) -> Axis | None:
        values = entry["values"]
        for key in ("from", "to", "count", "scale"):
            if key in entry:
                self.wrong(f"{where}{key}", None, "an axis has values, or from and to; not both")
        if not isinstance(values, list) or not values or len(values) > _MOST_VALUES:
            self.wrong(f"{where}values", None, f"must be a list of 1 to {_MOST_VALUES:,} values")
            return None
        if not paths:
            return None
        rows = []
        for place, value in enumerate(values):
            row = value if len(paths) > 1 else [value]
            if not isinstance(row, list) or len(row) != len(paths):
                wanted = f"must be a list of {len(paths)} values, one for each path"
                self.wrong(f"{where}values.{place}", value, wanted)
                return None
            rows.append(tuple(row))
        seen = set()
        for place, row in enumerate(rows):
            if repr(row) in seen:
                self.wrong(f"{where}values.{place}", values[place], "is listed twice")
            seen.add(repr(row))
        return Axis(paths, tuple(rows))

    def _names(self, entry: Mapping[str, Any], count: int, where: str) -> tuple[str, ...]:
        """Return the names of ``count`` values, or an empty tuple where they have none."""
        names = entry.get("names", [])
        if names and not (
            isinstance(names, list)
            and len(names) == count == len({*map(str, names)})
            and all(isinstance(name, str) for name in names)
        ):
            self.wrong(f"{where}names", None, "must be a different text for each of the values")
            return ()
        return tuple(names)

    def _span(
        self, entry: Mapping[str, Any], paths: tuple[str, ...], where: str
    ) -> tuple[str, Bound, Bound, bool] | None:
        if len(paths) > 1:
            self.wrong(f"{where}path", list(paths), "paths moved together need a list of values")
        scale = entry.get("scale", "linear")
        if scale not in {"linear", "log"}:
            self.wrong(f"{where}scale", scale, 'allowed: "linear" or "log"')
        bounds = []
        for key in ("from", "to"):
            bound = Bound.read(entry.get(key))
            if key not in entry:
                self.wrong(f"{where}{key}", None, "is missing: an axis has values, or from and to")
            elif bound is None:
                self.wrong(f"{where}{key}", entry[key], "must be a number, or one with a unit")
            else:
                bounds.append(bound)
        if len(bounds) < 2 or len(paths) != 1:
            return None
        low, high = bounds
        if not same_kind(low, high):
            self.wrong(f"{where}to", entry["to"], f"must be a {low.kind} like from")
        elif low.number >= high.number:
            self.wrong(f"{where}to", entry["to"], f"must be more than from, {entry['from']}")
        elif scale == "log" and low.number <= 0:
            self.wrong(f"{where}from", entry["from"], "must be more than 0 on a log scale")
        else:
            return paths[0], low, high, scale == "log"
        return None

    def _range(
        self, entry: Mapping[str, Any], span: tuple[str, Bound, Bound, bool], where: str
    ) -> Axis:
        path, low, high, log = span
        count = self._whole(entry, "count", f"{where}count", None, 2, _MOST_VALUES)
        # Rounding can make whole numbers equal, where more are asked for than there are.
        values = dict.fromkeys(between(low, high, evenly(count), log))
        return Axis((path,), tuple((value,) for value in values))

    def _sampled(self, spans: list[tuple[str, Bound, Bound, bool]]) -> Axis | None:
        given = self.table.get("sample")
        if given is None:
            for path, *_ in spans:
                wanted = "needs a count of values, or a [sample] for all axes without one"
                self.wrong(f"axis ({path})", None, wanted)
            return None
        if not isinstance(given, dict):
            self.wrong("sample", given, 'must be a table, such as { kind = "sobol", count = 64 }')
            return None
        before = len(self.problems)
        self._known(given, _SAMPLE_KEYS, "sample.")
        kind = given.get("kind", "sobol")
        if kind not in {"sobol", "random"}:
            self.wrong("sample.kind", kind, 'allowed: "sobol" or "random"')
        count = self._whole(given, "count", "sample.count", None, 1, _MOST_VALUES)
        seed = self._whole(given, "seed", "sample.seed", 1, 0, _MOST_SEED)
        if not spans:
            self.wrong("sample", None, "has nothing to sample: no axis with from and to, no count")
        elif count * len(spans) > _MOST_COORDINATES:
            self.wrong("sample.count", count, f"too many for {len(spans)} axes")
        if len(self.problems) > before or not spans:
            return None
        cube = sample(kind, count, len(spans), seed)
        columns = [
            between(low, high, [row[place] for row in cube], log)
            for place, (_, low, high, log) in enumerate(spans)
        ]
        rows = dict.fromkeys(zip(*columns, strict=True))
        return Axis(tuple(path for path, *_ in spans), tuple(rows))

    def _seeds(self) -> tuple[tuple[int, ...], Adaptive | None]:
        given = self.table.get("seeds", DEFAULT_SEEDS)
        if isinstance(given, list):
            good = given and all(type(s) is int and 0 <= s <= _MOST_SEED for s in given)
            if not good or len(set(given)) != len(given):
                self.wrong("seeds", given, "must be different whole numbers, 0 or more")
                return (1,), None
            return tuple(given), None
        if not isinstance(given, dict):
            given = {"count": given}
        where = "seeds" if not isinstance(self.table.get("seeds"), dict) else "seeds.count"
        self._known(given, _SEEDS_KEYS, "seeds.")
        first = self._whole(given, "first", "seeds.first", 1, 0, 2**63)
        if "metric" not in given:
            for key in ("half_width", "at_least", "at_most"):
                if key in given:
                    self.wrong(f"seeds.{key}", given[key], "belongs to a rule with a metric")
            count = self._whole(given, "count", where, None, 1, _MOST_VALUES)
            return tuple(range(first, first + count)), None
        return self._adaptive(given, first)

    def _adaptive(
        self, given: Mapping[str, Any], first: int
    ) -> tuple[tuple[int, ...], Adaptive | None]:
        if "count" in given:
            self.wrong("seeds.count", given["count"], "a rule with a metric has at_least, at_most")
        metric = given["metric"]
        if not isinstance(metric, str) or not metric:
            self.wrong("seeds.metric", metric, 'must be a metric, such as "flows.fct_us.p99"')
        half_width = self._number(given, "half_width", "seeds.half_width", 0.05, 1e-6, 1.0)
        at_least = self._whole(given, "at_least", "seeds.at_least", 5, 2, 100_000)
        at_most = self._whole(given, "at_most", "seeds.at_most", 50, 2, 100_000)
        if at_most < at_least:
            self.wrong("seeds.at_most", at_most, f"must not be less than at_least, {at_least}")
        seeds = tuple(range(first, first + at_most))
        return seeds, Adaptive(str(metric), half_width, at_least, max(at_most, at_least))


def _deeper_than(value: Any, most: int) -> bool:
    """Whether tables and lists are nested deeper than ``most``; without recursion itself."""
    level = [value]
    for _ in range(most):
        lists = [v.values() if isinstance(v, Mapping) else v for v in level]
        level = [v for values in lists for v in values if isinstance(v, (Mapping, list))]
        if not level:
            return False
    return True


def flat(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield paths and values: nested tables, as TOML makes of unquoted paths, count as paths."""
    for key, value in table.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value
