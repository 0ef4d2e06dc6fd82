"""Names of the metrics of runs in tables and pictures of sweeps, and formats of their values."""

from __future__ import annotations

from collections.abc import Callable

from eastwest.units import count, joules, rate, size, span

#: A metric in a table: its path, its name, and the function that formats its values.
Shown = tuple[str, str, Callable[[float], str]]


def _micros(value_us: float) -> str:
    return span(value_us / 1e6)


#: Metrics that tables have first, where runs have them.
HEADLINES: tuple[Shown, ...] = (
    ("jobs.makespan_s", "makespan", span),
    ("jobs.runtime_s.mean", "job mean", span),
    ("mpi.runtime_s", "MPI program", span),
    ("rounds.goodput_bps", "goodput", rate),
    ("flows.fct_us.mean", "FCT mean", _micros),
    ("flows.fct_us.p99", "FCT p99", _micros),
    ("latency_us.p99", "latency p99", _micros),
    ("packets.dropped", "drops", count),
)
#: Formats of other metrics, by the end of a part of their path.
_WRITTEN: tuple[tuple[str, Callable[[float], str]], ...] = (
    ("_us", _micros),
    ("_s", span),
    ("_bps", rate),
    ("_bytes", size),
    ("_j", joules),
)
#: Parts of paths that are left out of names, and parts with a special spelling.
_UNSAID = {"flows", "by_purpose", "classes"}
_WORDS = {"fct": "FCT", "mpi": "MPI", "tcp": "TCP"}


def shown(metric: str) -> Shown:
    """Return the name and the format of a metric: ``flows.fct_us.max`` is ``FCT max``."""
    for headline in HEADLINES:
        if headline[0] == metric:
            return headline
    words: list[str] = []
    write: Callable[[float], str] = count
    for part in metric.split("."):
        end, how = next(((e, h) for e, h in _WRITTEN if part.endswith(e)), ("", write))
        write, word = how, part.removesuffix(end)
        if word not in _UNSAID:
            words.append(_WORDS.get(word, word))
    return metric, " ".join(words[-3:]), write
