"""Payload sizes of requests and responses for calls whose spans do not state them.

The size of a call comes from the attributes of its span. If they state no size, the size of another
call of the same service and operation is drawn at random. If no call of the operation has a size,
it is drawn from a given distribution. The default is that of queries in a web search service
(Alizadeh et al., *Data Center TCP*, SIGCOMM 2010, section 2.2): requests of 1.6 kB, responses of
1.6 to 2 kB. The number of sizes of each origin is reported.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass

import numpy as np

from eastwest.errors import InputError
from eastwest.observe.book import MOST_BYTES, Book, Call, Tree

#: Default rule for the payload bytes of a request; used if no span of its operation states a size.
REQUEST = "1600"
#: Default rule for the payload bytes of a response; used if no span of its operation states a size.
RESPONSE = "uniform:1600:2000"


@dataclass(frozen=True)
class SizeRule:
    """Rule for payload sizes in bytes; ``kind`` is ``fixed``, ``uniform`` or ``lognormal``.

    ``first`` is the size (fixed), the smallest size (uniform) or the median (lognormal); ``second``
    is the largest size (uniform), or the standard deviation of the logarithm (lognormal).
    """

    kind: str
    first: float
    second: float = 0.0

    def draw(self, random: np.random.Generator, count: int) -> list[int]:
        """Return ``count`` random sizes in bytes, each at least 1."""
        if self.kind == "fixed":
            return [int(self.first)] * count
        if self.kind == "uniform":
            return [int(n) for n in random.integers(int(self.first), int(self.second) + 1, count)]
        drawn = random.lognormal(np.log(self.first), self.second, count)
        return [int(n) for n in np.clip(np.rint(drawn), 1, MOST_BYTES)]

    def __str__(self) -> str:
        """Return the rule as a text that ``size_rule`` can read."""
        if self.kind == "fixed":
            return f"{self.first:.0f}"
        return f"{self.kind}:{self.first:g}:{self.second:g}"


def size_rule(text: str) -> SizeRule:
    """Return the rule in a text: ``1600``, ``uniform:1600:2000`` or ``lognormal:MEDIAN:SIGMA``.

    Raises ``InputError`` if ``text`` has another form.
    """
    kind, *numbers = ["fixed", text] if ":" not in text else text.split(":")
    wanted = {"fixed": 1, "uniform": 2, "lognormal": 2}
    try:
        values = [float(number) for number in numbers]
    except ValueError:
        values = []
    sound = len(values) == wanted.get(kind) and all(np.isfinite(values))
    if sound and kind == "lognormal":
        sound = 1 <= values[0] <= MOST_BYTES and 0 <= values[1] <= 10
    elif sound:
        whole = all(value.is_integer() for value in values)
        sound = whole and 1 <= values[0] <= values[-1] <= MOST_BYTES
    if not sound:
        raise InputError(
            f"the size {text!r:.60} must be a number of bytes (1600), "
            "uniform:LEAST:MOST or lognormal:MEDIAN:SIGMA, from 1 byte to 1 TB"
        )
    return SizeRule(kind, *values)


@dataclass
class Origins:
    """Numbers of messages whose size comes from attributes, from another call, or from the rule."""

    attributes: int = 0
    operation: int = 0
    default: int = 0

    def as_json(self) -> dict[str, int]:
        """Return the numbers of messages by the origin of their size, for JSON."""
        return asdict(self)


def fill(book: Book, request: SizeRule, response: SizeRule, seed: int) -> dict[str, dict[str, int]]:
    """Set the unknown sizes of calls between components, in place; return the origins of sizes.

    ``request`` and ``response`` are the rules for sizes that no span of an operation states. The
    result has the keys ``request_bytes`` and ``response_bytes``, each with the number of messages
    by the origin of their size.
    """
    calls = [call for tree in book.trees for call in tree.calls if travels(tree, call)]
    rules = {"request_bytes": request, "response_bytes": response}
    found = {}
    for number, (name, rule) in enumerate(rules.items()):
        random = np.random.default_rng([seed, number])
        found[name] = _fill_one(calls, name, rule, random).as_json()
    return found


def travels(tree: Tree, call: Call) -> bool:
    """Whether a call goes to another component, or is the first call of its transaction."""
    return call.parent < 0 or tree.calls[call.parent].component != call.component


def _fill_one(calls: list[Call], name: str, rule: SizeRule, random: np.random.Generator) -> Origins:
    known: dict[tuple[str, str], list[int]] = defaultdict(list)
    missing: list[Call] = []
    for call in calls:
        size = getattr(call, name)
        if size:
            known[call.service, call.operation].append(size)
        else:
            missing.append(call)
    unknown = []
    for call in missing:
        others = known.get((call.service, call.operation))
        if others:
            setattr(call, name, others[int(random.integers(len(others)))])
        else:
            unknown.append(call)
    for call, size in zip(unknown, rule.draw(random, len(unknown)), strict=True):
        setattr(call, name, size)
    said = len(calls) - len(missing)
    return Origins(said, len(missing) - len(unknown), len(unknown))
