"""HTML pages about one result, several compared results, a sweep, an optimisation or a trace.

The data of the pages come from `eastwest.views`, and their charts are SVG made in this package.
Only `write_picture`, which writes a picture as a separate file, uses `eastwest.plot`.
"""

from eastwest.report.page import write_page, write_picture, write_report

__all__ = ["write_page", "write_picture", "write_report"]
