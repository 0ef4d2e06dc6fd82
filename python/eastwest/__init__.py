"""Eastwest: packet-level simulation of data-centre networks.

>>> import eastwest as ew
>>> result = ew.run("demo", set={"fabric.hosts_per_leaf": 5})    # doctest: +SKIP
>>> result.flows.select("fct_us").describe()                      # doctest: +SKIP
"""

from eastwest._core import RunError, ScenarioError
from eastwest.core import version as _version
from eastwest.errors import InputError
from eastwest.results import Result
from eastwest.run import check, run

__version__ = _version()

__all__ = ["InputError", "Result", "RunError", "ScenarioError", "__version__", "check", "run"]
