"""Comparison of Eastwest with other programs: fake programs stand for both."""

from __future__ import annotations

import json
import shlex
import sys
import time
from pathlib import Path

import pytest

from command_line import invoke
from eastwest import bench, peers, shipped
from eastwest.bench import BenchError
from eastwest.peers import Peer
from fake_core import FakeCore

#: Python code that uses about 0.15 s of user time.
BUSY = "import os\nwhile os.times().user < 0.15: sum(range(50_000))\n"
SUMMARY = {"packet_hops": 3000, "cpu_s": 0.1}


def program(name: str, code: str) -> str:
    """Write a Python program into this folder and return its command line."""
    path = Path(f"{name}.py").absolute()
    path.write_text(code)
    return shlex.join([sys.executable, "-S", "-E", str(path)])


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def peer(code: str, name: str = "other") -> Peer:
    return Peer.read(f"{name}={program(name, code)}")


@pytest.fixture
def eastwest(fake: FakeCore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the runs of Eastwest by a program that prints a summary and notes its turn."""
    Path("s1.toml").write_text("")
    monkeypatch.setattr(shipped, "SCENARIOS", Path.cwd())
    turn = "open('turns', 'a').write('E')\n"
    own = shlex.split(program("eastwest_run", f"{BUSY}{turn}print({json.dumps(SUMMARY)!r})"))
    monkeypatch.setattr(bench, "command", lambda *_: own)


@pytest.mark.usefixtures("eastwest")
def test_programs_take_turns_and_each_ratio_is_of_neighbours() -> None:
    def told(name: str) -> Peer:
        return peer(f"{BUSY}open('turns', 'a').write({name!r})\nprint('hops=1500')", name)

    one, two = peers.compare("S1", [], [told("a"), told("b")], rounds=2)
    assert Path("turns").read_text() == "EaEbEaEb"
    assert (one.scenario, one.peer.name, two.peer.name) == ("s1", "a", "b")
    ours, theirs = one.pairs[0]
    assert (ours.packet_hops, ours.simulating_s, theirs.packet_hops) == (3000, 0.1, 1500)
    assert ours.user_s >= 0.1
    assert theirs.user_s >= 0.1
    expected = (3000 / ours.user_s) / (1500 / theirs.user_s)
    assert expected in one.ratios(whole=True).values()
    assert not one.is_assumed
    assert not one.separates


@pytest.mark.usefixtures("eastwest")
def test_the_texts_of_the_existing_programs_are_read() -> None:
    ns3 = peer(
        f"{BUSY}print('ns3 setup_user=9 run_user=0.100 hops=0 drops=1')\n"
        "print('hops_per_run_user=77')\nprint('flows=8/8 last=0.9')",
        "ns-3",
    )
    counting = peer(f"{BUSY}print('hops=6000')", "n")
    counting = Peer("ns-3", counting.command)
    (found,) = peers.compare("S1", [], [ns3], counting=[counting], rounds=1)
    assert found.separates
    assert not found.is_assumed
    assert found.rates(1, whole=False) == [60_000.0]
    assert found.rates(0, whole=False) == [30_000.0]
    assert found.ratios(whole=False) == {"min": 0.5, "median": 0.5, "max": 0.5}


def test_user_time_before_the_end_of_set_up_does_not_count() -> None:
    waits = "import time\nprint('setup done', flush=True)\ntime.sleep(0.5)\n"
    code = f"{BUSY}{waits}{BUSY.replace('0.15', '0.45')}print('hops=1')"
    run = peers.run_peer(peer(code, "ns-2"), 300)
    assert run.simulating_s is not None
    assert 0.1 < run.simulating_s < run.user_s - 0.05


@pytest.mark.usefixtures("eastwest")
def test_packet_hops_that_are_not_printed_are_assumed_and_the_words_tell() -> None:
    (found,) = peers.compare("S1", [], [peer(f"{BUSY}print('done')")], rounds=1)
    assert found.is_assumed
    assert found.hops(found.pairs[0][1]) == 3000
    said = " ".join(peers.sentences(found))
    assert "other prints no hops=N: it is assumed to have the packet-hops of Eastwest" in said
    assert "only whole processes are compared" in said


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (f"{BUSY}", "other printed nothing"),
        (f"{BUSY}print('flows=7/8')", "other left flows unfinished: 7 of 8"),
        (f"{BUSY}print('run_user=5')", "simulating part took 5 s of"),
        (f"{BUSY}print('run_user=0.000001')", "must take at least 0.05 s"),
        ("import sys; sys.exit('no \\x1b such file')", "exit code 1\nno \N{REPLACEMENT CHARACTER}"),
        ("print('hops=5')", "a comparison needs a load"),
        ("import os; os.abort()", "failed with exit code -6"),
    ],
)
def test_a_run_that_proves_nothing_is_refused(code: str, message: str) -> None:
    with pytest.raises(BenchError) as caught:
        peers.run_peer(peer(code), 60)
    assert message in str(caught.value)
    assert caught.value.code == 2


def test_a_program_that_does_not_exist_is_told() -> None:
    with pytest.raises(BenchError, match=r"'\./missing' cannot be started: No such file"):
        peers.run_peer(Peer("x", ("./missing",)), 60)
    with pytest.raises(BenchError, match="cannot be started"):
        peers.run_peer(Peer("x", ("a\0b",)), 60)


def test_a_program_that_does_not_end_is_stopped_with_its_children() -> None:
    child = "import subprocess, sys, time\n"
    child += "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
    child += "open('pid', 'w').write(str(p.pid))\ntime.sleep(600)"
    with pytest.raises(BenchError, match="was stopped: it took more than"):
        peers.run_peer(peer(child), 3)
    pid = int(Path("pid").read_text())
    for _ in range(200):
        state = Path(f"/proc/{pid}/stat")
        if not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            break
        time.sleep(0.05)
    else:
        pytest.fail("the child of the program still runs")


def test_a_program_that_leaves_a_process_behind_does_not_delay_the_result() -> None:
    code = f"{BUSY}import subprocess, sys\n"
    code += "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
    run = peers.run_peer(peer(code + "print('hops=4', flush=True)"), 300)
    assert run.packet_hops == 4


def test_only_the_end_of_long_output_is_held() -> None:
    code = f"{BUSY}import sys\nfor _ in range(3000): sys.stdout.write('hops=1 ' * 1000)\n"
    done = peers.measured("other", peer(f"{code}print('\\nhops=12')").command, 60)
    assert len(done.output) == 1 << 20
    assert done.output.endswith("hops=12\n")


@pytest.mark.parametrize("text", ["", "name", "=x", "name=", "a='", " =x"])
def test_a_peer_needs_a_name_and_a_program(text: str) -> None:
    with pytest.raises(BenchError, match="--against"):
        Peer.read(text)
    assert Peer.read("a=b 'c d'").command == ("b", "c d")


@pytest.mark.usefixtures("eastwest")
def test_names_must_differ_and_counting_runs_must_count() -> None:
    same = [Peer("a", ("x",)), Peer("a", ("y",))]
    with pytest.raises(BenchError, match="the name 'a' is used twice"):
        peers.compare("S1", [], same)
    with pytest.raises(BenchError, match="the name 'Eastwest' is used twice"):
        peers.compare("S1", [], [Peer("Eastwest", ("x",))])
    with pytest.raises(BenchError, match="--counting: 'b' is not one of a"):
        peers.compare("S1", [], same[:1], counting=[Peer("b", ("x",))])
    with pytest.raises(BenchError, match="--counting: 'b' is not compared: add --against"):
        peers.compare("S1", [], [], counting=[Peer("b", ("x",))])
    with pytest.raises(BenchError, match="prints no hops=N"):
        peers.compare("S1", [], same[:1], counting=[peer(f"{BUSY}print(1)", "a")])
    with pytest.raises(BenchError, match="no scenario 'S99'"):
        peers.compare("S99", [], same[:1])


@pytest.mark.usefixtures("eastwest")
def test_the_command_prints_ratios_and_what_limits_them() -> None:
    other = f"other={program('other', f'{BUSY}print(1)')}"
    code, out, err = invoke("bench", "S1", "--against", other, "--rounds", "1")
    assert code == 0, err
    assert "times as fast" in out
    assert "prints no hops=N" in " ".join(out.split())
    assert "other processes used" in out.lower()
    assert "round 1 of 1: Eastwest" in err
    assert all(len(line) <= 80 for line in out.splitlines())


@pytest.mark.usefixtures("eastwest")
def test_the_record_has_all_runs_and_ratios() -> None:
    other = f"other={program('other', f'{BUSY}print(1)')}"
    code, out, _ = invoke("bench", "S1", "--against", other, "--rounds", "2", "--json")
    assert code == 0
    record = json.loads(out)
    (ratio,) = record["ratios"]
    assert ratio["against"] == "other"
    assert ratio["packet_hops_assumed"] is True
    assert ratio["hops_per_cpu_s_of"] == "whole process"
    assert [run["simulator"] for run in record["runs"]] == ["Eastwest"] * 2 + ["other"] * 2
    assert {run["packet_hops"] for run in record["runs"]} == {3000}
    cores = [run["others_cores"] for run in record["runs"]]
    assert record["quiet"] is all(one is not None and one <= 0.2 for one in cores)


@pytest.mark.usefixtures("eastwest")
def test_wrong_options_are_refused() -> None:
    code, _, err = invoke("bench", "S1", "S2", "--against", "a=b")
    assert (code, "one scenario on one thread" in err) == (2, True)
    code, _, err = invoke("bench", "S1", "--against", "missing=./missing_program")
    assert (code, "cannot be started" in err) == (2, True)
    code, _, err = invoke("bench", "S1", "--against", "a")
    assert (code, "--against 'a': write NAME=PROGRAM" in err) == (2, True)
    code, _, err = invoke("bench", "S1", "--counting", "a")
    assert (code, "--counting 'a': write NAME=PROGRAM" in err) == (2, True)
