"""Receding-horizon control of queues by injection rates: one quadratic programme per interval.

The model is the network of the module ``network`` over the next H intervals of length h. The
programme finds the rates v and the served packets s that minimise

    Σ_t Σ_j ((q_j(t) − q̄_j)/σ_j)² + ρ Σ_t Σ_i (x_i(t) − x_i(t − 1))²
        + ε Σ_t Σ_i (x_i(t) − fair_i(t))² − Σ_t Σ_j r_j s_j(t)/C_j,    x_i = v_i/Λmax_i,

subject to

    q_j(t + 1) = q_j(t) + h (Σ_i R_ji v_i(t − τ_ji) + w_j(t) − s_j(t)),
    0 ≤ q_j,   0 ≤ s_j ≤ C_j,   0 ≤ v_i ≤ Λmax_i,   −falls_i h ≤ v_i(t) − v_i(t − 1) ≤ grows_i h.

Only the rates of the first interval are used. The next interval solves the programme again with new
measurements (D. Mayne, J. Rawlings, C. Rao and P. Scokaert, *Constrained model predictive control:
stability and optimality*, Automatica 36(6), 2000). w is the load that was declared for the future,
plus an estimate of the undeclared load, which is assumed to stay constant. The set point of a queue
is 0 where the fair rates do not fill its link. The reward r_j = 2 H h C_j/σ_j for served packets is
greater than the possible reduction of the first sum by an idle link, so that the programme never
leaves a link idle in order to raise its queue.

The programme is convex. The solver is DAQP (D. Arnström, A. Bemporad and D. Axehill, *A dual
active-set solver for embedded quadratic programming using recursive LDLᵀ updates*, IEEE Trans.
Automatic Control 67(8), 2022), which the extra ``control`` installs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from eastwest.errors import InputError
from eastwest.models.delayed import Numbers
from eastwest.models.network import Network

#: Maximum number of intervals of a horizon.
MOST = 1000
#: Maximum number of unknowns of a quadratic programme.
_MOST_UNKNOWNS = 2000
#: Weight of the newest interval in the estimate of the undeclared load.
_NEWEST = 0.2
#: Small cost of every unknown, because the solver needs a positive definite matrix.
_RIDGE = 1e-6


@dataclass(frozen=True)
class Costs:
    """Weights of a quadratic programme: ρ (``changing``) for changes of rates, ε (``unfair``).

    ε is the weight of the distances of rates from the fair rates.
    """

    changing: float = 1.0
    unfair: float = 0.001

    def __post_init__(self) -> None:
        for name, value in (("changing", self.changing), ("unfair", self.unfair)):
            if not (math.isfinite(value) and 0 < value <= 1e9):
                raise InputError(
                    f"the weight {name} must be above 0 and at most 1e9, not {value:g}"
                )


def horizon(
    delays_s: Numbers, interval_s: float, covers: float = 4.0, share: float = 0.99
) -> tuple[int, float]:
    """Return (number of intervals of the horizon, delay in s from which it is computed).

    The delay is the quantile ``share`` of ``delays_s``; the horizon is ``covers`` times as long.
    The horizon should be longer than two delays: a decision acts on the queue after one delay, and
    a correction of this decision acts after two delays.
    """
    known = delays_s[np.isfinite(delays_s)]
    if not len(known):
        raise InputError("the control loop has no delay, of which the horizon must be a multiple")
    late_s = float(np.quantile(known, share))
    steps = max(2, math.ceil(covers * late_s / interval_s - 1e-9))
    if steps > MOST:
        raise InputError(
            f"the horizon, {covers:g} times a delay of {late_s:.3g} s, has {steps:,} intervals; at "
            f"most {MOST:,} are allowed: use a longer interval"
        )
    return steps, late_s


class Programme:
    """Quadratic programme of a network, which can be solved repeatedly for new measurements."""

    def __init__(self, network: Network, steps: int, costs: Costs | None = None) -> None:
        costs = costs or Costs()
        self.network, self.steps = network, steps
        queues, flows, h = len(network.queues), len(network.flows), network.interval_s
        if (queues + flows) * steps > _MOST_UNKNOWNS:
            raise InputError(
                f"{queues + flows} queues and flows over {steps} intervals are more than "
                f"{_MOST_UNKNOWNS:,} unknowns: use a shorter horizon, or a longer interval"
            )
        told = np.array([flow.told_s for flow in network.flows])
        late = np.where(network.routing > 0, network.forward_s + told, 0.0) / h
        #: Number of past decisions of each flow that still act on the queues.
        self.past = math.ceil(float(late.max()) - 1e-9) + 1
        self._unit = network.most_pps
        self._scale = np.maximum(1.0, network.set_points)
        self._reaches = np.zeros((queues, flows, steps, self.past + steps))
        for row in range(queues):
            for column in range(flows):
                if network.routing[row, column]:
                    self._reaches[row, column] = _shift(late[row, column], steps, self.past)
        sums = np.tri(steps)
        rates = np.zeros((queues * steps, flows * steps))
        served = np.zeros((queues * steps, queues * steps))
        for row in range(queues):
            own = slice(row * steps, (row + 1) * steps)
            for column in range(flows):
                new = sums @ self._reaches[row, column, :, self.past :]
                rates[own, column * steps : (column + 1) * steps] = (
                    h * self._unit[column] / self._scale[row] * new
                )
            served[own, own] = -h * network.capacity_pps[row] / self._scale[row] * sums
        self._moves = np.hstack((rates, served))
        change = np.kron(np.eye(flows), np.eye(steps) - np.eye(steps, k=-1))
        self._rates = flows * steps
        self._changing, self._unfair = costs.changing, costs.unfair
        hessian = self._moves.T @ self._moves + _RIDGE * np.eye(len(self._moves[0]))
        hessian[: self._rates, : self._rates] += costs.changing * change.T @ change
        hessian[: self._rates, : self._rates] += costs.unfair * np.eye(self._rates)
        self._hessian = 2 * hessian
        slopes = np.hstack((change, np.zeros((self._rates, queues * steps))))
        self._rows = np.ascontiguousarray(np.vstack((self._moves, slopes)))
        self._reward = 2 * steps * h * network.capacity_pps / self._scale

    def solve(
        self,
        queues: Numbers,
        decided_pps: Numbers,
        loads_pps: Numbers,
        grows: Numbers | None = None,
        falls: Numbers | None = None,
        set_points: Numbers | None = None,
    ) -> Numbers:
        """Return the best rates, array (flows, intervals of the horizon), in packets/s.

        ``queues`` are the present queues in packets. ``decided_pps`` has the last ``past``
        decisions of each flow, the newest last. ``loads_pps`` has the load of each queue in each
        interval of the horizon, in packets/s. ``grows``, ``falls`` and ``set_points`` replace the
        values of the network. Raises ``InputError`` where DAQP is not installed or finds no
        solution.
        """
        try:
            import daqp  # noqa: PLC0415  an extra
        except ImportError:
            raise InputError(
                "a receding horizon needs the package daqp: pip install 'eastwest[control]'"
            ) from None
        network, steps, h = self.network, self.steps, self.network.interval_s
        capacity = network.capacity_pps[:, None]
        decided = np.clip(decided_pps, 0.0, self._unit[:, None])
        comes, more = np.maximum(0.0, loads_pps), np.maximum(0.0, -loads_pps)
        known = np.einsum("qfth,fh->qt", self._reaches[:, :, :, : self.past], decided)
        free = (queues[:, None] + h * np.cumsum(known + comes, axis=1)) / self._scale[:, None]
        fair, wanted = self._aims(comes, network.set_points if set_points is None else set_points)
        linear = 2 * self._moves.T @ (free - wanted / self._scale[:, None]).ravel()
        newest = decided[:, -1] / self._unit
        first = np.zeros((len(newest), steps))
        first[:, 0] = newest
        linear[: self._rates] -= 2 * self._changing * first.ravel()
        linear[: self._rates] -= 2 * self._unfair * (fair / self._unit[:, None]).ravel()
        linear[self._rates :] -= self._reward.repeat(steps)
        up = [flow.grows for flow in network.flows] if grows is None else grows
        down = [flow.falls for flow in network.flows] if falls is None else falls
        ends = []
        for sign, slope in ((1, np.asarray(up)), (-1, np.asarray(down))):
            bound = np.repeat(sign * slope[:, None] * h / self._unit[:, None], steps, axis=1)
            bound[:, 0] += newest
            ends.append(np.clip(bound, -1e30, 1e30).ravel())
        upper = np.concatenate(
            (
                np.ones(self._rates),
                ((capacity + more) / capacity).ravel(),
                np.full(free.size, 1e30),
                ends[0],
            )
        )
        lower = np.concatenate((np.zeros(len(linear)), -free.ravel(), ends[1]))
        kinds = np.zeros(len(upper), dtype=np.intc)
        found, _, flag, _ = daqp.solve(self._hessian, linear, self._rows, upper, lower, kinds)
        if flag < 1:
            raise InputError(
                f"the quadratic programme has no solution (exit flag {flag} of the solver DAQP)"
            )
        rates = np.asarray(found[: self._rates], dtype=np.float64).reshape(-1, steps)
        return np.asarray(np.clip(rates, 0.0, 1.0) * self._unit[:, None])

    def arriving(self, decided_pps: Numbers) -> Numbers:
        """Return the rate that arrives at each queue in one interval, in packets per second.

        ``decided_pps`` has for each flow the decisions of the ``past`` intervals before this
        interval, and then the decision of the interval itself.
        """
        reaches = self._reaches[:, :, 0, : self.past + 1]
        return np.asarray(np.einsum("qfh,fh->q", reaches, decided_pps))

    def _aims(self, comes: Numbers, set_points: Numbers) -> tuple[Numbers, Numbers]:
        """Return fair rates, array (flows, intervals), and set points, array (queues, intervals).

        ``comes`` has the load of each queue in each interval, in packets/s. The set point is 0 for
        queues whose link the fair rates do not fill.
        """
        network = self.network
        fair = np.empty((len(network.flows), self.steps))
        wanted = np.empty((len(network.queues), self.steps))
        seen: dict[bytes, tuple[Numbers, Numbers]] = {}
        for t in range(self.steps):
            key = comes[:, t].tobytes()
            if key not in seen:
                rates, full = network.shares(network.capacity_pps - comes[:, t])
                seen[key] = rates, np.where(full, set_points, 0.0)
            fair[:, t], wanted[:, t] = seen[key]
        return fair, wanted


class RecedingHorizon:
    """Decision unit for ``network.play``, which solves a quadratic programme in each interval.

    If ``declared`` is false, the unit ignores loads that were declared in advance.
    """

    def __init__(
        self, network: Network, steps: int, costs: Costs | None = None, *, declared: bool = True
    ) -> None:
        self.programme = Programme(network, steps, costs)
        self._network, self._declared = network, declared
        rates, _ = network.shares()
        ages = [queue.sensed_s / network.interval_s for queue in network.queues]
        self._ages = np.array([round(age) for age in ages])
        keep = self.programme.past + int(self._ages.max()) + 1
        self._decided = np.repeat(rates[:, None], keep, axis=1)
        self._besides = np.zeros(len(network.queues))
        self._before: Numbers | None = None

    def __call__(self, now_s: float, known: Numbers) -> Numbers:
        """Return the rate of each flow for the next interval, in packets/s.

        ``now_s`` is the present time, ``known`` has the sensed queues in packets.
        """
        h, network = self._network.interval_s, self._network
        capacity = network.capacity_pps
        if self._before is not None:
            # Undeclared load in the interval before the queues were sensed.
            comes = np.array(
                [
                    self._expected(now_s, int(age) + 1)[row] - self._besides[row]
                    for row, age in enumerate(self._ages)
                ]
            )
            besides = (known - self._before) / h - comes + capacity
            # The change of the queue gives the load only of a link that was busy in the interval,
            # and an upper bound of the load of a link that was idle.
            busy = (known > 0) | (self._before > 0)
            newer = self._besides + _NEWEST * (besides - self._besides)
            self._besides = np.where(busy, newer, np.minimum(self._besides, besides))
        self._before = known
        queues = known.copy()
        for ago in range(int(self._ages.max()), 0, -1):
            change = h * (self._expected(now_s, ago) - capacity)
            queues = np.where(self._ages >= ago, np.maximum(0.0, queues + change), queues)
        steps = self.programme.steps
        loads = np.repeat(self._besides[:, None], steps, axis=1)
        if self._declared:
            for t in range(steps):
                loads[:, t] += network.load(now_s + t * h, now_s + (t + 1) * h, declared_only=True)
        recent = self._decided[:, -self.programme.past :]
        rates = self.programme.solve(queues, recent, loads)[:, 0]
        self._decided = np.hstack((self._decided[:, 1:], rates[:, None]))
        return rates

    def _expected(self, now_s: float, ago: int) -> Numbers:
        """Return the expected rate at each queue in the interval that began ``ago`` intervals ago.

        The rate is the sum of the decided rates that arrive, of the estimated undeclared load, and
        of the declared load.
        """
        h, past = self._network.interval_s, self.programme.past
        end = self._decided.shape[1] - ago
        own = np.hstack((self._decided[:, end - past : end], self._decided[:, end : end + 1]))
        comes = self.programme.arriving(own) + self._besides
        if self._declared:
            begin_s = now_s - ago * h
            comes = comes + self._network.load(begin_s, begin_s + h, declared_only=True)
        return np.asarray(comes)


def _shift(late: float, steps: int, past: int) -> Numbers:
    """Return the weight of each decision (column) in the rate that arrives in each interval (row).

    Columns are the ``past`` earlier decisions, then the new decisions. With a delay (``late``) of
    n + f intervals, 0 ≤ f < 1, the arriving rate is 1 − f times the decision n intervals ago plus f
    times the decision n + 1 intervals ago.
    """
    whole = math.floor(late + 1e-9)
    part = max(0.0, late - whole)
    found = np.zeros((steps, past + steps))
    for t in range(steps):
        found[t, past + t - whole] += 1 - part
        if part:
            found[t, past + t - whole - 1] += part
    return found
