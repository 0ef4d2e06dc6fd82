"""A stand-in for the Rust extension: it returns plausible tables of a small run immediately.

It has the interface of ``eastwest._core`` (see ``_core.pyi``). So results, the command line and the
report can be tested alone, also with hostile names and unusual sizes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from eastwest import formats
from eastwest.core import (
    CheckResult,
    Column,
    CoreResult,
    Overrides,
    Problem,
    Resolved,
    RunOptions,
)

DROPS = ("data", "retransmission", "ack", "ece_ack", "syn", "syn_ack", "fin", "datagram")
LOST = ("random", "down", "no_route")
ENERGIES = ("", "_always_on", "_ideal")
ASLEEP = ("falling_asleep", "asleep", "waking")
CLASSES = ("batch", "service")

PROBLEMS: list[Problem] = [
    {
        "path": "fabric.hosts_per_leef",
        "value": "5",
        "message": "no such setting",
        "hint": "hosts_per_leaf",
    },
    {"path": "fabric.mtu", "value": "20", "message": "allowed: 576 to 9000 bytes", "hint": None},
]


class ScenarioError(Exception):
    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(f"{len(problems)} problems")
        self.problems = problems


class RunError(Exception):
    pass


def column(name: str, dtype: str, values: Sequence[Any] | npt.NDArray[Any]) -> Column:
    if dtype == "str":
        return name, dtype, [str(v) for v in values]
    kinds = {"u32": "<u4", "u64": "<u8", "i64": "<i8", "f64": "<f8"}
    return name, dtype, np.asarray(values).astype(kinds[dtype]).tobytes()


def empty_columns(table: str) -> list[Column]:
    """Return the columns of a table without rows."""
    return [column(name, dtype, []) for name, dtype in formats.TABLES[table].items()]


class FakeCore:
    """Functions of ``eastwest._core``; attributes change the results."""

    ScenarioError = ScenarioError
    RunError = RunError

    def __init__(self, jobs: int = 60, racks: int = 2, hosts: int = 20) -> None:
        self.job_count = jobs
        self.racks = racks
        self.hosts = hosts
        self.name = "fake"
        self.job_name = "job"
        #: Whether links sleep.
        self.sleeping = False
        self.problems: list[Problem] = []
        self.raises: BaseException | None = None
        self.calls: list[tuple[Overrides, int | None, bool]] = []
        #: Number of threads of the last run.
        self.threads = 1

    def version(self) -> str:
        return "0.1.0"

    def own_panic(self) -> tuple[str, str] | None:
        return None

    def build_info(self) -> dict[str, Any]:
        return {"profile": "fake"}

    def schema(self) -> str:
        choices = [{"name": "leaf-spine", "doc": "two tiers"}]
        return json.dumps({"schema": 1, "keys": [{"path": "fabric.kind", "choices": choices}]})

    def check(self, text: str, base: str, data: str, overrides: Overrides) -> CheckResult:
        return {
            "problems": list(self.problems),
            "memory": [] if self.problems else [("ports", 3_000_000, True)],
            "notes": ["over-subscribed 2:1"],
        }

    def resolve(
        self, text: str, base: str, data: str, overrides: Overrides, seed: int | None
    ) -> Resolved:
        settings = "".join(f"# {path} = {value}\n" for path, value in overrides)
        toml = f"name = {json.dumps(self.name)}\nseed = {seed or 1}\n{settings}"
        return {
            "name": self.name,
            "scenario_toml": toml,
            "attached": [],
            "notes": [],
            "applications": {},
        }

    def topology(self, text: str, base: str, data: str, overrides: Overrides) -> dict[str, Any]:
        cable = {"a": "h0", "b": "leaf0", "rate_bps": 10**9, "delay_us": 5.0, "tier": "host-up"}
        return {
            "name": self.name,
            "nodes": ["h0", "leaf0"],
            "hosts": 1,
            "switches": 1,
            "cables": [cable],
            "notes": ["over-subscribed 2:1"],
        }

    def topology_kinds(
        self, text: str, base: str, data: str, overrides: Overrides
    ) -> dict[str, Any]:
        whole = self.topology(text, base, data, overrides)
        kinds = [(c["tier"], c["rate_bps"], c["delay_us"], 1) for c in whole["cables"]]
        return {**whole, "kinds": kinds}

    def run(
        self,
        text: str,
        base_dir: str,
        data_dir: str,
        overrides: Overrides,
        seed: int | None,
        options: RunOptions,
        sketches: Sequence[Any] = (),
    ) -> CoreResult:
        self.calls.append((overrides, seed, options.reference))
        self.threads = options.threads
        progress = options.progress
        if self.problems:
            raise ScenarioError(self.problems)
        if progress is not None:
            for step in range(1, 4):
                progress(
                    {
                        "simulated_s": 100.0 * step,
                        "target_s": 300.0,
                        "jobs_done": step * self.job_count // 3,
                        "jobs_total": self.job_count,
                        "packet_hops": step * 1_000_000,
                        "wall_s": step / 10,
                    }
                )
        if self.raises is not None:
            raise self.raises
        number = 1 if seed is None else seed
        tables = Tables(self, np.random.default_rng(number)).all()
        return {
            "summary_json": json.dumps(self.summary(number)),
            "scenario_toml": f"# resolved\nname = {json.dumps(self.name)}\nseed = {number}\n",
            "attached": [("inputs/trace.tsv", b"job0\t0\t0\t1\t2\t3\n")],
            "notes": ["The fabric is over-subscribed 2:1 between leaves and spines."],
            "tables": tables,
            "files": [],
        }

    def energy(self) -> dict[str, Any]:
        """Make links sleep, with the energies of `Tables.energy`."""
        saved = 0.4 if self.sleeping else 1.0
        used = {"total": 72_000 * saved, "always_on": 72_000.0, "of_always_on": saved}
        used |= {"ideal": 66_600 * saved, "of_ideal": 1.081, "wakes": 9_000_000}
        return {**used, "host_links": used, "delay_product_js": 1e9, "per_job": 1200.0}

    def summary(self, seed: int) -> dict[str, Any]:
        spread = {"mean": 812.5, "p50": 190.0, "p99": 12_345.0, "max": 812_345.0}
        return {
            "scenario": self.name,
            "seed": seed,
            "version": "0.1.0",
            "fidelity": "packet",
            "digest": f"{seed:064x}",
            "simulated_s": 14_400.0,
            "packet_hops": 412_345_678,
            "events": 812_345_678,
            "jobs": {
                "count": self.job_count,
                "runtime_s": {"mean": 41.0, "p50": 32.0, "p99": 190.0},
                "makespan_s": 14_390.0,
            },
            "flows": {"count": 3000, "completed": 3000, "fct_us": spread},
            "latency_us": {"mean": 61.0, "p50": 40.0, "p99": 900.0, "p999": 2400.0},
            "throughput_bps": 12_345_678.0,
            "drops": {"full": {"data": 1234, "ack": 0}},
            "tcp": {
                "retransmits": 1240,
                "timeouts": 3,
                "spurious_timeouts": 1,
                "timeout_causes": {"full_window": 2, "spurious": 1},
            },
            "energy_j": self.energy(),
        }


class Tables:
    """Plausible tables of a small run."""

    def __init__(self, core: FakeCore, random: np.random.Generator) -> None:
        self.core = core
        self.random = random
        self.submitted = np.sort(random.uniform(0, 3600, core.job_count))

    def all(self) -> dict[str, list[Column]]:
        return {
            "jobs": self.jobs(),
            "tasks": self.tasks(),
            "counters": self.counters(),
            "flows": self.flows(),
            "flow_parts": self.flow_parts(),
            "flow_hops": empty_columns("flow_hops"),
            "flow_samples": empty_columns("flow_samples"),
            "packet_hops": empty_columns("packet_hops"),
            "events": self.events(),
            "links": self.links(),
            "drops": self.drops(),
            "depths": self.depths(),
            "sojourn": self.sojourn(),
            "link_samples": self.link_samples(),
            "queues": self.queues(),
            "traffic": self.traffic(),
            "power": self.power(),
            "latency": self.latency(),
            "application_times": empty_columns("application_times"),
            "rounds": self.rounds(),
            "mpi_ranks": self.mpi_ranks(),
            "mpi_states": self.mpi_states(),
            "mpi_messages": self.mpi_messages(),
            "mpi_collectives": empty_columns("mpi_collectives"),
            "mpi_iterations": empty_columns("mpi_iterations"),
            "tcp_trace": self.tcp_trace(),
            "lpi": self.lpi(),
            "streams": empty_columns("streams"),
            "pfc": empty_columns("pfc"),
            "pauses": empty_columns("pauses"),
            "transactions": empty_columns("transactions"),
            "calls": empty_columns("calls"),
        }

    def jobs(self) -> list[Column]:
        n = self.core.job_count
        runtime = self.random.lognormal(3.5, 0.8, n)
        shuffle = self.random.lognormal(18, 2, n)
        return [
            column("job", "u32", np.arange(n)),
            column("workload", "str", ["hadoop"] * n),
            column("name", "str", [f"{self.core.job_name}{i}" for i in range(n)]),
            column("kind", "str", ["trace"] * n),
            column("class", "str", ["batch"] * n),
            column("submitted_s", "f64", self.submitted),
            column("started_s", "f64", self.submitted + 1),
            column("finished_s", "f64", self.submitted + runtime),
            column("runtime_s", "f64", runtime),
            column("maps", "u32", [4] * n),
            column("reduces", "u32", [2] * n),
            column("input_bytes", "u64", shuffle * 2),
            column("shuffle_bytes", "u64", shuffle),
            column("shuffle_local_bytes", "u64", shuffle / 20),
            column("output_bytes", "u64", shuffle),
            column("failed", "str", [""] * n),
        ]

    def tasks(self) -> list[Column]:
        per_job = 6
        n = self.core.job_count * per_job
        job = np.repeat(np.arange(self.core.job_count), per_job)
        kind = np.tile(["map"] * 4 + ["reduce"] * 2, self.core.job_count)
        start = self.submitted[job] + np.where(kind == "map", 1, 12)
        length = self.random.lognormal(2.3, 0.5, n)
        return [
            column("job", "u32", job),
            column("workload", "str", ["hadoop"] * n),
            column("task", "u32", np.tile([0, 1, 2, 3, 0, 1], self.core.job_count)),
            column("kind", "str", kind),
            column("host", "u32", self.random.integers(0, self.core.hosts, n)),
            column("assigned_s", "f64", start - 0.5),
            column("started_s", "f64", start),
            column("input_done_s", "f64", start + length / 3),
            column("finished_s", "f64", start + length),
            column("locality", "str", np.where(kind == "map", "node", "none")),
            column("bytes_in", "u64", [64_000_000] * n),
            column("bytes_out", "u64", [64_000_000] * n),
            column("computed_s", "f64", start + length / 2),
            column("merged_s", "f64", start + length / 2),
            column("spills", "u32", [1] * n),
            column("file_bytes_read", "u64", [0] * n),
            column("file_bytes_written", "u64", [64_000_000] * n),
            column("cpu_s", "f64", length / 2),
        ]

    def counters(self) -> list[Column]:
        n = self.core.job_count
        named = [
            column("job", "u32", np.arange(n)),
            column("workload", "str", ["hadoop"] * n),
        ]
        counted = list(formats.TABLES["counters"])[len(named) :]
        return named + [column(name, "u64", [4] * n) for name in counted]

    def flows(self) -> list[Column]:
        n = 3000
        size = self.random.lognormal(11, 3, n).astype(int) + 100
        slowdown = 1 + self.random.exponential(1.5, n)
        fct = (size * 8 / 1e9 + 1e-4) * slowdown
        start = self.random.uniform(0, 3600, n)
        source = self.random.integers(0, self.core.hosts, n)
        lost = self.random.poisson(0.4, n)
        return [
            column("flow", "u64", np.arange(n)),
            column("workload", "str", ["hadoop"] * n),
            column("purpose", "str", self.random.choice(["shuffle", "replica", "control"], n)),
            column("class", "str", self.random.choice(CLASSES, n)),
            column("src", "u32", source),
            column("dst", "u32", (source + 7) % self.core.hosts),
            column("bytes", "u64", size),
            column("start_s", "f64", start),
            column("finish_s", "f64", start + fct),
            column("fct_us", "f64", fct * 1e6),
            column("slowdown", "f64", slowdown),
            column("retransmits", "u32", lost),
            column("timeouts", "u32", lost // 4),
            column("job", "i64", self.random.integers(-1, max(1, self.core.job_count), n)),
            column("connection", "u64", np.arange(n)),
            column("stream_start", "u64", np.zeros(n)),
            column("lost_windows", "u32", lost // 8),
            column("lost_ack_windows", "u32", np.zeros(n)),
            column("tag", "u64", np.zeros(n)),
        ]

    def flow_parts(self) -> list[Column]:
        n = 300
        parts = self.random.exponential(100.0, (4, n)) * np.array([[1], [2], [4], [0.5]])
        source = self.random.integers(0, self.core.hosts, n)
        lost = parts[3] > 100
        return [
            column("flow", "i64", np.arange(n)),
            column("stream", "i64", np.full(n, -1)),
            column("workload", "str", ["hadoop"] * n),
            column("class", "str", self.random.choice(CLASSES, n)),
            column("src", "u32", source),
            column("dst", "u32", (source + 7) % self.core.hosts),
            column("bytes", "u64", self.random.lognormal(11, 3, n).astype(int) + 100),
            column("loss", "str", np.where(lost, "yes", "no")),
            column("completion_us", "f64", parts.sum(axis=0)),
            column("injection_us", "f64", parts[0]),
            column("queueing_us", "f64", parts[1]),
            column("flight_us", "f64", parts[2]),
            column("retransmission_us", "f64", parts[3]),
            *(column(f"{name}_us", "f64", np.zeros(n)) for name in ("application", "earlier")),
            column("host_queue_us", "f64", parts[0]),
            *(
                column(f"{name}_us", "f64", np.zeros(n))
                for name in ("pacing", "delayed_ack", "handshake")
            ),
            column("slow_start_us", "f64", parts[2]),
            column("slow_start_trips", "u32", np.ones(n)),
            column("congestion_window_us", "f64", np.zeros(n)),
            column("congestion_window_trips", "u32", np.zeros(n)),
            column("receiver_window_us", "f64", np.zeros(n)),
            column("receiver_window_trips", "u32", np.zeros(n)),
            *(
                column(f"{name}_us", "f64", np.zeros(n))
                for name in ("transmission", "propagation", "processing")
            ),
            column("cores_us", "f64", np.zeros(n)),
            column("send_core_queue_us", "f64", np.zeros(n)),
            column("send_core_us", "f64", np.zeros(n)),
            column("interrupt_delay_us", "f64", np.zeros(n)),
            column("receive_core_queue_us", "f64", np.zeros(n)),
            column("receive_core_us", "f64", np.zeros(n)),
        ]

    def events(self) -> list[Column]:
        n = 400
        what = self.random.choice(["drop", "timeout", "recovery", "recovered"], n)
        lost = what == "drop"
        source = self.random.integers(0, self.core.hosts, n)
        return [
            column("time_s", "f64", np.sort(self.random.uniform(0, 3600, n))),
            column("what", "str", what),
            column("connection", "i64", self.random.integers(0, 3000, n)),
            column("src", "u32", source),
            column("dst", "u32", (source + 7) % self.core.hosts),
            column("kind", "str", np.where(lost, "data", "")),
            column("stream_start", "u64", [0] * n),
            column("bytes", "u32", [1448] * n),
            column("link", "i64", np.where(lost, source, -1)),
            column("cause", "str", np.where(lost, "queue-full", "")),
        ]

    def links(self) -> list[Column]:
        rows: list[tuple[str, str, str, int]] = []
        for host in range(self.core.hosts):
            leaf = f"leaf{host * self.core.racks // self.core.hosts}"
            rows.append((f"h{host}", leaf, "host-up", 10**9))
            rows.append((leaf, f"h{host}", "host-down", 10**9))
        for rack in range(self.core.racks):
            for spine in range(2):
                rows.append((f"leaf{rack}", f"spine{spine}", "leaf-up", 10**10))
                rows.append((f"spine{spine}", f"leaf{rack}", "leaf-down", 10**10))
        n = len(rows)
        dropped = {kind: self.random.poisson(3, n) for kind in DROPS}
        carried = self.random.lognormal(22, 0.7, n)
        rate = np.array([row[3] for row in rows])
        queue = self.random.integers(0, 300_000, n)
        return [
            column("link", "u32", np.arange(n)),
            column("name", "str", [f"{row[0]}->{row[1]}" for row in rows]),
            column("tier", "str", [row[2] for row in rows]),
            column("src", "str", [row[0] for row in rows]),
            column("dst", "str", [row[1] for row in rows]),
            column("rate_bps", "u64", rate),
            column("packets", "u64", carried / 1000),
            column("bytes", "u64", carried),
            column("utilisation", "f64", np.minimum(1, carried * 8 / rate / 3600)),
            column("drops", "u64", np.sum(list(dropped.values()), axis=0)),
            *[column(f"drops_{kind}", "u64", dropped[kind]) for kind in DROPS],
            column("queue_max_us", "f64", queue * 8e6 / rate),
            column("queue_max_bytes", "u64", queue),
            column("drops_queue_full", "u64", np.sum(list(dropped.values()), axis=0)),
            *[column(f"lost_{cause}", "u64", np.zeros(n)) for cause in LOST],
            *[
                column(f"drops_{c}", "u64", np.zeros(n))
                for c in ("early", "shared_buffer", "sojourn")
            ],
            column("marks", "u64", np.zeros(n)),
            *self.energy(n),
        ]

    def energy(self, n: int) -> list[Column]:
        """Return columns of links of 0.5 W that sleep for two thirds of the hour, or never."""
        asleep = 2400.0 if self.core.sleeping else 0.0
        between = 150.0 if self.core.sleeping else 0.0
        used = (1800 - 0.45 * asleep, 1800.0, 1800 - 0.45 * (asleep + 2 * between))
        states = (between, asleep, between)
        return [
            *[
                column(f"energy{which}_j", "f64", np.full(n, joules))
                for which, joules in zip(ENERGIES, used, strict=True)
            ],
            column("awake_s", "f64", np.full(n, 3600.0 - sum(states))),
            *[
                column(f"{state}_s", "f64", np.full(n, seconds))
                for state, seconds in zip(ASLEEP, states, strict=True)
            ],
            column("wakes", "u64", np.full(n, between * 1000)),
        ]

    def drops(self) -> list[Column]:
        rows = [(link, kind) for link in (1, 3) for kind in DROPS]
        n = len(rows)
        early = self.random.poisson(5, n)
        other = ("drops_queue_full", "lost_random", "lost_down", "lost_no_route")
        return [
            column("link", "u32", [row[0] for row in rows]),
            column("class", "u32", np.zeros(n)),
            column("kind", "str", [row[1] for row in rows]),
            column("ect", "str", ["ect" if row[1] == "data" else "not-ect" for row in rows]),
            column("arrivals", "u64", 100 * early),
            column("marks", "u64", np.zeros(n)),
            column("drops", "u64", early),
            *[column(cause, "u64", np.zeros(n)) for cause in other],
            column("drops_early", "u64", early),
            *[
                column(f"drops_{cause}", "u64", np.zeros(n))
                for cause in ("shared_buffer", "sojourn")
            ],
        ]

    def depths(self) -> list[Column]:
        rows = [
            (link, unit, most)
            for link in (1, 3)
            for unit in ("packets", "bytes")
            for most in range(200)
        ]
        return [
            column("link", "u32", [row[0] for row in rows]),
            column("class", "u32", np.zeros(len(rows))),
            column("unit", "str", [row[1] for row in rows]),
            column("most", "u64", [row[2] for row in rows]),
            column("count", "u64", self.random.poisson(9, len(rows))),
        ]

    def sojourn(self) -> list[Column]:
        upper = np.tile(np.geomspace(0.001, 900, 300), 2)
        return [
            column("link", "u32", np.repeat([1, 3], 300)),
            column("class", "u32", np.zeros(600)),
            column("upper_us", "f64", upper),
            column("count", "u64", self.random.poisson(9, 600)),
        ]

    def link_samples(self) -> list[Column]:
        n = 500
        return [
            column("time_s", "f64", np.linspace(0, 3600, n)),
            column("link", "u32", self.random.integers(0, 2 * self.core.hosts, n)),
            column("bytes", "u64", self.random.integers(1, 10**9, n)),
            column("drops", "u32", self.random.poisson(0.1, n)),
            column("marks", "u32", self.random.poisson(0.2, n)),
        ]

    def queues(self) -> list[Column]:
        n = 500
        return [
            column("time_s", "f64", np.linspace(0, 3600, n)),
            column("link", "u32", self.random.integers(0, 2 * self.core.hosts, n)),
            column("packets", "u32", self.random.integers(0, 200, n)),
            column("bytes", "u64", self.random.integers(0, 300_000, n)),
        ]

    def traffic(self) -> list[Column]:
        tiers = ["host-up", "host-down", "leaf-up", "leaf-down"]
        n = 360
        carried = self.random.lognormal(20, 0.8, 4 * n)
        return [
            column("time_s", "f64", np.repeat(10.0 * np.arange(1, n + 1), 4)),
            column("tier", "str", tiers * n),
            column("bytes", "u64", carried),
        ]

    def power(self) -> list[Column]:
        tiers = ["host-up", "host-down", "leaf-up", "leaf-down"]
        n = 360 if self.core.sleeping else 0
        asleep = self.random.uniform(0.2, 0.9, 4 * n)
        states = {"awake": 0.6, "falling_asleep": 0.3, "waking": 0.1}
        return [
            column("time_s", "f64", np.repeat(10.0 * np.arange(1, n + 1), 4)),
            column("tier", "str", tiers * n),
            column("energy_j", "f64", 50 * (1 - 0.9 * asleep)),
            column("energy_always_on_j", "f64", np.full(4 * n, 50.0)),
            column("energy_ideal_j", "f64", 50 * (1 - 0.9 * np.minimum(1, asleep + 0.08))),
            *[
                column(f"{state}_s", "f64", 100 * asleep if state == "asleep" else left)
                for state in ("awake", "falling_asleep", "asleep", "waking")
                for left in [100 * (1 - asleep) * states.get(state, 0)]
            ],
        ]

    def latency(self) -> list[Column]:
        upper = np.geomspace(8, 20_000, 60)
        rows = [(c, k, u) for c in CLASSES for k in ("data", "ack") for u in upper]
        middle = {("batch", "data"): 300, ("service", "data"): 60}
        weight = [1e5 * np.exp(-(np.log(u / middle.get((c, k), 40)) ** 2)) for c, k, u in rows]
        return [
            column("class", "str", [row[0] for row in rows]),
            column("kind", "str", [row[1] for row in rows]),
            column("upper_us", "f64", [row[2] for row in rows]),
            column("count", "u64", weight),
        ]

    def tcp_trace(self) -> list[Column]:
        return [
            column("time_s", "f64", [0.1, 0.2, 0.3]),
            column("connection", "u64", [4] * 3),
            column("src", "u32", [0] * 3),
            column("dst", "u32", [1] * 3),
            column("cwnd_bytes", "u64", [14_480, 28_960, 14_480]),
            column("ssthresh_bytes", "i64", [-1, -1, 14_480]),
            column("srtt_us", "f64", [0.0, 120.0, 130.0]),
            column("rto_us", "f64", [200_000.0] * 3),
            column("in_flight_bytes", "u64", [0, 14_480, 26_064]),
            column("phase", "str", ["slow-start", "slow-start", "recovery"]),
        ]

    def lpi(self) -> list[Column]:
        n = 50 if self.core.sleeping else 0
        begin = np.tile(np.arange(n), 2) * 1.0
        return [
            column("link", "u32", np.repeat([1, 3], n)),
            column("falls_asleep_s", "f64", begin),
            column("asleep_s", "f64", begin + 0.000182),
            column("wakes_s", "f64", begin + 0.8),
            column("awake_s", "f64", begin + 0.8000165),
        ]

    def rounds(self) -> list[Column]:
        return [
            column("workload", "str", []),
            column("round", "u32", []),
            column("started_s", "f64", []),
            column("finished_s", "f64", []),
            column("bytes", "u64", []),
        ]

    def mpi_ranks(self) -> list[Column]:
        return [
            column("workload", "str", []),
            column("rank", "u32", []),
            column("host", "u32", []),
            column("finished_s", "f64", []),
            column("compute_s", "f64", []),
            column("sleep_s", "f64", []),
            column("send_s", "f64", []),
            column("receive_s", "f64", []),
            column("wait_s", "f64", []),
            column("collective_s", "f64", []),
            column("messages", "u64", []),
            column("bytes", "u64", []),
            column("collective_messages", "u64", []),
            column("collective_bytes", "u64", []),
            column("collectives", "u64", []),
        ]

    def mpi_states(self) -> list[Column]:
        return [
            column("workload", "str", []),
            column("rank", "u32", []),
            column("state", "str", []),
            column("call", "str", []),
            column("began_s", "f64", []),
            column("ended_s", "f64", []),
        ]

    def mpi_messages(self) -> list[Column]:
        return [
            column("workload", "str", []),
            column("from", "u32", []),
            column("to", "u32", []),
            column("tag", "i64", []),
            column("call", "str", []),
            column("bytes", "u64", []),
            column("protocol", "str", []),
            column("over", "str", []),
            column("sent_s", "f64", []),
            column("matched_s", "f64", []),
            column("arrived_s", "f64", []),
            column("received_s", "f64", []),
        ]
