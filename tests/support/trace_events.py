"""Checks trace events, the format of Perfetto and Chrome."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

Row = dict[str, Any]


def check(made: dict[str, Any]) -> list[Row]:
    """Check a trace against the rules of the format; return its events except those of names."""
    events: list[Row] = made["traceEvents"]
    named = {e["pid"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    threads = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    real = [e for e in events if e["ph"] != "M"]
    for e in real:
        assert e["ph"] in "XbeiC", e
        assert isinstance(e["ts"], float | int)
        assert e["ts"] >= 0
        assert e["pid"] in named, e
        assert e["ph"] not in "Xi" or (e["pid"], e["tid"]) in threads, e
    tids = [tid for _, tid in threads]
    assert len(tids) == len(set(tids))
    nested([e for e in real if e["ph"] == "X"])
    paired([e for e in real if e["ph"] in "be"])
    in_order([e for e in real if e["ph"] == "C"])
    return real


def nested(slices: list[Row]) -> None:
    """Check that slices of one thread are nested or disjoint."""
    by_thread: dict[int, list[Row]] = defaultdict(list)
    for e in slices:
        assert e["dur"] >= 0
        by_thread[e["tid"]].append(e)
    for rows in by_thread.values():
        open_ends: list[int] = []
        for e in sorted(rows, key=lambda e: (e["ts"], -e["dur"])):
            begin = round(e["ts"] * 1000)
            end = begin + round(e["dur"] * 1000)
            while open_ends and open_ends[-1] <= begin:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1], e
            open_ends.append(end)


def paired(rows: list[Row]) -> None:
    """Check that asynchronous slices begin and end alternately on every track."""
    tracks: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for e in rows:
        tracks[e["pid"], e["cat"], e["id"]].append(e)
    for track in tracks.values():
        assert [e["ph"] for e in track] == ["b", "e"] * (len(track) // 2)
        times = [e["ts"] for e in track]
        assert times == sorted(times)
        assert all(a["name"] == b["name"] for a, b in zip(track[::2], track[1::2], strict=True))


def in_order(rows: list[Row]) -> None:
    """Check that each counter has one value per time, in ascending order of time."""
    tracks: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for e in rows:
        assert len(e["args"]) == 1
        assert all(isinstance(v, int) and v >= 0 for v in e["args"].values())
        tracks[e["pid"], e["name"]].append(e["ts"])
    for times in tracks.values():
        assert times == sorted(times)
