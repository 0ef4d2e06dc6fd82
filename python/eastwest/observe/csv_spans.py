"""Spans in CSV: a header line, then a span in each line, as Nezha and many exporters write them.

Columns are recognised by the letters of their names, in upper or lower case. The name of a time
states its unit (``StartTimeUnixNano``, ``start_us``, ``duration_ms``). For a start or end without a
unit, the unit is assumed with which the first value lies between 1980 and 2100, and the report of
the import states this unit; a duration must have a unit. If a file has an end and a duration, the
end is used: Nezha writes both, in different units. Unknown columns become attributes. If a span
names its pod but no service, the service is the name of the pod without the suffixes of Kubernetes.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import polars as pl

from eastwest.account import Account
from eastwest.errors import InputError, nearest
from eastwest.observe.form import EARLIEST_NS, KINDS, LATEST_NS, STATUSES
from eastwest.observe.gather import Gathering
from eastwest.observe.span import MOST_ATTRIBUTES, MOST_TEXT, NO_PARENT, service_of_pod
from eastwest.traces.source import Source
from eastwest.units import clean

#: Maximum length of a line of a CSV file, in bytes.
MOST_LINE_BYTES = 1 << 20
#: Size in bytes of the blocks in which a CSV file is parsed.
_BLOCK = 4 << 20
#: Maximum length of the id of a trace or span, in characters; a span with a longer id is not used.
_MOST_ID = 128
#: Values of the columns kind and status that mean *unknown*, in lower case.
_OPEN = {
    "kind": ["", "unspecified", "span_kind_unspecified"],
    "status": ["", "unset", "status_code_unset"],
}
#: Prefixes of OpenTelemetry's names of kinds and status codes, which are removed.
_PREFIX = {"kind": "span_kind", "status": "status_code"}
#: Maximum number of columns of a CSV file.
_MOST_COLUMNS = 1000

#: Names that sources use for each column of the normal form, in lower case without punctuation; the
#: first name that a file has is used.
NAMES = {
    "trace_id": ("traceid", "trace"),
    "span_id": ("spanid", "id"),
    "parent_id": ("parentid", "parentspanid", "parent", "parentspan"),
    "service": ("service", "servicename"),
    "operation": ("operation", "operationname", "name", "spanname", "methodname"),
    "instance": ("instance", "pod", "podname", "container", "containername", "instanceid"),
    "host": ("host", "hostname", "node", "nodename"),
    "kind": ("kind", "spankind"),
    "status": ("status", "statuscode"),
    "attributes": ("attributes", "tags"),
}
#: Names of the columns of times, in lower case; the unit may follow the name.
_TIMES = {
    "start": ("start", "starttime", "timestamp", "starttimestamp", "startts"),
    "end": ("end", "endtime", "endtimestamp", "endts", "finish"),
    "duration": ("duration", "elapsed", "latency"),
}
_UNITS = {
    **dict.fromkeys(("ns", "nano", "nanos", "unixnano", "nanoseconds"), 1),
    **dict.fromkeys(("us", "µs", "micro", "micros", "unixmicro", "microseconds"), 10**3),
    **dict.fromkeys(("ms", "milli", "millis", "unixmilli", "milliseconds"), 10**6),
    **dict.fromkeys(("s", "sec", "secs", "seconds", "unix"), 10**9),
}
_WORDS = {"ns": 1, "µs": 10**3, "ms": 10**6, "s": 10**9}
_NUMBER = re.compile(r"-?[0-9]{1,19}(\.[0-9]{1,12})?")


@dataclass
class _Columns:
    """Columns of a CSV file of spans: names, separator, and which columns of spans they are."""

    names: list[str]
    separator: str
    known: dict[str, str] = field(default_factory=dict)
    #: Column of each time (``start``, ``end``, ``duration``): its name in the file, and its unit in
    #: ns, or None if the unit is not known yet.
    times: dict[str, tuple[str, int | None]] = field(default_factory=dict)

    #: Columns (``kind``, ``status``) for which it is already decided whether they hold kinds or
    #: statuses of spans.
    settled: set[str] = field(default_factory=set)

    @property
    def others(self) -> list[str]:
        """Names of the columns that become attributes, because their meaning is not known."""
        used = {*self.known.values(), *(name for name, _ in self.times.values())}
        return [name for name in self.names if name not in used]


def looks_like(start: bytes) -> bool:
    """Whether a file may be CSV with a span in each line; ``start`` has its first bytes."""
    columns = _columns(start.partition(b"\n")[0].decode(errors="replace"))
    return {"trace_id", "span_id"} <= set(columns.known) and "start" in columns.times


def read(source: Source, writer: Gathering, problems: Account) -> None:
    """Add the spans of a file to ``writer``; report errors and remarks to ``problems``."""
    columns: _Columns | None = None
    services: dict[str, str] = {}
    for line, block in _blocks(source):
        if columns is None:
            head, _, rows = block.partition(b"\n")
            columns = _columns(head.decode(errors="replace"))
            _check(columns, source.name)
            frame = _parsed(rows, columns, source.name, line + 1, problems)
        else:
            frame = _parsed(block, columns, source.name, line, problems)
        if frame.height:
            _settle_words(columns, frame, source.name, problems)
            _settle_units(columns, frame, source.name, problems)
            cast = _cast(frame, columns)
            _tell(cast, frame, columns, source.name, problems)
            good = _good(cast, frame, columns, source.name, problems)
            writer.add_frame(_finished(good, services))
    problems.end(source.name, 0, source.cut)


def _blocks(source: Source) -> Iterator[tuple[int, bytes]]:
    """Yield (number of the first line, bytes) of blocks of whole rows; none ends within quotes."""
    line, held, first = 1, [], 1
    quotes = 0
    for block in source.blocks(MOST_LINE_BYTES, _BLOCK):
        if source.cut and not block.endswith(b"\n"):
            break  # the incomplete last row of a damaged compressed file
        held.append(block)
        quotes += block.count(b'"')
        line += block.count(b"\n")
        if quotes % 2 and sum(map(len, held)) <= _BLOCK + MOST_LINE_BYTES:
            continue
        yield first, b"".join(held)
        held, first, quotes = [], line, 0
    if held:
        yield first, b"".join(held)


def _columns(head: str) -> _Columns:
    head = head.removeprefix("\ufeff").strip()
    separator = max(",;\t|", key=head.count)
    try:
        names = [name.strip() for name in next(csv.reader([head], delimiter=separator), [])]
    except csv.Error:
        names = []
    columns = _Columns(names, separator)
    plain = {name: re.sub(r"[^a-zµ]", "", name.lower()) for name in names}
    for known, words in NAMES.items():
        found = next((n for word in words for n in names if plain[n] == word), None)
        if found is not None:
            columns.known[known] = found
    for time, words in _TIMES.items():
        for name in names:
            match = next((w for w in sorted(words, key=len)[::-1] if plain[name].startswith(w)), "")
            unit = plain[name].removeprefix(match)
            if match and (not unit or unit in _UNITS) and name not in columns.known.values():
                columns.times.setdefault(time, (name, _UNITS.get(unit)))
    return columns


def _check(columns: _Columns, file: str) -> None:
    double = next((n for n in columns.names if columns.names.count(n) > 1), None)
    if double is not None:
        raise InputError(f"{file}:1: has the column {clean(double, 40)!r} twice")
    if len(columns.names) > _MOST_COLUMNS:
        raise InputError(f"{file}:1: has more than {_MOST_COLUMNS:,} columns, the maximum")
    for needed, meant in (("trace_id", "TraceID"), ("span_id", "SpanID")):
        if needed not in columns.known:
            raise InputError(f"{file}:1: has no column {meant}{_near(meant, columns.names)}")
    if "start" not in columns.times:
        raise InputError(f"{file}:1: has no column start_ns{_near('start_ns', columns.names)}")
    if "end" in columns.times:
        columns.times.pop("duration", None)
    elif "duration" not in columns.times:
        raise InputError(
            f"{file}:1: has no column end_ns (end of a span) or duration_ns (duration of a span)"
        )
    elif columns.times["duration"][1] is None:
        name = columns.times["duration"][0]
        raise InputError(
            f"{file}:1: the column {clean(name, 40)!r} must have a name with a unit: "
            f"{clean(name, 40)}_ns, _us, _ms or _s"
        )


def _near(meant: str, names: Sequence[str]) -> str:
    close = nearest(meant, names)
    return f"; did you mean {clean(close, 40)!r}?" if close else ""


def _parsed(
    block: bytes, columns: _Columns, file: str, line: int, problems: Account
) -> pl.DataFrame:
    """Return the rows of ``block`` as a table of texts, with the added column ``line``.

    The column ``line`` has the number of each row's line in ``file``; the argument ``line`` is the
    number of the block's first line. Rows with a wrong number of values are reported to
    ``problems`` and left out.
    """
    texts = dict.fromkeys(columns.names, pl.String())
    try:
        frame = pl.read_csv(
            io.BytesIO(block),
            has_header=False,
            schema=texts,
            separator=columns.separator,
            encoding="utf8-lossy",
            raise_if_empty=False,
        )
        if columns.names[-1] not in frame.columns or frame[columns.names[-1]].null_count() == 0:
            return frame.with_row_index("line", line)
    except pl.exceptions.PolarsError:
        pass
    return _parsed_slowly(block, columns, file, line, problems)


def _parsed_slowly(
    block: bytes, columns: _Columns, file: str, line: int, problems: Account
) -> pl.DataFrame:
    """Return the rows of ``block`` as ``_parsed`` does, but parse them one by one.

    The slow parser is needed where the fast parser fails or finds rows with missing values. Rows
    with a wrong number of values are reported to ``problems`` and left out.
    """
    text = block.decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=columns.separator)
    rows: list[list[str | None]] = []
    wanted = len(columns.names)
    while True:
        began = line + reader.line_num
        try:
            row = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            problems.bad(file, began, "is not a row of CSV", str(error))
            continue
        if len(row) == wanted:
            rows.append([str(began), *(value or None for value in row)])
        elif row:
            problems.bad(file, began, f"{wanted} values are expected", str(len(row)))
    kinds = {"line": pl.String(), **dict.fromkeys(columns.names, pl.String())}
    return pl.DataFrame(rows, kinds, orient="row").with_columns(pl.col("line").cast(pl.UInt32))


def _settle_words(columns: _Columns, frame: pl.DataFrame, file: str, problems: Account) -> None:
    """Decide whether the columns named kind and status hold kinds and statuses of spans.

    A column that holds something else, such as ``status_code`` with codes of HTTP, becomes an
    attribute: it is removed from ``columns.known``, with a remark. The first rows with values
    decide.
    """
    for name, known in (("kind", KINDS), ("status", STATUSES)):
        column = columns.known.get(name)
        if column is None or name in columns.settled:
            continue
        words = frame[column].drop_nulls().head(1000).str.strip_chars().str.to_lowercase()
        words = words.filter(~words.is_in(_OPEN[name]))
        if not len(words):
            continue
        columns.settled.add(name)
        if not words.str.strip_prefix(f"{_PREFIX[name]}_").is_in(known).any():
            del columns.known[name]
            reason = f"the column {clean(column, 40)} holds no known {name}: used as an attribute"
            then = f"the {name} of the spans is not known"
            problems.note(file, 1, reason, words[0], consequence=then)


def _settle_units(columns: _Columns, frame: pl.DataFrame, file: str, problems: Account) -> None:
    for time, (name, unit) in columns.times.items():
        if unit is not None:
            continue
        first = next((t for t in frame[name].head(1000) if t and _NUMBER.fullmatch(t.strip())), "")
        value = float(first or 0)
        fits = [w for w, u in _WORDS.items() if EARLIEST_NS <= value * u <= LATEST_NS]
        if not fits:
            raise InputError(
                f"{file}: the column {clean(name, 40)} must hold times between 1980 and 2100 "
                f"in ns, µs, ms or s, found {clean(first, 40)!r}"
            )
        columns.times[time] = (name, _WORDS[fits[0]])
        reason = f"the name of the column with the {time} states no unit: {fits[0]} is assumed"
        problems.note(
            file,
            1,
            reason,
            first,
            consequence="with other units, the times lie outside 1980 to 2100",
        )


def _cast(frame: pl.DataFrame, columns: _Columns) -> pl.DataFrame:
    """Return the texts of ``frame`` as columns of the normal form; null for an unreadable value."""

    def text(name: str) -> pl.Expr:
        column = columns.known.get(name)
        if column is None:
            return pl.lit(None, pl.String).alias(name)
        stripped = pl.col(column).str.strip_chars()
        return (
            pl.when(stripped.str.len_bytes() > 0).then(stripped.str.slice(0, MOST_TEXT)).alias(name)
        )

    def time(name: str) -> pl.Expr:
        column, unit = columns.times[name]
        given = pl.col(column).str.strip_chars()
        whole = given.cast(pl.Int64, strict=False)
        most = (1 << 63) // (unit or 1) - 1
        exact = pl.when(whole.is_between(-most, most)).then(whole * (unit or 1))
        if frame[column].str.contains(".", literal=True).any():
            return pl.coalesce(exact, _decimal(given, unit or 1), _rough(given, unit or 1))
        return pl.coalesce(exact, _rough(given, unit or 1))

    end = time("end") if "end" in columns.times else time("start") + time("duration")

    def identifier(name: str) -> pl.Expr:
        found = text(name)
        column = columns.known.get(name)
        if column is None or not frame[column].str.contains("[A-Z]").any():
            return pl.when(found.str.len_bytes() <= _MOST_ID).then(found).alias(name)
        small = found.str.to_lowercase()
        same = pl.when(found.str.contains("^[0-9A-Fa-f-]*$")).then(small).otherwise(found)
        return pl.when(found.str.len_bytes() <= _MOST_ID).then(same).alias(name)

    parent = identifier("parent_id")
    none = parent.str.to_lowercase().is_in(sorted(NO_PARENT)) | (
        parent.str.strip_chars("0").str.len_bytes() == 0
    )
    kind = text("kind").str.to_lowercase().str.strip_prefix("span_kind_")
    status = text("status").str.to_lowercase().str.strip_prefix("status_code_")
    return frame.select(
        "line",
        identifier("trace_id"),
        identifier("span_id"),
        pl.when(~none).then(parent).alias("parent_id"),
        text("service"),
        text("operation"),
        text("instance"),
        text("host"),
        time("start").alias("start_ns"),
        end.alias("end_ns"),
        pl.when(kind.is_in(KINDS)).then(kind).alias("kind"),
        pl.when(status.is_in(STATUSES)).then(status).alias("status"),
        _attributes(columns),
    )


def _rough(given: pl.Expr, unit: int) -> pl.Expr:
    """Return an expression that converts times such as ``1.7e9`` to ns, relative error 2⁻⁵³.

    ``given`` has the times as texts; ``unit`` is the length of their unit in ns.
    """
    time = given.cast(pl.Float64, strict=False) * float(unit)
    return pl.when(time.abs() < 9e18).then(time).round(0).cast(pl.Int64, strict=False)


def _decimal(given: pl.Expr, unit: int) -> pl.Expr:
    """Return an expression that converts decimal times such as ``1700000000.123456789`` to ns.

    The error is below 1 ns. ``given`` has the times as texts; ``unit`` is the length of their unit
    in ns.
    """
    whole = given.str.extract(r"^-?([0-9]{1,18})\.[0-9]+$", 1).cast(pl.Int64, strict=False)
    digits = given.str.extract(r"^-?[0-9]{1,18}\.([0-9]+)$", 1).str.pad_end(9, "0")
    part = digits.str.slice(0, 9).cast(pl.Int64, strict=False)
    most = (1 << 63) // unit - 2
    time = pl.when(whole <= most).then(whole * unit + (part * unit + 500_000_000) // 10**9)
    return pl.when(given.str.starts_with("-")).then(-time).otherwise(time)


def _tell(
    cast: pl.DataFrame,
    given: pl.DataFrame,
    columns: _Columns,
    file: str,
    problems: Account,
) -> None:
    """Report to ``problems`` the values that are cut or left out; the rows themselves stay.

    ``given`` has the texts of the rows in the file, ``cast`` the same rows in the normal form.
    """

    def tell(marks: pl.Series, column: str, reason: str, then: str) -> None:
        if marks.any():
            row = int(marks.arg_true()[0])
            found = str(given[column][row])
            line = int(given["line"][row])
            problems.note(file, line, reason, found, int(marks.sum()), then)

    for name, column in columns.known.items():
        kept = cast[name].null_count() == given[column].null_count()
        if kept and (given[column].str.len_bytes().max() or 0) <= MOST_TEXT:  # type: ignore[operator]
            continue
        text = given[column].str.strip_chars()
        if name in _OPEN:
            lost = cast[name].is_null() & ~text.str.to_lowercase().is_in(_OPEN[name])
            reason = f"an unknown {name} of a span: treated as missing"
            tell(
                lost.fill_null(False),
                column,
                reason,
                "a kind is inferred from parent and child spans where possible, a status is not",
            )
        elif name == "attributes":
            lost = cast[name].is_null() & (text.str.len_bytes() > 0)
            reason = f"{clean(column, 40)} is not an object of JSON: left out"
            tell(lost.fill_null(False), column, reason, "sizes and names in the value are not used")
        elif name not in {"trace_id", "span_id", "parent_id"}:
            long = (text.str.len_bytes() > MOST_TEXT).fill_null(False)
            reason = f"{clean(column, 40)} is longer than {MOST_TEXT:,} characters: it is cut"
            tell(long, column, reason, "names that differ only after that length become equal")


def _attributes(columns: _Columns) -> pl.Expr:
    own = columns.known.get("attributes")
    if own is not None:
        text = pl.col(own).str.strip_chars()
        whole = text.str.starts_with("{") & text.str.ends_with("}")
        return pl.when(whole).then(text).alias("attributes")
    if not columns.others:
        return pl.lit(None, pl.String).alias("attributes")
    return pl.struct(columns.others).struct.json_encode().alias("attributes")


def _good(
    cast: pl.DataFrame,
    given: pl.DataFrame,
    columns: _Columns,
    file: str,
    problems: Account,
) -> pl.DataFrame:
    """Return the usable rows of ``cast``, and report the other rows to ``problems``.

    ``cast`` has the columns of the normal form; ``given`` has the texts of the same rows in the
    file.
    """
    inside = pl.col("start_ns", "end_ns").is_between(EARLIEST_NS, LATEST_NS)
    short = pl.col("attributes").str.len_bytes().fill_null(0) <= MOST_ATTRIBUTES
    needed = pl.col("trace_id", "span_id", "start_ns", "end_ns").is_not_null()
    good = pl.all_horizontal(needed, inside, short)
    marks = cast.select(good.fill_null(False).alias("good"))["good"]
    if marks.all():
        return cast
    for row in (~marks).arg_true():
        found, line = cast.row(row, named=True), int(cast["line"][row])
        reason, column = _reason(found, columns)
        problems.bad(file, line, reason, str(given[column][row] or "") if column else "")
    return cast.filter(marks)


def _reason(found: dict[str, object], columns: _Columns) -> tuple[str, str]:
    for name in ("trace_id", "span_id"):
        if found[name] is None:
            return f"{columns.known[name]} is missing, or longer than {_MOST_ID} characters", ""
    for time in ("start", "end"):
        if time not in columns.times:
            time = "duration"  # noqa: PLW2901  the end comes from it
        column = clean(columns.times[time][0], 40)
        if found["end_ns" if time != "start" else "start_ns"] is None:
            return f"{column} is not a number", columns.times[time][0]
        value = found["end_ns" if time != "start" else "start_ns"]
        if not isinstance(value, int) or not EARLIEST_NS <= value <= LATEST_NS:
            reason = f"{column} lies outside 1980 to 2100: is it in another unit?"
            return reason, columns.times[time][0]
    return f"the attributes of the span are longer than {MOST_ATTRIBUTES:,} bytes", ""


def _finished(frame: pl.DataFrame, services: dict[str, str]) -> pl.DataFrame:
    """Return the spans of ``frame`` without the column ``line`` and with added services.

    A span that names a pod but no service gets the service of the pod. ``services`` stores the
    service of each pod by the pod's name, and gets new pods added.
    """
    lacking = frame.filter(pl.col("service").is_null())["instance"].unique().drop_nulls()
    if len(lacking):
        for pod in lacking.to_list():
            services.setdefault(pod, service_of_pod(pod))
        of_pod = pl.col("instance").replace_strict(services, default=None, return_dtype=pl.String)
        frame = frame.with_columns(pl.coalesce("service", of_pod).alias("service"))
    return frame.drop("line")
