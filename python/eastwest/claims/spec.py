"""Reader of claim files, which reports all problems of a file at once.

A claim file is TOML; docs/guide/claims.md explains it by examples. The runs of a claim are written
as in a sweep file and read by eastwest.sweep.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

from eastwest.claims import grid
from eastwest.claims.measures import MEASURES
from eastwest.claims.profiles import Profile, profile, varied
from eastwest.claims.readings import FIRST, Reading, reading, readings_of
from eastwest.core import Problem
from eastwest.errors import InputError, ProblemsError
from eastwest.sweep.spec import Spec as Sweep
from eastwest.sweep.spec import flat
from eastwest.sweep.spec import load as load_sweep

#: Version of the claim file's format.
SCHEMA = 1
_LARGEST_FILE = 1024 * 1024
_ID = re.compile(r"[a-z0-9_]+/[A-Za-z0-9][A-Za-z0-9._-]{0,40}")
_RUNS = re.compile(r"[A-Za-z0-9_-]{1,40}")

_KEYS = (
    "claim", "id", "source", "statement", "published", "profile", "open", "grid", "runs", "metric",
    "explanation", "figure", "by_construction",
)  # fmt: skip
_OPEN_KEYS = ("what", "chosen", "because")
_METRIC_KEYS = ("name", "runs", "measure", "unit", "factor", "low", "high", "digits")
_EXPLANATION_KEYS = ("of", "text", "metric", "class", "reading")
#: Classes of the reasons why a claim may differ; docs/guide/claims.md has the evidence for each.
CLASSES = (
    "source leaves it open",
    "source inconsistent",
    "our model",
    "not reproducible",
    "not explained",
)
_FIGURE_KEYS = ("kind", "title", "caption", "metrics", "beside")
FIGURES = (
    "intervals",
    "bars",
    "goodput",
    "power",
    "windows",
    "reads",
    "distributions",
    "sequences",
)


@dataclass(frozen=True)
class Open:
    """A parameter that the source leaves open: the value chosen for all runs, and the evidence."""

    what: str
    chosen: str
    because: str


@dataclass(frozen=True)
class Metric:
    """One number that is measured, and the band of a metric that has one."""

    name: str
    #: Names of the runs on which it is measured, mostly one.
    runs: tuple[str, ...]
    measure: str
    arguments: Mapping[str, Any]
    unit: str
    #: Factor from the value of the measure to the unit.
    factor: float
    digits: int
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Explanation:
    """Explanation of a difference of metrics: what further runs show."""

    #: Names of the metrics that it explains.
    of: tuple[str, ...]
    text: str
    metrics: tuple[Metric, ...]
    #: One of ``CLASSES``; empty where the file does not give it.
    kind: str = ""
    #: Name of the reading for which it is written.
    reading: str = FIRST


@dataclass(frozen=True)
class Figure:
    """A figure of a claim: its kind, title and data."""

    kind: str
    title: str
    caption: str
    metrics: tuple[str, ...]
    #: Measurements of others that are drawn too: name in the legend, and a table in the study.
    beside: tuple[tuple[str, Path], ...] = ()


@dataclass(frozen=True)
class Claim:
    """A published claim, and how it is compared with the simulator."""

    path: Path
    id: str
    source: str
    statement: str
    published: str
    #: Name of the behaviour of TCP that its runs have.
    profile: str
    #: Name of the reading of the study that its runs have.
    reading: str
    #: Folder of its results: a profile that is not its own, or a reading that is not the first.
    variant: str
    #: Reason why it cannot fail, where it holds by the construction of the model; otherwise empty.
    by_construction: str
    open: tuple[Open, ...]
    #: Runs by name: full sweeps, and the shorter ones of ``--quick``.
    runs: Mapping[str, Sweep]
    quick: Mapping[str, Sweep]
    metrics: tuple[Metric, ...]
    explanations: tuple[Explanation, ...]
    figure: Figure | None
    #: Hash of what is run and measured: measured numbers are of this claim if they have it.
    digest: str
    #: Hash of what its explanations run and measure.
    explained_digest: str

    @property
    def decides(self) -> bool:
        """Whether its result is the verdict of the study, with as many seeds as it needs."""
        best = reading(self.path.parent.parent).name
        return self.reading == best and self.variant in {"", best}

    @property
    def name(self) -> str:
        """Part of the id after the study, such as ``T1``."""
        return self.id.rpartition("/")[2]

    def explaining(self, metric: str) -> list[Explanation]:
        """Return the explanations of one metric."""
        return [e for e in self.explanations if metric in e.of]


def load(path: Path, variant: str = "", named: str = "") -> Claim:
    """Read a claim file, to run under a reading of its study; without a name, the best supported.

    ``variant`` names a profile of the study to run it with. A reading that changes nothing of this
    claim shares the results of the first. Raises ``ProblemsError`` with all problems of the file,
    ``InputError`` where the study has no such profile or reading.
    """
    study = path.parent.parent
    chosen = reading(study, named)
    table = _read(path)
    if variant and variant != table.get("profile"):
        return _Reader(path, table, chosen, profile(study, variant)).claim()
    claim = _Reader(path, table, chosen).claim()
    if chosen.name == FIRST:
        return claim
    first = _Reader(path, table, readings_of(study)[FIRST]).claim()
    same = (first.digest, first.explained_digest) == (claim.digest, claim.explained_digest)
    return replace(claim, variant="") if same else claim


def _read(path: Path) -> dict[str, Any]:
    """Return the table of a TOML file."""
    if path.stat().st_size > _LARGEST_FILE:
        raise InputError(f"{path}: larger than any claim file")
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not TOML: {error}") from None


class _Reader:
    """Reader of one claim, which collects problems."""

    def __init__(
        self,
        path: Path,
        table: dict[str, Any],
        chosen: Reading,
        variant: Profile | None = None,
    ) -> None:
        self.path = path
        self.reading = chosen
        self.variant = variant
        self.table = table
        self.problems: list[Problem] = []
        self.identity = ""
        self.readings = readings_of(path.parent.parent)
        #: Names of the runs, valid or not.
        self.names: list[str] = []

    def wrong(self, path: str, value: object, message: str, hint: str | None = None) -> None:
        shown = None if value is None else f"{value!r:.60}"
        where = f"{self.path.name}: {path}"
        self.problems.append({"path": where, "value": shown, "message": message, "hint": hint})

    def claim(self) -> Claim:
        self._known(self.table, _KEYS, "")
        if self.table.get("claim") != SCHEMA:
            self.wrong("claim", self.table.get("claim"), f"the version of the format is {SCHEMA}")
        identity = self._text(self.table, "id", "")
        if identity and not _ID.fullmatch(identity):
            self.wrong("id", identity, 'must be a study and a name, such as "incast/T1"')
        self.identity = identity
        runs, quick = self._runs()
        metrics = tuple(self._metrics(self.table, "metric", True))
        opened = tuple(self._open())
        own = self._text(self.table, "profile", "")
        names = [metric.name for metric in metrics]
        explanations = [
            each for each in self._explanations(names) if each.reading == self.reading.name
        ]
        if self.variant:  # those of the file are about its own profile
            why = self.variant.because.get(identity)
            explanations = [Explanation(tuple(names), why, ())] if why else []
        other = "" if self.reading.name == FIRST else self.reading.name
        claim = Claim(
            path=self.path,
            id=identity,
            source=self._text(self.table, "source", ""),
            statement=self._text(self.table, "statement", ""),
            published=self._text(self.table, "published", ""),
            profile=self.variant.name if self.variant else own,
            reading=self.reading.name,
            variant=self.variant.name if self.variant else other,
            by_construction=self._text(self.table, "by_construction", "", ""),
            open=opened,
            runs=runs,
            quick=quick,
            metrics=metrics,
            explanations=tuple(explanations),
            figure=self._figure(names),
            digest="",
            explained_digest="",
        )
        if self.problems:
            raise ProblemsError(self.problems)
        inner = [metric for explanation in explanations for metric in explanation.metrics]
        causes = [[each.of, each.kind, len(each.metrics)] for each in explanations]
        return replace(
            claim,
            digest=_digest(claim, metrics),
            explained_digest=_digest(claim, inner, causes),
        )

    def _known(self, table: Mapping[str, Any], keys: Sequence[str], where: str) -> None:
        for key in table:
            if key not in keys:
                near = difflib.get_close_matches(key, keys, n=1)
                message = f"no such key; there are {', '.join(keys)}"
                self.wrong(f"{where}{key}", None, message, near[0] if near else None)

    def _text(
        self, table: Mapping[str, Any], key: str, where: str, otherwise: str | None = None
    ) -> str:
        value = table.get(key, otherwise)
        if not isinstance(value, str) or (otherwise is None and not value.strip()):
            missing = "is missing: a text" if value is None else "must be a text"
            self.wrong(f"{where}{key}", value, missing)
            return ""
        return value.strip()

    def _number(self, table: Mapping[str, Any], key: str, where: str) -> float | None:
        value = table.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
            self.wrong(f"{where}{key}", value, "must be a number")
            return None
        return float(value)

    def _tables(self, table: Mapping[str, Any], key: str, where: str) -> list[dict[str, Any]]:
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            self.wrong(f"{where}{key}", None, f"must be tables, each beginning with [[{key}]]")
            return []
        return value

    def _open(self) -> list[Open]:
        """Return the open parameters, from this file or from one that the study's claims share."""
        table = self.table
        shared = table.get("open")
        if isinstance(shared, str):
            path = self.path.parent / shared
            if not self._in_papers(path):
                self.wrong("open", shared, "must be tables, or a file in the folder of a study")
                return []
            table = _read(path)
        found = []
        for number, entry in enumerate(self._tables(table, "open", "")):
            where = f"open.{number}."
            self._known(entry, _OPEN_KEYS, where)
            found.append(Open(*(self._text(entry, key, where) for key in _OPEN_KEYS)))
        return found

    def _shared(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the runs of the claim, with those of the grid that it names."""
        file = self.table.get("grid")
        if file is None:
            return dict(given)
        if not isinstance(file, str) or not self._in_papers(self.path.parent / file):
            self.wrong("grid", file, "must be a file in the folder of a study")
            return dict(given)
        path = self.path.parent / file
        content = _read(path)
        tables = grid.tables(content, path.parent)
        runs: dict[str, Any] = {}
        for name in dict.fromkeys([*given, *self._asked()]):
            entry = given.get(name, {"grid": name} if name in tables else None)
            if isinstance(entry, dict) and "grid" in entry:
                table = tables.get(str(entry["grid"]))
                if table is None:
                    near = difflib.get_close_matches(str(entry["grid"]), tables, n=1)
                    known = f"no such table of {path.name}; there are {', '.join(tables)}"
                    self.wrong(f"runs.{name}.grid", entry["grid"], known, near[0] if near else None)
                    continue
                try:
                    entry = grid.part(table, entry)
                except KeyError as error:
                    message = "no axis of the grid's table has such values"
                    self.wrong(f"runs.{name}.only", error.args[0], message)
            if entry is not None:
                runs[name] = entry
        return runs

    def _asked(self) -> list[str]:
        """Return the names of runs that metrics ask for, valid or not."""
        explanations = self._tables(self.table, "explanation", "")
        found: list[object] = []
        for table in (self.table, *explanations):
            metrics = table.get("metric")
            for entry in metrics if isinstance(metrics, list) else []:
                runs = entry.get("runs") if isinstance(entry, dict) else None
                found += runs if isinstance(runs, list) else [runs]
        return [name for name in found if isinstance(name, str)]

    def _in_papers(self, path: Path) -> bool:
        """Whether a file is in the folder of a study, of this one or of another."""
        papers = self.path.resolve().parents[2]
        return path.is_file() and path.resolve().parent.parent == papers

    def _runs(self) -> tuple[dict[str, Sweep], dict[str, Sweep]]:
        own = self.table.get("runs", {})
        given = self._shared(own) if isinstance(own, dict) else {}
        if not given:
            self.wrong("runs", None, "is missing: tables such as [runs.main], each like a sweep")
            return {}, {}
        full: dict[str, Sweep] = {}
        quick: dict[str, Sweep] = {}
        self.names = list(given)
        for name, entry in given.items():
            if not _RUNS.fullmatch(name):  # the name is used as a folder
                self.wrong("runs", name, "names of runs have letters, digits, _ and - only")
                continue
            if not isinstance(entry, dict):
                self.wrong(f"runs.{name}", entry, "must be a table like a sweep file")
                continue
            whole = {key: value for key, value in entry.items() if key != "quick"}
            less = entry.get("quick", {})
            if not isinstance(less, dict):
                self.wrong(f"runs.{name}.quick", less, "must be a table of the keys that are less")
                less = {}
            self._sweep(f"runs.{name}", whole, full, name)
            settings = {"set": {**_mapping(whole.get("set")), **_mapping(less.get("set"))}}
            self._sweep(f"runs.{name}.quick", {**whole, **less, **settings}, quick, name)
        return full, quick

    def _sweep(self, where: str, table: dict[str, Any], into: dict[str, Sweep], name: str) -> None:
        scenario = table.get("scenario")
        if isinstance(scenario, str) and (self.path.parent / scenario).is_file():
            table = {**table, "scenario": str((self.path.parent / scenario).resolve())}
        fixed = varied(table)
        if self.variant:
            own = {*_mapping(table.get("set"))}
            table = self.variant.applied(table)
            fixed |= {*self.variant.settings} - own
        try:
            table = self.reading.applied(table, self.identity, fixed)
            into[name] = load_sweep({**table, "name": name})
        except ProblemsError as error:
            for problem in error.problems:
                path = f"{self.path.name}: {where}.{problem['path']}"
                self.problems.append({**problem, "path": path})
        except InputError as error:
            self.wrong(where, None, str(error))

    def _metrics(self, table: Mapping[str, Any], above: str, banded: bool) -> list[Metric]:
        entries = self._tables(table, "metric", "")
        if not entries:
            self.wrong(above, None, "is missing: at least one [[metric]]")
        found = [
            self._metric(entry, f"{above}.{number}.", banded)
            for number, entry in enumerate(entries)
        ]
        names = [metric.name for metric in found]
        for name in sorted({name for name in names if names.count(name) > 1}):
            self.wrong(above, name, "is the name of two metrics")
        return found

    def _metric(self, entry: Mapping[str, Any], where: str, banded: bool) -> Metric:
        low, high = self._number(entry, "low", where), self._number(entry, "high", where)
        if banded and low is None and high is None:
            self.wrong(f"{where}low", None, "is missing: a band has low, high or both")
        if low is not None and high is not None and low > high:
            self.wrong(f"{where}low", low, f"must not be above high, {high:g}")
        several = entry.get("runs")
        chosen = several if isinstance(several, list) else [self._text(entry, "runs", where)]
        for each in chosen:
            if each and each not in self.names:
                near = difflib.get_close_matches(str(each), self.names, n=1)
                known = f"no such runs; there are {', '.join(self.names)}"
                self.wrong(f"{where}runs", each, known, near[0] if near else None)
        name = self._text(entry, "measure", where)
        digits = entry.get("digits", 3)
        if type(digits) is not int or not 1 <= digits <= 9:
            self.wrong(f"{where}digits", digits, "allowed: 1 to 9 significant digits")
        factor = self._number(entry, "factor", where)
        return Metric(
            name=self._text(entry, "name", where),
            runs=tuple(map(str, chosen)),
            measure=name,
            arguments=self._arguments(entry, name, where),
            unit=self._text(entry, "unit", where, ""),
            factor=1.0 if factor is None else factor,
            digits=digits,
            low=low,
            high=high,
        )

    def _arguments(self, entry: Mapping[str, Any], name: str, where: str) -> dict[str, Any]:
        if name and name not in MEASURES:
            near = difflib.get_close_matches(name, MEASURES, n=1)
            known = f"no such measure; there are {', '.join(sorted(MEASURES))}"
            self.wrong(f"{where}measure", name, known, near[0] if near else None)
        if name not in MEASURES:
            return {}
        signature = MEASURES[name]
        self._known(entry, (*_METRIC_KEYS, *signature.types), where)
        given: dict[str, Any] = {}
        for key, kind in signature.types.items():
            if key not in entry:
                if key in signature.required:
                    self.wrong(f"{where}{key}", None, f"is missing: {name} needs it")
                continue
            if _fits(entry[key], kind):
                given[key] = entry[key]
            else:
                self.wrong(f"{where}{key}", entry[key], f"must be {_words(kind)}")
        return given

    def _explanations(self, metrics: list[str]) -> list[Explanation]:
        found = []
        for number, entry in enumerate(self._tables(self.table, "explanation", "")):
            where = f"explanation.{number}."
            self._known(entry, _EXPLANATION_KEYS, where)
            of = self._names(entry, "of", where, metrics)
            text = self._text(entry, "text", where)
            inner = self._metrics(entry, f"{where}metric", False)
            kind = self._one_of(entry, "class", where, CLASSES, "")
            about = self._one_of(entry, "reading", where, [*self.readings], FIRST)
            found.append(Explanation(of, text, tuple(inner), kind, about))
        return found

    def _one_of(
        self, entry: Mapping[str, Any], key: str, where: str, allowed: Sequence[str], otherwise: str
    ) -> str:
        """Return one of several allowed words; ``otherwise`` where none is given."""
        word = self._text(entry, key, where, otherwise)
        if word and word != otherwise and word not in allowed:
            near = difflib.get_close_matches(word, allowed, n=1)
            message = f"allowed: {', '.join(allowed)}"
            self.wrong(f"{where}{key}", word, message, near[0] if near else None)
        return word

    def _names(
        self, entry: Mapping[str, Any], key: str, where: str, known: list[str]
    ) -> tuple[str, ...]:
        """Return names of metrics; all of them where none is given."""
        given = entry.get(key, known)
        if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
            self.wrong(f"{where}{key}", given, "must be a list of names of metrics")
            return ()
        for name in given:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                message = f"no such metric; there are {', '.join(known)}"
                self.wrong(f"{where}{key}", name, message, near[0] if near else None)
        return tuple(given)

    def _figure(self, metrics: list[str]) -> Figure | None:
        entry = self.table.get("figure")
        if entry is None:
            return None
        if not isinstance(entry, dict):
            self.wrong("figure", entry, "must be a table")
            return None
        self._known(entry, _FIGURE_KEYS, "figure.")
        kind = self._text(entry, "kind", "figure.")
        if kind and kind not in FIGURES:
            near = difflib.get_close_matches(kind, FIGURES, n=1)
            message = f"allowed: {', '.join(FIGURES)}"
            self.wrong("figure.kind", kind, message, near[0] if near else None)
        return Figure(
            kind=kind,
            title=self._text(entry, "title", "figure."),
            caption=self._text(entry, "caption", "figure."),
            metrics=self._names(entry, "metrics", "figure.", metrics),
            beside=tuple(self._beside(entry)),
        )

    def _beside(self, entry: Mapping[str, Any]) -> Iterator[tuple[str, Path]]:
        """Yield further tables of a figure: names in the legend, and files of the study."""
        given = entry.get("beside", {})
        study = self.path.parent.parent.resolve()
        for name, file in given.items() if isinstance(given, dict) else [("", given)]:
            path = (self.path.parent / file).resolve() if isinstance(file, str) else study
            if path.is_file() and path.is_relative_to(study):
                yield name, path
            else:
                message = "must be a table of names and files in the folder of the study"
                self.wrong("figure.beside", file, message)


def _digest(claim: Claim, metrics: Sequence[Metric], further: Sequence[Any] = ()) -> str:
    """Return the hash of all that decides these numbers: the runs, the measures, and the bands.

    Words, titles and units are not in it, so that they can be corrected. The number of seeds is not
    in it either, because a result of more seeds than the claim asks for is valid for this claim
    too.
    """
    asked = [[m.runs, m.measure, m.arguments, m.factor, m.low, m.high] for m in metrics]
    used = sorted({name for metric in metrics for name in metric.runs})
    runs = [_ran(claim.runs[name]) for name in used]
    content = json.dumps([asked, runs, *further], sort_keys=True, default=str)
    return hashlib.sha256(content.encode()).hexdigest()


def _ran(sweep: Sweep) -> list[Any]:
    """Return all of a sweep that decides its numbers, except its seeds, and its scenario."""
    try:
        scenario: Any = tomllib.loads(Path(sweep.scenario).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError):
        scenario = sweep.scenario  # a shipped one, or a problem that is reported when it is run
    axes = [[axis.paths, axis.values, axis.names] for axis in sweep.axes]
    adaptive = asdict(sweep.adaptive) if sweep.adaptive else None
    kept = [sweep.warm_up_ps, sweep.baseline, sweep.confidence]
    return [scenario, sweep.settings, axes, adaptive, kept]


def _mapping(value: Any) -> dict[str, Any]:
    return dict(flat(value)) if isinstance(value, dict) else {}


def _fits(value: Any, kind: Any) -> bool:
    """Whether a TOML value has the type of an argument of a measure."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return any(_fits(value, option) for option in inner)
    if origin is list:
        return isinstance(value, list) and all(_fits(entry, inner[0]) for entry in value)
    if origin is not None:  # mappings of settings
        return isinstance(value, dict) and all(
            type(each) in {str, int, float, bool}
            for setting in value.values()
            for each in (setting if isinstance(setting, list) else [setting])
        )
    if kind is float:
        return type(value) in {int, float} and math.isfinite(value)
    return type(value) is kind


def _words(kind: Any) -> str:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return " or ".join(_words(option) for option in inner if option is not type(None))
    if origin is list:
        return f"a list, each member {_words(inner[0])}"
    if origin is not None:
        return 'a table of settings, such as { "fabric.hosts" = 5 }'
    return {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}[kind]
