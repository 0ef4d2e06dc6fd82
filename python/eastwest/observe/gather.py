"""Gathers the spans that a reader finds, and passes them on as frames.

Readers write to a subclass: ``write.SpanWriter``, or a buffer on a worker of a Dask cluster
(``take_cluster``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from eastwest.errors import InputError
from eastwest.observe.form import TABLES, schema
from eastwest.observe.span import Place, written

#: Number of spans in the buffer at which all of them are passed on as one frame.
FLUSH_ROWS = 1 << 16
#: Number of characters of attributes and extras in the buffer at which the spans are passed on.
FLUSH_TEXT = 64 << 20
#: Maximum number of resources: different sets of attributes that spans share.
MOST_RESOURCES = 100_000
#: Columns of spans that a reader fills; the other columns come from mending.
READ = [name for name in TABLES["spans"] if name not in {"shift_ns", "mended"}]


class Gathering:
    """Buffer of spans while they are read; subclasses process each frame in ``part``."""

    def __init__(self) -> None:
        self._rows: list[tuple[Any, ...]] = []
        self._schema = {name: schema("spans")[name] for name in READ}
        #: Number of each set of shared attributes, by its JSON text.
        self.resources: dict[str, int] = {}
        #: Number of spans added so far.
        self.spans = 0
        #: Bytes of attributes and extras in the frames passed on so far.
        self.text_bytes = 0
        self._held = 0

    def part(self, frame: pl.DataFrame) -> None:
        """Process a frame of spans, whose columns are those of ``READ``; subclasses store it."""
        raise NotImplementedError

    def resource(self, attributes: Mapping[str, Any]) -> int | None:
        """Store attributes that spans share; return their number, or None if there are none."""
        text = written(attributes)
        return None if text is None else self.numbered(text)

    def numbered(self, text: str) -> int:
        """Return the number of a JSON text of shared attributes.

        Raises ``InputError`` where there are more than ``MOST_RESOURCES``.
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
        """Add a span to the buffer; its start and end are in nanoseconds since 1970.

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
        """Add a frame of spans; columns of ``READ`` that it does not have are null."""
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
        """Pass the spans in the buffer to ``part``."""
        if self._rows:
            columns = zip(READ, map(list, zip(*self._rows, strict=True)), strict=True)
            self._rows, self._held = [], 0
            self._pass_on(pl.DataFrame(dict(columns), self._schema))

    def _pass_on(self, frame: pl.DataFrame) -> None:
        texts = pl.col("attributes", "extra").str.len_bytes().cast(pl.Int64).sum()
        self.text_bytes += sum(frame.select(texts).row(0))
        self.part(frame)
