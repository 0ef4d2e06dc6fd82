"""Metrics of summaries: their titles, units and values, and changes between results as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from eastwest import units
from eastwest.results import Result, pick
from eastwest.sweep import words
from eastwest.views.applications import has_operations


def times(value: float | None) -> str:
    """Return a factor as text: ``1.5 ×``."""
    return f"{units.count(value)} ×"


@dataclass(frozen=True)
class Metric:
    """A number in the summary of a run, with its title and the format of its values."""

    title: str
    #: Keys that lead to the number in the nested summary.
    path: tuple[str, ...]
    #: Function that formats a value as text with its unit.
    write: Callable[[float | None], str]
    #: Factor that converts the value in the summary to the unit that ``write`` needs.
    factor: float = 1.0
    #: Whether the sentences at the top of a page mention the metric.
    headline: bool = False

    @property
    def counter(self) -> tuple[str, ...] | None:
        """Path in the summary of the number of jobs, rounds, flows or packets behind the metric.

        The path is None for a metric that is not a statistic over jobs, rounds, flows or packets.
        """
        return next((c for part, c in COUNTERS.items() if self.path[: len(part)] == part), None)

    def of(self, result: Result) -> float | None:
        """Return the metric's value in a result, multiplied by ``factor``.

        Returns None if the summary lacks the value, or had no jobs, rounds, flows or packets to
        measure.
        """
        counter = self.counter
        if counter and pick(result.summary, *counter) == 0:
            return None
        of_operations = self.path[0] == "applications" and self.path[-2] == "operations"
        # An application without a plan has no operations, not 0 of them.
        if of_operations and not has_operations(result.summary, *self.path[:-2]):
            return None
        value = pick(result.summary, *self.path)
        return None if value is None else value * self.factor


#: Path in the summary of the number of jobs, rounds, flows or packets over which a metric is a
#: statistic, by the first parts of the metric's path. If this number is 0, the metric is 0 in the
#: summary, which means that it was not measured.
COUNTERS = {
    ("jobs",): ("jobs", "count"),
    ("rounds",): ("rounds", "count"),
    ("flows", "fct_us"): ("flows", "completed"),
    ("latency_us",): ("latency_us", "count"),
}

METRICS = (
    Metric("Jobs", ("jobs", "count"), units.count),
    Metric("Job runtime, mean", ("jobs", "runtime_s", "mean"), units.span),
    Metric("Job runtime, median", ("jobs", "runtime_s", "p50"), units.span, headline=True),
    Metric("Job runtime, p99", ("jobs", "runtime_s", "p99"), units.span),
    Metric("Makespan", ("jobs", "makespan_s"), units.span),
    Metric("Runtime of MPI programs", ("mpi", "runtime_s"), units.span, headline=True),
    Metric("Iteration of a graph, mean", ("mpi", "iterations", "mean_s"), units.span),
    Metric("Exposed communication, mean", ("mpi", "iterations", "exposed_s"), units.span),
    Metric("Rounds", ("rounds", "count"), units.count),
    Metric("Goodput of rounds", ("rounds", "goodput_bps"), units.rate, headline=True),
    Metric("Flows complete", ("flows", "completed"), units.count),
    Metric("Flow completion, mean", ("flows", "fct_us", "mean"), units.span, 1e-6),
    Metric("Flow completion, median", ("flows", "fct_us", "p50"), units.span, 1e-6),
    Metric("Flow completion, p99", ("flows", "fct_us", "p99"), units.span, 1e-6, headline=True),
    Metric("Packet latency, mean", ("latency_us", "mean"), units.span, 1e-6),
    Metric("Packet latency, p99", ("latency_us", "p99"), units.span, 1e-6, headline=True),
    Metric("Packet latency, p99.9", ("latency_us", "p999"), units.span, 1e-6),
    Metric("Throughput per host, of complete flows", ("throughput_bps",), units.rate),
    Metric("Packets dropped", ("packets", "dropped"), units.count, headline=True),
    Metric("TCP retransmissions", ("tcp", "retransmits"), units.count),
    Metric("TCP timeouts", ("tcp", "timeouts"), units.count, headline=True),
    Metric("RoCEv2 retransmissions", ("rocev2", "retransmits"), units.count, headline=True),
    Metric("RoCEv2 timeouts", ("rocev2", "timeouts"), units.count, headline=True),
    Metric("RoCEv2 NAKs", ("rocev2", "naks"), units.count),
    Metric("RoCEv2 packets trimmed", ("rocev2", "trimmed"), units.count),
    Metric("Energy of links", ("energy_j", "total"), units.joules, headline=True),
    Metric("Energy, share of always on", ("energy_j", "of_always_on"), units.percent),
    Metric("Energy, multiple of ideal", ("energy_j", "of_ideal"), times),
    Metric("Energy × delay, J·s", ("energy_j", "delay_product_js"), units.count),
    Metric("Energy per GB moved", ("energy_j", "per_gb"), units.joules),
    Metric("Energy per job", ("energy_j", "per_job"), units.joules),
    Metric("Energy of links and switches", ("energy_j", "with_switches", "total"), units.joules),
    Metric("Packet-hops", ("packet_hops",), units.count),
    Metric("CPU time", ("cpu_s",), units.span),
)


def told(shares: Iterable[float | None]) -> list[Metric]:
    """Return ``METRICS``, without metrics of energy if no link slept in any result.

    ``shares`` has a number for each result: the energy of its links divided by their energy if
    always awake, or None.
    """
    slept = any(share is not None and share < 1 for share in shares)
    return [metric for metric in METRICS if slept or metric.path[0] != "energy_j"]


#: Metrics of ``METRICS`` by their name in the summary, such as ``jobs.count``.
KNOWN = {".".join(metric.path): metric for metric in METRICS}


def made(name: str) -> Metric:
    """Return the metric with this name in the summary, such as ``jobs.runtime_s.p50``.

    The result is a row of ``METRICS``, or a new metric with a title made from the name.
    """
    if name in KNOWN:
        return KNOWN[name]
    _, title, _ = words.shown(name)
    path = tuple(name.split("."))
    measure = next((part for part in reversed(path) if part.endswith(tuple(_ENDS))), "")
    write, factor = next(
        (how for end, how in _ENDS.items() if measure.endswith(end)), (units.count, 1.0)
    )
    if path[-1] == "count":
        write, factor = units.count, 1.0
    if path[-1] in words.RATIOS:
        write, factor = words.RATIOS[path[-1]], 1.0
    return Metric(title, path, write, factor, headline=True)


#: Function that formats a metric, and factor that converts the metric to the unit of the function,
#: by the end of the metric's name.
_ENDS: dict[str, tuple[Callable[[float | None], str], float]] = {
    "_us": (units.span, 1e-6),
    "_s": (units.span, 1.0),
    "_bps": (units.rate, 1.0),
    "_j": (units.joules, 1.0),
}


def change(ratio: float) -> str:
    """Return the ratio to an earlier value as a change: ``+12 %``, or ``× 3.5`` if 3 or more."""
    if ratio >= 3:
        return f"× {units.count(float(f'{ratio:.3g}'))}"
    percent = round(100 * (ratio - 1), 1)
    return f"{percent:+.3g} %".replace("-", "−") if percent else "≈ 0 %"
