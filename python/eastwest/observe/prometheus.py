"""Metrics from a Prometheus server, through its HTTP API (``/api/v1/query_range``).

A series becomes a column called ``name{label="value", …}`` with its labels in alphabetical order;
labels that have the same value in all series (mostly ``instance`` and ``job``) are left out. The
server's answers are untrusted: their size is limited, and names are treated as text.
"""

from __future__ import annotations

import json
import math
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eastwest.errors import InputError
from eastwest.observe.metrics import Metrics, Numbers, joined, room
from eastwest.units import clean

#: Maximum number of points of a series in one request. Prometheus allows 11,000.
_MOST_POINTS = 10_000
_LARGEST_ANSWER = 512 * 1024 * 1024
_PATIENCE_S = 60
#: Maximum number of remarks of the server that are shown for each request, of each kind.
_MOST_REMARKS = 5
#: Pattern of the names of counters, which have one of these suffixes (Prometheus, "Metric and label
#: naming"; OpenMetrics).
_COUNTED = re.compile(r"[^{]*(?:_total|_count|_sum|_bucket)(?:\{.*)?", re.DOTALL)


_Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class _Answer:
    """Answer of the server: pairs (labels, array of two rows: times in s, values); remarks."""

    series: list[tuple[dict[str, str], Numbers]]
    notes: list[str]


def fetch(
    url: str, query: str, start_s: float, end_s: float, step_s: float, *, rates: bool = True
) -> Metrics:
    """Return all series of a PromQL query from ``start_s`` to ``end_s``, every ``step_s`` seconds.

    Times are seconds since 1970. With ``rates``, counters become rates per second (see ``rated``).
    Raises ``InputError`` if the times are not valid, if the server refuses the query (with the
    server's message), or if it has no series for the query.
    """
    if not (math.isfinite(start_s) and math.isfinite(end_s) and start_s < end_s):
        raise InputError(f"the end ({end_s} s) must be after the start ({start_s} s)")
    if not (math.isfinite(step_s) and step_s >= 0.001):
        raise InputError(f"the step must be 1 ms or longer, not {step_s} s")
    series: dict[_Labels, list[Numbers]] = {}
    notes: dict[str, None] = {}
    first, points = start_s, 0
    while first <= end_s:
        last = min(end_s, first + step_s * _MOST_POINTS)
        answer = _range(url, query, first, last, step_s)
        for labels, found in answer.series:
            series.setdefault(tuple(sorted(labels.items())), []).append(found)
            points += found.shape[1]
            room(points, 1, clean(url))
        notes.update(dict.fromkeys(answer.notes))
        first = last + step_s
    if not series:
        raise InputError(
            f"{clean(url)} has no series for {clean(query)!r} between the given start and end"
        )
    table = joined(_named({key: np.concatenate(parts, axis=1) for key, parts in series.items()}))
    table = replace(table, notes=(*notes, *table.notes))
    return rated(table) if rates else table


def rated(metrics: Metrics) -> Metrics:
    """Return the metrics with counters converted to rates per second; the first row is lost.

    A counter is recognised only by its name; a note states the number of counters. A value below
    the previous value means that the counter was reset and has counted from 0, as in Prometheus.
    """
    if metrics.times_s is None or len(metrics.times_s) < 2:
        raise InputError("rates need a table with at least two times")
    gaps = np.diff(metrics.times_s)
    values: Numbers = metrics.values[1:].copy()
    resets, counters = 0, []
    for column, name in enumerate(metrics.names):
        if _COUNTED.fullmatch(name):
            counted = metrics.values[:, column]
            step = np.diff(counted)
            resets += int((step < 0).sum())
            counters.append(name)
            values[:, column] = np.where(step < 0, counted[1:], step) / gaps
    notes = list(metrics.notes)
    if counters:
        some = clean(counters[0], 60)
        notes.append(
            f"{len(counters):,} metrics are counters by their names (_total, _count, "
            f"_sum, _bucket), such as {some}: these are converted to rates per second"
        )
    if resets:
        notes.append(
            f"{resets:,} values of these counters are below the previous value: the "
            "counter was reset there, and its rate is computed as if it had counted from "
            "0 since the previous value"
        )
    return Metrics(metrics.names, values, metrics.times_s[1:], tuple(notes))


def _named(series: Mapping[_Labels, Numbers]) -> dict[str, tuple[Numbers, Numbers]]:
    """Return (times in s, values) of each series by its name.

    The name contains only the labels that are not the same in all series.
    """
    every = [dict(labels) for labels in series]
    shared = {
        (key, value)
        for key, value in every[0].items()
        if key != "__name__" and all(labels.get(key) == value for labels in every)
    }
    return {
        series_name(
            dict(labels).get("__name__", ""),
            {k: v for k, v in labels if k != "__name__" and (k, v) not in shared},
        )
        or f"series {number}": (points[0], points[1])
        for number, (labels, points) in enumerate(series.items(), 1)
    }


def series_name(name: str, labels: Mapping[str, str]) -> str:
    """Return the name of a series with its labels, as Prometheus writes it."""
    if not labels:
        return name
    inner = ",".join(
        f"{key}={json.dumps(labels[key], ensure_ascii=False)}" for key in sorted(labels)
    )
    return f"{name}{{{inner}}}"


def _range(url: str, query: str, start_s: float, end_s: float, step_s: float) -> _Answer:
    """Return the server's answer to one request.

    ``start_s`` and ``end_s`` are in seconds since 1970; ``step_s`` is the time between points.
    Raises ``InputError`` if the server cannot be reached or refuses the query.
    """
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise InputError(
            f"{clean(url)}: must be the address of a server, such as http://localhost:9090"
        )
    times = {"start": start_s, "end": end_s, "step": step_s}
    form = {"query": query} | {key: repr(float(time)) for key, time in times.items()}
    request = urllib.request.Request(
        url.rstrip("/") + "/api/v1/query_range", urllib.parse.urlencode(form).encode()
    )
    try:
        with urllib.request.urlopen(request, timeout=_PATIENCE_S) as answer:
            content = answer.read(_LARGEST_ANSWER + 1)
    except urllib.error.HTTPError as error:
        with error:
            content = error.read(100_000)
        raise InputError(f"{clean(url)} refuses: {_refusal(content, error)}") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", error)
        raise InputError(f"{clean(url)} cannot be reached: {clean(str(why))}") from None
    if len(content) > _LARGEST_ANSWER:
        raise InputError(
            f"{clean(url)}: the answer is larger than 512 MiB: query fewer series or use "
            "a longer step"
        )
    try:
        whole = json.loads(content)
        data = whole["data"]
        if data["resultType"] != "matrix":
            raise InputError(f"the query {clean(query)!r} has no series over time as its result")
        return _answer(data["result"], [*_remarks(whole, "warnings"), *_remarks(whole, "infos")])
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(f"{clean(url)} does not answer like a Prometheus server") from None


def _answer(result: list[dict[str, Any]], notes: list[str]) -> _Answer:
    """Return the series of an answer; native histograms are left out, with a note.

    ``result`` is the list ``data.result`` of the JSON; ``notes`` gets further remarks added.
    """
    found, histograms = [], 0
    for each in result:
        histograms += "histograms" in each
        points = [(float(time), _number(str(value))) for time, value in each.get("values", ())]
        if points:
            labels = {str(k): str(v) for k, v in each["metric"].items()}
            found.append((labels, np.array(points, dtype=np.float64).T))
        elif "histograms" not in each:
            raise KeyError("values")
    if histograms:
        notes.append(
            f"{histograms:,} series are native histograms and are left out: query "
            "histogram_quantile or histogram_sum of them"
        )
    return _Answer(found, notes)


def _remarks(answer: dict[str, Any], kind: str) -> list[str]:
    """Return the server's remarks on its answer, for instance that a part of the answer is missing.

    ``kind`` is the key of the remarks: ``warnings`` or ``infos``.
    """
    said = answer.get(kind) or []
    some = said[:_MOST_REMARKS] if isinstance(said, list) else [said]
    return [f"the server says ({kind}): {clean(str(each), 200)}" for each in some]


def _refusal(content: bytes, error: urllib.error.HTTPError) -> str:
    try:
        said: Any = json.loads(content)
        return clean(str(said["error"]), 500)
    except (ValueError, KeyError, TypeError, RecursionError):
        return f"{error.code} {clean(str(error.reason))}"


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
