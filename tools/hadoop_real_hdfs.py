"""Compares a simulated HDFS client with a real one: bytes on ports and times.

``python tools/hadoop_real_hdfs.py`` writes ``results/hdfs.csv`` of papers/hadoop_real. Measured
were writes of 128 MiB with one and three replicas at 50 Mbit/s; two replicas, reads and other rates
are predictions.
"""

from __future__ import annotations

import csv
import io
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import polars as pl

import eastwest as ew
from eastwest.files import write_whole
from eastwest.run import Setting
from hadoop_real import PAPER

SCENARIO = PAPER / "scenarios" / "hdfs.toml"
#: Allowed relative difference of bytes and times from the measured values.
BAND = 0.03
SEEDS = 5


@dataclass(frozen=True)
class Client:
    """Values of one setting: at the client's port, and at all ports of datanodes together."""

    operation: str
    replication: int
    rate_mbit: float
    client_mb: float
    client_s: float
    into_workers_mb: float


def measured() -> list[Client]:
    """Return the means of the measured writes."""
    groups: dict[int, dict[int, list[dict[str, str]]]] = {}
    with (PAPER / "data" / "hdfs.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            repeats = groups.setdefault(int(row["replication"]), {})
            repeats.setdefault(int(row["repeat"]), []).append(row)
    found = []
    for replication, repeats in groups.items():
        own = [r for rows in repeats.values() for r in rows if r["node"] == r["client_node"]]
        into = [
            sum(float(r["megabytes"]) for r in rows if r["direction"] == "to_host")
            for rows in repeats.values()
        ]
        found.append(
            Client(
                "put",
                replication,
                50,
                statistics.mean(float(r["megabytes"]) for r in own),
                statistics.mean(float(r["wire_s"]) for r in own),
                statistics.mean(into),
            )
        )
    return found


def simulate(operation: str, replication: int, rate_mbit: float, seed: int) -> Client:
    """Return the values of a simulated client; ``operation`` is ``put`` or ``get``."""
    settings: dict[str, Setting] = {
        "fabric.host_rate": f"{rate_mbit:g} Mbit/s",
        "workload.hadoop.hdfs.output_replication": replication,
        "workload.hadoop.hdfs.replication": replication,
    }
    text = SCENARIO.read_text("utf-8")
    if operation == "get":
        text = text.replace('"hdfs-put"\noutput =', '"hdfs-get"\ninput =')
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hdfs.toml"
        path.write_text(text, "utf-8")
        result = ew.run(path, set=settings, seed=seed, out=Path(folder) / "result")
        way = ("h0", "switch0") if operation == "put" else ("switch0", "h0")
        client_mb, client_s = _port(result, *way)
        into = sum(_port(result, "switch0", f"h{node}")[0] for node in range(1, 5))
    return Client(operation, replication, rate_mbit, client_mb, client_s, into)


def _port(result: ew.Result, src: str, dst: str) -> tuple[float, float]:
    """Return the megabytes that a port sent, and the time from 1 % to 99 % of them in s."""
    links = result.links.filter((pl.col("src") == src) & (pl.col("dst") == dst))
    samples = (
        result.link_samples.filter(pl.col("link") == links["link"][0])
        .sort("time_s")
        .with_columns(share=pl.col("bytes").cum_sum() / pl.col("bytes").sum())
    )
    if samples.is_empty():
        return float(links["bytes"][0]) / 1e6, 0.0
    ends = [float(samples.filter(pl.col("share") >= s)["time_s"][0]) for s in (0.01, 0.99)]
    return float(links["bytes"][0]) / 1e6, ends[1] - ends[0]


def mean(found: list[Client]) -> Client:
    """Return the mean over the given runs, one for each seed."""
    one = found[0]
    return Client(
        one.operation,
        one.replication,
        one.rate_mbit,
        statistics.mean(c.client_mb for c in found),
        statistics.mean(c.client_s for c in found),
        statistics.mean(c.into_workers_mb for c in found),
    )


def main() -> int:
    """Simulate all settings, print and write the values; return 1 if one is outside its band."""
    known = {(c.operation, c.replication, c.rate_mbit): c for c in measured()}
    settings = [("put", n, 50.0) for n in (1, 2, 3)] + [("put", 3, 20.0), ("put", 3, 100.0)]
    settings += [("get", 1, 50.0), ("get", 3, 50.0)]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    numbers = ("client_mb", "client_s", "into_workers_mb")
    heading = [f"{side}_{number}" for number in numbers for side in ("measured", "simulated")]
    writer.writerow(["operation", "replication", "rate_mbit", *heading])
    worst = 0.0
    for setting in settings:
        ours = mean([simulate(*setting, seed) for seed in range(1, SEEDS + 1)])
        theirs = known.get(setting)
        cells: list[str] = []
        for number in numbers:
            simulated = getattr(ours, number)
            if theirs is not None:
                worst = max(worst, abs(simulated / getattr(theirs, number) - 1))
            cells += [f"{getattr(theirs, number):.2f}" if theirs else "", f"{simulated:.2f}"]
        writer.writerow([setting[0], setting[1], f"{setting[2]:g}", *cells])
    write_whole(PAPER / "results" / "hdfs.csv", stream.getvalue().encode())
    print(stream.getvalue() + f"farthest from measured: {worst:.1%} (band {BAND:.0%})")
    return 0 if worst <= BAND else 1


if __name__ == "__main__":
    sys.exit(main())
