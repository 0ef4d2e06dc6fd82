"""Placements of CG's ranks on hosts, and the routes that suit each of them best.

    python papers/dcb/placements.py    # writes scenarios/cg: hosts-N.txt and routes-N.csv

A placement is a permutation of the 128 hosts, drawn by its number. Routes are those that keep the
fullest link between switches lowest for all phases of the program together (eastwest routes):
every pair of hosts that exchanges a part of a vector has one. What is printed: pairs, the load of
the fullest link in messages of 750 KB, and the least that is possible.
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
#: Bytes of the smallest message that is given a route, and of a message of a phase.
LEAST_BYTES, MESSAGE_BYTES = 100_000, 750_000
RATE_BPS = 10e9


def traffic(number: int) -> dict[tuple[str, str], float]:
    """Bits per second between hosts, of the messages of a run without congestion."""
    run = ew.run(HERE / "cg-star.toml", set={"workload.cg.hosts_file": f"cg/hosts-{number}.txt"})
    hosts = dict(run.table("mpi_ranks").select("rank", "host").iter_rows())
    large = run.table("mpi_messages").filter(
        pl.col("bytes") >= LEAST_BYTES, pl.col("from") != pl.col("to")
    )
    sums = large.group_by("from", "to").agg(pl.col("bytes").sum()).sort("from", "to")
    # a link that has one message is full
    return {
        (f"h{hosts[a]}", f"h{hosts[b]}"): bytes_ / MESSAGE_BYTES * RATE_BPS
        for a, b, bytes_ in sums.iter_rows()
    }


def main() -> None:
    """Write all of it."""
    source = load_source(str(HERE / "cg.toml"))
    text, base = source.text, str(source.base_dir)
    shape = core.topology(text, base, str(shipped.DATA), overrides(text, None))
    net = coloured.network(shape)
    (HERE / "cg").mkdir(exist_ok=True)
    for number in range(1, PLACEMENTS + 1):
        hosts = list(range(HOSTS))
        random.Random(number).shuffle(hosts)
        write_whole(HERE / "cg" / f"hosts-{number}.txt", "".join(f"h{h}\n" for h in hosts).encode())
        found = coloured.colour(net, traffic(number), 60)
        write_whole(HERE / "cg" / f"routes-{number}.csv", found.csv().encode())
        print(number, len(found.routes), found.largest_load, found.least_possible, flush=True)


if __name__ == "__main__":
    main()
