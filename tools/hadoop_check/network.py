"""Five nodes and a switch, each in a network namespace of its own, connected by shaped cables.

A cable is a pair of virtual Ethernet devices. Both ends send through a token bucket (``tc tbf``):
the node's is its network card with a deep queue, the switch's is the port towards the node. All
names begin with ``ewhc-``, and all objects are removed at the end and before a start.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PREFIX = "ewhc-"
SWITCH = f"{PREFIX}sw"
MASTER = "m"
WORKERS = ("w1", "w2", "w3", "w4")
NODES = (MASTER, *WORKERS)
_NET = "10.77.0"


@dataclass(frozen=True)
class Shape:
    """Rate, token bucket's burst and queues of all cables, and all nodes' congestion control."""

    rate_mbit: float
    switch_buffer_bytes: int = 1_000_000
    host_buffer_bytes: int = 2_000_000
    burst_bytes: int = 6_000
    congestion: str = "reno"


def space(node: str) -> str:
    """Return the name of a node's namespace."""
    return PREFIX + node


def address(node: str) -> str:
    """Return the IP address of a node."""
    return f"{_NET}.{10 + NODES.index(node)}"


def inside(node: str, *command: str) -> list[str]:
    """Return a command that runs the given command in a node, with its network and host name."""
    shell = 'hostname "$0" && exec "$@"'
    return [
        "ip", "netns", "exec", space(node),
        "unshare", "--uts", "sh", "-c", shell, node, *command,
    ]  # fmt: skip


def build_commands() -> list[list[str]]:
    """Return the commands that make namespaces, bridge and cables."""
    commands = [
        ["ip", "netns", "add", SWITCH],
        _in(SWITCH, "ip link set lo up"),
        _in(SWITCH, "ip link add br0 type bridge"),
        _in(SWITCH, "ip link set br0 up"),
    ]
    for node in NODES:
        port = f"p-{node}"
        commands += [
            ["ip", "netns", "add", space(node)],
            _in(SWITCH, f"ip link add {port} type veth peer name eth0 netns {space(node)}"),
            # No segments larger than a packet: queues and buckets see packets as on a real cable.
            _in(SWITCH, f"ip link set {port} gso_max_segs 1 master br0 up"),
            _in(space(node), "ip link set eth0 gso_max_segs 1"),
            _in(space(node), "ip link set lo up"),
            _in(space(node), f"ip address add {address(node)}/24 dev eth0"),
            _in(space(node), "ip link set eth0 up"),
        ]
    return commands


def shape_commands(shape: Shape) -> list[list[str]]:
    """Return the commands that set rate, burst and queues of all cables; they can be repeated."""
    commands: list[list[str]] = []
    for node in NODES:
        ends = (
            (SWITCH, f"p-{node}", shape.switch_buffer_bytes),
            (space(node), "eth0", shape.host_buffer_bytes),
        )
        for where, device, limit in ends:
            commands.append(
                _in(
                    where,
                    f"tc qdisc replace dev {device} root tbf rate {shape.rate_mbit:g}mbit "
                    f"burst {shape.burst_bytes} limit {limit}",
                )
            )
        commands.append(
            _in(
                space(node),
                f"sysctl -qw net.ipv4.tcp_congestion_control={shape.congestion}",
            )
        )
    return commands


def _in(where: str, command: str) -> list[str]:
    return ["ip", "netns", "exec", where, *command.split()]


@contextmanager
def network() -> Iterator[None]:
    """Make the network for the context, and remove it at the end."""
    take_down()
    try:
        _write_hosts()
        for command in build_commands():
            subprocess.run(command, check=True)
        yield
    finally:
        take_down()


def shape(to: Shape) -> None:
    """Set rate, burst, queues and congestion control of all cables and nodes."""
    for command in shape_commands(to):
        subprocess.run(command, check=True)


def hosts_file() -> str:
    """Return the names and addresses of all nodes in the format of ``/etc/hosts``."""
    lines = ["127.0.0.1 localhost", *(f"{address(node)} {node}" for node in NODES)]
    return "\n".join(lines) + "\n"


def _folders() -> list[Path]:
    return [Path("/etc/netns") / space(node) for node in NODES]


def _write_hosts() -> None:
    for folder in _folders():
        folder.mkdir(parents=True)
        (folder / "hosts").write_text(hosts_file(), "utf-8")


def take_down() -> None:
    """Remove all parts of the network that exist: first processes in it, then namespaces."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    spaces = [line.split()[0] for line in listed.stdout.splitlines() if line.startswith(PREFIX)]
    for name in spaces:
        pids = subprocess.run(
            ["ip", "netns", "pids", name], capture_output=True, text=True, check=False
        ).stdout.split()
        if pids:
            subprocess.run(["kill", "-KILL", *pids], capture_output=True, check=False)
        subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
    for folder in _folders():
        shutil.rmtree(folder, ignore_errors=True)
