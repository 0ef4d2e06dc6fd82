"""Draws placements of CG's ranks on hosts, and computes the best routes for each placement.

    python papers/dcb/placements.py  # writes scenarios/cg: hosts-N.txt, routes-N.csv, phases-N.csv

A placement is a permutation of the 128 hosts, drawn by its number as seed. Routes are those for
which the load of the fullest link between switches is smallest (eastwest routes). There are two
kinds: for all phases of the program together (routes-N.csv), and for each phase alone
(phases-N.csv). Every pair of hosts that exchanges a part of a vector has a route. No pair does so
in two phases, so a route for the pair is a route for the phase. The output has the pairs, the load
of the fullest link in messages of 750 KB, and the smallest possible load.
"""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl

import eastwest as ew
from eastwest import core, shipped
from eastwest.cli.simulate import overrides
from eastwest.files import write_whole
from eastwest.run import load_source
from eastwest.topologies import coloured

HERE = Path(__file__).resolve().parent / "scenarios"
PLACEMENTS, HOSTS = 5, 128
#: Bytes of the smallest message that gets a route, and bytes of a message of a phase.
LEAST_BYTES, MESSAGE_BYTES = 100_000, 750_000
RATE_BPS = 10e9


Matrix = dict[tuple[str, str], float]


def messages(number: int) -> pl.DataFrame:
    """Return the large messages of a run without congestion: hosts, bytes, and phase of each.

    The phase is the position of the message among all messages of its sender.
    """
    run = ew.run(HERE / "cg-star.toml", set={"workload.cg.hosts_file": f"cg/hosts-{number}.txt"})
    hosts = dict(run.table("mpi_ranks").select("rank", "host").iter_rows())
    large = run.table("mpi_messages").filter(
        pl.col("bytes") >= LEAST_BYTES, pl.col("from") != pl.col("to")
    )
    ends = [pl.col(end).replace_strict(hosts).alias(end) for end in ("from", "to")]
    phase = pl.col("sent_s").rank("ordinal").over("from").alias("phase")
    return large.sort("from", "to").select(*ends, "bytes", phase)


def traffic(large: pl.DataFrame) -> Matrix:
    """Return the bits per second between hosts.

    The rate is chosen so that one message fills a link.
    """
    sums = large.group_by("from", "to", maintain_order=True).agg(pl.col("bytes").sum())
    return {
        (f"h{a}", f"h{b}"): bytes_ / MESSAGE_BYTES * RATE_BPS for a, b, bytes_ in sums.iter_rows()
    }


def by_phase(net: coloured.Network, large: pl.DataFrame) -> coloured.Coloured:
    """Return the routes of all phases, each computed alone.

    No pair may have messages in two phases.
    """
    found = []
    for _, part in large.sort("phase", maintain_order=True).group_by("phase", maintain_order=True):
        found.append(coloured.colour(net, traffic(part), 60))
    routes = {pair: via for one in found for pair, via in one.routes.items()}
    if len(routes) < sum(len(one.routes) for one in found):
        raise ValueError("a pair of hosts has messages in two phases: it has one route only")
    return coloured.Coloured(
        routes,
        max(one.largest_load for one in found),
        max(one.least_possible for one in found),
        all(one.proven for one in found),
    )


def main() -> None:
    """Write the hosts and routes of all placements."""
    source = load_source(str(HERE / "cg.toml"))
    text, base = source.text, str(source.base_dir)
    shape = core.topology(text, base, str(shipped.DATA), overrides(text, None))
    net = coloured.network(shape)
    (HERE / "cg").mkdir(exist_ok=True)
    for number in range(1, PLACEMENTS + 1):
        hosts = list(range(HOSTS))
        random.Random(number).shuffle(hosts)
        write_whole(HERE / "cg" / f"hosts-{number}.txt", "".join(f"h{h}\n" for h in hosts).encode())
        large = messages(number)
        ways = {"routes": coloured.colour(net, traffic(large), 60), "phases": by_phase(net, large)}
        for name, found in ways.items():
            write_whole(HERE / "cg" / f"{name}-{number}.csv", found.csv().encode())
            loads = (found.largest_load, found.least_possible)
            print(name, number, len(found.routes), *loads, flush=True)


if __name__ == "__main__":
    main()
