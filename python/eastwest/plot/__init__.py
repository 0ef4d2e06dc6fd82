"""Pictures of results: functions that return matplotlib figures of result folders.

The data of the pictures come from `eastwest.views`; this package does not import the packages
`report` and `explain`.

>>> from eastwest import Result, plot                                   # doctest: +SKIP
>>> plot.figure("job-runtimes", Result("results/demo-1")).savefig("jobs.svg")   # doctest: +SKIP
"""

from eastwest.plot.charts import CHARTS, Chart, Drawing, draw, figure, overview
from eastwest.plot.flows import flow_parts
from eastwest.plot.inside import cdf, job_tasks, link_heat, losses, marks, windows
from eastwest.plot.numbers import numbers
from eastwest.plot.pauses import pauses
from eastwest.plot.picture import save
from eastwest.plot.style import style
from eastwest.plot.sweeps import comparisons, sweep
from eastwest.plot.throughput import throughput

__all__ = [
    "CHARTS",
    "Chart",
    "Drawing",
    "cdf",
    "comparisons",
    "draw",
    "figure",
    "flow_parts",
    "job_tasks",
    "link_heat",
    "losses",
    "marks",
    "numbers",
    "overview",
    "pauses",
    "save",
    "style",
    "sweep",
    "throughput",
    "windows",
]
