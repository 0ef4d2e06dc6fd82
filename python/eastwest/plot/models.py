"""Pictures of analytic models: goodput of synchronized reads, power of sleeping links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from eastwest.plot.numbers import record
from eastwest.plot.sheet import sheet
from eastwest.plot.style import color, log_axis, rate_ticks
from eastwest.units import exact_size

_SIZE = (10.9, 3.6)


def goodput(rows: Sequence[Mapping[str, float]]) -> Figure:
    """Draw the goodput of synchronized reads against the number of senders, by block size.

    Each block size has a line for goodput before the onset of incast, a dashed line for goodput
    after it, and a vertical line at the onset. ``rows`` has a mapping for each point of the model.
    """
    with sheet(_SIZE) as (figure, axes):
        for place, block in enumerate(dict.fromkeys(row["block_bytes"] for row in rows)):
            ours = sorted(
                (row for row in rows if row["block_bytes"] == block), key=lambda row: row["senders"]
            )
            senders = [row["senders"] for row in ours]
            label = f"{exact_size(block)}, onset at {ours[0]['onset_senders']:.0f}"
            columns = ("senders", "before_bps", "partial_bps", "onset_senders")
            record(axes, exact_size(block), {c: [row[c] for row in ours] for c in columns})
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
    """Draw power and mean wait of a link that can sleep against load, with a curve per policy.

    ``rows`` has ``policy``, ``load`` and ``power`` (shares, 0 to 1) and ``wait_us``; ``phy`` is the
    name of the physical layer.
    """
    with sheet(_SIZE, columns=2) as (figure, (power, wait)):
        power.set_label("power")
        wait.set_label("wait")
        for place, policy in enumerate(dict.fromkeys(row["policy"] for row in rows)):
            ours = [row for row in rows if row["policy"] == policy]
            loads = [100 * float(row["load"]) for row in ours]
            shares = [100 * float(row["power"]) for row in ours]
            power.plot(loads, shares, color=color(place), label=str(policy))
            wait.plot(loads, [float(row["wait_us"]) for row in ours], color=color(place))
            load = [float(row["load"]) for row in ours]
            for axes, column in ((power, "power"), (wait, "wait_us")):
                drawn = [float(row[column]) for row in ours]
                record(
                    axes, str(policy), {"load": load, column.replace("power", "power_share"): drawn}
                )
        power.set(ylabel="power, % of a link that never sleeps", ylim=(0, 103))
        power.set_title(f"{phy} under Poisson arrivals")
        wait.set_ylabel("mean wait, µs")
        log_axis(wait, "y")
        for axes in (power, wait):
            axes.set(xlabel="load, %", xlim=(0, 100))
        figure.legend(loc="outside right center")
    return figure
