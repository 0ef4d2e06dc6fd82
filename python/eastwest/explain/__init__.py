"""Why something took as long as it did: the story of a flow, job, task or connection of a result.

>>> import eastwest as ew
>>> print(ew.explain(ew.load("results/a"), "flow", 17))          # doctest: +SKIP

Every number comes from the tables of the result folder; what they cannot tell is called
unknown.
"""

from __future__ import annotations

from eastwest.explain.api import KINDS, explain, slowest
from eastwest.explain.story import Moment, Part, Section, Story

__all__ = ["KINDS", "Moment", "Part", "Section", "Story", "explain", "slowest"]
