"""Settings with units as numbers: in the tables of sweeps, beside the texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import eastwest as ew
from eastwest.sweep.tables import setting_columns
from eastwest.sweep.values import numbers
from fake_core import FakeCore


@pytest.mark.parametrize(
    ("values", "end", "found"),
    [
        (["20 packets", "65 packets"], "_packets", [20.0, 65.0]),
        (["64 KB", "1 MB", "2 KiB"], "_bytes", [64e3, 1e6, 2048.0]),
        (["10 us", "1.5 ms", "2 min"], "_s", [1e-5, 1.5e-3, 120.0]),
        (["10 Gbit/s", "2.5Gbps"], "_bps", [1e10, 2.5e9]),
        (["100 MB/s"], "_bytes_per_s", [1e8]),
        (["10 %", "2.5%"], "_percent", [10.0, 2.5]),
        ([1, 2.5], "", [1.0, 2.5]),
    ],
)
def test_values_of_one_kind_are_numbers(values: list[Any], end: str, found: list[float]) -> None:
    assert numbers(values) == (end, found)


@pytest.mark.parametrize(
    "values",
    [
        [],
        ["20 packets", "64 KB"],
        ["20 packets", "none"],
        ["20 packets", 20],
        ["red", "dctcp"],
        ["20 parsecs"],
        [True, False],
        [{"kind": "red"}],
        ["7", "8"],
    ],
)
def test_other_values_are_not(values: list[Any]) -> None:
    assert numbers(values) is None


def test_a_column_of_numbers_stands_beside_the_texts() -> None:
    rows = {0: ("20 packets", 1, "red"), 1: ("65 packets", 2, "red")}
    table = setting_columns(["q.limit", "n", "q.kind"], rows)
    assert table.schema == {
        "point": pl.UInt32,
        "q.limit": pl.String,
        "q.limit_packets": pl.Float64,
        "n": pl.Int64,
        "q.kind": pl.String,
    }
    assert table["q.limit"].to_list() == ["20 packets", "65 packets"]
    assert table["q.limit_packets"].to_list() == [20.0, 65.0]
    clash = setting_columns(["q", "q_packets"], {0: ("20 packets", 7)})
    assert clash.columns == ["point", "q", "q_packets"]
    assert clash["q_packets"].to_list() == [7]


def test_all_tables_of_a_sweep_have_the_numbers(fake: FakeCore) -> None:
    axes = {"fabric.queue.limit": ["20 packets", "65 packets"]}
    found = ew.sweep("x.toml", axes, seeds=2, jobs=0, out="s", store="store")
    for table in (found.runs, found.points, found.comparisons):
        assert set(table["fabric.queue.limit_packets"]) <= {20.0, 65.0}
        assert set(table["fabric.queue.limit"]) <= {"20 packets", "65 packets"}
    low = found.runs.filter(pl.col("fabric.queue.limit_packets") < 50)
    assert low.height == 2
    # The column of numbers of a setting is neither a metric nor an axis.
    assert "fabric.queue.limit_packets" not in set(found.points["metric"])
    assert found.axes == ["fabric.queue.limit"]
    assert Path("s/runs.parquet").is_file()
