"""Scenarios whose runs take milliseconds, for tests that need many runs."""

from __future__ import annotations

#: Four hosts at one switch, without a workload.
STAR = """
schema = 1
name = "tiny"
[fabric]
kind = "star"
hosts = 4
host_rate = "1 Gbit/s"
"""
#: Each host of ``STAR`` sends 20 KB to the next one.
TINY = f"""{STAR}[[workload]]
name = "bulk"
kind = "stride"
stride = 1
count = 1
bytes = "20 KB"
start_window = "1 ms"
"""
