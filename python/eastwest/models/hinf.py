"""H∞ synthesis for a queue or a network with delays.

The plant is linear with delays (``delayed``). Queues, inputs, loads and time are scaled so that a
queue of one bandwidth-delay product, a rate of one capacity and the longest delay are 1. The
controller is to make the greatest gain from (load, drift, noise) to (error, effort) as small as it
can be, over all frequencies:

    error = W_e y,   W_e(s) = 1 + ω_b/s,   effort = ρ u,   u = K∞ (error + noise).

A load is a disturbance w of the plant; drift comes in with the input u. K = K∞ W_e is what is
used: it has an integrator for each output, so that no error is left at rest; ω_b says how fast it
is removed. The greatest gain is γ. With ρ, drift and noise of 1 and no load this is nearly the loop
shaping of D. McFarlane and K. Glover (IEEE Trans. Automatic Control 37(6), 1992).

Delays are Padé approximations. The two Riccati equations (J. Doyle, K. Glover, P. Khargonekar and
B. Francis, IEEE Trans. Automatic Control 34(8), 1989) are solved by SLICOT's SB10AD, which the
package slycot has, for the extra ``control``. Its bisection gives the least γ; the controller is
that for a γ a little greater, since at the least one it has modes without bound. python-control
then gives the norm of the closed loop, which must not be greater. SB10AD's own default, to scan
further after its bisection, as ``control.hinfsyn`` calls it, can end at a γ that the closed loop
does not have. Last the loop is judged with the exact delays: its rightmost root, the peak of its
sensitivity, and margins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from eastwest.errors import InputError
from eastwest.models.delayed import Controller, Delayed, Numbers, root

#: Frequencies at which the loop is judged, from and to, in 1/(longest delay), and how many.
_GRID = (1e-4, 60.0, 3000)
#: How many times the least γ the controller's is, and how many times that the closed loop's norm
#: may be, for what is lost in the numbers.
_ABOVE = 1.05
_NEAR = 1.01
#: γ that the bisection begins with, and how near to the least it ends.
_FIRST = 1e4
_EXACT = 1e-4


@dataclass(frozen=True)
class Weights:
    """What counts how much, in scaled units."""

    #: ω_b: how fast an error is removed, as a part of 1/(longest delay).
    bandwidth: float = 0.1
    effort: float = 1.0
    load: float = 1.0
    drift: float = 1.0
    noise: float = 1.0

    def __post_init__(self) -> None:
        for name in ("bandwidth", "effort", "load", "drift", "noise"):
            value = getattr(self, name)
            if not (math.isfinite(value) and 1e-6 <= value <= 1e6):
                raise InputError(f"the weight {name} must be from 1e-6 to 1e6, not {value:g}")


@dataclass(frozen=True)
class Scales:
    """What 1 stands for: of each output, input and load."""

    outputs: Numbers
    inputs: Numbers
    loads: Numbers


@dataclass(frozen=True)
class Design:
    """A controller, and the loop with it."""

    controller: Controller
    #: Least γ that there is, and the greatest gain of the loop with Padé's delays and the controller
    #: that is returned: its norm, by python-control.
    gamma: float
    norm: float
    #: With exact delays: whether the loop is stable, its rightmost root per second, the peak of the
    #: sensitivity, and the margins that this peak guarantees in each output.
    stable: bool
    rightmost: float
    peak: float
    #: Margins of a loop with one input and one output by python-control; infinite for others.
    gain_db: float
    phase_deg: float

    @property
    def assured_gain_db(self) -> float:
        """By how many decibels each output's gain may grow, by the peak of the sensitivity."""
        return 20 * math.log10(self.peak / (self.peak - 1)) if self.peak > 1 else math.inf

    @property
    def assured_phase_deg(self) -> float:
        """By how many degrees each output may be turned, by the peak of the sensitivity."""
        return math.degrees(2 * math.asin(min(1.0, 1 / (2 * self.peak))))


def synthesise(
    plant: Delayed, scales: Scales, weights: Weights | None = None, order: int = 4
) -> Design:
    """The controller with the least γ, and what becomes of the loop with the exact delays.

    Raises ``InputError`` where slycot is not installed, and where no controller is found.
    """
    wanted = weights or Weights()
    unit_s = plant.longest_s or 1.0
    augmented = generalised(plant, scales, wanted, order, unit_s)
    outputs, inputs = len(plant.outputs), len(plant.inputs)
    shaped, gamma, norm = least(augmented, outputs, inputs)
    # K = K∞ W_e: the integrators' states come first
    whole = np.block(
        [
            [np.zeros((outputs, outputs)), np.zeros((outputs, shaped.order))],
            [shaped.b, shaped.a],
        ]
    )
    into = np.vstack((wanted.bandwidth * np.eye(outputs), shaped.b))
    controller = Controller(
        whole / unit_s,
        into / unit_s / scales.outputs,
        np.hstack((shaped.d, shaped.c)) * scales.inputs[:, None],
        shaped.d * scales.inputs[:, None] / scales.outputs,
    )
    rightmost = root(plant, controller)
    low, high, points = _GRID
    omega = np.geomspace(low, high, points) / unit_s
    loop = plant.loop_gain(controller, omega)
    apart = np.linalg.svd(np.eye(outputs) + loop, compute_uv=False)[:, -1]
    gain_db = phase_deg = math.inf
    if outputs == 1:
        gain_db, phase_deg = _margins(loop[:, 0, 0], omega)
    return Design(
        controller,
        gamma,
        norm,
        rightmost < 0,
        rightmost,
        float(1 / apart.min()),
        gain_db,
        phase_deg,
    )


def generalised(plant: Delayed, scales: Scales, weights: Weights, order: int, unit_s: float) -> Any:
    """The plant with its weights, scaled: from (load, drift, noise, u) to (error, effort, y)."""
    import control  # noqa: PLC0415  slow to load

    a, b, c, d = plant.approximated(order, unit_s)
    b, c, d = b * scales.inputs, c / scales.outputs[:, None], d * scales.loads
    size, ny, nu, nw = len(a), len(c), b.shape[1], d.shape[1]
    whole = np.zeros((size + ny, size + ny))
    whole[:size, :size] = a
    whole[size:, :size] = weights.bandwidth * c
    error = np.hstack((c, np.eye(ny)))
    load, drift, noise, acts = np.split(np.arange(nw + nu + ny + nu), np.cumsum((nw, nu, ny)))
    comes = np.zeros((size + ny, nw + nu + ny + nu))
    comes[:size, load] = weights.load * d
    comes[:size, drift] = weights.drift * b
    comes[:size, acts] = b
    goes = np.vstack((error, np.zeros((nu, size + ny)), error))
    through = np.zeros((ny + nu + ny, nw + nu + ny + nu))
    through[ny : ny + nu, acts] = weights.effort * np.eye(nu)
    through[ny + nu :, noise] = weights.noise * np.eye(ny)
    return control.ss(whole, comes, goes, through)


def least(augmented: Any, outputs: int, inputs: int) -> tuple[Controller, float, float]:
    """Controller of a generalised plant, the least γ, and the norm of the closed loop.

    ``augmented`` has the controller's ``inputs`` and ``outputs`` last. Raises ``InputError`` where
    slycot is missing, where it finds nothing, and where the norm is not what it says.
    """
    import control  # noqa: PLC0415  slow to load

    try:
        import slycot  # noqa: PLC0415  an extra
    except ImportError:
        raise InputError(
            "H-infinity synthesis needs the package slycot: pip install 'eastwest[control]'"
        ) from None
    size, comes, goes = len(augmented.A), augmented.D.shape[1], augmented.D.shape[0]
    matrices = (augmented.A, augmented.B, augmented.C, augmented.D)
    sizes = (size, comes, goes, inputs, outputs)
    try:
        gamma = float(slycot.sb10ad(*sizes, _FIRST, *matrices, job=1, gtol=_EXACT)[0])
        found = slycot.sb10ad(*sizes, _ABOVE * gamma, *matrices, job=4)
    except ArithmeticError as error:
        raise InputError(
            "no H-infinity controller was found: the plant may have states that the decisions do "
            f"not reach, or the numbers be too far apart ({str(error).strip()})"
        ) from None
    controller = Controller(*(np.asarray(m, dtype=np.float64) for m in found[1:5]))
    own = control.ss(controller.a, controller.b, controller.c, controller.d)
    closed = augmented.lft(own, inputs, outputs)
    norm = float(control.system_norm(closed, "inf", print_warning=False))
    if not (norm <= _NEAR * _ABOVE * gamma and closed.poles().real.max() < 0):
        raise InputError(
            f"the H-infinity controller is not what was sought: its greatest gain is {norm:.3g}, "
            f"and should be at most {_ABOVE * gamma:.3g}; the numbers may be too far apart"
        )
    return controller, gamma, norm


class Sampled:
    """A controller in steps of an interval (Tustin), with limits on what it decides.

    Where a limit holds, its states follow what was done, not what was wanted: an observer of its
    own output, so that nothing winds up.
    """

    def __init__(
        self, controller: Controller, interval_s: float, least: Numbers, most: Numbers
    ) -> None:
        import scipy.linalg  # noqa: PLC0415  slow to load

        eye, half = np.eye(controller.order), interval_s / 2
        inner = np.linalg.inv(eye - half * controller.a)
        self._a = inner @ (eye + half * controller.a)
        self._b = inner @ controller.b * interval_s
        self._c = controller.c @ inner
        self._d = controller.d + controller.c @ inner @ controller.b * half
        self._least, self._most = least, most
        sizes = np.diag(np.maximum(1e-12, (most - least) ** 2))
        spread = scipy.linalg.solve_discrete_are(
            self._a.T, self._c.T, self._b @ self._b.T + 1e-9 * eye, sizes
        )
        self._follows = (
            self._a @ spread @ self._c.T @ np.linalg.inv(self._c @ spread @ self._c.T + sizes)
        )
        self._states = np.zeros(controller.order)

    def decide(self, measured: Numbers) -> Numbers:
        """What to do, for how far the outputs are from their set points."""
        wanted = self._c @ self._states + self._d @ measured
        done = np.clip(wanted, self._least, self._most)
        self._states = self._a @ self._states + self._b @ measured + self._follows @ (done - wanted)
        return np.asarray(done)


def _margins(loop: Any, omega: Numbers) -> tuple[float, float]:
    """Least gain margin in dB above 0, and least phase margin in degrees, by python-control."""
    import control  # noqa: PLC0415  slow to load

    gains, phases, *_ = control.stability_margins(control.frd(loop, omega), returnall=True)
    more = [float(gain) for gain in gains if gain > 1]
    turns = [abs(float((phase + 180) % 360 - 180)) for phase in phases]
    return (
        20 * math.log10(min(more)) if more else math.inf,
        min(turns) if turns else math.inf,
    )
