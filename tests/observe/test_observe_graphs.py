"""The three graphs, critical paths, and the page that shows them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import polars as pl
import pytest
from typer.testing import CliRunner, Result

import project_paths
import spans_made
from browser import Browser, browser
from eastwest.cli import app
from eastwest.errors import InputError
from eastwest.observe import graphs as graph_module
from eastwest.observe.form import TABLES
from eastwest.observe.graphs import Graphs, build, placed, read_placement
from eastwest.observe.load import open_spans
from eastwest.observe.path import NETWORK, Forest, time_by_service
from eastwest.observe.take import import_spans
from eastwest.observe.transaction import choose, follow
from html_pages import HOSTILE, check_self_contained
from spans_made import Made, a_call

DATA = project_paths.DATA / "spans"
NEZHA = DATA / "nezha-first-20-s.csv.gz"
FABRIC: dict[str, Any] = {
    "name": "two leaves",
    "nodes": ["h0", "h1", "h2", "leaf0", "leaf1", "spine"],
    "hosts": 3,
    "cables": [
        {"a": a, "b": b, "rate_bps": 10**9, "delay_us": 1.0, "tier": "any"}
        for a, b in (
            ("h0", "leaf0"),
            ("h1", "leaf0"),
            ("h2", "leaf1"),
            ("leaf0", "spine"),
            ("leaf1", "spine"),
        )
    ],
}


def frame_of(folder: Path, spans: list[Made]) -> pl.DataFrame:
    import_spans([spans_made.write(folder, spans)], folder / "made", force=True, lasting=False)
    with open_spans(folder / "made") as opened:
        return opened.frame(*TABLES["spans"])


def pieces(folder: Path, spans: list[Made]) -> list[tuple[int, float, float, bool]]:
    """Return the pieces of the critical path: span number, start, end, whether network."""
    frame = frame_of(folder, spans)
    forest = Forest(frame)
    ids = [int(name.partition("/")[0], 16) for name in frame["span_id"]]
    return [
        (
            ids[piece.row],
            (piece.start_ns - spans_made.BEGAN_NS) / 1e6,
            (piece.end_ns - spans_made.BEGAN_NS) / 1e6,
            piece.network,
        )
        for piece in forest.critical(forest.roots[0])
    ]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["observe", "graphs", *map(str, arguments)])


def test_services_and_components(tmp_path: Path) -> None:
    made = build(frame_of(tmp_path, a_call()))
    assert list(made.services.edges) == [("web", "db")]
    assert made.services.edges["web", "db"]["calls"] == 1
    assert made.services.edges["web", "db"]["p99_s"] == pytest.approx(0.03)
    assert made.services.nodes["web"]["spans"] == 3
    assert made.services.nodes["db"]["errors"] == 1
    assert sorted(made.components.edges) == [
        ("web · GET /", "web · query"),
        ("web · GET /", "web · render"),
        ("web · query", "db · query"),
    ]
    assert made.components_of["db"] == ["db · query"]
    assert (made.host_of, made.placed_by) == ({"web": "a", "db": "b"}, "spans")
    assert made.way("web", "db") == ["a", graph_module.NETWORK, "b"]


def test_graphs_of_nezha(tmp_path: Path) -> None:
    import_spans([NEZHA], tmp_path / "spans", lasting=False)
    with open_spans(tmp_path / "spans") as opened:
        made = build(opened.frame(*TABLES["spans"]))
    wanted = {
        ("frontend", "checkoutservice"),
        ("recommendationservice", "productcatalogservice"),
        ("checkoutservice", "emailservice"),
    }
    assert wanted <= set(made.services.edges)
    assert len(made.services) == 10
    # The authors of the data state these dependencies.
    assert made.services.number_of_edges() == 14 - 1, "checkout calls currency in no trace"


def test_places_by_spans_by_a_file_and_assumed(tmp_path: Path) -> None:
    frame = frame_of(tmp_path, a_call())
    assumed = build(frame, FABRIC)
    assert (assumed.host_of, assumed.placed_by) == ({"web": "h0", "db": "h1"}, "assumed")
    said = build(frame, FABRIC, {"web": "h0", "db": "h2"})
    assert said.placed_by == "file"
    assert said.way("web", "db") == ["h0", "leaf0", "spine", "leaf1", "h2"]
    assert placed(said) == {"h0": ["web"], "h2": ["db"]}
    spans = a_call()
    for span in spans:
        span.host = {"a": "h1", "b": "h2"}[span.host]
    known = build(frame_of(tmp_path, spans), FABRIC)
    assert (known.host_of, known.placed_by) == ({"web": "h1", "db": "h2"}, "spans")
    with pytest.raises(InputError, match="db is on 'h9', which is no host of the scenario"):
        build(frame, FABRIC, {"web": "h0", "db": "h9"})
    with pytest.raises(InputError, match="db is on no host"):
        build(frame, FABRIC, {"web": "h0"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pod,host\na,b\n", ":1: the header must have the columns instance and host"),
        ("instance,host\na\n", ":2: 2 values are expected, found 1"),
        ("instance,host\na,b\na,c\n", ":3: the instance 'a' is assigned to two hosts"),
        ("", ":1: the header must have the columns instance and host"),
    ],
)
def test_files_of_places_that_do_not_go(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "places.csv"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_placement(path)
    assert expected in str(error.value)


def test_a_critical_path_by_hand(tmp_path: Path) -> None:
    assert pieces(tmp_path, a_call()) == [
        (1, 0, 10, False),
        (2, 10, 20, True),
        (3, 20, 50, False),
        (2, 50, 60, True),
        (1, 60, 70, False),
        (4, 70, 90, False),
        (1, 90, 100, False),
    ]


def test_of_calls_at_once_the_last_to_end_is_critical(tmp_path: Path) -> None:
    spans = [
        Made(1, 0, 0, 100),
        Made(2, 1, 10, 50),
        Made(3, 1, 10, 80),
        Made(4, 1, 20, 30),
        Made(5, 3, 60, 70),
    ]
    assert [(span, start, end) for span, start, end, _ in pieces(tmp_path, spans)] == [
        (1, 0, 10),
        (3, 10, 60),
        (5, 60, 70),
        (3, 70, 80),
        (1, 80, 100),
    ]


def test_a_span_that_outlives_its_parent_counts_up_to_its_end(tmp_path: Path) -> None:
    spans = [Made(1, 0, 0, 100), Made(2, 1, 60, 300), Made(3, 1, 200, 250), Made(4, 2, 90, 280)]
    found = pieces(tmp_path, spans)
    assert [(span, start, end) for span, start, end, _ in found] == [
        (1, 0, 60),
        (2, 60, 90),
        (4, 90, 100),
    ]


def test_critical_paths_add_up_to_the_length_of_the_transactions(tmp_path: Path) -> None:
    import_spans([NEZHA], tmp_path / "spans", lasting=False)
    with open_spans(tmp_path / "spans") as opened:
        frame = opened.frame(*TABLES["spans"])
    forest = Forest(frame)
    total, counted = time_by_service(forest)
    assert counted == 183
    whole = sum(forest.end[row] - forest.start[row] for row in forest.roots) / 1e9
    assert sum(total.values()) == pytest.approx(whole, rel=1e-9)
    assert set(total) == {*frame["service"].unique(), NETWORK}
    for root in forest.roots[:20]:
        path = forest.critical(root)
        assert path[0].start_ns == forest.start[root]
        assert all(a.end_ns == b.start_ns for a, b in pairwise(path))


def test_the_path_of_a_transaction(tmp_path: Path) -> None:
    spans = [*a_call(), Made(9, 0, 0, 5, "web", trace=2)]
    frame = frame_of(tmp_path, spans)
    made: Graphs = build(frame, FABRIC, {"web": "h0", "db": "h2"})
    forest = Forest(frame)
    root = choose(forest, frame)
    assert frame["trace_id"][root] == f"{1:032x}", "the slowest"
    found = follow(forest, frame, made, root)
    assert dict(found.services) == {("web", "db"): 1}
    assert dict(found.cables) == {
        ("h0", "leaf0"): 1,
        ("leaf0", "spine"): 1,
        ("leaf1", "spine"): 1,
        ("h2", "leaf1"): 1,
    }
    assert frame["trace_id"][choose(forest, frame, f"{2:032x}")] == f"{2:032x}"
    with pytest.raises(InputError, match="there is no transaction whose id begins with 'x'"):
        choose(forest, frame, "x")
    with pytest.raises(InputError, match="2 transactions have an id that begins with '000'"):
        choose(forest, frame, "000")


def test_what_graphs_says_and_writes(tmp_path: Path) -> None:
    done = run(NEZHA, "-o", tmp_path / "out", "--topology", "demo", "--json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["services"] == {"nodes": 10, "edges": 13}
    assert said["infrastructure"]["hosts_from"] == "assumed"
    assert said["transactions"] == 183
    for name, nodes in (("services", 10), ("infrastructure", said["infrastructure"]["nodes"])):
        assert len(nx.read_graphml(tmp_path / "out" / f"{name}.graphml")) == nodes
    mappings = json.loads((tmp_path / "out" / "mappings.json").read_text())
    assert len(mappings["host_of_instance"]) == 10
    check_self_contained((tmp_path / "out" / "observe.html").read_text())
    done = run(NEZHA, "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "time goes to" in done.output
    assert len(done.output.splitlines()) < 20
    assert run(NEZHA, "-o", tmp_path / "no" / "where").exit_code == 2
    assert run(NEZHA, "-o", tmp_path / "x", "--topology", "dmeo").exit_code == 2
    assert not (tmp_path / "x").exists()


def hostile() -> list[Made]:
    names = [HOSTILE, '"><img src=x onerror=alert(1)>', "\x00\x1b\ufffe", "a" * 5000, "]]>&amp;"]
    spans = [Made(1, 0, 0, 100, names[0], names[1], "server", host=names[2])]
    for n, name in enumerate(names, 2):
        spans.append(Made(n, 1, n, n + 50, name, name, "client", host=name))
    return spans


def test_hostile_names(tmp_path: Path) -> None:
    path = spans_made.write(tmp_path, hostile())
    done = run(path, "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    text = (tmp_path / "out" / "observe.html").read_text()
    check_self_contained(text)
    assert "<img" not in text
    for name in ("services", "components", "infrastructure"):
        read = nx.read_graphml(tmp_path / "out" / f"{name}.graphml")
        assert len(read) >= 5


@pytest.fixture
def chrome(tool: Callable[..., str], tmp_path: Path) -> Iterator[Browser]:
    program = tool("chromium", "chromium-browser", "google-chrome")
    with browser(program, tmp_path / "profile") as started:
        yield started
        assert started.complaints == []
        assert {address.split(":")[0] for address in started.requests} <= {"file"}


@pytest.mark.parametrize("kind", ["nezha", "hostile"])
def test_the_page_in_a_browser(chrome: Browser, tmp_path: Path, kind: str) -> None:
    path = NEZHA if kind == "nezha" else spans_made.write(tmp_path, hostile())
    assert run(path, "-o", tmp_path / "out", "--topology", "demo").exit_code == 0
    chrome.open(tmp_path / "out" / "observe.html")
    marked = chrome.script("document.querySelectorAll('.call.marked').length")
    assert marked > 2
    over = chrome.script(
        """[...document.querySelectorAll('#services .node, #components .node')].filter(n => {
          const [r, t] = [n.querySelector('rect'), n.querySelector('text')].map(
            e => e.getBoundingClientRect());
          return t.right > r.right + 1 || t.left < r.left;
        }).length"""
    )
    if kind == "nezha":
        assert over == 0, "names fit into their boxes; others are clipped"
    wide = chrome.script("document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0
    titles = chrome.script("[...document.querySelectorAll('.span title')].map(t => t.textContent)")
    assert any(re.search(r": .* from 0 s", title) for title in titles)
