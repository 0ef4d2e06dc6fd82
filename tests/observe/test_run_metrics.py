"""Metrics of a run: their values, their text format, and their transfer by a real Prometheus."""

from __future__ import annotations

import http.server
import json
import math
import re
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import eastwest as ew
from eastwest.cli import app
from eastwest.errors import InputError
from eastwest.observe import exporter, openmetrics
from eastwest.observe import metrics as observed
from eastwest.observe import prometheus as client
from eastwest.observe.busy import core_seconds
from eastwest.observe.captured import packet_times
from eastwest.observe.run_metrics import Family, Kind, Series, families, metrics, times_of
from prometheus_server import prometheus

pytestmark = pytest.mark.slow

SCENARIO = """
schema = 1
name = "watched"
[fabric]
kind = "leaf-spine"
leaves = 2
hosts_per_leaf = 2
spines = 1
host_rate = "100 Mbit/s"
uplink_rate = "100 Mbit/s"
queue = { limit = "20 packets" }
[[workload]]
name = "web"
kind = "service"
clients = ["h0", "h1"]
servers = ["h2", "h3"]
mean_gap = "2 ms"
response_bytes = "20 KB"
requests = 500
[[workload]]
name = "copy"
kind = "stride"
stride = 2
count = 1
bytes = "2 MB"
[measure]
sample_interval = "20 ms"
"""
RESPONSES = 'eastwest_flow_completed_total{purpose="response",workload="web"}'


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ew.Result:
    return ew.run(SCENARIO, out=tmp_path_factory.mktemp("run") / "r")


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def samples(text: str) -> dict[str, float]:
    """Return the values of a text without times, by series."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            found[name] = float(value)
    return found


def test_counters_end_at_the_totals_of_the_run(run: ew.Result) -> None:
    last = samples(openmetrics.snapshot(families(run), -1 + len(times_of(run))))
    end = float(times_of(run)[-1])
    flows = run.flows.filter(run.flows["finish_s"] <= end)
    responses = flows.filter(flows["purpose"] == "response")
    assert last[RESPONSES] == responses.height
    name = RESPONSES.replace("completed", "seconds")
    assert last[name] == pytest.approx(float(responses["fct_us"].sum()) / 1e6)
    sampled = run.link_samples.group_by("link").sum().sort("link")
    for link, count in zip(sampled["link"], sampled["bytes"], strict=True):
        label = run.links.filter(run.links["link"] == link).row(0, named=True)
        assert (
            last[f'eastwest_link_bytes_total{{link="{label["name"]}",tier="{label["tier"]}"}}']
            == count
        )
    drops = sum(value for name, value in last.items() if name.startswith("eastwest_link_drops"))
    assert drops == run.link_samples["drops"].sum() > 0
    timeouts = [value for name, value in last.items() if "timeouts" in name]
    events = run.events.filter((run.events["what"] == "timeout") & (run.events["time_s"] <= end))
    assert sum(timeouts) == events.height


def test_gauges_are_what_was_sampled(run: ew.Result) -> None:
    times = times_of(run)
    family = next(f for f in families(run) if f.name == "eastwest_link_queue_packets")
    assert family.kind is Kind.GAUGE and family.sample == family.name
    found = {s.labels["link"]: s.values for s in family.series}
    names = dict(zip(run.links["link"], run.links["name"], strict=True))
    assert run.queues.height > 0
    for row in run.queues.iter_rows(named=True):
        place = int(np.argmin(np.abs(times - row["time_s"])))
        assert found[names[row["link"]]][place] == row["packets"]
    assert sum(float(v.sum()) for v in found.values()) == run.queues["packets"].sum()


def test_tasks_are_counted_while_they_run(tmp_path: Path) -> None:
    text = SCENARIO.partition("[[workload]]")[0] + (
        '[[workload]]\nname = "terasort"\nkind = "mapreduce"\n[[workload.job]]\nkind = "terasort"\n'
        'input = "100 MB"\n'
    )
    result = ew.run(text, set={"measure.sample_interval": "100 ms"}, out=tmp_path / "r")
    running = next(f for f in families(result) if f.name == "eastwest_tasks_running")
    total = sum(s.values for s in running.series)
    assert isinstance(total, np.ndarray) and total.min() == 0 and total.max() >= 2
    for time_s, shown in zip(times_of(result), total, strict=True):
        tasks = result.tasks
        there = (tasks["assigned_s"] <= time_s) & (tasks["finished_s"] > time_s)
        assert shown == there.sum()


def test_selection_on_a_run_finds_what_makes_throughput(run: ew.Result) -> None:
    table = metrics(run)
    assert RESPONSES in table.names and len(table.values) == len(times_of(run)) - 1
    done = CliRunner().invoke(
        app, ["observe", "select", str(run.path), "--target", RESPONSES, "--count", "2", "--json"]
    )
    chosen = [each["metric"] for each in json.loads(done.stdout)["chosen"]]
    assert chosen[0] == RESPONSES.replace("completed", "bytes")


def test_hostile_labels_are_escaped_and_read_back(tmp_path: Path, tool: Callable[..., str]) -> None:
    name = 'a"b\\c\nd\x07{e="f"} 1\n# EOF'
    family = Family(
        "x", Kind.GAUGE, 'help\nwith "lines"', [Series({"l": name}, np.array([0.5, 2]))]
    )
    text = openmetrics.snapshot([family], 1)
    assert text.splitlines() == [
        "# TYPE x gauge",
        '# HELP x help\\nwith \\"lines\\"',
        'x{l="a\\"b\\\\c\\nd {e=\\"f\\"} 1\\n# EOF"} 2',
        "# EOF",
    ]
    server, promtool, file = tool("prometheus"), tool("promtool"), tmp_path / "x.om"
    other = Series({"l": "plain"}, np.array([0.5, 2]))
    family = Family("x", Kind.GAUGE, family.help, [*family.series, other])
    file.write_text("".join(openmetrics.series([family], np.array([1.0, 2.0]), 1_700_000_000)))
    blocks = str(tmp_path / "tsdb")
    made = [promtool, "tsdb", "create-blocks-from", "openmetrics", str(file), blocks]
    subprocess.run(made, check=True, capture_output=True)
    with prometheus(server, tmp_path) as url:
        found = client.fetch(url, "x", 1_700_000_001, 1_700_000_002, 1, rates=False)
    escaped = json.dumps(name.replace("\x07", " "))
    assert set(found.names) == {f"x{{l={escaped}}}", 'x{l="plain"}'}
    assert found.values.tolist() == [[0.5, 0.5], [2, 2]]


def test_an_exported_run_comes_back_from_prometheus(
    run: ew.Result, tmp_path: Path, tool: Callable[..., str]
) -> None:
    server, promtool = tool("prometheus"), tool("promtool")
    begin, text = 1_700_000_000, tmp_path / "run.om"
    done = CliRunner().invoke(
        app, ["observe", "export", str(run.path), "--out", str(text), "--start", str(begin)]
    )
    assert done.exit_code == 0, done.output
    subprocess.run(
        [promtool, "tsdb", "create-blocks-from", "openmetrics", str(text), str(tmp_path / "tsdb")],
        check=True, capture_output=True,
    )  # fmt: skip
    times = times_of(run)
    own = metrics(run)
    with prometheus(server, tmp_path) as url:
        found = client.fetch(
            url, '{__name__=~"eastwest_.*"}', begin + times[0], begin + times[-1], 0.02
        )
        one = client.fetch(url, "eastwest_link_drops_total", begin, begin + times[-1], 0.02)
        selected = CliRunner().invoke(
            app,
            ["observe", "select", url, "--target", RESPONSES, "--step", "20 ms", "--count", "1",
             "--exclude", "eastwest_class_*",
             "--until", str(begin + times[-1]), "--last", f"{(times[-1] - times[0]) * 1e3:.0f} ms",
             "--json"],
        )  # fmt: skip
        with pytest.raises(InputError, match=r"refuses: .*parse error"):
            client.fetch(url, "{", 0, 1, 1)
        with pytest.raises(InputError, match="no series"):
            client.fetch(url, "nothing", begin, begin + 1, 1)
    assert set(found.names) == set(own.names) and found.values.shape == own.values.shape
    order = [found.names.index(name) for name in own.names]
    # Times since 1970 have a resolution of 0.2 µs as floats, and steps are 20 ms.
    assert np.allclose(found.values[:, order], own.values, rtol=1e-4)
    assert all(name.startswith("eastwest_link_drops_total{link=") for name in one.names)
    assert json.loads(selected.stdout)["chosen"][0]["metric"] == RESPONSES.replace(
        "completed", "bytes"
    )


def test_prometheus_scrapes_a_run(run: ew.Result, tmp_path: Path, tool: Callable[..., str]) -> None:
    program = tool("prometheus")
    told, times = families(run), times_of(run)
    web = exporter.server(told, times, speed=math.inf)
    thread = threading.Thread(target=web.serve_forever)
    thread.start()
    try:
        with prometheus(program, tmp_path, f"127.0.0.1:{web.server_port}") as url:
            begin = time.time()
            for _ in range(600):
                with urllib.request.urlopen(f"{url}/api/v1/targets", timeout=30) as answer:
                    targets = json.loads(answer.read())["data"]["activeTargets"]
                if targets and targets[0]["health"] == "up":
                    break
                time.sleep(0.1)
            assert targets and targets[0]["health"] == "up", targets
            query = '{__name__=~"eastwest_.*"}'
            found = client.fetch(url, query, begin - 1, time.time() + 1, 0.5, rates=False)
    finally:
        web.shutdown()
        thread.join()
        web.server_close()
    expected = samples(openmetrics.snapshot(told, len(times) - 1))
    assert {name.replace('"', "") for name in found.names} == {n.replace('"', "") for n in expected}
    for name, column in zip(found.names, found.values.T, strict=True):
        seen = column[~np.isnan(column)]
        assert len(seen) and set(seen.tolist()) == {expected[name]}


def test_a_replay_follows_the_clock(run: ew.Result) -> None:
    now = [100.0]
    told, times = families(run), times_of(run)
    web = exporter.server(told, times, speed=0.5, clock=lambda: now[0])
    thread = threading.Thread(target=web.serve_forever)
    thread.start()
    try:
        seen = []
        for elapsed in (0.0, 2 * times[0], 2 * times[-1], 1e6):
            now[0] = 100 + elapsed + 1e-9
            address = f"http://127.0.0.1:{web.server_port}/metrics"
            with urllib.request.urlopen(address, timeout=30) as answer:
                assert answer.headers["Content-Type"] == openmetrics.CONTENT_TYPE
                seen.append(samples(answer.read().decode()))
        with pytest.raises(urllib.request.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{web.server_port}/x", timeout=30)
    finally:
        web.shutdown()
        thread.join()
        web.server_close()
    assert set(seen[0].values()) == {0.0} and seen[2] == seen[3]
    assert seen[1] == samples(openmetrics.snapshot(told, 0))
    assert seen[2] == samples(openmetrics.snapshot(told, len(times) - 1))
    with pytest.raises(ValueError, match="speed"):
        exporter.server(told, times, speed=0)


@contextmanager
def answering(*answers: tuple[int, bytes]) -> Iterator[str]:
    """Start a server that gives these answers one after the other, whatever the request."""
    left = list(answers)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            status, body = left.pop(0)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def matrix(*series: tuple[dict[str, str], list[tuple[float, str]]]) -> bytes:
    result = [{"metric": labels, "values": values} for labels, values in series]
    return json.dumps({"data": {"resultType": "matrix", "result": result}}).encode()


def test_answers_of_a_server() -> None:
    labels = {"__name__": "a_total", "job": "j", "x": 'q"\n'}
    other = {"__name__": "g", "job": "j"}
    first = matrix((labels, [(0, "5"), (1, "7")]), (other, [(0, "1"), (1, "NaN")]))
    second = matrix((labels, [(10_001, "3")]))
    with answering((200, first), (200, second)) as url:
        found = client.fetch(url, "q", 0, 10_002, 1)
    assert found.names == ('a_total{x="q\\"\\n"}', "g")
    # The counter was reset: 3 in 10,000 s.
    expected = [[2, math.nan], [3 / 10_000, math.nan]]
    assert np.allclose(found.values, expected, equal_nan=True)
    for answer, said in (
        ((200, b"<html>"), "does not answer like a Prometheus"),
        ((200, b"[" * 100_000), "does not answer like a Prometheus"),
        ((200, b'{"data": {"resultType": "matrix", "result": [{}]}}'), "does not answer"),
        ((200, b'{"data": {"resultType": "scalar", "result": []}}'), "no series over time"),
        ((503, b"busy"), "refuses: 503"),
        ((422, b'{"error": "too \\u001b[31m many"}'), "refuses: too .\\[31m many"),
    ):
        with answering(answer) as url, pytest.raises(InputError, match=said):
            client.fetch(url, "q", 0, 10, 1)
    with pytest.raises(InputError, match="cannot be reached"):
        client.fetch(url, "q", 0, 10, 1)
    for wrong in (("file:///etc/passwd", 0, 10, 1), (url, 10, 0, 1), (url, 0, 10, 0)):
        with pytest.raises(InputError, match=r"expected the address|must"):
            client.fetch(wrong[0], "q", *wrong[1:])


def test_what_cannot_be_exported(tmp_path: Path) -> None:
    one = ew.run("first", set={"measure.sample_interval": "10 s"}, out=tmp_path / "r")
    refused = CliRunner().invoke(
        app, ["observe", "export", str(one.path), "-o", str(tmp_path / "o")]
    )
    assert refused.exit_code == 2 and re.search(
        "set a shorter measure.sample_interval", refused.output
    )
    assert not (tmp_path / "o").exists()
    refused = CliRunner().invoke(app, ["observe", "serve", str(one.path), "--speed", "0"])
    assert refused.exit_code == 2 and "must be above 0" in refused.output


def test_what_a_server_leaves_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    value = {"metric": {"__name__": "a"}, "values": [[1, "1"], [2, "+Inf"]]}
    native = {"metric": {"__name__": "h"}, "histograms": [[1, {"count": "3", "buckets": []}]]}
    data = {"resultType": "matrix", "result": [value, native]}
    answer = {"status": "success", "data": data, "warnings": ["a store is down"], "infos": ["x"]}
    with answering((200, json.dumps(answer).encode())) as url:
        found = client.fetch(url, "a", 1, 2, 1, rates=False)
    assert found.names == ("a",)
    assert found.notes == (
        "the server says (warnings): a store is down",
        "the server says (infos): x",
        "1 series are native histograms and are left out: query histogram_quantile or "
        "histogram_sum of them",
        "1 infinite values in 1 metrics, such as a, count as missing",
    )
    monkeypatch.setattr(observed, "MOST_VALUES", 1)
    with (
        answering((200, json.dumps(answer).encode())) as url,
        pytest.raises(InputError, match="2 rows of 1 metrics are more than 1 values"),
    ):
        client.fetch(url, "a", 1, 2, 1)


def test_samples_keep_apart_and_have_values_that_openmetrics_knows() -> None:
    values = np.array([1.0, math.nan, math.inf])
    family = Family("m", Kind.GAUGE, "text", [Series({}, values)])
    text = list(openmetrics.series([family], np.array([0.0001, 0.0002, 0.0003]), 1_700_000_000.0))
    assert text[2:-1] == [
        "m 1 1700000000.000100\n",
        "m NaN 1700000000.000200\n",
        "m +Inf 1700000000.000300\n",
    ]
    with pytest.raises(InputError, match="below the resolution of times since 1970"):
        list(openmetrics.series([family], np.array([1e-9, 2e-9, 3e-9]), 1_700_000_000.0))


STAGES = """
schema = 1
name = "stages"
[fabric]
kind = "star"
hosts = 4
host_rate = "100 Mbit/s"
[[workload]]
name = "shop"
kind = "transactions"
file = "calls.tsv"
placement = "file"
places = "places.csv"
clients = ["h0"]
processors = 1
[measure]
sample_interval = "1 ms"
capture = ["switch0->h2"]
"""
#: The web server computes 5 ms for each of two parallel queries, and 10 ms before it answers.
CALLS = """\
transaction\tcall\tparent\tstart_s\tcomponent\trequest_bytes\tresponse_bytes\tgap_s\trest_s
b\t0\t\t0.002\tweb\t400\t8000\t0\t0.01
b\t1\t0\t\tdb\t200\t20000\t0.005\t0.004
b\t2\t0\t\tdb\t200\t20000\t0.005\t0.004
a\t0\t\t0.001\tweb\t400\t8000\t0\t0.02
a\t1\t0\t\tdb\t200\t20000\t0.005\t0.003
"""


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> ew.Result:
    """Return a run of a service with two stages that have one processor each."""
    folder = tmp_path_factory.mktemp("stages")
    (folder / "s.toml").write_text(STAGES)
    (folder / "calls.tsv").write_text(CALLS)
    (folder / "places.csv").write_text("component,host\nweb,h1\ndb,h2\n")
    return ew.run(folder / "s.toml", out=folder / "r")


def test_core_time_of_components_is_what_they_were_to_compute(stages: ew.Result) -> None:
    times = np.array([0.0, 1.0])
    found = core_seconds(stages, times)
    assert set(found) == {("shop", "web", 1), ("shop", "db", 2)}
    # Parallel computing times take turns on one processor: 5 + 10 and 5 + 20 ms.
    assert found["shop", "web", 1].tolist() == pytest.approx([0, 0.040])
    assert found["shop", "db", 2].tolist() == pytest.approx([0, 0.011])
    fine = core_seconds(stages, np.linspace(0, 0.06, 600))
    # With one processor, computing time never exceeds the elapsed time.
    for counted in fine.values():
        assert (np.diff(counted) >= 0).all() and np.diff(counted).max() <= 0.06 / 599 + 1e-12


def test_transactions_and_captured_packets_are_counted(stages: ew.Result) -> None:
    last = samples(openmetrics.snapshot(families(stages), -1 + len(times_of(stages))))
    end = float(times_of(stages)[-1])
    ended = stages.transactions.filter(stages.transactions["finished_s"] <= end)
    assert last['eastwest_transaction_completed_total{workload="shop"}'] == ended.height > 0
    seconds = float(ended["response_us"].sum()) / 1e6
    assert last['eastwest_transaction_seconds_total{workload="shop"}'] == pytest.approx(seconds)
    at = packet_times(stages.path / "capture.pcapng")["switch0->h2"]
    link = stages.links.filter(stages.links["name"] == "switch0->h2")
    assert len(at) == link["packets"][0] and (np.diff(at) > 0).all()
    packets = 'eastwest_link_packets_total{link="switch0->h2",tier="host-down"}'
    assert last[packets] == (at <= end).sum()


def test_damaged_captures_are_refused(stages: ew.Result, tmp_path: Path) -> None:
    whole = (stages.path / "capture.pcapng").read_bytes()
    for wrong in (whole[:-3], b"\x06\0\0\0\x10\0\0\0" + bytes(8), b"\x06\0\0\0" + bytes(8)):
        (tmp_path / "c.pcapng").write_bytes(wrong)
        with pytest.raises(InputError, match="damaged at byte"):
            packet_times(tmp_path / "c.pcapng")
