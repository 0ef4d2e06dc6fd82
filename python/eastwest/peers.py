"""Comparison of Eastwest's speed with other programs that simulate an equal load.

Each program (a *peer*) is run in turns with Eastwest: Eastwest, the first peer, Eastwest, the
second peer, and again. A ratio always compares two neighbouring runs, so that other load on the
machine affects both. The CPU time is the user time of the whole process, as the kernel accounts for
it. If the output of a peer has one of these texts, anywhere in a line, the text is used:

* ``hops=N`` or ``packet_hops=N``: packet-hops of the run. A value of 0 means that they were not
  counted.
* ``run_user=S``: user time of the simulating part in s, without set-up.
* a line that begins with ``setup done``: the simulating part begins here (Linux only).
* ``flows=A/B``: A of B flows have finished. A comparison with unfinished flows is refused.

Peers are other people's programs, and their output is not trusted: they run without a shell, for a
limited time, and only the last MiB of their output is read.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import shlex
import signal
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eastwest import bench, core
from eastwest.bench import BenchError
from eastwest.partial import Partial
from eastwest.units import clean, span

#: Wall time in s after which a run is stopped.
LIMIT_S = 3600.0
#: Maximum number of rounds of a comparison.
MOST_ROUNDS = 1000
#: Number of cores that other processes may use in a run on a machine that counts as idle.
IDLE_CORES = 0.2
#: Least user time of a run in s: the kernel counts in steps of up to 10 ms.
_LEAST_S = 0.05
_MOST_BYTES = 1 << 20
_NUMBER = r"(\d{1,15}(?:\.\d{1,9})?)(?![\w.])"
_HOPS = re.compile(r"(?<!\w)(?:packet_)?hops=" + _NUMBER)
_RUN_USER = re.compile(r"(?<!\w)run_user=" + _NUMBER)
_FLOWS = re.compile(r"(?<!\w)flows=(\d{1,15})/(\d{1,15})(?!\d)")
_SET_UP = re.compile(rb"^setup done", re.MULTILINE)


@dataclass(frozen=True)
class Peer:
    """Another program: its name in tables, and its command line as a list of arguments."""

    name: str
    command: tuple[str, ...]

    @staticmethod
    def read(text: str, option: str = "--against") -> Peer:
        """Return the peer that ``NAME=PROGRAM ARGUMENT…`` describes.

        Raises ``BenchError``, whose message begins with the name of the ``option``.
        """
        name, equals, program = text.partition("=")
        try:
            command = tuple(shlex.split(program))
        except ValueError as error:
            raise BenchError(f"{option} {text!r}: {error}", 2) from None
        if not equals or not name.strip() or not command:
            raise BenchError(
                f"{option} {text!r}: write NAME=PROGRAM, such as 'htsim=./htsim_s1 4000000'", 2
            )
        return Peer(name.strip(), command)


@dataclass(frozen=True)
class Run:
    """Cost of one run of one program."""

    simulator: str
    #: User time of the whole process in s.
    user_s: float
    #: CPU time of the simulating part in s; None if it is not known.
    simulating_s: float | None
    #: Packet-hops of the run; None if the program does not print them.
    packet_hops: int | None
    #: Mean number of cores that other processes used meanwhile; None if it is not known.
    others_cores: float | None


@dataclass(frozen=True)
class Process:
    """Output and user time of a process that has ended with exit code 0."""

    output: str
    user_s: float
    #: User time in s at the line ``setup done``; None without this line.
    set_up_s: float | None
    others_cores: float | None


@dataclass(frozen=True)
class Comparison:
    """All rounds of Eastwest and one peer: pairs (run of Eastwest, run of the peer)."""

    scenario: str
    peer: Peer
    pairs: tuple[tuple[Run, Run], ...]
    #: Packet-hops of the peer, from a run that counted them; None: those of Eastwest are assumed.
    counted: int | None

    def hops(self, run: Run) -> int:
        """Return the packet-hops of a run of either program, counted or assumed."""
        ours = self.pairs[0][0].packet_hops or 0
        if run.simulator == EASTWEST:
            return run.packet_hops or ours
        return run.packet_hops or self.counted or ours

    @property
    def is_assumed(self) -> bool:
        """Whether the peer is assumed to have as many packet-hops as Eastwest."""
        return self.counted is None and not all(theirs.packet_hops for _, theirs in self.pairs)

    @property
    def separates(self) -> bool:
        """Whether all runs of the peer tell the CPU time of their simulating part."""
        return all(theirs.simulating_s for _, theirs in self.pairs)

    def rates(self, which: int, whole: bool) -> list[float]:
        """Return packet-hops per CPU-second of each round: Eastwest's (0) or the peer's (1).

        With ``whole``, the CPU time is that of the whole process, otherwise of the simulating part.
        """
        runs = [pair[which] for pair in self.pairs]
        return [self.hops(run) / (run.user_s if whole else run.simulating_s or 1.0) for run in runs]

    def ratios(self, whole: bool) -> dict[str, float]:
        """Return the speed of Eastwest divided by the peer's: least, median and greatest."""
        both = zip(self.rates(0, whole), self.rates(1, whole), strict=True)
        found = [ours / theirs for ours, theirs in both]
        return {"min": min(found), "median": statistics.median(found), "max": max(found)}

    @property
    def others_cores(self) -> float | None:
        """Greatest number of cores that other processes used in a run; None if it is not known."""
        found = [run.others_cores for pair in self.pairs for run in pair]
        return max((cores for cores in found if cores is not None), default=None)


EASTWEST = "Eastwest"


def compare(
    scenario: str,
    settings: Sequence[str],
    peers: Sequence[Peer],
    *,
    counting: Sequence[Peer] = (),
    rounds: int = 3,
    limit_s: float = LIMIT_S,
    say: Callable[[str], None] = lambda _: None,
) -> list[Comparison]:
    """Run Eastwest and each peer in turns, ``rounds`` times, and return a comparison for each peer.

    Each of ``counting`` is run once before and prints the packet-hops of the peer of its name.
    Every run may take ``limit_s``. ``say`` receives a line for each run. Raises ``BenchError``.
    """
    names = [peer.name for peer in peers]
    for name in (name for name in names if names.count(name) > 1 or name == EASTWEST):
        raise BenchError(f"--against: the name {name!r} is used twice", 2)
    for peer in counting:
        if peer.name not in names:
            known = f"one of {', '.join(names)}" if names else "compared: add --against"
            raise BenchError(f"--counting: {peer.name!r} is not {known}", 2)
    path = bench.path_of(scenario)
    counted: dict[str, int | None] = {}
    for peer in counting:
        counted[peer.name] = run_peer(peer, limit_s).packet_hops
        if counted[peer.name] is None:
            raise BenchError(f"{peer.name}: the run of --counting prints no hops=N", 2)
    pairs: dict[str, list[tuple[Run, Run]]] = {peer.name: [] for peer in peers}
    for turn in range(1, rounds + 1):
        for peer in peers:
            ours, theirs = run_eastwest(path, settings, limit_s), run_peer(peer, limit_s)
            pairs[peer.name].append((ours, theirs))
            say(
                f"round {turn} of {rounds}: Eastwest {span(ours.user_s)}, "
                f"{peer.name} {span(theirs.user_s)} of user time"
            )
    return [
        Comparison(path.stem, peer, tuple(pairs[peer.name]), counted.get(peer.name))
        for peer in peers
    ]


def run_eastwest(path: Path, settings: Sequence[str], limit_s: float) -> Run:
    """Run a scenario file in a new process of Eastwest, with all default measurements."""
    with Partial.scratch() as scratch:
        command = bench.command(path, scratch.path / "result", settings)
        done = measured(EASTWEST, command, limit_s)
    summary = json.loads(done.output)
    hops, cpu_s = int(summary["packet_hops"]), float(summary["cpu_s"])
    if not hops:
        raise BenchError(f"{path.stem} has no packet-hops: a comparison needs a load", 2)
    return Run(EASTWEST, done.user_s, cpu_s, hops, done.others_cores)


def run_peer(peer: Peer, limit_s: float) -> Run:
    """Run a peer, and return its cost as the kernel and its output tell it."""
    done = measured(peer.name, peer.command, limit_s)
    if not done.output.strip():
        raise BenchError(
            f"{peer.name} printed nothing: a run that did its work prints at least one line", 2
        )
    for finished, all_flows in _FLOWS.findall(done.output):
        if int(finished) < int(all_flows):
            raise BenchError(f"{peer.name} left flows unfinished: {finished} of {all_flows}", 2)
    simulating_s = _last(_RUN_USER, done.output)
    if simulating_s is None and done.set_up_s is not None:
        simulating_s = done.user_s - done.set_up_s
    if simulating_s is not None and not _LEAST_S <= simulating_s <= done.user_s + _LEAST_S:
        raise BenchError(
            f"{peer.name}: the simulating part took {simulating_s:g} s of {done.user_s:g} s of "
            f"user time; it must take at least {_LEAST_S:g} s, and not more than the process",
            2,
        )
    hops = int(_last(_HOPS, done.output) or 0) or None
    return Run(peer.name, done.user_s, simulating_s, hops, done.others_cores)


def _last(pattern: re.Pattern[str], output: str) -> float | None:
    found = pattern.findall(output)
    return float(found[-1]) if found else None


# Processes


def measured(name: str, command: Sequence[str], limit_s: float) -> Process:
    """Run a command to its end, and return its output and its user time.

    Raises ``BenchError``, which begins with ``name``, if the command cannot be started, fails, or
    takes more than ``limit_s``. All its processes have ended when this function returns.
    """
    busy_s, began = _busy_s(), time.monotonic()
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise BenchError(f"{name}: {command[0]!r} cannot be started: {why}", 2) from None
    said = _Said(process.pid)
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        is_over = _listen(process, said, began + limit_s)
    finally:
        # The zombie still holds the number of its group, so that no other group is killed.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
    if not is_over:
        raise BenchError(f"{name} was stopped: it took more than {span(limit_s)}", 2)
    if process.returncode != 0:
        raise BenchError(f"{name} failed with exit code {process.returncode}{said.why()}", 2)
    user_s, others = usage.ru_utime, None
    if user_s < _LEAST_S:
        raise BenchError(
            f"{name} took {user_s:g} s of user time: a comparison needs a load of at least "
            f"{_LEAST_S:g} s{said.why()}",
            2,
        )
    if busy_s is not None and (after_s := _busy_s()) is not None:
        own_s = usage.ru_utime + usage.ru_stime
        others = max(0.0, after_s - busy_s - own_s) / (time.monotonic() - began)
    return Process(said.text("stdout"), user_s, said.set_up_s, others)


class _Said:
    """The last MiB of the output of a process, and its user time at the line ``setup done``."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._data = {"stdout": bytearray(), "stderr": bytearray()}
        self.set_up_s: float | None = None

    def add(self, where: str, data: bytes) -> None:
        """Add output; ``where`` is ``stdout`` or ``stderr``."""
        kept = self._data[where]
        if self.set_up_s is None and where == "stdout":
            begin = kept.rfind(b"\n") + 1
            if _SET_UP.search(bytes(kept[begin:][:64]) + data):
                self.set_up_s = _user_s(self._pid)
        kept += data
        del kept[:-_MOST_BYTES]

    def text(self, where: str) -> str:
        """Return the output as text."""
        return self._data[where].decode(errors="replace")

    def why(self) -> str:
        """Return the last lines of the output for a message; empty without output."""
        lines = (self.text("stderr").strip() or self.text("stdout").strip()).splitlines()[-15:]
        return "".join(f"\n{clean(line, 400)}" for line in lines)


def _listen(process: subprocess.Popen[bytes], said: _Said, until: float) -> bool:
    """Read the output of a process until it ends. Returns False if it has not ended at ``until``.

    The process is not reaped.
    """
    with selectors.DefaultSelector() as selector:
        for where, pipe in (("stdout", process.stdout), ("stderr", process.stderr)):
            assert pipe is not None
            selector.register(pipe, selectors.EVENT_READ, where)
        while time.monotonic() < until:
            ready = selector.select(0.1) if selector.get_map() else []
            for key, _ in ready:
                data = os.read(key.fd, 1 << 16)
                if data:
                    said.add(key.data, data)
                else:
                    selector.unregister(key.fileobj)
            if not ready:
                # A process of its own that it leaves behind can hold the pipes open.
                flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
                if os.waitid(os.P_PID, process.pid, flags) is not None:
                    return True
                if not selector.get_map():
                    time.sleep(0.01)
    return False


def _user_s(pid: int) -> float | None:
    """Return the user time of a process so far, in s; None where the system does not tell it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None


def _busy_s() -> float | None:
    """Return the CPU time of all processes since the machine started, in s; None if unknown."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
        user, nice, system, _idle, _wait, irq, soft, stolen = (int(f) for f in fields[:8])
    except (OSError, ValueError):
        return None
    return (user + nice + system + irq + soft + stolen) / os.sysconf("SC_CLK_TCK")


# Words and records


def sentences(comparison: Comparison) -> Iterator[str]:
    """Yield the sentences that a reader of the ratios of a comparison must know."""
    name = clean(comparison.peer.name, 40)
    if comparison.is_assumed:
        yield (
            f"{name} prints no hops=N: it is assumed to have the packet-hops of Eastwest, which "
            "holds only for equal flows on an equal network."
        )
    if not comparison.separates:
        yield (
            f"{name} does not tell the CPU time of its simulating part (run_user=S): only whole "
            "processes are compared, which for Eastwest includes the start of Python and the "
            "result tables."
        )
    cores = comparison.others_cores
    if cores is None:
        yield "The load of the machine by other processes is not known."
    elif cores > IDLE_CORES:
        yield (
            f"Machine shared: other processes used up to {cores:.1f} cores during a run. This "
            "slows simulators unequally, so do not quote these numbers."
        )
    else:
        yield f"Other processes used at most {cores:.2f} cores."


def record(comparisons: Sequence[Comparison], settings: Sequence[str]) -> dict[str, Any]:
    """Return a JSON object with all runs and ratios, the machine and the version of Eastwest."""
    cores = [comparison.others_cores for comparison in comparisons]
    runs, ratios = [], []
    for each in comparisons:
        whole = not each.separates
        ratios.append(
            {
                "against": each.peer.name,
                "scenario": each.scenario,
                "command": shlex.join(each.peer.command),
                "packet_hops_assumed": each.is_assumed,
                "hops_per_cpu_s": each.ratios(whole),
                "hops_per_cpu_s_of": "whole process" if whole else "simulating part",
                "hops_per_user_s_of_whole_process": each.ratios(whole=True),
            }
        )
        for which in (0, 1):
            for pair, rate in zip(each.pairs, each.rates(which, whole), strict=True):
                run = pair[which]
                runs.append(
                    {
                        "simulator": run.simulator,
                        "beside": each.peer.name,
                        "user_s": run.user_s,
                        "simulating_s": run.simulating_s,
                        "packet_hops": each.hops(run),
                        "hops_per_cpu_s": rate,
                        "others_cores": run.others_cores,
                    }
                )
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "quiet": all(one is not None and one <= IDLE_CORES for one in cores),
        "machine": _machine(),
        "version": core.version(),
        "build": core.build(),
        "settings": list(settings),
        "ratios": ratios,
        "runs": runs,
    }


def _machine() -> dict[str, str]:
    """Return the model of the processor, the number of cores and the kernel of this machine."""
    model = ""
    with contextlib.suppress(OSError):
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
        model = found[1] if found else ""
    kernel = os.uname()
    return {
        "processor": model or kernel.machine,
        "cores": str(os.cpu_count()),
        "kernel": kernel.release,
    }
