"""Compares fluid models with packet simulations: equilibrium queues, and start of oscillation.

``python papers/control/compare.py`` runs all cases with three seeds each (two minutes), and writes
``results/red.csv``, ``results/dctcp.csv`` and a picture of each. The packet simulations are
scenarios/red.toml and dctcp.toml; the settings that a case changes are in its row.
"""

from __future__ import annotations

import csv
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator
from numpy.typing import NDArray

import eastwest as ew
from eastwest.models import delay
from eastwest.models.tcp_dctcp import Dctcp
from eastwest.models.tcp_red import Red, TcpRed
from eastwest.plot import picture
from eastwest.plot.style import MUTED, color, style

HERE = Path(__file__).parent
SEEDS = (1, 2, 3)
#: Bytes of a full packet with all framing on a link.
FRAME_BYTES = 1538
#: Cases of RED: number of flows, and one-way delay of a cable in µs; the steeper queue has the
#: narrower thresholds.
RED_CASES = [
    *((8, cable_us) for cable_us in (125, 250, 375, 500, 1000)),
    *((16, cable_us) for cable_us in (250, 500, 750, 1000, 2000)),
    *((32, cable_us) for cable_us in (1000, 2000, 4000)),
]
RED = Red(30, 330, 0.1, 0.002)
#: Cases of DCTCP: number of flows, rate in bit/s, one-way delay of a cable in µs, marking threshold
#: in packets.
DCTCP_CASES = [(n, 10e9, 25.0, 65) for n in (2, 4, 8, 16, 32)]
DCTCP_CASES += [(n, 10e9, 25.0, k) for n in (4, 16) for k in (20, 130)]
DCTCP_CASES += [(n, 1e9, 25.0, 20) for n in (2, 4, 8)]


def base_rtt_s(rate_bps: float, cable_us: float) -> float:
    """Return the round-trip time without a queue, in s.

    This is the delay of four cables, and two transmissions each of a packet and its ACK (90 B).
    """
    return 4 * cable_us * 1e-6 + 2 * (FRAME_BYTES + 90) * 8 / rate_bps


def queue_of(
    scenario: str, settings: dict[str, Any], flows: int, seed: int, warm_s: float
) -> NDArray[np.float64]:
    """Return the number of packets that wait before the receiver over time, after the warm-up."""
    settings = {
        "fabric.hosts": flows + 1,
        "workload.flows.file": f"flows-{flows}.csv",
        **settings,
    }
    with tempfile.TemporaryDirectory() as folder:
        result = ew.run(
            HERE / "scenarios" / scenario, set=settings, seed=seed, out=Path(folder) / "r"
        )
        return waiting(result, f"switch0->h{flows}", warm_s)


def waiting(result: ew.Result, link: str, warm_s: float) -> NDArray[np.float64]:
    """Return the number of packets that wait for a link at each sample, after the warm-up."""
    times = result.traffic["time_s"].unique().sort().to_numpy()
    number = result.links["name"].to_list().index(link)
    rows = result.queues.filter(result.queues["link"] == number)
    queue = np.zeros(len(times))
    queue[np.searchsorted(times, rows["time_s"].to_numpy() - 1e-9)] = rows["packets"].to_numpy()
    return np.asarray(queue[times > warm_s], dtype=np.float64)


def red_rows() -> list[dict[str, Any]]:
    """Return the rows for RED: the models' equilibrium and stability, and the simulated values."""
    rows = []
    for flows, cable_us in RED_CASES:
        model = TcpRed(flows, 1e9 / 8 / FRAME_BYTES, base_rtt_s(1e9, cable_us), RED)
        queue, window, _, rtt = model.equilibrium()
        found = delay.margins(model.linear())
        times, states = model.play(min(5.0, 600 * rtt))
        late = states[len(times) // 2 :, 0]
        settings = {"fabric.host_delay": f"{cable_us} us"}
        runs = [queue_of("red.toml", settings, flows, seed, 1.0) for seed in SEEDS]
        rows.append(
            {
                "flows": flows,
                "base_rtt_ms": round(1e3 * model.base_rtt_s, 4),
                "window": round(window, 2),
                "model_queue": round(queue, 2),
                "model_queue_pausing": round(pausing(model), 2),
                "stable": found.stable,
                "gain_margin_db": round(found.gain_db, 2),
                "model_deviation": round(float(late.std()), 2),
                "packet_queue": round(statistics.mean(float(run.mean()) for run in runs), 2),
                "packet_deviation": round(statistics.mean(float(run.std()) for run in runs), 2),
                "packet_empty": round(statistics.mean(float((run == 0).mean()) for run in runs), 4),
            }
        )
        print(rows[-1], flush=True)
    return rows


def pausing(model: TcpRed) -> float:
    """Return the equilibrium queue if windows also pause for a round trip after a cut, like TCP.

    The model is Ẇ = (1 − p W)/R − p W²/(2R), so that p = 2/(W² + 2W) instead of 2/W².
    """
    low, high = model.red.least, 2 * model.red.most
    for _ in range(100):
        queue = (low + high) / 2
        rtt_s = model.base_rtt_s + queue / model.capacity_pps
        window = rtt_s * model.capacity_pps / model.flows
        enough = model.red.of(queue) > 2 / (window**2 + 2 * window)
        low, high = (low, queue) if enough else (queue, high)
    return high


def dctcp_rows() -> list[dict[str, Any]]:
    """Return the rows for DCTCP: the limit cycle of the models, and that of the simulation."""
    rows = []
    for flows, rate_bps, cable_us, threshold in DCTCP_CASES:
        base = base_rtt_s(rate_bps, cable_us)
        model = Dctcp(flows, rate_bps / 8 / FRAME_BYTES, base, threshold)
        cycle = model.cycle()
        described, _ = model.described()
        settings = {
            "fabric.host_delay": f"{cable_us} us",
            "fabric.host_rate": f"{rate_bps / 1e9:g} Gbit/s",
            "fabric.queue.threshold": f"{threshold} packets",
        }
        runs = [queue_of("dctcp.toml", settings, flows, seed, 0.1) for seed in SEEDS]
        rows.append(
            {
                "flows": flows,
                "rate_gbps": rate_bps / 1e9,
                "base_rtt_us": round(1e6 * base, 2),
                "threshold": threshold,
                "window": round(model.equilibrium()[0], 2),
                "model_queue": round(cycle.mean, 2),
                "model_amplitude": round(cycle.amplitude, 2),
                "described_amplitude": round(described, 2),
                "model_empty": round(cycle.empty, 4),
                "packet_queue": round(statistics.mean(float(run.mean()) for run in runs), 2),
                "packet_amplitude": round(
                    statistics.mean(
                        float(np.quantile(run, 0.99) - np.quantile(run, 0.01)) for run in runs
                    ),
                    2,
                ),
                "packet_empty": round(statistics.mean(float((run == 0).mean()) for run in runs), 4),
            }
        )
        print(rows[-1], flush=True)
    return rows


def draw() -> None:
    """Draw the pictures of both tables."""
    red, dctcp = (pl.read_csv(HERE / "results" / f"{name}.csv") for name in ("red", "dctcp"))
    with style():
        figure = Figure(figsize=(10.9, 3.6), layout="constrained")
        queue, swing = figure.subplots(1, 2)
        for place, ((flows,), rows) in enumerate(red.group_by("flows", maintain_order=True)):
            look = {"color": color(place), "ms": 4}
            rtt = rows["base_rtt_ms"]
            queue.plot(rtt, rows["model_queue"], "-", label=f"{flows} flows, model", **look)
            queue.plot(rtt, rows["packet_queue"], "o", label=f"{flows} flows, packets", **look)
            share = rows["packet_deviation"] / rows["packet_queue"]
            swing.plot(rows["gain_margin_db"], share, "o", label=f"{flows} flows", **look)
        queue.set_xlabel("round trip without queue, ms")
        queue.set_ylabel("mean queue, packets")
        queue.set_title("RED: queue at rest, and of packets")
        queue.set_xscale("log")
        queue.xaxis.set_major_locator(FixedLocator([0.5, 1, 2, 4, 8, 16]))
        queue.xaxis.set_minor_locator(NullLocator())
        queue.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        queue.set_ylim(bottom=0)
        queue.legend()
        swing.axvline(0, color=MUTED, lw=1)
        swing.axhline(0.5, color=MUTED, lw=1, ls="--")
        swing.set_xlabel("gain margin of the model, dB (left of 0: unstable)")
        swing.set_ylabel("deviation of packets' queue over its mean")
        swing.set_title("RED: where it begins to swing")
        swing.legend()
        picture.save(figure, HERE / "results" / "red.png")
        figure = Figure(figsize=(10.9, 3.6), layout="constrained")
        mean, size = figure.subplots(1, 2)
        for axes, ours, theirs in (
            (mean, "model_queue", "packet_queue"),
            (size, "model_amplitude", "packet_amplitude"),
        ):
            most = 1.1 * max(dctcp[ours].max(), dctcp[theirs].max())
            axes.plot([0, most], [0, most], color=MUTED, lw=1)
            axes.fill_between([0, most], [0, 0.9 * most], [0, 1.1 * most], color=MUTED, alpha=0.15)
            for place, (words, rows) in enumerate(
                (
                    ("windows of 9 and more", dctcp.filter(pl.col("window") >= 9)),
                    ("smaller windows", dctcp.filter(pl.col("window") < 9)),
                )
            ):
                axes.plot(rows[ours], rows[theirs], "o", color=color(place), label=words, ms=5)
            axes.set_xlim(0, most)
            axes.set_ylim(0, most)
            axes.set_xlabel("model, packets")
            axes.set_ylabel("packet simulation, packets")
            axes.legend()
        mean.set_title("DCTCP: mean queue (shaded: within 10 %)")
        size.set_title("DCTCP: from lowest to highest")
        picture.save(figure, HERE / "results" / "dctcp.png")


def write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows as CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    write(HERE / "results" / "red.csv", red_rows())
    write(HERE / "results" / "dctcp.csv", dctcp_rows())
    draw()
