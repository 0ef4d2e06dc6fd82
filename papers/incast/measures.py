"""Measures the goodput of synchronized reads against the number of senders.

The measures need sweeps over ``fabric.hosts``: one reader and the senders. A curve is the mean
goodput over seeds at each number of senders. Intervals of a number that is derived from a curve are
percentile bootstrap intervals over seeds (Efron and Tibshirani, An Introduction to the Bootstrap,
chapter 13): seeds are drawn with replacement, for all numbers of senders together, with a fixed
random seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from eastwest.claims.measures import (
    Data,
    Measured,
    MeasureError,
    Row,
    Sample,
    Settings,
    measure,
)
from eastwest.models import incast as models
from eastwest.results import Result
from eastwest.stats import CONFIDENCE, mean_interval

_HOSTS = "fabric.hosts"
_GOODPUT = "rounds.goodput_bps"
_RESAMPLES = 1000

#: Mean goodput in bit/s by number of senders, in increasing order.
Curve = Mapping[int, float]


@measure("onset")
def onset(data: Data, at: Settings, block_bytes: int, share: float = 0.5) -> Measured:
    """Return the smallest number of senders with incast.

    This is where mean goodput is below ``share`` of the highest mean goodput of any smaller number
    of senders; no model is needed. Without incast, the result is the largest number run plus one.
    """
    samples = _samples(data, at)
    last = max(samples) + 1

    def statistic(curve: Curve) -> float:
        return float(_onset(curve, share) or last)

    collapsed = _onset(_means(samples), share) is not None
    text = "" if collapsed else f"no collapse up to {last - 1}"
    return _read(samples, statistic, _rows(samples, block_bytes), text)


@measure("lowest-share")
def lowest_share(data: Data, at: Settings, block_bytes: int) -> Measured:
    """Return the lowest mean goodput over the highest one with fewer senders.

    1 means no collapse.
    """
    samples = _samples(data, at)
    return _read(samples, _lowest, _rows(samples, block_bytes))


@measure("model-ratio")
def model_ratio(
    data: Data,
    at: Settings,
    block_bytes: int,
    equation: int,
    from_senders: int,
    to_senders: int,
    rto_s: float = models.RTO_S,
    rtt_s: float = models.RTT_S,
) -> Measured:
    """Return goodput over that of equation (1) or (2): geometric mean over sender numbers."""
    samples = _samples(data, at, from_senders, to_senders)
    if equation not in {1, 2}:
        raise MeasureError(f"equation {equation} must be 1 or 2, which have no fitted parameter")

    def model(senders: int) -> float:
        if equation == 1:
            return models.goodput_before(senders, block_bytes, rtt_s)
        return models.goodput_after(senders, block_bytes, rto_s, rtt_s)

    def ratio(curve: Curve) -> float:
        logs = [math.log(max(goodput, 1.0) / model(n)) for n, goodput in curve.items()]
        return math.exp(math.fsum(logs) / len(logs))

    return _read(samples, ratio, _rows(_samples(data, at), block_bytes, rto_s, rtt_s))


@measure("alpha")
def alpha(
    data: Data,
    at: Settings,
    block_bytes: int,
    from_senders: int,
    to_senders: int,
    rto_s: float = models.RTO_S,
    rtt_s: float = models.RTT_S,
) -> Measured:
    """Return α of equation (4), the mean number of timeouts per block; mean over senders."""
    samples = _samples(data, at, from_senders, to_senders)

    def mean_alpha(curve: Curve) -> float:
        found = [
            models.alpha_of(max(goodput, 1.0), n, block_bytes, rto_s, rtt_s)
            for n, goodput in curve.items()
        ]
        return math.fsum(found) / len(found)

    measured = _read(samples, mean_alpha, _rows(_samples(data, at), block_bytes, rto_s, rtt_s))
    found = max(measured.value, 0.0)
    for row in measured.rows:
        senders = int(row["senders"] or 0)
        fitted = models.goodput_partial(senders, block_bytes, found, rto_s, rtt_s)
        row["equation_4"] = fitted if senders in samples else None
    return measured


@measure("best-run")
def best_run(
    data: Data,
    at: Settings,
    block_bytes: int,
    from_senders: int,
    to_senders: int,
    link_bps: float = models.LINK_BPS,
) -> Measured:
    """Return the highest goodput of any single run as a share of the link, without an interval."""
    samples = _samples(data, at, from_senders, to_senders)
    best, senders = max(
        (value, n) for n, sample in samples.items() for value in sample.values.values()
    )
    text = f"with {senders} senders"
    return Measured(
        best / link_bps, None, None, _seeds(samples), text, _rows(_samples(data, at), block_bytes)
    )


@measure("senders-of-fall")
def senders_of_fall(
    data: Data, at: Settings, block_bytes: int, upper: float = 0.9, lower: float = 0.5
) -> Measured:
    """Return the number of senders over which goodput falls from ``upper`` to below ``lower``.

    Both are shares of the highest mean goodput with fewer senders, as for the onset. A collapse
    from one number of senders to the next is 0; a fall that never reaches ``lower`` counts up to
    the largest number run.
    """
    samples = _samples(data, at)
    last = max(samples) + 1

    def width(curve: Curve) -> float:
        begins = _onset(curve, upper)
        return float((_onset(curve, lower) or last) - begins) if begins else 0.0

    curve = _means(samples)
    begins, ends = _onset(curve, upper), _onset(curve, lower)
    text = f"from {begins or 'nowhere'} to {ends or f'beyond {last - 1}'}"
    return _read(samples, width, _rows(samples, block_bytes), text)


@measure("ratio-of-falls")
def ratio_of_falls(
    data: Data, along: str, values: list[str], upper: float = 0.9, lower: float = 0.5
) -> Measured:
    """Return the widest fall of goodput at several settings over the narrowest.

    Each fall is measured as for senders-of-fall, and includes its first step. 1 means that all
    falls are equally steep.
    """
    falls = [senders_of_fall(data, {along: value}, 1000, upper, lower) for value in values]
    steps = [fall.value + 1 for fall in falls]
    seeds = min(fall.seeds for fall in falls)
    text = ", ".join(f"{v}: {step:.0f}" for v, step in zip(values, steps, strict=True))
    return Measured(max(steps) / min(steps), None, None, seeds, f"senders at {text}")


def _samples(data: Data, at: Settings, least: int = 1, most: int = 1_000_000) -> dict[int, Sample]:
    found = {int(sample.settings[_HOSTS]) - 1: sample for sample in data.samples(_GOODPUT, at)}
    chosen = {n: found[n] for n in sorted(found) if least <= n <= most}
    if not chosen:
        raise MeasureError(f"no runs with {least} to {most} senders")
    return chosen


def _read(
    samples: Mapping[int, Sample],
    statistic: Callable[[Curve], float],
    rows: list[Row],
    text: str = "",
) -> Measured:
    """Return a statistic of the curve of means, with its interval."""
    low, high = _interval(samples, statistic)
    return Measured(statistic(_means(samples)), low, high, _seeds(samples), text, rows)


def _means(samples: Mapping[int, Sample]) -> dict[int, float]:
    return {n: sample.mean for n, sample in samples.items()}


def _seeds(samples: Mapping[int, Sample]) -> int:
    return min(len(sample.values) for sample in samples.values())


def _onset(curve: Curve, share: float) -> int | None:
    highest = 0.0
    for senders, goodput in curve.items():
        if goodput < share * highest:
            return senders
        highest = max(highest, goodput)
    return None


def _lowest(curve: Curve) -> float:
    highest, lowest = 0.0, 1.0
    for goodput in curve.values():
        lowest = min(lowest, goodput / highest) if highest else lowest
        highest = max(highest, goodput)
    return lowest


def _interval(
    samples: Mapping[int, Sample], statistic: Callable[[Curve], float]
) -> tuple[float | None, float | None]:
    """Return the percentile bootstrap interval of a statistic of the curve of means."""
    import numpy as np  # noqa: PLC0415  large

    common = sorted(set.intersection(*({*sample.values} for sample in samples.values())))
    if len(common) < 2:
        return None, None
    table = np.array([[sample.values[seed] for seed in common] for sample in samples.values()])
    random = np.random.Generator(np.random.PCG64(1))
    found = []
    for _ in range(_RESAMPLES):
        drawn = random.integers(0, len(common), len(common))
        means = table[:, drawn].mean(axis=1)
        found.append(statistic(dict(zip(samples, (float(m) for m in means), strict=True))))
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(found, [tail, 1 - tail])
    return float(low), float(high)


def _rows(
    samples: Mapping[int, Sample],
    block_bytes: int,
    rto_s: float = models.RTO_S,
    rtt_s: float = models.RTT_S,
) -> list[Row]:
    """Return rows with the curve, its intervals, and equations (1) and (2)."""
    rows: list[Row] = []
    for senders, sample in samples.items():
        values: Sequence[float] = list(sample.values.values())
        interval = mean_interval(values)
        rows.append(
            {
                "senders": senders,
                "goodput_bps": interval.value,
                "low": interval.low,
                "high": interval.high,
                "least": min(values),
                "greatest": max(values),
                "equation_1": models.goodput_before(senders, block_bytes, rtt_s),
                "equation_2": models.goodput_after(senders, block_bytes, rto_s, rtt_s),
            }
        )
    return rows


@measure("bytes-per-round-trip")
def bytes_per_round_trip(
    data: Data,
    at: Settings,
    link: str,
    packet_bytes: int,
    header_bytes: int,
    gap_s: float,
    expected: list[int],
) -> Measured:
    """Return the largest difference of bytes per round trip from the expected number.

    A round trip is a burst on ``link``: bytes after at least ``gap_s`` of silence (needs round
    trips much longer than a burst, and bins of ``measure.sample_interval`` shorter than the gap).
    All packets of a burst except the last are full, so that the payload follows from its IP bytes.
    """
    worst, seeds, first = 0.0, set(), None
    rows: list[Row] = []
    for _, seed, result in data.results(at):
        sent = [b for b in _bursts(result, link, packet_bytes, header_bytes, gap_s) if b > 0]
        seeds.add(seed)
        first = first or sent
        for number in range(max(len(sent), len(expected))):
            ours = sent[number] if number < len(sent) else 0
            theirs = expected[number] if number < len(expected) else 0
            worst = max(worst, abs(ours - theirs))
            rows.append(
                {"seed": seed, "round trip": number + 1, "sent_bytes": ours, "published": theirs}
            )
    text = ", ".join(f"{count:,}" for count in first or [])
    return Measured(worst, seeds=len(seeds), text=text, rows=rows)


def _bursts(
    result: Result, link: str, packet_bytes: int, header_bytes: int, gap_s: float
) -> Sequence[int]:
    """Return the payload bytes of each burst on a link; a burst without payload is near 0."""
    numbers = result.links.filter(result.links["name"] == link)["link"]
    if numbers.is_empty():
        raise MeasureError(f"there is no link {link}")
    samples = result.link_samples
    ours = samples.filter(samples["link"] == numbers[0]).sort("time_s")
    bursts: list[int] = []
    before = -math.inf
    for time_s, count in zip(ours["time_s"], ours["bytes"], strict=True):
        if time_s - before > gap_s:
            bursts.append(0)
        bursts[-1] += count
        before = time_s
    return [_payload(count, packet_bytes, header_bytes) for count in bursts]


def _payload(ip_bytes: int, packet_bytes: int, header_bytes: int) -> int:
    packets = math.ceil(ip_bytes / packet_bytes)
    # A single packet of little more than its header is a SYN, which has longer options.
    return 0 if ip_bytes < 2 * header_bytes else ip_bytes - packets * header_bytes
