"""Rendering of templates into HTML pages that consist of one file and load no other file.

The content security policy in the head of a page allows only the style sheet and the script of this
package, by their hashes. Names from results are in the page as escaped text, or as JSON that cannot
end its script element.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from eastwest.errors import InputError
from eastwest.files import write_whole
from eastwest.report.draw import Chart
from eastwest.results import Result
from eastwest.traces.form import ABOUT

_STYLES = ("page.css", "charts.css")
_SCRIPTS = ("format.js", "dom.js", "theme.js", "chart.js", "edges.js", "topology.js", "page.js")
#: Characters that could end a script element or a line of a script, and how JSON escapes them.
_UNSAFE = str.maketrans({sign: f"\\u{ord(sign):04x}" for sign in "<>&'\u2028\u2029"})


def write_page(results: Sequence[Result], out: Path | None = None) -> Path:
    """Write the page about one result, or the comparison of several, and return the file's path.

    By default, the file is ``report.html`` in the folder of the result, or ``comparison.html``
    beside the folder of the first result.
    """
    from eastwest.report.compare import comparison  # noqa: PLC0415  they need `render` below
    from eastwest.report.single import single  # noqa: PLC0415

    if not results:
        raise ValueError("a report needs at least one result folder")
    if len(results) == 1:
        target = out or results[0].path / "report.html"
        text = single(results[0])
    else:
        target = out or results[0].path.parent / "comparison.html"
        text = comparison(results)
    write_text(target, text)
    return target


def write_report(folders: Sequence[Path], out: Path | None = None) -> Path:
    """Write the page about results, a sweep, an optimisation or a trace; return the file's path.

    Raises ``InputError`` if the folder of a sweep, an optimisation or a trace is not the only
    folder.
    """
    from eastwest.optimize.folder import OptimizeResult  # noqa: PLC0415
    from eastwest.optimize.folder import read_summary as read_optimisation  # noqa: PLC0415
    from eastwest.report.optimize import optimize_page  # noqa: PLC0415
    from eastwest.report.sweeps import sweep_page  # noqa: PLC0415
    from eastwest.sweep.tables import SweepResult, read_summary  # noqa: PLC0415

    kinds: tuple[tuple[str, Callable[[Path], bool], Callable[[Path], str]], ...] = (
        ("a trace", lambda f: (f / ABOUT).is_file(), _trace_page),
        (
            "an optimisation",
            lambda f: read_optimisation(f) is not None,
            lambda f: optimize_page(OptimizeResult(f)),
        ),
        ("a sweep", lambda f: read_summary(f) is not None, lambda f: sweep_page(SweepResult(f))),
    )
    for what, is_one, page in kinds:
        found = next((folder for folder in folders if is_one(folder)), None)
        if found is not None:
            if len(folders) > 1:
                raise InputError(
                    f"{found} is the folder of {what}, which cannot be compared with "
                    "other folders: name only this folder"
                )
            target = out or found / "report.html"
            write_text(target, page(found))
            return target
    return write_page([Result(folder) for folder in folders], out)


def _trace_page(folder: Path) -> str:
    """Return the page about an imported trace: of jobs, or of the ranks of an MPI program."""
    from eastwest.report.trace import description_page, mpi_page  # noqa: PLC0415  slow to load
    from eastwest.traces.load import open_trace  # noqa: PLC0415
    from eastwest.traces.mpi.ranks import FORMAT  # noqa: PLC0415
    from eastwest.traces.opened import read_about  # noqa: PLC0415
    from eastwest.workload.describe import describe  # noqa: PLC0415

    if not (folder / "jobs.parquet").exists():
        about = read_about(folder / ABOUT, str(folder), "a trace", FORMAT)
        return mpi_page(str(folder), about)
    with open_trace(folder) as trace:
        return description_page(describe(trace))


def write_text(target: Path, text: str) -> None:
    """Write a text file atomically: after a failure there is no partial file."""
    write_whole(target, text.encode("utf-8", errors="replace"))


def as_json(data: Any) -> Markup:
    """Return data as JSON that is safe in a script element of a page."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return Markup(text.translate(_UNSAFE))


def shared(names: Sequence[str]) -> str:
    """Return style sheets or scripts of this package as one text."""
    folder = resources.files("eastwest.report") / "templates"
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


def hash_of(text: str) -> str:
    """Return the hash of a style sheet or script, as content security policies write it."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@functools.cache
def _environment() -> Environment:
    """Return the environment of the templates of pages."""
    return Environment(
        loader=PackageLoader("eastwest.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def fabric_svg(outline: dict[str, Any], about: str) -> str:
    """Return a drawing of a fabric as SVG; ``outline`` is made by ``report.topology``.

    ``about`` is a sentence for readers who do not see the drawing.
    """
    module: Any = _environment().get_template("network.html.j2").module
    return str(module.fabric(outline, about))


def render(
    template: str,
    charts: Iterable[Chart],
    topology: dict[str, Any] | None = None,
    /,
    **context: Any,
) -> str:
    """Return the HTML text of a template with the values in ``context``.

    The page's script gets the data of ``charts`` and of the drawing ``topology``.
    """
    css, script = shared(_STYLES), f'"use strict";\n(() => {{\n{shared(_SCRIPTS)}}})();\n'
    return (
        _environment()
        .get_template(template)
        .render(
            css=Markup(css),
            script=Markup(script),
            policy=(
                f"default-src 'none'; style-src {hash_of(css)}; script-src {hash_of(script)}; "
                "base-uri 'none'; form-action 'none'"
            ),
            data=as_json({"charts": {c.name: c.script() for c in charts}, "topology": topology}),
            **context,
        )
    )
