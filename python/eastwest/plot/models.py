"""Pictures of analytic models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from eastwest.plot.style import color, log_axis, rate_ticks, style
from eastwest.units import size


def goodput(rows: Sequence[Mapping[str, float]]) -> Figure:
    """Draw goodput against senders before and after the onset of incast, by block size."""
    with style():
        figure = Figure(figsize=(10.9, 3.6), layout="constrained")
        axes = figure.subplots()
        for place, block in enumerate(dict.fromkeys(row["block_bytes"] for row in rows)):
            ours = sorted(
                (row for row in rows if row["block_bytes"] == block), key=lambda row: row["senders"]
            )
            senders = [row["senders"] for row in ours]
            label = f"{size(block)}, onset at {ours[0]['onset_senders']:.0f}"
            axes.plot(senders, [r["before_bps"] for r in ours], color=color(place), label=label)
            axes.plot(senders, [row["partial_bps"] for row in ours], "--", color=color(place))
            axes.axvline(ours[0]["onset_senders"], color=color(place), lw=0.8, ls=":")
        axes.set_xlabel("senders")
        axes.set_ylabel("goodput")
        axes.set_title("Synchronized reads: before the onset (lines) and after it (dashes)")
        log_axis(axes, "y")
        rate_ticks(axes)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def sleeping(rows: Sequence[Mapping[str, float | str]], phy: str) -> Figure:
    """Draw power and mean wait against load, one colour for each policy."""
    with style():
        figure = Figure(figsize=(10.9, 3.6), layout="constrained")
        power, wait = figure.subplots(1, 2)
        for place, policy in enumerate(dict.fromkeys(row["policy"] for row in rows)):
            ours = [row for row in rows if row["policy"] == policy]
            loads = [100 * float(row["load"]) for row in ours]
            shares = [100 * float(row["power"]) for row in ours]
            power.plot(loads, shares, color=color(place), label=str(policy))
            wait.plot(loads, [float(row["wait_us"]) for row in ours], color=color(place))
        power.set_ylabel("power, % of a link that never sleeps")
        power.set_ylim(0, 103)
        wait.set_ylabel("mean wait, µs")
        log_axis(wait, "y")
        for axes in (power, wait):
            axes.set_xlabel("load, %")
            axes.set_xlim(0, 100)
        power.set_title(f"{phy} under Poisson arrivals")
        figure.legend(loc="outside right center")
    return figure
