"""Result folders made by hand: a few rows of each table, the rest empty."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from eastwest import Result, formats

SCENARIO = """schema = 1
name = "by-hand"
[fabric]
kind = "leaf-spine"
leaves = 2
hosts_per_leaf = 4
spines = 2
host_rate = "1 Gbit/s"
uplink_rate = "10 Gbit/s"
host_delay = "5 us"
[tcp]
min_rto = "200 ms"
initial_rto = "1 s"
[[workload]]
name = "w"
kind = "permutation"
bytes = "1 KB"
"""
DEFAULTS: dict[str, Any] = {"u32": 0, "u64": 0, "i64": -1, "f64": 0.0, "str": ""}
Rows = Sequence[Mapping[str, Any]]


def folder(
    path: Path,
    tables: Mapping[str, Rows] | None = None,
    summary: Mapping[str, Any] | None = None,
    scenario: str = SCENARIO,
) -> Result:
    """Write a result folder; values that a row does not name are 0, −1 or empty."""
    path.mkdir(parents=True)
    given = {"links": links(), **(tables or {})}
    for name, columns in formats.TABLES.items():
        rows = [
            {column: row.get(column, DEFAULTS[kind]) for column, kind in columns.items()}
            for row in given.get(name, [])
        ]
        schema = formats.empty(name).schema
        pl.DataFrame(rows, schema=schema).write_parquet(path / f"{name}.parquet")
    text = {"format": 2, "scenario": "by-hand", "seed": 1, **(summary or {})}
    (path / "summary.json").write_text(json.dumps(text))
    (path / "scenario.toml").write_text(scenario)
    return Result(path)


def links() -> Rows:
    """Return the links of eight hosts in two racks; tests use only the links of h0 to h3."""
    rows: list[dict[str, Any]] = []
    for host in range(4):
        for name, tier in ((f"h{host}->leaf0", "host-up"), (f"leaf0->h{host}", "host-down")):
            src, dst = name.split("->")
            row = {"link": len(rows), "name": name, "tier": tier, "src": src, "dst": dst}
            rows.append({**row, "rate_bps": 10**9})
    return rows


#: Number of the link ``leaf0->h3``.
TO_H3 = 7


def flow(number: int = 0, **values: Any) -> dict[str, Any]:
    """Return a flow from h0 to h3 of 100,000 bytes at 1 s, which would take 1 ms alone."""
    row: dict[str, Any] = {
        "flow": number,
        "workload": "w",
        "purpose": "flow",
        "class": "w",
        "src": 0,
        "dst": 3,
        "bytes": 100_000,
        "start_s": 1.0,
        "fct_us": 2000.0,
        "slowdown": 2.0,
        "connection": number,
        "stream_start": 0,
        **values,
    }
    return {"finish_s": row["start_s"] + row["fct_us"] / 1e6, **row}


def drop(time_s: float, byte: int, **values: Any) -> dict[str, Any]:
    """Return a lost segment of 1,000 bytes from h0 to h3, dropped by a full queue."""
    return {
        "time_s": time_s,
        "what": "drop",
        "connection": 0,
        "src": 0,
        "dst": 3,
        "kind": "data",
        "stream_start": byte,
        "bytes": 1000,
        "link": TO_H3,
        "cause": "queue-full",
        **values,
    }


def event(time_s: float, what: str, byte: int = 0, **values: Any) -> dict[str, Any]:
    """Return an event at the sender of connection 0."""
    row = {"time_s": time_s, "what": what, "connection": 0, "src": 0, "dst": 3}
    return {**row, "stream_start": byte, "bytes": 100_000, **values}
