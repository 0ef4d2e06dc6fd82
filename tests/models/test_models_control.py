"""Fluid models of control loops, compared with numbers of their sources and with each other."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import eastwest as ew
from eastwest.cli import app
from eastwest.models import closed_loop, delay
from eastwest.models.delay import Linear
from eastwest.models.predict import Predictor
from eastwest.models.qcn import Qcn
from eastwest.models.tcp_dctcp import Dctcp
from eastwest.models.tcp_red import Red, TcpRed
from project_paths import PAPERS

pytestmark = pytest.mark.slow

#: Hollot et al. 2001, section 4: 60 flows, 3,750 packets/s, RED 150 to 200 packets.
HOLLOT = TcpRed(60, 3750, 0.2, Red(150, 200, 0.1, 1.33e-6, gentle=False))


def lag(gain: float, delay_s: float) -> Linear:
    """Return ẋ = −x − k x(t − τ), whose roots and margins are known exactly."""
    one = np.ones(1)
    return Linear(("x",), -np.eye(1), np.zeros((1, 1)), -gain * one, one, one, delay_s)


@pytest.mark.parametrize("delay_s", [0.1, 1.0, 5.0])
def test_margins_of_a_loop_that_is_known(delay_s: float) -> None:
    # At the limit of stability ω = −tan(ω τ), in the second quadrant, and k = √(1 + ω²).
    low, high = math.pi / 2 / delay_s, math.pi / delay_s
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if math.tan(middle * delay_s) < -middle else (low, middle)
    edge = math.sqrt(1 + low**2)
    found = delay.margins(lag(edge / 2, delay_s))
    assert found.stable and found.gain_db == pytest.approx(20 * math.log10(2), abs=0.02)
    assert found.critical == pytest.approx(low, rel=1e-3)
    assert delay.margins(lag(edge * 2, delay_s)).gain_db == pytest.approx(-6.02, abs=0.02)
    assert abs(delay.root(lag(edge, delay_s))) < 1e-6
    # A real root λ of the characteristic equation: k e^(−λτ) = −1 − λ.
    rightmost = delay.root(lag(0.5, 0.1))
    assert rightmost + 1 + 0.5 * math.exp(-0.1 * rightmost) == pytest.approx(0, abs=1e-9)


def test_step_response_settles_where_it_must() -> None:
    times, way = delay.step_response(lag(0.5, 0.3), 20.0)
    assert way[-1] == pytest.approx(1 / 1.5, rel=1e-3) and times[-1] == 20.0
    # Until the delay is over there is no feedback: 1 − e^(−t), except for the error of the Padé
    # approximation.
    early = times < 0.25
    assert np.allclose(way[early], 1 - np.exp(-times[early]), atol=0.02)


def test_integration_of_a_delay_equation_is_exact_enough() -> None:
    # ẋ = −x(t − 1) from 1: 1 − t until 1, then 1 − t + (t − 1)²/2 until 2.
    times, states = delay.integrate(
        lambda _, late: [-late[0]], [1.0], lambda _: 1.0, 2.0, 1e-3, [-10.0]
    )
    exact = np.where(times < 1, 1 - times, 1 - times + (times - 1) ** 2 / 2)
    assert np.allclose(states[:, 0], exact, atol=1e-5)
    with pytest.raises(ValueError, match="longer step"):
        delay.integrate(lambda z, _: z, [1.0], lambda _: 1.0, 1e9, 1e-3, [0.0])


def test_red_is_that_of_its_source() -> None:
    queue, window, mark, rtt_s = HOLLOT.equilibrium()
    assert mark * window**2 == pytest.approx(2) and window * 60 == pytest.approx(rtt_s * 3750)
    assert HOLLOT.red.of(queue) == pytest.approx(mark)
    # Transfer function of the paper: (R C)³/(2N)² · slope, with poles 2N/(R²C), 1/R and K.
    loop = HOLLOT.linear()
    slope, steep = 0.1 / 50, (rtt_s * 3750) ** 3 / (2 * 60) ** 2
    slow = np.array([1e-5])
    assert abs(loop.gain(slow)[0]) == pytest.approx(steep * slope, rel=1e-3)
    poles = sorted((2 * 60 / (rtt_s**2 * 3750), 1 / rtt_s, -3750 * math.log1p(-1.33e-6)))
    # The paper's loop leaves out W(t − R); both differ little if windows are large.
    omega = np.array([0.5])
    theirs = steep * slope / np.prod([math.hypot(1, 0.5 / pole) for pole in poles])
    assert abs(loop.gain(omega)[0]) == pytest.approx(theirs, rel=0.1)
    assert delay.margins(loop).stable
    even = Red(30, 150, 0.1, even=True)
    assert even.of(90) == pytest.approx(2 * 0.05 / 1.05) and even.of(10) == 0
    for average in (60.0, 200.0):
        assert even.slope(average) == pytest.approx(
            (even.of(average + 1e-4) - even.of(average - 1e-4)) / 2e-4, rel=1e-5
        )


@pytest.mark.parametrize(
    "model",
    [
        TcpRed(16, 81_274, 0.002, Red(30, 330, 0.1)),
        TcpRed(16, 81_274, 0.006, Red(30, 330, 0.1)),
        Qcn(10, 833_333, 100e-6),
        Qcn(10, 833_333, 600e-6),
    ],
    ids=["red-stable", "red-unstable", "qcn-stable", "qcn-unstable"],
)
def test_the_nonlinear_model_swings_where_the_linear_one_says_so(model: TcpRed | Qcn) -> None:
    if isinstance(model, TcpRed):
        times, states = model.play(200 * model.equilibrium()[3])
    else:
        times, states = model.play(0.05, start=1.01)
    queue = states[:, 0]
    late = queue[-len(times) // 5 :]
    rest = model.equilibrium()[0]
    swings = (late.max() - late.min()) / rest
    if delay.margins(model.linear()).stable:
        assert swings < 0.25 and late.mean() == pytest.approx(rest, rel=0.1)
    else:
        assert swings > 0.5


def test_linear_models_are_the_derivatives_of_the_nonlinear_ones() -> None:
    # A small disturbance decays alike in the linear and the nonlinear model of QCN.
    model = Qcn(4, 833_333, 50e-6)
    queue, rate, target = model.equilibrium()
    loop = model.linear()
    assert np.allclose(loop.a @ [0, 1, 1], [4, 0 * rate, 0], atol=abs(loop.a[1, 0]) + 4)
    assert queue > model.set_point and target > rate == 833_333 / 4
    # The largest report, of (2 w + 1) Q_eq, cuts by 63/128 (check 15).
    assert model.gain * (2 * model.weight + 1) * model.set_point == pytest.approx(63 / 128)


def test_dctcp_goes_round_its_threshold() -> None:
    # Check 11 for this case: Qmax = K + N, amplitude ½ √(2N (C·RTT + K)), sawtooth of one flow.
    model = Dctcp(2, 10e9 / 12_000, 100e-6, 65)
    window, mark = model.equilibrium()
    assert window == pytest.approx((83.33 + 65) / 2, rel=1e-3)
    assert mark == pytest.approx(math.sqrt(2 / window))
    cycle = model.cycle(120)
    sawtooth = 0.5 * math.sqrt(2 * 2 * (83.33 + 65))
    assert cycle.most == pytest.approx(67, abs=2) and cycle.empty == 0
    assert cycle.amplitude == pytest.approx(sawtooth, rel=0.4)
    many = Dctcp(16, 10e9 / 12_000, 100e-6, 65)
    amplitude, period_s = many.described()
    found = many.cycle(120)
    assert amplitude == pytest.approx(found.amplitude, rel=0.15)
    assert period_s == pytest.approx(found.period_s, rel=0.15)
    assert Dctcp(2, 10e9 / 12_000, 100e-6, 3).cycle(120).empty > 0


def test_what_has_no_equilibrium_is_refused() -> None:
    for wrong in (
        lambda: TcpRed(1000, 81_274, 0.0005, Red(5, 15, 0.1, gentle=False)).equilibrium(),
        lambda: TcpRed(0, 81_274, 0.0005, Red()),
        lambda: Red(20, 10),
        lambda: Red(weight=0),
        lambda: Dctcp(2, math.nan, 1e-4, 65),
        lambda: Dctcp(2, 1e5, 1e-4, 0),
        lambda: Qcn(2, 1e5, 0),
        lambda: Qcn(2, 1e5, 1e-4, sampled=1),
    ):
        with pytest.raises(ValueError, match=r"must be|need a marking"):
            wrong()


@pytest.mark.parametrize(
    ("kind", "flows", "delays"),
    [("red", "8,32", "1 ms"), ("dctcp", "4", "100 us"), ("qcn", "10,20", "50 us")],
)
def test_the_command_prints_writes_and_draws(
    kind: str, flows: str, delays: str, tmp_path: Path
) -> None:
    files = [tmp_path / name for name in ("m.csv", "m.svg", "r.png")]
    arguments = ["model", "control", kind, "--flows", flows, "--delays", delays]
    options = [
        x
        for pair in zip(("--csv", "--plot", "--response"), map(str, files), strict=True)
        for x in pair
    ]
    done = CliRunner().invoke(app, [*arguments, *options])
    assert done.exit_code == 0, done.output
    rows = list(csv.DictReader(files[0].read_text().splitlines()))
    assert [row["flows"] for row in rows] == [f"{float(n)}" for n in flows.split(",")]
    assert files[1].read_text().startswith("<?xml") and files[2].read_bytes()[:4] == b"\x89PNG"
    shown = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert [row["queue"] for row in shown] == pytest.approx([float(row["queue"]) for row in rows])


def test_the_command_refuses_clearly() -> None:
    for wrong, said in (
        (["red", "--flows", "many"], "must be finite numbers"),
        (["red", "--delays", "1 KB"], "must be a time"),
        (["red", "--flows", "0"], "must be more than 0"),
        (["red", "--min", "400"], "below max"),
        (["qcn", "--gain", "0"], "must be more than 0"),
        (["dctcp", "--flows", ",".join(["2"] * 6000)], "at most 5,000"),
    ):
        done = CliRunner().invoke(app, ["model", "control", *wrong])
        assert done.exit_code == 2 and said in done.output, done.output
    some = CliRunner().invoke(
        app, ["model", "control", "red", "--flows", "8,5000", "--delays", "500 us", "--json"]
    )
    assert some.exit_code == 0 and "left out: 5000 flows need" in some.stderr


def test_a_predictor_foresees_what_follows_a_law() -> None:
    # y(k + 1) = 1.6 y(k) − 0.7 y(k − 1) + 5 u(k − 3) + 2: predictable two steps ahead, except for
    # noise.
    random = np.random.default_rng(1)
    predictor = Predictor(2, 1, dead_steps=2, scale=(50.0, 1.0))
    outputs, acted = [40.0, 40.0], [0.5] * 6
    errors, still = [], []
    for step in range(600):
        late = acted[-4]
        outputs.append(
            1.6 * outputs[-1] - 0.7 * outputs[-2] + 5 * late + 2 + 0.01 * random.normal()
        )
        predictor.see(outputs[-1], acted[-1])
        foreseen = predictor.ahead(2)
        acted.append(float(random.random()))
        if step > 200:
            once = 1.6 * outputs[-1] - 0.7 * outputs[-2] + 5 * acted[-4] + 2
            twice = 1.6 * once - 0.7 * outputs[-1] + 5 * acted[-3] + 2
            errors.append(abs(foreseen - twice))
            still.append(abs(outputs[-1] - twice))
    assert np.mean(errors) < 0.1 * np.mean(still)
    assert Predictor().ahead(5) == 0.0
    with pytest.raises(ValueError, match="order must be 1 or more"):
        Predictor(order=0)


def test_a_predictor_stays_within_reason() -> None:
    predictor = Predictor(forgetting=0.9)
    for step in range(2000):
        predictor.see(1e3 if step % 700 == 0 else 0.0, 0.0)
        assert 0 <= predictor.ahead(50) <= 4e3


def test_the_loop_of_the_study_holds_its_set_point(tmp_path: Path) -> None:
    study = PAPERS / "control"
    settings = {
        "duration": "2 s",
        "fabric.queue.proportional": "0.00003",
        "fabric.queue.integral": "0.0003",
    }
    scenario, mechanism = study / "scenarios" / "predictive.toml", study / "predictive.py"
    result = ew.run(scenario, set=settings, out=tmp_path / "r", mechanisms=[mechanism])
    link = result.links["name"].to_list().index("switch0->h8")
    late = result.queues.filter((result.queues["link"] == link) & (result.queues["time_s"] > 1))
    assert late["packets"].sum() / 1000 == pytest.approx(50, rel=0.15)


@pytest.mark.parametrize(("cable_us", "stable"), [(5, True), (150, False)])
def test_qcn_of_packets_rests_and_swings_where_the_model_says(
    cable_us: int, stable: bool, tmp_path: Path
) -> None:
    study = PAPERS / "control" / "scenarios" / "qcn.toml"
    text = study.read_text(encoding="utf-8").replace("load = 1\n", "load = 0.55\n")
    _, _, source = text.partition("[[workload]]\n")
    second = source.replace('"h0"', '"h1"').replace("load =", 'start = "10 ms"\nload =')
    settings = {"fabric.host_delay": f"{cable_us} us", "duration": "1500 ms"}
    result = ew.run(f"{text}\n[[workload]]\n{second}", set=settings, out=tmp_path / "r")
    model = Qcn(2, 10e9 / 12_000, 2e-6 * cable_us + 1564 * 8 / 10e9)
    assert delay.margins(model.linear()).stable == stable
    link = result.links["name"].to_list().index("switch0->h2")
    late = result.queues.filter((result.queues["link"] == link) & (result.queues["time_s"] > 0.75))
    packets = np.zeros(15_000)  # There is a sample each 50 µs; an empty queue has no row.
    packets[: late.height] = late["packets"].to_numpy()
    if stable:
        assert packets.mean() == pytest.approx(model.equilibrium()[0], rel=0.1)
        assert packets.std() < 0.2 * packets.mean()
    else:
        assert packets.std() > 0.5 * packets.mean()


def test_any_scenario_runs_with_and_without_the_loop(tmp_path: Path) -> None:
    study = PAPERS / "control" / "scenarios" / "red.toml"
    out = tmp_path / "loop"
    command = [
        "model",
        "control",
        "loop",
        str(study),
        "-o",
        str(out),
        "--json",
        "--set-point",
        "40",
    ]
    command += ["--set", "fabric.queue={ kind = 'drop-tail', limit = '200 packets' }"]
    command += ["--set", "duration=1500 ms", "--warm-up", "500 ms", "--horizon", "1500 us"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    plain, plain_loop, ahead = json.loads(done.stdout)["cases"]
    assert {case["link"] for case in (plain, plain_loop, ahead)} == {"switch0->h8"}
    assert plain["drops"] > 0 and plain["marks"] == 0 and plain["queue"] > 80
    for case in (plain_loop, ahead):
        assert case["marks"] > 0 and case["queue"] == pytest.approx(40, rel=0.35)
        # The delay is the number of packets times 12.304 µs, 1,538 bytes at 1 Gbit/s.
        assert case["delay_us"]["mean"] == pytest.approx(case["queue"] * 12.304, rel=0.01)
    assert plain_loop["digest"] != ahead["digest"]
    assert (out / "loop.png").read_bytes()[:4] == b"\x89PNG"
    lines = list(csv.DictReader((out / "loop.csv").read_text().splitlines()))
    assert [line["name"] for line in lines] == list(closed_loop.NAMES)
    hosts = ew.load(ahead["result"]).path / "scenario.toml"
    assert 'kind = "drop-tail"' in hosts.read_text(), "queues of hosts stay"
    for more, said in (
        (["--link", "switch0->h9"], "did you mean switch0->h8"),
        (["--set-point", "0"], "must be from 1 to"),
        (["--horizon", "100 us"], "the horizon of the control loop must be"),
        (["--interval", "1500 ns"], "whole numbers of microseconds"),
        (["--warm-up", "1499 ms"], "samples of queues after the warm-up"),
        ([], "already"),
    ):
        force = ["--force"] if more else []
        refused = CliRunner().invoke(app, [*command, *more, *force])
        assert refused.exit_code == 2 and said in refused.output, refused.output


def test_a_sampled_queue_is_foreseen_better_than_it_stays() -> None:
    # A wave of known period: a third-order autoregressive model predicts it, the last value does
    # not.
    queue = 50 + 30 * np.sin(np.arange(600) * 2 * math.pi / 40)
    found = closed_loop.foresee(queue, 10)
    assert np.isnan(found.queue[:60]).all() and not np.isnan(found.queue[60:]).any()
    # Samples a quarter period apart: (30 sin a − 30 cos a) has a root mean square of 30.
    assert found.error_of_staying == pytest.approx(30, rel=0.02)
    assert found.error < 1
