"""``hadoop_real.py --data``: small folders of measured runs, and their predictions."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import eastwest as ew
import hadoop_real
import hadoop_real_measures as measures
import hadoop_real_runs as folders
from eastwest.calibrate import read

pytestmark = pytest.mark.slow

#: Content of a run's settings.txt: 100 Mbit/s, deep buffers, Reno.
SETTINGS = (
    "RATE=100 SWBUF=1000000 HOSTBUF=2000000 BURST=6000 CC=reno SLOWSTART=1.0 REDS=4 "
    "IN=/bench/gen512 NW=4 RACKS=1 TRUNK=0 EXTRA="
)
HISTORY = hadoop_real.PAPER / "data" / "r100-deep-1.jhist.gz"
Made = Callable[..., Path]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Makes a run folder with a real history and hand-made counters and ports."""

    def make(name: str = "r100-deep-1", settings: str = SETTINGS) -> Path:
        folder = tmp_path / "data" / name
        folder.mkdir(parents=True)
        (folder / "settings.txt").write_text(settings + "\n", "utf-8")
        shutil.copy(HISTORY, folder / "job_1.jhist.gz")
        shutil.copy(hadoop_real.CONFIGURATION, folder / "job_1_conf.xml.gz")
        head = "# node swport_qdisc_drops RetransSegs Timeouts\n"
        before = "".join(f"{node} 5 7 1\n" for node in ("m", "w1", "w2", "w3", "w4"))
        after = "m 705 8 1\nw1 105 507 2\nw2 205 607 1\nw3 5 7 1\nw4 5 7 1\n"
        (folder / "counters.before").write_text(head + before, "utf-8")
        (folder / "counters.after").write_text(head + after, "utf-8")
        _ports(folder, first_s=23.0, seconds=10.0)
        return folder

    return make


def _ports(folder: Path, first_s: float, seconds: float) -> None:
    """Write samples of ports on which 100 MB pass in this time; w4's begins and ends 1 s later."""
    submitted_ms = round(read(HISTORY).submitted_at_s * 1000)
    lines = ["epoch_ms,cpu_busy_jiffies,cpu_idle_jiffies," + ",".join(
        f"p-{node}_from,p-{node}_to" for node in ("m", "w1", "w2", "w3", "w4")
    )]  # fmt: skip
    for number in range(200):
        at_s = number / 4
        cells = [str(submitted_ms + number * 250), str(number * 50), str(number)]
        for node in ("m", "w1", "w2", "w3", "w4"):
            late = 1.0 if node == "w4" else 0.0
            share = min(max((at_s - first_s - late) / seconds, 0.0), 1.0)
            cells += ["0", str(round(1e8 * share))]
        lines.append(",".join(cells))
    (folder / "ports.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))


def _with(settings: str, **changed: str) -> str:
    words = settings.split()
    for name, value in changed.items():
        words = [f"{name}={value}" if w.startswith(f"{name}=") else w for w in words]
    return " ".join(words)


def test_a_folder_of_a_run_is_read(made: Made) -> None:
    folder = made()
    (run,) = folders.load(folder.parent)
    assert folders.load(folder) == [run], "a single run's folder is one too"
    assert (run.setting, run.rate_mbit, run.maps, run.reduces) == ("r100-deep", 100, 8, 4)
    assert run.workers == ("w1", "w2", "w3", "w4")
    assert run.racks == (run.workers,)
    assert (run.cores, run.all_local, run.remarks) == (2, True, [])
    assert run.shuffle_bytes == 558_345_408
    found = run.measured
    assert found.job_s == pytest.approx(38.681)
    # Of 1101 retransmissions, 700 were of packets that the port towards the master had dropped.
    assert (found.retransmits, found.drops, found.timeouts) == (401, 300, 1)
    assert found.wire_s == pytest.approx(11, abs=0.5)
    assert found.last_map_to_reduce_s == pytest.approx(21.153 - 18.243)
    assert found.last_map_to_byte_s == pytest.approx(23.25 - 18.243, abs=0.3)
    assert found.shuffle_to_end_s == pytest.approx(38.681 - 34.445)


def test_wire_time_is_from_the_earliest_port_to_the_latest() -> None:
    early = [(t / 4, 100.0 * min(max(t - 40, 0), 40)) for t in range(200)]
    late = [(t / 4, 100.0 * min(max(t - 44, 0), 40)) for t in range(200)]
    found = measures.wire({"a": early, "b": late, "idle": [(0.0, 0.0), (49.0, 0.0)]}, 5, 40)
    assert found is not None
    assert (found.begin_s, found.end_s) == (10.25, 21.0)
    assert measures.wire({"a": early}, 30, 40) is None


def test_simulated_and_measured_observations_make_one_kind_of_outcome(made: Made) -> None:
    (run,) = folders.load(made())
    found, notes = hadoop_real.simulate(hadoop_real.data_case(run), None, seed=1)
    names = {name for name, v in vars(run.measured).items() if v is not None}
    assert names == {name for name, v in vars(found).items() if v is not None}
    assert not any("is ignored" in note for note in notes)
    assert found.job_s == pytest.approx(run.measured.job_s, rel=0.15)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("RATE=50 SPEED=9", "unknown key SPEED; known are RATE, SWBUF, HOSTBUF, "),
        ("RATE=fast", "RATE=fast: rate of every port each way, Mbit/s; 0: not shaped; must be a "),
        ("CC=vegas", "must be one of reno, cubic, bbr, dctcp"),
        ("RACKS=3", "must be one of 1, 2"),
        ("RATE=1 RATE=2", "RATE is given twice, as 1 and as 2"),
        ("RATE", "'RATE' is no KEY=VALUE"),
        ("RACKMAP=w1,w2", "must be the workers of two racks, such as w1,w2/w3,w4"),
    ],
)
def test_unknown_settings_are_refused(text: str, said: str) -> None:
    with pytest.raises(folders.RunError) as caught:
        folders.parse_settings(text, "settings.txt")
    assert str(caught.value).startswith("settings.txt: ")
    assert said in str(caught.value)


def test_extra_is_the_rest_of_the_line() -> None:
    keys = folders.parse_settings("CC=cubic EXTRA=-Da.b=1 -D c.d='x y'", "s")
    assert keys == {"CC": "cubic", "EXTRA": "-Da.b=1 -D c.d='x y'"}
    assert folders.extra_properties(keys["EXTRA"], "s") == {"a.b": "1", "c.d": "x y"}
    with pytest.raises(folders.RunError, match="'-Xmx9g' is no property; allowed is -Dname=value"):
        folders.extra_properties("-Xmx9g", "s")


def test_what_is_missing_is_said_and_the_rest_compared(made: Made) -> None:
    folder = made()
    for name in ("counters.before", "ports.csv.gz"):
        (folder / name).unlink()
    (run,) = folders.load(folder)
    assert [remark.partition(":")[0] for remark in run.remarks] == [
        "no ports.csv.gz",
        "no counters.before",
    ]
    found = run.measured
    assert (found.wire_s, found.retransmits, found.drops, found.timeouts) == (None,) * 4
    assert found.shuffle_s is not None
    outcomes = [run.measured]
    c = hadoop_real.Comparison("a", True, found, measures.mean(outcomes), outcomes, outcomes)
    assert list(hadoop_real.verdicts([c])) == ["job time, mean absolute error"]
    assert "| – | – | – |" in hadoop_real.show([c])
    assert "retransmissions" not in hadoop_real.show_all([c])


def test_a_missing_configuration_is_that_of_the_same_job(made: Made) -> None:
    small = "-Dmapreduce.reduce.memory.mb=1024"
    other = made("a-1", SETTINGS + small)
    text = gzip.decompress((other / "job_1_conf.xml.gz").read_bytes()).decode()
    name = "<name>mapreduce.reduce.memory.mb</name><value>"
    assert name + "2048" in text
    text = text.replace(name + "2048", name + "1024")
    (other / "job_1_conf.xml.gz").write_bytes(gzip.compress(text.encode()))
    made("b-1")
    lacks = made("b-2")
    (lacks / "job_1_conf.xml.gz").unlink()
    runs = folders.load(lacks.parent)
    memory = [run.properties["mapreduce.reduce.memory.mb"] for run in runs]
    assert memory == ["1024", "2048", "2048"]
    assert "job_1_conf.xml.gz of b-1 stands in" in runs[2].remarks[0]
    with pytest.raises(folders.RunError, match="has no configuration"):
        folders.load(lacks)
    # The configuration is the paper's, so the job's settings in settings.txt are used.
    said = SETTINGS.replace("REDS=4", "REDS=6") + f"{small} -D{folders.OUTPUT_REPLICATION}=2"
    (lacks / "settings.txt").write_text(said, "utf-8")
    (run,) = folders.load(lacks, stand_in=hadoop_real.CONFIGURATION)
    assert run.properties["mapreduce.reduce.memory.mb"] == "1024"
    assert (run.reduces, run.properties[folders.REPLICATION]) == (6, "2")


def test_settings_that_contradict_the_configuration_are_refused(made: Made) -> None:
    folder = made(settings=_with(SETTINGS, REDS="8"))
    with pytest.raises(
        folders.RunError, match=r"mapreduce\.job\.reduces is 8 there and 4 in job_1"
    ):
        folders.load(folder)
    (run,) = folders.load(folder, {"REDS": "2"})
    assert run.reduces == 2
    (folder / "settings.txt").unlink()
    with pytest.raises(folders.RunError, match=r"lacks RATE .*--set KEY=VALUE can set"):
        folders.load(folder)
    (run,) = folders.load(folder, {"RATE": "20", "SWBUF": "30000", "CC": "bbr"})
    assert (run.reduces, run.keys["HOSTBUF"], run.keys["CC"]) == (4, "2000000", "bbr")


def test_two_racks_are_a_dumbbell(made: Made) -> None:
    folder = made(settings=_with(SETTINGS, RACKS="2"))
    with pytest.raises(folders.RunError, match="RACKS=2 with TRUNK=0"):
        folders.load(folder)
    (run,) = folders.load(folder, {"TRUNK": "60"})
    assert run.racks == (("w1", "w2"), ("w3", "w4"))
    assert "w1,w2/w3,w4 is assumed" in run.remarks[0]
    (run,) = folders.load(folder, {"TRUNK": "60", "RACKMAP": "w1/w2,w3,w4"})
    case = hadoop_real.data_case(run)
    assert (
        'kind = "dumbbell"\nhosts_left = 2\nhosts_right = 3\nuplink_rate = "60 Mbit/s"' in case.text
    )
    narrow, _ = hadoop_real.simulate(case, None, seed=1)
    assert narrow.trunk_drops is not None
    assert narrow.trunk_drops > 0
    # Three quarters of the shuffle of the three other workers pass a trunk of 60 Mbit/s.
    assert (narrow.wire_s or 0) > 11
    with pytest.raises(folders.RunError, match="must name each worker once; not so w3, w4"):
        folders.load(folder, {"TRUNK": "60", "RACKMAP": "w1/w2"})


def test_racks_are_those_of_the_history(made: Made) -> None:
    folder = made(settings=_with(SETTINGS, RACKS="2", TRUNK="60"))
    lines = gzip.decompress(HISTORY.read_bytes()).decode().splitlines()
    for number, line in enumerate(lines):
        for worker, rack in (("w1", "b"), ("w2", "a"), ("w3", "b"), ("w4", "a")):
            if f'"hostname":"{worker}"' in line:
                lines[number] = line.replace("/default-rack", f"/rack-{rack}")
    (folder / "job_1.jhist.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    (run,) = folders.load(folder)
    assert run.racks == (("w2", "w4"), ("w1", "w3"))
    assert run.remarks == []


@pytest.mark.parametrize(("memory", "most"), [(1024, 2), (2048, 1)])
def test_memory_of_reduces_says_how_many_a_node_runs(
    made: Made, tmp_path: Path, memory: int, most: int
) -> None:
    extra = f"-Dmapreduce.reduce.memory.mb={memory}"
    (run,) = folders.load(made(), {"REDS": "8", "EXTRA": extra})
    case = hadoop_real.data_case(run)
    scenario = hadoop_real.written(case, None, tmp_path)
    result = ew.run(scenario, set=case.settings, seed=1, out=tmp_path / "result")
    reduces = [row for row in result.tasks.to_dicts() if row["kind"] == "reduce"]
    assert len(reduces) == 8
    at_once = max(
        sum(
            other["host"] == row["host"]
            and other["assigned_s"] <= row["assigned_s"] < other["finished_s"]
            for other in reduces
        )
        for row in reduces
    )
    assert at_once == most


def test_properties_that_are_not_known_are_left_out_and_said(made: Made) -> None:
    (run,) = folders.load(made(), {"EXTRA": "-Dmapreduce.reduce.shuffle.paralelcopies=9"})
    case = hadoop_real.data_case(run)
    left_out = "mapreduce.reduce.shuffle.paralelcopies=9 is not known to the simulator and left out"
    assert case.remarks == [left_out]


def test_predictions_of_a_folder_are_written_where_it_was_said(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = made().parent
    made("r0-1", _with(SETTINGS, RATE="0"))
    results = hadoop_real.PAPER / "results"
    before = {path: path.read_bytes() for path in results.iterdir()}
    out = tmp_path / "out"
    arguments = ["--data", str(data), "--seeds", "1", "--out", str(out), "--calibrate", "r0"]
    assert hadoop_real.main(arguments) == 0
    said = capsys.readouterr().out
    assert "r0-1: RATE=0, nothing was shaped" in said
    assert "calibrated on r0-1" in said
    assert "| time on the wire, s | 10." in said
    kept = {path.name for path in out.iterdir()}
    assert {"machine.toml", "predictions.csv", "predictions.json", "predictions.svg"} <= kept
    assert before == {path: path.read_bytes() for path in results.iterdir()}
    assert hadoop_real.main(["--data", str(data), "--out", str(results / "x")]) == 2
    assert "nothing under" in capsys.readouterr().err
    assert hadoop_real.main(["--data", str(data), "--calibrate", "r7"]) == 2
    assert "--calibrate r7: there is no such run or setting; there are r0-1, r100-deep-1" in (
        capsys.readouterr().err
    )


def test_runs_of_one_setting_must_be_alike(made: Made) -> None:
    made("a-1")
    data = made("a-2", _with(SETTINGS, SWBUF="30000")).parent
    with pytest.raises(hadoop_real.InputError, match="one setting by their names, but SWBUF is"):
        hadoop_real.compare_data(folders.load(data), None, 1, ())


def test_without_runs_to_calibrate_on_the_paper_s_machine_is_said(made: Made) -> None:
    runs = folders.load(made())
    profile, said = hadoop_real.data_machine(hadoop_real.chosen(runs, None))
    assert profile == (hadoop_real.PAPER / "results" / "machine.toml").read_text("utf-8")
    assert "papers/hadoop_real/results/machine.toml" in said
