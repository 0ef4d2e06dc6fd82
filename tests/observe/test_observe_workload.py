"""From spans to a workload, from a run back to spans, and what-if between them."""

from __future__ import annotations

import csv
import json
import math
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import eastwest as ew
from eastwest.cli import app
from eastwest.errors import InputError
from eastwest.observe import levels, otlp_write, replay, sizes, synthetic, what_if
from eastwest.observe.book import Book, Tree, book_of
from eastwest.observe.load import open_spans
from eastwest.report.what_if import page
from eastwest.views.what_if import Shown
from project_paths import DATA
from spans_made import Made, a_call, otlp

pytestmark = pytest.mark.slow

NEZHA = DATA / "spans" / "nezha-first-20-s.csv.gz"
HOSTILE = "<script>alert(1)</script>&\"'\t\n=cmd"


def spans_file(folder: Path, spans: list[Made]) -> Path:
    path = folder / "spans.json"
    path.write_text(json.dumps(otlp(spans)), encoding="utf-8")
    return path


def book(path: Path, between: str = "host") -> Book:
    with open_spans(path) as opened:
        return book_of(opened.scan().collect(), between)


def played(tree: Tree) -> int:
    """Return the time that a transaction takes without a network.

    It is computed by a second implementation of the replay's rules.
    """
    done: dict[int, int] = {}
    below: dict[int, list[int]] = {}
    for number, call in enumerate(tree.calls):
        below.setdefault(call.parent, []).append(number)

    def play(number: int, start: int) -> int:
        last = start
        for child in below.get(number, ()):
            call = tree.calls[child]
            since = max((done[other] for other in call.after), default=start)
            done[child] = play(child, since + call.gap_ns)
            if call.waited:
                last = max(last, done[child])
        return last + tree.calls[number].rest_ns

    return play(0, 0)


def test_a_call_becomes_gaps_rests_and_one_journey(tmp_path: Path) -> None:
    made = [*a_call(), Made(5, 1, 65, 95, "web", "log", "internal", host="a")]
    made[1].attributes = {"http.request.body.size": 700, "http.response_content_length": 9000}
    tree = book(spans_file(tmp_path, made)).trees[0]
    ms = 1_000_000
    assert [call.operation for call in tree.calls] == ["GET /", "query", "log", "render"]
    assert [call.component for call in tree.calls] == ["web", "db", "web", "web"]
    query, log, render = tree.calls[1:]
    assert (query.gap_ns, query.rest_ns, query.after) == (10 * ms, 50 * ms, [])
    assert (query.request_bytes, query.response_bytes) == (700, 9000)
    assert (log.gap_ns, log.after, log.parent) == (5 * ms, [1], 0)
    assert (render.gap_ns, render.after) == (10 * ms, [1])
    assert tree.calls[0].rest_ns == 5 * ms
    without = book(spans_file(tmp_path, made), "network")
    assert without.trees[0].calls[1].rest_ns == 30 * ms
    assert without.between_ns == 20 * ms
    assert played(tree) == 100 * ms
    assert played(without.trees[0]) == 80 * ms


def test_calls_that_outlive_their_caller_are_not_waited_for(tmp_path: Path) -> None:
    made = [
        Made(1, 0, 0, 10, "web", "GET", "server"),
        Made(2, 1, 2, 50, "mail", "send", "consumer"),
        Made(3, 1, 12, 20, "mail", "late", "consumer"),
        Made(4, 1, 4, 6, "web", "redis", "client", attributes={"peer.service": "redis"}),
    ]
    tree = book(spans_file(tmp_path, made)).trees[0]
    named = {call.operation: call for call in tree.calls}
    assert not named["send"].waited
    assert not named["late"].waited
    assert named["redis"].component == "redis"
    assert played(tree) == 10_000_000


def test_nezha_takes_as_long_without_a_network_as_it_did() -> None:
    found = book(NEZHA)
    assert len(found.trees) > 100
    for tree in found.trees:
        assert played(tree) == tree.response_ns
    assert sum(played(tree) for tree in book(NEZHA, "network").trees) < 0.8 * sum(
        tree.response_ns for tree in found.trees
    )


def test_sizes_come_from_spans_then_from_the_operation_then_from_the_rule() -> None:
    found = book(NEZHA)
    for tree in found.trees[:50]:
        for call in tree.calls:
            call.request_bytes = 4321
    rules = sizes.size_rule("1600"), sizes.size_rule("uniform:1600:2000")
    told = sizes.fill(found, *rules, 1)
    assert told["request_bytes"]["attributes"] > 0
    assert told["request_bytes"]["operation"] > 0
    assert told["response_bytes"]["default"] == sum(told["response_bytes"].values())
    called = [c for t in found.trees for c in t.calls if sizes.travels(t, c)]
    assert {c.request_bytes for c in called} <= {4321, 1600}
    assert {c.response_bytes for c in called} <= set(range(1600, 2001))
    for wrong in ("", "0", "1.5", "uniform:5", "uniform:9:3", "lognormal:0:1", "normal:1:2", "nan"):
        with pytest.raises(InputError, match="size"):
            sizes.size_rule(wrong)
    drawn = sizes.size_rule("lognormal:1000:0.5").draw(np.random.default_rng(1), 4000)
    assert 950 < np.median(drawn) < 1050


@pytest.mark.parametrize("name", ["exponential", "lognormal", "gamma", "weibull", "pareto"])
def test_the_law_that_made_a_sample_fits_it(name: str) -> None:
    random = np.random.default_rng(3)
    sample = {
        "exponential": random.exponential(0.2, 4000),
        "lognormal": random.lognormal(-3, 1.5, 4000),
        "gamma": random.gamma(4.0, 0.01, 4000),
        "weibull": 0.5 * random.weibull(3.0, 4000),
        "pareto": 2.0 * (1 + random.pareto(1.7, 4000)),
    }[name]
    fitted = {fit.name: fit for fit in levels.fits(sample)}
    assert fitted[name].distance < 0.02
    best = levels.variable("burst", "size", "B", sample).best
    assert best is not None
    assert best.distance <= fitted[name].distance
    if name == "lognormal":
        assert fitted[name].parameters["sigma"] == pytest.approx(1.5, rel=0.05)
        assert fitted[name].parameters["scale"] == pytest.approx(np.exp(-3), rel=0.1)
    again = levels.draw(levels.variable("", "", "", sample), random, 4000)
    assert np.median(again) == pytest.approx(np.median(sample), rel=0.15)


def test_packets_that_the_sample_leaves_out_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all("note" not in level.as_json() for level in levels.levels(book(NEZHA)))
    found = book(NEZHA)
    calls = found.trees[0].calls
    remote = next(c for c in calls[1:] if calls[c.parent].component != c.component)
    remote.request_bytes = 5000 * levels.SEGMENT
    packets = levels.levels(found)[-1]
    long = "1 message of more than 1,000 packets: further packets are left out"
    assert packets.as_json()["note"] == long
    full = int((packets.values == levels.SEGMENT).sum()) - 1  # one is the last of its message
    monkeypatch.setattr(levels, "_MOST_FULL", 900)
    note = f"{long}; {full - 900:,} of {full:,} full packets are left out"
    assert levels.levels(found)[-1].note == note


def test_made_transactions_are_like_the_recorded_ones() -> None:
    found = book(NEZHA)
    gaps = next(v for v in levels.levels(found) if (v.level, v.what) == ("transaction", "gap"))
    for how in synthetic.DRAWS:
        made = synthetic.synthetic(found, gaps, 400, how, 7)
        again = synthetic.synthetic(found, gaps, 400, how, 7)
        assert made.trees == again.trees
        assert len({tree.name for tree in made.trees}) == 400
        starts = [tree.start_ns for tree in made.trees]
        assert starts == sorted(starts)
        recorded = np.mean([played(tree) for tree in found.trees])
        assert np.mean([played(tree) for tree in made.trees]) == pytest.approx(recorded, rel=0.25)
    with pytest.raises(InputError, match="method of synthesis"):
        synthetic.synthetic(found, gaps, 4, "guess", 7)


@pytest.fixture(scope="module")
def nezha(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a workload of the first seconds of the recording."""
    out = tmp_path_factory.mktemp("workload") / "shop"
    done = CliRunner().invoke(app, ["observe", "workload", str(NEZHA), "-o", str(out), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["transactions"] > 100
    return out


def test_a_folder_runs_and_computing_is_what_was_recorded(nezha: Path, tmp_path: Path) -> None:
    about = json.loads((nezha / "workload.json").read_text())
    assert {v["level"] for v in about["levels"]} == {
        "work",
        "transaction",
        "flow",
        "burst",
        "packet",
    }
    result = ew.run(nezha / "scenario.toml", {"fidelity": "flow"}, out=tmp_path / "r")
    found = result.transactions
    assert found.height == about["transactions"]
    recorded = {tree.name: tree.response_ns / 1e3 for tree in book(NEZHA).trees}
    for name, response, network, compute in found.select(
        "name", "response_us", "network_us", "compute_us"
    ).iter_rows():
        assert response == pytest.approx(network + compute, abs=1e-3)
        assert recorded[name] - 1 <= response < recorded[name] + 100_000
    travelling = result.calls.filter(pl.col("network_us") > 0)["transaction"].unique().to_list()
    assert set(travelling) <= set(result.flows["job"].to_list()) <= set(range(found.height))
    assert result.summary["transactions"]["count"] == found.height
    rows = list(csv.DictReader((nezha / "messages.csv").read_text(encoding="utf-8").splitlines()))
    assert len(rows) == result.flows.height
    assert set(rows[0]) == {
        "timestamp_s",
        "source",
        "destination",
        "priority",
        "burst_bytes",
        "transaction",
    }


def test_a_run_gives_spans_that_are_read_back(nezha: Path, tmp_path: Path) -> None:
    setting = {"fidelity": "flow", "workload.transactions.clients": '["h11"]'}
    result = ew.run(nezha / "scenario.toml", setting, out=tmp_path / "r")
    out = tmp_path / "spans.json"
    done = CliRunner().invoke(
        app, ["observe", "export", str(result.path), "-o", str(out), "--spans"]
    )
    assert done.exit_code == 0, done.output
    with open_spans(out) as opened:
        spans = opened.scan().collect()
    assert spans["shift_ns"].abs().max() == 0
    assert spans["mended"].null_count() == spans.height
    back = book_of(spans, "network")
    calls = {
        key[0]: frame.sort("call")
        for key, frame in result.calls.partition_by("transaction", as_dict=True).items()
    }
    zero = otlp_write.BEGAN_S * 10**9
    arrived = {
        round(t * 1e9): n for n, t in result.transactions.select("transaction", "arrived_s").rows()
    }
    assert len(back.trees) == len(calls)
    for tree in back.trees:
        number = arrived[back.began_ns + tree.start_ns - zero]
        frame = calls[number]
        assert [call.component for call in tree.calls] == frame["component"].to_list()
        for call, row in zip(tree.calls, frame.iter_rows(named=True), strict=True):
            at = (back.began_ns + tree.start_ns - zero) / 1e9
            assert call.sent_ns / 1e9 + at == pytest.approx(row["sent_s"], abs=1e-6)
            assert call.done_ns / 1e9 + at == pytest.approx(row["done_s"], abs=1e-6)
            assert call.parent == row["parent"]
            travels = sizes.travels(tree, call)
            assert call.request_bytes == (row["request_bytes"] if travels else 0)


def test_a_run_without_transactions_has_no_spans(tmp_path: Path) -> None:
    result = ew.run("first", {"fidelity": "flow"}, out=tmp_path / "r")
    done = CliRunner().invoke(
        app, ["observe", "export", str(result.path), "-o", str(tmp_path / "s"), "--spans"]
    )
    assert done.exit_code == 2
    assert "no finished transactions" in done.output


def small(folder: Path, name: str = "web") -> None:
    """Write the folder of a workload whose names may be any text."""
    made = [
        Made(1, 0, 0, 10, name, name, "server"),
        Made(2, 1, 2, 8, name, "call", "client"),
        Made(3, 2, 3, 6, f"{name}-db", f"{name} op", "server"),
    ]
    made += [
        Made(
            s.span + 10,
            s.parent + 10 if s.parent else 0,
            s.start + 5,
            s.end + 5,
            s.service,
            s.operation,
            s.kind,
            trace=2,
        )
        for s in made
    ]
    with open_spans(spans_file(folder, made)) as opened:
        replay.write(opened, folder / "w", replay.Wanted("host"))


def test_what_if_compares_cases_on_one_page(tmp_path: Path) -> None:
    small(tmp_path, HOSTILE)
    (tmp_path / "w" / "what-if.toml").write_text(
        'scenario = "scenario.toml"\n[[case]]\nname = "<b>&\\"base"\n[[case]]\nname = "slow"\n'
        'set = { "fabric.host_rate" = "10 Mbit/s" }\n',
        encoding="utf-8",
    )
    out = tmp_path / "out"
    done = CliRunner().invoke(
        app, ["observe", "what-if", str(tmp_path / "w"), "-o", str(out), "--json"]
    )
    assert done.exit_code == 0, done.output
    first, slow = json.loads(done.stdout)["cases"]
    median = [case["transactions"]["response_us"]["p50"] for case in (first, slow)]
    assert median[1] > median[0] > 10_000
    text = (out / "what-if.html").read_text(encoding="utf-8")
    assert "<script>alert" not in text
    assert "<b>&" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "Times" not in text or "http" not in text.replace("http.", "")
    folders = [case["result"] for case in (first, slow)]
    done = CliRunner().invoke(app, ["observe", "what-if", *folders, "-o", str(tmp_path / "again")])
    assert done.exit_code == 0, done.output
    results = [ew.load(folder) for folder in folders]
    shown = [Shown(str(n), (result,)) for n, result in enumerate(results)]
    assert "× " in page(shown, "t") or "%" in text


def test_several_seeds_give_intervals_and_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EASTWEST_STORE", str(tmp_path / "store"))
    small(tmp_path)
    (tmp_path / "w" / "what-if.toml").write_text(
        'scenario = "scenario.toml"\n[[case]]\nname = "base"\n[[case]]\nname = "slow"\n'
        'set = { "fabric.host_rate" = "10 Mbit/s" }\n',
        encoding="utf-8",
    )
    command = ["observe", "what-if", str(tmp_path / "w"), "-o", str(tmp_path / "out"), "--json"]
    command += ["--jobs", "1"]

    def cases(*more: str) -> list[dict[str, Any]]:
        done = CliRunner().invoke(app, [*command, *more])
        assert done.exit_code == 0, done.output
        said = json.loads(done.stdout)
        assert len(said["seeds"]) == len(said["cases"][0]["digests"])
        return list(said["cases"])

    kept = tmp_path / "store" / "costs.jsonl"
    one = cases("--seed", "1")
    assert one[0]["intervals"]["transactions.response_us.p50"]["low"] is None
    assert len(kept.read_text().splitlines()) == 2
    three = cases("--seeds", "3", "--seed", "1")
    assert len(kept.read_text().splitlines()) == 6, "the runs of seed 1 are there"
    assert three == cases("--seeds", "3", "--seed", "1")
    assert len(kept.read_text().splitlines()) == 6, "all of them are there"
    assert [case["digests"][0] for case in three] == [case["digest"] for case in one]
    # The numbers of the page equal those computed from the runs in another way.
    for case in three:
        values = [
            float(np.mean(ew.load(folder).transactions["response_us"].to_numpy()))
            for folder in case["results"]
        ]
        found = case["intervals"]["transactions.response_us.mean"]
        # The factor is the 97.5 % quantile of Student's t with 2 degrees of freedom.
        half = 4.302652729911275 * statistics.stdev(values) / math.sqrt(3)
        assert found["mean"] == pytest.approx(statistics.mean(values), rel=1e-9)
        assert found["high"] - found["mean"] == pytest.approx(half, rel=1e-6, abs=1e-9)
    ratio = three[1]["intervals"]["transactions.response_us.mean"]["of_first"]
    assert ratio["low"] <= ratio["mean"] <= ratio["high"] and ratio["mean"] > 1
    text = (tmp_path / "out" / "what-if.html").read_text(encoding="utf-8")
    assert "means over 3 seeds" in text and 'id="intervals"' in text


def test_more_customers_wait_for_processors(nezha: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ["observe", "what-if", str(nezha / "customers.toml"), "-o", str(out)]
    done = CliRunner().invoke(app, [*command, "--store", str(tmp_path / "store"), "--json"])
    assert done.exit_code == 0, done.output
    found = {case["name"]: case["transactions"] for case in json.loads(done.stdout)["cases"]}
    queued = {name: each["queued_us"]["mean"] for name, each in found.items()}
    few, twice, four, eight, free = queued
    assert queued[free] == 0 < queued[few] < queued[twice] < queued[four]
    assert queued[eight] < queued[four] / 10
    # Computing time without waiting is as recorded, whatever the load.
    computed = [each["compute_us"]["mean"] - each["queued_us"]["mean"] for each in found.values()]
    assert max(computed) == pytest.approx(min(computed), rel=0.02)
    again = CliRunner().invoke(app, [*command, "--store", str(tmp_path / "store")])
    text = " ".join(again.output.split())
    assert text.count("in queues for processors") == 4, text
    assert "waiting for processors" in (out / "what-if.html").read_text(encoding="utf-8")


def test_what_if_says_which_case_cannot_run(tmp_path: Path) -> None:
    small(tmp_path)
    file = tmp_path / "w" / "what-if.toml"
    file.write_text(
        'scenario = "scenario.toml"\n[[case]]\nname = "base"\n[[case]]\nname = "odd"\n'
        'set = { "fabric.host_rat" = "1 Gbit/s" }\n',
        encoding="utf-8",
    )
    command = ["observe", "what-if", str(file), "-o", str(tmp_path / "out")]
    done = CliRunner().invoke(app, [*command, "--store", str(tmp_path / "s"), "--jobs", "0"])
    assert done.exit_code == 2 and "'odd'" in done.output and "host_rate" in done.output
    with pytest.raises(InputError, match="1 to 100"):
        what_if.run_cases(what_if.read_cases(file), what_if.Runs(101))


def test_files_of_cases_are_checked_whole(tmp_path: Path) -> None:
    file = tmp_path / "what-if.toml"
    file.write_text(
        'scenaro = 1\n[[case]]\nname = ""\nscenario = "none.toml"\n[[case]]\nset = { a = [1] }\n',
        encoding="utf-8",
    )
    with pytest.raises(InputError) as caught:
        what_if.read_cases(tmp_path)
    said = str(caught.value)
    for expected in ("scenaro", "case 1: name", "none.toml", "case 2: scenario", "case 2: set"):
        assert expected in said
    file.write_text("[[case]]", encoding="utf-8")
    with pytest.raises(InputError, match="2 to 24"):
        what_if.read_cases(file)
    file.write_text("[", encoding="utf-8")
    with pytest.raises(InputError, match=r"what-if.toml"):
        what_if.read_cases(file)
    with pytest.raises(InputError, match="no file of cases"):
        what_if.read_cases(tmp_path / "nothing")


def test_hostile_names_stay_in_their_column(tmp_path: Path) -> None:
    small(tmp_path, HOSTILE)
    text = (tmp_path / "w" / "transactions.tsv").read_text(encoding="utf-8")
    assert {line.count("\t") for line in text.splitlines()} == {len(replay.COLUMNS) - 1}
    result = ew.run(tmp_path / "w" / "scenario.toml", out=tmp_path / "r")
    assert result.calls["service"].n_unique() == 2
    assert result.calls.filter(pl.col("service").str.starts_with("<script>")).height == 4


def test_what_is_in_the_way_stays(tmp_path: Path) -> None:
    small(tmp_path)
    before = (tmp_path / "w" / "workload.json").read_bytes()
    done = CliRunner().invoke(
        app, ["observe", "workload", str(tmp_path / "spans.json"), "-o", str(tmp_path / "w")]
    )
    assert done.exit_code == 2
    done = CliRunner().invoke(
        app,
        [
            "observe",
            "workload",
            str(tmp_path / "spans.json"),
            "-o",
            str(tmp_path / "w"),
            "--force",
            "--between",
            "nothing",
        ],
    )
    assert done.exit_code == 2
    assert (tmp_path / "w" / "workload.json").read_bytes() == before
    assert not list(tmp_path.glob(".partial-*"))


def test_names_that_look_like_formulas_are_none_and_come_back(tmp_path: Path) -> None:
    names = ["=cmd|' /C calc'!A0", "@SUM(1)", "+1", "-2", "'=quoted", "'kept'", "plain"]
    made = []
    for n, name in enumerate(names):
        trace = n + 1
        made += [
            Made(10 * n + 1, 0, 10 * n, 10 * n + 9, name, name, "server", trace=trace),
            Made(10 * n + 2, 10 * n + 1, 10 * n + 1, 10 * n + 8, name, "ask", "client"),
            Made(10 * n + 3, 10 * n + 2, 10 * n + 2, 10 * n + 7, f"{name}/db", name, "server"),
        ]
        made[-1].trace = made[-2].trace = trace
    with open_spans(spans_file(tmp_path, made)) as opened:
        replay.write(opened, tmp_path / "w", replay.Wanted("host"))
    signs = ("=", "+", "-", "@", "\t", "\r")
    for name, separator in (("transactions.tsv", "\t"), ("messages.csv", ",")):
        with (tmp_path / "w" / name).open(encoding="utf-8", newline="") as file:
            if separator == "\t":
                rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
            else:
                rows = list(csv.reader(file))
        assert not [cell for row in rows for cell in row if cell.startswith(signs)]
    result = ew.run(tmp_path / "w" / "scenario.toml", out=tmp_path / "r")
    want = {*names, *(f"{name}/db" for name in names)}
    assert set(result.calls["service"]) == want
    assert set(result.calls["component"]) == want
    assert set(result.calls["operation"]) == set(names)
