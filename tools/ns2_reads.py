"""Compares synchronized reads in ns-2 and Eastwest: ``ns2_reads.py --senders 4 --block 256000``.

One reader asks N senders for a block each, on connections that it opens for this. When all blocks
have arrived, it asks again (papers/incast, claims F3 and F4c). ns-2 uses ``Agent/TCP/FullTcp``
under ``Application/TcpApp``, Eastwest the workload ``incast`` with the TCP profile ``ns2``. Both
use one star with a buffer limited in bytes at each switch port. The output has means over runs:
goodput, the best run's goodput, time of a round, timeouts, drops, and the mean queue of the port to
the reader.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

import eastwest as ew
from ns2_arbiter import HEADER, HOST_LIMIT, MEASURE, SEGMENT, as_float, longest_mean_queue, show

#: Bytes of a request for a block, and time of the first request in s.
REQUEST, FIRST_S = 64, 0.005


@dataclass(frozen=True)
class Reads:
    """One experiment; the default numbers are those of papers/incast.

    Blocks become whole segments in both simulators: Nagle's algorithm of FullTcp holds back a last
    segment that is not full until all data is acknowledged, a round trip more than in Eastwest.
    """

    senders: int
    block: int
    rounds: int = 20
    buffer: int = 65_536
    delay_us: float = 245.0
    min_rto_ms: float = 200.0
    initial_window: int = 1
    window: int = 718
    start_jitter_us: float = 10.0
    jitter_us: float = 0.0
    overhead_us: float = 0.0
    newreno: bool = False
    sets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """Results of one run of one simulator.

    The queue is that of the port to the reader, in packets.
    """

    goodput_mbit: float
    round_ms: float
    timeouts: float
    drops: float
    mean_queue: float


def tcl(reads: Reads, seed: int) -> str:
    """Return the program for ns-2."""
    kind = "FullTcp/Newreno" if reads.newreno else "FullTcp"
    switch = reads.senders + 1
    lines = [
        "remove-all-packet-headers",
        "add-packet-header IP TCP Flags",
        "set ns [new Simulator]",
        f"ns-random {seed}; expr srand({seed})",
        f"Agent/TCP/FullTcp set segsize_ {SEGMENT}",
        f"Agent/TCP set window_ {reads.window}",
        f"Agent/TCP set windowInit_ {reads.initial_window}",
        f"Agent/TCP set overhead_ {reads.overhead_us * 1e-6}",
        f"Agent/TCP set minrto_ {reads.min_rto_ms / 1000}",
        "Agent/TCP/FullTcp instproc done {} {}",
        f"for {{set i 0}} {{$i <= {switch}}} {{incr i}} {{set n($i) [$ns node]}}",
        f"for {{set i 0}} {{$i < {switch}}} {{incr i}} {{",
        f"  $ns simplex-link $n($i) $n({switch}) 1Gb {reads.delay_us}us DropTail",
        f"  $ns simplex-link $n({switch}) $n($i) 1Gb {reads.delay_us}us DropTail",
        f"  $ns queue-limit $n($i) $n({switch}) {HOST_LIMIT}",
        # ns-2's queue limit is in bytes: the queue with the arriving packet must stay below it.
        f"  set q [[$ns link $n({switch}) $n($i)] queue]",
        f"  $q set queue_in_bytes_ true; $q set mean_pktsize_ 1; $q set limit_ {reads.buffer + 1}",
        f'  set m($i) [$ns monitor-queue $n({switch}) $n($i) ""]}}',
        "set struck 0; set round 0",
        "proc ask {} {global ns n left round began; incr round",
        f"  set began [$ns now]; set left {reads.senders}",
        f"  for {{set i 1}} {{$i <= {reads.senders}}} {{incr i}} {{",
        f"    set a [new Agent/TCP/{kind}]; set b [new Agent/TCP/{kind}]",
        "    $ns attach-agent $n(0) $a; $ns attach-agent $n($i) $b; $ns connect $a $b; $b listen",
        "    set x [new Application/TcpApp $a]; set y [new Application/TcpApp $b]; $x connect $y",
        f'    $x send {REQUEST} "serve $y $a $b"}}}}',
        "proc serve {y a b} {global ns",
        f"  $ns after [expr rand() * {reads.start_jitter_us}e-6]"
        f' "$y send {reads.block} {{here $a $b}}"}}',
        "proc here {a b} {global ns left round began struck; incr left -1",
        # ns-2 loses the counters of a closed connection, so they are read before it closes.
        "  incr struck [$a set nrexmit_]; incr struck [$b set nrexmit_]",
        '  $ns after 0 "$a close"; if {$left > 0} return',
        '  puts "round $began [format %.9f [$ns now]]"',
        f"  if {{$round < {reads.rounds}}} {{$ns after 0 ask; return}}",
        "  global m; set t [$ns now]",
        f"  set lost 0; for {{set i 0}} {{$i < {switch}}} {{incr i}} "
        "{incr lost [$m($i) set pdrops_]}",
        '  puts "end $struck $lost [expr [[$m(0) get-pkts-integrator] set sum_] / $t]"',
        "  flush stdout; exit 0}",
        f"$ns at {FIRST_S} ask",
        "$ns run",
    ]
    return "\n".join(lines) + "\n"


def run_ns2(reads: Reads, seed: int) -> Outcome:
    """Run ns-2 in a new folder and return its results."""
    program = shutil.which("ns")
    if program is None:
        raise SystemExit("ns-2 is not installed (Debian: apt-get install ns2)")
    with TemporaryDirectory() as folder:
        (Path(folder) / "reads.tcl").write_text(tcl(reads, seed), encoding="utf-8")
        done = subprocess.run(
            [program, "reads.tcl"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=3600,
        )
    words = [line.split() for line in done.stdout.splitlines()]
    rounds = [(float(w[1]), float(w[2])) for w in words if w[:1] == ["round"]]
    ends = [w for w in words if w[:1] == ["end"]]
    if len(rounds) != reads.rounds or len(ends) != 1:
        raise RuntimeError(f"ns-2 did not come to its end:\n{(done.stdout + done.stderr)[-2000:]}")
    return outcome(reads, rounds, [float(word) for word in ends[0][1:]])


def outcome(reads: Reads, rounds: list[tuple[float, float]], rest: list[float]) -> Outcome:
    """Return the results of a run with these rounds; a round has its start and end in s."""
    seconds = rounds[-1][1] - rounds[0][0]
    bits = 8 * reads.block * reads.senders * len(rounds)
    mean = sum(end - start for start, end in rounds) / len(rounds)
    return Outcome(bits / seconds / 1e6, mean * 1e3, *rest)


def scenario(reads: Reads, seed: int) -> str:
    """Return Eastwest's scenario."""
    keys = {
        "profile": "'ns2'",
        "max_window": f"'{reads.window * SEGMENT} B'",
        "initial_window": str(reads.initial_window),
        "min_rto": f"'{reads.min_rto_ms} ms'",
        "partial_acks": str(reads.newreno).lower(),
    }
    for line in reads.sets:
        key, _, value = line.partition("=")
        keys[key] = value
    return (
        f"schema = 1\nname = 'reads'\nseed = {seed}\nduration = '3000 s'\n"
        f"[fabric]\nkind = 'star'\nhosts = {reads.senders + 1}\nhost_rate = '1 Gbit/s'\n"
        f"host_delay = '{reads.delay_us} us'\nmtu = {SEGMENT + HEADER}\nframing = '0 B'\n"
        f"processing_jitter = '{reads.jitter_us} us'\n"
        f"queue = {{ kind = 'drop-tail', limit = '{reads.buffer} B' }}\n"
        f"host_queue = {{ limit = '{HOST_LIMIT} packets' }}\n[tcp]\n"
        + "".join(f"{key} = {value}\n" for key, value in keys.items())
        + f"[[workload]]\nname = 'reads'\nkind = 'incast'\nreceiver = 'h0'\n"
        f"rounds = {reads.rounds}\nblock_bytes = '{reads.block} B'\n"
        f"request_bytes = '{REQUEST} B'\npersistent = false\nwarm_up = '{FIRST_S} s'\n"
        f"start_jitter = '{reads.start_jitter_us} us'\n" + MEASURE
    )


def run_ours(reads: Reads, seed: int) -> Outcome:
    """Run Eastwest and return its results."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "reads.toml"
        path.write_text(scenario(reads, seed), encoding="utf-8")
        result = ew.run(path)
        times = result.rounds.sort("round").select("started_s", "finished_s").rows()
        rounds = [(float(start), float(end)) for start, end in times]
        rest = [
            float(result.events.filter(pl.col("what") == "timeout").height),
            as_float(result.links.filter(pl.col("src").str.starts_with("s"))["drops"].sum()),
            longest_mean_queue(result, rounds[-1][1]),
        ]
    return outcome(reads, rounds, rest)


def summary(outcomes: list[Outcome]) -> dict[str, float]:
    """Return means over runs, and the best run's goodput."""
    means = {n: sum(getattr(o, n) for o in outcomes) / len(outcomes) for n in vars(outcomes[0])}
    best = max(o.goodput_mbit for o in outcomes)
    worst = min(o.goodput_mbit for o in outcomes)
    return {**means, "best_mbit": best, "worst_mbit": worst}


def main() -> None:
    """Read the command line and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--senders", type=int, required=True)
    parser.add_argument("--block", type=int, required=True, help="bytes from each sender")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--buffer", type=int, default=65_536, help="bytes at a port of the switch")
    parser.add_argument("--delay-us", type=float, default=245.0)
    parser.add_argument("--min-rto-ms", type=float, default=200.0)
    parser.add_argument("--initial-window", type=int, default=1)
    parser.add_argument("--start-jitter-us", type=float, default=10.0)
    parser.add_argument("--jitter-us", type=float, default=0.0, help="jitter of Eastwest's hosts")
    parser.add_argument("--overhead-us", type=float, default=0.0, help="overhead_ of ns-2")
    parser.add_argument("--newreno", action="store_true", help="on both sides")
    parser.add_argument(
        "--tcp", action="append", default=[], metavar="KEY=TOML", help="TCP setting of Eastwest"
    )
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="JSON: one line for both simulators")
    parser.add_argument(
        "--tcl", type=Path, help="write ns-2's program to this file, and run nothing"
    )
    a = parser.parse_args()
    reads = Reads(
        a.senders,
        -(-a.block // SEGMENT) * SEGMENT,
        a.rounds,
        a.buffer,
        a.delay_us,
        a.min_rto_ms,
        a.initial_window,
        start_jitter_us=a.start_jitter_us,
        jitter_us=a.jitter_us,
        overhead_us=a.overhead_us,
        newreno=a.newreno,
        sets=tuple(a.tcp),
    )
    if a.tcl:
        a.tcl.write_text(tcl(reads, 1), encoding="utf-8")
        return
    ns2 = summary([run_ns2(reads, seed + 1) for seed in range(a.runs)])
    ours = summary([run_ours(reads, seed + 1) for seed in range(a.runs)])
    print(json.dumps([ns2, ours]) if a.json else show(ns2, ours))


if __name__ == "__main__":
    main()
