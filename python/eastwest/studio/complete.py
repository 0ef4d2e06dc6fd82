"""Completion and explanation of settings at a place of a scenario text that may be incomplete."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from eastwest import core, shipped
from eastwest.errors import nearest
from eastwest.studio import settings
from eastwest.studio.settings import Key
from eastwest.studio.toml_text import Place, Scan, Steps, scan, unquoted
from eastwest.sweep.values import toml, units_like

#: Maximum number of completions.
MOST_ITEMS = 60
_MOST_HOSTS = 2000
#: Unit of the first example of a quantity, by type of the setting.
_EXAMPLES = {
    "time": "1 ms",
    "rate": "10 Gbit/s",
    "byte rate": "100 MB/s",
    "size": "64 KB",
    "packets or size": "100 packets",
    "bytes": "1500",
    "share": "0.1",
}
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
#: Types of settings whose values are texts with names of hosts.
_HOSTS = {"hosts", "places"}
#: Begin of the explanation of settings of the type ``name`` whose value is the name of a host.
_HOST_DOCS = ("Host ", "Sending host", "Receiving host")


@dataclass(frozen=True)
class Item:
    """A completion: text in the list, text to insert, explanation, and remark in the list."""

    label: str
    insert: str
    doc: str
    detail: str = ""
    #: Rank in the list: smaller ranks come first.
    rank: int = 0


def complete(text: str, offset: int) -> dict[str, Any]:
    """Return the completions at an offset, and the part of the text that they replace."""
    found = scan(text)
    offset = max(0, min(offset, len(text)))
    place = found.at(offset)
    start, end, items = _at(found, place, offset)
    typed = text[start:offset]
    kept = _ordered(list(items), typed)
    return {
        "start": start,
        "end": end,
        "items": [
            {"label": i.label, "insert": i.insert, "doc": i.doc, "detail": i.detail}
            for i in kept[:MOST_ITEMS]
        ],
    }


def _at(found: Scan, place: Place | None, offset: int) -> tuple[int, int, Iterator[Item]]:
    """Return begin and end of the replaced text, and the completions that fit there."""
    if place is None:
        return offset, offset, _at_line(found, found.table_at(offset))
    if place.kind == "header":
        return place.start, place.end, _headers(found, place)
    if place.kind == "key":
        is_line = not found.text[: place.start].rpartition("\n")[2].strip()
        items = _at_line(found, place.steps, place) if is_line else _keys(found, place.steps, place)
        return _last_name(found.text, place), place.end, items
    if place.kind == "value":
        return _of_value(found, place, offset)
    is_inside = place.kind == "inline" and not _in_list(found.text, place, offset)
    return offset, offset, _keys(found, place.steps) if is_inside else iter(())


def _last_name(text: str, place: Place) -> int:
    """Return the offset of the last name of a dotted key."""
    return place.start + text[place.start : place.end].rfind(".") + 1


def _in_list(text: str, place: Place, offset: int) -> bool:
    """Whether an offset in an inline table follows a key or a value without a comma."""
    before = text[place.start : offset].rstrip(" \t")
    return bool(before) and not before.endswith((",", "{"))


def _of_value(found: Scan, place: Place, offset: int) -> tuple[int, int, Iterator[Item]]:
    """Return begin and end of the replaced text, and the values that a setting may have."""
    steps = place.steps
    while steps and isinstance(steps[-1], int):  # an item of a list
        steps = steps[:-1]
    key = settings.find(steps, _kind_of(found))
    start, end = place.start, place.end
    shown = found.text[start:end]
    if not shown.strip():
        start = offset if offset > start else end
        start, end, shown = max(start, place.start), max(offset, place.start), ""
        lead = "" if found.text[:start].endswith((" ", "\t")) else " "
    else:
        lead = ""
    if shown.startswith("["):  # between the items of a list
        start = end = offset
        shown = ""
    if key is None:
        return start, end, iter(())
    items = _values(found, key, shown)
    return start, end, (_led(item, lead) for item in items)


def _led(item: Item, lead: str) -> Item:
    return Item(item.label, lead + item.insert, item.doc, item.detail, item.rank)


def _kind_of(found: Scan) -> settings.KindOf:
    return lambda table: found.value_of((*table, "kind"))


def _at_line(found: Scan, table: Steps, place: Place | None = None) -> Iterator[Item]:
    """Yield the keys of a table, and then the headers of all tables."""
    yield from _keys(found, table, place)
    yield from _headers(found, None)


def _keys(found: Scan, table: Steps, place: Place | None = None) -> Iterator[Item]:
    """Yield the keys that a table may have and lacks; ``place`` is the key at the cursor."""
    own = set()
    if place is not None:
        names = found.text[place.start : place.end].split(".")
        own = {unquoted(names[-1])}
    there = found.keys_of(table) - own
    if place is not None and own:
        # The key at the cursor is in the text once: another one of this name is not missing.
        same = [
            p for p in found.places
            if p.kind == "key" and p.steps == table and found.text[p.start : p.end] in own
        ]  # fmt: skip
        there |= own if len(same) > 1 else set()
    for key in settings.inside(table, _kind_of(found)):
        name = settings.name(key)
        if name in there or key["type"] == "tables":
            continue
        insert = f"{name} = "
        if key["type"] == "table":
            insert = f"{name} = {{ "
        required = bool(key.get("required"))
        kind = name == "kind"
        rank = 0 if required else 1 if kind else 2 if key["type"] != "table" else 3
        yield Item(name, insert, key["doc"], _detail(key), rank)


def _detail(key: Key) -> str:
    """Return the remark about a setting in the list: its type, and its default."""
    if key.get("required"):
        return f"{key['type']}, required"
    if "default" in key:
        return f"{key['type']}, default {key['default']}"
    return str(key["type"])


def _headers(found: Scan, place: Place | None) -> Iterator[Item]:
    """Yield the headers of tables; ``place`` is the header at the cursor."""
    current: Steps = ()
    for each in found.places:
        if each.kind == "header" and (place is None or each.start < place.start):
            current = each.steps
    there = {each.steps for each in found.places if each.kind == "header" and each != place}
    for key in settings.tables():
        path: str = key["path"]
        steps = tuple(path.split("."))
        is_list = key["type"] == "tables"
        name = ".".join(step for step in steps if step != "*")
        near = 4
        if "*" in steps:
            # A table inside a list belongs to the last item of the list.
            place_of = steps.index("*")
            if current[:place_of] != steps[:place_of] or not _fits(found, key, current, place_of):
                continue
        elif not is_list and steps in there:
            continue
        brackets = ("[[", "]]") if is_list else ("[", "]")
        label = f"{brackets[0]}{name}{brackets[1]}"
        yield Item(label, label, key["doc"], "list of tables" if is_list else "table", near)


def _fits(found: Scan, key: Key, current: Steps, size: int) -> bool:
    kinds = key.get("kinds")
    return not kinds or found.value_of((*current[: size + 1], "kind")) in kinds


def _values(found: Scan, key: Key, shown: str) -> Iterator[Item]:
    """Yield the values of a setting; ``shown`` is the text at the cursor."""
    kind, default = key["type"], key.get("default")
    if kind == "choice":
        for place, choice in enumerate(key["choices"]):
            is_default = choice["name"] == default
            detail = "default" if is_default else ""
            yield Item(choice["name"], toml(choice["name"]), choice["doc"], detail, place)
    elif kind == "true or false":
        for value in ("true", "false"):
            detail = "default" if value == default else ""
            yield Item(value, value, key["doc"], detail, value != default)
    elif kind in _HOSTS or key["doc"].startswith(_HOST_DOCS):
        for name in _hosts(found):
            yield Item(name, toml(name), key["doc"], "host")
    elif kind in {"table"}:
        yield Item("{ … }", "{ ", key["doc"], "table")
    elif kind == "name" and settings.name(key) == "class":
        for name in dict.fromkeys(found.names_of("class", "workload")):
            yield Item(name, toml(name), key["doc"], "name")
    else:
        yield from _quantities(key, shown)


def _quantities(key: Key, shown: str) -> Iterator[Item]:
    """Yield values of a quantity: what was typed with each unit, default, and limits."""
    number = _NUMBER.match(unquoted(shown))
    example = _EXAMPLES.get(key["type"])
    if number is not None and example is not None:
        for unit in units_like(example):
            text = f"{number[0]} {unit}"
            yield Item(text, toml(text), key["doc"], "", 1)
    if "default" in key:
        yield _quantity(key, key["default"], "default", 0)
    elif example is not None:
        yield _quantity(key, example, "example", 0)
    for name, word in (("min", "least"), ("max", "most")):
        if name in key:
            yield _quantity(key, key[name], word, 2)


def _quantity(key: Key, value: str, detail: str, rank: int) -> Item:
    """Return the completion for a value of the schema, with quotes where TOML needs them."""
    try:
        tomllib.loads(f"x = {value}")
        insert = value
    except tomllib.TOMLDecodeError:
        insert = toml(value)
    return Item(value, insert, key["doc"], detail, rank)


def _hosts(found: Scan) -> list[str]:
    """Return the names of the hosts of the fabric of a text, which may be incomplete.

    If the text cannot be read, its line with the error, and then all but its fabric, are left out.
    """
    for text in _readable(found):
        try:
            shape = core.topology(text, "/nowhere", str(shipped.DATA), [])
        except core.scenario_error():
            continue
        names: list[str] = shape["nodes"][: shape["hosts"]]
        return names[:_MOST_HOSTS]
    return []


def _readable(found: Scan) -> Iterator[str]:
    """Yield texts with the fabric of a text and a workload that any fabric allows."""
    try:
        tree = tomllib.loads(found.text)
    except (ValueError, RecursionError):
        tree = _without_errors(found)
    fabric = tree.get("fabric")
    if isinstance(fabric, dict):
        workload = {"name": "w", "kind": "permutation", "bytes": "1 KB"}
        yield f"schema = 1\nfabric = {toml(fabric)}\nworkload = [{toml(workload)}]\n"
        wanted = {
            k: v for k, v in fabric.items() if not isinstance(v, (dict, list)) or k == "sizes"
        }
        yield f"schema = 1\nfabric = {toml(wanted)}\nworkload = [{toml(workload)}]\n"


def _without_errors(found: Scan) -> dict[str, Any]:
    """Return the table ``fabric`` of a text with each setting that can be read alone."""
    fabric: dict[str, Any] = {}
    for steps, place in found.values.items():
        if len(steps) == 2 and steps[0] == "fabric":
            try:
                value = tomllib.loads(f"x = {found.text[place.start : place.end]}")["x"]
            except (ValueError, RecursionError):
                continue
            fabric[str(steps[1])] = value
    return {"fabric": fabric}


def _ordered(items: list[Item], typed: str) -> list[Item]:
    """Return the completions that fit to what was typed, best first."""
    wanted = unquoted(typed).strip(" []\t").lower()
    if not wanted:
        return sorted(items, key=lambda i: i.rank)
    names = {id(i): i.label.strip("[]").lower() for i in items}
    begins = [i for i in items if names[id(i)].startswith(wanted)]
    contain = [i for i in items if wanted in names[id(i)] and i not in begins]
    found = sorted(begins, key=lambda i: i.rank) + sorted(contain, key=lambda i: i.rank)
    if not found:
        near = nearest(wanted, names.values())
        found = [i for i in items if names[id(i)] == near]
    return found


def hover(text: str, offset: int) -> dict[str, Any]:
    """Return the setting at an offset: path, meaning, type, default and range; {} without one."""
    found = scan(text)
    place = found.at(max(0, min(offset, len(text))))
    if place is None or place.kind in {"comment", "inline"}:
        return {}
    steps = place.steps
    if place.kind == "key":
        names = text[place.start : place.end].split(".")
        steps = (*steps, unquoted(names[-1]))
    while steps and isinstance(steps[-1], int):
        steps = steps[:-1]
    key = settings.find(steps, _kind_of(found))
    if key is None:
        return {}
    told = {
        "path": key["path"],
        "doc": key["doc"],
        "type": key["type"],
        "default": key.get("default"),
        "min": key.get("min"),
        "max": key.get("max"),
        "absent": key.get("absent"),
        "required": bool(key.get("required")),
        "kinds": key.get("kinds"),
        "choices": key.get("choices"),
    }
    chosen = found.value_of(steps)
    if place.kind == "value":
        match = [c for c in key.get("choices", []) if c["name"] == chosen]
        told["choice"] = match[0] if match else None
    return told
