"""``python -m hadoop_check``: start the cluster, run TeraSort at each rate, compare, clean up."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from eastwest.run import Setting
from hadoop_check import cluster, compare, jars, network, wire
from hadoop_check.network import MASTER, NODES, SWITCH, WORKERS, Shape

_TOOLS = ("ip", "tc", "ss", "nstat", "unshare", "sysctl", "java", "mvn")
_ROW_BYTES = 100
_BLOCK = 64 << 20
#: Rate, burst and queues of all cables while the input is generated.
_FAST = Shape(2000, 1_000_000, 2_000_000, 100_000)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check.

    Return 0 if all values are in their bands, 1 if not, 2 if it cannot run here.
    """
    options = _options(arguments)
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    shapes = [Shape(rate, options.buffer, congestion=options.congestion) for rate in options.rates]
    if options.dry_run:
        print(plan(shapes, options.blocks, options.copies, options.pack))
        return 0
    if os.geteuid() != 0:
        return _refuse("needs root: the check makes network namespaces and shapes their links")
    if missing:
        return _refuse(f"needs {', '.join(missing)}: install iproute2, maven and a Java runtime")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    options.cache.mkdir(parents=True, exist_ok=True)
    try:
        text, held = _check(options, shapes)
    except (cluster.ClusterError, subprocess.CalledProcessError) as error:
        print(f"hadoop-check: {error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        print("hadoop-check: interrupted; namespaces and files are removed", file=sys.stderr)
        return 130
    print(text)
    return 0 if held else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="hadoop_check", description="TeraSort on a real Hadoop against the simulator."
    )
    parser.add_argument(
        "--rates", type=_rates, default=[50.0, 20.0], help="Mbit/s, such as 50,20 (the default)"
    )
    parser.add_argument("--buffer", type=int, default=1_000_000, help="bytes of a switch port")
    parser.add_argument("--congestion", choices=("reno", "cubic"), default="reno")
    parser.add_argument("--copies", type=int, default=5, help="parallel copies of a reduce")
    parser.add_argument("--pack", action="store_true", help="two reduces on a node, not one")
    parser.add_argument("--blocks", type=int, default=8, help="blocks of 64 MiB to sort")
    parser.add_argument("--seeds", type=int, default=5, help="simulated runs of each rate")
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path.home() / ".cache" / "eastwest",
        help="folder in which jars are kept",
    )
    parser.add_argument("--keep", type=Path, help="folder for copies of histories and logs")
    parser.add_argument("--dry-run", action="store_true", help="only print the commands")
    return parser.parse_args(arguments)


def _rates(text: str) -> list[float]:
    rates = [float(part) for part in text.split(",")]
    if not rates or min(rates) <= 0:
        raise ValueError("rates must be above 0")
    return rates


def _refuse(message: str) -> int:
    print(f"hadoop-check: {message}", file=sys.stderr)
    return 2


def _stop(number: int, _: FrameType | None) -> None:
    raise KeyboardInterrupt(f"signal {number}")


def _say(message: str) -> None:
    print(f"hadoop-check: {message}", file=sys.stderr, flush=True)


def _java_home() -> Path:
    named = os.environ.get("JAVA_HOME")
    found = shutil.which("java")
    if named:
        return Path(named)
    if found is None:
        raise cluster.ClusterError("no Java runtime was found: install one")
    return Path(found).resolve().parents[1]


def terasort(blocks: int, copies: int, pack: bool) -> list[str]:
    """Return the arguments of the TeraSort job."""
    return [
        "terasort",
        f"-Dmapreduce.reduce.memory.mb={1024 if pack else 2048}",
        "-Dmapreduce.job.reduces=4",
        "-Dmapreduce.job.reduce.slowstart.completedmaps=1.0",
        f"-Dmapreduce.reduce.shuffle.parallelcopies={copies}",
        "-Dmapreduce.client.submit.file.replication=4",
        f"/gen{blocks}",
        "/sorted",
    ]


def teragen(blocks: int) -> list[str]:
    """Return the arguments of the job that generates data: one file of a block for each map."""
    rows = blocks * _BLOCK // _ROW_BYTES
    return ["teragen", f"-Dmapreduce.job.maps={blocks}", str(rows), f"/gen{blocks}"]


def plan(shapes: Sequence[Shape], blocks: int, copies: int, pack: bool) -> str:
    """Return every command of a run, in order, as text."""
    lines = [" ".join(jars.command(Path("pom.xml"), Path("jars")))]
    lines += [" ".join(command) for command in network.build_commands()]
    lines += [f"start HDFS, YARN and the history server on {', '.join(NODES)}"]
    lines += [" ".join(command) for command in network.shape_commands(_FAST)]
    lines += [" ".join(teragen(blocks))]
    for shape in shapes:
        lines += [" ".join(command) for command in network.shape_commands(shape)]
        lines += [" ".join(terasort(blocks, copies, pack))]
    return "\n".join(lines)


def _check(options: argparse.Namespace, shapes: Sequence[Shape]) -> tuple[str, bool]:
    _say("fetching Hadoop from Maven Central, unless the cache has it")
    jar_folder = jars.fetch(options.cache)
    measured: list[compare.Measured] = []
    with (
        tempfile.TemporaryDirectory(prefix="ewhc-", dir="/var/tmp") as folder,
        contextlib.ExitStack() as kept,
    ):
        work = Path(folder)
        if options.keep is not None:
            kept.callback(_keep, work, options.keep)
        _say("starting five nodes")
        with (
            network.network(),
            cluster.cluster(
                work / "cluster", jar_folder, _java_home(), 4 if options.pack else 1
            ) as hadoop,
        ):
            network.shape(_FAST)
            _say(f"making {options.blocks} blocks of data")
            hadoop.job(*teragen(options.blocks))
            hadoop.history(work / "history" / "gen")
            for number, shape in enumerate(shapes, 1):
                _say(f"sorting at {shape.rate_mbit:g} Mbit/s")
                into = work / "history" / str(number)
                measured.append(_sort(hadoop, shape, options, into))
        _say("simulating the same jobs")
        return compare.report(measured, options.seeds, _scenario(options), os.cpu_count() or 2)


def _scenario(options: argparse.Namespace) -> dict[str, Setting]:
    """Return the settings of the simulated scenario that the options change."""
    size = options.blocks * _BLOCK // _ROW_BYTES * _ROW_BYTES
    changed: dict[str, Setting] = {
        "workload.hadoop.job.0.input": f"{size} B",
        "workload.hadoop.hadoop.mapreduce.reduce.shuffle.parallelcopies": options.copies,
    }
    if options.pack:
        changed |= {
            "workload.hadoop.hadoop.mapreduce.reduce.memory.mb": 1024,
            "workload.hadoop.control.reduces_per_heartbeat": 2,
        }
    return changed


def _keep(work: Path, into: Path) -> None:
    """Copy histories and logs out of the temporary folder."""
    for pattern in ("history/**/*.jhist", "cluster/*.log", "cluster/*/conf/*.xml"):
        for path in work.glob(pattern):
            target = into / path.relative_to(work)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


def _sort(
    hadoop: cluster.Cluster, shape: Shape, options: argparse.Namespace, into: Path
) -> compare.Measured:
    network.shape(shape)
    before, dropped = cluster.counters(), _drops()
    with wire.Meter() as meter:
        hadoop.job(*terasort(options.blocks, options.copies, options.pack))
    after, dropped_after = cluster.counters(), _drops()
    history = hadoop.history(into)
    hadoop.file_system("-rm", "-r", "-skipTrash", "/sorted")
    return compare.Measured(
        shape,
        history,
        meter.samples,
        sum(dropped_after[worker] - dropped[worker] for worker in WORKERS),
        after["retransmits"] - before["retransmits"],
        after["timeouts"] - before["timeouts"],
        options.blocks,
        dropped_after[MASTER] - dropped[MASTER],
    )


def _drops() -> dict[str, int]:
    """Return the packets dropped at the switch's port to each node since cables were shaped."""
    command = ["ip", "netns", "exec", SWITCH, "tc", "-s", "qdisc", "show"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return drops_by_node(shown)


def drops_by_node(shown: str) -> dict[str, int]:
    """Return the drops of the ports towards the nodes in the output of ``tc -s qdisc show``."""
    drops, node = dict.fromkeys(NODES, 0), ""
    words = shown.replace(",", " ").split()
    for word, following in itertools.pairwise(words):
        if word == "dev":
            node = following.removeprefix("p-")
        elif word == "(dropped" and node in drops:
            drops[node] += int(following)
    return drops


if __name__ == "__main__":
    sys.exit(main())
