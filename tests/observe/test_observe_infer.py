"""Transactions inferred without parents: results of each method, and their accuracy."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner, Result

import project_paths
import spans_made
from eastwest.cli import app
from eastwest.errors import InputError, ProblemsError
from eastwest.observe import convolution, grey, nesting, truth
from eastwest.observe.calls import Calls, calls_of, concurrency, parent_rows
from eastwest.observe.form import TABLES
from eastwest.observe.load import open_spans
from eastwest.observe.take import import_spans
from spans_made import Made, a_call

DATA = project_paths.DATA / "spans"
NEZHA = DATA / "nezha-first-20-s.csv.gz"
RULES = """
[[stitch]]
match = { operation = "operation" }
differ = ["instance"]
strip = "^(grpc\\\\.|/)"
once = true
"""


def frame_of(folder: Path, spans: list[Made]) -> pl.DataFrame:
    import_spans([spans_made.write(folder, spans)], folder / "made", force=True, lasting=False)
    with open_spans(folder / "made") as opened:
        return opened.frame(*TABLES["spans"])


@pytest.fixture(scope="module")
def nezha(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nezha") / "spans"
    import_spans([NEZHA], folder, lasting=False)
    return folder


@pytest.fixture(scope="module")
def calls(nezha: Path) -> Calls:
    with open_spans(nezha) as opened:
        return calls_of(opened.frame(*TABLES["spans"]))


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["observe", "infer", *map(str, arguments)])


def as_json(*arguments: str | Path) -> dict[str, Any]:
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return dict(json.loads(done.stdout))


def test_calls_are_what_a_tracer_sees(tmp_path: Path) -> None:
    found = calls_of(frame_of(tmp_path, a_call()))
    assert found.nodes == ("(outside)", "db", "web")
    assert [found.nodes[n] for n in found.caller] == ["(outside)", "web"]
    assert [found.nodes[n] for n in found.callee] == ["web", "db"]
    assert found.parent.tolist() == [-1, 0]
    times = [found.sent_ns, found.received_ns, found.answered_ns, found.returned_ns]
    assert [(int(t[1]) - spans_made.BEGAN_NS) / 1e6 for t in times] == [10, 20, 50, 60]
    assert concurrency(found) == 1.0


def test_a_span_of_unknown_kind_is_the_callers_side_only_if_it_does_nothing_else(
    tmp_path: Path,
) -> None:
    spans = [
        Made(1, 0, 0, 100, "a"),
        Made(2, 1, 10, 40, "a"),
        Made(3, 2, 20, 30, "b"),
        Made(4, 1, 50, 60, "c"),
    ]
    found = calls_of(frame_of(tmp_path, spans))
    sent = [(int(t) - spans_made.BEGAN_NS) / 1e6 for t in found.sent_ns]
    assert sent == [0, 10, 50], "the root has two children: it is no side of a call"


def test_calls_of_nezha(calls: Calls) -> None:
    assert len(calls) - int(calls.inside.sum()) == 183
    assert len(calls.nodes) == 11
    assert (calls.sent_ns <= calls.received_ns).mean() > 0.99
    assert 2 < concurrency(calls) < 3


def test_faster_transactions_are_the_same_transactions(calls: Calls) -> None:
    faster = calls.compressed(4.0)
    assert concurrency(faster) > 2 * concurrency(calls)
    spans = np.argsort(calls.span)
    again = np.argsort(faster.span)
    lengths = (calls.returned_ns - calls.sent_ns)[spans]
    assert (lengths == (faster.returned_ns - faster.sent_ns)[again]).all()
    inside = faster.parent >= 0
    same = faster.callee[faster.parent[inside]] == faster.caller[inside]
    assert same.all(), "parents are renumbered with their calls"


def test_nesting_is_right_where_only_one_parent_is_possible(calls: Calls) -> None:
    slow = calls.compressed(0.01)
    found = nesting.candidates(slow)
    assert max(len(each) for each in found) < 6
    parents = nesting.nest(slow)
    single = np.array([len(each) == 1 for each in found])
    assert (parents == slow.parent)[single].all()
    assert truth.accuracy(slow, parents, 0).recall > 0.99


def test_nesting_by_hand(tmp_path: Path) -> None:
    """Two requests at once: that of the typical delay is taken."""
    spans = []
    for n in range(20):
        begin = 1000.0 * n
        spans += [
            Made(3 * n + 1, 0, begin, begin + 100, "web", trace=n),
            Made(3 * n + 2, 3 * n + 1, begin + 50, begin + 60, "db", trace=n),
        ]
    spans += [
        Made(901, 0, 50_000, 50_100, "web", trace=100),
        Made(902, 0, 50_030, 50_130, "web", trace=101),
        Made(903, 901, 50_050, 50_060, "db", trace=100),
        Made(904, 902, 50_080, 50_090, "db", trace=101),
    ]
    found = calls_of(frame_of(tmp_path, spans))
    for rounds in (0, 6):
        assert (nesting.nest(found, rounds) == found.parent).all()


@pytest.mark.parametrize(("speed", "least"), [(0.5, 0.97), (1.0, 0.9), (4.0, 0.8)])
def test_nesting_of_nezha(calls: Calls, speed: float, least: float) -> None:
    moved = calls.compressed(speed)
    stripped = moved.__class__(
        **{**vars(moved), "parent": np.full(len(moved), -1), "transaction": moved.transaction * 0}
    )
    parents = nesting.nest(stripped)
    right = truth.accuracy(moved, parents, 0, speed)
    assert right.precision > least
    assert right.recall > least
    published = truth.accuracy(moved, nesting.nest(stripped, rounds=0), 0, speed)
    assert published.recall < right.recall - 0.1


def test_accuracy_by_hand(tmp_path: Path) -> None:
    found = calls_of(frame_of(tmp_path, [*a_call(), Made(9, 0, 200, 300, "web", trace=2)]))
    assert len(found) == 3
    perfect = truth.accuracy(found, found.parent, 0)
    assert (perfect.precision, perfect.recall, perfect.whole) == (1, 1, 1)
    wrong = truth.accuracy(found, np.array([-1, 2, -1]), 0)
    assert (wrong.precision, wrong.recall, wrong.whole) == (0, 0, 0.5)
    none = truth.accuracy(found, np.array([-1, -1, -1]), 0)
    assert (none.precision, none.recall, none.whole) == (1, 0, 0.5)
    extra = truth.accuracy(found, np.array([-1, 0, 0]), 0)
    assert (extra.precision, extra.recall, extra.whole) == (0.5, 1, 0.5)


def test_correlation_is_that_of_its_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution, "_PIECE", 64)
    monkeypatch.setattr(convolution, "MOST_STEPS", 50)
    chance = random.Random(1)
    arrivals = np.array(sorted(chance.randrange(500) for _ in range(80)))
    departures = np.array(sorted(chance.randrange(500) for _ in range(80)))
    found = convolution.correlation(arrivals, departures, 500)
    by_hand = [
        sum(1 for a in arrivals for d in departures if d - a == delay) for delay in range(50)
    ]
    assert found.tolist() == by_hand


def test_convolution_finds_the_delay(tmp_path: Path) -> None:
    chance = random.Random(2)
    spans = []
    begin = 0.0
    for n in range(60):
        begin += chance.uniform(20, 200)
        spans += [
            Made(3 * n + 1, 0, begin, begin + 90, "web", trace=n),
            Made(3 * n + 2, 3 * n + 1, begin + 37, begin + 60, "db", trace=n),
        ]
    found = convolution.causes(convolution.messages_of(calls_of(frame_of(tmp_path, spans))))
    names = {(each.origin, each.node, each.target): each.delay_ns / 1e6 for each in found}
    # Numbers of services: 0 outside, 1 db, 2 web.
    assert names[0, 2, 1] == pytest.approx(37, abs=1)
    assert names[1, 2, 0] == pytest.approx(30, abs=1)
    assert names[2, 1, 2] == pytest.approx(23, abs=1)


def test_convolution_of_nezha(calls: Calls) -> None:
    found = convolution.causes(convolution.messages_of(calls))
    right = convolution.compare(found, calls)
    assert right.recall > 0.9
    assert right.precision > 0.75


def test_linking(nezha: Path) -> None:
    with open_spans(nezha) as opened:
        frame = opened.frame(*TABLES["spans"])
    joined = grey.link(frame.drop("parent_id"), "trace_id")
    true = parent_rows(frame)
    assert (joined.parent == true).mean() > 0.9
    assert int(joined.transaction.max()) + 1 == 183


def test_linking_by_an_attribute_that_some_lack(tmp_path: Path) -> None:
    spans = a_call()
    for span in spans[:3]:
        span.attributes = {"request": 5}
    joined = grey.link(frame_of(tmp_path, spans), "attributes.request")
    assert joined.parent.tolist() == [-1, 0, 1, -1]
    assert joined.alone == 1
    with pytest.raises(InputError, match=r"no span has the attribute 'attributes\.absent'"):
        grey.link(frame_of(tmp_path, spans), "attributes.absent")


def test_stitching_of_nezha_finds_calls_between_pods(nezha: Path, tmp_path: Path) -> None:
    with open_spans(nezha) as opened:
        frame = opened.frame(*TABLES["spans"])
    rules = tmp_path / "rules.toml"
    rules.write_text(RULES)
    joined = grey.stitch(frame.drop("parent_id"), grey.read_rules(rules))
    true = parent_rows(frame)
    found = joined.parent >= 0
    assert (joined.parent == true)[found].mean() > 0.8


@pytest.mark.parametrize(
    ("rule", "parents"),
    [
        ('match = { "attributes.port" = "attributes.port" }', [-1, -1, 1, -1]),
        ('match = { "attributes.port" = "attributes.port" }\ndiffer = ["host"]', [-1, -1, 1, -1]),
        ('match = { "attributes.port" = "attributes.port" }\nwithin = "5 ms"', [-1, -1, -1, -1]),
        ('match = { host = "host" }', [-1, 0, -1, 0]),
        ('match = { host = "host" }\nonce = true', [-1, 0, -1, -1]),
        ('match = { host = "host" }\norder = "after"', [-1, -1, -1, 1]),
        ('match = { host = "host" }\norder = "started"\nwithin = "1 s"', [-1, 0, -1, 1]),
        ('match = { operation = "service" }\nstrip = "[a-z]"', [-1, -1, -1, -1]),
    ],
)
def test_rules_of_stitching(tmp_path: Path, rule: str, parents: list[int]) -> None:
    spans = a_call()
    spans[2].attributes = {"port": 7}
    rules = tmp_path / "rules.toml"
    rules.write_text(f"[[stitch]]\n{rule}\n")
    joined = grey.stitch(frame_of(tmp_path, spans), grey.read_rules(rules))
    assert joined.parent.tolist() == parents


def test_every_problem_of_a_file_of_rules_at_once(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(
        'x = 1\n[[stitch]]\nmatch = { hots = "host" }\norder = "before"\nwithin = "5 parsecs"\n'
        '[[stitch]]\nmatch = {}\nstrip = "("\nonce = 3\ncolour = "red"\n'
        '[[stitch]]\nmatch = { host = "attributes.a\'b" }\n'
    )
    with pytest.raises(ProblemsError) as error:
        grey.read_rules(rules)
    paths = [problem["path"] for problem in error.value.problems]
    assert paths == [
        *("x", "stitch[0].match", "stitch[0].order", "stitch[0].within"),
        *("stitch[1].colour", "stitch[1].match", "stitch[1].strip", "stitch[1].once"),
        "stitch[2].match",
    ]
    rules.write_text("[[stitch]")
    with pytest.raises(InputError, match="is not valid TOML"):
        grey.read_rules(rules)


def test_inferred_spans_are_spans(nezha: Path, tmp_path: Path) -> None:
    said = as_json(nezha, "-o", tmp_path / "out", "--speeds", "1,2")
    assert said["accuracy"][0]["recall"] > 0.9
    assert [row["speed"] for row in said["accuracy"]] == [1.0, 2.0]
    with open_spans(tmp_path / "out") as opened:
        assert opened.about["inferred"]["method"] == "nesting"
        frame = opened.frame(*TABLES["spans"])
        again = calls_of(frame)
    assert frame["mended"].null_count() == frame.height
    with open_spans(nezha) as opened:
        first = calls_of(opened.frame(*TABLES["spans"]))
    assert len(again) == len(first)
    assert sorted(again.sent_ns.tolist()) == sorted(first.sent_ns.tolist())
    linked = as_json(nezha, "--method", "linking", "--by", "trace_id", "-o", tmp_path / "linked")
    ids = as_json(tmp_path / "linked", "--method", "ids")
    assert linked["transactions"] == ids["transactions"] == 183


def test_what_infer_says(nezha: Path, tmp_path: Path) -> None:
    done = run(nezha, "--speeds", "1,2", "--rounds", "2")
    assert done.exit_code == 0, done.output
    assert "open at once" in done.output
    assert len(done.output.splitlines()) < 24
    done = run(nezha, "--method", "convolution")
    assert done.exit_code == 0, done.output
    assert "cause those to" in done.output
    assert len(done.output.splitlines()) < 24


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--method", "nestin"], "did you mean nesting?"),
        (["--method", "linking"], "the name of an attribute is expected"),
        (["--method", "linking", "--by", "hots"], "expected a column of spans"),
        (["--method", "linking", "--by", "attributes.x"], "no span has the attribute"),
        (["--method", "stitching"], "stitching needs a file of rules"),
        (
            ["--method", "stitching", "--rules", "no.toml"],
            "the file of stitching rules does not exist",
        ),
        (["--method", "convolution", "-o", "x"], "no single transactions"),
        (["--method", "convolution", "--step", "0.001"], ""),
        (["--speeds", "fast"], "expected up to 20 numbers from 0.01 to 1000"),
        (["--speeds", "1,nan"], "expected up to 20 numbers from 0.01 to 1000"),
    ],
)
def test_settings_that_do_not_go(
    tmp_path: Path, arguments: list[str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convolution, "_MOST_PIECES", 1)
    path = spans_made.write(tmp_path, [*a_call(), Made(5, 0, 10_000, 10_001, "web")])
    done = run(path, *arguments)
    assert done.exit_code == 2, done.output
    assert expected in " ".join(done.output.split())


def test_spans_of_one_node_have_no_messages(tmp_path: Path) -> None:
    done = run(spans_made.write(tmp_path, [Made(1), Made(2, 1, 0.1, 0.2)]))
    assert done.exit_code == 2
    assert "no node calls another" in " ".join(done.output.split())
