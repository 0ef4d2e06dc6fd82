"""CONGA as users write it, on the example of its paper, against the optimum.

The file is an example of the guide (docs/examples/mechanisms/conga.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

import eastwest as ew
from eastwest.run import Setting
from project_paths import ROOT

CONGA = ROOT / "docs" / "examples" / "mechanisms" / "conga.py"


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Pump(ew.Application):
    """Each sender sends messages to its receiver, each on a connection of its own."""

    roles: ClassVar[dict[str, str]] = {"senders": "They send.", "receivers": "They receive."}

    size: int = 100_000

    def on_start(self) -> None:
        if self.role == "senders":
            self.connection = 0
            self.receiver = self.members["receivers"][self.members["senders"].index(self.number)]
            self.next()

    def next(self) -> None:
        self.connection += 1
        size = 1 + self.random.below(2 * self.size)  # else all hosts begin messages together
        self.request(self.receiver, size, connection=self.connection)

    def on_message(self, message: ew.Message) -> None:
        if message.request is not None:
            self.reply(message, 1)
        else:
            self.next()


#: Gbit/s of the links between leaves and spines, and of the one that is half as fast.
FULL, HALF = 8.0, 4.0
CONGA_HERE = 'routing = "conga"'
LOCAL = f"{CONGA_HERE}\nrouting_parameters = {{ remote = false }}"
#: Each flow by its receiver, half of the hosts over each spine: what ECMP does with many flows.
EQUAL = 'routing = "modulo"'


def shares(routing: str, *, fault: bool = True, **settings: Setting) -> tuple[float, float]:
    """Gbit/s from the first leaf to the second over each spine, where hosts have links for 10.

    Section 2.4 and figure 2 of the paper with a tenth of its rates; one link from a spine has half
    its rate.
    """
    slower = f'[[fault]]\nkind = "degrade"\non = "spine1->leaf1"\nshare = {HALF / FULL}\n'
    text = (
        'schema = 1\nduration = "40 ms"\n[fabric]\nkind = "leaf-spine"\nleaves = 2\nspines = 2\n'
        f'hosts_per_leaf = 40\nhost_rate = "250 Mbit/s"\nuplink_rate = "{FULL} Gbit/s"\n'
        'host_delay = "1 us"\nuplink_delay = "1 us"\nqueue = { limit = "200 packets" }\n'
        f"{routing}\n{slower if fault else ''}"
        '[tcp]\nmin_rto = "10 ms"\ninitial_rto = "10 ms"\nmax_window = "64 KB"\nack_every = 1\n'
        '[[workload]]\nkind = "pump"\nname = "pump"\nsenders = ["h0..h39"]\n'
        'receivers = ["h40..h79"]\n'
    )
    links = ew.run(text, set=settings, mechanisms=[Pump, CONGA]).links
    sent = dict(zip(links["name"], links["bytes"], strict=True))
    first, second = (sent[f"spine{n}->leaf1"] * 8 / 40e-3 / 1e9 for n in (0, 1))
    return first, second


def test_it_finds_the_split_of_the_paper_where_local_schemes_lose_a_fifth() -> None:
    # the rate that hosts reach without the fault: 10, less the pauses between messages
    wanted = sum(shares(EQUAL, fault=False))
    assert 9.3 < wanted < 10
    # paper: 50 and 40 of 100
    first, second = shares(EQUAL)
    assert first == pytest.approx(wanted / 2, rel=0.01)
    assert second == pytest.approx(HALF, rel=0.01)
    # paper: 40 and 40: TCP lowers the rate over the slow link, and equal uplinks follow it
    first, second = shares(LOCAL)
    assert first == pytest.approx(HALF, rel=0.06) and second == pytest.approx(HALF, rel=0.01)
    # paper: 66.6 and 33.3, the shares of equal utilisation
    for seed in (1, 2, 3):
        first, second = shares(CONGA_HERE, seed=seed)
        assert first + second > 0.985 * wanted, seed
        assert first / (first + second) == pytest.approx(FULL / (FULL + HALF), abs=0.05), seed


def test_links_of_equal_rate_get_equal_shares() -> None:
    first, second = shares(CONGA_HERE, fault=False)
    assert first == pytest.approx(second, rel=0.1)


def test_it_leaves_a_link_that_has_failed() -> None:
    down = '\n[[fault]]\nkind = "down"\non = "leaf0--spine1"\nfrom = "10 ms"\nreroute = "0.1 ms"\n'
    first, second = shares(CONGA_HERE + down, fault=False)
    assert second < 0.3 * first
    assert first > 0.6 * FULL


def dual_homed(**settings: Setting) -> ew.Result:
    """A run in which each host has cards at two leaves, so that feedback reaches other leaves."""
    text = (
        'schema = 1\n[fabric]\nkind = "leaf-spine"\nleaves = 4\nhosts_per_leaf = 4\nspines = 4\n'
        'cards = 2\nhoming = "multi-homed"\nhost_rate = "10 Gbit/s"\nuplink_rate = "10 Gbit/s"\n'
        f'{CONGA_HERE}\n[[workload]]\nname = "a"\nkind = "all-to-all"\nbytes = "50 KB"\n'
    )
    return ew.run(text, set=settings, mechanisms=[CONGA])


def test_feedback_for_another_leaf_is_ignored() -> None:
    run = dual_homed()
    assert run.summary["flows"]["completed"] == run.summary["flows"]["count"] > 0


@pytest.mark.parametrize(
    ("setting", "value", "says"),
    [
        ("period", "0 s", "period must be above 0 s"),
        ("share", 0.0, "share must be above 0 and at most 1, not 0.0"),
        ("share", 1.5, "share must be above 0 and at most 1, not 1.5"),
    ],
)
def test_settings_without_a_meaning_are_refused(setting: str, value: Setting, says: str) -> None:
    path = f"fabric.routing_parameters.{setting}"
    with pytest.raises(ew.InputError, match=says):
        dual_homed(**{path: value})


class Tell(ew.Routing):
    """Takes paths by hash, and checks the tags of packets."""

    def __init__(self) -> None:
        self.seen = 0

    def choose(self, choice: ew.Choice) -> int:
        assert choice.tag == 0 and choice.edge != self.switch
        return choice.flow_hash % choice.paths

    def forward(self, transit: ew.Transit) -> int | None:
        leaf = self.switch < 2
        assert transit.from_host == (leaf and transit.tag == 0)
        assert transit.to_host == (self.switch == transit.edge)
        if transit.from_host:
            return 2**63 + self.switch
        if leaf:
            # a packet that has come through a spine
            assert transit.tag >> 62 == 3 and transit.tag & 1 == 1 - self.switch
            return None
        return transit.tag | 1 << 62


def test_tags_go_from_switch_to_switch() -> None:
    text = (
        'schema = 1\n[fabric]\nkind = "leaf-spine"\nleaves = 2\nspines = 2\nhosts_per_leaf = 3\n'
        'host_rate = "1 Gbit/s"\nuplink_rate = "1 Gbit/s"\nrouting = "tell"\n'
        '[[workload]]\nkind = "stride"\nname = "all"\nstride = 3\ncount = 1\nbytes = "200 KB"\n'
    )
    told = ew.run(text, mechanisms=[Tell])
    assert told.summary["flows"]["completed"] == told.summary["flows"]["count"] == 6
    assert (
        ew.run(text, set={"fabric.reference_ports": True}, mechanisms=[Tell]).digest == told.digest
    )


class Turns(ew.Routing):
    """Takes the paths of a switch in turn, and sees all packets."""

    def __init__(self) -> None:
        self.packets = 0

    def choose(self, choice: ew.Choice) -> int:
        self.packets += 1
        return self.packets % choice.paths

    def forward(self, transit: ew.Transit) -> int | None:
        return transit.port


def test_seeing_packets_changes_nothing() -> None:
    text = (
        'schema = 1\n[fabric]\nkind = "fat-tree"\nk = 4\nhost_rate = "1 Gbit/s"\n'
        'uplink_rate = "1 Gbit/s"\nrouting = "ROUTING"\nqueue = { limit = "10 packets" }\n'
        '[tcp]\nmin_rto = "10 ms"\n[[workload]]\nkind = "stride"\nname = "all"\nstride = 5\n'
        'count = 2\nbytes = "60 KB"\n'
    )
    built_in = ew.run(text.replace("ROUTING", "round-robin"))
    ours = text.replace("ROUTING", "turns")
    assert built_in.summary["packets"]["dropped"] > 0
    assert ew.run(ours, mechanisms=[Turns]).digest == built_in.digest
    silent = type("Turns", (Turns,), {"forward": ew.Routing.forward})
    assert ew.run(ours, mechanisms=[silent]).digest == built_in.digest
