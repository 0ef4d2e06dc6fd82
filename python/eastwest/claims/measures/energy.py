"""Energy of links that sleep: of a single link, times delay, and compared with the model."""

from __future__ import annotations

from typing import Any

from eastwest.claims.measures.base import (
    Data,
    Measured,
    MeasureError,
    Row,
    Settings,
    measure,
    run_value,
)
from eastwest.models import eee
from eastwest.results import Result, pick
from eastwest.sweep.values import Bound

#: Bytes and transceiver of the model's link: full frames on 10GBASE-T, as figure 2.2 of E-EON.
_FRAME_BYTES, _PHY = 1500, "10GBASE-T"


def _sender(result: Result) -> dict[str, Any]:
    """Return the cable on which a host sends most packets, as a row of ``links``."""
    up = result.links.filter(result.links["tier"] == "host-up").sort("packets")
    if up.is_empty() or not up["packets"][-1]:
        raise MeasureError(f"{result.path} has no host that sends")
    return up.row(-1, named=True)


@run_value("sender-power")
def sender_power(result: Result) -> float:
    """Return the energy of the busiest cable of a host over its energy when always awake."""
    link = _sender(result)
    return float(link["energy_j"]) / float(link["energy_always_on_j"])


@run_value("sender-efficiency")
def sender_efficiency(result: Result) -> float:
    """Return the share of its time awake, waking and falling asleep in which that cable sends."""
    link = _sender(result)
    busy_s = float(link["bytes"]) * 8 / float(link["rate_bps"])
    return busy_s / sum(float(link[name]) for name in ("awake_s", "falling_asleep_s", "waking_s"))


@run_value("switch-ports-energy-j")
def switch_ports_energy_j(result: Result) -> float:
    """Return the energy of the ports of switches in J: all links except those from hosts."""
    links = result.links.filter(result.links["tier"] != "host-up")
    return float(links["energy_j"].sum())


def _delay_product(result: Result, links: str) -> float:
    """Return the energy of a class of links times the mean runtime of jobs, in J·s."""
    joules = pick(result.summary, "energy_j", *links.split(), "total")
    runtime_s = pick(result.summary, "jobs", "runtime_s", "mean")
    if joules is None or not runtime_s:
        raise MeasureError(f"{result.path} has no jobs, or no energy")
    return float(joules) * float(runtime_s)


@run_value("energy-delay-js")
def energy_delay_js(result: Result) -> float:
    """Return the energy of all links times the mean runtime of jobs, in J·s.

    The product in the summary uses the simulated time instead, which the arrivals of jobs determine
    and not the network.
    """
    return _delay_product(result, "")


@run_value("fabric-energy-delay-js")
def fabric_energy_delay_js(result: Result) -> float:
    """Return the energy of links between switches times the mean runtime of jobs, in J·s."""
    return _delay_product(result, "fabric_links")


@run_value("terasort-runtime-s")
def terasort_runtime_s(result: Result) -> float:
    """Return the mean runtime of the TeraSort jobs of a stream, in s."""
    jobs = result.jobs.filter(result.jobs["kind"] == "terasort")
    mean = jobs["runtime_s"].mean()
    if not isinstance(mean, float):
        raise MeasureError(f"{result.path} has no TeraSort that finished")
    return mean


@measure("power-off-model")
def power_off_model(
    data: Data, at: Settings, policy: str, along: str = "workload.frames.mean_gap"
) -> Measured:
    """Return the greatest distance of ``sender-power`` from the model over the gaps of an axis.

    ``policy`` is ``ideal`` or a label of eastwest.models.eee.
    """
    phy = eee.PHYS[_PHY]
    frame_s = eee.frame_time_s(phy, _FRAME_BYTES)
    kind = eee.labelled(policy)
    if kind is None and policy != "ideal":
        raise MeasureError(f"no policy {policy!r}; there are ideal, standard and such as 12us10")
    rows: list[Row] = []
    samples = data.samples("sender-power", at)
    for sample in samples:
        gap = Bound.read(sample.settings.get(along))
        if gap is None or gap.kind != "time":
            raise MeasureError(f"{along} is no axis of times")
        load = frame_s / (float(gap.number) * 1e-12)
        if kind is None:
            model = eee.ideal(load, frame_s).power
        else:
            model = eee.under_poisson(kind, load, frame_s, phy).power
        rows.append({"load": round(load, 4), "power": sample.mean, "model": model})
    greatest = max(abs(float(str(row["power"])) - float(str(row["model"]))) for row in rows)
    return Measured(greatest, seeds=min(len(sample.values) for sample in samples), rows=rows)
