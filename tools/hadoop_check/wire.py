"""Samples the bytes sent on the switch's ports over time, from the kernel's counters."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import hadoop_real_measures
from hadoop_check.network import SWITCH, WORKERS

_PERIOD_S = 0.25
#: Flag CLONE_NEWNET, which tells ``setns`` that the file is a network namespace.
_CLONE_NEWNET = 0x40000000

#: A sample: seconds since 1970, and for each worker the bytes sent on its port so far.
Sample = tuple[float, dict[str, int]]


class Meter:
    """Context in which a thread samples the switch's ports towards the workers."""

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
        # Only this thread enters the switch's namespace.
        handle = os.open(f"/run/netns/{SWITCH}", os.O_RDONLY)
        try:
            if ctypes.CDLL(None, use_errno=True).setns(handle, _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
        finally:
            os.close(handle)
        while not self._stop.wait(_PERIOD_S):
            text = Path("/proc/thread-self/net/dev").read_text("ascii")
            self.samples.append((time.time(), bytes_to_workers(text)))


def bytes_to_workers(text: str) -> dict[str, int]:
    """Return the bytes sent on the port towards each worker, from the text of ``/proc/net/dev``."""
    ports = {f"p-{worker}" for worker in WORKERS}
    sent = {}
    for line in text.splitlines():
        name, colon, numbers = line.partition(":")
        if colon and name.strip() in ports:
            sent[name.strip()] = int(numbers.split()[8])
    return sent


def by_port(samples: Sequence[Sample], since_s: float) -> dict[str, hadoop_real_measures.Samples]:
    """Return the samples of each port's byte counter, with times in s since the given start."""
    ports = {port for _, sent in samples for port in sent}
    return {
        port: [(at - since_s, float(sent[port])) for at, sent in samples if port in sent]
        for port in sorted(ports)
    }
