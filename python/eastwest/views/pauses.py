"""Pauses by PFC over time: which ports were paused, how long, and in which order."""

from __future__ import annotations

import numpy as np
import polars as pl

from eastwest.results import Result
from eastwest.units import clean, plural, span
from eastwest.views.series import Floats, in_progress


def sound(result: Result) -> pl.DataFrame:
    """Return the rows of the table ``pauses`` with valid times, and a column ``port``.

    ``port`` is the name of the paused port.
    """
    times = [pl.col(c).is_between(0, 1e9) for c in ("began_s", "until_s")]
    rows = result.pauses.filter(*times, pl.col("began_s") <= pl.col("until_s"))
    names = result.links.select("link", pl.col("name").alias("port")).unique("link")
    unknown = pl.format("link {}", pl.col("link"))
    return rows.join(names, on="link", how="left").with_columns(pl.col("port").fill_null(unknown))


def places(pauses: pl.DataFrame) -> pl.DataFrame:
    """Return one row for each paused port and priority, in the order of their first pauses.

    ``pauses`` are rows from :func:`sound`. Columns: ``link``, ``priority``, ``port``, ``pauses``
    (their number), ``paused_s`` (sum), ``first_s`` (begin of the first) and ``longest_s``.
    """
    long = pl.col("until_s") - pl.col("began_s")
    grouped = pauses.group_by("link", "priority").agg(
        port=pl.col("port").first(),
        pauses=pl.len(),
        paused_s=long.sum(),
        first_s=pl.col("began_s").min(),
        longest_s=long.max(),
    )
    return grouped.sort("first_s", "link", "priority")


def longest(found: pl.DataFrame, most: int) -> pl.DataFrame:
    """Return the ``most`` rows of :func:`places` with the most time in pause, by first pause."""
    kept = found.sort("paused_s", descending=True, maintain_order=True).head(most)
    return kept.sort("first_s", "link", "priority")


def shares(pauses: pl.DataFrame, rows: pl.DataFrame, edges: Floats) -> Floats:
    """Return an array (ports and priorities, intervals): share of time in pause, 0 to 1.

    ``pauses`` are rows from :func:`sound`, ``rows`` those of :func:`places` to compute; ``edges``
    are the borders of the intervals in simulated s.
    """
    parts = pauses.partition_by("link", "priority", as_dict=True)
    own = (parts[key] for key in rows.select("link", "priority").iter_rows())
    paused = [in_progress(p["began_s"].to_numpy(), p["until_s"].to_numpy(), edges) for p in own]
    return np.clip(np.array(paused), 0, 1)


def names(rows: pl.DataFrame, *, several: bool) -> list[str]:
    """Return the name of the port in each row of :func:`places`.

    With ``several`` (several priorities), the priority follows the name in parentheses.
    """
    return [
        clean(port, 40) + (f" ({priority})" if several else "")
        for port, priority in rows.select("port", "priority").iter_rows()
    ]


def sentence(found: pl.DataFrame) -> str:
    """Return a sentence on all rows of :func:`places`: pauses, ports, time, and the first pause."""
    first = found.row(0, named=True)
    ports = found["link"].n_unique()
    pauses = int(found["pauses"].sum())
    return (
        f"{plural(pauses, 'pause')} at {plural(ports, 'port')}, "
        f"{span(float(found['paused_s'].sum()))} in total; the first at "
        f"{clean(first['port'], 40)} after {span(first['first_s'])}"
    )
