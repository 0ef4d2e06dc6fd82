"""The HTML page about one result, several side by side, or a sweep."""

from eastwest.report.page import write_page, write_picture, write_report

__all__ = ["write_page", "write_picture", "write_report"]
