"""The result folder of a sweep: tables of runs, points, comparisons and costs.

The folder is written in one step. It has ``sweep.toml`` and ``scenario.toml`` (as given),
``summary.json``, ``failures.json`` and

* ``runs.parquet``: one row per point and seed, with the settings and every metric. Nothing in it
  depends on the machine or on the order in which runs were made.
* ``points.parquet``: one row per point and metric, with intervals over the seeds (stats.py).
* ``comparisons.parquet``: one row per point and metric: the mean difference to the baseline over
  the seeds that the point and the baseline have, with its paired interval. If the baseline has no
  value of a metric, the first point with a value is used in place of the baseline.
* ``costs.parquet``: wall and CPU time, memory and packet-hops of each run.

The result folders of the runs are in the store (store.py), under the key in ``runs.parquet``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eastwest import kept
from eastwest.errors import FolderError
from eastwest.partial import Partial
from eastwest.reader import flat
from eastwest.results import Result, TargetFolder
from eastwest.stats import (
    mean_interval,
    paired_interval,
    percentile_interval,
    standard_deviation,
)
from eastwest.store import Store
from eastwest.sweep.values import labels, numbers, text

if TYPE_CHECKING:
    import polars as pl

    from eastwest.goals.evaluate import Outcome

#: Version of the layout of a sweep's folder: ``format`` in ``summary.json``.
SWEEP_FORMAT = 1
#: Columns of ``runs.parquet`` that are neither metrics nor settings of axes.
RUN_COLUMNS = ("point", "seed", "key", "digest", "stopped_s", "stopped_by", "at_least")
#: Columns of runs that were stopped early, in the order of the fields of ``goals.early.Stopped``;
#: absent if no run was stopped.
STOPPED_COLUMNS = RUN_COLUMNS[-3:]
#: Column with the names of the points on the first axis with names; the columns of further axes
#: with names are ``case_2``, ``case_3`` and so on.
CASE = "case"
#: Maximum number of different keys in the tables of an axis, above which keys get no columns.
_MOST_KEYS = 50


class SweepResult:
    """The result folder of a sweep; tables are read when first used."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if read_summary(self.path) is None:
            raise FileNotFoundError(
                f"{self.path} is not the folder of a sweep: it has no summary.json of a sweep"
            )

    def __repr__(self) -> str:
        return f"SweepResult({str(self.path)!r})"

    def _repr_html_(self) -> str:
        """Return the first points of the sweep as HTML, which notebooks show."""
        from eastwest import cards  # noqa: PLC0415  only for notebooks

        return cards.of_sweep(self)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Content of ``summary.json``: axes, seeds, goals, numbers of runs, versions and times."""
        return read_summary(self.path) or {}

    @property
    def axes(self) -> list[str]:
        """Paths of the settings that the sweep varies: columns of all tables but ``costs``.

        A path that is also the name of another column has the prefix ``set.`` in tables.
        """
        return [path for axis in self.summary["axes"] for path in axis["paths"]]

    @property
    def columns(self) -> list[tuple[str, int | None]]:
        """Columns of settings for views: (path, None), or (``case``, number of the axis from 0).

        An axis with names has a single column with its names, any other axis one for each path.
        """
        found: list[tuple[str, int | None]] = []
        for number, axis in enumerate(self.summary["axes"]):
            if axis.get("names"):
                found.append(("case", number))
            else:
                found += [(path, None) for path in axis["paths"]]
        return found

    def names(self, point: int) -> dict[int, str]:
        """Return the names of a point, by the number (from 0) of each axis that has names."""
        found = {}
        for number, axis in reversed(list(enumerate(self.summary["axes"]))):
            point, place = divmod(point, len(axis["values"]))
            if axis.get("names"):
                found[number] = str(axis["names"][place])
        return found

    @cached_property
    def labels(self) -> dict[str, dict[str, str]]:
        """Short texts of values that are TOML tables: by path, and then by the value as TOML text.

        Paths without TOML tables are absent.
        """
        found: dict[str, dict[str, str]] = {}
        for axis in self.summary["axes"]:
            for path, values in zip(axis["paths"], zip(*axis["values"], strict=True), strict=True):
                if any(isinstance(value, Mapping) for value in values):
                    given = list({text(value): value for value in values}.values())
                    found[path] = dict(zip(map(text, given), labels(given), strict=True))
        return found

    def settings(self, point: int) -> dict[str, Any]:
        """Return the values of point ``point`` on all axes, by path; TOML tables are mappings."""
        found: dict[str, Any] = {}
        for axis in reversed(self.summary["axes"]):
            point, place = divmod(point, len(axis["values"]))
            found |= zip(axis["paths"], axis["values"][place], strict=True)
        return found

    @cached_property
    def runs(self) -> pl.DataFrame:
        """Frame with one row per point and seed, from ``runs.parquet``.

        Columns are ``point`` (number), a column per setting, ``seed``, ``key`` (in the store),
        ``digest``, and one column per metric, named by its path.
        """
        return kept.read_table(self.path, "runs")

    @cached_property
    def points(self) -> pl.DataFrame:
        """Frame with one row per point and metric, from ``points.parquet``.

        Columns are ``point`` (number), a column per setting, ``metric``, ``n`` (seeds), ``mean``
        with its interval ``low`` to ``high``, ``sd``, ``median`` with ``median_low`` and
        ``median_high``, and ``goal`` (``met``, ``missed``, ``undecided``; null without a limit). If
        runs were stopped early, there is the column ``at_least``.
        """
        return kept.read_table(self.path, "points")

    @cached_property
    def comparisons(self) -> pl.DataFrame:
        """Frame with one row per point and metric: mean difference to the baseline point.

        Columns are ``point`` (number), a column per setting, ``metric``, ``n`` (common seeds), the
        mean ``difference`` with its paired interval ``low`` to ``high``, ``baseline_mean``, and
        ``baseline``: the number of the point with which ``point`` is compared. This is the baseline
        point, or, for a metric that the baseline point lacks, the first point with the metric.
        """
        return kept.read_table(self.path, "comparisons")

    @cached_property
    def costs(self) -> pl.DataFrame:
        """Frame with one row per run, from ``costs.parquet``.

        Columns: ``point``, ``seed``, ``key``, ``wall_s``, ``cpu_s``, ``peak_rss_mb``,
        ``packet_hops`` and ``reused`` (whether the store had the run already).
        """
        return kept.read_table(self.path, "costs")

    @cached_property
    def failures(self) -> list[dict[str, Any]]:
        """Failed runs: mappings with ``point``, ``seed``, ``settings``, ``key`` and ``message``."""
        loaded = json.loads((self.path / "failures.json").read_text(encoding="utf-8"))
        return list(loaded)

    def run(self, point: int, seed: int) -> Result:
        """Return the result of a run, by number of the point and seed.

        Raises ``KeyError`` if the run store does not have the run.
        """
        import polars as pl  # noqa: PLC0415  large

        rows = self.runs.filter((pl.col("point") == point) & (pl.col("seed") == seed))
        found = Store(self.summary["store"]).find(rows["key"][0]) if rows.height else None
        if found is None:
            raise KeyError(
                f"no run of point {point} with seed {seed} in the run store {self.summary['store']}"
            )
        return found


def read_summary(folder: Path) -> dict[str, Any] | None:
    """Return the summary of a sweep's folder, or None where it has no summary.

    Raises ``InputError`` where the summary is damaged, or of a newer format than this version
    reads.
    """
    return kept.read_summary(folder, "sweep", SWEEP_FORMAT)


class Rows:
    """Collector of rows of a table; every 10,000 rows become a frame, which needs less memory."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []
        self._frames: list[pl.DataFrame] = []

    def add(self, row: dict[str, Any]) -> None:
        """Add a row: values by column, with ``point`` and ``seed``."""
        self._rows.append(row)
        if len(self._rows) >= 10_000:
            self._pack()

    def _pack(self) -> None:
        import polars as pl  # noqa: PLC0415  large

        if self._rows:
            self._frames.append(pl.DataFrame(self._rows, infer_schema_length=None))
            self._rows = []

    def frame(self) -> pl.DataFrame:
        """Return the frame of all rows, sorted by ``point`` and ``seed``."""
        import polars as pl  # noqa: PLC0415  large

        self._pack()
        if not self._frames:
            return pl.DataFrame(schema={"point": pl.UInt32, "seed": pl.UInt64})
        whole = pl.concat(self._frames, how="diagonal_relaxed")
        whole = whole.with_columns(
            pl.col("point").cast(pl.UInt32), pl.col("seed").cast(pl.UInt64)
        ).sort("point", "seed")
        self._frames = [whole]
        return whole


def setting_columns(
    paths: Sequence[str],
    points: Mapping[int, Sequence[Any]],
    cases: Sequence[Sequence[str]] = (),
) -> pl.DataFrame:
    """Return a frame with one row per point: ``point``, columns of names, columns of settings.

    ``points`` has the values of each point in the order of ``paths``. A setting has a column of
    numbers if all its values are numbers, else a column of texts. If all texts have a unit, such as
    ``20 packets``, a second column has the numbers, and its name the unit:
    ``fabric.queue.limit_packets``. A TOML table is written as TOML text, and each of its keys has a
    column, such as ``fabric.queue.kind``, which is null for tables without this key. ``cases`` has,
    for each axis with names, the names of all points: the columns ``case``, ``case_2`` and so on.
    """
    import polars as pl  # noqa: PLC0415  large

    columns = [pl.Series("point", list(points), dtype=pl.UInt32)]
    for number, names in enumerate(cases, 1):
        name = CASE if number == 1 else f"{CASE}_{number}"
        columns.append(pl.Series(name, names, dtype=pl.String))
    for path, values in _with_keys(paths, points):
        if all(type(value) in {int, float} for value in values):
            whole = all(type(value) is int for value in values)
            columns.append(pl.Series(path, values, dtype=pl.Int64 if whole else pl.Float64))
        else:
            texts = [None if value is None else text(value) for value in values]
            columns.append(pl.Series(path, texts, dtype=pl.String))
            found = numbers([value for value in values if value is not None])
            if found is not None and found[0] and path + found[0] not in paths:
                each = iter(found[1])
                filled = [None if value is None else next(each) for value in values]
                columns.append(pl.Series(path + found[0], filled, dtype=pl.Float64))
    return pl.DataFrame(columns)


def table_keys(values: Sequence[Any]) -> list[str]:
    """Return the dotted keys of all TOML tables in ``values``; empty if there are more than 50."""
    keys = dict.fromkeys(key for value in values for key in flat(value))
    return [*keys] if len(keys) <= _MOST_KEYS else []


def _with_keys(
    paths: Sequence[str], points: Mapping[int, Sequence[Any]]
) -> Iterator[tuple[str, list[Any]]]:
    """Yield (path, values at all points) for each setting and for each key of its TOML tables.

    The value of a key is None at points whose table lacks this key.
    """
    for place, path in enumerate(paths):
        values = [row[place] for row in points.values()]
        yield path, values
        tables = [flat(value) for value in values]
        for key in table_keys(values):
            yield f"{path}.{key}", [table.get(key) for table in tables]


def runs_table(settings: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the frame of ``runs.parquet``: point, seed, settings, key, digest, metrics of runs.

    ``settings`` has one row per point, ``rows`` one row per run, without settings.
    """
    import polars as pl  # noqa: PLC0415  large

    metrics = sorted(name for name in rows.columns if name not in RUN_COLUMNS)
    axes = [name for name in settings.columns if name != "point"]
    clash = {name: f"set.{name}" for name in axes if name in metrics or name in RUN_COLUMNS}
    joined = rows.join(settings.rename(clash), on="point", how="left", maintain_order="left")
    head = [name for name in RUN_COLUMNS if name in rows.columns]
    named = [clash.get(name, name) for name in axes]
    return joined.select(
        *head[:2], *named, *head[2:], *(pl.col(m).cast(pl.Float64) for m in metrics)
    )


def metric_names(rows: pl.DataFrame) -> list[str]:
    """Return the sorted names of metrics in ``rows``, a frame of runs without settings."""
    return sorted(name for name in rows.columns if name not in RUN_COLUMNS)


def complete_points(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the points of which no run was stopped early; ``rows`` has all runs.

    The complete runs of another point are no sample of its runs: runs that miss a goal are absent.
    """
    import polars as pl  # noqa: PLC0415  large

    column = STOPPED_COLUMNS[0]
    if column not in rows.columns:
        return rows
    return rows.filter(pl.col(column).is_null().all().over("point"))


def runs_by_point(
    rows: pl.DataFrame, metrics: Sequence[str]
) -> dict[int, dict[int, dict[str, float]]]:
    """Return metrics of all runs: number of the point → seed → metric → value.

    Metrics that a run lacks are absent.
    """
    found = {}
    for point, part in _parts(rows.select("point", "seed", *metrics)):
        found[point] = {
            seed: {m: part[m][row] for m in metrics if part[m][row] is not None}
            for row, seed in enumerate(part["seed"])
        }
    return found


def points_table(
    settings: pl.DataFrame, rows: pl.DataFrame, confidence: float, outcome: Outcome | None = None
) -> pl.DataFrame:
    """Return the frame of ``points.parquet``: one row per point and metric.

    ``settings`` has one row per point, ``rows`` one row per run; intervals have the level
    ``confidence``. The column ``goal`` says whether the point meets the limit of the metric in
    ``outcome``: ``met``, ``missed`` or ``undecided``; it is null for metrics without a limit.

    If runs of a point were stopped early, the point has rows only for metrics with a limit; they
    have no means, and the column ``at_least`` has a value that the mean is not below.
    """
    import polars as pl  # noqa: PLC0415  large

    schema = {
        "point": pl.UInt32, "metric": pl.String, "n": pl.UInt32, "mean": pl.Float64,
        "low": pl.Float64, "high": pl.Float64, "sd": pl.Float64, "median": pl.Float64,
        "median_low": pl.Float64, "median_high": pl.Float64, "goal": pl.String,
    }  # fmt: skip
    stopped = STOPPED_COLUMNS[0] in rows.columns
    if stopped:
        schema["at_least"] = pl.Float64
    found: dict[str, list[Any]] = {name: [] for name in schema}
    metrics = metric_names(rows)
    results = {} if outcome is None else outcome.cells(metrics)
    for point, part in _parts(complete_points(rows)):
        for metric in metrics:
            values = [value for value in part[metric] if value is not None]
            if not values:
                continue
            mean = mean_interval(values, confidence)
            median = percentile_interval(values, 0.5, confidence)
            result = results.get((point, metric))
            row = (
                point, metric, mean.n, mean.value, mean.low, mean.high,
                standard_deviation(values), median.value, median.low, median.high,
                None if result is None else result.state,
            )  # fmt: skip
            for name, value in zip(schema, [*row, *([None] * stopped)], strict=True):
                found[name].append(value)
    for (point, metric), cell in results.items():
        if cell.stopped:
            known = {
                "point": point, "metric": metric, "n": cell.value.n, "goal": cell.state,
                "at_least": cell.value.value,
            }  # fmt: skip
            for name, column in found.items():
                column.append(known.get(name))
    table = pl.DataFrame(found, schema=schema).sort("point", maintain_order=True)
    return _with_settings(settings, table)


def comparisons_table(
    settings: pl.DataFrame, rows: pl.DataFrame, baseline: int, confidence: float
) -> pl.DataFrame:
    """Return the frame of ``comparisons.parquet``: differences to the point ``baseline``.

    ``settings`` has one row per point, ``rows`` one row per run; intervals have the level
    ``confidence``. If the baseline point lacks a metric, for example because it runs no jobs, the
    other points are compared with the first point that has the metric.
    """
    import polars as pl  # noqa: PLC0415  large

    schema = {
        "point": pl.UInt32, "metric": pl.String, "n": pl.UInt32, "difference": pl.Float64,
        "low": pl.Float64, "high": pl.Float64, "baseline_mean": pl.Float64, "baseline": pl.UInt32,
    }  # fmt: skip
    found: dict[str, list[Any]] = {name: [] for name in schema}
    metrics = metric_names(rows)
    bases, theirs = _bases(rows, metrics, baseline)
    for point, part in _parts(rows):
        seeds = part["seed"]
        for metric in metrics:
            if point == bases.get(metric, point):
                continue
            other = theirs[metric]
            pairs = [
                (value, other[seed])
                for seed, value in zip(seeds, part[metric], strict=True)
                if value is not None and other.get(seed) is not None
            ]
            if not pairs:
                continue
            ours, against = zip(*pairs, strict=True)
            difference = paired_interval(ours, against, confidence)
            row = (
                point, metric, difference.n, difference.value, difference.low, difference.high,
                sum(against) / len(against), bases[metric],
            )  # fmt: skip
            for name, value in zip(schema, row, strict=True):
                found[name].append(value)
    return _with_settings(settings, pl.DataFrame(found, schema=schema))


def _bases(
    rows: pl.DataFrame, metrics: Sequence[str], baseline: int
) -> tuple[dict[str, int], dict[str, dict[int, float | None]]]:
    """Return (points, values), both by metric: with which point others are compared, and how.

    ``points`` has the number of this point: ``baseline``, or the first point that has the metric.
    ``values`` has the values of the metric at this point, by seed.
    """
    import polars as pl  # noqa: PLC0415  large

    # Sorted so that the baseline comes first, and then the other points by number.
    ordered = rows.sort(pl.col("point") != baseline, "point", "seed")
    bases: dict[str, int] = {}
    theirs: dict[str, dict[int, float | None]] = {}
    for metric in metrics:
        there = ordered.filter(pl.col(metric).is_not_null())
        if there.height:
            bases[metric] = point = int(there["point"][0])
            own = there.filter(pl.col("point") == point)
            theirs[metric] = dict(zip(own["seed"], own[metric], strict=True))
    return bases, theirs


def _parts(rows: pl.DataFrame) -> Iterator[tuple[int, dict[str, list[Any]]]]:
    """Yield (number of the point, list of values by column) for each point in a frame of runs."""
    for (point,), part in rows.group_by("point", maintain_order=True):
        yield int(str(point)), part.to_dict(as_series=False)


def _with_settings(settings: pl.DataFrame, table: pl.DataFrame) -> pl.DataFrame:
    """Return ``table`` with the columns of ``settings`` inserted after the column ``point``."""
    clash = {n: f"set.{n}" for n in settings.columns if n != "point" and n in table.columns}
    named = settings.rename(clash)
    joined = table.join(named, on="point", how="left", maintain_order="left")
    rest = [name for name in table.columns if name != "point"]
    return joined.select(*named.columns, *rest)


def check_target(out: Path, scenario: str, version: str, resume: bool, force: bool) -> None:
    """Raise ``FolderError`` if a sweep must not be written to the folder ``out``.

    Without ``force``, a folder with files must have a sweep; ``resume`` must be set, and the sweep
    must have the same ``version`` of Eastwest and the same text of the scenario.
    """
    if not out.exists() and not out.is_symlink():
        TargetFolder(out).check()
        return
    TargetFolder(out, force=True).check()
    if not any(out.iterdir()) or force:
        return
    there = read_summary(out)
    if there is None:
        raise FolderError(
            f"{out} exists and is not the folder of a sweep: name another folder with --out"
        )
    done = there.get("runs", {})
    if not resume:
        raise FolderError(
            f"{out} already has a sweep ({done.get('done')} of {done.get('planned')} runs): "
            "--resume continues or extends this sweep, --force replaces it, --out names another "
            "folder"
        )
    if there.get("version") != version:
        raise FolderError(
            f"{out} was made by Eastwest {there.get('version')!s:.40}, but {version} is installed: "
            "runs of two versions are not mixed. Name another folder with --out, or replace it "
            "with --force"
        )
    if (out / "scenario.toml").read_text(encoding="utf-8") != scenario:
        raise FolderError(
            f"{out} has a sweep of another scenario: name another folder with --out, or replace "
            "it with --force"
        )


def write_folder(
    out: Path, texts: Mapping[str, str], tables: Mapping[str, pl.DataFrame]
) -> SweepResult:
    """Write the result folder of a sweep and return it; on an error, ``out`` is not changed.

    ``texts`` has the contents of text files by name, ``tables`` the frames by name without suffix.
    """
    out = out.absolute()
    with kept.writing(out), Partial.folder(out.parent) as partial:
        kept.fill(partial.path, texts, tables)
        TargetFolder(out, force=True).place(partial, out.name)
    try:
        shown = out.relative_to(Path.cwd())
    except ValueError:
        shown = out
    return SweepResult(shown)
