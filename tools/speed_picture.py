"""Draws the newest record that compares Eastwest with other simulators in scenario S1.

``python tools/speed_picture.py OUT`` draws two panels from ``benches/results/*-peers.json``, which
``eastwest bench --against … --json`` writes: packet-hops per second of CPU time of every simulator,
and the ratio of Eastwest to each other one, with the least and greatest of all rounds.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from eastwest.plot import picture
from eastwest.plot.style import BLUE, INK, ORANGE, log_axis, style

RESULTS = Path(__file__).resolve().parent.parent / "benches" / "results"


def main() -> int:
    """Draw the picture into the file in the arguments."""
    record = json.loads(max(RESULTS.glob("*-peers.json")).read_text(encoding="utf-8"))
    with style():
        picture.save(draw(record), Path(sys.argv[1]))
    return 0


def draw(record: dict[str, Any]) -> Figure:
    """Return a figure with speeds (left) and ratios (right) on logarithmic axes."""
    figure = Figure(figsize=(9.8, 2.7), layout="constrained")
    speeds, ratios = figure.subplots(1, 2)
    rates: dict[str, list[float]] = {}
    # Records before 2026-11-29 have the runs as "s1".
    for run in record["runs"] if "runs" in record else record["s1"]:
        rates.setdefault(run["simulator"], []).append(run["hops_per_cpu_s"] / 1e6)
    order = sorted(rates, key=lambda name: statistics.median(rates[name]))
    for place, name in enumerate(order):
        middle = statistics.median(rates[name])
        ink = ORANGE if name == "Eastwest" else BLUE
        speeds.barh(place, middle, color=ink, height=0.62)
        speeds.plot([min(rates[name]), max(rates[name])], [place, place], color=INK, lw=1)
        speeds.text(1.25 * max(rates[name]), place, f"{middle:.3g}", va="center", color=INK)
    speeds.set_yticks(range(len(order)), order)
    log_axis(speeds, "x")
    speeds.set_xlim(0.05, 60)
    speeds.set_xlabel("million packet-hops per second of CPU time")
    speeds.set_title(f"S1 on one core, {record['date']}")
    found = sorted(record["ratios"], key=lambda ratio: ratio["hops_per_cpu_s"]["median"])
    for place, ratio in enumerate(found):
        spread = ratio["hops_per_cpu_s"]
        ratios.barh(place, spread["median"], color=ORANGE, height=0.62)
        ratios.plot([spread["min"], spread["max"]], [place, place], color=INK, lw=1)
        text = f"{spread['median']:.3g} ×"
        ratios.text(1.15 * spread["max"], place, text, va="center", color=INK)
    ratios.set_yticks(range(len(found)), [ratio["against"] for ratio in found])
    log_axis(ratios, "x")
    ratios.set_xlim(1, 500)
    ratios.set_xlabel("times as many packet-hops per CPU-second")
    ratios.set_title("Eastwest against the others")
    return figure


if __name__ == "__main__":
    sys.exit(main())
