"""Verdicts on idle networks: links that are hardly used, and over-subscription without effect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eastwest.report import words
from eastwest.report.verdict import verdicts
from eastwest.views.facts import Facts
from hand_made import flow, folder, links


def said(path: Path, host: float, uplink: float, uplink_bps: int, flows: int = 1) -> list[Any]:
    """Return the verdicts on four hosts below a leaf, for this use of host links and uplink."""
    rows = [{**row, "utilisation": host, "packets": 1} for row in links()]
    rows += [
        {
            "link": 20 + place,
            "name": name,
            "tier": tier,
            "src": "leaf0",
            "dst": "spine0",
            "rate_bps": uplink_bps,
            "utilisation": uplink,
            "packets": 1,
        }
        for place, (name, tier) in enumerate(
            [("leaf0->spine0", "leaf-up"), ("spine0->leaf0", "leaf-down")]
        )
    ]
    tables = {"links": rows, "flows": [flow(i) for i in range(flows)]}
    return verdicts(Facts(folder(path, tables, {"simulated_s": 2.0})))


def marks(told: list[Any], words: str) -> list[str]:
    """Return the marks of the sentences that contain ``words``."""
    return [mark for mark, sentence in told if words in sentence]


def test_an_idle_network_has_no_tick(tmp_path: Path) -> None:
    """Over-subscription of 2.5 to 1 does not matter where no link sends more than 1.3 %."""
    told = said(tmp_path / "r", 0.006, 0.013, 1_600_000_000)
    assert marks(told, "was sending 1.3 % of the time; the longest wait") == ["look"]
    assert marks(told, "If the load comes in bursts, measure a window of the run") == ["look"]
    [sentence] = [text for _, text in told if "over-subscribed" in text]
    assert sentence == (
        "Links from leaves to spines are over-subscribed 2.5:1: links from hosts to switches have "
        "together 2.5 times their rate. But the busiest of these links, leaf0->spine0, was sending "
        "1.3 % of the time: means over the run show no effect of the over-subscription."
    )


def test_links_are_idle_because_of_timeouts(tmp_path: Path) -> None:
    """Flows with timeouts explain idle links where they take most of the time of all flows."""
    rows = [{**row, "utilisation": 0.004, "packets": 1} for row in links()]
    for name, fct_us in (("most", 900_000.0), ("little", 900.0)):
        flows = [flow(0, fct_us=fct_us, timeouts=1), flow(1, fct_us=1000.0)]
        result = folder(tmp_path / name, {"links": rows, "flows": flows}, {"simulated_s": 2.0})
        told = verdicts(Facts(result))
        waited = marks(told, "almost idle because senders waited for timeouts")
        assert waited == (["look"] if name == "most" else [])


def test_a_collapsed_incast_begins_with_its_goodput(tmp_path: Path) -> None:
    rows = [{"workload": "w", "round": 0}]
    for goodput_bps, begins in (
        (3e7, "The goodput of rounds was 30 Mbit/s"),
        (5e8, "The only flow was"),
    ):
        tables = {"rounds": rows, "flows": [flow(0, dst=3), flow(1, dst=1, bytes=100)]}
        about = {"rounds": {"goodput_bps": goodput_bps}, "flows": {"count": 1, "completed": 1}}
        mark, said = verdicts(Facts(folder(tmp_path / f"{goodput_bps:g}", tables, about)))[0]
        assert said.startswith(begins)
        if mark == "look":
            assert said.endswith("3 % of the 1 Gbit/s of the link to the receiver, h3.")


def test_idle_uplinks_are_told_below_busy_hosts(tmp_path: Path) -> None:
    told = said(tmp_path / "r", 0.3, 0.013, 1_600_000_000)
    assert marks(told, "The busiest link, ") == ["good"]
    assert marks(told, "over-subscribed 2.5:1") == ["look"]


def test_used_uplinks_and_fabrics_that_are_not_over_subscribed_need_no_verdict(
    tmp_path: Path,
) -> None:
    assert not marks(said(tmp_path / "a", 0.3, 0.2, 1_600_000_000), "over-subscribed")
    assert not marks(said(tmp_path / "b", 0.3, 0.01, 4_000_000_000), "over-subscribed")
    assert not marks(said(tmp_path / "c", 0.3, 0.01, 1_600_000_000, flows=0), "over-subscribed")


def test_a_saturated_core_is_told_above_the_links(tmp_path: Path) -> None:
    """A core that works 99 % of the time, and frames lost in a ring, come before the links."""
    rows = [{**row, "utilisation": 0.36, "packets": 1} for row in links()]
    for busy, lost, expected in ((0.987, 3, ["look", "look"]), (0.4, 0, [])):
        hosts = {"busy_max": busy, "ring_drops": lost}
        result = folder(tmp_path / str(lost), {"links": rows, "flows": [flow(0)]}, {"hosts": hosts})
        told = verdicts(Facts(result))
        assert marks(told, "busiest core of a host works") == expected[:1]
        assert marks(told, "3 frames were lost in full rings") == expected[1:]
        if expected:
            texts = [text for _, text in told]
            first = next(i for i, text in enumerate(texts) if "busiest core" in text)
            assert first < next(i for i, text in enumerate(texts) if "busiest link" in text)


def test_busy_links_and_drops_are_told_beside_a_saturated_core(tmp_path: Path) -> None:
    """The core of a host is not named as the only limit where the network is one, too."""
    for used, dropped, says in (
        (0.36, 0, "the host, not the network, limits its throughput ([hosts])"),
        (0.988, 0, "but the busiest link of a host sends 98.8 % of the time: the network may"),
        (0.36, 1859, "but the network dropped 1,859 packets: the network may limit"),
        (0.988, 1, "sends 98.8 % of the time and the network dropped 1 packet: the network"),
    ):
        rows = [{**row, "utilisation": used, "packets": 1} for row in links()]
        about = {"hosts": {"busy_max": 0.994}, "packets": {"dropped": dropped}}
        result = folder(tmp_path / f"{used}-{dropped}", {"links": rows}, about)
        assert marks(verdicts(Facts(result)), says) == ["look"], says


def test_a_run_without_packets_says_so(tmp_path: Path) -> None:
    about = {"flows": {"count": 0, "completed": 0}, "latency_us": {"count": 0, "p50": 0, "p99": 0}}
    result = folder(tmp_path / "r", {}, about)
    told = verdicts(Facts(result))
    assert marks(told, "No packet was sent.") == ["look"] and not marks(told, "The busiest link")
    cards = {name: (value, remark) for name, value, remark in words.headlines(result)}
    assert cards["flows"] == ("0", "none started")
    assert cards["flow completion"] == ("–", "no flow is complete")
    assert cards["packet latency, with ACKs"] == ("–", "no packet arrived")


def test_counts_of_one_have_the_singular(tmp_path: Path) -> None:
    late = flow(0, timeouts=1, retransmits=1)
    about = {"flows": {"count": 1, "completed": 1}, "tcp": {"timeouts": 1}}
    told = [text for _, text in verdicts(Facts(folder(tmp_path / "a", {"flows": [late]}, about)))]
    assert "The only flow was complete." in told
    assert any(
        text.startswith("There was 1 TCP timeout. 1 flow (100 %) was in progress on a connection")
        for text in told
    )
    about = {"flows": {"count": 1, "completed": 0}}
    told = [text for _, text in verdicts(Facts(folder(tmp_path / "b", {}, about)))]
    assert told[0] == "1 of 1 flow was not complete when the run ended."
