"""Pictures of analytic models: goodput of synchronized reads, power of sleeping links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from eastwest.plot.style import color, log_axis, rate_ticks, sheet
from eastwest.units import exact_size

_SIZE = (10.9, 3.6)


def goodput(rows: Sequence[Mapping[str, float]]) -> Figure:
    """Draw goodput against senders before and after the onset of incast, by block size."""
    with sheet(_SIZE) as (figure, axes):
        for place, block in enumerate(dict.fromkeys(row["block_bytes"] for row in rows)):
            ours = sorted(
                (row for row in rows if row["block_bytes"] == block), key=lambda row: row["senders"]
            )
            senders = [row["senders"] for row in ours]
            label = f"{exact_size(block)}, onset at {ours[0]['onset_senders']:.0f}"
            axes.plot(senders, [r["before_bps"] for r in ours], color=color(place), label=label)
            axes.plot(senders, [row["partial_bps"] for row in ours], "--", color=color(place))
            axes.axvline(ours[0]["onset_senders"], color=color(place), lw=0.8, ls=":")
        title = "Synchronized reads: before the onset (lines) and after it (dashes)"
        axes.set(xlabel="senders", ylabel="goodput", title=title)
        log_axis(axes, "y")
        rate_ticks(axes)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def sleeping(rows: Sequence[Mapping[str, float | str]], phy: str) -> Figure:
    """Draw power and mean wait against load, one colour for each policy."""
    with sheet(_SIZE, columns=2) as (figure, (power, wait)):
        for place, policy in enumerate(dict.fromkeys(row["policy"] for row in rows)):
            ours = [row for row in rows if row["policy"] == policy]
            loads = [100 * float(row["load"]) for row in ours]
            shares = [100 * float(row["power"]) for row in ours]
            power.plot(loads, shares, color=color(place), label=str(policy))
            wait.plot(loads, [float(row["wait_us"]) for row in ours], color=color(place))
        power.set(ylabel="power, % of a link that never sleeps", ylim=(0, 103))
        power.set_title(f"{phy} under Poisson arrivals")
        wait.set_ylabel("mean wait, µs")
        log_axis(wait, "y")
        for axes in (power, wait):
            axes.set(xlabel="load, %", xlim=(0, 100))
        figure.legend(loc="outside right center")
    return figure
