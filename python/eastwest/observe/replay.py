"""Writes the folder of a workload: a table for the simulator, and a description of the workload.

- ``transactions.tsv``: one line per call, in the format of ``kind = "transactions"``;
- ``messages.csv``: one line per message in the study's trace format: time, source and destination
  component, priority, payload bytes and transaction (Gusat et al., *Benchmarking the
  Ethernet-Federated Datacenter*, section 1);
- ``workload.json``: the source, the origin of sizes, and the fitted hierarchy;
- ``scenario.toml``: a fabric for the replay, and ``sort.toml``: the replay while Hadoop sorts;
- ``what-if.toml`` and ``customers.toml``: cases to compare, and ``sweep.toml``: a sweep along the
  axes of the study (topology, traffic), as a start for other sweeps.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eastwest import core
from eastwest.errors import InputError
from eastwest.files import sync_folder
from eastwest.folders import NewFolder
from eastwest.observe import sizes, synthetic
from eastwest.observe.book import UNKNOWN, Book, book_of
from eastwest.observe.form import TABLES
from eastwest.observe.kept_account import accounts
from eastwest.observe.levels import Variable, levels
from eastwest.observe.load import Spans
from eastwest.spreadsheet import text_cell
from eastwest.traces.source import Told

#: Number of the format of folders of workloads, stored as ``format`` in ``workload.json``.
WORKLOAD_FORMAT = 1
#: Name of the file that describes the workload.
ABOUT = "workload.json"
#: Name of the file with the table of calls that the simulator replays.
TABLE = "transactions.tsv"
#: Name of the file with all messages, in the trace format of the study (Gusat et al.).
MESSAGES = "messages.csv"
#: Priority of all messages in ``messages.csv``; spans state no priorities.
PRIORITY = 0

#: Names of the columns of ``transactions.tsv``, in this order.
COLUMNS = (
    "transaction",
    "call",
    "parent",
    "start_s",
    "component",
    "service",
    "operation",
    "request_bytes",
    "response_bytes",
    "after",
    "gap_s",
    "rest_s",
    "waited",
)
#: Columns of spans that are not read, because a workload does not depend on them.
_UNUSED = ("resource", "extra", "shift_ns")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_MOST_NAME = 200
#: Number of hosts per leaf switch in the generated scenarios.
_PER_LEAF = 6


@dataclass(frozen=True)
class Wanted:
    """Settings of ``write``: how the workload is derived from spans."""

    #: How the time between client side and server side of a call counts: a value of
    #: ``book.BETWEEN``.
    between: str
    #: Payload bytes of requests whose size is not known from spans: a rule for ``sizes.size_rule``.
    request: str = sizes.REQUEST
    #: Payload bytes of responses whose size is not known from spans: a rule for
    #: ``sizes.size_rule``.
    response: str = sizes.RESPONSE
    #: Number of transactions to synthesise; None: the recorded transactions are replayed.
    transactions: int | None = None
    #: Method by which transactions are synthesised: one of ``synthetic.DRAWS``.
    how: str = "trees"
    seed: int = 1


def write(
    spans: Spans, out: Path, wanted: Wanted, *, force: bool = False, told: Told | None = None
) -> dict[str, Any]:
    """Write the folder of a workload that is derived from ``spans``; return its ``workload.json``.

    ``told`` is called with the name of the current step and the share done. Raises ``InputError``
    for wrong settings or spans, and ``FolderError`` if the folder cannot be created.
    """
    seed = wanted.seed
    rules = sizes.size_rule(wanted.request), sizes.size_rule(wanted.response)
    place = NewFolder(out, force, "a folder of a workload", ABOUT, parents=False)
    place.check()
    say = told or (lambda what, share: None)
    say("reading", 0.0)
    frame = spans.frame(*(name for name in TABLES["spans"] if name not in _UNUSED))
    say("transactions", 0.2)
    book = book_of(frame, wanted.between)
    lacks_sizes = sizes.fill(book, *rules, seed)
    say("distributions", 0.5)
    variables = levels(book)
    recorded = len(book.trees)
    if wanted.transactions is not None:
        gaps = next(v for v in variables if (v.level, v.what) == ("transaction", "gap"))
        if not len(gaps.values):
            raise InputError(
                f"{spans.name}: has a single transaction, so the time between arrivals "
                "is not known, and transactions cannot be synthesised"
            )
        book = synthetic.synthetic(book, gaps, wanted.transactions, wanted.how, seed)
    say("writing", 0.7)
    about = _about(spans, book, variables, lacks_sizes)
    about |= {"sizes_default": {"request": str(rules[0]), "response": str(rules[1])}, "seed": seed}
    made = {"from": recorded, "how": wanted.how}
    about["made"] = made if wanted.transactions is not None else None
    _write_folder(place, book, about)
    return about


def _write_folder(place: NewFolder, book: Book, about: dict[str, Any]) -> None:
    with place.begin() as made:
        partial = made.path
        with (partial / TABLE).open("w", encoding="utf-8", newline="") as file:
            file.writelines(table(book))
        with (partial / MESSAGES).open("w", encoding="utf-8", newline="") as file:
            file.writelines(messages(book))
        components = len({call.component for tree in book.trees for call in tree.calls})
        texts = {
            ABOUT: json.dumps(about, indent=1, allow_nan=False) + "\n",
            "scenario.toml": scenario(components),
            "sort.toml": beside_a_sort(components),
            "what-if.toml": WHAT_IF,
            "customers.toml": CUSTOMERS,
            "sweep.toml": SWEEP,
        }
        for name, text in texts.items():
            (partial / name).write_text(text, encoding="utf-8")
        sync_folder(partial)
        place.place(made)


def table(book: Book) -> Iterator[str]:
    """Yield the lines of ``transactions.tsv``: the columns, then one line per call."""
    yield "\t".join(COLUMNS) + "\n"
    for tree in book.trees:
        name = text_cell(named(tree.name))
        for number, call in enumerate(tree.calls):
            first = number == 0
            cells = (
                name,
                str(number),
                "" if first else str(call.parent),
                seconds(tree.start_ns) if first else "",
                *map(text_cell, (named(call.component), named(call.service))),
                text_cell(named(call.operation)),
                str(max(1, call.request_bytes)),
                str(max(1, call.response_bytes)),
                ",".join(map(str, call.after)),
                seconds(call.gap_ns),
                seconds(call.rest_ns),
                "yes" if call.waited else "no",
            )
            yield "\t".join(cells) + "\n"


def messages(book: Book) -> Iterator[str]:
    """Yield the text of ``messages.csv``: the columns, then the lines of one transaction at a time.

    The messages of a transaction are in the order of time.
    """
    yield "timestamp_s,source,destination,priority,burst_bytes,transaction\n"
    line = io.StringIO()
    writer = csv.writer(line, lineterminator="\n")
    for tree in book.trees:
        name = text_cell(named(tree.name))
        rows = []
        for call in tree.calls:
            if call.parent < 0:
                continue
            ends = named(tree.calls[call.parent].component), named(call.component)
            if ends[0] != ends[1]:
                rows.append((tree.start_ns + call.sent_ns, *ends, call.request_bytes))
                rows.append((tree.start_ns + call.done_ns, ends[1], ends[0], call.response_bytes))
        rows.sort(key=lambda row: row[0])
        for at, source, destination, size in rows:
            between = (text_cell(source), text_cell(destination))
            writer.writerow((seconds(at), *between, PRIORITY, size, name))
        yield line.getvalue()
        line.seek(0)
        line.truncate()


def seconds(time_ns: int) -> str:
    """Return a time in ns as a text in seconds, exact and without trailing zeros."""
    whole, rest = divmod(time_ns, 10**9)
    return f"{whole}.{rest:09d}".rstrip("0").rstrip(".")


def named(text: str) -> str:
    """Return a name for a table: at most ``_MOST_NAME`` characters of ``text``.

    Control characters become spaces. An empty name becomes ``(unknown)``.
    """
    return _CONTROL.sub(" ", text).strip()[:_MOST_NAME] or UNKNOWN


def _about(
    spans: Spans, book: Book, variables: list[Variable], lacks_sizes: dict[str, dict[str, int]]
) -> dict[str, Any]:
    calls = [call for tree in book.trees for call in tree.calls]
    response = [tree.response_ns / 1e9 for tree in book.trees]
    return {
        "format": WORKLOAD_FORMAT,
        "version": core.version(),
        "spans": {"name": Path(spans.name).name, "files": spans.about.get("files", [])},
        "accounts": accounts(spans.about, spans.name),
        "transactions": len(book.trees),
        "calls": len(calls),
        "components": sorted({call.component for call in calls}),
        "services": sorted({call.service for call in calls}),
        "length_s": book.trees[-1].start_ns / 1e9,
        "recorded_response_s": {"mean": sum(response) / len(response), "max": max(response)},
        "between": {
            "counted_as": book.between,
            "calls": book.remote,
            "seconds": book.between_ns / 1e9,
            "without_caller": book.without_caller,
            "without_called": book.without_called,
        },
        "sizes": lacks_sizes,
        "levels": [variable.as_json() for variable in variables],
    }


def fabric(components: int, rate: str) -> str:
    """Return the TOML of a leaf-spine fabric for the replay, with a workload of transactions.

    The fabric has two or more racks, and more hosts than ``components``. The components are placed
    on all hosts but ``h0``. ``rate`` is the rate of the hosts' links, such as ``10 Gbit/s``.
    """
    leaves = max(2, -(-(components + 1) // _PER_LEAF))
    return f"""\
[fabric]
kind = "leaf-spine"
leaves = {leaves}
hosts_per_leaf = {_PER_LEAF}
spines = 2
host_rate = "{rate}"
uplink_rate = "10 Gbit/s"

[tcp]
profile = "linux"

[[workload]]
name = "transactions"
kind = "transactions"
file = "{TABLE}"
placement = "round-robin"
hosts = ["h1..h{leaves * _PER_LEAF - 1}"]
"""


def scenario(components: int) -> str:
    """Return the TOML of a scenario that replays the transactions without other traffic."""
    return f"""\
# The recorded transactions on a leaf-spine fabric with a host for each component.
# Change it as you like; what-if.toml has cases to compare.
schema = 1
name = "transactions"
seed = 1

{fabric(components, "10 Gbit/s")}"""


def beside_a_sort(components: int) -> str:
    """Return the TOML of a scenario that replays the transactions while Hadoop sorts.

    The sort uses the same hosts.
    """
    return f"""\
# The recorded transactions while Hadoop sorts on the same hosts, which have slower links.
schema = 1
name = "transactions-and-sort"
seed = 1

{fabric(components, "1 Gbit/s")}
[[class]]
name = "transactions"
priority = 6             # matters with fabric.scheduler = "strict-priority"

[[workload]]
name = "sort"
kind = "mapreduce"
class = "bulk"
background = true        # the run ends with the transactions
master = "h0"

[[workload.job]]
kind = "terasort"
input = "6 GB"
"""


#: Content of ``what-if.toml``: cases to compare.
WHAT_IF = """\
# Cases for `eastwest observe what-if FOLDER`: the first is what the others are compared with.
scenario = "scenario.toml"

[[case]]
name = "as it is"

[[case]]
name = "hosts at 1 Gbit/s"
set = { "fabric.host_rate" = "1 Gbit/s" }

[[case]]
name = "neighbours together"
set = { "fabric.host_rate" = "1 Gbit/s", "workload.transactions.placement" = "block" }

[[case]]
name = "beside a sort"
scenario = "sort.toml"

[[case]]
name = "… with deep buffers"
scenario = "sort.toml"
set = { "fabric.queue.limit" = "2000 packets" }

[[case]]
name = "… with a queue of its own"
scenario = "sort.toml"
set = { "fabric.scheduler" = "strict-priority" }
"""

#: Content of ``customers.toml``: cases with more customers than recorded, and with components that
#: have a limited number of processors.
CUSTOMERS = """\
# Cases for `eastwest observe what-if FOLDER/customers.toml`.
scenario = "scenario.toml"

[[case]]
name = "4 processors each"
set = { "workload.transactions.processors" = 4 }

[[case]]
name = "2 × the customers"
set = { "workload.transactions.processors" = 4, "workload.transactions.speed" = 2 }

[[case]]
name = "4 × the customers"
set = { "workload.transactions.processors" = 4, "workload.transactions.speed" = 4 }

[[case]]
name = "… with 8 processors"
set = { "workload.transactions.processors" = 8, "workload.transactions.speed" = 4 }

[[case]]
name = "… with any number"
set = { "workload.transactions.speed" = 4 }
"""

#: Content of ``sweep.toml``: a sweep over topologies and traffic, as in the study's benchmark.
SWEEP = """\
# Topology × traffic, every metric of a run in one table: eastwest sweep FOLDER/sweep.toml
sweep = 1
name = "transactions"
scenario = "scenario.toml"
seeds = 3

[[axis]]
path = "fabric.host_rate"
values = ["1 Gbit/s", "10 Gbit/s"]

[[axis]]
path = "workload.transactions.placement"
values = ["block", "round-robin", "random"]

[[axis]]
path = "workload.transactions.arrivals"
values = ["recorded", "poisson"]
"""
