"""Sentences on goals: of a run, of two results, and of a sweep; all name the same winner."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import eastwest as ew
from eastwest.cli import app
from eastwest.goals import evaluate, form
from eastwest.report import write_report
from eastwest.views import goals

#: Rounds of an incast over a short or a long queue.
SCENARIO = """
schema = 1
name = "rounds"
[goal]
"rounds.goodput_bps" = "> 800 Mbit/s"
"incast.round_s.mean" = "minimal"
[fabric]
kind = "star"
hosts = 8
host_rate = "1 Gbit/s"
[tcp]
min_rto = "10 ms"
[[workload]]
name = "incast"
kind = "incast"
receiver = "h0"
rounds = 3
block_bytes = "300 KB"
"""
LIMITS = ["8 packets", "50 packets", "100 packets"]
SWEEP = f"""
sweep = 1
name = "rounds"
scenario = "rounds.toml"
seeds = 3
[[axis]]
path = "fabric.queue.limit"
values = {json.dumps(LIMITS)}
"""
OPTIMISE = SWEEP.replace("sweep", "optimize").replace("seeds = 3", "") + "[[stage]]\nseeds = 3\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EASTWEST_STORE", raising=False)
    Path("rounds.toml").write_text(SCENARIO)
    Path("sweep.toml").write_text(SWEEP)
    Path("optimize.toml").write_text(OPTIMISE)
    return tmp_path


NAMED = goals.Names(lambda point: f"K {point}", "K")


def summary(table: dict[str, str], runs: dict[int, list[dict[str, float]]]) -> dict[str, Any]:
    """Return the summary of a sweep with these goals, and runs by point."""
    numbered = {point: dict(enumerate(rows, 1)) for point, rows in runs.items()}
    found = evaluate.of_sweep(form.read(table)[0], numbered, 0, 0.95)
    return {"goals": json.loads(json.dumps(found.as_json()))}


def test_points_that_were_not_measured_are_named() -> None:
    runs = {0: [{"m": 8.0}, {"m": 8.1}], 1: [{"t": 1.0}, {"t": 1.1}]}
    (said,) = goals.of_sweep(summary({"m": "< 10"}, runs), NAMED)
    assert said.endswith("not measured at K 1.")
    none = {0: [{"latency_us.count": 0.0, "m": 1.0}]}
    (said,) = goals.of_sweep(summary({"latency_us.p99": "< 1 ms"}, none), NAMED)
    assert said == "Goal latency_us.p99: not measured: latency_us.count is 0 in all runs."


def test_lines_of_a_run_tell_value_and_margin() -> None:
    table = {"w.exchange_us.p99": "< 100 us", "tcp.timeouts": "<= 0", "w.round_s.mean": "minimal"}
    metrics = {"workloads.w.exchange_us.p99": 82.0, "tcp.timeouts": 3.0}
    run = {"goals": evaluate.of_run(form.read(table)[0], metrics)}
    lines = [(goals.mark(each), goals.line(each)) for each in goals.entries(run)]
    assert lines == [
        ("good", "w.exchange_us.p99 < 100 us: met with 82 µs, 18 % (18 µs) below the limit"),
        ("bad", "tcp.timeouts <= 0: missed with 3, 3 above the limit"),
        ("look", "w.round_s.mean minimal: the run has no measure of this name"),
    ]
    metrics["workloads.w.round_s.mean"] = 0.02
    run = {"goals": evaluate.of_run(form.read(table)[0], metrics)}
    assert goals.verdicts(run)[-1] == (
        "look",
        "Goal w.round_s.mean minimal: 20 ms in this run.",
    )
    assert goals.entries({"goals": "damaged"}) == [] == goals.entries({})


def test_sentences_of_a_sweep_tell_which_settings_meet_the_goal() -> None:
    def rows(*values: float, took: float = 1.0) -> list[dict[str, float]]:
        return [{"m_us": value, "t_s": took + number / 100} for number, value in enumerate(values)]

    table = {"m_us": "< 100 us", "t_s": "minimal"}
    runs = {
        0: rows(82, 82.2, 81.8, took=2),
        1: rows(95, 95.2, 94.8, took=1),
        2: rows(120, 121, 122),
        3: rows(95, 99, 104, took=3),
    }
    assert goals.of_sweep(summary(table, runs), NAMED) == [
        "Goal m_us < 100 us: K 0 (18 % below), 1 (5 % below) meet it; K 2 (21 % above) misses it; "
        "K 3 (0.67 % below, 1 of 3 seeds misses it) is undecided: more seeds are needed.",
        "Goal t_s minimal: K 1 (1.01 s); clearly better than the other one that meets the limits.",
    ]
    assert goals.states(summary(table, runs)) == {
        0: "met, 18 % below the limit",
        1: "met, 5 % below the limit",
        2: "missed, 21 % above the limit",
        3: "undecided, 0.67 % below the limit; 1 of 3 seeds misses it",
    }
    # One run with a timeout: the interval of the mean contains the limit, that of the median
    # does not. In the second point, the interval of the mean is below it, and two runs are above.
    skewed = {
        0: rows(*range(120, 130), 171_000),
        1: rows(*[30 + number / 10 for number in range(18)], 101, 102),
        2: rows(*[30 + number / 10 for number in range(19)], 171_000),
    }
    assert goals.states(summary({"m_us": "< 100 us"}, skewed)) == {
        0: "missed, 16,000 % above the limit",
        1: "met, 62 % below the limit; 2 of 20 seeds miss it",
        2: "undecided, 8,500 % above the limit; 1 of 20 seeds misses it",
    }
    none = summary({"m_us": "< 10 us", "t_s": "minimal"}, runs)
    assert goals.of_sweep(none, NAMED)[-1] == (
        "Goal t_s minimal: no point of the sweep meets the limits."
    )
    one = summary(table, {0: rows(50)})
    assert "K 0 is the best on average" in goals.of_sweep(one, NAMED)[-1]
    absent = summary({"n_us": "< 10 us"}, runs)
    assert goals.of_sweep(absent, NAMED) == [
        "Goal n_us: no run has a measure of this name; did you mean m_us?"
    ]
    alike = summary({"t_s": "minimal"}, {0: rows(1), 1: rows(1)})
    assert "it does not differ clearly from K 1" in goals.of_sweep(alike, NAMED)[0]
    assert goals.of_sweep({}, NAMED) == [] and goals.states({}) == {}


def test_the_margin_of_several_limits_is_the_least_one_that_is_known() -> None:
    """A limit of 0 has no relative margin, and is named only if its state is the worst."""
    table = {"m_us": "< 100 us", "l_us": "< 10 us", "missed": "<= 0"}
    rows = [{"m_us": 50.0 + seed / 100, "l_us": 9.0, "missed": 0.0} for seed in range(3)]
    runs = {0: rows, 1: [row | {"missed": 4.0} for row in rows]}
    assert goals.states(summary(table, runs)) == {0: "met, 10 % below the limit", 1: "missed"}


def test_a_sentence_tells_from_which_value_on_the_goal_is_met() -> None:
    def said(*values: str) -> str:
        """Return the values that meet the goal of lines such as ``mmx``: two met, one missed."""
        rows = {
            line * 10 + column: [{"m_us": 50.0 if state == "m" else 200.0}] * 2
            for line, states in enumerate(values)
            for column, state in enumerate(states)
        }
        lines = tuple(
            goals.Line(
                f"tcp {line}", tuple((f"{2**c} KB", line * 10 + c) for c in range(len(states)))
            )
            for line, states in enumerate(values)
        )
        names = goals.Names(lambda point: f"point {point}", "", "limit", lines)
        found = goals.of_sweep(summary({"m_us": "< 100 us"}, rows), names)
        return found[1] if len(found) > 1 else ""

    assert said("xxx", "xmm", "mmx", "mmm", "mxm") == (
        "Values of limit that meet the goal: none with tcp 0; from 2 KB on with tcp 1; up to 2 KB "
        "with tcp 2; all with tcp 3; only 1 KB, 4 KB with tcp 4."
    )
    assert said("mmx") == said("xxx", "xxx") == ""


@pytest.mark.long
def test_run_sweep_page_and_optimisation_agree(here: Path) -> None:
    swept = ew.sweep("sweep.toml", out="swept", jobs=0)
    found = swept.summary["goals"]
    assert [point["state"] for point in found["points"]] == ["missed", "met", "met"]
    best = swept.settings(found["best"])
    kept = ew.optimize("optimize.toml", out="best", jobs=0)
    assert kept.recommended is not None and kept.recommended["settings"] == best
    assert kept.summary["limits"] == ["rounds.goodput_bps > 800 Mbit/s"]
    # Goals are not in the keys of runs in the store, so only the baseline is run.
    assert kept.summary["runs"]["reused"] == 9

    states = swept.points.filter(pl.col("goal").is_not_null())
    assert states["metric"].unique().to_list() == ["rounds.goodput_bps"]
    assert states["goal"].to_list() == [point["state"] for point in found["points"]]

    page = write_report([swept.path]).read_text(encoding="utf-8")
    sentences = goals.of_sweep(
        swept.summary, goals.Names(lambda point: f"limit {LIMITS[point]}", "limit")
    )
    assert len(sentences) == 2
    for sentence in sentences:
        assert sentence.replace(">", "&gt;") in page, sentence
    done = CliRunner().invoke(
        app, ["sweep", "sweep.toml", "--jobs", "0", "--resume", "--out", "swept"]
    )
    assert done.exit_code == 0 and "missed, " in done.output, done.output
    # The table has the measures that the goals name.
    assert "goodput  incast round mean" in done.output
    assert all(sentence in done.output for sentence in sentences), done.output

    results = [
        ew.run("rounds.toml", {"fabric.queue.limit": limit}, 1, f"run-{number}")
        for number, limit in enumerate(LIMITS)
    ]
    met = [result.summary["goals"][0]["met"] for result in results]
    assert met == [point["state"] == "met" for point in found["points"]]
    alone = write_report([results[0].path]).read_text(encoding="utf-8")
    assert "Goal rounds.goodput_bps &gt; 800 Mbit/s: missed with" in alone
    compared = goals.compared(results, LIMITS)
    assert compared[0].startswith("Goal rounds.goodput_bps > 800 Mbit/s: met by 50 packets (")
    assert f"minimal: {best['fabric.queue.limit']} among those that meet" in compared[1]
    both = write_report([each.path for each in results], Path("both.html")).read_text("utf-8")
    assert "missed by limit = 8 packets" in both
    shown = CliRunner().invoke(
        app, ["run", "rounds.toml", "--out", "shown", "--set", "fabric.queue.limit=100 packets"]
    )
    assert "goal" in shown.output and "met with" in shown.output


@pytest.mark.long
def test_a_sweep_has_goals_of_its_own_or_those_of_its_scenario(here: Path) -> None:
    own = SWEEP + '[goal]\n"rounds.goodput_bps" = "> 2 Gbit/s"\n'
    Path("own.toml").write_text(own)
    found = ew.sweep("own.toml", out="own", jobs=0, seeds=2).summary["goals"]
    assert found["goal"] == {"rounds.goodput_bps": "> 2 Gbit/s"} and found["best"] is None
    Path("own.toml").write_text(SWEEP + "[goal]\n")
    assert ew.sweep("own.toml", out="none", jobs=0, seeds=2).summary["goals"] is None
    wrong = SWEEP + '[goal]\n"incast.round_us.mean" = "minimal"\n'
    Path("own.toml").write_text(wrong)
    with pytest.raises(ValueError, match=r"goal\.incast\.round_us\.mean: is not a measure"):
        ew.sweep("own.toml", out="wrong", jobs=0)
    Path("own.toml").write_text(own.replace("2 Gbit/s", "2 GB"))
    with pytest.raises(ValueError, match=r'is a rate; write "> 2 bit/s"'):
        ew.sweep("own.toml", out="wrong", jobs=0)
    Path("optimize.toml").write_text(OPTIMISE + '[goal]\n"rounds.goodput_bps" = "maximal"\n')
    spec = ew.optimize("optimize.toml", out="best", jobs=0).summary
    assert spec["limits"] == [] and spec["goals"][0]["more"] is True
    Path("optimize.toml").write_text(OPTIMISE + '[goal]\n"rounds.goodput_bps" = "> 1 Mbit/s"\n')
    with pytest.raises(ValueError, match="has no measure that should be"):
        ew.optimize("optimize.toml", out="other", jobs=0)
