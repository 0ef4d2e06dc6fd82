"""Text for LaTeX: every text is escaped, so that names from scenarios are text and not commands."""

from __future__ import annotations

import functools
import re
import shutil
import unicodedata
from collections.abc import Iterator

from matplotlib.artist import Artist
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import Formatter

from eastwest.errors import InputError
from eastwest.units import clean

#: Lines before the text: an encoding that has all ASCII characters, and their commands. The font
#: Times has outlines (Type 1) in this encoding; Computer Modern has them only with cm-super.
PREAMBLE = r"\usepackage[T1]{fontenc}\usepackage{textcomp}"
#: Programs that matplotlib runs.
_PROGRAMS = ("latex", "dvipng")
_PACKAGES = "texlive-latex-extra, texlive-fonts-recommended, cm-super and dvipng"

#: Commands for characters with a meaning in LaTeX, and for characters that it would join (``--``).
_COMMANDS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}",
    "`": r"\`{}",
    "-": "-{}",
    ",": ",{}",
    "?": "?{}",
    "!": "!{}",
}
_SIGNS = {
    "µ": r"\textmu{}",
    "×": r"$\times$",
    "÷": r"$\div$",
    "±": r"$\pm$",
    "−": "$-$",
    "·": r"$\cdot$",
    "→": r"$\rightarrow$",
    "←": r"$\leftarrow$",
    "↔": r"$\leftrightarrow$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "≠": r"$\neq$",
    "≈": r"$\approx$",
    "∞": r"$\infty$",
    "°": r"\textdegree{}",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "…": r"\ldots{}",
    "‘": r"\textquoteleft{}",
    "’": r"\textquoteright{}",
    "“": r"\textquotedblleft{}",
    "”": r"\textquotedblright{}",
    "«": r"\guillemotleft{}",
    "»": r"\guillemotright{}",
    "§": r"\S{}",
    "©": r"\textcopyright{}",
    "€": r"\texteuro{}",
    "ß": r"\ss{}",
    "æ": r"\ae{}",
    "Æ": r"\AE{}",
    "œ": r"\oe{}",
    "Œ": r"\OE{}",
    "ø": r"\o{}",
    "Ø": r"\O{}",
    "ł": r"\l{}",
    "Ł": r"\L{}",
    "ı": r"\i{}",
    "\N{NO-BREAK SPACE}": "~",
}
#: Accents of LaTeX, by the combining character of Unicode.
_ACCENTS = dict(
    zip("\u0300\u0301\u0302\u0303\u0308\u030a\u0327\u030c\u0304\u0306\u0307\u030b\u0328",
        ("`", "'", "^", "~", '"', "r", "c", "v", "=", "u", ".", "H", "k"), strict=True)
)  # fmt: skip
_GREEK = re.compile(r"GREEK (SMALL|CAPITAL) LETTER (\w+)")
#: Greek letters that have a command; the others look like Latin letters.
_SMALL = (
    r"alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|mu|nu|xi|pi|rho|sigma|tau|upsilon|"
    r"phi|chi|psi|omega"
)
_CAPITAL = r"Gamma|Delta|Theta|Xi|Pi|Sigma|Upsilon|Phi|Psi|Omega"


def escape(text: str) -> str:
    """Return the LaTeX source that prints a text literally.

    Line feeds stay; other control characters, and characters that LaTeX does not have in the
    encoding T1, are printed as ``?``.
    """
    source = "".join(map(_character, text))
    return re.sub(" {2,}", lambda spaces: "\\ " * len(spaces[0]), source)


@functools.lru_cache(maxsize=1024)
def _character(letter: str) -> str:
    known = _COMMANDS.get(letter) or _SIGNS.get(letter)
    if known is not None:
        return known
    if letter == "\n" or " " <= letter <= "~":
        return letter
    kind, _, rest = unicodedata.decomposition(letter).rpartition("> ")
    if kind in ("<super", "<sub"):
        inside = escape("".join(chr(int(code, 16)) for code in rest.split()))
        return rf"\text{kind[1:]}script{{{inside}}}"
    if found := _GREEK.fullmatch(unicodedata.name(letter, "")):
        small = found[1] == "SMALL"
        name = found[2].lower() if small else found[2].capitalize()
        if re.fullmatch(_SMALL if small else _CAPITAL, name):
            return rf"$\{name}$"
    parts = unicodedata.normalize("NFD", letter)
    if len(parts) == 2 and parts[0].isascii() and parts[0].isalpha() and parts[1] in _ACCENTS:
        return rf"\{_ACCENTS[parts[1]]}{{{parts[0]}}}"
    return "?{}"


class _Escaped(Formatter):
    """Formatter of an axis that escapes the labels of another formatter."""

    def __init__(self, inner: Formatter) -> None:
        if hasattr(inner, "set_usetex"):
            inner.set_usetex(False)
        self._inner = inner

    def __call__(self, x: float, pos: int | None = None) -> str:
        return escape(self._inner(x, pos))

    def format_ticks(self, values: list[float]) -> list[str]:
        return [escape(label) for label in self._inner.format_ticks(values)]

    def get_offset(self) -> str:
        return escape(self._inner.get_offset())

    def set_locs(self, locs: list[float]) -> None:
        self._inner.set_locs(locs)


def _axes_of(figure: Figure) -> Iterator[Axis]:
    for axes in figure.axes:
        yield from (axes.xaxis, axes.yaxis)


def set_by_latex(figure: Figure) -> None:
    """Escape all text of a figure, and have LaTeX set it; later additions are not escaped."""
    labels: set[Artist] = set()
    for axis in _axes_of(figure):
        for ticks in (axis.get_major_ticks(), axis.get_minor_ticks()):
            labels |= {label for tick in ticks for label in (tick.label1, tick.label2)}
        labels.add(axis.get_offset_text())
        # Axes that share a range share their formatters, too.
        if not isinstance(axis.get_major_formatter(), _Escaped):
            axis.set_major_formatter(_Escaped(axis.get_major_formatter()))
            axis.set_minor_formatter(_Escaped(axis.get_minor_formatter()))
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        if text not in labels:
            text.set_text(escape(text.get_text()))
        text.set_usetex(True)


def check() -> None:
    """Raise ``InputError`` if LaTeX is missing, or if it cannot set a text with our preamble."""
    missing = [name for name in _PROGRAMS if shutil.which(name) is None]
    if missing:
        raise InputError(
            f"text by LaTeX needs the programs {' and '.join(_PROGRAMS)}; this machine lacks "
            f"{' and '.join(missing)}. Install them (Debian: {_PACKAGES}), or draw without LaTeX"
        )
    from matplotlib.texmanager import TexManager  # noqa: PLC0415  creates a folder

    try:
        TexManager.make_dvi(escape("µ → ≤ 100 %"), 8.0)
    except RuntimeError as error:
        found = re.search(r"^! (.+)$", str(error), re.M)
        reason = clean(found[1] if found else "it cannot set a text", 200)
        raise InputError(
            f"text by LaTeX: LaTeX does not work on this machine: {reason} Install its packages "
            f"(Debian: {_PACKAGES}), or draw without LaTeX"
        ) from None
