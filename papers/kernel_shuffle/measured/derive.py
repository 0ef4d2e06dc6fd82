"""Derives settings.csv from the measurement of Linux 6.18.

    python papers/kernel_shuffle/measured/derive.py ../shared/data/kernel-shuffle

The measurement itself is not part of this repository. ``settings.csv`` has the mean, the standard
deviation and the extremes of each number over the five repeats of each setting.
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

HERE = Path(__file__).parent
#: Name of each setting in the measurement → name in settings.csv.
SETTINGS = {
    "dt200": "droptail200",
    "dt2000": "droptail2000",
    "red25_75_m0": "red_default",
    "red25_75_m1": "red_ece_bit",
    "red25_75_m2": "red_ack_syn",
}


def numbers(runs: pl.DataFrame) -> pl.DataFrame:
    """Return one row for each setting and number of the measurement."""
    left_out = ("config", "repeat", "flows", "late_lt50us_pct", "late_max_us")
    long = runs.unpivot(
        index=["config"],
        on=[name for name in runs.columns if name not in left_out],
        variable_name="number",
    )
    return (
        long.group_by("config", "number", maintain_order=True)
        .agg(
            mean=pl.col("value").mean().round(4),
            sd=pl.col("value").std().round(4),
            least=pl.col("value").min().round(4),
            greatest=pl.col("value").max().round(4),
            repeats=pl.len(),
        )
        .filter(pl.col("greatest") > 0)
        .with_columns(setting=pl.col("config").replace_strict(SETTINGS))
        .select("setting", "number", "mean", "sd", "least", "greatest", "repeats")
        .sort("setting", maintain_order=True)
    )


if __name__ == "__main__":
    source = Path(sys.argv[1])
    table = numbers(pl.read_csv(source / "shuffle.csv", infer_schema_length=None))
    table.write_csv(HERE / "settings.csv")
