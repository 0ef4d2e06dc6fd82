"""Draws transactions of a service with two stages whose load doubles after two thirds of a run.

    python papers/metric_selection/transactions.py   # writes scenarios/stages: load-N, equal-N

A table is drawn with its number as seed: users arrive at random, 50 per second until 20 s, and 100
per second from then to 30 s. The web server computes, queries the database, and computes again
before it answers; the database computes before it answers. In ``load-N.tsv`` all computing times
are exponential and all pages have one size. In ``equal-N.tsv`` computing times are constant and
pages have lognormal sizes, because web pages have a heavy tail (Crovella and Bestavros 1997). The
sizes of the database's answers are exponential in both.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from eastwest.files import write_whole

HERE = Path(__file__).resolve().parent / "scenarios" / "stages"
TABLES = 5
#: Arrivals per second from each time in s on; end of the arrivals in s.
RATES, END_S = ((0.0, 50.0), (20.0, 100.0)), 30.0
#: Mean computing times in s: the web server before and after its query, and the database.
BEFORE_S, AFTER_S, QUERY_S = 0.008, 0.016, 0.008
#: Bytes of messages. The size of the database's answer is a mean; no message is smaller than the
#: last number.
REQUEST, ANSWER, QUERY, ROWS, LEAST = 1600, 8000, 1600, 20_000, 200
#: Standard deviation of the natural logarithm of page sizes.
SIGMA = 1.5

COLUMNS = "transaction call parent start_s component request_bytes response_bytes gap_s rest_s"


def arrivals(random: np.random.Generator) -> list[float]:
    """Return the times at which users send a request, in s."""
    ends = [start for start, _ in RATES[1:]] + [END_S]
    found: list[float] = []
    for (start, rate), end in zip(RATES, ends, strict=True):
        count = random.poisson(rate * (end - start))
        found += sorted(random.uniform(start, end, count).tolist())
    return found


def table(number: int, equal: bool) -> str:
    """Return the table of calls drawn with this number as seed.

    With ``equal``, computing times are constant.
    """
    random = np.random.default_rng([number, 2] if equal else number)
    means = (BEFORE_S, AFTER_S, QUERY_S)
    lines = [COLUMNS.replace(" ", "\t")]
    for name, start in enumerate(arrivals(random)):
        before, after, query = means if equal else (random.exponential(mean) for mean in means)
        rows = max(LEAST, round(random.exponential(ROWS)))
        tail = random.lognormal(-(SIGMA**2) / 2, SIGMA) if equal else 1.0
        page = max(LEAST, round(ANSWER * tail))
        calls = (
            (name, 0, "", f"{start:.6f}", "web", REQUEST, page, 0, f"{after:.6f}"),
            (name, 1, 0, "", "database", QUERY, rows, f"{before:.6f}", f"{query:.6f}"),
        )
        lines += ["\t".join(map(str, call)) for call in calls]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the tables of all numbers."""
    HERE.mkdir(exist_ok=True)
    for number in range(1, TABLES + 1):
        for name, equal in (("load", False), ("equal", True)):
            packed = gzip.compress(table(number, equal).encode(), 9, mtime=0)
            write_whole(HERE / f"{name}-{number}.tsv.gz", packed)


if __name__ == "__main__":
    main()
