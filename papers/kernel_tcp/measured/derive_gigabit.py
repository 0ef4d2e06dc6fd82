"""Derives the tables of the measurement at up to 1 Gbit/s from the folder of its runs.

    python papers/kernel_tcp/measured/derive_gigabit.py FOLDER

The folder has the files that ../lab/measure.py wrote. ``gigabit_runs.csv.gz`` has a row for each
number of each run.
``gigabit_flows.csv`` and ``gigabit_reads.csv`` have the numbers that the claims compare, over runs.
``gigabit_lateness.csv`` tells how late packets left the switch in user space at each rate.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eastwest.claims.measures.of_study import module_of

HERE = Path(__file__).parent
_MEASURES = module_of(HERE.parent)
STEADY_S, Windows = _MEASURES.STEADY_S, _MEASURES.Windows
#: Bytes up to which goodput, drops and marks of a single flow are counted; simulated flows end
#: there.
BYTES = {
    "kernel500": 300_000_000,
    "switch500": 180_000_000,
    "kernel1000": 400_000_000,
    "switch1000": 400_000_000,
}
#: Linux's state of fast recovery (TCP_CA_Recovery), and the slow start threshold before any loss.
_RECOVERY, _UNSET = 3, 2**31 - 1
#: Column of gigabit_reads.csv → name of the counter that it shows.
_COUNTS = {
    "timeouts": "TcpExtTCPTimeouts",
    "spurious_timeouts": "TcpExtTCPSpuriousRTOs",
    "probes": "TcpExtTCPLossProbes",
    "retransmits": "TcpRetransSegs",
}
Numbers = dict[str, float]


def _samples(path: Path) -> list[dict[str, float]]:
    rows = csv.DictReader(gzip.decompress(path.read_bytes()).decode().splitlines())
    return [{key: float(value) for key, value in row.items()} for row in rows]


def _until(rows: Sequence[Mapping[str, float]], count: int, key: str) -> float:
    """Return the value of ``key`` when ``count`` bytes are acknowledged, interpolated."""
    after = next(at for at, row in enumerate(rows) if row["acked_bytes"] >= count)
    before, now = rows[after - 1], rows[after]
    share = (count - before["acked_bytes"]) / (now["acked_bytes"] - before["acked_bytes"])
    return before[key] + share * (now[key] - before[key])


def flow(rows: Sequence[Mapping[str, float]], count: int, marked: float = 0.0) -> Numbers:
    """Return the numbers of a flow that had the network alone, by name.

    ``marked`` counts the packets that the switch has marked in the whole run. The kernel's own
    count is larger: it counts all segments that an ACK with ECE acknowledges, and a receiver
    repeats ECE until it sees CWR.
    """
    windows = Windows(
        [row["time_s"] for row in rows],
        [row["window"] for row in rows],
        [math.inf if row["threshold"] == _UNSET else row["threshold"] for row in rows],
        [row["state"] == _RECOVERY for row in rows],
    )
    numbers = windows.numbers()
    steady = [row["srtt_us"] for row in rows if row["time_s"] > STEADY_S]
    # A flow that ended with fewer bytes is evaluated up to its own end.
    count = min(count, round(rows[-1]["acked_bytes"]))
    found = {
        "goodput-mbps": count * 8e-6 / _until(rows, count, "time_s"),
        "median-round-trip-ms": statistics.median(steady) / 1e3,
        "retransmissions": _until(rows, count, "resent"),
        "marks": marked * count / rows[-1]["acked_bytes"],
    }
    kept = ("largest-window", "slow-start-end", "median-window")
    return {**found, **{name: numbers[name] for name in kept if name in numbers}}


def pair(first: Sequence[Mapping[str, float]], second: Sequence[Mapping[str, float]]) -> Numbers:
    """Return the goodput of two flows, each over its own time, and of both together."""
    each = [rows[-1]["acked_bytes"] * 8e-6 / rows[-1]["time_s"] for rows in (first, second)]
    both = sum(rows[-1]["acked_bytes"] for rows in (first, second)) * 8e-6 / first[-1]["time_s"]
    return {
        "goodput-of-first-mbps": each[0],
        "goodput-of-second-mbps": each[1],
        "goodput-of-both-mbps": both,
    }


def numbers_of(run: Mapping[str, Any], folder: Path) -> Numbers:
    """Return all numbers of a run by name."""
    stem = f"{run['case']}_r{run['run']}"
    found: Numbers = {}
    paths = sorted(folder.glob(f"{stem}_*.csv.gz"))
    if len(paths) == 1 and not run["case"].startswith("rate_"):
        marked = run.get("switch", {}).get("marked", 0)
        found |= flow(_samples(paths[0]), BYTES[run["case"].partition("_")[0]], marked)
    elif len(paths) == 2:
        found |= pair(*map(_samples, paths))
    if "rounds_ms" in run:
        found |= {"goodput-mbps": run["goodput_mbps"], "spread-us": run["spread_us"]}
        found |= {name: run["tcp"][counter] for name, counter in _COUNTS.items()}
    if "srtt_us" in run:
        found |= {"mean-round-trip-us": run["srtt_us"], "least-round-trip-us": run["min_rtt_us"]}
        found["median-round-trip-us"] = run["median_srtt_us"]
    found["dropped"] = run["dropped"]
    if "switch" in run:
        names = ("within_50_us", "latest_us", "quick_gap_us")
        found |= {name.replace("_", "-"): run["switch"][name] for name in names}
    load = run["load"]
    for core, name in enumerate(("first", "second")):
        found[f"busy-{name}-core"] = load["busy"][core]
        found[f"stolen-{name}-core"] = load["stolen"][core]
    found["others"] = max(0.0, load["others"])
    found["lost-in-input-queues"] = load["lost_in_input_queues"]
    return found


def over_runs(case: str, runs: Sequence[Numbers]) -> Iterator[str]:
    """Yield lines of gigabit_flows.csv: mean, deviation, least and greatest of each number."""
    for name in runs[0]:
        values = [run[name] for run in runs if name in run]
        if len(values) == len(runs):
            spread = statistics.stdev(values) if len(values) > 1 else 0.0
            told = (statistics.mean(values), spread, min(values), max(values))
            yield ",".join([case, name, *(f"{value:.5g}" for value in told), str(len(runs))])


def reads_row(case: str, runs: Sequence[Numbers], rounds: int) -> str:
    """Return a line of gigabit_reads.csv."""
    goodput = [run["goodput-mbps"] for run in runs]
    kind, _, senders = case.rpartition("_")
    names = [*_COUNTS, "dropped", "spread-us", "within-50-us", "busy-first-core", "others"]
    means = [
        f"{statistics.mean(run[name] for run in runs):.5g}" if name in runs[0] else ""
        for name in names
    ]
    spread = statistics.stdev(goodput) if len(goodput) > 1 else 0.0
    told = (spread, min(goodput), max(goodput), statistics.mean(goodput))
    first = [kind, str(int(senders)), str(rounds), str(len(runs))]
    return ",".join([*first, *(f"{value:.2f}" for value in told), *means])


def lateness(cases: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    """Yield lines of gigabit_lateness.csv: for each rate and run, packets by how late they left."""
    edges = [10, 20, 30, 40, 50, 100, 200, 500]
    yield ",".join(["rate_mbps", "run", "packets", *(f"below_{edge}_us" for edge in edges)]) + (
        ",within_50_us,latest_us,goodput_mbps,others"
    )
    for name, runs in cases.items():
        for run in runs if name.startswith("rate_") else ():
            switch, late = run["switch"], run["switch"]["late_by_10_us"]
            below = [sum(late[: edge // 10]) for edge in edges]
            more = (switch["within_50_us"], switch["latest_us"], run["goodput"], run["others"])
            head = (f"{switch['rate_mbps']:g}", run["run"], sum(late))
            yield ",".join(map(str, (*head, *below, *more)))


def main(folder: Path) -> None:
    """Write all tables."""
    cases: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("*_r[0-9].json")):
        run = json.loads(path.read_text())
        run["others"] = max(0.0, run["load"]["others"])
        cases.setdefault(run["case"], []).append(run)
        if run["case"].startswith("rate_"):
            last = _samples(path.with_name(f"{path.stem}_a.csv.gz"))[-1]
            run["goodput"] = round(last["acked_bytes"] * 8e-6 / last["time_s"], 1)
    numbers = {case: [numbers_of(run, folder) for run in runs] for case, runs in cases.items()}
    flows = ["case,number,mean,sd,least,greatest,runs"]
    reads = [
        "case,senders,rounds,repeats,sd,least,greatest,goodput_mbps,timeouts,spurious_timeouts,"
        "probes,retransmits,drops,spread_us,within_50_us,busy_first_core,others"
    ]
    rows = ["case,run,at,number,value"]
    for case, runs in cases.items():
        rows += [
            f"{case},{run['run']},{run['at']},{name},{value:.6g}"
            for run, found in zip(runs, numbers[case], strict=True)
            for name, value in found.items()
        ]
        if "rounds_ms" in runs[0]:
            reads.append(reads_row(case, numbers[case], runs[0]["rounds"]))
        elif not case.startswith("rate_"):
            flows += over_runs(case, numbers[case])
    for name, lines in (
        ("gigabit_flows.csv", flows),
        ("gigabit_reads.csv", reads),
        ("gigabit_lateness.csv", list(lateness(cases))),
    ):
        (HERE / name).write_text("\n".join(lines) + "\n")
    # The largest table is compressed, without the time of compression.
    packed = gzip.compress("\n".join([*rows, ""]).encode(), mtime=0)
    (HERE / "gigabit_runs.csv.gz").write_bytes(packed)
    (HERE / "gigabit_machine.json").write_text((folder / "machine.json").read_text())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
