"""Known mechanisms written in Python, compared with built-in ones and with arithmetic.

The files are the examples of the guide (docs/examples/mechanisms).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import eastwest as ew
from eastwest.mechanisms.load import Mechanism
from eastwest.run import Setting
from project_paths import ROOT

EXAMPLES = ROOT / "docs" / "examples" / "mechanisms"
FAIR, LEAST, PIE = (EXAMPLES / f"{n}.py" for n in ("fair", "least_attained", "pie_sketch"))
RATE, LETFLOW, DRILL = (EXAMPLES / f"{n}.py" for n in ("fixed_rate", "letflow", "drill"))
REFERENCE: dict[str, Setting] = {"fabric.reference_ports": True}
PROTECTIONS = ("default", "ece-bit", "ack+syn", "bypass")


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Change to an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def star(queue: str, *workloads: str, tcp: str = "", fabric: str = "") -> str:
    """Return a scenario of a switch with 1 Gbit/s ports, whose packets have no framing."""
    return (
        'schema = 1\n[fabric]\nkind = "star"\nhosts = 10\nhost_rate = "1 Gbit/s"\nframing = 0\n'
        f"queue = {{ {queue} }}\n{fabric}\n"
        f'[tcp]\nmin_rto = "10 ms"\ninitial_rto = "20 ms"\n{tcp}\n' + "".join(workloads)
    )


def shuffle(fabric: str = "", tcp: str = "") -> str:
    """Return a scenario of an all-to-all exchange over two racks."""
    return (
        'schema = 1\n[fabric]\nkind = "leaf-spine"\nleaves = 2\nhosts_per_leaf = 4\nspines = 2\n'
        f'host_rate = "1 Gbit/s"\nuplink_rate = "1 Gbit/s"\n{fabric}\n[tcp]\nmin_rto = "10 ms"\n'
        f'initial_rto = "20 ms"\n{tcp}\n[[workload]]\nkind = "all-to-all"\nname = "shuffle"\n'
        'bytes = "60 KB"\n'
    )


# Fair queueing


def senders(*mbits: int) -> list[str]:
    """Return a workload for each rate, which sends frames to the last host."""
    return [
        f'[[workload]]\nname = "w{i}"\nkind = "ethernet"\nsources = ["h{i}"]\nbytes = 1500\n'
        f'destinations = ["h9"]\nrate = "{rate} Mbit/s"\narrivals = "periodic"\n'
        'duration = "60 ms"\n'
        for i, rate in enumerate(mbits)
    ]


def received(queue: str, *mechanisms: Mechanism, **settings: Setting) -> list[int]:
    """Return the number of frames that arrive from each source.

    The sources send 800, 600 and 200 Mbit/s over a link of 1 Gbit/s.
    """
    text = star(queue, *senders(800, 600, 200))
    run = ew.run(text, set=settings, mechanisms=mechanisms)
    return run.streams.sort("src")["frames_received"].to_list()


def jain(shares: Sequence[float]) -> float:
    """Return Jain's index, which is 1 if all shares are equal."""
    return sum(shares) ** 2 / (len(shares) * sum(x * x for x in shares))


def test_start_time_fair_queueing_gives_each_flow_its_max_min_share() -> None:
    limit = 'limit = "60 packets"'
    fair = received(f'kind = "start-time-fair", {limit}', FAIR)
    # Max-min fair: one source needs only 200 Mbit/s, the others get 400 each; frames of 1500 B for
    # 60 ms, plus the queued ones.
    ideal = [2000, 2000, 1000]
    for frames, share in zip(fair, ideal, strict=True):
        assert share <= frames <= share + 60, fair
    assert jain([a / b for a, b in zip(fair, ideal, strict=True)]) > 0.9999
    # Set so that nothing is dropped early, CoDel acts as the built-in deficit round robin.
    calm = 'target = "1 s", interval = "1 s"'
    built_in = received(f'kind = "fq-codel", {calm}, {limit}')
    assert all(abs(a - b) <= 60 for a, b in zip(fair, built_in, strict=True))
    # With one queue for all, the fastest source gets the largest share.
    fifo = received(limit)
    assert jain([a / b for a, b in zip(fifo, ideal, strict=True)]) < 0.8
    assert received(f'kind = "start-time-fair", {limit}', FAIR, **REFERENCE) == fair


# Short flows first


def flows(rows: Sequence[tuple[str, str, int, float]]) -> str:
    """Return a workload of flows: sender, receiver, bytes, start in s."""
    lines = [f"{src},{dst},{size},{start}" for src, dst, size, start in rows]
    Path("flows.csv").write_text("src,dst,bytes,start_s\n" + "\n".join(lines) + "\n")
    return '[[workload]]\nname = "flows"\nkind = "flow-list"\nfile = "flows.csv"\n'


def short_ones(queue: str, long_flows: bool, *mechanisms: Mechanism) -> list[float]:
    """Return the completion times, in us, of seven flows of ten segments.

    They are alone, or share the link with two long flows.
    """
    short = [(f"h{i}", "h0", 14_480, 0.01) for i in range(1, 8)]
    long = [(f"h{i}", "h0", 3_000_000, 0.0) for i in (8, 9) if long_flows]
    text = star(queue, flows(long + short))
    done = ew.run(text, mechanisms=mechanisms).flows
    return sorted(done.filter(done["bytes"] < 100_000)["fct_us"].to_list())


def test_beside_long_flows_least_attained_service_serves_short_flows_as_if_alone() -> None:
    limit = 'limit = "200 packets"'
    ours = f'kind = "least-attained", {limit}'
    alone, beside = (short_ones(ours, long, LEAST) for long in (False, True))
    # Seven times ten segments pass one link, after the handshake.
    packet_us = 1500 * 8 / 1000
    assert alone[-1] > 70 * packet_us
    # A packet in transmission is not interrupted: in each of the first round trips one may delay
    # them.
    assert all(b <= a + 3 * packet_us for a, b in zip(alone, beside, strict=True)), (alone, beside)
    # In a FIFO queue the short flows wait behind packets of the long flows.
    fifo = short_ones(limit, True)
    assert fifo[-1] > 2 * beside[-1] and fifo[0] > 2 * beside[0], (fifo, beside)


def test_ranks_agree_with_the_reference_and_with_themselves() -> None:
    for file, name in ((FAIR, "start-time-fair"), (LEAST, "least-attained")):
        text = shuffle(f'queue = {{ kind = "{name}", limit = "20 packets" }}')
        lazy = ew.run(text, mechanisms=[file])
        assert lazy.summary["packets"]["dropped"] > 0
        assert lazy.summary["flows"]["completed"] == lazy.summary["flows"]["count"]
        assert ew.run(text, set=REFERENCE, mechanisms=[file]).digest == lazy.digest
        plain = shuffle('queue = { limit = "20 packets" }')
        assert ew.run(plain).digest != lazy.digest


class Pushed(ew.Queue):
    """A push-out queue by rank whose rules check the arguments that they get."""

    def __init__(self) -> None:
        self.arrived = self.pushed_out = 0

    def rank(self, arrival: ew.Arrival) -> int:
        assert arrival.ip_bytes <= 1500 and arrival.receiver < 10
        self.arrived += 1
        return self.arrived

    def at_push_out(self, packet: ew.Head) -> None:
        assert packet.rank == self.arrived and packet.waited_ps == 0
        self.pushed_out += 1


def test_ranks_in_the_order_of_arrival_are_a_drop_tail_queue() -> None:
    limit = 'limit = "20 packets"'
    ranked = ew.run(shuffle(f'queue = {{ kind = "pushed", {limit} }}'), mechanisms=[Pushed])
    assert ranked.digest == ew.run(shuffle(f"queue = {{ {limit} }}")).digest


# Timers and signals


def test_pie_with_a_timer_is_the_built_in_pie() -> None:
    limit, ecn = 'limit = "100 packets"', 'ecn = "on"'
    pie = (
        f'kind = "pie", target = "50 us", update = "100 us", burst = "200 us", {limit}, '
        "alpha = 20, beta = 200, mark_up_to = 1"
    )
    ours = (
        f'kind = "my-pie", target_us = 50, update_us = 100, burst_us = 200, {limit}, '
        "alpha = 20, beta = 200"
    )
    seen = set()
    for protection in PROTECTIONS:
        said = f', protection = "{protection}" }}'
        built_in = ew.run(shuffle(f"queue = {{ {pie}{said}", ecn))
        sketched = ew.run(shuffle(f"queue = {{ {ours}{said}", ecn), mechanisms=[PIE])
        assert sketched.digest == built_in.digest, protection
        assert sum(sketched.links["marks"]) > 5
        seen.add(built_in.digest)
    assert len(seen) > 1
    text = shuffle(f"queue = {{ {ours} }}", ecn)
    real = ew.run(text, mechanisms=[PIE]).digest
    assert ew.run(text, set=REFERENCE, mechanisms=[PIE]).digest == real


class Always(ew.Queue):
    """A queue that signals every waiting packet."""

    def at_enqueue(self, arrival: ew.Arrival) -> ew.Verdict:
        if not arrival.fits:
            return ew.Verdict.DROP
        return ew.Verdict.ENQUEUE if arrival.idle else self.signal(arrival)


def test_a_sketch_spares_the_packets_that_its_scenario_protects() -> None:
    def lost(more: str) -> dict[str, int]:
        text = shuffle(f'queue = {{ kind = "always"{more} }}', 'ecn = "on"')
        links = ew.run(text, mechanisms=[Always]).links
        return {kind: sum(links[f"drops_{kind}"]) for kind in ("data", "ack", "ece_ack", "syn")}

    plain = lost("")
    assert plain["ack"] > 0 and plain["ece_ack"] > 0
    spared = lost(', protection = "ack+syn"')
    assert spared == {"data": 0, "ack": 0, "ece_ack": 0, "syn": 0}
    assert lost(', protection = "ece-bit"')["ece_ack"] == 0
    assert lost(', protection = "ack+syn", ecn = false')["data"] > 0


# Rates


#: Payload of a full segment in bytes, and time in s for which bulk flows send.
SEGMENT, BULK_S = 1448, 0.1


def sent(settings: str, pairs: int, *, mbit: int = 1000) -> list[int]:
    """Return the payload bytes that bulk flows send to one host in 100 ms with `fixed-rate`."""
    places = ", ".join(f'"h{i}->h9"' for i in range(pairs))
    bulk = (
        f'[[workload]]\nname = "bulk"\nkind = "bulk"\npairs = [{places}]\nduration = "100 ms"\n'
        'start_window = "0 s"\n'
    )
    own = f'congestion = "fixed-rate"\nparameters = {{ {settings} }}\n'
    text = star('limit = "1000 packets"', bulk, tcp=own)
    done = ew.run(text, set={"fabric.host_rate": f"{mbit} Mbit/s"}, mechanisms=[RATE])
    payloads: list[int] = done.flows["bytes"].to_list()
    return payloads


def test_a_flow_sends_at_the_rate_that_its_control_sets() -> None:
    for rate in (50, 200, 800):
        (payload,) = sent(f"rate_mbps = {rate}", 1)
        # The first ten segments of a connection are not paced.
        assert 0 <= payload - rate * 1e6 * BULK_S / 8 <= 10 * SEGMENT, rate
    shared = sent("rate_mbps = 150", 6)
    assert jain(shared) > 0.9999
    assert 0 <= sum(shared) - 900e6 * BULK_S / 8 <= 60 * SEGMENT


def test_a_control_finds_the_rate_of_its_path_by_delivery_rates() -> None:
    (payload,) = sent("rate_mbps = 20, adapt = true", 1, mbit=400)
    most = 400e6 * BULK_S / 8 * SEGMENT / 1500
    assert 0.97 * most < payload < most


class Still(ew.Congestion):
    """Sets a window of twelve segments at every ACK."""

    def observe(self, seen: ew.Seen) -> int | None:
        return 12 * self.segment


def test_a_window_from_observe_is_the_window() -> None:
    bulk = (
        '[[workload]]\nname = "bulk"\nkind = "bulk"\npairs = ["h0->h9"]\nduration = "20 ms"\n'
        '[measure]\ntcp_trace = "*"\n'
    )
    text = star('limit = "1000 packets"', bulk, tcp='congestion = "still"')
    # The trace has the initial window, then the window of the first ACK, and no other.
    trace = ew.run(text, mechanisms=[Still]).tcp_trace
    assert trace["cwnd_bytes"].unique(maintain_order=True).to_list()[-1] == 12 * SEGMENT
    assert len(trace) == 2 and max(trace["in_flight_bytes"]) == 12 * SEGMENT
    # Without this congestion control the window grows.
    assert len(ew.run(text.replace('congestion = "still"', "")).tcp_trace) > 10


# Routing


def test_letflow_is_the_built_in_flowlet_also_when_a_link_fails() -> None:
    three = {"fabric.spines": 3}
    fault = '\n[[fault]]\nkind = "down"\non = "leaf0--spine1"\nfrom = "1 ms"\nuntil = "3 ms"\n'
    digests = set()
    for faults in ("", fault):
        flowlets = shuffle('routing = "flowlet"\nflowlet_gap = "20 us"') + faults
        built_in = ew.run(flowlets, set=three)
        ours = shuffle('routing = "letflow"\nrouting_parameters = { gap_us = 20 }') + faults
        sketched = ew.run(ours, set=three, mechanisms=[LETFLOW])
        assert sketched.digest == built_in.digest
        digests |= {sketched.digest, ew.run(shuffle() + faults, set=three).digest}
    assert len(digests) == 4


def test_drill_keeps_queues_shorter_than_ecmp() -> None:
    def longest(routing: str, *mechanisms: Mechanism) -> float:
        links = ew.run(shuffle(f'routing = "{routing}"'), mechanisms=mechanisms).links
        up = links.filter(links["name"].str.contains("->spine"))
        return float(up["queue_max_us"].max())  # type: ignore[arg-type]

    assert longest("drill", DRILL) < 0.8 * longest("ecmp")


# What goes wrong


def test_attributes_without_effect_and_wrong_values_are_named() -> None:
    def queue(**more: object) -> type:
        return type("Odd", (ew.Queue,), {"at_enqueue": Always.at_enqueue, **more})

    def control(**more: object) -> type:
        return type("Odd", (ew.Congestion,), {"observe": Still.observe, **more})

    for class_, says in (
        (queue(at_push_out=Pushed.at_push_out), "no effect without rank"),
        (queue(update_period_ps=10**6), "no effect without at_timer"),
        (control(pacing_rate_bps=10**6), "no effect without paces"),
        (queue(ecn=True, __annotations__={"ecn": bool}), "every queue has a setting"),
    ):
        with pytest.raises(ew.InputError, match=says):
            ew.check(shuffle(), mechanisms=[class_])
    timer = {"at_timer": lambda self, timer: None}
    for period in (None, 10, "1 us"):
        odd = queue(**timer, **({} if period is None else {"update_period_ps": period}))
        with pytest.raises(ew.InputError, match="update_period_ps must be a whole number of"):
            ew.run(shuffle('queue = { kind = "odd" }'), mechanisms=[odd])
    for rate in (0, -5, 2.5, "fast"):
        odd = control(paces=True, pacing_rate_bps=rate)
        with pytest.raises(ew.InputError, match="pacing_rate_bps must be None or a whole number"):
            ew.run(shuffle(tcp='congestion = "odd"'), mechanisms=[odd])
    for rank in (-1, 2**64, 0.5, None):
        odd = queue(rank=lambda self, arrival, rank=rank: rank)
        with pytest.raises(ew.InputError, match="rank must return a whole number from 0"):
            ew.run(shuffle('queue = { kind = "odd" }'), mechanisms=[odd])
