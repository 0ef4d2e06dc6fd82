"""Runs that stop early: their verdict is that of the complete run, and nothing calls them whole."""

from __future__ import annotations

import json
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import eastwest as ew
from eastwest import core
from eastwest.cli import app
from eastwest.errors import InputError, ProblemsError
from eastwest.goals import early, evaluate, form, judge
from eastwest.goals.early import Stopped
from eastwest.report import write_report
from eastwest.results import Result
from eastwest.run import load_source, measured
from eastwest.store import Store, plan
from eastwest.sweep import SweepResult
from eastwest.sweep.metrics import metrics_in
from eastwest.sweep.sequential import Adaptive
from eastwest.sweep.spec import load as load_spec
from eastwest.views import goals as words

#: Parts of scenarios: a fabric, and workloads whose units are known before the run.
STAR = '[fabric]\nkind = "star"\nhosts = 8\nhost_rate = "1 Gbit/s"\n'
SMALL = STAR + 'queue = { kind = "drop-tail", limit = "20 packets" }\n'
SCENARIOS = {
    "permutation": SMALL + '[[workload]]\nname = "a"\nkind = "permutation"\nbytes = "8 MB"\n'
    "repeat = 3\n",
    "fetches": SMALL + '[[workload]]\nname = "a"\nkind = "all-to-all"\nbytes = "3 MB"\n'
    'request_bytes = "100 B"\n',
    "incast": SMALL + '[tcp]\nmin_rto = "10 ms"\n[[workload]]\nname = "a"\nkind = "incast"\n'
    'receiver = "h0"\nrounds = 30\nblock_bytes = "1500 KB"\n',
    "beside": SMALL
    + '[[workload]]\nname = "a"\nkind = "stride"\nstride = 1\ncount = 2\nbytes = "3 MB"\n'
    '[[workload]]\nname = "b"\nkind = "permutation"\nbytes = "9 MB"\nbackground = true\n',
    "service": SMALL + '[[workload]]\nname = "a"\nkind = "service"\nclients = ["h1", "h2", "h3"]\n'
    'servers = ["h0"]\nmean_gap = "100 us"\nresponse_bytes = "100 KB"\nrequests = 4000\n',
}
MEASURES = (
    "simulated_s", "packets.sent", "tcp.retransmits", "tcp.timeouts", "drops.full.data",
    "flows.fct_us.mean", "flows.fct_us.p50", "flows.fct_us.p99", "flows.fct_us.max",
    "flows.by_purpose.flow.fct_us.p99", "a.fct_us.mean", "a.fct_us.p999", "a.fct_us.max",
    "workloads.a.round_s.mean", "a.round_s.p50",
)  # fmt: skip
SWEEP: dict[str, Any] = {
    "scenario": "first",
    "seeds": 6,
    "goal": {"flows.fct_us.p99": "< 20 ms"},
    "axis": [{"path": "fabric.queue.limit", "values": ["25 packets", "400 packets"]}],
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EASTWEST_STORE", raising=False)


def summary(text: str, seed: int, *stop: core.Stop) -> dict[str, Any]:
    options = core.RunOptions(stop=stop)
    return measured(load_source(f"schema = 1\n{text}"), [], seed, options)[1]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "seed"), [*((name, 1) for name in SCENARIOS), ("permutation", 2)])
def test_a_run_that_stops_has_the_verdict_of_the_complete_run(name: str, seed: int) -> None:
    text = SCENARIOS[name]
    whole = summary(text, seed)
    values = metrics_in(whole)
    stopped = 0
    for number, measure in enumerate(MEASURES):
        value = values.get(measure, values.get(f"workloads.{measure}"))
        if value is None:
            continue
        for factor in (0.3, 0.97, 1.0):
            stop = (measure, value * factor, (number + seed) % 2 == 0)
            found = summary(text, seed, stop)
            is_missed = value >= stop[1] if stop[2] else value > stop[1]
            if "stopped_early" in found:
                assert is_missed, f"{stop}: the complete run has {value}"
                told = found["stopped_early"]
                assert told["measure"] == measure and told["limit"] == stop[1]
                assert stop[1] <= told["at_least"] <= value * (1 + 1e-9), (stop, value)
                assert told["at_s"] == found["simulated_s"] < whole["simulated_s"]
                stopped += 1
            else:
                assert found["digest"] == whole["digest"]
    assert stopped > 8, "the scenario stops too seldom to prove anything"


@pytest.mark.slow
def test_a_stop_does_not_depend_on_the_number_of_threads() -> None:
    stop = ("flows.fct_us.max", 20_000.0, True)
    source = load_source("first")
    found = [
        measured(source, [], 1, core.RunOptions(stop=(stop,), threads=threads))[1]
        for threads in (1, 4)
    ]
    assert found[0]["digest"] == found[1]["digest"]
    assert found[0]["stopped_early"] == found[1]["stopped_early"]
    assert any("decides whether it stops early" in note for note in found[1]["notes"])


@pytest.mark.slow
def test_a_limit_that_the_rest_of_the_run_may_change_stops_nothing() -> None:
    # The duration ends this run while flows are in progress: these have no completion time, so
    # their age says nothing about the largest completion time.
    text = f'duration = "60 ms"\n{SCENARIOS["permutation"]}'
    whole = summary(text, 1)
    assert whole["flows"]["completed"] < whole["flows"]["count"]
    most = whole["flows"]["fct_us"].get("max", 0.0)
    assert most < 60_000
    found = summary(text, 1, ("flows.fct_us.max", most + 1, False))
    assert "stopped_early" not in found and found["digest"] == whole["digest"]


def test_flow_mode_stops_runs_too() -> None:
    text = (
        'fidelity = "flow"\n'
        + STAR
        + (
            '[[workload]]\nname = "a"\nkind = "poisson"\nload = 0.7\nflows = 20000\n'
            'sizes = "points"\nsize_points = [["10 KB", 0], ["1 MB", 1]]\n'
        )
    )
    whole = summary(text, 1)
    stop = ("flows.fct_us.p99", whole["flows"]["fct_us"]["p99"] / 4, True)
    found = summary(text, 1, stop)
    assert found["stopped_early"]["at_least"] <= whole["flows"]["fct_us"]["p99"]
    assert found["simulated_s"] < whole["simulated_s"]


@pytest.mark.slow
def test_verdicts_of_a_sweep_are_those_of_complete_runs(simulated: list[int | None]) -> None:
    whole = ew.sweep(SWEEP, out="whole", store="a", jobs=0)
    simulated.clear()
    found = ew.sweep(SWEEP | {"stop_when_missed": True}, out="early", store="b", jobs=0)
    assert len(simulated) == 12 and found.summary["runs"]["stopped"] == 12

    assert states(found) == states(whole) == [judge.MISSED] * 2
    cells = [point["limits"][0] for point in found.summary["goals"]["points"]]
    exact = [point["limits"][0] for point in whole.summary["goals"]["points"]]
    for cell, other in zip(cells, exact, strict=True):
        assert cell["stopped"] == cell["beyond"] == 6 and "stopped" not in other
        assert 20_000 < cell["value"]["mean"] < other["value"]["mean"]
        assert cell["value"]["low"] is None
    # No table has a value that looks like that of a complete run.
    assert found.comparisons.height == 0 and whole.comparisons.height > 0
    points = found.points
    assert points["metric"].unique().to_list() == ["flows.fct_us.p99"]
    assert points["mean"].null_count() == points.height == 2
    assert points["at_least"].to_list() == [cell["value"]["mean"] for cell in cells]
    assert "at_least" not in whole.points.columns and "stopped_s" not in whole.runs.columns
    runs = found.runs
    assert runs["stopped_by"].unique().to_list() == ["flows.fct_us.p99"]
    assert (runs["at_least"] >= 20_000).all() and runs["stopped_s"].null_count() == 0
    assert {*runs.columns} & {*metrics_in(found.run(0, 1).summary)} == set()
    page = write_report([found.path], found.path / "page.html").read_text()
    assert "≥ " in page and "12 of 12 runs stopped early" in page
    simulated.clear()
    again = ew.sweep(SWEEP | {"stop_when_missed": True}, out="early", store="b", jobs=0, force=True)
    assert simulated == [] and again.points.equals(found.points)


@pytest.mark.slow
def test_a_stopped_run_is_never_taken_for_a_complete_one(simulated: list[int | None]) -> None:
    limited = SWEEP | {"stop_when_missed": True}
    ew.sweep(limited, out="early", jobs=0)
    simulated.clear()
    other = limited | {"goal": {"flows.fct_us.p99": "< 21 ms"}}
    assert ew.sweep(other, out="other", jobs=0).summary["runs"]["reused"] == 0
    assert len(simulated) == 12, "another limit stops runs at another time"
    simulated.clear()
    whole = ew.sweep(SWEEP, out="whole", jobs=0)
    assert len(simulated) == 12 and whole.summary["runs"]["reused"] == 0
    assert whole.points["mean"].null_count() == 0
    # A complete run tells more than a stopped one, so it serves the sweep with limits, too.
    simulated.clear()
    found = ew.sweep(limited, out="early", jobs=0, force=True)
    assert simulated == [] and found.summary["runs"]["stopped"] == 0
    assert found.points.equals(whole.points)


def test_the_key_of_a_stopped_run_depends_on_its_limits() -> None:
    text = f"schema = 1\n{SCENARIOS['permutation']}"
    complete = plan(text)
    every = [complete.keys(1)]
    for stop in ((("m", 1.0, True),), (("m", 2.0, True),), (("n", 1.0, True),)):
        every.append(replace(complete, stop=stop).keys(1))
    assert len(every[0]) == 1 and all(keys[0] == every[0][0] for keys in every)
    assert len({keys[-1] for keys in every}) == 4


@pytest.mark.slow
def test_a_stopped_run_leaves_no_estimate_of_a_complete_run() -> None:
    runs = Store("store")
    wanted = replace(plan("first"), stop=(("flows.fct_us.p99", 20_000.0, True),))
    found = runs.run(wanted, 1)
    assert found.summary["stopped_early"]["measure"] == "flows.fct_us.p99"
    assert runs.costs() == [] and runs.find(wanted.key(1)) is None
    assert runs.run(wanted, 1).path == found.path
    assert "stopped_early" not in runs.run(plan("first"), 1).summary


def states(sweep: SweepResult) -> list[str]:
    return [point["state"] for point in sweep.summary["goals"]["points"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    "goal",
    [{"flows.fct_us.p99": "< 20 ms"}, {"tcp.retransmits": "<= 900"}, {"tcp.timeouts": "< 9"}],
)
@pytest.mark.parametrize("rule", [6, {"until": "decided", "at_least": 4, "at_most": 14}])
def test_points_have_the_verdicts_and_seeds_of_complete_sweeps(
    goal: dict[str, str], rule: Any
) -> None:
    wanted = SWEEP | {"seeds": rule, "goal": goal}
    whole = ew.sweep(wanted, out="whole", store="a", jobs=0)
    found = ew.sweep(wanted | {"stop_when_missed": True}, out="early", store="b", jobs=0)
    assert states(found) == states(whole)
    assert found.runs.select("point", "seed").equals(whole.runs.select("point", "seed"))
    runs = found.summary["runs"]
    assert runs["done"] == whole.summary["runs"]["done"] == found.runs.height == found.costs.height
    cells = [point["limits"][0] for point in found.summary["goals"]["points"]]
    assert runs["stopped"] == sum(cell.get("stopped", 0) for cell in cells)
    for cell, state in zip(cells, states(found), strict=True):
        assert state == judge.MISSED or "stopped" not in cell
    exact = {(p, m): mean for p, m, mean in whole.points.select("point", "metric", "mean").rows()}
    for point, metric, mean in found.points.select("point", "metric", "mean").rows():
        assert mean in {None, exact[point, metric]}


@pytest.mark.slow
def test_runs_that_decide_nothing_are_simulated_to_their_end(
    simulated: list[int | None],
) -> None:
    wanted = SWEEP | {"seeds": 8, "stop_when_missed": True}
    wanted["axis"] = [{"path": "fabric.queue.limit", "values": ["100 packets"]}]
    values = ew.sweep(
        wanted | {"stop_when_missed": False}, out="whole", store="other", jobs=0
    ).runs["tcp.retransmits"]
    # Half of the seeds miss this limit.
    wanted["goal"] = {"tcp.retransmits": f"<= {statistics.median(values.to_list())}"}
    simulated.clear()
    found = ew.sweep(wanted, out="early", jobs=0)
    runs = found.summary["runs"]
    assert runs["stopped"] == 0 < runs["repeated"] < 8 == runs["done"]
    assert len(simulated) == 8 + runs["repeated"]
    (note,) = early.of_sweep(found.summary)
    assert "then simulated to" in note and found.points["mean"].null_count() == 0
    simulated.clear()
    assert ew.sweep(wanted, out="early", jobs=0, resume=True).summary["runs"]["repeated"] == 0
    assert simulated == []


def test_least_values_decide_by_the_median_alone() -> None:
    limit = form.read({"m": "< 10"})[0].limits[0]
    goals = form.Goals((limit,))

    def state(complete: list[float], stopped: list[Stopped]) -> evaluate.At:
        runs = {0: {seed: {"m": value} for seed, value in enumerate(complete)}}
        lost = {0: {100 + seed: one for seed, one in enumerate(stopped)}}
        return evaluate.of_sweep(goals, runs, 0, 0.95, {"m"}, lost).points[0]

    def ours(value: float) -> Stopped:
        return Stopped(1.0, "m", value)

    # Five equal least values have no spread, but say nothing about the spread of complete runs.
    assert state([], [ours(11.0)] * 5).state == judge.UNDECIDED
    found = state([], [ours(11.0)] * 6)
    assert found.state == judge.MISSED and found.cells[0].value.value == 11.0
    assert state([12.0] * 3, [ours(11.0)] * 3).state == judge.MISSED
    # One stopped run: the mean is unknown, so the point cannot meet the limit.
    found = state([1.0] * 19, [ours(11.0)])
    assert found.state == judge.UNDECIDED and not found.is_allowed
    assert found.cells[0].beyond == 1
    # Runs that another goal has stopped may have any value of this one.
    assert state([], [Stopped(1.0, "other", 99.0)] * 8).state == judge.UNDECIDED
    # A least value says nothing about a lower limit.
    both = form.read({"m": "< 10", "g": "> 5"})[0]
    lost = {0: {seed: Stopped(1.0, "m", 11.0) for seed in range(3)}}
    complete: dict[int, dict[str, float]] = {9: {"m": 9.0, "g": 9.0}}
    at = evaluate.of_sweep(both, {0: complete}, 0, 0.95, {"m", "g"}, lost).points[0]
    assert [cell.limit.metric for cell in at.cells] == ["m"] and at.state == judge.UNDECIDED
    rule = Adaptive("", 0.0, 6, 12, "decided")
    assert rule.next_for_limits([(limit, [11.0] * 6)], 6, 0.95) is None
    assert rule.next_for_limits([(limit, [11.0] * 6)], 6, 0.95, stopped=6) is not None


def test_the_best_point_has_no_stopped_run() -> None:
    goals = form.read({"m": "< 10", "t": "minimal"})[0]
    complete = {seed: {"m": 5.0 + seed / 100, "t": 2.0} for seed in range(6)}
    few = {seed: {"m": 5.0 + seed / 100, "t": 1.0} for seed in range(5)}
    lost = {1: {9: Stopped(1.0, "m", 10.5)}}
    found = evaluate.of_sweep(goals, {0: complete, 1: few}, 0, 0.95, {"m", "t"}, lost)
    assert found.best == found.on_average == 0 and found.points[1].best == ()
    assert found.as_json()["points"][1]["limits"][0]["stopped"] == 1
    assert "mean unknown" in words.states({"goals": found.as_json()})[1]


@pytest.mark.slow
def test_the_command_says_that_a_run_was_stopped() -> None:
    def run(*options: str) -> tuple[int, str, str]:
        done = CliRunner(env={"COLUMNS": "200"}).invoke(
            app, ["run", "first", "--out", "run", "--force", *options]
        )
        return done.exit_code, done.stdout, done.stderr

    goal = ("--set", "goal.flows.fct_us.p99=< 20 ms")
    code, out, _ = run(*goal, "--stop-when-missed")
    assert code == 0 and "The run was stopped early, at 21.1 ms of simulated time" in out
    assert "missed with at least 21.1 ms, at least 5.64 % (1.13 ms) above the limit" in out
    told = json.loads(Path("run/summary.json").read_text())
    assert told["stopped_early"]["limit"] == 20_000 and not Path(".eastwest/store/runs").exists()
    assert metrics_in(told) == {}
    page = write_report([Path("run")], Path("page.html")).read_text()
    assert "stopped early" in page
    with pytest.raises(InputError, match="a bundle has complete runs only"):
        ew.bundle("run")
    assert (
        words.compared([Result("run"), Result("run")], ["a", "b"])[0].count("at least 5.6 %") == 2
    )
    code, out, _ = run(*goal)
    assert code == 0 and "stopped" not in out
    code, _, err = run("--stop-when-missed")
    assert code == 2 and "there is no limit that a run can miss" in err


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seeds": {"metric": "flows.fct_us.p99", "half_width": 0.1}}, "needs an interval"),
        ({"seeds": {"until": "apart", "metric": "flows.fct_us.p99"}}, "needs an interval"),
        ({"stop_when_missed": "yes"}, "true or false"),
    ],
)
def test_a_rule_that_needs_complete_runs_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ProblemsError, match=said):
        load_spec(SWEEP | {"stop_when_missed": True} | changes)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"goal": {"flows.jain": "> 0.9"}}, "flows.jain: only upper limits"),
        ({"goal": {"latency_us.p99": "< 1 ms"}}, "latency_us.p99: a run does not know it"),
        ({"warm_up": "1 ms"}, "flows.fct_us.p99: it excludes the warm-up"),
        ({"goal": {}}, "there is no limit that a run can miss"),
        ({"seeds": 5}, "needs at least 6 seeds"),
        ({"seeds": {"until": "decided", "at_least": 2, "at_most": 6}}, "needs at least 8 seeds"),
        (
            {
                "set": {"measure.window": {"from": "1 ms"}},
                "goal": {"transfers.fct_us.p99": "< 1 ms"},
            },
            "measure.window",
        ),
    ],
)
def test_goals_that_can_stop_no_run_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        ew.sweep(SWEEP | {"stop_when_missed": True} | changes, out="early", jobs=0)


def test_a_cluster_stops_no_run() -> None:
    with pytest.raises(InputError, match="not possible with dask"):
        ew.sweep(SWEEP | {"stop_when_missed": True}, out="early", dask="tcp://nowhere:1")


def test_a_sweep_without_the_key_is_as_before() -> None:
    assert not load_spec(SWEEP).stop_when_missed
    assert early.of_sweep({"runs": {"done": 3}}) == [] and early.note({"digest": ""}) == ""
