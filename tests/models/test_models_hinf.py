"""H-infinity synthesis, compared with exact values, published ones, and exact delays."""

from __future__ import annotations

import csv
import json
import math
import sys
from pathlib import Path

import control
import numpy as np
import pytest
from typer.testing import CliRunner

from eastwest.cli import app
from eastwest.errors import InputError
from eastwest.models import hinf
from eastwest.models.delayed import Controller, Delayed, Numbers, Term, root
from eastwest.models.network import Flow, Network, Queue
from eastwest.models.tcp_marked import TcpMarked

pytestmark = pytest.mark.slow

ONE = np.eye(1)
NOTHING = np.zeros((1, 1))
#: Eight flows at 1 Gbit/s, with a round trip of 4 ms and a set point of 50 packets.
TCP = TcpMarked(8, 81_274, 0.004, 50)


def integrator(*delays_s: float) -> Delayed:
    """Return the plant ẋ = Σ u(t − τ_k)."""
    terms = tuple(Term(delay_s, NOTHING, ONE) for delay_s in delays_s)
    return Delayed(("x",), ("u",), ("x",), terms, ONE, ONE)


def gain(k: float) -> Controller:
    """Return the controller u = −k y."""
    return Controller(
        np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((1, 0)), np.array([[-k]], dtype=float)
    )


@pytest.mark.parametrize("a", [-1.0, 0.0, 0.5, 2.0])
def test_gamma_of_a_first_order_plant(a: float) -> None:
    # ẋ = a x + w₁ + u, z = (x, u), y = x + w₂. Both Riccati equations are 2aX + X²(1/γ² − 1) + 1 =
    # 0, and XY = γ² at the least γ, so γ² − 2aγ − 2 = 0.
    plant = control.ss([[a]], [[1, 0, 1]], [[1], [0], [1]], [[0, 0, 0], [0, 0, 1], [0, 1, 0]])
    _, gamma, norm = hinf.least(plant, 1, 1)
    assert gamma == pytest.approx(a + math.sqrt(a**2 + 2), rel=1e-3)
    assert norm <= 1.06 * gamma


def test_gamma_of_a_double_integrator() -> None:
    # The stability margin of 1/s² is known: γ = √(4 + 2√2) (McFarlane and Glover 1992).
    plant = control.ss(
        [[0, 1], [0, 0]],
        [[0, 0, 0], [1, 0, 1]],
        [[1, 0], [0, 0], [1, 0]],
        [[0, 1, 0], [0, 0, 1], [0, 1, 0]],
    )
    assert hinf.least(plant, 1, 1)[1] == pytest.approx(math.sqrt(4 + 2 * math.sqrt(2)), rel=1e-3)


def test_gamma_of_a_textbook() -> None:
    # S. Skogestad and I. Postlethwaite, Multivariable Feedback Control, 2nd ed. 2005, example 2.17:
    # G = 200/((10s + 1)(0.05s + 1)²), W_P = (s/1.5 + 10)/(s + 0.001), W_u = 1 give γ = 1.37.
    g = control.ss(control.tf([200], np.polymul([10, 1], np.polymul([0.05, 1], [0.05, 1]))))
    weight = control.ss(control.tf([1 / 1.5, 10], [1, 1e-3]))
    size = len(g.A)
    # y = w − G u, z = (W_P y, u)
    a = np.block([[g.A, np.zeros((size, 1))], [-weight.B @ g.C, weight.A]])
    b = np.block([[np.zeros((size, 1)), g.B], [weight.B, np.zeros((1, 1))]])
    c = np.block([[-weight.D @ g.C, weight.C], [np.zeros((1, size + 1))], [-g.C, np.zeros((1, 1))]])
    d = np.array([[weight.D[0, 0], 0], [0, 1], [1, 0]])
    _, gamma, norm = hinf.least(control.ss(a, b, c, d), 1, 1)
    assert gamma == pytest.approx(1.37, abs=0.005) and norm <= 1.06 * gamma


def test_root_of_an_integrator_with_a_delay() -> None:
    # ẋ = −k x(t − τ) is stable if and only if k τ < π/2; at k τ = 1/e the root is −1/τ, twice.
    for delay_s in (0.01, 1.0, 30.0):
        edge = math.pi / 2 / delay_s
        assert root(integrator(delay_s), gain(0.99 * edge)) < 0
        assert abs(root(integrator(delay_s), gain(edge))) * delay_s < 1e-8
        assert root(integrator(delay_s), gain(1.01 * edge)) > 0
        rightmost = root(integrator(delay_s), gain(1 / math.e / delay_s))
        assert rightmost * delay_s == pytest.approx(-1, abs=1e-3)
    assert root(integrator(0.0), gain(3)) == pytest.approx(-3)


def test_root_with_two_delays() -> None:
    # s = −k (e^(−s) + e^(−3s)) has the roots ± jπ/4 at k = (π/4)/(2 cos(π/4)), and none before.
    edge = math.pi / 4 / (2 * math.cos(math.pi / 4))
    both = integrator(1.0, 3.0)
    assert root(both, gain(0.99 * edge)) < 0 < root(both, gain(1.01 * edge))
    assert abs(root(both, gain(edge))) < 1e-8


def test_approximated_delays_have_the_response_of_the_exact_ones() -> None:
    plant, unit_s = TCP.linear(), TCP.rtt_s
    a, b, c, _ = plant.approximated(4, unit_s)
    omega = np.geomspace(0.01, 3, 50)
    exact = plant.response(omega / unit_s)[:, 0, 0]
    near = np.array([(c @ np.linalg.solve(1j * w * np.eye(len(a)) - a, b))[0, 0] for w in omega])
    assert np.abs(near / exact - 1).max() < 1e-3


def test_tcp_plant_is_the_published_one() -> None:
    # Hollot et al., INFOCOM 2001: C²/(2N) e^(−sR)/((s + 2N/(R²C))(s + 1/R)).
    omega = np.array([1e-3, 20.0, 400.0])
    s, rtt, c, n = 1j * omega, TCP.rtt_s, TCP.capacity_pps, TCP.flows
    published = c**2 / (2 * n) * np.exp(-s * rtt) / (s + 2 * n / (rtt**2 * c)) / (s + 1 / rtt)
    assert np.allclose(-TCP.linear().response(omega)[:, 0, 0], published, rtol=1e-9)
    assert TCP.taken(TCP.capacity_pps, TCP.share) == pytest.approx(TCP.growth)
    assert TCP.share_for(50_000, TCP.taken(50_000, 0.003)) == pytest.approx(0.003)


@pytest.mark.parametrize("flows", [2, 8, 32])
def test_designed_loop_of_tcp_is_stable_with_exact_delays(flows: int) -> None:
    plant = TcpMarked(flows, 81_274, 0.004, 50)
    design = hinf.synthesise(plant.linear(), plant.scales())
    assert design.stable and root(plant.linear(), design.controller) < 0
    assert design.gamma * 0.97 <= design.norm <= 1.22 * design.gamma
    assert 1 < design.peak < 2.5
    assert design.gain_db >= design.assured_gain_db > 3
    assert design.phase_deg >= design.assured_phase_deg > 20


def test_load_leaves_no_error_at_rest() -> None:
    design = hinf.synthesise(TCP.linear(), TCP.scales())
    h, rtt = 1e-4, TCP.rtt_s
    sampled = hinf.Sampled(design.controller, h, np.array([-1.0]), np.array([1.0]))
    plant, late = TCP.linear(), round(rtt / h)
    state, marks = np.zeros(2), [np.zeros(1)] * (late + 1)
    worst = 0.0
    for _ in range(round(200 * rtt / h)):
        marks.append(sampled.decide(state[:1]))
        slope = plant.terms[0].a @ state + plant.terms[1].b @ marks[-1 - late]
        state = state + h * (slope + plant.d[:, 0] * 0.1 * TCP.capacity_pps)
        worst = max(worst, state[0])
    # No decision can change the first round trip; then the queue returns to its set point.
    assert worst > 20 and abs(state[0]) < 0.01 * worst


def test_controller_does_not_wind_up() -> None:
    # u = −∫y limited to ±1: after 1000 s at the limit it leaves the limit in a few steps, not in
    # 1000.
    integral = Controller(NOTHING, ONE, -ONE, NOTHING)
    sampled = hinf.Sampled(integral, 1.0, np.array([-1.0]), np.array([1.0]))
    for _ in range(1000):
        done = sampled.decide(np.array([-1.0]))
    assert done[0] == 1.0
    after = [float(sampled.decide(np.array([1.0]))[0]) for _ in range(6)]
    assert after[-1] < 0 and all(-1 <= value <= 1 for value in after)


def test_network_of_two_queues() -> None:
    c = 81_274.0
    queues = (Queue("leaf", c, 50, sensed_s=5e-4), Queue("port", c, 50, sensed_s=5e-4))
    flows = (
        Flow("a", ("leaf", "port"), (5e-4, 1e-3), 1e-3),
        Flow("b", ("port",), (2e-3,), 5e-4),
        Flow("c", ("leaf",), (7e-4,), 5e-4),
    )
    plant = Network(queues, flows, 5e-4).linear()
    assert plant.outputs == ("leaf", "port") and plant.inputs == ("a", "b", "c")
    scales = hinf.Scales(np.full(2, c * plant.longest_s), np.full(3, c), np.full(2, c))
    design = hinf.synthesise(plant, scales, order=2)
    assert design.stable and design.norm <= 1.22 * design.gamma
    assert design.gain_db == math.inf and design.assured_gain_db > 3


def test_errors_say_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="weight noise must be from 1e-6 to 1e6, not 0"):
        hinf.Weights(noise=0)
    # The first state grows, and the input does not reach it.
    alone: Numbers = np.diag([1.0, -1.0])
    plant = control.ss(
        alone,
        [[1, 0, 0], [1, 0, 1]],
        [[1, 1], [0, 0], [1, 1]],
        [[0, 0, 0], [0, 0, 1], [0, 1, 0]],
    )
    with pytest.raises(InputError, match="no H-infinity controller was found"):
        hinf.least(plant, 1, 1)
    monkeypatch.setitem(sys.modules, "slycot", None)
    with pytest.raises(InputError, match=r"pip install 'eastwest\[control\]'"):
        hinf.least(plant, 1, 1)


def test_the_command_prints_and_writes(tmp_path: Path) -> None:
    command = ["model", "control", "hinf", "--flows", "2,8", "--delays", "4 ms"]
    done = CliRunner().invoke(app, [*command, "--csv", str(tmp_path / "h.csv")])
    assert done.exit_code == 0 and "γ" in done.output, done.output
    rows = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    lines = list(csv.DictReader((tmp_path / "h.csv").read_text().splitlines()))
    assert [float(line["gamma"]) for line in lines] == [row["gamma"] for row in rows]
    plant = TcpMarked(8, 1e9 / 8 / 1538, 0.004, 50)
    design = hinf.synthesise(plant.linear(), plant.scales())
    assert rows[1]["norm"] == pytest.approx(design.norm, rel=1e-6)
    for wrong, said in (
        (["--noise", "0"], "weight noise must be from"),
        (["--flows", "many"], "must be finite numbers"),
        (["--flows", "0"], "must be more than 0"),
        (["--delays", "1 KB"], "must be a time"),
        (["--frame", "0 B"], "must be above 0"),
    ):
        done = CliRunner().invoke(app, [*command, *wrong])
        assert done.exit_code == 2 and said in done.output, done.output
