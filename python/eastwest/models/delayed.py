"""Linear control systems with several delays, inputs and outputs.

The form is that of Gusat et al. (2009), with several delays τ_k:

    ẋ(t) = Σ_k [A_k x(t − τ_k) + B_k u(t − τ_k)] + D w(t),    y = C x,

where x is the distance from the equilibrium, u the input that the controller sets, w a disturbance
and y the measured output. The delay of a measurement is added to the delays τ_k of the paths that
lead to the output. ``response`` is exact for any delays. ``approximated`` replaces each delay by a
Padé approximation, as H∞ synthesis needs it. ``root`` shows whether the loop with a controller is
stable, with the exact delays: it returns the rightmost root of the characteristic equation, from a
spectral discretisation (D. Breda, S. Maset and R. Vermiglio, SIAM J. Sci. Comput. 27(2), 2005). The
module ``delay`` has similar functions for one delay and one input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Complex = NDArray[np.complex128]

#: Number of intervals of the spectral discretisation over the longest delay.
_NODES = 24


@dataclass(frozen=True)
class Term:
    """Effect of states (``a``) and inputs (``b``), ``delay_s`` ago, on the derivative of states."""

    delay_s: float
    a: Numbers
    b: Numbers


@dataclass(frozen=True)
class Controller:
    """Linear controller with state z: ż = A z + B y, u = C z + D y, time in seconds.

    y is the measured output of the plant, u the input of the plant that the controller sets.
    """

    a: Numbers
    b: Numbers
    c: Numbers
    d: Numbers

    @property
    def order(self) -> int:
        """Number of states of the controller."""
        return len(self.a)

    def response(self, omega: Numbers) -> Complex:
        """Return transfer matrices at frequencies ``omega`` (rad/s), array (frequencies, u, y)."""
        s: Complex = np.asarray(1j * omega, dtype=np.complex128)
        return _transfer(s, self.a, self.b, self.c) + self.d


@dataclass(frozen=True)
class Delayed:
    """Linear plant with delays near its equilibrium: names of states, inputs, outputs; matrices."""

    states: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    terms: tuple[Term, ...]
    c: Numbers
    #: Effect of the disturbances on the derivative of the states.
    d: Numbers

    @property
    def longest_s(self) -> float:
        """Longest delay of the plant in seconds."""
        return max(term.delay_s for term in self.terms)

    def response(self, omega: Numbers) -> Complex:
        """Return exact transfer matrices from inputs to outputs at frequencies ``omega`` (rad/s).

        The result is an array (frequencies, outputs, inputs).
        """
        s = 1j * omega
        late = [np.exp(-s * term.delay_s)[:, None, None] for term in self.terms]
        inner = s[:, None, None] * np.eye(len(self.states))
        outer: Complex = np.zeros((len(omega), len(self.states), len(self.inputs)), complex)
        for shift, term in zip(late, self.terms, strict=True):
            inner = inner - term.a * shift
            outer = outer + term.b * shift
        return np.asarray(self.c @ np.linalg.solve(inner, outer), dtype=np.complex128)

    def approximated(self, order: int, unit_s: float) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Return matrices (A, B, C, D) of the plant with Padé approximations of its delays.

        Time is in multiples of ``unit_s``; ``order`` is the order of the approximations. D is the
        matrix of the disturbances. The states of the plant come before those of the approximations.
        """
        size = len(self.states)
        direct = [term for term in self.terms if term.delay_s == 0]
        late = [
            (row, term)
            for term in self.terms
            if term.delay_s > 0
            for row in range(size)
            if np.any(term.a[row]) or np.any(term.b[row])
        ]
        whole = size + order * len(late)
        a, b = np.zeros((whole, whole)), np.zeros((whole, len(self.inputs)))
        for term in direct:
            a[:size, :size] += unit_s * term.a
            b[:size] += unit_s * term.b
        for place, (row, term) in enumerate(late):
            pade_a, pade_b, pade_c, pade_d = _pade(term.delay_s / unit_s, order)
            own = slice(size + order * place, size + order * (place + 1))
            from_states, from_inputs = unit_s * term.a[row], unit_s * term.b[row]
            a[own, own] = pade_a
            a[own, :size] = np.outer(pade_b, from_states)
            b[own] = np.outer(pade_b, from_inputs)
            a[row, own] += pade_c
            a[row, :size] += pade_d * from_states
            b[row] += pade_d * from_inputs
        c = np.hstack((self.c, np.zeros((len(self.outputs), whole - size))))
        d = np.vstack((unit_s * self.d, np.zeros((whole - size, self.d.shape[1]))))
        return a, b, c, d

    def loop_gain(self, controller: Controller, omega: Numbers) -> Complex:
        """Return exact loop gains at the outputs, L = −P K, at frequencies ``omega`` (rad/s).

        The result is an array (frequencies, outputs, outputs).
        """
        return np.asarray(-(self.response(omega) @ controller.response(omega)), dtype=np.complex128)


def root(plant: Delayed, controller: Controller) -> float:
    """Return the real part of the rightmost root of the closed loop, per second.

    The loop is closed by u = K y with the controller K. The loop is stable if the result is below
    0.
    """
    size, own = len(plant.states), controller.order
    whole = size + own
    longest = plant.longest_s
    now = np.zeros((whole, whole))
    now[size:, :size] = controller.b @ plant.c
    now[size:, size:] = controller.a
    if longest == 0:
        for term in plant.terms:
            now += _closed(term, plant, controller)
        return float(np.linalg.eigvals(now).real.max())
    # The nodes are times from 1 (now) to −1 (the longest delay ago).
    nodes = np.cos(np.pi * np.arange(_NODES + 1) / _NODES)
    ends = np.where((np.arange(_NODES + 1) % _NODES) == 0, 0.5, 1.0)
    weights = ends * (-1.0) ** np.arange(_NODES + 1)
    apart = nodes[:, None] - nodes[None, :] + np.eye(_NODES + 1)
    slope = np.outer(1 / weights, weights) / apart
    np.fill_diagonal(slope, 0.0)
    slope -= np.diag(slope.sum(axis=1))
    generator = np.kron(slope * (2 / longest), np.eye(whole))
    generator[:whole] = 0
    generator[:whole, :whole] = now
    for term in plant.terms:
        place = 1 - 2 * term.delay_s / longest
        generator[:whole] += np.kron(_at(place, nodes, weights), _closed(term, plant, controller))
    return float(np.linalg.eigvals(generator).real.max())


def _closed(term: Term, plant: Delayed, controller: Controller) -> Numbers:
    """Return the matrix of a delayed term in the closed loop.

    Rows and columns are the states of the plant, then the states of the controller.
    """
    size, whole = len(plant.states), len(plant.states) + controller.order
    found = np.zeros((whole, whole))
    found[:size, :size] = term.a + term.b @ controller.d @ plant.c
    found[:size, size:] = term.b @ controller.c
    return found


def _pade(delay: float, order: int) -> tuple[Numbers, Numbers, Numbers, float]:
    """Return (A, B, C, D) of the Padé approximation of a delay: matrix, two vectors, number.

    The approximation is an all-pass filter. The states are chosen so that both Gramians are
    identity matrices (balanced). ``delay`` is in the unit of time of the result.
    """
    import control  # noqa: PLC0415  slow to load
    import scipy.linalg  # noqa: PLC0415

    found: Any = control.tf2ss(control.tf(*control.pade(1.0, order)))
    gramian = scipy.linalg.solve_continuous_lyapunov(found.A, -found.B @ found.B.T)
    basis = np.linalg.cholesky(gramian)
    a = np.linalg.solve(basis, found.A @ basis)
    b, c = np.linalg.solve(basis, found.B)[:, 0], (found.C @ basis)[0]
    root = np.sqrt(delay)
    return a / delay, b / root, c / root, float(found.D[0, 0])


def _at(place: float, nodes: Numbers, weights: Numbers) -> Numbers:
    """Return a row of weights, array (1, nodes), for interpolation at ``place`` from the nodes.

    ``weights`` are the barycentric weights of the nodes.
    """
    apart = place - nodes
    hit = np.abs(apart) < 1e-12
    if hit.any():
        return hit.astype(float)[None, :]
    row = weights / apart
    return np.asarray(row / row.sum())[None, :]


def _transfer(s: Complex, a: Numbers, b: Numbers, c: Numbers) -> Complex:
    """Return C (s I − A)⁻¹ B at each s, array (s, rows of C, columns of B)."""
    if not len(a):
        return np.zeros((len(s), len(c), b.shape[1]), dtype=np.complex128)
    inner = s[:, None, None] * np.eye(len(a)) - a
    return np.asarray(c @ np.linalg.solve(inner, np.broadcast_to(b, (len(s), *b.shape))))
