"""Routes for a known traffic matrix: one shortest path per pair of hosts, with the least peak load.

These are the offline-optimised ("coloured") routes with which Gusat et al. (*Benchmarking the
Ethernet-Federated Datacenter*, 2009) compare adaptive routing. The routes are the solution of a
mixed-integer programme. The programme has a variable x_sp of 0 or 1 for each pair s and each
shortest path p of this pair:

    minimise z,  Σ_p x_sp = 1 for each s,  Σ_(p over l) b_s x_sp ≤ r_l z for each link l,

with b_s the traffic of a pair, r_l the rate of a link between switches, and z the largest load. The
solver is HiGHS (Huangfu and Hall 2018), called through ``scipy.optimize.milp``.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from eastwest.errors import InputError
from eastwest.units import clean

#: Maximum number of pairs of hosts: the maximum number of explicit routes in the simulator.
MOST_PAIRS = 32_767
#: Maximum number of considered shortest paths: for one pair of hosts, and for all pairs together.
MOST_PATHS, MOST_PATHS_OF_ALL = 256, 200_000
_MOST_FILE_BYTES = 64 << 20
_MOST_BPS = 1e15

Link = tuple[str, str]
Matrix = dict[tuple[str, str], float]


@dataclass
class Network:
    """Graph of a fabric for the computation of routes: hosts, switches, and rates of cables."""

    hosts: list[str]
    #: Switch to which each host is connected, by the name of the host.
    edge: dict[str, str]
    #: Rate of the cable of each host in bit/s, by the name of the host.
    host_rate_bps: dict[str, float]
    #: Neighbouring switches of each switch, each once, in the order of the cables.
    neighbours: dict[str, list[str]]
    #: Rate in bit/s by (from switch, to switch): that of the first cable between them.
    rate_bps: dict[Link, float]


@dataclass
class Coloured:
    """Optimised routes, one path for each pair of hosts, and the largest load of a link."""

    #: Switches on the path in order, by (sending host, receiving host).
    routes: dict[tuple[str, str], list[str]]
    #: Largest load of a link between switches with ``routes``: traffic divided by rate.
    largest_load: float
    #: Lower bound of the largest load over all choices of the considered shortest paths.
    least_possible: float
    #: Whether the solver has proven that no other routes have a smaller largest load.
    proven: bool
    notes: list[str] = field(default_factory=list)

    def csv(self) -> str:
        """Return the routes as CSV: from, to, via (names of switches, separated by spaces)."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["from", "to", "via"])
        writer.writerows([a, b, " ".join(via)] for (a, b), via in self.routes.items())
        return out.getvalue()


def network(shape: Mapping[str, Any]) -> Network:
    """Return the graph of a fabric; ``shape`` is the fabric as ``core.topology`` returns it."""
    names, count = list(shape["nodes"]), int(shape["hosts"])
    hosts = names[:count]
    is_host = set(hosts)
    net = Network(hosts, {}, {}, {name: [] for name in names[count:]}, {})
    for cable in shape["cables"]:
        a, b, rate = cable["a"], cable["b"], float(cable["rate_bps"])
        if a in is_host:
            net.edge[a], net.host_rate_bps[a] = b, rate
            continue
        for link in ((a, b), (b, a)):
            if link not in net.rate_bps:
                net.rate_bps[link] = rate
                net.neighbours[link[0]].append(link[1])
    return net


def uniform(net: Network) -> Matrix:
    """Return a traffic matrix: each host sends to all others, with equal shares of its rate.

    The keys are (from host, to host), the values bit/s. Raises ``InputError`` for too many pairs.
    """
    if len(net.hosts) * (len(net.hosts) - 1) > MOST_PAIRS:
        raise InputError(
            f"{len(net.hosts)} hosts make more than {MOST_PAIRS} pairs, the limit of the simulator"
        )
    share = {host: net.host_rate_bps[host] / max(1, len(net.hosts) - 1) for host in net.hosts}
    return {(a, b): share[a] for a in net.hosts for b in net.hosts if a != b}


def read_matrix(path: Path, net: Network) -> Matrix:
    """Return the traffic in bit/s by (from host, to host) of a CSV file.

    The columns are from, to and bps. Raises ``InputError`` if a row is not valid or names a host
    that is not in ``net``.
    """
    if not path.is_file():
        raise InputError(f"{path} is not a file")
    if path.stat().st_size > _MOST_FILE_BYTES:
        raise InputError(
            f"{path} has more than {_MOST_FILE_BYTES >> 20} MiB, the limit for a traffic matrix"
        )
    matrix: Matrix = {}
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        rows = csv.DictReader(file)
        try:
            lacking = [c for c in ("from", "to", "bps") if c not in (rows.fieldnames or [])]
            if lacking:
                raise InputError(f"{path}: has no column {', '.join(lacking)}")
            for row in rows:
                pair, bps = _demand(row, net, f"{path}: line {rows.line_num}")
                if pair in matrix:
                    raise InputError(
                        f"{path}: line {rows.line_num}: the pair {' to '.join(pair)} has an "
                        "earlier line; each pair may have only one line"
                    )
                matrix[pair] = bps
                if len(matrix) > MOST_PAIRS:
                    raise InputError(
                        f"{path}: has more than {MOST_PAIRS} pairs, the limit of the simulator"
                    )
        except csv.Error as error:
            raise InputError(f"{path}: line {rows.line_num}: {error}") from None
    if not matrix:
        raise InputError(f"{path}: has no pair of hosts: at least one row is needed")
    return matrix


def _demand(
    row: Mapping[str, str | None], net: Network, where: str
) -> tuple[tuple[str, str], float]:
    a, b = (row.get("from") or "").strip(), (row.get("to") or "").strip()
    for name in (a, b):
        if name not in net.edge:
            raise InputError(f"{where}: there is no host {clean(name, 60)!r}")
    if a == b:
        raise InputError(f"{where}: the source and target are both {a}")
    try:
        bps = float(row.get("bps") or "")
    except ValueError:
        bps = math.nan
    if not 0 < bps <= _MOST_BPS:
        raise InputError(f"{where}: bps must be above 0, at most {_MOST_BPS:g}")
    return (a, b), bps


def shortest_paths(net: Network, a: str, b: str, most: int = MOST_PATHS) -> Iterator[list[str]]:
    """Yield at most ``most`` shortest paths from switch ``a`` to switch ``b``.

    A path is the list of its switches, including ``a`` and ``b``. At each switch, the cables are
    followed in their order.
    """
    distance = _distances(net, b)
    if a not in distance:
        return
    stack = [[a]]
    found = 0
    while stack and found < most:
        path = stack.pop()
        at = path[-1]
        if at == b:
            found += 1
            yield path
            continue
        onward = [n for n in net.neighbours[at] if distance.get(n, -1) == distance[at] - 1]
        stack += [[*path, n] for n in reversed(onward)]


def _distances(net: Network, start: str) -> dict[str, int]:
    distance = {start: 0}
    waiting = deque([start])
    while waiting:
        at = waiting.popleft()
        for n in net.neighbours[at]:
            if n not in distance:
                distance[n] = distance[at] + 1
                waiting.append(n)
    return distance


def loads(net: Network, matrix: Matrix, routes: Mapping[tuple[str, str], list[str]]) -> float:
    """Return the largest load of a link between switches: traffic divided by rate.

    ``matrix`` has the traffic of each pair of hosts in bit/s, ``routes`` the path of each pair as a
    list of switches.
    """
    carried: dict[Link, float] = {}
    for pair, bps in matrix.items():
        via = routes[pair]
        for link in itertools.pairwise(via):
            carried[link] = carried.get(link, 0.0) + bps
    return max((bps / net.rate_bps[link] for link, bps in carried.items()), default=0.0)


def colour(net: Network, matrix: Matrix, time_limit_s: float = 60.0) -> Coloured:
    """Return one shortest path for each pair in ``matrix``, with the least peak load of a link.

    The search ends after ``time_limit_s`` seconds; the routes may then not be proven to be optimal.
    Raises ``InputError`` if the pairs have too many shortest paths together, or if no routes were
    found before the time limit.
    """
    paths: dict[tuple[str, str], list[list[str]]] = {}
    notes, total = [], 0
    known: dict[tuple[str, str], list[list[str]]] = {}
    for pair in matrix:
        ends = (net.edge[pair[0]], net.edge[pair[1]])
        if ends not in known:
            known[ends] = list(shortest_paths(net, *ends, MOST_PATHS + 1))
        paths[pair] = known[ends][:MOST_PATHS]
        total += len(paths[pair])
        if total > MOST_PATHS_OF_ALL:
            raise InputError(
                f"the pairs have more than {MOST_PATHS_OF_ALL} shortest paths together, which is "
                "the maximum: use fewer pairs"
            )
    if any(len(found) > MOST_PATHS for found in known.values()):
        notes.append(
            f"some pairs have more than {MOST_PATHS} shortest paths: only the first {MOST_PATHS} "
            "of each pair were considered"
        )
    chosen, least, proven = _solve(net, matrix, paths, time_limit_s)
    routes = {pair: paths[pair][at] for pair, at in chosen.items()}
    return Coloured(routes, loads(net, matrix, routes), least, proven, notes)


def _solve(
    net: Network,
    matrix: Matrix,
    paths: Mapping[tuple[str, str], list[list[str]]],
    time_limit_s: float,
) -> tuple[dict[tuple[str, str], int], float, bool]:
    """Return (chosen path of each pair, lower bound of the largest load, proven).

    A chosen path is an index into the list that ``paths`` has for the pair. ``proven`` is true if
    the solver has proven that no other choice of paths has a smaller largest load.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415  # slow to load
    from scipy.sparse import coo_array  # noqa: PLC0415

    link_row: dict[Link, int] = {}
    rows: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    pair_rows: list[int] = []
    starts: dict[tuple[str, str], int] = {}
    variables = 0
    for number, (pair, found) in enumerate(paths.items()):
        starts[pair] = variables
        for via in found:
            for link in itertools.pairwise(via):
                rows.append(link_row.setdefault(link, len(link_row)))
                columns.append(variables)
                values.append(matrix[pair] / net.rate_bps[link])
            pair_rows.append(number)
            variables += 1
    if not link_row:  # both hosts of every pair are at one switch
        return dict.fromkeys(paths, 0), 0.0, True
    scale = max(values)
    rows += list(range(len(link_row)))
    columns += [variables] * len(link_row)
    values = [value / scale for value in values] + [-1.0] * len(link_row)
    load = coo_array((values, (rows, columns)), shape=(len(link_row), variables + 1))
    each = coo_array(
        (np.ones(variables), (pair_rows, range(variables))), shape=(len(paths), variables + 1)
    )
    objective = np.zeros(variables + 1)
    objective[-1] = 1.0
    integrality = np.ones(variables + 1, dtype=np.int64)
    integrality[-1] = 0
    upper = np.ones(variables + 1)
    upper[-1] = np.inf
    found_ = milp(
        objective,
        integrality=integrality,
        bounds=Bounds(np.zeros(variables + 1), upper),
        constraints=[
            LinearConstraint(load.tocsr(), -np.inf, 0.0),
            LinearConstraint(each.tocsr(), 1.0, 1.0),
        ],
        options={"time_limit": time_limit_s},
    )
    if found_.x is None:
        raise InputError(f"no routes were found in {time_limit_s:g} s; use a longer --time-limit")
    taken = np.asarray(found_.x)
    chosen = {
        pair: int(np.argmax(taken[start : start + len(paths[pair])]))
        for pair, start in starts.items()
    }
    least = float(found_.mip_dual_bound) * scale
    return chosen, least, bool(found_.status == 0)
