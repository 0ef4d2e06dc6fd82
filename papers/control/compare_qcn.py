"""Compares the fluid model of QCN with packet simulations: equilibrium queue, and oscillation.

``python papers/control/compare_qcn.py`` runs all cases with three seeds each, and writes
``results/qcn.csv`` and a picture of it.
"""

from __future__ import annotations

import re
import statistics
import tempfile
from pathlib import Path
from typing import Any

import compare
import numpy as np
import polars as pl
from matplotlib.figure import Figure
from numpy.typing import NDArray

import eastwest as ew
from eastwest.models import delay
from eastwest.models.qcn import Qcn
from eastwest.plot import picture
from eastwest.plot.style import MUTED, color, style

FRAME_BYTES = 1500
RATE_BPS = 10e9
#: Bytes of a congestion notification message; then numbers of flows, and one-way delays of a cable
#: in µs.
CNM_BYTES = 64
FLOWS = (2, 4, 8, 16, 32)
CABLES_US = (5, 15, 50, 100, 125, 150, 200)
#: Time between the starts of two sources in s: they start one after the other.
APART_S = 0.010
#: Lower end of the axis of stability margins, in dB.
_LEAST_DB = -25
#: Duration of a run in s, and length of its last part that is analysed in s.
END_S, LAST_S = 3.0, 1.5


def offered(flows: int) -> float:
    """Return the sum of the rates that sources offer, as a share of the link rate.

    The sum must be only a little above 1: if a few sources start at the rate of the link, they fill
    the queue within one delay, get a dozen notifications, and recover only after minutes, because
    the timer is off. With many flows it must be larger: a source's rate is often above its fair
    share then, and its backlog must last.
    """
    return 1.1 if flows <= 8 else 1.5


def feedback_s(cable_us: float) -> float:
    """Return the feedback delay in s, from a sample of the queue until its effect.

    This is the delay of two cables and two transmissions.
    """
    return 2 * cable_us * 1e-6 + (FRAME_BYTES + CNM_BYTES) * 8 / RATE_BPS


def scenario(flows: int) -> str:
    """Return the scenario with this number of sources, each a workload of its own."""
    text = (compare.HERE / "scenarios" / "qcn.toml").read_text(encoding="utf-8")
    head, _, source = text.partition("[[workload]]\n")
    head = head.replace("hosts = 3", f"hosts = {flows + 1}")
    source = source.replace('"h2"', f'"h{flows}"')
    source = source.replace("load = 1", f"load = {offered(flows) / flows:.6f}")
    each = []
    for number in range(flows):
        one = re.sub('"h0"', f'"h{number}"', source)
        each.append(
            f'[[workload]]\nstart = "{1e6 * APART_S * number + 0.137 * number:.3f} us"\n{one}'
        )
    return head + "\n".join(each)


def queue_of(flows: int, cable_us: float, seed: int) -> NDArray[np.float64]:
    """Return the number of packets that wait before the receiver, in the last part of a run."""
    settings = {"fabric.host_delay": f"{cable_us:g} us", "duration": f"{END_S:g} s"}
    with tempfile.TemporaryDirectory() as folder:
        result = ew.run(scenario(flows), set=settings, seed=seed, out=Path(folder) / "r")
        return compare.waiting(result, f"switch0->h{flows}", END_S - LAST_S)


def rows() -> list[dict[str, Any]]:
    """Return the rows: the model's equilibrium, stability, oscillation; and simulated values."""
    found = []
    for flows in FLOWS:
        for cable_us in CABLES_US:
            model = Qcn(flows, RATE_BPS / 8 / FRAME_BYTES, feedback_s(cable_us))
            margins = delay.margins(model.linear())
            times, states = model.play(0.5, offered(flows))
            late = states[times > 0.3, 0]
            runs = [queue_of(flows, cable_us, seed) for seed in compare.SEEDS]
            mean = statistics.mean(float(run.mean()) for run in runs)
            found.append(
                {
                    "flows": flows,
                    "delay_us": round(1e6 * model.delay_s, 3),
                    "model_queue": round(model.equilibrium()[0], 3),
                    "stable": margins.stable,
                    "gain_margin_db": round(margins.gain_db, 2),
                    "model_mean": round(float(late.mean()), 2),
                    "model_deviation": round(float(late.std()), 2),
                    "packet_queue": round(mean, 2),
                    "packet_low": round(min(float(run.mean()) for run in runs), 2),
                    "packet_high": round(max(float(run.mean()) for run in runs), 2),
                    "packet_deviation": round(statistics.mean(float(run.std()) for run in runs), 2),
                    "packet_empty": round(
                        statistics.mean(float((run == 0).mean()) for run in runs), 4
                    ),
                }
            )
            print(found[-1], flush=True)
    return found


def draw() -> None:
    """Draw the picture of the table."""
    table = pl.read_csv(compare.HERE / "results" / "qcn.csv")
    with style():
        figure = Figure(figsize=(10.9, 3.6), layout="constrained")
        queue, swing = figure.subplots(1, 2)
        for place, ((flows,), part) in enumerate(table.group_by("flows", maintain_order=True)):
            look = {"color": color(place), "ms": 4}
            queue.plot(part["delay_us"], part["model_mean"], "-", **look)
            queue.plot(part["delay_us"], part["packet_queue"], "o", label=f"{flows} flows", **look)
            share = part["packet_deviation"] / part["packet_queue"]
            margin = part["gain_margin_db"].clip(_LEAST_DB)
            swing.plot(margin, share, "o", label=f"{flows} flows", **look)
        queue.axhline(22, color=MUTED, lw=1, ls="--")
        queue.set_xlabel("delay of feedback, µs")
        queue.set_ylabel("mean queue, packets")
        queue.set_title("QCN: queue (lines: the nonlinear model; dashed: at rest)")
        queue.set_ylim(bottom=0)
        queue.legend()
        swing.axvline(0, color=MUTED, lw=1)
        swing.axhline(0.5, color=MUTED, lw=1, ls="--")
        swing.set_xlabel(
            f"gain margin of the model, dB (left of 0: unstable; {_LEAST_DB} and less)"
        )
        swing.set_ylabel("deviation of packets' queue over its mean")
        swing.set_title("QCN: where it begins to swing")
        swing.legend()
        picture.save(figure, compare.HERE / "results" / "qcn.png")


if __name__ == "__main__":
    compare.write(compare.HERE / "results" / "qcn.csv", rows())
    draw()
