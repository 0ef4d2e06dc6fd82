"""Compares one core of a host at 100 Gbit/s with published measurements.

The measurements are the throughput that one saturated core reaches in Cai et al., *Understanding
Host Network Stack Overheads* (SIGCOMM 2021), on Linux 5.4 with Xeon Gold 6128 and ConnectX-5. The
numbers are quoted from memory (only the abstract could be read). The first two were used to choose
the defaults of ``[hosts]``; the others are predictions.
"""

from __future__ import annotations

from dataclasses import dataclass

import eastwest as ew

_SECONDS = 0.1
_SCENARIO = """
schema = 1
name = "hosts"

[fabric]
kind = "star"
hosts = 17
host_rate = "100 Gbit/s"
mtu = 9000
queue = {{ kind = "drop-tail", limit = "10 MB" }}

[tcp]
profile = "linux"
max_window = "6 MB"

[hosts]

[[workload]]
kind = "bulk"
name = "w"
pairs = [{pairs}]
duration = "{end} ms"
"""


@dataclass(frozen=True)
class Case:
    """A pattern of connections, and the throughput of its saturated core."""

    name: str
    pairs: list[tuple[int, int]]
    measured_gbit: float
    fitted: bool = False


CASES = (
    Case("one connection, receiving core", [(0, 1)], 42, fitted=True),
    Case("8 connections to 8 hosts, sending core", [(0, n) for n in range(1, 9)], 89, fitted=True),
    Case("incast of 8 connections, receiving core", [(n, 0) for n in range(1, 9)], 42 * 0.81),
)


def throughput_gbit(case: Case) -> float:
    """Return the payload rate of all connections of a case together, in Gbit/s."""
    pairs = ", ".join(f'"h{a}->h{b}"' for a, b in case.pairs)
    result = ew.run(_SCENARIO.format(end=round(_SECONDS * 1e3), pairs=pairs), progress=False)
    return float(result.flows["bytes"].sum()) * 8 / _SECONDS / 1e9


def main() -> None:
    """Print a table of all cases."""
    print("| case | measured | simulated | error | |")
    print("|---|---|---|---|---|")
    for case in CASES:
        found = throughput_gbit(case)
        error = found / case.measured_gbit - 1
        use = "fitted" if case.fitted else "predicted"
        measured = f"{case.measured_gbit:.0f} Gbit/s"
        print(f"| {case.name} | {measured} | {found:.1f} Gbit/s | {error:+.0%} | {use} |")


if __name__ == "__main__":
    main()
