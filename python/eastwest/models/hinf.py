"""H∞ synthesis for a queue or a network with delays.

The plant is linear with delays (``delayed``). ``Scales`` gives the units in which queues, inputs
and loads are counted; the unit of time is the longest delay. The synthesis minimises the greatest
gain, over all frequencies, from (load, drift, noise) to (error, effort):

    error = W_e y,   W_e(s) = 1 + ω_b/s,   effort = ρ u,   u = K∞ (error + noise).

Load is the disturbance w of the plant. Drift is a disturbance that is added to the input u. The
controller that is used is K = K∞ W_e. It has an integrator for each output, so that no error
remains at rest; ω_b sets how fast the integrator removes an error. The greatest gain is called γ.
With ρ, drift and noise of 1 and no load, this is nearly the loop shaping of D. McFarlane and
K. Glover (IEEE Trans. Automatic Control 37(6), 1992).

Delays are replaced by Padé approximations. The two Riccati equations (J. Doyle, K. Glover,
P. Khargonekar and B. Francis, IEEE Trans. Automatic Control 34(8), 1989) are solved by the routine
SB10AD of SLICOT, through the package slycot, which the extra ``control`` installs. Its bisection
finds the least γ; its result varies by up to about 3 % with the starting value, since the equations
are ill-conditioned there. For the same reason the controller is computed for a greater γ, by 5 to
20 %. python-control then computes the norm of the closed loop, which must not exceed the
controller's γ. (``control.hinfsyn`` calls SB10AD with a search after the bisection that can return
a γ which the closed loop does not reach; therefore it is not used.) Finally the loop is examined
with the exact delays: its rightmost root, the peak of its sensitivity, and its margins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from eastwest.errors import InputError
from eastwest.models.delayed import Controller, Delayed, Numbers, root

#: Frequencies at which the loop is examined: (first, last, number), in units of 1/(longest delay).
_GRID = (1e-4, 60.0, 3000)
#: Values of γ for which a controller is computed, as multiples of the least γ. They are tried in
#: this order until the norm of the closed loop is confirmed.
_ABOVE = (1.05, 1.1, 1.2)
#: Maximum ratio of the norm of the closed loop to the controller's γ; above 1 for rounding errors.
_NEAR = 1.01
#: Value of γ at which the bisection for the least γ starts.
_FIRST = 1e4
#: Relative tolerance of the bisection for the least γ.
_EXACT = 1e-4


@dataclass(frozen=True)
class Weights:
    """Weights of effort (ρ), load, drift and noise in the H∞ synthesis, in units of ``Scales``."""

    #: ω_b: rate at which the integrator removes an error, as a multiple of 1/(longest delay).
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
    """Units of outputs (queues), inputs and loads: the values that are 1 in the synthesis."""

    outputs: Numbers
    inputs: Numbers
    loads: Numbers


@dataclass(frozen=True)
class Design:
    """Synthesised controller, and the properties of the control loop with it."""

    controller: Controller
    #: Least γ that the bisection found; the controller has a γ that is 5 to 20 % greater.
    gamma: float
    #: Norm of the closed loop with this controller and Padé approximations of the delays, computed
    #: by python-control.
    norm: float
    #: Whether the loop with the exact delays is stable.
    stable: bool
    #: Real part of the rightmost root of the loop with the exact delays, per second.
    rightmost: float
    #: Greatest singular value of the sensitivity (1 + L)⁻¹ with the exact delays, over all
    #: frequencies.
    peak: float
    #: Gain margin in dB with the exact delays; infinite without a limit, or with several outputs.
    gain_db: float
    #: Phase margin in degrees with the exact delays; infinite without a limit, or with several
    #: outputs.
    phase_deg: float

    @property
    def assured_gain_db(self) -> float:
        """Gain margin in dB that the peak of the sensitivity guarantees."""
        return 20 * math.log10(self.peak / (self.peak - 1)) if self.peak > 1 else math.inf

    @property
    def assured_phase_deg(self) -> float:
        """Phase margin in degrees that the peak of the sensitivity guarantees."""
        return math.degrees(2 * math.asin(min(1.0, 1 / (2 * self.peak))))


def synthesise(
    plant: Delayed, scales: Scales, weights: Weights | None = None, order: int = 4
) -> Design:
    """Return a controller with a γ of up to 1.2 times the least γ, and the properties of the loop.

    ``order`` is the order of the Padé approximations of delays; stability and margins are computed
    with the exact delays. Raises ``InputError`` where slycot is not installed, or where no
    controller is found.
    """
    wanted = weights or Weights()
    unit_s = plant.longest_s or 1.0
    augmented = generalised(plant, scales, wanted, order, unit_s)
    outputs, inputs = len(plant.outputs), len(plant.inputs)
    shaped, gamma, norm = least(augmented, outputs, inputs)
    # In K = K∞ W_e the states of the integrators (W_e) come first.
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
    """Return the scaled plant with weights and Padé approximations, a system of python-control.

    Its inputs are (load, drift, noise, u), its outputs (error, effort, input of the controller).
    ``order`` is the order of the approximations, ``unit_s`` the unit of time.
    """
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
    """Return (controller, least γ, norm of the closed loop) for a plant from ``generalised``.

    The last ``inputs`` inputs and ``outputs`` outputs of ``augmented`` belong to the controller.
    Raises ``InputError`` where slycot is not installed, or where no controller is found whose
    closed loop is stable and has a norm of at most the controller's γ.
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
    reason = ""
    try:
        gamma = float(slycot.sb10ad(*sizes, _FIRST, *matrices, job=1, gtol=_EXACT)[0])
    except ArithmeticError as error:
        reason = str(error).strip()
    for above in () if reason else _ABOVE:
        try:
            found = slycot.sb10ad(*sizes, above * gamma, *matrices, job=4)
        except ArithmeticError as error:
            reason = str(error).strip()
            continue
        controller = Controller(*(np.asarray(m, dtype=np.float64) for m in found[1:5]))
        own = control.ss(controller.a, controller.b, controller.c, controller.d)
        closed = augmented.lft(own, inputs, outputs)
        norm = float(control.system_norm(closed, "inf", print_warning=False))
        if norm <= _NEAR * above * gamma and closed.poles().real.max() < 0:
            return controller, gamma, norm
        reason = f"the norm of the closed loop is {norm:.3g}, not {above * gamma:.3g} or less"
    raise InputError(
        "no H-infinity controller was found: the inputs may not control all states of the plant, "
        f"or the weights differ by too many orders of magnitude ({reason})"
    )


class Sampled:
    """Controller in discrete time (Tustin's method), with limits on its output.

    While the output is at a limit, an observer corrects the states of the controller by the
    difference between the limited and the wanted output, so that the integrators do not wind up.
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
        """Return the input of the plant for the next interval, within the limits.

        ``measured`` has the outputs of the plant minus their set points. The states of the
        controller are updated.
        """
        wanted = self._c @ self._states + self._d @ measured
        done = np.clip(wanted, self._least, self._most)
        self._states = self._a @ self._states + self._b @ measured + self._follows @ (done - wanted)
        return np.asarray(done)


def _margins(loop: Any, omega: Numbers) -> tuple[float, float]:
    """Return (least gain margin above 0 dB, least phase margin in degrees); infinite if none."""
    import control  # noqa: PLC0415  slow to load

    gains, phases, *_ = control.stability_margins(control.frd(loop, omega), returnall=True)
    more = [float(gain) for gain in gains if gain > 1]
    turns = [abs(float((phase + 180) % 360 - 180)) for phase in phases]
    return (
        20 * math.log10(min(more)) if more else math.inf,
        min(turns) if turns else math.inf,
    )
