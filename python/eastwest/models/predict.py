"""Prediction of a queue, and therefore of the delay of packets, one horizon ahead.

An autoregressive model with input, y(k + 1) = Σ a_i y(k − i) + Σ b_j u(k − d − j) + c, is fitted
online by recursive least squares with exponential forgetting (L. Ljung, *System Identification*,
2nd ed., 1999, section 11.2). y is the queue, u an input such as a share of marks, which takes
effect after d steps. A prediction iterates the model up to the horizon; future inputs are assumed
to be constant.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

#: Initial variance of the coefficients of the model, for samples that are scaled to about 1.
_UNCERTAIN = 1000.0


class Predictor:
    """Autoregressive model that is fitted sample by sample and predicts later samples.

    ``order`` is the number of past outputs in the model, ``inputs`` the number of past inputs,
    ``dead_steps`` the number of steps until an input takes effect, ``scale`` the units of outputs
    and inputs.
    """

    def __init__(
        self,
        order: int = 3,
        inputs: int = 2,
        dead_steps: int = 0,
        forgetting: float = 0.998,
        scale: tuple[float, float] = (1.0, 1.0),
    ) -> None:
        if order < 1 or inputs < 0 or dead_steps < 0 or not 0 < forgetting <= 1:
            raise ValueError(
                "order must be 1 or more, inputs and dead_steps 0 or more, and forgetting above 0 "
                "and at most 1"
            )
        self._order, self._inputs, self._dead, self._forgetting = (
            order,
            inputs,
            dead_steps,
            forgetting,
        )
        self._scale = scale
        size = order + inputs + 1
        self._weights: Numbers = np.zeros(size)
        self._weights[0] = 1.0  # initial model: the output is constant
        self._spread: Numbers = np.eye(size) * _UNCERTAIN
        #: Last scaled outputs, the newest last.
        self._outputs: list[float] = []
        self._acted: list[float] = []

    def see(self, output: float, acted: float) -> None:
        """Update the model with a sample of the output, and the input since the last sample."""
        known = self._regressors(self._outputs, self._acted)
        y, u = output / self._scale[0], acted / self._scale[1]
        if known is not None:
            spread = self._spread @ known
            gain = spread / (self._forgetting + known @ spread)
            self._weights = self._weights + gain * (y - self._weights @ known)
            self._spread = (self._spread - np.outer(gain, spread)) / self._forgetting
            # The covariance grows without limit while the inputs are constant.
            self._spread = np.clip(self._spread, -1e4, 1e4)
        keep = max(self._order, self._inputs + self._dead) + 1
        self._outputs = [*self._outputs, y][-keep:]
        self._acted = [*self._acted, u][-keep:]

    def ahead(self, steps: int) -> float:
        """Return the predicted output ``steps`` samples ahead, at least 0; 0 without any sample."""
        outputs, acted = list(self._outputs), list(self._acted)
        if not outputs:
            return 0.0
        limit = 4 * max(1.0, *outputs)  # bounds predictions far outside of the observed range
        for _ in range(steps):
            known = self._regressors(outputs, acted)
            if known is None:
                break
            outputs.append(min(limit, max(0.0, float(self._weights @ known))))
            acted.append(acted[-1])
        return outputs[-1] * self._scale[0]

    def _regressors(self, outputs: list[float], acted: list[float]) -> Numbers | None:
        """Return the regressors of the next output: past outputs, past inputs, and 1.

        Returns None while there are too few samples.
        """
        if len(outputs) < self._order or len(acted) < self._inputs + self._dead:
            return None
        late = acted[: len(acted) - self._dead]
        inputs = late[: -self._inputs - 1 : -1] if self._inputs else []
        return np.array([*outputs[: -self._order - 1 : -1], *inputs, 1.0])
