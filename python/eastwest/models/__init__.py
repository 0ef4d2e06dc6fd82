"""Analytic models from the literature, to be laid over simulations."""

from eastwest.models import incast

__all__ = ["incast"]
