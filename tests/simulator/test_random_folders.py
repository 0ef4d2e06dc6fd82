"""Folders of random tables: readers report the damage, or read them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from eastwest import Result, formats, plot
from eastwest.errors import InputError
from eastwest.explain import explain, slowest
from eastwest.timeline import trace
from hand_made import folder

WORDS = {
    "what": ["drop", "timeout", "recovery", "recovered", "spurious", "failed", "else"],
    "kind": ["map", "reduce", "data", "syn", "ack", "retransmission"],
    "purpose": ["flow", "shuffle", "replica", "map-input", "response"],
    "locality": ["node", "rack", "remote", "none"],
    "workload": ["w", "v"],
    "name": ["a", "b\x1b", "<b>"],
}
NUMBERS: dict[str, list[Any]] = {
    "f64": [0.0, 1.0, 1.5, 2.0, 3.0, 1e-9, -5.0, 1e12, float("nan"), float("inf")],
    "i64": [-1, 0, 1, 2, -(2**63), 2**63 - 1],
    "u32": [0, 1, 2, 3, 3, 2**32 - 1],
    "u64": [0, 1, 2, 3, 1000, 2**63, 2**64 - 1],
}


def tables(random: Random) -> dict[str, list[dict[str, Any]]]:
    # Half of the folders are wrong in only a few places.
    rate = random.choice([0.003, 0.1])

    def value(column: str, kind: str) -> Any:
        if kind == "str":
            return random.choice(WORDS.get(column, ["", "x"]))
        if random.random() < rate:
            return random.choice([*NUMBERS[kind], None])
        return random.choice(NUMBERS[kind][1:5])

    return {
        name: [
            {column: value(column, kind) for column, kind in columns.items()}
            for _ in range(random.randrange(9))
        ]
        for name, columns in formats.TABLES.items()
    }


def readers(result: Result) -> list[Callable[[], object]]:
    numbers = range(3)
    return [
        lambda: slowest(result).text(),
        lambda: json.dumps(trace(result), allow_nan=False),
        *(
            lambda kind=kind, number=number: json.dumps(
                explain(result, kind, number, workload="w").to_dict(), allow_nan=False
            )
            for kind in ("flow", "connection", "job")
            for number in numbers
        ),
        *(
            lambda which=which: explain(result, "task", which, workload="w").text()
            for which in ("1/map/1", "2/reduce/3")
        ),
        lambda: plot.losses(result),
        lambda: plot.link_heat(result),
        lambda: plot.windows(result),
    ]


@pytest.mark.parametrize("seed", range(25))
def test_no_folder_is_a_surprise(seed: int, tmp_path: Path) -> None:
    for read in readers(folder(tmp_path / "r", tables(Random(seed)))):
        try:
            read()
        except InputError as error:
            assert str(error).isprintable()
