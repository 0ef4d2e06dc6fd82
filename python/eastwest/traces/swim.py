"""SWIM: one job per line, six to nine columns separated by tabs.

The columns are: name, submission in seconds from the start, seconds since the previous submission,
bytes read by maps, bytes shuffled, bytes written. Some files also have the input path and the
output path (Chen, Ganapathi, Griffith and Katz, *The Case for Evaluating MapReduce Performance
Using Workload Suites*, MASCOTS 2011). A ninth column, or numbers in the seventh and eighth column,
have no documented meaning and are left out.

Lines are parsed in blocks, column by column. An invalid line is parsed again alone, to find the
reason. The third column is used only as a check: if it disagrees with the second column in most
lines, one of the two columns may not be in seconds.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from eastwest.account import Account
from eastwest.traces.form import MOST_S
from eastwest.traces.hadoop import Confs
from eastwest.traces.source import Source
from eastwest.traces.write import Writer

#: Maximum length of a line in bytes; the simulator's replay has the same limit.
MOST_LINE_BYTES = 65_536
#: Allowed numbers of columns in a line of a SWIM trace.
COLUMNS = (6, 7, 8, 9)
_NAMES = ("name", "submit_s", "gap_s", "input_bytes", "shuffle_bytes", "output_bytes")
_TOLD = ("job name", "submission", "gap", "map-input bytes", "shuffle bytes", "output bytes")
_BLOCK = 4 << 20
_MOST_BYTES = (1 << 64) - 1
#: Pattern of a whole number of at most 20 digits.
_WHOLE = r"^[0-9]{1,20}$"
#: Pattern of a character that occurs in paths but not in numbers.
_PATH = r"[^0-9.\s-]"


def read(source: Source, writer: Writer, account: Account, _: Confs) -> None:
    """Read the jobs of a SWIM trace, and add them to the tables of ``writer``.

    Problems are reported to ``account``.
    """
    reader = _Reader(source, writer, account)
    for block in source.blocks(MOST_LINE_BYTES + _BLOCK, _BLOCK):
        reader.take(block)
    reader.end()


class _Reader:
    def __init__(self, source: Source, writer: Writer, account: Account) -> None:
        self.name = source.name
        self.source = source
        self.writer = writer
        self.account = account
        self.lines = 0
        self.ended = True
        self.columns: set[int] = set()
        self.last_s: int | None = None
        self.gaps = self.gaps_off = 0

    def take(self, block: bytes) -> None:
        """Read a block of whole lines, and add the jobs to the tables."""
        self.ended = block.endswith(b"\n")
        lines = _texts(block)
        first = self.lines + 1
        self.lines += len(lines)
        frame = _columns(pl.Series("line", lines, pl.String))
        frame = frame.with_row_index("number", offset=first)
        blank = frame.filter(pl.col("blank"))
        if blank.height:
            self.account.note(self.name, blank["number"][0], "blank line", "", blank.height)
        usable = frame.filter(pl.col("fits"))
        for number, line in (
            frame.filter(~pl.col("fits") & ~pl.col("blank")).select("number", "line").iter_rows()
        ):
            self.account.bad(self.name, number, *explain(line))
        if usable.height:
            self._add(usable)

    def _add(self, rows: pl.DataFrame) -> None:
        self.columns |= set(rows["columns"].unique())
        self._note_columns(rows)
        self._watch(rows)
        number = self.writer.next_job(rows.height)
        jobs = rows.with_columns(
            pl.int_range(number, number + rows.height, dtype=pl.UInt32).alias("job"),
            pl.lit("MapReduce").alias("framework"),
        )
        self.writer.add_frame("jobs", jobs)
        for column, access, size in ((7, "read", "input_bytes"), (8, "write", "output_bytes")):
            named = jobs.filter(pl.col(f"path{column}").str.contains(_PATH))
            if named.height:
                files = named.select(
                    "job",
                    pl.col(f"path{column}").alias("path"),
                    pl.lit(access).alias("access"),
                    pl.col(size).alias("bytes"),
                )
                self.writer.add_frame("files", files)

    def _note_columns(self, rows: pl.DataFrame) -> None:
        """Report the rows with values in columns that have no documented meaning."""
        numbers = pl.any_horizontal(
            (pl.col(f"path{column}") != "") & ~pl.col(f"path{column}").str.contains(_PATH)
            for column in (7, 8)
        ).fill_null(False)
        for odd, reason in (
            (rows.filter(numbers), "column 7 or 8 that is a number instead of a path"),
            (rows.filter(pl.col("columns") > 8), "column 9"),
        ):
            if odd.height:
                then = "its value is left out: its meaning is not documented"
                self.account.note(self.name, odd["number"][0], reason, "", odd.height, then)

    def _watch(self, rows: pl.DataFrame) -> None:
        """Report jobs that are not in the order of submission.

        Also count the rows in which the gap (column 3) disagrees with the submission times.
        """
        submit = rows["submit_s"].cast(pl.Int64)
        before = submit.shift(1, fill_value=submit[0] if self.last_s is None else self.last_s)
        step = submit - before
        late = rows.filter(step < 0)
        if late.height:
            reason = "job submitted before the job of the line above: sorted"
            self.account.note(self.name, late["number"][0], reason, "", late.height)
        told = step.slice(1 if self.last_s is None else 0)
        gaps = rows["gap_s"].slice(1 if self.last_s is None else 0)
        self.gaps += len(told)
        self.gaps_off += int((told != gaps.cast(pl.Int64, strict=False)).fill_null(True).sum())
        self.last_s = int(submit[-1])

    def end(self) -> None:
        """Report notes on the whole file, such as an incomplete last line."""
        self.account.end(self.name, self.lines, self.source.cut)
        if not self.source.cut and not self.ended:
            self.account.note(self.name, self.lines, "the last line has no end: it may be cut off")
        if len(self.columns) > 1:
            counts = ", ".join(map(str, sorted(self.columns)))
            self.account.note(self.name, 0, f"lines have different numbers of columns ({counts})")
        if self.gaps > 10 and self.gaps_off > self.gaps / 2:
            reason = (
                "submission and gap (columns 2 and 3) disagree: one of them may not be in seconds"
            )
            self.account.note(self.name, 0, reason, "", self.gaps_off)


def _texts(block: bytes) -> list[str]:
    lines = block.removesuffix(b"\n")
    try:
        return lines.decode().split("\n")
    except UnicodeDecodeError:
        # A line with bytes that are not UTF-8 gets a NUL at its end, which makes it invalid.
        return [_text(line) for line in lines.split(b"\n")]


def _text(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode(errors="replace") + "\0"


def _columns(lines: pl.Series) -> pl.DataFrame:
    """Return a table with a row for each line of a SWIM trace.

    The columns are ``line`` (text), the six columns of the format by the names in ``_NAMES``,
    ``path7`` and ``path8`` (columns 7 and 8 as text), ``columns`` (number of columns in the line),
    ``fits`` (whether the line is a valid row), and ``blank`` (whether it is blank).
    """
    line = pl.col("line")
    frame = lines.str.strip_suffix("\r").to_frame()
    frame = frame.with_columns(line.str.split("\t").alias("parts"))
    frame = frame.with_columns(
        pl.col("parts").list.len().alias("columns"),
        *(pl.col("parts").list.get(i, null_on_oob=True).alias(n) for i, n in enumerate(_NAMES)),
        *(pl.col("parts").list.get(i - 1, null_on_oob=True).alias(f"path{i}") for i in (7, 8)),
    ).drop("parts")
    numbers = _NAMES[1:]
    whole = pl.all_horizontal(pl.col(name).str.contains(_WHOLE) for name in numbers)
    frame = frame.with_columns(whole.fill_null(False).alias("fits"))
    frame = frame.with_columns(pl.col(name).cast(pl.UInt64, strict=False) for name in numbers)
    ranged = pl.all_horizontal(pl.col(name).is_not_null() for name in numbers)
    sound = (
        (line.str.len_bytes() <= MOST_LINE_BYTES)
        & ~line.str.contains("\0", literal=True)
        & (pl.col("name").str.strip_chars() != "")
        & pl.col("columns").is_in(COLUMNS)
        & (pl.col("submit_s") <= int(MOST_S))
    ).fill_null(False)
    return frame.with_columns(
        (pl.col("fits") & ranged & sound).alias("fits"),
        (line.str.strip_chars() == "").alias("blank"),
    )


def explain(line: str) -> tuple[str, str]:
    """Return (reason why a line is not a row of a SWIM trace, wrong value as text)."""
    if len(line.encode()) > MOST_LINE_BYTES:
        return f"is longer than {MOST_LINE_BYTES:,} bytes, the maximum", ""
    if "\0" in line:
        return "is not text: it has a NUL, or bytes that are not UTF-8", ""
    parts = line.split("\t")
    if len(parts) not in COLUMNS:
        other = next((sep for sep in (",", ";", "  ") if line.count(sep) >= 5), "")
        hint = "; columns are separated by single tabs" if other and len(parts) == 1 else ""
        return f"6 to 9 columns are expected{hint}", f"{len(parts)}"
    if not parts[0].strip():
        return "column 1 (job name) is blank", ""
    for number, (told, text) in enumerate(zip(_TOLD[1:], parts[1:6], strict=True), 2):
        reason = _wrong(text, "seconds" if number < 4 else "bytes", number == 2)
        if reason:
            return f"column {number} ({told}): {reason}", text
    return "is not a row of a SWIM trace", ""


def _wrong(text: str, unit: str, is_time: bool) -> str:
    if text.startswith("-") and text[1:].isdecimal():
        return "is negative"
    if not (text.isascii() and text.isdecimal()):
        try:
            float(text)
        except ValueError:
            return f"is not a number; a whole number of {unit} is expected, without a unit"
        return f"a whole number of {unit} is expected"
    if len(text) > 20 or int(text) > _MOST_BYTES:
        return f"is more than {_MOST_BYTES}, the maximum"
    if is_time and int(text) > MOST_S:
        return "is more than a hundred years in seconds: is it in another unit?"
    return ""


def looks_like(start: bytes) -> bool:
    """Whether the first bytes of a file may be a SWIM trace."""
    for line in start.split(b"\n")[:5]:
        parts = line.rstrip(b"\r").split(b"\t")
        if len(parts) in COLUMNS and all(_numeric(part) for part in parts[1:6]):
            return True
    return False


def _numeric(part: Any) -> bool:
    return bytes(part).strip().lstrip(b"+-").replace(b".", b"", 1).isdigit()
