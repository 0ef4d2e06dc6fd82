"""HTML pages about one result, several compared results, a sweep, an optimisation or a trace.

Their data come from `eastwest.views`. The charts of pages are SVG of their own; only
`write_picture` of `page` uses a picture of `eastwest.plot`, and writes it as a file.
"""

from eastwest.report.page import write_page, write_picture, write_report

__all__ = ["write_page", "write_picture", "write_report"]
