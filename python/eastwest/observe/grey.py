"""Grey-box transactions: linking by one shared attribute, stitching by a user's rules.

*Linking* puts all spans that share the value of one attribute (such as a request number in a header
or a log) into one transaction. Their parents are inferred from times: the parent of a span is the
innermost span of its own instance that contains it, else the innermost span of its instance that
contains its start, else the innermost span of any instance that contains it, else the innermost
span of any instance that contains its start.

*Stitching* joins spans whose attributes match by a rule, such as a client's port and operation with
a server's. Rules apply in their order to spans that have no parent yet; joined spans form a
transaction. Magpie (Barham et al., OSDI 2004) calls the rules a schema of joins.

An attribute is a column of spans, or ``attributes.NAME``. A rule file holds tables ``[[stitch]]``:

- ``match``: attributes of the parent and of the child that must be equal;
- ``differ``: attributes in which the parent and the child must differ;
- ``order``: ``inside`` (the default): the child lies in the parent; ``after``: the child starts
  after the parent's end; ``started``: the child starts after the parent's start;
- ``within``: longest time from the parent's start (``after``: end) to the child's start;
- ``strip``: a regular expression; before the comparison of ``match``, its matches are removed;
- ``once``: each parent gets at most one child by this rule.
"""

from __future__ import annotations

import tomllib
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from eastwest.core import Problem
from eastwest.errors import InputError, ProblemsError
from eastwest.observe.calls import Integers, transactions
from eastwest.observe.form import TABLES
from eastwest.units import clean

#: Maximum number of possible parents of a span that are compared: those with the latest start (for
#: rules with ``order = after``: with the latest end).
MOST_CANDIDATES = 256
_ORDERS = ("inside", "after", "started")
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}
_NO_FIELDS = {"parent_id", "mended", "resource", "extra", "shift_ns"}
_FIELDS = [name for name in TABLES["spans"] if name not in _NO_FIELDS]
_MOST_RULES_BYTES = 1 << 20


@dataclass(frozen=True)
class Joined:
    """Result of linking or stitching: the inferred parent and transaction of each span."""

    #: Row of each span's inferred parent, or −1 without a parent.
    parent: Integers
    #: Number of the inferred transaction of each span.
    transaction: Integers
    #: Number of spans that do not have the attribute by which spans are linked. Each of them is a
    #: transaction of its own.
    alone: int = 0


@dataclass(frozen=True)
class Rule:
    """Rule of stitching (``[[stitch]]``): which attributes join two spans as parent and child."""

    match: dict[str, str]
    differ: tuple[str, ...] = ()
    order: str = "inside"
    within_ns: int | None = None
    strip: str = ""
    once: bool = False


def link(spans: pl.DataFrame, by: str) -> Joined:
    """Return inferred parents and transactions: one transaction for each value of ``by``.

    ``by`` is an attribute of spans. A span without this attribute is a transaction of its own.
    Raises ``InputError`` if no span has the attribute.
    """
    value = spans.select(_value(by, "").alias("value"))["value"]
    known = value.is_not_null().to_numpy()
    if not known.any():
        raise InputError(f"no span has the attribute {clean(by, 60)!r}")
    group = value.rank("dense").fill_null(0).to_numpy().astype(np.int64)
    group = np.where(known, group, -1 - np.arange(len(group)))
    parent = _nested(spans, group)
    _, transaction = np.unique(group, return_inverse=True)
    return Joined(parent, transaction.astype(np.int64), int((~known).sum()))


def _nested(spans: pl.DataFrame, group: Integers) -> Integers:
    """Return an array: for each span the row of its inferred parent, or −1.

    Parents are inferred from times. Only spans with equal numbers in ``group`` can be parent and
    child.
    """
    start, end = spans["start_ns"].to_numpy(), spans["end_ns"].to_numpy()
    named = spans.select(pl.coalesce("instance", "service").fill_null("").alias("node"))["node"]
    node = named.rank("dense").to_numpy().astype(np.int64).tolist()
    order = np.lexsort((np.arange(len(start)), -end, start, group))
    parent = np.full(len(start), -1, np.int64)
    starts, ends, groups = start.tolist(), end.tolist(), group.tolist()
    open_spans: list[int] = []
    here: int | None = None
    for row in order.tolist():
        if groups[row] != here:
            open_spans, here = [], groups[row]
        now = starts[row]
        open_spans = [each for each in open_spans if ends[each] >= now][-MOST_CANDIDATES:]
        inside = [each for each in open_spans if ends[each] >= ends[row]]
        own = [each for each in open_spans if node[each] == node[row]]
        chosen = [each for each in own if ends[each] >= ends[row]] or own or inside or open_spans
        if chosen:
            parent[row] = chosen[-1]
        open_spans.append(row)
    return parent


def stitch(spans: pl.DataFrame, rules: list[Rule]) -> Joined:
    """Return the inferred parents of spans by ``rules``, and the transactions that they form."""
    parent = np.full(spans.height, -1, np.int64)
    for rule in rules:
        _apply(spans, rule, parent)
    return Joined(parent, transactions(parent))


def _apply(spans: pl.DataFrame, rule: Rule, parent: Integers) -> None:
    """Find parents by one rule for spans that have none yet, and store them in ``parent``.

    ``parent`` is an array of rows, −1 for no parent; it is changed in place.
    """
    above = pl.concat_list([_value(name, rule.strip) for name in rule.match])
    below = pl.concat_list([_value(name, rule.strip) for name in rule.match.values()])
    keys = spans.select(above.alias("above"), below.alias("below"))
    both = pl.concat([keys["above"], keys["below"]]).rechunk()
    complete = pl.DataFrame({"key": both}).select(
        pl.col("key").list.eval(pl.element().is_not_null().all()).list.first()
    )
    numbers = both.list.join("\x1f").rank("dense").fill_null(0).to_numpy().astype(np.int64)
    numbers = np.where(complete["key"].fill_null(False).to_numpy(), numbers, -1)
    parent_key, child_key = numbers[: spans.height], numbers[spans.height :]
    differ = [
        spans.select(_value(n, "").rank("dense").fill_null(0).alias("n"))["n"].to_numpy()
        for n in rule.differ
    ]
    start, end = spans["start_ns"].to_numpy(), spans["end_ns"].to_numpy()
    order = np.lexsort((np.arange(len(start)), -end, start))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    from_ns = end if rule.order == "after" else start
    groups: dict[int, list[int]] = {}
    for row in np.lexsort((rank, from_ns)).tolist():
        if parent_key[row] >= 0:
            groups.setdefault(int(parent_key[row]), []).append(row)
    times = {key: from_ns[rows].tolist() for key, rows in groups.items()}
    taken: set[int] = set()
    for row in order.tolist():
        rows = groups.get(int(child_key[row]))
        if parent[row] >= 0 or rows is None:
            continue
        last = bisect_right(times[int(child_key[row])], start[row])
        for each in reversed(rows[max(0, last - MOST_CANDIDATES) : last]):
            if rule.within_ns is not None and start[row] - from_ns[each] > rule.within_ns:
                break
            if rank[each] >= rank[row] or each in taken:
                continue
            if rule.order == "inside" and end[each] < end[row]:
                continue
            if any(column[each] == column[row] for column in differ):
                continue
            parent[row] = each
            if rule.once:
                taken.add(each)
            break


def _value(name: str, strip: str) -> pl.Expr:
    """Return an expression for the text of the attribute ``name``; null if missing or empty.

    ``strip`` is a regular expression whose matches are removed; if it is empty, nothing is removed.
    """
    if name.startswith("attributes."):
        key = name.removeprefix("attributes.")
        value = pl.col("attributes").str.json_path_match(f"$['{key}']")
    else:
        value = pl.col(name).cast(pl.String)
    if strip:
        value = value.str.replace_all(strip, "")
    return pl.when(value.str.len_bytes() > 0).then(value)


def check_field(name: object) -> str:
    """Return a text that says what is wrong with the name of an attribute; empty if it is valid."""
    if not isinstance(name, str) or not name:
        return "the name of an attribute is expected, as a text that is not empty"
    if name in _FIELDS:
        return ""
    if name.startswith("attributes.") and len(name) > 11 and "'" not in name and "\\" not in name:
        return ""
    return f"expected a column of spans ({', '.join(_FIELDS[2:7])}, …) or attributes.NAME"


@dataclass
class _Check:
    problems: list[Problem] = field(default_factory=list)

    def wrong(self, path: str, value: object, message: str) -> None:
        """Add an error to the list: setting ``path`` has a wrong ``value``."""
        self.problems.append(
            {"path": path, "value": clean(repr(value), 80), "message": message, "hint": None}
        )


def read_rules(path: Path) -> list[Rule]:
    """Return the rules of stitching in a TOML file.

    Raises ``InputError`` if the file cannot be read, and ``ProblemsError`` with all errors in its
    rules.
    """
    if not path.is_file():
        raise InputError(f"{path}: the file of stitching rules does not exist")
    if path.stat().st_size > _MOST_RULES_BYTES:
        raise InputError(
            f"{path}: is larger than {_MOST_RULES_BYTES:,} bytes, the limit for a file "
            "of stitching rules"
        )
    try:
        tree = tomllib.loads(path.read_text("utf-8", errors="replace"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{path}: is not valid TOML: {clean(str(error), 120)}") from None
    check = _Check()
    for name in tree:
        if name != "stitch":
            check.wrong(name, tree[name], "expected only tables [[stitch]]")
    tables = tree.get("stitch")
    if not isinstance(tables, list) or not tables:
        check.wrong("stitch", tables, "expected at least one table [[stitch]]")
        tables = []
    rules = [_rule(table, f"stitch[{n}]", check) for n, table in enumerate(tables)]
    if check.problems:
        raise ProblemsError(check.problems)
    return rules


def _rule(table: Any, path: str, check: _Check) -> Rule:
    known = ("match", "differ", "order", "within", "strip", "once")
    if not isinstance(table, dict):
        check.wrong(path, table, "expected a table")
        return Rule({})
    for name in table:
        if name not in known:
            check.wrong(f"{path}.{name}", table[name], f"expected one of {', '.join(known)}")
    match = table.get("match")
    if not isinstance(match, dict) or not match:
        check.wrong(
            f"{path}.match",
            match,
            "expected a table of pairs: attribute of the parent = attribute of the child",
        )
        match = {}
    differ = table.get("differ", [])
    if not isinstance(differ, list):
        check.wrong(f"{path}.differ", differ, "expected a list of attributes")
        differ = []
    for name in (*match, *match.values(), *differ):
        if said := check_field(name):
            check.wrong(f"{path}.match" if name not in differ else f"{path}.differ", name, said)
    order = table.get("order", "inside")
    if order not in _ORDERS:
        check.wrong(f"{path}.order", order, f"expected one of {', '.join(_ORDERS)}")
    strip = table.get("strip", "")
    try:
        pl.Series([""]).str.replace_all(strip, "")
    except (pl.exceptions.PolarsError, TypeError):
        check.wrong(f"{path}.strip", strip, "expected a regular expression")
    once = table.get("once", False)
    if not isinstance(once, bool):
        check.wrong(f"{path}.once", once, "expected true or false")
    within = _length(table.get("within"), f"{path}.within", check)
    return Rule(match, tuple(differ), order, within, strip, once)


def _length(value: object, path: str, check: _Check) -> int | None:
    if value is None:
        return None
    number, _, unit = str(value).strip().partition(" ")
    try:
        length = float(number) * _UNITS[unit.strip()]
        if not 0 <= length < 1e18:
            raise ValueError
    except (ValueError, KeyError):
        check.wrong(path, value, "expected a time with a unit (ns, us, ms, s or min), such as 5 ms")
        return None
    return round(length)
