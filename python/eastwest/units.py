"""Numbers and names as people read them: values with units that suit them, untrusted text."""

from __future__ import annotations

import math
from collections.abc import Sequence

_BYTES = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
_RATES = ((1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s"))
_COUNTS = ((1e9, " billion"), (1e6, " million"))
#: From how many seconds, seconds in the smaller unit, how many of it make the larger, names.
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
    """Three significant digits, without an exponent or idle zeros; from 1000 on, whole numbers."""
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
    """Bytes, in powers of a thousand: ``1.5 GB``."""
    return _scaled(value_bytes, _BYTES)


def rate(bits_per_s: float | None) -> str:
    """Bits per second: ``9.41 Gbit/s``."""
    return _scaled(bits_per_s, _RATES)


def count(value: float | None) -> str:
    """A number of things: ``1,234`` or ``25.1 million``."""
    if value is None or not math.isfinite(value):
        return _DASH
    if abs(value) < 1e6:
        return f"{value:,.0f}" if float(value).is_integer() else _digits(value)
    return _scaled(value, _COUNTS)


def span(seconds: float | None) -> str:
    """A length of time, from nanoseconds to days: ``153 µs``, ``4 h 0 min``."""
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
    """An energy: ``1.2 kJ``."""
    if energy_j == 0:
        return "0 J"
    return _scaled(energy_j, ((1e6, "MJ"), (1e3, "kJ"), (1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ")))


def watts(power_w: float | None) -> str:
    """A power: ``1.2 kW``."""
    if power_w == 0:
        return "0 W"
    return _scaled(power_w, ((1e6, "MW"), (1e3, "kW"), (1.0, "W"), (1e-3, "mW"), (1e-6, "µW")))


def percent(share: float | None) -> str:
    """A share of one as a percentage: ``12.5 %``."""
    if share is None or not math.isfinite(share):
        return _DASH
    return f"{_digits(100 * share)} %"


def clean(text: str, limit: int = 200) -> str:
    """Untrusted text without control characters, at most ``limit`` characters long."""
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def tier_words(tier: str) -> str:
    """Name a tier of links by what it joins."""
    return _TIER_WORDS.get(tier, clean(tier, 40))
