"""pFabric as users write it, against schedules that no simulator has computed.

The file is an example of the guide (docs/examples/mechanisms/pfabric.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import eastwest as ew
from eastwest.mechanisms.load import Mechanism
from project_paths import ROOT

PFABRIC = ROOT / "docs" / "examples" / "mechanisms" / "pfabric.py"
SEGMENT, PACKET = 1448, 1500
#: Sender, receiver, payload in bytes, start in seconds.
Flow = tuple[int, int, int, float]
#: Queues and transport of pFabric, and of its comparison.
OURS = (
    'queue = { kind = "pfabric", limit = "24 packets" }\n'
    'host_queue = { kind = "pfabric", limit = "1000 packets" }',
    'congestion = "line-rate"\nreordering = 300\nack_every = 1\ninitial_window = 12\n',
)
FIFO = ('queue = { limit = "240 packets" }', "")


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def completion(flows: Sequence[Flow], setup: tuple[str, str], *used: Mechanism) -> list[float]:
    """Completion times in seconds of flows over a switch with 1 Gbit/s ports, without framing."""
    lines = [f"h{src},h{dst},{size},{start}" for src, dst, size, start in flows]
    Path("flows.csv").write_text("src,dst,bytes,start_s\n" + "\n".join(lines) + "\n")
    queues, tcp = setup
    text = (
        'schema = 1\n[fabric]\nkind = "star"\nhosts = 10\nhost_rate = "1 Gbit/s"\nframing = 0\n'
        f'min_frame = 0\n{queues}\n[tcp]\nmin_rto = "1 ms"\ninitial_rto = "5 ms"\n{tcp}'
        '[[workload]]\nname = "flows"\nkind = "flow-list"\nfile = "flows.csv"\n'
    )
    table = ew.run(text, mechanisms=used).flows
    assert len(table) == len(flows)
    rows = {(r["src"], r["dst"], r["bytes"]): r["fct_us"] / 1e6 for r in table.to_dicts()}
    return [rows[src, dst, size] for src, dst, size, _ in flows]


def ideal(flows: Sequence[Flow], *, by_size: bool = False) -> list[float]:
    """Completion times by the paper's algorithm 1: flows by their bytes left, each at line rate.

    A flow is served while no flow with fewer bytes left has its sender or receiver. ``by_size``: by
    the bytes at the start of a flow.
    """
    rate = 1e9 / 8 / PACKET * SEGMENT
    left = {n: float(flow[2]) for n, flow in enumerate(flows)}
    ends = [0.0] * len(flows)
    now = 0.0
    while left:
        coming = [flows[n][3] for n in left if flows[n][3] > now]
        ready = [n for n in left if flows[n][3] <= now]
        ready.sort(key=lambda n: (flows[n][2] if by_size else left[n], n))
        served: list[int] = []
        busy: set[tuple[str, int]] = set()
        for n in ready:
            ends_of = {("from", flows[n][0]), ("to", flows[n][1])}
            if not busy & ends_of:
                served.append(n)
                busy |= ends_of
        steps = [left[n] / rate for n in served] + [at - now for at in coming]
        step = min(steps)
        now += step
        for n in served:
            left[n] -= step * rate
            if left[n] < 1e-3:
                del left[n]
                ends[n] = now - flows[n][3]
    return ends


def test_a_bottleneck_serves_flows_by_the_bytes_that_they_have_left() -> None:
    flows = [
        (1, 0, 1000 * SEGMENT, 0.0),
        # the first flow has 167 segments left, then 158, then 150
        (2, 0, 300 * SEGMENT, 0.010),
        (3, 0, 100 * SEGMENT, 0.0101),
        (4, 0, 10 * SEGMENT, 0.0102),
    ]
    srpt, sjf = ideal(flows), ideal(flows, by_size=True)
    assert srpt[0] < 0.0135 < sjf[0] - 0.003  # the schedules differ in the first flow
    measured = completion(flows, OURS, PFABRIC)
    # handshake, propagation, and a window of packets that carry an older number of bytes
    window_s = 12 * PACKET * 8 / 1e9
    for ours, shortest in zip(measured, srpt, strict=True):
        assert -1e-6 <= ours - shortest <= 2 * window_s, (measured, srpt)


def mixed(count: int) -> list[Flow]:
    """Flows of many sizes between random pairs, at a load of six tenths."""
    state, flows, at = 12345, [], 0.0
    sizes = [SEGMENT * n for n in (1, 2, 3, 5, 8, 10, 20, 40, 300, 1000)]
    mean = sum(sizes) / len(sizes)
    for n in range(count):
        state = (state * 1103515245 + 12345) % 2**31
        src, dst = state // 7 % 10, state // 70 % 9
        dst += dst >= src
        size = sizes[state // 700 % len(sizes)] + n  # each flow has a size of its own
        flows.append((src, dst, size, round(at, 9)))
        gap = (state // 9000 % 1000) / 500 * mean / (0.6 * 10 * 1e9 / 8)
        at += gap
    return flows


def test_small_flows_take_almost_their_ideal_time() -> None:
    flows = mixed(400)
    small = [n for n, flow in enumerate(flows) if flow[2] < 100_000]

    def mean(times: Sequence[float]) -> float:
        # the time of a flow beyond that on an idle network: handshake and propagation
        own = [times[n] / (flows[n][2] / SEGMENT * PACKET * 8e-9 + 70e-6) for n in small]
        return sum(own) / len(own)

    ours = completion(flows, OURS, PFABRIC)
    fifo = completion(flows, FIFO)
    best = [time + 70e-6 for time in ideal(flows)]
    assert mean(ours) < 1.3 * mean(best)
    assert mean(fifo) > 3 * mean(ours)
    every = [sum(times) / len(times) for times in (ours, fifo, best)]
    assert every[0] < 1.3 * every[2] and every[1] > every[0]


class Watch(ew.Queue):
    """Drop-tail, which checks what packets say about their flow."""

    def __init__(self) -> None:
        self.least: dict[int, int] = {}

    def rank(self, arrival: ew.Arrival) -> int:
        if not arrival.has_payload:
            assert arrival.remaining == 0
        elif arrival.kind == "data":
            # no ACK can lower it by more than what was sent before
            assert 0 < arrival.remaining <= 50 * SEGMENT
            assert arrival.remaining + arrival.position >= 50 * SEGMENT
            assert arrival.remaining <= self.least.get(arrival.flow, 50 * SEGMENT)
            self.least[arrival.flow] = arrival.remaining
        return 0


def test_packets_say_what_their_sender_has_left() -> None:
    setup = ('queue = { kind = "watch" }', "")
    for more in ("", "[hosts]\ncores = 2\n", "[fabric.host_queue]\nkind = 'watch'\n"):
        flows = [(n, 0, 50 * SEGMENT, n * 1e-6) for n in range(1, 6)]
        times = completion(flows, (setup[0], more and f"\n{more}"), Watch)
        assert all(time > 0 for time in times)
    # the queue changes nothing, and so nothing else may differ
    alone = completion(flows, ("", ""))
    assert completion(flows, (setup[0], ""), Watch) == alone
