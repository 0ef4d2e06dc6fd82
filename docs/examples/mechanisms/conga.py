"""CONGA (Alizadeh et al., SIGCOMM 2014) as a sketch: the least congested path for each burst.

For leaf-spine fabrics with up to 256 uplinks of a leaf and 32,768 switches. Every switch estimates
the utilisation of its links (DRE, section 3.2). A packet collects the largest one on its path. Its
last leaf stores the value by first leaf and uplink, and returns it with packets in the other
direction (section 3.3). The first packet of a flowlet takes the uplink with the smallest
congestion: the larger value of the uplink here and the path behind it (sections 3.4 and 3.5).

A host with cards at several leaves has the address of the leaf of its first card. Feedback to this
leaf that arrives at another one is ignored.

With ``remote = false`` leaves see only their own uplinks: the local scheme of section 2.4.
"""

from dataclasses import dataclass

import eastwest as ew

_LEVELS = 8


class Utilisation:
    """Discounting rate estimator (DRE) of a link: bytes that lose a share in each period."""

    def __init__(self, period_ps: int, share: float) -> None:
        self.period_ps, self.share = period_ps, share
        self.bytes, self.periods = 0.0, 0

    def add(self, now_ps: int, wire_bytes: int) -> None:
        """Add a packet that the link sends."""
        periods = now_ps // self.period_ps
        for _ in range(min(periods - self.periods, 200)):
            self.bytes *= 1 - self.share
        self.bytes, self.periods = self.bytes + wire_bytes, periods

    def level(self, now_ps: int, rate_bps: int) -> int:
        """Return the utilisation as a number from 0 to 7."""
        self.add(now_ps, 0)
        full = rate_bps * self.period_ps / self.share / 8e12
        return min(int(self.bytes / full * _LEVELS), _LEVELS - 1)


@dataclass
class Tag:
    """The fields of CONGA's header, and the leaves between which they travel."""

    leaf: int
    """Leaf that has sent the packet."""
    addressee: int
    """Leaf that has the uplink ``returned_uplink``."""
    uplink: int
    congestion: int
    returned_uplink: int
    returned: int
    """Congestion plus one of that uplink; 0 without one."""

    def packed(self) -> int:
        """Return the fields as one number."""
        low = self.uplink | self.congestion << 8 | self.returned_uplink << 16 | self.returned << 24
        return 1 << 63 | self.addressee << 47 | self.leaf << 32 | low

    @staticmethod
    def of(packed: int) -> "Tag":
        """Return the fields of a number."""
        low = [packed >> shift & 255 for shift in (0, 8, 16, 24)]
        return Tag(packed >> 32 & 0x7FFF, packed >> 47 & 0x7FFF, *low)


class Conga(ew.Routing):
    """The least congested path for each burst of a flow."""

    name = "conga"

    gap: ew.Duration = ew.Duration("500 us")
    period: ew.Duration = ew.Duration("16 us")
    share: float = 0.1
    age: ew.Duration = ew.Duration("10 ms")
    remote: bool = True

    def __init__(self) -> None:
        if self.period == 0:
            raise ValueError("conga: period must be above 0 s")
        if not 0 < self.share <= 1:
            raise ValueError(f"conga: share must be above 0 and at most 1, not {self.share}")
        #: By link, its estimator.
        self.links: dict[int, Utilisation] = {}
        #: Links to spines; the place of a link in the list is its number in tags.
        self.uplinks: list[int] = []
        #: By flow, the time of its last packet and its link.
        self.flowlets: dict[tuple[int, int], tuple[int, int]] = {}
        #: By other leaf and own uplink, congestion and time: the congestion-to-leaf table.
        self.to_leaf: dict[tuple[int, int], tuple[int, int]] = {}
        #: By other leaf, by its uplink, the congestion: the congestion-from-leaf table.
        self.from_leaf: dict[int, dict[int, int]] = {}

    def _link(self, port: int) -> Utilisation:
        if port not in self.links:
            self.links[port] = Utilisation(self.period, self.share)
        return self.links[port]

    def _number(self, port: int) -> int:
        if port not in self.uplinks:
            self.uplinks.append(port)
        return self.uplinks.index(port)

    def choose(self, choice: ew.Choice) -> int:
        """Return the path of the flow, or of a new flowlet the least congested one."""
        flow = (choice.flow_hash, choice.receiver)
        then, port = self.flowlets.get(flow, (-self.gap, -1))
        last = choice.ports.index(port) if port in choice.ports else None
        path = last
        if last is None or choice.now_ps - then > self.gap:
            levels = [self._congestion(choice, path) for path in range(choice.paths)]
            best = [path for path, level in enumerate(levels) if level == min(levels)]
            # a flow leaves its uplink only for a better one
            path = last if last in best else best[self.random.below(len(best))]
        assert path is not None
        self.flowlets[flow] = (choice.now_ps, choice.ports[path])
        return path

    def _congestion(self, choice: ew.Choice, path: int) -> int:
        """Return the larger congestion of an uplink and of the path behind it."""
        port, now = choice.ports[path], choice.now_ps
        here = self._link(port).level(now, choice.rates_bps[path])
        behind, then = self.to_leaf.get((choice.edge, port), (0, 0))
        return max(here, behind) if self.remote and now - then <= self.age else here

    def forward(self, transit: ew.Transit) -> int | None:
        """Return the tag with which a packet leaves."""
        if transit.to_host:
            if not transit.from_host:
                self._receive(transit.now_ps, Tag.of(transit.tag))
            return None
        link = self._link(transit.port)
        link.add(transit.now_ps, transit.wire_bytes)
        level = link.level(transit.now_ps, transit.rate_bps)
        if transit.from_host:
            returned = self._next_to_return(transit.edge)
            uplink = self._number(transit.port)
            return Tag(self.switch, transit.edge, uplink, level, *returned).packed()
        tag = Tag.of(transit.tag)
        tag.congestion = max(tag.congestion, level)
        return tag.packed()

    def _receive(self, now_ps: int, tag: Tag) -> None:
        """Store the congestion of the packet's path, and what its leaf returns."""
        self.from_leaf.setdefault(tag.leaf, {})[tag.uplink] = tag.congestion
        if tag.returned and tag.addressee == self.switch:
            uplink = self.uplinks[tag.returned_uplink]
            self.to_leaf[tag.leaf, uplink] = (tag.returned - 1, now_ps)

    def _next_to_return(self, leaf: int) -> tuple[int, int]:
        """Return an uplink of another leaf with its congestion plus one, each uplink in turn."""
        known = self.from_leaf.get(leaf)
        if not known:
            return 0, 0
        uplink = next(iter(known))
        congestion = known.pop(uplink)
        known[uplink] = congestion  # to the end of the turn
        return uplink, congestion + 1
