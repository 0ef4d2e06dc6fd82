#!/usr/bin/env python3
"""Compares the speed of Eastwest, ns-3, ns-2 and htsim in scenarios S1 and S2; writes a record.

The programs for ns-3 and ns-2 are not in this repository: ``--peers-dir`` names a folder with
``ns3_s1_s2.cc`` and ``ns2_s1.tcl``. They need g++ and Debian's packages libns3-dev and ns2::

    apt-get install libns3-dev ns3 ns2 g++
    make build
    benches/compare_peers.py --peers-dir DIR [--htsim DIR] [--ns3-optimised PROGRAM]

``--htsim`` names a checkout of https://github.com/Broadcom/csg-htsim, in which htsim's library is
built; the program that uses it is ``benches/peers/htsim_s1.cpp``. ``--ns3-optimised`` names the
ns-3 program built against ns-3's source with its optimized profile, because Debian's package has
logging compiled in.

The compared number is packet-hops per second of CPU time, at equal flow sizes. A run is measured
from outside: user time and peak memory of the whole process as the kernel accounts for them. The
user time of the simulating part alone is measured if the program separates it:

* ns-3 prints the time that ``Simulator::Run`` took, and htsim's program the time of its loop;
* ns-2 prints a line when its set-up is done; the user time until then is read from ``/proc``;
* for Eastwest ``cpu_s`` is used, which is more: user and system time from the reading of the
  scenario to the finished tables.

The other simulators are timed without the callbacks that count packet-hops. One more run each
counts them; its last flow must end at the same time as in the timed run. Eastwest runs with all its
default measurements, which include packet-hops. The CPU time that other processes used meanwhile is
recorded beside every run.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NS3_LIBRARIES = "core network internet point-to-point applications traffic-control bridge stats"
BUILD_NS3 = ["g++", "-std=c++17", "-O3", "-march=native"]
BUILD_HTSIM = ["g++", "-std=c++11", "-O3", "-march=native"]
HTSIM_PROGRAM = ROOT / "benches/peers/htsim_s1.cpp"
NS3, NS3_OPTIMISED, NS2, HTSIM = "ns-3", "ns-3 from source, optimised", "ns-2", "htsim"
TICK = 1 / os.sysconf("SC_CLK_TCK")
# Maximum number of cores that other processes may use in a run of a record marked as quiet.
QUIET_CORES = 0.2
SHARED = (
    "**Machine shared**: other processes ran meanwhile (see the last column of the runs). That "
    "slows simulators unequally, so neither rates nor ratios are to be quoted from this record."
)


@dataclass
class Run:
    """Cost of one run of one simulator."""

    simulator: str
    command: str
    flow_bytes: int
    user_s: float
    simulating_s: float
    peak_mb: float
    packet_hops: int
    fct_last_s: float
    fct_mean_s: float
    fct_p99_s: float
    others_cores: float

    @property
    def rate(self) -> float:
        """Return packet-hops per second of CPU time of the simulating part."""
        return self.packet_hops / self.simulating_s


@dataclass
class Measured:
    """Output, CPU time and memory of a process."""

    output: str
    user_s: float
    user_s_at_mark: float
    peak_mb: float
    others_cores: float


def machine_busy_s() -> float:
    """Return the CPU time in s of all processes since the machine started."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(f) for f in fields[:8])
    return (user + nice + system + irq + softirq + steal) * TICK


def measure(command: list[str], mark: str | None = None) -> Measured:
    """Run a command to its end; return its output, CPU times and peak memory.

    ``mark`` is a line of the output at which the user time so far is recorded.
    """
    busy, started = machine_busy_s(), time.monotonic()
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT
        )
        assert process.stdout is not None
        lines: list[str] = []
        at_mark = 0.0
        for line in process.stdout:
            if mark is not None and line.startswith(mark):
                stat = Path(f"/proc/{process.pid}/stat").read_text()
                at_mark = int(stat.rsplit(")", 1)[1].split()[11]) * TICK
            lines.append(line)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            errors.seek(0)
            sys.exit(f"{shlex.join(command)} failed:\n{''.join(lines)}{errors.read()}")
    others = machine_busy_s() - busy - usage.ru_utime - usage.ru_stime
    return Measured(
        output="".join(lines),
        user_s=usage.ru_utime,
        user_s_at_mark=at_mark,
        peak_mb=usage.ru_maxrss * 1024 / 1e6,
        others_cores=max(0.0, others / (time.monotonic() - started)),
    )


def find(pattern: str, text: str) -> float:
    """Return the number that follows a name in the output of another simulator."""
    found = re.search(pattern + r"=([0-9.eE+-]+)", text)
    if found is None:
        sys.exit(f"no {pattern} in the output of another simulator:\n{text}")
    return float(found.group(1))


class Bench:
    """Commands that run each simulator; ``peers`` has the program of each other simulator."""

    def __init__(self, eastwest: Path, peers: dict[str, list[str]], scratch: Path):
        self.eastwest_program = str(eastwest)
        self.peers = peers
        self.scratch = scratch
        self.hops: dict[tuple[str, int], tuple[int, float]] = {}

    def shown(self, command: list[str]) -> str:
        """Return a command as a user would type it: programs without their folders."""
        return shlex.join(Path(part).name if part.startswith("/") else part for part in command)

    def eastwest_json(self, scenario: str, *settings: str) -> tuple[list[str], Measured]:
        """Run Eastwest with ``--json``; return its command and the measured process."""
        command = [self.eastwest_program, "run", scenario]
        for setting in settings:
            command += ["--set", setting]
        out = ["--out", str(self.scratch / "result"), "--force"]
        return [*command, "--json"], measure([*command, *out, "--json"])

    def eastwest(self, flow_bytes: int) -> Run:
        """Run S1 in Eastwest with flows of this size."""
        command, run = self.eastwest_json("s1", f"workload.0.bytes={flow_bytes // 1000} KB")
        s = json.loads(run.output)
        fct = s["flows"]["fct_us"]
        if s["flows"]["completed"] != s["flows"]["count"]:
            sys.exit("Eastwest left flows unfinished")
        return Run(
            simulator="Eastwest",
            command=self.shown(command),
            flow_bytes=flow_bytes,
            user_s=run.user_s,
            simulating_s=s["cpu_s"],
            peak_mb=run.peak_mb,
            packet_hops=s["packet_hops"],
            fct_last_s=s["simulated_s"],
            fct_mean_s=fct["mean"] / 1e6,
            fct_p99_s=fct["p99"] / 1e6,
            others_cores=run.others_cores,
        )

    def peer_hops(self, simulator: str, flow_bytes: int, run: Run | None = None) -> int:
        """Return the packet-hops of another simulator, from a run that counts them.

        With ``run``, the counting run must end at the same simulated time as that run.
        """
        key = (simulator, flow_bytes)
        if key not in self.hops:
            command = self.peer_command(simulator, flow_bytes, True)
            output = measure(command).output
            self.hops[key] = (int(find("hops", output)), find("last", output))
        hops, last = self.hops[key]
        if run is not None and abs(last - run.fct_last_s) > 1e-9:
            sys.exit(f"{simulator} with and without counting differ: {last}, {run.fct_last_s}")
        return hops

    def peer_command(self, simulator: str, flow_bytes: int, counting: bool) -> list[str]:
        """Return the command of S1 in another simulator; ``counting`` counts packet-hops."""
        program, count = self.peers[simulator], "1" if counting else "0"
        if simulator == NS2:
            return [*program, "4", "40", "2", str(flow_bytes), count]
        if simulator == HTSIM:
            return [*program, str(flow_bytes), count]
        return [*program, f"--fs={flow_bytes}", f"--count={count}"]

    def peer(self, simulator: str, flow_bytes: int) -> Run:
        """Run S1 in another simulator, without counting packet-hops."""
        command = self.peer_command(simulator, flow_bytes, False)
        run = measure(command, mark="setup done" if simulator == NS2 else None)
        done = re.search(r"flows=(\d+)/(\d+)", run.output)
        if done is None or done.group(1) != done.group(2):
            sys.exit(f"{simulator} left flows unfinished:\n{run.output}")
        simulating = run.user_s - run.user_s_at_mark
        if simulator != NS2:
            simulating = find("run_user", run.output)
        result = Run(
            simulator=simulator,
            command=self.shown(command),
            flow_bytes=flow_bytes,
            user_s=run.user_s,
            simulating_s=simulating,
            peak_mb=run.peak_mb,
            packet_hops=0,
            fct_last_s=find("last", run.output),
            fct_mean_s=find("meanFCT", run.output),
            fct_p99_s=find("p99", run.output),
            others_cores=run.others_cores,
        )
        result.packet_hops = self.peer_hops(simulator, flow_bytes, result)
        return result

    def incast(self, min_rto_ms: int) -> dict[str, object]:
        """Run S2 in Eastwest and ns-3; return the goodput in Mbit/s and the user time of each."""
        command, run = self.eastwest_json("s2", f"tcp.min_rto={min_rto_ms} ms")
        goodput = json.loads(run.output)["rounds"]["goodput_bps"] / 1e6
        settings = ["--scen=s2", f"--minrto={min_rto_ms / 1000}", "--count=0"]
        ns3_command = [*self.peers[NS3], *settings]
        ns3 = measure(ns3_command)
        return {
            "min_rto_ms": min_rto_ms,
            "commands": [self.shown(command), self.shown(ns3_command)],
            "eastwest_goodput_mbps": goodput,
            "ns3_goodput_mbps": find("goodput_Mbps", ns3.output),
            "eastwest_user_s": run.user_s,
            "ns3_user_s": ns3.user_s,
        }


def in_turns(bench: Bench, sizes: dict[str, int], rounds: int) -> list[Run]:
    """Run Eastwest and each other simulator in turns, at the flow size of that simulator."""
    for peer, size in sizes.items():
        bench.peer_hops(peer, size)
    runs: list[Run] = []
    for turn in range(rounds):
        for peer, size in sizes.items():
            for run in (bench.eastwest(size), bench.peer(peer, size)):
                runs.append(run)
                print(
                    f"round {turn + 1}: {run.simulator}, {size / 1e6:g} MB flows: "
                    f"{run.rate / 1e6:.3f} million packet-hops per CPU-second, "
                    f"others {run.others_cores:.2f} cores",
                    flush=True,
                )
    return runs


def spread(values: list[float]) -> dict[str, float]:
    """Return the least, median and greatest value."""
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def ratios(runs: list[Run]) -> list[dict[str, object]]:
    """Return the speed of Eastwest over that of each other simulator, for neighbouring runs."""
    pairs: dict[tuple[str, int], list[tuple[Run, Run]]] = {}
    for ours, theirs in zip(runs[::2], runs[1::2], strict=True):
        pairs.setdefault((theirs.simulator, theirs.flow_bytes), []).append((ours, theirs))
    return [
        {
            "against": peer,
            "flow_bytes": size,
            "hops_per_cpu_s": spread([o.rate / t.rate for o, t in both]),
            "whole_process_user_time": spread([t.user_s / o.user_s for o, t in both]),
            "peak_memory": spread([t.peak_mb / o.peak_mb for o, t in both]),
        }
        for (peer, size), both in pairs.items()
    ]


def output_of(*command: str) -> str:
    """Return the output of a command; empty if it fails or is missing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def machine() -> dict[str, str]:
    """Return the description of the machine by ``lscpu`` and the kernel."""
    wanted = {"Model name", "CPU family", "Model", "CPU(s)", "Hypervisor vendor"}
    wanted |= {"L2 cache", "L3 cache"}
    rows = (line.partition(":") for line in output_of("lscpu").splitlines())
    found = {key.strip(): value.strip() for key, _, value in rows if key.strip() in wanted}
    kernel = os.uname()
    memory = Path("/proc/meminfo").read_text().split()[1]
    return {**found, "Memory": f"{int(memory) * 1024 / 1e9:.1f} GB", "Kernel": kernel.release}


def versions(bench: Bench, sources: list[Path], htsim_commit: str) -> dict[str, str]:
    """Return the versions of all simulators, and hashes of the other simulators' programs."""
    packages = output_of("dpkg-query", "-W", "libns3-dev", "ns2", "g++").splitlines()
    dirty = "" if output_of("git", "status", "--porcelain", "crates", "Cargo.lock") == "" else " +"
    return {
        "Eastwest": output_of(bench.eastwest_program, "version"),
        "commit": output_of("git", "rev-parse", "--short=12", "HEAD") + dirty,
        "ns-3 built with": shlex.join(BUILD_NS3),
        **dict(line.split("\t", 1) for line in packages),
        **({"htsim": htsim_commit} if htsim_commit else {}),
        **{f"sha256 {s.name}": hashlib.sha256(s.read_bytes()).hexdigest()[:16] for s in sources},
    }


def table(head: str, rows: list[list[str]]) -> list[str]:
    """Return a Markdown table."""
    columns = head.count("|") + 1
    lines = ["| " + head + " |", "|" + "---|" * columns]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def run_rows(runs: list[Run]) -> list[list[str]]:
    """Return one row for each run."""
    return [
        [
            f"{r.simulator}, {r.flow_bytes / 1e6:g} MB",
            f"{r.packet_hops / 1e6:.3f}",
            f"{r.simulating_s:.2f}",
            f"{r.user_s:.2f}",
            f"{r.rate / 1e6:.3f}",
            f"{r.peak_mb:.0f}",
            f"{r.fct_last_s:.3f} / {r.fct_mean_s:.3f} / {r.fct_p99_s:.3f}",
            f"{r.others_cores:.2f}",
        ]
        for r in runs
    ]


def span(values: dict[str, float]) -> str:
    """Return the least, median and greatest value as text."""
    return f"{values['min']:.1f} / **{values['median']:.1f}** / {values['max']:.1f}"


def markdown(record: dict[str, object], runs: list[Run], incasts: list[dict[str, object]]) -> str:
    """Return the record as Markdown."""
    lines = [f"# S1 and S2 against other packet simulators, {record['date']}", ""]
    lines += [
        "Written by `benches/compare_peers.py`, which says how it measures. One core each, in "
        "turns: Eastwest, a peer, Eastwest, the next peer, and again.",
        "",
    ]
    if not record["quiet"]:
        lines += [SHARED, ""]
    lines += ["## Eastwest against its peers: least / median / greatest of the rounds", ""]
    for_people = [
        [
            f"{r['against']}, {int(str(r['flow_bytes'])) / 1e6:g} MB flows",
            *(span(r[k]) for k in ("hops_per_cpu_s", "whole_process_user_time", "peak_memory")),  # type: ignore[arg-type]
        ]
        for r in ratios(runs)
    ]
    head = "against | packet-hops per CPU-second, ours : theirs | user time of the whole process, "
    lines += table(head + "theirs : ours | peak memory, theirs : ours", for_people)
    lines += ["## Every run of S1", ""]
    head = "simulator, flow size | packet-hops (10⁶) | CPU s, simulating | user s, whole process"
    head += " | 10⁶ packet-hops per CPU-second | peak MB | FCT last / mean / p99 (s)"
    lines += table(head + " | cores others used", run_rows(runs))
    lines += [
        "FCTs differ where the TCPs and starts do: a plausibility check, not a comparison.",
        "",
        "## S2: goodput in Mbit/s",
        "",
    ]
    rows = [
        [
            f"{i['min_rto_ms']} ms",
            *(f"{i[k]:.1f}" for k in ("eastwest_goodput_mbps", "ns3_goodput_mbps")),
            *(f"{i[k]:.2f}" for k in ("eastwest_user_s", "ns3_user_s")),
        ]
        for i in incasts
    ]
    head = "minimum RTO | Eastwest | ns-3 | user s of Eastwest, whole process | of ns-3"
    lines += table(head, rows)
    lines += ["## Machine, versions, commands", ""]
    for group in ("machine", "versions"):
        facts = record[group]
        assert isinstance(facts, dict)
        lines += [f"- {key}: {value}" for key, value in facts.items()]
    commands = dict.fromkeys(r.command for r in runs)
    lines += ["", "```", *commands]
    for incast in incasts:
        shown = incast["commands"]
        assert isinstance(shown, list)
        lines += shown
    return "\n".join([*lines, "```", ""])


def build_htsim(checkout: Path, scratch: Path) -> list[str]:
    """Build htsim's library in its checkout, and the program that runs S1; return its command."""
    folder, flags = str(checkout / "sim"), " ".join(BUILD_HTSIM[1:])
    make = ["make", "-C", folder, "libhtsim.a", f"CFLAGS={flags}"]
    subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
    program = scratch / "htsim_s1"
    parts = ["-I", folder, str(HTSIM_PROGRAM), f"{folder}/libhtsim.a"]
    subprocess.run([*BUILD_HTSIM, *parts, "-o", str(program)], check=True)
    return [str(program)]


def arguments() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description="S1 and S2 in Eastwest and its peers, in turns.")
    parser.add_argument("--peers-dir", type=Path, required=True, help="ns3_s1_s2.cc, ns2_s1.tcl")
    parser.add_argument("--ns3", type=Path, help="a built ns3_s1_s2; default: build with g++")
    parser.add_argument("--ns3-optimised", type=Path, help="ns3_s1_s2 built with ns-3's source")
    parser.add_argument("--ns2", default="ns", help="the ns-2 program")
    parser.add_argument("--htsim", type=Path, help="checkout of htsim; default: no htsim")
    parser.add_argument("--eastwest", type=Path, default=ROOT / ".venv/bin/eastwest")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ns3-bytes", type=int, default=1_000_000, help="flow size against ns-3")
    parser.add_argument("--bytes", type=int, default=4_000_000, help="flow size against others")
    parser.add_argument("--out", type=Path, default=ROOT / "benches/results")
    return parser.parse_args()


def main() -> None:
    """Measure all simulators, then write the record."""
    args = arguments()
    sources = [args.peers_dir / "ns3_s1_s2.cc", args.peers_dir / "ns2_s1.tcl", HTSIM_PROGRAM]
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        ns3 = args.ns3
        if ns3 is None:
            ns3 = scratch / "ns3_s1_s2"
            libraries = [f"-lns3-{name}" for name in NS3_LIBRARIES.split()]
            subprocess.run([*BUILD_NS3, sources[0], "-o", ns3, *libraries], check=True)
        peers = {NS3: [str(ns3.absolute())], NS2: [args.ns2, str(sources[1])]}
        if args.ns3_optimised is not None:
            peers[NS3_OPTIMISED] = [str(args.ns3_optimised.absolute())]
        htsim_commit = ""
        if args.htsim is not None:
            peers[HTSIM] = build_htsim(args.htsim.absolute(), scratch)
            htsim_commit = output_of(
                "git", "-C", str(args.htsim), "rev-parse", "--short=12", "HEAD"
            )
        bench = Bench(args.eastwest.absolute(), peers, scratch)
        # The first run is not counted: it loads programs and libraries from the disk.
        bench.eastwest(100_000)
        sizes = {p: args.ns3_bytes if p in {NS3, NS3_OPTIMISED} else args.bytes for p in peers}
        runs = in_turns(bench, sizes, args.rounds)
        incasts = [bench.incast(ms) for ms in (200, 1)]
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        record: dict[str, object] = {
            "date": today,
            "quiet": max(r.others_cores for r in runs) < QUIET_CORES,
            "machine": machine(),
            "versions": versions(bench, sources, htsim_commit),
            "ratios": ratios(runs),
            "s1": [{**asdict(r), "hops_per_cpu_s": r.rate} for r in runs],
            "s2": incasts,
        }
    args.out.mkdir(parents=True, exist_ok=True)
    name = args.out / f"{today}-s1-s2-peers"
    text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    name.with_suffix(".json").write_text(text)
    name.with_suffix(".md").write_text(markdown(record, runs, incasts))
    print(f"written: {name}.md and .json" + ("" if record["quiet"] else " (machine shared)"))


if __name__ == "__main__":
    main()
