"""Data of a result folder for explanations: rows, host and port names, settings, range of events.

Explanations read all their data through this module: for a damaged folder, it raises an error that
names the damaged file.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from eastwest import core, shipped
from eastwest.errors import InputError
from eastwest.fidelity import is_approximate
from eastwest.results import Result, pick
from eastwest.views.settings import tree

_SPANS = {"ps": 1e-12, "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
_SPAN = re.compile(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*([a-zµ]*)\s*")


@dataclass(frozen=True)
class Event:
    """Row of the table ``events``: a drop, a timeout or another event of a connection."""

    time_s: float
    what: str
    src: int
    dst: int
    kind: str
    #: Position in bytes of the packet's first payload byte in its stream, which is one direction
    #: of a connection.
    stream_start: int
    #: Payload bytes of a dropped packet; for a timeout or the start of a recovery, payload bytes
    #: that are not yet acknowledged.
    bytes: int
    #: Number of the link at which the packet was dropped; −1 for an event that is not a drop.
    link: int
    cause: str

    def covers(self, position: int) -> bool:
        """Whether the byte at ``position`` of the stream is among the bytes of the event.

        An event without payload bytes, such as the drop of a SYN, counts as one byte.
        """
        return self.stream_start <= position < self.stream_start + max(1, self.bytes)


class Evidence:
    """Tables of one result for explanations; damaged tables raise ``InputError``."""

    def __init__(self, result: Result) -> None:
        self.result = result
        self._replaced: dict[str, pl.DataFrame] = {}

    def table(self, name: str) -> pl.DataFrame:
        """Return the table ``name`` of the result, or its replacement (see :meth:`replace`)."""
        replaced = self._replaced.get(name)
        return self.result.table(name) if replaced is None else replaced

    def is_replaced(self, name: str) -> bool:
        """Whether the table ``name`` was replaced with :meth:`replace`."""
        return name in self._replaced

    def replace(self, name: str, table: pl.DataFrame) -> None:
        """Replace the table ``name``: :meth:`table` and :meth:`row` then read ``table``."""
        self._replaced[name] = table

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Settings of the resolved scenario as nested tables; empty if it cannot be read."""
        return tree(self.result)

    def time_setting(self, *path: str) -> float | None:
        """Return the duration in s at ``path`` in the scenario's settings; None if missing."""
        return seconds(pick_setting(self.settings, *path))

    @cached_property
    def workloads(self) -> dict[str, dict[str, Any]]:
        """Settings of each workload of the scenario, by the workload's name."""
        given = self.settings.get("workload")
        rows = given if isinstance(given, list) else []
        return {str(row.get("name")): row for row in rows if isinstance(row, dict)}

    def divides(self, workload: str) -> bool:
        """Whether the run can divide message times of a workload into parts such as queueing.

        The division requires a workload on TCP, and simulation packet by packet.
        """
        transport = pick_setting(self.workloads.get(workload, {}), "transport")
        return transport in {None, "tcp"} and not is_approximate(self.result.summary)

    @cached_property
    def _events(self) -> pl.DataFrame:
        return self.result.table("events")

    @cached_property
    def events_until_s(self) -> float | None:
        """Simulated time in s up to which events are recorded; None without recorded events.

        The time is infinite if all events of the run were recorded.
        """
        if self.result.format < 2 or self._asked_for_no_events():
            return None
        if not pick(self.result.summary, "event_log", "left_out"):
            return math.inf
        last = self._events["time_s"].max()
        return float(last) if isinstance(last, (int, float)) else None

    def _asked_for_no_events(self) -> bool:
        asked = pick_setting(self.settings, "measure", "events")
        return asked is not None and str(asked).split()[0:1] == ["0"]

    def events_note(self, finish_s: float) -> str | None:
        """Return a sentence if events before ``finish_s`` (simulated s) are missing, or None."""
        until = self.events_until_s
        if until is None:
            return (
                "When and where packets were lost and timers expired: the run "
                "recorded no events (measure.events)."
            )
        if until < finish_s:
            return (
                f"Events after {until:.6f} s of simulated time: the table of events was full "
                "(measure.events)."
            )
        return None

    def events_of(self, connection: int | None, start_s: float, finish_s: float) -> list[Event]:
        """Return events of both directions of a connection from ``start_s`` to ``finish_s``.

        Events are in the order of the table; times are in simulated s. The list is empty for the
        connection None, or if the run recorded no events.
        """
        if connection is None or self.events_until_s is None:
            return []
        rows = self._events.filter(
            (pl.col("connection") == connection) & pl.col("time_s").is_between(start_s, finish_s)
        ).drop("connection")
        if any(rows[column].null_count() for column in rows.columns):
            path = self.result.path / "events.parquet"
            raise InputError(f"{path} is damaged: a row of connection {connection} lacks values")
        return [Event(**row) for row in rows.iter_rows(named=True)]

    @cached_property
    def flows(self) -> pl.DataFrame:
        """The table ``flows`` of the result folder, even if :meth:`replace` has replaced it."""
        return self.result.flows

    def row(self, table: str, where: pl.Expr) -> dict[str, Any] | None:
        """Return the first row of a table that matches ``where``, or None.

        Raises ``InputError`` if a number of the row is missing or not finite.
        """
        found = self.table(table).filter(where).head(1)
        if found.height == 0:
            return None
        row = found.row(0, named=True)
        self.sound(table, row)
        return row

    def sound(self, table: str, row: dict[str, Any]) -> None:
        """Raise ``InputError`` if a value of ``row`` is missing, or a number that is not finite.

        ``connection`` and ``stream_start`` may be missing. The message names ``table``.
        """
        for name, value in row.items():
            if name in {"connection", "stream_start"}:
                continue
            if value is None or (isinstance(value, float) and not math.isfinite(value)):
                path = self.result.path / f"{table}.parquet"
                raise InputError(f"{path} is damaged: a row has no valid value in column {name}")

    @cached_property
    def _port_names(self) -> dict[int, str]:
        links = self.result.links
        return dict(zip(links["link"].to_list(), links["name"].to_list(), strict=True))

    def port(self, link: int) -> str:
        """Return the name of the port that feeds the link ``link``, such as ``leaf0->h3``."""
        return self._port_names.get(link, f"link {link}")

    @cached_property
    def topology(self) -> dict[str, Any] | None:
        """Nodes and cables of the run's fabric; None if the scenario cannot be read."""
        try:
            return core.topology(
                self.result.scenario, str(self.result.path.resolve()), str(shipped.DATA), []
            )
        except (core.scenario_error(), OSError):
            return None

    @cached_property
    def _host_names(self) -> list[str]:
        shape = self.topology
        return [] if shape is None else [str(name) for name in shape["nodes"][: shape["hosts"]]]

    @cached_property
    def _senders(self) -> set[str]:
        return set(self.result.links["src"].to_list())

    def host(self, number: int) -> str:
        """Return the name of the host with this number."""
        plain = f"h{number}"
        if plain in self._senders or not 0 <= number < len(self._host_names):
            return plain
        return self._host_names[number]

    def ports_to(self, host: int) -> pl.DataFrame:
        """Return the rows of the table ``links`` for links that end at the host number ``host``."""
        return self.result.links.filter(pl.col("dst") == self.host(host))

    def ports_from(self, host: int) -> pl.DataFrame:
        """Return the rows of the table ``links`` for links that begin at the host ``host``."""
        return self.result.links.filter(pl.col("src") == self.host(host))

    @cached_property
    def sample_s(self) -> float | None:
        """Seconds between two samples of ``link_samples`` and ``traffic``; None if unknown."""
        times = self.result.traffic["time_s"].unique().sort()
        if times.len() == 0:
            return None
        first = float(times[0])
        return first if first > 0 else None


def pick_setting(settings: Any, *path: str) -> Any:
    """Return the setting at a path, such as ``measure``, ``events``; None if it is missing."""
    for key in path:
        if not isinstance(settings, dict) or key not in settings:
            return None
        settings = settings[key]
    return settings


def seconds(value: Any) -> float | None:
    """Return a duration as scenarios write it (``"200 ms"``) in s; None for other values."""
    if not isinstance(value, str):
        return None
    found = _SPAN.fullmatch(value)
    if found is None:
        return None
    factor = {**_SPANS, "h": 3600.0, "d": 86_400.0}.get(found[2])
    try:
        return None if factor is None else float(found[1]) * factor
    except ValueError:
        return None


def number(value: object) -> float:
    """Return a number of a table as a float; 0 for other values."""
    return float(value) if isinstance(value, (int, float)) else 0.0


def propagation_us(shape: dict[str, Any] | None, src: str, dst: str) -> float | None:
    """Return the least propagation delay in µs among the paths with the fewest hops.

    ``shape`` has the nodes and cables of the fabric (``core.topology``); ``src`` and ``dst`` are
    names of nodes. Hosts do not forward packets, so no path leads through a third host. Returns
    None if there is no path.
    """
    if shape is None:
        return None
    neighbours: dict[str, list[tuple[str, float]]] = {}
    for cable in shape["cables"]:
        a, b, delay = str(cable["a"]), str(cable["b"]), float(cable["delay_us"])
        neighbours.setdefault(a, []).append((b, delay))
        neighbours.setdefault(b, []).append((a, delay))
    hosts = {str(name) for name in shape.get("nodes", [])[: shape.get("hosts", 0)]}
    front = {src: 0.0}
    seen = {src}
    while front and dst not in front:
        further: dict[str, float] = {}
        for node, so_far in front.items():
            if node in hosts and node != src:
                continue
            for other, delay in neighbours.get(node, []):
                if other not in seen:
                    further[other] = min(further.get(other, math.inf), so_far + delay)
        seen |= further.keys()
        front = further
    return front.get(dst)
