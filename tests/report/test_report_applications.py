"""Applications on pages: operations, requests, counters, measures and their distributions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import eastwest as ew
from eastwest import formats
from eastwest.notes import unanswered
from eastwest.report import applications, write_page
from eastwest.report.compare import metrics
from eastwest.report.verdict import verdicts
from eastwest.views.facts import Facts
from hand_made import folder
from html_pages import check_self_contained, page_of

REQUESTS = {
    "sent": 800,
    "answered": 790,
    "unanswered": 10,
    "request_in_flight": 7,
    "no_reply_sent": 3,
    "reply_in_flight": 0,
    "connection_failed": 0,
    "connection_closed": 0,
}
#: Durations of 100 queries: 90 below 1 ms, 9 below 2 ms, 1 below 8 ms.
BUCKETS = ((1000.0, 90), (2000.0, 9), (8000.0, 1))


def measure(scale: float = 1.0) -> dict[str, float]:
    times = {"mean": 950, "p50": 1000, "p99": 2000, "p999": 8000, "max": 8000}
    return {"count": 100, **{name: scale * us for name, us in times.items()}}


def result(path: Path, scale: float = 1.0, **changes: Any) -> ew.Result:
    """A result with an application of 100 queries, whose times are multiplied by ``scale``."""
    own = {
        "operations": {"planned": 110, "begun": 104, "completed": 100},
        "requests": REQUESTS,
        "ended": "at the duration",
        "counters": {"queries": 104, "missed": 2},
        "query_us": measure(scale),
        **changes,
    }
    rows = [
        {"workload": "search", "measure": "query", "upper_us": scale * us, "count": count}
        for us, count in BUCKETS
    ]
    summary = {"format": formats.RESULT_FORMAT, "applications": {"search": own}}
    return folder(path, {"application_times": rows}, summary)


def test_the_page_of_a_run_has_the_numbers_of_its_applications(tmp_path: Path) -> None:
    made = result(tmp_path / "r")
    assert applications.number_rows(made) == [
        [
            *("search", "110", "104", "100", "800", "790", "10"),
            "7 in flight to the server, 3 not replied to by the server",
        ]
    ]
    assert applications.counter_rows(made) == [
        ["search", "queries", "104"],
        ["search", "missed", "2"],
    ]
    times = ["950 µs", "1 ms", "2 ms", "8 ms", "8 ms"]
    assert applications.measure_rows(made) == [["search", "query", "100", *times]]
    text = page_of(made)
    page = check_self_contained(text)
    assert "#applications" in [a.get("href") for tag, a in page.tags if tag == "a"]
    assert "application-0" in [a["id"] for tag, a in page.tags if tag == "figure"]
    assert "Half of the durations “query” of search are up to 1 ms, 99 % up to 2 ms" in text


def test_a_curve_of_a_measure_ends_at_one_and_has_its_percentiles(tmp_path: Path) -> None:
    (chart,) = applications.charts([("", Facts(result(tmp_path / "r")))])
    assert chart.legend == ["query"]
    (values, shares), *_ = chart.data["curves"]
    assert values == [0.001, 0.002, 0.008]
    assert shares == [0.9, 0.99, 1.0]
    assert chart.table is not None
    heads, rows = chart.table
    assert heads[-1] == "all"
    assert rows == [["query", "100", "1 ms", "1 ms", "2 ms", "8 ms", "8 ms"]]


def test_a_comparison_has_a_curve_for_each_result(tmp_path: Path) -> None:
    both = [
        result(tmp_path / "a"),
        result(tmp_path / "b", 2.0, requests={**REQUESTS, "unanswered": 0}),
    ]
    (chart,) = applications.charts([("a", Facts(both[0])), ("b", Facts(both[1]))])
    assert chart.legend == ["a", "b"]
    assert chart.table is not None
    assert [row[2] for row in chart.table[1]] == ["1 ms", "2 ms"]
    text = page_of(*both)
    check_self_contained(text)
    for words in (
        "search query p99",
        "search missed",
        "requests unanswered",
        "operations completed",
    ):
        assert words in text, words


def test_a_page_without_applications_has_no_section_about_them(tmp_path: Path) -> None:
    plain = folder(tmp_path / "r")
    assert "applications" not in page_of(plain)
    # Results before format 10 have counters and measures, but no requests and no distribution.
    own = {"counters": {"queries": 5}, "query_us": measure()}
    old = folder(tmp_path / "old", summary={"format": 9, "applications": {"search": own}})
    (old.path / "application_times.parquet").unlink()
    assert applications.number_rows(old) == []
    assert applications.charts([("", Facts(old))]) == []
    assert '<section id="applications"' in page_of(old)


@pytest.mark.parametrize(
    ("changes", "end"),
    [
        ({}, "at the duration of the run"),
        ({"ended": "with the run"}, "when the run ended"),
        ({"ended": "by itself"}, "when the application ended"),
    ],
)
def test_requests_without_a_reply_have_a_note(
    changes: dict[str, Any], end: str, tmp_path: Path
) -> None:
    made = result(tmp_path / "r", **changes)
    why = "7 in flight to the server, 3 not replied to by the server"
    note = f"search: 10 of 800 requests had no reply {end} ({why})"
    assert unanswered.of_run(made.summary) == [note]
    # A capital letter would be the name of another workload.
    assert f"{note}." in [text for _, text in verdicts(Facts(made))]
    failed = {**made.summary, "faults": {"failures": 1}}
    assert unanswered.of_run(failed) == [f"{note}; links or nodes failed during the run"]
    answered = {**REQUESTS, "unanswered": 0}
    assert unanswered.of_run(result(tmp_path / "s", requests=answered).summary) == []


def test_damaged_numbers_of_applications_do_not_break_the_page(tmp_path: Path) -> None:
    for number, own in enumerate(
        (
            [],
            {"search": 3},
            {"search": {"requests": 5, "counters": [], "query_us": {"count": "many"}}},
            {"<b>": {"requests": {"unanswered": 1, "sent": None}, "<i>_us": {"count": 2}}},
        )
    ):
        made = folder(tmp_path / str(number), summary={"applications": own})
        check_self_contained(write_page([made]).read_text(encoding="utf-8"))


def test_the_distribution_of_a_run_has_all_durations_of_its_measures(tmp_path: Path) -> None:
    text = """
schema = 1
[fabric]
kind = "star"
hosts = 6
host_rate = "1 Gbit/s"
[[workload]]
name = "store"
kind = "key-value"
clients = ["h0", "h1"]
servers = ["h2..h5"]
operations = 200
read_share = 0.5
server_time = "50 us"
"""
    made = ew.run(text, out=tmp_path / "r")
    own = made.summary["applications"]["store"]
    for name in ("read", "write"):
        rows = made.application_times.filter(made.application_times["measure"] == name)
        assert rows["count"].sum() == own[f"{name}_us"]["count"]
        assert rows["upper_us"].max() >= own[f"{name}_us"]["max"]
    assert own["counters"]["reads"] + own["counters"]["writes"] == 400
    assert made.summary["notes"] == [] or not any("no reply" in n for n in made.summary["notes"])
    (chart,) = applications.charts([("", Facts(made))])
    assert chart.legend == ["read", "write"]
    page_of(made)


def test_durations_of_0_are_0_and_not_the_end_of_their_bucket(tmp_path: Path) -> None:
    rows = [{"workload": "w", "measure": "wait", "upper_us": 0.001, "count": 9}]
    none = {"count": 9, "mean": 0.0, "p50": 0.0, "p99": 0.0, "p999": 0.0, "max": 0.0}
    some = {**none, "count": 10, "mean": 0.2, "p50": 0.001, "p99": 2.0, "p999": 2.0, "max": 2.0}
    later = {"workload": "w", "measure": "wait", "upper_us": 2.0, "count": 1}
    for number, (statistics, table, most) in enumerate(
        ((none, rows, "0 s"), (some, [*rows, later], "2 µs"))
    ):
        about = {"applications": {"w": {"wait_us": statistics}}}
        made = folder(tmp_path / str(number), {"application_times": table}, about)
        (chart,) = applications.charts([("", Facts(made))])
        assert chart.title == f"Half of the durations “wait” of w are up to 0 s, 99 % up to {most}"
        assert chart.data["curves"][0][0][0] == 0.0
        assert chart.note.endswith("Durations of 0 are at the left end of the axis.")
        assert chart.table is not None
        assert chart.table[1][0][2] == "0 s"
        (row,) = applications.measure_rows(made)
        assert (row[4], row[-1]) == ("0 s", most)
        check_self_contained(page_of(made))


def test_a_comparison_has_no_operations_of_applications_without_a_plan(tmp_path: Path) -> None:
    none = {"planned": 0, "begun": 0, "completed": 0}
    plain = [result(tmp_path / name, operations=none) for name in "ab"]
    assert "search operations completed" not in page_of(*plain)
    mixed = [result(tmp_path / "c"), result(tmp_path / "d", operations=none)]
    (row,) = [cells for title, cells in metrics(mixed) if title == "search operations completed"]
    assert [text for text, _ in row] == ["100", "–"]
