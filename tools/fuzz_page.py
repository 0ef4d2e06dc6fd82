"""Writes docs/validation/fuzz.md from the tally of generated scenarios.

``python tools/fuzz_page.py [TALLY]``; the tally is docs/validation/fuzz-tally.json.gz by
default. The findings of campaigns are written by hand, between the two marks of the page.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

from eastwest import fuzz
from eastwest.cli.fuzz import SHOWN
from eastwest.units import count

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/validation/fuzz.md"
TALLY = ROOT / "docs/validation/fuzz-tally.json.gz"
BEGIN, END = "<!-- found -->", "<!-- end of found -->"


def table(tally: fuzz.Tally) -> list[str]:
    """Return a table for pairs of main settings: pairs tried, the rarest, and those refused."""
    tried: dict[tuple[str, str], list[int]] = defaultdict(list)
    refused: dict[tuple[str, str], int] = defaultdict(int)
    for ((a, _), (b, _)), (times, no) in tally.pairs.items():
        if a not in SHOWN or b not in SHOWN or a == b:
            continue
        key = (min(a, b), max(a, b))
        if times:
            tried[key].append(times)
        elif no >= fuzz.REFUSED_AFTER:
            refused[key] += 1
    rows = ["| settings | pairs tried | least | median | never allowed |", "|---|---|---|---|---|"]
    for key in sorted(tried):
        counts = sorted(tried[key])
        numbers = (len(counts), counts[0], counts[len(counts) // 2], refused[key])
        rows.append(f"| `{key[0]}` × `{key[1]}` | " + " | ".join(map(str, numbers)) + " |")
    return rows


def page(tally: fuzz.Tally, found: str) -> str:
    """Return the whole page; ``found`` is the text between its marks."""
    levels = fuzz.levels()
    allowed = sum(1 for times, _ in tally.pairs.values() if times)
    rare = tally.rare(levels)
    last = tally.campaigns[-1]["date"] if tally.campaigns else ""
    failures = [
        f"- {each['date']}, seed {each['seed']}, from case {count(each['first'])}: "
        + " ".join(one.split())
        for each in tally.campaigns
        for one in each["found"]
    ]
    return "\n".join(
        [
            "# Generated scenarios: the tally",
            "",
            "[`eastwest fuzz`](../guide/fuzz.md) makes valid scenarios and runs each in several "
            "ways that must agree. This page is made from "
            "[fuzz-tally.json.gz](fuzz-tally.json.gz) by `python tools/fuzz_page.py`; the tally "
            "adds up over campaigns:",
            "",
            "```sh",
            "eastwest fuzz --cases 2500 --seed 1 --first 0 "
            "--tally docs/validation/fuzz-tally.json.gz",
            "```",
            "",
            f"Until {last}: **{count(tally.cases)} cases** judged in {len(tally.campaigns)} "
            f"campaigns; {count(tally.kept)} were stopped, written down and gone on, "
            f"{count(tally.in_parts)} ran on several threads to their end; "
            f"{count(tally.packets)} packets and {count(tally.events)} events in the plain runs. "
            f"{count(tally.too_large)} draws were too large, {count(tally.refused)} wishes were "
            "refused by `check`.",
            "",
            f"Of all pairs of levels {count(allowed)} were allowed and tried; "
            f"{count(len(rare))} of these less than {fuzz.ENOUGH} times; "
            f"{count(len(tally.never()))} were refused each time.",
            "",
            "## What was found",
            "",
            BEGIN,
            found.strip(),
            END,
            "",
            "Failures that campaigns of the tally reported:",
            "",
            *(failures or ["none."]),
            "",
            "## Pairs of the main settings",
            "",
            "*Least* and *median* are times that the pairs were tried; *never allowed* counts "
            f"pairs that `check` refused at least {fuzz.REFUSED_AFTER} times and never accepted.",
            "",
            *table(tally),
            "",
        ]
    )


def main() -> None:
    """Write the page."""
    tally = fuzz.load(Path(sys.argv[1]) if len(sys.argv) > 1 else TALLY)
    old = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    found = old.partition(BEGIN)[2].partition(END)[0]
    PAGE.write_text(page(tally, found), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {count(tally.cases)} cases")


if __name__ == "__main__":
    main()
