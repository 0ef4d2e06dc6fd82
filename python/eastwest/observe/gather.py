"""Collects the spans that a reader finds, and passes them on in tables of many spans.

A reader writes to a subclass of ``Gathering``: ``write.SpanWriter``, or a buffer on a worker of a
Dask cluster (``take_cluster``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from eastwest.errors import InputError
from eastwest.observe.form import TABLES, schema
from eastwest.observe.span import Place, written

#: Number of spans in the buffer at which they are passed on as one table.
FLUSH_ROWS = 1 << 16
#: Number of characters of attributes and extras in the buffer at which the spans are passed on.
FLUSH_TEXT = 64 << 20
#: Maximum number of resources. A resource is a set of attributes that many spans share.
MOST_RESOURCES = 100_000
#: Columns of spans that a reader fills; ``mend`` and ``skew`` fill the other columns.
READ = [name for name in TABLES["spans"] if name not in {"shift_ns", "mended"}]


class Gathering:
    """Buffer for the spans that a reader finds; subclasses define what ``part`` does with them."""

    def __init__(self) -> None:
        self._rows: list[tuple[Any, ...]] = []
        self._schema = {name: schema("spans")[name] for name in READ}
        #: Number of each set of shared attributes, by the JSON text of the set.
        self.resources: dict[str, int] = {}
        #: Number of spans added so far.
        self.spans = 0
        #: Bytes of attributes and extras in the tables of spans that were passed on so far.
        self.text_bytes = 0
        self._held = 0

    def part(self, frame: pl.DataFrame) -> None:
        """Process a table of spans with the columns ``READ``; subclasses define this method."""
        raise NotImplementedError

    def resource(self, attributes: Mapping[str, Any]) -> int | None:
        """Store attributes that spans share; return their number, or None if they are empty."""
        text = written(attributes)
        return None if text is None else self.numbered(text)

    def numbered(self, text: str) -> int:
        """Return the number of a set of shared attributes; a new set gets the next number.

        ``text`` is the JSON text of the set. Raises ``InputError`` if there are more than
        ``MOST_RESOURCES`` sets.
        """
        number = self.resources.setdefault(text, len(self.resources))
        if number >= MOST_RESOURCES:
            raise InputError(
                f"the spans come from more than {MOST_RESOURCES:,} resources (sets of "
                "shared attributes), the maximum"
            )
        return number

    def add(
        self,
        trace_id: str,
        span_id: str,
        parent_id: str | None,
        place: Place,
        operation: str | None,
        start_ns: int,
        end_ns: int,
        kind: str | None,
        status: str | None,
        attributes: str | None,
        extra: str | None = None,
    ) -> None:
        """Add a span to the buffer; its start and end are in ns since 1970.

        ``place`` has the span's service, instance, host and number of shared attributes.
        ``attributes`` and ``extra`` are texts of JSON objects.
        """
        self._rows.append(
            (
                *(trace_id, span_id, parent_id, place.service, operation, place.instance),
                *(place.host, start_ns, end_ns, kind, status, attributes, place.resource),
                extra,
            )
        )
        self.spans += 1
        self._held += len(attributes or "") + len(extra or "")
        if len(self._rows) >= FLUSH_ROWS or self._held >= FLUSH_TEXT:
            self.flush()

    def add_frame(self, frame: pl.DataFrame) -> None:
        """Pass on the buffer, then ``frame``; missing columns of ``READ`` become null."""
        self.flush()
        if frame.height:
            self.spans += frame.height
            self._pass_on(
                frame.select(
                    pl.col(name).cast(kind)
                    if name in frame.columns
                    else pl.lit(None, kind).alias(name)
                    for name, kind in self._schema.items()
                )
            )

    def flush(self) -> None:
        """Pass the spans in the buffer to ``part``, and empty the buffer."""
        if self._rows:
            columns = zip(READ, map(list, zip(*self._rows, strict=True)), strict=True)
            self._rows, self._held = [], 0
            self._pass_on(pl.DataFrame(dict(columns), self._schema))

    def _pass_on(self, frame: pl.DataFrame) -> None:
        texts = pl.col("attributes", "extra").str.len_bytes().cast(pl.Int64).sum()
        self.text_bytes += sum(frame.select(texts).row(0))
        self.part(frame)
