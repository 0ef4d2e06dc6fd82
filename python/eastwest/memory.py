"""How much memory a run may take, and what becomes of one that needs more.

A run looks ten times a second at what its process holds. Above the limit it ends with an error that
says so, instead of being killed by the kernel or of bringing the machine to a halt; a checkpoint of
it is written where it is kept. Without a wish of the user's the limit is nine tenths of what the
machine has, or of what its control group allows (cgroup v2 ``memory.max``), whichever is less.
"""

from __future__ import annotations

import re
from pathlib import Path

from eastwest import core
from eastwest.errors import InputError
from eastwest.units import size, span

#: What is left to all else on the machine.
_SHARE = 0.9
#: Fewer bytes than an empty run takes are no sensible limit.
LEAST = 100_000_000
_UNITS = {
    "": 1,
    "b": 1,
    **{name: 1000**power for power, name in enumerate(("kb", "mb", "gb", "tb"), 1)},
    **{name: 1024**power for power, name in enumerate(("kib", "mib", "gib", "tib"), 1)},
}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?b?)\s*", re.IGNORECASE)


class MemoryLimitError(MemoryError):
    """A run has come to need more memory than it may take."""


def parse(text: str) -> int:
    """Bytes of a size such as ``4 GB`` or ``512 MiB``. Raises ``InputError``."""
    found = _SIZE.fullmatch(text)
    unit = _UNITS.get(found[2].lower()) if found else None
    if found is None or unit is None:
        raise InputError(f"{text!r} is not a size: write it as 4 GB or 512 MiB")
    value = int(float(found[1]) * unit)
    if value < LEAST:
        raise InputError(f"{text}: a run takes at least {size(LEAST)}")
    return value


def held_bytes(statm: Path = Path("/proc/self/statm")) -> int:
    """Memory that this process holds; 0 where the system does not say."""
    try:
        return int(statm.read_text().split()[1]) * _page_bytes()
    except (OSError, ValueError, IndexError):
        return 0


def allowed_bytes(
    meminfo: Path = Path("/proc/meminfo"),
    cgroup: Path = Path("/proc/self/cgroup"),
    root: Path = Path("/sys/fs/cgroup"),
) -> int | None:
    """The limit without a wish, in bytes; ``None`` where the system does not say."""
    limits = [*_of_machine(meminfo), *_of_groups(cgroup, root)]
    return int(_SHARE * min(limits)) if limits else None


class Watched:
    """Progress of a run that may take ``most`` bytes; hands it on to ``progress``."""

    def __init__(self, progress: core.ProgressCallback, most: int | None) -> None:
        self._progress = progress
        self._most = allowed_bytes() if most is None else most

    def __call__(self, state: core.Progress) -> None:
        """Hand on, or raise ``MemoryLimitError``."""
        held = held_bytes()
        if self._most is not None and held > self._most:
            raise MemoryLimitError(
                f"the run takes {size(held)} of memory after {span(state['simulated_s'])} of "
                f"simulated time, and may take {size(self._most)} (--memory)"
            )
        self._progress(state)


def _page_bytes() -> int:
    import resource  # noqa: PLC0415  not on every platform

    return resource.getpagesize()


def _of_machine(meminfo: Path) -> list[int]:
    try:
        found = re.search(r"^MemTotal:\s+(\d+) kB", meminfo.read_text(), re.MULTILINE)
    except OSError:
        return []
    return [int(found[1]) * 1024] if found else []


def _of_groups(cgroup: Path, root: Path) -> list[int]:
    """Limits of the control group and of those above it."""
    try:
        found = re.search(r"^0::/(.*)$", cgroup.read_text(), re.MULTILINE)
    except OSError:
        return []
    if found is None:
        return []
    group = root / found[1]
    limits = []
    for folder in (group, *group.parents):
        if not folder.is_relative_to(root):
            break
        try:
            limits.append(int((folder / "memory.max").read_text()))
        except (OSError, ValueError):  # "max", or none at the root
            continue
    return limits
