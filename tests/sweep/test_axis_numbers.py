"""Settings with units as numbers: in the tables of sweeps, beside the texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import eastwest as ew
from eastwest.sweep.tables import setting_columns
from eastwest.sweep.values import labels, numbers
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


def test_tables_have_a_column_for_each_key_and_cases_have_one() -> None:
    red = {"kind": "red", "min": "20 packets"}
    rows = {0: ({"kind": "drop-tail"}, 1), 1: (red, 1)}
    table = setting_columns(["q", "n"], rows, [["tail", "early"], ["a", "b"]])
    assert table.columns == [
        "point", "case", "case_2", "q", "q.kind", "q.min", "q.min_packets", "n",
    ]  # fmt: skip
    assert table["case"].to_list() == ["tail", "early"]
    assert table["q.kind"].to_list() == ["drop-tail", "red"]
    assert table["q.min"].to_list() == [None, "20 packets"]
    assert table["q.min_packets"].to_list() == [None, 20.0]
    many = {f"k{number}": number for number in range(51)}
    assert setting_columns(["q"], {0: (many,)}).columns == ["point", "q"]


def test_the_files_of_a_sweep_have_the_names_of_cases(fake: FakeCore) -> None:
    named = {"path": "a", "values": [1, 2], "names": ["one", "two"]}
    axes = [named, {"path": "b", "values": [5, 6]}]
    spec = {"sweep": 1, "scenario": "x.toml", "seeds": 2, "axis": axes}
    found = ew.sweep(spec, jobs=0, out="s", store="store")
    for table in (found.runs, found.points, found.comparisons):
        pairs = set(table.select("point", "case", "a").iter_rows())
        assert pairs <= {(0, "one", 1), (1, "one", 1), (2, "two", 2), (3, "two", 2)}
        assert len(pairs) >= 3 and "case" not in set(found.points["metric"])


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (["20 packets", 3], ["20 packets", "3"]),
        ([{"kind": "a"}, {"kind": "b", "x": 1}], ["a", "b"]),
        ([{"kind": "a", "x": 1, "y": {"z": 2}}, {"kind": "a", "x": 1}], ["a, z 2", "a"]),
        ([{"x": 1}, {"x": 2}, "none"], ["x 1", "x 2", "none"]),
        ([{"kind": "a"}, "a"], ['{ "kind" = "a" }', "a"]),
    ],
)
def test_labels_of_tables_have_what_differs(values: list[Any], found: list[str]) -> None:
    assert labels(values) == found
