"""Pictures of models of congestion control as control loops: stability, and queues over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from eastwest.models.closed_loop import Case, Wanted
from eastwest.models.delay import Linear, Numbers, margins, step_response
from eastwest.models.network import Network, Played
from eastwest.plot.numbers import record
from eastwest.plot.sheet import sheet
from eastwest.plot.style import BLUE, MUTED, ORANGE, color
from eastwest.units import span

#: Properties of matplotlib axes that show a queue in packets, from 0 on.
_QUEUE = {"ylabel": "queue, packets", "ylim": (0, None)}


def over_points(title: str, rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw two panels against the number of flows: the queue, and gain margin or cycle period.

    ``rows`` has a mapping for each point, with ``flows``, ``capacity_pps``, ``delay_us``, ``queue``
    and either ``gain_margin_db``, or ``lowest``, ``highest`` and ``period_us`` of a limit cycle.
    ``title`` is the name of the model.
    """
    cyclic = "amplitude" in rows[0]
    with sheet((10.9, 3.8), columns=2) as (figure, (queue, margin)):
        queue.set_label("queue")
        margin.set_label("period" if cyclic else "margin")
        keys = dict.fromkeys((row["capacity_pps"], row["delay_us"]) for row in rows)
        for place, (capacity, delay_us) in enumerate(keys):
            ours = [r for r in rows if (r["capacity_pps"], r["delay_us"]) == (capacity, delay_us)]
            flows = [row["flows"] for row in ours]
            label = f"{span(delay_us / 1e6)}, {capacity:,.0f} packets/s"
            look = {"color": color(place), "marker": "o", "ms": 3}
            ends = {f"{key}_packets": [row[key] for row in ours]
                    for key in ("queue", *(("lowest", "highest") if cyclic else ()))}  # fmt: skip
            record(queue, label, {"flows": flows, **ends})
            column = "period_us" if cyclic else "gain_margin_db"
            record(margin, label, {"flows": flows, column: [row[column] for row in ours]})
            queue.plot(flows, [row["queue"] for row in ours], label=label, **look)
            if cyclic:
                lows, highs = ([row[key] for row in ours] for key in ("lowest", "highest"))
                queue.fill_between(flows, lows, highs, color=color(place), alpha=0.15, lw=0)
                margin.plot(flows, [row["period_us"] for row in ours], **look)
            else:
                values = [np.nan if row["gain_margin_db"] is None else row["gain_margin_db"]
                          for row in ours]  # fmt: skip
                margin.plot(flows, values, **look)
        what = "mean queue, and its cycle" if cyclic else "equilibrium queue"
        queue.set(title=f"{title}: {what}", **_QUEUE)
        if cyclic:
            margin.set(ylabel="period, µs", ylim=(0, None), title="Period of the cycle")
        else:
            margin.axhline(0, color=MUTED, lw=1)
            label = "gain margin, dB (below 0: unstable)"
            margin.set(ylabel=label, title="Distance from oscillation")
        for axes in (queue, margin):
            axes.set(xlabel="flows", xscale="log")
            axes.xaxis.set_major_locator(FixedLocator(sorted({row["flows"] for row in rows})))
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        figure.legend(loc="outside lower center", ncols=4)
    return figure


def loop_response(title: str, loop: Linear, played: tuple[Numbers, Numbers]) -> Figure:
    """Draw the queue of the nonlinear model over time, and for a stable loop its step response.

    ``loop`` is the linear model; ``played`` has times in s and states of the nonlinear model, an
    array (times, states) with the queue in packets first.
    """
    found = margins(loop)
    if not found.stable:
        with sheet((10.9, 3.6)) as (figure, queue):
            _nonlinear(queue, f"{title}: unstable, nonlinear model over time", played)
        return figure
    with sheet((10.9, 3.6), columns=2) as (figure, (step, queue)):
        end_s = min(12 / -found.rightmost, 1000 * loop.delay_s)
        times, way = step_response(loop, end_s)
        step.set_label("step response")
        step.plot(times * 1e3, way * 1e3, color=BLUE)
        record(step, "", {"time_s": times, "additional_queue_packets": way * 1e3})
        step.set(xlabel="time, ms", ylabel="additional queue, packets")
        step.set_title(f"{title}: response to 1,000 more packets per second")
        _nonlinear(queue, "Nonlinear model over time", played)
    return figure


def _nonlinear(axes: Any, title: str, played: tuple[Numbers, Numbers]) -> None:
    """Draw the queue of a nonlinear model over time; ``played`` has times in s and states."""
    times, states = played
    axes.set_label("nonlinear model")
    axes.plot(times * 1e3, states[:, 0], color=ORANGE, lw=1)
    record(axes, "", {"time_s": times, "queue_packets": states[:, 0]})
    axes.set(xlabel="time, ms", title=title, **_QUEUE)


def cycle_over_time(played: tuple[Numbers, Numbers], threshold: float, rtt_s: float) -> Figure:
    """Draw DCTCP's queue in packets and its α over the last 40 round trips.

    ``played`` has times in s and an array (times, states); state 0 is the queue, state 2 is α.
    ``threshold`` is the marking threshold in packets.
    """
    times, states = played
    late = times > times[-1] - 40 * rtt_s
    with sheet((10.9, 3.4), columns=2) as (figure, (queue, alpha)):
        queue.set_label("queue")
        alpha.set_label("alpha")
        record(queue, "", {"time_s": times[late], "queue_packets": states[late, 0]})
        record(queue, "threshold", {"queue_packets": [threshold]})
        record(alpha, "", {"time_s": times[late], "alpha": states[late, 2]})
        queue.plot(times[late] * 1e3, states[late, 0], color=BLUE)
        queue.axhline(threshold, color=MUTED, lw=1, ls="--")
        queue.set(title="DCTCP: the queue oscillates around the threshold", **_QUEUE)
        alpha.plot(times[late] * 1e3, states[late, 2], color=ORANGE)
        alpha.set(ylim=(0, 1), ylabel="α", title="α, the senders' estimate of the share of marks")
        for axes in (queue, alpha):
            axes.set_xlabel("time, ms")
    return figure


def loops(cases: Sequence[Case], wanted: Wanted) -> Figure:
    """Draw the queue of each run over time, and the end of the last run with the predicted queue.

    ``wanted`` has the set point of the queue and the horizon of the prediction.
    """
    with sheet((10.9, 3.8), columns=2) as (figure, (queue, ahead)):
        queue.set_label("runs")
        ahead.set_label("end of the last run")
        for place, case in enumerate(cases):
            record(queue, case.name, {"time_s": case.times_s, "queue_packets": case.queue})
            queue.plot(case.times_s, case.queue, color=color(place), lw=0.8, label=case.name)
        queue.axhline(wanted.set_point, color=MUTED, lw=1, ls="--")
        record(queue, "set point", {"queue_packets": [wanted.set_point]})
        queue.set_title(f"Queue at {cases[0].link}; dashed: the set point")
        last = cases[-1]
        end = slice(-min(200, len(last.queue)), None)
        foreseen = f"foreseen {span(wanted.horizon_s)} before"
        for name, values in (("queue", last.queue), (foreseen, last.foreseen.queue)):
            record(ahead, name, {"time_s": last.times_s[end], "queue_packets": values[end]})
        ahead.plot(last.times_s[end], last.queue[end], color=BLUE, lw=1.2, label="queue")
        ahead.plot(
            last.times_s[end], last.foreseen.queue[end], color=ORANGE, lw=1.2, label=foreseen
        )
        ahead.set_title("Looking ahead: the end of the last run")
        for axes in (queue, ahead):
            axes.set(xlabel="time, s", **_QUEUE)
            axes.legend()
    return figure


def horizons(network: Network, played: Mapping[str, Played]) -> Figure:
    """Draw over time a network's first queue, and the rates of all flows through this queue.

    ``played`` has runs by name, one curve each. Rates are summed, as a share of the capacity.
    """
    with sheet((10.9, 3.8), columns=2) as (figure, (queue, rate)):
        queue.set_label("queue")
        rate.set_label("rates")
        first = network.queues[0]
        for place, (name, one) in enumerate(played.items()):
            look = {"color": color(place), "lw": 1.2, "label": name}
            queue.plot(one.times_s * 1e3, one.queues[:, 0], **look)
            shares = one.rates_pps @ network.routing[0] / first.capacity_pps
            rate.plot(one.times_s * 1e3, shares, **look)
            record(queue, name, {"time_s": one.times_s, "queue_packets": one.queues[:, 0]})
            record(rate, name, {"time_s": one.times_s, "share_of_link": shares})
        times_s = next(iter(played.values())).times_s
        load = [network.load(t, t + network.interval_s)[0] for t in times_s]
        load_share = np.array(load) / first.capacity_pps
        rate.plot(times_s * 1e3, load_share, color=MUTED, label="load")
        record(rate, "load", {"time_s": times_s, "share_of_link": load_share})
        record(queue, "set point", {"queue_packets": [first.set_point]})
        queue.axhline(first.set_point, color=MUTED, lw=1, ls="--")
        queue.set(title="Queue; dashed: the set point", ylabel="queue, packets")
        title = "Decided rates of all flows, and the other load"
        rate.set(title=title, ylabel="share of the link")
        for axes in (queue, rate):
            axes.set(xlabel="time, ms", ylim=(0, None))
            axes.legend()
    return figure
