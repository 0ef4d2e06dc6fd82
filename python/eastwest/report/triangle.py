"""Energy, runtime and latency of several results in one chart, with a triangle for each result.

Each corner is one of the three metrics, from 0 in the middle to the largest value of the results at
the rim: a smaller triangle is better. The table tells which results another result beats: it is
better in one metric and not worse in the others. A beaten result is not the best for any weights of
energy and time. Ideal sleep is a bound that cannot be built, so a result with ideal sleep does not
beat others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from eastwest import units
from eastwest.report.spread import MOST_CURVES
from eastwest.results import Result, pick
from eastwest.views.front import beats
from eastwest.views.metrics import Metric

WIDTH, HEIGHT = 520, 382
_MIDDLE = (260.0, 232.0)
_RADIUS = 168.0
#: Angles of the corners in degrees: up, down right, down left.
_ANGLES = (-90.0, 30.0, 150.0)
_RINGS = (0.25, 0.5, 0.75, 1.0)


_ENERGY = Metric("energy of links", ("energy_j", "total"), units.joules)
_JOBS = Metric("job runtime, mean", ("jobs", "runtime_s", "mean"), units.span)
_FLOWS = Metric("flow completion, mean", ("flows", "fct_us", "mean"), units.span, 1e-6)
_LATENCY = Metric("packet latency, p99", ("latency_us", "p99"), units.span, 1e-6)
#: Titles of the metrics as heads of columns.
_HEADS = {_JOBS: "runtime", _FLOWS: "completion"}


def triangle(results: Sequence[Result], names: Sequence[str]) -> dict[str, Any] | None:
    """Return the chart and its table as data for the template.

    Returns None if no link slept in any result, or a result lacks a metric.
    """
    if not any((pick(r.summary, "energy_j", "of_always_on") or 1.0) < 1 for r in results):
        return None
    with_jobs = all(pick(r.summary, "jobs", "count") for r in results)
    axes = (_ENERGY, _JOBS if with_jobs else _FLOWS, _LATENCY)
    values = [[axis.of(result) for axis in axes] for result in results]
    points = [[v for v in row if v is not None and 0 <= v < math.inf] for row in values]
    if any(len(row) < len(axes) for row in points):
        return None
    most = [max(column) or 1.0 for column in zip(*points, strict=True)]
    shapes = [[v / m for v, m in zip(row, most, strict=True)] for row in points[:MOST_CURVES]]
    real = [i for i, result in enumerate(results) if not _is_bound(result)]
    rows = []
    for number, (name, row, result) in enumerate(zip(names, points, results, strict=True)):
        better = [names[i] for i in real if beats(points[i], row)]
        awake = pick(result.summary, "energy_j", "of_always_on")
        cells = [axis.write(v) for axis, v in zip(axes, row, strict=True)]
        beaten = _beaten(better) if number in real else "a bound"
        rows.append((number, [name, cells[0], units.percent(awake), *cells[1:], beaten]))
    best = [names[i] for i in real if not any(beats(points[o], points[i]) for o in real)]
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "title": _title(best, len(real)),
        "rings": [_path([share] * 3) for share in _RINGS],
        "spokes": "".join(_spoke(angle) for angle in _ANGLES),
        "shapes": [(n, names[n], _path(shape)) for n, shape in enumerate(shapes)],
        "corners": _corners(axes, most),
        "headings": [
            *("result", "energy", "of always on"),
            *(_HEADS[axes[1]], "p99 latency", "beaten by"),
        ],
        "rows": rows,
    }


def _is_bound(result: Result) -> bool:
    """Whether a result has ideal sleep: links slept, with the least energy that is possible."""
    awake, ideal = (pick(result.summary, "energy_j", f"of_{o}") for o in ("always_on", "ideal"))
    return awake is not None and ideal is not None and awake < 1 and ideal <= 1 + 1e-9


def _beaten(better: Sequence[str]) -> str:
    if not better:
        return "none"
    return better[0] if len(better) == 1 else f"{better[0]} and {len(better) - 1} more"


def _title(best: Sequence[str], count: int) -> str:
    if len(best) == 1 < count:
        return f"{best[0]} is the best in energy, runtime and latency at once"
    if len(best) == count:
        return (
            "Energy is traded for time: no result is beaten in energy, runtime and latency at once"
        )
    return (
        f"{len(best)} of {count} results are not beaten in energy, runtime and "
        "latency at once; the others are beaten"
    )


def _at(angle: float, share: float) -> tuple[float, float]:
    turn = math.radians(angle)
    across, down = _MIDDLE
    return across + _RADIUS * share * math.cos(turn), down + _RADIUS * share * math.sin(turn)


def _path(shares: Sequence[float]) -> str:
    corners = [_at(angle, share) for angle, share in zip(_ANGLES, shares, strict=True)]
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in corners) + "Z"


def _spoke(angle: float) -> str:
    (x, y), (a, b) = _at(angle, 0), _at(angle, 1)
    return f"M{x:.1f} {y:.1f}L{a:.1f} {b:.1f}"


def _corners(axes: Sequence[Metric], most: Sequence[float]) -> list[dict[str, Any]]:
    """Return for each corner a mapping: position and anchor of its label, name, value at the rim.

    ``axes`` are the metrics, ``most`` their values at the rim.
    """
    anchors = ("middle", "end", "start")
    places = ((_MIDDLE[0], 22.0), (WIDTH - 8.0, 352.0), (8.0, 352.0))
    return [
        {"x": x, "y": y, "anchor": anchor, "name": axis.title, "rim": axis.write(value)}
        for axis, value, anchor, (x, y) in zip(axes, most, anchors, places, strict=True)
    ]
