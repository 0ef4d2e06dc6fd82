"""Request-response exchanges, measures of each workload, and their time windows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import eastwest as ew
from eastwest import by_workload, core, formats
from eastwest.by_workload import Window, busy
from eastwest.cli import app
from eastwest.exchanges import exchanges
from eastwest.sweep.metrics import metrics_of
from eastwest.sweep.words import full, of_workloads, shown
from eastwest.work_units import window_words

#: A shuffle and a service that share two racks.
SHARED = """
schema = 1
name = "shared"
[fabric]
kind = "leaf-spine"
leaves = 2
hosts_per_leaf = 4
spines = 1
host_rate = "1 Gbit/s"
uplink_rate = "1 Gbit/s"
[[workload]]
name = "sort"
kind = "mapreduce"
job = [{ kind = "shuffle", shuffle = "40 MB", maps = 6, reduces = 3 }]
[[workload]]
name = "web"
kind = "service"
clients = ["h0", "h4"]
servers = ["h1", "h5", "h6"]
mean_gap = "2 ms"
server_time = "1 ms"
background = true
"""


def flows(*rows: tuple[str, str, int, int, int, float, float, int, int]) -> pl.LazyFrame:
    """Return a table of flows with these columns and few others."""
    names = (
        "workload",
        "purpose",
        "flow",
        "src",
        "dst",
        "start_s",
        "finish_s",
        "connection",
        "tag",
    )
    frame = pl.DataFrame(rows, schema=names, orient="row")
    return frame.with_columns(
        bytes=pl.lit(100), retransmits=pl.lit(1), timeouts=pl.lit(0),
        fct_us=(pl.col("finish_s") - pl.col("start_s")) * 1e6,
    ).lazy()  # fmt: skip


def test_a_request_is_paired_with_its_response_by_connection_and_tag() -> None:
    found = exchanges(
        flows(
            ("web", "request", 0, 1, 2, 0.0, 0.1, 7, 5),
            ("web", "request", 1, 1, 2, 0.2, 0.3, 7, 6),
            # Answers come in another order than requests, and another connection uses the same tag.
            ("web", "response", 2, 2, 1, 0.4, 0.5, 7, 6),
            ("web", "request", 3, 3, 2, 0.0, 0.1, 8, 5),
            ("web", "response", 4, 2, 1, 0.6, 0.9, 7, 5),
            # The tag is used again after its first exchange has ended.
            ("web", "request", 5, 1, 2, 1.0, 1.1, 7, 5),
            ("web", "response", 6, 2, 1, 1.2, 1.3, 7, 5),
        )
    ).collect()
    pairs = found.select("request", "response", "exchange_us", "server_us").rows()
    assert [row[:2] for row in pairs] == [(1, 2), (0, 4), (5, 6)], "request 3 has no response"
    assert [row[2] for row in pairs] == pytest.approx([3e5, 9e5, 3e5])
    assert [row[3] for row in pairs] == pytest.approx([1e5, 5e5, 1e5])
    assert found["retransmits"].to_list() == [2, 2, 2]


def test_times_in_progress_are_merged() -> None:
    frame = pl.DataFrame({"start_s": [5.0, 0.0, 1.0, 3.0], "finish_s": [6.0, 2.0, 1.5, 4.0]})
    assert busy(frame).rows() == [(0.0, 2.0), (3.0, 4.0), (5.0, 6.0)]
    rows = pl.DataFrame({"start_s": [0.0, 1.9, 2.0, 3.5, 4.5, 5.9, 7.0]})
    assert Window(busy=busy(frame)).of(rows)["start_s"].to_list() == [0.0, 1.9, 3.5, 5.9]
    assert Window(1.0, 3.5).of(rows)["start_s"].to_list() == [1.9, 2.0]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> ew.Result:
    return ew.run(SHARED, out=tmp_path_factory.mktemp("shared") / "run")


def test_each_workload_has_measures_in_its_unit(shared: ew.Result) -> None:
    own = shared.summary["workloads"]
    assert set(own) == {"sort", "web"}
    exchange = own["web"]["exchange_us"]
    took = shared.exchanges["exchange_us"].sort()
    assert exchange["count"] == shared.exchanges.height > 100
    assert exchange["mean"] == pytest.approx(took.mean())
    assert exchange["p99"] == took[math.ceil(0.99 * took.len()) - 1]
    assert exchange["max"] == took[-1]
    assert own["sort"]["runtime_s"]["count"] == 1
    assert own["sort"]["makespan_s"] == own["sort"]["runtime_s"]["max"]
    assert "exchange_us" not in own["sort"]
    server = shared.exchanges["server_us"]
    assert server.to_list() == pytest.approx([1000.0] * server.len()), "the time of the server"


def test_while_a_shuffle_is_on_counts_what_starts_during_its_flows(shared: ew.Result) -> None:
    during = shared.summary["while"]["sort/shuffle"]["web"]["exchange_us"]
    shuffles = shared.flows.filter(pl.col("purpose") == "shuffle")
    spans = shuffles.select("start_s", "finish_s").rows()
    inside = [
        exchange
        for start, exchange in shared.exchanges.select("start_s", "exchange_us").rows()
        if any(first <= start < last for first, last in spans)
    ]
    assert during["count"] == len(inside) > 20
    assert during["max"] == max(inside)
    whole = shared.summary["workloads"]["web"]["exchange_us"]
    assert during["p50"] > whole["p50"], "the whole run has idle time in it"


def test_a_window_of_the_scenario_holds_for_run_and_sweep(
    shared: ew.Result, tmp_path: Path
) -> None:
    settings = {"measure.window.while": "sort", "measure.window.purpose": "shuffle"}
    windowed = ew.run(SHARED, set=settings, out=tmp_path / "while")
    assert windowed.digest == shared.digest, "measuring changes nothing"
    chosen = windowed.summary["workloads"]["web"]["exchange_us"]
    assert chosen == shared.summary["while"]["sort/shuffle"]["web"]["exchange_us"]
    assert windowed.summary["window"] == {"while": "sort", "purpose": "shuffle"}
    assert metrics_of(windowed, 0)["workloads.web.exchange_us.p99"] == chosen["p99"]

    cut = ew.run(SHARED, set={"measure.window.cool_down": "100 ms"}, out=tmp_path / "cut")
    end_s = cut.summary["simulated_s"] - 0.1
    kept = shared.exchanges.filter(pl.col("start_s") < end_s).height
    assert cut.summary["workloads"]["web"]["exchange_us"]["count"] == kept

    warm = metrics_of(shared, 200 * 10**9)
    kept = shared.exchanges.filter(pl.col("start_s") >= 0.2).height
    assert warm["workloads.web.exchange_us.count"] == kept


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"while": "sart"}, "there is no workload named sart"),
        ({"purpose": "shuffle"}, "needs `while`"),
        ({"while": "sort", "purpose": "shuffel"}, "is not a purpose of flows"),
        ({"from": "2 s", "until": "1 s"}, "must be after from"),
    ],
)
def test_impossible_windows_are_refused(settings: dict[str, str], said: str) -> None:
    with pytest.raises(core.scenario_error()) as raised:
        ew.run(SHARED, set={f"measure.window.{key}": value for key, value in settings.items()})
    problems = getattr(raised.value, "problems", [])
    assert any(said in problem["message"] for problem in problems)


def test_a_lost_handshake_does_not_change_what_is_shown_for_the_service() -> None:
    """One flow that loses its SYN-ACK adds a second to the run, in which only the service runs."""
    quick, slow = (measures(idle_s) for idle_s in (0.0, 1.0))
    assert quick["workloads"]["web"]["exchange_us"]["p50"] != pytest.approx(
        slow["workloads"]["web"]["exchange_us"]["p50"], rel=0.2
    )
    assert quick["while"]["sort/shuffle"]["web"] == slow["while"]["sort/shuffle"]["web"]


def test_a_job_that_did_not_finish_has_the_times_of_its_purposes() -> None:
    """Without a finished job, the workload is active while its complete flows are in progress."""
    done, cut = measures(1.0), measures(1.0, jobs=0)
    assert list(cut["while"]) == ["sort", "sort/shuffle"]
    assert cut["while"]["sort/shuffle"] == done["while"]["sort/shuffle"]


def measures(idle_s: float, jobs: int = 1) -> dict[str, Any]:
    """Return the measures of a shuffle of 1 s, then ``idle_s`` without flows, beside a service.

    ``jobs`` is the number of finished jobs, 0 or 1.
    """
    rows = []
    for number in range(int((1.0 + idle_s) * 1000)):
        start = number / 1000
        took = 300e-6 if start < 1.0 else 50e-6
        middle = start + took / 2
        rows.append(("web", "request", 2 * number, 0, 1, start, middle, 0, number))
        rows.append(("web", "response", 2 * number + 1, 1, 0, middle, start + took, 0, number))
    rows.append(("sort", "shuffle", 90_000, 2, 3, 0.0, 1.0, 1, 0))
    end = 1.0 + idle_s
    empty = {name: formats.empty(name).lazy() for name in by_workload.TABLES}
    finished = pl.DataFrame(
        {"workload": ["sort"], "submitted_s": [0.0], "finished_s": [end], "runtime_s": [end]}
    ).head(jobs)
    tables = {**empty, "flows": flows(*rows), "jobs": finished.lazy()}
    return by_workload.measured(tables, end + 1.0, {})


def test_names_of_metrics_of_workloads() -> None:
    there = [
        "workloads.web.exchange_us.p99", "workloads.web.fct_us.p99",
        "while.sort/shuffle.web.exchange_us.p99", "workloads.sort.runtime_s.mean",
        "workloads.sort.active_from_s", "latency_us.p99",
    ]  # fmt: skip
    assert full("web.exchange_us.p99", there) == "workloads.web.exchange_us.p99"
    assert full("latency_us.p99", there) == "latency_us.p99"
    assert of_workloads(there) == [
        "workloads.sort.runtime_s.mean", "while.sort/shuffle.web.exchange_us.p99",
        "workloads.web.exchange_us.p99",
    ]  # fmt: skip
    assert shown("while.sort/shuffle.web.exchange_us.p99")[1] == (
        "web exchange p99 while sort/shuffle"
    )
    assert of_workloads(["workloads.all.fct_us.p99"]) == [], "one workload, counted in flows"


def test_a_window_without_anything_in_it_is_noted(tmp_path: Path) -> None:
    for window, noted in (("9 h", True), ("10 ms", False)):
        result = ew.run(SHARED, set={"measure.window.from": window}, out=tmp_path / window[:2])
        said = [note for note in result.summary["notes"] if "or other unit starts in this" in note]
        assert bool(said) is noted, result.summary["notes"]


def test_names_of_workloads_may_have_dots() -> None:
    there = ["workloads.a.b.fct_us.p99", "workloads.c.exchange_us.p99"]
    assert of_workloads(there) == there


def test_a_window_is_told_in_words(tmp_path: Path) -> None:
    every = {"from_s": 1.0, "until_s": 2.5, "cool_down_s": 0.1, "while": "a", "purpose": "b"}
    assert window_words(every) == "from 1 s, until 2.5 s, without the last 100 ms, while a (b)"
    assert window_words({"while": "sort"}) == "while sort"
    scenario = tmp_path / "shared.toml"
    scenario.write_text(SHARED + '[measure.window]\nfrom = "10 ms"\n')
    arguments = ["run", str(scenario), "--out", str(tmp_path / "run")]
    lines = CliRunner().invoke(app, arguments).stdout.splitlines()
    assert any(
        line.startswith("window ") and line.rstrip().endswith("from 10 ms") for line in lines
    )


def test_the_terminal_has_a_line_for_each_workload(tmp_path: Path) -> None:
    scenario = tmp_path / "shared.toml"
    scenario.write_text(SHARED)
    arguments = ["run", str(scenario), "--out", str(tmp_path / "run")]
    text = CliRunner().invoke(app, arguments, env={"COLUMNS": "140"}).stdout
    lines = text.splitlines()
    at = next(place for place, line in enumerate(lines) if line.startswith("web "))
    assert "exchanges: median" in lines[at]
    assert "while sort/shuffle" in "".join(lines[at + 1 : at + 5])
    assert any(line.startswith("sort ") and "1 job:" in line for line in lines)
    assert not any(line.startswith("FCT") for line in lines), "a mean over both says nothing"
