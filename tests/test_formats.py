"""Versions of the result format: old folders are readable, folders of newer formats are refused."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import eastwest as ew
from eastwest import formats
from eastwest.errors import InputError
from eastwest.report import write_page
from project_paths import DATA, ROOT

#: Written by the build of commit 89c2639, before folders carried a format.
FIRST = DATA / "results-format-1"
#: Written by the last builds of formats 2 to 6 (ff5f0b8^, 6fc9247^, df5d14a^, 86d52f9^, 61b4c53^),
#: and by the first of formats 7 to 11 that had them as tests. A new format needs a folder of its
#: own.
LATER = [
    FIRST.with_name(f"results-format-{number}") for number in range(2, formats.RESULT_FORMAT + 1)
]
HISTORY = ROOT / "docs" / "reference" / "formats.md"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Return a copy of a folder of format 1, which tests may change."""
    return Path(shutil.copytree(FIRST, tmp_path / "old"))


def edited(folder: Path, **changes: Any) -> ew.Result:
    path = folder / "summary.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return ew.Result(folder)


def test_a_folder_of_format_1_reads_as_one_of_today() -> None:
    result = ew.Result(FIRST)
    assert result.format == 1
    assert result.summary["jobs"]["count"] == result.jobs.height == 1
    assert result.summary["flows"]["completed"] == result.flows.height == 9
    assert result.summary["packets"]["dropped"] == result.links["drops"].sum() == 35
    assert result.rounds.height == 3
    for name in formats.TABLES:
        assert result.table(name).schema == formats.empty(name).schema, name


@pytest.mark.parametrize("folder", LATER, ids=lambda folder: folder.name)
def test_a_folder_of_each_format_reads_as_one_of_today(folder: Path, tmp_path: Path) -> None:
    result = ew.Result(folder)
    summary = result.summary
    assert result.format == int(folder.name.rpartition("-")[2])
    for name in formats.TABLES:
        assert result.table(name).schema == formats.empty(name).schema, name
    assert summary["jobs"]["count"] == result.jobs.height == 1
    assert summary["flows"]["completed"] == result.flows.height == 9
    assert summary["packets"]["dropped"] == result.links["drops"].sum() > 0
    assert sum(summary["marks"].values()) == result.links["marks"].sum() > 0
    assert result.rounds.height == 3 and result.table("tcp_trace").height > 20
    assert result.table("link_samples").height > 10 and not result.table("events").is_empty()
    page = write_page([result], tmp_path / "page.html").read_text("utf-8")
    assert "every-table" in page and "terasort" in page


@pytest.mark.parametrize("folder", LATER, ids=lambda folder: folder.name)
def test_a_folder_of_each_format_can_be_run_again_from_itself(folder: Path, tmp_path: Path) -> None:
    again = ew.run(folder, out=tmp_path / "again")
    assert again.format == formats.RESULT_FORMAT
    old = ew.Result(folder)
    assert again.jobs["shuffle_bytes"].equals(old.jobs["shuffle_bytes"])
    assert again.flows.height == old.flows.height


def test_what_format_1_did_not_know_is_empty_or_null() -> None:
    result = ew.Result(FIRST)
    for name in ("drops", "depths", "sojourn", "events", "link_samples", "tcp_trace", "lpi"):
        assert result.table(name).is_empty()
    assert result.flows["connection"].null_count() == result.flows.height
    assert result.flows["stream_start"].null_count() == result.flows.height


def test_drops_of_format_1_were_all_of_full_queues() -> None:
    links = ew.Result(FIRST).links
    assert links["drops_queue_full"].equals(links["drops"].rename("drops_queue_full"))
    for column in ("lost_random", "lost_down", "lost_no_route", "drops_early", "marks"):
        assert links[column].null_count() == 0
        assert links[column].sum() == 0
    summary = ew.Result(FIRST).summary
    assert sum(summary["drops"]["full"].values()) == links["drops"].sum()
    for counts in (summary["drops"]["loss"], summary["drops"]["no_route"], summary["marks"]):
        assert counts.keys() == summary["drops"]["full"].keys()
        assert not any(counts.values())


def test_tables_of_two_formats_can_be_put_together() -> None:
    both = pl.concat([ew.Result(FIRST).flows, formats.empty("flows")])
    assert both.height == 9


def test_a_comparison_across_versions_says_so(tmp_path: Path) -> None:
    new = ew.run("first", out=tmp_path / "new")
    page = write_page([ew.Result(FIRST), new], tmp_path / "page.html").read_text("utf-8")
    said = f"different versions (Eastwest 0.1.0, format 1; {formats.writer(new.summary)})"
    assert said in page
    same = write_page([new, new], tmp_path / "same.html").read_text("utf-8")
    assert "different versions" not in same


def test_an_old_folder_has_a_page_and_is_not_touched(old: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in old.rglob("*") if path.is_file()}
    page = write_page([ew.Result(old)], tmp_path / "page.html").read_text("utf-8")
    assert "format-1" in page
    assert {path: path.read_bytes() for path in old.rglob("*") if path.is_file()} == before


def test_an_old_folder_can_be_run_again_from_itself(tmp_path: Path) -> None:
    again = ew.run(FIRST, out=tmp_path / "again")
    assert again.format == formats.RESULT_FORMAT
    assert again.summary["scenario"] == "format-1"
    assert again.jobs["shuffle_bytes"].equals(ew.Result(FIRST).jobs["shuffle_bytes"])


def test_a_run_writes_the_tables_of_this_version(tmp_path: Path) -> None:
    result = ew.run("first", out=tmp_path / "r")
    assert result.format == formats.RESULT_FORMAT
    assert {path.stem for path in result.path.glob("*.parquet")} == formats.TABLES.keys()
    for name in formats.TABLES:
        found = list(pl.read_parquet_schema(result.path / f"{name}.parquet").items())
        assert found == list(formats.empty(name).schema.items()), name


def test_the_stand_in_has_the_tables_of_this_version(result: ew.Result) -> None:
    for name in formats.TABLES:
        found = list(pl.read_parquet_schema(result.path / f"{name}.parquet").items())
        assert found == list(formats.empty(name).schema.items()), name


def test_what_was_added_is_there() -> None:
    for name, version in formats.SINCE.items():
        table, _, column = name.partition(".")
        assert table in formats.TABLES, name
        assert not column or column in formats.TABLES[table], name
        assert 1 < version <= formats.RESULT_FORMAT, name


def test_a_newer_format_is_refused_with_what_to_do(old: Path) -> None:
    result = edited(old, format=formats.RESULT_FORMAT + 1, version="9.8.7\x1b[31m" + "x" * 100)
    for read in (lambda: result.summary, lambda: result.jobs, lambda: result.digest):
        with pytest.raises(InputError) as caught:
            read()
        message = str(caught.value)
        assert f"format {formats.RESULT_FORMAT + 1}, written by Eastwest 9.8.7" in message
        assert f"reads formats 1 to {formats.RESULT_FORMAT}" in message
        assert f"eastwest run {old / 'scenario.toml'}" in message
        assert len(message) < 300 + 2 * len(str(old))


@pytest.mark.parametrize("damaged", ["2", 0, -1, 1.5, True, None, [1], {}])
def test_a_format_that_is_no_number_is_damage(old: Path, damaged: Any) -> None:
    with pytest.raises(InputError, match=r"format is .*, not a whole number"):
        _ = edited(old, format=damaged).summary


@pytest.mark.parametrize("drops", [None, [], {}, {"full": 3}, "x"])
def test_a_summary_with_odd_drops_is_left_as_it_is(old: Path, drops: Any) -> None:
    assert edited(old, drops=drops).summary["drops"] == drops


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "[" * 100_000, '{"format": ' + "9" * 10_000 + "}", "\0", "null"]
)
def test_a_damaged_summary_is_refused(old: Path, text: str) -> None:
    (old / "summary.json").write_text(text)
    with pytest.raises(InputError, match=r"summary\.json is damaged"):
        _ = ew.Result(old).summary


def test_a_summary_that_would_fill_the_memory_is_refused(old: Path) -> None:
    with (old / "summary.json").open("r+b") as stream:
        stream.truncate(10**12)
    with pytest.raises(InputError, match="larger than any summary"):
        _ = ew.Result(old).summary


def test_a_lost_table_is_not_taken_for_an_empty_one(old: Path) -> None:
    (old / "flows.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"flows\.parquet is missing"):
        _ = ew.Result(old).flows
    with pytest.raises(FileNotFoundError, match=r"events\.parquet is missing"):
        _ = edited(old, format=2).events
    with pytest.raises(InputError, match="no column drops_queue_full"):
        _ = ew.Result(old).links


def test_a_lost_or_changed_column_is_damage(old: Path) -> None:
    jobs = pl.read_parquet(old / "jobs.parquet")
    jobs.drop("maps").write_parquet(old / "jobs.parquet")
    with pytest.raises(InputError, match="no column maps"):
        _ = ew.Result(old).jobs
    jobs.with_columns(pl.col("maps").cast(pl.String)).write_parquet(old / "jobs.parquet")
    with pytest.raises(InputError, match="column maps is String, not UInt32"):
        _ = ew.Result(old).jobs


@pytest.mark.parametrize("keep", [0, 4, 100, 1000, -1])
def test_a_table_cut_short_is_damage(old: Path, keep: int) -> None:
    path = old / "links.parquet"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(InputError, match=r"links\.parquet is damaged"):
        _ = ew.Result(old).links


@pytest.mark.parametrize(
    ("name", "hint"),
    [("flow", "did you mean 'flows'"), ("../../etc/passwd", "tables: jobs"), ("", "tables: jobs")],
)
def test_a_table_there_never_was_is_refused(name: str, hint: str) -> None:
    with pytest.raises(FileNotFoundError, match=hint):
        ew.Result(FIRST).table(name)


def test_the_history_names_every_version_and_addition() -> None:
    text = HISTORY.read_text(encoding="utf-8")
    versions = re.findall(r"^### Results, format (\d+)", text, re.MULTILINE)
    assert sorted(map(int, versions)) == list(range(1, formats.RESULT_FORMAT + 1))
    for name in formats.SINCE:
        table, _, column = name.partition(".")
        assert f"`{column or table}`" in text, name


def test_a_small_file_with_more_rows_than_memory_holds_is_refused(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = ew.Result(old).flows.height
    monkeypatch.setattr(formats, "_MOST_ROWS", rows - 1)
    monkeypatch.setattr(pl, "read_parquet", None)  # The folder is refused before a table is read.
    with pytest.raises(InputError, match=rf"flows\.parquet has {rows} rows"):
        ew.Result(old).table("flows")
