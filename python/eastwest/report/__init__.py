"""HTML pages about one result, several compared results, a sweep, an optimisation or a trace."""

from eastwest.report.page import write_page, write_picture, write_report

__all__ = ["write_page", "write_picture", "write_report"]
