"""Analytic models against the numbers that their sources print, and what they refuse."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eastwest.cli import app
from eastwest.models import incast

#: Table 1 of the incast study.
TABLE_1 = {
    16_000: [1448, 2896, 5792, 5864],
    32_000: [1448, 2896, 5792, 11_584, 10_280],
    64_000: [1448, 2896, 5792, 11_584, 23_168, 19_112],
    128_000: [1448, 2896, 5792, 11_584, 23_168, 46_336, 36_776],
}


@pytest.mark.parametrize("block_bytes", TABLE_1)
def test_windows_are_those_of_table_1(block_bytes: int) -> None:
    assert incast.slow_start_windows(block_bytes) == TABLE_1[block_bytes]


def test_onsets_are_those_of_the_text() -> None:
    # 128 KB: the text has 2, which its own equation does not give.
    found = [incast.onset_senders(65_536, block_bytes) for block_bytes in TABLE_1]
    assert found == [13, 7, 4, 3]
    assert incast.onset_senders(64_000, 16_000) == 12
    assert incast.onset_senders(4096, 256_000) == 2
    assert incast.onset(65_536, 5864) == pytest.approx(12.176, abs=0.001)


def test_goodput_before_and_after() -> None:
    # One sender of 16 KB: 128 kbit in 1 ms and 0.128 ms; with a timeout, in 201.128 ms.
    assert incast.goodput_before(1, 16_000) == pytest.approx(128e3 / 1.128e-3)
    assert incast.goodput_after(1, 16_000) == pytest.approx(128e3 / 0.201128)
    assert incast.goodput_before(48, 64_000_000) == pytest.approx(1e9, rel=1e-3)
    assert incast.goodput_partial(8, 1_024_000, 1) == incast.goodput_after(8, 1_024_000)
    assert incast.goodput_partial(8, 1_024_000, 0) == incast.goodput_before(8, 1_024_000)
    for alpha in (0.6, 0.8, 1.5):
        goodput = incast.goodput_partial(5, 512_000, alpha)
        assert incast.alpha_of(goodput, 5, 512_000) == pytest.approx(alpha)
    assert incast.goodput(12, 16_000) == incast.goodput_before(12, 16_000)
    assert incast.goodput(13, 16_000) == incast.goodput_after(13, 16_000)


def test_overhead_of_a_job() -> None:
    assert incast.overhead(150, 100) == pytest.approx(0.5)


def test_what_the_equations_do_not_describe_is_refused() -> None:
    for wrong in (
        lambda: incast.goodput_before(0, 16_000),
        lambda: incast.goodput_before(math.nan, 16_000),
        lambda: incast.goodput_before(1, 0),
        lambda: incast.goodput_before(1, 16_000, rtt_s=-1),
        lambda: incast.goodput_before(1, 16_000, link_bps=0),
        lambda: incast.goodput_after(1, 16_000, rto_s=0),
        lambda: incast.goodput_partial(1, 16_000, -0.1),
        lambda: incast.goodput_partial(1, 16_000, math.inf),
        lambda: incast.alpha_of(0, 1, 16_000),
        lambda: incast.onset(0, 5864),
        lambda: incast.onset(65_536, 0),
        lambda: incast.slow_start_windows(0),
        lambda: incast.slow_start_windows(16_000, 0),
        lambda: incast.overhead(1, 0),
    ):
        with pytest.raises(ValueError, match=r"must be|needed"):
            wrong()


def test_the_command_prints_writes_and_draws(tmp_path: Path) -> None:
    table, plot = tmp_path / "m.csv", tmp_path / "m.svg"
    arguments = ["model", "incast", "--senders", "1-13", "--csv", str(table), "--plot", str(plot)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0
    for onset in ("13", "7", "4"):
        assert f" {onset} " in done.stdout
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert len(rows) == 4 * 13 and float(rows[0]["before_bps"]) == incast.goodput_before(1, 16_000)
    assert plot.read_text().startswith("<?xml")
    done = CliRunner().invoke(
        app, ["model", "incast", "--block", "512 KB", "--alpha", "0.8", "--json"]
    )
    shown = json.loads(done.stdout)
    assert shown[0]["partial_bps"] == incast.goodput_partial(1, 512_000, 0.8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--senders", "0"], "at least one sender"),
        (["--rto", "0 s"], "the retransmission timeout must be more than 0"),
        (["--senders", "a"], "must be numbers"),
        (["--senders", "1-1000000000"], "more than 100,000"),
        (["--rtt", "1 KB"], "must be a time"),
        (["--buffer", "0 B"], "the buffer must be more than 0"),
        (["--plot", "x.doc"], "the name of a picture ends with"),
    ],
)
def test_the_command_refuses_clearly(arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["model", "incast", *arguments])
    assert done.exit_code == 2 and message in done.stderr
