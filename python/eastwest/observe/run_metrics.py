"""Metrics of a run over time, as a monitoring system of a real data centre would record them.

The metrics are computed from tables that are sampled at the run's interval (``traffic``,
``link_samples``, ``queues``, ``power``) and from tables with a row for each event (``flows``,
``events``, ``tasks``, ``transactions``, ``calls``). Events, and packets of captured ports, are
counted up to the end of each interval. The stored results of a run are read; nothing is simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from eastwest.errors import InputError
from eastwest.observe.busy import core_seconds
from eastwest.observe.captured import packet_times
from eastwest.observe.metrics import MOST_VALUES, Metrics, Numbers
from eastwest.observe.prometheus import rated, series_name
from eastwest.results import Result

if TYPE_CHECKING:
    import polars as pl


class Kind(StrEnum):
    """Type of a metric family, as OpenMetrics defines it."""

    COUNTER = "counter"
    GAUGE = "gauge"


@dataclass(frozen=True)
class Series:
    """Time series of a metric family: its labels, and the value at the end of each interval."""

    labels: dict[str, str]
    values: Numbers


@dataclass(frozen=True)
class Family:
    """Metric family: name, kind, help text, and its series, which differ in their labels."""

    #: Name of the family; OpenMetrics appends ``_total`` to the name of a counter.
    name: str
    kind: Kind
    help: str
    series: list[Series]

    @property
    def sample(self) -> str:
        """Name of the samples of the family; it ends in ``_total`` for a counter."""
        return f"{self.name}_total" if self.kind is Kind.COUNTER else self.name


def times_of(result: Result) -> Numbers:
    """Return the ends of the sampled intervals of a run, in simulated seconds."""
    times = result.traffic["time_s"].unique().sort().to_numpy().astype(np.float64)
    if len(times) < 2:
        raise InputError(
            f"{result.path} has {len(times)} samples over time, but at least 2 are "
            "needed: set a shorter measure.sample_interval"
        )
    return times


def families(result: Result) -> list[Family]:
    """Return all metrics of a run over time; a family without any series is left out."""
    times = times_of(result)
    series = 2 * len(result.links) + 50
    if series * len(times) > MOST_VALUES:
        raise InputError(
            f"{result.path}: {series:,} series of {len(times):,} samples are more "
            f"than {MOST_VALUES:,} values, the maximum: set a longer "
            "measure.sample_interval"
        )
    found = [*_links(result, times), *_flows(result, times), *_events(result, times)]
    found += [*_tasks(result, times), *_power(result, times)]
    found += [*_transactions(result, times), *_components(result, times), *_packets(result, times)]
    return [family for family in found if family.series]


def metrics(result: Result) -> Metrics:
    """Return all metrics of a run under their exported names, with counters as rates per second.

    The first sampled interval is lost, because a rate needs two values.
    """
    columns = {
        series_name(family.sample, series.labels): series.values
        for family in families(result)
        for series in family.series
    }
    table = Metrics(tuple(columns), np.column_stack(list(columns.values())), times_of(result))
    return rated(table)


def host_names(result: Result) -> list[str]:
    """Return the names of the hosts of a run; the index is the number of the host."""
    links = result.links.sort("link")
    return links.filter(links["tier"] == "host-up")["src"].to_list()


def _links(result: Result, times: Numbers) -> Iterator[Family]:
    samples, queues, links = result.link_samples, result.queues, result.links.sort("link")

    def of(table: pl.DataFrame, column: str, name: str, kind: Kind, text: str) -> Family:
        rows = np.full((len(links), len(times)), 0.0)
        link = np.searchsorted(links["link"].to_numpy(), table["link"].to_numpy())
        place = _places(table["time_s"].to_numpy(), times)
        inside = place < len(times)
        np.add.at(rows, (link[inside], place[inside]), table[column].to_numpy()[inside])
        if kind is Kind.COUNTER:
            rows = rows.cumsum(axis=1)
        labelled = [
            Series({"link": str(label), "tier": str(tier)}, values)
            for label, tier, values in zip(links["name"], links["tier"], rows, strict=True)
        ]
        return Family(f"eastwest_link_{name}", kind, text, labelled)

    yield of(samples, "bytes", "bytes", Kind.COUNTER, "Bytes that reached the end of a link.")
    yield of(samples, "drops", "drops", Kind.COUNTER, "Packets lost at a link.")
    yield of(queues, "packets", "queue_packets", Kind.GAUGE, "Packets waiting for a link.")
    yield of(queues, "bytes", "queue_bytes", Kind.GAUGE, "IP bytes waiting for a link.")


def _flows(result: Result, times: Numbers) -> Iterator[Family]:
    """Yield the metric families of messages, by workload and by class, always with the purpose.

    ``times`` are the ends of the sampled intervals in simulated seconds.
    """
    flows = result.flows.sort("finish_s")
    for by in ("workload", "class"):
        keys = flows.select(by, "purpose").unique().sort(by, "purpose")
        split = [
            (
                {by: one, "purpose": purpose},
                flows.filter((flows[by] == one) & (flows["purpose"] == purpose)),
            )
            for one, purpose in keys.iter_rows()
        ]
        stem = f"eastwest_{'flow' if by == 'workload' else 'class'}"
        for name, text, weight in _FLOW_SUMS:
            rows = [
                Series(labels, _counted(part["finish_s"].to_numpy(), times, weight(part)))
                for labels, part in split
            ]
            yield Family(f"{stem}_{name}", Kind.COUNTER, f"{text}, by {by}.", rows)


#: Sums over messages: last part of the name, help text, and a function that returns the weight of
#: each message (None: 1).
_FLOW_SUMS: tuple[tuple[str, str, Callable[[pl.DataFrame], Numbers | None]], ...] = (
    ("completed", "Messages that have arrived completely", lambda _: None),
    (
        "bytes",
        "Payload bytes of the messages that have arrived completely",
        lambda part: part["bytes"].to_numpy().astype(np.float64),
    ),
    (
        "seconds",
        "Sum of the completion times, in seconds, of the messages that have arrived completely",
        lambda part: part["fct_us"].to_numpy() / 1e6,
    ),
)


def _events(result: Result, times: Numbers) -> Iterator[Family]:
    events = result.events
    names = host_names(result)
    for what, name, text in (
        ("timeout", "timeouts", "Retransmission timeouts of the TCP senders of a host."),
        ("recovery", "recoveries", "Fast retransmits of the TCP senders of a host."),
    ):
        rows = events.filter(events["what"] == what)
        series = [
            Series({"host": names[host]}, _counted(part["time_s"].to_numpy(), times))
            for (host,), part in sorted(rows.partition_by("src", as_dict=True).items())
            if host < len(names)
        ]
        yield Family(f"eastwest_tcp_{name}", Kind.COUNTER, text, series)


def _tasks(result: Result, times: Numbers) -> Iterator[Family]:
    tasks, names = result.tasks, host_names(result)
    series = []
    cpu = []
    for (host,), part in sorted(tasks.partition_by("host", as_dict=True).items()):
        if host >= len(names):
            continue
        begun = _counted(part["assigned_s"].to_numpy(), times)
        ended = part["finished_s"].to_numpy()
        series.append(Series({"host": names[host]}, begun - _counted(ended, times)))
        weight = part["cpu_s"].to_numpy().astype(np.float64)
        cpu.append(Series({"host": names[host]}, _counted(ended, times, weight)))
    yield Family("eastwest_tasks_running", Kind.GAUGE, "Tasks that are running on a host.", series)
    text = "Core time of the tasks that have ended on a host, in seconds."
    yield Family("eastwest_tasks_cpu_seconds", Kind.COUNTER, text, cpu)


def _power(result: Result, times: Numbers) -> Iterator[Family]:
    power = result.power
    series = [
        Series(
            {"tier": tier}, _counted(part["time_s"].to_numpy(), times, part["energy_j"].to_numpy())
        )
        for (tier,), part in sorted(power.partition_by("tier", as_dict=True).items())
    ]
    text = "Energy used by the links of a tier, in joules."
    yield Family("eastwest_link_energy_joules", Kind.COUNTER, text, series)


def _transactions(result: Result, times: Numbers) -> Iterator[Family]:
    """Yield the metric families of transactions, with a series for each workload.

    ``times`` are the ends of the sampled intervals in simulated seconds.
    """
    ended = result.table("transactions").sort("finished_s")
    for name, text, column in (
        ("completed", "Transactions whose response has arrived, by workload.", None),
        (
            "seconds",
            "Sum of the response times, in seconds, of transactions that have ended, by workload.",
            "response_us",
        ),
    ):
        series = []
        for (workload,), part in sorted(ended.partition_by("workload", as_dict=True).items()):
            weight = None if column is None else part[column].to_numpy() / 1e6
            counted = _counted(part["finished_s"].to_numpy(), times, weight)
            series.append(Series({"workload": str(workload)}, counted))
        yield Family(f"eastwest_transaction_{name}", Kind.COUNTER, text, series)


def _components(result: Result, times: Numbers) -> Iterator[Family]:
    """Yield the metric family of core time, with a series for each component and host.

    ``times`` are the ends of the sampled intervals in simulated seconds.
    """
    names = host_names(result)
    series = [
        Series({"component": component, "host": names[host], "workload": workload}, values)
        for (workload, component, host), values in core_seconds(result, times).items()
    ]
    text = "Core time used by a component for transactions that end within the run, in seconds."
    yield Family("eastwest_component_cpu_seconds", Kind.COUNTER, text, series)


def _packets(result: Result, times: Numbers) -> Iterator[Family]:
    """Yield the metric family of packets, with a series for each port in ``measure.capture``.

    ``times`` are the ends of the sampled intervals in simulated seconds.
    """
    path = result.path / "capture.pcapng"
    captured = packet_times(path) if path.is_file() else {}
    tiers = dict(result.links.select("name", "tier").iter_rows())
    series = [
        Series({"link": port, "tier": str(tiers.get(port, ""))}, _counted(at, times))
        for port, at in sorted(captured.items())
    ]
    text = "Packets that arrived at the far end of a captured link."
    yield Family("eastwest_link_packets", Kind.COUNTER, text, series)


def _places(at: Numbers, times: Numbers) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return an array: for each time in ``at`` the index of its interval.

    ``times`` are the ends of the intervals; all times are in simulated seconds. The index is
    ``len(times)`` for times after the last interval.
    """
    # Rounding must not move a time at the end of an interval into the next one.
    slack = 1e-9 * max(1.0, float(times[-1]))
    return np.searchsorted(times, at - slack, side="left")


def _counted(at: Numbers, times: Numbers, weight: Numbers | None = None) -> Numbers:
    """Return an array: the number of events up to the end of each interval, or the sum of weights.

    ``at`` are the times of the events, ``times`` the ends of the intervals, in simulated seconds;
    ``weight`` has the weight of each event (None: 1).
    """
    found = np.bincount(_places(at, times), weights=weight, minlength=len(times) + 1)
    return found[: len(times)].cumsum().astype(np.float64)
