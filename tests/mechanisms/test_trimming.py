"""Trimming as users write it: an incast of queue pairs without PFC.

The file is an example of the guide (docs/examples/mechanisms/trim.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest

import eastwest as ew
from project_paths import ROOT

TRIM = ROOT / "docs" / "examples" / "mechanisms" / "trim.py"


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def incast(queue: str, *, transport: str = "rocev2", senders: int = 8, more: str = "") -> ew.Result:
    """All but one hosts send 60 KB to the last one at a time."""
    rows = [f"h{n},h{senders},60000,0" for n in range(senders)]
    Path("flows.csv").write_text("src,dst,bytes,start_s\n" + "\n".join(rows) + "\n")
    return ew.run(
        f'schema = 1\n[fabric]\nkind = "star"\nhosts = {senders + 1}\nhost_rate = "10 Gbit/s"\n'
        f'host_delay = "1 us"\nqueue = {{ {queue} }}\n{more}\n'
        '[tcp]\nmin_rto = "1 ms"\ninitial_rto = "1 ms"\n'
        '[[workload]]\nname = "flows"\nkind = "flow-list"\nfile = "flows.csv"\n'
        f'transport = "{transport}"\n',
        mechanisms=[TRIM],
    )


@pytest.mark.parametrize("senders", [2, 4, 8])
def test_no_queue_pair_waits_for_its_timer(senders: int) -> None:
    limit = 'limit = "20 packets"'
    cut, lost = (incast(q, senders=senders) for q in (f'kind = "trim", {limit}', limit))
    ours, theirs = cut.summary["rocev2"], lost.summary["rocev2"]
    assert theirs["timeouts"] > 0 and theirs.get("trimmed", 0) == 0
    assert ours["timeouts"] == 0 and ours["trimmed"] > 0
    assert cut.summary["packets"]["dropped"] == 0
    # headers stay in order, so that nothing arrives twice
    assert ours["duplicates"] == 0
    longest = [float(run.flows["fct_us"].max()) for run in (cut, lost)]  # type: ignore[arg-type]
    assert senders * 60_000 * 8 / 10e3 < longest[0] < longest[1] / 30
    assert cut.digest == incast(f'kind = "trim", {limit}', senders=senders).digest


def test_an_incast_takes_little_more_than_at_line_rate() -> None:
    # with drop-tail, queue pairs of this incast give up
    cut = incast('kind = "trim", limit = "100 packets"')
    longest: float = cut.flows["fct_us"].max()  # type: ignore[assignment]
    assert 1 < longest / (8 * 60_000 * 8 / 10e3) < 1.5


@pytest.mark.parametrize("packets", [20, 100])
def test_headers_pass_the_queues_behind_the_one_that_cut_them(packets: int) -> None:
    # 16 hosts of two leaves send to one of the third: the spine and the last leaf cut
    rows = [f"h{n},h16,60000,0" for n in range(16)]
    Path("flows.csv").write_text("src,dst,bytes,start_s\n" + "\n".join(rows) + "\n")
    run = ew.run(
        "schema = 1\n[fabric]\nleaves = 3\nhosts_per_leaf = 8\nspines = 1\n"
        'host_rate = "10 Gbit/s"\nuplink_rate = "40 Gbit/s"\n'
        'queue = { kind = "trim", limit = "'
        f'{packets} packets" }}\n'
        '[[workload]]\nname = "flows"\nkind = "flow-list"\nfile = "flows.csv"\n'
        'transport = "rocev2"\n',
        mechanisms=[TRIM],
    )
    pairs = run.summary["rocev2"]
    # 20 packets are bytes for 500 headers, which go-back-N without congestion control exceeds
    assert packets == 20 or run.summary["packets"]["dropped"] == 0
    assert run.summary["packets"]["dropped"] < pairs["trimmed"] / 1000
    assert pairs["trimmed"] > 0 and pairs["timeouts"] == 0 and pairs["duplicates"] == 0
    assert run.flows["bytes"].to_list() == [60_000] * 16


@pytest.mark.parametrize("size", ["40 KB", "100 KB"])
def test_packets_without_room_in_the_shared_memory_are_cut(size: str) -> None:
    more = f'[fabric.shared_buffer]\nsize = "{size}"'
    run = incast('kind = "trim", limit = "100 packets"', more=more)
    pairs = run.summary["rocev2"]
    assert run.summary["packets"]["dropped"] == 0 and pairs["timeouts"] == 0
    assert pairs["trimmed"] > 0
    tcp = incast('kind = "trim", limit = "100 packets"', more=more, transport="tcp")
    assert tcp.table("links")["drops_shared_buffer"].sum() > 0


def test_packets_of_tcp_are_dropped_instead() -> None:
    limit = 'limit = "20 packets"'
    cut, lost = (incast(q, transport="tcp") for q in (f'kind = "trim", {limit}', limit))
    assert cut.summary["packets"]["dropped"] > 0
    assert cut.digest == lost.digest


class Halves(ew.Queue):
    """Cuts packets from half of its limit on, and checks what it is told."""

    trims = True

    def at_enqueue(self, arrival: ew.Arrival) -> ew.Verdict:
        assert arrival.trimmable == (arrival.kind in ("data", "retransmission"))
        assert arrival.queued_packets <= 20
        return ew.Verdict.TRIM if arrival.queued_packets >= 10 else ew.Verdict.ENQUEUE


def test_trimming_needs_ports_without_pfc_and_has_no_effect_with_ranks() -> None:
    def check(queue: str, more: str, *classes: type) -> str:
        text = (
            'schema = 1\n[fabric]\nkind = "star"\nhosts = 3\nhost_rate = "1 Gbit/s"\n'
            f'queue = {{ kind = "{queue}" }}\n{more}\n'
            '[[workload]]\nname = "w"\nkind = "permutation"\nbytes = "1 KB"\n'
        )
        return "\n".join(p["message"] for p in ew.check(text, mechanisms=[*classes]))

    assert check("halves", "", Halves) == ""
    assert "trimming" in check("halves", "[fabric.pfc]", Halves)
    with pytest.raises(ew.InputError, match="trims has no effect without at_enqueue"):
        check("odd", "", type("Odd", (ew.Queue,), {"trims": True, "rank": lambda s, a: 0}))
