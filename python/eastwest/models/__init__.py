"""Analytic models from the literature, to be laid over simulations."""

from eastwest.models import eee, incast

__all__ = ["eee", "incast"]
