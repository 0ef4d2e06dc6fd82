"""Holds a queue at a set point, with and without prediction: writes ``results/closed_loop.csv``.

``python papers/control/closed_loop.py`` runs three seeds of each case (three minutes).
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import compare
import numpy as np

import eastwest as ew

#: Proportional gains of the controller: change of the share of marks for each packet above the set
#: point. The integral gain, per packet and second, is ten times as large.
GAINS = (3e-5, 2e-4, 8e-4)


def main() -> None:
    """Run all cases and write the table."""
    rows = []
    for gain in GAINS:
        for look_ahead in (False, True):
            settings: dict[str, str | bool] = {
                "fabric.queue.look_ahead": look_ahead,
                "fabric.queue.proportional": f"{gain:.6f}",
                "fabric.queue.integral": f"{10 * gain:.5f}",
            }
            runs = []
            for seed in compare.SEEDS:
                with tempfile.TemporaryDirectory() as folder:
                    result = ew.run(
                        compare.HERE / "scenarios" / "predictive.toml",
                        set=settings,
                        seed=seed,
                        out=Path(folder) / "r",
                        mechanisms=[compare.HERE / "predictive.py"],
                    )
                    runs.append(compare.waiting(result, "switch0->h8", 1.5))
            rows.append(
                {
                    "gain_per_packet": gain,
                    "look_ahead": look_ahead,
                    "queue": round(statistics.mean(float(run.mean()) for run in runs), 2),
                    "deviation": round(statistics.mean(float(run.std()) for run in runs), 2),
                    "empty": round(statistics.mean(float(np.mean(run == 0)) for run in runs), 4),
                }
            )
            print(rows[-1], flush=True)
    compare.write(compare.HERE / "results" / "closed_loop.csv", rows)


if __name__ == "__main__":
    main()
