"""HTML pages about one result, several compared results, a sweep, an optimisation or a trace.

The data of the pages come from `eastwest.views`, and their charts are SVG made in this package.
"""

from eastwest.report.page import write_page, write_report

__all__ = ["write_page", "write_report"]
