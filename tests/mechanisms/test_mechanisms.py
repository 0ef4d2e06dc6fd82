"""Mechanisms of users: sketches in Python, templates of ``eastwest new``, and errors.

The templates are the worked examples. Here they are set so that they act as built-in mechanisms do,
and must give the same digests.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import eastwest as ew
from eastwest.mechanisms import crate, new, sketch, source
from eastwest.mechanisms.load import load
from eastwest.mechanisms.new import Kind
from eastwest.run import Setting
from project_paths import ROOT

#: Settings of the built-in discipline that acts as the template of a queue does.
RED: dict[str, Setting] = {
    "fabric.queue.kind": "red",
    "fabric.queue.min": "5 packets",
    "fabric.queue.max": "15 packets",
    "fabric.queue.weight": 1,
    "fabric.queue.max_probability": 1,
    "fabric.queue.even": False,
    "fabric.queue.gentle": False,
}
SMALL: dict[str, Setting] = {"workload.shuffle.bytes": "30 KB"}


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Change to an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def eastwest(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user does."""
    command = [sys.executable, "-m", "eastwest", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def written(
    name: str, kind: Kind = Kind.queue, changes: Mapping[str, str] | None = None
) -> tuple[Path, str]:
    """Write a sketch from its template, with words replaced; return its file and its scenario."""
    made = new.write(name, kind, python=True)
    file = made.folder / made.named
    text = file.read_text()
    for old, replacement in (changes or {}).items():
        assert old in text
        text = text.replace(old, replacement)
    file.write_text(text)
    return file, (made.folder / "scenario.toml").read_text()


def scenario(fabric: str = "", tcp: str = "") -> str:
    """Return a scenario whose run takes only a moment."""
    return (
        'schema = 1\n[fabric]\nkind = "leaf-spine"\nleaves = 2\nhosts_per_leaf = 4\nspines = 2\n'
        f'host_rate = "1 Gbit/s"\nuplink_rate = "1 Gbit/s"\n{fabric}\n[tcp]\nmin_rto = "10 ms"\n'
        f'initial_rto = "20 ms"\n{tcp}\n[[workload]]\nkind = "all-to-all"\nname = "shuffle"\n'
        'bytes = "30 KB"\n'
    )


def digest(text: str, *mechanisms: type, **settings: Any) -> str:
    return ew.run(text, set=settings, mechanisms=mechanisms).digest


# Sketches that do what built-in mechanisms do


def test_a_sketched_ramp_is_red_of_the_moment() -> None:
    file, text = written("ramp", changes={'name = "ramp"': 'name = "ramp"\n    stream = "red"'})
    sketched = ew.run(text, set=SMALL, mechanisms=[file])
    plain = text.replace("min = 5\nmax = 15\n", "")
    built_in = ew.run(plain, set={**RED, **SMALL})
    assert sketched.summary["packets"]["dropped"] > 100
    assert sketched.digest == built_in.digest
    drops = [name for name in sketched.links.columns if name.startswith(("drops", "marks"))]
    assert sketched.links[drops].equals(built_in.links[drops])
    # The result records the cost of the sketch, and its source.
    assert sketched.summary["sketch_calls"] > 10_000
    assert 0 < sketched.summary["sketch_s"] <= sketched.summary["wall_s"]
    assert any("calls of mechanisms in Python" in note for note in sketched.summary["notes"])
    source = sketched.summary["mechanisms"][0]
    assert source["file"] == "ramp.py" and source["mechanisms"] == ["queue ramp"]
    assert "mechanisms" not in built_in.summary
    # The result folder can be run again.
    again = ew.run(sketched.path, mechanisms=[file])
    assert again.digest == sketched.digest


class Behind(ew.Queue):
    """Marks a packet that leaves more than a given number of packets behind."""

    threshold: int = 9

    def at_dequeue(self, head: ew.Head) -> ew.Verdict:
        if head.left_packets > self.threshold and head.understands_marks:
            return ew.Verdict.MARK
        return ew.Verdict.ENQUEUE


class Turns(ew.Routing):
    """Sends the packets of a switch over the paths in turn."""

    def __init__(self) -> None:
        self.turn = 0

    def choose(self, choice: ew.Choice) -> int:
        assert len(choice.queued_packets) == choice.paths
        self.turn += 1
        return self.turn % choice.paths


class Halves(ew.Congestion):
    """Reno, written as a sketch."""

    echoes_each_mark = True

    def after_loss(self, window: ew.Window, flight: int) -> int:
        return flight // 2


class Grows(ew.Congestion):
    """Doubles the window at each event."""

    def __init__(self) -> None:
        self.seen = 0

    def on_ack(self, window: ew.Window, ack: ew.Ack) -> int:
        assert self.seen > 0
        return window.cwnd + ack.acked

    def observe(self, seen: ew.Seen) -> None:
        self.seen += seen.delivered


def test_sketches_of_each_kind_do_what_built_in_mechanisms_do() -> None:
    ecn = 'ecn = "on"'
    step = 'queue = { kind = "step-marking", threshold = "9 packets", at = "dequeue" }'
    marked = digest(scenario(step, ecn))
    assert marked != digest(scenario("", ecn))
    assert digest(scenario('queue = { kind = "behind" }', ecn), Behind) == marked
    turns = digest(scenario('routing = "round-robin"'))
    assert turns != digest(scenario())
    assert digest(scenario('routing = "turns"'), Turns) == turns
    # Without marks, DCTCP acts as Reno does on connections with ECN.
    small = 'queue = { limit = "12 packets" }'
    marks = f"{ecn}\necn_all_packets = true"
    dctcp = digest(scenario(small, 'congestion = "dctcp"'))
    assert digest(scenario(small, f'congestion = "halves"\n{marks}'), Halves) == dctcp
    assert digest(scenario(small, f'congestion = "grows"\n{marks}'), Grows) != dctcp


def test_the_other_templates_of_sketches_run() -> None:
    for kind in (Kind.congestion, Kind.routing):
        file, text = written(f"my-{kind.value}", kind)
        with_it = ew.run(text, set=SMALL, mechanisms=[file])
        assert with_it.summary["sketch_calls"] > 100
        assert with_it.summary["flows"]["completed"] == with_it.summary["flows"]["count"]


def test_a_sketch_may_draw_the_same_numbers_again_with_the_same_seed_only() -> None:
    file, text = written("ramp")
    runs = [ew.run(text, set=SMALL, seed=seed, mechanisms=[file]) for seed in (1, 1, 2)]
    assert runs[0].digest == runs[1].digest != runs[2].digest


# What goes wrong


def test_a_scenario_alone_runs_no_code() -> None:
    written("ramp")
    refused = eastwest("run", "ramp/scenario.toml")
    assert refused.returncode == 2 and "--with" in refused.stderr
    assert not Path("results").exists()


def test_settings_of_a_sketch_are_judged_like_others() -> None:
    file, text = written("ramp")
    wrong = text.replace("min = 5", "mni = 5\nmax_probability = true")
    problems = {p["path"]: p for p in ew.check(wrong, mechanisms=[file])}
    assert problems.keys() == {"fabric.queue.mni", "fabric.queue.max_probability"}
    assert problems["fabric.queue.mni"]["hint"] == "min"
    assert ew.check(text, mechanisms=[file]) == []
    assert ew.check(text) != []


def test_an_exception_of_a_sketch_ends_the_run_with_its_traceback() -> None:
    written("ramp", changes={"return self.signal(arrival)": 'raise ValueError("\\x1b[31mno idea")'})
    failed = eastwest("run", "ramp/scenario.toml", "--with", "ramp/ramp.py")
    assert failed.returncode == 2
    assert "in at_enqueue" in failed.stderr and "ValueError" in failed.stderr
    assert "no idea" in failed.stderr and "\x1b[31m" not in failed.stderr
    assert not any(Path("results").glob("*"))


@pytest.mark.parametrize("answer", ["None", "7", "'MARK'", "True", "1", "0.0"])
def test_a_wrong_verdict_is_named(answer: str) -> None:
    file, text = written("ramp", changes={"return ew.Verdict.ENQUEUE": f"return {answer}"})
    with pytest.raises(ew.InputError, match=r"Ramp\.at_enqueue must return an eastwest\.Verdict"):
        ew.run(text, mechanisms=[file])


class Trims(ew.Queue):
    """Trims what does not fit, without saying that it trims."""

    def at_enqueue(self, arrival: ew.Arrival) -> ew.Verdict:
        return ew.Verdict.ENQUEUE if arrival.fits else ew.Verdict.TRIM


class TrimsLate(ew.Queue):
    """Trims packets at the head of the queue, which is impossible."""

    def at_dequeue(self, head: ew.Head) -> ew.Verdict:
        return ew.Verdict.TRIM


class Counts(ew.Queue):
    """Returns a number for a verdict at the head of the queue."""

    def at_dequeue(self, head: ew.Head) -> ew.Verdict:
        return 1  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("class_", "says"),
    [
        (Trims, "Trims.at_enqueue must return an eastwest.Verdict, and TRIM only if the class"),
        (TrimsLate, "TrimsLate.at_dequeue must return an eastwest.Verdict other than TRIM"),
        (Counts, "Counts.at_dequeue must return an eastwest.Verdict other than TRIM, not 1"),
    ],
)
def test_a_verdict_that_the_queue_cannot_carry_out_is_named(class_: type, says: str) -> None:
    queue = f'queue = {{ kind = "{sketch.describe(class_).name}", limit = "3 packets" }}'
    with pytest.raises(ew.InputError, match=re.escape(says)):
        ew.run(scenario(queue), mechanisms=[class_])


@pytest.mark.parametrize("answer", ["choice.paths", "99", "-1", "None", "0.5"])
def test_a_wrong_number_of_a_path_is_named(answer: str) -> None:
    Path("beyond.py").write_text(
        "import eastwest as ew\n\nclass Beyond(ew.Routing):\n    def choose(self, choice):\n"
        f"        return {answer}\n"
    )
    with pytest.raises(ew.InputError, match=r"Beyond\.choose must return .* from 0 to"):
        ew.run(scenario('routing = "beyond"'), mechanisms=["beyond.py"])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("exponential(-5)", "needs a mean in ps, a whole number from 0 to 2**64 - 1, not -5"),
        ("exponential(1.5)", "a whole number from 0 to 2**64 - 1, not 1.5"),
        ("below(0)", "a whole number from 1 to 2**64 - 1, not 0"),
        ("below(-3)", "a whole number from 1 to 2**64 - 1, not -3"),
    ],
)
def test_a_wrong_argument_of_a_random_number_is_named(call: str, says: str) -> None:
    file, text = written("ramp", changes={"if not arrival.fits": f"if self.random.{call}"})
    with pytest.raises(ew.InputError, match=re.escape(says)):
        ew.run(text, mechanisms=[file])


@pytest.mark.parametrize(
    ("base", "names", "says"),
    [
        ("Queue", ["red"], "class C0: queue 'red': a built-in mechanism has this name already"),
        ("Routing", ["ecmp"], "class C0: routing 'ecmp': a built-in mechanism has this name"),
        ("Queue", ["käse"], "class C0: queue 'käse': a name must have 1 to 64 characters"),
        ("Queue", ["a b\n"], "class C0: queue 'a b\\n': a name must have 1 to 64"),
        ("Queue", [5], "C0.name is 5, but must be a string"),
        ("Queue", ["q", "q"], "class C1: queue 'q': named.py, class C0 has this name, too"),
    ],
)
def test_a_wrong_name_is_told_with_file_and_class(base: str, names: list[Any], says: str) -> None:
    method = {"Queue": "at_enqueue", "Routing": "choose"}[base]
    classes = [
        f"class C{n}(ew.{base}):\n    name = {name!r}\n    def {method}(self, given): ...\n"
        for n, name in enumerate(names)
    ]
    Path("named.py").write_text("import eastwest as ew\n\n" + "".join(classes))
    failed = eastwest("run", "first", "--with", "named.py")
    assert failed.returncode == 2, failed.stderr
    assert "Traceback" not in failed.stderr
    said = " ".join(failed.stderr.split())
    assert says in said
    assert isinstance(names[0], int) or "named.py, class" in said


class Nothing(ew.Queue):
    """A queue without any rule."""


class Untyped(ew.Queue):
    """A queue with a parameter of an unsupported type."""

    targets: list = []  # type: ignore[type-arg]  # noqa: RUF012

    def at_enqueue(self, arrival: ew.Arrival) -> ew.Verdict:
        return ew.Verdict.ENQUEUE


class Unset(ew.Queue):
    """A queue with a parameter that has no default."""

    target: int

    def at_enqueue(self, arrival: ew.Arrival) -> ew.Verdict:
        return ew.Verdict.ENQUEUE


class Negative(Unset):
    """A queue with a parameter whose default no scenario may set."""

    target: int = -5


class Limit(Unset):
    """A queue with a parameter whose name every queue already has."""

    target: int = 5
    limit: int = 5


class RanksAndTrims(ew.Queue):
    """A queue with ranks, which cannot trim."""

    trims = True

    def at_enqueue(self, arrival: ew.Arrival) -> ew.Verdict:
        return ew.Verdict.ENQUEUE

    def rank(self, arrival: ew.Arrival) -> int:
        return 0


class Pathless(ew.Routing):
    """A routing that chooses no path."""


class Red(Negative):
    """A queue with the name of a built-in one."""

    target: int = 5


@pytest.mark.parametrize(
    ("class_", "says"),
    [
        (Nothing, "must define at least one of the methods at_enqueue, at_dequeue, rank"),
        (Untyped, "an int, a float, a bool or a Duration"),
        (Unset, "needs a default"),
        (Negative, "not a whole number from 0 to"),
        (Limit, "every queue has a setting of this name"),
        (RanksAndTrims, "RanksAndTrims: a queue with ranks cannot trim packets"),
        (Pathless, "Pathless must define the method choose"),
        (Red, "class Red: queue 'red': a built-in mechanism has this name"),
        (int, "is not derived from eastwest.Queue"),
    ],
)
def test_classes_that_cannot_be_used_say_why(class_: type, says: str) -> None:
    with pytest.raises(ew.InputError, match=re.escape(says)):
        ew.check(scenario(), mechanisms=[class_])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("x = 1\n", "has no class derived from"),
        ("def f(:\n", "SyntaxError"),
        ("import no_such_module\n", "no_such_module"),
        ("raise RuntimeError('at once')\n", "at once"),
    ],
)
def test_files_that_cannot_be_used_say_why(content: str, says: str) -> None:
    Path("bad.py").write_text(content)
    failed = eastwest("check", "first", "--with", "bad.py")
    assert failed.returncode == 2 and says in failed.stderr
    assert "bug in Eastwest" not in failed.stderr


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["rmp.py"], "there is no file rmp.py; did you mean ramp.py?"),
        (["nowhere/ramp.py"], "there is no file nowhere/ramp.py"),
        (["folder.py"], "folder.py is not a file"),
        (Behind, "mechanisms must be a list: write [Behind]"),
        ("ramp.py", "mechanisms must be a list: write ['ramp.py']"),
        (Path("ramp.py"), "mechanisms must be a list: write ['ramp.py']"),
        ({"ramp": 1}, "mechanisms must be a list, not {'ramp': 1}"),
        ([7], "7 in mechanisms must be the folder of a crate, a Python file, or a class"),
    ],
)
def test_mechanisms_that_are_no_list_of_files_and_classes_are_refused(
    given: Any, says: str
) -> None:
    Path("ramp.py").write_text("")
    Path("folder.py").mkdir()
    for call in (ew.run, ew.check):
        with pytest.raises(ew.InputError, match=re.escape(says)):
            call("first", mechanisms=given)


def test_what_is_no_mechanism_is_refused() -> None:
    for strange in ("nowhere", ".", "nowhere.py"):
        failed = eastwest("run", "first", "--with", strange)
        assert failed.returncode == 2 and strange in failed.stderr, strange
    Path("both").mkdir()
    (Path("both") / "Cargo.toml").write_text("[package]\nname = 'both'\n")
    with pytest.raises(ew.InputError, match="neither a mechanism crate"):
        load(["both"])


def test_names_of_classes_become_names_of_scenarios() -> None:
    def named(name: str) -> str:
        made = type(name, (ew.Queue,), {"at_enqueue": lambda self, arrival: None})
        return sketch.describe(made).name

    assert [named(n) for n in ("MyQueue", "RED2", "HTMLQueue", "Ramp")] == [
        "my-queue",
        "red2",
        "html-queue",
        "ramp",
    ]


# Sweeps


def test_a_sweep_has_the_same_mechanisms_in_its_processes() -> None:
    file, text = written("ramp")
    alone = [
        ew.run(text, set={**SMALL, "fabric.queue.max": m}, mechanisms=[file]) for m in (10, 40)
    ]
    swept = ew.sweep(
        text,
        {"fabric.queue.max": [10, 40]},
        set=SMALL,
        seeds=[1],
        jobs=1,
        mechanisms=[file],
    )
    assert not swept.failures
    assert swept.runs["digest"].to_list() == [one.digest for one in alone]
    # Another rule is another run, though the scenario is the same.
    file.write_text(file.read_text().replace("random.unit() < p", "random.unit() > p"))
    changed = ew.sweep(
        text,
        {"fabric.queue.max": [10, 40]},
        set=SMALL,
        seeds=[1],
        jobs=0,
        force=True,
        mechanisms=[file],
    )
    assert changed.runs["digest"].to_list() != swept.runs["digest"].to_list()
    with pytest.raises(ew.InputError, match="jobs=0"):
        ew.sweep(scenario(), {"fabric.mtu": [1500]}, seeds=[1], jobs=1, mechanisms=[Behind])


# `eastwest new`


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("red", "built-in queue; try my-red"),
        ("core", "has another meaning"),
        ("My_Queue", "cannot be a name"),
        ("../up", "cannot be a name"),
        ("a" * 50, "cannot be a name"),
        ("taken", "already exists"),
    ],
)
def test_names_that_cannot_be_are_refused(name: str, says: str) -> None:
    Path("taken").mkdir()
    failed = eastwest("new", name)
    assert failed.returncode == 2 and says in failed.stderr
    assert [path.name for path in Path().iterdir()] == ["taken"]


def test_without_its_source_a_crate_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "folder", lambda: None)
    with pytest.raises(ew.InputError, match="installed without its Rust source"):
        new.write("mine", Kind.queue)
    with pytest.raises(ew.InputError, match="is not the source of Eastwest"):
        new.write("mine", Kind.queue, source=Path())
    other = Path("other")
    (other / "crates" / "bindings").mkdir(parents=True)
    (other / "crates" / "bindings" / "Cargo.toml").touch()
    (other / "Cargo.toml").write_text('[workspace.package]\nversion = "99.0.0"\n')
    with pytest.raises(ew.InputError, match=r"99\.0\.0, but .* is installed"):
        new.write("mine", Kind.queue, source=other)
    assert new.write("mine", Kind.queue, python=True).folder.is_dir()


def module_of(kind: Kind, **changes: str) -> str:
    """Return the template of a kind as a module of a crate with several mechanisms."""
    made = new.write(f"my-{kind.value}", kind, source=ROOT)
    text = (made.folder / "src" / "lib.rs").read_text()
    text, macros = re.subn(r"#\[cfg\(not\(test\)\)\]\neastwest::mechanisms!\(add\);\n", "", text)
    assert macros == 1
    for old, replacement in (changes or {}).items():
        assert text.count(old) == 1
        text = text.replace(old, replacement)
    return text


def test_an_unknown_setting_is_told_with_the_settings_of_its_mechanism() -> None:
    class Late(ew.Queue):
        """A queue with one setting."""

        threshold: int = 20

        def at_enqueue(self, arrival: ew.Arrival) -> ew.Verdict:
            return ew.Verdict.ENQUEUE

    # Settings may have names that RED, DCTCP and other tables use.
    text = scenario(
        'routing = "turns"\nrouting_parameters = { gap = 4 }\n'
        'queue = { kind = "late", weight = 3, treshold = 3 }',
        'congestion = "halves"\nparameters = { min = 3, kind = 4 }',
    )
    problems = {p["path"]: p for p in ew.check(text, mechanisms=[Late, Turns, Halves])}
    keys = "limit, threshold, ecn, protection"
    assert {path: problem["message"] for path, problem in problems.items()} == {
        "fabric.routing_parameters.gap": "is not a key of turns, which has no keys",
        "fabric.queue.weight": f"is not a key of late, which has {keys}",
        "fabric.queue.treshold": f"is not a key of late, which has {keys}",
        "tcp.parameters.min": "is not a key of halves, which has no keys",
        "tcp.parameters.kind": "is not a key of halves, which has no keys",
    }
    assert problems["fabric.queue.treshold"]["hint"] == "threshold"


# `eastwest fuzz`

FAULTY = {
    "raises": """
import eastwest as ew

class Faulty(ew.Queue):
    def at_enqueue(self, arrival: ew.Arrival) -> ew.Verdict:
        raise ValueError("no idea")
""",
    "answers nonsense": """
import eastwest as ew

class Faulty(ew.Routing):
    margin: int = 3

    def choose(self, choice: ew.Choice) -> int:
        return "the first"
""",
    "has a memory": """
import eastwest as ew

TURN = [0]

class Faulty(ew.Queue):
    def at_enqueue(self, arrival: ew.Arrival) -> ew.Verdict:
        TURN[0] += 1
        return ew.Verdict.ENQUEUE if TURN[0] % 7 else ew.Verdict.DROP_EARLY
""",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "oracle", "says"),
    [
        ("raises", "mechanism", "ValueError: no idea"),
        ("answers nonsense", "mechanism", "Faulty.choose must return"),
        ("has a memory", "repeat", "two runs of one scenario differ"),
    ],
)
def test_fuzz_finds_what_is_wrong_with_a_sketch(fault: str, oracle: str, says: str) -> None:
    Path("faulty.py").write_text(FAULTY[fault])
    small = ["--have", "workload.*.kind=stride"]  # Sketches are slow, so the cases are short runs.
    if oracle == "repeat":
        small += ["--have", "fabric.kind=star"]
    cases = ["--cases", "6", "--json", "--out", "found"]
    found = eastwest("fuzz", "--with", "faulty.py", *small, *cases)
    assert found.returncode == 1, found.stderr
    failures = json.loads(found.stdout)["failures"]
    right = [one for one in failures if one["oracle"] == oracle]
    assert right and says in right[0]["message"]
    # The reduced scenario names the mechanism, and its run also fails.
    folder = Path(right[0]["folder"])
    assert '"faulty"' in (folder / "scenario.toml").read_text()
    why = (folder / "why.txt").read_text()
    assert f"again: eastwest run scenario.toml --with {Path('faulty.py').resolve()}" in why
    if oracle == "mechanism":
        again = eastwest("run", str(folder / "scenario.toml"), "--with", "faulty.py")
        assert again.returncode == 2 and says in again.stderr


@pytest.mark.slow
def test_fuzz_uses_a_mechanism_in_every_case() -> None:
    file, _ = written("ramp")
    text = file.read_text()
    counting = "        print('called', file=open('calls', 'a'))\n"
    start = text.index("        if not arrival.fits")
    file.write_text(text[:start] + counting + text[start:])
    found = eastwest("fuzz", "--with", str(file), "--cases", "5", "--json")
    assert found.returncode == 0, found.stdout
    assert Path("calls").stat().st_size > 100


@pytest.mark.long
def test_a_crate_from_the_templates_does_what_built_in_mechanisms_do(
    tool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiles the templates of all three kinds as one crate; a minute or two."""
    tool("cargo")
    monkeypatch.delenv("CARGO_BUILD_TARGET", raising=False)
    # The folder is within the repository, so that Eastwest is not compiled again in each run.
    monkeypatch.setenv("CARGO_TARGET_DIR", str(ROOT / "target" / "mechanisms"))
    modules = {
        "queue": module_of(Kind.queue, **{'place.random("my-queue")': 'place.random("red")'}),
        # This template is set to react to each mark as DCTCP does.
        "congestion": module_of(
            Kind.congestion,
            **{
                "impl CongestionModel for Settings {": "impl CongestionModel for Settings {\n"
                "    fn echoes_each_mark(&self) -> bool {\n        true\n    }\n"
            },
        ),
        "routing": module_of(Kind.routing),
    }
    all_three = new.write("all-three", Kind.queue, source=ROOT).folder
    for name, text in modules.items():
        (all_three / "src" / f"{name}.rs").write_text(text)
    (all_three / "src" / "lib.rs").write_text(
        "//! All three.\nmod congestion;\nmod queue;\nmod routing;\n\n"
        "#[cfg(not(test))]\neastwest::mechanisms!(|all| {\n    queue::add(all);\n"
        "    congestion::add(all);\n    routing::add(all);\n});\n"
    )
    extras, _ = load([all_three])
    names = ["queue my-queue", "congestion my-congestion", "routing my-routing"]
    assert extras.sources[0]["mechanisms"] == names
    assert extras.sources[0]["sha256"] == crate.source_hash(all_three)

    text = Path("my-queue/scenario.toml").read_text()
    own = ew.run(text, set=SMALL, mechanisms=[all_three])
    built_in = ew.run(text.replace("min = 5\nmax = 15\n", ""), set={**RED, **SMALL})
    assert own.digest == built_in.digest and own.summary["packets"]["dropped"] > 100
    assert own.summary["mechanisms"][0]["crate"] == "all-three"
    assert "sketch_s" not in own.summary
    # With Reno's constants, and DCTCP without marks, both act alike.
    small = 'queue = { limit = "12 packets" }'
    reno = 'congestion = "my-congestion"\nparameters = { increase = 1, keep = 0.5 }\n'
    as_reno = scenario(small, f'{reno}ecn = "on"\necn_all_packets = true')
    assert ew.run(as_reno, mechanisms=[all_three]).digest == digest(
        scenario(small, 'congestion = "dctcp"')
    )
    # With a margin of 10,000 packets the routing never leaves a flow's first path.
    routed = Path("my-routing/scenario.toml").read_text()
    stays = ew.run(routed, set={"fabric.routing_parameters.margin": 10_000}, mechanisms=[all_three])
    leaves = ew.run(routed, set={"fabric.routing_parameters.margin": 0}, mechanisms=[all_three])
    assert stays.digest != leaves.digest
    # Wrong settings of the crate raise the exception that any scenario's wrong settings raise.
    with pytest.raises(ew.ScenarioError) as refused:
        ew.run(text.replace("min = 5", "mni = 50"), mechanisms=[all_three])
    assert [p["hint"] for p in refused.value.problems] == ["min"]
    # The processes of a sweep also load the mechanism.
    limit = {"fabric.queue.limit": ["200 packets"]}
    swept = ew.sweep(text, limit, seeds=[1], set=SMALL, jobs=1, mechanisms=[all_three])
    assert swept.runs["digest"].to_list() == [own.digest]

    # A panic names the mechanism and the source line; an overflow panics in this profile.
    assert own.summary["mechanisms"][0]["profile"] == "development"
    assert any("all-three was compiled for development" in note for note in own.summary["notes"])
    queue = all_three / "src" / "queue.rs"
    queue.write_text(queue.read_text().replace("backlog.packets)", "backlog.packets - 3)"))
    panicked = eastwest("run", "my-queue/scenario.toml", "--with", "all-three")
    assert panicked.returncode == 2
    assert re.search(
        r"crate all-three .* panicked at src/queue.rs:\d+: .*overflow", panicked.stderr
    )
    assert "bug in Eastwest" not in panicked.stderr
    found = eastwest("fuzz", "--with", "all-three", "--cases", "12", "--json", "--out", "found")
    failures = json.loads(found.stdout)["failures"]
    assert any("panicked at src/queue.rs" in one["message"] for one in failures)

    (all_three / "src" / "lib.rs").write_text("fn broken( {\n")
    failed = eastwest("run", "my-queue/scenario.toml", "--with", "all-three")
    assert failed.returncode == 2 and "does not compile" in failed.stderr
    shutil.rmtree(all_three)


@pytest.mark.long
def test_the_rust_form_of_pfabric_does_what_its_python_form_does(
    tool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiles the example of the guide as a crate; a minute or two."""
    tool("cargo")
    monkeypatch.delenv("CARGO_BUILD_TARGET", raising=False)
    monkeypatch.setenv("CARGO_TARGET_DIR", str(ROOT / "target" / "mechanisms"))
    examples = ROOT / "docs" / "examples" / "mechanisms"
    made = new.write("pfabric", Kind.queue, source=ROOT).folder
    shutil.copy(examples / "pfabric.rs", made / "src" / "lib.rs")
    small = 'queue = { kind = "pfabric", limit = "12 packets" }'
    text = scenario(small, 'congestion = "line-rate"')
    rust, python = (ew.run(text, mechanisms=[form]) for form in (made, examples / "pfabric.py"))
    assert rust.digest == python.digest and rust.summary["packets"]["dropped"] > 10
    shutil.rmtree(made)
