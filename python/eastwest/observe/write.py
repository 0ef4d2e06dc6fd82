"""Writes spans in their normal form, part by part as a reader delivers them.

Tables of spans (``gather``) are written as temporary files. At the end the spans are repaired
(``mend``), some traces at a time, so that memory is limited; clock skew is corrected (``skew``),
and all spans become one file. The folder is written under a temporary name, and renamed when it is
complete.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from eastwest.account import Account
from eastwest.files import polars_writes
from eastwest.observe import mend, skew
from eastwest.observe.form import ABOUT, SPANS_FORMAT, TABLES, schema
from eastwest.observe.gather import FLUSH_ROWS, Gathering
from eastwest.traces.made import FolderWriter

#: Approximate number of spans that are repaired at once.
MEND_ROWS = 1 << 18
#: Approximate number of bytes of attributes and extras of the spans that are repaired at once.
MEND_BYTES = 256 << 20
#: Columns that ``spans.json`` does not list under ``lacks``: they are null in all rows if no span
#: has extra data or needs a repair.
_NEVER_LACKING = ("extra", "mended")


class SpanWriter(Gathering, FolderWriter):
    """Writer of a folder of spans: a context manager; without ``finish`` no folder is left."""

    def __init__(
        self, out: Path, force: bool = False, lasting: bool = True, mend_rows: int = MEND_ROWS
    ) -> None:
        Gathering.__init__(self)
        FolderWriter.__init__(self, out, force, "a folder of spans", ABOUT, lasting)
        self._mend_rows = mend_rows
        self._parts: list[Path] = []

    def part(self, frame: pl.DataFrame) -> None:
        """Write a table of spans as a temporary file, whose spans are repaired at the end."""
        path = self._partial / f"spans-{len(self._parts):06}.part"
        with polars_writes(path):
            frame.write_parquet(path, compression="lz4")
        self._parts.append(path)

    def finish(self, about: Mapping[str, Any], problems: Account, file: str) -> dict[str, Any]:
        """Repair the spans and complete the folder; return the content of ``spans.json``.

        ``about`` has further content for ``spans.json``. Repairs and remarks are added to
        ``problems``, with ``file`` as the name of the source.
        """
        self.flush()
        mended, found = self._mend(problems, file)
        found.tell(problems, file)
        said = self._join(mended, found)
        resources = pl.DataFrame(
            {"resource": list(self.resources.values()), "attributes": list(self.resources)},
            schema("resources"),
        )
        with polars_writes(self._partial / "resources.parquet"):
            resources.write_parquet(self._partial / "resources.parquet", compression="zstd")
        said |= {"skew": found.as_json(), **about, **problems.as_json()}
        return self.place(SPANS_FORMAT, said)

    def _mend(self, problems: Account, file: str) -> tuple[list[Path], skew.Skew]:
        """Write files with the repaired spans; return (paths of the files, estimated clock skew).

        Each file has whole traces. Repairs are reported to ``problems``, with ``file`` as the name
        of the source.
        """
        buckets = max(-(-self.spans // self._mend_rows), -(-self.text_bytes // MEND_BYTES))
        read = pl.scan_parquet(self._parts)
        new: list[Path] = []
        clocks, divisors = [], []
        for bucket in range(buckets):
            some = read if buckets == 1 else read.filter(_bucket(buckets) == bucket)
            frame = some.collect(engine="streaming")
            if not frame.height:
                continue
            frame, found = mend.mend(frame)
            found.tell(problems, file)
            clocks.append(skew.edges(frame))
            divisors.append(skew.divisors(frame))
            path = self._partial / f"mended-{bucket:06}.part"
            with polars_writes(path):
                frame.write_parquet(path, compression="lz4")
            new.append(path)
        for part in self._parts:
            part.unlink()
        return new, skew.estimate(pl.concat(clocks), skew.joined(divisors))

    def _join(self, parts: list[Path], found: skew.Skew) -> dict[str, Any]:
        """Write ``spans.parquet`` from all repaired spans; return its entries for ``spans.json``.

        ``parts`` are the files of repaired spans, which are deleted. ``found`` has the shifts of
        the clocks, which are added to the times.
        """
        spans = skew.correct(pl.scan_parquet(parts), found).select(*TABLES["spans"])
        path = self._partial / "spans.parquet"
        with polars_writes(path):
            spans.sink_parquet(
                path,
                compression="zstd",
                row_group_size=FLUSH_ROWS,
                engine="streaming",
                maintain_order=True,
            )
        for part in parts:
            part.unlink()
        scan = pl.scan_parquet(path, glob=False)
        known = [pl.col(name).count().alias(f"known_{name}") for name in TABLES["spans"]]
        row = scan.select(
            pl.len().alias("spans"),
            (pl.col("trace_id") != pl.col("trace_id").shift()).sum().alias("traces"),
            pl.col("service").n_unique().alias("services"),
            pl.col("start_ns").min().alias("first"),
            pl.col("end_ns").max().alias("last"),
            *known,
        ).collect(engine="streaming")
        facts = row.row(0, named=True)
        lacks = [name for name in TABLES["spans"] if not facts[f"known_{name}"]]
        return {
            "spans": facts["spans"],
            "traces": facts["traces"] + 1,
            "services": facts["services"] - (facts["known_service"] < facts["spans"]),
            "began_ns": facts["first"],
            "ended_ns": facts["last"],
            "lacks": [name for name in lacks if name not in _NEVER_LACKING],
        }


def _bucket(buckets: int) -> pl.Expr:
    return pl.col("trace_id").hash(0) % buckets
