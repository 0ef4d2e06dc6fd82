"""Values of runs with raw Ethernet streams: what they got, how fairly, and in what order.

Of a fabric of two groups of hosts, *cold* streams stay inside of a group and *hot* ones go from one
to the other; the first half of the hosts is one group.
"""

from __future__ import annotations

import polars as pl

from eastwest.claims.measures.base import MeasureError, run_value
from eastwest.results import Result


def _streams(result: Result) -> pl.DataFrame:
    """The table of streams of a run that has some."""
    streams = result.table("streams")
    if streams.is_empty() or not streams["frames_received"].sum():
        raise MeasureError(f"{result.path} has no streams of frames")
    return streams


def _hosts(result: Result) -> pl.DataFrame:
    """Cables into hosts."""
    return result.links.filter(pl.col("tier") == "host-down")


@run_value("stream-throughput-share")
def stream_throughput_share(result: Result) -> float:
    """Bits that all hosts received in the whole run, over what their cables carry."""
    bits = float(_streams(result)["bytes_received"].sum()) * 8
    run_s = float(result.summary["simulated_s"])
    senders = _streams(result)["src"].n_unique()
    rate = float(_hosts(result)["rate_bps"].max() or 0)  # type: ignore[arg-type]
    return bits / (run_s * rate * senders)


@run_value("cold-over-hot")
def cold_over_hot(result: Result) -> float:
    """Mean bytes received of a stream inside of a group over those of a stream between groups."""
    streams, half = _streams(result), _hosts(result).height // 2
    inside = (pl.col("src") < half) == (pl.col("dst") < half)
    cold = streams.filter(inside)["bytes_received"].mean()
    hot = streams.filter(~inside)["bytes_received"].mean()
    if not cold or not hot:
        raise MeasureError(f"{result.path} has no streams inside of groups, or none between them")
    return float(cold) / float(hot)  # type: ignore[arg-type]


@run_value("reordered-share")
def reordered_share(result: Result) -> float:
    """Share of frames that arrived after a later one of their stream."""
    streams = _streams(result)
    return float(streams["frames_reordered"].sum()) / float(streams["frames_received"].sum())


@run_value("resequenced-frames")
def resequenced_frames(result: Result) -> float:
    """Frames that a receiver holds of a stream, mean over time and streams."""
    return float(_streams(result)["resequenced_mean"].mean() or 0.0)  # type: ignore[arg-type]


@run_value("least-stream-mbyte-s")
def least_stream_mbyte_s(result: Result) -> float:
    """Megabytes per second that the slowest stream received in the whole run."""
    least = float(_streams(result)["bytes_received"].min() or 0)  # type: ignore[arg-type]
    return least / float(result.summary["simulated_s"]) / 1e6


@run_value("most-over-least-stream")
def most_over_least_stream(result: Result) -> float:
    """Bytes of the stream that received most over those of the one that received least."""
    received = _streams(result)["bytes_received"]
    return float(received.max() or 0) / max(1.0, float(received.min() or 0))  # type: ignore[arg-type]
