"""Folders of sweeps made by hand: values of a few metrics, without any run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from eastwest.sweep.tables import (
    SweepResult,
    comparisons_table,
    points_table,
    runs_table,
    setting_columns,
    write_folder,
)

#: Values of a metric: a row for each point, with one value for each seed.
Values = Sequence[Sequence[float]]


def swept(
    path: Path,
    axes: Sequence[tuple[Sequence[str], Sequence[Sequence[Any]]]],
    metrics: Mapping[str, Values],
    **summary: Any,
) -> SweepResult:
    """Write the folder of a sweep over one axis or several; the last varies fastest.

    An axis has its paths, and for each of its values one setting per path.
    """
    points: list[list[Any]] = [[]]
    for _, values in axes:
        points = [[*point, *value] for point in points for value in values]
    paths = [name for names, _ in axes for name in names]
    settings = setting_columns(paths, dict(enumerate(points)))
    seeds = range(1, 1 + len(next(iter(metrics.values()))[0]))
    rows = pl.DataFrame(
        [
            {
                "point": point,
                "seed": seed,
                "key": f"{point}-{seed}",
                **{name: float(values[point][seed - 1]) for name, values in metrics.items()},
            }
            for point in range(len(points))
            for seed in seeds
        ]
    ).with_columns(pl.col("point").cast(pl.UInt32), pl.col("seed").cast(pl.UInt64))
    runs = len(points) * len(seeds)
    about = {
        "kind": "sweep",
        "format": 1,
        "name": "by-hand",
        "scenario": "first",
        "points": len(points),
        "runs": {"planned": runs, "done": runs, "reused": 0, "failed": 0},
        "axes": [{"paths": list(names), "values": values, "names": []} for names, values in axes],
        "show": [],
        "seeds": list(seeds),
        "confidence": 0.95,
        "baseline": 0,
        "store": str(path.parent / "store"),
        **summary,
    }
    tables = {
        "runs": runs_table(settings, rows),
        "points": points_table(settings, rows, 0.95),
        "comparisons": comparisons_table(settings, rows, about["baseline"], 0.95),
    }
    return write_folder(path, {"summary.json": json.dumps(about), "failures.json": "[]"}, tables)
