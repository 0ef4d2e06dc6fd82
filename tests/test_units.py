"""Numbers in the form in which people read them."""

import math

import pytest

from eastwest import units


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 s"),
        (1.5e-9, "1.5 ns"),
        (0.000153, "153 µs"),
        (0.9999, "1 s"),
        (41.234, "41.2 s"),
        (119, "119 s"),
        (120, "2 min"),
        (190, "3 min 10 s"),
        (3599.9, "1 h"),
        (14_400, "4 h"),
        (90_000, "1 d 1 h"),
        (math.nan, "–"),
        (None, "–"),
    ],
)
def test_span(value: float | None, text: str) -> None:
    assert units.span(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (1.234e9, "1.23 GB"), (5e19, "50,000 PB")],
)
def test_size(value: float, text: str) -> None:
    assert units.size(value) == text


def test_sizes_in_powers_of_1024() -> None:
    sizes = (262_144, 65_536, 64_000, 1_024_000, 1500)
    assert [units.exact_size(one) for one in sizes] == [
        "256 KiB", "64 KiB", "64 kB", "1.02 MB", "1.5 kB",
    ]  # fmt: skip


def test_rate_count_percent() -> None:
    assert units.rate(9.41e9) == "9.41 Gbit/s"
    assert units.count(1234) == "1,234"
    assert units.count(25_123_456) == "25.1 million"
    assert units.percent(0.125) == "12.5 %"
    assert units.percent(math.inf) == "–"


def test_control_characters_of_untrusted_text_are_shown_as_such() -> None:
    assert units.clean("a\x1b[31mb\n") == "a\ufffd[31mb\ufffd"
    assert len(units.clean("x" * 1000)) == 200
