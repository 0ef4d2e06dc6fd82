"""Settings of scenarios, as the schema of the simulator declares them."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from typing import Any

from eastwest import core
from eastwest.studio.toml_text import Steps

#: A setting, as ``eastwest schema`` has it.
Key = dict[str, Any]
#: Function that returns the value of the key ``kind`` of a table; None where it is not set.
KindOf = Callable[[Steps], str | None]


@functools.cache
def _keys() -> dict[str, list[Key]]:
    """Return all settings of scenarios by path; a path has several if kinds share its name."""
    found: dict[str, list[Key]] = {}
    for key in json.loads(core.schema())["keys"]:
        # A path with a colon, such as "Topology file: hosts", belongs to another kind of file.
        if ": " not in key["path"]:
            found.setdefault(key["path"], []).append(key)
    return found


def tables() -> list[Key]:
    """Return all tables and lists of tables."""
    return [key for keys in _keys().values() for key in keys if key["type"] in {"table", "tables"}]


def pattern(steps: Steps) -> str:
    """Return the path of a setting in the schema: ``*`` stands for an item of a list of tables."""
    parts: list[str] = []
    for place, step in enumerate(steps):
        before = _keys().get(".".join(parts), [{}])[0].get("type") if parts else None
        if before == "tables" and parts[-1] != "*":
            parts.append("*")
            if isinstance(step, int):
                continue
            if place == 1 and len(steps) > 2 and f"{parts[0]}.*.{step}" not in _keys():
                continue  # an item named by its name, as in overrides
        parts.append("*" if isinstance(step, int) else step)
    return ".".join(parts)


def _table_kind(steps: Steps, kind_of: KindOf) -> tuple[bool, str | None]:
    """Return whether a table has a kind, and this kind.

    The kind is that of the innermost table, from the one at ``steps`` outwards, that can have a key
    ``kind``: its value, or its default.
    """
    for size in range(len(steps), 0, -1):
        path = f"{pattern(steps[:size])}.kind"
        if path in _keys():
            return True, kind_of(steps[:size]) or _keys()[path][0].get("default")
    return False, None


def find(steps: Steps, kind_of: KindOf) -> Key | None:
    """Return the setting at these steps, for the kind of its table; None where there is none."""
    keys = _keys().get(pattern(steps), [])
    _, kind = _table_kind(steps[:-1], kind_of)
    fitting = [key for key in keys if "kinds" not in key or kind in key["kinds"]]
    return next(iter(fitting or keys), None)


def inside(table: Steps, kind_of: KindOf) -> Iterator[Key]:
    """Yield the settings that a table may have, for its kind."""
    above = pattern((*table, "?")).removesuffix("?")
    has_kind, kind = _table_kind(table, kind_of)
    for path, keys in _keys().items():
        name = path.removeprefix(above)
        if not path.startswith(above) or "." in name or name in {"", "*"}:
            continue
        for key in keys:
            if not has_kind or "kinds" not in key or kind in key["kinds"]:
                yield key
                break


def name(key: Key) -> str:
    """Return the last name of a setting's path."""
    return str(key["path"]).rpartition(".")[2]
