"""Measures how much CPU time commands use after Ctrl-C: ``python tools/interrupts.py``.

Each command is first run to its end (or for ``LONGEST`` seconds of CPU time), then five times with
SIGINT at moments spread over that time. Prints the rows of the table in docs/internals/memory.md:
the most CPU time between signal and answer (a line on the terminal, or the end), between signal and
end, and the moment of that signal. Other work on the machine hardly changes CPU time. Where the end
takes more than a second, the command runs once more with a second SIGINT half a second after the
first; the time from the second signal to the end is printed, too. Processes that hold more than
``MOST`` bytes are ended.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

LONGEST = 15.0
MOST = 4_000_000_000

RATES = "host_rate = '10 Gbit/s'\nuplink_rate = '10 Gbit/s'\n"
SPREAD = "[[workload]]\nname = 'all'\nkind = 'permutation'\nbytes = '100 KB'\n"
LISTED = "[[workload]]\nname = 'all'\nkind = 'flow-list'\nfile = 'flows.csv'\n"
SCENARIOS = {
    "torus": f"schema = 1\n[fabric]\nkind = 'torus'\nsizes = [300, 300]\n{RATES}{SPREAD}",
    "tree": f"schema = 1\n[fabric]\nkind = 'fat-tree'\nk = 128\n{RATES}{SPREAD}",
    "flows": f"schema = 1\nfidelity = 'flow'\n[fabric]\nkind = 'fat-tree'\nk = 32\n{RATES}{SPREAD}",
    "dcell": f"schema = 1\n[fabric]\nkind = 'dcell'\nn = 10\nlevels = 2\n{RATES}{SPREAD}",
    "short": f"schema = 1\nduration = '1 ns'\n[fabric]\nkind = 'fat-tree'\nk = 64\n{RATES}{SPREAD}",
    "trace": f"schema = 1\n[fabric]\nkind = 'fat-tree'\nk = 8\n{RATES}{LISTED}",
}
COMMANDS = {
    "check, torus 300 × 300": ["check", "torus.toml"],
    "topology show, torus 300 × 300": ["topology", "show", "torus.toml"],
    "run, torus 300 × 300": ["run", "torus.toml", "--force", "--out", "r"],
    "run, fat tree k = 128": ["run", "tree.toml", "--force", "--out", "r"],
    "run, fat tree k = 32 with flows": ["run", "flows.toml", "--force", "--out", "r"],
    "run, DCell of 12,210 servers": ["run", "dcell.toml", "--force", "--out", "r"],
    "run of 1 ns, fat tree k = 64": ["run", "short.toml", "--force", "--out", "r"],
    "check, list of a million flows": ["check", "trace.toml"],
    "trace import, SWIM with 300,000 jobs": ["trace", "import", "jobs.tsv", "-o", "t", "--force"],
    "observe import, Zipkin with 200,000 spans": [
        *("observe", "import", "spans.json", "-o", "s", "--force"),
    ],
    "report of the demo": ["report", "demo"],
}


def used_s(child: int) -> float:
    """Return the CPU time of a process since its start, in s."""
    fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def of_children_s() -> float:
    """Return the CPU time of all child processes that have ended, in s."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@dataclass
class Ended:
    """End of a command: CPU times in s after the last SIGINT; without one, of the whole run."""

    #: CPU time in s from the signal until the first output, or until the end.
    answered_s: float
    #: CPU time in s from the last signal until the end; without a signal, of the whole command.
    ended_s: float
    #: Exit code; None if the process was killed.
    code: int | None


def command(arguments: list[str], folder: Path, after_s: list[float]) -> Ended:
    """Run a command, with SIGINT after each of these CPU times, and return its end."""
    program = "from eastwest.cli import main; print('ready', flush=True); main()"
    before = of_children_s()
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.readline()
        os.set_blocking(child.stderr.fileno(), False)
        started, waiting, told, answered = used_s(child.pid), [*after_s], 0.0, None
        while child.poll() is None:
            used = used_s(child.pid) - started
            if child.stderr.read() and answered is None and told:
                answered = used - told
            if waiting and used >= waiting[0]:
                waiting.pop(0)
                child.send_signal(signal.SIGINT)
                told, answered = used, None
            statm = Path(f"/proc/{child.pid}/statm").read_text().split()
            if used > 2 * LONGEST or (statm and int(statm[1]) * 4096 > MOST):
                child.kill()
                return Ended(used, used, None)
            if not after_s and used > LONGEST:
                child.kill()
                return Ended(used, used, None)
            time.sleep(0.005)
        code = child.wait()
    ended = of_children_s() - before - started - told
    return Ended(ended if answered is None else answered, ended, code)


def row(name: str, folder: Path) -> str:
    """Run a command with SIGINT at five moments.

    Return a table row: slowest answer and slowest end.
    """
    whole = command(COMMANDS[name], folder, []).ended_s
    moments = [whole * (fifth + 0.5) / 5 for fifth in range(5)]
    ended = [command(COMMANDS[name], folder, [moment]) for moment in moments]
    answered = max(each.answered_s for each in ended)
    last, when = max((each.ended_s, moment) for each, moment in zip(ended, moments, strict=True))
    second = ""
    if last > 1:
        again = command(COMMANDS[name], folder, [when, when + 0.5])
        second = f"{again.ended_s:.2f} s"
    codes = ", ".join(sorted({str(each.code) for each in ended}))
    cells = (name, f"{whole:.1f} s", f"{answered:.2f} s", f"{last:.2f} s", f"{when:.1f} s", second)
    return f"| {' | '.join(cells)} | {codes} |"


def write_inputs(folder: Path) -> None:
    """Write scenarios and the files that they and other commands read."""
    for name, text in SCENARIOS.items():
        (folder / f"{name}.toml").write_text(text)
    rows = (f"h{i % 128},h{(i + 1) % 128},1000,{i / 1e6}" for i in range(1_000_000))
    (folder / "flows.csv").write_text("\n".join(["src,dst,bytes,start_s", *rows]) + "\n")
    jobs = (f"job{i}\t{i}\t1\t{i * 1000}\t{i * 100}\t{i * 10}" for i in range(300_000))
    (folder / "jobs.tsv").write_text("\n".join(jobs) + "\n")
    spans = [
        {
            "traceId": f"{1 + i // 4:016x}",
            "id": f"{1 + i:016x}",
            **({"parentId": f"{1 + i - i % 4:016x}"} if i % 4 else {}),
            "name": f"call{i % 4}",
            "timestamp": 1_700_000_000_000_000 + 1000 * i + i % 4,
            "duration": 900 - 10 * (i % 4),
            "localEndpoint": {"serviceName": f"service{i % 4}"},
        }
        for i in range(200_000)
    ]
    (folder / "spans.json").write_text(json.dumps(spans))


def main(names: list[str]) -> None:
    """Print all rows."""
    # A shell starts background processes with SIGINT ignored, which child processes inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_inputs(folder)
        subprocess.run(
            [sys.executable, "-m", "eastwest", "run", "demo", "--out", "demo"],
            cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for name in names or COMMANDS:
            print(row(name, folder), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
