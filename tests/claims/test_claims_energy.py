"""Measures of energy: of a single link, times delay, and compared with the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import polars as pl
import pytest

from eastwest.claims.measures import MeasureError
from eastwest.claims.measures.base import Data, Sample
from eastwest.claims.measures.of_study import module_of
from eastwest.models import eee
from eastwest.results import Result
from project_paths import PAPERS

energy = module_of(PAPERS / "eeon_ch4")
link = module_of(PAPERS / "eeon_ch2")

GAP = "workload.frames.mean_gap"


def result(summary: Mapping[str, Any] | None = None, **tables: pl.DataFrame) -> Result:
    """Return a result that has only these tables."""

    class Fake:
        path = "run"

    fake = Fake()
    fake.summary = summary or {}  # type: ignore[attr-defined]
    for name, table in tables.items():
        setattr(fake, name, table)
    return cast(Result, fake)


def links(packets: int = 10) -> pl.DataFrame:
    """Return an idle link, the measured link, and a busier link that does not leave a host."""
    return pl.DataFrame(
        {
            "tier": ["host-up", "host-up", "host-down"],
            "packets": [0, packets, 99],
            "bytes": [0, 15_000, 99_000],
            "rate_bps": [10**10] * 3,
            "energy_j": [1.0, 4.0, 9.0],
            "energy_always_on_j": [10.0] * 3,
            "awake_s": [0.0, 12e-6, 1.0],
            "falling_asleep_s": [0.0, 28.8e-6, 1.0],
            "waking_s": [0.0, 44.8e-6, 1.0],
        }
    )


def test_the_senders_cable_is_the_busiest_of_a_host() -> None:
    run = result(links=links())
    assert link.sender_power(run) == pytest.approx(0.4)
    # Table 2.1 of the thesis: 1.2 us of sending, of 1.2 + 4.48 + 2.88 us.
    assert link.sender_efficiency(run) == pytest.approx(0.1402, abs=1e-4)
    with pytest.raises(MeasureError, match="no host that sends"):
        link.sender_power(result(links=links(packets=0)))


def test_ports_of_switches_leave_out_those_of_hosts() -> None:
    assert energy.switch_ports_energy_j(result(links=links())) == pytest.approx(9)


def test_delay_is_that_of_jobs() -> None:
    summary = {
        "energy_j": {"total": 50.0, "fabric_links": {"total": 20.0}},
        "jobs": {"runtime_s": {"mean": 3.0}},
    }
    assert energy.energy_delay_js(result(summary)) == pytest.approx(150)
    assert energy.fabric_energy_delay_js(result(summary)) == pytest.approx(60)
    with pytest.raises(MeasureError, match="no jobs"):
        energy.energy_delay_js(result({"energy_j": {"total": 50.0}}))


def test_only_terasorts_count() -> None:
    jobs = pl.DataFrame(
        {"kind": ["terasort", "search", "terasort"], "runtime_s": [10.0, 99.0, 20.0]}
    )
    assert energy.terasort_runtime_s(result(jobs=jobs)) == pytest.approx(15)
    with pytest.raises(MeasureError, match="no TeraSort"):
        energy.terasort_runtime_s(result(jobs=jobs.filter(pl.col("kind") == "search")))


def samples(*values: tuple[str, float]) -> Data:
    class Fake:
        def samples(self, _value: str, _at: Any) -> list[Sample]:
            return [Sample({GAP: gap}, {1: power, 2: power}) for gap, power in values]

    return cast(Data, Fake())


def test_the_distance_from_the_model_is_the_greatest_of_all_loads() -> None:
    data = samples(("12 us", 0.19), ("2.4 us", 0.56))
    off = link.power_off_model(data, {}, "ideal")
    assert off.value == pytest.approx(0.01)
    assert [row["load"] for row in off.rows] == [0.1, 0.5]
    # Check 18 of the model: power 0.545 at load 0.1, and 0.960 at load 0.5.
    standard = link.power_off_model(samples(("12 us", 0.545), ("2.4 us", 0.96)), {}, "standard")
    assert standard.value < 0.0005
    held = link.power_off_model(samples(("12 us", 0.399)), {}, "12us10")
    assert held.value < 0.001
    with pytest.raises(MeasureError, match="no policy"):
        link.power_off_model(data, {}, "12us")
    with pytest.raises(MeasureError, match="no axis of times"):
        link.power_off_model(samples(("12 packets", 0.5)), {}, "ideal")


def test_labels_of_policies() -> None:
    assert eee.labelled("standard") == eee.Policy("standard")
    held = eee.labelled("500us500")
    assert held is not None
    assert held.trigger == 500
    assert held.timer_s == pytest.approx(5e-4)
    assert eee.labelled("10ms1000") == eee.Policy("10ms1000", 1000, 0.01)
    assert eee.labelled("12us") is None
    assert eee.labelled("ideal") is None
    with pytest.raises(ValueError, match="trigger must be"):
        eee.labelled("12us0")
