"""Arrival times of packets at captured ports, from the file ``capture.pcapng`` of a run.

A packet arrives at the far end of the port's cable.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from eastwest.errors import InputError
from eastwest.observe.metrics import Numbers

#: Types of pcapng blocks (interface description, enhanced packet), and number of the option
#: if_name.
_INTERFACE, _PACKET, _NAME = 1, 6, 2
#: Minimum length of a pcapng block in bytes, by the type of the block.
_LEAST = {_INTERFACE: 20, _PACKET: 32}
_HEAD = struct.Struct("<II")
_WHEN = struct.Struct("<III")


def packet_times(path: Path) -> dict[str, Numbers]:
    """Return an array of packet arrival times, in simulated seconds, for each port by its name.

    ``path`` is the ``capture.pcapng`` of a run, with times in ns after the start of the run. Raises
    ``InputError`` if the file is damaged.
    """
    names: list[str] = []
    times: list[list[int]] = []
    data = memoryview(path.read_bytes())
    at = 0
    while at < len(data):
        if at + _HEAD.size > len(data):
            raise InputError(
                f"{path}: damaged at byte {at}: the file ends within the head of a block"
            )
        kind, length = _HEAD.unpack_from(data, at)
        if length < _LEAST.get(kind, 12) or at + length > len(data):
            raise InputError(
                f"{path}: damaged at byte {at}: a block cannot have a length of {length} bytes"
            )
        if kind == _INTERFACE:
            names.append(_name(data[at + 16 : at + length - 4]))
            times.append([])
        elif kind == _PACKET:
            port, high, low = _WHEN.unpack_from(data, at + _HEAD.size)
            if port >= len(times):
                raise InputError(
                    f"{path}: damaged at byte {at}: a packet belongs to interface {port}, but "
                    "no block before it describes this interface"
                )
            times[port].append((high << 32) | low)
        at += length
    return {
        name: np.array(ns, dtype=np.float64) / 1e9 for name, ns in zip(names, times, strict=True)
    }


def _name(options: memoryview) -> str:
    """Return the option if_name of an interface description block; empty if it has none."""
    at = 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from("<HH", options, at)
        if code == _NAME:
            return bytes(options[at + 4 : at + 4 + length]).decode(errors="replace")
        at += 4 + length + (-length) % 4
    return ""
