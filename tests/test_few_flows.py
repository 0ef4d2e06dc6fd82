"""If a few flows take most of a run's time, every output of its result tells it."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

import eastwest as ew
from eastwest.cli.show import print_summary
from eastwest.few_flows import few_flows
from hand_made import flow, folder
from html_pages import page_of


def said(ends: list[float], started: int | None = None, simulated_s: float = 0.0) -> str | None:
    """Return the sentence for flows that end at these times; by default all started flows end."""
    table = pl.DataFrame({"finish_s": ends}, schema={"finish_s": pl.Float64}).lazy()
    return few_flows(table, started or len(ends), simulated_s or max(ends, default=0.0))


def test_two_of_many_flows_take_most_of_the_run() -> None:
    ends = [0.31 * i / 1228 for i in range(1, 1229)]
    assert said([*ends, 1.0, 1.31]) == (
        "from 310 ms to 1.31 s only 2 of 1,230 flows were not complete: 76.3 % of the run; means "
        "over the run include this time"
    )
    # The smallest number of flows that take more than half of the run is named.
    assert said([*ends, 0.32, 0.33, 1.31]) == (
        "from 330 ms to 1.31 s only 1 of 1,231 flows was not complete: 74.8 % of the run; means "
        "over the run include this time"
    )


def test_flows_that_end_evenly_are_not_few() -> None:
    assert said([i / 100 for i in range(1, 101)]) is None


def test_half_of_the_run_is_the_limit() -> None:
    many = [i / 1000 for i in range(60)] + [0.4] * 39
    assert said([*many, 0.8 - 1e-6]) is None
    assert said([*many, 0.8 + 1e-3]) is not None


def test_the_share_of_few_flows_is_one_percent() -> None:
    ends = [0.1] * 500
    assert said([*ends, *[1.0] * 5]) is not None
    assert said([*ends, *[1.0] * 6]) is None
    assert said([0.1] * 17 + [1.0] * 2) is None, "a run of 19 flows has no few"
    assert said([0.1] * 18 + [1.0] * 2) is not None


def test_flows_that_were_not_complete_count_until_the_end() -> None:
    ends = [0.1] * 99
    assert said(ends, 100, 1.0) == (
        "from 100 ms to 1 s only 1 of 100 flows was not complete: 90 % of the run; means "
        "over the run include this time"
    )
    assert said(ends, 200, 1.0) is None
    assert said([], 30, 1.0) is None
    assert few_flows(pl.LazyFrame({"finish_s": ends}), None, None) is None


SCENARIO = """
schema = 1
name = "late"
[fabric]
kind = "star"
hosts = 6
host_rate = "1 Gbit/s"
[[workload]]
name = "listed"
kind = "flow-list"
file = "flows.csv"
"""


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> ew.Result:
    """Return a run in which one long flow takes most of the time."""
    place = tmp_path_factory.mktemp("late")
    rows = [f"{i % 6},{(i + 1) % 6},1000,0" for i in range(24)]
    (place / "flows.csv").write_text("\n".join(["src,dst,bytes,start_s", *rows, "0,1,2000000,0"]))
    (place / "late.toml").write_text(SCENARIO)
    return ew.run(place / "late.toml", out=place / "r")


def test_the_note_is_in_the_summary_the_terminal_and_the_page(late: ew.Result) -> None:
    [note] = [note for note in late.summary["notes"] if "not complete" in note]
    assert "only 1 of 25 flows" in note
    console = Console(width=200, record=True, file=io.StringIO())
    print_summary(console, late)
    assert note in console.export_text()
    page = page_of(late)
    assert page.count("only 1 of 25 flows was not complete") == 1, "said once"


def test_an_older_result_without_the_note_has_it_on_its_page(tmp_path: Path) -> None:
    rows = [flow(i, start_s=0.0, fct_us=1000.0) for i in range(99)]
    rows.append(flow(99, start_s=0.0, fct_us=1e6))
    summary = {"simulated_s": 1.0, "flows": {"count": 100, "completed": 100}}
    page = page_of(folder(tmp_path / "r", {"flows": rows}, summary))
    assert "From 1 ms to 1 s only 1 of 100 flows was not complete: 99.9 % of the run" in page
