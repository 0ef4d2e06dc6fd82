"""Import of fabrics from topology files of other tools and from inventories; import of routes.

* :mod:`eastwest.topologies.htsim`: ``.topo`` files of htsim, fat trees of two or three tiers.
* :mod:`eastwest.topologies.mrperf`: XML of MRPerf, racks that a router joins, or a DCell.
* :mod:`eastwest.topologies.topohub`: JSON of topohub, such as networks of SNDlib with demands.
* :mod:`eastwest.topologies.lldp`: neighbours that devices report by LLDP.
* :mod:`eastwest.topologies.containerlab`: topology files of containerlab.
* :mod:`eastwest.topologies.netbox`: exports of NetBox with cables, interfaces and devices.
* :mod:`eastwest.topologies.coloured`: routes computed for a known traffic matrix.
* :mod:`eastwest.topologies.frr`: routes from the routing tables of FRR.

Each reader of topologies returns a :class:`~eastwest.topologies.fabric.Fabric`: hosts, switches
and cables. ``Fabric.to_toml`` makes the topology file for ``kind = "graph"``.
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
#: Maximum number of files that are read together.
_MOST_FILES = 10_000
#: Maximum size in bytes of all files that are read together.
_MOST_ALL_BYTES = 256 << 20
#: Number of bytes at the start of a file from which its format is recognised.
_START = 1 << 16

_READERS = {"htsim": htsim.read, "mrperf": mrperf.read, "topohub": topohub.read}
_INVENTORIES: dict[str, Callable[[list[Described], Assumed], Fabric]] = {
    "lldp": lldp.read,
    "containerlab": containerlab.read,
    "netbox": netbox.read,
}
#: Names of the supported formats of topology files and inventories, as for ``--format``.
FORMATS = (*_READERS, *_INVENTORIES)


def read(path: Path, form: str | None = None, assumed: Assumed | None = None) -> Fabric:
    """Return the hosts, switches and cables of one topology file or inventory file.

    ``form`` is one of ``FORMATS``; if it is None, the content of the file determines the format.
    ``assumed`` has values that the file does not state. Raises ``InputError`` with place and reason
    if the file is invalid or describes no usable fabric.
    """
    return read_all([path], form, assumed)


def read_all(
    paths: Sequence[Path], form: str | None = None, assumed: Assumed | None = None
) -> Fabric:
    """Return the hosts, switches and cables of one topology file, or of all files of an inventory.

    ``form`` is one of ``FORMATS``; if it is None, the content of each file determines its format.
    ``assumed`` has values that the files do not state. Raises ``InputError`` with place and reason
    if a file is invalid, if the formats differ, or if the files describe no usable fabric.
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
                f"{path}: the format of the file was not recognised; name it with --format: "
                f"{', '.join(FORMATS)}"
            )
    if len(forms) > 1:
        raise InputError(
            f"the files have different formats, but must have one: {', '.join(sorted(forms))}"
        )
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
    """Return name and content of each file.

    Raises ``InputError`` if ``paths`` is empty, if a file is missing or empty, or if the number or
    the total size of the files is above the limit.
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
            raise InputError(
                f"the files have more than {_MOST_ALL_BYTES >> 20} MiB together, the maximum"
            )
    return files


def load(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return the content of a file.

    Raises ``InputError`` if it is missing or has more than ``most`` bytes.
    """
    if not path.is_file():
        raise InputError(f"{path} is not a file")
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise InputError(f"{path} is too large: at most {most >> 20} MiB are read")
    return data


def sniff(data: bytes) -> str:
    """Return the format of a topology file, one of ``FORMATS``, from its first bytes ``data``.

    The result is empty if no format fits.
    """
    start = data[:_START].lstrip(b"\xef\xbb\xbf").lstrip()
    for name, reader in (("lldp", lldp), ("containerlab", containerlab), ("netbox", netbox)):
        if reader.looks_like(start):
            return name
    if start.startswith(b"{"):
        return "topohub"
    if start.startswith(b"<"):
        return "mrperf"
    return "htsim" if htsim.looks_like(start) else ""
