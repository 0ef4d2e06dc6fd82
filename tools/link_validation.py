"""Measures the error of link mode against packet mode on open-loop scenarios.

``python tools/link_validation.py`` runs all scenarios of the set in packet mode, link mode and flow
mode, one thread each, and writes ``crates/sim/src/link_validation.json``, which every result of
link mode quotes, and the table of ``docs/validation/link-mode.md``. The scenarios ``dev`` were used
to develop the mode. The others were drawn with seeds: ``held`` judged the first rule of the mode,
``new`` judges the present one and was measured once, at the end. Names select scenarios; the others
keep their earlier results.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import eastwest as ew
from eastwest.files import write_whole

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "crates" / "sim" / "src" / "link_validation.json"
PAGE = ROOT / "docs" / "validation" / "link-mode.md"
#: Lines of docs/validation/link-mode.md between which this program writes.
START, END = "<!-- measured: start -->", "<!-- measured: end -->"
#: Random seeds and numbers of the held-out scenarios, by the names of their sets.
DRAWN = {"held": (21, 14), "new": (47, 24)}
#: Losses dominate a run if more than this share of its simulated flows wait for a timeout.
LOSS_DOMINATED = 0.005
#: Largest error of the 99th percentile that counts as agreement.
GOAL = 0.15

#: Shapes of fabrics: text and description.
SHAPES = {
    "ls32": (
        'kind = "leaf-spine"\nleaves = 4\nhosts_per_leaf = 8\nspines = 2\n',
        "4 × 8 leaf–spine",
    ),
    "ls64": (
        'kind = "leaf-spine"\nleaves = 8\nhosts_per_leaf = 8\nspines = 4\n',
        "8 × 8 leaf–spine",
    ),
    "ft16": ('kind = "fat-tree"\nk = 4\n', "fat tree k = 4"),
    "ft54": ('kind = "fat-tree"\nk = 6\n', "fat tree k = 6"),
    "ls1024": (
        'kind = "leaf-spine"\nleaves = 32\nhosts_per_leaf = 32\nspines = 16\n',
        "32 × 32 leaf–spine",
    ),
}
MARKING = '{ kind = "step-marking", threshold = "65 packets", limit = "1000 packets" }'
#: Queues and TCP: queue of switches, queue of hosts (empty: the default), settings, description.
ENDS = {
    "dctcp": (MARKING, MARKING, '[tcp]\ncongestion = "dctcp"\necn = "on"\n', "DCTCP, marking 65"),
    "switches": (MARKING, "", '[tcp]\ncongestion = "dctcp"\necn = "on"\n', "DCTCP, hosts unmarked"),
    "window": (
        '{ kind = "drop-tail", limit = "1000 packets" }',
        "",
        '[tcp]\nmax_window = "64 KB"\n',
        "drop-tail 1000, windows of 64 KB",
    ),
    "deep": ('{ kind = "drop-tail", limit = "1000 packets" }', "", "", "drop-tail 1000, plain"),
    "linux": (
        '{ kind = "drop-tail", limit = "1000 packets" }',
        "",
        '[tcp]\nprofile = "linux"\n',
        "drop-tail 1000, linux",
    ),
    "shallow": ('{ kind = "drop-tail", limit = "100 packets" }', "", "", "drop-tail 100, plain"),
}


@dataclass(frozen=True)
class Case:
    """A scenario of the set: name, description, text, and whether it was used in development."""

    name: str
    what: str
    text: str
    held_out: bool


@dataclass(frozen=True)
class Side:
    """Results of one scenario in one mode: times of single flows in µs, and CPU time."""

    p50_us: float
    p99_us: float
    mean_us: float
    count: int
    cpu_s: float
    digest: str


@dataclass(frozen=True)
class Row:
    """Results of one scenario in all modes."""

    name: str
    what: str
    held_out: bool
    packet: Side
    links: Side
    flow: Side
    #: Share of simulated cables, and of simulated flows that waited for a timeout.
    simulated: float
    timeouts: float

    def error(self, of: str, mode: str = "links") -> float:
        """Return the error of a statistic (``p50``, ``p99``, ``mean``) of a mode, as a share."""
        measured = getattr(getattr(self, mode), f"{of}_us")
        return float(measured / getattr(self.packet, f"{of}_us") - 1)

    @property
    def loses(self) -> bool:
        """Return whether link mode calls the run loss-dominated."""
        return self.timeouts > LOSS_DOMINATED


def scenario(
    name: str, shape: str, rates: tuple[int, int], ends: str, traffic: tuple[str, str], seed: int
) -> tuple[str, str]:
    """Return the text and the description of a scenario; ``traffic`` has text and description."""
    (fabric, shaped), (queue, host_queue, tcp, named) = SHAPES[shape], ENDS[ends]
    own = f"host_queue = {host_queue}\n" if host_queue else ""
    text = (
        f'schema = 1\nname = "{name}"\nseed = {seed}\n[fabric]\n{fabric}'
        f'host_rate = "{rates[0]} Gbit/s"\nuplink_rate = "{rates[1]} Gbit/s"\n'
        f'queue = {queue}\n{own}{tcp}[[workload]]\nname = "open"\n{traffic[0]}'
    )
    return text, f"{traffic[1]}; {shaped}, {rates[0]}/{rates[1]} Gbit/s, {named}"


def poisson(sizes: str, load: float, flows: int) -> tuple[str, str]:
    """Return Poisson flows at a load: text and description."""
    text = f'kind = "poisson"\nload = {load}\nsizes = "{sizes}"\nflows = {flows}\n'
    return text, f"Poisson {sizes}, load {load}"


def pattern(kind: str, kb: int) -> tuple[str, str]:
    """Return a pattern all of whose flows start at once: text and description."""
    more = {"stride": "stride = 5\ncount = 3\n", "all-to-all": "", "permutation": ""}[kind]
    text = f'kind = "{kind}"\n{more}bytes = "{kb} KB"\nstart_window = "1 ms"\n'
    return text, f"{kind} {kb} KB at once"


def cases() -> list[Case]:
    """Return all scenarios of the set."""
    developed: list[tuple[str, tuple[int, int], str, tuple[str, str], int]] = [
        ("ls32", (10, 40), "dctcp", poisson("web-search", 0.5, 2000), 3),
        ("ls32", (10, 20), "dctcp", poisson("hadoop", 0.3, 6000), 4),
        ("ls32", (10, 40), "window", poisson("web-search", 0.5, 2000), 3),
        ("ft16", (10, 10), "dctcp", poisson("100 KB", 0.6, 6000), 8),
        ("ft16", (10, 10), "window", poisson("100 KB", 0.5, 6000), 8),
        ("ls64", (10, 20), "deep", poisson("100 KB", 0.6, 8000), 6),
        ("ls64", (10, 40), "dctcp", poisson("web-search", 0.6, 6000), 12),
        ("ls64", (10, 40), "dctcp", poisson("hadoop", 0.5, 20000), 13),
        ("ls32", (10, 40), "switches", poisson("web-search", 0.5, 2000), 3),
        ("ls32", (10, 40), "linux", poisson("web-search", 0.3, 2000), 7),
        ("ft16", (10, 10), "deep", poisson("hadoop", 0.3, 8000), 5),
        ("ft16", (10, 10), "shallow", poisson("web-search", 0.3, 2000), 9),
        ("ls32", (10, 40), "dctcp", pattern("permutation", 1000), 2),
        ("ls32", (10, 10), "window", pattern("all-to-all", 100), 2),
    ]
    all_cases = []
    for number, given in enumerate(developed, 1):
        text, what = scenario(f"dev-{number}", *given)
        all_cases.append(Case(f"dev-{number}", what, text, held_out=False))
    for of, (seed, count) in DRAWN.items():
        chance = random.Random(seed)
        for number in range(1, count + 1):
            text, what = scenario(f"{of}-{number}", *draw(chance))
            all_cases.append(Case(f"{of}-{number}", what, text, held_out=True))
    text, what = scenario(
        "large", "ls1024", (10, 40), "dctcp", poisson("web-search", 0.5, 60000), 1
    )
    return [*all_cases, Case("large", what, text, held_out=True)]


def draw(
    chance: random.Random,
) -> tuple[str, tuple[int, int], str, tuple[str, str], int]:
    """Return the arguments of a random held-out scenario."""
    shape = chance.choice(["ls32", "ls64", "ft16", "ft54"])
    uplink = chance.choice([10] if shape.startswith("ft") else [10, 20, 40])
    ends = chance.choice(["dctcp", "dctcp", "dctcp", "window", "window", "deep", "linux"])
    load = chance.choice([0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
    if uplink == 10 and not shape.startswith("ft"):
        load = chance.choice([0.05, 0.1])  # eight hosts share two or four uplinks
    sizes, flows = chance.choice([("web-search", 4000), ("hadoop", 12000), ("100 KB", 8000)])
    traffic = poisson(sizes, load, flows)
    if chance.random() < 0.2:
        traffic = pattern(chance.choice(["stride", "permutation"]), chance.choice([200, 2000]))
    return shape, (10, uplink), ends, traffic, chance.randrange(1, 1000)


def side(case: Case, fidelity: str, folder: Path) -> tuple[Side, dict[str, float]]:
    """Run a scenario in a mode; return its times, and the counts of link mode."""
    home = folder / case.name / fidelity
    home.mkdir(parents=True)
    file = home / f"{case.name}.toml"
    file.write_text(case.text, "utf-8")
    summary = ew.run(file, set={"fidelity": fidelity}, out=home / "result").summary
    fct, count = summary["flows"]["fct_us"], summary["flows"]["completed"]
    cpu_s, digest = round(summary["cpu_s"], 2), summary["digest"]
    times = Side(fct["p50"], fct["p99"], fct["mean"], count, cpu_s, digest)
    return times, summary.get("flow_mode", {})


def measure(case: Case, folder: Path) -> Row:
    """Run a scenario in all modes."""
    links, mode = side(case, "links", folder)
    (packet, _), (flow, _) = side(case, "packet", folder), side(case, "flow", folder)
    simulated = round(mode["simulated_links"] / mode["links"], 3)
    timeouts = round(mode["flows_with_timeouts"] / mode["simulated_flows"], 4)
    return Row(case.name, case.what, case.held_out, packet, links, flow, simulated, timeouts)


def known() -> dict[str, Row]:
    """Return the earlier results by scenario."""
    rows = json.loads(DATA.read_text("utf-8"))["scenarios"] if DATA.exists() else []
    modes = ("packet", "links", "flow")

    def row(values: dict[str, Any]) -> Row:
        sides = {mode: Side(**values[mode]) for mode in modes}
        return Row(**{**values, **sides})

    return {r["name"]: row(r["row"]) for r in rows}


def main() -> int:
    """Measure the scenarios that the command line names; write the data file and the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help="names of scenarios or sets; all without")
    parser.add_argument("--show", metavar="NAME", help="print the text of a scenario and stop")
    options = parser.parse_args()
    if options.show:
        print(next(case.text for case in cases() if case.name == options.show))
        return 0
    before, rows = known(), []
    with TemporaryDirectory() as folder:
        for case in cases():
            if options.only and not any(case.name.startswith(name) for name in options.only):
                rows += [before[case.name]] if case.name in before else []
                continue
            row = measure(case, Path(folder))
            rows.append(row)
            errors = " ".join(f"{of} {row.error(of):+.1%}" for of in ("p50", "p99", "mean"))
            print(
                f"{row.name:8} {errors} (flow mode p99 {row.error('p99', 'flow'):+.0%}) timeouts "
                f"{row.timeouts:.2%} links {row.simulated:.0%} cpu {row.packet.cpu_s} "
                f"{row.links.cpu_s}  {row.what}",
                flush=True,
            )
    write(rows)
    return 0


def write(rows: list[Row]) -> None:
    """Write the data file and the table of the page."""
    write_whole(DATA, (json.dumps(as_data(rows), indent=1) + "\n").encode())
    page = PAGE.read_text("utf-8")
    head, rest = page.split(START)
    tail = rest.split(END)[1]
    write_whole(PAGE, f"{head}{START}\n\n{table(rows)}\n{END}{tail}".encode())


def as_data(rows: list[Row]) -> dict[str, object]:
    """Return all results, with the errors that each result of the mode quotes, as JSON values."""

    def errors(of: list[Row]) -> dict[str, object]:
        absolute = {q: [abs(r.error(q)) for r in of] for q in ("p50", "p99", "mean")}
        found: dict[str, object] = {"scenarios": len(of)}
        for q, values in absolute.items():
            found[f"{q}_typical"] = round(statistics.median(values), 4) if of else None
            found[f"{q}_worst"] = round(max(values), 4) if of else None
        found["p99_in_goal"] = sum(error <= GOAL for error in absolute["p99"])
        return found

    return {
        "drawn": DRAWN,
        "loss_dominated_above": LOSS_DOMINATED,
        "open_loop": errors([r for r in rows if not r.loses]),
        **{
            of: errors([r for r in rows if not r.loses and r.name.startswith(of)])
            for of in ("dev", *DRAWN)
        },
        "loss_dominated": errors([r for r in rows if r.loses]),
        "scenarios": [
            {
                "name": r.name,
                "row": asdict(r),
                **{f"{q}_error": round(r.error(q), 4) for q in ("p50", "p99", "mean")},
            }
            for r in rows
        ],
    }


def table(rows: list[Row]) -> str:
    """Return the table of the page."""
    lines = [
        "| scenario | what | packet: median, p99 (µs) | link mode: error of median | of p99 "
        "| of mean | flow mode: error of p99 | flows with timeouts | simulated links "
        "| CPU (s): packet, link mode |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        name = f"{r.name} (loss)" if r.loses else r.name
        lines.append(
            f"| {name} | {r.what} | {r.packet.p50_us:.4g}, {r.packet.p99_us:.4g} "
            f"| {r.error('p50'):+.1%} | {r.error('p99'):+.1%} | {r.error('mean'):+.1%} "
            f"| {r.error('p99', 'flow'):+.0%} | {r.timeouts:.2%} | {r.simulated:.0%} "
            f"| {r.packet.cpu_s:.1f}, {r.links.cpu_s:.1f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
