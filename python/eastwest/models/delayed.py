"""Linear control systems with several delays, inputs and outputs.

The form is that of the third study (Gusat et al. 2009) with a delay of its own for each path:

    ẋ(t) = Σ_k [A_k x(t − τ_k) + B_k u(t − τ_k)] + D w(t),    y = C x,

where x is the distance from the equilibrium, u what is decided, w a disturbance, y what is
measured; the age of a measurement is counted among the delays of what leads to it. ``response`` is
exact for any delays. ``approximated`` puts a Padé approximation in the place of each delay, as
synthesis needs it. ``root`` judges the loop with a controller by the exact delays: the rightmost
root of its characteristic equation, from a spectral discretisation (D. Breda, S. Maset and
R. Vermiglio, SIAM J. Sci. Comput. 27(2), 2005). ``delay`` has the same for one delay and one input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Complex = NDArray[np.complex128]

#: Nodes of the spectral discretisation, over the longest delay.
_NODES = 24


@dataclass(frozen=True)
class Term:
    """What states and inputs of one delay ago do to the states."""

    delay_s: float
    a: Numbers
    b: Numbers


@dataclass(frozen=True)
class Controller:
    """A linear controller: ż = A z + B y, u = C z + D y, in seconds."""

    a: Numbers
    b: Numbers
    c: Numbers
    d: Numbers

    @property
    def order(self) -> int:
        """Number of states."""
        return len(self.a)

    def response(self, omega: Numbers) -> Complex:
        """Transfer matrix at frequencies in radians per second."""
        return _transfer(1j * omega, self.a, self.b, self.c) + self.d


@dataclass(frozen=True)
class Delayed:
    """A plant near its equilibrium."""

    states: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    terms: tuple[Term, ...]
    c: Numbers
    #: What disturbances do to the states.
    d: Numbers

    @property
    def longest_s(self) -> float:
        """The longest delay."""
        return max(term.delay_s for term in self.terms)

    def response(self, omega: Numbers) -> Complex:
        """Transfer matrix from inputs to outputs at frequencies in radians per second, exact."""
        s = 1j * omega
        late = [np.exp(-s * term.delay_s)[:, None, None] for term in self.terms]
        inner = s[:, None, None] * np.eye(len(self.states))
        outer: Complex = np.zeros((len(omega), len(self.states), len(self.inputs)), complex)
        for shift, term in zip(late, self.terms, strict=True):
            inner = inner - term.a * shift
            outer = outer + term.b * shift
        return np.asarray(self.c @ np.linalg.solve(inner, outer), dtype=np.complex128)

    def approximated(self, order: int, unit_s: float) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Matrices A, B, C and D of the plant without delays, for a unit of time.

        Each delay is a Padé approximation of ``order``. A column of B acts for an input; D is the
        disturbances' matrix. The first states are those of the plant.
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
        """What comes back at the outputs, with its sign changed: L = −P K, exact."""
        return np.asarray(-(self.response(omega) @ controller.response(omega)), dtype=np.complex128)


def root(plant: Delayed, controller: Controller) -> float:
    """Real part of the rightmost characteristic root of the closed loop, per second."""
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
    nodes = np.cos(
        np.pi * np.arange(_NODES + 1) / _NODES
    )  # 1 … −1, for now … the longest delay ago
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
    """A term of the loop's states, the controller's behind the plant's."""
    size, whole = len(plant.states), len(plant.states) + controller.order
    found = np.zeros((whole, whole))
    found[:size, :size] = term.a + term.b @ controller.d @ plant.c
    found[:size, size:] = term.b @ controller.c
    return found


def _pade(delay: float, order: int) -> tuple[Numbers, Numbers, Numbers, float]:
    """A Padé approximation in balanced states: its Gramians are identities, as it passes all."""
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
    """Row that interpolates values at the nodes (barycentric)."""
    apart = place - nodes
    hit = np.abs(apart) < 1e-12
    if hit.any():
        return hit.astype(float)[None, :]
    row = weights / apart
    return np.asarray(row / row.sum())[None, :]


def _transfer(s: Complex, a: Numbers, b: Numbers, c: Numbers) -> Complex:
    """C (s I − A)⁻¹ B at each s."""
    if not len(a):
        return np.zeros((len(s), len(c), b.shape[1]), dtype=np.complex128)
    inner = s[:, None, None] * np.eye(len(a)) - a
    return np.asarray(c @ np.linalg.solve(inner, np.broadcast_to(b, (len(s), *b.shape))))
