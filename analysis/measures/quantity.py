"""Values with an uncertainty that arithmetic propagates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from analysis.measures.stats import CONFIDENCE


@dataclass(frozen=True)
class Quantity:
    """A value with `draws` from its bootstrap distribution, which arithmetic propagates.

    The draws of a point are the same wherever it is used. Those of two points are independent.
    `draws` is None if there is no interval. Then `why` gives the reason, unless `exact` says what
    kind of value it is: "profiled" (phases, counters), "counted" or "measured ceiling". `bases` are
    the clocks that timed it. `over` is the version that a speedup is over, if the rows chose it.
    `whole_job` is the same speedup with allocation, set-up and copies, where they were measured."""

    value: float
    draws: np.ndarray | None = None
    why: str = ""
    exact: str = ""
    bases: frozenset[str] = frozenset()
    over: str = ""
    whole_job: Quantity | None = None

    def interval(self) -> tuple[float, float]:
        """The ends of the 95% percentile interval. NaN if there is none."""
        if self.draws is None:
            return np.nan, np.nan
        tail = (1 - CONFIDENCE) / 2
        low, high = np.quantile(self.draws, [tail, 1 - tail])
        return float(low), float(high)


def combine(function: Callable, *parts: Quantity | float) -> Quantity | float:
    """Applies a function to the values and to each draw. Plain numbers give a plain number."""
    measured = [part for part in parts if isinstance(part, Quantity)]
    if not measured:
        return function(*parts)
    value = float(function(*(p.value if isinstance(p, Quantity) else p for p in parts)))
    lacking = [p.why for p in measured if p.draws is None and not p.exact]
    draws = None
    if not lacking and any(p.draws is not None for p in measured):
        draws = function(
            *(
                p if not isinstance(p, Quantity) else p.value if p.draws is None else p.draws
                for p in parts
            )
        )
    return Quantity(
        value,
        draws,
        "; ".join(dict.fromkeys(lacking)),
        measured[0].exact if all(p.exact for p in measured) else "",
        frozenset().union(*(p.bases for p in measured)),
    )
