"""Every sample trace in the repository is accounted for, by a count independent of the readers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import check_traces
import flow_exports
from eastwest.account import Account
from eastwest.traces import hadoop
from eastwest.traces.mpi.form import FORMATS
from project_paths import ROOT

#: Folders of samples, and the least number of them that a reader must accept.
FOLDERS = {
    "tests/data/traces": 12,
    "tests/data/jhist": 4,
    "tests/data/mpi": 6,
    "tests/data/spans": 4,
    "python/eastwest/data/swim": 3,
}


@pytest.mark.parametrize(("folder", "least"), FOLDERS.items())
def test_every_sample_is_accounted_for(folder: str, least: int) -> None:
    rows = check_traces.rows(ROOT / folder)
    assert [row.cells() for row in rows if row.wrong] == []
    taken = [row for row in rows if row.parts]
    assert len(taken) >= least
    assert all(sum(part.counted for part in row.parts) > 0 for row in taken)
    assert all(float(row.ran[-1]) > 0 for row in taken if row.reader in FORMATS)
    assert all(row.refused for row in rows if not row.parts)


def test_archives_of_ranks_are_accounted_for(tmp_path: Path) -> None:
    name = "cg.S.4.ti.tar.gz"
    (tmp_path / name).symlink_to(ROOT / "crates/workload/tests/data/npb-cg-ti" / name)
    (row,) = check_traces.rows(tmp_path)
    assert row.verdict == "accounted for"
    assert sum(part.imported for part in row.parts) == 25_556


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_captures_of_packets_are_accounted_for(tmp_path: Path, form: str, order: str) -> None:
    sent = flow_exports.tcp("10.0.0.1", "10.0.0.2", 1000, 80, 100, 1000)
    icmp = flow_exports.ip("10.0.0.1", "10.0.0.2", 1, bytes(8))
    write = flow_exports.pcapng if form == "pcapng" else flow_exports.pcap
    data = write([(0.0, sent), (0.1, icmp), (0.2, sent)], order=order)
    (tmp_path / "w1.pcap.gz").write_bytes(gzip.compress(data))
    (row,) = check_traces.rows(tmp_path)
    assert (row.reader, row.verdict) == ("pcap", "accounted for")
    assert row.parts[0].counted == 3


def test_every_node_of_a_graph_is_a_record(tmp_path: Path) -> None:
    kinds: list[dict[str, Any]] = [
        *({"NodeType": kind, "runtime": 7} for kind in (1, 2, 3, 4)),
        {"NodeType": 7, "is_cpu_op": True, "runtime": 7},
        *({"NodeType": 7, "comm_type": 0, "comm_size": 8, "pg_ranks": [0, 1]} for _ in range(2)),
        *({"NodeType": 7, "comm_type": 9, "pg_name": name} for name in ("0", "1")),
        *({"NodeType": kind} for kind in (5, 6, 7, 77)),
    ]
    nodes = [{"Id": at, "data_deps": [], **kind} for at, kind in enumerate(kinds)]
    (tmp_path / "t.0.json").write_text(json.dumps({"workload_graph": nodes}))
    (row,) = check_traces.rows(tmp_path)
    assert [(part.kind, part.counted, part.imported, part.told) for part in row.parts] == [
        ("nodes of computing", 5, 5, 0),
        ("collectives", 6, 2, 4),
        ("messages", 2, 0, 2),
    ]
    assert row.ran[:2] == ["2 (one, repeated) with --lossy", "26 nodes"]


def test_what_a_change_of_meaning_refuses_is_counted_again(tmp_path: Path) -> None:
    text = "0 init\n1 init\n0 comm_dup\n1 comm_dup\n0 barrier\n1 barrier\n"
    (tmp_path / "all.txt").write_text(text)
    (row,) = check_traces.rows(tmp_path)
    assert row.wrong == []
    assert row.verdict.startswith('refused: all.txt:3: found the call "comm_dup"')
    assert row.verdict.endswith("with --lossy accounted for")
    assert {part.kind: part.told for part in row.parts}["comm_dup"] == 2


def test_a_reader_that_drops_something_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ROOT / "tests/data/traces/rumen"

    def silent(*_: Any, **__: Any) -> None:
        return None

    monkeypatch.setattr(Account, "note", silent)
    wrong = {row.sample: row.verdict for row in check_traces.rows(folder) if row.wrong}
    assert wrong["trace_1m.json.gz"] == "UNACCOUNTED: distributions"
    monkeypatch.undo()
    write = hadoop.write_job
    seen: list[Any] = []

    def all_but_one(job: Any, *rest: Any) -> bool:
        seen.append(job)
        return len(seen) == 2 or write(job, *rest)

    monkeypatch.setattr(hadoop, "write_job", all_but_one)
    row = check_traces.check("x", [folder / "trace_1m.json.gz"], tmp_path / "out")
    assert "jobs" in row.verdict
