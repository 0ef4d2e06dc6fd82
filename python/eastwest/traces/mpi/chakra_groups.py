"""Process groups of Chakra traces: which ranks take part in a collective.

The ranks of a group are known from an attribute of the collective, from a node that describes the
process groups of a rank (``process_group:init`` of PyTorch), from a file of groups beside the
traces (the communicator groups of ASTRA-sim: ``{"1": [0, 1], …}``), from the dimensions of the
network that the collective uses together with the size of its group, or because all ranks use its
name. If the ranks are not known, the collective is not replayed.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field

from eastwest.errors import InputError
from eastwest.traces.mpi.chakra_nodes import DIMENSIONS, GROUP_RANKS, GROUP_SIZES, Node, nodes
from eastwest.traces.source import Source
from eastwest.units import clean

#: Start of a file of groups: an object whose first key is a number.
_FILE = re.compile(rb'\s*\{\s*"\d+"\s*:\s*\[')
_MOST_FILE = 64 << 20
#: Names of the group of all ranks in PyTorch and ASTRA-sim.
_ALL = {"", "0"}

#: What a collective states about its ranks: name of the group, its number of ranks, list of ranks,
#: and whether it uses each dimension of the network; None where it does not state it.
Stated = tuple[str, int | None, tuple[int, ...] | None, tuple[bool, ...] | None]


@dataclass(frozen=True)
class Group:
    """A group of ranks."""

    #: Number of the group in rank files; group 0 has all ranks.
    number: int
    #: Ranks in the order of their numbers in the group.
    members: tuple[int, ...]


def stated(node: Node) -> Stated:
    """Return what a collective states about its ranks; raise ``ValueError`` if it is damaged."""
    size = next((n for key in GROUP_SIZES if (n := node.whole(key)) is not None), None)
    listed = next(
        (v for key in GROUP_RANKS if isinstance(v := node.about.get(key), list) and v), None
    )
    uses = node.about.get(DIMENSIONS)
    return (
        node.group(),
        size,
        None if listed is None else _ranks(listed),
        tuple(map(bool, uses)) if isinstance(uses, list) else None,
    )


def is_file_of_groups(source: Source) -> bool:
    """Whether a file has process groups, as communicator groups of ASTRA-sim."""
    return _FILE.match(source.peek(256)) is not None


@dataclass
class Groups:
    """Process groups of a trace of ``ranks`` ranks."""

    ranks: int
    #: Whether all ranks execute the trace of one file.
    repeated: bool
    #: Ranks of groups by name, from files of groups.
    _listed: dict[str, tuple[int, ...]] = field(default_factory=dict)
    #: Ranks of groups by number of the trace and name, from nodes that describe groups.
    _described: dict[tuple[int, str], tuple[int, ...]] = field(default_factory=dict)
    #: Number of traces that use each name.
    _users: Counter[str] = field(default_factory=Counter)
    #: Groups by name and set of ranks.
    _groups: dict[tuple[str, frozenset[int]], Group] = field(default_factory=dict)
    #: Name of the group with number 0, if it has another name than those of the group of all ranks.
    _name_of_all: str = ""

    def __post_init__(self) -> None:
        self._all = Group(0, tuple(range(self.ranks)))

    def take_file(self, source: Source) -> None:
        """Read a file of groups; raise ``InputError`` if it is damaged."""
        text = b"".join(source.blocks(_MOST_FILE))
        try:
            if len(text) > _MOST_FILE:
                raise ValueError(f"it has more than {_MOST_FILE:,} bytes, which is the maximum")
            for name, ranks in json.loads(text).items():
                self._listed[str(name)] = _ranks(ranks)
        except (ValueError, AttributeError, TypeError, RecursionError) as error:
            raise InputError(
                f"{source.name}: is not a list of ranks for each process group: "
                f"{clean(str(error), 80)}"
            ) from None

    def take_trace(self, number: int, source: Source) -> None:
        """Read the descriptions and the names of groups in the trace with a number."""
        names: set[str] = set()
        for node in nodes(source, groups_only=True):
            if node.described:
                self._describe(number, node.described)
            else:
                names.add(node.group())
        self._users.update(names)

    def _describe(self, number: int, text: str) -> None:
        """Read a description of groups, a list in JSON within other text; other text has none."""
        begin, end = text.find("[{"), text.rfind("}]")
        try:
            for group in json.loads(text[begin : end + 2]) if 0 <= begin < end else ():
                ranks = _ranks(group["ranks"]) or tuple(range(self.ranks))
                self._described[number, str(group["pg_name"])] = ranks
        except (ValueError, KeyError, TypeError, RecursionError):
            return

    def of(self, number: int, rank: int, what: Stated) -> Group | str:
        """Return the group of a collective, or the reason why it cannot be replayed.

        ``number`` is the number of the trace, ``rank`` the rank that executes it, and ``what`` what
        the collective states about its ranks.
        """
        name, size, found, uses = what
        if found is None and name:
            found = self._described.get((number, name), self._listed.get(name))
        if found is None and uses is not None and not all(uses):
            found = _along(uses, size, self.ranks, rank)
            if found is None:
                return "a collective over only some dimensions of the network (involved_dim)"
        elif found is None:
            return self._without_ranks(name, size)
        elif self.repeated:
            found = _moved(found, rank, self.ranks)
            if found is None:
                return "a collective of a process group, whose form does not give the other groups"
        if size not in {None, len(found)}:
            return "a collective of a process group that does not have the stated size"
        if rank not in found or max(found) >= self.ranks:
            return "a collective of a process group with ranks that the trace does not have"
        return self._group(name, found)

    def _without_ranks(self, name: str, size: int | None) -> Group | str:
        """Return the group of all ranks, or the reason why it is not known to be that of a name."""
        if size not in {None, self.ranks}:
            return "a collective that does not have all ranks, and lists none"
        if self.repeated:
            known = name in _ALL or size is not None or len(self._users.keys() - {""}) == 1
        else:
            known = not name or size is not None or self._users[name] == self.ranks
        if not known:
            return "a collective of a process group that is not known to have all ranks"
        return self._group(name, self._all.members)

    def _group(self, name: str, members: tuple[int, ...]) -> Group:
        if members == self._all.members and name not in _ALL and not self._name_of_all:
            self._name_of_all = name
        if members == self._all.members and name in {*_ALL, self._name_of_all}:
            return self._all
        new = Group(len(self._groups) + 1, members)
        return self._groups.setdefault((name, frozenset(members)), new)


def _ranks(listed: object) -> tuple[int, ...]:
    """Return a list of different ranks as a tuple; raise ``ValueError`` if it is another value."""
    ranks = tuple(listed) if isinstance(listed, list) else (-1,)
    if not all(isinstance(rank, int) and not isinstance(rank, bool) for rank in ranks):
        raise ValueError("expected numbers of ranks")
    if min(ranks, default=0) < 0 or len(set(ranks)) < len(ranks):
        raise ValueError("expected a list of different ranks")
    return ranks


def _moved(members: tuple[int, ...], rank: int, ranks: int) -> tuple[int, ...] | None:
    """Return the group of ``rank`` that has the form of a group of another rank.

    Groups whose ranks have an equal distance can divide all ranks into such groups; None: the form
    does not determine the groups of the other ranks.
    """
    ordered = sorted(members)
    step = ordered[1] - ordered[0] if len(ordered) > 1 else 1
    block = step * len(ordered)
    first = ordered[0] // block * block + ordered[0] % step
    if ordered != list(range(first, first + block, step)) or ranks % block:
        return None
    shift = rank // block * block + rank % step - first
    return tuple(member + shift for member in members)


def _along(
    uses: tuple[bool, ...], size: int | None, ranks: int, rank: int
) -> tuple[int, ...] | None:
    """Return the ranks that differ from ``rank`` only in the dimensions that a collective uses.

    Ranks are numbered along the first dimension first. The trace does not state the sizes of the
    dimensions; so the ranks are known only if the used dimensions are the first or the last ones,
    and ``size``, the product of their sizes, is stated. Otherwise the result is None.
    """
    if not size or ranks % size:
        return None
    if list(uses) == sorted(uses, reverse=True):
        first = rank // size * size
        return tuple(range(first, first + size))
    if list(uses) == sorted(uses):
        return tuple(range(rank % (ranks // size), ranks, ranks // size))
    return None
