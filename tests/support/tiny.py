"""A scenario whose run takes milliseconds, for tests that need many runs."""

from __future__ import annotations

#: Four hosts at one switch; each sends 20 KB to the next one.
TINY = """
schema = 1
name = "tiny"
[fabric]
kind = "star"
hosts = 4
host_rate = "1 Gbit/s"
[[workload]]
name = "bulk"
kind = "stride"
stride = 1
count = 1
bytes = "20 KB"
start_window = "1 ms"
"""
