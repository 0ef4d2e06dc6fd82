"""Control systems with one delay: linear in the frequency domain, nonlinear over time.

The form is that of Gusat et al. (2009). They describe queues Q and rates Λ by ż = f(z, u) and, near
an equilibrium, by a linear system with delay:

    ẋ(t) = A x(t) + A_d x(t − τ) + B u(t − τ) + D w(t),    y = C x,

where x is the distance from the equilibrium, u the feedback, w a disturbance. The loop is closed by
u = y. If the loop is opened at u, the loop gain is L(s) = −C (sI − A − A_d e^(−sτ))⁻¹ B e^(−sτ),
exact for any delay. python-control computes gain and phase margins of L on a fine grid of
frequencies. Stability has a separate test: the rightmost root of the characteristic equation
det(sI − A − (A_d + B C) e^(−sτ)) = 0, from a spectral discretisation of the delay (D. Breda,
S. Maset and R. Vermiglio, SIAM J. Sci. Comput. 27(2), 2005). Step responses use a Padé
approximation of the delay, by python-control.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

#: Number of nodes of the spectral discretisation of the delay.
_NODES = 24
#: Number of frequencies at which the loop gain is computed for margins.
_FREQUENCIES = 1_500
#: Order of the Padé approximation of the delay.
_PADE_ORDER = 6
#: Maximum number of time steps of an integration.
MOST_STEPS = 5_000_000


@dataclass(frozen=True)
class Linear:
    """Linear model of a control loop near its equilibrium; the first state is the queue.

    ``a``, ``a_delayed``, ``b``, ``c`` and ``d`` are the matrices A, A_d, B, C and D of the module.
    """

    states: tuple[str, ...]
    a: Numbers
    a_delayed: Numbers
    b: Numbers
    c: Numbers
    #: Effect of the disturbance (packets per second that arrive) on the derivatives of the states.
    d: Numbers
    delay_s: float

    def gain(self, omega: Numbers) -> NDArray[np.complex128]:
        """Return the complex loop gain L(jω) at each frequency of ``omega`` (rad/s)."""
        late = np.exp(-1j * omega * self.delay_s)
        eye = np.eye(len(self.states))
        inner = 1j * omega[:, None, None] * eye - self.a - self.a_delayed * late[:, None, None]
        solved = np.linalg.solve(
            inner, np.broadcast_to(self.b, (len(omega), len(self.b)))[..., None]
        )
        return np.asarray(-(solved[..., 0] @ self.c) * late, dtype=np.complex128)

    def scaled(self, factor: float) -> Linear:
        """Return a linear model whose loop gain is ``factor`` times the loop gain of this model."""
        return Linear(
            self.states, self.a, self.a_delayed, self.b * factor, self.c, self.d, self.delay_s
        )


@dataclass(frozen=True)
class Margins:
    """Stability of a control loop: margins of gain and phase, critical frequency, largest root."""

    stable: bool
    #: Gain margin in dB; negative for an unstable loop: the change of gain that makes it stable.
    gain_db: float
    phase_deg: float
    #: Frequency of the oscillation at the limit of stability, in radians per second.
    critical: float
    #: Real part of the rightmost root of the closed loop, per second; negative if it is stable.
    rightmost: float


def margins(loop: Linear) -> Margins:
    """Return gain and phase margins, and whether the loop is stable.

    The phase of the loop gain can cross −180°, and its magnitude 1, more than once. For a stable
    loop the smallest margins are returned, for an unstable loop the smallest (negative) margins
    that would make it stable. A margin without a crossing is infinite.
    """
    import control  # noqa: PLC0415  slow to load

    omega = _grid(loop)
    response = control.frd(loop.gain(omega), omega)
    gains, phases, _, at_gain, _, _ = control.stability_margins(response, returnall=True)
    rightmost = root(loop)
    stable = rightmost < 0
    found = [(g, w) for g, w in zip(gains, at_gain, strict=True) if (g > 1) == stable and g > 0]
    found.sort(key=lambda pair: abs(math.log(pair[0])))
    if not stable:
        found = [(g, w) for g, w in found if root(loop.scaled(0.999 * g)) < 0]
    gain, critical = found[0] if found else (math.inf, math.nan)
    turns = [float((phase + 180) % 360 - 180) for phase in phases]
    turns = [turn for turn in turns if (turn > 0) == stable]
    return Margins(
        stable=stable,
        gain_db=float(20 * math.log10(gain)) if gain < math.inf else math.inf,
        phase_deg=min(turns, key=abs) if turns else math.inf,
        critical=float(critical),
        rightmost=rightmost,
    )


def _grid(loop: Linear) -> Numbers:
    """Return frequencies (rad/s): from 1/1000 of the slowest pole to 20 times the fastest rate.

    The fastest rate is the fastest pole or 2π/τ of the delay τ, whichever is greater.
    """
    poles = np.abs(np.linalg.eigvals(loop.a))
    slow = poles[poles > 0].min() if np.any(poles > 0) else 1.0
    fast = max(float(poles.max()), 2 * math.pi / loop.delay_s)
    return np.geomspace(1e-3 * slow, 20 * fast, _FREQUENCIES)


def root(loop: Linear) -> float:
    """Return the real part of the rightmost root of the closed loop, per second."""
    size = len(loop.states)
    nodes = np.cos(np.pi * np.arange(_NODES + 1) / _NODES)  # 1 (now) to −1 (one delay τ ago)
    weights = np.where((np.arange(_NODES + 1) % _NODES) == 0, 2.0, 1.0) * (-1.0) ** np.arange(
        _NODES + 1
    )
    apart = nodes[:, None] - nodes[None, :] + np.eye(_NODES + 1)
    slope = np.outer(weights, 1 / weights) / apart
    slope -= np.diag(slope.sum(axis=1))
    generator = np.kron(slope * (2 / loop.delay_s), np.eye(size))
    generator[:size] = 0
    generator[:size, :size] = loop.a
    generator[:size, -size:] += loop.a_delayed + np.outer(loop.b, loop.c)
    return float(np.linalg.eigvals(generator).real.max())


def step_response(loop: Linear, end_s: float, points: int = 400) -> tuple[Numbers, Numbers]:
    """Return (times in s, deviations of the queue in packets) after a step of the disturbance.

    The step is one packet/s at time 0. The result has ``points`` times from 0 to ``end_s``. The
    delay is replaced by a Padé approximation of sixth order.
    """
    import control  # noqa: PLC0415  slow to load

    size, unit = len(loop.states), loop.delay_s  # unit of time: the delay, against overflows
    late = (loop.a_delayed + np.outer(loop.b, loop.c)) * unit
    inputs = np.column_stack((np.eye(size), loop.d * unit))
    outputs = np.vstack((late, np.eye(1, size)))
    plant = control.ss(loop.a * unit, inputs, outputs, np.zeros((size + 1, size + 1)))
    delay = control.tf2ss(control.tf(*control.pade(1.0, _PADE_ORDER)))
    feedback = control.append(*[delay] * size, control.ss([], [], [], [[0.0]]))
    # The output of the delay is connected to the states; the disturbance stays an input.
    every: Any = control.feedback(plant, feedback, sign=1)
    times = np.linspace(0, end_s, points)
    _, queue = control.step_response(every[size, size], times / unit)
    return times, np.asarray(queue, dtype=np.float64)


#: Function (states now, states one delay ago) that returns the derivatives of the states.
Flow = Callable[[list[float], list[float]], list[float]]


def integrate(
    flow: Flow,
    start: list[float],
    delay: Callable[[list[float]], float],
    end_s: float,
    step_s: float,
    low: list[float],
) -> tuple[Numbers, Numbers]:
    """Return times (s) and states, array (times, states), of ż = f(z(t), z(t − τ(z))).

    ``flow`` is f, ``delay`` is τ in s, ``start`` the states at time 0 and before. The method is
    Heun's, with steps of ``step_s``. States are kept at or above ``low``. Raises ``ValueError`` for
    more than five million steps.
    """
    steps = math.ceil(end_s / step_s)
    if steps > MOST_STEPS:
        raise ValueError(
            f"the integration needs {steps:,} steps; at most {MOST_STEPS:,} are allowed: use a "
            "longer step or a shorter time"
        )
    past = [start]
    now = start

    def before(place: float) -> list[float]:
        at = min(max(0.0, place), len(past) - 1)
        low_at, part = int(at), at - int(at)
        late = past[min(low_at + 1, len(past) - 1)]
        return [e + part * (x - e) for e, x in zip(past[low_at], late, strict=True)]

    for number in range(steps):
        ago = number - delay(now) / step_s
        first = flow(now, before(ago))
        ahead = [max(b, z + step_s * d) for z, d, b in zip(now, first, low, strict=True)]
        second = flow(ahead, before(ago + 1))
        now = [
            max(b, z + step_s * (d + e) / 2)
            for z, d, e, b in zip(now, first, second, low, strict=True)
        ]
        past.append(now)
    return np.arange(steps + 1, dtype=np.float64) * step_s, np.asarray(past, dtype=np.float64)


def positive(**values: float) -> None:
    """Raise ``ValueError`` with the name of a value that is not a finite number above 0."""
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name.replace('_', ' ')} must be more than 0, not {value}")
