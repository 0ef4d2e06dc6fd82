"""Bytes on the switch's ports over time, read from the kernel's counters."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from hadoop_check.network import SWITCH, WORKERS

_PERIOD_S = 0.25
#: Kind of a network namespace for ``setns``.
_CLONE_NEWNET = 0x40000000

#: A sample: seconds since 1970, and bytes sent to all workers so far.
Sample = tuple[float, int]


class Meter:
    """Samples the ports towards the workers while its block runs."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Meter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        # only this thread goes into the switch's namespace
        handle = os.open(f"/run/netns/{SWITCH}", os.O_RDONLY)
        try:
            if ctypes.CDLL(None, use_errno=True).setns(handle, _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
        finally:
            os.close(handle)
        while not self._stop.wait(_PERIOD_S):
            text = Path("/proc/thread-self/net/dev").read_text("ascii")
            self.samples.append((time.time(), bytes_to_workers(text)))


def bytes_to_workers(text: str) -> int:
    """Bytes sent on the ports towards workers, by ``/proc/net/dev``."""
    ports = {f"p-{worker}" for worker in WORKERS}
    total = 0
    for line in text.splitlines():
        name, colon, numbers = line.partition(":")
        if colon and name.strip() in ports:
            total += int(numbers.split()[8])
    return total


def wire_time(samples: Sequence[Sample], start_s: float, end_s: float) -> tuple[float, int]:
    """From 1 % to 99 % of the bytes between two times: how long that took, and all bytes."""
    within = [(at, total) for at, total in samples if start_s <= at <= end_s]
    if len(within) < 2:
        raise ValueError("nothing was sampled in that time")
    first, last = within[0][1], within[-1][1]
    total = last - first

    def reached(share: float) -> float:
        return next(at for at, sent in within if sent - first >= share * total)

    return reached(0.99) - reached(0.01), total
