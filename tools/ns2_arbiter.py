"""Runs one list of flows on one fabric in ns-2 and in Eastwest, to compare the results.

``python tools/ns2_arbiter.py LIST.csv --hosts 4`` writes one Tcl program for Debian's ``ns`` (2.35)
and one scenario with our TCP profile ``ns2``, runs both and prints them side by side: makespan,
mean time of flows, drops, drops of packets without payload, marks, timeouts, flows that took 2.9 s
or more, and the largest mean queue of a port. ``papers/ns2_arbiter`` has its results.

No names are passed to a shell or to Tcl: only the numbers of the list, and hosts as their
positions.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

import eastwest as ew

#: Payload and headers of a full packet in bytes, equal in both simulators: no options.
SEGMENT, HEADER = 1460, 40
#: Largest window of TCP in both simulators, in segments.
WINDOW = 700
#: A flow that takes at least this long has waited for the first timeout of a connection, 3 s.
LATE_S = 2.9
#: Kinds of packets without payload in Eastwest's table of links.
BARE = ("syn", "syn_ack", "ack", "ece_ack")
#: Setting that measures the waiting times of all ports.
MEASURE = "[measure]\nports = '*'\n"
#: Queue limit of hosts in packets, so large that they never drop a packet.
HOST_LIMIT = 100_000


@dataclass(frozen=True)
class Flow:
    """One flow between two hosts, which have numbers."""

    src: int
    dst: int
    size: int
    start_s: float


@dataclass(frozen=True)
class Fabric:
    """Fabric of a comparison: a star, or with ``leaves`` a leaf–spine fabric of one spine.

    Each pair of hosts has only one path.
    """

    hosts: int
    leaves: int = 1
    host_gbit: float = 1.0
    uplink_gbit: float = 10.0
    delay_us: float = 5.0
    limit: int = 200
    red: tuple[int, int] | None = None
    max_probability: float = 0.1
    weight: float = 1.0
    gentle: bool = True
    ecn: bool = False
    mark_below: float | None = 0.1
    ns2_tcp: str = "FullTcp"
    ns2_wait: bool = False
    #: Largest random delay that Eastwest's hosts add to an arriving packet in µs; ns-2 has none.
    jitter_us: float = 0.0
    #: Longest random time that ns-2's senders wait before each packet in µs (``overhead_``);
    #: Eastwest has none.
    overhead_us: float = 0.0

    def links(self) -> list[tuple[int, int, float, bool]]:
        """Return directed links: from, to, Gbit/s, whether from a switch; hosts come first."""
        each = self.hosts // self.leaves
        cables = [(h, self.hosts + h // each, self.host_gbit) for h in range(self.hosts)]
        if self.leaves > 1:
            spine = self.hosts + self.leaves
            cables += [(self.hosts + n, spine, self.uplink_gbit) for n in range(self.leaves)]
        both = [(a, b, r) for a, b, r in cables] + [(b, a, r) for a, b, r in cables]
        return [(a, b, rate, a >= self.hosts) for a, b, rate in both]

    def cables_between(self, src: int, dst: int) -> int:
        """Return the number of cables on the path of two hosts."""
        each = self.hosts // self.leaves
        return 2 if src // each == dst // each else 4


def read_flows(path: Path, hosts: int) -> list[Flow]:
    """Return the flows of a list; hosts are named h0, h1, … or are numbers.

    Sizes become whole segments in both simulators: FullTcp acknowledges a last segment that is not
    full only after interval_ (100 ms), and with a smaller interval_ its timer runs all the time.
    """

    def host(text: str) -> int:
        number = int(text.removeprefix("h"))
        if not 0 <= number < hosts:
            raise ValueError(f"{text!r} is not one of {hosts} hosts")
        return number

    with path.open(encoding="utf-8", newline="") as file:
        return [
            Flow(
                host(r["src"]),
                host(r["dst"]),
                -(-int(r["bytes"]) // SEGMENT) * SEGMENT,
                float(r["start_s"]),
            )
            for r in csv.DictReader(file)
        ]


def red_lines(fabric: Fabric) -> list[str]:
    """Return the settings of RED where the fabric has thresholds."""
    if fabric.red is None:
        return []
    values = {
        "bytes_": "false",
        "queue_in_bytes_": "false",
        "mean_pktsize_": SEGMENT + HEADER,
        "gentle_": str(fabric.gentle).lower(),
        "q_weight_": fabric.weight,
        "thresh_": fabric.red[0],
        "maxthresh_": fabric.red[1],
        "linterm_": 1 / fabric.max_probability,
        "wait_": str(fabric.ns2_wait).lower(),
        "setbit_": str(fabric.ecn).lower(),
        "use_mark_p_": "true",
        "mark_p_": 2.0 if fabric.mark_below is None else fabric.mark_below,
    }
    return [f"Queue/RED set {name} {value}" for name, value in values.items()]


def tcl(fabric: Fabric, flows: list[Flow], until_s: float) -> str:
    """Return the program for ns-2, which prints lines that `parse` reads."""
    lines = ["remove-all-packet-headers", "add-packet-header IP TCP Flags"]
    lines += ["set ns [new Simulator]", *red_lines(fabric)]
    lines += [
        f"Agent/TCP/FullTcp set segsize_ {SEGMENT}",
        f"Agent/TCP set window_ {WINDOW}",
        f"Agent/TCP set overhead_ {fabric.overhead_us * 1e-6}",
        f"Agent/TCP set ecn_ {int(fabric.ecn)}",
        "Agent/TCP/FullTcp instproc done {} {}",
        "Agent/TCP/FullTcp instproc done_data {} {global ns no left",
        '  puts "flow $no($self) [format %.9f [$ns now]]"; incr left -1',
        "  if {$left == 0} finish}",
    ]
    nodes = fabric.hosts + (1 if fabric.leaves == 1 else fabric.leaves + 1)
    lines += [f"set n({n}) [$ns node]" for n in range(nodes)]
    links = fabric.links()
    for number, (a, b, rate, switch) in enumerate(links):
        kind = "RED" if switch and fabric.red is not None else "DropTail"
        # DropTail's limit counts the arriving packet: one less waits (ns-2, queue/drop-tail.cc).
        limit = (fabric.limit if switch else HOST_LIMIT) + (kind == "DropTail")
        lines += [
            f"$ns simplex-link $n({a}) $n({b}) {rate}Gb {fabric.delay_us}us {kind}",
            f"$ns queue-limit $n({a}) $n({b}) {limit}",
            f'set m({number}) [$ns monitor-queue $n({a}) $n({b}) ""]',
        ]
    lines += [f"set links {len(links)}", f"set left {len(flows)}"]
    lines += [
        "proc finish {} {global ns m links; set t [$ns now]",
        "  for {set i 0} {$i < $links} {incr i} {",
        "    set area [[$m($i) get-pkts-integrator] set sum_]",
        '    puts "link $i [$m($i) set pdrops_] [$m($i) set bdrops_] [$m($i) set pmarks_] '
        '[expr $area/$t]"}',
        '  global senders; foreach a $senders {puts "sender [$a set nrexmit_]"}',
        '  puts "end"; flush stdout; exit 0}',
        "set senders {}",
    ]
    for number, flow in enumerate(flows):
        lines += [
            f"set a [new Agent/TCP/{fabric.ns2_tcp}]; set b [new Agent/TCP/{fabric.ns2_tcp}]",
            f"$ns attach-agent $n({flow.src}) $a; $ns attach-agent $n({flow.dst}) $b",
            f"$ns connect $a $b; $b listen; set no($a) {number}",
            "lappend senders $a",
            f'$ns at {flow.start_s:.9f} "$a sendmsg {flow.size} DAT_EOF"',
        ]
    lines += [f"$ns at {until_s:.3f} finish", "$ns run"]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Outcome:
    """Results of one run of one simulator, ns-2 or Eastwest."""

    finished: int
    makespan_s: float
    mean_fct_s: float
    drops: int
    #: Dropped packets without payload: SYNs and ACKs (FINs are not counted in Eastwest).
    bare_drops: int
    marks: int
    timeouts: int
    #: Number of flows that took `LATE_S` or longer.
    late: int
    #: Mean number of waiting packets over time, at the switch port where it is largest.
    mean_queue: float


def parse(text: str, fabric: Fabric, flows: list[Flow]) -> Outcome:
    """Return the results in the output of the program.

    A flow ends when its last byte arrives: the time of the last ACK on an idle path is subtracted.
    """
    ends: dict[int, float] = {}
    drops = lost_bytes = marks = timeouts = 0
    queues = [0.0]
    links = fabric.links()
    if "end" not in text.splitlines():
        raise RuntimeError(f"ns-2 ended before its last line of output:\n{text[-2000:]}")
    for line in text.splitlines():
        match line.split():
            case ["flow", number, at]:
                flow = flows[int(number)]
                cables = fabric.cables_between(flow.src, flow.dst)
                wire = 2 * HEADER * 8e-9 / fabric.host_gbit
                ends[int(number)] = float(at) - cables * fabric.delay_us * 1e-6 - wire
            case ["link", number, lost, gone, marked, length]:
                drops, marks = drops + int(lost), marks + int(marked)
                lost_bytes += int(gone)
                if links[int(number)][3]:
                    queues.append(float(length))
            case ["sender", struck]:
                timeouts += int(struck)
    fcts = [end - flows[n].start_s for n, end in ends.items()]
    last = max(ends.values(), default=0.0)
    mean = sum(fcts) / max(1, len(fcts))
    # Packets have two sizes, with a whole segment or without payload, so the lost bytes give the
    # number.
    bare = round((drops * (SEGMENT + HEADER) - lost_bytes) / SEGMENT)
    late = sum(fct >= LATE_S for fct in fcts)
    return Outcome(len(ends), last, mean, drops, bare, marks, timeouts, late, max(queues))


def run_ns2(fabric: Fabric, flows: list[Flow], until_s: float) -> Outcome:
    """Run ns-2 in a new folder and return its results."""
    program = shutil.which("ns")
    if program is None:
        raise SystemExit("ns-2 is not installed (Debian: apt-get install ns2)")
    with TemporaryDirectory() as folder:
        (Path(folder) / "flows.tcl").write_text(tcl(fabric, flows, until_s), encoding="utf-8")
        done = subprocess.run(
            [program, "flows.tcl"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=3600,
        )
    return parse(done.stdout + done.stderr, fabric, flows)


def tcp_text(fabric: Fabric, sets: list[str]) -> str:
    """Return the TCP settings of Eastwest: the profile ``ns2``, changed as ns-2's program is.

    ``sets`` has further changes from the command line.
    """
    keys = {"profile": "'ns2'", "max_window": f"'{WINDOW * SEGMENT} B'"}
    if fabric.ecn:
        keys["ecn"] = "'on'"
    if fabric.ns2_tcp != "FullTcp":
        keys["partial_acks"] = "true"
    for line in sets:
        key, _, value = line.partition("=")
        keys[key] = value
    return "".join(f"{key} = {value}\n" for key, value in keys.items())


def scenario(fabric: Fabric, flows: list[Flow], file: Path, sets: list[str]) -> str:
    """Return Eastwest's scenario; the flows are written beside it."""
    rows = "".join(f"h{f.src},h{f.dst},{f.size},{f.start_s:.9f}\n" for f in flows)
    file.write_text("src,dst,bytes,start_s\n" + rows, encoding="utf-8")
    if fabric.leaves == 1:
        shape = f"kind = 'star'\nhosts = {fabric.hosts}\n"
    else:
        shape = (
            f"kind = 'leaf-spine'\nleaves = {fabric.leaves}\nspines = 1\n"
            f"hosts_per_leaf = {fabric.hosts // fabric.leaves}\n"
            f"uplink_rate = '{fabric.uplink_gbit} Gbit/s'\nuplink_delay = '{fabric.delay_us} us'\n"
        )
    queue = f"limit = '{fabric.limit} packets'"
    if fabric.red is not None:
        low, high = fabric.red
        queue += (
            f", kind = 'red', min = '{low} packets', max = '{high} packets',"
            f" gentle = {str(fabric.gentle).lower()}, weight = {fabric.weight},"
            f" max_probability = {fabric.max_probability}, mean_packet = {SEGMENT + HEADER},"
            f" wait = {str(fabric.ns2_wait).lower()}"
        )
        if fabric.mark_below is not None and fabric.ecn:
            queue += f", mark_below = {fabric.mark_below}"
    return (
        f"schema = 1\nname = 'arbiter'\nseed = 1\n[fabric]\n{shape}framing = '0 B'\n"
        f"processing_jitter = '{fabric.jitter_us} us'\nmtu = {SEGMENT + HEADER}\n"
        f"host_rate = '{fabric.host_gbit} Gbit/s'\n"
        f"host_delay = '{fabric.delay_us} us'\nqueue = {{ {queue} }}\n"
        f"host_queue = {{ limit = '{HOST_LIMIT} packets' }}\n[tcp]\n{tcp_text(fabric, sets)}"
        "[[workload]]\nname = 'flows'\nkind = 'flow-list'\n"
        f"file = '{file.name}'\n"
    )


def run_ours(fabric: Fabric, flows: list[Flow], sets: list[str]) -> Outcome:
    """Run Eastwest and return its results.

    The mean queue is by Little's law: the sum of waiting times over the time of the run.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / "arbiter.toml"
        text = scenario(fabric, flows, Path(folder) / "flows.csv", sets) + MEASURE
        path.write_text(text, encoding="utf-8")
        result = ew.run(path)
        done = result.flows.filter(pl.col("finish_s").is_finite())
        fct = done["finish_s"] - done["start_s"]
        last = as_float(done["finish_s"].max())
        links = result.links
        bare = sum(int(links[f"drops_{kind}"].sum()) for kind in BARE)
        return Outcome(
            len(done),
            last,
            as_float(fct.mean()),
            int(links["drops"].sum()),
            bare,
            int(links["marks"].sum()),
            int(result.flows["timeouts"].sum()),
            int((fct >= LATE_S).sum()),
            longest_mean_queue(result, last),
        )


def as_float(value: object) -> float:
    """Return the number in a column; None becomes 0."""
    return float(value) if isinstance(value, (int, float)) else 0.0


def longest_mean_queue(result: ew.Result, seconds: float) -> float:
    """Return the largest mean number of waiting packets over time of any switch port."""
    ports = result.links.filter(~pl.col("src").str.starts_with("h")).select("link")
    waits = result.sojourn.join(ports, on="link", how="semi")
    sums = waits.group_by("link").agg((pl.col("upper_us") * pl.col("count")).sum().alias("us"))
    return as_float(sums["us"].max()) * 1e-6 / seconds if seconds > 0 else 0.0


def shifted(flows: list[Flow], most_us: float, seed: int) -> list[Flow]:
    """Return the flows, each delayed at random by up to ``most_us``; seed 0 delays none."""
    if seed == 0:
        return flows
    draw = random.Random(seed)
    return [replace(f, start_s=f.start_s + draw.uniform(0, most_us) * 1e-6) for f in flows]


def mean_of(outcomes: list[Outcome]) -> dict[str, float]:
    """Return the mean of each number over runs."""
    names = vars(outcomes[0])
    return {n: sum(getattr(o, n) for o in outcomes) / len(outcomes) for n in names}


def show(ns2: dict[str, float], ours: dict[str, float]) -> str:
    """Return the results of both simulators, and the ratio of Eastwest's to ns-2's, as text."""
    rows = [f"{'':12} {'ns-2':>12} {'ours':>12} {'ratio':>7}"]
    for name, a in ns2.items():
        b = ours[name]
        ratio = f"{b / a:7.3f}" if a else "      –"
        rows.append(f"{name:12} {a:12.6g} {b:12.6g} {ratio}")
    return "\n".join(rows)


def main() -> None:
    """Read the command line and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("flows", type=Path, help="list of flows (CSV: src, dst, bytes, start_s)")
    parser.add_argument("--hosts", type=int, required=True)
    parser.add_argument("--leaves", type=int, default=1)
    parser.add_argument("--limit", type=int, default=200, help="packets at a port of a switch")
    parser.add_argument("--delay-us", type=float, default=5.0)
    parser.add_argument("--uplink-gbit", type=float, default=10.0)
    parser.add_argument("--red", type=int, nargs=2, metavar=("MIN", "MAX"))
    parser.add_argument(
        "--step",
        type=int,
        metavar="PACKETS",
        help="as in DCTCP: RED that marks all packets that find this many in the queue",
    )
    parser.add_argument("--max-probability", type=float, default=0.1)
    parser.add_argument("--weight", type=float, default=1.0)
    parser.add_argument("--mark-below", type=float, default=0.1, help="2 marks always")
    parser.add_argument("--ecn", action="store_true")
    parser.add_argument("--ns2-tcp", choices=["FullTcp", "FullTcp/Newreno"], default="FullTcp")
    parser.add_argument("--ns2-wait", action="store_true", help="wait_ true, ns-2's default")
    parser.add_argument("--jitter-us", type=float, default=0.0, help="jitter of Eastwest's hosts")
    parser.add_argument("--overhead-us", type=float, default=0.0, help="overhead_ of ns-2")
    parser.add_argument(
        "--tcp", action="append", default=[], metavar="KEY=TOML", help="TCP setting of Eastwest"
    )
    parser.add_argument(
        "--runs", type=int, default=1, help="number of runs; their means are printed"
    )
    parser.add_argument(
        "--shift-us",
        type=float,
        default=100.0,
        help="most that starts of later runs are delayed, µs",
    )
    parser.add_argument("--until", type=float, default=300.0, help="most simulated seconds")
    parser.add_argument(
        "--tcl", type=Path, help="write ns-2's program to this file, and run nothing"
    )
    parser.add_argument("--json", action="store_true", help="JSON: one line for each simulator")
    a = parser.parse_args()
    if a.step is not None:
        a.red, a.ecn, a.weight, a.mark_below = [a.step, a.step], True, 1.0, 2.0
    fabric = Fabric(
        a.hosts,
        a.leaves,
        uplink_gbit=a.uplink_gbit,
        delay_us=a.delay_us,
        limit=a.limit,
        red=tuple(a.red) if a.red else None,
        max_probability=a.max_probability,
        weight=a.weight,
        gentle=a.step is None,
        ecn=a.ecn,
        mark_below=None if a.mark_below > 1 else a.mark_below,
        ns2_tcp=a.ns2_tcp,
        ns2_wait=a.ns2_wait,
        jitter_us=a.jitter_us,
        overhead_us=a.overhead_us,
    )
    if fabric.hosts % fabric.leaves:
        parser.error("--hosts is not a multiple of --leaves")
    flows = read_flows(a.flows, fabric.hosts)
    if a.tcl:
        a.tcl.write_text(tcl(fabric, flows, a.until), encoding="utf-8")
        return
    lists = [shifted(flows, a.shift_us, seed) for seed in range(a.runs)]
    ns2 = mean_of([run_ns2(fabric, moved, a.until) for moved in lists])
    ours = mean_of([run_ours(fabric, moved, a.tcp) for moved in lists])
    print(json.dumps([ns2, ours]) if a.json else show(ns2, ours))


if __name__ == "__main__":
    main()
