"""Numbers of pages: equal wherever a page shows them, and compared with similar numbers."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from eastwest import Result, by_workload
from eastwest.report import draw, load, slow, spread, verdict, words, work
from eastwest.views.facts import Facts
from eastwest.views.latency import by_size
from eastwest.views.metrics import made
from hand_made import SCENARIO, TO_H3, flow, folder, links
from html_pages import between, check_self_contained, page_of


def summary_of(flows: list[dict[str, Any]]) -> dict[str, Any]:
    times = by_workload.spread(pl.Series([row["fct_us"] for row in flows]))
    return {"count": len(flows), "completed": len(flows), "fct_us": times}


def text_of(page: str) -> str:
    shown = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", shown))


def test_a_median_is_one_number_on_the_page(tmp_path: Path) -> None:
    # An even number of values has two middle ones: 244 and 249 ms.
    flows = [flow(i, fct_us=1000.0 * ms) for i, ms in enumerate((10, 244, 249, 600))]
    result = folder(tmp_path / "r", {"flows": flows}, {"flows": summary_of(flows)})
    text = text_of(page_of(result))
    assert "half within 244 ms" in text
    assert "Half of the flows take up to 244 ms" in text
    assert words.purpose_rows(result)[0][3] == "244 ms"
    cards = {name: value for name, value, _ in words.headlines(result)}
    assert cards["flow completion"] == "244 ms"
    assert by_size(result)["fct_us_p50"].to_list() == [244_000.0]
    chart = next(c for c in spread.charts([("", Facts(result))]) if c.name == "flow-completion")
    assert chart.table is not None and chart.table[1][0][2] == "244 ms"


def test_a_median_of_jobs_is_one_number_on_the_page(tmp_path: Path) -> None:
    rows = [
        {"job": n, "workload": "w", "name": f"j{n}", "kind": "trace", "finished_s": took}
        | {"runtime_s": took, "maps": 1}
        for n, took in enumerate((10.0, 20.0, 30.0, 40.0))
    ]
    about = {
        "jobs": {"count": 4, "runtime_s": by_workload.spread(pl.Series([10.0, 20.0, 30.0, 40.0]))}
    }
    result = folder(tmp_path / "r", {"jobs": rows}, about)
    text = text_of(page_of(result))
    assert "4 jobs finished: half within 20 s" in text
    assert "Half of the jobs finish within 20 s, 95 % within 40 s" in text


def test_retransmissions_are_counted_once(tmp_path: Path) -> None:
    # Two messages that are in flight together on a connection both count its retransmissions.
    flows = [flow(0, retransmits=7000), flow(1, retransmits=7303), flow(2)]
    about = {"flows": summary_of(flows), "tcp": {"retransmits": 14_301, "timeouts": 0}}
    result = folder(tmp_path / "r", {"flows": flows}, about)
    text = page_of(result)
    assert "14,301" in text and "14,303" not in text
    assert words.purpose_rows(result)[0][-2:] == ["2", "0"], "flows with retransmissions"


#: A scenario whose workload runs over RoCEv2, with memory pools of switches.
ROCEV2 = (
    SCENARIO.replace("[tcp]", '[fabric.pfc]\nshared = "300 KB"\nlossy = "200 KB"\n[tcp]')
    + 'transport = "rocev2"\n'
)
PAIRS = {"retransmits": 27_334, "timeouts": 2, "naks": 670, "trimmed": 24_586}


def test_a_page_has_the_retransmissions_of_the_transports_that_ran(tmp_path: Path) -> None:
    idle = {"retransmits": 0, "timeouts": 0}
    about = {"tcp": idle, "rocev2": PAIRS, "packets": {"dropped": 0}}
    result = folder(tmp_path / "r", {"flows": [flow(timeouts=1)]}, about, ROCEV2)
    text = text_of(page_of(result))
    said = "RoCEv2 retransmissions 27,334 2 timeouts, 670 NAKs, 24,586 packets trimmed"
    assert said in text
    assert "TCP retransmissions" not in text
    assert "24,586 packets reached the receiver trimmed" in text
    assert "There were 2 RoCEv2 timeouts." in text
    both = folder(tmp_path / "both", {}, {**about, "tcp": {"retransmits": 1}}, ROCEV2)
    assert said in text_of(page_of(both)) and "TCP retransmissions 1" in text_of(page_of(both))
    plain = folder(tmp_path / "plain", {}, {"tcp": idle})
    assert "RoCEv2 retransmissions" not in text_of(page_of(plain))
    assert "TCP retransmissions 0 0 timeouts" in text_of(page_of(plain))


def test_a_comparison_has_the_retransmissions_of_the_transports_that_ran(tmp_path: Path) -> None:
    idle = {"retransmits": 0, "timeouts": 0}
    pair = [
        folder(tmp_path / str(n), {}, {"tcp": idle, "rocev2": {**PAIRS, "naks": n}}, ROCEV2)
        for n in (600, 900)
    ]
    text = text_of(page_of(*pair))
    assert "RoCEv2 retransmissions 27,334 27,334" in text
    assert "RoCEv2 NAKs 600 900 +50 %" in text and "RoCEv2 packets trimmed 24,586" in text
    assert "TCP timeouts" not in text
    mixed = text_of(page_of(pair[0], folder(tmp_path / "tcp", {}, {"tcp": idle})))
    assert "TCP timeouts" in mixed and "RoCEv2 timeouts" in mixed


def test_the_use_of_memory_pools_is_on_the_page(tmp_path: Path) -> None:
    memory = {"shared_most_bytes": 299_992, "headroom_most_bytes": 60_972, "lossy_bytes": 512}
    result = folder(tmp_path / "r", {}, {"dcb": {"memory": memory}}, ROCEV2)
    text = text_of(page_of(result))
    assert "shared memory 300 KB 300 kB –" in text
    assert "headroom of all inputs – 61 kB –" in text
    assert "memory of lossy queues 200 KB – 512 B" in text
    assert "Memory pools" not in text_of(page_of(folder(tmp_path / "none")))


def test_flows_with_timeouts_are_compared_with_their_like(tmp_path: Path) -> None:
    short = [flow(i, purpose="response", fct_us=50.0) for i in range(6)]
    other = [flow(30, workload="b", fct_us=9e6)]
    long = [flow(10 + i, purpose="shuffle", fct_us=300_000.0) for i in range(3)]
    hit = [
        flow(20, purpose="shuffle", fct_us=700_000.0, timeouts=2),
        flow(21, purpose="shuffle", fct_us=800_000.0, timeouts=1),
        flow(22, purpose="response", fct_us=240_000.0, timeouts=1),
    ]
    flows = [*short, *long, *hit]
    about = {"flows": summary_of(flows), "tcp": {"timeouts": 5}}
    both = folder(tmp_path / "both", {"flows": [*flows, *other]}, about)
    assert "(2 of 5 w shuffle flows)" in verdict.verdicts(Facts(both))[1][1]
    result = folder(tmp_path / "r", {"flows": flows}, about)
    said = [text for mark, text in verdict.verdicts(Facts(result)) if "TCP timeout" in text]
    assert said == [
        "There were 5 TCP timeouts. 3 flows (25 %) were in progress on a connection during a "
        "timeout, which counts for each of these flows. Median completion time with and without a "
        "timeout: 700 ms against 300 ms (2 of 5 shuffle flows); 240 ms against "
        "50 µs (1 of 7 response flows)."
    ]


def test_tasks_without_a_change_have_no_rounding_noise(tmp_path: Path) -> None:
    rows = [
        {"job": 0, "workload": "w", "kind": "map", "host": 0, "started_s": 0.1 * n}
        | {"finished_s": 0.1 * n + 0.7 / 3, "locality": "node"}
        for n in range(100, 4000, 7)
    ]
    about = {"simulated_s": 14_000.0}
    chart = work.running(Facts(folder(tmp_path / "r", {"tasks": rows}, about)))
    values = [v for series in chart.data["values"] for v in series]
    assert all(v == 0 or v > 1e-6 for v in values)
    assert chart.table is not None and not any(
        "e-" in cell for row in chart.table[1] for cell in row
    )


def test_queues_of_hosts_do_not_flatten_those_of_switches(tmp_path: Path) -> None:
    samples = [
        {"time_s": 0.001, "link": 0, "packets": 900},
        {"time_s": 0.002, "link": TO_H3, "packets": 20},
    ]
    facts = Facts(folder(tmp_path / "r", {"queues": samples}, {"simulated_s": 0.01}))
    switches, hosts = load.queues(facts)
    assert (switches.name, hosts.name) == ("queues", "host-queues")
    assert switches.y.high < 30 and hosts.y.high > 900
    assert "queue of switches, at" in switches.title and "queue of hosts, at" in hosts.title
    assert switches.legend == ["switches to hosts"] and hosts.legend == ["hosts to switches"]


def test_kinds_without_a_drop_have_no_column_and_marks_have_one(tmp_path: Path) -> None:
    lossy = [{**row, "drops": 3, "drops_data": 3, "marks": 2} for row in links()]
    result = folder(tmp_path / "r", {"links": lossy})
    heads, rows = words.drop_table(result)
    assert heads == ["links", "data", "all dropped", "marked (ECN)"]
    assert rows[0] == ["hosts to switches", "12", "12", "8"]
    assert f"{2 * len(lossy)} packets were marked (ECN)." in page_of(result)
    assert words.drop_table(folder(tmp_path / "none")) == ([], [])


def test_marks_over_time_have_a_picture_where_they_were_recorded(tmp_path: Path) -> None:
    samples = [
        {"time_s": 0.001 * ms, "link": TO_H3, "bytes": 1000, "marks": marks}
        for ms, marks in ((1, 30), (2, 0), (3, 7))
    ]
    facts = Facts(folder(tmp_path / "r", {"link_samples": samples}, {"simulated_s": 0.004}))
    chart = next(chart for chart in load.charts(facts) if chart.name == "marks")
    assert chart.title == "Marks peak about 0.5 ms: 30 packets in 1 ms"
    assert chart.legend == ["switches to hosts"]
    assert sum(chart.data["values"][0]) == 37
    none = Facts(folder(tmp_path / "none", {"link_samples": samples[1:2]}))
    assert not [chart for chart in load.charts(none) if chart.name == "marks"]
    path = tmp_path / "r" / "link_samples.parquet"
    pl.read_parquet(path).drop("marks").write_parquet(path)
    (tmp_path / "r" / "summary.json").write_text('{"format": 8, "simulated_s": 0.004}')
    old = Facts(Result(tmp_path / "r"))
    assert not [chart for chart in load.charts(old) if chart.name == "marks"]


def test_flows_without_a_loss_are_said_once(tmp_path: Path) -> None:
    flows = [flow(i, fct_us=1000.0 + i) for i in range(12)]
    flows.append(flow(12, fct_us=9000.0, retransmits=1))
    result = folder(tmp_path / "r", {"flows": flows})
    rows = slow.rows(Facts(result))
    text = text_of(page_of(result))
    assert slow.without_loss(rows) == (
        "12 of the 13 flows in this table lost no packet: they waited in queues or shared their "
        "path with other flows."
    )
    assert text.count("lost no packet") == 1
    assert slow.without_loss([row for row in rows if row["story"]]) == ""


def test_labels_of_many_rows_are_thinned() -> None:
    def chart(count: int, tall: int) -> draw.Chart:
        axis = draw.time(1.0)
        names = [f"link {i}" for i in range(count)]
        return draw.Chart("c", "", "", axis, axis, height=tall * count, rows=names)

    assert all(chart(20, 15).row_labels)
    many = chart(72, 10).row_labels
    assert many[:3] == ["link 0", "", "link 2"]
    assert 10 * 72 / sum(map(bool, many)) >= 13


@pytest.mark.parametrize("wide", [True, False])
def test_labels_of_an_axis_do_not_overlap(wide: bool) -> None:
    width = 1030 if wide else 440
    scale = draw.Scale("nines", 0.0, 0.999999, "share", "nines")
    shown = draw.labels(scale.ticks(), wide)
    for found, room in ((shown, width), ([s for s in shown if "minor" not in s.css], 240)):
        ends = []
        for label in found:
            long = 6.6 * len(label.text)
            left = label.at / 100 * room - (long if "end" in label.css else long / 2)
            ends.append((left, left + long))
        assert all(b[0] >= a[1] for a, b in itertools.pairwise(ends))
    assert shown[0].text == "0 %"


def test_texts_in_a_plot_do_not_cover_each_other() -> None:
    spots = [((0.1, 50.0), "first"), ((0.101, 52.0), "second"), ((0.9, 50.0), "third")]
    found = draw.beside(spots, 200)
    assert [(label.text, "end" in label.css, label.down) for label in found] == [
        ("first", False, 42.0),
        ("second", True, 44.0),
        ("third", False, 42.0),
    ]
    crowd = [((0.5, 50.0 + i), "name") for i in range(9)]
    assert 1 <= len(draw.beside(crowd, 200)) <= 4
    edge = draw.beside([((0.99, 50.0), "a long name")], 200)
    assert edge[0].css == "end"


def exchange(number: int, start_s: float, took_s: float) -> list[dict[str, Any]]:
    half = took_s / 2
    ask = flow(2 * number, purpose="request", workload="web", connection=1, tag=number)
    answer = flow(2 * number + 1, purpose="response", workload="web", connection=1, tag=number)
    for row, begin in ((ask, start_s), (answer, start_s + half)):
        row.update(start_s=begin, finish_s=begin + half, fct_us=half * 1e6)
    answer.update(src=3, dst=0)
    return [ask, answer]


def test_exchanges_have_a_curve_and_a_warm_up_is_left_out(tmp_path: Path) -> None:
    rows = [row for n in range(4) for row in exchange(n, float(n), 0.001 * (n + 1))]
    result = folder(tmp_path / "r", {"flows": rows}, {"format": 8})
    chart = spread.charts([("", Facts(result))])[0]
    assert chart.title == "Half of the exchanges of web take up to 2 ms, 99 % up to 4 ms"
    after = spread.charts([("", Facts(result, 1.5))])
    assert after[0].title == "Half of the exchanges of web take up to 3 ms, 99 % up to 4 ms"
    assert after[0].note.endswith("after the warm-up.")
    flows = next(chart for chart in after if chart.name == "flow-completion")
    assert flows.table is not None and [row[1] for row in flows.table[1]] == ["2", "2"]


SERVICE = """schema = 1
seed = 1
[[workload]]
name = "sort"
off = {off}
[[workload]]
name = "web"
kind = "service"
"""


def compared(tmp_path: Path) -> list[Result]:
    sort = {"runtime_s": by_workload.spread(pl.Series([20.0]))}
    results = []
    for place, off in enumerate(("false", "true")):
        took = by_workload.spread(pl.Series([100.0 + place]))
        workloads = {"web": {"exchange_us": took}, **({} if place else {"sort": sort})}
        sample = {"time_s": 0.004, "link": TO_H3, "bytes": 1000, "drops": 1 + place}
        sent = {"time_s": 0.004, "tier": "host-up", "bytes": 5000}
        results.append(
            folder(
                tmp_path / f"r{place}",
                {"link_samples": [sample], "traffic": [sent], "flows": [flow(start_s=0.001)]},
                {"workloads": workloads, "digest": str(place), "simulated_s": 0.01 * (1 + place)},
                SERVICE.format(off=off),
            )
        )
    return results


def test_a_comparison_says_that_each_result_has_one_seed(tmp_path: Path) -> None:
    text = page_of(*compared(tmp_path))
    check_self_contained(text)
    assert "Each setting has one run (seed 1), so that differences can be chance" in text


def test_labels_of_a_comparison_are_settings_with_values(tmp_path: Path) -> None:
    text = page_of(*compared(tmp_path))
    head = between(text, '<table class="side stack">', "</thead>")
    assert re.findall(r'<th scope="col">(.*?)</th>', head) == [
        "sort.off = false",
        "sort.off = true",
    ]
    assert "1 setting differs: workload.sort.off (false / true)." in text


def test_a_workload_that_did_not_run_has_no_zero_in_a_comparison(tmp_path: Path) -> None:
    text = page_of(*compared(tmp_path))
    table = between(text, '<table class="side stack">', "</table>")
    rows = {
        name: re.findall(r"<span>(.*?)</span>", cells)
        for name, cells in re.findall(r'class="text">([^<]*)</th>(.*?)</tr>', table)
    }
    assert rows["sort runtime mean"] == ["20 s", "–"]
    assert list(rows)[1:3] == ["sort runtime mean", "web exchange p99"], "workloads first"
    assert "sort runtime mean:" not in between(text, 'id="answer-title"', "</section>")


def test_a_comparison_has_traffic_and_drops_over_time(tmp_path: Path) -> None:
    facts = [(f"r{n}", Facts(r)) for n, r in enumerate(compared(tmp_path))]
    traffic, drops = load.compared(facts)
    assert (traffic.name, drops.name) == ("throughput", "drops")
    assert traffic.x.high >= 0.02, "the axis ends with the longer run"
    sums = [sum(v for v in series if v is not None) for series in drops.data["values"]]
    assert sums == [1, 2]
    assert traffic.data["values"][0][-1] is None, "no value after the end of the shorter run"
    assert traffic.data["values"][1][-1] is not None
    # The largest rate is 5,000 bytes in 4 ms.
    assert max(v for v in traffic.data["values"][0] if v is not None) == pytest.approx(1e7)


def test_a_run_without_flows_has_no_completion_time(tmp_path: Path) -> None:
    nothing = {"count": 0, "completed": 0, "fct_us": {"mean": 0.0, "p50": 0.0, "p99": 0.0}}
    idle = folder(tmp_path / "idle", {}, {"flows": nothing})
    busy = folder(tmp_path / "busy", {}, {"flows": summary_of([flow()])})
    for name in ("flows.fct_us.mean", "latency_us.p99", "jobs.runtime_s.p50"):
        assert made(name).of(idle) is None
    assert made("flows.fct_us.mean").of(busy) == pytest.approx(2e-3)
    assert made("flows.completed").of(idle) == 0
