"""Values of an axis: ranges and samples between two bounds that may have units.

The bounds of a range may have different units of one kind (``"64 KB"`` to ``"1 MB"``). The values
have the unit of the lower bound and six significant digits. Sizes and packets are rounded to whole
bytes and packets; values without a unit are rounded to whole numbers if both bounds are whole.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from eastwest.reader import flat
from eastwest.run import Setting

#: Units of time as multiples of 1 ps, the smallest unit of this kind.
_TIMES = {
    "ps": 1, "ns": 10**3, "us": 10**6, "µs": 10**6, "ms": 10**9, "s": 10**12,
    "min": 60 * 10**12, "h": 3600 * 10**12,
}  # fmt: skip
_RATES = {
    f"{letter}{unit}": factor
    for letter, factor in (("", 1), ("k", 10**3), ("M", 10**6), ("G", 10**9), ("T", 10**12))
    for unit in ("bit/s", "bps", "b/s")
}
_BYTE_RATES = {"B/s": 1, "KB/s": 10**3, "MB/s": 10**6, "GB/s": 10**9}
_SIZES = {
    "B": 1, "KB": 10**3, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip
_ENERGIES = {"uJ": 1, "mJ": 10**3, "J": 10**6, "kJ": 10**9, "MJ": 10**12}
_PACKETS = {"packets": 1}
_SHARES = {"%": 1}
_KINDS = {
    "time": _TIMES,
    "rate": _RATES,
    "byte rate": _BYTE_RATES,
    "size": _SIZES,
    "energy": _ENERGIES,
    "packets": _PACKETS,
    "share": _SHARES,
}
_QUANTITY = re.compile(r"\s*([-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d{1,2})?)\s*(\S*)\s*")


@dataclass(frozen=True)
class Bound:
    """One end of a range: ``number`` in the smallest unit of its kind; ``unit`` in the file."""

    number: Fraction
    unit: str
    #: Kind of the unit, such as ``time``; ``whole`` or ``number`` for a bound without a unit.
    kind: str
    #: The bound as the file has it: a text with a unit, or a number.
    given: Setting

    @staticmethod
    def read(value: object) -> Bound | None:
        """Return the bound for a TOML number or a text with a unit; None for any other value."""
        if type(value) is int:
            return Bound(Fraction(value), "", "whole", value)
        if type(value) is float and math.isfinite(value):
            return Bound(Fraction(value), "", "number", value)
        match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            return None
        number, unit = Fraction(match[1]), match[2]
        for kind, units in _KINDS.items():
            if unit in units:
                return Bound(number * units[unit], unit, kind, match[0].strip())
        return None


def unit_size(bound: Bound) -> Fraction:
    """Return the unit of a bound as a multiple of the smallest unit of its kind; 1 without one."""
    return Fraction(_KINDS.get(bound.kind, {}).get(bound.unit, 1))


def units_like(quantity: str) -> list[str]:
    """Return the units in which a quantity can be written: for ``64 KB`` all units of sizes.

    Only one of the units with equal sizes is in the list, and for ``packets`` also sizes.
    """
    bound = Bound.read(quantity)
    found: dict[int, str] = {}
    for unit, factor in _KINDS.get(bound.kind if bound else "", {}).items():
        found.setdefault(factor, unit)
    return [*found.values(), *(units_like("1 B") if bound and bound.kind == "packets" else ())]


#: For each kind of unit: (ending of the names of columns in tables, unit of these columns as a
#: multiple of the smallest unit of the kind).
_COLUMNS = {
    "time": ("_s", _TIMES["s"]),
    "rate": ("_bps", 1),
    "byte rate": ("_bytes_per_s", 1),
    "size": ("_bytes", 1),
    "packets": ("_packets", 1),
    "share": ("_percent", 1),
}


def numbers(values: Sequence[Any]) -> tuple[str, list[float]] | None:
    """Return (suffix, numbers): an ending with a unit, such as ``_s``, and values in this unit.

    The suffix is the ending of the name of a column with these numbers. It is empty if all values
    are numbers. Returns None if only some values have units, or a value is neither a number nor a
    text with a unit, or the units are of several kinds (``20 packets``, ``64 KB``).
    """
    if values and all(type(value) in {int, float} for value in values):
        return "", [float(value) for value in values]
    read = [Bound.read(value) for value in values if isinstance(value, str)]
    bounds = [bound for bound in read if bound is not None]
    kinds = {bound.kind for bound in bounds}
    if len(bounds) < len(values) or len(kinds) != 1 or not kinds <= {*_COLUMNS}:
        return None
    end, factor = _COLUMNS[kinds.pop()]
    return end, [float(bound.number / factor) for bound in bounds]


def same_kind(low: Bound, high: Bound) -> bool:
    """Whether two bounds can be the ends of one range: units of one kind, or both no unit."""
    return low.kind == high.kind or {low.kind, high.kind} == {"whole", "number"}


def between(
    low: Bound, high: Bound, shares: Iterable[float], log: bool, digits: int = 6
) -> list[Setting]:
    """Return the values of a range at ``shares`` of the way: 0 is ``low``, 1 is ``high``.

    With ``log``, the scale is logarithmic. Values are rounded to ``digits`` significant digits and
    have the unit of ``low``.
    """
    values: list[Setting] = []
    for share in shares:
        if share <= 0 or share >= 1:
            values.append((low if share <= 0 else high).given)
            continue
        if log:
            exponent = math.log(low.number) * (1 - share) + math.log(high.number) * share
            number = Fraction(math.exp(exponent))
        else:
            number = low.number + Fraction(share) * (high.number - low.number)
        values.append(_show(number, low, high, digits))
    return values


def evenly(count: int) -> list[float]:
    """Return ``count`` numbers from 0 to 1 at equal distances; for one number, 0."""
    return [0.0] if count == 1 else [i / (count - 1) for i in range(count)]


def sample(kind: str, count: int, dimensions: int, seed: int) -> list[Sequence[float]]:
    """Return ``count`` points of the unit cube, each with ``dimensions`` coordinates from 0 to 1.

    ``kind`` is ``sobol`` (a scrambled Sobol sequence) or ``random``. With a larger ``count``, the
    first points are equal.
    """
    import numpy as np  # noqa: PLC0415  large

    if kind == "random":
        # Row by row, so that the first rows do not depend on the number of rows.
        rows = np.random.Generator(np.random.PCG64(seed)).random((count, dimensions))
    else:
        from scipy.stats import qmc  # noqa: PLC0415  slow to load

        sobol = qmc.Sobol(dimensions, scramble=True, rng=np.random.default_rng(seed))
        rows = sobol.random_base2(max(0, (count - 1).bit_length()))[:count]
    return [[float(x) for x in row] for row in rows]


def _show(number: Fraction, low: Bound, high: Bound, digits: int) -> Setting:
    kind, unit = low.kind, low.unit
    if kind == "whole" and high.kind == "whole":
        return round(number)
    if kind in {"whole", "number"}:
        return float(f"{float(number):.{digits}g}")
    factor = _KINDS[kind][unit]
    rounded = Fraction(f"{float(number / factor):.{digits}g}") * factor
    if kind in {"packets", "size"}:
        whole = round(rounded)
        if whole % factor:
            return f"{whole} {'packets' if kind == 'packets' else 'B'}"
        return f"{whole // factor} {unit}"
    if unit in {"min", "h"}:  # 1 s is 1/60 min, which has no finite decimal expansion
        unit, factor = "s", _TIMES["s"]
    exact = rounded if kind == "share" else Fraction(round(rounded))
    shown = Decimal(exact.numerator) / Decimal(exact.denominator * factor)
    written = f"{shown:f}"
    return f"{written.rstrip('0').rstrip('.') if '.' in written else written} {unit}"


def text(value: Any) -> str:
    """Return the value of a setting as text, in the form of ``--set PATH=VALUE``."""
    if isinstance(value, str):
        return value
    return toml(value)


def told_settings(settings: object) -> str:
    """Return settings by path as text: ``fabric.mtu = 9000, seed = 2``."""
    if not isinstance(settings, Mapping):
        return ""
    return ", ".join(f"{path} = {text(value)}" for path, value in settings.items())


def labels(values: Sequence[Any]) -> list[str]:
    """Return a short text for each value of an axis; different values have different texts.

    The text of a table is its ``kind``, followed by the keys whose values differ between tables of
    this kind: ``drop-tail``, ``codel, target 500 us``, ``codel, target 1 ms``.
    """
    tables = [flat(value) if isinstance(value, Mapping) and value else None for value in values]
    different = _different([table for table in tables if table is not None])
    found = []
    for value, table in zip(values, tables, strict=True):
        if table is None:
            found.append(text(value))
            continue
        parts = [text(table["kind"])] if "kind" in table else []
        parts += [
            f"{key.rpartition('.')[2]} {text(table[key])}"
            for key in table
            if key != "kind" and (_kind(table), key) in different
        ]
        found.append(", ".join(parts) or text(value))
    return found if len({*found}) == len(found) else [text(value) for value in values]


def _kind(table: Mapping[str, Any]) -> str:
    """Return the value of the key ``kind`` of a table as text; empty if the key is absent."""
    return text(table["kind"]) if "kind" in table else ""


def _different(tables: Sequence[Mapping[str, Any]]) -> set[tuple[str, str]]:
    """Return (kind, key) of each key whose values differ between tables of one ``kind``.

    A key that only some tables of a kind have is included.
    """
    number = Counter(map(_kind, tables))
    held = Counter((_kind(table), key) for table in tables for key in table)
    first: dict[tuple[str, str], Any] = {}
    different = {at for at, times in held.items() if times < number[at[0]]}
    for table in tables:
        kind = _kind(table)
        for key, value in table.items():
            if first.setdefault((kind, key), value) != value:
                different.add((kind, key))
    return different


def toml(value: Any) -> str:
    """Return a value as TOML, on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        inner = ", ".join(f"{json.dumps(str(k))} = {toml(v)}" for k, v in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, Sequence):
        return f"[{', '.join(toml(v) for v in value)}]"
    return str(value)
