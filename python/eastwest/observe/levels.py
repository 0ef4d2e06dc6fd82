"""The hierarchy of a workload: work → transaction → flow → burst → packet.

Each level has two random variables, a size and a gap (Gusat et al., *Benchmarking the
Ethernet-Federated Datacenter*, section 1). Their definition on spans is our own:

- *work*: a busy period, in which transactions follow each other within ``IDLE`` times the mean gap
  between arrivals. Size: number of its transactions; gap: idle time before the next work.
- *transaction*: size: number of its flows; gap: time from its arrival to the next arrival.
- *flow*: the messages of a transaction from one component to another. Size: number of its bursts;
  gap: time from its first message to the first message of the transaction's next flow.
- *burst*: a message, a request or a response. Size: payload bytes; gap: time to the next message of
  the flow.
- *packet*: size: payload bytes after segmentation; gap: none within a burst: the network decides.

Exponential, lognormal, gamma, Weibull and Pareto distributions are fitted to every variable by
maximum likelihood. The fit with the least Kolmogorov–Smirnov distance is named, if this distance is
at most ``CLOSE``; else the sample itself represents the variable (``empirical``). The distance is
measured to the sample from which the parameters were estimated, so it has no p-value.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from eastwest.observe.book import Book, Tree

Floats = npt.NDArray[np.float64]

#: Gap between arrivals after which a new work begins, as a multiple of the mean gap.
IDLE = 10.0
#: Largest Kolmogorov–Smirnov distance at which a fitted distribution is used in place of the
#: sample.
CLOSE = 0.05
#: Payload of a full packet in bytes: 1,500 less 52 of IPv4 and TCP headers with timestamps.
SEGMENT = 1448
#: Maximum number of values that a fit uses. From a larger sample it uses this number of values,
#: evenly spaced by rank.
MOST_VALUES = 5_000
#: Minimum number of values for a fit.
LEAST_VALUES = 20
#: Maximum number of packets of one message in the sample of packet sizes.
_MOST_PACKETS = 1000
#: Maximum number of full packets in the sample of packet sizes.
_MOST_FULL = 1_000_000
#: Number of quantiles of each sample that ``workload.json`` contains.
_QUANTILES = 101

_CANDIDATES: dict[str, tuple[stats.rv_continuous, tuple[str, ...]]] = {
    "exponential": (stats.expon, ("scale",)),
    "lognormal": (stats.lognorm, ("sigma", "scale")),
    "gamma": (stats.gamma, ("shape", "scale")),
    "weibull": (stats.weibull_min, ("shape", "scale")),
    "pareto": (stats.pareto, ("alpha", "scale")),
}


@dataclass(frozen=True)
class Fit:
    """Distribution fitted to the values of a size or gap: its name and its parameters."""

    name: str
    parameters: dict[str, float]
    #: Kolmogorov–Smirnov distance between the distribution and the sample, 0 to 1.
    distance: float


@dataclass(frozen=True)
class Variable:
    """Size or gap at one level of a workload: values, and distributions fitted to them."""

    level: str
    what: str
    unit: str
    values: Floats
    #: Fitted distributions, in ascending order of their Kolmogorov–Smirnov distance.
    fits: tuple[Fit, ...]
    #: Remark on values that are cut or left out; empty if all are there.
    note: str = ""

    @property
    def best(self) -> Fit | None:
        """Distribution with the least KS distance, or None if it is above ``CLOSE``."""
        return self.fits[0] if self.fits and self.fits[0].distance <= CLOSE else None

    def as_json(self) -> dict[str, Any]:
        """Return the size or gap as an object for ``workload.json``."""
        said: dict[str, Any] = {"level": self.level, "what": self.what, "unit": self.unit}
        said["count"] = len(self.values)
        if len(self.values):
            grid = np.quantile(self.values, np.linspace(0, 1, _QUANTILES))
            said |= {"mean": float(self.values.mean()), "deviation": float(self.values.std())}
            said["quantiles"] = [float(f"{value:.6g}") for value in grid]
        said["distribution"] = self.best.name if self.best else "empirical"
        said["candidates"] = [
            {"name": fit.name, "distance": round(fit.distance, 4), **fit.parameters}
            for fit in self.fits
        ]
        if self.note:
            said["note"] = self.note
        return said


def levels(book: Book) -> list[Variable]:
    """Return the sizes and gaps of a workload at all levels, from works to packets."""
    samples = _Samples()
    arrivals = np.array([tree.start_ns for tree in book.trees], np.float64) / 1e9
    gaps = np.diff(arrivals)
    works, idle = _works(gaps)
    for tree in book.trees:
        samples.add(tree)
    flow = samples
    packets, note = _packets(flow.bytes)
    return [
        variable("work", "size", "transactions", works),
        variable("work", "gap", "s", idle),
        variable("transaction", "size", "flows", flow.flows),
        variable("transaction", "gap", "s", gaps),
        variable("flow", "size", "bursts", flow.bursts),
        variable("flow", "gap", "s", flow.flow_gaps),
        variable("burst", "size", "B", flow.bytes),
        variable("burst", "gap", "s", flow.burst_gaps),
        replace(variable("packet", "size", "B", packets), note=note),
    ]


def variable(level: str, what: str, unit: str, values: Sequence[float] | Floats) -> Variable:
    """Return a size or gap with the distributions fitted to ``values``.

    ``what`` is ``size`` or ``gap``; ``unit`` is the unit of ``values``.
    """
    found = np.asarray(values, np.float64)
    return Variable(level, what, unit, found, fits(found))


def fits(values: Floats) -> tuple[Fit, ...]:
    """Return the distributions fitted to ``values``, in ascending order of their KS distance.

    ``values`` are at least 0. The tuple is empty for fewer than ``LEAST_VALUES`` values, or if all
    values are equal.
    """
    if len(values) < LEAST_VALUES or values.min() == values.max():
        return ()
    ordered = np.sort(values)
    place = np.linspace(0, len(ordered) - 1, min(len(ordered), MOST_VALUES)).round().astype(int)
    sample = ordered[place]
    # Values of 0 are raised to a small positive value, because fits use logarithms.
    positive = np.maximum(sample, max(1e-9, 1e-6 * float(sample.mean())))
    found = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name, (law, names) in _CANDIDATES.items():
            least = float(positive.min())
            try:
                given = (
                    law.fit(positive, floc=0.0, fscale=least)
                    if name == "pareto"
                    else law.fit(positive, floc=0.0)
                )
            except (ValueError, RuntimeError):  # the likelihood has no maximum
                continue
            distance = float(stats.kstest(positive, law(*given).cdf).statistic)
            shape = [*given[:-2], given[-1]]
            if np.isfinite(distance) and all(np.isfinite(shape)):
                parameters = dict(zip(names, map(float, shape), strict=True))
                found.append(Fit(name, parameters, distance))
    return tuple(sorted(found, key=lambda fit: fit.distance))


def draw(of: Variable, random: np.random.Generator, count: int) -> Floats:
    """Return ``count`` random values of the size or gap ``of``.

    The values are drawn from the best distribution of ``of``, or from the sample if no distribution
    is close enough; without a sample the values are 0.
    """
    best = of.best
    if best is None:
        return random.choice(of.values, count) if len(of.values) else np.zeros(count)
    law, _ = _CANDIDATES[best.name]
    *shape, scale = best.parameters.values()
    drawn = law.rvs(*shape, loc=0.0, scale=scale, size=count, random_state=random)
    return np.asarray(drawn, np.float64)


class _Samples:
    """Samples of the sizes and gaps of flows and bursts, collected from transactions."""

    def __init__(self) -> None:
        #: Number of flows of each transaction.
        self.flows: list[float] = []
        #: Number of messages of each flow.
        self.bursts: list[float] = []
        #: Times in s between the first messages of consecutive flows of a transaction.
        self.flow_gaps: list[float] = []
        #: Payload bytes of each message.
        self.bytes: list[float] = []
        #: Times in s between consecutive messages of a flow.
        self.burst_gaps: list[float] = []

    def add(self, tree: Tree) -> None:
        """Add the messages between components of the transaction ``tree`` to the samples."""
        times: dict[tuple[str, str], list[int]] = defaultdict(list)
        for call in tree.calls:
            if call.parent < 0:
                continue
            caller = tree.calls[call.parent].component
            if caller == call.component:
                continue
            times[caller, call.component].append(call.sent_ns)
            times[call.component, caller].append(call.done_ns)
            self.bytes += [call.request_bytes, call.response_bytes]
        self.flows.append(len(times))
        began = []
        for each in times.values():
            each.sort()
            began.append(each[0])
            self.bursts.append(len(each))
            self.burst_gaps += [(b - a) / 1e9 for a, b in pairwise(each)]
        began.sort()
        self.flow_gaps += [(b - a) / 1e9 for a, b in pairwise(began)]


def _works(gaps: Floats) -> tuple[Floats, Floats]:
    """Return the number of transactions of each work, and the idle times between works in s.

    ``gaps`` are the times between arrivals in s.
    """
    if not len(gaps):
        return np.ones(1), np.zeros(0)
    breaks = np.flatnonzero(gaps > IDLE * gaps.mean())
    ends = np.concatenate([[-1], breaks, [len(gaps)]])
    return np.diff(ends).astype(np.float64), gaps[breaks]


def _packets(sizes: Sequence[float]) -> tuple[Floats, str]:
    """Return the payload bytes of each packet of messages, and a remark on what is left out.

    ``sizes`` are the payload bytes of the messages. A message counts with at most
    ``_MOST_PACKETS`` packets, and there are at most ``_MOST_FULL`` full packets.
    """
    if not sizes:
        return np.zeros(0), ""
    whole = np.asarray(sizes)
    of = np.clip(whole, 1, _MOST_PACKETS * SEGMENT)
    last = (of - 1) % SEGMENT + 1
    there = int(((of - last) / SEGMENT).sum())
    full = np.full(min(there, _MOST_FULL), float(SEGMENT))
    said = []
    if cut := int((whole > _MOST_PACKETS * SEGMENT).sum()):
        messages = f"{cut:,} message{'s' * (cut != 1)}"
        said.append(
            f"{messages} of more than {_MOST_PACKETS:,} packets: further packets are left out"
        )
    if there > _MOST_FULL:
        said.append(f"{there - _MOST_FULL:,} of {there:,} full packets are left out")
    return np.concatenate([last, full]), "; ".join(said)
