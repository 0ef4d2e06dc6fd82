"""Measures TCP of the running kernel at up to 1 Gbit/s, between network namespaces. Needs root.

    python papers/kernel_tcp/lab/measure.py --into FOLDER list
    python papers/kernel_tcp/lab/measure.py --into FOLDER run 'kernel_*' --budget 220

A case is run as often as its plan says. Each run is a JSON file in the folder (the samples of flows
are beside it), and an existing run is not repeated. README.md beside this file describes the cases.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import fnmatch
import gzip
import json
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

HERE = Path(__file__).parent
#: Largest share of a core that other processes may use; a run with more is repeated.
MOST_OTHER_LOAD = 0.10
#: Number of runs in a row disturbed by other processes after which the program gives up.
MOST_LOUD = 1
_BUILT = Path("/tmp/eastwest-kernel-lab")
_NAMES = {what: f"ew{os.getpid()}{what}" for what in ("senders", "switch", "reader")}
_RUNS = 5
_BLOCK = 262_144
#: Number of senders → rounds of a run: few senders need more rounds for a reliable goodput.
_SENDERS = {2: 60, 4: 40, 8: 30, 16: 20, 32: 16}
#: Burst of the token bucket at the kernel's port, as the time at its rate in µs. Timers of a
#: virtual machine fire tens of microseconds late, and a smaller bucket would lose rate by this.
BUCKET_US = 121
#: Queue limit of the kernel's port in packets (pfifo).
QUEUE = 100
#: Rates in Mbit/s, of which the highest is used that the switch in user space can sustain.
RATES = (100, 200, 300, 500, 1000)
#: Child processes that may still run.
_running: list[subprocess.Popen[str]] = []
#: Commands of SIOCETHTOOL (linux/ethtool.h) for offloads that join or split segments below TCP: to
#: read, to set.
_OFFLOADS = {"TSO": (0x1E, 0x1F), "GSO": (0x23, 0x24), "GRO": (0x2B, 0x2C)}
_SIOCETHTOOL = 0x8946
_COUNTERS = (
    "TcpRetransSegs",
    "TcpExtTCPTimeouts",
    "TcpExtTCPLossProbes",
    "TcpExtTCPFastRetrans",
    "TcpExtTCPSackRecovery",
    "TcpExtTCPLostRetransmit",
    "TcpExtTCPSpuriousRTOs",
    "TcpExtTCPDSACKRecv",
    "TcpExtTCPDeliveredCE",
    "TcpExtTCPHystartTrainDetect",
    "TcpExtTCPHystartDelayDetect",
)


@dataclass(frozen=True)
class Case:
    """Settings of one measured case."""

    #: Kind of measurement: "flows", "reads" or "idle".
    kind: str
    #: Congestion control of each flow; all senders of reads use the first.
    congestion: tuple[str, ...]
    senders: int = 1
    #: Minimum retransmission timeout of the route to the reader, in ms; None: the kernel's default.
    rto_min_ms: int | None = None
    seconds: float = 6.0
    #: Rate of the kernel's own port, in Mbit/s of Ethernet frames without FCS.
    kernel_mbps: int = 1000
    #: Settings of the switch in user space; None: the kernel's own port is used.
    switch: dict[str, float] | None = None
    ecn: bool = False
    runs: int = _RUNS


def cases(switch_mbps: int) -> dict[str, Case]:
    """Return all cases by name; those with marking or AQM use the rate of the user-space switch."""
    base: dict[str, float] = {"rate_mbps": switch_mbps}
    tail = {**base, "limit": QUEUE}
    step = {**base, "limit": 500, "mark_from": 40}
    codel = {**base, "limit": 1000, "codel": 1, "target_us": 1000, "interval_us": 20_000}
    found = {
        "kernel_idle": Case("idle", ("reno",)),
        "switch_idle": Case("idle", ("reno",), switch=tail),
    }
    for rate in RATES:
        keeping: dict[str, float] = {"rate_mbps": rate, "limit": QUEUE}
        found[f"rate_{rate}"] = Case("flows", ("reno",), seconds=3.0, switch=keeping, runs=3)
    for congestion in ("reno", "cubic"):
        found |= {
            f"switch{switch_mbps}_{congestion}": Case(
                "flows", (congestion,), seconds=4.0, switch=tail
            ),
            f"switch{switch_mbps}_{congestion}_marking": Case(
                "flows", (congestion,), seconds=4.0, switch=step, ecn=True
            ),
            f"switch{switch_mbps}_{congestion}_codel": Case(
                "flows", (congestion,), seconds=4.0, switch=codel
            ),
        }
    found["kernel500_reno"] = Case("flows", ("reno",), kernel_mbps=500)
    found["kernel1000_reno"] = Case("flows", ("reno",))
    found[f"switch{switch_mbps}_bbr"] = Case("flows", ("bbr",), switch=tail)
    found[f"switch{switch_mbps}_reno_pair"] = Case(
        "flows", ("reno", "reno"), senders=2, seconds=5.0, switch=tail
    )
    for rto_min_ms in (200, 1):
        for senders in _SENDERS:
            case = Case("reads", ("reno",), senders=senders, rto_min_ms=rto_min_ms, switch=tail)
            found[f"switch{switch_mbps}_reads_{rto_min_ms}ms_{senders:02}"] = case
            case = replace(case, switch=None, kernel_mbps=500)
            found[f"kernel500_reads_{rto_min_ms}ms_{senders:02}"] = case
    return found


def _do(*words: str | int | Path) -> str:
    """Run a command and return its output; an error contains the command's error output."""
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def _in(name: str, *words: str | int) -> str:
    return _do("ip", "netns", "exec", _NAMES[name], *words)


def build() -> None:
    """Compile the two C programs if they are missing or older than their source."""
    _BUILT.mkdir(exist_ok=True)
    for name, libraries in (("traffic", []), ("switch", ["-lm"])):
        source, program = HERE / f"{name}.c", _BUILT / name
        if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
            _do("cc", "-O2", "-Wall", "-Wextra", "-o", program, source, *libraries)


def offloads_off(device: str) -> dict[str, int]:
    """Switch off TSO, GSO and GRO of a device; return their values afterwards."""
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        for name, (get, put) in _OFFLOADS.items():
            for command in (put, get):
                value = bytearray(struct.pack("II", command, 0))
                address = (memoryview(value),)
                found[name] = _ethtool(handle, device, value)
                del address
    return found


def _ethtool(handle: socket.socket, device: str, value: bytearray) -> int:
    """Ask a device for a value (SIOCETHTOOL), which the kernel reads and writes in place."""
    import ctypes  # noqa: PLC0415  used here alone

    place = (ctypes.c_char * len(value)).from_buffer(value)
    request = struct.pack("16sP16x", device.encode(), ctypes.addressof(place))
    with contextlib.suppress(OSError):  # Some devices cannot change a feature; they keep it.
        fcntl.ioctl(handle, _SIOCETHTOOL, request)
    del place
    return int(struct.unpack("II", value)[1])


def _settings(ecn: bool) -> list[str]:
    return [
        f"net.ipv4.tcp_ecn={int(ecn)}",
        "net.ipv4.tcp_no_metrics_save=1",
        "net.ipv4.tcp_congestion_control=reno",
        "net.ipv4.tcp_rmem=4096 2097152 8388608",
        "net.ipv4.tcp_wmem=4096 2097152 8388608",
        "net.ipv4.conf.all.rp_filter=0",
        "net.ipv6.conf.all.disable_ipv6=1",
    ]


@contextlib.contextmanager
def namespaces(case: Case) -> Iterator[None]:
    """Create the namespaces of a case with devices, routes and queues; remove them at the end."""
    wanted = ("senders", "reader") if case.switch is not None else tuple(_NAMES)
    try:
        for name in wanted:
            _do("ip", "netns", "add", _NAMES[name])
            _in(name, "sysctl", "-qw", *_settings(case.ecn))
            _in(name, "ip", "link", "set", "lo", "up")
        if case.switch is None:
            _kernel_port(case.kernel_mbps)
            _addresses(case, "port")
            yield
        else:
            with _user_port(case.switch):
                _addresses(case, "port")
                yield
    finally:
        while _running:
            _running.pop().kill()
        for name in wanted:
            with contextlib.suppress(SystemExit):
                _do("ip", "netns", "del", _NAMES[name])


def _kernel_port(rate_mbps: int) -> None:
    """Create two virtual cables, and a router whose port to the reader has the queue."""
    for end in ("senders", "reader"):
        _do(
            *("ip", "link", "add", "port", "netns", _NAMES[end], "type", "veth"),
            *("peer", "name", end, "netns", _NAMES["switch"]),
        )
        for name, device in ((end, "port"), ("switch", end)):
            _in(name, "ip", "link", "set", device, "gso_max_segs", 1, "txqueuelen", 10_000, "up")
            _in(name, sys.executable, __file__, "offloads-off", device)
    # The end hosts use the first core, and the switch the second.
    for name, device, cores in (
        ("reader", "port", 1),
        ("senders", "port", 1),
        ("switch", "senders", 2),
    ):
        _in(name, "sh", "-c", f"echo {cores} > /sys/class/net/{device}/queues/rx-0/rps_cpus")
    _in("switch", "sysctl", "-qw", "net.ipv4.ip_forward=1")
    bucket = round(BUCKET_US * rate_mbps / 8)
    port = ("dev", "reader", "parent")
    _in("switch", "tc", "qdisc", "add", *port[:2], "root", "handle", "1:", "htb", "default", 1)
    rates = ("rate", f"{rate_mbps}mbit", "ceil", f"{rate_mbps}mbit")
    shape = ("htb", *rates, "burst", bucket, "cburst", bucket, "quantum", 1514)
    _in("switch", "tc", "class", "add", *port, "1:", "classid", "1:1", *shape)
    _in("switch", "tc", "qdisc", "add", *port, "1:1", "handle", "2:", "pfifo", "limit", QUEUE)
    for end, gate in (("senders", "10.1.255.254"), ("reader", "10.2.255.254")):
        _in("switch", "ip", "addr", "add", f"{gate}/16", "dev", end)
        # Addresses of neighbours are permanent, so that no ARP request disturbs a run.
        for name, device, far, address in (
            (end, "port", "switch", gate),
            ("switch", end, end, "10.2.0.1"),
        ):
            if name == "switch" and end == "senders":
                continue
            there = end if far == "switch" else "port"
            link = _in(far, "cat", f"/sys/class/net/{there}/address").strip()
            _in(name, "ip", "neigh", "replace", address, "lladdr", link, "dev", device)


@contextlib.contextmanager
def _user_port(settings: dict[str, float]) -> Iterator[None]:
    """Run the switch in user space on the second core; its report goes to the current folder."""
    words = [f"{key}={value:g}" for key, value in settings.items()]
    report = _BUILT / "switch.json"
    with report.open("w") as out:
        switch = subprocess.Popen(
            [
                *("nice", "-n", "-20", "taskset", "-c", "1", str(_BUILT / "switch")),
                *(_NAMES["senders"], _NAMES["reader"], *words),
            ],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert switch.stderr is not None
            if switch.stderr.readline().strip() != "ready":
                raise SystemExit("the switch did not start")
            for name in ("senders", "reader"):
                options = ("gso_max_segs", 1, "txqueuelen", 20_000, "up")
                _in(name, "ip", "link", "set", "port", *options)
                # The network stack processes packets that the switch writes on the first core.
                _in(name, "sh", "-c", "echo 1 > /sys/class/net/port/queues/rx-0/rps_cpus")
            yield
        finally:
            switch.send_signal(signal.SIGTERM)
            switch.wait(10)


def _addresses(case: Case, device: str) -> None:
    """Set addresses and routes of the end hosts, with the minimum timeout towards the reader."""
    for sender in range(case.senders):
        _in("senders", "ip", "addr", "add", f"10.1.0.{1 + sender}/32", "dev", device)
    _in("reader", "ip", "addr", "add", "10.2.0.1/32", "dev", device)
    timeout = ("rto_min", f"{case.rto_min_ms}ms") if case.rto_min_ms is not None else ()
    for name, gate, far in (
        ("senders", "10.1.255.254", "10.2"),
        ("reader", "10.2.255.254", "10.1"),
    ):
        via: tuple[str, ...] = ("dev", device)
        if case.switch is None:
            _in(name, "ip", "route", "add", f"{gate}/32", "dev", device)
            via = ("via", gate, *via)
        more = timeout if name == "senders" else ()
        _in(name, "ip", "route", "add", f"{far}.0.0/16", *via, *more)
    if case.switch is None:
        link = _in("senders", "cat", "/sys/class/net/port/address").strip()
        for sender in range(case.senders):
            address = f"10.1.0.{1 + sender}"
            _in("switch", "ip", "neigh", "replace", address, "lladdr", link, "dev", "senders")


@contextlib.contextmanager
def awake(cores: int) -> Iterator[list[int]]:
    """Keep the first cores from halting, by programs that run when a core has no other work.

    Waking a halted core of a virtual machine takes tens of microseconds. The context yields the
    process of each core, whose time does not count as busy.
    """
    spin = ("sh", "-c", "while :; do :; done")
    idle = [
        subprocess.Popen(["chrt", "-i", "0", "taskset", "-c", str(core), *spin])
        for core in range(cores)
    ]
    try:
        yield [process.pid for process in idle]
    finally:
        for process in idle:
            process.kill()
            process.wait()


class Load:
    """CPU time of the cores since this object was made."""

    def __init__(self, spinning: Sequence[int] = ()) -> None:
        self._spinning = spinning
        self.began_s = time.monotonic()
        self._cores = self._busy()
        self._others_s = self._in_programs() - self._ours()
        self._dropped = self._backlog()

    def _busy(self) -> list[tuple[int, int, int]]:
        """Return, for each core, its busy ticks, ticks of soft interrupts, and stolen ticks."""
        rows: list[tuple[int, int, int]] = []
        for line in Path("/proc/stat").read_text().splitlines():
            if line.startswith("cpu") and line[3].isdigit():
                n = [int(word) for word in line.split()[1:9]]
                busy = n[0] + n[1] + n[2] + n[5] + n[6]
                if len(rows) < len(self._spinning):
                    stat = Path(f"/proc/{self._spinning[len(rows)]}/stat").read_text()
                    words = stat.rpartition(")")[2].split()
                    busy -= int(words[11]) + int(words[12])
                rows.append((busy, n[6], n[7]))
        return rows

    @staticmethod
    def _in_programs() -> float:
        """Return the CPU time in s that all cores have spent in programs (not kernel, not idle)."""
        words = Path("/proc/stat").read_text().split()
        return (int(words[1]) + int(words[2])) / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def _ours() -> float:
        """Return the CPU time of this process and its ended children, in s."""
        both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(used.ru_utime for used in both)

    @staticmethod
    def _backlog() -> int:
        """Return the number of packets that the kernel's input queues dropped (softnet_stat)."""
        lines = Path("/proc/net/softnet_stat").read_text().splitlines()
        return sum(int(line.split()[1], 16) for line in lines)

    def end(self) -> dict[str, Any]:
        """Return the shares of time since this object was made."""
        took_s = time.monotonic() - self.began_s
        ticks = took_s * os.sysconf("SC_CLK_TCK")
        after = self._busy()
        shares = [
            [round((b - a) / ticks, 4) for a, b in zip(*pair, strict=True)]
            for pair in zip(self._cores, after, strict=True)
        ]
        return {
            "busy": [share[0] for share in shares],
            "soft_interrupts": [share[1] for share in shares],
            "stolen": [share[2] for share in shares],
            "lost_in_input_queues": self._backlog() - self._dropped,
        }

    def others(self) -> float:
        """Return the share of one core used by programs outside this measurement.

        All children of this process must have ended. Time in the kernel is left out, because
        nothing tells whose packets a soft interrupt processes.
        """
        took_s = time.monotonic() - self.began_s
        return round((self._in_programs() - self._ours() - self._others_s) / took_s, 4)


def _counters(name: str) -> dict[str, int]:
    """Return the TCP counters of a namespace."""
    found: dict[str, int] = {}
    for file, prefix in (("/proc/net/snmp", "Tcp"), ("/proc/net/netstat", "TcpExt")):
        lines = [line.split() for line in _in(name, "cat", file).splitlines()]
        for keys, values in zip(lines[::2], lines[1::2], strict=True):
            if keys[0] == f"{prefix}:":
                found |= {prefix + key: int(n) for key, n in zip(keys[1:], values[1:], strict=True)}
    return {name: found[name] for name in _COUNTERS if name in found}


def _start(name: str, *words: str | float) -> subprocess.Popen[str]:
    """Start the traffic program in a namespace, on the first core with the highest priority."""
    inside = ("ip", "netns", "exec", _NAMES[name], _BUILT / "traffic", *words)
    command = [str(word) for word in ("chrt", "-f", 20, "taskset", "-c", 0, *inside)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    _running.append(process)
    return process


def _finish(process: subprocess.Popen[str], limit_s: float) -> str:
    try:
        out, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise SystemExit(f"{process.args!r} takes longer than {limit_s:g} s") from None
    return out


def once(case: Case) -> tuple[dict[str, Any], list[str]]:
    """Run a case once; return its numbers, and the samples of each flow as CSV."""
    whole = Load()
    with awake(1 if case.switch is not None else 2) as spinning, namespaces(case):
        load = Load(spinning)
        samples: list[str] = []
        numbers: dict[str, Any] = {}
        if case.kind == "reads":
            rounds = _SENDERS[case.senders]
            serving = _start("senders", "serve", case.senders, case.congestion[0], _BLOCK)
            asking = _start("reader", "read", case.senders, _BLOCK, rounds)
            numbers |= {"rounds": rounds, **json.loads(_finish(asking, 120))}
            numbers |= json.loads(_finish(serving, 10))
        elif case.kind == "idle":
            sending = _start("senders", "pairs", 0, 2000)
            sinking = _start("reader", "sink", 0, 0)
            numbers |= json.loads(_finish(sending, 30))
            _finish(sinking, 10)
        else:
            # Each flow starts a second after the previous one, and all end together.
            starts = [float(flow) for flow in range(len(case.congestion))]
            sending_all = [
                _start("senders", "send", flow, congestion, case.seconds - starts[flow])
                for flow, congestion in enumerate(case.congestion)
            ]
            sinks = [_start("reader", "sink", flow, s) for flow, s in enumerate(starts)]
            samples = [_finish(process, case.seconds + 20) for process in sending_all]
            for process in sinks:
                _finish(process, 10)
        numbers["load"] = load.end()
        numbers["tcp"] = _counters("senders")
        if case.switch is None:
            shown = json.loads(_in("switch", "tc", "-s", "-j", "qdisc", "show", "dev", "reader"))
            # Packets that the queue refused: pfifo counts them, and the token bucket counts them
            # again.
            numbers["dropped"] = max(part["drops"] for part in shown)
            numbers["queue"] = [
                {key: part.get(key) for key in ("kind", "bytes", "packets", "drops", "overlimits")}
                for part in shown
            ]
    numbers["load"]["others"] = whole.others()
    if case.switch is not None:
        numbers["switch"] = json.loads((_BUILT / "switch.json").read_text())
        numbers["dropped"] = numbers["switch"]["dropped"]
    return numbers, samples


def _machine() -> dict[str, Any]:
    """Return a description of the machine and its kernel."""
    words = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":")[1].strip() for line in words if "model name" in line), "")
    config = ""
    with contextlib.suppress(OSError):
        config = gzip.decompress(Path("/proc/config.gz").read_bytes()).decode()
    ticks = [line.split("=")[1] for line in config.splitlines() if line.startswith("CONFIG_HZ=")]
    return {
        "kernel": os.uname().release,
        "processor": model,
        "cores": os.cpu_count(),
        "timer_hz": int(ticks[0]) if ticks else None,
        "clock_resolution_ns": round(time.clock_getres(time.CLOCK_MONOTONIC) * 1e9),
        "congestion_controls": Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .read_text()
        .split(),
        "bucket_us": BUCKET_US,
        "queue_packets": QUEUE,
    }


def quiet(limit_s: float = 15.0) -> bool:
    """Wait until both cores have been idle for 90 % of a second; return False after the limit."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        load = Load()
        time.sleep(1.0)
        if max(load.end()["busy"]) < MOST_OTHER_LOAD:
            return True
    return False


def _stop(number: int, _: FrameType | None) -> None:
    """Raise an error on a signal, as Ctrl-C does, so that namespaces and programs are removed."""
    raise KeyboardInterrupt(f"signal {number}")


def run(wanted: dict[str, Case], into: Path, budget_s: float, anyway: bool) -> int:
    """Do the missing runs until the time budget is spent; return how many are still missing."""
    build()
    signal.signal(signal.SIGTERM, _stop)
    into.mkdir(parents=True, exist_ok=True)
    (into / "machine.json").write_text(json.dumps(_machine(), indent=1) + "\n")
    end = time.monotonic() + budget_s
    todo = [
        (name, case, number)
        for number in range(1, max(case.runs for case in wanted.values()) + 1)
        for name, case in wanted.items()
        if number <= case.runs and not (into / f"{name}_r{number}.json").exists()
    ]
    if todo and not anyway and not quiet():
        print("other processes keep the cores busy; nothing was measured", file=sys.stderr)
        return len(todo)
    loud = 0
    for done, (name, case, number) in enumerate(todo):
        needed = 4.0 + (case.seconds if case.kind == "flows" else 4.0)
        if time.monotonic() + needed > end or loud == MOST_LOUD:
            return len(todo) - done
        numbers, samples = once(case)
        others = numbers["load"]["others"]
        if others > MOST_OTHER_LOAD and not anyway:
            print(f"{name} run {number}: others took {others:.0%} of a core", file=sys.stderr)
            loud += 1
            continue
        loud = 0
        numbers |= {"case": name, "run": number}
        numbers |= {"others_below": MOST_OTHER_LOAD, "at": time.strftime("%FT%TZ", time.gmtime())}
        for flow, text in enumerate(samples):
            (into / f"{name}_r{number}_{'ab'[flow]}.csv.gz").write_bytes(
                gzip.compress(text.encode(), 9, mtime=0)
            )
        (into / f"{name}_r{number}.json").write_text(json.dumps(numbers) + "\n")
        shown = numbers.get("goodput_mbps") or [_goodput(text) for text in samples]
        late = numbers.get("switch", {}).get("within_50_us", "")
        print(name, number, shown, numbers.get("dropped"), late, numbers["load"], flush=True)
    return sum(not (into / f"{name}_r{number}.json").exists() for name, _, number in todo)


def _goodput(samples: str) -> float:
    """Return the goodput of a flow over its whole time in Mbit/s."""
    last = samples.strip().splitlines()[-1].split(",")
    return round(int(last[5]) * 8e-6 / float(last[0]), 2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Return 0 if no run is missing, 3 if the time budget was spent before.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--into", type=Path, default=Path("measured"), help="folder of the runs")
    parser.add_argument("--switch-mbps", type=int, default=500, help="rate of the user's switch")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="name all cases and how many runs are missing")
    running = commands.add_parser("run", help="make the runs that are missing")
    running.add_argument("case", nargs="+", help="names of cases; * stands for anything")
    running.add_argument("--budget", type=float, default=220.0, help="seconds it may take")
    running.add_argument("--anyway", action="store_true", help="also beside other load")
    off = commands.add_parser("offloads-off", help="for a device of this namespace")
    off.add_argument("device")
    options = parser.parse_args(arguments)
    if options.command == "offloads-off":
        print(json.dumps(offloads_off(options.device)))
        return 0
    known = cases(options.switch_mbps)
    if options.command == "list":
        for name, case in known.items():
            print(name, case.runs - len(list(options.into.glob(f"{name}_r*.json"))), "missing")
        return 0
    missing = [tool for tool in ("ip", "tc", "cc", "taskset", "sysctl") if not shutil.which(tool)]
    if os.geteuid() != 0 or missing:
        print(f"needs root and {', '.join(missing) or 'nothing else'}", file=sys.stderr)
        return 2
    wanted = {
        name: case
        for name, case in known.items()
        if any(fnmatch.fnmatch(name, pattern) for pattern in options.case)
    }
    if not wanted:
        print("unknown case; the command list shows the names", file=sys.stderr)
        return 2
    left = run(wanted, options.into, options.budget, options.anyway)
    print(f"{left} runs left", file=sys.stderr)
    return 3 if left else 0


if __name__ == "__main__":
    sys.exit(main())
