"""Actuation of metrics: whether a metric can be controlled at run time, and how.

A control loop can use a selected metric only if an actuator exists. Gusat et al. 2009 (section 3)
divide the selected metrics into controllable and uncontrollable: the CPU of a tier is controlled by
adding servers at run time, a link only by another design. A table of rules assigns an actuation to
each metric; the first rule with a glob that matches the metric's name applies.
"""

from __future__ import annotations

import fnmatch
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from eastwest.errors import InputError
from eastwest.units import clean

_LARGEST_FILE = 1024 * 1024
_MOST_RULES = 10_000


class Control(StrEnum):
    """Whether an operator can change a metric: yes, no or unknown."""

    CONTROLLABLE = "controllable"
    NOT_CONTROLLABLE = "not controllable"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Rule:
    """Rule: actuation of the metrics whose names match one of the globs in ``metrics``."""

    #: Globs, in upper or lower case. A glob with ``{`` is compared with the metric's name and its
    #: labels, any other glob only with the name before the labels.
    metrics: tuple[str, ...]
    control: Control
    actuation: str

    def fits(self, metric: str) -> bool:
        """Whether one of the rule's globs matches ``metric``, a name with or without labels."""
        whole = metric.lower()
        name = whole.partition("{")[0]
        return any(
            fnmatch.fnmatchcase(whole if "{" in glob else name, glob.lower())
            for glob in self.metrics
        )


#: Result for a metric that matches no rule: it is not known whether it can be controlled.
UNKNOWN = Rule(("*",), Control.UNKNOWN, "")

#: Built-in rules for links and CPUs, as in Gusat et al. 2009. The globs cover the names of
#: Eastwest, of Prometheus exporters and of Kubernetes.
BUILT_IN = (
    Rule(
        ("eastwest_link_*", "*network*", "*packet*", "*bandwidth*", "*interface*", "ifhc*"),
        Control.NOT_CONTROLLABLE,
        "redesign: a faster link, more links, or another placement",
    ),
    Rule(
        ("*cpu*", "*processor*"),
        Control.CONTROLLABLE,
        "add servers at run time",
    ),
)


def rule_for(metric: str, rules: Sequence[Rule] = BUILT_IN) -> Rule:
    """Return the first of ``rules`` that matches the name ``metric``; ``UNKNOWN`` if none does."""
    return next((rule for rule in rules if rule.fits(metric)), UNKNOWN)


def read(path: Path) -> tuple[Rule, ...]:
    """Return the rules of a TOML file with tables ``[[rule]]``, followed by the built-in rules.

    Raises ``InputError`` if the file does not exist, is too large, or has other content.
    """
    if not path.exists():
        raise InputError(
            f"{clean(str(path), 200)}: the file of actuation rules does not exist; "
            "for the rules that Eastwest provides, use the word built-in"
        )
    if path.stat().st_size > _LARGEST_FILE:
        raise InputError(
            f"{path}: is larger than {_LARGEST_FILE:,} bytes, the limit for a file of "
            "actuation rules"
        )
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{path}: is not valid TOML: {clean(str(error), 200)}") from None
    rules = content.get("rule")
    if not isinstance(rules, list) or not rules or {*content} != {"rule"}:
        raise InputError(f"{path}: must contain one or more tables [[rule]], and nothing else")
    if len(rules) > _MOST_RULES:
        raise InputError(f"{path}: has {len(rules):,} rules; at most {_MOST_RULES:,} are allowed")
    return (*(_rule(f"{path}: rule.{n}", entry) for n, entry in enumerate(rules)), *BUILT_IN)


def _rule(where: str, entry: Any) -> Rule:
    if not isinstance(entry, dict) or {*entry} != {"metric", "controllable", "actuation"}:
        raise InputError(
            f"{where}: must be a table with exactly the keys metric, controllable and actuation"
        )
    given, able, actuation = entry["metric"], entry["controllable"], entry["actuation"]
    metrics = given if isinstance(given, list) else [given]
    if not metrics or not all(isinstance(each, str) and each for each in metrics):
        raise InputError(
            f"{where}: metric must be a name, a glob, or a list of names and globs; "
            "none may be empty"
        )
    if not isinstance(able, bool) or not isinstance(actuation, str):
        raise InputError(
            f"{where}: controllable must be true or false, and actuation must be a text"
        )
    control = Control.CONTROLLABLE if able else Control.NOT_CONTROLLABLE
    return Rule(tuple(metrics), control, actuation.strip())
