"""Writes the transactions of a run as OpenTelemetry spans: OTLP in JSON, one document per line.

The spans are those that tracing in the applications would have recorded. A call between two
components is a span of kind client at the caller, from the departure of the request to the arrival
of the response, and a span of kind server at the callee, from the arrival of the request to the
departure of the response. A call within a component is one span of kind internal. Payload sizes are
the attributes ``http.request.body.size`` and ``http.response.body.size``. A component is an
instance (``service.instance.id``) of its service on the host of the run.

Identifiers follow from the digest of the run and the numbers of workload, transaction and call, so
that equal runs have equal spans.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from eastwest import core, shipped
from eastwest.errors import InputError
from eastwest.observe.otlp_values import pairs
from eastwest.results import Result

#: Default date of the run's start, in seconds since 1970: 1 January 2020.
BEGAN_S = 1_577_836_800
#: Earliest and latest date of the run's start, in seconds since 1970: 1980 and 2090.
EARLIEST_S, LATEST_S = 315_532_800, 3_786_912_000
#: Number of spans at which a document is complete; its last transaction is still finished. A
#: document is one line.
_SPANS = 5_000
_ENCODE = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class _Side(NamedTuple):
    """Side of a call: its number in ``SpanKind`` of trace.proto, and columns of start and end."""

    kind: int
    times: tuple[str, str]


_WITHIN = _Side(1, ("sent_s", "done_s"))
_AT_SERVER = _Side(2, ("arrived_s", "answered_s"))
_AT_CLIENT = _Side(3, ("sent_s", "done_s"))


def lines(result: Result, began_s: int = BEGAN_S) -> Iterator[str]:
    """Yield documents of OTLP's JSON with the transactions of a run, one per line.

    ``began_s`` is the date of the run's start in seconds since 1970. Raises ``InputError`` if no
    transaction has finished.
    """
    calls = result.calls
    if not calls.height:
        raise InputError(
            f"{result.path} has no finished transactions: transactions come from a workload "
            'of kind = "transactions"'
        )
    clients = dict(
        zip(
            result.transactions.select("workload", "transaction").rows(),
            result.transactions["client"].to_list(),
            strict=True,
        )
    )
    writer = _Writer(result, began_s)
    waiting: list[dict[str, Any]] = []
    for row in calls.iter_rows(named=True):
        if row["parent"] < 0:
            if writer.count >= _SPANS:
                yield writer.document()
            waiting.clear()
        waiting.append(row)
        caller = waiting[row["parent"]] if row["parent"] >= 0 else None
        writer.add(row, caller, clients[row["workload"], row["transaction"]])
    yield writer.document()


class _Writer:
    """Builder of documents: collects spans by their resource (service, component, host)."""

    def __init__(self, result: Result, began_s: int) -> None:
        topology = core.topology(result.scenario, str(result.path), str(shipped.DATA), [])
        self.hosts: list[str] = list(topology["nodes"])
        self.digest = result.digest
        self.began_ns = began_s * 10**9
        self.spans: dict[tuple[str, str, int], list[dict[str, Any]]] = defaultdict(list)
        self.count = 0

    def add(self, row: dict[str, Any], caller: dict[str, Any] | None, client: int) -> None:
        """Add the spans of a call; ``row`` is the call's row in the run's table ``calls``.

        ``caller`` is the row of the calling call, None for the first call of a transaction;
        ``client`` is the number of the host that sends the first request, or −1 for no such host.
        """
        number = row["transaction"]
        trace = self._id(row["workload"], number, -1, "trace")[:32]
        server = self._id(row["workload"], number, row["call"], "called")[:16]
        sizes = pairs(
            {
                "http.request.body.size": row["request_bytes"],
                "http.response.body.size": row["response_bytes"],
            }
        )
        called = (row["service"], row["component"], row["host"])
        if caller is not None:
            asks = caller["service"], caller["component"], caller["host"]
            above = self._id(row["workload"], number, caller["call"], "called")[:16]
        elif client >= 0:
            asks, above = ("client", f"client-{self.hosts[client]}", client), ""
        else:
            self._span(called, (trace, server, ""), row, _AT_SERVER, sizes)
            return
        if asks[1] == called[1]:
            self._span(called, (trace, server, above), row, _WITHIN, [])
            return
        outer = self._id(row["workload"], number, row["call"], "caller")[:16]
        self._span(asks, (trace, outer, above), row, _AT_CLIENT, sizes)
        self._span(called, (trace, server, outer), row, _AT_SERVER, sizes)

    def _id(self, workload: str, transaction: int, call: int, side: str) -> str:
        text = f"{self.digest}/{workload}/{transaction}/{call}/{side}"
        return hashlib.sha256(text.encode()).hexdigest()

    def _span(
        self,
        where: tuple[str, str, int],
        ids: tuple[str, str, str],
        row: dict[str, Any],
        side: _Side,
        attributes: list[dict[str, Any]],
    ) -> None:
        """Add a span for one side of a call.

        ``row`` is the call's row in the run's table ``calls``; ``where``: service, component and
        number of the host; ``ids``: ids of the trace, of the span and of its parent (empty: none);
        ``side``: the side of the call.
        """
        begin, end = (self.began_ns + round(row[time] * 1e9) for time in side.times)
        self.spans[where].append(
            {
                **dict(zip(("traceId", "spanId", "parentSpanId"), ids, strict=True)),
                "name": row["operation"],
                "kind": side.kind,
                "startTimeUnixNano": str(begin),
                "endTimeUnixNano": str(max(begin, end)),
                "attributes": attributes,
                "status": {},
            }
        )
        self.count += 1

    def document(self) -> str:
        """Return the spans added since the last document as a new document, on one line.

        The list of spans is then empty.
        """
        found = []
        for (service, component, host), spans in self.spans.items():
            place = {
                "service.name": service or component,
                "service.instance.id": component,
                "host.name": self.hosts[host],
            }
            scope = {"scope": {"name": "eastwest"}, "spans": spans}
            resource = {"attributes": pairs(place)}
            found.append({"resource": resource, "scopeSpans": [scope]})
        self.spans.clear()
        self.count = 0
        return _ENCODE({"resourceSpans": found}) + "\n"
