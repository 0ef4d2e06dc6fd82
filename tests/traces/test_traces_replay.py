"""Replays of traces in the normal form keep bytes, times and tasks of their jobs."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import eastwest as ew
from eastwest import shipped
from eastwest.account import Account
from eastwest.traces import replay
from eastwest.traces.take import import_trace

SCENARIO = """
schema = 1
name = "replay"
[fabric]
kind = "star"
hosts = 5
host_rate = "1 Gbit/s"
[[workload]]
name = "hadoop"
kind = "mapreduce"
trace = "TRACE"
original_nodes = 600
"""
FIRST_50 = shipped.DATA / "swim" / "FB-2009_samples_24_times_1hr_0_first50jobs.tsv"


def run(folder: Path, trace: str) -> ew.Result:
    scenario = folder / f"{trace}.toml"
    scenario.write_text(SCENARIO.replace("TRACE", trace))
    return ew.run(scenario, out=folder / f"{trace}-result")


def test_a_folder_is_replayed_as_the_file_that_it_was_made_of(tmp_path: Path) -> None:
    (tmp_path / "swim.tsv").write_bytes(FIRST_50.read_bytes())
    import_trace([tmp_path / "swim.tsv"], tmp_path / "folder")
    file, folder = run(tmp_path, "swim.tsv"), run(tmp_path, "folder")
    assert folder.digest == file.digest
    again = ew.run(folder.path, out=tmp_path / "again")
    assert again.digest == file.digest, "a result folder holds its jobs"


def test_tasks_that_the_source_knows_are_kept(tmp_path: Path) -> None:
    table = "name,submit_s,input_bytes,shuffle_bytes,output_bytes,maps,reduces\n"
    rows = 'a\tb,0.25,1000,500,100,7,3\n,1.5,60,,,,\n"late",99999999,1,1,1,1,1\n'
    (tmp_path / "jobs.csv").write_text(table + rows)
    import_trace([tmp_path / "jobs.csv"], tmp_path / "trace")
    text = (tmp_path / "trace" / replay.FILE).read_text()
    assert text.splitlines()[1:] == [
        "0.250000\t1000\t500\t100\t7\t3\ta b",
        "1.500000\t60\t\t\t\t\t",
    ]
    result = run(tmp_path, "trace")
    jobs = result.jobs.sort("submitted_s")
    assert jobs["maps"].to_list() == [1, 1] and jobs["reduces"].to_list() == [1, 0]
    assert jobs["submitted_s"].to_list() == [0.25, 1.5]
    assert any("2 sizes are missing" in note for note in result.summary["notes"])


def test_what_no_simulation_takes_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = tmp_path / "jobs.parquet"
    columns = ("input_bytes", "shuffle_bytes", "output_bytes", "maps", "reduces")
    frame = pl.DataFrame({"submit_s": [1e9], "name": ["x"], **{name: [1] for name in columns}})
    frame.write_parquet(jobs)
    account = Account()
    assert not replay.write(jobs, tmp_path / replay.FILE, account)
    assert "a run cannot replay the trace" in next(account.lines())
    frame.with_columns(submit_s=pl.lit(1.0)).write_parquet(jobs)
    assert replay.write(jobs, tmp_path / replay.FILE, account)
    monkeypatch.setattr(replay, "MOST_BYTES", 40)
    assert not replay.write(jobs, tmp_path / replay.FILE, account)
    assert not (tmp_path / replay.FILE).exists()
