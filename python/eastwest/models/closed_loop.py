"""Comparison of three runs: without a control loop in queues, with a loop, and with prediction.

The loop (``loop.Loop``) replaces ``fabric.queue``; queues of hosts and all other settings do not
change. One link is compared: a given link, or the switch port whose queue was longest on average in
the first run.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import eastwest
from eastwest.errors import InputError, nearest
from eastwest.models import loop
from eastwest.models.predict import Predictor
from eastwest.results import Result
from eastwest.run import Setting
from eastwest.units import clean

Numbers = NDArray[np.float64]

#: Names of the three compared runs: without a loop, with a loop, and with prediction.
NAMES = ("as it is", "loop", "loop, looking ahead")
#: Number of samples with which the predictor is trained before its first prediction.
_LEARNING = 50


@dataclass(frozen=True)
class Wanted:
    """Settings of the control loop: set point in packets, times in s, gains of the controller.

    ``proportional`` is a share of marked packets per packet above the set point; ``integral`` is a
    share per packet and second.
    """

    set_point: int = 50
    interval_s: float = 500e-6
    horizon_s: float = 4.5e-3
    proportional: float = 3e-5
    integral: float = 3e-4

    def __post_init__(self) -> None:
        for name, value, least, most in (
            ("the set point", self.set_point, 1, 10_000_000),
            ("the interval", self.interval_s, 1e-6, 1e3),
            ("the horizon", self.horizon_s, self.interval_s, 1000 * self.interval_s),
            ("the proportional gain", self.proportional, 0, 1),
            ("the integral gain", self.integral, 0, 1e6),
        ):
            if not (math.isfinite(value) and least <= value <= most):
                raise InputError(
                    f"{name} of the control loop must be from {least:g} to {most:g}, not {value:g}"
                )

    @property
    def steps(self) -> int:
        """Number of decision intervals up to the horizon, at least 1."""
        return max(1, round(self.horizon_s / self.interval_s))

    def settings(self, look_ahead: bool) -> dict[str, Setting]:
        """Return the parameters of the control loop as keys of ``fabric.queue``.

        ``look_ahead``: whether the loop uses predictions.
        """
        return {
            "set_point": self.set_point,
            "interval_us": round(self.interval_s * 1e6),
            "horizon_us": round(self.horizon_s * 1e6),
            "look_ahead": look_ahead,
            "proportional": f"{self.proportional:.9f}",
            "integral": f"{self.integral:.9f}",
        }


@dataclass(frozen=True)
class Foreseen:
    """Predictions of a queue one horizon ahead, and their root mean square error in packets."""

    #: Predicted queue in packets for each sample; NaN for samples without a prediction.
    queue: Numbers
    error: float
    #: Root mean square error, in packets, of the prediction that the queue does not change.
    error_of_staying: float


@dataclass(frozen=True)
class Case:
    """Result of one run: packets waiting for one link at each sample after the warm-up."""

    name: str
    result: Result
    link: str
    rate_bps: float
    #: Mean length of a packet on the link, in bytes with framing.
    frame_bytes: int
    times_s: Numbers
    queue: Numbers
    foreseen: Foreseen

    def as_json(self) -> dict[str, Any]:
        """Return the numbers of the run as a JSON object: queues in packets, delays in µs.

        A delay is the queue multiplied by the transmission time of a packet of mean length.
        """
        packet_s = self.frame_bytes * 8 / self.rate_bps
        ends = {"p50": 0.5, "p99": 0.99}
        row = self.result.links.filter(self.result.links["name"] == self.link).row(0, named=True)
        return {
            "name": self.name,
            "result": str(self.result.path),
            "digest": self.result.digest,
            "link": self.link,
            "queue": float(self.queue.mean()),
            "deviation": float(self.queue.std()),
            "empty": float((self.queue == 0).mean()),
            "delay_us": {key: 1e6 * packet_s * float(np.quantile(self.queue, share))
                         for key, share in ends.items()} | {
                             "mean": 1e6 * packet_s * float(self.queue.mean())},
            "foreseen_error": self.foreseen.error,
            "staying_error": self.foreseen.error_of_staying,
            "link_bytes": int(row["bytes"]),
            "marks": int(row["marks"]),
            "drops": int(row["drops"]),
        }  # fmt: skip


def compare(
    scenario: str | Path,
    out: Path,
    wanted: Wanted | None = None,
    *,
    settings: Mapping[str, Setting] | None = None,
    link: str | None = None,
    warm_up_s: float = 0.0,
    seed: int | None = None,
    force: bool = False,
) -> list[Case]:
    """Run a scenario without a loop, with a loop and with prediction; return the three results.

    The result folders are ``out/runs/1`` to ``out/runs/3``; ``force`` replaces them. ``settings``
    apply to all runs. Queues are sampled every ``wanted.interval_s``. ``link`` is the name of the
    compared link (default: the switch port with the longest mean queue). Raises ``InputError``
    where the link does not exist, or where too few samples are left after ``warm_up_s``.
    """
    wanted = wanted or Wanted()
    common = {
        **(settings or {}),
        "measure.sample_interval": f"{wanted.interval_s * 1e9:.0f} ns",
    }
    first = eastwest.run(scenario, set=common, seed=seed, out=out / "runs" / "1", force=force)
    fabric = tomllib.loads((first.path / "scenario.toml").read_text(encoding="utf-8"))["fabric"]
    name = _link(first, link)
    found = [_case(NAMES[0], first, name, wanted, warm_up_s, fabric)]
    hosts = fabric.get("host_queue", fabric["queue"])
    for number, look_ahead in ((2, False), (3, True)):
        queue = {"kind": loop.Loop.name, "limit": fabric["queue"].get("limit", "100 packets")}
        result = eastwest.run(
            scenario,
            set={
                **common,
                "fabric.queue": _inline(queue | wanted.settings(look_ahead)),
                "fabric.host_queue": _inline(hosts),
            },
            seed=seed,
            out=out / "runs" / str(number),
            force=force,
            mechanisms=[loop.__file__],
        )
        found.append(_case(NAMES[number - 1], result, name, wanted, warm_up_s, fabric))
    return found


def foresee(queue: Numbers, steps: int) -> Foreseen:
    """Return predictions of a sampled queue, each from samples at least ``steps`` samples older.

    ``queue`` has one value in packets for each sample.
    """
    predictor = Predictor(3, 0, scale=(max(1.0, float(queue.mean())), 1.0))
    ahead = np.full(len(queue), np.nan)
    for place, now in enumerate(queue[: max(0, len(queue) - steps)].tolist()):
        predictor.see(now, 0.0)
        if place >= _LEARNING:
            ahead[place + steps] = predictor.ahead(steps)
    there = ~np.isnan(ahead)
    if not there.any():
        return Foreseen(ahead, math.nan, math.nan)
    past = np.concatenate((np.full(steps, np.nan), queue[:-steps]))

    def error(guess: Numbers) -> float:
        return float(np.sqrt(np.mean((guess[there] - queue[there]) ** 2)))

    return Foreseen(ahead, error(ahead), error(past))


def _case(
    name: str,
    result: Result,
    link: str,
    wanted: Wanted,
    warm_up_s: float,
    fabric: Mapping[str, Any],
) -> Case:
    row = result.links.filter(result.links["name"] == link).row(0, named=True)
    times = result.traffic["time_s"].unique().sort().to_numpy()
    rows = result.queues.filter(result.queues["link"] == row["link"])
    queue = np.zeros(len(times))
    queue[np.searchsorted(times, rows["time_s"].to_numpy() - 1e-9)] = rows["packets"].to_numpy()
    late = times >= warm_up_s
    if int(late.sum()) <= wanted.steps + _LEARNING:
        raise InputError(
            f"{clean(name)}: the run has only {int(late.sum())} samples of queues after the "
            "warm-up; use a longer duration or a shorter interval"
        )
    packets = int(row["packets"])
    frame = round(row["bytes"] / packets) if packets else 0
    kept = np.asarray(queue[late], dtype=np.float64)
    return Case(
        name, result, link, float(row["rate_bps"]), frame, np.asarray(times[late]), kept,
        foresee(kept, wanted.steps),
    )  # fmt: skip


def _link(result: Result, wanted: str | None) -> str:
    """Return ``wanted``, or else the name of the switch port with the longest mean queue.

    Raises ``InputError`` if the link does not exist, or no switch port had a waiting packet.
    """
    import polars as pl  # noqa: PLC0415  slow to load

    names = result.links["name"].to_list()
    if wanted is not None:
        if wanted not in names:
            near = nearest(wanted, names, 0.3)
            hint = f"did you mean {near}?" if near else f"the first link is {names[0]}"
            raise InputError(f"the result has no link {clean(wanted, 80)!r}; {hint}")
        return wanted
    switched = result.links.filter(pl.col("tier") != "host-up").select("link", "name")
    waits = result.queues.group_by("link").agg(pl.col("packets").sum())
    ranked = switched.join(waits, on="link").sort("packets", "link", descending=[True, False])
    if not ranked.height:
        raise InputError(
            "no sample found a waiting packet at a switch port, so that there is no queue to "
            "control; use more load, or a shorter decision interval (the interval of the samples)"
        )
    return str(ranked["name"][0])


def _inline(table: Mapping[str, Any]) -> str:
    """Return a table as TOML in one line; texts that are numbers are written as numbers."""
    texts = []
    for key, value in table.items():
        if isinstance(value, bool):
            text = "true" if value else "false"
        elif isinstance(value, str) and not _is_number(value):
            text = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        else:
            text = str(value)
        texts.append(f"{key} = {text}")
    return "{ " + ", ".join(texts) + " }"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
