"""Writes the tables of README.md from the measurement, the stored results, and ns-3.

    python papers/kernel_tcp/tables.py

Each table is between two marks in the page; the text around the marks stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eastwest.claims.tables import filled, rows

HERE = Path(__file__).parent
_FLOWS = {
    "reno_droptail50": "Reno, drop-tail 50",
    "cubic_droptail50": "CUBIC, drop-tail 50",
    "reno_codel": "Reno, CoDel",
    "cubic_codel": "CUBIC, CoDel",
    "bbr_droptail50": "BBR, drop-tail 50",
    "bbr_droptail500": "BBR, drop-tail 500",
}
#: Metric of the claims → name of the number in the tables.
NUMBERS = {
    "largest window": "largest-window",
    "end of slow start": "slow-start-end",
    "peak": "sawtooth-peak",
    "threshold": "sawtooth-threshold",
    "period": "sawtooth-period-s",
    "median window": "median-window",
    "median round trip": "median-round-trip-ms",
    "goodput": "goodput-mbps",
    "drops in the first second": "drops-of-first-second",
    "drops in all": "drops",
    "drops": "drops",
}
_READS = {
    "modern_200ms": "modern, 200 ms",
    "modern_1ms": "modern, 1 ms",
    "classic_200ms": "classic, 200 ms",
    "classic_1ms": "classic, 1 ms",
}
Row = dict[str, str]


def number(value: float | str) -> str:
    """Return a number with at most four digits, without an exponent."""
    value = float(value)
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _result(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HERE / "results" / f"{name}.json").read_text())
    return found


def _within(value: float, part: dict[str, Any]) -> bool:
    """Return whether a number lies in a band."""
    return bool(part["band"]["low"] <= value <= part["band"]["high"])


def _inside(value: float, part: dict[str, Any]) -> str:
    """Return a number as text, in bold if it lies outside the band."""
    return number(value) if _within(value, part) else f"**{number(value)}**"


def _once(title: str, place: int) -> str:
    """Return a title for the first row of a group; for the other rows, an empty text."""
    return "" if place else title


def flows() -> Iterator[str]:
    """Yield the table of the numbers of single flows."""
    measured = {(row["case"], row["number"]): row for row in rows(HERE / "measured" / "flows.csv")}
    peers = {(row["case"], row["number"]): row for row in rows(HERE / "ns3" / "flows.csv")}
    yield "| flow | | Linux 6.18 (least to greatest) | allowed | simulated | ns-3.37 |"
    yield "|---|---|---|---|---|---|"
    for case, title in _FLOWS.items():
        for place, part in enumerate(_result(case)["metrics"]):
            row = measured[case, NUMBERS[part["name"]]]
            peer = peers.get((case, NUMBERS[part["name"]]))
            theirs = _inside(float(peer["mean"]), part) if peer else "–"
            counted = part["unit"] in {"", "segments", "packets"}
            unit = "" if counted else f", {part['unit']}"
            told = f"{number(row['mean'])} ({number(row['least'])} to {number(row['greatest'])})"
            band = f"{number(part['band']['low'])} to {number(part['band']['high'])}"
            ours = _inside(part["value"], part)
            cells = (_once(title, place), part["name"] + unit, told, band, ours, theirs)
            yield f"| {' | '.join(cells)} |"


def _peers(name: str) -> dict[tuple[str, str], Row]:
    return {(row["case"], row["senders"]): row for row in rows(HERE / "ns3" / name)}


def reads() -> Iterator[str]:
    """Yield the table of goodput of synchronized reads."""
    measured = {(row["case"], row["senders"]): row for row in rows(HERE / "measured" / "reads.csv")}
    second, every = _peers("reads.csv"), _peers("reads_every_packet.csv")
    yield (
        "| Mbit/s | senders | Linux 6.18 ± standard deviation | allowed | simulated (95 %) | "
        "ns-3.37 | ns-3.37, every packet acknowledged |"
    )
    yield "|---|---|---|---|---|---|---|"
    for case, title in _READS.items():
        for place, part in enumerate(_result(f"incast_{case}")["metrics"]):
            senders = part["name"].split()[0]
            row = measured[case, senders]
            told = f"{number(row['goodput_mbps'])} ± {number(row['sd'])}"
            band = f"{number(part['band']['low'])} to {number(part['band']['high'])}"
            around = f"{number(part['low'])} to {number(part['high'])}"
            ours = f"{_inside(part['value'], part)} ({around})"
            theirs = [
                _inside(float(p[case, senders]["goodput_mbps"]), part) for p in (second, every)
            ]
            cells = (_once(title, place), senders, told, band, ours, *theirs)
            yield f"| {' | '.join(cells)} |"


def counts() -> Iterator[str]:
    """Yield the lines of the table of drops, timeouts and probes: Linux, simulated, ns-3."""
    measured = {(row["case"], row["senders"]): row for row in rows(HERE / "measured" / "reads.csv")}
    every = _peers("reads_every_packet.csv")
    yield (
        "| | senders | drops: Linux | simulated | ns-3.37 | timeouts: Linux | simulated | "
        "ns-3.37 | probes: Linux | simulated |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for case, title in _READS.items():
        for place, row in enumerate(rows(HERE / "results" / f"incast_{case}.csv")):
            key = (case, row["senders"])
            probes = ("", "")
            if case.startswith("modern"):
                probes = (number(measured[key]["probes"]), number(row["probes"]))
            cells = [_once(title, place), row["senders"]]
            for name in ("drops", "timeouts"):
                cells += [number(table[name]) for table in (measured[key], row, every[key])]
            yield f"| {' | '.join((*cells, *probes))} |"


def summary() -> Iterator[str]:
    """Yield the lines of the table of values inside their bands: simulated and ns-3."""
    yield (
        "| | numbers | simulated, in their bands | ns-3.37, in their bands | "
        "ns-3.37 with every packet acknowledged, in their bands |"
    )
    yield "|---|---|---|---|---|"
    peers = {(row["case"], row["number"]): row for row in rows(HERE / "ns3" / "flows.csv")}
    parts = [(case, part) for case in _FLOWS for part in _result(case)["metrics"]]
    theirs = [(peers.get((case, NUMBERS[part["name"]])), part) for case, part in parts]
    ours = sum(part["verdict"] != "differs" for _, part in parts)
    inside = sum(_within(float(row["mean"]), part) for row, part in theirs if row)
    yield f"| single flows | {len(parts)} | {ours} | {inside} | |"
    tables = [_peers("reads.csv"), _peers("reads_every_packet.csv")]
    parts = [(case, part) for case in _READS for part in _result(f"incast_{case}")["metrics"]]
    ours = sum(part["verdict"] != "differs" for _, part in parts)
    counted = [
        sum(
            _within(float(table[case, part["name"].split()[0]]["goodput_mbps"]), part)
            for case, part in parts
        )
        for table in tables
    ]
    yield f"| goodput of reads | {len(parts)} | {ours} | {counted[0]} | {counted[1]} |"


if __name__ == "__main__":
    readme = HERE / "README.md"
    tables = (summary, flows, reads, counts)
    readme.write_text(filled(readme.read_text(), {each.__name__: each() for each in tables}))
