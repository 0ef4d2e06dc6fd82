"""The page of the studio: one HTML text, and a content security policy for its parts."""

from __future__ import annotations

from importlib import resources
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from eastwest.report.page import hash_of, shared

#: Style sheets and scripts that the page has in common with reports.
_SHARED_STYLES = ("page.css", "charts.css")
_SHARED_SCRIPTS = ("format.js", "dom.js", "theme.js", "edges.js")
#: Script that starts the page, after all others.
_MAIN = "studio.js"


class Page(NamedTuple):
    """HTML text, and the value of its header ``Content-Security-Policy``."""

    html: str
    policy: str


def page() -> Page:
    """Return the page of the studio."""
    css = "\n".join([shared(_SHARED_STYLES), _own(".css")])
    body = "\n".join([shared(_SHARED_SCRIPTS), _own(".js")])
    script = f'"use strict";\n(() => {{\n{body}}})();\n'
    environment = Environment(
        loader=PackageLoader("eastwest.studio"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    html = environment.get_template("studio.html.j2").render(css=Markup(css), script=Markup(script))
    return Page(
        html,
        f"default-src 'none'; style-src {hash_of(css)}; script-src {hash_of(script)}; "
        "connect-src 'self'; frame-src 'self'; img-src 'self' data: blob:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    )


def _own(ending: str) -> str:
    """Return the studio's own style sheets or scripts as one text, the main script last."""
    folder = resources.files("eastwest.studio") / "templates"
    files = [each for each in folder.iterdir() if each.name.endswith(ending)]
    files.sort(key=lambda each: (each.name == _MAIN, each.name))
    return "\n".join(each.read_text(encoding="utf-8") for each in files)
