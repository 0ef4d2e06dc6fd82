"""Values of runs with raw Ethernet streams: throughput, fairness and order.

The fabric has two groups of hosts; the first half of the hosts is one group. *Cold* streams stay
within a group, and *hot* streams go from one group to the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eastwest.claims.measures import MeasureError, run_value
from eastwest.results import Result

if TYPE_CHECKING:
    import polars as pl


def _streams(result: Result) -> pl.DataFrame:
    """Return the table of streams of a run; raise ``MeasureError`` if it has none."""
    streams = result.table("streams")
    if streams.is_empty() or not streams["frames_received"].sum():
        raise MeasureError(f"{result.path} has no streams of frames")
    return streams


def _hosts(result: Result) -> pl.DataFrame:
    """Return the rows of ``links`` that are cables to hosts."""
    import polars as pl  # noqa: PLC0415  large: not before it is needed

    return result.links.filter(pl.col("tier") == "host-down")


@run_value("stream-throughput-share")
def stream_throughput_share(result: Result) -> float:
    """Return the received bits of all hosts over the capacity of their cables in the run."""
    bits = float(_streams(result)["bytes_received"].sum()) * 8
    run_s = float(result.summary["simulated_s"])
    senders = _streams(result)["src"].n_unique()
    rate = float(_hosts(result)["rate_bps"].max() or 0)  # type: ignore[arg-type]
    return bits / (run_s * rate * senders)


@run_value("cold-over-hot")
def cold_over_hot(result: Result) -> float:
    """Return the mean received bytes of a cold stream, divided by those of a hot stream."""
    import polars as pl  # noqa: PLC0415  large: not before it is needed

    streams, half = _streams(result), _hosts(result).height // 2
    inside = (pl.col("src") < half) == (pl.col("dst") < half)
    cold = streams.filter(inside)["bytes_received"].mean()
    hot = streams.filter(~inside)["bytes_received"].mean()
    if not cold or not hot:
        raise MeasureError(f"{result.path} has no streams inside of groups, or none between them")
    return float(cold) / float(hot)  # type: ignore[arg-type]


@run_value("reordered-share")
def reordered_share(result: Result) -> float:
    """Return the share of frames that arrived after a later one of their stream."""
    streams = _streams(result)
    return float(streams["frames_reordered"].sum()) / float(streams["frames_received"].sum())


@run_value("resequenced-frames")
def resequenced_frames(result: Result) -> float:
    """Return the frames that a receiver holds back per stream to restore order, mean over time."""
    return float(_streams(result)["resequenced_mean"].mean() or 0.0)  # type: ignore[arg-type]


@run_value("least-stream-mbyte-s")
def least_stream_mbyte_s(result: Result) -> float:
    """Return the rate of the slowest stream over the whole run, in MB/s."""
    least = float(_streams(result)["bytes_received"].min() or 0)  # type: ignore[arg-type]
    return least / float(result.summary["simulated_s"]) / 1e6


@run_value("most-over-least-stream")
def most_over_least_stream(result: Result) -> float:
    """Return the bytes of the stream that received most, divided by those of the least."""
    received = _streams(result)["bytes_received"]
    return float(received.max() or 0) / max(1.0, float(received.min() or 0))  # type: ignore[arg-type]


def _received(result: Result) -> pl.DataFrame:
    """Return the rate into each receiving host by sampling interval, in MB/s."""
    import polars as pl  # noqa: PLC0415  large: not before it is needed

    receivers = [f"h{number}" for number in _streams(result)["dst"].unique().to_list()]
    into = _hosts(result).filter(pl.col("dst").is_in(receivers)).select("link")
    samples = result.table("link_samples")
    times = samples["time_s"].unique().sort()
    if times.len() < 4:
        raise MeasureError(f"{result.path} has too few samples of links")
    step_s = float(times[1]) - float(times[0])
    every = times.to_frame().join(into, how="cross")
    carried = every.join(samples, on=["time_s", "link"], how="left")
    return carried.select(
        "time_s", "link", (pl.col("bytes").fill_null(0) / step_s / 1e6).alias("mbyte_s")
    )


@run_value("settled-least-mbyte-s")
def settled_least_mbyte_s(result: Result) -> float:
    """Return the least rate into a receiving host in the second half of a run, in MB/s."""
    import polars as pl  # noqa: PLC0415  large: not before it is needed

    received = _received(result)
    half = float(result.summary["simulated_s"]) / 2
    late = received.filter(pl.col("time_s") > half).group_by("link").agg(pl.col("mbyte_s").mean())
    return float(late["mbyte_s"].min() or 0.0)  # type: ignore[arg-type]


@run_value("most-over-least-briefly")
def most_over_least_briefly(result: Result) -> float:
    """Return the largest ratio of the rates of two hosts in a sampling interval after the first."""
    import polars as pl  # noqa: PLC0415  large: not before it is needed

    received = _received(result)
    later = received.filter(pl.col("time_s") > received["time_s"].min())
    extremes = later.group_by("time_s").agg(
        pl.col("mbyte_s").max().alias("most"), pl.col("mbyte_s").min().alias("least")
    )
    return float((extremes["most"] / extremes["least"].clip(1e-3)).max() or 0.0)  # type: ignore[arg-type]
