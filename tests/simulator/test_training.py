"""Training jobs: iterations, collective calls with their bus bandwidth, explanation and picture."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import eastwest as ew
from eastwest.results import Result

#: Two copies of a model on two hosts of a star; each pass through the only layer takes 1 ms forward
#: and 2 ms backward. A gradient has 12 · 1000² · 2 bytes.
SCENARIO = """schema = 1
[fabric]
kind = "star"
hosts = 2
host_rate = "100 Gbit/s"
host_delay = "1 us"
processing_jitter = "0 s"
queue = {{ kind = "drop-tail", limit = "4 MB" }}
[measure]
sample_interval = "100 us"
[[workload]]
name = "job"
kind = "training"
transport = "rocev2"
data = 2
layers = 1
hidden = 1000
sequence = 1000
overlap = false
iterations = 3
{more}
[[workload.layer]]
forward = "1 ms"
backward = "2 ms"
[workload.collectives]
allreduce = "ring"
"""


def trained(folder: Path, more: str = "") -> Result:
    (folder / "job.toml").write_text(SCENARIO.format(more=more))
    return ew.run(folder / "job.toml", out=folder / "result")


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return trained(tmp_path_factory.mktemp("training"))


def test_iterations_are_computation_and_exposed_communication(job: Result) -> None:
    rows = job.mpi_iterations
    assert rows.height == 2 * 3
    assert rows["compute_s"].to_list() == pytest.approx([3e-3] * 6)
    # A ring of two ranks sends half of the 24 MB twice: 1.92 ms at 100 Gbit/s, and headers.
    assert rows["exposed_s"].min() == pytest.approx(1.92e-3, rel=0.1)
    whole = rows["ended_s"] - rows["began_s"]
    assert whole.to_list() == pytest.approx((rows["compute_s"] + rows["exposed_s"]).to_list())
    later = rows.filter(pl.col("iteration") > 0)
    found = job.summary["mpi"]["iterations"]
    assert found["count"] == later.height == 4
    assert found["exposed_s"] == pytest.approx(later["exposed_s"].mean())
    assert found["idle_s"] == pytest.approx(0.0, abs=1e-9)


def test_bus_bandwidth_is_that_of_nccl_tests(job: Result) -> None:
    calls = job.mpi_collectives
    assert calls["call"].unique().to_list() == ["allreduce"]
    assert calls["ranks"].unique().to_list() == [2]
    assert calls["bus_bytes"].unique().to_list() == [24_000_000], "2 (n − 1) / n is 1"
    took = calls["ended_s"] - calls["complete_s"]
    assert calls["bus_bandwidth_bps"].to_list() == pytest.approx((24e6 * 8 / took).to_list())
    assert 80e9 < float(calls["bus_bandwidth_bps"][-1]) < 100e9


def test_an_explanation_names_the_call_and_the_busy_ports(job: Result) -> None:
    told = ew.explain(job, "program", "job")
    assert told.facts["slowest_collective"]["call"] == "allreduce"
    assert set(told.facts["busiest_ports"][:2]) <= set(job.links["name"].to_list())
    assert sum(part.us for part in told.parts) == pytest.approx(told.total_us)
    assert {part.what for part in told.parts} == {"computing", "allreduce: messages between hosts"}
    assert "exposed collective calls" in str(told)


def test_a_proxy_makes_collective_calls_longer(job: Result, tmp_path: Path) -> None:
    slower = trained(tmp_path, 'chunk_overhead = "50 us"')
    # two steps; in each, a message leaves and one is taken in
    more = slower.summary["mpi"]["runtime_s"] - job.summary["mpi"]["runtime_s"]
    assert more == pytest.approx(3 * 2 * 2 * 50e-6, rel=0.05)


def test_iterations_are_drawn(job: Result) -> None:
    assert "exposed" in ew.plot.draw("iterations", [("", job)]).title


def test_measured_layers_must_be_those_of_the_model(tmp_path: Path) -> None:
    path = tmp_path / "two.toml"
    path.write_text(SCENARIO.format(more="").replace("layers = 1", "layers = 2"))
    with pytest.raises(ew.ScenarioError) as refused:
        ew.run(path, out=tmp_path / "result")
    assert "the entries have 1 layers in sum, but the model has 2" in str(refused.value)
