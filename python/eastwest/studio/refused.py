"""Exception for requests that the studio refuses."""

from __future__ import annotations


class RefusedError(Exception):
    """A request that is refused: HTTP status, and the reason as text for the user."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
