"""Reader of claim files, which reports all problems of a file at once.

A claim file is TOML; docs/guide/claims.md explains it by examples. The runs of a claim are written
as in a sweep file and read by eastwest.sweep.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

from eastwest.claims import grid
from eastwest.claims.measures import Signature
from eastwest.claims.measures.of_study import known_in
from eastwest.claims.profiles import Profile, profile, varied
from eastwest.claims.readings import FIRST, Reading, reading, readings_of
from eastwest.claims.selection import by_axis, unmet
from eastwest.errors import InputError, ProblemsError
from eastwest.reader import Table, flat, listed, read_file
from eastwest.sweep.spec import Spec as Sweep
from eastwest.sweep.spec import load as load_sweep

#: Version of the format of claim files.
SCHEMA = 1
_LARGEST_FILE = 1024 * 1024
_ID = re.compile(r"[a-z0-9_]+/[A-Za-z0-9][A-Za-z0-9._-]{0,40}")
_ID_FORM = 'must be a study and a name, such as "incast/T1"'
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
    """A parameter that the source leaves open (``what``), the chosen value, and the reason."""

    what: str
    chosen: str
    because: str


@dataclass(frozen=True)
class Metric:
    """One number that a claim measures, and the band (``low`` to ``high``) in which it must lie.

    ``low`` or ``high`` is None for a band without this end; both are None without a band.
    ``digits`` is the number of significant digits in texts.
    """

    name: str
    #: Names of the sweeps (``[runs.NAME]``) from which the metric is measured, mostly one.
    runs: tuple[str, ...]
    measure: str
    arguments: Mapping[str, Any]
    unit: str
    #: Factor by which the value of the measure is multiplied, such as 100 from a share to %.
    factor: float
    digits: int
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Explanation:
    """Reason why metrics differ from the published values, with metrics that test this reason."""

    #: Names of the metrics whose difference is explained.
    of: tuple[str, ...]
    text: str
    metrics: tuple[Metric, ...]
    #: Class of the reason, one of ``CLASSES``; empty where the file has none.
    kind: str = ""
    #: Name of the reading of the study to which the explanation applies.
    reading: str = FIRST


@dataclass(frozen=True)
class Figure:
    """A figure of a claim: its kind, title and data."""

    kind: str
    title: str
    caption: str
    metrics: tuple[str, ...]
    #: Measurements of other people in the figure: (name in the legend, path of the CSV file).
    beside: tuple[tuple[str, Path], ...] = ()


@dataclass(frozen=True)
class Claim:
    """A published claim, with the runs and metrics that test it, under one reading and profile."""

    path: Path
    id: str
    source: str
    statement: str
    published: str
    #: Name of the TCP profile of the claim's runs.
    profile: str
    #: Name of the reading of the study that the claim's runs use.
    reading: str
    #: Subfolder of the claim's results: name of another TCP profile than the claim's own, or of
    #: another reading than ``first``; else empty.
    variant: str
    #: Reason why the claim cannot fail, if it holds by construction of the model; else empty.
    by_construction: str
    open: tuple[Open, ...]
    #: Full sweeps of the claim by the names of the runs; ``quick`` has the shorter sweeps.
    runs: Mapping[str, Sweep]
    quick: Mapping[str, Sweep]
    metrics: tuple[Metric, ...]
    explanations: tuple[Explanation, ...]
    figure: Figure | None
    #: Hash of the runs, measures and bands; stored numbers are valid only with an equal hash.
    digest: str
    #: Hash of the runs and measures of the claim's explanations.
    explained_digest: str

    @property
    def is_measurement(self) -> bool:
        """Whether the reference was measured for this claim: its source has the word *measured*."""
        return "measured" in self.source.replace(",", " ").split()

    @property
    def decides(self) -> bool:
        """Whether the result is the verdict on the claim.

        Only the result under the best-supported reading and the claim's own TCP profile decides.
        """
        best = reading(self.path.parent.parent).name
        return self.reading == best and self.variant in {"", best}

    @property
    def name(self) -> str:
        """Part of the id after the slash, such as ``T1``."""
        return self.id.rpartition("/")[2]

    def explaining(self, metric: str) -> list[Explanation]:
        """Return the claim's explanations of the metric with this name."""
        return [e for e in self.explanations if metric in e.of]


def identity(path: Path) -> str:
    """Return the id of a claim file; other keys of the file are not checked.

    Raises ``InputError`` if the file is not TOML or has no valid id.
    """
    content, _ = read_file(path, _LARGEST_FILE)
    found = content.get("id")
    if not isinstance(found, str) or not _ID.fullmatch(found.strip()):
        raise InputError(f"{path}: id: {_ID_FORM}")
    return found.strip()


def load(path: Path, variant: str = "", named: str = "") -> Claim:
    """Return the claim of a file, with the settings of a reading and a TCP profile of its study.

    ``named`` is the name of the reading (default: the best-supported one), ``variant`` the name of
    the TCP profile (default: the claim's own). If the reading does not change this claim, the claim
    has the results of the reading ``first``. Raises ``ProblemsError`` with all problems of the
    file, and ``InputError`` if the study has no such profile or reading.
    """
    study = path.parent.parent
    chosen = reading(study, named)
    content, _ = read_file(path, _LARGEST_FILE)
    if variant and variant != content.get("profile"):
        return _Reader(path, content, chosen, profile(study, variant)).claim()
    claim = _Reader(path, content, chosen).claim()
    if chosen.name == FIRST:
        return claim
    first = _Reader(path, content, readings_of(study)[FIRST]).claim()
    same = (first.digest, first.explained_digest) == (claim.digest, claim.explained_digest)
    return replace(claim, variant="") if same else claim


class _Reader:
    """Reader of one claim file; collects all problems of the file."""

    def __init__(
        self,
        path: Path,
        content: Mapping[str, Any],
        chosen: Reading,
        variant: Profile | None = None,
    ) -> None:
        self.path = path
        self.reading = chosen
        self.variant = variant
        self.table = Table(content, f"{path.name}: ")
        self.identity = ""
        self.readings = readings_of(path.parent.parent)
        self.measures = known_in(path.parent.parent).measures
        #: Names of the runs in the claim file, including runs with problems.
        self.names: list[str] = []
        #: Full sweeps of valid runs, by the name of the runs; ``quick`` has the sweeps of
        #: ``--quick``.
        self.runs: dict[str, Sweep] = {}
        self.quick: dict[str, Sweep] = {}

    def claim(self) -> Claim:
        table = self.table
        table.head(_KEYS, SCHEMA, needed=True)
        self.identity = table.words("id")
        if self.identity and not _ID.fullmatch(self.identity):
            table.wrong("id", self.identity, _ID_FORM)
        self._runs()
        metrics = self._metrics(table, True)
        own, names = table.words("profile"), [metric.name for metric in metrics]
        explanations = [
            each for each in self._explanations(names) if each.reading == self.reading.name
        ]
        if self.variant:  # the explanations in the file are for the claim's own TCP profile
            why = self.variant.because.get(self.identity)
            explanations = [Explanation(tuple(names), why, ())] if why else []
        other = "" if self.reading.name == FIRST else self.reading.name
        claim = Claim(
            path=self.path,
            id=self.identity,
            source=table.words("source"),
            statement=table.words("statement"),
            published=table.words("published"),
            profile=self.variant.name if self.variant else own,
            reading=self.reading.name,
            variant=self.variant.name if self.variant else other,
            by_construction=table.words("by_construction", ""),
            open=self._open(),
            runs=self.runs,
            quick=self.quick,
            metrics=metrics,
            explanations=tuple(explanations),
            figure=self._figure(names),
            digest="",
            explained_digest="",
        )
        table.refuse()
        inner = [metric for explanation in explanations for metric in explanation.metrics]
        causes = [[each.of, each.kind, len(each.metrics)] for each in explanations]
        return replace(
            claim,
            digest=_digest(claim, metrics),
            explained_digest=_digest(claim, inner, causes),
        )

    def _open(self) -> tuple[Open, ...]:
        """Return the open parameters, from the claim file or a file that several claims share."""
        table, shared = self.table, self.table.get("open")
        if isinstance(shared, str):
            path = self.path.parent / shared
            if not self._in_papers(path):
                message = "must be tables [[open]], or the path of a file in the folder of a study"
                table.wrong("open", shared, message)
                return ()
            table = Table(read_file(path, _LARGEST_FILE)[0], table.where, table)
        return tuple(
            Open(*(entry.words(key) for key in _OPEN_KEYS))
            for entry in table.tables("open", _OPEN_KEYS)
        )

    def _shared(self) -> dict[str, Any]:
        """Return the tables of the claim's runs by name, from the claim file and its grid file."""
        own = self.table.table("runs", "tables such as [runs.main], each with keys of a sweep file")
        given = own.content
        file = self.table.get("grid")
        if file is None:
            return {**given}
        if not isinstance(file, str) or not self._in_papers(self.path.parent / file):
            self.table.wrong("grid", file, "must be the path of a file in the folder of a study")
            return {**given}
        path = self.path.parent / file
        tables = grid.tables(read_file(path, _LARGEST_FILE)[0], path.parent)
        runs: dict[str, Any] = {}
        for name in dict.fromkeys([*given, *self._asked()]):
            entry = given.get(name, {"grid": name} if name in tables else None)
            if isinstance(entry, dict) and "grid" in entry:
                wanted = str(entry["grid"])
                if wanted not in tables:
                    what = f"table of {path.name}"
                    self.table.no_such(f"runs.{name}.grid", wanted, what, tables)
                    continue
                Table(entry, f"{own.where}{name}.", own).settings("only")
                try:
                    entry = grid.part(tables[wanted], entry)
                except KeyError as error:
                    message = f"no axis of {wanted} in {path.name} has a value that `only` names"
                    self.table.wrong(f"runs.{name}.only", error.args[0], message)
            if entry is not None:
                runs[name] = entry
        return runs

    def _asked(self) -> list[str]:
        """Return the names of the runs that the metrics of the claim file name, defined or not."""
        tables = (self.table, *self.table.tables("explanation"))
        metrics = [each for table in tables for each in listed(table.get("metric"))]
        runs = [listed(each.get("runs")) for each in metrics if isinstance(each, dict)]
        return [name for names in runs for name in names if isinstance(name, str)]

    def _in_papers(self, path: Path) -> bool:
        """Whether a file exists in the folder of the claim's study or of another study."""
        papers = self.path.resolve().parents[2]
        return path.is_file() and path.resolve().parent.parent == papers

    def _runs(self) -> None:
        given = self._shared()
        if not given:
            message = "is missing: tables such as [runs.main], each with keys of a sweep file"
            self.table.wrong("runs", None, message)
        self.names = list(given)
        for name in given:
            if not _RUNS.fullmatch(name):  # the name is used as a folder
                message = "the name of runs must have 1 to 40 characters: letters, digits, _ and -"
                self.table.wrong("runs", name, message)
                continue
            table = Table(given, f"{self.table.where}runs.", self.table).table(name)
            less = table.table("quick", "a table of the keys that have other values with --quick")
            whole = {key: value for key, value in table.content.items() if key != "quick"}
            self._sweep(table, whole, self.runs, name)
            settings = {"set": {**flat(whole.get("set")), **flat(less.get("set"))}}
            self._sweep(less, {**whole, **less.content, **settings}, self.quick, name)

    def _sweep(
        self, place: Table, content: dict[str, Any], into: dict[str, Sweep], name: str
    ) -> None:
        scenario = content.get("scenario")
        if isinstance(scenario, str) and (self.path.parent / scenario).is_file():
            content = {**content, "scenario": str((self.path.parent / scenario).resolve())}
        fixed = varied(content)
        if self.variant:
            own = {*flat(content.get("set"))}
            content = self.variant.applied(content)
            fixed |= {*self.variant.settings} - own
        try:
            content = self.reading.applied(content, self.identity, fixed)
            into[name] = load_sweep({**content, "name": name})
        except ProblemsError as error:
            place.add(error.problems)
        except InputError as error:
            place.wrong("", None, str(error))

    def _metrics(self, table: Table, banded: bool, points: bool = True) -> tuple[Metric, ...]:
        """Return the metrics ``[[metric]]`` of a table, and add problems to the table.

        With ``banded``, a metric without a band is a problem; with ``points``, also a selection
        that no point of the runs matches.
        """
        entries = table.tables("metric")
        if not entries:
            table.wrong("metric", None, "is missing: at least one table [[metric]] is needed")
        found = tuple(self._metric(entry, banded, points) for entry in entries)
        names = [metric.name for metric in found]
        for name in sorted({name for name in names if names.count(name) > 1}):
            table.wrong("metric", name, "is the name of several metrics: names must be different")
        return found

    def _metric(self, entry: Table, banded: bool, points: bool) -> Metric:
        low, high, factor = (entry.any_number(key) for key in ("low", "high", "factor"))
        if banded and low is None and high is None:
            entry.wrong("low", None, "is missing: a metric needs a band, with low, high or both")
        if low is not None and high is not None and low > high:
            entry.wrong("low", low, f"must not be above high ({high:g})")
        several = isinstance(entry.get("runs"), list)
        chosen = entry.texts("runs") if several else (entry.words("runs"),)
        for each in chosen:
            if each and each not in self.names:
                entry.no_such("runs", each, "runs", self.names)
        measure, unit = entry.words("measure"), entry.words("unit", "")
        signature = self.measures.get(measure)
        plain = "factor" not in entry or factor in {1.0, -1.0}
        if unit == "%" and signature and signature.share and plain:
            message = f"is missing: {measure} gives a share, 0.074 for 7.4 %; write factor = 100"
            entry.wrong("factor", None, message)
        arguments = self._arguments(entry, measure, signature)
        for key in signature.selections if signature else ():
            given = arguments.get(key)
            if isinstance(given, Mapping) and all(map(_a_setting, given.values())):
                arguments[key] = self._selected(entry, key, given, chosen, points)
        return Metric(
            name=entry.words("name"),
            runs=chosen,
            measure=measure,
            arguments=arguments,
            unit=unit,
            factor=1.0 if factor is None else factor,
            digits=entry.integer("digits", 3, 1, 9),
            low=low,
            high=high,
        )

    def _arguments(self, entry: Table, name: str, signature: Signature | None) -> dict[str, Any]:
        """Return the arguments of the measure ``name`` by name; add problems of wrong arguments."""
        if signature is None:
            if name:
                entry.no_such("measure", name, "measure", sorted(self.measures))
            return {}
        entry.keys((*_METRIC_KEYS, *signature.types))
        given: dict[str, Any] = {}
        for key, kind in signature.types.items():
            if key in entry:
                given[key] = entry.get(key)
                _check_argument(entry, key, kind)
            elif key in signature.required:
                entry.wrong(key, None, f"is missing: the measure {name} needs it")
        return given

    def _selected(
        self, entry: Table, key: str, at: Mapping[str, Any], runs: Sequence[str], points: bool
    ) -> dict[str, Any]:
        """Return the selection ``at`` with dotted paths of settings.

        With ``points``, add problems of values that no point of the runs has. ``key`` is the name
        of the argument in the claim file.
        """
        full, quick = ([by[name] for name in runs if name in by] for by in (self.runs, self.quick))
        found = by_axis(at, {path for each in full for path in (*each.paths, *each.settings)})
        if not points or not len(full) == len(quick) == len(runs):
            return found
        where = f"runs.{' and runs.'.join(runs)}"
        problems = unmet(found, full, where) or unmet(found, quick, f"{where} with --quick")
        for path, value, message, hint in problems:
            entry.wrong(f"{key}.{path}", value, message, hint)
        return found

    def _explanations(self, metrics: Sequence[str]) -> Iterator[Explanation]:
        for entry in self.table.tables("explanation", _EXPLANATION_KEYS):
            named = entry.one_of("reading", self.readings, FIRST)
            # Under another reading or TCP profile, runs may lack points of the explanation.
            own = named == self.reading.name and self.variant is None
            yield Explanation(
                _names(entry, "of", metrics),
                entry.words("text"),
                self._metrics(entry, False, own),
                entry.one_of("class", CLASSES, ""),
                named,
            )

    def _figure(self, metrics: Sequence[str]) -> Figure | None:
        if "figure" not in self.table:
            return None
        entry = self.table.table("figure")
        entry.keys(_FIGURE_KEYS)
        return Figure(
            kind=entry.one_of("kind", FIGURES),
            title=entry.words("title"),
            caption=entry.words("caption"),
            metrics=_names(entry, "metrics", metrics),
            beside=tuple(self._beside(entry)),
        )

    def _beside(self, entry: Table) -> Iterator[tuple[str, Path]]:
        """Yield (name in the legend, path of the CSV file) for measurements of other people."""
        study = self.path.parent.parent.resolve()
        for name, file in entry.table("beside", "a table of names and files").content.items():
            path = (self.path.parent / file).resolve() if isinstance(file, str) else study
            if path.is_file() and path.is_relative_to(study):
                yield name, path
            else:
                entry.wrong(
                    f"beside.{name}", file, "must be the path of a file in the folder of the study"
                )


def _names(entry: Table, key: str, known: Sequence[str]) -> tuple[str, ...]:
    """Return the names of metrics that ``key`` lists; without the key, all names in ``known``.

    Names that are not in ``known`` are added to the problems.
    """
    given = entry.texts(key, known, "a list of names of metrics")
    for name in given:
        if name not in known:
            entry.no_such(key, name, "metric", known)
    return given


def _check_argument(entry: Table, key: str, kind: Any) -> None:
    """Add a problem to ``entry`` if the value of ``key`` does not have the type ``kind``.

    ``kind`` is the type of an argument of a measure, such as ``list[float]``.
    """
    value = entry.get(key)
    if not isinstance(value, Mapping) or not _fits({}, kind):
        if not _fits(value, kind):
            entry.wrong(key, value, f"must be {_words(kind)}")
        return
    for path, setting in value.items():
        if not _a_setting(setting):
            message = "must be a text, a number, true or false, or a list or table of such values"
            entry.wrong(f"{key}.{path}", None, message)


def _a_setting(value: Any) -> bool:
    """Whether a TOML value is allowed for a setting: text, number, boolean, or a list or table.

    Lists and tables must not be empty.
    """
    if isinstance(value, Mapping):
        return bool(value) and all(map(_a_setting, value.values()))
    if isinstance(value, list):
        return bool(value) and all(map(_a_setting, value))
    return type(value) in {str, int, float, bool}


def _digest(claim: Claim, metrics: Sequence[Metric], further: Sequence[Any] = ()) -> str:
    """Return the SHA-256 of all inputs that change values and verdicts: runs, measures, bands.

    ``metrics`` are the metrics that are hashed, ``further`` has further inputs. Texts, titles and
    units are not hashed, so that they can be corrected without new runs. The number of seeds is not
    hashed, because a result with more seeds than the claim needs is also valid.
    """
    asked = [[m.runs, m.measure, m.arguments, m.factor, m.low, m.high] for m in metrics]
    used = sorted({name for metric in metrics for name in metric.runs})
    runs = [_ran(claim.runs[name]) for name in used]
    content = json.dumps([asked, runs, *further], sort_keys=True, default=str)
    return hashlib.sha256(content.encode()).hexdigest()


def _ran(sweep: Sweep) -> list[Any]:
    """Return all inputs of a sweep that change its numbers, except the seeds."""
    try:
        scenario: Any = read_file(Path(sweep.scenario))[0]
    except (OSError, InputError):
        scenario = sweep.scenario  # a shipped scenario, or a wrong name, which the run reports
    axes = [[axis.paths, axis.values, axis.names] for axis in sweep.axes]
    adaptive = asdict(sweep.adaptive) if sweep.adaptive else None
    kept = [sweep.warm_up_ps, sweep.baseline, sweep.confidence]
    return [scenario, sweep.settings, axes, adaptive, kept]


def _fits(value: Any, kind: Any) -> bool:
    """Whether a TOML value has the type ``kind`` of an argument of a measure."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return any(_fits(value, option) for option in inner)
    if origin is list:
        return isinstance(value, list) and all(_fits(entry, inner[0]) for entry in value)
    if origin is not None:  # the argument is a mapping of settings
        return isinstance(value, dict) and all(map(_a_setting, value.values()))
    if kind is float:
        return type(value) in {int, float} and math.isfinite(value)
    return type(value) is kind


def _words(kind: Any) -> str:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return " or ".join(_words(option) for option in inner if option is not type(None))
    if origin is list:
        return f"a list in which each member is {_words(inner[0])}"
    if origin is not None:
        return 'a table of settings, such as { "fabric.hosts" = 5 }'
    return {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}[kind]
