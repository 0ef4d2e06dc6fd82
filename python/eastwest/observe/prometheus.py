"""Metrics from a Prometheus server, through its HTTP API (``/api/v1/query_range``).

A series becomes a column called ``name{label="value", …}`` with its labels in order; those labels
that all series share with one value (mostly ``instance`` and ``job``) are left out. What the server
sends is untrusted: answers are bounded, and names are text.
"""

from __future__ import annotations

import json
import math
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

import numpy as np

from eastwest.errors import InputError
from eastwest.observe.metrics import Metrics, Numbers, joined
from eastwest.units import clean

#: Points of a series that a server gives in one answer (11,000), less one.
_MOST_POINTS = 10_000
_LARGEST_ANSWER = 512 * 1024 * 1024
_PATIENCE_S = 60
#: How names of what is counted up end (Prometheus, "Metric and label naming"; OpenMetrics).
_COUNTED = re.compile(r"[^{]*(?:_total|_count|_sum|_bucket)(?:\{.*)?", re.DOTALL)


def fetch(
    url: str, query: str, start_s: float, end_s: float, step_s: float, *, rates: bool = True
) -> Metrics:
    """Ask a server for all series of a query from ``start_s`` to ``end_s``, every ``step_s``.

    Times are seconds since 1970. With ``rates``, series whose names say that they are counted up
    become rates per second. Raises ``InputError`` with the server's words where it refuses, and
    where it has no such series.
    """
    if not (math.isfinite(start_s) and math.isfinite(end_s) and start_s < end_s):
        raise InputError(f"the time must run forwards, not from {start_s} to {end_s} s")
    if not (math.isfinite(step_s) and step_s >= 0.001):
        raise InputError(f"the step must be 1 ms or longer, not {step_s} s")
    series: dict[tuple[tuple[str, str], ...], tuple[list[float], list[float]]] = {}
    first = start_s
    while first <= end_s:
        last = min(end_s, first + step_s * _MOST_POINTS)
        for labels, points in _range(url, query, first, last, step_s):
            times, values = series.setdefault(tuple(sorted(labels.items())), ([], []))
            times += [float(time) for time, _ in points]
            values += [_number(value) for _, value in points]
        first = last + step_s
    if not series:
        raise InputError(f"{clean(url)} has no series for {clean(query)!r} in that time")
    found = joined(_named(series))
    return rated(found) if rates else found


def rated(metrics: Metrics) -> Metrics:
    """Make rates per second of what is counted up; the first row is lost.

    A value below the one before means that counting began anew, as in Prometheus.
    """
    if metrics.times_s is None or len(metrics.times_s) < 2:
        raise InputError("rates need two times at least")
    gaps = np.diff(metrics.times_s)
    values: Numbers = metrics.values[1:].copy()
    for column, name in enumerate(metrics.names):
        if _COUNTED.fullmatch(name):
            counted = metrics.values[:, column]
            step = np.diff(counted)
            values[:, column] = np.where(step < 0, counted[1:], step) / gaps
    return Metrics(metrics.names, values, metrics.times_s[1:])


def _named(
    series: Mapping[tuple[tuple[str, str], ...], tuple[list[float], list[float]]],
) -> dict[str, tuple[list[float], list[float]]]:
    """Series by names that tell them apart."""
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
        or f"series {number}": points
        for number, (labels, points) in enumerate(series.items(), 1)
    }


def series_name(name: str, labels: Mapping[str, str]) -> str:
    """Write a series as Prometheus does."""
    if not labels:
        return name
    inner = ",".join(
        f"{key}={json.dumps(labels[key], ensure_ascii=False)}" for key in sorted(labels)
    )
    return f"{name}{{{inner}}}"


def _range(
    url: str, query: str, start_s: float, end_s: float, step_s: float
) -> list[tuple[dict[str, str], list[tuple[float, str]]]]:
    """One answer: labels and points of each series."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise InputError(f"{clean(url)}: a server is named such as http://localhost:9090")
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
        raise InputError(f"{clean(url)} cannot be asked: {clean(str(why))}") from None
    if len(content) > _LARGEST_ANSWER:
        raise InputError(f"{clean(url)}: more than 512 MB: ask for fewer series or a longer step")
    try:
        data = json.loads(content)["data"]
        if data["resultType"] != "matrix":
            raise InputError(f"{clean(query)!r} gives no series over time")
        return [
            (
                {str(k): str(v) for k, v in each["metric"].items()},
                [(float(time), str(value)) for time, value in each["values"]],
            )
            for each in data["result"]
        ]
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(f"{clean(url)} does not answer as a Prometheus server does") from None


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
