"""Fixed point of DCQCN's fluid model, compared with its closed form and simulated rules."""

import math
import random

import pytest

from eastwest.models.dcqcn import Dcqcn


@pytest.mark.parametrize("flows", [1, 2, 4, 8])
def test_small_probabilities_have_the_closed_form(flows: int) -> None:
    model = Dcqcn(flows, 400e9, increase_timer_s=5e-6, byte_counter_bytes=1e6)
    assert model.marking() == pytest.approx(model.marking_small(), rel=0.15)
    # p³ grows with the square of the number of flows if the byte counter dominates, with the fourth
    # power if the timer does.
    low, high = Dcqcn(flows, 400e9), Dcqcn(2 * flows, 400e9)
    assert 2 ** (2 / 3) < high.marking_small() / low.marking_small() < 2 ** (4 / 3)


def test_the_paper_has_its_flows_below_the_largest_probability() -> None:
    # Section 5: with the thresholds of figure 14, few flows at 40 Gbit/s have a marking probability
    # below 1 %.
    resting = [flows for flows in range(1, 33) if Dcqcn(flows, 40e9).queue_bytes() < 200e3]
    assert resting == list(range(1, 14))
    assert Dcqcn(2, 40e9).queue_bytes() == pytest.approx(21_756, abs=1)
    assert Dcqcn(4, 40e9).queue_bytes() == pytest.approx(45_705, abs=1)
    assert Dcqcn(32, 40e9).queue_bytes() == math.inf


def rate_under_marks(p: float, line: float, seconds: float, seed: int) -> float:
    """Return the mean rate in bit/s of a flow whose packets are marked with probability p.

    It follows equations 1–4 of the paper.
    """
    draw, bits = random.Random(seed), (1024 + 44 + 38) * 8
    rate = target = line
    alpha, now, told, sent = 1.0, 0.0, -1.0, 0
    timer, counter, timer_at, left = 0, 0, math.inf, 10e6
    while now < seconds:
        now += bits / rate
        sent += bits
        left -= bits / 8
        ends = [left <= 0]
        while timer_at <= now:
            timer_at += 55e-6
            timer += 1
            ends.append(True)
        if left <= 0:
            left, counter = 10e6, counter + 1
        for _ in range(sum(ends)):
            if min(timer, counter) > 5:
                target += 50e6 * (min(timer, counter) - 5)
            elif max(timer, counter) > 5:
                target += 40e6
            target = min(target, line)
            rate = (rate + target) / 2
        if draw.random() < p and now - told >= 50e-6:
            if told > 0:
                alpha *= (255 / 256) ** int((now - told) / 55e-6)
            target, rate = rate, rate * (1 - alpha / 2)
            alpha = alpha * 255 / 256 + 1 / 256
            told, timer, counter, timer_at, left = now, 0, 0, now + 55e-6, 10e6
    return sent / seconds


def test_the_rules_give_a_fifth_more_than_the_fluid_model() -> None:
    # The model leaves out that the mean of a product is not the product of the means.
    p = Dcqcn(4, 10e9).marking()
    assert p == pytest.approx(0.01201, abs=1e-5)
    rate = sum(rate_under_marks(p, 10e9, 0.5, seed) for seed in range(4)) / 4
    assert rate == pytest.approx(3.01e9, rel=0.03)
    assert 1.15 < rate / 2.5e9 < 1.25


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"flows": 0}, "flows must be above 0"),
        ({"capacity_bps": math.inf}, "capacity_bps must be above 0 and finite"),
        ({"max_probability": 1.5}, "at most 1"),
        ({"max_bytes": 5e3}, "above min_bytes"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Dcqcn(**({"flows": 2, "capacity_bps": 40e9} | settings))  # type: ignore[arg-type]
