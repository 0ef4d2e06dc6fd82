"""Commands that are disturbed, each with its inputs and its expected results.

A case works in a folder of its own. Its inputs are in another folder, without faults. Some cases
begin with an earlier state: a result that is replaced, or a sweep that is half done.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_DATA = ROOT / "tests" / "data"

SCENARIO = """
schema = 1
name = "tiny"
[fabric]
kind = "star"
hosts = 4
host_rate = "1 Gbit/s"
[[workload]]
name = "reads"
kind = "incast"
receiver = "h0"
rounds = 3
block_bytes = "20 KB"
"""
SWEEP = """
scenario = "tiny.toml"
seeds = {seeds}
[[axis]]
path = "fabric.host_rate"
values = ["1 Gbit/s", "10 Gbit/s"]
"""
CLAIM = """
claim = 1
id = "tiny/A1"
source = "nobody, figure 1"
statement = "A faster link reads faster."
published = "half the time"
profile = "plain"
[[open]]
what = "Hosts"
chosen = "4"
because = "few"
[runs.rates]
scenario = "../tiny.toml"
seeds = 2
axis = [{ path = "fabric.host_rate", values = ["1 Gbit/s", "10 Gbit/s"] }]
quick = { seeds = 1 }
[[metric]]
name = "time saved"
runs = "rates"
measure = "reduction"
value = "flows.fct_us.mean"
at = { "fabric.host_rate" = "10 Gbit/s" }
against = { "fabric.host_rate" = "1 Gbit/s" }
factor = 100
unit = "%"
low = 20
[figure]
kind = "intervals"
title = "Saved"
caption = "The band is shaded."
"""


@dataclass(frozen=True)
class Case:
    """A command of Eastwest: its arguments, with ``{inputs}`` in place of the folder of inputs."""

    name: str
    words: tuple[str, ...]
    #: Kind and name of each result that the command leaves; the kinds are those of ``look.py``.
    leaves: tuple[tuple[str, str], ...]
    #: Arguments of a command that runs before, in the same folder but with other inputs.
    before: tuple[str, ...] = ()

    def command(self, inputs: Path) -> list[str]:
        """Return the arguments after ``eastwest``."""
        return [word.format(inputs=inputs) for word in self.words]

    def prepare(self, inputs: Path, work: Path) -> None:
        """Put the working folder into the state in which the case begins."""
        (work / "tmp").mkdir(parents=True)
        if self.before:
            words = [word.format(inputs=inputs) for word in self.before]
            command = [sys.executable, "-m", "eastwest", *words]
            subprocess.run(command, cwd=work, check=True, capture_output=True)


_RUN = ("run", "{inputs}/tiny.toml", "--out", "out", "--force")
_SWEEP = ("--jobs", "2", "--resume", "--store", "store", "--out", "out", "--yes")
_STORE = (("store", "store"),)
CASES = (
    Case("run", _RUN, (("out", "result"),)),
    Case("run-replace", _RUN, (("out", "result"),), (*_RUN, "--seed", "2")),
    Case("sweep", ("sweep", "{inputs}/sweep.toml", *_SWEEP), (("out", "sweep"), *_STORE)),
    Case(
        "sweep-resume",
        ("sweep", "{inputs}/sweep.toml", *_SWEEP),
        (("out", "sweep"), *_STORE),
        ("sweep", "{inputs}/begun.toml", *_SWEEP),
    ),
    Case(
        "claims",
        ("claims", "tiny/A1", "--quick", "--papers", "{inputs}/papers", "--out", "out",
         "--store", "store", "--jobs", "1"),
        (("out", "files"), *_STORE),
    ),
    Case(
        "report",
        ("report", "{inputs}/result", "--out", "page.html"),
        (("page.html", "file"),),
    ),
    Case(
        "trace-import",
        ("trace", "import", "{inputs}/swim.tsv", "--out", "out", "--force"),
        (("out", "trace"),),
    ),
    Case(
        "observe-import",
        ("observe", "import", "{inputs}/spans.json", "--out", "out", "--force"),
        (("out", "spans"),),
    ),
)  # fmt: skip
BY_NAME = {case.name: case for case in CASES}


def write_inputs(folder: Path) -> None:
    """Write the inputs of all cases."""
    folder.mkdir(parents=True)
    (folder / "tiny.toml").write_text(SCENARIO)
    (folder / "sweep.toml").write_text(SWEEP.format(seeds=3))
    (folder / "begun.toml").write_text(SWEEP.format(seeds=1))
    claims = folder / "papers" / "tiny" / "claims"
    claims.mkdir(parents=True)
    (claims / "A1.toml").write_text(CLAIM)
    (claims.parent / "tiny.toml").write_text(SCENARIO)
    swim = _DATA / "traces" / "swim" / "FB-2009_samples_24_times_1hr_0_first50jobs.tsv"
    shutil.copyfile(swim, folder / "swim.tsv")
    shutil.copyfile(_DATA / "spans" / "otel-proto__trace.json", folder / "spans.json")
    command = [sys.executable, "-m", "eastwest", "run", "tiny.toml", "--out", "result"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
