"""Changes of a fabric with the mouse: the topology file, and the scenario that names it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from eastwest.errors import InputError
from eastwest.files import write_whole
from eastwest.studio import settings
from eastwest.studio.files import Folder
from eastwest.studio.refused import RefusedError
from eastwest.studio.toml_text import Place, Scan, scan
from eastwest.sweep.values import toml
from eastwest.topologies.fabric import NAME, Cable, Fabric
from eastwest.units import clean

#: Maximum number of nodes of a fabric that the page can edit.
MOST_NODES = 64
_MOST_CABLES = 4096
#: First line of topology files that the studio may replace.
_OURS = "Written by eastwest studio, which replaces this file when the fabric is edited."


def edit(body: dict[str, Any], folder: Folder) -> dict[str, str]:
    """Write a topology file beside a scenario; return its name and the scenario that reads it."""
    text, path = body.get("text"), body.get("path")
    if not isinstance(text, str):
        raise RefusedError(400, "text: expected the text of the scenario")
    written = topology_text(body.get("topology"))
    beside = folder.locate(path) if path is not None else folder.path / "studio.toml"
    target = _target(text, beside, folder)
    name = target.name
    changed = with_graph(text, name)
    try:
        write_whole(target, written.encode())
    except (InputError, OSError) as error:
        raise RefusedError(400, f"{name}: {clean(str(error), 300)}") from None
    return {"text": changed, "file": name}


def own_file(text: str, base: Path, folder: Folder) -> Path | None:
    """Return the topology file of a scenario if the studio wrote it; otherwise None."""
    try:
        fabric = tomllib.loads(text).get("fabric")
    except (ValueError, RecursionError):
        return None
    name = fabric.get("file") if isinstance(fabric, dict) else None
    if not isinstance(name, str) or Path(name).name != name:
        return None
    try:
        inside = base.resolve().relative_to(folder.path)
        path = folder.locate((inside / name).as_posix())
    except (RefusedError, ValueError):
        return None
    return path if _is_ours(path) else None


def _is_ours(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.readline(200).decode(errors="replace").strip() == f"# {_OURS}"
    except OSError:
        return False


def _target(text: str, beside: Path, folder: Folder) -> Path:
    """Return the path of the topology file: the present one of the studio, or a free name."""
    own = own_file(text, beside.parent, folder)
    if own is not None:
        return own
    for number in range(1, 1000):
        ending = "" if number == 1 else f"-{number}"
        name = f"{beside.stem}-topology{ending}.toml"
        inside = (beside.parent.relative_to(folder.path) / name).as_posix()
        path = folder.locate(inside)
        if not path.exists():
            return path
    raise RefusedError(409, f"{beside.stem}-topology.toml and 998 further names are in use")


def topology_text(topology: object) -> str:
    """Return a topology file for hosts, switches and cables of the page."""
    if not isinstance(topology, dict):
        raise RefusedError(400, "topology: expected hosts, switches and cables")
    hosts, switches = (_names(topology, key) for key in ("hosts", "switches"))
    cables = topology.get("cables")
    if len(hosts) + len(switches) > MOST_NODES:
        raise RefusedError(400, f"topology: at most {MOST_NODES} nodes can be edited here")
    if not isinstance(cables, list) or len(cables) > _MOST_CABLES:
        raise RefusedError(400, f"cables: expected a list of at most {_MOST_CABLES} cables")
    nodes = [*hosts, *switches]
    fabric = Fabric(hosts, switches, [_cable(cable, nodes) for cable in cables])
    return fabric.to_toml(_OURS)


def _names(topology: dict[str, Any], key: str) -> list[str]:
    names = topology.get(key)
    if not isinstance(names, list) or not all(_is_name(name) for name in names):
        raise RefusedError(
            400, f"{key}: expected names of 1 to 64 letters, digits, '.', '_' and '-'"
        )
    return names


def _is_name(name: object) -> bool:
    return isinstance(name, str) and NAME.fullmatch(name) is not None


def _cable(cable: object, nodes: list[str]) -> Cable:
    """Return a cable of the page. Raises ``RefusedError`` where an end or a number is wrong."""
    if not isinstance(cable, dict) or any(cable.get(end) not in nodes for end in ("a", "b")):
        raise RefusedError(400, "cables: a cable has two ends, a and b, which are nodes")
    rate_bps = _number(cable, "rate_bps", least=1)
    return Cable(cable["a"], cable["b"], rate_bps, _number(cable, "delay_us", least=0) / 1e6)


def _number(cable: dict[str, Any], key: str, least: float) -> float:
    value = cable.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value < 1e15:
        raise RefusedError(400, f"cables: {key} is a number from {least} on")
    return value


def with_graph(text: str, file: str) -> str:
    """Return a scenario whose fabric is the graph in ``file``.

    Settings of another kind of fabric are removed from ``[fabric]``; its queues and other tables
    stay, and so do all comments outside of the removed lines.
    """
    try:
        tree = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, f"the scenario is not TOML: {clean(str(error))}") from None
    fabric = tree.get("fabric", {})
    if not isinstance(fabric, dict):
        raise RefusedError(400, "fabric: expected a table")
    wanted = {"kind": "graph", "file": file} | {
        key: value for key, value in fabric.items() if not _is_replaced(key)
    }
    found = scan(text)
    whole = found.values.get(("fabric",))
    changed = (
        text[: whole.start] + toml(wanted) + text[whole.end :]
        if whole is not None
        else _edited(found, file)
    )
    try:
        if tomllib.loads(changed) == {**tree, "fabric": wanted}:
            return changed
    except tomllib.TOMLDecodeError:
        pass
    raise RefusedError(
        400, 'the scenario could not be changed: write kind = "graph" and file into [fabric]'
    )


def _is_replaced(key: str) -> bool:
    """Whether a key of ``[fabric]`` is set by the edit, or belongs to other kinds of fabric."""
    if key in {"kind", "file"}:
        return True
    declared = settings.find(("fabric", key), lambda _: "graph")
    return declared is not None and "graph" not in declared.get("kinds", ["graph"])


def _edited(found: Scan, file: str) -> str:
    """Return a text without the replaced lines of ``[fabric]``, and with the graph's lines."""
    text = found.text
    new = f'kind = "graph"\nfile = {toml(file)}\n'
    gone = [
        place
        for steps, place in found.values.items()
        if len(steps) == 2 and steps[0] == "fabric" and _is_replaced(str(steps[1]))
    ]
    header = next((p for p in found.places if p.kind == "header" and p.steps == ("fabric",)), None)
    if header is None:
        first = next((p.start for p in found.places if p.kind == "header"), len(text))
        dotted = f'fabric.kind = "graph"\nfabric.file = {toml(file)}\n'
        insert_at, inserted = first, dotted if _has_dotted(found) else f"[fabric]\n{new}\n"
    else:
        end = text.find("\n", header.end)
        insert_at = len(text) if end < 0 else end + 1
        inserted = new if end >= 0 else f"\n{new}"
    parts, at = [], 0
    cuts = sorted([*(_line(text, place) for place in gone), (insert_at, insert_at)])
    for start, end in cuts:
        parts.append(text[at : max(at, start)])
        if (start, end) == (insert_at, insert_at):
            parts.append(inserted)
        at = max(at, end)
    return "".join([*parts, text[at:]])


def _has_dotted(found: Scan) -> bool:
    """Whether keys of the fabric are written without a header: ``fabric.kind = …``."""
    return any(p.kind == "key" and p.steps[:1] == ("fabric",) for p in found.places)


def _line(text: str, place: Place) -> tuple[int, int]:
    """Return begin and end of the whole lines with a setting."""
    start = text.rfind("\n", 0, place.start) + 1
    end = text.find("\n", place.end)
    return start, len(text) if end < 0 else end + 1
