"""MPI programs of a result as a trace for Paraver (BSC): ``.prv``, ``.pcf`` and ``.row``.

The format is that of Paraver's *trace generation* manual: a header with nodes, processors and the
application's tasks, then records in the order of their times. Each workload of ranks is an
application, each rank a task of one thread on a processor of its host. Records are states (1),
events (2) and messages (3) with their logical and physical times. Events are MPI calls of ranks
and, where queues were sampled or pauses logged, the bytes and packets waiting at a port, and
whether a priority of the port is paused. Ports are the tasks of a last application, on a separate
node. Times are whole nanoseconds. The date in the header is a constant, because a result has no
date.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eastwest.errors import InputError
from eastwest.files import write_whole
from eastwest.results import Result
from eastwest.timeline import nanoseconds
from eastwest.units import clean

if TYPE_CHECKING:
    import polars as pl

#: Paraver's number, name and colour (red, green, blue) for each state of an MPI rank.
STATES = {
    "idle": (0, "Idle", (117, 195, 255)),
    "compute": (1, "Running", (0, 0, 255)),
    "receive": (3, "Waiting a message", (255, 0, 0)),
    "send": (4, "Blocking Send", (255, 0, 174)),
    "sleep": (7, "Scheduling and Fork/Join", (255, 255, 0)),
    "wait": (8, "Wait/WaitAll", (235, 0, 0)),
    "collective": (13, "Group Communication", (255, 144, 26)),
}
#: Paraver's types of events: MPI calls, queues of ports, and pauses of priority 0; the types for
#: pauses of priorities 1 to 7 follow the last one.
CALL, QUEUE_BYTES, QUEUE_PACKETS, PAUSED = 50_000_001, 90_000_001, 90_000_002, 90_000_010
#: Number of priorities of IEEE 802.1Q.
_PRIORITIES = 8
#: Maximum number of ports whose queues and pauses are written.
_MOST_PORTS = 10_000


def paraver(result: Result | str | Path, out: str | Path | None = None) -> Path:
    """Write the MPI programs of a result for Paraver and return the path of the ``.prv`` file.

    ``out`` is ``trace.prv`` in the result folder unless given; ``.pcf`` and ``.row`` are beside it.
    Raises ``InputError`` where no MPI program ran.
    """
    found = result if isinstance(result, Result) else Result(result)
    path = Path(out) if out is not None else found.path / "trace.prv"
    if path.suffix != ".prv":
        raise InputError(f"{path}: the name of a Paraver trace must end with .prv")
    made = _ParaverTrace(found)
    write_whole(path.with_suffix(".pcf"), made.names_of_values().encode())
    write_whole(path.with_suffix(".row"), made.names_of_rows().encode())
    write_whole(path, made.records().encode())
    return path


class _ParaverTrace:
    """Content of the files of a Paraver trace: records, names of values and names of rows."""

    def __init__(self, result: Result) -> None:
        from eastwest.views.evidence import Evidence  # noqa: PLC0415  loads polars

        self.evidence = Evidence(result)
        self.ranks = result.table("mpi_ranks").sort("workload", "rank")
        self.states = result.table("mpi_states")
        self.messages = result.table("mpi_messages")
        self.queues = result.queues
        self.pauses = result.pauses
        if self.ranks.height == 0:
            raise InputError(f"{result.path}: no MPI program ran, so Paraver has nothing to show")
        self.programs = self.ranks["workload"].unique(maintain_order=True).to_list()
        busy = {*self.queues["link"].to_list(), *self.pauses["link"].to_list()}
        self.ports = sorted(busy)[:_MOST_PORTS]
        self.priorities = self.pauses["priority"].unique().sort().to_list()
        self.task_of = {port: task for task, port in enumerate(self.ports, 1)}
        if any(priority >= _PRIORITIES for priority in self.priorities):
            raise InputError(
                f"{result.path} is damaged: the table pauses has a priority that is not 0 to 7"
            )
        hosts = self.ranks["host"].unique().sort().to_list()
        self.node_of = {host: number for number, host in enumerate(hosts, 1)}
        #: Ranks (workload, rank) on each node, by the number of the node from 1.
        self.on_node: dict[int, list[tuple[str, int]]] = {
            node: [] for node in self.node_of.values()
        }
        for row in self.ranks.iter_rows(named=True):
            self.on_node[self.node_of[row["host"]]].append((row["workload"], row["rank"]))
        in_order = [rank for ranks in self.on_node.values() for rank in ranks]
        self.cpu_of = {rank: number for number, rank in enumerate(in_order, 1)}
        self.calls = sorted({str(call) for call in self.states["call"].unique().to_list()})

    def header(self) -> str:
        """Return the header line of the ``.prv`` file."""
        ends = [self.ranks["finished_s"].max(), self.messages["received_s"].max()]
        last = max(nanoseconds(end) for end in ends if end is not None)
        if self.queues.height:
            last = max(last, nanoseconds(self.queues["time_s"].max()) + self._interval_ns())
        if self.pauses.height:
            last = max(last, nanoseconds(self.pauses["until_s"].max()))
        nodes = [len(ranks) for ranks in self.on_node.values()]
        applications = []
        for program in self.programs:
            tasks = self._of_program(program)
            listed = ",".join(f"1:{self.node_of[row['host']]}" for row in tasks)
            applications.append(f"{len(tasks)}({listed})")
        if self.ports:
            nodes.append(len(self.ports))
            listed = ",".join([f"1:{len(nodes)}"] * len(self.ports))
            applications.append(f"{len(self.ports)}({listed})")
        return (
            f"#Paraver (01/01/2000 at 00:00):{last}_ns:{len(nodes)}({','.join(map(str, nodes))}):"
            f"{len(applications)}:{':'.join(applications)}"
        )

    def records(self) -> str:
        """Return the text of the ``.prv`` file: header, and records in the order of their times."""
        queues = sorted(self._queue_records(), key=lambda each: each[0])
        pauses = sorted(self._pause_records(), key=lambda each: each[0])
        parts = (self._state_records(), self._message_records(), queues, pauses)
        lines = (line for _, line in heapq.merge(*parts, key=lambda each: each[0]))
        return "\n".join([self.header(), *lines]) + "\n"

    def _interval_ns(self) -> int:
        return nanoseconds(self.evidence.sample_s or 0.0)

    def _of_program(self, program: str) -> list[dict[str, Any]]:
        of = self.ranks.filter(self.ranks["workload"] == program)
        rows = list(of.iter_rows(named=True))
        if [row["rank"] for row in rows] != list(range(len(rows))):
            raise InputError(
                f"{program}: not all ranks of this MPI program have finished; a Paraver trace "
                "needs all of them"
            )
        return rows

    def _place(self, program: str, rank: int) -> str:
        """Return the fields that name a rank in a record: ``processor:application:task:thread``."""
        cpu = self.cpu_of.get((program, rank))
        if cpu is None:
            raise InputError(
                f"the result is damaged: rank {rank} is missing in the table mpi_ranks"
            )
        return f"{cpu}:{self.programs.index(program) + 1}:{rank + 1}:1"

    def _state_records(self) -> Iterator[tuple[int, str]]:
        number = {call: value for value, call in enumerate(self.calls, 1)}
        for row in self.states.sort("began_s", "rank").iter_rows(named=True):
            began, ended = nanoseconds(row["began_s"]), nanoseconds(row["ended_s"])
            place = self._place(row["workload"], row["rank"])
            state = STATES.get(row["state"], STATES["idle"])[0]
            yield began, f"1:{place}:{began}:{ended}:{state}"
            yield began, f"2:{place}:{began}:{CALL}:{number[row['call']]}"

    def _message_records(self) -> Iterator[tuple[int, str]]:
        for row in self.messages.sort("sent_s", "from", "to").iter_rows(named=True):
            sent, arrived = nanoseconds(row["sent_s"]), nanoseconds(row["arrived_s"])
            received, matched = nanoseconds(row["received_s"]), nanoseconds(row["matched_s"])
            # In the rendezvous protocol, data leave only after the receive is posted.
            left = max(sent, matched) if row["protocol"] == "rendezvous" else sent
            sender = self._place(row["workload"], row["from"])
            receiver = self._place(row["workload"], row["to"])
            size, tag = row["bytes"], row["tag"]
            yield (
                sent,
                f"3:{sender}:{sent}:{min(left, arrived)}:{receiver}:{received}:{arrived}"
                f":{size}:{tag}",
            )

    def _queue_records(self) -> Iterator[tuple[int, str]]:
        queues = self.queues.filter(self.queues["link"].is_in(self.ports))
        interval = self._interval_ns()
        for port, rows in _by_port(queues):
            place = self._place_of_port(port)
            due: int | None = None
            for time_s, held, packets in rows:
                at = nanoseconds(time_s)
                if due is not None and at > due + 1:
                    yield due, _levels(place, due, 0, 0)
                yield at, _levels(place, at, held, packets)
                due = at + interval
            if due is not None:
                yield due, _levels(place, due, 0, 0)

    def _pause_records(self) -> Iterator[tuple[int, str]]:
        """Yield (time in ns, record) of the begin and end of each pause, by port and priority."""
        pauses = self.pauses.filter(self.pauses["link"].is_in(self.ports))
        for row in pauses.sort("link", "priority", "began_s").iter_rows(named=True):
            place, kind = self._place_of_port(row["link"]), PAUSED + row["priority"]
            began, until = nanoseconds(row["began_s"]), nanoseconds(row["until_s"])
            if began > until:
                raise InputError(
                    "the result is damaged: a pause in the table pauses ends before it begins"
                )
            yield began, f"2:{place}:{began}:{kind}:1"
            yield until, f"2:{place}:{until}:{kind}:0"

    def _place_of_port(self, port: int) -> str:
        """Return the fields that name a port in a record: ``processor:application:task:thread``."""
        task = self.task_of[port]
        return f"{len(self.cpu_of) + task}:{len(self.programs) + 1}:{task}:1"

    def names_of_values(self) -> str:
        """Return the text of the ``.pcf`` file: names of states and events, colours of states."""
        lines = [
            "DEFAULT_OPTIONS",
            "",
            "LEVEL               THREAD",
            "UNITS               NANOSEC",
            "",
        ]
        lines += ["STATES", *(f"{number}    {name}" for number, name, _ in STATES.values()), ""]
        lines += ["STATES_COLOR"]
        for number, _, (red, green, blue) in STATES.values():
            lines.append(f"{number}    {{{red},{green},{blue}}}")
        lines += ["", "EVENT_TYPE", f"0    {CALL}    MPI call", "VALUES"]
        lines += [f"{value}      {clean(call, 40)}" for value, call in enumerate(self.calls, 1)]
        for kind, name in ((QUEUE_BYTES, "Bytes waiting"), (QUEUE_PACKETS, "Packets waiting")):
            lines += ["", "EVENT_TYPE", f"0    {kind}    {name}"]
        if self.priorities:
            lines += ["", "EVENT_TYPE"]
            lines += [f"0    {PAUSED + each}    Priority {each} paused" for each in self.priorities]
            lines += ["VALUES", "0      Sends", "1      Paused"]
        return "\n".join(lines) + "\n"

    def names_of_rows(self) -> str:
        """Return the text of the ``.row`` file: names of processors, nodes and tasks."""
        host = {node: self.evidence.host(number) for number, node in self.node_of.items()}
        ports = [self.evidence.port(int(port)) for port in self.ports]
        cpus = [
            f"{host[node]}.{n}" for node, ranks in self.on_node.items() for n in range(len(ranks))
        ]
        nodes = [*host.values(), *(["network"] if ports else [])]
        tasks = [f"{program} {rank}" for program, rank in self._all_ranks()]
        programs = [*self.programs, *(["ports"] if ports else [])]
        parts = (
            ("CPU", [*cpus, *ports]),
            ("NODE", nodes),
            ("APPL", programs),
            ("TASK", [*tasks, *ports]),
            ("THREAD", [*tasks, *ports]),
        )
        sections = []
        for level, names in parts:
            shown = [clean(str(name), 80).replace("\n", " ") for name in names]
            sections.append("\n".join([f"LEVEL {level} SIZE {len(shown)}", *shown]))
        return "\n\n".join(sections) + "\n"

    def _all_ranks(self) -> Iterator[tuple[str, int]]:
        for program in self.programs:
            for row in self._of_program(program):
                yield program, row["rank"]


def _levels(place: str, at: int, held: int, packets: int) -> str:
    return f"2:{place}:{at}:{QUEUE_BYTES}:{held}:{QUEUE_PACKETS}:{packets}"


def _by_port(queues: pl.DataFrame) -> Iterator[tuple[int, list[tuple[float, int, int]]]]:
    ordered = queues.sort("link", "time_s")
    for (port,), part in ordered.group_by("link", maintain_order=True):
        columns = part["time_s"].to_list(), part["bytes"].to_list(), part["packets"].to_list()
        yield int(str(port)), list(zip(*columns, strict=True))
