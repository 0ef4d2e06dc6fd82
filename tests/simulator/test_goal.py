"""GOAL schedules: read as text and binary, written from programs, and equal when they run."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import eastwest as ew
import project_paths
from eastwest.account import Account
from eastwest.cli import app
from eastwest.errors import InputError
from eastwest.traces.made import Imported
from eastwest.traces.mpi import goal
from eastwest.traces.mpi.goal_write import export
from eastwest.traces.mpi.take import find, import_mpi
from project_paths import ROOT

CG = ROOT / "crates/workload/tests/data/npb-cg-ti/cg.S.4.ti.tar.gz"
#: A schedule, and the binary form that txt2bin of LogGOPSim (commit 76451de1) made from it.
TEXT = (project_paths.DATA / "mpi" / "made.goal").read_text()
BINARY = (project_paths.DATA / "mpi" / "made-goal.bin").read_bytes()
SCENARIO = """schema = 1
[fabric]
kind = "star"
hosts = 4
host_rate = "1 Gbit/s"
[[workload]]
kind = "mpi"
name = "app"
trace = "{trace}"
eager_limit = "1 KB"
send_overhead = "2 us"
receive_overhead = "3 us"
"""


def taken(folder: Path, text: str | bytes, lossy: bool = False) -> Imported:
    """Import a schedule from a new file to the folder ``out``, which is replaced."""
    file = folder / "schedule"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return import_mpi([file], folder / "out", force=True, lossy=lossy)


def lines(folder: Path, rank: int = 0) -> list[str]:
    return (folder / f"rank-{rank:05}.txt").read_text().splitlines()


def of_rank(*statements: str) -> str:
    """Return a schedule of two ranks; the second one has no operations."""
    return "\n".join(["num_ranks 2", "rank 0 {", *statements, "}", "rank 1 { }"])


def written(
    folder: Path, *ranks: Sequence[str], form: str = "goal", lossy: bool = False,
    collectives: Sequence[tuple[str, str]] = (),
) -> tuple[bytes, Account]:  # fmt: skip
    """Write the records of ranks, and export them; return the schedule and the account."""
    program = folder / "program"
    program.mkdir(exist_ok=True)
    for rank, records in enumerate(ranks):
        text = "".join(f"{rank} {record}\n" for record in records)
        (program / f"rank-{rank}.txt").write_text(text)
    made = export(program, folder / "made", form, collectives=collectives, lossy=lossy)
    return (folder / "made").read_bytes(), made.account


def test_text_and_binary_become_one_graph(tmp_path: Path) -> None:
    for form in (TEXT, BINARY):
        made = taken(tmp_path, form)
        assert made.source_format == "goal"
        assert lines(tmp_path / "out") == [
            "0 graph",
            "0 compute 100 on 2",
            "0 send 1 5 10 6 after 0",
            f"0 recv -1 -1 4 6 after {'~1 0' if form is TEXT else '0 ~1'}",
        ]
        assert lines(tmp_path / "out", 1)[2] == "1 send 0 0 4 6 after 0"
        assert made.about["records"] == 5
        assert made.about["noted"][0]["reason"] == "message of a processor other than 0"


def test_the_binary_form_is_that_of_txt2bin(tmp_path: Path) -> None:
    text = TEXT.replace("l3: recv 4b from -1 tag -1 cpu 1", "l3: recv 4b from -1 tag -1")
    taken(tmp_path, text)
    export(tmp_path / "out", tmp_path / "made", "goal-binary")
    processor = BINARY.index(bytes.fromhex("ffffffff0100")) + 4
    expected = BINARY[:processor] + b"\0" + BINARY[processor + 1 :]
    assert (tmp_path / "made").read_bytes() == expected


def test_labels_may_come_later_and_comments_anywhere(tmp_path: Path) -> None:
    text = (
        "/* by\n hand */ num_ranks 1 // one\nrank 0 {\n  b requires a // before both\n"
        "b: calc 2 /* two */\ncalc 7\na: calc 1\n}"
    )
    taken(tmp_path, text)
    assert lines(tmp_path / "out") == [
        "0 graph", "0 compute 1", "0 compute 2 after 0", "0 compute 7",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (of_rank("a: calc 1", "b: calc 1", "a requires b", "b irequires a"), "a requires b req"),
        (of_rank("a: calc 1", "a requires a"), "form a loop: a requires a"),
        (of_rank("a: calc 1", "a requires c"), ":4: rank 0 has no operation with the label c"),
        (of_rank("a: calc 1", "a: calc 2"), ":4: the label a is given twice"),
        (of_rank("send 1b to 2"), ":3: a message with rank 2; allowed: 0 to 1"),
        (of_rank("send 1b to -1"), "a message with rank 4294967295"),
        (of_rank("send 1b to 1 tag -1"), "a message with tag 4294967295"),
        (of_rank("send 1b from 1"), "expected send BYTESb to RANK"),
        (of_rank("send 2000000000000000b to 1"), "allowed: 0 to 1,000,000,000,000,000"),
        (of_rank("calc 2000000000000000"), "computing of 2,000,000,000,000,000 ns"),
        (of_rank("calc 1 cpu 256"), "the processor is 256; allowed: 0 to 255"),
        (of_rank("send 1b to 1 nic 1"), "found 'nic 1'; with --lossy: its interface"),
        (of_rank("calc one"), ":3: found 'calc one', expected an operation (calc NS"),
        ("num_ranks 2\nrank 0 {\ncalc 1", "ends within the block of rank 0: it is truncated"),
        ("num_ranks 2\nrank 0 { }", "has no block of rank 1"),
        ("num_ranks 2\nrank 0 { }\nrank 0 { }", "rank 0 is given twice"),
        ("num_ranks 1\nrank 0 {\nrank 0 {\n} }", "a block begins within the block of rank 0"),
        ("num_ranks 1 }", "found } outside of a block"),
        ("num_ranks 70000", "has 70000 ranks"),
        ("num_ranks 1 /*", "ends within a comment"),
    ],
)
def test_wrong_schedules_are_refused_with_the_place(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        taken(tmp_path, text)
    assert said in str(error.value)


def test_interfaces_are_left_out_only_if_wanted(tmp_path: Path) -> None:
    text = "num_ranks 2\nrank 0 {\nsend 1b to 1 nic 1\n}\nrank 1 {\nrecv 1b from 0\n}"
    made = taken(tmp_path, text, lossy=True)
    assert made.about["changed"][0]["count"] == 1


def test_a_long_chain_in_the_wrong_order_is_sorted(tmp_path: Path) -> None:
    count = 20_000
    text = [f"l{n}: calc 1\nl{n} requires l{n - 1}" for n in range(count, 0, -1)]
    taken(tmp_path, of_rank(*text, "l0: calc 9"))
    found = lines(tmp_path / "out")
    assert found[1:3] == ["0 compute 9", "0 compute 1 after 0"]
    assert found[-1] == f"0 compute 1 after {count - 1}"


def test_many_blocks_on_a_line(tmp_path: Path) -> None:
    count = 3000
    taken(tmp_path, f"num_ranks {count} " + "".join(f"rank {n}{{}}" for n in range(count)))
    assert lines(tmp_path / "out", count - 1) == [f"{count - 1} graph"]


def test_cut_binary_schedules_are_refused(tmp_path: Path) -> None:
    for length in range(14, len(BINARY), 7):
        with pytest.raises(InputError, match=r"truncated|damaged"):
            taken(tmp_path, BINARY[:length])
    with pytest.raises(InputError, match="bytes after those of rank 1"):
        taken(tmp_path, BINARY + b"\0")


def test_binary_schedules_that_a_run_has_changed_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--save-mem"):
        taken(tmp_path, struct.pack("<Q", 2342) + BINARY[8:])
    at = BINARY.index(struct.pack("<IBI", 1, goal.SEND, 1))
    with pytest.raises(InputError, match="dependencies of operation 1 contradict"):
        taken(tmp_path, BINARY[:at] + b"\0" + BINARY[at + 1 :])


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_damaged_schedules_are_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(data.draw(st.sampled_from([TEXT.encode(), BINARY])))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    try:
        import_mpi(
            [_kept(tmp_path / "x", bytes(content))], tmp_path / "out", source_format="goal",
            force=True,
        )  # fmt: skip
    except InputError as error:
        assert "\x1b" not in str(error)


def _kept(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_waits_become_dependencies(tmp_path: Path) -> None:
    schedule, _ = written(
        tmp_path,
        ["irecv 1 7 3500 0", "compute 50", "isend 1 7 20 6", "isend 1 8 30 6", "wait 1 0 7",
         "compute 60", "waitall", "finalize"],
        ["send 0 7 3500 0", "recv 0 7 20 6", "recv 0 8 30 6"],
    )  # fmt: skip
    assert schedule.decode().split("}")[0].splitlines() == [
        "num_ranks 2",
        "rank 0 {",
        "l0: recv 28000b from 1 tag 7",
        "l1: calc 50",
        "l1 irequires l0",
        "l2: send 20b to 1 tag 7",
        "l2 requires l1",
        "l3: send 30b to 1 tag 8",
        "l3 irequires l2",
        "l4: calc 60",
        "l4 irequires l3",
        "l4 requires l0",
    ]


def test_receives_without_a_size_have_that_of_the_largest_message(tmp_path: Path) -> None:
    sends = ["send 1 7 20 6", "send 1 7 30 6"]
    schedule, account = written(tmp_path, sends, ["recv 0 7", "recv -1 7"])
    assert b"l0: recv 30b from 0 tag 7" in schedule
    assert b"l1: recv 0b from -1 tag 7" in schedule
    assert list(account.noted) == ["receive whose size is not known"]


def test_collectives_have_the_messages_of_their_algorithm(tmp_path: Path) -> None:
    calls = [["bcast 8 0 6", "compute 10"]] * 3
    schedule, _ = written(tmp_path, *calls)
    assert schedule.count(b": send 8b to") == schedule.count(b": recv 8b from 0") == 2
    chain, _ = written(tmp_path, *calls, collectives=[("bcast", "chain")])
    assert b": recv 8b from 1 tag" in chain
    with pytest.raises(InputError, match="bcast=fast: must be one of binomial, scatter-ring"):
        written(tmp_path, *calls, collectives=[("bcast", "fast")])


def test_groups_have_tags_of_their_own(tmp_path: Path) -> None:
    group = "group 1 0 1"
    sent, _ = written(
        tmp_path, [group, "send 1 7 1 6 in 1", "barrier in 1"], [group, "recv 0 7 1 6 in 1",
        "barrier in 1"], ["compute 1"],
    )  # fmt: skip
    assert sent.count(b"tag 1073741824") == 2
    assert sent.count(b"tag 21474836") == 4
    assert sent.decode().endswith("rank 2 {\nl0: calc 1\n}\n")


def test_waitall_in_a_graph_becomes_an_operation_that_joins(tmp_path: Path) -> None:
    graph = [
        "graph", "compute 1", "compute 2 after 0 on 1", "compute 3 on 2", "comm_size after ~1",
        "waitall", "compute 4 after 0", "recv 1 7 1 6", "send 1 7 1 6 after 5 ~6",
    ]  # fmt: skip
    schedule, _ = written(tmp_path, graph, ["send 0 7 1 6", "recv 0 7 1 6"])
    assert schedule.decode().split("}")[0].splitlines()[2:] == [
        "l0: calc 1",
        "l1: calc 2 cpu 1",
        "l1 requires l0",
        "l2: calc 3 cpu 2",
        "l3: calc 0",
        "l3 requires l1",
        "l3 requires l2",
        "l4: calc 4",
        "l4 requires l3",
        "l5: recv 1b from 1 tag 7",
        "l5 requires l3",
        "l6: send 1b to 1 tag 7",
        "l6 requires l4",
        "l6 irequires l5",
    ]


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ("test 1 0 7", "test, whose outcome depends on the times"),
        ("graph\n0 compute 1 priority 2", "node with a priority"),
        ("graph\n0 compute 1 after 1/0", "waits for a node of another rank"),
        ("graph\n0 isend 1 7 1 6 on 1", "occupies a stream until its end"),
        ("irecv -1 7\n0 wait 1 0 7", "names the rank or tag of a receive from any rank"),
        ("graph\n0 compute 1 on 256", "is on stream 256; GOAL has processors 0 to 255"),
        ("recv -1 -1\n0 barrier", "receives any tag, but the program has groups, collective"),
        ("compute 1e20", "computes 1e.20 ns"),
    ],
)
def test_what_goal_cannot_express_is_refused(record: str, said: str, tmp_path: Path) -> None:
    other = ["barrier"] if "barrier" in record else ["compute 1"]
    other = ["recv 0 7 1 6"] if "isend" in record else other
    with pytest.raises(InputError, match=said):
        written(tmp_path, [record], other)


def test_what_goal_cannot_express_is_left_out_if_wanted(tmp_path: Path) -> None:
    schedule, account = written(tmp_path, ["graph", "compute 1 priority 2"], [], lossy=True)
    assert b"l0: calc 1\n" in schedule
    assert list(account.changed) == ["node with a priority"]


def test_a_schedule_runs_as_its_program(tmp_path: Path) -> None:
    """Sequences, their schedule in both forms, and the schedule of that schedule run alike."""
    import_mpi([CG], tmp_path / "cg")
    for form in ("goal", "goal-binary"):
        export(tmp_path / "cg", tmp_path / "cg.goal", form)
        import_mpi([tmp_path / "cg.goal"], tmp_path / form)
    export(tmp_path / "goal", tmp_path / "again.goal")
    import_mpi([tmp_path / "again.goal"], tmp_path / "again")
    assert lines(tmp_path / "again", 3) == lines(tmp_path / "goal", 3)
    plain = SCENARIO.replace("2 us", "0 us").replace("3 us", "0 us")
    assert _time(tmp_path, plain, "cg") == _time(tmp_path, plain, "goal")
    assert _time(tmp_path, SCENARIO, "goal") == _time(tmp_path, SCENARIO, "goal-binary")
    assert _time(tmp_path, SCENARIO, "goal") > _time(tmp_path, plain, "goal")


def _time(folder: Path, scenario: str, trace: str) -> float:
    (folder / "s.toml").write_text(scenario.format(trace=trace))
    run = ew.run(folder / "s.toml", out=folder / "result", force=True)
    return float(run.summary["mpi"]["runtime_s"])


def test_the_commands_import_and_export_schedules(tmp_path: Path) -> None:
    file = _kept(tmp_path / "x.goal", TEXT.encode())
    assert find([file]) == "goal"
    runner, out = CliRunner(), str(tmp_path / "program")
    made = runner.invoke(app, ["trace", "import", str(file), "-o", out])
    assert made.exit_code == 0, made.output
    command = ["trace", "export", out, "-o", str(tmp_path / "y.goal")]
    made = runner.invoke(app, command)
    assert made.exit_code == 0, made.output
    assert "operations" in made.output
    assert runner.invoke(app, command).exit_code == 2
    wrong = runner.invoke(app, [*command, "--force", "--to", "gaol"])
    assert "must be one of goal, goal-binary" in wrong.output
    wrong = runner.invoke(app, [*command, "--force", "--collective", "bcast"])
    assert "must be CALL=ALGORITHM" in wrong.output
