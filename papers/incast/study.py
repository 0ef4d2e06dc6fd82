"""Runs the sweeps of study/, which go beyond the study's sources, and draws their results.

    python papers/incast/study.py            # all of them: some minutes
    python papers/incast/study.py outcast    # one
    python papers/incast/study.py --draw     # the pictures again, from the kept numbers

Each sweep is a file of its own that ``eastwest sweep`` runs as well; runs in the store are not
simulated again. The folder results/study has one Parquet file per sweep with means and 95 %
intervals over seeds, and the pictures (pictures.py).
"""

from __future__ import annotations

import functools
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import measures as curves
import polars as pl

import eastwest as ew
from eastwest.claims.measures import Data
from eastwest.cli.study import interval, kept_table
from eastwest.plot.picture import save
from eastwest.plot.style import style
from pictures import CAUSE, GOODPUT, NAMES, PICTURES, TIMEOUTS, reads_of_kernel_tcp

HERE = Path(__file__).resolve().parent
KEPT = HERE / "results" / "study"

#: For each sweep, the index of the axis whose rows of settings have names.
PLACE = {"mechanisms": 0, "rates": 1, "spurious": 1, "outcast": 1, "alpha": 0}


def run(name: str) -> pl.DataFrame:
    """Run a sweep; return its numbers as columns settings, metric, n, mean, low, high."""
    if name == "kernel":  # This sweep's runs are stored by another study.
        return reads_of_kernel_tcp()
    with tempfile.TemporaryDirectory(prefix="eastwest-study-") as folder:
        found = ew.sweep(HERE / "study" / f"{name}.toml", out=Path(folder) / name, yes=True)
        if found.failures:
            raise SystemExit(f"{name}: {len(found.failures)} runs failed: {found.failures[0]}")
        if name.startswith("outcast"):
            return labelled(name, found, shares(found))
        if name == "alpha":
            return labelled(name, found, alphas(found))
        wanted = pl.col("metric").is_in([GOODPUT, TIMEOUTS, "tcp.spurious_timeouts"])
        wanted |= pl.col("metric").str.starts_with(CAUSE)
        points = found.points.filter(wanted).select("point", "metric", "n", "mean", "low", "high")
        if name == "causes":
            points = pl.concat([points, victims(found)])
        return labelled(name, found, points)


def labelled(name: str, sweep: ew.SweepResult, points: pl.DataFrame) -> pl.DataFrame:
    """Return ``points`` with columns of settings before its numbers.

    Named rows have their names.
    """
    axes = axes_of(name)
    sizes = [len(axis["values"]) for axis in axes]
    rows = []
    for point in points["point"].unique().sort():
        settings, rest = {}, int(point)
        for place in reversed(range(len(axes))):
            rest, row = divmod(rest, sizes[place])
            path, value = axes[place]["path"], axes[place]["values"][row]
            if PLACE.get(name) == place:
                path, value = "tcp", NAMES[name][row]
            settings[short(path)] = short_value(value)
        rows.append({"point": point, **dict(reversed(settings.items()))})
    frame = pl.DataFrame(rows, schema_overrides={"point": points.schema["point"]})
    return frame.join(points, on="point").sort("point", "metric").drop("point")


def axes_of(name: str) -> list[dict[str, Any]]:
    """Return the axes of a sweep file, as they are written."""
    text = (HERE / "study" / f"{name}.toml").read_text(encoding="utf-8")
    axes: list[dict[str, Any]] = tomllib.loads(text)["axis"]
    return axes


def short(path: str | list[str]) -> str:
    """Return the last step of a path."""
    return (path if isinstance(path, str) else path[0]).split(".")[-1]


def short_value(value: Any) -> Any:
    """Return a value for a table: a queue by its kind, a list of hosts by their number."""
    if isinstance(value, dict):
        return value["kind"]
    if isinstance(value, list):
        ends = [int(end[1:]) for end in value[0].split("..")]
        return ends[-1] - ends[0] + 1
    return value


def frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Return a frame of ``rows``, with the column types of a sweep's table of points."""
    types = {"point": pl.UInt32, "n": pl.UInt32, "mean": pl.Float64, "low": pl.Float64}
    return pl.DataFrame(rows, schema_overrides={**types, "high": pl.Float64})


def shares(sweep: ew.SweepResult) -> pl.DataFrame:
    """Return goodput of near and far senders in a frame with one row per run.

    Columns: ``point``, ``metric``, ``seed``, ``near_bps``, ``far_bps`` and ``near_over_fair``
    (near over an equal share). Runs are not averaged, because in some one port captures the other.
    """
    rows = []
    for row in sweep.runs.sort("point", "seed").iter_rows(named=True):
        near, far, ratio = share(sweep.run(row["point"], row["seed"]))
        numbers = {"near_bps": near, "far_bps": far, "near_over_fair": ratio}
        rows.append({"point": row["point"], "metric": "share", "seed": row["seed"], **numbers})
    return pl.DataFrame(rows, schema_overrides={"point": pl.UInt32})


def share(result: ew.Result) -> tuple[float, float, float]:
    """Return the mean throughput of near and far senders in bit/s, and near over an equal share."""
    up = result.links.filter(pl.col("tier") == "host-up").select("src", "bytes")
    sent = dict(up.iter_rows())
    lost = result.events.filter(pl.col("what") == "drop").group_by("src")
    drops = dict(lost.agg(pl.col("bytes").sum() + 90 * pl.len()).iter_rows())
    seconds = float(result.summary["simulated_s"])
    senders = range(1, result.links.filter(pl.col("tier") == "host-up").height)
    got = {h: 8 * (sent[f"h{h}"] - drops.get(h, 0)) / seconds for h in senders}
    busy = {h: rate for h, rate in got.items() if sent[f"h{h}"] > 0}
    near = [rate for h, rate in busy.items() if h < 25]
    far = [rate for h, rate in busy.items() if h >= 25]
    fair = sum(near + far) / len(near + far)
    return sum(near) / len(near), sum(far) / len(far), sum(near) / len(near) / fair


def alphas(sweep: ew.SweepResult) -> pl.DataFrame:
    """Return α of equation (4), the mean number of timeouts per block, for each point."""
    rows = []
    points = sweep.runs.sort("point").unique("point", keep="first", maintain_order=True)
    for row in points.iter_rows(named=True):
        if row["fabric.hosts"] != 3:
            continue
        size, profile = row["workload.reads.block_bytes"], row["tcp.profile"]
        at = {"workload.reads.block_bytes": size, "tcp.profile": profile}
        block = 1000 * int(size.split()[0])
        found = curves.alpha(Data(sweep), at, block, 4, 16)
        numbers = {"n": found.seeds, "mean": found.value, "low": found.low, "high": found.high}
        rows.append({"point": row["point"], "metric": "alpha", **numbers})
    return frame(rows)


def victims(sweep: ew.SweepResult) -> pl.DataFrame:
    """Return the shares of blocks and of senders' parts that meet a timeout, for each point."""
    rows = []
    found: dict[int, dict[str, list[float]]] = {}
    for row in sweep.runs.sort("point", "seed").iter_rows(named=True):
        result = sweep.run(row["point"], row["seed"])
        parts = result.flows.filter((pl.col("purpose") == "incast") & (pl.col("dst") == 0))
        rounds = result.rounds.select("round", "started_s").sort("started_s")
        parts = parts.sort("start_s").join_asof(rounds, left_on="start_s", right_on="started_s")
        hit = parts.filter(pl.col("timeouts") > 0)
        by_server = hit.group_by("src").len()["len"]
        numbers = found.setdefault(row["point"], {})
        numbers.setdefault("blocks_hit", []).append(hit["round"].n_unique() / rounds.height)
        numbers.setdefault("parts_hit", []).append(hit.height / parts.height)
        largest = max(by_server, default=0) / hit.height if hit.height else 0.0
        numbers.setdefault("largest_server_share", []).append(largest)
    for point, numbers in found.items():
        rows += [
            {"point": point, "metric": metric, **interval(values)}
            for metric, values in numbers.items()
        ]
    return frame(rows)


def main(arguments: Sequence[str]) -> None:
    """Run and draw the sweeps named, or all of them."""
    only_draw = "--draw" in arguments
    names = [name for name in arguments if name != "--draw"] or list(PICTURES)
    unknown = [name for name in names if name not in PICTURES]
    if unknown:
        raise SystemExit(f"unknown sweep {', '.join(unknown)}; allowed: {', '.join(PICTURES)}")
    for name in names:
        made = None if only_draw else functools.partial(run, name)
        table = kept_table(KEPT / f"{name}.parquet", made)
        for picture, draw in PICTURES[name].items():
            with style():
                save(draw(table), KEPT / f"{picture}.png", dpi=110)
        print(name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
