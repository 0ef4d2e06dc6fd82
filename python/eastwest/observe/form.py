"""The normal form of spans: a folder with ``spans.json``, ``spans.parquet``, ``resources.parquet``.

A span is one piece of work of one component, with a start and an end. Spans of every source are
converted to the columns of ``TABLES``. A column for which a source has no data is null in all rows,
and ``spans.json`` lists it under ``lacks``.

Times are whole nanoseconds since 1970, after correction of clock skew; ``shift_ns`` is the
correction, so that ``start_ns - shift_ns`` is the time in the source. Spans of one trace are
adjacent, in the order of their start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

#: Number of the format of folders of spans, stored as ``format`` in ``spans.json``.
SPANS_FORMAT = 1

#: Name of the file, in a folder of spans, that describes the spans.
ABOUT = "spans.json"

#: Formats of files with spans that can be imported: name for ``--format``, and description.
SOURCES = {
    "otlp-json": "OpenTelemetry in JSON: one document, or one document per line",
    "otlp-proto": "OpenTelemetry in protobuf: one message, or messages with length prefixes",
    "jaeger": "Jaeger's JSON, as its query service returns it",
    "zipkin": "Zipkin's JSON, version 2",
    "csv": "CSV with a header line, such as Nezha's",
}

#: Kinds of spans: the side of a call on which a span was recorded.
KINDS = ("internal", "server", "client", "producer", "consumer")

#: Values of the column ``status``: outcomes of spans; null if the source states no outcome.
STATUSES = ("ok", "error")

#: Values of the column ``mended``: the repair of a span; null if it was not repaired.
MENDED = ("lost-parent", "cycle", "shared-id")

#: Earliest and latest time of a span, in ns since 1970: the years 1980 and 2100. Times outside are
#: probably in another unit.
EARLIEST_NS = 315_532_800 * 10**9
LATEST_NS = 4_102_444_800 * 10**9

#: Columns of each table of the normal form of spans, in order, with their types.
TABLES: dict[str, dict[str, str]] = {
    # One row for each span. ``service``: the operator's name of the component; ``instance``: the
    # pod, container or process; ``host``: the machine on which the instance runs. ``parent_id``: id
    # of another span in the trace; ``mended``: the repair. ``resource``: number in the table
    # ``resources``; ``attributes``: a JSON object; ``extra``: other data of the source, which only
    # the export uses.
    "spans": {
        "trace_id": "str",
        "span_id": "str",
        "parent_id": "str",
        "service": "str",
        "operation": "str",
        "instance": "str",
        "host": "str",
        "start_ns": "i64",
        "end_ns": "i64",
        "kind": "str",
        "status": "str",
        "attributes": "str",
        "resource": "u32",
        "extra": "str",
        "shift_ns": "i64",
        "mended": "str",
    },
    # One row for each set of attributes that many spans share: a JSON object.
    "resources": {"resource": "u32", "attributes": "str"},
}

#: Columns of spans that older versions of Eastwest did not write; in older folders they are null.
LATER = ("extra",)

#: Columns of the table of spans that are never null.
NEEDED = ("trace_id", "span_id", "start_ns", "end_ns", "shift_ns")


def schema(table: str) -> dict[str, pl.DataType]:
    """Return the columns of ``table`` of the normal form, with their polars types."""
    import polars as pl  # noqa: PLC0415  slow to load, and the names do not need it

    types = {"u32": pl.UInt32(), "i64": pl.Int64(), "str": pl.String()}
    return {name: types[kind] for name, kind in TABLES[table].items()}
