"""Analytic models from the literature, to be laid over simulations."""

from eastwest.models import delay, eee, incast, predict, qcn, tcp_dctcp, tcp_red

__all__ = ["delay", "eee", "incast", "predict", "qcn", "tcp_dctcp", "tcp_red"]
