"""Metrics selected from many files, locally and on a real Dask cluster: results are identical."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from dask_cluster import LocalCluster, cluster
from eastwest.cli import app
from eastwest.errors import InputError
from eastwest.observe import metrics, parts, spread
from eastwest.observe.mrmr import Scheme
from eastwest.observe.select import Method, Selection, Wanted, select

pytestmark = pytest.mark.slow

ROWS, COLUMNS = 900, 23
TARGET = "slow[p99]"


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Start a scheduler with two workers."""
    with cluster(tmp_path_factory.mktemp("dask"), 2) as found:
        found.wait_for_workers(2)
        yield found


@pytest.fixture(scope="module")
def whole() -> pl.DataFrame:
    """Return causes that precede the target, copies, noise, whole numbers, gaps, a constant.

    The target is the last column.
    """
    random = np.random.default_rng(3)
    cause = random.normal(size=(3, ROWS))
    target = cause[0] + 0.5 * np.roll(cause[1], 3) + 0.2 * random.normal(size=ROWS)
    columns = {"time": np.arange(ROWS) * 15.0}
    for number in range(COLUMNS):
        noise = random.normal(size=ROWS) * (1 + number % 5)
        columns[f"m{number}"] = cause[number % 3] * (number % 4) + noise
    columns["whole"] = np.floor(cause[0] * 2)
    columns["same"] = target
    columns["fixed"] = np.full(ROWS, 7.0)
    gaps = cause[1].copy()
    gaps[random.random(ROWS) < 0.1] = np.nan
    columns["gaps"] = gaps
    mostly = cause[2].copy()
    mostly[random.random(ROWS) < 0.5] = np.nan
    columns["mostly"] = mostly
    target = target.copy()
    target[100:104] = np.nan
    columns[TARGET] = target
    return pl.DataFrame(columns)


@pytest.fixture(scope="module")
def folder(whole: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the table as five files of two formats.

    Columns and days are in another order in each.
    """
    made = tmp_path_factory.mktemp("days")
    random = np.random.default_rng(4)
    cuts = [0, 200, 210, 500, 700, ROWS]
    for number, name in enumerate(("b.csv", "a.parquet", "d.csv", "c.parquet", "e.parquet")):
        order = [whole.columns[i] for i in random.permutation(len(whole.columns))]
        if name == "a.parquet":  # The first file by name determines the order of columns.
            order = whole.columns
        part = whole[cuts[number] : cuts[number + 1]].select(order).fill_nan(None)
        if name.endswith(".csv"):
            part.write_csv(made / name)
        else:
            part.write_parquet(made / name)
    (made / "README").write_text("not a table")
    return made


def as_one(whole: pl.DataFrame, folder: Path) -> metrics.Metrics:
    """Return the metrics from one file, by the reader of single files."""
    path = folder.parent / "whole.csv"
    whole.fill_nan(None).write_csv(path)
    return metrics.read(path)


def same(found: Selection, expected: Selection) -> None:
    assert asdict(found) == asdict(expected)  # Floats are also compared exactly.


def test_many_files_are_one_table(whole: pl.DataFrame, folder: Path) -> None:
    table = parts.look(parts.find(folder)).read()
    expected = as_one(whole, folder)
    assert table.names == expected.names
    assert np.array_equal(table.values, expected.values, equal_nan=True)
    assert table.times_s is not None and np.array_equal(table.times_s, np.arange(ROWS) * 15.0)
    few = parts.look(parts.find(str(folder / "*.parquet"))).read(["whole", "m3"])
    assert few.names == ("whole", "m3") and few.values.shape == (10 + 200 + 200, 2)


@pytest.mark.parametrize("columns", [1, 5, 100])
@pytest.mark.parametrize("scheme", list(Scheme))
def test_a_cluster_selects_the_same(
    dask: LocalCluster, whole: pl.DataFrame, folder: Path, scheme: Scheme, columns: int
) -> None:
    wanted = Wanted(count=8, scheme=scheme, lags=4, exclude=("m1", "m2*"))
    expected = select(as_one(whole, folder), TARGET, wanted)
    assert expected.constant == ("fixed",) and expected.missing == ("mostly",)
    assert expected.notes and expected.filled == 1 and max(c.lag for c in expected.chosen) == 3
    table = parts.look(parts.find(folder))
    same(spread.select(table, TARGET, wanted, dask.address, columns=columns), expected)


@pytest.mark.parametrize("columns", [4, 100])
def test_nearest_neighbours_are_shared_out_too(
    dask: LocalCluster, whole: pl.DataFrame, folder: Path, columns: int
) -> None:
    wanted = Wanted(count=6, method=Method.NEIGHBOURS, lags=3, exclude=("m1*",))
    expected = select(as_one(whole, folder), TARGET, wanted)
    assert len({each.relevance for each in expected.chosen}) == 6
    table = parts.look(parts.find(folder))
    same(spread.select(table, TARGET, wanted, dask.address, columns=columns), expected)


@pytest.mark.parametrize("method", list(Method))
def test_so_does_its_bootstrap(
    dask: LocalCluster, whole: pl.DataFrame, folder: Path, method: Method
) -> None:
    wanted = Wanted(count=5, bootstrap=4, exclude=("same",), bins=5, method=method)
    expected = select(as_one(whole, folder), TARGET, wanted)
    assert expected.stability is not None
    same(spread.select(parts.look(parts.find(folder)), TARGET, wanted, dask.address), expected)


def test_the_command_does_it_here_and_there(dask: LocalCluster, folder: Path) -> None:
    command = ["observe", "select", str(folder), "--target", TARGET, "--count", "4", "--json"]
    here = CliRunner().invoke(app, command)
    assert here.exit_code == 0, here.output
    there = CliRunner().invoke(app, [*command, "--dask", dask.address])
    assert there.exit_code == 0, there.output
    assert json.loads(here.stdout) == json.loads(there.stdout)


def test_a_worker_killed_in_the_middle_costs_nothing(
    tmp_path: Path, whole: pl.DataFrame, folder: Path
) -> None:
    wanted = Wanted(count=6)
    expected = select(as_one(whole, folder), TARGET, wanted)
    with cluster(tmp_path / "own", 2) as own:
        own.wait_for_workers(2)

        def kill(step: str, _: float) -> None:
            if step == "selection" and own.workers[0].poll() is None:
                own.workers[0].kill()

        table = parts.look(parts.find(folder))
        found = spread.select(table, TARGET, wanted, own.address, columns=3, progress=kill)
    same(found, expected)


def test_what_a_cluster_cannot_do_is_said(dask: LocalCluster, folder: Path, tmp_path: Path) -> None:
    table = parts.look(parts.find(folder))
    with pytest.raises(InputError, match="the target fixed is constant"):
        spread.select(table, "fixed", Wanted(method=Method.NEIGHBOURS), dask.address)
    with pytest.raises(InputError, match="did you mean whole"):
        spread.select(table, "whol", Wanted(), dask.address)
    with pytest.raises(InputError, match="the target fixed is constant"):
        spread.select(table, "fixed", Wanted(), dask.address)
    with pytest.raises(InputError, match="no metric is left"):
        spread.select(table, TARGET, Wanted(exclude=("m*", "[wsg]*")), dask.address)
    gone = parts.Parts((tmp_path / "gone.csv",), table.names, table.time)
    with pytest.raises(
        InputError, match=r"does not exist on worker .*: every worker must find the files"
    ):
        spread.select(gone, TARGET, Wanted(), dask.address)
    done = CliRunner().invoke(
        app, ["observe", "select", "http://x:1", "--target", "t", "--dask", dask.address]
    )
    assert done.exit_code == 2 and "is only for files of metrics" in done.output


def test_files_that_do_not_belong_together_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nor a folder with files that end in"):
        parts.find(tmp_path)
    (tmp_path / "a.csv").write_text("time,x,y\n1,2,3\n")
    (tmp_path / "b.csv").write_text("time,x\n1,2\n")
    with pytest.raises(InputError, match=r"b.csv: there is no metric 'y', which a.csv has"):
        parts.look(parts.find(tmp_path))
    (tmp_path / "b.csv").write_text("time,x,y,z\n1,2,3,4\n")
    with pytest.raises(InputError, match=r"a.csv: there is no metric 'z', which b.csv has"):
        parts.look(parts.find(tmp_path))
    (tmp_path / "b.csv").write_text("ts,x,y\n1,2,3\n")
    with pytest.raises(InputError, match="the column of times is 'ts'"):
        parts.look(parts.find(tmp_path))
    (tmp_path / "b.csv").write_text("time,x,y\n1,2,high\n")
    with pytest.raises(InputError, match="no metric 'y'"):
        parts.look(parts.find(tmp_path))
    (tmp_path / "b.csv").write_bytes(b"PAR1\x00\x01")
    with pytest.raises(InputError):
        parts.look(parts.find(tmp_path))
