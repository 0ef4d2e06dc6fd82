"""Folder of the results of an optimisation: its files, and the classes that read and write it.

The folder has ``optimize.toml`` and ``scenario.toml`` (as given), ``summary.json``,
``recommended.toml`` (the scenario with the recommended settings and with every default; absent if
no point keeps the limits), the files that this scenario reads, ``front.svg`` (with two or more
goals), and

* ``points.parquet``: one row per point: name, origin, settings, last stage, and for the metric of
  every goal and limit the mean at this stage with its interval, and the change from the baseline;
* ``runs.parquet``: one row per stage, point and seed, with ``key`` in the store, ``digest`` and
  every metric.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eastwest import core, kept, shipped
from eastwest.folders import NewFolder
from eastwest.optimize.check import overrides
from eastwest.optimize.search import Search, versions
from eastwest.optimize.space import Axis
from eastwest.optimize.verdict import Verdict, names
from eastwest.sweep.tables import setting_columns
from eastwest.sweep.values import text

if TYPE_CHECKING:
    import polars as pl

#: Version of the layout of an optimisation's folder: ``format`` in ``summary.json``.
FORMAT = 1
_KIND = "optimisation"


class OptimizeResult:
    """The result folder of an optimisation; tables are read when first used."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if read_summary(self.path) is None:
            raise FileNotFoundError(
                f"{self.path} is not the folder of an optimisation: it has no summary.json of one"
            )

    def __repr__(self) -> str:
        return f"OptimizeResult({str(self.path)!r})"

    def _repr_html_(self) -> str:
        """Return the recommended point as HTML, which notebooks show."""
        from eastwest import cards  # noqa: PLC0415  only for notebooks

        return cards.of_optimisation(self)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Content of ``summary.json``: axes, goals and limits, the front, the recommended point."""
        return read_summary(self.path) or {}

    @property
    def recommended(self) -> dict[str, Any] | None:
        """The recommended point as a mapping, with its settings; None if no point keeps the limits.

        The keys are those of a finalist in ``summary.json``.
        """
        found: dict[str, Any] | None = self.summary["recommended"]
        return found

    @cached_property
    def points(self) -> pl.DataFrame:
        """Frame with one row per point, from ``points.parquet``.

        Columns are ``point`` (number), ``name``, ``origin``, ``stage``, ``on_front``,
        ``recommended``, ``failure``, one per setting, and four for each metric M of the goals and
        limits: ``M`` (mean), ``M.low``, ``M.high``, ``M.change`` (from the baseline, as a share).
        """
        return kept.read_table(self.path, "points")

    @cached_property
    def runs(self) -> pl.DataFrame:
        """Frame with one row per stage, point and seed, from ``runs.parquet``.

        Columns are ``stage``, ``point`` (number), ``seed``, ``key`` (in the store), ``digest`` and
        one per metric.
        """
        return kept.read_table(self.path, "runs")


def read_summary(folder: Path) -> dict[str, Any] | None:
    """Return the summary of an optimisation's folder, or None where it has no summary.

    Raises ``InputError`` where the summary is damaged, or of a newer format than this version
    reads.
    """
    return kept.read_summary(folder, _KIND, FORMAT)


def target(out: Path, force: bool) -> NewFolder:
    """Return the writer of an optimisation's result folder ``out``; nothing is written yet.

    ``force``: whether an earlier optimisation is replaced.
    """
    return NewFolder(out, force, "an optimisation", "optimize.toml", parents=True)


def write(search: Search, verdict: Verdict, place: NewFolder) -> OptimizeResult:
    """Write the result folder of an optimisation and return it.

    The folder has a temporary name until it is complete.
    """
    with kept.writing(place.out.absolute()), place.begin() as partial:
        _fill(partial.path, search, verdict)
        place.place(partial)
    return OptimizeResult(place.out)


def _fill(folder: Path, search: Search, verdict: Verdict) -> None:
    """Write all files of an optimisation into ``folder``."""
    from eastwest.plot.front import draw  # noqa: PLC0415  slow to load

    summary = summary_of(search, verdict)
    texts = {
        "optimize.toml": search.spec.text,
        "scenario.toml": search.evaluator.source.text,
        "summary.json": json.dumps(summary, indent=2, ensure_ascii=False) + "\n",
    }
    _recommended(search, verdict, folder)
    if len(search.spec.goals) > 1 and verdict.finalists:
        draw(summary, folder / "front.svg")
    tables = {"points": points_table(search, verdict), "runs": runs_table(search)}
    kept.fill(folder, texts, tables)


def _recommended(search: Search, verdict: Verdict, folder: Path) -> None:
    """Write ``recommended.toml`` and the files that it reads, so that it can be run alone.

    Nothing is written if no point is recommended.
    """
    if verdict.recommended is None:
        return
    source, last = search.evaluator.source, search.spec.stages[-1]
    settings = overrides(search.spec, last, verdict.recommended.settings)
    resolved = core.resolve(
        source.text, str(source.base_dir), str(shipped.DATA), settings, last.seeds[0]
    )
    (folder / "recommended.toml").write_text(resolved["scenario_toml"], encoding="utf-8")
    for name, content in resolved["attached"]:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)


def summary_of(search: Search, verdict: Verdict) -> dict[str, Any]:
    """Return the summary of an optimisation: the content of ``summary.json``."""
    spec, evaluator, chosen = search.spec, search.evaluator, verdict.recommended
    return {
        "kind": _KIND,
        "format": FORMAT,
        "name": spec.name,
        "scenario": spec.scenario,
        "version": core.version(),
        "build": core.build(),
        "versions": versions(),
        "settings": spec.settings,
        "axes": [_axis(axis) for axis in spec.space.axes],
        "goals": [{"metric": g.metric, "more": g.more, "weight": g.weight} for g in spec.goals],
        "limits": [limit.text() for limit in spec.limits],
        "search": {
            "trials": spec.trials,
            "batch": spec.batch,
            "seed": spec.seed,
            "method": "every point of the space" if search.exhaustive else "TPE of Optuna",
        },
        "stages": [
            {
                "name": stage.name,
                "seeds": list(stage.seeds),
                "settings": stage.settings,
                "points": sum(number in p.runs for p in search.points),
                "foretold_next": search.foretold.get(number),
            }
            for number, stage in enumerate(spec.stages)
        ],
        "points": len(search.points),
        "failed_points": [
            {"name": p.name, "message": p.failure} for p in search.points if p.failure
        ][:100],
        "runs": {
            "done": evaluator.done,
            "reused": evaluator.reused,
            "failed": evaluator.failed,
        },
        "confidence": spec.confidence,
        "baseline": verdict.as_json(search.baseline),
        "finalists": [verdict.as_json(p) for p in verdict.finalists],
        "front": [p.number for p in verdict.front],
        "recommended": None if chosen is None else verdict.as_json(chosen),
        "alike": names(verdict.alike),
        "reason": verdict.reason(),
        "binding": [
            {"limit": b.text, "missed_by": b.missed_by, "least": b.least} for b in verdict.binding
        ],
        "closest": None if verdict.closest is None else verdict.as_json(verdict.closest),
        "candidates": [_candidate(verdict, p, said) for p, said in verdict.candidates()],
        "store": str(evaluator.store.path),
    }


def _candidate(verdict: Verdict, point: Any, said: str) -> dict[str, Any]:
    changes = {}
    if not point.failure and verdict.recommended not in {None, point}:
        for goal in verdict.spec.goals:
            found = verdict.against(point, goal)
            if found is not None:
                changes[goal.metric] = {
                    "n": found.n, "mean": found.value, "low": found.low, "high": found.high,
                }  # fmt: skip
    return {
        "name": point.name,
        "verdict": said,
        "beaten_by": names(verdict.beaten(point)),
        "recommended_against_it": changes,
    }


def _axis(axis: Axis) -> dict[str, Any]:
    found: dict[str, Any] = {"paths": list(axis.paths)}
    if axis.span is None:
        found["values"] = [list(row) for row in axis.rows]
    else:
        low, high, log = axis.span
        found |= {"from": low.given, "to": high.given, "scale": "log" if log else "linear"}
    if axis.names:
        found["names"] = list(axis.names)
    if axis.when:
        found["when"] = {path: list(values) for path, values in axis.when.items()}
    return found


def points_table(search: Search, verdict: Verdict) -> pl.DataFrame:
    """Return the frame of ``points.parquet``: one row per point; see ``OptimizeResult.points``."""
    import polars as pl  # noqa: PLC0415  large

    front = {p.number for p in verdict.front}
    metrics = dict.fromkeys(
        [*(g.metric for g in search.spec.goals), *(m.metric for m in search.spec.limits)]
    )
    rows = []
    for point in search.points:
        row: dict[str, Any] = {
            "point": point.number,
            "name": point.name,
            "origin": point.origin,
            "stage": max(point.runs, default=-1) + 1,
            "on_front": point.number in front,
            "recommended": point is verdict.recommended,
            "failure": point.failure,
        }
        for metric in metrics:
            row |= _columns(metric, search, point)
        rows.append(row)
    table = pl.DataFrame(rows, infer_schema_length=None).with_columns(
        pl.col("point").cast(pl.UInt32)
    )
    paths = dict.fromkeys(path for p in search.points for path in p.settings)
    settings = setting_columns(
        list(paths),
        {p.number: [_shown(p.settings, path) for path in paths] for p in search.points},
    )
    return table.join(settings, on="point", how="left", maintain_order="left", suffix=" (set)")


def _shown(settings: Mapping[str, Any], path: str) -> str:
    return text(settings[path]) if path in settings else ""


def _columns(metric: str, search: Search, point: Any) -> dict[str, float | None]:
    """Return mean, interval and change of a metric at the last stage of a point, by column.

    The values are None for a point without a measurement.
    """
    empty = dict.fromkeys([metric, f"{metric}.low", f"{metric}.high", f"{metric}.change"], None)
    if not point.runs:
        return dict.fromkeys(empty)
    from eastwest.goals import judge  # noqa: PLC0415  beside its use

    stage = max(point.runs)
    base = search.baseline.runs[stage]
    found = judge.told(metric, point.runs[stage], base, search.spec.confidence)
    return {
        metric: found.value.value,
        f"{metric}.low": found.value.low,
        f"{metric}.high": found.value.high,
        f"{metric}.change": None if found.change is None else found.change.value,
    }


def runs_table(search: Search) -> pl.DataFrame:
    """Return the frame of ``runs.parquet``: one row per successful run (stage, point and seed)."""
    import polars as pl  # noqa: PLC0415  large

    rows: list[dict[str, Any]] = []
    for number, stage in enumerate(search.spec.stages):
        for point in search.points:
            for seed, outcome in sorted(point.outcomes.get(number, {}).items()):
                if outcome.result is None:
                    continue
                row = {"stage": stage.name, "point": point.number, "seed": seed}
                digest = str(outcome.result.summary.get("digest", ""))
                metrics = point.runs.get(number, {}).get(seed, {})
                rows.append({**row, "key": outcome.key, "digest": digest, **metrics})
    schema = {"point": pl.UInt32, "seed": pl.UInt64}
    if not rows:
        return pl.DataFrame(schema={"stage": pl.String, **schema})
    return pl.DataFrame(rows, schema_overrides=schema, infer_schema_length=None)
