"""The page ``README.md`` of a bundle, which is written from a template."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from eastwest import core
from eastwest.bundle import environment
from eastwest.bundle.contents import Contents
from eastwest.bundle.form import FORMAT, ROLES, File
from eastwest.units import clean, plural, size, span

_MOST_LISTED = 40


def page(contents: Contents, archive: str) -> str:
    """Return the text of the page; ``archive`` is the name of the archive's file."""
    made = Environment(
        loader=PackageLoader("eastwest.bundle"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    made.filters |= {"cell": _cell, "size": size, "plural": plural, "span": span}
    runs, files = contents.runs, contents.files
    quick = [run for run in runs if run.quick]
    return made.get_template("README.md.j2").render(
        name=_cell(contents.name),
        kind=contents.kind,
        archive=_cell(archive),
        version=core.version(),
        writers=sorted({run.version for run in runs}),
        machine=environment.machine(),
        format=FORMAT,
        runs=runs,
        quick=quick,
        cost=_cost(sum(run.cpu_s for run in runs)),
        quick_cost=_cost(sum(run.cpu_s for run in quick)),
        memory=size(max((run.peak_rss_mb for run in runs), default=0.0) * 1e6),
        roles=_roles(files),
        inputs=[file for file in files if file.role == "input"][:_MOST_LISTED],
        more_inputs=max(0, sum(file.role == "input" for file in files) - _MOST_LISTED),
        absent=[file for file in files if not file.inside],
        mechanisms=contents.mechanisms,
        facts=contents.facts,
        wheels=[f.path for f in files if f.role == "added" and f.path.endswith(".whl")],
        remarks=contents.remarks,
    )


def _cost(cpu_s: float) -> str:
    return f"about {span(float(f'{cpu_s:.2g}'))}" if cpu_s > 0 else "an unknown amount"


def _roles(files: list[File]) -> list[dict[str, Any]]:
    """Return a row for each role of files in the bundle: folders, meaning, number, bytes."""
    rows = []
    for role, meaning in ROLES.items():
        there = [file for file in files if file.role == role and file.inside]
        if there:
            places = dict.fromkeys(_place(file.path) for file in there)
            whole = sum(file.size for file in there)
            shown = ", ".join(f"`{place}`" for place in [*places][:4]) + ", …" * (len(places) > 4)
            rows.append(
                {"places": shown, "meaning": meaning, "count": len(there), "size": size(whole)}
            )
    return rows


def _place(path: str) -> str:
    """Return the top folder of a path, with a slash, or the name of a file without folder."""
    first, slash, _ = path.partition("/")
    return f"{first}{slash}" if slash else PurePosixPath(path).name


def _cell(text: object) -> str:
    """Return untrusted text for a line or a cell of a table in Markdown."""
    return clean(str(text), 300).replace("|", "\\|").replace("`", "'").replace("<", "&lt;")
