"""The settings of scenarios as a JSON schema, with which editors complete and check TOML files."""

from __future__ import annotations

import json
from typing import Any

from eastwest import core

_TEXT = {"type": "string"}
_WHOLE = {"type": "integer", "minimum": 0}
_NUMBER = {"type": "number"}
_TEXTS = {"type": "array", "items": _TEXT}


def _with_unit(example: str) -> dict[str, Any]:
    """Return the schema of a text with a number and a unit, such as ``example``."""
    return {"type": "string", "pattern": r"^\s*[0-9]", "examples": [example]}


#: JSON schema of a value, by the type of the setting in ``eastwest schema``.
_VALUES: dict[str, dict[str, Any]] = {
    "count": _WHOLE,
    "whole number": _WHOLE,
    "bytes": {"anyOf": [_WHOLE, _with_unit("1500 B")]},
    "number": _NUMBER,
    "share": {"anyOf": [_NUMBER, {"type": "string", "pattern": r"%\s*$", "examples": ["40 %"]}]},
    "true or false": {"type": "boolean"},
    "choice": _TEXT,
    "name": _TEXT,
    "file": _TEXT,
    "time": _with_unit("10 ms"),
    "rate": _with_unit("10 Gbit/s"),
    "byte rate": _with_unit("100 MB/s"),
    "size": _with_unit("64 KB"),
    "packets or size": _with_unit("200 packets"),
    "list of counts": {"type": "array", "items": _WHOLE},
    "list of names": _TEXTS,
    "list of files": _TEXTS,
    "properties": {"type": "object"},
    # Names of measures have dots: without quotes they are nested tables.
    "goals": {
        "type": "object",
        "additionalProperties": {
            "anyOf": [
                {"type": "string", "pattern": r"^\s*([<>]=?\s*[-+.0-9]|minimal\s*$|maximal\s*$)"},
                {"type": "object"},
            ]
        },
    },
}

#: Ends of the paths of settings whose value is a shipped choice or the name of a user's own
#: mechanism.
_OPEN = (".queue.kind", ".host_queue.kind", ".congestion", ".routing")


def json_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 7) of scenario files: a dict that ``json.dumps`` accepts.

    The schema is less strict than ``eastwest check``: ranges of values with units, and the ``kind``
    of a table to which a key belongs, are in the descriptions only.
    """
    made = _table()
    for key in json.loads(core.schema())["keys"]:
        # A path with a colon, such as "Topology file: hosts", belongs to another kind of file.
        if ": " not in key["path"]:
            _add(made, key["path"].split("."), key)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Eastwest scenario",
        **made,
    }


def _table() -> dict[str, Any]:
    """Return the JSON schema of a TOML table that has no keys yet."""
    return {"type": "object", "properties": {}, "additionalProperties": False}


def _add(table: dict[str, Any], path: list[str], key: dict[str, Any]) -> None:
    """Add the schema of ``key``, an entry of ``eastwest schema``, to the schema of a table.

    ``path`` has the steps from this table to the key.
    """
    name, *rest = path
    keys = table["properties"]
    if rest:
        inner = keys[name]
        if rest[0] == "*":
            _add(inner["items"], rest[1:], key)
        else:
            _add(inner, rest, key)
        return
    new = _of(key)
    # A key with different meanings in several kinds of a table has one schema for each meaning.
    keys[name] = {"anyOf": [*keys[name].get("anyOf", [keys[name]]), new]} if name in keys else new
    if key.get("required") and not key.get("kinds"):
        table.setdefault("required", []).append(name)


def _of(key: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of ``key``, an entry of ``eastwest schema``, with a description."""
    made: dict[str, Any] = {"description": _description(key)}
    if key["type"] == "table":
        return made | _table()
    if key["type"] == "tables":
        return made | {"type": "array", "items": _table()}
    # Values of types without an entry have several forms, such as a number or a name: not checked.
    value = dict(_VALUES.get(key["type"], {}))
    if value in (_WHOLE, _NUMBER):
        for word, bound in (("minimum", "min"), ("maximum", "max")):
            if bound in key:
                value[word] = json.loads(key[bound])
    if key["type"] == "choice":
        names = [choice["name"] for choice in key["choices"]]
        # A queue, congestion control or routing may be the user's own mechanism.
        is_open = key["path"].endswith(_OPEN)
        value = {"anyOf": [{"enum": names}, _TEXT]} if is_open else {"enum": names}
    return made | value


def _description(key: dict[str, Any]) -> str:
    """Return the text that an editor shows for a key: meaning, default, range, kinds, choices."""
    lines = [key["doc"]]
    if key.get("required"):
        lines.append("Required.")
    if "default" in key:
        lines.append(f"Default: {key['default']}")
    if "absent" in key:
        lines.append(f"Without this key: {key['absent']}")
    if "min" in key or "max" in key:
        lines.append(f"Range: {key.get('min', '')} to {key.get('max', '')}")
    if key.get("kinds"):
        lines.append(f"Only for kind = {', '.join(key['kinds'])}")
    lines += [f"- {choice['name']}: {choice['doc']}" for choice in key.get("choices", [])]
    return "\n".join(lines)
