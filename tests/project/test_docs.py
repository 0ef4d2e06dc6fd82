"""The documentation agrees with the program.

Links lead to existing targets, documented tables and fields are those of real runs, shown scenarios
are accepted, shown commands are understood, and shown Python code runs.
"""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import typer

import eastwest as ew
from eastwest import shipped
from eastwest.claims.catalogue import search
from eastwest.claims.profiles import profiles_of
from eastwest.claims.readings import readings_of
from eastwest.claims.spec import load as load_claim
from eastwest.cli import app
from eastwest.cli.simulate import overrides
from eastwest.mechanisms import new as mechanisms
from eastwest.observe import actuation, replay, what_if
from eastwest.observe.grey import read_rules
from eastwest.observe.load import open_spans
from eastwest.optimize import default_folder as optimize_folder
from eastwest.optimize import load as load_optimisation
from eastwest.run import load_source
from eastwest.sweep import default_folder
from eastwest.sweep import spec as sweeps
from eastwest.sweep.check import check as check_sweep
from eastwest.sweep.check import source_of
from project_paths import ROOT

pytestmark = pytest.mark.slow

SKIPPED = {"target", "results", "node_modules"}
PAGES = sorted(
    path
    for path in ROOT.rglob("*.md")
    if not any(part in SKIPPED or part.startswith(".") for part in path.relative_to(ROOT).parts)
)
#: Pages that a user follows step by step.
GUIDES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "guide").glob("*.md")),
    *sorted((ROOT / "docs" / "mechanisms").glob("*.md")),
    *sorted((ROOT / "papers").glob("*/README.md")),
]
#: Pages whose Python code runs in a second or two.
QUICK = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]

FABRIC = """
[fabric]
kind = "leaf-spine"
leaves = 2
hosts_per_leaf = 4
spines = 2
host_rate = "1 Gbit/s"
uplink_rate = "10 Gbit/s"
"""
WORKLOAD = """
[[workload]]
name = "any"
kind = "permutation"
bytes = "1 KB"
"""
RANKS = """
schema = 1
[fabric]
kind = "star"
hosts = 4
host_rate = "1 Gbit/s"
[[workload]]
name = "cg"
kind = "mpi-cg"
ranks = 8
ranks_per_host = 2
problem = "S"
outer = 0
inner = 1
eager_limit = "1 KB"
"""
#: A job whose program is a graph, with iterations.
TRAINED = """
schema = 1
[fabric]
kind = "star"
hosts = 2
host_rate = "1 Gbit/s"
[[workload]]
name = "job"
kind = "training"
data = 2
layers = 1
hidden = 10
"""
JOBS = (
    "schema = 1"
    + FABRIC
    + """
[[workload]]
kind = "mapreduce"
name = "hadoop"
trace = "fb-2009-first-50"
trace_to = "2 min"
"""
)

ADAPTIVE = """
schema = 1
[fabric]
kind = "two-groups"
host_rate = "10 Gbit/s"
uplink_rate = "10 Gbit/s"
routing = "adaptive"
adaptive_persist_cnms = 1
[fabric.pfc]
[fabric.qcn]
[[class]]
name = "frames"
priority = 3
[[workload]]
kind = "ethernet"
name = "frames"
load = 0.2
frames = 200
"""
LOSSLESS = (
    "schema = 1"
    + FABRIC
    + """
[fabric.pfc]
priorities = [0]
shared = "9 MB"
[[workload]]
kind = "ethernet"
name = "frames"
load = 0.2
frames = 200
"""
)


#: Queue pairs whose packets a queue of a user cuts.
TRIM = ROOT / "docs" / "examples" / "mechanisms" / "trim.py"
TRIMMED = """
schema = 1
[fabric]
kind = "star"
hosts = 5
host_rate = "10 Gbit/s"
host_delay = "1 us"
queue = { kind = "trim", limit = "10 packets" }
[[workload]]
name = "flows"
kind = "all-to-all"
bytes = "60 KB"
transport = "rocev2"
"""


#: Settings of measurements that are off by default.
SPLIT = {"measure.flow_parts": "*", "measure.flow_samples": "*", "measure.packet_hops": "*"}


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(page: Path, language: str) -> list[str]:
    """Return the code blocks of one language, in order."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def prose(page: Path) -> str:
    """Return the text of a page without its code."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        inside = path.exists() and path.is_relative_to(ROOT)
        if not inside or (anchor and anchor not in anchors(path)):
            broken.append(target)
    assert not broken


def test_files_that_pages_name_exist() -> None:
    # Decisions describe the state at their time, so they are not checked.
    decisions = ROOT / "docs" / "decisions"
    # The record of inventories names files of other repositories.
    others = ROOT / "docs" / "validation" / "inventories.md"
    missing = []
    for page in PAGES:
        if page.is_relative_to(decisions) or page == others:
            continue
        text = page.read_text(encoding="utf-8")
        for path in re.findall(r"`((?:crates|python|tools|benches|tests|papers)/[\w./-]+)`", text):
            if "STUDY" not in path and not (ROOT / path).exists():
                missing.append(f"{named(page)}: {path}")
    assert missing == []


def test_source_files_named_by_mechanisms_exist() -> None:
    known = {path.name for path in (ROOT / "crates").rglob("*.rs")}
    for page in (ROOT / "docs" / "mechanisms").glob("*.md"):
        named_files = set(re.findall(r"`(\w+\.rs)`", page.read_text("utf-8")))
        assert named_files <= known, (page.name, named_files - known)


def test_the_readme_shows_the_demo_of_today() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    report = (ROOT / "docs" / "examples" / "demo.html").read_text(encoding="utf-8")
    measured = json.loads((ROOT / "crates/sim/src/flow_validation.json").read_text("utf-8"))
    packet = next(case["packet"] for case in measured["scenarios"] if case["name"] == "demo")
    assert f"digest {packet['digest'][:8]};" in readme and packet["digest"] in report
    assert f"half finish within {packet['p50_s']:.1f} s" in readme
    for shown in ("1,336", "73,552", "381 million", "375,916"):
        assert shown in readme and shown in report, shown


def test_every_page_is_in_the_index() -> None:
    index = ROOT / "docs" / "index.md"
    linked = {
        (index.parent / target.partition("#")[0]).resolve()
        for target in re.findall(r"\]\(([^)\s]+)\)", prose(index))
    }
    shown = {"guide", "labs", "reference", "mechanisms"}
    pages = {p for p in PAGES if p.is_relative_to(index.parent) and p.parent.name in shown}
    assert pages <= linked


def rows(section: str) -> Iterator[list[str]]:
    """Yield the rows of the Markdown tables in a section whose first cell is code."""
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| `"):
            cells[0] = cells[0].strip("`")
            yield cells


def documented() -> dict[str, list[list[str]]]:
    """Return the rows of each section of the results reference whose heading is code."""
    text = (ROOT / "docs" / "reference" / "results.md").read_text(encoding="utf-8")
    parts = re.split(r"^## `([^`]+)`$", text, flags=re.MULTILINE)
    return {name: list(rows(body)) for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def a_workload(out: Path) -> Path:
    """Make the folder that `observe workload` writes, from few spans."""
    with open_spans(ROOT / "tests" / "data" / "spans" / "otel-proto__trace.json") as spans:
        replay.write(spans, out, replay.Wanted("host"))
    return out


class Sketched(ew.Queue):
    """A sketched mechanism with a name of its own."""

    def at_enqueue(self, arrival: ew.Arrival) -> ew.Verdict:
        return ew.Verdict.ENQUEUE


#: Settings of the time window of measures.
_TIMES = {"from": "1 s", "until": "20 s", "cool_down": "1 s"}
TIMES = {f"measure.window.{key}": value for key, value in _TIMES.items()}
MISSED = {"goal.simulated_s": "< 1 ms"}
GOAL = {"goal": '{ "service.exchange_us.p99" = "< 1 s" }'}
WHILE = {"measure.window.while": "terasort", "measure.window.purpose": "shuffle"}


#: A scenario with hosts that take time, and an application.
APPLICATION = """
schema = 1
[fabric]
kind = "star"
hosts = 4
host_rate = "1 Gbit/s"
[hosts]
[[workload]]
kind = "quorum"
name = "store"
writes = 5
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[ew.Result]:
    """Return runs that together have every table and field."""
    folder = tmp_path_factory.mktemp("results")
    return [
        ew.run("first", out=folder / "flows", mechanisms=[Sketched], set=SPLIT),
        ew.run(JOBS, out=folder / "jobs"),
        ew.run(RANKS, out=folder / "ranks"),
        ew.run(TRAINED, out=folder / "trained"),
        ew.run("first", out=folder / "approximate", set={"fidelity": "flow"}),
        ew.run("first", out=folder / "links", set={"fidelity": "links"}),
        ew.run(LOSSLESS, out=folder / "lossless"),
        ew.run(ADAPTIVE, out=folder / "adaptive"),
        ew.run("rocev2", out=folder / "rocev2", set={"workload.1.flows": 20}),
        ew.run(a_workload(folder / "shop") / "scenario.toml", out=folder / "transactions"),
        ew.run("service", out=folder / "service", set=TIMES | GOAL),
        ew.run("service", out=folder / "shuffle", set=WHILE),
        ew.run(APPLICATION, out=folder / "application"),
        ew.run(TRIMMED, out=folder / "trimmed", mechanisms=[TRIM]),
        ew.run("first", out=folder / "stopped", set=MISSED, stop_when_missed=True),
    ]


SHORT_TYPES = {"UInt32": "u32", "UInt64": "u64", "Int64": "i64", "Float64": "f64", "String": "str"}


def test_the_documented_columns_are_the_real_ones(results: list[ew.Result]) -> None:
    pages = documented()
    for result in results:
        tables = {path.stem for path in result.path.glob("*.parquet")}
        assert tables == pages.keys() - {"summary.json"}
        for name in tables:
            schema = pl.read_parquet_schema(result.path / f"{name}.parquet")
            real = [[column, SHORT_TYPES[str(dtype)]] for column, dtype in schema.items()]
            assert [row[:2] for row in pages[name]] == real, name
            assert all(len(row) == 3 and row[2] for row in pages[name]), name


def fields(tree: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the paths of all values; keys that a scenario chooses are written in capitals."""
    keys = {"by_purpose": "PURPOSE", "classes": "CLASS", "drops": "CAUSE"}
    keys |= {"CAUSE": "KIND", "marks": "KIND", "arrivals": "KIND"}
    keys |= {"workloads": "W", "while": "X", "X": "W", "applications": "W", "counters": "C"}
    last = above[-1] if above else ""
    for key, value in tree.items():
        parts = {"counters", "operations", "requests"}
        of_workload = last == "W" and isinstance(value, Mapping) and key not in parts
        path = (*above, "MEASURE" if of_workload else keys.get(last, key))
        if isinstance(value, Mapping):
            yield from fields(value, path)
        else:
            yield ".".join(path)


def test_the_documented_summary_is_the_real_one(results: list[ew.Result]) -> None:
    real = {field for result in results for field in fields(result.summary)}
    listed = [row[0] for row in documented()["summary.json"]]
    assert len(listed) == len(set(listed))
    assert set(listed) == real


def test_the_values_of_labels_are_documented(results: list[ew.Result]) -> None:
    pages = documented()
    for table, column in (
        ("tasks", "kind"),
        ("tasks", "locality"),
        ("flows", "purpose"),
        ("links", "tier"),
        ("drops", "kind"),
        ("drops", "ect"),
        ("depths", "unit"),
        ("latency", "kind"),
        ("mpi_states", "state"),
        ("mpi_messages", "protocol"),
        ("mpi_messages", "over"),
    ):
        meaning = next(row[2] for row in pages[table] if row[0] == column)
        for result in results:
            for value in result.table(table)[column].unique():
                assert f"`{value}`" in meaning, (table, column, value)


def completed(fragment: str) -> str:
    """Return a whole scenario that contains a fragment."""
    keys = tomllib.loads(fragment).keys()
    if "schema" not in keys:
        fragment = "schema = 1\n" + fragment
    if "fabric" not in keys:
        fragment += FABRIC
    if "workload" not in keys:
        fragment += WORKLOAD
    return fragment


def assert_a_sweep(fragment: str) -> None:
    """Check a sweep, or a fragment that refers to the first scenario."""
    spec = sweeps.load({"scenario": "first", **tomllib.loads(fragment)})
    check_sweep(spec, source_of(spec))


def assert_a_claim(text: str, folder: Path) -> None:
    """Check a shown claim, in a study like that of incast."""
    (folder / "incast" / "claims").mkdir(parents=True)
    shutil.copytree(ROOT / "papers" / "incast" / "scenarios", folder / "incast" / "scenarios")
    path = folder / "incast" / "claims" / "shown.toml"
    path.write_text(text, encoding="utf-8")
    for spec in load_claim(path).runs.values():
        check_sweep(spec, source_of(spec))


@pytest.mark.parametrize("page", GUIDES, ids=named)
def test_scenarios_shown_are_accepted(  # noqa: PLR0912  one branch for each kind of file
    page: Path, tmp_path: Path
) -> None:
    for text in blocks(page, "csv"):  # The block is a list of flows.
        (tmp_path / "flows.csv").write_text(text, encoding="utf-8")
    for rank, text in enumerate(blocks(page, "ti")):  # The blocks are the ranks of an MPI program.
        (tmp_path / "cg").mkdir(exist_ok=True)
        (tmp_path / "cg" / f"rank-{rank}.txt").write_text(text, encoding="utf-8")
    for number, text in enumerate(blocks(page, "toml")):
        if "optimize" in tomllib.loads(text):
            (tmp_path / "optimize.toml").write_text(text, encoding="utf-8")
            assert load_optimisation(tmp_path / "optimize.toml").space.axes
            continue
        if {"axis", "sample"} & tomllib.loads(text).keys():
            assert_a_sweep(text)
            continue
        if "claim" in tomllib.loads(text):
            assert_a_claim(text, tmp_path / f"claim-{number}")
            continue
        if "linux" in tomllib.loads(text):  # The block has TCP profiles of a study.
            (tmp_path / "profiles.toml").write_text(text, encoding="utf-8")
            assert profiles_of(tmp_path)["linux"].because
            continue
        if "testbed" in tomllib.loads(text):  # The block has readings of a study.
            (tmp_path / "readings.toml").write_text(text, encoding="utf-8")
            assert readings_of(tmp_path)["testbed"].values
            continue
        if "case" in tomllib.loads(text):  # The block has cases of what-if.
            folder = a_workload(tmp_path / f"shop-{number}")
            (folder / what_if.FILE).write_text(text, encoding="utf-8")
            for case in what_if.read_cases(folder):
                assert ew.check(case.scenario, case.settings) == [], case.name
            continue
        if "stitch" in tomllib.loads(text):  # The block has rules that join spans.
            (tmp_path / "rules.toml").write_text(text, encoding="utf-8")
            assert read_rules(tmp_path / "rules.toml")
            continue
        if "rule" in tomllib.loads(text):  # The block has rules for metrics.
            (tmp_path / "actuations.toml").write_text(text, encoding="utf-8")
            assert actuation.read(tmp_path / "actuations.toml")
            continue
        if "switches" in tomllib.loads(text):  # The block is a topology file.
            (tmp_path / "graph.toml").write_text(text, encoding="utf-8")
            scenario = completed('[fabric]\nkind = "graph"\nfile = "graph.toml"\n')
        else:
            scenario = completed(text)
        path = tmp_path / f"shown-{number}.toml"
        path.write_text(scenario, encoding="utf-8")
        own = sketched(tmp_path / str(number), text)
        assert ew.check(path, mechanisms=own) == [], text


def sketched(folder: Path, text: str) -> list[Path]:
    """Write mechanisms with the names that pages use as examples, if a scenario has the name."""
    kinds = {"my-queue": mechanisms.Kind.queue, "my-service": mechanisms.Kind.application}
    found = []
    folder.mkdir()
    for name, kind in kinds.items():
        if f'"{name}"' in text:
            with contextlib.chdir(folder):
                made = mechanisms.write(name, kind, python=True)
                found.append((made.folder / made.named).absolute())
    examples = ROOT / "docs" / "examples" / "mechanisms"
    return [
        *found,
        *(examples / f"{n}.py" for n in ("pfabric", "conga", "hpcc") if f'"{n}"' in text),
    ]


def commands(page: Path) -> Iterator[list[str]]:
    """Yield every line of the shell blocks, as words."""
    for block in blocks(page, "sh"):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield words[: words.index(">")] if ">" in words else words


def parsed(words: list[str]) -> tuple[str, dict[str, Any]]:
    """Return name and parameters of an ``eastwest`` command line.

    Fail if there is no such command.
    """
    command: Any = typer.main.get_command(app)
    name, arguments = words[1], words[2:]
    found = command.get_command(None, name)
    while hasattr(found, "get_command"):
        if found.default and arguments[0] not in found.homes():
            arguments = [found.default, *arguments]
        found, arguments = found.get_command(None, arguments[0]), arguments[1:]
    if found is None:
        raise KeyError(name)
    context = found.make_context(name, arguments)
    return name, dict(context.params)


@pytest.mark.parametrize("page", GUIDES, ids=named)
def test_commands_shown_are_understood(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenarios").symlink_to(shipped.SCENARIOS)
    (tmp_path / "papers").symlink_to(ROOT / "papers")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for words in commands(page):
        if words[0] == "make":
            assert words[1] in targets, words
        elif words[0] == "cd":
            monkeypatch.chdir(words[1])
        elif words[0] == "cp":
            shutil.copy(words[1], words[2])
        elif words[0] == "eastwest":
            name, given = parsed(words)
            # A sketch is written instead of a crate, because nothing is compiled here.
            if name == "new":
                mechanisms.write(given["name"], mechanisms.Kind(given["kind"]), python=True)
            leave_folder(name, given)
            if "scenario" in given:
                follow(name, given)
            if name == "sweep":
                follow_sweep(given)
            if name == "claims":
                assert search(ROOT / "papers", given["patterns"] or []), words
            for folder in given.get("folders") or []:
                assert (Path(folder) / "scenario.toml").is_file(), words


def leave_folder(name: str, given: dict[str, Any]) -> None:
    """Write the folder that `optimize` or `observe workload` would write."""
    if name == "optimize":
        folder = Path(given["out"] or optimize_folder(load_optimisation(given["file"])))
        folder.mkdir(parents=True)
        for file in ("scenario.toml", "recommended.toml"):
            (folder / file).write_text(load_source("first").text, encoding="utf-8")
    elif "between" in given:
        a_workload(Path(given["out"]))


def follow_sweep(given: dict[str, Any]) -> None:
    """Check the inputs of a sweep command, and write the folder that it would write."""
    spec = sweeps.load(given["file"])
    check_sweep(spec, source_of(spec))
    folder = Path(given["out"] or default_folder(spec))
    assert given["resume"] or not folder.exists(), given
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scenario.toml").touch()


def follow(name: str, given: dict[str, Any]) -> None:
    """Check the inputs of a command, and write its outputs for the commands after it."""
    source = load_source(given["scenario"])
    changed = overrides(source.text, given.get("settings"), given.get("on_bad_row"))
    own = list(Path().glob("*.py")) if given.get("mechanisms") else []
    assert ew.check(given["scenario"], dict(changed), mechanisms=own) == [], given
    if name == "run" and given["out"] is not None:
        folder = Path(given["out"])
        assert given["force"] or not folder.exists(), given
        folder.mkdir(parents=True)
        (folder / "scenario.toml").write_text(source.text, encoding="utf-8")


def test_unknown_commands_and_flags_would_be_noticed() -> None:
    with pytest.raises(KeyError, match="walk"):
        parsed(["eastwest", "walk", "first"])
    with pytest.raises(Exception, match="--sead"):
        parsed(["eastwest", "run", "first", "--sead", "1"])


@pytest.mark.parametrize("page", QUICK, ids=named)
def test_python_shown_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for number, text in enumerate(blocks(page, "python")):
        code = compile(text, f"{page.name}, block {number}", "exec", dont_inherit=True)
        exec(code, names)


def test_the_settings_to_tune_exist() -> None:
    keys = {key["path"].split(".")[-1] for key in json.loads(ew.core.schema())["keys"]}
    tuning = (ROOT / "docs" / "guide" / "hadoop.md").read_text(encoding="utf-8")
    section = tuning.split("## What to tune")[1].split("```")[0]
    for setting in re.findall(r"`([a-z_.]+[a-z])`", section):
        assert setting.split(".")[-1] in keys, setting
