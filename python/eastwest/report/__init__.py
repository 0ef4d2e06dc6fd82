"""The HTML page about one result, or several side by side."""

from eastwest.report.page import write_page, write_picture

__all__ = ["write_page", "write_picture"]
