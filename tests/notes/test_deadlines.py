"""Runs, their pages and sweeps tell that queries were incomplete at their deadline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import eastwest as ew
from eastwest.cli import app
from eastwest.notes import deadlines
from eastwest.report import write_report

#: Queries whose responses need about 1 ms at the port of the front end.
SCENARIO = """
schema = 1
name = "queries"
[goal]
"applications.search.query_us.p99" = "< 2 ms"
[fabric]
kind = "star"
hosts = 5
host_rate = "1 Gbit/s"
[[workload]]
name = "search"
kind = "fan-out"
front_ends = ["h0"]
workers = ["h1..h4"]
queries = 20
gap = "20 ms"
response_bytes = "25 KB"
deadline = "0.5 ms"
"""
SWEEP = """
sweep = 1
name = "deadlines"
scenario = "queries.toml"
seeds = 2
[[axis]]
path = "workload.search.deadline"
values = ["0.5 ms", "1 s"]
"""


def run_of(missed: int, goal: str | None = None) -> dict[str, Any]:
    """Return the summary of a run of 800 queries, of which ``missed`` were incomplete."""
    own = {"counters": {"missed": missed}, "query_us": {"count": 800, "max": 1500.0}}
    return {"applications": {"search": own}, "goals": [{"metric": goal}] if goal else []}


def test_a_note_has_the_share_of_incomplete_queries() -> None:
    (note,) = deadlines.of_run(run_of(380))
    assert note == (
        "380 of 800 queries of search (47.5 %) missed the deadline; query_us contains the deadline "
        "as their time, so that percentiles above p52.5 do not show how long the responses took"
    )
    (note,) = deadlines.of_run(run_of(380, "applications.search.query_us.p99"))
    assert note.endswith(
        "took. A goal on query_us also needs the goal applications.search.counters.missed <= 0"
    )
    assert "it does not show" in deadlines.of_run(run_of(800))[0]
    assert "also needs" not in deadlines.of_run(run_of(1, "flows.fct_us.p99"))[0]
    assert deadlines.of_run(run_of(0)) == []
    # Other applications, and damaged summaries.
    assert deadlines.of_run({"applications": {"a": {"counters": {"missed": 1}}, "b": 3}}) == []
    assert deadlines.of_run({"applications": [], "goals": "damaged"}) == []


def test_a_met_goal_beyond_the_deadline_has_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EASTWEST_STORE", raising=False)
    Path("queries.toml").write_text(SCENARIO)
    result = ew.run("queries.toml", out="short")
    missed = result.summary["applications"]["search"]["counters"]["missed"]
    assert missed > 0 and result.summary["goals"][0]["met"] is True
    (note,) = [each for each in result.summary["notes"] if "missed the deadline" in each]
    assert note.startswith(f"{missed} of 20 queries of search") and "also needs" in note
    page = write_report([result.path]).read_text(encoding="utf-8")
    assert note.replace("<", "&lt;") in page
    long = ew.run("queries.toml", {"workload.search.deadline": "1 s"}, out="long")
    assert long.summary["applications"]["search"]["query_us"]["p50"] > 500
    assert not any("deadline" in each for each in long.summary["notes"])

    Path("sweep.toml").write_text(SWEEP)
    done = CliRunner().invoke(app, ["sweep", "sweep.toml", "--jobs", "0", "--out", "swept"])
    said = "at 1 of 2 points of the sweep, some queries of search missed"
    assert done.exit_code == 0 and said in done.output, done.output
    page = write_report([Path("swept")]).read_text(encoding="utf-8")
    assert f"{said[0].upper()}{said[1:]}" in page
