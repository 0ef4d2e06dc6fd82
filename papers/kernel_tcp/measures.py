"""Measures windows of a sender and goodput of reads, to compare with a measured kernel.

``Windows`` are samples of the values that a kernel reports of a connection (``TCP_INFO``) every 5
ms. A simulated sender is sampled in the same way, so that peaks, thresholds and periods are
comparable. papers/kernel_tcp/measured/derive.py uses the class for measured flows,
papers/kernel_tcp/ns3/run.py for flows of ns-3. The sawtooth begins after the recoveries of slow
start, at 1.5 s.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eastwest.claims.measures import (
    Data,
    Measured,
    MeasureError,
    Row,
    Settings,
    measure,
    run_value,
)
from eastwest.results import Result
from eastwest.stats import mean_interval

#: Sampling interval of windows in s, as in the measurement.
SAMPLE_S = 0.005
#: Beginning of the sawtooth in s; before it, a flow recovers from slow start.
SAWTOOTH_S = 1.5
#: Beginning of the time over which medians are computed, in s.
STEADY_S = 2.0
#: A figure has every sample up to this time in s; after it, every fourth sample.
_DENSE_S = 1.0
_THIN = 4
_RUN_S = 10.0


@dataclass(frozen=True)
class Windows:
    """A sender's state every 5 ms from its first packet on, windows in segments."""

    times_s: Sequence[float]
    segments: Sequence[float]
    #: Slow start thresholds in segments at the samples; infinite before the first loss.
    thresholds: Sequence[float]
    #: Whether the sender was in fast recovery, at each sample.
    recovering: Sequence[bool]

    def _cuts(self) -> list[int]:
        """Return the numbers of the samples at which a fast recovery of the sawtooth began."""
        pairs = itertools.pairwise(self.recovering)
        begun = [at for at, (before, now) in enumerate(pairs, 1) if now and not before]
        return [at for at in begun if self.times_s[at] > SAWTOOTH_S]

    def numbers(self) -> dict[str, float]:
        """Return the compared numbers by name; numbers that the flow does not have are left out."""
        cuts = self._cuts()
        found = {"largest-window": max(self.segments, default=math.nan)}
        if True in self.recovering:
            found["first-recovery-s"] = self.times_s[list(self.recovering).index(True)]
        started = [threshold for threshold in self.thresholds if math.isfinite(threshold)]
        if started:
            found["slow-start-end"] = started[0]
        if len(cuts) > 1:
            found["sawtooth-peak"] = statistics.mean(self.segments[at - 1] for at in cuts)
            found["sawtooth-threshold"] = statistics.mean(self.thresholds[at] for at in cuts)
            found["sawtooth-period-s"] = (self.times_s[cuts[-1]] - self.times_s[cuts[0]]) / (
                len(cuts) - 1
            )
        steady = [at for at, time_s in enumerate(self.times_s) if time_s > STEADY_S]
        if steady:
            found["median-window"] = statistics.median(self.segments[at] for at in steady)
        return found

    def thinned(self) -> list[tuple[float, float]]:
        """Return times and windows for a figure: rows where the window changed, and the last."""
        rows: list[tuple[float, float]] = []
        last = len(self.times_s) - 1
        for at, (time_s, window) in enumerate(zip(self.times_s, self.segments, strict=True)):
            shown = time_s <= _DENSE_S or at % _THIN == 0
            if at == last or (shown and (not rows or rows[-1][1] != window)):
                rows.append((round(time_s, 4), round(window, 1)))
        return rows


def windows_of(result: Result) -> Windows:
    """Return the windows of the only traced sender of a run, every 5 ms for at most 10 s."""
    trace = result.tcp_trace.sort("time_s", maintain_order=True)
    if trace.is_empty() or trace["connection"].n_unique() > 1:
        raise MeasureError(f"{result.path} has not exactly one sender in tcp_trace")
    segment = 1448.0
    times = trace["time_s"].to_list()
    last = min(times[-1] - times[0], _RUN_S)
    rows, samples = -1, []
    for number in range(int(last / SAMPLE_S) + 1):
        now = number * SAMPLE_S + times[0]
        while rows + 1 < len(times) and times[rows + 1] <= now:
            rows += 1
        samples.append(rows)
    thresholds = trace["ssthresh_bytes"].to_list()
    phases = trace["phase"].to_list()
    windows = trace["cwnd_bytes"].to_list()
    return Windows(
        [number * SAMPLE_S for number in range(len(samples))],
        [windows[at] // segment for at in samples],
        [thresholds[at] // segment if thresholds[at] > 0 else math.inf for at in samples],
        [phases[at] == "recovery" for at in samples],
    )


def _number(name: str, result: Result) -> float:
    found = windows_of(result).numbers()
    if name not in found:
        raise MeasureError(f"{result.path}: the windows have no {name}")
    return found[name]


@run_value("largest-window")
def largest_window(result: Result) -> float:
    """Return the largest window of the only traced sender in segments, sampled every 5 ms."""
    return _number("largest-window", result)


@run_value("slow-start-end")
def slow_start_end(result: Result) -> float:
    """Return the first slow start threshold in segments, set by HyStart or the first loss."""
    return _number("slow-start-end", result)


@run_value("first-recovery-s")
def first_recovery_s(result: Result) -> float:
    """Return the seconds from the first packet to the beginning of the first fast recovery."""
    return _number("first-recovery-s", result)


@run_value("sawtooth-peak")
def sawtooth_peak(result: Result) -> float:
    """Return the mean window at the beginning of recoveries, in segments, from 1.5 s on."""
    return _number("sawtooth-peak", result)


@run_value("sawtooth-threshold")
def sawtooth_threshold(result: Result) -> float:
    """Return the mean threshold that a recovery sets, in segments, from 1.5 s on."""
    return _number("sawtooth-threshold", result)


@run_value("sawtooth-period-s")
def sawtooth_period_s(result: Result) -> float:
    """Return the mean time between the beginnings of recoveries in s, from 1.5 s on."""
    return _number("sawtooth-period-s", result)


@run_value("median-window")
def median_window(result: Result) -> float:
    """Return the median window in segments, from 2 s on, sampled every 5 ms."""
    return _number("median-window", result)


@run_value("median-round-trip-ms")
def median_round_trip_ms(result: Result) -> float:
    """Return the median latency of packets with payload plus that of ACKs, in ms.

    The round-trip times in ``tcp_trace`` are not representative: the table has a row only when the
    window changes, and under BBR the queue changes at these times.
    """
    return sum(_median_ms(result, kind) for kind in ("data", "ack"))


def _median_ms(result: Result, kind: str) -> float:
    rows = result.latency.filter(result.latency["kind"] == kind).sort("upper_us")
    counts = rows["count"].to_list()
    seen = list(itertools.accumulate(counts))
    for upper_us, count in zip(rows["upper_us"].to_list(), seen, strict=True):
        if 2 * count >= seen[-1]:
            return float(upper_us) / 1e3
    raise MeasureError(f"{result.path} has no packets of kind {kind}")


@run_value("flow-goodput-bps")
def flow_goodput_bps(result: Result) -> float:
    """Return the payload rate of the only flow in bit/s, from its first packet to its last byte."""
    flows = result.flows
    if flows.height != 1:
        raise MeasureError(f"{result.path} has {flows.height} flows that have arrived, not one")
    return float(flows["bytes"][0]) * 8e6 / float(flows["fct_us"][0])


@run_value("drops-of-first-second")
def drops_of_first_second(result: Result) -> float:
    """Return the number of packets lost in the first second of the only flow."""
    until = float(result.flows["start_s"][0]) + 1.0
    events = result.events
    return float(((events["what"] == "drop") & (events["time_s"] < until)).sum())


@measure("window-over-time")
def window_over_time(data: Data, at: Settings, case: str) -> Measured:
    """Return the largest window in segments; its rows are the first seed's windows over time."""
    found = data.results(at)
    looked = [windows_of(result) for _, _, result in found]
    interval = mean_interval([windows.numbers()["largest-window"] for windows in looked])
    rows: list[Row] = [{"time_s": time_s, "window": w} for time_s, w in looked[0].thinned()]
    return Measured(interval.value, interval.low, interval.high, interval.n, rows=rows)


#: Columns of a row of reads → the metric of the summary whose mean the column has.
_COUNTS: Mapping[str, str] = {
    "timeouts": "tcp.timeouts",
    "spurious_timeouts": "tcp.spurious_timeouts",
    "probes": "tcp.probes",
    "retransmits": "tcp.retransmits",
    "drops": "packets.dropped",
}


@measure("reads-goodput")
def reads_goodput(data: Data, at: Settings, case: str, senders: int) -> Measured:
    """Return the mean goodput of synchronized reads at one point, in bit/s.

    Its row has the name of the ``case``, the number of senders, and means of counters.
    """
    sample = data.sample("rounds.goodput_bps", at)
    interval = mean_interval(list(sample.values.values()))
    row: Row = {"case": case, "senders": senders, "goodput_bps": interval.value}
    row |= {"low": interval.low, "high": interval.high}
    row |= {name: data.sample(metric, at).mean for name, metric in _COUNTS.items()}
    return Measured(interval.value, interval.low, interval.high, interval.n, rows=[row])


def _received(result: Result, place: int | None) -> float:
    """Return the rate of one of two senders, in order of their first bytes, or of both, in bit/s.

    The time is from the sender's first sample, or the first of both, to the last sample of all.
    """
    table = result.flow_samples
    starts: dict[int, float] = {}
    for src, time_s in zip(table["src"].to_list(), table["time_s"].to_list(), strict=True):
        starts.setdefault(src, time_s)
    senders = sorted(starts, key=lambda src: starts[src])
    if len(senders) != 2:
        raise MeasureError(f"{result.path} has {len(senders)} senders in flow_samples, not two")
    if place is not None:
        table = table.filter(table["src"] == senders[place])
    interval_s = float(result.summary["flow_samples"]["interval_s"])
    end_s = float(max(result.flow_samples["time_s"].to_list()))
    took_s = end_s - (starts[senders[place or 0]] - interval_s)
    return float(sum(table["bytes"].to_list())) * 8.0 / took_s


@run_value("goodput-of-first-bps")
def goodput_of_first_bps(result: Result) -> float:
    """Return the payload rate of the first of two senders in bit/s, from its start to the end."""
    return _received(result, 0)


@run_value("goodput-of-second-bps")
def goodput_of_second_bps(result: Result) -> float:
    """Return the payload rate of the second of two senders in bit/s, from its start to the end."""
    return _received(result, 1)


@run_value("goodput-of-both-bps")
def goodput_of_both_bps(result: Result) -> float:
    """Return the payload rate of two senders in bit/s, from the first start to the last sample."""
    return _received(result, None)


def _of_flow(result: Result, place: int) -> float:
    """Return the rate of one of two flows, by the order of start, over its own time, in bit/s."""
    flows = result.flows.sort("start_s")
    if flows.height != 2:
        raise MeasureError(f"{result.path} has {flows.height} flows that have arrived, not two")
    return float(flows["bytes"][place]) * 8e6 / float(flows["fct_us"][place])


@run_value("first-flow-goodput-bps")
def first_flow_goodput_bps(result: Result) -> float:
    """Return the payload rate of the first flow to begin in bit/s, from its start to its end."""
    return _of_flow(result, 0)


@run_value("second-flow-goodput-bps")
def second_flow_goodput_bps(result: Result) -> float:
    """Return the payload rate of the second flow to begin in bit/s, from its start to its end."""
    return _of_flow(result, 1)


@run_value("both-flows-goodput-bps")
def both_flows_goodput_bps(result: Result) -> float:
    """Return the sum of the payload rates of two flows in bit/s, each from its start to its end."""
    return _of_flow(result, 0) + _of_flow(result, 1)
