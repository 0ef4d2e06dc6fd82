"""Claims: their files, verdicts, measures, a tiny claim end to end, kept results, the page."""

from __future__ import annotations

import csv
import functools
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from matplotlib.patches import Rectangle
from typer.testing import CliRunner

import eastwest as ew
from eastwest.claims import page, record, selection
from eastwest.claims.catalogue import choose, find, papers_folder, search, select
from eastwest.claims.figures import draw, figure_of
from eastwest.claims.measures import SHARED, Data, MeasureError, Sample
from eastwest.claims.measures.base import Measured, Row
from eastwest.claims.measures.of_study import known_in, module_of
from eastwest.claims.profiles import profiles_of
from eastwest.claims.spec import FIGURES, Claim, Figure, Metric, load
from eastwest.claims.verdict import Explained, Outcome, Part, number
from eastwest.claims.work import How, run
from eastwest.cli import app
from eastwest.errors import InputError, ProblemsError
from eastwest.sweep.check import check, source_of
from eastwest.sweep.spec import load as load_sweep
from project_paths import PAPERS
from tiny import STAR

pytestmark = pytest.mark.slow

SHIPPED = find(PAPERS)
curves = module_of(PAPERS / "incast")
SCENARIO = f"""{STAR}[[workload]]
name = "reads"
kind = "incast"
receiver = "h0"
rounds = 3
block_bytes = "20 KB"
"""
CLAIM = """
claim = 1
id = "tiny/A1"
source = "nobody, figure 1"
statement = "A faster link reads faster."
published = "half the time"
profile = "plain"

[[open]]
what = "Hosts"
chosen = "4"
because = "few"

[runs.rates]
scenario = "../tiny.toml"
seeds = 3
axis = [{ path = "fabric.host_rate", values = ["1 Gbit/s", "10 Gbit/s"] }]
quick = { seeds = 2 }

[[metric]]
name = "time saved"
runs = "rates"
measure = "reduction"
value = "flows.fct_us.mean"
at = { "fabric.host_rate" = "10 Gbit/s" }
against = { "fabric.host_rate" = "1 Gbit/s" }
factor = 100
unit = "%"
low = 20

[[explanation]]
text = "The slow link's own time:"

[[explanation.metric]]
name = "slow"
runs = "rates"
measure = "mean"
value = "flows.fct_us.mean"
at = { "fabric.host_rate" = "1 Gbit/s" }
unit = "us"

[figure]
kind = "intervals"
title = "Saved"
caption = "The band is shaded."
"""


@pytest.fixture
def papers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study with one claim, in an empty working directory with its own store."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EASTWEST_STORE", raising=False)
    folder = tmp_path / "papers" / "tiny"
    (folder / "claims").mkdir(parents=True)
    (folder / "tiny.toml").write_text(SCENARIO)
    (folder / "claims" / "A1.toml").write_text(CLAIM)
    return tmp_path / "papers"


def rewrite(papers: Path, *changes: tuple[str, str]) -> Path:
    path = papers / "tiny" / "claims" / "A1.toml"
    text = CLAIM
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    return path


def problems(path: Path) -> dict[str, str]:
    with pytest.raises(ProblemsError) as caught:
        load(path)
    return {
        p["path"].partition(": ")[2]: f"{p['message']} ({p['hint']})" for p in caught.value.problems
    }


# Reading


def test_a_claim_is_read_with_its_quick_runs(papers: Path) -> None:
    claim = load(papers / "tiny" / "claims" / "A1.toml")
    assert (claim.id, claim.name, claim.published) == ("tiny/A1", "A1", "half the time")
    assert claim.runs["rates"].seeds == (1, 2, 3) and claim.quick["rates"].seeds == (1, 2)
    assert claim.metrics[0].low == 20 and claim.metrics[0].high is None
    assert claim.open[0].because == "few"
    assert [e.metrics[0].name for e in claim.explaining("time saved")] == ["slow"]


def test_all_problems_of_a_file_come_at_once(papers: Path) -> None:
    path = rewrite(
        papers,
        ("claim = 1", "claim = 2\nstatemant = 'x'"),
        ('id = "tiny/A1"', 'id = "A1"'),
        ('measure = "reduction"', 'measure = "reducton"'),
        ('runs = "rates"\nmeasure = "mean"', 'runs = "rate"\nmeasure = "mean"'),
        ("low = 20", ""),
        ("seeds = 3", "seeds = 0"),
        ('because = "few"', ""),
        ('kind = "intervals"', 'kind = "interval"'),
    )
    found = problems(path)
    assert found["claim"].startswith("must be 1, the version of the format")
    assert found["statemant"].endswith("(statement)")
    assert "a study and a name" in found["id"]
    assert found["metric.0.measure"].endswith("(reduction)")
    assert found["explanation.0.metric.0.runs"].endswith("(rates)")
    assert found["metric.0.low"].startswith("is missing: a metric needs a band")
    assert "runs.rates.seeds" in found
    assert found["open.0.because"].startswith("is missing")
    assert found["figure.kind"].endswith("(intervals)")


def test_arguments_of_a_measure_are_checked(papers: Path) -> None:
    path = rewrite(
        papers,
        ('at = { "fabric.host_rate" = "10 Gbit/s" }', 'att = { "fabric.host_rate" = "10 Gbit/s" }'),
        ('against = { "fabric.host_rate" = "1 Gbit/s" }', "against = 3"),
        ("factor = 100", 'factor = "100"'),
    )
    found = problems(path)
    assert found["metric.0.att"].endswith("(at)")
    assert found["metric.0.at"] == "is missing: the measure reduction needs it (None)"
    assert found["metric.0.against"].startswith("must be a table of settings")
    assert found["metric.0.factor"].startswith("must be a number")
    at = 'at = { "fabric.host_rate" = "10 Gbit/s" }'
    found = problems(rewrite(papers, (at, 'at = { "fabric.host_rate" = 1979-05-27 }')))
    assert found["metric.0.at.fabric.host_rate"].startswith("must be a text, a number,")


def test_a_share_in_percent_needs_its_factor(papers: Path) -> None:
    percent = 'factor = 100\nunit = "%"'
    for factor in ("", "factor = 1\n", "factor = -1\n"):
        found = problems(rewrite(papers, (percent, f'{factor}unit = "%"')))
        assert found == {
            "metric.0.factor": "is missing: reduction gives a share, 0.074 for 7.4 %; "
            "write factor = 100 (None)"
        }
    assert load(rewrite(papers, (percent, 'factor = -100\nunit = "%"'))).metrics[0].factor == -100
    assert load(rewrite(papers, (percent, ""))).metrics[0].factor == 1, "a share without a unit"
    mean = ('measure = "reduction"', 'measure = "mean"')
    only = ('against = { "fabric.host_rate" = "1 Gbit/s" }\n', "")
    assert load(rewrite(papers, mean, only, (percent, 'unit = "%"'))), "a value may be in percent"


AT = '"10 Gbit/s" }\nagainst'


@pytest.mark.parametrize(
    ("old", "new", "where", "message"),
    [
        (
            'at = { "fabric.host_rate"', 'at = { "fabric.host_rat"', "at.fabric.host_rat",
            "is not a setting that runs.rates set or vary (fabric.host_rate)",
        ),
        (
            'at = { "fabric.host_rate"', 'at = { "mtu"', "at.mtu",
            "is not a setting that runs.rates set or vary: fabric.host_rate (None)",
        ),
        (
            AT, AT.replace("10 G", "100 G"), "at.fabric.host_rate",
            "no point of runs.rates has this value; the values are 1 Gbit/s, 10 Gbit/s (10 Gbit/s)",
        ),
        (
            AT, '["1 Gbit/s", "11 Gbit/s"] }\nagainst', "at.fabric.host_rate",
            "no point of runs.rates has this value; the values are 1 Gbit/s, 10 Gbit/s (1 Gbit/s)",
        ),
        (
            "quick = { seeds = 2 }",
            'quick = { axis = [{ path = "fabric.host_rate", values = ["10 Gbit/s"] }] }',
            "against.fabric.host_rate",
            "no point of runs.rates with --quick has this value; the values are 10 Gbit/s "
            "(10 Gbit/s)",
        ),
    ],
)  # fmt: skip
def test_points_that_no_run_has_are_found_before_the_first_run(
    papers: Path, old: str, new: str, where: str, message: str
) -> None:
    path = rewrite(papers, (old, new))
    assert problems(path)[f"metric.0.{where}"] == message
    code, _, said = invoke()
    assert code == 2 and f"metric.0.{where}" in said
    assert not Path(".eastwest").exists(), "nothing was run"


def test_settings_that_no_point_has_together_are_found(papers: Path) -> None:
    both = 'path = ["fabric.host_rate", "fabric.mtu"], values = [["1 Gbit/s", 1500], '
    axis = ('path = "fabric.host_rate", values = ["1 Gbit/s", "10 Gbit/s"]',
            f'{both}["10 Gbit/s", 9000]]')  # fmt: skip
    fitting = (AT, AT.replace(" }", ', "fabric.mtu" = 9000 }'))
    assert load(rewrite(papers, axis, fitting))
    found = problems(rewrite(papers, axis, (AT, fitting[1].replace("9000", "1500"))))
    assert found == {
        "metric.0.at": "no point of runs.rates has fabric.host_rate = 10 Gbit/s, "
        "fabric.mtu = 1500 together (None)"
    }


QUEUES = (
    'axis = [{ path = "fabric.queue", values = [\n'
    '  { kind = "drop-tail", limit = "9 packets" },\n'
    '  { kind = "drop-tail", limit = "90 packets" },\n'
    '  { kind = "step-marking", limit = "90 packets", threshold = "5 packets" },\n'
    "] }]"
)


def queues(papers: Path, at: str, against: str, *changes: tuple[str, str]) -> Path:
    """Write a claim that compares points of an axis of queues."""
    axis = 'axis = [{ path = "fabric.host_rate", values = ["1 Gbit/s", "10 Gbit/s"] }]'
    return rewrite(
        papers,
        (axis, QUEUES),
        ('at = { "fabric.host_rate" = "10 Gbit/s" }\nagainst', f"at = {at}\nagainst"),
        ('against = { "fabric.host_rate" = "1 Gbit/s" }', f"against = {against}"),
        ('at = { "fabric.host_rate" = "1 Gbit/s" }', f"at = {against}"),
        ("low = 20", "low = -1000"),
        *changes,
    )


DEEP = '{ "fabric.queue" = { kind = "drop-tail", limit = "90 packets" } }'


@pytest.mark.parametrize(
    "at",
    [
        '{ "fabric.queue" = { kind = "step-marking", limit = "90 packets", '
        'threshold = "5 packets" } }',
        '{ "fabric.queue" = { kind = "step-marking" } }',
        "{ fabric.queue.kind = 'step-marking' }",
        '{ "fabric.queue.kind" = "step-marking" }',
        '{ "fabric.queue" = { kind = ["step-marking", "drop-tail"], threshold = "5 packets" } }',
    ],
)
def test_a_point_of_an_axis_of_tables_is_named_by_keys(papers: Path, at: str) -> None:
    queues(papers, at, DEEP)
    (found,) = run(find(papers), How(jobs=0))
    queue = {"fabric.queue.limit": "90 packets"}
    marking = {"fabric.queue.kind": "step-marking", "fabric.queue.threshold": "5 packets"}
    alone = ew.run(papers / "tiny/tiny.toml", {**queue, **marking}, 1)
    deep = ew.run(papers / "tiny/tiny.toml", {**queue, "fabric.queue.kind": "drop-tail"}, 1)
    (metric,) = found.parts
    assert metric.measured is not None and metric.measured.seeds == 3, metric.why_not
    queues(papers, at, DEEP, ("seeds = 3", "seeds = 1"))
    (found,) = run(find(papers), How(jobs=0))
    ours, theirs = (each.summary["flows"]["fct_us"]["mean"] for each in (alone, deep))
    assert found.parts[0].numbers()[0] == pytest.approx(100 * (1 - ours / theirs))


def test_tables_that_no_point_has_are_told_in_toml(papers: Path) -> None:
    found = problems(queues(papers, '{ "fabric.queue" = { kind = "step-markin" } }', DEEP))
    (message,) = found.values()
    assert [*found] == ["metric.0.at.fabric.queue"]
    assert '{ "kind" = "step-marking", "limit" = "90 packets", "threshold" =' in message
    ambiguous = queues(papers, '{ "fabric.queue" = { kind = "drop-tail" } }', DEEP)
    (found_two,) = run([load(ambiguous)], How(jobs=0))
    why = '2 points match, but exactly one is needed: fabric.queue = { "kind" = "drop-tail" }'
    assert found_two.parts[0].why_not == f"runs.rates: {why}"


def test_a_table_that_an_axis_has_is_not_a_part_of_others() -> None:
    values = {"q": [{"kind": "red"}, {"kind": "red", "ecn": True}]}
    wanted = {"q": {"kind": "red"}}
    assert selection.fits({"q": {"kind": "red"}}, wanted, values)
    assert not selection.fits({"q": {"kind": "red", "ecn": True}}, wanted, values)
    assert selection.fits({"q": {"kind": "red", "ecn": True}}, {"q": {"ecn": True}}, values)
    assert not selection.fits({"q": {"kind": "red"}}, {"q": {"ecn": True}}, values)
    assert selection.fits({"q.kind": "red", "q.ecn": True}, {"q": {"ecn": True}}, {})
    assert selection.fits({"n": 1.0}, {"n": 1}, {}) and not selection.fits({"n": 1.5}, {"n": 1}, {})


def test_points_are_compared_with_the_one_of_another_queue() -> None:
    queue = {"fabric.queue": '{ "kind" = "red" }', "fabric.hosts": 3}
    assert Sample(queue, {}).axes_but({"fabric.queue.kind"}) == {"fabric.hosts": 3}
    assert Sample(queue, {}).axes_but({"fabric.queue"}) == {"fabric.hosts": 3}
    assert Sample(queue, {}).axes_but({"fabric.que"}) == queue


def test_runs_have_no_names_that_lead_elsewhere(papers: Path) -> None:
    found = problems(rewrite(papers, ("[runs.rates]", '[runs."../../rates"]')))
    assert found["runs"].startswith("the name of runs must have")


def test_a_band_is_not_upside_down(papers: Path) -> None:
    found = problems(rewrite(papers, ("low = 20", "low = 20\nhigh = 10")))
    assert found == {"metric.0.low": "must not be above high (10) (None)"}


@pytest.mark.parametrize("content", [b"\xff", b"claim = ", b"[" * 100_000])
def test_what_is_no_toml_is_refused(papers: Path, content: bytes) -> None:
    path = papers / "tiny" / "claims" / "A1.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"A1\.toml"):
        load(path)


def test_open_points_can_be_shared_within_a_study(papers: Path) -> None:
    shared = papers / "tiny" / "open.toml"
    entry = CLAIM[CLAIM.index("[[open]]") : CLAIM.index("[runs.rates]")]
    shared.write_text(entry)
    path = rewrite(
        papers, (entry, ""), ('profile = "plain"', 'profile = "plain"\nopen = "../open.toml"')
    )
    first = load(path)
    assert first.open[0].what == "Hosts"
    shared.write_text(entry.replace("few", "fewer"))
    again = load(path)
    assert again.open[0].because == "fewer"
    assert again.digest == first.digest, "words decide no number"
    (papers.parent / "open.toml").write_text(entry)
    path.write_text(path.read_text().replace("../open.toml", "../../../open.toml"))
    assert "in the folder of a study" in problems(path)["open"]


def test_two_claims_do_not_share_an_id(papers: Path) -> None:
    (papers / "tiny" / "claims" / "A2.toml").write_text(CLAIM)
    with pytest.raises(ProblemsError, match="is also the id of"):
        find(papers)


def test_patterns_name_ids_studies_and_globs() -> None:
    def ids(*patterns: str) -> list[str]:
        return [claim.id for claim in choose(SHIPPED, patterns)]

    folders = sorted({claim.path.parent.parent for claim in SHIPPED})
    for folder in folders:
        in_it = [claim.id for claim in SHIPPED if claim.path.parent.parent == folder]
        assert ids(folder.name) == in_it, folder
        assert ids(f"{folder.name}/*") == in_it or folder.name == "incast"
    assert len(ids("incast")) == 10 and len(ids("incast/*")) == 19
    assert ids("incast_day") == ["incast/F7", "incast/F8", "incast/F9"]
    assert ids("hadoop_standalone/F6a") == ids("incast/F6a") == ["incast/F6a"]
    assert ids("incast/F4") == ids("incast/F4*") and ids("eeon/F5.2") == ids("eeon/F5.2?")
    assert ids("incast/T1") == ["incast/T1"]
    assert ids("incast/F4*") == ["incast/F4a", "incast/F4b", "incast/F4c"]
    assert ids("eeon/F6.8*") == ["eeon/F6.8a", "eeon/F6.8b"]
    assert ids("eeon") == [claim.id for claim in SHIPPED if claim.id.startswith("eeon/")]
    assert ids() == [claim.id for claim in SHIPPED]
    assert ids("eeon", "eeon/C5.1") == ids("eeon")
    for wrong, near in (
        ("incats", "incast"), ("incast/T2", "incast/T1"), ("t1", "incast/T1"),
        ("hadoop_standalon", "hadoop_standalone"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=f"did you mean {near}"):
            choose(SHIPPED, [wrong])


def test_a_wrong_file_does_not_stop_a_claim_that_is_named(papers: Path) -> None:
    claims = papers / "tiny" / "claims"
    (claims / "B1.toml").write_text(CLAIM.replace("tiny/A1", "tiny/B1").replace("low = 20", ""))
    (papers / "other" / "claims").mkdir(parents=True)
    (papers / "other" / "claims" / "C1.toml").write_text("claim = ")
    said: list[str] = []
    assert [claim.id for claim in select(papers, ["tiny/A1"], said.append)] == ["tiny/A1"]
    assert [line.partition(" is left out: ")[0] for line in said] == [
        f"warning: {papers / 'other/claims/C1.toml'}", f"warning: {claims / 'B1.toml'}",
    ]  # fmt: skip
    assert "not TOML" in said[0] and "metric.0.low: is missing" in said[1]
    for wrong in (["tiny/B1"], ["tiny"], ["other"], []):
        with pytest.raises(InputError, match=r"B1\.toml: metric\.0\.low|not TOML"):
            select(papers, wrong)
    code, out, errors = invoke("tiny/A1", "--record")
    assert code == 0 and "tiny/A1 holds" in out
    assert errors.count("is left out") == 2 and "the pages are not updated" in errors
    assert (papers / "tiny/results/A1.json").is_file()
    with pytest.warns(UserWarning, match="is left out") as warned:
        assert len(ew.claims("tiny/A1", quick=True, jobs=0, papers=papers)) == 1
    assert {warning.filename for warning in warned} == {__file__}


def test_the_list_has_the_study_of_each_claim(papers: Path) -> None:
    (papers / "tiny").rename(papers / "folder")
    code, out, _ = invoke("--list", "--json", "folder")
    assert code == 0 and [(c["id"], c["study"]) for c in json.loads(out)] == [("tiny/A1", "folder")]
    code, out, _ = invoke("--list")
    lines = out.splitlines()
    assert lines[0] == "folder: reading first, TCP profile plain"
    (line,) = [line for line in lines if "tiny/A1" in line]
    assert json.loads(invoke("--list", "--json")[1])[0]["statement"] in line


def test_a_word_of_a_statement_or_a_mechanism_selects_claims_to_list() -> None:
    def ids(word: str) -> set[str]:
        return {claim.id for claim in search(PAPERS, [word])}

    assert "eeon/F5.2a" in ids("red") == ids("RED") and "dcb/F9b" not in ids("red")
    assert ids("incast/T1") == {"incast/T1"} and len(ids("incast")) == 10
    assert "kernel_tcp/reno_codel" in ids("codel")
    assert {c.id for c in search(PAPERS, ["incast/T1", "mis-ordering"])} == {"incast/T1", "dcb/F9d"}
    with pytest.raises(InputError, match="no text or setting of a claim has this word"):
        search(PAPERS, ["reductio"])
    code, _, err = invoke("red", "--quick")
    assert code == 2 and "eastwest claims --list red searches statements for words" in err


def test_a_folder_without_claims_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a folder"):
        papers_folder(tmp_path / "none")


# Verdicts


def metric(**keys: Any) -> Metric:
    values: dict[str, Any] = {
        "name": "m", "runs": "r", "measure": "mean", "arguments": {}, "unit": "ms",
        "factor": 1000.0, "digits": 3, "low": 4.0, "high": 6.0,
    }  # fmt: skip
    return Metric(**{**values, **keys})


@pytest.mark.parametrize(
    ("value", "verdict"),
    [(0.004, "holds"), (0.006, "holds"), (0.0061, "differs"), (0.0039, "differs")],
)
def test_a_value_in_its_band_holds(value: float, verdict: str) -> None:
    assert Part(metric(), Measured(value)).verdict == verdict


def test_a_band_may_be_open_on_one_side() -> None:
    assert Part(metric(low=None), Measured(-1.0)).verdict == "holds"
    assert Part(metric(high=None), Measured(9.0)).verdict == "holds"
    assert Part(metric(high=None), Measured(0.001)).verdict == "differs"


def test_an_interval_across_the_end_of_a_band_is_undecided() -> None:
    across = Part(metric(), Measured(0.005, 0.0039, 0.0061))
    assert across.borderline and across.verdict == "undecided"
    assert Part(metric(), Measured(0.007, 0.0059, 0.0081)).verdict == "undecided"
    assert not Part(metric(), Measured(0.005, 0.0045, 0.0055)).borderline
    assert not Part(metric(), Measured(0.005)).borderline


def test_numbers_are_given_in_the_unit_of_the_band() -> None:
    part = Part(metric(), Measured(0.005, 0.0045, 0.0055, seeds=7))
    assert part.text() == "5 ms (95 %: 4.5 to 5.5)"
    assert part.band() == "4 to 6 ms"
    turned = Part(metric(factor=-1000.0), Measured(0.005, 0.0045, 0.0055))
    assert turned.numbers() == pytest.approx((-5.0, -5.5, -4.5))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1234567.0, "1,234,567"),
        (0.01234, "0.0123"),
        (9.99, "9.99"),
        (-3.14159, "-3.14"),
    ],
)
def test_numbers_read_well(value: float, text: str) -> None:
    assert number(value, 3) == text


def outcome(papers: Path, *parts: Part, explained: tuple[Explained, ...] = ()) -> Outcome:
    return Outcome(load(papers / "tiny" / "claims" / "A1.toml"), parts, explained, False)


def test_a_claim_holds_when_all_its_metrics_do(papers: Path) -> None:
    good, bad = Part(metric(), Measured(0.005, seeds=9)), Part(metric(name="n"), Measured(1.0))
    lost = Part(metric(), None, "2 runs failed")
    assert outcome(papers, good).verdict == "holds"
    assert outcome(papers, good, bad).verdict == "differs"
    assert outcome(papers, good, lost).verdict == "not run"
    assert outcome(papers, lost, bad).verdict == "differs"
    assert outcome(papers, good).seeds == 9
    assert outcome(papers, lost).measured() == "2 runs failed"


def test_a_claim_is_shown_in_notebooks_with_its_numbers_and_bands(papers: Path) -> None:
    bad = Part(metric(name="<time>"), Measured(1.0))
    shown = outcome(papers, bad)._repr_html_()
    assert "tiny/A1: differs" in shown
    for text in ("&lt;time&gt;", "1,000 ms", "4 to 6 ms", "Outside the band"):
        assert text in shown


def test_a_choice_among_no_settings_differs_and_is_written_as_valid_json(papers: Path) -> None:
    none = Part(metric(), Measured(-math.inf, text="no setting keeps it"))
    found = outcome(papers, none)
    assert found.verdict == "differs"
    assert found.measured().startswith("no setting keeps it")
    written = json.loads(json.dumps(found.as_json(), allow_nan=False))
    assert written["value"] is written["metrics"][0]["value"] is None


def test_what_differs_is_explained_with_numbers(papers: Path) -> None:
    claim = load(papers / "tiny" / "claims" / "A1.toml")
    bad = Part(metric(name="time saved"), Measured(1.0))
    shown = Part(metric(name="slow"), Measured(0.005))
    text = outcome(
        papers, bad, explained=(Explained(claim.explanations[0], [shown]),)
    ).explanation()
    assert (
        text == "Outside the band: time saved (4 to 6 ms). The slow link's own time: slow = 5 ms."
    )
    unproven = Explained(claim.explanations[0], [Part(metric(name="slow"), Measured(1.0))])
    assert "do not confirm" in unproven.text()
    # Undecided numbers support an explanation if they lie in its band.
    within = Part(metric(name="slow"), Measured(0.0059, 0.0055, 0.0063))
    beyond = Part(metric(name="slow"), Measured(0.0061, 0.0058, 0.0064))
    assert within.verdict == beyond.verdict == "undecided"
    assert Explained(claim.explanations[0], [within]).borne_out
    assert not Explained(claim.explanations[0], [beyond]).borne_out


# Measures


class Curve(Data):
    """Made-up goodput by number of senders and seed."""

    def __init__(self, table: dict[int, list[float]]) -> None:
        self.table = table

    def samples(self, value: str, at: Any = None) -> list[Sample]:
        return [
            Sample({"fabric.hosts": n + 1}, dict(enumerate(values, 1)))
            for n, values in self.table.items()
        ]


def test_the_onset_is_where_mean_goodput_has_halved() -> None:
    falling = Curve({1: [10.0, 12.0], 2: [20.0, 20.0], 3: [19.0, 2.0], 4: [4.0, 2.0]})
    found = curves.onset(falling, {}, 1000)
    # At 3 senders the mean, 10.5, is more than half of 20; with only the second seed it is not.
    assert found.value == 4 and (found.low, found.high) == (3, 4) and found.seeds == 2
    assert [row["senders"] for row in found.rows] == [1, 2, 3, 4]
    never = curves.onset(Curve({1: [1.0], 2: [2.0]}), {}, 1000)
    assert never.value == 3 and never.text == "no collapse up to 2" and never.low is None


def test_other_readings_of_a_curve() -> None:
    curve = Curve({1: [10.0], 2: [20.0], 3: [17.0], 4: [12.0], 5: [8.0], 6: [9.0]})
    assert curves.lowest_share(curve, {}, 1000).value == pytest.approx(0.4)
    fall = curves.senders_of_fall(curve, {}, 1000)
    assert fall.value == 2 and fall.text == "from 3 to 5"
    best = curves.best_run(curve, {}, 1000, 3, 6, link_bps=20)
    assert best.value == pytest.approx(0.85) and best.text == "with 3 senders"
    with pytest.raises(MeasureError, match="no runs with 7 to 9"):
        curves.best_run(curve, {}, 1000, 7, 9)


def test_a_curve_of_the_model_follows_the_model() -> None:
    after = Curve({n: [ew.models.incast.goodput_after(n, 64000)] * 2 for n in range(2, 9)})
    ratio = curves.model_ratio(after, {}, 64000, 2, 2, 8)
    assert ratio.value == pytest.approx(1) and ratio.low == pytest.approx(1)
    partial = Curve({n: [ew.models.incast.goodput_partial(n, 64000, 0.6)] for n in range(2, 9)})
    assert curves.alpha(partial, {}, 64000, 2, 8).value == pytest.approx(0.6)
    with pytest.raises(MeasureError, match="equation 3"):
        curves.model_ratio(after, {}, 64000, 3, 2, 8)


def test_the_largest_of_all_runs_has_no_interval() -> None:
    found = SHARED.measures["largest"].function(Curve({1: [3.0, 9.0, 4.0]}), "x", {})
    assert (found.value, found.low, found.high, found.seeds) == (9.0, None, None, 3)


def test_measures_and_values_say_what_they_are() -> None:
    for known in (known_in(study) for study in {claim.path.parent.parent for claim in SHIPPED}):
        for name, signature in known.measures.items():
            assert signature.function.__doc__, name
        for name, function in known.values.items():
            assert function.__doc__, name


def test_a_study_brings_its_own_measures(papers: Path) -> None:
    guide = (PAPERS.parent / "docs" / "guide" / "claims.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(from eastwest.claims.measures.*?)```", guide, re.S)
    own = papers / "tiny" / "measures.py"
    own.write_text(example)
    path = rewrite(
        papers,
        ('measure = "reduction"', 'measure = "widest"'),
        ('against = { "fabric.host_rate" = "1 Gbit/s" }\n', ""),
        (
            'measure = "widest"\nvalue = "flows.fct_us.mean"',
            'measure = "widest"\nvalue = "lost-share"',
        ),
        ("low = 20", "high = 0"),
    )
    (found,) = ew.claims("tiny", jobs=0, papers=papers)
    assert (found.verdict, found.parts[0].numbers()[0]) == ("holds", 0)
    path.write_text(path.read_text().replace('"widest"', '"widset"'))
    assert problems(path)["metric.0.measure"].endswith("(widest)")
    own.unlink()
    assert "unknown measure" in problems(path)["metric.0.measure"], "no other study knows it"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def", "measures.py could not be loaded: SyntaxError"),
        ("import eastwest.nothing", "could not be loaded: ModuleNotFoundError"),
        (
            "from eastwest.claims.measures import measure\n@measure('mean')\ndef m(data): ...",
            "mean is already the name of a shared measure",
        ),
    ],
)
def test_wrong_files_of_measures_are_refused(papers: Path, text: str, message: str) -> None:
    (papers / "tiny" / "measures.py").write_text(text)
    with pytest.raises(InputError, match=message):
        load(papers / "tiny/claims/A1.toml")


def test_values_that_claims_name_are_known_in_their_study() -> None:
    for claim in SHIPPED:
        known = known_in(claim.path.parent.parent).values
        inner = [metric for each in claim.explanations for metric in each.metrics]
        for metric in (*claim.metrics, *inner):
            for key in ("value", "whole", "less", "keeping"):
                value = metric.arguments.get(key)
                if isinstance(value, str) and "-" in value:
                    assert value in known, (claim.id, value)


# Figures


def shown(claim: Claim, kind: str, parts: list[Part]) -> Outcome:
    wanted = Figure(kind, "A figure", "", tuple(part.metric.name for part in parts))
    return Outcome(replace(claim, figure=wanted), parts, [], False)


@pytest.mark.long
def test_every_kind_of_figure_is_drawn(papers: Path) -> None:
    claim = load(papers / "tiny" / "claims" / "A1.toml")
    curve = Curve({n: [1e6 * n, 2e6 * n] for n in range(1, 9)})
    burst = {"seed": 1, "round trip": 1, "sent_bytes": 1448, "published": 1448}
    alpha = Part(metric(name="alpha"), curves.alpha(curve, {}, 16_000, 2, 5))
    panels = {
        "goodput": [alpha, Part(metric(measure="onset"), curves.onset(curve, {}, 16_000))],
        "bars": [Part(metric(), Measured(0.0, rows=[dict(burst)]))],
        "intervals": [Part(metric(), Measured(0.005, 0.004, 0.006)), Part(metric(low=None), None)],
    }
    window = Part(
        metric(arguments={"case": "a"}), Measured(9.0, rows=[{"time_s": 0.0, "window": 9.0}])
    )
    reads: Row = {"case": "a", "senders": 2, "goodput_bps": 9e7, "low": None, "high": 9.1e7}
    panels |= {"windows": [window], "reads": [Part(metric(), Measured(9e7, rows=[reads]))]}
    link: Row = {"load": 0.1, "power": 0.54, "model": 0.545}
    panels["power"] = [Part(metric(arguments={"policy": "standard"}), Measured(0.0, rows=[link]))]
    curves_of_jobs: Row = {"share": 0.5, "at_s": 2.0, "against_s": 1.0}
    apart = {"at": {"tcp.min_rto": "1 ms"}, "against": {"tcp.min_rto": "200 ms"}}
    panels["distributions"] = [
        Part(metric(arguments=apart), Measured(1.0, rows=[dict(curves_of_jobs)]))
    ]
    job: Row = {"number": 1, "runtime_s": 4.0, "bytes": 100}
    panels["sequences"] = [Part(metric(), Measured(0.1, rows=[job]))]
    assert sorted(panels) == sorted(FIGURES)
    for kind, parts in panels.items():
        pictures = draw(shown(claim, kind, parts), BOTH)
        assert pictures[".png"].startswith(b"\x89PNG") and b"A figure" in pictures[".svg"]
        assert draw(shown(claim, kind, parts), BOTH) == pictures, "drawn again, the same"
        assert b"nothing was measured" in draw(shown(claim, kind, []), BOTH)[".svg"]
    assert b"equation (4)" in draw(shown(claim, "goodput", [alpha]), BOTH)[".svg"]


def test_metrics_of_different_units_have_axes_of_their_own(papers: Path) -> None:
    claim = load(papers / "tiny" / "claims" / "A1.toml")
    parts = [
        Part(metric(name="goodput", unit="Mbit/s", factor=1, low=400, high=500), Measured(450.0)),
        Part(
            metric(name="window", unit="segments", factor=1, low=None, high=60),
            Measured(72.0, 70.0, 74.0),
        ),
    ]
    figure = figure_of(shown(claim, "intervals", parts))
    assert figure is not None
    assert [axes.get_xlabel() for axes in figure.axes] == ["Mbit/s", "segments"]
    goodput, window = figure.axes
    assert goodput.get_xlim()[0] < 400 and goodput.get_xlim()[1] > 500
    (band,) = [bar for bar in window.patches if isinstance(bar, Rectangle)]
    assert band.get_x() == window.get_xlim()[0], "a band without a lower end begins at the edge"
    assert band.get_x() + band.get_width() == pytest.approx(60)


def test_goodput_of_any_rate_lies_within_the_figure_of_reads(papers: Path) -> None:
    claim = load(papers / "tiny" / "claims" / "A1.toml")
    row: Row = {"case": "a", "senders": 2, "goodput_bps": 4.7e8, "low": None, "high": None}
    figure = figure_of(shown(claim, "reads", [Part(metric(), Measured(4.7e8, rows=[row]))]))
    assert figure is not None
    low, high = figure.axes[0].get_ylim()
    assert low == 0 and high > 470


# Profiles


def with_profile(papers: Path, text: str) -> None:
    (papers / "tiny" / "profiles.toml").write_text(text)


OTHER = """
[slow]
about = "Large first windows."
set = { tcp.initial_window = 20, "fabric.host_rate" = "2 Gbit/s" }
"""


def test_a_profile_gives_way_to_what_a_claim_varies(papers: Path) -> None:
    path = rewrite(papers, ("seeds = 3", 'seeds = 3\nset = { "tcp.min_rto" = "10 ms" }'))
    with_profile(papers, OTHER)
    own, other = load(path), load(path, "slow")
    assert own == load(path, "plain") and not own.variant
    assert (other.profile, other.variant) == ("slow", "slow")
    assert other.runs["rates"].settings == {"tcp.initial_window": 20, "tcp.min_rto": "10 ms"}
    assert other.digest != own.digest
    with_profile(papers, OTHER.replace("= 20", "= 30"))
    assert load(path, "slow").digest != other.digest and load(path).digest == own.digest


def test_explanations_are_those_of_the_profile(papers: Path) -> None:
    path = rewrite(papers, ("low = 20", "low = 99"))
    with_profile(papers, OTHER + 'seeds = 2\nbecause = { "tiny/A1" = "Windows are large." }')
    assert load(path).explanations[0].metrics and len(load(path).runs["rates"].seeds) == 3
    code, out, _ = invoke("--record", "--profile", "all")
    assert code == 1 and "Windows are large." in " ".join(out.split())
    assert "`slow`: Windows are large." in pages(papers)
    assert json.loads((papers / "tiny/results/slow/A1.json").read_text())["seeds"] == 2


def test_results_of_profiles_are_kept_apart_and_shown_beside_each_other(papers: Path) -> None:
    with_profile(papers, OTHER)
    assert invoke("--record", "--profile", "all")[0] == 0
    kept = papers / "tiny" / "results"
    own, other = (json.loads((kept / at / "A1.json").read_text()) for at in ("", "slow"))
    assert (own["profile"], other["profile"]) == ("plain", "slow")
    assert own["value"] != other["value"]
    text = (papers / "tiny" / "CLAIMS.md").read_text()
    assert (papers / "README.md").read_text() + "\n" + text == pages(papers)
    assert "| `plain` | `slow` |" in text and "`slow`: holds" in text
    code, out, _ = invoke("--list", "--json", "--profile", "slow")
    assert code == 0 and json.loads(out)[0]["profile"] == "slow"
    found = ew.claims("tiny", profiles=["all"], jobs=0, papers=papers)
    assert [outcome.claim.profile for outcome in found] == ["plain", "slow"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "not TOML"),
        ("[a]\nabout = 3\nset = {}", "a.about = 3: must be a text"),
        ("[a]\nset = {}", "a.about: is missing: a text"),
        ("[a]\nabuot = 'x'\nset = {}", "did you mean about?"),
        ("[a]\nabout = 'x'", "a.set: is missing: a table"),
        ("a = 3", "a = 3: must be a table"),
        ('[a]\nabout = ""\nset = {}\nseeds = 0', "a.seeds = 0: allowed: 1 to 1000"),
        ('[a]\nabout = ""\nset = {}\nbecause = 3', "a table of claims"),
        ('["../a"]\nabout = ""\nset = {}', "a to z, 0 to 9"),
        ('[slow]\nabout = "x"\nset = {}', "did you mean slow"),
        ("", "the study has no profiles.toml"),
    ],
)
def test_wrong_profiles_are_refused(papers: Path, text: str, message: str) -> None:
    if text:
        with_profile(papers, text)
    code, _, errors = invoke("--profile", "slwo")
    assert code == 2 and message in " ".join(errors.split())


READINGS = """
[testbed]
about = "The link of the testbed."
since = "2026-11-23"

[[testbed.value]]
what = "First window"
words = "windows of 20 packets"
where = "section 5"
set = { tcp.initial_window = 20, "fabric.host_rate" = "2 Gbit/s" }

[[testbed.value]]
what = "Minimum timeout"
words = "figure 1 has 5 ms"
where = "figure 1"
set = { "tcp.min_rto" = "5 ms" }
claims = ["tiny/A*"]

[first]
about = "As the claim files have it."
since = "2026-11-20"
"""


def test_a_reading_goes_for_all_claims_and_gives_way_to_what_they_vary(papers: Path) -> None:
    path = rewrite(papers, ("seeds = 3", 'seeds = 3\nset = { "tcp.min_rto" = "10 ms" }'))
    (papers / "tiny" / "readings.toml").write_text(READINGS)
    best, first = load(path), load(path, named="first")
    assert (best.reading, best.variant, first.reading, first.variant) == (
        "testbed", "testbed", "first", "",
    )  # fmt: skip
    assert best.runs["rates"].settings == {"tcp.initial_window": 20, "tcp.min_rto": "5 ms"}
    assert first.runs["rates"].settings == {"tcp.min_rto": "10 ms"}
    assert best.explanations == () and len(first.explanations) == 1, "of the reading they are for"
    with_profile(papers, OTHER.replace("= 20", "= 30"))
    slow = load(path, "slow")
    assert slow.runs["rates"].settings == {"tcp.initial_window": 30, "tcp.min_rto": "5 ms"}
    assert (slow.reading, slow.variant) == ("testbed", "slow")


@pytest.mark.parametrize(
    ("condition", "fits"),
    [
        ('{ "fabric.kind" = "star" }', True),  # The path of this setting is in the scenario.
        # The path of this setting is in the claim.
        ('{ "fabric.kind" = ["torus", "star"], "tcp.min_rto" = "10 ms" }', True),
        # The path of this setting is an axis of the claim.
        ('{ "fabric.host_rate" = ["1 Gbit/s", "10 Gbit/s"] }', True),
        ('{ "fabric.kind" = "torus" }', False),
        ('{ "fabric.queue.kind" = "red" }', False),
    ],
)
def test_a_value_goes_for_runs_that_have_what_it_needs(
    papers: Path, condition: str, fits: bool
) -> None:
    path = rewrite(papers, ("seeds = 3", 'seeds = 3\nset = { "tcp.min_rto" = "10 ms" }'))
    text = READINGS.replace('[[testbed.value]]\nwhat = "Min', 'AT[[testbed.value]]\nwhat = "Min')
    (papers / "tiny" / "readings.toml").write_text(text.replace("AT", f"with = {condition}\n"))
    assert ("tcp.initial_window" in load(path).runs["rates"].settings) == fits


def test_a_value_that_fits_a_part_of_an_axis_is_refused(papers: Path) -> None:
    text = READINGS.replace("claims = [", 'with = { "fabric.host_rate" = "1 Gbit/s" }\nclaims = [')
    (papers / "tiny" / "readings.toml").write_text(text)
    with pytest.raises(ProblemsError, match="applies only to some values of the axis"):
        load(papers / "tiny/claims/A1.toml")


def only_in(papers: Path, text: str) -> None:
    """Make the reading apply to only a part of the points of claim A1."""
    value = f"{text}\nclaims = ["
    readings = READINGS.replace('set = { "tcp.min_rto" = "5 ms" }\nclaims = [', value)
    (papers / "tiny" / "readings.toml").write_text(readings)


def test_a_value_cuts_the_axes_of_the_claims_it_names(papers: Path) -> None:
    path = rewrite(papers, ('"10 Gbit/s"] }]', '"10 Gbit/s", "40 Gbit/s"] }]'))
    whole = load(path).runs["rates"].axes[0].values
    rates = '["1 Gbit/s", "10 Gbit/s"]'
    asked = f'only = {{ "fabric.host_rate" = {rates}, "fabric.kind" = "star" }}'
    only_in(papers, asked)
    best, first = load(path), load(path, named="first")
    assert best.runs["rates"].axes[0].values == (("1 Gbit/s",), ("10 Gbit/s",))
    assert first.runs["rates"].axes[0].values == whole and len(whole) == 3
    assert best.runs["rates"].settings == {"tcp.initial_window": 20}, "a value may set nothing"
    assert "only `fabric.host_rate = 1 Gbit/s or 10 Gbit/s`" in pages(papers)


@pytest.mark.parametrize(
    "condition", ['"fabric.host_rate" = "3 Gbit/s"', '"fabric.kind" = "torus"', '"mtu" = 9000']
)
def test_a_value_that_leaves_no_point_is_refused(papers: Path, condition: str) -> None:
    only_in(papers, f"only = {{ {condition} }}")
    with pytest.raises(ProblemsError, match="excludes all runs"):
        load(papers / "tiny/claims/A1.toml")


def test_a_reading_that_changes_nothing_shares_the_first_results(papers: Path) -> None:
    path = rewrite(papers, ("[[explanation]]", '[[explanation]]\nreading = "first"'))
    text = READINGS.replace("tcp.initial_window = 20, ", "").replace('"tiny/A*"', '"tiny/B"')
    (papers / "tiny" / "readings.toml").write_text(text)
    assert load(path).variant == "testbed", "the first has an experiment more"
    (papers / "tiny" / "readings.toml").write_text(text)
    plain = CLAIM[: CLAIM.index("[[explanation]]")]
    path.write_text(plain)
    assert (load(path).reading, load(path).variant) == ("testbed", "")


def test_the_best_supported_reading_gives_the_verdict(papers: Path) -> None:
    (papers / "tiny" / "readings.toml").write_text(READINGS)
    assert invoke("--record", "--reading", "all")[0] == 0
    kept = papers / "tiny" / "results"
    best, first = (json.loads((kept / at / "A1.json").read_text()) for at in ("testbed", ""))
    assert (best["reading"], first["reading"]) == ("testbed", "first")
    assert best["value"] != first["value"]
    assert (kept / "testbed" / "A1.svg").is_file() and not (kept / "A1.svg").exists()
    text = pages(papers)
    assert "| tiny | [`testbed`](tiny/CLAIMS.md#readings) | 1 | 1 | 0 | 0 | 0 |" in text
    assert "| tiny | [`first`](tiny/CLAIMS.md#readings) | 1 | 1 | 0 | 0 | 0 |" in text
    assert "windows of 20 packets (section 5)" in text and "`first reading`: holds" in text
    rewrite(papers, ("A faster link reads faster.", "A faster link is faster."))
    assert record.read(load(papers / "tiny/claims/A1.toml")).current, "words may be mended"


@pytest.mark.long
def test_undecided_claims_get_more_seeds(papers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Part, "borderline", property(lambda _: True))
    rewrite(papers, ("seeds = 3", "seeds = 20"))
    (found,) = ew.claims("tiny", jobs=0, papers=papers)
    assert (found.verdict, found.seeds) == ("undecided", 60)
    (fewer,) = run(find(papers), How(jobs=0, most_seeds=40))
    assert fewer.seeds == 40
    (quick,) = ew.claims("tiny", jobs=0, papers=papers, quick=True)
    assert quick.seeds == 2


def test_what_is_missing_is_run_and_nothing_else(papers: Path) -> None:
    path = rewrite(papers, ("low = 20", "low = 99"))
    kept = papers / "tiny" / "results" / "A1.json"
    assert invoke("--record", "--missing")[0] == 1, "it differs"
    assert "no stored results are missing" in invoke("--record", "--missing")[1]
    before = {**json.loads(kept.read_text()), "date": "2026-01-01", "value": 7.0}
    before["metrics"][0] |= {"value": 7.0, "low": None, "high": None, "measured": "7 %"}
    kept.write_text(json.dumps(before))
    path.write_text(path.read_text().replace('unit = "us"', 'unit = "us"\nlow = 0'))
    assert record.read(load(path)).measured and not record.read(load(path)).current
    assert invoke("--record", "--missing")[0] == 1
    after = json.loads(kept.read_text())
    assert (after["value"], after["measured"], after["date"]) == (7.0, "7 %", "2026-01-01")
    assert after["explained"]["date"] > after["date"]
    assert after["explanations"][0]["metrics"][0]["band"]["low"] == 0
    assert record.read(load(path)).current


def test_a_result_of_fewer_seeds_than_asked_for_is_not_the_claims(papers: Path) -> None:
    assert invoke("--record")[0] == 0
    path = rewrite(papers, ("seeds = 3", "seeds = 4"))
    assert not record.read(load(path)).measured
    path = rewrite(papers, ("seeds = 3", "seeds = 2"))
    assert record.read(load(path)).current, "more seeds are welcome"


def test_a_kept_number_reads_as_it_was_measured() -> None:
    asked = Metric("m", ("r",), "mean", {}, "%", 100.0, 3, 5.0, 15.0)
    for measured in (
        Measured(0.1234, 0.1, 0.14, 5),
        Measured(0.1234, text="three of four"),
        Measured(math.inf, text="no choice"),
    ):
        part = Part(asked, measured)
        again = Part.kept(asked, part.as_json())
        assert (again.text(), again.verdict) == (part.text(), part.verdict)
    missing = Part(asked, None, "2 runs failed")
    assert Part.kept(asked, missing.as_json()).text() == "2 runs failed"


def test_a_cause_without_a_run_that_shows_it_explains_nothing(papers: Path) -> None:
    path = rewrite(
        papers,
        ("low = 20", "low = 99"),
        ("[[explanation]]", '[[explanation]]\nclass = "our model"'),
    )
    (found,) = ew.claims("tiny", jobs=0, papers=papers)
    assert (found.verdict, found.classes) == ("differs", ["not explained"])
    path.write_text(path.read_text().replace('unit = "us"', 'unit = "us"\nlow = 0'))
    (found,) = ew.claims("tiny", jobs=0, papers=papers)
    assert found.classes == ["our model"]


def test_what_holds_by_construction_says_so(papers: Path) -> None:
    rewrite(papers, ('profile = "plain"', 'profile = "plain"\nby_construction = "It is a rule."'))
    assert invoke("--record")[0] == 0
    text = pages(papers)
    assert "By construction: It is a rule." in text and "1 (all by construction)" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "not TOML"),
        ("[a]\nabout = ''\nsince = '2026-11-23'", "needs a table [first]"),
        ("[first]\nabout = ''\nsince = 'today'", "a day such as"),
        ("[first]\nsince = '2026-11-23'", "first.about: is missing: a text"),
        ("[first]\nsinse = '2026-11-23'", "did you mean since?"),
        ("['../a']\nabout = ''\nsince = '2026-11-23'", "a to z, 0 to 9"),
        (READINGS.replace('words = "windows of 20 packets"\n', ""), "testbed.value.0"),
        (READINGS.replace("[testbed]", "[testbed]\nseeds = 0"), "testbed.seeds = 0: allowed: 1 to"),
        (
            READINGS.replace("claims = [", "with = 3\nclaims = ["),
            "with = 3: must be a table",
        ),
        (READINGS.replace("claims = [", "with = {a = []}\nclaims = ["), "with.a = []: must be"),
        (
            READINGS.replace("claims = [", "only = 3\nclaims = ["),
            "only = 3: must be a table",
        ),
        (READINGS.replace('claims = ["tiny/A*"]', "only = {a = 1}"), "only: needs the key claims"),
        (
            READINGS.replace('set = { "tcp.min_rto" = "5 ms" }\n', ""),
            "1.set: is missing: a table",
        ),
        (READINGS, "did you mean testbed"),
    ],
)
def test_wrong_readings_are_refused(papers: Path, text: str, message: str) -> None:
    (papers / "tiny" / "readings.toml").write_text(text)
    code, _, errors = invoke("--reading", "testbde")
    assert code == 2 and message in " ".join(errors.split())


# End to end


def test_a_claim_runs_and_shares_its_runs(papers: Path) -> None:
    first = run(find(papers), How(jobs=0))[0]
    assert first.verdict == "holds" and first.seeds == 3 and not first.quick
    value, low, high = first.parts[0].numbers()
    assert value is not None and low is not None and high is not None
    assert 20 < low <= value <= high < 100
    kept = sorted(Path(".eastwest/store/runs").glob("*/*"))
    assert len(kept) == 6
    quick = ew.claims("tiny", quick=True, jobs=0, papers=papers)[0]
    assert quick.seeds == 2 and "This is a quick run" in quick.explanation()
    assert sorted(Path(".eastwest/store/runs").glob("*/*")) == kept


def test_what_runs_lack_is_not_run_and_says_why(papers: Path) -> None:
    value = 'value = "flows.fct_us.mean"\nat = { "fabric.host_rate" = "10'
    for old, new, why in (
        (value, value.replace("mean", "maen"), "did you mean flows.fct_us.mean"),
        (value, value.replace("flows.fct_us.mean", "shuffle-s"), "tasks.parquet is missing"),
    ):
        rewrite(papers, (old, new))
        found = run(find(papers), How(jobs=0))[0]
        assert found.verdict == "not run" and why in found.measured()
        assert found.measured().startswith("runs.rates: ")
    assert "run with fabric.host_rate = 10 Gbit/s, seed 1: " in found.measured()


def test_runs_that_fail_are_named_with_their_reason(papers: Path) -> None:
    # With few retries and a short queue, some connection gives up.
    many = SCENARIO.replace("hosts = 4", "hosts = 12").replace("20 KB", "300 KB")
    (papers / "tiny/tiny.toml").write_text(f'{many}[tcp]\nmin_rto = "1 ms"\n')
    axis = 'path = "fabric.host_rate", values = ["1 Gbit/s", "10 Gbit/s"]'
    rewrite(
        papers,
        ("seeds = 3", 'seeds = 2\nset = { "tcp.max_retries" = 1 }'),
        (axis, 'path = "fabric.queue.limit", values = ["500 packets", "1 packets"]'),
        ('{ "fabric.host_rate" = "10 Gbit/s" }', '{ "fabric.queue.limit" = "500 packets" }'),
        ('{ "fabric.host_rate" = "1 Gbit/s" }', '{ "fabric.queue.limit" = "1 packets" }'),
    )
    (found,) = run(find(papers), How(jobs=0))
    assert found.verdict == "not run"
    said = found.measured()
    first = "the first with fabric.queue.limit = 1 packets, seed = 1: "
    assert said.startswith(f"runs.rates: 2 of 4 runs failed, {first}")
    assert "given up after 2 timeouts" in said


def test_a_scenario_that_refuses_the_settings_is_the_files_problem(papers: Path) -> None:
    rewrite(papers, ("seeds = 3", 'seeds = 3\nset = { "fabric.host_rote" = 1 }'))
    with pytest.raises(ProblemsError) as caught:
        run(find(papers), How(jobs=0))
    assert caught.value.problems[0]["path"].startswith("A1.toml: runs.rates.fabric")


def pages(papers: Path) -> str:
    """Return the texts of the index and of the pages of the studies."""
    return "\n".join(page.texts(papers).values())


#: File endings of both kinds of a claim's pictures.
BOTH = (".png", ".svg")


def invoke(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["claims", *arguments, "--jobs", "0"])
    return done.exit_code, done.stdout, done.stderr


def test_json_has_what_scripts_rely_on(papers: Path) -> None:
    code, out, _ = invoke("--json", "--quick")
    assert code == 0
    (found,) = json.loads(out)
    assert {*found} >= {
        "id", "published", "measured", "value", "low", "high", "verdict", "explanation", "seeds",
        "profile",
    }  # fmt: skip
    assert found["id"] == "tiny/A1" and found["verdict"] == "holds" and found["seeds"] == 2
    assert found["low"] <= found["value"] <= found["high"]


def test_a_claim_that_differs_ends_with_1_and_its_explanation(papers: Path) -> None:
    rewrite(papers, ("low = 20", "low = 99"))
    code, out, _ = invoke()
    assert code == 1
    assert "tiny/A1 differs" in out and "The slow link's own time: slow =" in " ".join(out.split())
    code, out, _ = invoke("--json")
    explanations = json.loads(out)[0]["explanations"]
    assert code == 1 and explanations[0]["metrics"][0]["value"] > 0


def test_bad_input_ends_with_2(papers: Path) -> None:
    assert invoke("tinny")[0] == 2
    code, _, errors = invoke("--quick", "--record")
    assert code == 2 and "--record" in errors
    rewrite(papers, ("low = 20", ""))
    code, _, errors = invoke()
    assert code == 2 and "A1.toml: metric.0.low" in errors


def test_results_are_kept_beside_the_claim_and_on_the_page(papers: Path) -> None:
    assert invoke("--quick")[0] == 0
    assert not (papers / "tiny" / "results").exists() and not (papers / "README.md").exists()
    assert invoke("--record")[0] == 0
    kept = papers / "tiny" / "results"
    assert sorted(path.name for path in kept.iterdir()) == ["A1.csv", "A1.json", "A1.svg"]
    content = json.loads((kept / "A1.json").read_text())
    assert content["verdict"] == "holds" and content["version"] == ew.__version__
    assert content["command"].split()[0] == "eastwest" and len(content["date"]) == 10
    rows = list(csv.DictReader((kept / "A1.csv").read_text().splitlines()))
    assert float(rows[0]["value"]) == pytest.approx(content["value"])
    assert all(path.read_text() == text for path, text in page.texts(papers).items())
    assert "The claim holds." in pages(papers)
    assert "![Saved](results/A1.svg)" in pages(papers)

    before = (kept / "A1.json").read_bytes()
    assert invoke("--quick", "--out", "elsewhere")[0] == 0
    assert (kept / "A1.json").read_bytes() == before
    assert json.loads(Path("elsewhere/tiny/results/A1.json").read_text())["quick"] is True
    assert {path.suffix for path in Path("elsewhere/tiny/results").iterdir()} == {
        ".csv",
        ".json",
        ".png",
        ".svg",
    }


def test_a_claim_that_changed_is_not_run(papers: Path) -> None:
    assert invoke("--record")[0] == 0
    path = rewrite(papers, ("low = 20", "low = 10"))
    assert record.read(load(path)).verdict == "not run"
    assert "**Not run** since the claim has changed" in pages(papers)
    code, out, _ = invoke("--list", "--json")
    assert code == 0 and json.loads(out)[0]["verdict"] == "not run"


@functools.cache
def own_pages() -> dict[Path, str]:
    """Return the pages of the repository's studies; making them takes seconds."""
    return page.texts(PAPERS)


@pytest.mark.long
def test_pages_say_only_what_is_known_of_the_studies(papers: Path) -> None:
    others, ours = (
        page.texts(papers)[papers / "README.md"],
        own_pages()[PAPERS / "README.md"],
    )
    assert "committed before the first full run" in ours and "](../docs/guide/claims.md)" in ours
    assert "committed before" not in others and "](../docs" not in others


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("5 ms (95 %: 4.5 to 5.5)", "5 ms (95 %: 4.5 to 5.5)"),
        ("100 us, on (80 % (95 %: 79 to 81))", "80 % (95 %: 79 to 81) \\[100 us, on\\]"),
        ("no run", "no run"),
    ],
)
def test_pages_show_a_number_before_its_setting(stored: str, shown: str) -> None:
    assert page._simulated({"measured": stored}) == shown


def test_pages_count_one_claim_and_have_no_empty_table(papers: Path) -> None:
    assert "The claim was not run." in pages(papers) and "## Left open" in pages(papers)
    path = rewrite(papers, (CLAIM[CLAIM.index("[[open]]") : CLAIM.index("[runs.rates]")], ""))
    assert "Left open" not in pages(papers)
    claims = [record.Record(load(path), None)] * 2
    assert [*page._verdict_counts(claims)] == [
        "2 claims: 0 hold, 0 differ, 2 were not run."
    ]  # fmt: skip
    rewrite(papers, ("low = 20", "low = 99"))
    assert invoke("--record")[0] == 1
    assert "The claim differs." in pages(papers)


def test_what_is_not_explained_is_not_called_an_explanation(papers: Path) -> None:
    cause = ("[[explanation]]", '[[explanation]]\nclass = "our model"')
    for low, heading, other in (
        (1e9, "Attempts to explain it:", "Explanations:"),
        (0, "Explanations:", "Attempts to explain it:"),
    ):
        rewrite(
            papers, ("low = 20", "low = 99"), cause, ('unit = "us"', f'unit = "us"\nlow = {low}')
        )
        assert invoke("--record")[0] == 1
        assert heading in pages(papers) and other not in pages(papers)
        assert "own time: slow = " in pages(papers)


@pytest.mark.parametrize("content", ["[", "{}", '{"format": 99, "id": "tiny/A1"}', "[" * 100_000])
def test_damaged_results_are_refused(papers: Path, content: str) -> None:
    kept = papers / "tiny" / "results"
    kept.mkdir()
    (kept / "A1.json").write_text(content)
    with pytest.raises(InputError, match=r"A1\.json"):
        pages(papers)


def test_texts_of_claims_are_plain_on_the_page(papers: Path) -> None:
    rewrite(papers, ("A faster link reads faster.", "<script>|[x](y) *z*"))
    assert "\\<script\\>\\|\\[x\\](y) \\*z\\*" in pages(papers)


# What ships


@pytest.mark.parametrize("claim", SHIPPED, ids=lambda claim: claim.id)
def test_shipped_claims_fit_their_scenarios(claim: Claim) -> None:
    for sweep in (*claim.runs.values(), *claim.quick.values()):
        check(sweep, source_of(sweep))
    assert claim.open, "what the source leaves open is said"


@pytest.mark.parametrize("claim", SHIPPED, ids=lambda claim: claim.id)
def test_shipped_metrics_ask_for_points_that_are_run(claim: Claim) -> None:
    inner = [metric for explanation in claim.explanations for metric in explanation.metrics]
    for asked in (*claim.metrics, *inner):
        for sweeps in (claim.runs, claim.quick):
            points = [
                {
                    **{path: str(value) for path, value in sweep.settings.items()},
                    **dict(zip(sweep.paths, map(str, sweep.at(number)), strict=True)),
                }
                for sweep in (sweeps[name] for name in asked.runs)
                for number in range(sweep.count)
            ]
            for key in ("at", "against"):
                given = asked.arguments.get(key) or {}
                for path, value in given.items():
                    for each in map(str, value if isinstance(value, list) else [value]):
                        others = {p: str(v) for p, v in given.items() if not isinstance(v, list)}
                        wanted = {**others, path: each}
                        assert any(wanted.items() <= point.items() for point in points), wanted


@pytest.mark.parametrize("claim", SHIPPED, ids=lambda claim: claim.id)
def test_kept_results_are_of_the_claims_as_they_stand(claim: Claim) -> None:
    kept = record.read(claim)
    assert kept.content is not None and kept.current
    assert kept.content["quick"] is False
    if kept.verdict == "differs" and not kept.content["explanations"]:
        assert kept.classes == ["not explained"]
    for part in kept.content["metrics"]:
        band, value = part["band"], part["value"]
        low = -math.inf if band["low"] is None else band["low"]
        high = math.inf if band["high"] is None else band["high"]
        inside = value is not None and low <= value <= high
        decided = "holds" if inside else "differs"
        assert part["verdict"] == ("undecided" if part["borderline"] else decided)


@pytest.mark.parametrize("claim", SHIPPED, ids=lambda claim: claim.id)
def test_shipped_profiles_fit_the_scenarios_and_their_kept_results_have_a_class(
    claim: Claim,
) -> None:
    for name in profiles_of(claim.path.parent.parent):
        other = load(claim.path, name)
        for sweep in (*other.runs.values(), *other.quick.values()):
            check(sweep, source_of(sweep))
        kept = record.read(other)
        assert kept.content is None or kept.current
        if kept.verdict == "differs" and not other.explanations:
            assert kept.classes == ["not explained"]


@pytest.mark.parametrize("file", sorted(PAPERS.glob("*/study/*.toml")), ids=lambda file: file.stem)
def test_shipped_sweeps_of_studies_fit_their_scenarios_and_have_results(file: Path) -> None:
    sweep = load_sweep(file)
    check(sweep, source_of(sweep))
    kept = file.parents[1] / "results" / "study" / file.stem
    table = kept.with_suffix(".parquet")
    read = pl.read_parquet(table) if table.is_file() else pl.read_csv(kept.with_suffix(".csv"))
    rows = read.rows(named=True)
    points = {tuple(row[name] for name in list(row)[: len(sweep.axes)]) for row in rows}
    # In the sweep alpha, a stored point comes from a whole curve, so the numbers differ.
    assert len(points) == sweep.count or file.stem == "alpha"


@pytest.mark.long
def test_the_page_of_all_claims_is_that_of_the_kept_results() -> None:
    for path, text in own_pages().items():
        assert path.read_text(encoding="utf-8") == text, f"stale: {path}"


def test_a_shipped_claim_runs_quickly(tmp_path: Path) -> None:
    (found,) = ew.claims("incast/T1", quick=True, jobs=0, papers=PAPERS, store=tmp_path)
    assert found.verdict == "holds"
    assert found.parts[0].measured is not None
    assert found.parts[0].measured.text == "1,448, 2,896, 5,792, 5,864"


# Own mechanisms

EARLY = """
from eastwest import Arrival, Queue, Verdict


class Early(Queue):
    name = "early"

    def at_enqueue(self, arrival: Arrival) -> Verdict:
        full = arrival.queued_packets >= LIMIT or not arrival.fits
        return Verdict.DROP_EARLY if full else Verdict.ENQUEUE
"""
OWN = """
claim = 1
id = "tiny/A1"
source = "nobody"
statement = "A queue that drops early delays less."
published = "less"
profile = "plain"

[runs.queues]
scenario = "../tiny.toml"
seeds = 2
set = { "fabric.queue.limit" = "90 packets" }
axis = [{ path = "fabric.queue.kind", values = ["drop-tail", "early"] }]

[[metric]]
name = "latency saved"
runs = "queues"
measure = "reduction"
value = "latency_us.p99"
at = { "fabric.queue.kind" = "early" }
against = { "fabric.queue.kind" = "drop-tail" }
factor = 100
unit = "%"
low = 5
"""


def test_a_claim_compares_an_own_queue_with_drop_tail(papers: Path) -> None:
    (papers / "tiny/claims/A1.toml").write_text(OWN)
    Path("early.py").write_text(EARLY.replace("LIMIT", "3"))
    code, _, errors = invoke()
    assert code == 2 and "--with" in errors
    code, out, errors = invoke("--with", "early.py")
    assert code == 0 and "tiny/A1 holds" in out, errors

    def stored() -> int:
        return len([*Path(".eastwest/store/runs").glob("*/*")])

    first = stored()
    (found,) = ew.claims("tiny", papers=papers, jobs=2, mechanisms=["early.py"])
    assert found.verdict == "holds" and stored() == first, "processes load it, and find its runs"
    Path("early.py").write_text(EARLY.replace("LIMIT", "1000"))
    (changed,) = ew.claims("tiny", papers=papers, jobs=0, mechanisms=["early.py"])
    assert changed.verdict == "differs" and stored() == 2 * first, "another code has its own runs"
    assert changed.parts[0].numbers()[0] == 0


def test_a_page_that_was_written_by_hand_is_kept(papers: Path) -> None:
    mine = papers / "README.md"
    mine.write_text("# My studies\n")
    page.write(papers)
    assert mine.read_text() == "# My studies\n"
    assert "# Claims" in (papers / "CLAIMS.md").read_text()
    mine.unlink()
    page.write(papers)
    page.write(papers)  # The second call overwrites the pages of the first.
    assert "# Claims" in mine.read_text()
