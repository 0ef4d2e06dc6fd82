"""The report page: self-contained, and no text of a scenario becomes markup."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import eastwest as ew
from eastwest import formats
from eastwest.errors import InputError
from eastwest.report import draw, write_page, write_report
from eastwest.report.slow import rows
from eastwest.report.topology import Topology
from eastwest.views.facts import Facts
from eastwest.views.metrics import change
from fake_core import FakeCore, column
from hand_made import SCENARIO, TO_H3, flow, folder, links
from html_pages import HOSTILE, check_self_contained, page_of, replace_text
from project_paths import DATA


def test_the_page_says_what_happened(result: ew.Result) -> None:
    text = page_of(result)
    page = check_self_contained(text)
    for words in (
        "20 hosts and 4 switches, joined by 24 full-duplex cables",
        "hosts to switches 1 Gbit/s",
        "60 jobs (trace) with 240 maps and 120 reduces",
        "over-subscribed 2:1",
        "Half of the jobs finish within",
        "eastwest run results/fake-1/scenario.toml",
        "# resolved",
        result.digest,
    ):
        assert words in text, words
    figures = [a["id"] for tag, a in page.tags if tag == "figure"]
    assert figures == [
        *("running-tasks", "jobs", "tasks-by-host", "job-runtimes"),
        *("topology", "link-heat", "throughput", "queues", "host-queues"),
        *("drops", "marks", "link-utilisation"),
        *("flow-completion", "slowdown-by-size", "flow-parts", "packet-latency", "queue-wait"),
    ]
    assert len(text) < 1_000_000


def test_columns_that_a_format_did_not_have_leave_nothing_out(result: ew.Result) -> None:
    for name in ("drops", "depths", "sojourn"):
        (result.path / f"{name}.parquet").unlink()
    for name in ("flows", "links"):
        table = pl.read_parquet(result.path / f"{name}.parquet")
        later = [c for c in table.columns if formats.SINCE.get(f"{name}.{c}", 1) > 3]
        assert later, name
        table.drop(later).write_parquet(result.path / f"{name}.parquet")
    summary = json.loads((result.path / "summary.json").read_text())
    (result.path / "summary.json").write_text(json.dumps({**summary, "format": 3}))
    text = page_of(ew.Result(result.path))
    assert "leaves these rows out" not in text
    figures = [a["id"] for tag, a in check_self_contained(text).tags if tag == "figure"]
    assert "link-heat" in figures and "flow-completion" in figures and "queue-wait" not in figures


def test_many_tasks_and_links_stay_below_two_megabytes(fake: FakeCore) -> None:
    fake.job_count, fake.hosts = 20_000, 1600
    text = page_of(ew.run("x.toml"))
    check_self_contained(text)
    assert len(text) < 2_000_000


def test_hostile_names_are_text(fake: FakeCore, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.name = fake.job_name = HOSTILE
    inner = fake.run

    def hostile(*args: Any) -> Any:
        raw = inner(*args)
        raw["notes"] = [HOSTILE]
        for table in raw["tables"].values():
            replace_text(table)
        return raw

    monkeypatch.setattr(fake, "run", hostile)
    result = ew.run("x.toml")
    text = page_of(result)
    check_self_contained(text)
    assert "&lt;script&gt;alert(1)" in text
    assert "{{7*7}}" in text
    other = ew.run("x.toml", seed=2)
    check_self_contained(page_of(result, other))


def test_a_run_without_anything_has_a_page(fake: FakeCore, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = fake.run

    def empty(*args: Any) -> Any:
        raw = inner(*args)
        for name, table in raw["tables"].items():
            raw["tables"][name] = [column(title, dtype, []) for title, dtype, _ in table]
        raw["summary_json"] = json.dumps({"scenario": "empty", "seed": 1, "digest": ""})
        return raw

    monkeypatch.setattr(fake, "run", empty)
    text = page_of(ew.run("x.toml"))
    check_self_contained(text)
    assert "No traffic was sent." in text


def test_unfinished_flows_do_not_break_the_page(
    fake: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = fake.run

    def unfinished(*args: Any) -> Any:
        raw = inner(*args)
        for place, (name, dtype, data) in enumerate(raw["tables"]["flows"]):
            if name in {"finish_s", "fct_us", "slowdown"}:
                values = [float("nan")] * (len(data) // 8)
                raw["tables"]["flows"][place] = column(name, dtype, values)
        return raw

    monkeypatch.setattr(fake, "run", unfinished)
    text = page_of(ew.run("x.toml"))
    check_self_contained(text)
    shown = re.sub(r"<(script|style).*?</\1>|<pre.*?</pre>", "", text, flags=re.DOTALL)
    assert not re.search(r"\bnan\b", shown.lower())


def test_a_comparison_shows_differences(fake: FakeCore) -> None:
    one = ew.run("x.toml")
    two = ew.run("x.toml", seed=2)
    text = page_of(one, two)
    page = check_self_contained(text)
    assert "fake, seed 1" in text
    assert "fake, seed 2" in text
    assert sum(tag == "figure" for tag, _ in page.tags) == 7
    assert "1 setting differs: seed (1 / 2)." in text
    rows = re.findall(r"<code>seed</code></th><td[^>]*>(.*?)</td><td[^>]*>(.*?)</td></tr>", text)
    assert rows == [("1", "2")]
    assert "Only the seed differs, so all differences are due to chance." in text


def test_settings_that_only_one_result_has_are_apart(tmp_path: Path) -> None:
    more = SCENARIO.replace("leaves = 2", "leaves = 3\nboth_directions = false")
    both = folder(tmp_path / "a"), folder(tmp_path / "b", scenario=more)
    text = page_of(*both)
    assert "1 setting differs: fabric.leaves (2 / 3)." in text
    assert "1 setting that only one result has: fabric.both_directions (– / false)." in text
    assert "<h3>Settings that only one result has</h3>" in text


def test_a_result_shows_its_changed_settings(tmp_path: Path) -> None:
    changed = folder(tmp_path / "a", summary={"set": ["fabric.mtu = <9000>"]})
    assert "changed with --set: <code>fabric.mtu = &lt;9000&gt;</code>" in page_of(changed)
    assert "changed with --set" not in page_of(folder(tmp_path / "b"))


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0.2, "−80 %"), (1.05, "+5 %"), (2.5, "+150 %"), (57.5, "× 57.5"), (0.9997, "≈ 0 %")],
)
def test_changes_in_words(ratio: float, text: str) -> None:
    assert change(ratio) == text


@pytest.mark.parametrize(
    ("table", "column_name", "value"),
    [
        ("jobs", "submitted_s", float("nan")),
        ("jobs", "kind", None),
        ("tasks", "host", None),
        ("flows", "fct_us", 1e300),
        ("flows", "slowdown", float("inf")),
        ("flows", "connection", 2**64 - 1),
        ("links", "rate_bps", None),
        ("links", "utilisation", float("inf")),
        ("links", "tier", None),
        ("link_samples", "bytes", None),
        ("traffic", "time_s", 1e300),
        ("events", "src", None),
    ],
)
@pytest.mark.parametrize("every", [True, False])
def test_damaged_values_are_left_out(
    result: ew.Result, table: str, column_name: str, value: Any, every: bool
) -> None:
    path = result.path / f"{table}.parquet"
    rows = pl.read_parquet(path)
    some = pl.lit(value=True) if every else pl.int_range(pl.len()) == 0
    bad = pl.lit(value, dtype=rows.schema[column_name])
    changed = pl.when(some).then(bad).otherwise(pl.col(column_name)).alias(column_name)
    rows.with_columns(changed).write_parquet(path)
    text = page_of(ew.Result(result.path))
    check_self_contained(text)
    if value is None and rows.schema[column_name] != pl.String:
        count = f"{rows.height:,}" if every else "1"
        said = (
            "rows of the table {} have" if rows.height > 1 and every else "row of the table {} has"
        )
        assert f"{count} {said.format(table)} missing or invalid values" in text


def test_a_folder_of_the_first_format_has_a_page(tmp_path: Path) -> None:
    old = ew.Result(DATA / "results-format-1")
    text = write_page([old], tmp_path / "old.html").read_text(encoding="utf-8")
    check_self_contained(text)
    assert "This result has no samples of single links over time." in text
    assert (
        "This result has an older format without events of flows: the table shows counters only."
        in text
    )


def event(time_s: float, what: str, **values: Any) -> dict[str, Any]:
    ends = {"connection": 5, "src": 0, "dst": 3}
    return {"time_s": time_s, "what": what, "bytes": 1448, **ends, **values}


def lost(time_s: float, position: int) -> dict[str, Any]:
    place = {"kind": "data", "stream_start": position, "link": TO_H3, "cause": "queue-full"}
    return event(time_s, "drop", **place)


def test_the_story_of_a_slow_flow(tmp_path: Path) -> None:
    slow_one = flow(
        connection=5, stream_start=10_000, fct_us=1e6, finish_s=2.0, timeouts=1, retransmits=3
    )
    result = folder(
        tmp_path / "r",
        {
            "flows": [slow_one],
            "events": [
                lost(1.1, 5_000),  # A loss in the message before.
                lost(1.1, 10_000 - 1_448),  # A loss of the message's last segment.
                lost(1.2, 20_000),
                lost(1.3, 30_000),
                event(1.5, "timeout", stream_start=20_000, bytes=90_000),
                event(1.6, "recovery", stream_start=40_000),
                event(1.7, "recovered", stream_start=40_000),
                lost(2.5, 20_000),  # A loss after the message's end.
                event(1.4, "timeout", connection=6),  # An event of another connection.
            ],
        },
    )
    row = rows(Facts(result))[0]
    assert row["story"] == (
        "Lost 2 packets at leaf0->h3 (queue full). 1 timeout: nothing was sent for up to 200 ms, "
        "20 % of the time of the flow. 1 fast recovery."
    )
    assert [(m.css, m.at, m.to) for m in row["marks"]] == [
        ("recovery", 600, 700),
        ("wait", 300, 500),
        ("drop", 200, 200),
        ("drop", 300, 300),
    ]


def test_a_story_says_when_the_log_was_full(tmp_path: Path) -> None:
    flows = [flow(connection=5, start_s=8.0, fct_us=1e6, finish_s=9.0, retransmits=2)]
    tables = {"flows": flows, "events": [lost(1.2, 20_000)]}
    result = folder(tmp_path / "r", tables, {"event_log": {"rows": 1, "left_out": 9}})
    assert rows(Facts(result))[0]["story"] == (
        "2 segments retransmitted, no timeout. There are no details, because the log of events was "
        "full before the flow ended."
    )
    assert "9 later events were not recorded" in page_of(result)


def test_axes_have_round_ticks() -> None:
    assert [t.text for t in draw.time(14_400).ticks(8)][:3] == ["0", "30 min", "1 h"]
    assert [t.text for t in draw.time(0.004).ticks(5)] == ["0", "1 ms", "2 ms", "3 ms", "4 ms"]
    assert [t.text for t in draw.time(900_000).ticks(6)][1] == "48 h"
    log = draw.logarithmic(2e-5, 3.0, "latency")
    assert [t.text for t in log.ticks(6)] == ["100 µs", "1 ms", "10 ms", "100 ms", "1 s"]
    nines = draw.Scale("nines", 0.0, 0.9999, "share", "nines")
    places = {t.text: t.at for t in nines.ticks()}
    assert places["99.99 %"] - places["99.9 %"] == pytest.approx(places["99 %"] - places["90 %"])


def test_the_drawing_has_layers_and_keeps_children_below_their_switch(tmp_path: Path) -> None:
    pairs = [(f"h{i}", f"leaf{i // 4}", "host") for i in range(8)]
    pairs += [(f"leaf{i}", f"spine{j}", "leaf") for i in range(2) for j in range(3)]
    cables: list[dict[str, Any]] = []
    for a, b, tier in pairs:
        for one, two, way in ((a, b, "up"), (b, a, "down")):
            row = {"link": len(cables), "name": f"{one}->{two}", "tier": f"{tier}-{way}"}
            cables.append({**row, "src": one, "dst": two, "rate_bps": 10**9})
    drawn = Topology.of(Facts(folder(tmp_path / "r", {"links": cables})))
    node = {n.name: n for n in drawn.nodes}
    assert {n.layer for n in drawn.nodes} == {0, 1, 2}
    assert [node[f"h{i}"].x for i in range(8)] == sorted(node[f"h{i}"].x for i in range(8))
    for leaf in range(2):
        children = [node[f"h{4 * leaf + i}"].x for i in range(4)]
        assert node[f"leaf{leaf}"].x == pytest.approx(sum(children) / 4, abs=1)
    assert node["spine0"].y < node["leaf0"].y < node["h0"].y
    assert len(drawn.edges) == len(cables)


def test_a_sweep_has_a_page(fake: FakeCore, tmp_path: Path) -> None:
    fake.name = HOSTILE
    sweep = ew.sweep(
        "x.toml",
        {"tcp.min_rto": ["1 ms", "2 ms"], "tcp.initial_window": [4, 10]},
        seeds=3,
        jobs=0,
        out=tmp_path / "swept",
        store=tmp_path / "store",
        yes=True,
    )
    text = write_report([sweep.path]).read_text(encoding="utf-8")
    page = check_self_contained(text)
    assert "4 points × 3 seeds: 12 of 12 runs done, 0 failed" in text
    figures = [a["id"] for tag, a in page.tags if tag == "figure"]
    assert "metric-latency_us-p99" in figures or "Nothing differs between the points." in text
    with pytest.raises(
        InputError,
        match="the folder of a sweep, which cannot be compared with other folders: name only this",
    ):
        write_report([sweep.path, sweep.path])
    rule = {**sweep.summary, "adaptive": {"metric": "flows.fct_us.p99"}}
    (sweep.path / "summary.json").write_text(json.dumps(rule), encoding="utf-8")
    text = write_report([sweep.path]).read_text(encoding="utf-8")
    assert "4 points × up to 3 seeds: 12 of 12 runs done, 0 failed" in text


def test_faults_and_marks_are_named(tmp_path: Path) -> None:
    fault = '[[fault]]\nlink = "leaf0--spine1"\nkind = "loss"\nshare = "1 %"\n'
    marked = [{**row, "marks": 2} for row in links()]
    result = folder(tmp_path / "r", {"links": marked}, scenario=SCENARIO + fault)
    text = page_of(result)
    assert "link leaf0--spine1, kind loss, share 1 %" in text
    assert f"{2 * len(marked)} packets were marked (ECN)." in text
