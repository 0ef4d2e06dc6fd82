"""Note on a run whose hosts have a saturated core, and whose links are full, too."""

from __future__ import annotations

from pathlib import Path

import eastwest as ew

RUN = """schema = 1
[fabric]
kind = "star"
hosts = 2
cards = 2
host_rate = "25 Gbit/s"
queue = { limit = "2000 packets" }
[tcp]
profile = "linux"
[hosts]
cores = 4
[[workload]]
name = "b"
kind = "bulk"
pairs = ["h0->h1"]
connections = 64
duration = "10 ms"
"""


def test_a_run_does_not_name_the_core_alone_if_links_are_full(tmp_path: Path) -> None:
    notes = ew.run(RUN, out=tmp_path / "full").summary["notes"]
    [note] = [note for note in notes if "busiest core" in note]
    assert "but the busiest link of a host sends 9" in note and "this host" not in note
