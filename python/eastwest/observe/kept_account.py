"""Account of an import of spans, copied into results that are made from these spans.

An account lists the rows and values that an import left out, changed or noted. The JSON file of a
folder has the account of the folder's own import (``rows_skipped``, ``skipped``, ``changed``,
``noted``: see ``eastwest.account``), and under ``accounts`` the accounts of the spans from which
the folder was made. Folders can come from untrusted people: invalid accounts are ignored, and the
length of texts is limited.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eastwest.account import KINDS, MOST_REASONS, read_entry
from eastwest.units import clean, count

#: Maximum number of accounts in a result. A result has several accounts if it was made from folders
#: that were made from other folders.
MOST_ACCOUNTS = 8
#: Maximum size in bytes of a JSON file with accounts; a larger file is ignored.
_MOST_BYTES = 16 << 20
#: Maximum number of lines of accounts that a run shows for each workload.
_MOST_LINES = 12

Accounts = list[dict[str, Any]]


def accounts(about: Mapping[str, Any], name: str) -> Accounts:
    """Return the accounts in a folder's JSON: the folder's own, and those of its sources.

    ``about`` is the content of the JSON file, ``name`` the folder's name. The folder's own account
    is left out if it has no entries.
    """
    own = _account(about, name)
    before = about.get("accounts")
    found = [own] if any(own[kind] for kind in KINDS) else []
    for each in before if isinstance(before, list) else []:
        if isinstance(each, dict):
            found.append(_account(each, str(each.get("of", ""))))
    return found[:MOST_ACCOUNTS]


def _account(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    rows = given.get("rows_skipped")
    said: dict[str, Any] = {
        "of": clean(Path(name).name, 120),
        "rows_skipped": rows if isinstance(rows, int) and rows > 0 else 0,
    }
    for kind in KINDS:
        listed = given.get(kind)
        given_entries = listed if isinstance(listed, list) else []
        read = (read_entry(each) for each in given_entries[:MOST_REASONS])
        said[kind] = [entry for entry in read if entry]
    return said


def lines(found: Accounts) -> Iterator[str]:
    """Yield a line of text for each kind of data that an import left out, changed or noted.

    ``found`` are the accounts of imports.
    """
    for account in found:
        for kind, word in KINDS.items():
            for each in account[kind]:
                then = f"; {each['consequence']}" if each["consequence"] else ""
                place = _place(each["first"][0]) if each["first"] else account["of"]
                yield f"{word} {count(each['count'])} × {each['reason']}: {place}{then}"


def _place(first: Mapping[str, Any]) -> str:
    line = f":{first['line']}" if first["line"] else ""
    seen = f" has {first['found']!r}" if first["found"] else ""
    return f"{first['file']}{line}{seen}"


def beside(table: Path) -> Accounts:
    """Return the accounts of the spans from which the table of calls ``table`` was made.

    The accounts are in ``workload.json`` in the folder of the table or, if the table is in the
    result of a run, in ``<table>.account.json``. The list is empty if neither file exists.
    """
    for file in (table.with_name(f"{table.stem}.account.json"), table.with_name("workload.json")):
        try:
            if file.is_symlink() or not file.is_file() or file.stat().st_size > _MOST_BYTES:
                continue
            given = json.loads(file.read_bytes())
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(given, dict):
            return accounts({"accounts": given.get("accounts")}, table.name)
    return []


def of_run(text: str, base_dir: Path, resolved: str) -> tuple[list[str], list[tuple[str, bytes]]]:
    """Return notes for a run that replays transactions, and files with accounts for its result.

    A note is a line of text. A file is a pair (name in the result, content). ``text`` is the given
    scenario, with file names relative to ``base_dir``; ``resolved`` is the scenario stored in the
    result, with the names of the copied files.
    """
    notes: list[str] = []
    kept = []
    for (_, given), (name, copy) in zip(_tables(text), _tables(resolved), strict=False):
        found = beside(base_dir / given)
        if not found:
            continue
        said = list(lines(found))
        notes += [f"workload {name}: spans: {line}" for line in said[:_MOST_LINES]]
        if len(said) > _MOST_LINES:
            notes.append(
                f"workload {name}: spans: {len(said) - _MOST_LINES} further remarks of the import"
            )
        data = json.dumps({"accounts": found}, indent=1, ensure_ascii=False, allow_nan=False)
        file = Path(copy).with_name(f"{Path(copy).stem}.account.json")
        kept.append((file.as_posix(), (data + "\n").encode()))
    return notes, kept


def _tables(text: str) -> Sequence[tuple[str, str]]:
    """Return pairs (name, file) of the workloads of transactions in a scenario, a TOML text."""
    workloads = tomllib.loads(text).get("workload", [])
    return [
        (str(each.get("name", "")), str(each["file"]))
        for each in workloads
        if each.get("kind") == "transactions" and "file" in each
    ]
