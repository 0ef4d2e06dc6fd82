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
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, fontManager
from matplotlib.patches import Rectangle, StepPatch
from matplotlib.text import Text

import eastwest as ew
from eastwest import plot, spreadsheet
from eastwest.plot import latex
from eastwest.plot.sheet import empty
from eastwest.plot.style import PAPER, SERIES
from gallery import HOSTILE, gallery, sweep_of
from gallery import result as gallery_result
from project_paths import ROOT

Floats = npt.NDArray[np.float64]


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


def check_fit(figure: Figure, inches: float) -> None:
    """Assert that a figure has its width, and that no text is outside or covers another."""
    assert figure.get_figwidth() == inches
    assert figure.get_figheight() < 9.5, "a page of a paper is 9 to 9.5 inches high"
    figure.draw_without_rendering()
    page = figure.bbox
    for text in texts(figure):
        box = text.get_window_extent()
        inside = page.x0 - 1 <= box.x0 and box.x1 <= page.x1 + 1
        assert inside and page.y0 - 1 <= box.y0 and box.y1 <= page.y1 + 1, (text, box, page)
        assert float(text.get_fontsize()) >= 6
    for axes in figure.axes:
        assert overlaps(axes) == []
        notes = [text.get_window_extent() for text in axes.texts if text.get_text()]
        for one, other in combinations(notes, 2):
            common = min(one.x1, other.x1) - max(one.x0, other.x0)
            assert common < 2 or min(one.y1, other.y1) - max(one.y0, other.y0) < 3, axes.texts


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_a_picture_fits_one_column(
    pictures: dict[str, Callable[[], Figure]], name: str, tmp_path: Path
) -> None:
    with plot.style("one-column", width="acm"):
        figure = pictures[name]()
    check_fit(figure, 3.33)
    plot.save(figure, tmp_path / "f.pdf")
    data = (tmp_path / "f.pdf").read_bytes()
    check_fonts(data)
    width = re.search(rb"/MediaBox \[ *0 0 ([\d.]+)", data)
    assert width is not None
    assert float(width[1]) == pytest.approx(72 * 3.33, abs=0.01)


@pytest.mark.long
@pytest.mark.parametrize("name", names())
def test_a_picture_fits_two_columns(pictures: dict[str, Callable[[], Figure]], name: str) -> None:
    with plot.style("two-columns"):
        check_fit(pictures[name](), 7.16)


def test_a_text_in_place_of_a_picture_fits() -> None:
    with plot.style("one-column", width=1.5):
        check_fit(
            empty("No pause was logged: name ports in measure.pauses, with [fabric.pfc]"), 1.5
        )


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


def check_fonts(data: bytes) -> None:
    """Assert that a PDF file has fonts, each of them embedded, and none of Type 3."""
    every, type_3, programs = fonts(data)
    assert every > 0 and type_3 == 0 and programs > 0


def test_a_font_that_matplotlibs_list_lacks_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [entry for entry in fontManager.ttflist if entry.name != "STIXGeneral"]
    monkeypatch.setattr(fontManager, "ttflist", others)
    for name in ("one-column", "two-columns"):
        with plot.style(name):
            assert Path(findfont("STIXGeneral", fallback_to_default=False)).stem == "STIXGeneral"
        # Regular, italic, bold, and bold italic; the second style does not add them again.
        assert [entry.name for entry in fontManager.ttflist].count("STIXGeneral") == 4


@pytest.mark.slow
def test_a_pdf_for_a_screen_has_no_font_of_type_3(
    pictures: dict[str, Callable[[], Figure]], tmp_path: Path
) -> None:
    figure = pictures["charts.figure:packet-latency"]()
    plot.save(figure, tmp_path / "f.pdf")
    figure.savefig(tmp_path / "g.pdf")
    for file in ("f.pdf", "g.pdf"):
        check_fonts((tmp_path / file).read_bytes())


def test_fonts_of_type_3_are_found() -> None:
    figure = Figure()
    figure.text(0.5, 0.5, "text")
    stream = io.BytesIO()
    with mpl.rc_context({"pdf.fonttype": 3}):
        figure.savefig(stream, format="pdf")
    assert fonts(stream.getvalue())[1] == 1


# Numbers


def read(path: Path) -> tuple[list[str], list[list[str]]]:
    """Return the names of the columns and the rows of a CSV file."""
    head, *rows = csv.reader(io.StringIO(path.read_text(encoding="utf-8")))
    return head, rows


def drawn(axes: Axes) -> Iterator[list[Floats]]:
    """Yield for each series of a panel arrays of which one must be in the numbers of the figure."""
    for line in axes.lines:
        y = np.asarray(line.get_ydata(), float)
        if len(y) > 2 and line.get_marker() not in ("_", "|", "D"):
            yield [y, y[:-1]]
    for patch in axes.patches:
        if isinstance(patch, StepPatch):
            values, _, base = patch.get_data()
            yield [np.asarray(values - (0.0 if base is None else base))]
    for container in axes.containers:
        bars = [bar for bar in container if isinstance(bar, Rectangle)]
        if bars:
            yield [
                np.array([bar.get_height() for bar in bars]),
                np.array([b.get_width() for b in bars]),
            ]
    for image in axes.images:
        yield [np.asarray(image.get_array(), float).ravel()]


def has(table: pl.DataFrame, values: Floats) -> bool:
    """Whether a numeric column of one series, or of all, is proportional to the values."""
    values = values[np.isfinite(values)]
    parts = [table, *table.partition_by("series")]
    for part in parts:
        for column in part.select(pl.selectors.numeric()).iter_columns():
            own = column.drop_nulls().cast(pl.Float64).to_numpy()
            own = own[np.isfinite(own)]
            if len(own) == len(values) and len(own):
                scale = np.abs(values).max() / (np.abs(own).max() or 1.0)
                if np.allclose(own * scale, values, rtol=1e-9, atol=1e-12 * np.abs(values).max()):
                    return True
    return False


#: Pictures with areas or images that `drawn` does not compare; other tests compare their numbers.
OTHERS = {"pauses.pauses", "charts.figure:task-timeline", "inside.job_tasks"}


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_the_numbers_are_those_that_the_picture_draws(
    pictures: dict[str, Callable[[], Figure]], name: str, tmp_path: Path
) -> None:
    figure = pictures[name]()
    table = plot.numbers(figure)
    assert table.height > 0 and table.columns[:2] == ["panel", "series"]
    for axes in figure.axes:
        own = table.filter(panel=str(axes.get_label()))
        for series in drawn(axes) if name not in OTHERS else []:
            assert any(has(own, values) for values in series), (name, series)
    plot.save(figure, tmp_path / "f.svg", csv=True)
    head, rows = read(tmp_path / "f.csv")
    assert head == table.columns and len(rows) == table.height
    for column, (name_, kind) in enumerate(table.schema.items()):
        cells, values = [row[column] for row in rows], table[name_].to_list()
        if kind.is_numeric():
            # Full precision: the text of a number gives the same number.
            assert [float(cell) if cell else None for cell in cells] == values
        else:
            assert [spreadsheet.plain(cell) for cell in cells] == [value or "" for value in values]
    plot.save(pictures[name](), tmp_path / "again.svg", csv=True)
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "f.csv").read_bytes()
    with plot.style("one-column"):
        assert plot.numbers(pictures[name]()).equals(table)


def test_numbers_agree_with_the_tables_of_the_result(tmp_path: Path) -> None:
    ran = gallery_result(tmp_path / "run")
    found = plot.numbers(plot.cdf(ran))
    assert found["fct_us"].to_list() == ran.flows["fct_us"].sort().to_list()
    assert found["share_of_flows"][-1] == 1.0
    found = plot.numbers(plot.pauses(ran)).sort("began_s")
    assert found["began_s"].to_list() == ran.pauses["began_s"].to_list()
    assert found["until_s"].to_list() == ran.pauses["until_s"].to_list()
    names_of = dict(ran.links.select("link", "name").iter_rows())
    assert found["series"].to_list() == [names_of[link] for link in ran.pauses["link"]]
    found = plot.numbers(plot.figure("task-timeline", ran))
    keys = ["host", "started_s", "finished_s"]
    assert (
        found.select(keys)
        .sort(keys)
        .equals(ran.tasks.select(keys).sort(keys).cast(found.select(keys).schema))
    )
    found = plot.numbers(plot.job_tasks(ran, 3)).sort("task")
    tasks = ran.tasks.filter(job=3).sort("task")
    since = tasks["finished_s"] - ran.jobs.filter(job=3)["submitted_s"].item()
    assert found["finished_s_since_submission"].to_list() == since.to_list()
    found = plot.numbers(plot.figure("rounds", ran))
    assert found["duration_s"].to_list() == (
        (ran.rounds["finished_s"] - ran.rounds["started_s"]).to_list()
    )
    found = plot.numbers(plot.figure("link-utilisation", ran)).sort("utilisation")
    assert found["link"].to_list() == ran.links.sort("utilisation")["name"].to_list()
    found = plot.numbers(plot.losses(ran))
    assert found["packets_lost"].sum() == ran.link_samples["drops"].sum()
    found = plot.numbers(plot.marks(ran))
    assert found["packets_marked"].sum() == ran.link_samples["marks"].sum()
    found = plot.numbers(plot.link_heat(ran))
    shares = found["utilisation"].to_numpy()
    bits = (shares * (found["until_s"] - found["time_s"]).to_numpy()).sum() * 1e9
    assert bits == pytest.approx(8 * ran.link_samples["bytes"].sum(), rel=1e-9)
    found = plot.numbers(plot.throughput(ran)).filter(panel="all streams")
    assert (found["rate_bps"] / 8 * 0.001).sum() == pytest.approx(ran.flow_samples["bytes"].sum())
    found = plot.numbers(plot.windows(ran, 2)).drop_nulls()
    of_2 = ran.tcp_trace.filter(connection=2)
    for column in ("time_s", "cwnd_bytes", "ssthresh_bytes"):
        assert found[column].to_list() == of_2[column].to_list()
    found = plot.numbers(plot.figure("running-tasks", ran))
    busy = (found["running_tasks"] * (found["until_s"] - found["time_s"])).sum()
    assert busy == pytest.approx((ran.tasks["finished_s"] - ran.tasks["started_s"]).sum())


def test_numbers_of_a_sweep_are_those_of_its_table(tmp_path: Path) -> None:
    swept = sweep_of(tmp_path / "sweep")
    found = plot.numbers(plot.sweep(swept, "latency_us.p99", "limit", "min_rto"))
    table = swept.points.filter(metric="latency_us.p99")
    both = found.join(
        table, left_on=["series", "fabric.queue.limit_packets"],
        right_on=["tcp.min_rto", "fabric.queue.limit_packets"],
    )  # fmt: skip
    assert both.height == table.height == 28
    for mine, its in (("latency_us.p99", "mean"), ("latency_us.p99.low", "low")):
        np.testing.assert_allclose(both[mine].to_numpy(), both[its].to_numpy(), rtol=1e-12)


def test_a_csv_beside_the_picture_replaces_only_numbers(tmp_path: Path) -> None:
    figure = empty("nothing")
    plot.save(figure, str(tmp_path / "f.svg"), csv=True)
    assert (tmp_path / "f.csv").read_text() == "panel,series\n"
    plot.save(figure, tmp_path / "f.svg", csv=True)
    (tmp_path / "g.csv").write_text("time_s,rate\n1,2\n")
    with pytest.raises(ew.InputError, match=r"g\.csv already exists and does not have the numbers"):
        plot.save(figure, tmp_path / "g.png", csv=True)
    assert not (tmp_path / "g.png").exists()
    plot.save(figure, tmp_path / "g.png", csv=tmp_path / "numbers.csv")
    assert (tmp_path / "numbers.csv").is_file()
    with pytest.raises(ew.InputError, match="the figure has no numbers"):
        plot.save(Figure(), tmp_path / "h.png", csv=True)
    assert not (tmp_path / "h.png").exists()


# Styles


def test_a_style_ends_with_its_block_but_a_figure_keeps_it(tmp_path: Path) -> None:
    size = mpl.rcParams["font.size"]
    with plot.style("one-column"):
        with plot.style("two-columns", width=6):
            wide = empty("why")
        mpl.rcParams["lines.linewidth"] = 9
        narrow = empty("why")
    assert mpl.rcParams["font.size"] == size
    assert (narrow.get_figwidth(), wide.get_figwidth()) == (3.5, 6)
    assert empty("why").get_figwidth() == 10.9
    narrow.savefig(tmp_path / "f.png")
    data = (tmp_path / "f.png").read_bytes()
    assert int.from_bytes(data[16:20], "big") == 1050  # 300 dots per inch
    plot.save(narrow, tmp_path / "f.svg")
    assert "<text" not in (tmp_path / "f.svg").read_text(), "glyphs are paths"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"name": "one-colum"},
            "must be screen, one-column or two-columns; did you mean one-column",
        ),
        ({"name": "one-column", "width": "iee"}, "did you mean ieee"),
        ({"name": "one-column", "width": 0.2}, "or from 1.5 to 20 inches"),
        ({"name": "one-column", "width": float("nan")}, "or from 1.5 to 20 inches"),
        ({"name": "screen", "latex": True}, "the style screen has no LaTeX"),
    ],
)
def test_wrong_styles_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ew.InputError, match=message), plot.style(**arguments):
        pass


#: Matrices in linear RGB for readers without L, M or S cones (Machado, Oliveira and Fernandes,
#: *A Physiologically-based Model for Simulation of Color Vision Deficiency*, 2009, severity 1.0).
DEFICIENCIES = {
    "none": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
#: Linear sRGB to XYZ (IEC 61966-2-1), and the white point D65.
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = XYZ.sum(axis=1)


def linear(colour: str) -> Floats:
    """Return a colour in linear RGB."""
    values = np.array(to_rgb(colour))
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(rgb: Floats) -> Floats:
    """Return linear RGB in CIE 1976 L*a*b*."""
    t = XYZ @ np.clip(rgb, 0, 1) / WHITE
    f = np.where(t > (6 / 29) ** 3, np.cbrt(t), t * (29 / 6) ** 2 / 3 + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def least_difference(colours: tuple[str, ...], deficiency: str) -> float:
    seen = [lab(np.array(DEFICIENCIES[deficiency]) @ linear(colour)) for colour in colours]
    return min(float(np.linalg.norm(a - b)) for a, b in combinations(seen, 2))


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_colours_of_series_differ_for_colour_blind_readers(deficiency: str) -> None:
    assert least_difference(PAPER, deficiency) >= 30
    # Colours on a screen; the least difference is that of orange and amber without M cones.
    assert least_difference(SERIES, deficiency) >= (9 if deficiency == "deuteranopia" else 15)


def test_distances_of_colours_are_those_of_their_definition() -> None:
    assert lab(linear("white")) == pytest.approx([100, 0, 0], abs=1e-6)
    assert lab(linear("#ff0000")) == pytest.approx([53.24, 80.09, 67.20], abs=0.05)


@pytest.mark.slow
def test_series_differ_in_grey_prints_too(pictures: dict[str, Callable[[], Figure]]) -> None:
    with plot.style("one-column"):
        lines = pictures["sweeps.sweep"]().axes[0]
        stairs = pictures["throughput.throughput"]().axes[0]
        bars = pictures["flows.flow_parts"]().axes[0]
    curves = [line for line in lines.lines if np.size(line.get_xdata()) == 4]
    looks = [(line.get_marker(), line.get_linestyle()) for line in curves]
    own = [look for look in looks if look[0] not in ("_", "|")]
    assert len(own) == 7 and len({*own}) == 7
    dashes = {str(step.get_linestyle()) for step in stairs.patches}
    assert len(dashes) == len(stairs.patches) == 6
    assert len({bar.get_hatch() for bar in bars.patches}) == 5


# LaTeX


#: Commands that `escape` writes, and the character of each.
READ = {
    **{source.removesuffix("{}"): sign for sign, source in latex._SIGNS.items()},
    r"\textbackslash": "\\", r"\textasciitilde": "~", r"\textasciicircum": "^",
    r"\textless": "<", r"\textgreater": ">", r"\textbar": "|", r"\textquotedbl": '"',
    r"\textquotesingle": "'",
}  # fmt: skip
TOKEN = re.compile(
    r"(?P<grave>\\`\{\})|(?P<math>\$[^$]*\$)|(?P<command>\\[A-Za-z]+)\{\}|"
    r"\\(?P<escaped>[{}$&%#_ ])|(?P<empty>\{\})|(?P<plain>.)",
    re.S,
)


def printed(source: str) -> str:
    """Return the text that LaTeX prints for a source of `escape`; fail at an active character."""
    text = ""
    for token in TOKEN.finditer(source):
        if token["grave"]:
            text += "`"
        elif token["math"] or token["command"]:
            text += READ[token["math"] or token["command"]]
        elif token["escaped"]:
            text += token["escaped"]
        elif token["plain"]:
            assert token["plain"] not in "\\{}$&%#_~^<>|\"'`", source
            text += token["plain"]
    return text


def test_escaped_text_prints_as_it_is() -> None:
    names_ = [
        *HOSTILE,
        r"\input{/etc/passwd}\write18{rm -rf ~}",
        "a--b ---c ``d'' ?`!`",
        "%",
        "$",
        "\\",
    ]
    random = np.random.default_rng(3)
    letters = [chr(code) for code in range(32, 127)] + [*"µ→≤×–…≥"]
    names_ += ["".join(random.choice(letters, 20)) for _ in range(300)]
    for name in names_:
        assert printed(latex.escape(name)) == name
    # No two characters stand side by side that LaTeX would join to one.
    assert "--" not in latex.escape("a--b") and "``" not in latex.escape("``")


def test_signs_that_latex_lacks_and_control_characters_are_question_marks() -> None:
    assert latex.escape("é ü ç ñ") == r"\'{e} \"{u} \c{c} \~{n}"
    assert latex.escape("αΔ") == r"$\alpha$$\Delta$"
    assert latex.escape("10³") == r"10\textsuperscript{3}"
    for sign in (
        "\x00",
        "\x1b",
        "中",
        "\u202e",
        "\U0001f600",
        "ж",
        "\N{GREEK CAPITAL LETTER ALPHA}",
    ):
        assert latex.escape(sign) == "?{}", sign


def said(figure: Figure) -> set[str]:
    """Return the texts of a figure; labels of ticks are those that the formatters make."""
    found, ticks = set(), set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            ticks |= {
                label for tick in axis.get_major_ticks() for label in (tick.label1, tick.label2)
            }
            found |= {*axis.get_major_formatter().format_ticks(list(axis.get_majorticklocs()))}
    found |= {
        text.get_text()
        for text in figure.findobj(Text)
        if isinstance(text, Text) and text not in ticks
    }
    return found - {""}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["inside.cdf:several", "pauses.pauses", "workload.access_cdfs", "front.figure"]
)
def test_names_are_text_with_and_without_latex(
    pictures: dict[str, Callable[[], Figure]], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with plot.style("one-column"):
        plain = pictures[name]()
    plain.draw_without_rendering()
    assert not any(text.get_parse_math() or text.get_usetex() for text in texts(plain))
    before = said(plain)
    assert any("\\" in text for text in before)
    monkeypatch.setattr(latex, "check", lambda: None)
    with plot.style("one-column", latex=True):
        figure = pictures[name]()
    assert {printed(text) for text in said(figure)} == before
    assert all(text.get_usetex() for text in figure.findobj(Text) if isinstance(text, Text))


def test_a_missing_or_broken_latex_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for missing in ("latex and dvipng", "dvipng"):
        message = f"text by LaTeX needs the programs latex and dvipng; this machine lacks {missing}"
        with pytest.raises(ew.InputError, match=message), plot.style("one-column", latex=True):
            pass
        program = tmp_path / "latex"
        program.write_text(
            "#!/bin/sh\necho \"! LaTeX Error: File 'type1ec.sty' not found.\"\nexit 1\n"
        )
        program.chmod(0o755)
    (tmp_path / "dvipng").write_text("#!/bin/sh\n")
    (tmp_path / "dvipng").chmod(0o755)
    monkeypatch.setattr("matplotlib.texmanager.TexManager._cache_dir", tmp_path)
    message = r"LaTeX Error: File 'type1ec.sty' not found"
    with pytest.raises(ew.InputError, match=message), plot.style("one-column", latex=True):
        pass
    assert plot.numbers(empty("after the error")).height == 0


@pytest.mark.slow
def test_latex_sets_hostile_names(
    pictures: dict[str, Callable[[], Figure]], tmp_path: Path
) -> None:
    try:
        latex.check()
    except ew.InputError as error:
        pytest.skip(str(error))
    with plot.style("one-column", latex=True):
        figure = pictures["inside.cdf:several"]()
        figure.axes[0].set_xlabel(r"$\Delta_\mathrm{slow}$")
    check_fit(figure, 3.5)
    plot.save(figure, tmp_path / "f.pdf", csv=True)
    check_fonts((tmp_path / "f.pdf").read_bytes())
    _, rows = read(tmp_path / "f.csv")
    assert {row[1] for row in rows} == {*HOSTILE}
