"""Runs and their pages tell which workloads hardly had flows at the same time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import eastwest as ew
from eastwest.notes import no_overlap
from eastwest.report import write_report

JOBS = '[[workload]]\nkind = "mapreduce"\nname = "hadoop"\n'
SEARCH = '[[workload]]\nkind = "fan-out"\nname = "search"\n'
BACKUP = '[[workload]]\nkind = "bulk"\nname = "backup"\n'

Flow = tuple[str, str, float, float]
#: Shuffle of a job, from 10 s to 20 s.
SHUFFLE: list[Flow] = [("hadoop", "shuffle", 10.0, 14.0), ("hadoop", "shuffle", 12.0, 20.0)]


def notes_of(
    flows: list[Flow], scenario: str = JOBS + SEARCH, goal: str = "", incomplete: int = 0
) -> list[str]:
    """Return the notes on a run with these complete flows: workload, purpose, start and end."""
    columns = {"workload": pl.String, "purpose": pl.String, "start_s": pl.Float64}
    table = pl.DataFrame(flows, schema={**columns, "finish_s": pl.Float64}, orient="row")
    summary: dict[str, Any] = {
        "simulated_s": 20.0,
        "flows": {"count": len(flows) + incomplete, "completed": len(flows)},
        "goals": [{"metric": goal}] if goal else [],
    }
    return no_overlap.of_run(table.lazy(), summary, scenario)


def searches(*spans: tuple[float, float], name: str = "search") -> list[Flow]:
    return [(name, "response", start, end) for start, end in spans]


def test_a_workload_that_ends_before_the_shuffle_has_a_note() -> None:
    (note,) = notes_of([*searches((0.0, 0.1), (0.9, 1.0)), *SHUFFLE])
    assert note == (
        "no flow of search was in progress during the shuffle of hadoop (10 s to 20 s): to measure "
        "both together, start search later"
    )


def test_only_the_shuffle_of_jobs_counts() -> None:
    reads = [("hadoop", "map-input", 0.0, 9.0)]
    assert len(notes_of([*searches((0.0, 1.0)), *reads, *SHUFFLE])) == 1
    # Jobs without a shuffle: all of their flows count.
    assert notes_of([*searches((0.0, 1.0)), *reads]) == []


def test_less_than_five_percent_of_the_shorter_time_is_little() -> None:
    # The shuffle takes 10 s, the searches 10.4 s.
    (note,) = notes_of([*searches((0.0, 10.4)), *SHUFFLE])
    assert note.startswith("flows of search were in progress for only 400 ms during the shuffle")
    assert notes_of([*searches((0.0, 10.6)), *SHUFFLE]) == []
    assert notes_of([*searches((12.0, 12.1)), *SHUFFLE]) == [], "all of the short time"
    assert notes_of([*searches((12.0, 12.0)), *SHUFFLE]) == [], "a time of no length"


def test_jobs_after_which_a_workload_starts_are_named_first() -> None:
    (note,) = notes_of([*searches((30.0, 31.0)), *SHUFFLE])
    assert note.endswith(
        "during the shuffle of hadoop (10 s to 20 s): to measure both together, submit the jobs of "
        "hadoop later"
    )


def test_workloads_without_jobs_need_a_goal() -> None:
    flows = [*searches((0.0, 1.0)), *searches((2.0, 3.0), name="backup")]
    assert notes_of(flows, SEARCH + BACKUP) == []
    (note,) = notes_of(flows, SEARCH + BACKUP, "applications.search.query_us.p99")
    assert note.startswith("no flow of search was in progress during the flows of backup (2 s to")
    (other,) = notes_of(flows, SEARCH + BACKUP, "while.backup.workloads.search.fct_us.mean")
    assert other == note


def test_incomplete_flows_may_have_overlapped() -> None:
    flows = [*searches((0.0, 1.0)), *SHUFFLE]
    background = JOBS + "background = true\n" + SEARCH
    assert notes_of(flows, background, incomplete=1) == []
    assert len(notes_of(flows, background)) == 1
    assert notes_of(flows, 'duration = "20 s"\n' + JOBS + SEARCH, incomplete=1) == []
    # Without a duration, only flows of workloads in the background are cut off by the end.
    assert len(notes_of(flows, incomplete=1)) == 1


def test_jobs_that_sent_nothing_have_a_note() -> None:
    assert notes_of(searches((0.0, 1.0))) == ["hadoop had no flow before the run ended at 20 s"]
    assert notes_of(searches((0.0, 1.0)), JOBS + "off = true\n" + SEARCH) == []
    (note,) = notes_of(searches((0.0, 1.0)), JOBS + "background = true\n" + SEARCH)
    assert note.endswith("; a run does not wait for a workload with background = true")


def test_many_pairs_have_three_notes_and_their_number() -> None:
    names = [f"w{number}" for number in range(6)]
    flows = [flow for name in names for flow in searches((0.0, 1.0), name=name)]
    scenario = JOBS + "".join(SEARCH.replace("search", name) for name in names)
    notes = notes_of([*flows, *SHUFFLE], scenario)
    assert len(notes) == 4
    assert notes[-1] == "3 more pairs of workloads hardly had flows at the same time"


@pytest.mark.parametrize(
    "scenario",
    [
        JOBS + SEARCH + "x =",
        "[[workload]]\n" * 2,
        '# [[workload]] [[workload]] "mapreduce"\nworkload = [1]',
    ],
)
def test_a_damaged_scenario_has_no_notes(scenario: str) -> None:
    assert notes_of([*searches((0.0, 1.0)), *SHUFFLE], scenario) == []


@pytest.mark.slow
def test_a_run_and_its_page_have_the_note(tmp_path: Path) -> None:
    scenario = """
schema = 1
name = "apart"
[fabric]
kind = "star"
hosts = 5
host_rate = "1 Gbit/s"
[[workload]]
name = "hadoop"
kind = "mapreduce"
master = "h4"
job = [{ kind = "shuffle", shuffle = "10 MB", maps = 4, reduces = 2 }]
[[workload]]
name = "search"
kind = "fan-out"
front_ends = ["h0"]
workers = ["h1..h3"]
queries = 20
gap = "1 ms"
response_bytes = "20 KB"
deadline = "1 s"
"""
    apart = ew.run(scenario, out=tmp_path / "apart")
    (note,) = (each for each in apart.summary["notes"] if "to measure both" in each)
    assert note.startswith("no flow of search was in progress during the shuffle of hadoop (")
    page = write_report([apart.path], tmp_path / "page.html").read_text(encoding="utf-8")
    assert "No flow of search was in progress during the shuffle of hadoop" in page
    begin_s = float(apart.flows.filter(pl.col("purpose") == "shuffle")["start_s"].sort()[0])
    together = ew.run(
        scenario, set={"workload.search.start": f"{begin_s} s"}, out=tmp_path / "together"
    )
    assert not any("to measure both" in each for each in together.summary["notes"])
