"""Measures how often a Linux receiver sends ACKs: connections over an emulated link.

    sudo python papers/kernel_shuffle/measured/acks.py [--queue 2000] [--mark 0] [--fetches 3]

Two network namespaces have a TUN device each; this program forwards packets between them at 50
Mbit/s with a delay of 2 ms each way. Seven readers fetch 500,000 B each, several times in a row
over fresh connections. The output has the number of ACKs and PSH bits per connection, the number of
segments per ACK, and the last offered windows. Needs root, Linux, and an idle machine: readers that
run late send fewer ACKs.
"""

from __future__ import annotations

import argparse
import array
import ctypes
import fcntl
import heapq
import multiprocessing
import os
import select
import socket
import statistics
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection

BYTES, SEGMENT = 500_000, 1448
READERS = 7
RATE_BPS, DELAY_S = 50e6, 0.002
_CLONE_NEWNET, _TUNSETIFF, _TUN_NO_PI = 0x40000000, 0x400454CA, 0x1001
_PORT = 5000
_PSH, _ACK, _SYN = 8, 16, 2


@dataclass(frozen=True)
class Packet:
    """Direction of a packet, to the reader (0) or from it (1), and its TCP header."""

    way: int
    flags: int
    payload: int
    ack: int
    window: int
    connection: int


def enter(address: str, hand: socket.socket) -> None:
    """Move this process to a new network namespace, and pass its TUN device to the forwarder."""
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNET):
        raise SystemExit("cannot make a network namespace: this needs root")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22s", b"t0", _TUN_NO_PI, b""))
    for command in (
        f"ip addr add {address}/24 dev t0",
        "ip link set t0 mtu 1500 up",
        "sysctl -qw net.ipv4.tcp_ecn=1 net.ipv4.tcp_congestion_control=reno",
    ):
        subprocess.run(command.split(), check=True)
    handed = array.array("i", [device])
    hand.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, handed)])


def serve(hand: socket.socket, pipe: Connection) -> None:
    """Answer each request at once with all bytes."""
    enter("10.0.0.1", hand)
    listener = socket.create_server(("10.0.0.1", _PORT), backlog=64)
    pipe.send("ready")

    def answer(connection: socket.socket) -> None:
        with connection:
            connection.recv(100)
            connection.sendall(b"x" * BYTES)

    while True:
        threading.Thread(target=answer, args=(listener.accept()[0],)).start()


def read(hand: socket.socket, pipe: Connection, fetches: int) -> None:
    """Fetch with seven readers at once, ``fetches`` times."""
    enter("10.0.0.2", hand)
    pipe.recv()

    def fetch() -> None:
        for _ in range(fetches):
            with socket.create_connection(("10.0.0.1", _PORT)) as connection:
                connection.sendall(b"GET")
                while connection.recv(65536):
                    pass

    readers = [threading.Thread(target=fetch) for _ in range(READERS)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    pipe.send("done")


def marked(packet: bytes) -> bytes:
    """Return a packet with the codepoint "congestion experienced" (RFC 3168)."""
    header = bytearray(packet[:20])
    header[1] |= 3
    header[10:12] = b"\0\0"
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    header[10:12] = struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF)
    return bytes(header) + packet[20:]


def switch(devices: list[int], pipe: Connection, queue: int, mark: int) -> Iterator[Packet]:
    """Forward packets until the readers are done, and yield each packet."""
    under_way: list[tuple[float, int, int, bytes]] = []
    free = [0.0, 0.0]
    for number in range(1 << 40):
        while under_way and under_way[0][0] <= time.monotonic():
            _, _, way, packet = heapq.heappop(under_way)
            os.write(devices[1 - way], packet)
        wait = max(0.0, under_way[0][0] - time.monotonic()) if under_way else 0.01
        for device in select.select(devices, [], [], min(wait, 0.01))[0]:
            packet, way = os.read(device, 2000), devices.index(device)
            if packet[0] >> 4 != 4 or packet[9] != socket.IPPROTO_TCP:
                continue
            now = time.monotonic()
            waiting = (free[way] - now) * RATE_BPS / 8 / 1500
            if waiting > queue:
                continue
            if mark and waiting > mark and packet[1] & 3 == 2:
                packet = marked(packet)
            free[way] = max(free[way], now) + len(packet) * 8 / RATE_BPS
            heapq.heappush(under_way, (free[way] + DELAY_S, number, way, packet))
            ports = struct.unpack("!HH", packet[20:24])
            _, ack, head, flags, window = struct.unpack("!IIBBH", packet[24:36])
            payload = len(packet) - 20 - (head >> 4) * 4
            yield Packet(way, flags, payload, ack, window, ports[1 - way])
        if pipe.poll():
            return


def told(packets: list[Packet], fetches: int) -> str:
    """Return the counts as a few lines of text."""
    connections = READERS * fetches
    data = [p for p in packets if p.way == 0 and p.payload > 0]
    acks = [p for p in packets if p.way == 1 and not p.payload and p.flags & (_ACK | _SYN) == _ACK]
    covered: list[float] = []
    before: dict[int, int] = {}
    for packet in acks:
        if packet.connection in before:
            covered.append((packet.ack - before[packet.connection]) / SEGMENT)
        before[packet.connection] = packet.ack
    single = sum(0 < segments <= 1 for segments in covered)
    windows = {p.connection: p.window for p in acks}
    return (
        f"{len(data) / connections:.0f} segments and {len(acks) / connections:.0f} ACKs "
        f"a connection\n"
        f"{sum(bool(p.flags & _PSH) for p in data) / connections:.0f} segments with PSH\n"
        f"{single / connections:.0f} ACKs of one segment, "
        f"{sum(not segments for segments in covered) / connections:.0f} of none, others of "
        f"{statistics.mean(s for s in covered if s > 1):.1f}\n"
        f"windows offered last: {min(windows.values())} to {max(windows.values())} KiB"
    )


def main() -> None:
    """Run the measurement and print its counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queue", type=int, default=2000, help="packets that may wait")
    parser.add_argument("--mark", type=int, default=0, help="packets from which on data is marked")
    parser.add_argument("--fetches", type=int, default=3, help="connections of each reader")
    asked = parser.parse_args()
    devices, pipes, processes = [], [], []
    for target, more in ((serve, ()), (read, (asked.fetches,))):
        ours, theirs = socket.socketpair()
        pipe, end = multiprocessing.Pipe()
        process = multiprocessing.Process(target=target, args=(theirs, end, *more), daemon=True)
        process.start()
        _, handed, _, _ = ours.recvmsg(1, 1024)
        devices.append(struct.unpack("i", handed[0][2][:4])[0])
        pipes.append(pipe)
        processes.append(process)
    pipes[0].recv()
    pipes[1].send("go")
    print(told(list(switch(devices, pipes[1], asked.queue, asked.mark)), asked.fetches))
    for process in processes:
        process.terminate()


if __name__ == "__main__":
    main()
