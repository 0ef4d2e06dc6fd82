"""Joins records of routers, or packets of captures, to the list of flows of a network.

A flow is the payload that goes from one address and port to another address and port by one
protocol, up to a pause of more than the idle timeout. Routers export a long flow as several records
(active timeout), so records with one 5-tuple are merged into one flow if the pause between them is
at most the idle timeout. If several observers (exporters, or captures that overlap in time) have a
flow, only the observer with the most packets counts, and the records of the other observers are
left out.

Flow records count IP bytes. The payload is estimated: for each packet, 20 bytes (IPv4) or 40 bytes
(IPv6), and 32 bytes (TCP with timestamps, RFC 7323) or 8 bytes (UDP) are subtracted. For packets of
a capture, the payload is exact; retransmitted bytes count once.

With sampling at 1 in N, bytes and packets are multiplied by N. A flow of k packets is in the sample
with probability 1 − (1 − 1/N)^k, and the relative error of a size with s sampled packets is at most
1.96/√s with 95 % confidence (Phaal and Panchen, *Packet Sampling Basics*).
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import NamedTuple

from eastwest.account import Account
from eastwest.errors import InputError
from eastwest.units import count, percent, plural, size

#: Maximum number of flows in memory, before flows are merged.
MOST_FLOWS = 1_000_000
#: Maximum number of different IP addresses in the records or packets.
MOST_ADDRESSES = 1_000_000
#: Maximum number of observers; an observer is an exporter with one source id, or a capture.
MOST_OBSERVERS = 65_536
#: Largest flow, in payload bytes: a limit of ``kind = "flow-list"``.
LARGEST = 10**15
#: Latest start of a flow in s after the first flow: a limit of ``kind = "flow-list"``.
LATEST_S = 480 * 3600
#: Maximum duration of a flow record in ns, 366 days, and latest time, 2^63 ns (the year 2262).
_LONGEST_NS, _LATEST_NS = 366 * 86_400 * 10**9, 1 << 63
TCP, UDP = 6, 17
PROTOCOLS = {TCP: "tcp", UDP: "udp"}
#: Bytes of the transport header that are subtracted for each packet: TCP with timestamps (RFC
#: 7323), UDP.
_HEADERS = {TCP: 32, UDP: 8}
#: Maximum number of stored gaps in the sequence numbers of a flow; the oldest gaps are removed.
_MOST_GAPS = 32
_WRAP, _HALF = 1 << 32, 1 << 31
#: Half the width of a 95 % confidence interval, in standard deviations.
_CONFIDENCE = 1.96

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Wanted:
    """Options of the user for the import of flows."""

    #: Idle timeout in s: a longer pause ends a flow.
    idle_s: float = 15.0
    #: Sampling rate N (1 in N) that replaces the rate in the records; 0: the rate of the records.
    sampling: int = 0
    #: Whether only the larger direction of a connection becomes a flow.
    pair: bool = False
    #: Minimum payload of a flow in bytes; smaller flows are left out.
    least: int = 1
    #: Networks to which both ends must belong; empty: all addresses.
    within: Sequence[Network] = ()
    #: Name or number of a host, by the packed address; None: addresses are numbered in ascending
    #: order.
    hosts: Mapping[bytes, str] | None = None


@dataclass(frozen=True, slots=True)
class Flow:
    """Flow of a list: hosts, payload bytes, start and end in s after the first flow's start."""

    src: str
    dst: str
    bytes: int
    start_s: float
    end_s: float
    protocol: str
    #: Number of packets that were observed; with sampling, the number of samples.
    packets: int


@dataclass
class FlowList:
    """Flows, the addresses of the hosts, and counts of the records or packets that were read."""

    flows: list[Flow]
    #: Address of each host, by the host's name or number.
    hosts: dict[str, str]
    #: Records that were left out, changed or noted, by reason.
    account: Account
    #: Time zero of the list in ns since 1970; if the records have no date, in ns since the start of
    #: the exporter's clock.
    began_ns: int
    #: Number of records or packets that were read.
    records: int
    #: Number of records or packets whose bytes are in a flow of the list.
    used: int
    #: Number of records or packets that were left out: ``records`` − ``used``.
    left: int
    #: Largest sampling rate N (1 in N) of a flow of the list; 1 without sampling.
    sampling: int
    #: Name of the format of the files: a key of ``read.SOURCES``.
    source_format: str = ""


class Part:
    """Traffic of one 5-tuple at one observer, without a pause above the idle timeout."""

    __slots__ = ("bytes", "end", "first", "gaps", "last", "packets", "rate", "records", "starts")

    def __init__(self, first: int, last: int, starts: bool) -> None:
        #: Time of the first packet in ns; ``last`` is that of the last packet.
        self.first = first
        self.last = last
        #: Whether a SYN of TCP begins this traffic, so that it is not joined to earlier traffic.
        self.starts = starts
        #: Payload bytes; with sampling, multiplied by the sampling rate.
        self.bytes = 0
        self.packets = 0
        #: Number of records or packets that were added to this traffic.
        self.records = 0
        #: Largest sampling rate N (1 in N) of the records or packets.
        self.rate = 1
        #: For TCP: the next expected sequence number; −1 before the first segment.
        self.end = -1
        #: For TCP: missing ranges of sequence numbers before ``end``, as (first missing number,
        #: first number after the range).
        self.gaps: list[tuple[int, int]] | None = None

    def segment(self, seq: int, length: int) -> int:
        """Return how many payload bytes of a TCP segment are new; update ``end`` and ``gaps``.

        ``seq`` is the sequence number of the first payload byte, ``length`` the number of payload
        bytes.
        """
        if self.end < 0:
            self.end = (seq + length) % _WRAP
            return length
        ahead = (seq - self.end) % _WRAP
        if ahead < _HALF:
            if ahead:
                gaps = self.gaps = self.gaps or []
                gaps.append((self.end, seq))
                del gaps[:-_MOST_GAPS]
            self.end = (seq + length) % _WRAP
            return length
        back = _WRAP - ahead
        fresh = max(0, length - back)
        if fresh:
            self.end = (seq + length) % _WRAP
        return fresh + self._filled(seq, min(length, back))

    def _filled(self, seq: int, length: int) -> int:
        """Return how many bytes of a segment lie in ``gaps``; remove these bytes from ``gaps``.

        ``seq`` is the sequence number of the first byte, ``length`` the number of bytes.
        """
        filled, left = 0, []
        for start, end in self.gaps or ():
            whole = (end - start) % _WRAP
            at = (seq - start + _HALF) % _WRAP - _HALF
            low, high = max(0, at), min(whole, at + length)
            if low >= high:
                left.append((start, end))
                continue
            filled += high - low
            if low:
                left.append((start, (start + low) % _WRAP))
            if high < whole:
                left.append(((start + high) % _WRAP, end))
        if filled:
            self.gaps = left[-_MOST_GAPS:]
        return filled


#: Key of a flow: number of the source address, number of the destination address, protocol, source
#: port, destination port.
Key = tuple[int, int, int, int, int]


class _Whole(NamedTuple):
    """Flow before addresses are replaced by names of hosts: key (5-tuple) and traffic."""

    key: Key
    part: Part

    @property
    def connection(self) -> Key:
        """Key of the flow's connection: equal for the flows of both directions."""
        src, dst, protocol, sport, dport = self.key
        return min(self.key, (dst, src, protocol, dport, sport))


@dataclass
class Collector:
    """Collects records and packets of all files; ``finish`` returns the list of flows."""

    wanted: Wanted
    account: Account
    records: int = 0
    #: Largest sampling rate N (1 in N) of a flow of the list; 1 without sampling.
    rate: int = 1
    _addresses: dict[bytes, int] = field(default_factory=dict)
    _usable: list[str] = field(default_factory=list)
    _observers: dict[str, int] = field(default_factory=dict)
    _spans: dict[int, tuple[int, int]] = field(default_factory=dict)
    _open: dict[tuple[int, Key], Part] = field(default_factory=dict)
    _done: list[tuple[int, Key, Part]] = field(default_factory=list)
    _left: int = 0
    _of_packets: bool = False

    def observer(self, name: str) -> int:
        """Return the number of the observer (exporter or capture) ``name``; a new name is added.

        Raises ``InputError`` if there are too many observers.
        """
        known = self._observers.get(name)
        if known is None:
            if len(self._observers) == MOST_OBSERVERS:
                raise InputError(
                    f"there are more than {MOST_OBSERVERS:,} exporters or captures, "
                    "which is the maximum"
                )
            known = self._observers[name] = len(self._observers)
        return known

    def flow_record(
        self,
        place: tuple[str, int],
        observer: int,
        ends: tuple[bytes, bytes, int, int, int],
        times_ns: tuple[int, int],
        ip_bytes: int,
        packets: int,
        rate: int,
    ) -> None:
        """Add a flow record of a router.

        ``place``: (file, number of the record) for messages. ``ends``: (source address, destination
        address, protocol, source port, destination port). ``times_ns``: times of the first and the
        last packet. ``ip_bytes``: bytes with IP headers. ``rate``: sampling rate N (1 in N).
        """
        rate = self.wanted.sampling or rate
        key = self._key(place, ends)
        if key is None:
            return
        first, last = times_ns
        if not first <= last <= min(first + _LONGEST_NS, _LATEST_NS):
            self._left += 1
            reason = "record whose last packet is before its first, or more than 366 days later"
            if last >= _LATEST_NS or first >= _LATEST_NS:
                reason = "record with a time after the year 2262"
            self.account.bad(*place, reason, f"{first / 1e9:.3f} s to {last / 1e9:.3f} s")
            return
        header = (20 if len(ends[0]) == 4 else 40) + _HEADERS[ends[2]]
        payload = max(0, ip_bytes - packets * header) * rate
        part = self._part(observer, key, first, last, starts=False)
        part.bytes += payload
        part.packets += packets
        part.rate = max(part.rate, rate)

    def packet(
        self,
        place: tuple[str, int],
        observer: int,
        ends: tuple[bytes, bytes, int, int, int],
        time_ns: int,
        payload: int,
        tcp: tuple[int, int] | None = None,
        rate: int = 1,
    ) -> None:
        """Add a captured packet with ``payload`` bytes of TCP or UDP payload.

        ``place``: (file, number of the packet) for messages. ``ends``: (source address, destination
        address, protocol, source port, destination port). ``tcp``: (sequence number, flags), None
        for other protocols. ``rate``: sampling rate N (1 in N); with sampling, retransmissions
        cannot be recognised, so all payload bytes count.
        """
        rate = self.wanted.sampling or rate
        self._of_packets = True
        key = self._key(place, ends)
        if key is None:
            return
        starts = tcp is not None and bool(tcp[1] & 2)
        if starts and tcp is not None and rate == 1:
            known = self._open.get((observer, key))
            starts = known is None or known.end != (tcp[0] + 1) % _WRAP or known.bytes > 0
        else:
            starts = False
        part = self._part(observer, key, time_ns, time_ns, starts=starts)
        part.packets += 1
        if starts and tcp is not None:
            part.end = (tcp[0] + 1) % _WRAP
        if payload:
            if not part.bytes and rate == 1:
                part.first = time_ns
            fresh = payload
            if tcp is not None and rate == 1:
                fresh = part.segment((tcp[0] + bool(tcp[1] & 2)) % _WRAP, payload)
                if fresh < payload:
                    reason = "TCP segment with bytes that were sent before"
                    self.account.note(*place, reason, consequence="each byte counts only once")
            part.bytes += fresh * rate
            part.rate = max(part.rate, rate)

    def leave(self, place: tuple[str, int], reason: str, then: str = "it is left out") -> None:
        """Count a record or packet as left out, and report it.

        ``place``: (file, number of the record). ``reason`` and ``then``: texts of the report for
        the reason and the consequence.
        """
        self.records += 1
        self._left += 1
        self.account.note(*place, reason, consequence=then)

    def _key(self, place: tuple[str, int], ends: tuple[bytes, bytes, int, int, int]) -> Key | None:
        src, dst, protocol, sport, dport = ends
        if protocol not in _HEADERS:
            self.leave(place, "record or packet of another protocol than TCP and UDP")
            return None
        a, b = self._address(src), self._address(dst)
        reason = self._usable[a] or self._usable[b]
        if not reason and a == b:
            reason = "record or packet from an address to itself"
        if reason:
            self.leave(place, reason)
            return None
        self.records += 1
        return a, b, protocol, sport, dport

    def _address(self, address: bytes) -> int:
        number = self._addresses.get(address)
        if number is None:
            if len(self._addresses) == MOST_ADDRESSES:
                raise InputError(
                    f"there are more than {MOST_ADDRESSES:,} addresses, which is the "
                    "maximum; select some with --within"
                )
            number = self._addresses[address] = len(self._addresses)
            self._usable.append(self._problem(address))
        return number

    def _problem(self, address: bytes) -> str:
        """Return the reason why an address cannot be a host of the list; empty if it can."""
        shown = ipaddress.ip_address(address)
        if shown.is_multicast or shown.is_unspecified or address == b"\xff" * 4:
            return "record or packet with a multicast, broadcast or unspecified address"
        if self.wanted.within and not any(shown in network for network in self.wanted.within):
            return "record or packet with an address outside of --within"
        if self.wanted.hosts is not None and address not in self.wanted.hosts:
            return "record or packet with an address that is not in the file of --hosts"
        return ""

    def _part(self, observer: int, key: Key, first: int, last: int, *, starts: bool) -> Part:
        """Return the ``Part`` to which traffic from ``first`` to ``last`` (ns) belongs.

        The current part of the flow is extended to these times. A new part begins if there is none,
        after a pause above the idle timeout, or if ``starts`` is set because a SYN begins the
        traffic. The record or packet is counted.
        """
        idle = round(self.wanted.idle_s * 1e9)
        span = self._spans.get(observer)
        if span is None or first < span[0] or last > span[1]:
            old = span or (first, last)
            self._spans[observer] = min(old[0], first), max(old[1], last)
        part = self._open.get((observer, key))
        if part is None or starts or first > part.last + idle or last < part.first - idle:
            if part is not None:
                self._done.append((observer, key, part))
            if len(self._open) + len(self._done) >= MOST_FLOWS:
                raise InputError(
                    f"there are more than {MOST_FLOWS:,} flows, which is the "
                    "maximum; select addresses with --within, or give fewer files"
                )
            part = self._open[observer, key] = Part(first, last, starts)
        else:
            part.first = min(part.first, first)
            part.last = max(part.last, last)
        part.records += 1
        return part

    def finish(self, files: Sequence[str]) -> FlowList:
        """Return the list of flows of all records and packets added so far.

        ``files`` are the names of the files, for messages. Raises ``InputError`` if no flow is
        left.
        """
        parts = [*self._done, *((o, key, part) for (o, key), part in self._open.items())]
        self._done, self._open = [], {}
        parts = self._one_capture(parts)
        parts.sort(key=lambda p: (p[1], p[0], p[2].first))
        name = files[0] if len(files) == 1 else f"{len(files)} files"
        wholes = list(self._of_one_observer(self._merged(parts), name))
        merged = sum(whole.part.records - 1 for whole in wholes)
        if merged and not self._of_packets:
            then = f"it is merged into the flow: the pause is at most {self.wanted.idle_s:g} s"
            reason = "record that continues a flow"
            self.account.note(name, 0, reason, rows=merged, consequence=then)
        wholes = self._enough(wholes, name)
        if self.wanted.pair:
            wholes = list(self._paired(wholes, name))
        if not wholes:
            raise self._without(name, "flow of TCP or UDP with payload")
        self._say_sampling(wholes, name)
        return self._listed(wholes, name)

    def _without(self, name: str, what: str) -> InputError:
        """Return the error for files without a flow; it has the reasons of the account.

        ``name`` is the name of the files, ``what`` the kind of flow that they lack.
        """
        why = self.account.reasons()
        if not why:
            why = "the records have no payload" if self.records else "there is no record or packet"
        return InputError(f"{name}: has no {what}: {why}")

    def _one_capture(self, parts: list[tuple[int, Key, Part]]) -> list[tuple[int, Key, Part]]:
        """Return ``parts`` with one observer for all captures, if the captures do not overlap.

        A part is (number of the observer, key of the flow, traffic). Captures that follow each
        other in time, such as files of a ring buffer, come from one observer.
        """
        numbers = {n for name, n in self._observers.items() if name.startswith("capture ")}
        spans = sorted(self._spans[n] for n in numbers if n in self._spans)
        apart = all(a[1] <= b[0] for a, b in pairwise(spans))
        if len(spans) < 2 or not apart:
            return parts
        one = min(numbers)
        return [(one if o in numbers else o, key, part) for o, key, part in parts]

    def _merged(self, parts: Iterable[tuple[int, Key, Part]]) -> Iterator[tuple[int, Key, Part]]:
        """Yield the parts; two parts of a flow at one observer are joined if their pause is short.

        A pause is short if it is at most the idle timeout. A part is (number of the observer, key
        of the flow, traffic). ``parts`` must be sorted by key, observer and time.
        """
        idle = round(self.wanted.idle_s * 1e9)
        before: tuple[int, Key, Part] | None = None
        for observer, key, part in parts:
            if before is not None:
                same = before[:2] == (observer, key) and not part.starts
                if same and part.first <= before[2].last + idle:
                    _join(before[2], part)
                    continue
                yield before
            before = (observer, key, part)
        if before is not None:
            yield before

    def _of_one_observer(
        self, parts: Iterable[tuple[int, Key, Part]], name: str
    ) -> Iterator[_Whole]:
        """Yield the flows; for a flow of several observers, the one with the most packets counts.

        ``parts`` are (number of the observer, key of the flow, traffic), sorted by key. ``name`` is
        the name of the files in reports.
        """
        idle = round(self.wanted.idle_s * 1e9)
        names = {number: name for name, number in self._observers.items()}
        for key, group in groupby(parts, key=lambda p: p[1]):
            found = sorted(group, key=lambda p: p[2].first)
            if len({p[0] for p in found}) == 1:
                yield from (_Whole(key, part) for _, _, part in found)
                continue
            for cluster in _overlapping(found, idle):
                packets: dict[int, int] = {}
                for observer, _, part in cluster:
                    packets[observer] = packets.get(observer, 0) + part.packets
                best = min(packets, key=lambda o: (-packets[o], names[o]))
                for observer, _, part in cluster:
                    if observer == best:
                        yield _Whole(key, part)
                    else:
                        reason = "record or packet of a flow that another observer also has"
                        then = "it is left out: per flow, the observer with the most packets counts"
                        self._left += part.records
                        self.account.note(name, 0, reason, names[observer], part.records, then)

    def _enough(self, wholes: list[_Whole], name: str) -> list[_Whole]:
        """Return the flows with at least the minimum payload; report the others.

        ``name`` is the name of the files in reports.
        """
        kept = []
        for whole in wholes:
            if whole.part.bytes >= max(1, self.wanted.least):
                kept.append(whole)
                continue
            self._left += whole.part.records
            reason = "flow without payload, for example only acknowledgements"
            if whole.part.bytes:
                reason = f"flow of less than {self.wanted.least} bytes"
            self.account.note(name, 0, reason, consequence="it is left out")
        return kept

    def _paired(self, wholes: list[_Whole], name: str) -> Iterator[_Whole]:
        """Yield for each connection only the flows of the direction with more bytes.

        Flows of the other direction are reported; ``name`` is the name of the files in reports.
        """
        idle = round(self.wanted.idle_s * 1e9)
        wholes.sort(key=lambda w: (w.connection, w.part.first))
        for _, group in groupby(wholes, key=lambda w: w.connection):
            for cluster in _overlapping([(0, w.key, w.part) for w in group], idle):
                octets: dict[Key, int] = {}
                for _, key, part in cluster:
                    octets[key] = octets.get(key, 0) + part.bytes
                larger = max(octets, key=lambda key: (octets[key], key))
                for _, key, part in cluster:
                    if key == larger:
                        yield _Whole(key, part)
                        continue
                    self._left += part.records
                    then = "it is left out: only the larger direction is a flow (--pair)"
                    self.account.note(
                        name, 0, "smaller direction of a connection", consequence=then
                    )

    def _say_sampling(self, wholes: list[_Whole], name: str) -> None:
        sampled = [whole.part for whole in wholes if whole.part.rate > 1]
        self.rate = max((part.rate for part in sampled), default=1)
        if not sampled:
            return
        # The variances (size/√samples)² of the flows' independent estimates are added.
        error = math.sqrt(sum(part.bytes**2 / max(1, part.packets) for part in sampled))
        share = _CONFIDENCE * error / sum(part.bytes for part in sampled)
        few = sum(1 for part in sampled if part.packets < 384)
        then = (
            "sizes are estimates with 95 % confidence: the error of the sum of all bytes is "
            f"{percent(share)}; it is more than 10 % for {plural(few, 'flow')} "
            "with fewer than 384 samples; most flows of fewer than "
            f"{count(self.rate)} packets are missing"
        )
        reason = (
            f"flow sampled at 1 in {self.rate}"
            if len({p.rate for p in sampled}) == 1
            else (f"flow sampled at up to 1 in {self.rate}")
        )
        self.account.note(name, 0, reason, rows=len(sampled), consequence=then)

    def _listed(self, wholes: list[_Whole], name: str) -> FlowList:
        addresses = list(self._addresses)
        used = sorted({n for w in wholes for n in w.key[:2]}, key=lambda n: _order(addresses[n]))
        given = self.wanted.hosts
        names = {n: str(at) if given is None else given[addresses[n]] for at, n in enumerate(used)}
        began = min(whole.part.first for whole in wholes)
        wholes.sort(key=lambda w: (w.part.first, _order(addresses[w.key[0]]), w.key[1:]))
        flows, kept = [], 0
        udp = 0
        for whole in wholes:
            part, (src, dst, protocol, *_) = whole.part, whole.key
            if names[src] == names[dst]:
                self._left += part.records
                reason = "flow between two addresses of one host"
                self.account.note(name, 0, reason, consequence="it is left out")
                continue
            reason = ""
            if part.bytes > LARGEST:
                reason = "flow of more than 1,000 TB"
            elif part.first - began > LATEST_S * 1e9:
                reason = "flow that starts more than 480 h after the first flow"
            if reason:
                self._left += part.records
                self.account.note(name, 0, reason, consequence="it is left out")
                continue
            udp += protocol == UDP
            kept += part.records
            flows.append(
                Flow(
                    names[src],
                    names[dst],
                    part.bytes,
                    (part.first - began) / 1e9,
                    (max(part.first, part.last) - began) / 1e9,
                    PROTOCOLS[protocol],
                    part.packets,
                )
            )
        if not flows:
            raise self._without(name, "flow between two different hosts that a list can have")
        if udp:
            then = "the simulation uses the transport of the scenario for it"
            self.account.note(name, 0, "flow of UDP", rows=udp, consequence=then)
        shown: dict[str, str] = {}
        for n in used:
            shown.setdefault(names[n], str(ipaddress.ip_address(addresses[n])))
        counts = self.records, kept, self._left
        return FlowList(flows, shown, self.account, began, *counts, self.rate)


def told(found: FlowList) -> str:
    """Return one line of text: number of flows, sum of their payload, number of hosts."""
    payload = size(sum(each.bytes for each in found.flows))
    return f"{plural(len(found.flows), 'flow')} of {payload}, {plural(len(found.hosts), 'host')}"


def _join(part: Part, later: Part) -> None:
    part.last = max(part.last, later.last)
    part.bytes += later.bytes
    part.packets += later.packets
    part.records += later.records
    part.rate = max(part.rate, later.rate)


def _overlapping(
    found: list[tuple[int, Key, Part]], idle: int
) -> Iterator[list[tuple[int, Key, Part]]]:
    """Yield lists of parts that overlap in time, or are at most ``idle`` ns apart.

    A part is (number of the observer, key of the flow, traffic). ``found`` must be sorted by the
    time of the first packet.
    """
    group: list[tuple[int, Key, Part]] = []
    last = 0
    for each in found:
        if group and each[2].first > last + idle:
            yield group
            group = []
        last = max(last, each[2].last) if group else each[2].last
        group.append(each)
    if group:
        yield group


def _order(address: bytes) -> tuple[int, bytes]:
    return len(address), address
