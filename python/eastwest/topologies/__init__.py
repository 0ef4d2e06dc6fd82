"""Fabrics from the descriptor files of other tools, and routes computed for them.

* :mod:`eastwest.topologies.htsim`: ``.topo`` files of htsim, fat trees of two or three tiers.
* :mod:`eastwest.topologies.mrperf`: XML of MRPerf, racks and a router or a DCell.
* :mod:`eastwest.topologies.topohub`: JSON of topohub, networks of SNDlib with their demands.
* :mod:`eastwest.topologies.coloured`: routes for a known matrix of traffic.

Each reader returns a :class:`~eastwest.topologies.fabric.Fabric`, which is written as the topology
file for ``kind = "graph"``.
"""

from __future__ import annotations

from pathlib import Path

from eastwest.errors import InputError
from eastwest.topologies import htsim, mrperf, topohub
from eastwest.topologies.fabric import Assumed, Fabric

__all__ = ["FORMATS", "Assumed", "Fabric", "read", "sniff"]

#: Largest descriptor in bytes.
MOST_BYTES = 16 << 20

_READERS = {"htsim": htsim.read, "mrperf": mrperf.read, "topohub": topohub.read}
#: Names of the formats.
FORMATS = tuple(_READERS)


def read(path: Path, form: str | None = None, assumed: Assumed | None = None) -> Fabric:
    """Return the fabric of a descriptor; without ``form`` its content determines the format.

    Raises ``InputError`` with place and reason where it is invalid, or describes no fabric.
    """
    if not path.is_file():
        raise InputError(f"{path} is not a file")
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise InputError(f"{path} is too large: at most {MOST_BYTES >> 20} MiB are read")
    try:
        return _READERS[form or sniff(data)](data, assumed or Assumed())
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def sniff(data: bytes) -> str:
    """Return the format of a descriptor by its first bytes."""
    start = data[:4096].lstrip(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"{"):
        return "topohub"
    return "mrperf" if start.startswith(b"<") else "htsim"
