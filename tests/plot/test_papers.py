"""Styles for papers: every picture fits its column, has embedded fonts and writes its numbers."""

from __future__ import annotations

import ast
import csv
import io
import re
import zlib
from collections.abc import Callable, Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle, StepPatch
from matplotlib.text import Text

import eastwest as ew
from eastwest import plot
from eastwest.plot import fit, latex
from eastwest.plot import style as styles  # type: ignore[attr-defined]
from eastwest.plot.sheet import empty
from eastwest.plot.style import PAPER, SERIES, WIDTHS
from gallery import HOSTILE, gallery
from hand_made import folder
from project_paths import ROOT

Floats = npt.NDArray[np.float64]
#: Styles with the width of their figures in inches.
LOOKS = (("one-column", "usenix", 3.33), ("two-columns", "ieee", 7.16))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Callable[[], Figure]]:
    return gallery(tmp_path_factory.mktemp("gallery"))


def names() -> list[str]:
    """Return the names of all pictures of the gallery, without drawing one."""
    text = (ROOT / "tests" / "support" / "gallery.py").read_text(encoding="utf-8")
    made = [f"charts.figure:{name}" for name in plot.CHARTS]
    made += [f"charts.draw:{name}" for name, chart in plot.CHARTS.items() if chart.compares]
    return made + re.findall(r'^        "(\w+\.\w+(?::\w+)?)": lambda', text, re.M)


def test_the_gallery_has_every_function_that_returns_a_figure(
    pictures: dict[str, Callable[[], Figure]],
) -> None:
    assert list(pictures) == names()
    helpers = {"sheet.empty", "panels.panels"}
    found = set()
    for path in (ROOT / "python" / "eastwest" / "plot").glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            returns = ast.unparse(node.returns or node) if isinstance(node, ast.FunctionDef) else ""
            if isinstance(node, ast.FunctionDef) and re.search(r"\b(Figure|Drawing)\b", returns):
                found.add(f"{path.stem}.{node.name}")
    assert {name.split(":")[0] for name in pictures} == found - helpers


def texts(figure: Figure) -> Iterator[Text]:
    """Yield the visible texts of a drawn figure, without tick labels outside their axis."""
    outside = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            slack = 1e-6 * (high - low)
            for tick in axis.get_major_ticks():
                if not (axes.axison and low - slack <= tick.get_loc() <= high + slack):
                    outside |= {tick.label1, tick.label2}
        if not axes.axison:
            outside |= {axes.xaxis.label, axes.yaxis.label}
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        if text.get_visible() and text.get_text().strip() and text not in outside:
            yield text


def overlaps(axes: Axes) -> list[tuple[str, str]]:
    """Return the pairs of neighbouring tick labels of a panel that overlap."""
    found = []
    for axis, ends in ((axes.xaxis, ("x0", "x1")), (axes.yaxis, ("y0", "y1"))):
        labels = [label for label in axis.get_majorticklabels() if label.get_text()]
        if not axes.axison or any(label.get_rotation() % 90 for label in labels):
            continue
        boxes = [(label.get_window_extent(), label.get_text()) for label in labels]
        shown = set(texts(axes.figure))  # type: ignore[arg-type]
        boxes = [each for each, label in zip(boxes, labels, strict=True) if label in shown]
        boxes.sort(key=lambda each: getattr(each[0], ends[0]))
        for (earlier, one), (later, other) in pairwise(boxes):
            # Boxes of letters have some points of space above and below.
            if getattr(later, ends[0]) < getattr(earlier, ends[1]) - 2:
                found.append((one, other))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("look", "width", "inches"), LOOKS)
@pytest.mark.parametrize("name", names())
def test_a_picture_fits_its_column(
    pictures: dict[str, Callable[[], Figure]], name: str, look: str, width: str, inches: float
) -> None:
    with plot.style(look, width=width):
        figure = pictures[name]()
    assert figure.get_figwidth() == (inches if width == "ieee" else WIDTHS["usenix"][0])
    assert figure.get_figheight() < 9.5, "a page of a paper is 9 to 9.5 inches high"
    figure.draw_without_rendering()
    page = figure.bbox
    for text in texts(figure):
        box = text.get_window_extent()
        inside = page.x0 - 1 <= box.x0 and box.x1 <= page.x1 + 1
        assert inside and page.y0 - 1 <= box.y0 and box.y1 <= page.y1 + 1, (text, box, page)
        assert text.get_fontsize() >= 6
    for axes in figure.axes:
        assert overlaps(axes) == []
        notes = [text.get_window_extent() for text in axes.texts if text.get_text()]
        for one, other in combinations(notes, 2):
            common = min(one.x1, other.x1) - max(one.x0, other.x0)
            assert common < 2 or min(one.y1, other.y1) - max(one.y0, other.y0) < 3, axes.texts


def objects(data: bytes) -> bytes:
    """Return the text of a PDF file with all of its streams decompressed."""
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", data, re.S)
    plain = []
    for stream in streams:
        try:
            plain.append(zlib.decompress(stream))
        except zlib.error:
            plain.append(stream)
    return data + b"\n".join(plain)


def fonts(data: bytes) -> tuple[int, int, int]:
    """Return numbers of fonts in a PDF file: all, those of Type 3, and embedded font programs."""
    whole = objects(data)
    return (
        len(re.findall(rb"/Type /Font\b(?!Desc)", whole)),
        len(re.findall(rb"/Subtype /Type3\b", whole)),
        len(re.findall(rb"/FontFile[23]? ", whole)),
    )


@pytest.mark.slow
@pytest.mark.parametrize("look", ["screen", "one-column"])
@pytest.mark.parametrize("name", names())
def test_a_pdf_has_its_fonts_inside_and_none_of_type_3(
    pictures: dict[str, Callable[[], Figure]], name: str, look: str, tmp_path: Path
) -> None:
    with plot.style(look):
        figure = pictures[name]()
    plot.save(figure, tmp_path / "f.pdf")
    figure.savefig(tmp_path / "g.pdf")
    for file in ("f.pdf", "g.pdf"):
        every, type_3, programs = fonts((tmp_path / file).read_bytes())
        assert every > 0 and type_3 == 0 and programs > 0
    width = re.search(rb"/MediaBox \[ *0 0 ([\d.]+)", (tmp_path / "f.pdf").read_bytes())
    assert width is not None
    assert float(width[1]) == pytest.approx(72 * figure.get_figwidth(), abs=0.01)


def test_fonts_of_type_3_are_found() -> None:
    figure = Figure()
    figure.text(0.5, 0.5, "text")
    stream = io.BytesIO()
    with mpl.rc_context({"pdf.fonttype": 3}):
        figure.savefig(stream, format="pdf")
    assert fonts(stream.getvalue())[1] == 1
