"""Frames of a run: a list of bounded length over simulated time.

Counters of a frame count from the start of the run. When the list is full, each pair of neighbours
becomes one frame: the counters are those of the later frame, the queue of a link is the longer of
both. The whole run therefore stays in the list, with the peaks of all queues.

Frames of the grid (``grid``) are at regular simulated times, so that curves do not depend on how
fast the user watched the run. A frame between them shows the present state, and the next frame
replaces it.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np

Frame = dict[str, Any]
#: Maximum number of frames, and of bytes of all frames, in the list of a run.
MOST_FRAMES, MOST_BYTES = 1_000, 16_000_000
#: Minimum number of frames that a run of a large fabric has in its list.
_LEAST = 32


class Frames:
    """Frames of one run in order of time."""

    def __init__(self) -> None:
        # One thread adds frames, others read: they take this list once and do not change it.
        self._frames: list[Frame] = []

    @property
    def last(self) -> Frame | None:
        """The newest frame; None before the first one."""
        return self._frames[-1] if self._frames else None

    def add(self, frame: Frame) -> None:
        """Add a frame; it replaces a frame of the same time, or one between the grid."""
        last = self.last
        if last is not None and (frame["time_s"] <= last["time_s"] or not last["grid"]):
            grid = frame["grid"] or (last["grid"] and frame["time_s"] <= last["time_s"])
            self._frames[-1] = {**frame, "grid": grid}
            return
        self._frames.append(frame)
        if len(self._frames) > _most(frame):
            self._halve()

    def after(self, time_s: float) -> list[Frame]:
        """Return the frames that are later than a simulated time."""
        frames = self._frames
        return frames[bisect_right(frames, time_s, key=lambda frame: frame["time_s"]) :]

    def shrink(self) -> None:
        """Merge frames until they have at most ``MOST_BYTES``: all are those of a run that ended.

        The studio stores several runs, and frames of a large fabric have megabytes.
        """
        while len(self._frames) > 2 and len(self._frames) * _size(self._frames[-1]) > MOST_BYTES:
            self._halve()

    def _halve(self) -> None:
        old = self._frames
        pairs = [merged(a, b) for a, b in zip(old[::2], old[1::2], strict=False)]
        self._frames = pairs + old[2 * len(pairs) :]


def _most(frame: Frame) -> int:
    """Return the maximum number of frames with the size of this frame."""
    return max(_LEAST, min(MOST_FRAMES, MOST_BYTES // max(_size(frame), 1)))


def _size(frame: Frame) -> int:
    """Return the number of bytes of the arrays of a frame."""
    return sum(len(value) for value in frame.values() if isinstance(value, bytes))


def merged(first: Frame, second: Frame) -> Frame:
    """Return the later frame with the longer queue of both frames at every link."""
    before, after = (np.frombuffer(frame["queue_bytes"], "<u8") for frame in (first, second))
    if len(before) != len(after):
        return second
    packets = [np.frombuffer(frame["queue_packets"], "<u4") for frame in (first, second)]
    longer = before > after
    return {
        **second,
        "queue_bytes": np.where(longer, before, after).astype("<u8").tobytes(),
        "queue_packets": np.where(longer, *packets).astype("<u4").tobytes(),
    }
