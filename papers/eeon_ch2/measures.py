"""Measures the energy of a link that sleeps, to compare it with the model."""

from __future__ import annotations

from typing import Any

from eastwest.claims.measures import (
    Data,
    Measured,
    MeasureError,
    Row,
    Settings,
    measure,
    run_value,
)
from eastwest.models import eee
from eastwest.results import Result
from eastwest.sweep.values import Bound

#: Frame size in bytes and transceiver of the model's link, as in figure 2.2 of E-EON: full frames.
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
    """Return the share of sending time in the time that the busiest host cable is not asleep."""
    link = _sender(result)
    busy_s = float(link["bytes"]) * 8 / float(link["rate_bps"])
    return busy_s / sum(float(link[name]) for name in ("awake_s", "falling_asleep_s", "waking_s"))


@measure("power-off-model")
def power_off_model(
    data: Data, at: Settings, policy: str, along: str = "workload.frames.mean_gap"
) -> Measured:
    """Return the largest difference of ``sender-power`` from the model over the gaps of an axis.

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
