"""Form of goals: what a table may say, and every problem of one that says it wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

import eastwest as ew
from eastwest import by_workload, core, shipped
from eastwest.errors import ProblemsError
from eastwest.goals import form
from eastwest.goals.form import Goal, Limit
from eastwest.json_schema import json_schema
from eastwest.run import Source
from eastwest.store import plan
from eastwest.sweep.metrics import metrics_in
from eastwest.work_units import PURPOSES, STATISTICS
from project_paths import ROOT

#: A shuffle and a service that share a switch for a few milliseconds.
TINY = """
schema = 1
name = "tiny"
[fabric]
kind = "star"
hosts = 6
host_rate = "1 Gbit/s"
[[workload]]
name = "sort"
kind = "mapreduce"
job = [{ kind = "shuffle", shuffle = "2 MB", maps = 2, reduces = 2 }]
[[workload]]
name = "web"
kind = "service"
clients = ["h1"]
servers = ["h2"]
mean_gap = "1 ms"
background = true
"""
GOAL = '[goal]\n"web.exchange_us.p99" = "< 1 ms"\n"sort.runtime_s.mean" = "minimal"\n'


def source(text: str) -> Source:
    return Source(text, Path.cwd(), "text")


def test_limits_have_the_unit_of_their_measure() -> None:
    goals, problems = form.read(
        {
            "web.exchange_us.p99": "< 1 ms",
            "sort": {"runtime_s": {"mean": "<=2 min"}},
            "rounds.goodput_bps": "> 9.4 Gbit/s",
            "flows.bytes": ">= 1 MB",
            "energy_j.total": "< 1.5 kJ",
            "energy_j.of_always_on": "< 40 %",
            "packets.dropped": "< 10 packets",
            "tcp.timeouts": "< 1",
            "latency_us.p99": "< 100",
            "jobs.makespan_s": "minimal",
            "throughput_bps": " maximal ",
        }
    )
    assert problems == []
    assert [(limit.metric, limit.least, limit.strict, limit.bound) for limit in goals.limits] == [
        ("web.exchange_us.p99", False, True, 1000.0),
        ("sort.runtime_s.mean", False, False, 120.0),
        ("rounds.goodput_bps", True, True, 9.4e9),
        ("flows.bytes", True, False, 1e6),
        ("energy_j.total", False, True, 1500.0),
        ("energy_j.of_always_on", False, True, 0.4),
        ("packets.dropped", False, True, 10.0),
        ("tcp.timeouts", False, True, 1.0),
        ("latency_us.p99", False, True, 100.0),
    ]
    assert goals.best == (Goal("jobs.makespan_s", False), Goal("throughput_bps", True))
    assert form.read(goals.table()) == (goals, [])
    assert goals.limits[1].text() == "sort.runtime_s.mean <= 2 min"
    assert Limit("m", True, 3.0, False).text() == "m at least 3"


def test_every_problem_of_a_table_is_told() -> None:
    _, problems = form.read(
        {
            "a.exchange_us.p99": "< 1 MB",
            "packets.dropped": "< 1 ms",
            "applications.a.counters.missed": "< 50 %",
            "b": "lowest",
            "c": "minimum",
            "d": 3,
            "e": "= 3",
        }
    )
    told = {p["path"]: (p["message"], p["hint"]) for p in problems}
    assert told.keys() == {
        "goal.a.exchange_us.p99", "goal.packets.dropped", "goal.applications.a.counters.missed",
        "goal.b", "goal.c", "goal.d", "goal.e",
    }  # fmt: skip
    missed = told["goal.applications.a.counters.missed"][0]
    assert missed == 'missed is a number without a unit; write "< 50"'
    assert told["goal.a.exchange_us.p99"][0] == 'exchange_us is a time; write "< 1 us"'
    assert told["goal.packets.dropped"][0] == 'dropped is a number without a unit; write "< 1"'
    assert told["goal.c"][1] == "minimal"
    assert "must be a table" in form.read(3)[1][0]["message"]
    many = {f"m{number}": "< 1" for number in range(17)}
    assert "at most 16" in form.read(many)[1][0]["message"]


def test_goals_of_a_scenario_are_read_with_its_overrides() -> None:
    found = form.of_scenario(source(TINY + GOAL), [])
    assert found.table() == {"web.exchange_us.p99": "< 1 ms", "sort.runtime_s.mean": "minimal"}
    changed = form.of_scenario(source(TINY + GOAL), [("goal.web.exchange_us.p99", "< 2 ms")])
    assert changed.limits[0].bound == 2000.0
    added = form.of_scenario(source(TINY), [("goal.flows.count", "maximal")])
    assert added.best == (Goal("flows.count", True),)
    assert not form.of_scenario(source(TINY), [])


def test_flow_mode_has_no_goals_on_packets() -> None:
    text = TINY + '[goal]\n"latency_us.p99" = "< 1 ms"\n"packets.dropped" = "<= 0"\n'
    flow = text.replace('name = "tiny"', 'name = "tiny"\nfidelity = "flow"', 1)
    assert form.problems_of(source(text), []) == []
    problems = form.problems_of(source(flow), [])
    assert [each["path"] for each in problems] == ["goal.latency_us.p99", "goal.packets.dropped"]
    assert 'is not measured with fidelity = "flow"' in problems[0]["message"]
    done = ew.run(TINY, {"fidelity": "flow"})
    assert done.summary["latency_us"]["count"] == 0 and "p99" not in done.summary["latency_us"]
    names = {name.partition(".")[0] for name in metrics_in(done.summary)}
    assert "flows" in names and not names & {"latency_us", "packets", "drops", "tcp"}


def test_a_run_does_not_depend_on_its_goals(tmp_path: Path) -> None:
    without, with_goals = plan(source(TINY)), plan(source(TINY + GOAL))
    assert without.identity == with_goals.identity
    other = plan(source(TINY + GOAL.replace("1 ms", "2 ms")), [("goal.flows.count", "maximal")])
    assert other.identity == without.identity
    plain = ew.run(TINY, out=tmp_path / "plain")
    wanted = ew.run(TINY + GOAL, out=tmp_path / "wanted")
    assert plain.digest == wanted.digest and "goals" not in plain.summary
    again = ew.run(tmp_path / "wanted", out=tmp_path / "again")
    assert again.summary["goals"] == wanted.summary["goals"] and again.digest == plain.digest


@pytest.mark.parametrize(
    ("measure", "hint"),
    [
        ("wep.exchange_us.p99", "web.exchange_us.p99"),
        ("web.exchange_us.p98", "web.exchange_us.p99"),
        ("web.exchange_us", "web.exchange_us.max"),
        ("workloads.web.exchange_ms.p99", "web.exchange_us.p99"),
        ("while.sort/shuffle.web.exchange.p99", "while.sort/shuffle.web.exchange_us.p99"),
        ("while.srt.web.exchange_us.p99", "while.sort.web.exchange_us.p99"),
        ("while.sort/shufle.web.exchange_us.p99", "while.sort/shuffle.web.exchange_us.p99"),
        ("while.srt/shuffle.web.exchange_us.p99", "while.sort/shuffle.web.exchange_us.p99"),
        ("while.sort/shuffle.wep.exchange_us.p99", "while.sort/shuffle.web.exchange_us.p99"),
        ("while.sort.sort.runtime_s.mean", None),
        ("web.latency.p99", "web.exchange_us.p99"),
        ("web.shufle_fct_us.p99", "web.shuffle_fct_us.p99"),
        ("flow.fct_us.p99", "flows.fct_us.p99"),
    ],
)
def test_unknown_measures_are_refused_before_the_run(
    measure: str, hint: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f'{TINY}[goal]\n"{measure}" = "< 1"\n'
    [problem] = ew.check(text)
    assert problem["path"] == f"goal.{measure}" and "sort, web" in problem["message"]
    if hint is not None:
        assert problem["hint"] is not None
        assert problem["hint"].rpartition(".")[0] == hint.rpartition(".")[0]
    monkeypatch.setattr(core, "run", lambda *_: pytest.fail("the run has begun"))
    with pytest.raises(ProblemsError, match="is not a measure"):
        ew.run(text)


#: Two applications; the name of one contains the name of the other and a dot.
APPLICATIONS = """
schema = 1
[fabric]
kind = "star"
hosts = 4
host_rate = "1 Gbit/s"
[[workload]]
name = "search"
kind = "fan-out"
queries = 2
[[workload]]
name = "search.store"
kind = "quorum"
writes = 2
replicas = 2
quorum = 1
"""


@pytest.mark.parametrize(
    ("measure", "near"),
    [
        ("applications.search.query_us.p99", None),
        ("applications.search.counters.missed", None),
        ("applications.search.requests.unanswered", None),
        ("applications.search.operations.completed", None),
        ("applications.search.store.write_us.mean", None),
        ("applications.search.counters.mised", "applications.search.counters.missed"),
        ("applications.search.missed", "applications.search.counters.missed"),
        ("applications.search.query_us", "applications.search.query_us.p99"),
        ("applications.search.querry_us.p99", "applications.search.query_us.p99"),
        ("applications.search.write_us.p99", "applications.search.query_us.p99"),
        ("applications.search.requests.answer", "applications.search.requests.answered"),
        ("applications.search.store.counters.missed", None),
        ("applications.serch.query_us.p99", "applications.search.query_us.p99"),
        ("search.query_us.p99", "applications.search.query_us.p99"),
    ],
)
def test_goals_know_the_numbers_of_applications(measure: str, near: str | None) -> None:
    problems = ew.check(f'{APPLICATIONS}[goal]\n"{measure}" = "minimal"\n')
    right = near is None and measure != "applications.search.store.counters.missed"
    assert len(problems) == (0 if right else 1), problems
    if near is not None:
        assert problems[0]["hint"] == near


def test_goals_may_name_an_application_that_is_off() -> None:
    goals = (
        '[goal]\n"applications.search.query_us.p99" = "< 1 ms"\n"search.fct_us.p99" = "< 1 ms"\n'
    )
    assert ew.check(APPLICATIONS + goals, {"workload.search.off": True}) == []


def test_a_wrong_number_of_an_application_lists_the_right_ones() -> None:
    goal = '"applications.search.store.counters.missed" = "minimal"'
    (problem,) = ew.check(f"{APPLICATIONS}[goal]\n{goal}\n")
    for name in ("counters.{writes, confirmations}", "write_us", "replicated_us", "p99"):
        assert name in problem["message"]
    (problem,) = ew.check(f'{TINY}[goal]\n"applications.web.query_us.p99" = "minimal"\n')
    assert "this scenario has none" in problem["message"]


def test_the_declared_numbers_of_applications_are_those_of_their_runs() -> None:
    text = "".join(
        f'[[workload]]\nname = "{kind}"\nkind = "{kind}"\n{more}\n'
        for kind, more in (
            ("fan-out", "queries = 3"),
            ("hedged", "operations = 3"),
            ("quorum", "writes = 3\nreplicas = 2\nquorum = 1"),
            ("key-value", "operations = 40\nread_share = 0.5"),
            ("parameter-server", 'iterations = 2\nmodel_bytes = "1 MB"'),
        )
    )
    fabric = APPLICATIONS.partition("[[workload]]")[0]
    given = source(fabric + text)
    declared = core.resolve(given.text, ".", str(shipped.DATA), [], 1)["applications"]
    summary = ew.run(given.text).summary["applications"]
    assert declared.keys() == summary.keys()
    for name, own in summary.items():
        assert sorted(own["counters"]) == sorted(declared[name]["counters"] or [])
        measures = {f"{each}_us" for each in declared[name]["measures"] or []}
        further = {each.partition(".")[0] for each in declared[name]["further"]}
        assert own.keys() - {"counters", "ended", "transport"} == measures | further
        for each in declared[name]["further"]:
            part, _, number = each.partition(".")
            assert isinstance(own[part][number], int)


def test_an_unknown_purpose_of_flows_is_refused() -> None:
    [problem] = ew.check(TINY, {"goal.flows.by_purpose.shufle.fct_us.p99": "< 1 s"})
    assert "allowed: flow, incast" in problem["message"]
    assert problem["hint"] == "flows.by_purpose.shuffle.fct_us.p99"


@pytest.mark.parametrize(
    "measure",
    [
        "web.exchange_us.p99",
        "workloads.web.exchange_us.count",
        "while.sort.web.exchange_us.mean",
        "while.sort/shuffle.web.fct_us.p999",
        "sort.shuffle_fct_us.max",
        "sort.makespan_s",
        "flows.by_purpose.shuffle.fct_us.p99",
        "tcp.timeout_causes.tail",
    ],
)
def test_measures_that_may_exist_are_accepted(measure: str) -> None:
    assert ew.check(f'{TINY}[goal]\n"{measure}" = "minimal"\n') == []


@pytest.mark.parametrize("wanted", ["< 150 Gbit/s", "< 10 GB", "< -5 us", "> -5"])
def test_wrong_limits_are_refused_everywhere_before_the_run(
    wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(TINY + GOAL.replace("< 1 ms", wanted))
    axis = '[[axis]]\npath = "fabric.host_rate"\nvalues = ["1 Gbit/s", "2 Gbit/s"]\n'
    for kind in ("sweep", "optimize"):
        Path(f"{kind}.toml").write_text(f'{kind} = 1\nscenario = "s.toml"\n{axis}')
    [problem] = ew.check("s.toml")
    assert problem["path"] == "goal.web.exchange_us.p99" and problem["value"] == f'"{wanted}"'
    said = "exchange_us is a time"
    assert said in problem["message"]
    monkeypatch.setattr(core, "run", lambda *_: pytest.fail("the run has begun"))
    for begin in (
        lambda: ew.run("s.toml"),
        lambda: ew.run(TINY, {"goal.web.exchange_us.p99": wanted}),
        lambda: ew.sweep("sweep.toml", jobs=0),
        lambda: ew.optimize("optimize.toml", jobs=0),
    ):
        with pytest.raises(ProblemsError, match=said):
            begin()
    with pytest.raises(ProblemsError, match=said):
        form.of_scenario(source(Path("s.toml").read_text()), [])


def test_a_setting_is_not_a_measure(tmp_path: Path) -> None:
    for setting in ("fabric.queue.limit", "tcp.min_rto", "workload.web.mean_gap", "duration"):
        [problem] = ew.check(TINY, {f"goal.{setting}": "minimal"})
        assert problem["message"].startswith("is a setting"), setting
        assert "sort.runtime_s.p99" in problem["message"] and problem["hint"] is None
    metrics = metrics_in(ew.run(TINY, out=tmp_path / "r").summary)
    names = form._Names({"sort": "mapreduce", "web": "service"}, form.PARTS, {})
    assert [name for name in metrics if names.problem(name)] == []


def test_purposes_are_those_of_the_simulator() -> None:
    record = (ROOT / "crates" / "types" / "src" / "record.rs").read_text("utf-8")
    assert {*PURPOSES} == {*re.findall(r'Purpose::\w+ => "([\w-]+)"', record)}


def test_names_of_measures_are_those_of_summaries(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "results.md").read_text(encoding="utf-8")
    rows = page.partition("## `summary.json`")[2].splitlines()
    parts = {row.split("`")[1].partition(".")[0] for row in rows if row.startswith("| `")}
    others = {
        "format", "scenario", "seed", "set", "version", "digest", "fidelity", "mechanisms", "notes",
        "wall_s", "cpu_s", "peak_rss_mb", "workloads", "while", "window", "goals",
        "stopped_early",
    }  # fmt: skip
    assert parts - others == {*form.PARTS}
    spread = by_workload.spread(ew.run(TINY, out=tmp_path / "r").flows["fct_us"])
    assert {*spread} == {*STATISTICS}


def test_editors_accept_goals_and_refuse_other_texts() -> None:
    schema = json.loads(json.dumps(json_schema()))["properties"]["goal"]
    jsonschema.validate({"web.exchange_us.p99": "< 1 ms", "a": {"b": "minimal"}}, schema)
    for wrong in ({"a": "1 ms"}, {"a": "lowest"}, {"a": 3}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


def test_shipped_goals_are_right() -> None:
    for path in shipped.SCENARIOS.glob("*.toml"):
        if "[goal]" in path.read_text(encoding="utf-8"):
            assert ew.check(path) == [], path
