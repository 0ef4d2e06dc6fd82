"""Derives the tables beside this file from the measurement of Linux 6.18.

    python papers/kernel_tcp/measured/derive.py ../shared/data/kernel-tcp

The measurement itself is not part of this repository. ``flows.csv`` has the numbers that the claims
compare, over runs. ``windows.csv.gz`` has the windows of all runs, thinned for the figures.
``reads.csv`` has the goodput of synchronized reads with counters, over repeats. ``pairs.csv`` has
the goodput and retransmissions of two flows that share a queue, each over its own 20 s, over runs.
"""

from __future__ import annotations

import gzip
import math
import re
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from eastwest.claims.measures.of_study import module_of

HERE = Path(__file__).parent
_MEASURES = module_of(HERE.parent)
STEADY_S, Windows = _MEASURES.STEADY_S, _MEASURES.Windows
#: Number of delivered bytes up to which goodput and drops are counted; each flow delivers them in
#: 10 s.
_BYTES = 115_000_000
#: Linux's state of fast recovery (TCP_CA_Recovery), and the slow start threshold before any loss.
_RECOVERY, _UNSET = 3, 2**31 - 1
#: Duration of each flow of a pair in s.
_PAIR_S = 20.0
_READS = {
    "goodput_mbps": "goodput_mbps",
    "timeouts": "timeouts",
    "spurious_timeouts": "spurious_rtos",
    "probes": "tlp",
    "retransmits": "retrans",
    "drops": "drops",
}


def flow(path: Path) -> tuple[Windows, dict[str, float]]:
    """Return the windows of one measured flow, and its numbers by name."""
    rows = pl.read_csv(path)
    windows = Windows(
        rows["t_s"].to_list(),
        [float(window) for window in rows["cwnd_pkts"]],
        [math.inf if value == _UNSET else float(value) for value in rows["ssthresh_pkts"]],
        [state == _RECOVERY for state in rows["ca_state"]],
    )
    retransmitted = rows["total_retrans"].to_list()
    # A simulated flow ends after this number of bytes, so the measured flow is cut there.
    delivered = int((rows["bytes_acked"] < _BYTES).sum())
    first = rows.filter(pl.col("t_s") < 1.0)["total_retrans"].to_list()
    steady: list[float] = rows.filter(pl.col("t_s") > STEADY_S)["srtt_us"].to_list()
    more = {
        "median-round-trip-ms": statistics.median(steady) / 1e3,
        "goodput-mbps": _goodput(rows["t_s"].to_list(), rows["bytes_acked"].to_list()),
        "drops": float(retransmitted[delivered]),
        "drops-of-first-second": float(first[-1]),
    }
    return windows, {**windows.numbers(), **more}


def _goodput(times_s: Sequence[float], acked: Sequence[int]) -> float:
    """Return the rate in Mbit/s until this number of bytes is acknowledged, between two samples."""
    at = next(number for number, count in enumerate(acked) if count >= _BYTES)
    share = (_BYTES - acked[at - 1]) / (acked[at] - acked[at - 1])
    return _BYTES * 8e-6 / (times_s[at - 1] + share * (times_s[at] - times_s[at - 1]))


def over_runs(case: str, runs: Sequence[dict[str, float]]) -> list[str]:
    """Return lines of flows.csv: mean, least and greatest of each number that all runs have."""
    lines = []
    for name in runs[0]:
        values = [run[name] for run in runs if name in run]
        if len(values) == len(runs):
            spread = statistics.stdev(values) if len(values) > 1 else 0.0
            shown = ",".join(f"{value:.5g}" for value in (statistics.mean(values), spread))
            lines.append(f"{case},{name},{shown},{min(values):.5g},{max(values):.5g},{len(runs)}")
    return lines


def write_flows(folder: Path, out: Path) -> None:
    """Write flows.csv and windows.csv.gz of all flows in a folder."""
    numbers = ["case,number,mean,sd,least,greatest,runs"]
    series = ["case,run,time_s,window"]
    cases: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*_r*.csv.gz")):
        cases.setdefault(re.sub(r"_r\d+\.csv\.gz$", "", path.name), []).append(path)
    for case, paths in cases.items():
        found = [flow(path) for path in paths]
        numbers += over_runs(case, [run for _, run in found])
        for number, (windows, _) in enumerate(found, 1):
            series += [f"{case},{number},{t:.3f},{w:.0f}" for t, w in windows.thinned()]
    (out / "flows.csv").write_text("\n".join(numbers) + "\n")
    text = "\n".join(series) + "\n"
    (out / "windows.csv.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def write_reads(path: Path, out: Path) -> None:
    """Write reads.csv from the table of all repeats."""
    table = (
        pl.read_csv(path)
        .with_columns(case=pl.col("variant") + "_" + pl.col("rto_min"))
        .group_by("case", senders=pl.col("N"))
        .agg(
            pl.col("rounds").first(),
            repeats=pl.len(),
            sd=pl.col("goodput_mbps").std().round(2),
            least=pl.col("goodput_mbps").min().round(2),
            greatest=pl.col("goodput_mbps").max().round(2),
            **{name: pl.col(column).mean().round(2) for name, column in _READS.items()},
        )
        .sort("case", "senders")
    )
    table.write_csv(out / "reads.csv")


def write_pairs(folder: Path, out: Path) -> None:
    """Write pairs.csv of all pairs of flows in a folder."""
    runs: dict[str, list[dict[str, float]]] = {}
    for first in sorted(folder.glob("*_r*.a.csv.gz")):
        numbers: dict[str, float] = {}
        both = 0.0
        for name, path in (("first", first), ("second", Path(str(first).replace(".a.", ".b.")))):
            last = pl.read_csv(path).row(-1, named=True)
            goodput = last["bytes_acked"] * 8e-6 / _PAIR_S
            numbers[f"{name}-goodput"] = goodput
            numbers[f"{name}-retransmits"] = last["total_retrans"]
            both += goodput
        numbers["both-goodput"] = both
        case = re.sub(r"_r\d+\.a\.csv\.gz$", "", first.name)
        runs.setdefault(case, []).append(numbers)
    lines = ["case,number,mean,sd,least,greatest,runs"]
    for case, found in runs.items():
        lines += over_runs(case, found)
    (out / "pairs.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    source = Path(sys.argv[1])
    write_flows(source / "single_flow", HERE)
    write_reads(source / "incast.csv", HERE)
    write_pairs(source / "pairs", HERE)
