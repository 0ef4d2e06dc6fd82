"""The numbers by which a real and a simulated run of Hadoop are compared, each defined once.

Both sides give the same raw observations, and the functions here make the numbers of them:

- **Start of a task**: when its container was launched (a history's ``startTime``; ``assigned_s`` of
  the simulated table ``tasks``). The start of its virtual machine comes after that.
- **Time on the wire**: from 1 % of the bytes on the port that reached it first to 99 % of the bytes
  on the port that reached it last. Ports are the switch's towards the workers. Bytes count from the
  start of the first reduce to half a second after the end of the last shuffle.
- **Retransmissions**: all segments that TCP sent again, less the packets that the switch's port
  towards the master dropped. A dropped packet is sent again once, so this leaves the workers'
  retransmissions to each other. The port towards the master drops while the job's client reads
  samples of the input, before the job is submitted; the counters of a node do not tell to whom it
  sent again.
- **Drops**: packets dropped at the switch's ports towards the workers. Drops at the trunk between
  two switches are counted apart.
- **Timeouts**: expired retransmission timers of all nodes.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

#: Time after the end of the last shuffle in which bytes still count, in s: two samples of the
#: ports.
AFTER_S = 0.5

#: Samples of a port's counter: time in seconds, and bytes sent up to then.
Samples = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Outcome:
    """Numbers of one run, measured or simulated; a number is None if the run has no data for it."""

    job_s: float
    wire_s: float | None
    drops: float | None
    retransmits: float | None
    timeouts: float | None
    #: Time from submission to the start of the first map.
    first_map_s: float | None = None
    #: Time from the start of the first map to the end of the last one.
    maps_s: float | None = None
    #: Time from the end of the last map to the start of the first reduce; negative with early
    #: reduces.
    last_map_to_reduce_s: float | None = None
    #: Time from the end of the last map until one of the ports has sent 1 % of its bytes.
    last_map_to_byte_s: float | None = None
    #: Mean time over the reduces from a reduce's start to the end of its shuffle.
    shuffle_s: float | None = None
    #: Time from the end of the last shuffle to the end of the job.
    shuffle_to_end_s: float | None = None
    #: Packets dropped at the trunk, in both directions.
    trunk_drops: float | None = None


#: Fields of an outcome, and their names in tables.
NUMBERS = {
    "wire_s": "time on the wire, s",
    "job_s": "job, s",
    "first_map_s": "submission to first map, s",
    "maps_s": "first map's start to last map's end, s",
    "last_map_to_reduce_s": "last map to first reduce, s",
    "last_map_to_byte_s": "last map to first byte, s",
    "shuffle_s": "shuffle of a reduce, mean, s",
    "shuffle_to_end_s": "last shuffle to end of job, s",
    "retransmits": "retransmissions",
    "drops": "drops at ports to workers",
    "trunk_drops": "drops at the trunk",
    "timeouts": "timeouts",
}


@dataclass(frozen=True)
class Attempt:
    """A task's successful attempt; times in seconds since the job was submitted."""

    kind: str  # Kind of the task: map or reduce.
    start_s: float
    end_s: float
    #: End of a reduce's shuffle; None for a map.
    shuffled_s: float | None = None


@dataclass(frozen=True)
class Wire:
    """Times at which the shuffle's bytes passed, in s on the clock of the samples."""

    begin_s: float
    end_s: float

    @property
    def time_s(self) -> float:
        """Time on the wire in s."""
        return self.end_s - self.begin_s


def wire(ports: Mapping[str, Samples], first_reduce_s: float, last_shuffle_s: float) -> Wire | None:
    """Return when the first port has 1 % and the last port 99 % of its bytes.

    None without bytes.
    """
    begins, ends = [], []
    for samples in ports.values():
        seen = [s for s in samples if first_reduce_s <= s[0] <= last_shuffle_s + AFTER_S]
        if len(seen) < 2 or seen[-1][1] <= seen[0][1]:
            continue
        base, total = seen[0][1], seen[-1][1] - seen[0][1]
        begins.append(next(t for t, sent in seen if sent - base >= 0.01 * total))
        ends.append(next(t for t, sent in seen if sent - base >= 0.99 * total))
    return Wire(min(begins), max(ends)) if begins else None


def retransmissions(all_nodes: float, master_port_drops: float | None) -> float | None:
    """Return retransmissions between workers: all, less the drops of the port to the master."""
    return None if master_port_drops is None else max(0.0, all_nodes - master_port_drops)


@dataclass(frozen=True)
class Network:
    """Packet and timeout counts of a run's network; None where the run has no data for one."""

    retransmits: float | None
    timeouts: float | None
    worker_port_drops: float | None
    master_port_drops: float | None
    trunk_drops: float | None = None


def outcome(
    job_s: float,
    attempts: Sequence[Attempt],
    ports: Mapping[str, Samples],
    network: Network,
) -> Outcome:
    """Return the numbers of a run; samples of the ports have the clock of the attempts."""
    maps = [a for a in attempts if a.kind == "map"]
    reduces = [a for a in attempts if a.kind == "reduce" and a.shuffled_s is not None]
    first_map = min((a.start_s for a in maps), default=None)
    last_map = max((a.end_s for a in maps), default=None)
    first_reduce = min((a.start_s for a in reduces), default=None)
    last_shuffle = max((a.shuffled_s for a in reduces if a.shuffled_s is not None), default=None)
    passed = None
    if first_reduce is not None and last_shuffle is not None:
        passed = wire(ports, first_reduce, last_shuffle)
    again = network.retransmits
    return Outcome(
        job_s=job_s,
        wire_s=passed.time_s if passed else None,
        drops=network.worker_port_drops,
        retransmits=None if again is None else retransmissions(again, network.master_port_drops),
        timeouts=network.timeouts,
        first_map_s=first_map,
        maps_s=_less(last_map, first_map),
        last_map_to_reduce_s=_less(first_reduce, last_map),
        last_map_to_byte_s=_less(passed.begin_s if passed else None, last_map),
        shuffle_s=statistics.mean(
            a.shuffled_s - a.start_s for a in reduces if a.shuffled_s is not None
        )
        if reduces
        else None,
        shuffle_to_end_s=_less(job_s, last_shuffle),
        trunk_drops=network.trunk_drops,
    )


def _less(end: float | None, start: float | None) -> float | None:
    return None if end is None or start is None else end - start


def first_percent(of: Outcome) -> float | None:
    """Return the time from the start of the first reduce until a port has sent 1 % of its bytes."""
    return _less(of.last_map_to_byte_s, of.last_map_to_reduce_s)


def mean(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the mean of each number over the runs that have this number."""

    def of(name: str) -> float | None:
        known = [v for v in (getattr(o, name) for o in outcomes) if v is not None]
        return statistics.mean(known) if known else None

    job_s = of("job_s")
    assert job_s is not None
    others = {f.name: of(f.name) for f in fields(Outcome) if f.name != "job_s"}
    return Outcome(job_s=job_s, **others)
