"""One picture of every public function of pictures, of data made by hand with hostile names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from eastwest import Result, plot
from eastwest.models.closed_loop import Case, Foreseen, Wanted
from eastwest.models.network import Flow, Load, Network, Played, Queue
from eastwest.models.qcn import Qcn
from eastwest.models.tcp_dctcp import Dctcp
from eastwest.models.tcp_red import Red, TcpRed
from eastwest.observe.select import Chosen, Selection
from eastwest.plot import control, front, metrics, models, workload
from eastwest.sweep import SweepResult
from eastwest.workload.access import access
from eastwest.workload.arrival import arrival
from eastwest.workload.describe import Description
from eastwest.workload.jobs import BYTES, Jobs
from eastwest.workload.shapes import shapes
from hand_made import drop, flow, folder
from swept import swept

#: Names with signs that LaTeX or matplotlib's formulas treat specially.
HOSTILE = (r"web $\frac{1}", r"50 % & #1_a", r"~{x}^2 \input{/etc/passwd}", "µs → ≤ <b>")
TIERS = ("host-up", "host-down", "leaf-up", "spine-down")


def result(path: Path) -> Result:
    """Return a result with rows in every table that a picture draws."""
    random = np.random.default_rng(7)
    links = [
        {"link": i, "name": f"{HOSTILE[i % 4]}->h_{i}", "tier": TIERS[i % 4], "rate_bps": 10**9}
        | {"utilisation": 0.03 + 0.02 * i, "drops": i, "queue_max_us": 10.0 * i + 1}
        | {"queue_max_bytes": 1000 * i}
        for i in range(16)
    ]
    runtime = random.lognormal(3, 0.9, 40)
    jobs = [
        {"job": i, "name": HOSTILE[i % 4], "submitted_s": 1.0 * i, "runtime_s": float(t)}
        | {"finished_s": i + float(t)}
        for i, t in enumerate(runtime)
    ]
    tasks = [
        {
            "job": job,
            "task": task,
            "kind": "map" if task < 4 else "reduce",
            "host": (job + task) % 8,
        }
        | {"assigned_s": begin, "started_s": begin + 0.3, "input_done_s": begin + 2.0}
        | {"finished_s": begin + 5.0 + task}
        for job in range(40)
        for task in range(6)
        for begin in [job + 1.5 * task]
    ]
    sizes = [2_000, 30_000, 400_000, 5_000_000, 60_000_000]
    flows = [
        flow(i, bytes=sizes[i % 5], fct_us=float(us), slowdown=1 + float(us) / 1e4)
        for i, us in enumerate(random.lognormal(8, 1.5, 200))
    ]
    latency = [
        {"class": name, "kind": "data", "upper_us": 10.0 * 1.3**i, "count": int(9e5 / 2**i) + 1}
        for name in HOSTILE
        for i in range(20)
    ]
    rates = 1e6 * (2 + np.sin(np.arange(50)))
    parts = ("injection_us", "queueing_us", "flight_us", "retransmission_us", "cores_us")
    tables: dict[str, list[dict[str, Any]]] = {
        "links": links,
        "jobs": jobs,
        "tasks": tasks,
        "flows": flows,
        "latency": latency,
        "traffic": [
            {"time_s": 0.1 * (i + 1), "tier": tier, "bytes": int(each) // (1 + place)}
            for i, each in enumerate(rates)
            for place, tier in enumerate(TIERS)
        ],
        "queues": [
            {"time_s": 0.1 * i, "link": link, "packets": (7 * i + link) % 40}
            for i in range(50)
            for link in range(4)
        ],
        "rounds": [
            {
                "round": i,
                "started_s": 0.1 * i,
                "finished_s": 0.1 * i + 0.01 * (i + 1),
                "bytes": 10**6,
            }
            for i in range(6)
        ],
        "flow_parts": [
            {"flow": i, "bytes": sizes[i % 5], "completion_us": float(sum(row))}
            | dict(zip(parts, map(float, row), strict=True))
            for i, row in enumerate(random.exponential(100, (60, 5)))
        ],
        "link_samples": [
            {"time_s": 0.1 * (i + 1), "link": link, "bytes": 10**6 * (1 + (i + link) % 12)}
            | {"drops": (i * link) % 5, "marks": (i + link) % 7}
            for i in range(50)
            for link in range(16)
        ],
        "mpi_iterations": [
            {"workload": HOSTILE[rank // 4], "rank": rank, "iteration": i, "began_s": 1.0 * i}
            | {"ended_s": i + 1.0, "compute_s": 0.3 + 0.01 * rank, "exposed_s": 0.2}
            for i in range(3)
            for rank in range(8)
        ],
        "events": [{"time_s": 0.3 * i, "what": "timeout", "connection": i} for i in range(1, 6)]
        + [drop(0.2, 0)],
        "tcp_trace": [
            {"time_s": 0.1 * i, "connection": c, "src": c, "dst": 3, "ssthresh_bytes": 9000}
            | {"cwnd_bytes": 1000 * (1 + (i + c) % 9)}
            for i in range(1, 40)
            for c in range(8)
        ],
        "pauses": [
            {"link": i % 12, "priority": 3, "began_s": 0.1 * i, "until_s": 0.1 * i + 0.05}
            | {"ended": "released"}
            for i in range(40)
        ],
        "flow_samples": [
            {"time_s": 0.001 * i, "connection": c, "stream": -1, "src": c, "dst": 3}
            | {"bytes": 1000 * (1 + (i * c) % 9)}
            for i in range(1, 60)
            for c in range(8)
        ],
    }
    summary = {"simulated_s": 5.0, "flow_samples": {"rows": 1, "interval_s": 0.001}}
    return folder(path, tables, summary)


def sweep_of(path: Path) -> SweepResult:
    """Return a sweep of four limits, seven timers and three seeds, in which one name is hostile."""
    limits = [["20 packets"], ["50 packets"], ["100 packets"], ["200 packets"]]
    timers = [[f"{ms} ms"] for ms in (1, 2, 5, 10, 20, 50)] + [[HOSTILE[1]]]
    values = {
        "latency_us.p99": [
            [10.0 * (1 + point % 7) * (1 + point // 7) + seed for seed in range(3)]
            for point in range(28)
        ]
    }
    axes = [(["fabric.queue.limit"], limits), (["tcp.min_rto"], timers)]
    return swept(path, axes, values)


def trace(name: str, seed: int) -> tuple[str, Jobs]:
    """Return a name and jobs of a trace with all kinds of bytes."""
    random = np.random.default_rng(seed)
    known = {kind: np.floor(random.lognormal(14, 4, 300)) for kind in BYTES}
    known[BYTES[1]][::3] = 0
    return name, Jobs(np.sort(random.uniform(0, 36_000, 300)), known, name=name)


def optimised() -> dict[str, Any]:
    """Return the summary of an optimisation with three goals and a finalist of each group."""
    origins = ("baseline", "candidate", "trial", "trial", "trial", "trial")
    finalists = [
        {"point": i, "origin": origin, "limits": [{"kept": i != 5}]}
        | {"goals": [{"value": _value(10.0 * i + 7 * goal + 1)} for goal in range(3)]}
        for i, origin in enumerate(origins)
    ]
    goals = [{"metric": name} for name in ("flows.fct_us.p99", "energy_j.total", HOSTILE[2])]
    recommended = finalists[3]
    return {"goals": goals, "finalists": finalists, "front": [2, 3], "recommended": recommended}


def _value(mean: float) -> dict[str, float]:
    return {"mean": mean, "low": 0.9 * mean, "high": 1.2 * mean}


def chosen() -> Selection:
    """Return a selection of six metrics with long names."""
    names = [
        f"node_network_receive_bytes_total{{device=eth{i},{HOSTILE[i % 4]}}}" for i in range(6)
    ]
    picked = tuple(
        Chosen(name, 1 / (i + 1), 0.1 * i, 1.0, i % 3, 0.9) for i, name in enumerate(names)
    )
    return Selection(HOSTILE[0], picked, 99, 50, 8, (), (), 0, (), 0.9, {})


def cases(ran: Result) -> list[Case]:
    """Return three runs of a control loop."""
    times = np.linspace(0, 2, 400)
    return [
        Case(
            name, ran, HOSTILE[0], 1e9, 1538, times, 50 + 20 * np.sin(9 * times + i),
            Foreseen(50 + 20 * np.sin(9 * times + i + 0.1), 1.0, 2.0),
        )
        for i, name in enumerate(("as it is", "control loop", "predicting loop"))
    ]  # fmt: skip


def horizons() -> tuple[Network, Mapping[str, Played]]:
    """Return a network of one queue, and two runs of it."""
    times = np.arange(0, 0.3, 5e-4)
    queue = Queue("queue", 80_000.0, 50.0, 500.0, 5e-4)
    loads = (Load("queue", 20_000.0, 0.1, 0.2, declared=True),)
    network = Network((queue,), (Flow("flow", ("queue",), (1e-3,), 1e-3),), 5e-4, loads)

    def one(shift: float) -> Played:
        wave = np.sin(40 * times + shift)
        none = np.zeros((times.size, 1))
        column = wave[:, np.newaxis]
        return Played(times, 50 + 30 * column, 60_000 + 9_000 * column, none, none)

    return network, {"not declared": one(0.0), "declared": one(1.0)}


def _red(delay_s: float) -> TcpRed:
    return TcpRed(16.0, 81_274.0, delay_s, Red(30, 330, 0.1, 0.002, True, False))


def _points(cyclic: bool) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {"flows": float(n), "capacity_pps": 8e4, "delay_us": us, "queue": 10.0 * n}
        | {"gain_margin_db": None if n == 64 else 9.0 - n / 8}
        for us in (100.0, 400.0, 1600.0, 4000.0)
        for n in (4, 8, 16, 32, 64)
    ]
    cycle = {"amplitude": 1.0, "lowest": 3.0, "highest": 700.0, "period_us": 250.0}
    return [row | cycle for row in rows] if cyclic else rows


def gallery(path: Path) -> dict[str, Callable[[], Figure]]:
    """Return functions that draw the pictures, by ``module.function`` and, after a colon, a case.

    ``path`` is an empty folder for the data.
    """
    ran = result(path / "run")
    grid = sweep_of(path / "sweep")
    traces = [trace(HOSTILE[0], 1), trace(HOSTILE[1], 2)]
    used = [(name, access(jobs)) for name, jobs in traces]
    jobs = traces[0][1]
    about = Description(
        f"a/{HOSTILE[3]}.tsv", "swim", (), used[0][1], shapes(jobs), arrival(jobs), {}
    )
    goodputs = [
        {"block_bytes": block, "senders": n, "onset_senders": 1e6 / block}
        | {"before_bps": 9e8 - n * 1e6, "partial_bps": 4e6 * n}
        for block in (16_384, 32_768, 65_536, 131_072)
        for n in (1, 2, 4, 7, 13, 24, 48)
    ]
    asleep: list[dict[str, float | str]] = [
        {
            "policy": policy,
            "load": load,
            "power": 0.1 + load * 0.9 / (1 + i),
            "wait_us": 3.0 + 9 * i,
        }
        for i, policy in enumerate(("legacy", "standard", "12us10", "120us100", "ideal"))
        for load in (0.1, 0.3, 0.5, 0.7, 0.9)
    ]
    dctcp = Dctcp(8, 812_744.0, 1e-4, 65, 1 / 16)
    qcn = Qcn(10, 833_333.0, 1e-4, 22, 2, 1 / 128)
    unstable = Qcn(2, 833_333.0, 4e-4, 22, 2, 1 / 128)
    charts = {
        f"charts.figure:{name}": (lambda name=name: plot.figure(name, ran)) for name in plot.CHARTS
    }
    compared = [(HOSTILE[0], ran), (HOSTILE[1], ran)]
    charts |= {
        f"charts.draw:{name}": (lambda name=name: plot.draw(name, compared).figure)
        for name, chart in plot.CHARTS.items()
        if chart.compares
    }
    return {
        **charts,
        "charts.overview": lambda: plot.overview(ran),
        "flows.flow_parts": lambda: plot.flow_parts(ran),
        "inside.cdf": lambda: plot.cdf(ran),
        "inside.cdf:several": lambda: plot.cdf(dict.fromkeys(HOSTILE, ran), "slowdown"),
        "inside.windows": lambda: plot.windows(ran),
        "inside.losses": lambda: plot.losses(ran),
        "inside.marks": lambda: plot.marks(ran),
        "inside.link_heat": lambda: plot.link_heat(ran),
        "inside.link_heat:drops": lambda: plot.link_heat(ran, "drops"),
        "inside.job_tasks": lambda: plot.job_tasks(ran, 3),
        "pauses.pauses": lambda: plot.pauses(ran),
        "sweeps.sweep": lambda: plot.sweep(grid, "latency_us.p99", "limit"),
        "sweeps.sweep:names": lambda: plot.sweep(grid, "latency_us.p99", "min_rto"),
        "sweeps.comparisons": lambda: plot.comparisons(grid, "latency_us.p99"),
        "throughput.throughput": lambda: plot.throughput(ran),
        "models.goodput": lambda: models.goodput(goodputs),
        "models.sleeping": lambda: models.sleeping(asleep, "10GBASE-T"),
        "control.over_points": lambda: control.over_points("TCP at RED", _points(False)),
        "control.over_points:cycle": lambda: control.over_points("DCTCP", _points(True)),
        "control.loop_response": lambda: control.loop_response("QCN", qcn.linear(), qcn.play(0.02)),
        "control.loop_response:unstable": lambda: control.loop_response(
            "QCN", unstable.linear(), unstable.play(0.02)
        ),
        "control.cycle_over_time": lambda: control.cycle_over_time(
            dctcp.play(100 * dctcp.rtt_s), 65, dctcp.rtt_s
        ),
        "control.loops": lambda: control.loops(cases(ran), Wanted()),
        "control.horizons": lambda: control.horizons(*horizons()),
        "metrics.selection": lambda: metrics.selection(chosen()),
        "front.figure": lambda: front.figure(optimised()),
        "workload.access_cdfs": lambda: workload.access_cdfs(used),
        "workload.overview": lambda: workload.overview(about),
    }
