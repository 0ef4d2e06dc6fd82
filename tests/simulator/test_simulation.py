"""The real simulator, from the command line and from Python, on small scenarios."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import eastwest as ew
from eastwest import bench, shipped

pytestmark = pytest.mark.slow

SMALL = """
schema = 1
name = "small"
seed = 1

[fabric]
kind = "leaf-spine"
leaves = 2
hosts_per_leaf = 4
spines = 2
host_rate = "1 Gbit/s"
uplink_rate = "1 Gbit/s"
queue = { kind = "drop-tail", limit = "20 packets" }

[[workload]]
name = "bulk"
kind = "stride"
stride = 3
count = 4
bytes = "300 KB"
start_window = "1 ms"
"""

JOBS = """
schema = 1
name = "jobs"
seed = 1

[fabric]
kind = "leaf-spine"
leaves = 2
hosts_per_leaf = 5
spines = 2
host_rate = "1 Gbit/s"
uplink_rate = "10 Gbit/s"

[[workload]]
name = "hadoop"
kind = "mapreduce"
trace = "fb-2009-first-50"
trace_to = "2 min"
"""

MANY_MISTAKES = """
schema = 1
name = "wrong"

[fabric]
kind = "leaf-spine"
hosts_per_leef = 4
host_rate = "0 bit/s"
mtu = 20
queue = { kind = "drop-tail", limit = "0 packets" }

[[workload]]
name = "bulk"
kind = "stried"
"""

SUMMARY_PATHS = """
scenario seed version digest simulated_s wall_s cpu_s packet_hops events peak_rss_mb
jobs.count jobs.runtime_s.mean jobs.runtime_s.p50 jobs.runtime_s.p99 jobs.makespan_s
flows.count flows.completed flows.fct_us.mean flows.fct_us.p50 flows.fct_us.p99 flows.fct_us.max
latency_us.mean latency_us.p50 latency_us.p99 latency_us.p999
throughput_bps drops tcp.retransmits tcp.timeouts folder
"""


@pytest.fixture(autouse=True)
def scenarios(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SMALL)
    Path("jobs.toml").write_text(JOBS)
    Path("wrong.toml").write_text(MANY_MISTAKES)


def eastwest(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "eastwest", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def run_json(*args: str) -> dict[str, object]:
    done = eastwest("run", *args, "--json")
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout)
    assert isinstance(loaded, dict)
    return loaded


@pytest.mark.parametrize("scenario", ["small.toml", "jobs.toml"])
def test_one_digest_in_every_process_and_mode(scenario: str) -> None:
    first = run_json(scenario)
    assert len(str(first["digest"])) >= 16
    assert run_json(scenario)["digest"] == first["digest"]
    assert run_json(scenario, "--reference")["digest"] == first["digest"]
    parted = run_json(scenario, "--threads", "2")
    assert parted["digest"] == first["digest"]
    said = parted["notes"]
    assert isinstance(said, list)
    told = ("2 threads", "One thread was used, because ")
    assert any(str(note).startswith(told) for note in said)
    assert run_json(scenario, "--seed", "2")["digest"] != first["digest"]


def test_threads_give_every_table_of_one(tmp_path: Path) -> None:
    """S1x10 is busy enough to be divided, where there is more than one core."""
    settings = {"workload.bulk.bytes": "30 kB"}
    one = ew.run("S1x10", settings, out=tmp_path / "one")
    two = ew.run("S1x10", settings, out=tmp_path / "two", threads=2)
    assert two.digest == one.digest
    tables = sorted(path.name for path in one.path.glob("*.parquet"))
    assert tables == sorted(path.name for path in two.path.glob("*.parquet"))
    for name in tables:
        assert pl.read_parquet(one.path / name).equals(pl.read_parquet(two.path / name)), name
    own = {"wall_s", "cpu_s", "peak_rss_mb", "notes"}
    summaries = [{k: v for k, v in r.summary.items() if k not in own} for r in (one, two)]
    assert summaries[0] == summaries[1]
    said = [note for note in two.summary["notes"] if note not in one.summary["notes"]]
    assert [note.startswith(("2 threads", "One thread was used, because ")) for note in said] == [
        True
    ]


@pytest.mark.parametrize("scenario", ["small.toml", "jobs.toml"])
def test_a_result_runs_again_from_itself(scenario: str, tmp_path: Path) -> None:
    first = ew.run(scenario, seed=5)
    moved = tmp_path / "elsewhere"
    first.path.rename(moved)
    again = ew.run(moved)
    assert again.digest == ew.Result(moved).digest
    assert again.summary["seed"] == 5
    assert again.scenario == ew.Result(moved).scenario


def test_what_changes_the_run_changes_the_digest() -> None:
    digests = {ew.run("small.toml").digest}
    for path, value in (
        ("fabric.queue.limit", "21 packets"),
        ("fabric.host_delay", "2 us"),
        ("workload.bulk.bytes", "300001 B"),
    ):
        digests.add(ew.run("small.toml", set={path: value}).digest)
    assert len(digests) == 4


def test_the_json_has_what_scripts_rely_on() -> None:
    summary = run_json("jobs.toml")
    for path in SUMMARY_PATHS.split():
        value: object = summary
        for key in path.split("."):
            assert isinstance(value, dict), path
            assert key in value, path
            value = value[key]
        assert value is not None, path


def test_tables_agree_with_each_other_and_the_summary() -> None:
    result = ew.run("small.toml")
    flows, links, summary = result.flows, result.links, result.summary
    assert flows.height == summary["flows"]["count"] == summary["flows"]["completed"] == 8 * 4
    assert set(flows["bytes"]) == {300_000}
    assert (flows["finish_s"] > flows["start_s"]).all()
    assert (flows["slowdown"] >= 1).all()
    took = (flows["finish_s"] - flows["start_s"]) * 1e6
    assert ((flows["fct_us"] - took).abs() < 1e-3).all()
    assert summary["flows"]["fct_us"]["max"] == pytest.approx(flows["fct_us"].max())
    assert links.height == 2 * (8 + 4)
    assert links["packets"].sum() == summary["packet_hops"]
    causes = ["drops_queue_full", "lost_random", "lost_down", "lost_no_route", "drops_early"]
    causes += ["drops_shared_buffer", "drops_sojourn"]
    kinds = [c for c in links.columns if c.startswith("drops_") and c not in causes]
    for parts in (kinds, causes):
        assert links.select(pl.sum_horizontal(parts).eq(pl.col("drops")).all()).item()
    assert links["drops"].sum() > 0
    assert (links["utilisation"] <= 1).all()
    # The series ends with the last whole interval; later bytes are only in the totals.
    carried = dict(links.group_by("tier").agg(pl.col("bytes").sum()).rows())
    over_time = dict(result.traffic.group_by("tier").agg(pl.col("bytes").sum()).rows())
    assert over_time.keys() == carried.keys()
    for tier, total in carried.items():
        assert 0.9 * total <= over_time[tier] <= total


def test_jobs_and_tasks_agree() -> None:
    result = ew.run("jobs.toml")
    jobs, tasks = result.jobs, result.tasks
    assert jobs.height == result.summary["jobs"]["count"] > 0
    assert (
        tasks.height
        == jobs.select(pl.col("maps", "reduces").sum())
        .select(pl.sum_horizontal("maps", "reduces"))
        .item()
    )
    runtime = jobs["finished_s"] - jobs["submitted_s"]
    assert ((jobs["runtime_s"] - runtime).abs() < 1e-9).all()
    for before, after in (
        ("assigned_s", "started_s"),
        ("started_s", "input_done_s"),
        ("input_done_s", "finished_s"),
    ):
        assert (tasks[before] <= tasks[after]).all()
    shuffled = result.flows.filter(pl.col("purpose") == "shuffle")["bytes"].sum()
    remote = jobs.select((pl.col("shuffle_bytes") - pl.col("shuffle_local_bytes")).sum()).item()
    assert shuffled == remote
    counters = result.counters
    assert (counters["job"] == jobs["job"]).all()
    assert (counters["REDUCE_SHUFFLE_BYTES"] == jobs["shuffle_bytes"]).all()
    assert (counters["HDFS_BYTES_READ"] == jobs["input_bytes"]).all()
    assert (counters["HDFS_BYTES_WRITTEN"] == jobs["output_bytes"]).all()
    assert (counters["TOTAL_LAUNCHED_MAPS"] == jobs["maps"]).all()
    assert counters["FILE_BYTES_WRITTEN"].sum() == tasks["file_bytes_written"].sum()


def test_all_mistakes_at_once() -> None:
    for command in ("check", "run"):
        done = eastwest(command, "wrong.toml")
        assert done.returncode == 2, done.stderr
        assert done.stdout == ""
        for path in ("hosts_per_leef", "host_rate", "mtu", "queue.limit", "workload.0.kind"):
            assert path in done.stderr, path
        assert "hosts_per_leaf" in done.stderr
        assert "stride" in done.stderr
    assert not Path("results").exists()
    problems = ew.check("wrong.toml")
    assert len(problems) >= 5
    with pytest.raises(ew.ScenarioError) as caught:
        ew.run("wrong.toml")
    assert caught.value.problems == problems


@pytest.mark.parametrize(
    "text", ["", "[", "\x00", "schema = 99\n", "name = 5\n", "[[fabric]]\n", "a" * 100_000]
)
def test_no_scenario_is_our_bug(text: str) -> None:
    Path("odd.toml").write_text(text)
    done = eastwest("run", "odd.toml")
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr


def test_a_damaged_trace_is_refused_or_skipped() -> None:
    good = "job{0}\t{0}\t1\t1000000\t1000000\t1000000\n"
    Path("t.tsv").write_text(good.format(0) + "job1\tsoon\t1\t1\t1\t1\n" + good.format(2))
    text = JOBS.replace('"fb-2009-first-50"', '"t.tsv"')
    Path("t.toml").write_text(text)
    done = eastwest("run", "t.toml")
    assert done.returncode == 2
    assert "t.tsv" in done.stderr
    assert "2" in done.stderr
    done = eastwest("run", "t.toml", "--on-bad-row", "skip", "--out", "r")
    assert done.returncode == 0, done.stderr
    assert ew.Result("r").jobs.height == 2
    assert any("1" in note for note in ew.Result("r").summary["notes"])


def test_ctrl_c_leaves_nothing() -> None:
    Path("long.toml").write_text(SMALL.replace('"300 KB"', '"3 GB"'))
    script = (
        "import eastwest as ew\n"
        "ew.run('long.toml', progress=lambda p: print(p['packet_hops'], flush=True))\n"
    )
    before = sorted(Path().iterdir())
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip().isdigit()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in err
    assert sorted(Path().iterdir()) == before


def test_an_error_in_the_progress_callback_is_the_callers() -> None:
    def failing(_: object) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        ew.run("small.toml", set={"workload.0.bytes": "1 GB"}, progress=failing)
    assert not Path("results").exists()


@pytest.mark.parametrize("name", shipped.names())
def test_shipped_scenarios_are_right(name: str) -> None:
    assert ew.check(name) == []


def test_the_report_of_a_real_run() -> None:
    eastwest("run", "jobs.toml", "--out", "a")
    eastwest("run", "small.toml", "--out", "b")
    for folders in (["a"], ["b"], ["a", "b"]):
        done = eastwest("report", *folders)
        assert done.returncode == 0, done.stderr
        page = Path(done.stdout.strip())
        assert page.stat().st_size < 1_000_000
        assert "<svg" in page.read_text()


def test_sleeping_links_are_logged_and_drawn() -> None:
    sets = (
        "fabric.energy.kind=standard",
        'measure.lpi=["leaf0"]',
        "fabric.switch_power.base_w=100",
    )
    made = eastwest("run", "small.toml", "--out", "r", *(f"--set={s}" for s in sets))
    assert made.returncode == 0, made.stderr
    result = ew.Result("r")
    naps = result.lpi.group_by("link").agg(
        asleep=(pl.col("wakes_s") - pl.col("asleep_s")).sum(),
        waking=(pl.col("awake_s") - pl.col("wakes_s")).sum(),
    )
    of_leaf = result.links.filter(pl.col("src") == "leaf0").join(naps, on="link")
    assert of_leaf.height == 6, "four hosts and two spines"
    for state in ("asleep", "waking"):
        assert of_leaf[state].to_list() == pytest.approx(of_leaf[f"{state}_s"].to_list())
    assert eastwest("timeline", "r").returncode == 0
    assert '"asleep"' in Path("r/timeline.json").read_text()
    done = eastwest("report", "r")
    assert done.returncode == 0, done.stderr
    assert "switches, without links" in Path(done.stdout.strip()).read_text()


def test_explore() -> None:
    shown = eastwest("topology", "show", "small.toml", "--json")
    assert shown.returncode == 0, shown.stderr
    assert isinstance(json.loads(shown.stdout), dict)
    listed = eastwest("topology", "list")
    for kind in ("leaf-spine", "star", "fat-tree", "graph"):
        assert kind in listed.stdout
    paths = {key["path"] for key in json.loads(eastwest("schema").stdout)["keys"]}
    assert "fabric.queue.limit" in paths
    version = json.loads(eastwest("version", "--json").stdout)
    assert version["version"] == ew.__version__


def test_bench_measures_what_run_computes() -> None:
    measured = bench.measure("small.toml", ["workload.0.bytes=100 KB"])
    same = ew.run("small.toml", set={"workload.0.bytes": "100 KB"})
    assert measured["digest"] == same.digest
    assert measured["packet_hops"] == same.summary["packet_hops"]
    assert measured["peak_rss_mb"] > 1
