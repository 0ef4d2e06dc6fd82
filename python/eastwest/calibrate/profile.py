"""Writer of machine profiles: TOML files for the key ``machine`` of a MapReduce workload."""

from __future__ import annotations

import json

from eastwest.calibrate.estimate import Calibration, Estimate
from eastwest.units import clean


def toml_text(found: Calibration) -> str:
    """Return the TOML text of a machine profile, which a workload names with ``machine``.

    Comments give the meaning, the number of samples and the residuals of each value.
    """
    lines = [
        "# Machine profile by `eastwest calibrate`. Put this file beside a scenario and name it in",
        '# a workload of kind "mapreduce": machine = "machine.toml". Keys of the workload override',
        "# the keys of this file.",
        "# After each value: meaning; number of tasks or jobs; residuals, median and worst.",
    ]
    if any(estimate.key == "yarn.am_start" for estimate in found.estimates):
        lines.append(
            '# For framework = "yarn": costs are time of cores, which tasks of a machine share.'
        )
    tables: dict[str, list[Estimate]] = {}
    for estimate in found.estimates:
        tables.setdefault(estimate.key.partition(".")[0], []).append(estimate)
    for table, estimates in tables.items():
        lines += ["", f"[{table}]"]
        for estimate in estimates:
            name = estimate.key.partition(".")[2]
            said = (
                f"{estimate.meaning}; {estimate.samples}; "
                f"{100 * estimate.residual_median:.1f} %, {100 * estimate.residual_worst:+.1f} %"
            )
            lines.append(f'{name} = "{written(estimate)}"  # {said}')
    lines += ["", "[calibration]"]
    names = [clean(history.path.name) for history in found.histories]
    lines.append(f"histories = {json.dumps(names, ensure_ascii=False)}")
    lines.append(f"jobs_s = {[round(job.observed_s, 3) for job in found.jobs]}")
    lines.append(f"estimated_s = {[round(job.estimated_s, 3) for job in found.jobs]}")
    return "\n".join(lines) + "\n"


def written(estimate: Estimate) -> str:
    """Return an estimate as a value of a scenario: ``250 ms``, or ``12.5 MB/s`` for a rate."""
    if estimate.is_rate:
        return f"{max(0.001, estimate.value / 1e6):.3g} MB/s"
    return f"{round(estimate.value * 1000)} ms"
