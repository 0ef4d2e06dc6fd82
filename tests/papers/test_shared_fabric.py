"""A TeraSort beside CG: a smaller version of the shipped example has the results of its page."""

from __future__ import annotations

from pathlib import Path

import pytest

import eastwest as ew

pytestmark = pytest.mark.long

#: A cluster that loses little time outside the network, so little must be simulated.
SMALL = {
    "workload.terasort.job.0.input": "768 MB",
    "workload.terasort.split_bytes": "32 MB",
    "workload.terasort.bytes_per_reducer": "32 MB",
    "workload.terasort.control.heartbeat": "300 ms",
    "workload.terasort.control.job_setup": "100 ms",
    "workload.terasort.costs.task_start": "100 ms",
    "workload.cg.outer": 7,
}
SHUFFLE = "flows.by_purpose.shuffle.fct_us.mean"


def test_what_a_terasort_and_cg_cost_each_other(tmp_path: Path) -> None:
    found = ew.sweep(
        "terasort-cg", set=SMALL, seeds=1, out=tmp_path / "out", store=tmp_path / "store", jobs=2
    )
    assert not found.failures
    cases = {found.names(row["point"])[0]: row for row in found.runs.iter_rows(named=True)}
    program = {name: row["mpi.runtime_s"] for name, row in cases.items()}
    shuffle = {name: row[SHUFFLE] for name, row in cases.items()}
    lost = {name: row["packets.dropped"] for name, row in cases.items()}
    pauses = {name: row["dcb.pauses"] for name, row in cases.items()}
    assert program["TeraSort alone"] is None
    assert cases["CG alone"]["jobs.makespan_s"] is None

    # A larger share of the shuffle slows the MPI program more, and the shuffle less.
    shares = ["CG first", "ETS 75 : 25", "ETS 50 : 50", "ETS 25 : 75"]
    by_share = [program[name] for name in shares]
    assert by_share == sorted(by_share)
    assert program["CG first"] < 1.05 * program["CG alone"]
    assert shuffle["TeraSort alone"] < shuffle["ETS 25 : 75"] < shuffle["ETS 50 : 50"]
    assert shuffle["ETS 50 : 50"] < min(shuffle["ETS 75 : 25"], shuffle["CG first"])

    # In one lossless class nothing is lost; pauses spread, and slow the MPI program most.
    assert lost["one class"] == lost["CG alone"] == 0 < lost["TeraSort alone"]
    assert pauses["TeraSort alone"] == 0
    assert pauses["one class"] > 10 * pauses["one queue"]
    assert program["one class"] == max(value for value in program.values() if value is not None)
