"""Decoder of packet headers: addresses, ports and payload length of TCP and UDP.

Known link layers are Ethernet with VLAN tags (IEEE 802.1Q and 802.1ad) and MPLS labels, Linux
cooked (SLL and SLL2), raw IP, and BSD loopback. IPv4 may have options, IPv6 may have extension
headers. The payload length is computed from the lengths in the headers, so a short snap length does
not change it. Tunnelled packets count as traffic between the outer addresses.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

ETHERNET = 1
_NULL, _LOOP, _RAW = 0, 108, {12, 14, 101}
_SLL, _SLL2, _IPV4, _IPV6 = 113, 276, 228, 229
#: EtherTypes of VLAN tags (IEEE 802.1Q, 802.1ad and older types).
_TAGS = {0x8100, 0x88A8, 0x9100, 0x9200}
#: EtherTypes of MPLS, unicast and multicast.
_MPLS = {0x8847, 0x8848}
#: EtherTypes of IPv4 and IPv6.
_IP4, _IP6 = 0x0800, 0x86DD
#: Maximum number of VLAN tags, of MPLS labels, and of extension headers that are skipped.
_MOST_TAGS = 8
#: Numbers of IPv6 extension headers: those with a length in units of 8 bytes (hop-by-hop, routing,
#: destination options, mobility and others), fragment, authentication.
_EXTENSIONS, _FRAGMENT, _AUTHENTICATION = {0, 43, 60, 135, 139, 140}, 44, 51
_TCP, _UDP = 6, 17
_NO_IP = "frame without IP, for example ARP or LLDP"
_SHORT = "packet with fewer captured bytes than its headers have"
_WRONG = "packet with a damaged IP, TCP or UDP header"
FRAGMENT = "fragment of an IP datagram other than the first"


class Packet(NamedTuple):
    """Decoded IP packet; for other protocols than TCP and UDP, ports and payload are 0."""

    src: bytes
    dst: bytes
    protocol: int
    sport: int
    dport: int
    #: Payload of TCP or UDP in bytes, computed from the lengths in the headers.
    payload: int
    #: (Sequence number, flags) of TCP; None for other protocols.
    tcp: tuple[int, int] | None
    #: Position of the payload in the captured bytes of the packet.
    at: int

    @property
    def ends(self) -> tuple[bytes, bytes, int, int, int]:
        """Source and destination address, protocol, source and destination port."""
        return self[:5]


def decode(link: int, data: bytes, length: int) -> Packet | str:
    """Return the decoded packet, or a text with the reason why the packet is left out.

    ``link`` is the link-layer type (tcpdump.org), ``data`` the captured bytes from the link-layer
    header on, ``length`` the number of bytes on the wire.
    """
    try:
        at = _network(link, data)
        if isinstance(at, str):
            return at
        version = data[at] >> 4
        if version == 4:
            return _ipv4(data, at, length)
        if version == 6:
            return _ipv6(data, at, length)
    except (struct.error, IndexError):
        return _SHORT
    return _NO_IP


def known_link(link: int) -> bool:
    """Whether a link-layer type is one that ``decode`` can read."""
    return link in {ETHERNET, _NULL, _LOOP, *_RAW, _SLL, _SLL2, _IPV4, _IPV6}


def _network(link: int, data: bytes) -> int | str:
    """Return the position of the IP header in ``data``, or a text with the reason if there is none.

    ``link`` is the link-layer type, ``data`` the captured bytes from the link-layer header on.
    """
    if link == ETHERNET:
        return _after_type(data, 12)
    if link in _RAW or link in {_IPV4, _IPV6}:
        return 0
    if link == _SLL:
        return _after_type(data, 14)
    if link == _SLL2:
        kind = struct.unpack_from(">H", data)[0]
        return 20 if kind in {_IP4, _IP6} else _NO_IP
    return (
        4 if link in {_NULL, _LOOP} else f"packet of link-layer type {link}, which cannot be read"
    )


def _after_type(data: bytes, at: int) -> int | str:
    """Return the position of the IP header after EtherType, VLAN tags and MPLS labels of a frame.

    The result is a text with the reason if no IP header follows. ``at`` is the position of the
    EtherType in ``data``.
    """
    kind = struct.unpack_from(">H", data, at)[0]
    at += 2
    tags = 0
    while kind in _TAGS and tags < _MOST_TAGS:
        kind = struct.unpack_from(">H", data, at + 2)[0]
        at += 4
        tags += 1
    if kind in _MPLS:
        for _ in range(_MOST_TAGS):
            bottom = data[at + 2] & 1
            at += 4
            if bottom:
                return at if data[at] >> 4 in {4, 6} else _NO_IP
        return _NO_IP
    return at if kind in {_IP4, _IP6} else _NO_IP


def _ipv4(data: bytes, at: int, length: int) -> Packet | str:
    total, flags, protocol = struct.unpack_from(">H2xHxB", data, at + 2)
    header = (data[at] & 15) * 4
    src, dst = data[at + 12 : at + 16], data[at + 16 : at + 20]
    if len(dst) < 4:
        return _SHORT
    # With segmentation offload (TSO), a packet is captured before the network card divides it; a
    # packet of more than 65,535 bytes then has a length of 0 in its IP header.
    if total == 0:
        total = length - at
    if header < 20 or total < header:
        return _WRONG
    if flags & 0x1FFF:
        return FRAGMENT
    more = bool(flags & 0x2000)
    return _transport(data, at + header, src, dst, protocol, total - header, more=more)


def _ipv6(data: bytes, at: int, length: int) -> Packet | str:
    size, protocol = struct.unpack_from(">HB", data, at + 4)
    src, dst = data[at + 8 : at + 24], data[at + 24 : at + 40]
    if len(dst) < 16:
        return _SHORT
    start = at + 40
    end = at + 40 + size if size else length
    at, more = start, False
    for _ in range(_MOST_TAGS):
        if protocol in _EXTENSIONS:
            protocol, at = data[at], at + 8 + 8 * data[at + 1]
        elif protocol == _AUTHENTICATION:
            protocol, at = data[at], at + 8 + 4 * data[at + 1]
        elif protocol == _FRAGMENT:
            offset = struct.unpack_from(">H", data, at + 2)[0]
            if offset >> 3:
                return FRAGMENT
            more = bool(offset & 1)
            protocol, at = data[at], at + 8
        else:
            break
    if at > end:
        return _WRONG
    return _transport(data, at, src, dst, protocol, end - at, more=more)


def _transport(
    data: bytes, at: int, src: bytes, dst: bytes, protocol: int, rest: int, *, more: bool
) -> Packet | str:
    """Return the packet whose transport header is at position ``at`` of ``data``.

    ``rest`` is the length in bytes of transport header and payload. ``more``: further fragments of
    the IP datagram follow. If the header is damaged, the result is a text with the reason.
    """
    if protocol == _TCP:
        sport, dport, seq, offset, flags = struct.unpack_from(">HHI4xBB", data, at)
        header = (offset >> 4) * 4
        if header < 20 or header > rest:
            return _WRONG
        tcp = (seq, flags)
        return Packet(src, dst, protocol, sport, dport, rest - header, tcp, at + header)
    if protocol == _UDP:
        sport, dport, length = struct.unpack_from(">HHH", data, at)
        if length < 8 or (length > rest and not more):
            length = rest
        if length < 8:
            return _WRONG
        return Packet(src, dst, protocol, sport, dport, length - 8, None, at + 8)
    return Packet(src, dst, protocol, 0, 0, 0, None, at)
