"""Command group ``eastwest model``: analytic models as tables, CSV and plots."""

from __future__ import annotations

from eastwest.cli.lazy import group

control = group(
    "Control loops: equilibrium, margins and responses of models; a loop in a simulation.",
    {
        "red": "model_control:red",
        "dctcp": "model_control:dctcp",
        "qcn": "model_control:qcn",
        "loop": "model_loop:loop",
        "hinf": "model_synthesis:hinf",
        "horizon": "model_synthesis:horizon",
    },
)
app = group(
    "Analytic models as numbers, CSV or plots.",
    {
        "incast": "model_incast:incast",
        "eee": "model_eee:model_eee",
        "control": "model:control",
    },
)
