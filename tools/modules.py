"""Finds modules of a Rust crate that import each other in a cycle.

    python tools/modules.py             the cycles of every crate
    python tools/modules.py network     the cycles of one crate, with the imports that close each

A module is a file. It imports another where one of its paths (``use``, or in the code itself) leads
to it: ``crate::a::b::Item`` leads to the file of ``crate::a::b``. Tests do not count. The `mod`
lines with which a module declares its children are not imports.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from size import code

#: Path of a module below its crate; () is lib.rs.
Module = tuple[str, ...]
Graph = dict[Module, set[Module]]


def module_of(path: PurePosixPath) -> Module:
    """Return the module of a file below a crate's src/."""
    parts = path.with_suffix("").parts
    return parts[:-1] if parts[-1] in {"mod", "lib", "main"} else parts


def _leaves(tree: str) -> Iterator[list[str]]:
    """Yield all paths of a tree of imports: ``a::{b, c::d}`` has ``a::b`` and ``a::c::d``."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    if not brace:
        path = re.split(r"\s+as\s+", tree)[0]
        yield [part.strip() for part in path.split("::") if part.strip()]
        return
    prefix = [part.strip() for part in head.split("::") if part.strip()]
    depth, begin = 0, 0
    inner = rest.rsplit("}", 1)[0]
    for at, letter in enumerate(inner + ","):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            part = inner[begin:at]
            begin = at + 1
            if part.strip():
                for leaf in _leaves(part):
                    yield prefix + leaf


def paths(text: str) -> Iterator[list[str]]:
    """Yield all paths of a file that may lead to a module."""
    for found in re.finditer(r"\buse\s+([^;]*);", text):
        yield from _leaves(found[1])
    plain = re.sub(r"\buse\s+[^;]*;", "", text)
    for found in re.finditer(r"(?<![\w$:])\w+(?:::\w+)+", plain):
        yield found[0].split("::")


def imports(files: dict[Module, str]) -> Graph:
    """Return, for each module of a crate, the modules that it imports."""
    graph: Graph = {module: set() for module in files}
    for module, text in files.items():
        for path in paths(text):
            at = _lead(module, path, files)
            if at != module and at in files:
                graph[module].add(at)
    return graph


def _lead(module: Module, path: list[str], files: dict[Module, str]) -> Module:
    """Return the module to which a path leads: the longest part of the path that has a file."""
    at, rest = module, list(path)
    if rest[0] == "crate":
        at, rest = (), rest[1:]
    elif rest[0] == "self":
        rest = rest[1:]
    while rest and rest[0] == "super":
        at, rest = at[:-1], rest[1:]
    while rest and (*at, rest[0]) in files:
        at, rest = (*at, rest[0]), rest[1:]
    return at


def circles(graph: Graph) -> list[list[Module]]:
    """Return the sets of modules that import each other in a cycle (Tarjan), the largest first."""
    index: dict[Module, int] = {}
    low: dict[Module, int] = {}
    stack: list[Module] = []
    found: list[list[Module]] = []

    def visit(module: Module) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in sorted(graph[module]):
            if other not in index:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], index[other])
        if low[module] == index[module]:
            begin = stack.index(module)
            if len(stack) - begin > 1:
                found.append(sorted(stack[begin:]))
            del stack[begin:]

    for module in sorted(graph):
        if module not in index:
            visit(module)
    return sorted(found, key=len, reverse=True)


def crates() -> dict[str, dict[Module, str]]:
    """Return the modules of each crate with their code."""
    found: dict[str, dict[Module, str]] = {}
    for path, text in code(None).items():
        if path.parts[2] == "src":
            below = PurePosixPath(*path.parts[3:])
            found.setdefault(path.parts[1], {})[module_of(below)] = text
    return found


def _names(modules: Iterable[Module]) -> str:
    return ", ".join(sorted("::".join(module) or "lib" for module in modules))


def main() -> int:
    """Print the cycles; return 1 if there is one."""
    wanted = sys.argv[1:]
    clean = True
    for crate, files in sorted(crates().items()):
        if wanted and crate not in wanted:
            continue
        graph = imports(files)
        for circle in circles(graph):
            clean = False
            print(f"{crate}: {len(circle)} modules: {_names(circle)}")
            for module in circle if wanted else []:
                print(f"    {_names([module])} -> {_names(graph[module] & set(circle))}")
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
