"""Fabrics from the descriptor files of other tools and from inventories, and routes for them.

* :mod:`eastwest.topologies.htsim`: ``.topo`` files of htsim, fat trees of two or three tiers.
* :mod:`eastwest.topologies.mrperf`: XML of MRPerf, racks that a router joins, or a DCell.
* :mod:`eastwest.topologies.topohub`: JSON of topohub, networks of SNDlib with their demands.
* :mod:`eastwest.topologies.lldp`: neighbours that devices report by LLDP.
* :mod:`eastwest.topologies.containerlab`: topology files of containerlab.
* :mod:`eastwest.topologies.netbox`: exports of NetBox, cables and interfaces and devices.
* :mod:`eastwest.topologies.coloured`: routes for a known matrix of traffic.
* :mod:`eastwest.topologies.frr`: routes of the routing tables of FRR.

Each reader of descriptors and inventories returns a
:class:`~eastwest.topologies.fabric.Fabric`. Its ``to_toml`` makes the topology file for
``kind = "graph"``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from eastwest.errors import InputError
from eastwest.topologies import containerlab, htsim, lldp, mrperf, netbox, topohub
from eastwest.topologies.fabric import Assumed, Fabric
from eastwest.topologies.inventory import Described

__all__ = ["FORMATS", "Assumed", "Fabric", "read", "read_all", "sniff"]

#: Maximum size of one file in bytes.
MOST_BYTES = 16 << 20
#: Maximum number of files of an inventory.
_MOST_FILES = 10_000
#: Maximum number of bytes of all files of an inventory.
_MOST_ALL_BYTES = 256 << 20
#: Number of bytes at the start of a file that determine its format.
_START = 1 << 16

_READERS = {"htsim": htsim.read, "mrperf": mrperf.read, "topohub": topohub.read}
_INVENTORIES: dict[str, Callable[[list[Described], Assumed], Fabric]] = {
    "lldp": lldp.read,
    "containerlab": containerlab.read,
    "netbox": netbox.read,
}
#: Names of the supported formats of descriptors and inventories.
FORMATS = (*_READERS, *_INVENTORIES)


def read(path: Path, form: str | None = None, assumed: Assumed | None = None) -> Fabric:
    """Return the fabric of a descriptor; without ``form`` its content determines the format.

    Raises ``InputError`` with place and reason if the file is invalid or describes no fabric.
    """
    return read_all([path], form, assumed)


def read_all(
    paths: Sequence[Path], form: str | None = None, assumed: Assumed | None = None
) -> Fabric:
    """Return the fabric of one descriptor, or of all files of an inventory.

    ``form`` is the name of the format; without it the content of each file determines the format.
    Raises ``InputError`` with place and reason if a file is invalid or the files describe no
    fabric.
    """
    files = load_all(paths)
    forms = set()
    for path, file in zip(paths, files, strict=True):
        forms.add(form or sniff(file.data))
        if "" in forms:
            if file.data.lstrip().startswith(b"["):
                raise InputError(
                    f"{path}: is JSON, but not of an inventory format that Eastwest knows "
                    f"({', '.join(_INVENTORIES)})"
                )
            raise InputError(
                f"{path}: is not of a format that Eastwest knows ({', '.join(FORMATS)}); --format "
                "can name one"
            )
    if len(forms) > 1:
        raise InputError(f"the files are of different formats: {', '.join(sorted(forms))}")
    kind = forms.pop()
    if kind in _INVENTORIES:
        return _INVENTORIES[kind](files, assumed or Assumed())
    if len(files) > 1:
        raise InputError(
            f"only one file of the format {kind} can be read at a time, but there are {len(files)}"
        )
    try:
        return _READERS[kind](files[0].data, assumed or Assumed())
    except InputError as error:
        raise InputError(f"{paths[0]}: {error}") from None


def load_all(paths: Sequence[Path]) -> list[Described]:
    """Return the content of files.

    Raises ``InputError`` if there is no file, if a file is missing or empty, or if the number or
    the size of the files is above the limit.
    """
    if not 0 < len(paths) <= _MOST_FILES:
        raise InputError(f"1 to {_MOST_FILES:,} files are allowed, but there are {len(paths):,}")
    files, total = [], 0
    for path in paths:
        data = load(path)
        if not data.strip():
            raise InputError(f"{path}: is empty")
        files.append(Described(str(path), data))
        total += len(files[-1].data)
        if total > _MOST_ALL_BYTES:
            raise InputError(f"the files have more than {_MOST_ALL_BYTES >> 20} MiB in all")
    return files


def load(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return the content of a file; raise ``InputError`` if it has more than ``most`` bytes."""
    if not path.is_file():
        raise InputError(f"{path} is not a file")
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise InputError(f"{path} is too large: at most {most >> 20} MiB are read")
    return data


def sniff(data: bytes) -> str:
    """Return the format of a descriptor by its first bytes; empty if it is not known."""
    start = data[:_START].lstrip(b"\xef\xbb\xbf").lstrip()
    for name, reader in (("lldp", lldp), ("containerlab", containerlab), ("netbox", netbox)):
        if reader.looks_like(start):
            return name
    if start.startswith(b"{"):
        return "topohub"
    if start.startswith(b"<"):
        return "mrperf"
    return "htsim" if htsim.looks_like(start) else ""
