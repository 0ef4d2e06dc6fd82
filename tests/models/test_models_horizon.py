"""Receding horizon, compared with a general solver; its limits, and the value of declared load."""

from __future__ import annotations

import csv
import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from typer.testing import CliRunner

import eastwest as ew
from eastwest.cli import app
from eastwest.errors import InputError
from eastwest.models import decisions
from eastwest.models.delayed import Numbers
from eastwest.models.horizon import Costs, Programme, RecedingHorizon, horizon
from eastwest.models.network import Flow, Load, Network, Played, Queue, play
from eastwest.models.tcp_marked import TcpMarked
from project_paths import PAPERS

pytestmark = pytest.mark.long

C = 81_274.0
H = 5e-4
STUDY = PAPERS / "control"
ONE = Network(
    (Queue("port", C, 50, room=500, sensed_s=H),),
    (Flow("a", ("port",), (1e-3,), 1e-3), Flow("b", ("port",), (2e-3,), 5e-4)),
    H,
    (Load("port", 0.3 * C, 0.05, 0.1, declared=True),),
)


def two_queues() -> Network:
    queues = (Queue("leaf", C, 50, 500, H), Queue("port", C, 50, 500, H))
    flows = (
        Flow("a", ("leaf", "port"), (5e-4, 1e-3), 1e-3),
        Flow("b", ("port",), (1e-3,), 5e-4),
        Flow("c", ("leaf",), (7e-4,), 5e-4),
    )
    return Network(queues, flows, H)


def test_programme_has_the_least_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    # The cost of the docstring, computed by a simulation and minimised by scipy's SLSQP.
    steps, costs = 5, Costs(changing=0.3, unfair=0.01)
    network = Network(
        (Queue("port", C, 50),), (Flow("a", ("port",), (1.5 * H,), grows=0.4 * C / H),), H
    )
    programme = Programme(network, steps, costs)
    decided = np.array([[0.7, 1.0, 0.6]]) * C
    loads = np.array([[0.0, 0.2, 0.5, 0.5, 0.0]]) * C
    begin = 30.0

    def queue(unknown: Numbers) -> Numbers:
        sent = np.concatenate((decided[0], unknown[:steps] * C))
        found, q = [], begin
        for t in range(steps):
            arrives = 0.5 * sent[3 + t - 1] + 0.5 * sent[3 + t - 2]
            q += H * (arrives + loads[0, t] - unknown[steps + t] * C)
            found.append(q)
        return np.array(found)

    def cost(unknown: Numbers) -> float:
        x = unknown[:steps]
        before = np.concatenate(([decided[0, -1] / C], x[:-1]))
        fair = 1 - loads[0] / C
        reward = 2 * steps * H * C / 50 * unknown[steps:].sum()
        error = (((queue(unknown) - 50) / 50) ** 2).sum()
        unfair = ((x - fair) ** 2).sum()
        changed = ((x - before) ** 2).sum()
        return float(error + 0.3 * changed + 0.01 * unfair - reward)

    limits: Any = [
        {"type": "ineq", "fun": queue},
        {"type": "ineq", "fun": lambda u: 0.4 - np.diff(np.r_[decided[0, -1] / C, u[:steps]])},
    ]
    best: Any = min(
        (
            scipy.optimize.minimize(
                cost, np.full(2 * steps, start), bounds=[(0, 1)] * 2 * steps, constraints=limits,
                options={"ftol": 1e-13, "maxiter": 1000}, method="SLSQP",
            )
            for start in (0.3, 0.9)
        ),
        key=lambda found: found.fun,
    )  # fmt: skip
    ours = programme.solve(np.array([begin]), decided, loads)[0] / C
    assert np.allclose(ours, best.x[:steps], atol=2e-3)
    assert cost(np.concatenate((ours, best.x[steps:]))) <= best.fun + 1e-4


def test_rates_stay_within_their_limits() -> None:
    network = two_queues()
    flows = tuple(replace(f, grows=100 * C, falls=400 * C) for f in network.flows)
    programme = Programme(replace(network, flows=flows), 12)
    chance = np.random.default_rng(1)
    for _ in range(30):
        decided = chance.uniform(0, C, (3, programme.past))
        queues, loads = chance.uniform(0, 300, 2), chance.uniform(0, 1.5 * C, (2, 12))
        rates = programme.solve(queues, decided, loads)
        assert rates.min() >= 0 and (rates.max(axis=1) <= network.most_pps).all()
        change = np.diff(np.hstack((decided[:, -1:], rates)), axis=1) / H
        assert change.max() <= 100 * C * (1 + 1e-6) and change.min() >= -400 * C * (1 + 1e-6)


def played(declared: bool) -> Played:
    steps, _ = horizon(ONE.loop_s(), H)
    return play(ONE, RecedingHorizon(ONE, steps, declared=declared), 0.2)


def test_declared_load_leaves_a_smaller_deviation() -> None:
    known, unknown = played(True), played(False)
    late = known.times_s > 0.03
    assert known.queues[late].std() < 0.2 * unknown.queues[late].std()
    assert known.queues.max() < 60 and unknown.queues.max() > 80
    assert known.idle[late].sum() < 1e-6 < unknown.idle[late].sum()
    # At rest the queue is at its set point in both cases, also under load.
    for one in (known, unknown):
        assert one.queues[one.times_s > 0.19] == pytest.approx(50, abs=1)
        assert one.queues[(one.times_s > 0.09) & (one.times_s < 0.095)] == pytest.approx(50, abs=1)
        assert one.rates_pps.min() >= 0 and (one.rates_pps <= ONE.most_pps).all()
        assert one.lost.sum() == 0


def test_play_counts_every_packet() -> None:
    network = replace(ONE, loads=(Load("port", 0.5 * C, 0.01),))
    found = play(network, lambda _now, _queues: np.array([0.5, 0.5]) * C, 0.1)
    # No flow reduces its rate: the queue grows by half the capacity from 10 ms on, up to its limit.
    grown = np.minimum(500, 0.5 * C * np.maximum(0, found.times_s - 0.01))
    assert np.allclose(found.queues[:, 0], grown, atol=1e-6)
    assert found.lost.sum() == pytest.approx(0.5 * C * 0.09 - 500)
    # Half the rate from the start on: it takes effect after decision and path, 2 and 2.5 ms; then
    # the queue drains.
    halved = play(replace(ONE, loads=()), lambda _now, _queues: np.array([0.25, 0.25]) * C, 0.01)
    idle = np.repeat([0.0, 0.25, 0.5], [4, 1, 15])
    assert np.allclose(halved.idle[:, 0], idle, atol=1e-9)
    # A rate that may only fall slowly needs more time.
    slow = tuple(replace(flow, falls=C) for flow in ONE.flows)
    network = replace(ONE, flows=slow, loads=())
    slowly = play(network, lambda _now, _queues: np.zeros(2), 0.2)
    assert slowly.idle[199, 0] == pytest.approx(2 * 0.09775, abs=1e-3)


def test_fair_rates_are_max_min() -> None:
    # D. Bertsekas and R. Gallager, Data Networks: a long flow gets the share of its narrowest link.
    queues = (Queue("x", 1.0, 0), Queue("y", 2.0, 0), Queue("z", 9.0, 0))
    ways = (("x", "y", "z"), ("x",), ("x",), ("y",), ("z",))
    flows = tuple(Flow(str(n), over, (0.0,) * len(over)) for n, over in enumerate(ways))
    rates, full = Network(queues, flows, 1.0).shares()
    assert rates == pytest.approx([1 / 3, 1 / 3, 1 / 3, 5 / 3, 9 - 1 / 3])
    assert full.all()
    capped = (replace(flows[0], most_pps=0.1), *flows[1:4], replace(flows[4], most_pps=4))
    rates, full = Network(queues, capped, 1.0).shares()
    assert rates == pytest.approx([0.1, 0.45, 0.45, 1.9, 4]) and full.tolist() == [1, 1, 0]


def test_horizon_covers_the_delays() -> None:
    delays = ONE.loop_s()
    # The delays are measuring, notification, path, and the wait at the set point.
    assert delays[0] == pytest.approx([H + 2e-3 + 50 / C, H + 2.5e-3 + 50 / C])
    steps, late_s = horizon(delays, H, covers=4, share=1)
    assert late_s == pytest.approx(H + 2.5e-3 + 50 / C) and steps == math.ceil(4 * late_s / H)
    with pytest.raises(InputError, match="use a longer interval"):
        horizon(delays, 1e-6)
    with pytest.raises(InputError, match="no delay"):
        horizon(np.array([np.nan]), H)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"interval_s": 0.0}, "the interval between decisions must be above 0 s"),
        ({"flows": ()}, "at least one queue and one flow"),
        (
            {"flows": (Flow("a", ("port",), ()),)},
            "a: the flow needs at least one queue, and one delay",
        ),
        ({"flows": (Flow("a", ("elsewhere",), (0.0,)),)}, "a: there is no queue 'elsewhere'"),
        (
            {"flows": (Flow("a", ("port",), (-1.0,)),)},
            "all delays of flows and queues must be 0 s or more",
        ),
        ({"loads": (Load("elsewhere", 1.0),)}, "load: there is no queue 'elsewhere'"),
        ({"queues": (Queue("port", 0, 0),)}, "port: the capacity must be above 0"),
        ({"queues": (Queue("port", C, 9, room=5),)}, "port: the set point must be from 0"),
        ({"queues": (*ONE.queues, Queue("other", C, 0))}, "other: no flow passes this queue"),
        ({"queues": ONE.queues * 2}, "two queues have the same name"),
    ],
)
def test_networks_that_cannot_be(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(ONE, **change)


def test_errors_say_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="weight changing must be above 0"):
        Costs(changing=0)
    with pytest.raises(InputError, match="use a shorter horizon"):
        Programme(ONE, 900)
    with pytest.raises(InputError, match="at most 200,000"):
        play(ONE, lambda _now, queues: queues, 1e3)
    with pytest.raises(InputError, match="fill no link"):
        replace(ONE, flows=tuple(replace(f, most_pps=9) for f in ONE.flows)).linear()
    monkeypatch.setitem(sys.modules, "daqp", None)
    with pytest.raises(InputError, match=r"pip install 'eastwest\[control\]'"):
        played(True)


@pytest.mark.parametrize("kind", ["hinf-loop", "horizon-loop"])
def test_decisions_hold_the_queue_of_packets(kind: str, tmp_path: Path) -> None:
    result = ew.run(
        STUDY / "scenarios" / "predictive.toml",
        set={"duration": "2500 ms", "fabric.queue.kind": kind},
        out=tmp_path / "r",
        mechanisms=[decisions.__file__],
    )
    link = result.links["name"].to_list().index("switch0->h8")
    late = result.queues.filter((result.queues["link"] == link) & (result.queues["time_s"] > 1))
    assert late["packets"].sum() / 1500 == pytest.approx(50, rel=0.2)


def test_declared_load_of_decisions_comes_again() -> None:
    loop = object.__new__(decisions.HorizonLoop)
    loop.model = TcpMarked(8, 1000, 0.004, 2)
    loop.declared_share, loop.declared_from_us = 0.3, 100_000
    loop.declared_for_us, loop.declared_every_us = 50_000, 200_000
    means = [loop.declared_pps(at, at + 0.05) for at in (0.0, 0.1, 0.125, 0.15, 0.275, 0.3, 0.5)]
    assert means == pytest.approx([0, 300, 150, 0, 150, 300, 300])
    loop.declared_every_us = 0
    assert [loop.declared_pps(at, at + 0.05) for at in (0.1, 0.3)] == pytest.approx([300, 0])


def test_the_command_prints_writes_and_draws(tmp_path: Path) -> None:
    command = ["model", "control", "horizon", "--begin", "40 ms", "--end", "70 ms"]
    command += ["--duration", "90 ms"]
    files = ["--csv", str(tmp_path / "h.csv"), "--plot", str(tmp_path / "h.png")]
    done = CliRunner().invoke(app, [*command, *files])
    assert done.exit_code == 0 and "Horizon: 33 intervals" in done.output, done.output
    assert (tmp_path / "h.png").read_bytes()[:4] == b"\x89PNG"
    unknown, known = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    lines = list(csv.DictReader((tmp_path / "h.csv").read_text().splitlines()))
    assert [line["load"] for line in lines] == [unknown["load"], known["load"]]
    assert known["deviation"] < 0.2 * unknown["deviation"]
    assert known["queue"] == pytest.approx(50, abs=1)
    for wrong, said in (
        (["--load", "1.5"], "must be from 0 to 1"),
        (["--begin", "80 ms"], "--begin must be less than --end"),
        (["--covers", "1"], "must be 2 or more"),
        (["--room", "20"], "the set point must be from 0 to the maximum, 20"),
        (["--interval", "1 us"], "use a longer interval"),
        (["--changing", "0"], "weight changing must be above 0"),
        (["--delays", "soon"], "must be a time"),
    ):
        done = CliRunner().invoke(app, [*command, *wrong])
        assert done.exit_code == 2 and said in done.output, done.output
