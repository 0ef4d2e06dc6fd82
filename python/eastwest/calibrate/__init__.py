"""Calibration: machine profiles that are estimated from job histories of a real Hadoop cluster.

>>> from eastwest.calibrate import calibrate, toml_text
>>> found = calibrate(["job_1.jhist", "job_2.jhist.gz"])           # doctest: +SKIP
>>> found.value("costs.map_rate")                                  # doctest: +SKIP
>>> print(toml_text(found))                                        # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eastwest.calibrate.containers import Containers
from eastwest.calibrate.estimate import (
    Calibration,
    Estimate,
    JobResidual,
    Observation,
    estimate,
)
from eastwest.calibrate.jhist import Attempt, History, HistoryError, read
from eastwest.calibrate.profile import toml_text, written

__all__ = [
    "Attempt",
    "Calibration",
    "Containers",
    "Estimate",
    "History",
    "HistoryError",
    "JobResidual",
    "Observation",
    "calibrate",
    "estimate",
    "read",
    "toml_text",
    "written",
]


def calibrate(
    histories: Sequence[str | Path],
    link_rates_bps: Sequence[float | None] = (),
    heartbeat_s: float = 1.0,
    cluster: Containers | None = None,
    first_percents_s: Sequence[float | None] = (),
) -> Calibration:
    """Return rates and delays of a cluster, estimated from files of job histories.

    ``link_rates_bps`` has for each history the rate of a node's link in bit/s, or None. An empty
    sequence means that no rate is known. ``heartbeat_s`` is the time between two heartbeats of a
    node. With a ``cluster`` the profile is for ``framework = "yarn"``: costs are core time, because
    tasks share cores. Without a ``cluster`` the profile is for slots (Hadoop 1).
    ``first_percents_s`` has for each history the time in s from the start of the first reduce until
    1 % of the bytes to some node had passed on its link, or None if the network was not recorded.
    """
    read_all = [read(path) for path in histories]
    return estimate(read_all, link_rates_bps, heartbeat_s, cluster, first_percents_s)
