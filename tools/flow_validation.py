"""Measures the error of the flow-level mode against packet mode on committed scenarios.

``python tools/flow_validation.py`` runs S2, S3, the demo and twenty scenarios drawn with a seed as
flows, compares them with packet mode and writes ``crates/sim/src/flow_validation.json``, which
every result of the mode quotes, and the table and figure of ``docs/validation/flow-mode.md``.
Results of packet mode are taken from that file; ``--packets`` measures them again (some minutes).
Names select scenarios. The comparison is of times of jobs where a scenario has jobs, else of flows.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from matplotlib.figure import Figure

import eastwest as ew
from eastwest.files import write_whole
from eastwest.plot import picture
from eastwest.plot.style import BLUE, INK, ORANGE, style

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "crates" / "sim" / "src" / "flow_validation.json"
PAGE = ROOT / "docs" / "validation" / "flow-mode.md"
PLOT = ROOT / "docs" / "images" / "flow-mode.svg"
#: Lines of docs/validation/flow-mode.md between which this program writes.
START, END = "<!-- measured: start -->", "<!-- measured: end -->"
#: Random seed and number of the drawn scenarios.
SEED, DRAWN = 8, 20
#: Losses dominate a run if more than this share of flow starts make a queue overflow.
LOSS_DOMINATED = 0.05


@dataclass(frozen=True)
class Side:
    """Results of one scenario in one mode."""

    p50_s: float
    p99_s: float
    count: int
    cpu_s: float
    digest: str


@dataclass(frozen=True)
class Row:
    """Results of one scenario in both modes."""

    name: str
    what: str
    of: str
    packet: Side
    flow: Side
    overflowing: float

    @property
    def p50_error(self) -> float:
        """Return the error of the median time, as a share of packet mode's median."""
        return self.flow.p50_s / self.packet.p50_s - 1

    @property
    def p99_error(self) -> float:
        """Return the error of the 99th percentile, as a share of packet mode's 99th percentile."""
        return self.flow.p99_s / self.packet.p99_s - 1

    @property
    def loses(self) -> bool:
        """Return whether losses dominate the run in packet mode."""
        return self.overflowing > LOSS_DOMINATED


@dataclass(frozen=True)
class Drawn:
    """A scenario of the set: name, one line of description, text."""

    name: str
    what: str
    text: str


def scenarios() -> list[Drawn]:
    """Return all scenarios of the set."""
    shipped = {
        "S2": "incast: 32 senders, 20 rounds, 64 KB",
        "S3": "TeraSort 6.4 GB, 160 nodes, deep drop-tail",
        "demo": "4 h of Facebook 2009 on 20 workers",
    }
    listed = [
        Drawn(name, what, (ROOT / "scenarios" / f"{name.lower()}.toml").read_text("utf-8"))
        for name, what in shipped.items()
    ]
    chance = random.Random(SEED)
    return listed + [draw(number, chance) for number in range(1, DRAWN + 1)]


def draw(number: int, chance: random.Random) -> Drawn:
    """Return a random scenario that packet mode runs in some seconds."""
    fabric, hosts, said = draw_fabric(chance)
    workload, does = draw_workload(chance, hosts)
    tcp, transport = chance.choice(
        [
            ("", "plain"),
            ("", "plain"),
            ('[tcp]\nprofile = "linux"\n', "linux"),
            ('[tcp]\nmin_rto = "10 ms"\n', "10 ms RTO"),
        ]
    )
    if "step-marking" in fabric:
        tcp, transport = '[tcp]\ncongestion = "dctcp"\necn = "on"\n', "DCTCP"
    head = f'schema = 1\nname = "draw-{number}"\nseed = {chance.randrange(1, 1000)}\n'
    text = "\n".join([head, fabric, tcp, workload])
    return Drawn(f"draw-{number}", f"{does}; {said}, {transport}", text)


def draw_fabric(chance: random.Random) -> tuple[str, int, str]:
    """Return a random fabric: its text, its number of hosts, and a description."""
    rate = chance.choice([1, 1, 10])
    queue, named = chance.choice(
        [
            ('{ kind = "drop-tail", limit = "100 packets" }', "drop-tail 100"),
            ('{ kind = "drop-tail", limit = "400 packets" }', "drop-tail 400"),
            ('{ kind = "drop-tail", limit = "2000 packets" }', "drop-tail 2000"),
            ('{ kind = "codel", target = "500 us", interval = "10 ms" }', "CoDel 0.5 ms"),
            ('{ kind = "pie", target = "500 us" }', "PIE 0.5 ms"),
            ('{ kind = "step-marking", threshold = "65 packets" }', "marking 65"),
        ]
    )
    if chance.random() < 0.7:
        leaves, per_leaf, spines = chance.choice([(2, 8, 2), (2, 12, 2), (4, 8, 2), (3, 10, 3)])
        shape = (
            f'kind = "leaf-spine"\nleaves = {leaves}\nhosts_per_leaf = {per_leaf}\n'
            f"spines = {spines}\n"
        )
        hosts, said = leaves * per_leaf, f"{leaves} × {per_leaf} leaf–spine"
        uplink = chance.choice([rate, 4 * rate, 10 * rate])
    else:
        shape, hosts, said = 'kind = "fat-tree"\nk = 4\n', 16, "fat tree k = 4"
        uplink = rate
    text = (
        f"[fabric]\n{shape}"
        f'host_rate = "{rate} Gbit/s"\nuplink_rate = "{uplink} Gbit/s"\nqueue = {queue}\n'
    )
    return text, hosts, f"{said}, {rate}/{uplink} Gbit/s, {named}"


def draw_workload(chance: random.Random, hosts: int) -> tuple[str, str]:
    """Return a random workload of the hosts: its text, and a description."""
    kind = chance.choice(["hadoop", "hadoop", "hadoop", "all-to-all", "poisson", "service"])
    if kind == "hadoop":
        job = chance.choice(["terasort", "sort", "index", "wordcount", "shuffle"])
        size, count = chance.choice([1, 2, 3]), chance.choice([1, 3, 5])
        amount = f'shuffle = "{size} GB"' if job == "shuffle" else f'input = "{size} GB"'
        maps = f"maps = {8 * size}\n" if job == "shuffle" else ""
        text = (
            f'[[workload]]\nname = "hadoop"\nkind = "mapreduce"\nmaster = "h{hosts - 1}"\n'
            f'scheduler = "{chance.choice(["fifo", "fair"])}"\n'
            f'control_class = "control"\n\n[[workload.job]]\nkind = "{job}"\n{amount}\n{maps}'
            f'count = {count}\ninterarrival = "{chance.choice([1, 5])} s"\n'
        )
        return text, f"{count} × {job} {size} GB"
    if kind == "all-to-all":
        kb, parallel = chance.choice([200, 1000, 4000]), chance.choice([2, 5, hosts])
        text = (
            f'[[workload]]\nname = "all"\nkind = "all-to-all"\nbytes = "{kb} KB"\n'
            f"parallel = {parallel}\n"
        )
        return text, f"all-to-all {kb} KB, {parallel} at once"
    if kind == "poisson":
        sizes, load = chance.choice(["web-search", "hadoop"]), chance.choice([0.2, 0.4, 0.6])
        text = (
            f'[[workload]]\nname = "open"\nkind = "poisson"\nload = {load}\nsizes = "{sizes}"\n'
            f"flows = {3000 if sizes == 'web-search' else 10000}\n"
        )
        return text, f"Poisson {sizes}, load {load}"
    half, kb = hosts // 2, chance.choice([2, 64, 256])
    text = (
        f'[[workload]]\nname = "service"\nkind = "service"\nclients = ["h0..h{half - 1}"]\n'
        f'servers = ["h{half}..h{hosts - 1}"]\nmean_gap = "{max(1, kb // 32)} ms"\n'
        f'response_bytes = "{kb} KB"\nrequests = 10000\n'
    )
    return text, f"service {kb} KB"


def summary_of(file: Path, fidelity: str) -> dict[str, Any]:
    """Run a scenario in a mode and return its summary."""
    return ew.run(file, set={"fidelity": fidelity}, out=file.parent / fidelity).summary


def measure(scenario: Drawn, fidelity: str, folder: Path) -> tuple[Side, str, float]:
    """Run a scenario in a mode; return times, their unit of work, and the share of overflows."""
    home = folder / scenario.name / fidelity
    home.mkdir(parents=True)
    file = home / f"{scenario.name}.toml"
    file.write_text(scenario.text, "utf-8")
    summary = summary_of(file, fidelity)
    share = 0.0
    if fidelity == "flow":
        mode = summary["flow_mode"]
        share = mode["overflowing_starts"] / max(1, mode["starts"])
    if summary["jobs"]["count"]:
        of, count, unit_s, times = (
            "jobs",
            summary["jobs"]["count"],
            1.0,
            summary["jobs"]["runtime_s"],
        )
    else:
        flows = summary["flows"]
        of, count, unit_s, times = "flows", flows["completed"], 1e-6, flows["fct_us"]
    cpu_s, digest = round(summary["cpu_s"], 2), summary["digest"]
    return Side(times["p50"] * unit_s, times["p99"] * unit_s, count, cpu_s, digest), of, share


def known() -> dict[str, Row]:
    """Return the earlier results by scenario."""
    if not DATA.exists():
        return {}
    rows = json.loads(DATA.read_text("utf-8")).get("scenarios", [])
    return {
        r["name"]: Row(
            **{k: v for k, v in r.items() if k not in {"packet", "flow", "p50_error", "p99_error"}},
            packet=Side(**r["packet"]),
            flow=Side(**r["flow"]),
        )
        for r in rows
    }


def main() -> int:
    """Measure the scenarios that the command line names; write data file, table and figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help="names of scenarios; all without")
    parser.add_argument("--packets", action="store_true", help="measure packet mode again")
    parser.add_argument("--show", metavar="NAME", help="print the text of a scenario and stop")
    options = parser.parse_args()
    chosen = scenarios()
    if options.show:
        print(next(s.text for s in chosen if s.name == options.show))
        return 0
    before, rows = known(), []
    with TemporaryDirectory() as folder:
        for scenario in chosen:
            old = before.get(scenario.name)
            if options.only and scenario.name not in options.only:
                rows += [old] if old else []
                continue
            started = time.monotonic()
            flow, of, share = measure(scenario, "flow", Path(folder))
            if old and not options.packets:
                packet = old.packet
            else:
                packet = measure(scenario, "packet", Path(folder))[0]
            row = Row(scenario.name, scenario.what, of, packet, flow, round(share, 4))
            rows.append(row)
            print(
                f"{row.name:8} {of:6} p50 {row.p50_error:+7.1%} p99 {row.p99_error:+7.1%} "
                f"overflow {share:6.1%} cpu {packet.cpu_s:7.2f} {flow.cpu_s:7.2f} s  {row.what} "
                f"({time.monotonic() - started:.1f} s)",
                flush=True,
            )
    write(rows)
    return 0


def write(rows: list[Row]) -> None:
    """Write the data file, and the table and figure of the page."""
    write_whole(DATA, (json.dumps(as_data(rows), indent=1) + "\n").encode())
    picture.save(figure(rows), PLOT)
    if PAGE.exists():
        page = PAGE.read_text("utf-8")
        head, rest = page.split(START)
        tail = rest.split(END)[1]
        write_whole(PAGE, f"{head}{START}\n\n{table(rows)}\n{END}{tail}".encode())


def as_data(rows: list[Row]) -> dict[str, object]:
    """Return all results, with the errors that each result of the mode quotes, as JSON values."""

    def errors(of: list[Row]) -> dict[str, object]:
        p50, p99 = [abs(r.p50_error) for r in of], [abs(r.p99_error) for r in of]
        return {
            "scenarios": len(of),
            "p50_typical": round(statistics.median(p50), 4) if of else None,
            "p50_worst": round(max(p50), 4) if of else None,
            "p99_typical": round(statistics.median(p99), 4) if of else None,
            "p99_worst": round(max(p99), 4) if of else None,
        }

    with_errors = [
        {**asdict(r), "p50_error": round(r.p50_error, 4), "p99_error": round(r.p99_error, 4)}
        for r in rows
    ]
    return {
        "seed": SEED,
        "loss_dominated_above": LOSS_DOMINATED,
        "jobs": errors([r for r in rows if r.of == "jobs"]),
        "flows": errors([r for r in rows if r.of == "flows"]),
        "scenarios": with_errors,
    }


def table(rows: list[Row]) -> str:
    """Return the table of the page."""
    lines = [
        "| scenario | what | times of | packet: median, p99 (s) | flow: median, p99 (s) "
        "| error of median | of p99 | overflowing starts | CPU (s): packet, flow |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        lines.append(
            f"| {r.name} | {r.what} | {r.packet.count} {r.of} "
            f"| {r.packet.p50_s:.4g}, {r.packet.p99_s:.4g} "
            f"| {r.flow.p50_s:.4g}, {r.flow.p99_s:.4g} "
            f"| {r.p50_error:+.1%} | {r.p99_error:+.1%} | {r.overflowing:.1%} "
            f"| {r.packet.cpu_s:.1f}, {r.flow.cpu_s:.1f} |"
        )
    return "\n".join(lines) + "\n"


def figure(rows: list[Row]) -> Figure:
    """Return a figure of the errors of median and p99, scenario by scenario."""
    with style():
        fig = Figure(figsize=(8, 0.28 * len(rows) + 1.2))
        ax = fig.add_subplot()
        places = range(len(rows), 0, -1)
        shown = [max(-100.0, min(100.0, 100 * e)) for r in rows for e in (r.p50_error, r.p99_error)]
        ax.axvspan(-15, 15, color=INK, alpha=0.06, lw=0)
        ax.axvspan(-5, 5, color=INK, alpha=0.08, lw=0)
        ax.scatter(shown[::2], places, color=BLUE, label="median", zorder=3)
        ax.scatter(shown[1::2], places, color=ORANGE, marker="D", s=18, label="p99", zorder=3)
        names = [f"{r.name} (loss)" if r.loses else r.name for r in rows]
        ax.set_yticks(list(places), names)
        ax.set_xlabel("flow-level against packet mode, % (shaded: 5 and 15 %)")
        ax.legend(loc="lower right")
    fig.tight_layout()
    return fig


if __name__ == "__main__":
    sys.exit(main())
