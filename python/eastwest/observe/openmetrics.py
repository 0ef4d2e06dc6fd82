"""A run's metrics in the text format of OpenMetrics 1.0, for Prometheus and what reads like it.

``series`` writes all samples with their times, counted from a chosen start: a file that
``promtool tsdb create-blocks-from openmetrics`` takes into a server's storage. ``snapshot`` writes
the values of one moment without a time, which is what a scrape gets.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from eastwest.errors import InputError
from eastwest.observe.metrics import Numbers
from eastwest.observe.run_metrics import Family

#: Seconds that Prometheus tells apart.
STEP_S = 0.001
CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def series(families: Iterable[Family], times_s: Numbers, start_s: float = 0.0) -> Iterator[str]:
    """Lines of all samples; ``start_s`` is the time of the run's beginning since 1970.

    Times have milliseconds, as Prometheus does, and more digits where samples are closer: no two
    have one time. Raises ``InputError`` where a time in nanoseconds would not tell them apart.
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
        "samples are closer than times since 1970 can tell (some 0.2 µs): give --start 0, or set a "
        "longer measure.sample_interval"
    )


def snapshot(families: Iterable[Family], place: int) -> str:
    """Text of the values at the end of one interval; before the first one, with ``place`` −1."""
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
    """Escape untrusted text; other control characters become spaces."""
    plain = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    return plain.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _value(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
