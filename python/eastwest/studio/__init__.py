"""The studio: a server on this machine, and a page that edits, runs and explains scenarios."""

from __future__ import annotations

from eastwest.studio.serving import Session, serve

__all__ = ["Session", "serve"]
