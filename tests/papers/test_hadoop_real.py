"""The study of a real Hadoop: quick predictions keep their bands, its page has its numbers."""

from __future__ import annotations

import csv
import json
import re

import pytest

import hadoop_real
import hadoop_real_hdfs

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("setting", ["r50-shallow", "r20-shallow", "r100-deep"])
def test_a_measured_setting_is_predicted(setting: str) -> None:
    runs = hadoop_real.measured_runs()
    members = [run for run in runs if run.setting == setting]
    (found,) = hadoop_real.compare(members, hadoop_real.machine(runs), seeds=2)
    assert found.predicted
    assert abs(found.error("wire_s")) < 0.15
    assert abs(found.error("job_s")) < hadoop_real.JOB_BAND
    # Of the measured retransmissions, 617 to 1,079 were of packets to the master before the job
    # began. They are left out. Drops are counted at the workers' ports, measured and simulated.
    assert 0.5 < 1 + found.error("drops") < 2


def test_a_job_is_predicted_by_its_own_configuration() -> None:
    members = [run for run in hadoop_real.measured_runs() if run.setting == "r50-shallow"]
    (found,) = hadoop_real.compare(members, None, seeds=1)
    assert abs(found.error("wire_s")) < 0.15
    assert abs(found.error("job_s")) < hadoop_real.JOB_BAND


def test_an_hdfs_client_takes_as_long_as_the_measured_one() -> None:
    for real in hadoop_real_hdfs.measured():
        ours = hadoop_real_hdfs.simulate(real.operation, real.replication, real.rate_mbit, seed=1)
        for number in ("client_mb", "client_s", "into_workers_mb"):
            off = getattr(ours, number) / getattr(real, number) - 1
            assert abs(off) < hadoop_real_hdfs.BAND, (real, number)


def test_predictions_use_the_calibration_runs_only() -> None:
    used = json.dumps(hadoop_real.machine(hadoop_real.measured_runs()))
    names = re.findall(r"[a-z0-9-]+\.jhist\.gz", used)
    assert names == ["r50-deep-1.jhist.gz", "r50-deep-2.jhist.gz", "unshaped-1.jhist.gz"]


def test_the_page_has_the_kept_numbers() -> None:
    results = hadoop_real.PAPER / "results"
    kept = json.loads((results / "predictions.json").read_text("utf-8"))
    page = (hadoop_real.PAPER / "README.md").read_text("utf-8")
    for setting in kept["settings"]:
        measured, simulated = setting["measured"], setting["simulated"]
        for number, digits in (("wire_s", 2), ("job_s", 1), ("retransmits", 0)):
            both = f"{measured[number]:.{digits}f} | {simulated[number]:.{digits}f}"
            assert both in page, (setting["setting"], both)
    assert kept["date"] in page
    assert kept["command"].startswith("python tools/hadoop_real.py")
    with (results / "predictions.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["side"] for row in rows} == {"measured", "simulated"}
    assert len({row["setting"] for row in rows}) == len(kept["settings"])
