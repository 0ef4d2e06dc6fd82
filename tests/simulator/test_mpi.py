"""MPI programs: traces of every format become rank files; replays give timelines and Paraver."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import eastwest as ew
import project_paths
from eastwest.cli import app
from eastwest.errors import InputError
from eastwest.results import Result
from eastwest.timeline import trace
from eastwest.traces.mpi import otf2
from eastwest.traces.mpi.ranks import RankFiles
from eastwest.traces.mpi.take import import_mpi
from eastwest.units import span
from eastwest.views import summary
from project_paths import ROOT
from trace_events import check

DATA = project_paths.DATA / "mpi"
CG = ROOT / "crates/workload/tests/data/npb-cg-ti"
STAR = """schema = 1
[fabric]
kind = "star"
hosts = 8
host_rate = "1 Gbit/s"
host_delay = "5 us"
[[workload]]
kind = "{kind}"
name = "app"
{more}
"""


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Return a replay of four ranks of CG, from a trace of the benchmark, two ranks per host."""
    folder = tmp_path_factory.mktemp("cg")
    import_mpi([CG / "cg.S.4.ti.tar.gz"], folder / "cg")
    more = 'trace = "cg"\nranks_per_host = 2\n[measure]\nsample_interval = "1 ms"'
    (folder / "cg.toml").write_text(STAR.format(kind="mpi", more=more))
    return ew.run(folder / "cg.toml", out=folder / "result")


def test_messages_and_bytes_are_those_of_the_matrix(replayed: Result) -> None:
    matrix = pl.read_csv(CG / "cg.S.4.matrix.csv").sort("src", "dst")
    messages = replayed.table("mpi_messages").filter(pl.col("call") == "send")
    sums = messages.group_by("from", "to").agg(pl.len(), pl.col("bytes").sum()).sort("from", "to")
    assert sums.rows() == matrix.rows()
    about = replayed.summary["mpi"]
    assert about["messages"]["count"] == replayed.table("mpi_messages").height
    assert about["ranks"] == 4
    assert about["rows_left_out"] == 0
    assert replayed.table("mpi_ranks")["host"].sort().to_list() == [0, 0, 1, 1]


def test_the_summary_in_a_terminal_has_the_runtime_of_the_program(replayed: Result) -> None:
    runtime_s = replayed.summary["mpi"]["runtime_s"]
    assert dict(summary.rows(replayed))["app"] == f"runtime {span(runtime_s)} of 4 ranks"
    shown = replayed._repr_html_()
    assert "4 ranks" in shown and span(runtime_s) in shown


def test_a_result_runs_again_from_its_own_files(replayed: Result, tmp_path: Path) -> None:
    kept = sorted(path.name for path in (replayed.path / "inputs/cg").iterdir())
    assert kept == [*(f"rank-{rank:05}.txt" for rank in range(4)), "trace.json"]
    again = ew.run(replayed.path, out=tmp_path / "again")
    assert again.summary["digest"] == replayed.summary["digest"]


def test_timelines_show_ranks_and_messages(replayed: Result) -> None:
    rows = check(trace(replayed, 5_000))
    states = [row for row in rows if row.get("cat") == "mpi"]
    assert {"compute", "wait"} <= {row["name"] for row in states}
    assert any(str(row.get("cat", "")).startswith("message") for row in rows)


def paraver(folder: Path) -> dict[str, Any]:
    """Read a Paraver trace by the rules of its format."""
    lines = (folder / "trace.prv").read_text().splitlines()
    header = re.fullmatch(
        r"#Paraver \(\d\d/\d\d/\d{4} at \d\d:\d\d\):(\d+)_ns:(\d+)\(([\d,]+)\):(\d+):(.*)", lines[0]
    )
    assert header is not None, lines[0]
    end, cpus = int(header[1]), [int(n) for n in header[3].split(",")]
    assert len(cpus) == int(header[2])
    applications = re.findall(r"(\d+)\(((?:\d+:\d+,?)+)\)", header[5])
    assert len(applications) == int(header[4])
    tasks = []
    for count, listed in applications:
        nodes = [int(each.split(":")[1]) for each in listed.split(",")]
        assert len(nodes) == int(count)
        assert all(1 <= node <= len(cpus) for node in nodes)
        tasks.append(len(nodes))
    found: dict[str, Any] = {"end": end, "cpus": sum(cpus), "tasks": tasks}
    found |= {"states": [], "events": [], "messages": []}
    last = 0
    for line in lines[1:]:
        kind, *numbers = (int(word) for word in line.split(":"))
        place, rest = numbers[:4], numbers[4:]
        in_place(found, place)
        if kind == 1:
            assert len(rest) == 3
            assert rest[0] <= rest[1] <= end
            found["states"].append((*place, *rest))
        elif kind == 2:
            assert len(rest) % 2 == 1
            found["events"] += [(*place, rest[0], *rest[i : i + 2]) for i in range(1, len(rest), 2)]
        else:
            assert kind == 3
            assert len(rest) == 10
            in_place(found, rest[2:6])
            logical, physical, received, arrived = rest[0], rest[1], rest[6], rest[7]
            assert logical <= physical <= arrived <= received <= end
            found["messages"].append((*place, *rest))
        assert last <= rest[0] <= end
        last = rest[0]
    return found


def in_place(found: dict[str, Any], place: list[int]) -> None:
    cpu, application, task, thread = place
    assert 1 <= cpu <= found["cpus"]
    assert 1 <= task <= found["tasks"][application - 1]
    assert thread == 1


def test_paraver_traces_keep_to_the_format(replayed: Result, tmp_path: Path) -> None:
    ew.paraver(replayed, tmp_path / "trace.prv")
    found = paraver(tmp_path)
    assert found["tasks"][0] == 4
    assert len(found["states"]) == replayed.table("mpi_states").height
    assert len(found["messages"]) == replayed.table("mpi_messages").height
    levels = [event for event in found["events"] if event[5] == 90_000_001]
    assert max((level[6] for level in levels), default=0) == replayed.queues["bytes"].max()
    names = (tmp_path / "trace.pcf").read_text()
    states = {
        line.split()[0] for line in names.partition("STATES\n")[2].split("\n\n")[0].splitlines()
    }
    assert {str(state[-1]) for state in found["states"]} <= states
    rows = (tmp_path / "trace.row").read_text()
    for level, size, listed in re.findall(r"LEVEL (\w+) SIZE (\d+)\n((?:.+\n?)*)", rows):
        assert len(listed.splitlines()) == int(size), level
    assert f"LEVEL CPU SIZE {found['cpus']}" in rows
    result = CliRunner().invoke(
        app, ["timeline", str(replayed.path), "-o", str(tmp_path / "again.prv")]
    )
    assert result.exit_code == 0, result.output
    assert (tmp_path / "again.prv").read_bytes() == (tmp_path / "trace.prv").read_bytes()


PAUSED = """schema = 1
[fabric]
kind = "star"
hosts = 4
host_rate = "1 Gbit/s"
[fabric.pfc]
[[class]]
name = "app"
priority = 3
[measure]
pauses = "*"
sample_interval = "100 us"
[[workload]]
kind = "mpi"
name = "app"
trace = "t"
transport = "ethernet"
eager_limit = "2 MB"
"""


def test_paraver_traces_have_pauses_as_events_of_their_ports(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    for rank in range(4):
        calls = (
            "send 0 0 400000" if rank else "recv 1 0 400000\n0 recv 2 0 400000\n0 recv 3 0 400000"
        )
        (tmp_path / f"t/rank-{rank}.txt").write_text(f"{rank} {calls}\n")
    (tmp_path / "s.toml").write_text(PAUSED)
    result = ew.run(tmp_path / "s.toml", out=tmp_path / "result")
    assert result.pauses.height > 5
    ew.paraver(result, tmp_path / "trace.prv")
    found = paraver(tmp_path)
    # Ports are tasks of the last application, in the order of their names in the names file.
    rows = (tmp_path / "trace.row").read_text()
    tasks = rows.partition("LEVEL TASK")[2].partition("\n\n")[0].splitlines()[1:]
    ports = tasks[found["tasks"][0] :]
    assert len(ports) == found["tasks"][1]
    names = dict(result.links.select("link", "name").iter_rows())
    expect = [
        [names[row["link"]], round(row["began_s"] * 1e9), round(row["until_s"] * 1e9)]
        for row in result.pauses.iter_rows(named=True)
    ]
    open_at: dict[int, int] = {}
    pauses = []
    for _, application, task, _, at, kind, value in found["events"]:
        if kind == 90_000_013:
            assert application == 2
            if value == 1:
                assert task not in open_at
                open_at[task] = at
            else:
                assert value == 0
                pauses.append([ports[task - 1], open_at.pop(task), at])
    assert open_at == {}
    assert sorted(pauses) == sorted(expect)
    blocks = (tmp_path / "trace.pcf").read_text().split("\n\n")
    block = next(each for each in blocks if "90000013" in each)
    assert block.splitlines() == [
        "EVENT_TYPE",
        "0    90000013    Priority 3 paused",
        "VALUES",
        "0      Sends",
        "1      Paused",
    ]


def ranks(folder: Path) -> list[str]:
    return [path.read_text() for path in sorted(folder.glob("rank-*.txt"))]


def test_both_forms_of_dimemas_are_one_trace_that_runs(tmp_path: Path) -> None:
    for name in ("made", "made-named"):
        import_mpi([DATA / f"{name}.dim"], tmp_path / name)
    first = ranks(tmp_path / "made")
    assert first == ranks(tmp_path / "made-named")
    assert first[0].splitlines()[1:4] == [
        "0 compute 100000",
        "0 send 1 7 4096 6",
        "0 compute 50000",
    ]
    (tmp_path / "s.toml").write_text(STAR.format(kind="mpi", more='trace = "made"'))
    result = ew.run(tmp_path / "s.toml", out=tmp_path / "result")
    assert result.summary["mpi"]["compute_s"] == pytest.approx((160 + 200 + 300) / 3e6)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("2:0:0:1:-1:4096:7", "expected a communicator as field"),
        ("7:0:0:1", "a record of the kind '7'; expected are CPU bursts"),
        ("1:9:0:1.0", "found task 9, expected 0 to 2"),
        ("1:0:1:1.0", "only thread 0"),
        ("1:0:0:soon", "expected seconds"),
        ("10:0:0:99:0:0:0:1:1", "found operation 99"),
        ("10:2:0:1:5:0:0:1:1", "task 2 is not in communicator 5"),
        ("10:0:0:1:5:2:0:1:1", "the root, task 2, is not in communicator 5"),
        ("10:0:0:0:5:0:0:1:1:4", "found kind 4 of an operation"),
        ("d:1:5:2:1:0", "communicator 5 is defined twice"),
        ("d:1:6:2:1:1", "lists a task twice"),
        ("what", "expected a record"),
    ],
)
def test_damaged_dimemas_is_told_with_its_line(line: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "x.dim"
    file.write_text(f'#DIMEMAS:"x":1,0:3(1,1,1)\nd:1:5:2:0:1\n{line}\n')
    with pytest.raises(InputError, match=re.escape(said)) as raised:
        import_mpi([file], tmp_path / "out")
    assert "x.dim:3" in str(raised.value)
    assert not (tmp_path / "out").exists()


def test_communicators_of_dimemas_become_groups(tmp_path: Path) -> None:
    lines = [
        *('#DIMEMAS:"x":1,0:4(1,1,1,1)', "d:1:1:4:0:1:2:3", "d:1:7:2:3:1"),
        # tasks 1 and 3: a message, a broadcast whose root is marked, a sum in the background
        *("2:1:0:3:-1:4096:7:7:0", "10:1:0:1:7:0:0:0:64", "10:1:0:11:7:0:0:8:8:0"),
        *("1:1:0:0.001", "10:1:0:11:7:0:0:8:8:2", "10:1:0:0:1:0:0:0:0"),
        *("3:3:0:1:-1:4096:7:7:0", "10:3:0:1:7:1:0:64:0", "10:3:0:11:7:0:0:8:8:0"),
        *("10:3:0:11:7:0:0:8:8:2", "10:3:0:0:1:0:0:0:0"),
        *("10:0:0:0:1:0:0:0:0", "10:2:0:0:1:0:0:0:0"),
    ]
    (tmp_path / "x.dim").write_text("\n".join(lines) + "\n")
    import_mpi([tmp_path / "x.dim"], tmp_path / "out")
    assert ranks(tmp_path / "out")[1].splitlines()[1:-1] == [
        "1 group 1 3 1",
        "1 send 0 7 4096 6 in 1",
        "1 bcast 64 0 6 in 1",
        "1 iallreduce 8 0 6 in 1",
        "1 compute 1000000",
        "1 wait iallreduce in 1",
        "1 barrier",
    ]
    (tmp_path / "s.toml").write_text(STAR.format(kind="mpi", more='trace = "out"'))
    ew.run(tmp_path / "s.toml", out=tmp_path / "result")
    (tmp_path / "x.dim").write_text("\n".join(lines).replace("7:1:0:64:0", "7:2:0:64:0") + "\n")
    with pytest.raises(InputError, match=r"x\.dim:5: the tasks name different roots"):
        import_mpi([tmp_path / "x.dim"], tmp_path / "no")
    twice = "10:1:0:11:7:0:0:8:8:2\n10:1:0:11:7:0:0:8:8:2"
    (tmp_path / "x.dim").write_text("\n".join(lines).replace("10:1:0:11:7:0:0:8:8:2", twice) + "\n")
    with pytest.raises(InputError, match="wait for a non-blocking operation that did not begin"):
        import_mpi([tmp_path / "x.dim"], tmp_path / "no")


def wire(number: int, value: int | bytes) -> bytes:
    """Return an encoded field of a protobuf message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def chakra(*nodes: tuple[int, int, int, list[int], dict[str, int]]) -> bytes:
    """Return an encoded Chakra trace of nodes.

    A node has number, kind, microseconds, needed nodes, and attributes.
    """
    whole = [wire(1, b"0.0.4")]
    for number, kind, micros, needs, about in nodes:
        named = b"".join(
            wire(10, wire(1, name.encode()) + wire(9, value)) for name, value in about.items()
        )
        packed = wire(5, b"".join(map(varint, needs))) if needs else b""
        whole.append(
            wire(1, number) + wire(2, b"op") + wire(3, kind) + packed + wire(7, micros) + named
        )
    return b"".join(varint(len(message)) + message for message in whole)


def test_chakra_nodes_are_nodes_of_a_graph_with_their_streams(tmp_path: Path) -> None:
    # A thread of the processor launches a kernel and a collective, which overlaps with a second
    # kernel; the last kernel needs both.
    graph = chakra(
        (9, 4, 5, [4, 5], {"stream": 7}),
        (1, 4, 30, [], {"is_cpu_op": 1, "tid": 2}),
        (2, 7, 10, [1], {"is_cpu_op": 1, "tid": 2}),
        (3, 4, 100, [1], {"stream": 7}),
        (4, 7, 90, [2, 3], {"comm_type": 0, "comm_size": 4096, "stream": 20}),
        (5, 4, 1000, [3], {"stream": 7}),
        (6, 7, 0, [2], {"comm_type": 9, "stream": 20}),
        (7, 5, 0, [3], {"comm_dst": 1, "comm_size": 12, "comm_tag": 3}),
    )
    (tmp_path / "t.0.et").write_bytes(graph)
    (tmp_path / "t.1.et").write_bytes(
        chakra(
            (1, 6, 0, [], {"comm_src": 0, "comm_tag": 3}),
            (2, 7, 0, [], {"comm_type": 0, "comm_size": 4096}),
            (3, 7, 0, [2], {"comm_type": 9}),
        )
    )
    import_mpi([tmp_path / "t.1.et", tmp_path / "t.0.et"], tmp_path / "out")
    first, second = ranks(tmp_path / "out")
    assert first.splitlines() == [
        "0 graph",
        "0 compute 30000",
        "0 compute 10000 after 0",
        "0 compute 100000 after 0 on 1",
        "0 allreduce 4096 0 6 after 1 2 on 2",
        "0 compute 1000000 after 2 on 1",
        "0 barrier after 1 3 on 2",
        "0 send 1 3 12 6 after 2",
        "0 compute 5000 after 3 4 on 1",
    ]
    assert second.splitlines()[1:3] == ["1 recv 0 3 0 6", "1 allreduce 4096 0 6"]
    (tmp_path / "s.toml").write_text(STAR.format(kind="mpi", more='trace = "out"'))
    result = ew.run(tmp_path / "s.toml", out=tmp_path / "result")
    # The communication ends long before the kernel of 1 ms with which it overlaps.
    assert result.summary["mpi"]["runtime_s"] == pytest.approx(1.135e-3, abs=1e-9)
    made = json.dumps({"workload_graph": [{"Id": 1, "NodeType": 4, "runtime": 5, "data_deps": []}]})
    (tmp_path / "t.json").write_text(made)
    about = import_mpi([tmp_path / "t.json"], tmp_path / "alike", ranks=3).about
    assert (about["source"], about["ranks"], about["calls"]["compute"]) == ("chakra", 3, 3)


def sums(*groups: dict[str, Any]) -> str:
    """Return a Chakra trace in JSON: one sum of 4 KiB after the other, with these attributes."""
    nodes = [
        {"Id": at, "NodeType": 7, "data_deps": [at - 1] if at else [], **SUM, **group}
        for at, group in enumerate(groups)
    ]
    return json.dumps({"workload_graph": nodes})


SUM = {"comm_type": 0, "comm_size": 4096}
#: How traces of four ranks name the pairs 0, 1 and 2, 3, for each rank.
PAIRS: dict[str, list[dict[str, Any]]] = {
    "listed": [{"pg_ranks": [0, 1]}] * 2 + [{"pg_ranks": [2, 3]}] * 2,
    "named": [{"pg_name": "1"}] * 2 + [{"pg_name": "2"}] * 2,
    "dimensions": [{"involved_dim": [True, False], "group_size": 2}] * 4,
    "described": [{"pg_name": "pair"}] * 4,
}


@pytest.mark.parametrize("form", PAIRS)
def test_chakra_groups_become_groups_of_ranks(form: str, tmp_path: Path) -> None:
    files = [tmp_path / f"t.{rank}.json" for rank in range(4)]
    for rank, file in enumerate(files):
        file.write_text(sums(PAIRS[form][rank], {}))
        if form == "described":
            pair = [rank // 2 * 2, rank // 2 * 2 + 1]
            text = json.dumps([{"pg_name": "pair", "ranks": pair}, {"pg_name": "0", "ranks": []}])
            made = json.loads(file.read_text())
            described = {"Id": 7, "NodeType": 1, "Name": "## process_group:init ##"}
            made["workload_graph"].append({**described, "inputs": {"values": [text]}})
            file.write_text(json.dumps(made))
    if form == "named":
        files.append(tmp_path / "groups.json")
        files[-1].write_text('{"1": [0, 1], "2": [2, 3]}')
    import_mpi(files, tmp_path / "out")
    rows = [text.splitlines()[1:4] for text in ranks(tmp_path / "out")]
    assert rows[0] == ["0 group 1 0 1", "0 allreduce 4096 0 6 in 1", "0 allreduce 4096 0 6 after 1"]
    assert rows[3] == ["3 group 2 2 3", "3 allreduce 4096 0 6 in 2", "3 allreduce 4096 0 6 after 1"]
    (tmp_path / "s.toml").write_text(STAR.format(kind="mpi", more='trace = "out"'))
    result = ew.run(tmp_path / "s.toml", out=tmp_path / "result")
    if form == "named":
        files[-1].write_text('{"1": [0, 0]}')
        with pytest.raises(InputError, match="expected a list of different ranks"):
            import_mpi(files, tmp_path / "no")
    # A pair exchanges two messages; all four ranks need two rounds.
    assert result.summary["mpi"]["messages"]["count"] == 2 * 2 + 2 * 4


def test_ranks_of_chakra_may_all_send_before_they_receive(tmp_path: Path) -> None:
    files = [tmp_path / f"t.{rank}.et" for rank in range(3)]
    for rank, file in enumerate(files):
        after, before = (rank + 1) % 3, (rank - 1) % 3
        send = {"comm_dst": after, "comm_size": 1 << 20, "comm_tag": 0}
        received = (2, 6, 0, [1], {"comm_src": before, "comm_tag": 0})
        file.write_bytes(chakra((1, 5, 0, [], send), received, (3, 4, 5, [2], {})))
    import_mpi(files, tmp_path / "out")
    assert "0 recv 2 0 0 6 after ~0" in ranks(tmp_path / "out")[0]
    (tmp_path / "s.toml").write_text(STAR.format(kind="mpi", more='trace = "out"'))
    assert ew.run(tmp_path / "s.toml", out=tmp_path / "r").summary["mpi"]["messages"]["count"] == 3


def test_one_chakra_trace_of_all_ranks_gives_groups_of_its_form(tmp_path: Path) -> None:
    for members, expected in (([0, 2], "3 group 2 1 3"), ([2, 3], "3 group 2 2 3")):
        (tmp_path / "t.json").write_text(sums({"pg_ranks": members}))
        import_mpi([tmp_path / "t.json"], tmp_path / "out", ranks=4, force=True)
        assert ranks(tmp_path / "out")[3].splitlines()[1] == expected
    (tmp_path / "t.json").write_text(sums({"pg_ranks": [0, 1, 3]}))
    with pytest.raises(InputError, match="whose form does not give the other groups"):
        import_mpi([tmp_path / "t.json"], tmp_path / "no", ranks=4)


def test_a_trace_of_pytorch_before_its_conversion_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"schema": "1.0.2-chakra.0.0.4", "nodes": [{"id": 1}]}')
    with pytest.raises(InputError, match="convert it with chakra_converter"):
        import_mpi([tmp_path / "t.json"], tmp_path / "no")


def test_control_dependencies_count_unless_they_form_loops(tmp_path: Path) -> None:
    def made(control: list[int]) -> list[str]:
        nodes = [
            {"Id": 1, "NodeType": 4, "runtime": 5, "ctrl_deps": control},
            {"Id": 2, "NodeType": 4, "runtime": 5, "data_deps": [1], "ctrl_deps": [9]},
            {"Id": 3, "NodeType": 4, "runtime": 5, "ctrl_deps": [2]},
        ]
        (tmp_path / "t.json").write_text(json.dumps({"workload_graph": nodes}))
        about = import_mpi([tmp_path / "t.json"], tmp_path / "out", force=True).about
        assert about["noted"][0]["count"] == (3 if control else 1)
        return ranks(tmp_path / "out")[0].splitlines()[1:]

    assert made([]) == ["0 compute 5000", "0 compute 5000 after 0", "0 compute 5000 after 1"]
    assert made([2]) == ["0 compute 5000", "0 compute 5000 after 0", "0 compute 5000"]


def test_chakra_in_a_circle_or_cut_off_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "t.0.et"
    file.write_bytes(chakra((1, 4, 1, [2], {}), (2, 4, 1, [1], {})))
    with pytest.raises(InputError, match="node 1 can never begin"):
        import_mpi([file], tmp_path / "out")
    file.write_bytes(chakra((1, 4, 1, [], {}))[:-2])
    with pytest.raises(InputError, match="ends within a message"):
        import_mpi([file], tmp_path / "out")


def test_without_its_library_otf2_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    (tmp_path / "t.otf2").write_bytes(b"x")
    with pytest.raises(InputError, match="pip install"):
        import_mpi([tmp_path / "t.otf2"], tmp_path / "out")


def test_a_recorded_otf2_trace_is_read_by_its_library_and_replayed(tmp_path: Path) -> None:
    """Score-P's record of two ranks that send each other eight messages each way."""
    folder = DATA / "ping-pong-otf2"
    import_mpi([folder / "traces.otf2"], tmp_path / "trace")
    scenario = tmp_path / "replay.toml"
    scenario.write_text(
        "schema = 1\n[fabric]\nkind = 'star'\nhosts = 2\nhost_rate = '1 Gbit/s'\n"
        "[[workload]]\nname = 'mpi'\nkind = 'mpi'\ntrace = 'trace'\n"
    )
    result = ew.run(scenario, out=tmp_path / "r")
    assert result.summary["flows"]["completed"] == 16


class Thing:
    """A thing with a name or a group; it is equal only to itself."""

    def __init__(self, name: str = "", group: Any = None) -> None:
        self.name = name
        self.group = group


def event(kind: str, time: int, **values: Any) -> Any:
    made = type(kind, (SimpleNamespace,), {})
    return made(time=time, **values)


def test_otf2_events_become_calls(tmp_path: Path) -> None:
    groups = [Thing(name="rank 0"), Thing(name="rank 1")]
    here, there = (Thing(group=group) for group in groups)
    world = Thing(group=SimpleNamespace(members=[here, there]))
    turned = Thing(group=SimpleNamespace(members=[there, here]))
    sides = {"groupA": SimpleNamespace(members=[here])}
    sides["groupB"] = SimpleNamespace(members=[there])
    between = type("InterComm", (Thing,), sides)(group=world.group)
    across = {"communicator": between, "receiver": 0, "msg_tag": 7, "msg_length": 5}

    def inside(name: str, begin: int, *events: Any) -> list[Any]:
        region = SimpleNamespace(name=name)
        return [
            event("Enter", begin, region=region),
            *events,
            event("Leave", begin + 10, region=region),
        ]

    def sent(kind: str, **values: Any) -> Any:
        return event(kind, 0, communicator=world, msg_tag=7, msg_length=64, **values)

    ends = {"communicator": world, "root": 1, "size_sent": 8, "size_received": 8}
    bcast = event("MpiCollectiveEnd", 0, collective_op="CollectiveOp.BCAST", **ends)
    later = {**ends, "communicator": turned, "collective_op": "ALLREDUCE", "request_id": 6}
    events = [
        *inside("MPI_Init", 0),
        *inside("MPI_Isend", 110, sent("MpiIsend", receiver=1, request_id=4)),
        *inside("MPI_Irecv", 120, event("MpiIrecvRequest", 0, request_id=5)),
        *inside("MPI_Waitall", 200, event("MpiIsendComplete", 0, request_id=4)),
        *inside("MPI_Wait", 210, sent("MpiIrecv", sender=1, request_id=5)),
        *inside("MPI_Sendrecv", 220, sent("MpiSend", receiver=1), sent("MpiRecv", sender=1)),
        *inside("MPI_Bcast", 230, bcast),
        *inside("MPI_Iallreduce", 240, event("NonBlockingCollectiveRequest", 0, request_id=6)),
        *inside("MPI_Wait", 260, event("NonBlockingCollectiveComplete", 0, **later)),
        *inside("MPI_Send", 270, event("MpiSend", 0, **across)),
    ]
    stream = SimpleNamespace(
        timer_resolution=1000,
        definitions=SimpleNamespace(locations=[here, there], comms=[world, turned]),
        events=[(here, each) for each in events],
    )
    with RankFiles(tmp_path / "out") as into:
        posted = otf2._Reading("t", stream, into).operations()
        assert otf2._Reading("t", stream, into).all(posted) == 2
        into.finish(2, {})
    assert ranks(tmp_path / "out")[0].splitlines() == [
        "0 init",
        "0 compute 100000000",
        "0 isend 1 7 64 6",
        "0 irecv 1 7 64 6",
        "0 compute 70000000",
        "0 wait 0 1 7",
        "0 wait 1 0 7",
        "0 isend 1 7 64 6",
        "0 recv 1 7 64 6",
        "0 wait 0 1 7",
        "0 bcast 8 1 6",
        "0 group 1 1 0",
        "0 iallreduce 8 0 6 in 1",
        "0 compute 10000000",
        "0 wait iallreduce in 1",
        "0 send 1 7 5 6",
        "0 finalize",
    ]


def test_communicators_of_otf2_become_groups(tmp_path: Path) -> None:
    """Two pairs of ranks, written by the library."""
    library: Any = otf2.library()
    kinds, paradigm = library.definitions.GroupType, library.Paradigm.MPI
    operations = library.CollectiveOp
    with library.writer.open(str(tmp_path / "t"), timer_resolution=10**6) as written:
        known = written.definitions
        node = known.system_tree_node("node")
        places = [
            known.location(
                str(rank), group=known.location_group(str(rank), system_tree_parent=node)
            )
            for rank in range(4)
        ]
        known.group("", group_type=kinds.COMM_LOCATIONS, paradigm=paradigm, members=places)

        def communicator(name: str, *members: int) -> Any:
            listed = [places[rank] for rank in members]
            about = {"group_type": kinds.COMM_GROUP, "paradigm": paradigm}
            return known.comm(name, group=known.group(name, members=listed, **about))

        communicator("world", 0, 1, 2, 3)
        pairs = [communicator("first", 0, 1), communicator("second", 3, 2)]
        for rank, place in enumerate(places):
            own, writer = pairs[rank // 2], written.event_writer_from_location(place)
            calls: dict[str, list[tuple[Any, ...]]] = {
                "MPI_Iallreduce": [("non_blocking_collective_request", 77)],
                "MPI_Sendrecv": [("mpi_send", 1, own, 5, 64), ("mpi_recv", 0, own, 5, 64)],
                "MPI_Wait": [
                    ("non_blocking_collective_complete", operations.ALLREDUCE, own, 0, 8, 8, 77)
                ],
                "MPI_Bcast": [("mpi_collective_end", operations.BCAST, own, 1, 0, 64)],
            }
            calls["MPI_Sendrecv"] = [calls["MPI_Sendrecv"][rank in {1, 2}]]
            for at, (name, events) in enumerate(calls.items()):
                region = known.region(name, paradigm=paradigm)
                writer.enter(20 * at, region)
                for event_name, *values in events:
                    getattr(writer, event_name)(20 * at + 1, *values)
                writer.leave(20 * at + 10, region)
    import_mpi([tmp_path / "t" / "traces.otf2"], tmp_path / "out")
    assert ranks(tmp_path / "out")[3].splitlines()[1:-1] == [
        "3 group 2 3 2",
        "3 iallreduce 8 0 6 in 2",
        "3 compute 10000",
        "3 isend 1 5 64 6 in 2",
        "3 wait 3 2 5",
        "3 compute 10000",
        "3 wait iallreduce in 2",
        "3 compute 10000",
        "3 bcast 64 1 6 in 2",
    ]
    (tmp_path / "s.toml").write_text(STAR.format(kind="mpi", more='trace = "out"'))
    assert ew.run(tmp_path / "s.toml", out=tmp_path / "r").summary["mpi"]["ranks"] == 4


def test_time_independent_traces_come_in_many_wrappings(tmp_path: Path) -> None:
    texts = ["0 init\n0 send 1 0 1e6\n", "1 init\n\n# a note\n1 recv 0 0 1e6\n"]
    folder = tmp_path / "parts"
    folder.mkdir()
    for rank, text in enumerate(texts):
        (folder / f"actions{rank}.txt").write_text(text)
    (tmp_path / "list").write_text("parts/actions0.txt\nparts/actions1.txt\n")
    (tmp_path / "all.txt").write_text("".join(texts))
    with tarfile.open(tmp_path / "t.tar.gz", "w:gz") as archive:
        archive.add(folder, "deep/down")
    named: dict[str, list[Path]] = {
        "folder": [folder],
        "list": [tmp_path / "list"],
        "merged": [tmp_path / "all.txt"],
        "archive": [tmp_path / "t.tar.gz"],
        "files": sorted(folder.iterdir()),
    }
    made = {}
    for name, files in named.items():
        import_mpi(files, tmp_path / f"out-{name}")
        made[name] = ranks(tmp_path / f"out-{name}")
    assert all(each == made["folder"] for each in made.values()), made
    (folder / "more1.txt").write_text("1 init\n")
    with pytest.raises(InputError, match="are both for rank 1"):
        import_mpi([folder], tmp_path / "twice")
    shutil.copy(folder / "actions0.txt", tmp_path / "rank1.txt")
    with pytest.raises(InputError, match="the line is of rank 0, but the file belongs to rank 1"):
        import_mpi([tmp_path / "rank1.txt", folder / "actions0.txt"], tmp_path / "wrong")


def test_groups_and_graphs_are_imported_unchanged(tmp_path: Path) -> None:
    lines = [
        *("graph", "group 1 1 0", "compute 5 after 0 on 3 priority -2"),
        *("reduce 8 0 1 6 in 1 after 1", "reduce 8 0 0 6 after ~1 2 priority -1"),
    ]
    text = "".join(f"{rank} {line}\n" for rank in range(2) for line in lines)
    (tmp_path / "all.txt").write_text(text)
    about = import_mpi([tmp_path / "all.txt"], tmp_path / "out").about
    assert "".join(ranks(tmp_path / "out")) == text
    assert (about["records"], about["noted"]) == (10, [])
    split = "0 comm_split 1 0 0\n0 barrier in 1\n1 comm_split 1 1 0\n1 comm_dup 2 in 1\n"
    (tmp_path / "all.txt").write_text(split)
    import_mpi([tmp_path / "all.txt"], tmp_path / "split")
    assert "".join(ranks(tmp_path / "split")) == split
    for line, said in (("1 barrier in 2", "the group 2"), ("x barrier in 1", 'found "x"')):
        (tmp_path / "all.txt").write_text(f"{text}{line}\n")
        with pytest.raises(InputError, match=said):
            import_mpi([tmp_path / "all.txt"], tmp_path / "no", source_format="ti")


def test_operations_that_were_not_measured_are_told(tmp_path: Path) -> None:
    trace = tmp_path / "all.txt"
    trace.write_text("".join(f"{rank} init\n{rank} allReduce 8 -1\n" for rank in range(2)))
    import_mpi([trace], tmp_path / "out")
    noted = json.loads((tmp_path / "out" / "trace.json").read_text())["noted"]
    assert [(each["count"], each["consequence"]) for each in noted] == [
        (2, "its operations take no time")
    ]
    assert noted[0]["first"][0]["line"] == 2


def test_the_command_says_what_it_has_made(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = CliRunner().invoke(
        app, ["trace", "import", str(DATA / "made.dim"), "-o", str(out), "--json"]
    )
    assert run.exit_code == 0, run.output
    assert json.loads(run.stdout)["ranks"] == 3
    again = CliRunner().invoke(app, ["trace", "import", str(DATA / "made.dim"), "-o", str(out)])
    assert again.exit_code == 2
    forced = CliRunner().invoke(
        app, ["trace", "import", str(DATA / "made.dim"), "-o", str(out), "--force"]
    )
    assert "1 isend" in forced.output


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_damaged_files_are_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    whole = {
        "x.dim": (DATA / "made.dim").read_bytes(),
        "y.dim": (DATA / "made-named.dim").read_bytes(),
        "z.0.et": chakra((1, 4, 5, [], {}), (2, 7, 5, [1], {"comm_type": 5, "comm_size": 9})),
        "w.txt": b"0 init\n1 init\n0 send 1 0 5\n1 recv 0 0 5\n",
    }
    name = data.draw(st.sampled_from(sorted(whole)))
    content = bytearray(whole[name])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    file = tmp_path / name
    file.write_bytes(bytes(content[: data.draw(st.integers(1, len(content)))]))
    try:
        import_mpi([file], tmp_path / "out", force=True)
    except InputError as error:
        assert "\x1b" not in str(error)
