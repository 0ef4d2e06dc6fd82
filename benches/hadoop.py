"""Measures the cost of the full Hadoop model relative to its flows alone.

``.venv/bin/python benches/hadoop.py`` on a quiet machine. The Hadoop job of chapter 5 of E-EON (160
nodes, scenario S3) runs in turns with its bare flows: every message that the job has sent, with the
same hosts, bytes and start, as a list of flows on the same fabric, without tasks, disks or
schedulers. Each line has CPU time and packet-hops of both, and the ratio of CPU times; the last
line has the medians. With ``--yarn`` the job runs on containers, with cores, disks and HDFS that
tasks share.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import polars as pl

import eastwest as ew
from eastwest.run import load_source

ROUNDS = 7
#: Overrides that select the model with containers, shared cores and disks.
YARN = {
    "workload.terasort.framework": "yarn",
    "workload.terasort.node.cores": 4,
    "workload.terasort.node.disk": "hdd",
}


def bare(folder: Path, flows: pl.DataFrame) -> Path:
    """Write a scenario with the fabric of S3 and a list of these flows; return its path."""
    whole = load_source("s3").text
    head = whole[: whole.index("[[workload]]")]
    listed = flows.filter(pl.col("bytes") > 0).select("src", "dst", "bytes", "start_s")
    listed.write_csv(folder / "flows.csv")
    path = folder / "bare.toml"
    path.write_text(f'{head}[[workload]]\nname = "bare"\nkind = "flow-list"\nfile = "flows.csv"\n')
    return path


def main() -> None:
    """Print CPU time and packet-hops of the job and of its bare flows in each round."""
    settings: dict[str, Any] = YARN if "--yarn" in sys.argv[1:] else {}
    ratios = []
    with tempfile.TemporaryDirectory() as place:
        flows = bare(Path(place), ew.run("s3", set=settings).flows)
        for number in range(1, ROUNDS + 1):
            job, alone = ew.run("s3", set=settings).summary, ew.run(flows).summary
            ratios.append(job["cpu_s"] / alone["cpu_s"])
            print(
                f"round {number}: job {job['cpu_s']:.2f} s, {job['packet_hops']:,} packet-hops; "
                f"bare flows {alone['cpu_s']:.2f} s, {alone['packet_hops']:,}; "
                f"ratio {ratios[-1]:.2f}"
            )
    print(f"median ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
