"""Runs commands one after the other and disturbs each by a failing call or by SIGKILL.

It is a program of its own. It reads requests from standard input and answers on standard output,
one JSON object per line. Each command runs in a process forked from this one, which has imported
Eastwest once: with a new interpreter for each command, most kills would happen during the import. A
request names the case and either ``kind``, ``at``, ``how`` (see ``shim.c``) or ``kill_s``, seconds
until SIGKILL.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eastwest import cli
from faults.cases import BY_NAME, Case

#: Time limit of a command in s; also the limit of its child processes, counted from its end.
_LONGEST_S = 600.0
_OUTLIVES_S = 30.0
# Option PR_SET_CHILD_SUBREAPER of prctl (linux/prctl.h): orphans become children of this process.
_SUBREAPER = 36
_ENDED = b"memory allocation of "
#: Kinds of results that grow file by file; any other result must be either the old or the new one.
_GROWS = {"store", "files"}


@dataclass
class Ended:
    """Outcome of a command: exit code, output, and problems."""

    code: int
    said: str
    wall_s: float
    killed: bool = False
    #: Number of calls counted, and number of calls that were made to fail.
    counts: tuple[int, int] = (0, 0)
    problems: list[str] = field(default_factory=list)


class Disturber:
    """Runs cases in a folder of its own; ``shim`` is the loaded library of ``shim.c``."""

    def __init__(self, folder: Path, inputs: Path, shim: Path) -> None:
        self.folder = folder
        self.inputs = inputs
        self.work = folder / "work"
        self.state = folder / "state"
        self.shim = ctypes.CDLL(str(shim))
        self.templates: dict[str, Path] = {}
        self.before: dict[str, dict[str, str]] = {}
        self.expected: dict[str, dict[str, str]] = {}
        self.looker = subprocess.Popen(
            [sys.executable, "-m", "faults.look"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={k: v for k, v in os.environ.items() if k != "LD_PRELOAD"},
        )
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)

    def ready(self, case: Case) -> None:
        """Run a case undisturbed once, to store its expected results."""
        if case.name in self.expected:
            return
        template = self.folder / case.name
        case.prepare(self.inputs, template)
        self.templates[case.name] = template
        self._fresh(case)
        self.before[case.name] = self._look(case)["digests"]
        ended = self._run(case, {})
        found = self._look(case)
        if ended.code or found["problems"] or found["left"] or ended.problems:
            raise RuntimeError(f"{case.name} fails undisturbed: {ended} {found}")
        self.expected[case.name] = found["digests"]

    def trial(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run a case with one disturbance, then again without one, and return the findings."""
        case = BY_NAME[request["case"]]
        self.ready(case)
        self._fresh(case)
        ended = self._run(case, request)
        found = self._look(case)
        losses = ended.problems + found["problems"] + self._losses(case, ended, found["digests"])
        again = self._run(case, {})
        after = self._look(case)
        losses += self._losses_after_rerun(case, again, after)
        return {
            **request,
            "code": ended.code,
            "wall_s": ended.wall_s,
            "killed": ended.killed,
            "calls": ended.counts[0],
            "faults": ended.counts[1],
            "said": ended.said[-1500:],
            "left": len(found["left"]),
            "losses": losses,
        }

    def _losses(self, case: Case, ended: Ended, digests: dict[str, str]) -> list[str]:
        """Return the problems of the end of a command and of its results."""
        expected, before = self.expected[case.name], self.before[case.name]
        losses = []
        for name, kind in case.leaves:
            if kind in _GROWS:
                continue
            if digests.get(name) not in {expected[name], before.get(name)}:
                losses.append(f"{name} is neither the old nor the new result")
        if ended.killed:
            return losses
        if ended.code == 0:
            return losses if digests == expected else [*losses, "exit code 0 without the result"]
        aborted = ended.code == -signal.SIGABRT and _ENDED in ended.said.encode()
        if ended.code != 2 and not aborted:
            losses.append(f"exit code {ended.code}")
        if "Traceback" in ended.said or ("eastwest: " not in ended.said and not aborted):
            losses.append("no message with the error and the place")
        return losses

    def _losses_after_rerun(self, case: Case, again: Ended, after: dict[str, Any]) -> list[str]:
        """Return the problems of the results of a second, undisturbed run of the command."""
        losses = list(again.problems)
        if again.code != 0:
            losses.append(f"again: exit code {again.code}: {again.said[-300:]}")
        if after["digests"] != self.expected[case.name]:
            losses.append("again: not the result of an undisturbed command")
        return losses + [f"again: {each} stays" for each in after["left"] + after["problems"]]

    def _fresh(self, case: Case) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.templates[case.name], self.work)

    def _look(self, case: Case) -> dict[str, Any]:
        assert self.looker.stdin is not None and self.looker.stdout is not None
        request = {"work": str(self.work), "leaves": case.leaves}
        self.looker.stdin.write(json.dumps(request).encode() + b"\n")
        self.looker.stdin.flush()
        answer: dict[str, Any] = json.loads(self.looker.stdout.readline())
        return answer

    def _run(self, case: Case, request: dict[str, Any]) -> Ended:
        """Run the command of a case in the working folder and return its end."""
        self.state.write_bytes(bytes(16))
        said = self.folder / "said"
        began = time.monotonic()
        child = os.fork()
        if child == 0:
            self._run_command(case, request, said)
        limit = request.get("kill_s", _LONGEST_S)
        status = _wait(child, limit)
        wall_s = time.monotonic() - began
        killed = False
        if status is None:
            os.kill(child, signal.SIGKILL)
            status = os.waitpid(child, 0)[1]
            killed = os.WIFSIGNALED(status)
        problems = self._orphans()
        if killed and "kill_s" not in request:
            problems.append(f"the command took longer than {_LONGEST_S} s")
        data = self.state.read_bytes()
        counts = int.from_bytes(data[:8], "little"), int.from_bytes(data[8:], "little")
        code = os.waitstatus_to_exitcode(status)
        killed = killed or (request.get("how") == "kill" and code == -signal.SIGKILL)
        return Ended(code, said.read_text(errors="replace"), wall_s, killed, counts, problems)

    def _run_command(self, case: Case, request: dict[str, Any], said: Path) -> None:
        """Turn this forked process into the command; never returns."""
        code = 3
        try:
            os.chdir(self.work)
            os.environ["TMPDIR"] = tempfile.tempdir = str(self.work / "tmp")
            if "kind" in request:
                os.environ["FAULT_STATE"] = str(self.state)
                os.environ["FAULT_BELOW"] = str(self.work)
                for name in ("kind", "at", "how", "stays", "least"):
                    os.environ[f"FAULT_{name.upper()}"] = str(request.get(name, ""))
            null = os.open(os.devnull, os.O_RDWR)
            errors = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for target, source in ((0, null), (1, null), (2, errors)):
                os.dup2(source, target)
            sys.argv = ["eastwest", *case.command(self.inputs)]
            self.shim.fault_begin()
            cli.main()
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 0 if left.code is None else 1
        except BaseException:
            # Print the error as a Python interpreter does when an exception ends it.
            sys.excepthook(*sys.exc_info())
            code = 1
        atexit._run_exitfuncs()
        sys.stderr.flush()
        os._exit(code)

    def _orphans(self) -> list[str]:
        """Wait for children of the command that outlive it, and return a problem for each.

        Orphans become children of this process. The process that runs ``look.py`` is also its
        child, but is no orphan.
        """
        until = time.monotonic() + _OUTLIVES_S
        children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
        while True:
            left = [int(n) for n in children.read_text().split() if int(n) != self.looker.pid]
            if not left:
                return []
            if time.monotonic() > until:
                for number in left:
                    os.kill(number, signal.SIGKILL)
                return [f"{len(left)} processes outlive the command by {_OUTLIVES_S} s"]
            for number in left:
                os.waitpid(number, os.WNOHANG)
            time.sleep(0.005)


def _wait(child: int, limit_s: float) -> int | None:
    """Return the status of a child that ends within the limit, or None."""
    handle = os.pidfd_open(child)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        if poll.poll(limit_s * 1000):
            return os.waitpid(child, 0)[1]
    finally:
        os.close(handle)
    return None


def main() -> None:
    """Answer requests until there are no more; the arguments are ``FOLDER INPUTS SHIM``."""
    folder, inputs, shim = map(Path, sys.argv[1:])
    disturber = Disturber(folder, inputs, shim)
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        answers.write(json.dumps(disturber.trial(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
