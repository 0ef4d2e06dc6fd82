"""Metrics of a run in the text format of OpenMetrics 1.0, for Prometheus and compatible systems.

``series`` writes all samples with their times, counted from a given start: a file for
``promtool tsdb create-blocks-from openmetrics``, which adds it to a server's storage. ``snapshot``
writes the values of one moment without a time, the answer to a scrape.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from eastwest.errors import InputError
from eastwest.observe.metrics import Numbers
from eastwest.observe.run_metrics import Family

#: Resolution of times in Prometheus, in seconds.
STEP_S = 0.001
CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def series(families: Iterable[Family], times_s: Numbers, start_s: float = 0.0) -> Iterator[str]:
    """Yield the lines of a text in OpenMetrics format with all samples and their times.

    ``times_s`` are simulated seconds; ``start_s``, the start of the run in seconds since 1970, is
    added to them. Times have three digits after the point, as in Prometheus, or six or nine if
    fewer digits would make times equal. Raises ``InputError`` if nine digits are not enough.
    """
    stamps = _stamps([start_s + float(time) for time in times_s])
    for family in families:
        yield from _head(family)
        for each in family.series:
            name = family.sample + _labels(each.labels)
            yield from (
                f"{name} {_value(value)} {stamp}\n"
                for value, stamp in zip(each.values.tolist(), stamps, strict=True)
            )
    yield "# EOF\n"


def _stamps(times_s: list[float]) -> list[str]:
    for digits in (3, 6, 9):
        stamps = [f"{time:.{digits}f}" for time in times_s]
        if len(set(stamps)) == len(stamps):
            return stamps
    raise InputError(
        "the sample interval is below the resolution of times since 1970 (about 0.2 µs): "
        "use --start 0, or set a longer measure.sample_interval"
    )


def snapshot(families: Iterable[Family], place: int) -> str:
    """Return a text in OpenMetrics format with the values of all metrics at one moment.

    ``place`` is the number of a sampled interval, from 0: the result has the values at its end. −1
    means before the first interval, when all values are 0.
    """
    lines = []
    for family in families:
        lines += _head(family)
        for each in family.series:
            value = float(each.values[place]) if place >= 0 else 0.0
            lines.append(f"{family.sample}{_labels(each.labels)} {_value(value)}\n")
    return "".join([*lines, "# EOF\n"])


def _head(family: Family) -> list[str]:
    return [
        f"# TYPE {family.name} {family.kind.value}\n",
        f"# HELP {family.name} {_escaped(family.help)}\n",
    ]


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{key}="{_escaped(text)}"' for key, text in sorted(labels.items())) + "}"


def _escaped(text: str) -> str:
    """Return ``text`` with the escapes of OpenMetrics; control characters become spaces."""
    plain = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    return plain.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _value(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
