"""Compares one core of a host at 100 Gbit/s with published measurements.

The measurements are those of Cai et al., *Understanding Host Network Stack Overheads* (SIGCOMM
2021), on Linux 5.4.43 with Xeon Gold 6128 (3.4 GHz) and ConnectX-5: throughput that one saturated
core reaches, and the busy share of the sender's core. Each case names where its number was read:

* README: the table that the authors print in their repository
  (github.com/Terabit-Ethernet/terabit-network-stack-profiling, commit 3ecebd7), for one connection
  with steering of packets to the core of the application (aRFS);
* paper: sections 1 and 3.1, in passages that others have quoted from it;
* notes: a reader's notes on the paper;
* memory: the number was recalled; no text with the number was found.

The first two cases were used to choose the defaults of ``[hosts]``; the others are predictions. A
second table has the times ``FRAMES_AND_BYTES``, which were chosen for the three throughputs of one
connection: they follow from 64 KB at 41.2 Gbit/s, 9,000 bytes at 40.8 Gbit/s and 1,500 bytes at
28.3 Gbit/s, if a segment takes no time besides that of its frames and bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import eastwest as ew

_SECONDS = 0.1
_HOSTS = 17
_SCENARIO = """
schema = 1
name = "hosts"

[fabric]
kind = "star"
hosts = 17
host_rate = "100 Gbit/s"
mtu = {mtu}
queue = {{ kind = "drop-tail", limit = "10 MB" }}

[tcp]
profile = "linux"
max_window = "6 MB"

[hosts]
{hosts}

[[workload]]
kind = "bulk"
name = "w"
pairs = [{pairs}]
duration = "{end} ms"
"""


ALONE = 'merge = "0 B"\nburst = "0 B"'
#: Times of receiving that depend on frames and bytes only.
FRAMES_AND_BYTES = """
receive_frame = "150 ns"
receive_segment = "0 s"
receive_rate = "45 Gbit/s"
ack = "0 s"
"""
ONE = [(0, 1)]


@dataclass(frozen=True)
class Case:
    """A pattern of connections, and the throughput of its saturated core."""

    name: str
    pairs: list[tuple[int, int]]
    measured_gbit: float
    source: str
    fitted: bool = False
    mtu: int = 9000
    #: Further settings of ``[hosts]``.
    hosts: str = ""


CASES = (
    Case("one connection, receiving core", ONE, 42, "paper", fitted=True),
    Case("8 to 8 hosts, sending core", [(0, n) for n in range(1, 9)], 89, "notes", fitted=True),
    Case("incast of 8, receiving core", [(n, 0) for n in range(1, 9)], 42 * 0.81, "memory"),
    Case("one connection, no TSO and GRO", ONE, 40.801, "README", hosts=ALONE),
    Case("one connection, MTU of 1,500 bytes", ONE, 28.254, "README", mtu=1500),
)
#: Busy share of the core that sends one connection, at the throughput of the first case.
SENDER_SHARE = 0.598


def result_of(case: Case, times: str = "") -> ew.Result:
    """Return the result of a case with the default times of hosts, or with others."""
    pairs = ", ".join(f'"h{a}->h{b}"' for a, b in case.pairs)
    end = round(_SECONDS * 1e3)
    text = _SCENARIO.format(end=end, pairs=pairs, mtu=case.mtu, hosts=times + case.hosts)
    return ew.run(text, progress=False)


def sender_share(result: ew.Result) -> float:
    """Return the busy share of the sender's core, if one connection uses two cores."""
    hosts = result.summary["hosts"]
    return float(hosts["busy_mean"] * _HOSTS - hosts["busy_max"])


def table(times: str = "") -> None:
    """Print a table of all cases."""
    print("| case | measured | read in | simulated | error | |")
    print("|---|---|---|---|---|---|")
    for case in CASES:
        result = result_of(case, times)
        found = float(result.flows["bytes"].sum()) * 8 / _SECONDS / 1e9
        error = found / case.measured_gbit - 1
        fitted = case.pairs == ONE if times else case.fitted
        measured = f"{case.measured_gbit:.1f} Gbit/s | {case.source}"
        use = "fitted" if fitted else "predicted"
        print(f"| {case.name} | {measured} | {found:.1f} Gbit/s | {error:+.0%} | {use} |")
        if case is CASES[0]:
            share = sender_share(result)
            error = share / SENDER_SHARE - 1
            measured = f"{SENDER_SHARE:.0%} | README"
            print(f"| its sending core | {measured} | {share:.0%} | {error:+.0%} | predicted |")


def main() -> None:
    """Print the table of the default times, and that of the other times."""
    table()
    print(f"\n{FRAMES_AND_BYTES.strip()}\n")
    table(FRAMES_AND_BYTES)


if __name__ == "__main__":
    main()
