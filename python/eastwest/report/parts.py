"""Chart of the parts of flows' completion times, such as queueing."""

from __future__ import annotations

from typing import Any

from eastwest import units
from eastwest.report.draw import Chart, Scale
from eastwest.views.facts import Facts
from eastwest.views.flows import drawn_parts, largest_part, parts_by_size

#: Half the width of a bar; the distance between the middles of two bars is 1.
_HALF = 0.32


def parts(facts: Facts) -> Chart | None:
    """Return a chart of the mean parts of flows' completion times, with a bar for each size.

    Returns None if the run did not record ``measure.flow_parts``.
    """
    table = parts_by_size(facts.result)
    if table.height == 0:
        return None
    names = table["size"].to_list()
    drawn = drawn_parts(table)
    cores = "; cores: waiting for cores of hosts, and their work" if "cores" in drawn else ""
    chart = Chart(
        "flow-parts",
        largest_part(table),
        "Mean shares of the completion time of flows, by their size. Injection: "
        "waiting in hosts before departure; queueing: waiting in switches; flight: "
        "transmission, propagation and processing; retransmission: from the first "
        f"transmission of lost data to its retransmission{cores}.",
        Scale("linear", 0.0, len(names), "size of the flow"),
        Scale("linear", 0.0, 1.0, "share of completion time", "percent"),
        legend=drawn,
        key="piece",
    )
    rows: list[list[str]] = []
    cells: list[list[list[Any]]] = []
    for place, row in enumerate(table.iter_rows(named=True)):
        below = 0.0
        cell: list[list[Any]] = []
        for number, part in enumerate(drawn):
            share = float(row[f"{part}_share"])
            ends = [place + 0.5 - _HALF, place + 0.5 + _HALF]
            (left, right), (low, top) = chart.points(ends, [below, below + share])
            d = f"M{left:.0f} {low:.1f}H{right:.0f}V{top:.1f}H{left:.0f}Z"
            chart.add(f"piece s{number}", d, number)
            below += share
            tail = units.span(row[f"{part}_us_p99"] / 1e6)
            cell.append([part, f"{units.percent(share)}, p99 {tail}", number])
        cells.append(cell)
        rows.append(
            [
                row["size"],
                units.count(row["flows"]),
                units.span(row["completion_us"] / 1e6),
                *(units.percent(row[f"{part}_share"]) for part in drawn),
                *(units.span(row[f"{part}_us_p99"] / 1e6) for part in drawn),
            ]
        )
    chart.cells(names, names, cells)
    chart.table = (
        ["size", "flows", "time, median", *drawn, *(f"{part}, p99" for part in drawn)],
        rows,
    )
    return chart
