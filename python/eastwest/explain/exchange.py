"""Explanation of one exchange: its request, the time at the server, its response."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from eastwest.errors import InputError
from eastwest.exchanges import exchanges
from eastwest.explain import flow, neighbours
from eastwest.explain.story import Part, Story
from eastwest.units import size, span
from eastwest.views.evidence import Evidence
from eastwest.views.labels import plural


def find(evidence: Evidence, number: int) -> dict[str, Any]:
    """Return the row of the exchange whose request or response is the flow ``number``.

    The columns are those of ``eastwest.exchanges.exchanges``. Raises ``InputError`` if there is no
    such exchange.
    """
    pairs = exchanges(evidence.flows.lazy()).collect()
    found = pairs.filter((pl.col("request") == number) | (pl.col("response") == number))
    if found.height == 0:
        known = f"{plural(pairs.height, 'exchange')} of {plural(evidence.flows.height, 'flow')}"
        raise InputError(
            f"{evidence.result.path} has no exchange with flow {number}; it has {known}. The id of "
            "an exchange is the flow of its request or response (Result.exchanges)"
        )
    return found.row(0, named=True)


def line(evidence: Evidence, row: dict[str, Any]) -> str:
    """Return an exchange as one line of text: client, server, sizes and time."""
    return (
        f"exchange {row['request']}: {evidence.host(row['client'])} asks "
        f"{evidence.host(row['server'])}, {size(row['request_bytes'])} for "
        f"{size(row['response_bytes'])}, in {span(row['exchange_us'] / 1e6)}, "
        f"{span(_without_noise(row, row['server_us']) / 1e6)} of it at the server"
    )


def story(evidence: Evidence, number: int) -> Story:
    """Return the explanation of the exchange whose request or response is the flow ``number``."""
    row = find(evidence, number)
    request = flow.story(evidence, row["request"])
    response = flow.story(evidence, row["response"])
    client, server = evidence.host(row["client"]), evidence.host(row["server"])
    took_us = float(row["exchange_us"])
    of_flows_us = (request.total_us or 0.0) + (response.total_us or 0.0)
    result = Story(
        "exchange",
        str(row["request"]),
        f"Exchange {row['request']}: {client} asks {server}",
        f"{client} asked {server} of workload {row['workload']!r} with "
        f"{size(row['request_bytes'])} (flow {row['request']}) and had the answer of "
        f"{size(row['response_bytes'])} "
        f"(flow {row['response']}) {span(took_us / 1e6)} later.",
        {name: row[name] for name in row} | {"client": client, "server": server},
    )
    result.total_us = took_us
    result.parts = sorted(
        [
            *(Part(f"request: {part.what}", part.us) for part in request.parts),
            Part("application at the server", _without_noise(row, took_us - of_flows_us)),
            *(Part(f"response: {part.what}", part.us) for part in response.parts),
        ],
        key=lambda part: -part.us,
    )
    result.parts = [part for part in result.parts if part.us > 0]
    result.facts["request_parts_us"] = _parts(request)
    result.facts["response_parts_us"] = _parts(response)
    for name, told in (("request", request), ("response", response)):
        lines = [f"{moment.at_us / 1e3:,.3f} ms: {moment.text}" for moment in told.moments]
        result.add(f"Events of the {name}, with the time since it was written", *lines)
        result.add(f"The {name}, flow {row[name]}", told.summary)
        beside = next((s.lines for s in told.sections if s.title == neighbours.BESIDE), [])
        result.add(f"At the same time as the {name}", *beside)
        result.facts[f"beside_{name}"] = {
            key: told.facts[key] for key in neighbours.FACTS if key in told.facts
        }
    result.lacks(*dict.fromkeys([*request.unknown, *response.unknown]))
    return result


def _without_noise(row: dict[str, Any], us: float) -> float:
    """Return ``us``, a difference of times of an exchange in µs; 0 where it is a rounding error.

    The simulator counts whole picoseconds. Times of a result are floating-point numbers in seconds:
    their rounding error grows with the simulated time.
    """
    return us if us > max(1e-6, 4e6 * math.ulp(row["finish_s"])) else 0.0


def _parts(told: Story) -> dict[str, float]:
    """Return the parts, in µs by name, of the time of the flow that ``told`` explains.

    The parts are those of the critical path if the run recorded it.
    """
    parts: dict[str, float] = told.facts.get("path_us") or told.facts["parts_us"]
    return parts
