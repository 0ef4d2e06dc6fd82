"""Tables in terminals and pipes: no cell is cut in a pipe, long names of metrics are broken."""

from __future__ import annotations

import io

from rich.console import Console

from eastwest.cli.screen import headed, heading, print_table

CELLS = [
    "+12.3 ± 4.5 %",
    "1,234.5 packets",
    "12.3 Gbit/s",
    "999 µs (≤ 1.75 s)",
    "0.5 kWh",
    "x" * 40,
]


def printed(terminal: bool) -> str:
    screen = Console(file=io.StringIO(), width=80, force_terminal=terminal, color_system=None)
    table = headed("point", *(f"column {number}" for number in range(len(CELLS))), left=1)
    table.add_row("a", *CELLS)
    print_table(screen, table)
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue()


def test_a_pipe_has_all_cells_whole() -> None:
    assert all(cell in printed(terminal=False) for cell in CELLS)
    assert max(map(len, printed(terminal=True).splitlines())) <= 80


def test_a_long_name_of_a_metric_is_broken_after_dots() -> None:
    assert heading("flows.fct_us.mean") == "flows.fct_us.mean"
    long = "workloads.service.exchange_us.p99"
    assert heading(long) == "workloads.service.\nexchange_us.p99"
    assert heading(long).replace("\n", "") == long
    assert heading("x" * 30) == "x" * 30
