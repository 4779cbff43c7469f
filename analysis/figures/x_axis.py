"""The axis of the plan that a figure has on x: its values, their places, and its ticks."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes

from analysis.figures.scales import fitting, log_axis, log_positions
from analysis.figures.typeset import text_width
from analysis.model.numbers import count_text
from analysis.model.run import PROBLEM
from analysis.model.words import AXES, PROBLEM_AXES

CHOICES = list(dict.fromkeys([*PROBLEM_AXES, *AXES, *PROBLEM]))
"""The axes that a figure may have on x."""
NUMBERS = ("n", "k", "dim", *AXES)
_WORDS = {
    "n": "N, number of points",
    "k": "K, number of clusters",
    "dim": "dim, number of dimensions",
    "gpus": "GPUs",
}
_SHORT = {"n": "N", "k": "K"}


@dataclass(frozen=True)
class XAxis:
    """Axis `name` of the plan, over these values. Numbers are on a logarithmic axis. Anything else
    has its places 1, 2, …"""

    name: str
    values: list

    @property
    def label(self) -> str:
        return _WORDS.get(self.name, self.name.replace("_", " "))

    @property
    def short(self) -> str:
        return _SHORT.get(self.name, self.label)

    @property
    def is_number(self) -> bool:
        return self.name in NUMBERS

    def at(self, column: pd.Series) -> pd.Series:
        """The places of a column's values."""
        if self.is_number:
            return column.astype(float)
        return column.map({value: place for place, value in enumerate(self.values, 1)})

    def names(self) -> list[str]:
        return [count_text(v) if self.is_number else str(v) for v in self.values]

    def scale(self, axes: Axes) -> None:
        """Gives the axes its range."""
        if self.is_number:
            log_axis(axes, "x", self.values[0], self.values[-1])
        else:
            axes.set_xlim(0.5, len(self.values) + 0.5)

    def ticks(self, axes: Axes, width: float, below: list[str] | None = None) -> list[int]:
        """Labels as many of its values as fit into `width` inches, decades before others. Returns
        their indices. `below` are the texts of a second line."""
        names = self.names()
        wide = [max(pair, key=text_width) for pair in zip(names, below or names, strict=True)]
        if not self.is_number:
            axes.set_xticks(range(1, len(names) + 1), names)
            return list(range(len(names)))
        at = log_positions(axes.get_xlim(), [float(v) for v in self.values], width)
        chosen = fitting(at, wide, gap=0.08 if self.name == "n" else 0.04)
        tens = [i for i, v in enumerate(self.values) if str(v).strip("0") == "1"]
        if len(chosen) < len(names) and len(tens) > 1:
            chosen = [tens[i] for i in fitting([at[i] for i in tens], [wide[i] for i in tens])]
        axes.set_xticks([self.values[i] for i in chosen], [names[i] for i in chosen])
        return chosen


def x_axis(points: pd.DataFrame, name: str) -> XAxis:
    """Axis `name` over the values that the points have."""
    values = list(points[name].dropna().unique())
    if name in NUMBERS or all(str(value).isdecimal() for value in values):  # a seed is a text
        values.sort(key=int)
    return XAxis(name, [int(v) for v in values] if name in NUMBERS else values)


def nothing_on_x(points: pd.DataFrame, name: str) -> str:
    """Why a figure cannot have axis `name` on x: fewer than two values, and which axes have more.
    Empty if it can."""
    if points[name].nunique() > 1:
        return ""
    several = [axis for axis in CHOICES if points[axis].nunique() > 1]
    others = f"several values have {', '.join(several)}" if several else "no axis has several"
    only = points[name].dropna().unique()
    if not len(only):
        return f"no point has {name}; {others}"
    return f"every point has {name} = {only[0]}; {others}"


def named(figure: str, x: str, usual: str) -> str:
    """What a figure is called that has `x` where it usually has another axis."""
    return figure if x == usual else f"{figure}_over_{x}"


def beside(name: str) -> list[str]:
    """The sizes of a problem that make panels if axis `name` is on x."""
    return [size for size in ("k", "n") if size != name]
