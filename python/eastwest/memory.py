"""Limit of a run's memory, and the error of a run that needs more.

Before anything is built, the simulator computes the least memory of the run; a run above the limit
is refused. While the run is built, while it runs and while its tables are made, the simulator
compares the memory of its process with the limit ten times a second. Above the limit the run ends
with an error, before the kernel kills the process or the machine swaps; a run with checkpoints
writes a last checkpoint. Without ``--memory`` the limit is nine tenths of the memory available when
the run begins: the available memory of the machine (``MemAvailable``) or of the process's control
group (cgroup v2 and v1), whichever is less.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from eastwest import core
from eastwest.errors import InputError
from eastwest.units import size, span

#: Share of the available memory that a run may use; the rest is for other programs.
_SHARE = 0.9
#: Parts below this share (0 to 1) of a memory estimate have no name in messages; they are summed.
_NAMED = 0.01
#: Lowest memory limit that a user may set, in bytes: about the memory of an empty run.
LEAST = 100_000_000
_UNITS = {
    "": 1,
    "b": 1,
    **{name: 1000**power for power, name in enumerate(("kb", "mb", "gb", "tb"), 1)},
    **{name: 1024**power for power, name in enumerate(("kib", "mib", "gib", "tib"), 1)},
}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?b?)\s*", re.IGNORECASE)


class MemoryLimitError(MemoryError):
    """Error of a run that needs more memory than its limit."""


def parse(text: str) -> int:
    """Return the number of bytes of a memory limit such as ``4 GB`` or ``512 MiB``.

    Raises ``InputError`` where the text is not a size, or the size is below ``LEAST``.
    """
    found = _SIZE.fullmatch(text)
    unit = _UNITS.get(found[2].lower()) if found else None
    if found is None or unit is None:
        raise InputError(f"{text!r} is not a size: write a size such as 4 GB or 512 MiB")
    value = int(float(found[1]) * unit)
    if value < LEAST:
        raise InputError(f"{text} is too small a memory limit: a run needs at least {size(LEAST)}")
    return value


def held_bytes(statm: Path = Path("/proc/self/statm")) -> int:
    """Return the memory of this process in bytes; 0 where the system does not report it."""
    try:
        return int(statm.read_text().split()[1]) * _page_bytes()
    except (OSError, ValueError, IndexError):
        return 0


def available_bytes(
    meminfo: Path = Path("/proc/meminfo"),
    cgroup: Path = Path("/proc/self/cgroup"),
    root: Path = Path("/sys/fs/cgroup"),
) -> int | None:
    """Return the memory in bytes that this process can still allocate; None where it is not known.

    The least value of the machine and of each control group (cgroup v1 and v2) counts.
    """
    available = [*_of_machine(meminfo), *_of_groups(cgroup, root)]
    return max(0, min(available)) if available else None


def allowed_bytes(processes: int = 1) -> int | None:
    """Return the default memory limit of a process in bytes; None if the memory is not known.

    The limit is the memory that this process has now, and nine tenths of its share of the available
    memory, which ``processes`` processes divide equally.
    """
    available = available_bytes()
    return None if available is None else held_bytes() + int(_SHARE * available / processes)


#: Names of parts of the memory estimate in messages, for parts whose name in the core differs.
_SAID = {"any run": "buffers and code"}


def told(parts: Iterable[core.MemoryPart], named: float = _NAMED) -> str:
    """Return the parts of a memory estimate as one line, in their order.

    Parts below the share ``named`` (0 to 1) of the estimate are summed as ``other parts``.
    """
    known = [(name, value) for name, value, _ in parts]
    whole = sum(value for _, value in known)
    shown = [
        f"{_SAID.get(name, name)} {size(value)}" for name, value in known if value >= named * whole
    ]
    rest = sum(value for _, value in known if value < named * whole)
    return ", ".join([*shown, *([f"other parts {size(rest)}"] if rest else [])])


def with_program(parts: Iterable[core.MemoryPart]) -> list[core.MemoryPart]:
    """Return ``parts`` of a run's memory and the memory of this process, largest first."""
    program: core.MemoryPart = ("the program", held_bytes(), True)
    return sorted([*parts, program], key=lambda part: -part[1])


class Watched:
    """Progress callback that compares the memory of a run with ``most`` bytes.

    After each comparison, it calls ``progress``. All methods raise ``MemoryLimitError`` above the
    limit. If ``most`` is None, the limit is ``allowed_bytes()``.
    """

    def __init__(self, progress: core.ProgressCallback, most: int | None) -> None:
        self._progress = progress
        self._most = allowed_bytes() if most is None else most
        self._named = most is not None

    def expect(self, parts: list[core.MemoryPart]) -> None:
        """Raise ``MemoryLimitError`` if the least memory of a run, by part, exceeds the limit."""
        all_parts = with_program(parts)
        needed = sum(value for _, value, _ in all_parts)
        if self._most is not None and needed > self._most:
            raise MemoryLimitError(
                f"the run needs about {size(needed)} of memory ({told(all_parts)}); its limit "
                f"is {self._limit()}: allow more with --memory, or make the fabric or its "
                "workloads smaller"
            )

    def busy(self) -> None:
        """Check the memory of the process while a run is built or its tables are made."""
        self._look("before its first event, or while its result is made")

    def __call__(self, state: core.Progress) -> None:
        """Check the memory of the process, and pass the progress of the run on."""
        self._look(f"after {span(state['simulated_s'])} of simulated time")
        self._progress(state)

    def _look(self, when: str) -> None:
        held = held_bytes()
        if self._most is not None and held > self._most:
            raise MemoryLimitError(
                f"the run uses {size(held)} of memory {when}; its limit is {self._limit()}"
            )

    def _limit(self) -> str:
        how = "--memory" if self._named else "nine tenths of the available memory; see --memory"
        return f"{size(self._most)} ({how})"


def _page_bytes() -> int:
    import resource  # noqa: PLC0415  not on every platform

    return resource.getpagesize()


def _of_machine(meminfo: Path) -> list[int]:
    return [1024 * value for value in _numbers(meminfo, r"^MemAvailable:\s+(\d+) kB")]


def _of_groups(cgroup: Path, root: Path) -> list[int]:
    """Return the bytes that this process's control group and each group above it may still use."""
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
    """Return limit − use, in bytes, of ``group`` and of each control group above it.

    ``most`` and ``used`` are the names of the files with limit and use, ``prefix`` begins the keys
    in ``memory.stat``. Caches do not count as use, because the kernel frees them when memory gets
    short.
    """
    place = root / group.lstrip("/")
    left = []
    for folder in (place, *place.parents):
        if not folder.is_relative_to(root):
            break
        limit, use = _numbers(folder / most, r"^(\d+)"), _numbers(folder / used, r"^(\d+)")
        if limit and use:  # false if the limit is the word "max", and in the root group
            caches = rf"^{prefix}(?:(?:in)?active_file|slab_reclaimable) (\d+)"
            left.append(limit[0] - use[0] + sum(_numbers(folder / "memory.stat", caches)))
    return left


def _numbers(file: Path, pattern: str) -> list[int]:
    try:
        return [int(found) for found in re.findall(pattern, file.read_text(), re.MULTILINE)]
    except OSError:
        return []
