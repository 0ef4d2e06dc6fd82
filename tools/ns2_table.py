"""Runs rows of a table of ``papers/ns2_arbiter`` again: ``ns2_table.py TABLE.csv [CASE ...]``.

A row has a case, the tool (``ns2_arbiter`` or ``ns2_reads``) and its arguments. The numbers of both
simulators are written after each case, so the program can be stopped at any time. Without cases,
the rows that have no numbers yet are run.
"""

from __future__ import annotations

import argparse
import csv
import json
import shlex
import subprocess
import sys
from pathlib import Path

GIVEN = ["case", "tool", "arguments"]
TOOLS = ("ns2_arbiter", "ns2_reads")


def numbers(tool: str, arguments: str) -> dict[str, str]:
    """Run one case and return its columns."""
    if tool not in TOOLS:
        raise SystemExit(f"unknown tool {tool!r}; allowed: {', '.join(TOOLS)}")
    program = Path(__file__).parent / f"{tool}.py"
    command = [sys.executable, str(program), *shlex.split(arguments), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    ns2, ours = json.loads(done.stdout)
    sides = (("ns2", ns2), ("ours", ours))
    return {f"{side}_{name}": f"{of[name]:.6g}" for name in ns2 for side, of in sides}


def main() -> None:
    """Read the command line and fill the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("cases", nargs="*")
    a = parser.parse_args()
    with a.table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    unknown = set(a.cases) - {row["case"] for row in rows}
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    for row in rows:
        empty = not any(value for name, value in row.items() if name not in GIVEN)
        if not (row["case"] in a.cases or (empty and not a.cases)):
            continue
        row.update(numbers(row["tool"], row["arguments"]))
        columns = list(dict.fromkeys([*GIVEN, *(name for r in rows for name in r)]))
        with a.table.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        print(row["case"], flush=True)


if __name__ == "__main__":
    main()
