"""HTML pages about one result, several compared results, a sweep, an optimisation or a trace.

The data of the pages come from `eastwest.views`, and their charts are SVG made in this package.
Only `write_picture` uses `eastwest.plot`; it writes a picture as a file of its own.
"""

from eastwest.report.page import write_page, write_picture, write_report

__all__ = ["write_page", "write_picture", "write_report"]
