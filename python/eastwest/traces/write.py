"""Writes the normal form of a trace, part by part, while a reader delivers rows.

Up to ``FLUSH_ROWS`` rows of a table are buffered and then written as a temporary file. At the end,
the temporary files of a table become one file. If the jobs did not arrive in the order of
submission, they are sorted, one range of submission times after another, so that memory is bounded;
the numbers of jobs then change in all tables. The folder is written under a temporary name and
renamed when it is complete.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from eastwest.account import Account
from eastwest.errors import InputError
from eastwest.files import polars_writes
from eastwest.traces import replay
from eastwest.traces.form import ABOUT, MOST_S, TABLES, TRACE_FORMAT, schema
from eastwest.traces.made import FolderWriter
from eastwest.traces.numbers import Numbers

#: Number of buffered rows of a table at which they are written as a temporary file.
FLUSH_ROWS = 1 << 18
#: Maximum number of jobs of a trace: their numbers have 32 bits.
MOST_JOBS = 1 << 32
#: Maximum number of hosts of a trace.
MOST_HOSTS = 1_000_000
#: Approximate number of jobs that are sorted at once.
_SORT_ROWS = 1 << 18
#: Every n-th submission time is sampled, with this n; the samples give the limits of the ranges for
#: sorting.
_SAMPLE = 1 << 10
_TIMES = {name: [c for c in columns if c.endswith("_s")] for name, columns in TABLES.items()}
#: Columns whose names end like those of times (``_s``), but that are durations.
_LENGTHS = {"map_s", "reduce_s", "task_s", "cpu_s"}
#: Columns of the table of jobs with sizes in bytes, whose sums over all jobs are in ``trace.json``.
BYTES = ("input_bytes", "map_output_bytes", "shuffle_bytes", "output_bytes")


class Writer(FolderWriter):
    """Writer of a trace folder, a context manager; without ``finish``, no folder remains."""

    def __init__(
        self, out: Path, force: bool = False, flush_rows: int = FLUSH_ROWS, lasting: bool = True
    ) -> None:
        super().__init__(out, force, "a trace", ABOUT, lasting)
        self._flush_rows = flush_rows
        self._rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in TABLES}
        self._parts: dict[str, list[Path]] = {name: [] for name in TABLES}
        #: Number of rows of each table in temporary files so far; rows in the buffer do not count.
        self.counts: dict[str, int] = dict.fromkeys(TABLES, 0)
        self._known: dict[str, dict[str, int]] = {
            name: dict.fromkeys(columns, 0) for name, columns in TABLES.items()
        }
        #: Sum over all jobs of each column in ``BYTES``, by the column's name; a column that no job
        #: has is absent.
        self.totals: dict[str, int] = {}
        self.outcomes: dict[str, int] = {}
        self._zero_ms: int | None = None
        self._jobs = 0
        self._last = -MOST_S
        self._first = MOST_S
        self._end = -MOST_S
        self._sorted = True
        self._sample: list[float] = []
        #: Earliest and latest submission in s, for each temporary file of the table of jobs.
        self._spans: list[tuple[float, float]] = []
        #: Rack of each host that the trace names, by the host's name; None if it is not known.
        self._hosts: dict[str, str | None] = {}
        self._ids: set[bytes] = set()

    def next_job(self, jobs: int = 1) -> int:
        """Reserve ``jobs`` consecutive job numbers, and return the first of them.

        Raises ``InputError`` if the trace has too many jobs.
        """
        number = self._jobs
        self._jobs += jobs
        if self._jobs > MOST_JOBS:
            raise InputError(f"the trace has more than {MOST_JOBS:,} jobs, which is the maximum")
        return number

    @property
    def jobs(self) -> int:
        """Number of jobs for which ``next_job`` has reserved numbers so far."""
        return self._jobs

    def new_id(self, source_id: str) -> bool:
        """Whether this call is the first with ``source_id``; the id is stored."""
        digest = hashlib.blake2b(source_id.encode(errors="replace"), digest_size=12).digest()
        if digest in self._ids:
            return False
        self._ids.add(digest)
        return True

    def host(self, rack: str | None, host: str | None) -> None:
        """Add a host to the table of hosts, unless ``host`` is None; an unknown ``rack`` is None.

        Raises ``InputError`` if there are too many hosts.
        """
        if host is None or (rack is None and host in self._hosts):
            return
        if len(self._hosts) >= MOST_HOSTS and host not in self._hosts:
            raise InputError(
                f"the trace names more than {MOST_HOSTS:,} hosts, which is the maximum"
            )
        self._hosts[host] = rack

    def seconds(self, since_1970_ms: int | None) -> float | None:
        """Return a time in seconds relative to the time of the first call of this method.

        ``since_1970_ms`` is the time in ms since 1970; None gives None. Later, ``finish`` shifts
        all times so that the first submission is at 0.
        """
        if since_1970_ms is None:
            return None
        if self._zero_ms is None:
            self._zero_ms = since_1970_ms
        return (since_1970_ms - self._zero_ms) / 1000

    def add(self, table: str, row: Mapping[str, Any]) -> None:
        """Add a row to a table; ``row`` has values by column, and missing columns become null."""
        rows = self._rows[table]
        rows.append(tuple(row.get(name) for name in TABLES[table]))
        if len(rows) >= self._flush_rows:
            self._flush(table)

    def add_frame(self, table: str, frame: pl.DataFrame) -> None:
        """Add the rows of ``frame`` to a table; columns that are missing in it become null."""
        self._flush(table)
        if not frame.height:
            return
        columns = [
            frame[name].cast(kind) if name in frame.columns else pl.lit(None, kind).alias(name)
            for name, kind in schema(table).items()
        ]
        self._part(table, frame.select(columns))

    def finish(self, about: Mapping[str, Any], account: Account | None = None) -> dict[str, Any]:
        """Write the tables and ``trace.json``, rename the folder; return ``trace.json``'s content.

        The content consists of facts on the tables, of ``about``, and of the entries of
        ``account``.
        """
        account = Account() if account is None else account
        for rack, host in sorted((rack or "", host) for host, rack in self._hosts.items()):
            self.add("hosts", {"rack": rack or None, "host": host})
        for table in TABLES:
            self._flush(table)
        jobs = bool(self.counts["jobs"])
        if not jobs:
            self._part("jobs", pl.DataFrame(schema=schema("jobs")))
        shift = self._first if jobs and self._zero_ms is not None else 0.0
        numbers = None if self._sorted else self._sort_jobs()
        for table, parts in self._parts.items():
            if parts:
                if numbers is not None and table != "jobs" and "job" in TABLES[table]:
                    self._renumber(table, numbers)
                self._join(table, shift)
        began = None if self._zero_ms is None else round(self._zero_ms / 1000 + shift, 6)
        if self._lasting:
            with polars_writes(self._partial / replay.FILE):
                replay.write(self._partial / "jobs.parquet", self._partial / replay.FILE, account)
        for part in self._partial.glob("*.part"):
            part.unlink()
        return self.place(TRACE_FORMAT, {**self._facts(began, shift), **about, **account.as_json()})

    def _flush(self, table: str) -> None:
        rows = self._rows[table]
        if rows:
            self._rows[table] = []
            self._part(table, pl.DataFrame(rows, schema(table), orient="row"))

    def _part(self, table: str, frame: pl.DataFrame) -> None:
        self.counts[table] += frame.height
        for name in TABLES[table]:
            self._known[table][name] += frame.height - frame[name].null_count()
        if table == "jobs" and frame.height:
            self._weigh(frame)
        path = self._partial / f"{table}-{len(self._parts[table]):06}.part"
        with polars_writes(path):
            frame.write_parquet(path, compression="zstd", row_group_size=self._flush_rows)
        self._parts[table].append(path)

    def _weigh(self, jobs: pl.DataFrame) -> None:
        """Update sums, outcomes and data for sorting with ``jobs``, rows of the table of jobs."""
        submit = jobs["submit_s"]
        first, last = float(submit[0]), float(submit[-1])
        self._sorted = self._sorted and first >= self._last and submit.is_sorted()
        self._last = max(self._last, last)
        self._first = min(self._first, _number(submit.min()))
        self._end = max(self._end, _number(submit.max()), _number(jobs["finish_s"].max()))
        self._spans.append((_number(submit.min()), _number(submit.max())))
        self._sample += submit.gather_every(_SAMPLE).to_list()
        for name in BYTES:
            column = jobs[name].drop_nulls()
            if len(column):
                # The sum is computed in two halves, because a sum of untrusted values may exceed 64
                # bits.
                low = int((column % (1 << 32)).sum())
                high = int((column // (1 << 32)).sum())
                self.totals[name] = self.totals.get(name, 0) + (high << 32) + low
        for outcome, jobs_so in jobs["outcome"].drop_nulls().value_counts().iter_rows():
            self.outcomes[outcome] = self.outcomes.get(outcome, 0) + jobs_so

    def _sort_jobs(self) -> Numbers:
        """Sort the jobs by submission into new temporary files; return old to new job numbers."""
        old = self._parts["jobs"]
        new: list[Path] = []
        numbers = Numbers(self._partial / "numbers.part", self._jobs)
        done = 0
        for least, most in self._ranges():
            within = (pl.col("submit_s") >= least) & (pl.col("submit_s") < most)
            pieces = [
                pl.read_parquet(part).filter(within)
                for part, (low, high) in zip(old, self._spans, strict=True)
                if low < most and high >= least
            ]
            if not pieces:
                continue
            jobs = pl.concat(pieces).sort("submit_s", "job")
            number = pl.int_range(done, done + jobs.height, dtype=pl.UInt32, eager=True)
            numbers.put(jobs["job"].to_numpy(), done)
            path = self._partial / f"jobs-sorted-{len(new):06}.part"
            with polars_writes(path):
                jobs.with_columns(number.alias("job")).write_parquet(path, compression="zstd")
            new.append(path)
            done += jobs.height
        for part in old:
            part.unlink()
        self._parts["jobs"] = new
        return numbers

    def _renumber(self, table: str, numbers: Numbers) -> None:
        for part in self._parts[table]:
            rows = pl.read_parquet(part)
            new = pl.Series("job", numbers.of(rows["job"].to_numpy()), pl.UInt32)
            with polars_writes(part):
                rows.with_columns(new).write_parquet(part, compression="zstd")

    def _ranges(self) -> Iterator[tuple[float, float]]:
        marks = sorted(self._sample)[_SORT_ROWS // _SAMPLE :: _SORT_ROWS // _SAMPLE]
        cuts: Sequence[float] = [-float("inf"), *dict.fromkeys(marks), float("inf")]
        yield from itertools.pairwise(cuts)

    def _join(self, table: str, shift: float) -> None:
        frame = pl.scan_parquet(self._parts[table])
        if shift:
            times = [name for name in _TIMES[table] if name not in _LENGTHS]
            frame = frame.with_columns((pl.col(name) - shift).round(6) for name in times)
        frame = frame.select(*TABLES[table])
        with polars_writes(self._partial / f"{table}.parquet"):
            frame.sink_parquet(
                self._partial / f"{table}.parquet",
                compression="zstd",
                row_group_size=self._flush_rows,
                engine="streaming",
            )

    def lacks(self) -> list[str]:
        """Return the names of tables without rows and columns (``table.column``) without values."""
        missing = []
        for table, columns in TABLES.items():
            if self.counts[table]:
                missing += [f"{table}.{name}" for name in columns if not self._known[table][name]]
            else:
                missing.append(table)
        return missing

    def _facts(self, began: float | None, shift: float) -> dict[str, Any]:
        jobs = bool(self.counts["jobs"])
        return {
            "began_s": began,
            "first_submit_s": round(self._first - shift, 6) if jobs else None,
            "end_s": round(self._end - shift, 6) if jobs else None,
            "rows": {name: rows for name, rows in self.counts.items() if rows},
            "totals": self.totals,
            "outcomes": dict(sorted(self.outcomes.items())),
            "lacks": self.lacks(),
        }


def _number(value: Any) -> float:
    return -MOST_S if value is None else float(value)
