"""A result of flow mode or link mode tells this wherever it is shown."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

import eastwest as ew
from eastwest import fidelity
from eastwest.cli.show import print_summary
from eastwest.report.compare import comparison
from eastwest.report.verdict import verdicts
from eastwest.sweep.metrics import metrics_in
from eastwest.views.facts import Facts

SETTING = {"fidelity": "flow"}


@pytest.fixture(scope="module")
def flow(tmp_path_factory: pytest.TempPathFactory) -> ew.Result:
    return ew.run("first", out=tmp_path_factory.mktemp("flow") / "result", set=SETTING)


def test_a_result_gives_its_measured_errors(flow: ew.Result) -> None:
    mode = flow.summary["flow_mode"]
    assert flow.summary["fidelity"] == "flow"
    jobs, flows = mode["measured"]["jobs"], mode["measured"]["flows"]
    assert jobs["scenarios"] + flows["scenarios"] == 23
    assert f"{100 * jobs['p50_worst']:.1f} %" in mode["error"]
    assert not mode["loss_dominated"]
    assert flow.summary["packets"]["sent"] == 0


def test_terminal_report_and_comparison_say_that_it_is_approximate(
    flow: ew.Result, tmp_path: Path
) -> None:
    said = fidelity.error(flow.summary)
    console = Console(width=300, record=True, file=io.StringIO())
    print_summary(console, flow)
    assert said in " ".join(console.export_text().split())
    assert verdicts(Facts(flow))[0] == ("look", said + ".")
    packet = ew.run("first", out=tmp_path / "packet")
    assert fidelity.error(packet.summary) == "" == fidelity.warning(packet.summary)
    page = comparison([packet, flow])
    assert said in page


def test_a_run_that_losses_dominate_is_told_apart(tmp_path: Path) -> None:
    done = ew.run("s2", out=tmp_path / "s2", set=SETTING | {"workload.incast.rounds": 1})
    assert fidelity.warning(done.summary).startswith("loss-dominated")
    assert ("look", fidelity.warning(done.summary) + ".") in verdicts(Facts(done))


def test_a_result_of_link_mode_gives_its_errors_and_does_not_depend_on_threads(
    tmp_path: Path,
) -> None:
    links = ew.run("first", out=tmp_path / "links", set={"fidelity": "links"})
    mode = links.summary["flow_mode"]
    assert links.summary["fidelity"] == "links"
    assert links.summary["flows"]["completed"] == mode["flows"]
    assert f"{100 * mode['measured']['open_loop']['p99_worst']:.1f} %" in mode["error"]
    assert verdicts(Facts(links))[0] == ("look", fidelity.error(links.summary) + ".")
    assert "latency_us.p99" not in metrics_in(links.summary)
    again = ew.run("first", out=tmp_path / "again", set={"fidelity": "links"}, threads=2)
    assert again.digest == links.digest
    with pytest.raises(ew.ScenarioError, match="closed-loop"):
        ew.run("s2", out=tmp_path / "s2", set={"fidelity": "links"})


def test_hostile_summaries_do_no_harm() -> None:
    modes: list[object] = [None, 3, [], {"error": 7}, {"error": "x" * 10_000}]
    for mode in modes:
        summary = json.loads(json.dumps({"fidelity": "flow", "flow_mode": mode}))
        assert 0 < len(fidelity.error(summary)) <= 400
        assert fidelity.warning(summary) == ""
    assert fidelity.error({"flow_mode": {"error": "no"}}) == ""
