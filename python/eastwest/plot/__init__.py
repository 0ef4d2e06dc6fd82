"""Pictures of results: functions from result folders to matplotlib figures.

>>> from eastwest import Result, plot                                   # doctest: +SKIP
>>> plot.figure("job-runtimes", Result("results/demo-1")).savefig("jobs.svg")   # doctest: +SKIP
"""

from eastwest.plot.charts import CHARTS, Chart, Drawing, draw, figure, overview

__all__ = ["CHARTS", "Chart", "Drawing", "draw", "figure", "overview"]
