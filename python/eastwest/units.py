"""Texts for people: numbers with a suitable unit, and untrusted text without control characters.

A number that is missing or not finite is shown as a dash (``–``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

_BYTES = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
_RATES = ((1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s"))
_COUNTS = ((1e9, " billion"), (1e6, " million"))
#: Formats of long durations: least duration in s, smaller unit in s, number of smaller units in the
#: larger unit, and names of the larger and the smaller unit.
_LONG_SPANS = (
    (86_399.5, 3600, 24, "d", "h"),
    (3599.5, 60, 60, "h", "min"),
    (120, 1, 60, "min", "s"),
)
_DASH = "–"
_TIER_WORDS = {
    "host-up": "hosts to switches",
    "host-down": "switches to hosts",
    "leaf-up": "leaves to spines",
    "leaf-down": "spines to leaves",
    "edge-up": "edge to aggregation",
    "edge-down": "aggregation to edge",
    "agg-up": "aggregation to core",
    "agg-down": "core to aggregation",
    "switch": "between switches",
}


def _digits(value: float) -> str:
    """Return a number with three significant digits, from 1000 on with all digits before the point.

    The text has no exponent and no trailing zeros.
    """
    if value == 0:
        return "0"
    if abs(value) >= 999.5:
        return f"{value:,.0f}"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scaled(value: float | None, scale: Sequence[tuple[float, str]]) -> str:
    if value is None or not math.isfinite(value):
        return _DASH
    for factor, unit in scale:
        if abs(value) >= factor * 0.9995:
            return f"{_digits(value / factor)} {unit.strip()}"
    return f"{_digits(value / scale[-1][0])} {scale[-1][1].strip()}"


def size(value_bytes: float | None) -> str:
    """Return a number of bytes as text, in powers of 1000: ``1.5 GB``."""
    return _scaled(value_bytes, _BYTES)


def exact_size(value_bytes: float) -> str:
    """Return a number of bytes as text, such as ``256 KiB`` or ``1.5 MB``.

    The unit is KiB if the number is a multiple of 1024 and not of 1000.
    """
    if value_bytes % 1000 and value_bytes % 1024 == 0:
        return f"{value_bytes / 1024:,.0f} KiB"
    return size(value_bytes)


def rate(bits_per_s: float | None) -> str:
    """Return a rate in bit/s as text: ``9.41 Gbit/s``."""
    return _scaled(bits_per_s, _RATES)


def count(value: float | None) -> str:
    """Return a number of things as text: ``1,234`` or ``25.1 million``."""
    if value is None or not math.isfinite(value):
        return _DASH
    if abs(value) < 1e6:
        return f"{value:,.0f}" if float(value).is_integer() else _digits(value)
    return _scaled(value, _COUNTS)


def plural(number: float | None, one: str, many: str = "") -> str:
    """Return a number and its noun: ``1 flow``, ``2 flows``; ``many`` is by default ``one`` + s."""
    return f"{count(number)} {agree(number, one, many)}"


def agree(number: float | None, one: str, many: str = "") -> str:
    """Return the word that agrees with a number; ``many`` is by default ``one`` + s."""
    return one if number == 1 else many or f"{one}s"


def span(seconds: float | None) -> str:
    """Return a duration in s as text, from nanoseconds to days: ``153 µs``, ``4 h 0 min``."""
    if seconds is None or not math.isfinite(seconds):
        return _DASH
    if seconds == 0:
        return "0 s"
    for least, small, per, big_name, small_name in _LONG_SPANS:
        if abs(seconds) >= least:
            whole = round(seconds / small)
            rest = f" {whole % per} {small_name}" if whole % per else ""
            return f"{whole // per} {big_name}{rest}"
    return _scaled(seconds, ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")))


def joules(energy_j: float | None) -> str:
    """Return an energy in J as text: ``1.2 kJ``."""
    if energy_j == 0:
        return "0 J"
    return _scaled(energy_j, ((1e6, "MJ"), (1e3, "kJ"), (1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ")))


def watts(power_w: float | None) -> str:
    """Return a power in W as text: ``1.2 kW``."""
    if power_w == 0:
        return "0 W"
    return _scaled(power_w, ((1e6, "MW"), (1e3, "kW"), (1.0, "W"), (1e-3, "mW"), (1e-6, "µW")))


def percent(share: float | None) -> str:
    """Return a share (0 to 1) as a percentage: ``12.5 %``."""
    if share is None or not math.isfinite(share):
        return _DASH
    return f"{_digits(100 * share)} %"


def clean(text: str, limit: int = 200) -> str:
    """Return untrusted text, with control characters replaced, cut to ``limit`` characters."""
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def tier_words(tier: str) -> str:
    """Return words for a tier of links, such as ``hosts to switches`` for ``host-up``."""
    return _TIER_WORDS.get(tier, clean(tier, 40))
