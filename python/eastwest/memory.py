"""How much memory a run may take, and what becomes of one that needs more.

Before anything is built, the simulator tells what the run takes at least; above the limit it is
refused. Later a run looks ten times a second at what its process holds, also while it is built and
while its tables are made. Above the limit it ends with an error that says so, instead of being
killed by the kernel or of bringing the machine to a halt; a checkpoint of it is written where it is
kept. Without a wish of the user's the limit is nine tenths of what is available when the run
begins: what the machine has left (``MemAvailable``), or what its control group may still take
(cgroup v2 and v1), whichever is less.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from eastwest import core
from eastwest.errors import InputError
from eastwest.units import size, span

#: Of what is available, so much may be taken: the rest is left to all else on the machine.
_SHARE = 0.9
#: Parts of an estimate below this share of it are not named.
_NAMED = 0.01
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


def available_bytes(
    meminfo: Path = Path("/proc/meminfo"),
    cgroup: Path = Path("/proc/self/cgroup"),
    root: Path = Path("/sys/fs/cgroup"),
) -> int | None:
    """Memory that can still be taken, in bytes; ``None`` where the system does not say."""
    available = [*_of_machine(meminfo), *_of_groups(cgroup, root)]
    return max(0, min(available)) if available else None


def allowed_bytes(processes: int = 1) -> int | None:
    """The limit of one of so many processes without a wish, in bytes: with what it holds now."""
    available = available_bytes()
    return None if available is None else held_bytes() + int(_SHARE * available / processes)


def told(parts: Iterable[core.MemoryPart], named: float = _NAMED) -> str:
    """Say in a line what an estimate adds up to, the largest part first."""
    known = [(name, value) for name, value, _ in parts]
    whole = sum(value for _, value in known)
    shown = [f"{name} {size(value)}" for name, value in known if value >= named * whole]
    rest = sum(value for _, value in known if value < named * whole)
    return ", ".join([*shown, *([f"all else {size(rest)}"] if rest else [])])


def with_program(parts: Iterable[core.MemoryPart]) -> list[core.MemoryPart]:
    """Return what a run takes at least with what this process holds already, the largest first."""
    program: core.MemoryPart = ("the program", held_bytes(), True)
    return sorted([*parts, program], key=lambda part: -part[1])


class Watched:
    """Progress of a run that may take ``most`` bytes; hands it on to ``progress``.

    All of its methods raise ``MemoryLimitError``.
    """

    def __init__(self, progress: core.ProgressCallback, most: int | None) -> None:
        self._progress = progress
        self._most = allowed_bytes() if most is None else most
        self._named = most is not None

    def expect(self, parts: list[core.MemoryPart]) -> None:
        """Hear what a run takes at least, before it is built."""
        all_parts = with_program(parts)
        needed = sum(value for _, value, _ in all_parts)
        if self._most is not None and needed > self._most:
            raise MemoryLimitError(
                f"the run needs about {size(needed)} of memory ({told(all_parts)}) and may take "
                f"{self._limit()}: allow more with --memory, or make the fabric or its workloads "
                "smaller"
            )

    def busy(self) -> None:
        """Hear that the run is being built, or that its tables are being made."""
        self._look("before its first event or after its last")

    def __call__(self, state: core.Progress) -> None:
        """Hand on how far a run has come."""
        self._look(f"after {span(state['simulated_s'])} of simulated time")
        self._progress(state)

    def _look(self, when: str) -> None:
        held = held_bytes()
        if self._most is not None and held > self._most:
            raise MemoryLimitError(
                f"the run takes {size(held)} of memory {when}, and may take {self._limit()}"
            )

    def _limit(self) -> str:
        how = "--memory" if self._named else "nine tenths of what was available; see --memory"
        return f"{size(self._most)} ({how})"


def _page_bytes() -> int:
    import resource  # noqa: PLC0415  not on every platform

    return resource.getpagesize()


def _of_machine(meminfo: Path) -> list[int]:
    return [1024 * value for value in _numbers(meminfo, r"^MemAvailable:\s+(\d+) kB")]


def _of_groups(cgroup: Path, root: Path) -> list[int]:
    """Return the bytes that the control group and each group above it may still allocate."""
    try:
        lines = cgroup.read_text().splitlines()
    except OSError:
        return []
    available = []
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if not controllers:
            available += _left(root, group, "memory.max", "memory.current", "")
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
            available += _left(root / "memory", group, *names)
    return available


def _left(root: Path, group: str, most: str, used: str, prefix: str) -> list[int]:
    """Limit less use, caches not counted as used: they are given up when memory gets short."""
    place = root / group.lstrip("/")
    left = []
    for folder in (place, *place.parents):
        if not folder.is_relative_to(root):
            break
        limit, use = _numbers(folder / most, r"^(\d+)"), _numbers(folder / used, r"^(\d+)")
        if limit and use:  # neither "max" nor the root
            caches = rf"^{prefix}(?:(?:in)?active_file|slab_reclaimable) (\d+)"
            left.append(limit[0] - use[0] + sum(_numbers(folder / "memory.stat", caches)))
    return left


def _numbers(file: Path, pattern: str) -> list[int]:
    try:
        return [int(found) for found in re.findall(pattern, file.read_text(), re.MULTILINE)]
    except OSError:
        return []
