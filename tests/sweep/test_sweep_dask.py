"""Sweeps on a real Dask cluster: scheduler and workers on loopback, which are killed or refused."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from distributed import Client, KilledWorker
from polars.testing import assert_frame_equal

import eastwest as ew
from dask_cluster import LocalCluster, cluster
from eastwest import core
from eastwest.errors import InputError
from eastwest.store import Store
from eastwest.sweep import State, SweepStoppedError, default_jobs
from eastwest.sweep import cluster as sweep_cluster
from eastwest.sweep.cluster import Cluster, disconnect
from eastwest.sweep.remote import plain
from eastwest.sweep.tables import SweepResult
from same_runs import compare

pytestmark = pytest.mark.slow

SCENARIO = """
schema = 1
name = "listed"
[fabric]
kind = "star"
hosts = 6
host_rate = "1 Gbit/s"
[tcp]
min_rto = "10 ms"
[[workload]]
name = "flows"
kind = "flow-list"
file = "flows.csv"
[[workload]]
name = "incast"
kind = "incast"
receiver = "h0"
rounds = 10
block_bytes = "100 KB"
"""
FLOWS = "src,dst,bytes,start_s\nh0,h1,50000,0\nh2,h1,50000,0.001\n"
LIMITS = ["5 packets", "50 packets", "500 packets"]
SWEEP: dict[str, Any] = {
    "scenario": "listed.toml",
    "axis": [{"path": "fabric.queue.limit", "values": LIMITS}],
    "seeds": 5,
}
RUNS = len(LIMITS) * 5
TABLES = ("runs", "points", "comparisons")
#: A user's queue; with a limit below ten packets it ends its process.
SKETCH = '''
import os
import eastwest as ew

class Deadly(ew.Queue):
    """Drops nothing that fits."""

    deadly: int = 0

    def at_enqueue(self, arrival: ew.Arrival) -> ew.Verdict:
        if self.deadly:
            os.kill(os.getpid(), 9)
        return ew.Verdict.ENQUEUE if arrival.fits else ew.Verdict.DROP
'''


OPTIMISATION = """
optimize = 1
scenario = "listed.toml"
[[goal]]
minimise = "latency_us.p99"
[[axis]]
path = "fabric.queue.limit"
values = ["5 packets", "50 packets"]
[[stage]]
seeds = 2
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to an empty working directory with a scenario that reads a file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EASTWEST_STORE", raising=False)
    (tmp_path / "listed.toml").write_text(SCENARIO)
    (tmp_path / "flows.csv").write_text(FLOWS)


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Start a scheduler with two workers; tests leave two running."""
    with cluster(tmp_path_factory.mktemp("dask"), 2) as found:
        found.wait_for_workers(2)
        yield found


def same(a: SweepResult, b: SweepResult) -> None:
    for name in TABLES:
        assert (a.path / f"{name}.parquet").read_bytes() == (
            b.path / f"{name}.parquet"
        ).read_bytes(), name


def test_a_worker_killed_in_the_middle_costs_nothing(dask: LocalCluster) -> None:
    killed: list[int] = []

    def kill(state: State) -> None:
        if state.done >= 3 and not killed:
            killed.append(state.done)
            dask.workers[0].kill()

    sweep = {**SWEEP, "keep": "tables"}
    over = ew.sweep(sweep, out="over", store="over-store", dask=dask.address, progress=kill)
    dask.add_worker()
    assert killed and killed[0] < RUNS
    runs = {"planned": RUNS, "done": RUNS, "reused": 0, "failed": 0}
    assert over.summary["runs"] == runs and over.failures == []
    local = ew.sweep(sweep, out="local", store="local-store", jobs=0)
    same(over, local)
    # The folders of runs equal those of local runs: files, inputs, and tables byte for byte.
    one, other = over.run(1, 2), local.run(1, 2)
    names = {p.relative_to(one.path) for p in one.path.rglob("*")}
    assert names == {p.relative_to(other.path) for p in other.path.rglob("*")}
    assert (one.path / "inputs" / "flows.csv").read_text() == FLOWS
    assert (one.path / "flows.parquet").read_bytes() == (other.path / "flows.parquet").read_bytes()
    # There is one line per run, though some runs were begun twice; nothing is run again.
    costs = Store("over-store").costs()
    assert len({cost["key"] for cost in costs}) == len(costs) == RUNS
    text, equal = compare(Path("over-store"), Path("local-store"))
    assert text.startswith(f"{RUNS} runs in both stores, {RUNS} with equal digests") and equal
    again = ew.sweep(sweep, out="again", store="over-store", dask=dask.address)
    assert again.summary["runs"]["reused"] == RUNS
    assert list(Path("over-store/partial").iterdir()) == []


def test_what_kills_its_process_is_tried_elsewhere_and_then_fails(dask: LocalCluster) -> None:
    dask.wait_for_workers(2)
    Path("deadly.py").write_text(SKETCH)
    sweep = {
        **SWEEP,
        "seeds": 1,
        "set": {"fabric.queue.kind": "deadly", "fabric.queue.limit": "50 packets"},
        "axis": [{"path": "fabric.queue.deadly", "values": [0, 1]}],
    }
    over = ew.sweep(
        sweep, out="over", store="over-store", dask=dask.address, mechanisms=["deadly.py"]
    )
    assert over.runs["point"].to_list() == [0]
    [failure] = over.failures
    assert "signal 9, perhaps because the memory was full" in failure["message"]
    assert failure["settings"] == {"fabric.queue.deadly": "1"}
    assert "on tcp://127.0.0.1:" in failure["message"]
    alone = ew.run("listed.toml", {**sweep["set"], "fabric.queue.deadly": 0}, 1,
                   mechanisms=["deadly.py"])  # fmt: skip
    assert over.runs["digest"][0] == alone.digest


def test_an_optimisation_over_the_cluster_is_the_same(dask: LocalCluster) -> None:
    Path("o.toml").write_text(OPTIMISATION)
    over = ew.optimize("o.toml", out="over", store="over-store", dask=dask.address)
    local = ew.optimize("o.toml", out="local", store="local-store", jobs=0)
    assert_frame_equal(over.runs, local.runs)
    assert over.recommended == local.recommended


def test_ctrl_c_cancels_what_is_queued(dask: LocalCluster, tmp_path: Path) -> None:
    text = SCENARIO.replace("rounds = 10", "rounds = 60")
    (tmp_path / "long.toml").write_text(text)
    (tmp_path / "s.toml").write_text('scenario = "long.toml"\nseeds = 200\n')
    process = subprocess.Popen(
        [sys.executable, "-m", "eastwest", "sweep", "s.toml", "--dask", dask.address,
         "--store", "store", "--out", "out"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    until = time.monotonic() + 300
    while len(list(Path("store/runs").glob("*/*/summary.json"))) < 3:
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 130 and b"runs are stored" in said, said.decode()
    assert b"distributed" not in said
    there = SweepResult("out")
    assert not there.summary["complete"] and there.runs.height < 200
    with Client(dask.address, set_as_default=False) as client:
        while any(client.processing().values()):
            assert time.monotonic() < until, "what was queued still runs"
            time.sleep(0.02)


def test_workers_of_another_build_or_without_eastwest_are_refused(
    dask: LocalCluster, tmp_path: Path
) -> None:
    for name, text in {
        "other": "def build(): return '0.0.9 0123456789abcdef'",
        "none": "import eastwest.not_there",
    }.items():
        (tmp_path / name / "eastwest").mkdir(parents=True)
        (tmp_path / name / "eastwest" / "__init__.py").touch()
        (tmp_path / name / "eastwest" / "core.py").write_text(text)
    strangers = [dask.add_worker(PYTHONPATH=str(tmp_path / name)) for name in ("other", "none")]
    try:
        dask.wait_for_workers(4)
        ours = core.build().replace(" ", " (build ")[:20]
        with pytest.raises(InputError) as caught:
            ew.sweep(SWEEP, dask=dask.address)
        assert "has Eastwest 0.0.9 (build 0123456789ab), but this machine has " in str(caught.value)
        assert "has no Eastwest, but this machine has" in str(caught.value) and ours in str(
            caught.value
        )
        assert not Path("results").exists()
    finally:
        for stranger in strangers:
            stranger.kill()
        dask.wait_for_workers(2)


def test_a_scheduler_that_goes_away_stops_the_sweep(tmp_path: Path) -> None:
    with cluster(tmp_path / "own", 1) as own:

        def kill(state: State) -> None:
            if state.done:
                own.scheduler.kill()

        with pytest.raises(
            SweepStoppedError, match=r"has ended.* of 15 runs are finished and stored"
        ):
            ew.sweep(SWEEP, out="out", dask=own.address, progress=kill)
    rest = ew.sweep(SWEEP, out="out", jobs=0)
    assert rest.summary["runs"]["reused"] > 0 and rest.runs.height == RUNS


def test_an_error_while_a_client_disconnects_is_ignored() -> None:
    """Dask raises ``RuntimeError`` if the scheduler ends at this moment."""
    closed: list[float] = []

    def close(timeout: float) -> None:
        closed.append(timeout)
        raise RuntimeError("Cannot change state of expiring Timeout")

    client: Any = SimpleNamespace(close=close)
    disconnect(client)
    assert closed == [5]


def test_an_address_without_a_scheduler_is_told_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_cluster, "CONNECT_S", 0.3)
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # The port is bound, but nobody listens on it.
        address = f"tcp://127.0.0.1:{bound.getsockname()[1]}"
        with pytest.raises(InputError, match=r"no Dask scheduler answers at tcp://127.*300 ms"):
            ew.sweep(SWEEP, dask=address)
    with pytest.raises(InputError, match="expected the address of a scheduler"):
        ew.sweep(SWEEP, dask="carrier-pigeon://loft")
    with pytest.raises(InputError, match="missing port number in address 'loft'"):
        ew.sweep(SWEEP, dask="loft")
    assert not Path("results").exists()


def test_without_dask_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="jobs and dask cannot be combined"):
        ew.sweep(SWEEP, dask="tcp://127.0.0.1:1", jobs=2)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install 'eastwest\[dask\]'"):
        ew.sweep(SWEEP, dask="tcp://127.0.0.1:1")


def test_files_that_travel_are_bounded(dask: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_cluster, "MOST_INPUT_BYTES", 10)
    with pytest.raises(InputError, match="that are sent to workers"):
        ew.sweep(SWEEP, dask=dask.address)
    assert threading.active_count() < 20 + default_jobs()


def test_a_run_that_killed_several_workers_is_lost() -> None:
    pool = Cluster(SimpleNamespace(), "tcp://x:1", Store("s"))  # type: ignore[arg-type]
    worker: Any = SimpleNamespace(address="tcp://10.0.0.7:4000")
    event = pool._failed_event(KilledWorker("key", worker, 3))
    assert event.what == "lost"
    assert event.message.startswith("4 workers died in this run, the last at tcp://10.0.0.7:4000")
    assert pool._failed_event(ModuleNotFoundError("No module named 'eastwest'")).what == "world"
    assert pool._failed_event(OSError("No space left")).what == "died"


def test_stores_that_differ_are_told(tmp_path: Path) -> None:
    for name in ("a", "b"):
        ew.sweep({**SWEEP, "seeds": 1}, store=name, out=f"out-{name}", jobs=0)
    changed = next(Path("b/runs").glob("*/*/summary.json"))
    changed.write_text(changed.read_text().replace('"digest": "', '"digest": "0'))
    text, equal = compare(Path("a"), Path("b"))
    assert not equal and text.endswith(f"differs: {changed.parent.name}")
    assert not compare(Path("a"), Path("nothing"))[1]


@pytest.mark.parametrize("name", ["/etc/passwd", "../up", "", "a/../../b"])
def test_files_of_orders_stay_below_their_folder(name: str) -> None:
    with pytest.raises(ValueError, match="is not allowed as a file name"):
        plain(name)
