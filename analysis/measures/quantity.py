"""Values with an uncertainty that arithmetic propagates."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from analysis.measures.stats import CONFIDENCE


class MissingError(Exception):
    """The rows with the answer are missing. The message says which."""


@dataclass(frozen=True)
class Quantity:
    """A value with `draws` from its bootstrap distribution, which arithmetic propagates.

    The draws of a point are the same wherever it is used. Those of two points are independent.
    `draws` is None if there is no interval. Then `why` gives the reason, unless `exact` says what
    kind of value it is: "profiled" (counters, timelines), "counted" or "measured ceiling".
    `parallel` names the CPU versions in it that had several threads or ranks, and how many. `over`
    is the version that a speedup is over, if the rows chose it. `whole_job` is the same speedup
    with allocation, set-up and copies, where they were measured. `places` are the machines that it
    is a time of; a ratio of two times of one machine has none."""

    value: float
    draws: np.ndarray | None = None
    why: str = ""
    exact: str = ""
    parallel: frozenset[str] = frozenset()
    over: str = ""
    whole_job: Quantity | None = None
    places: frozenset[str] = frozenset()

    def interval(self) -> tuple[float, float]:
        """The ends of the 95% percentile interval. NaN if there is none."""
        if self.draws is None:
            return np.nan, np.nan
        tail = (1 - CONFIDENCE) / 2
        low, high = np.quantile(self.draws, [tail, 1 - tail])
        return float(low), float(high)


def combine(function: Callable, *parts: Quantity | float) -> Quantity | float:
    """Applies a function to the values and to each draw. Plain numbers give a plain number. Raises
    MissingError for times of several places."""
    measured = [part for part in parts if isinstance(part, Quantity)]
    if not measured:
        return function(*parts)
    places = frozenset().union(*(p.places for p in measured))
    if len(places) > 1:
        raise MissingError(f"times of {' and of '.join(sorted(places))}, which are not compared")
    if function is operator.truediv and all(isinstance(p, Quantity) and p.places for p in parts):
        places = frozenset()
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
        frozenset().union(*(p.parallel for p in measured)),
        places=places,
    )
