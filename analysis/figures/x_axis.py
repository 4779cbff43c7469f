"""The axis of the plan that a figure has on x: its values, their places, and its ticks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis.figures.scales import fitting, log_axis, log_positions
from analysis.figures.style import LINE
from analysis.figures.typeset import break_label, text_width
from analysis.model.numbers import count_text
from analysis.model.run import PROBLEM
from analysis.model.words import AXES, GPU_AXES, PROBLEM_AXES

CHOICES = list(dict.fromkeys([*PROBLEM_AXES, *AXES, *PROBLEM, *GPU_AXES]))
"""The axes that a figure may have on x."""
NUMBERS = ("n", "k", "dim", "batch", *AXES)
_WORDS = {
    "n": "N, number of points",
    "k": "K, number of clusters",
    "dim": "dim, number of dimensions",
    "batch": "batch, problems in one solve",
    "gpus": "GPUs",
}
_SHORT = {"n": "N", "k": "K"}
NARROWEST = 0.35
"""Ticks are not broken into lines shorter than this, in inches. Those that do not fit are left
out."""


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

    def names(self, width: float = np.inf) -> list[str]:
        """The values as ticks, texts broken so that all of them fit into `width` inches."""
        if self.is_number:
            return [count_text(v) for v in self.values]
        share = 0.92 * width / len(self.values)
        return [break_label(str(v), max(share, NARROWEST)) for v in self.values]

    def room(self, width: float) -> float:
        """The height in inches of the lines of its ticks after the first."""
        return LINE * max(name.count("\n") for name in self.names(width))

    def scale(self, axes: Axes) -> None:
        """Gives the axes its range."""
        if self.is_number:
            log_axis(axes, "x", self.values[0], self.values[-1])
        else:
            axes.set_xlim(0.5, len(self.values) + 0.5)

    def line_style(self, look: dict) -> dict:
        """A series' look on this axis. No line joins marks over texts, which have no order."""
        return look if self.is_number else {**look, "linestyle": "none"}

    def ticks(self, axes: Axes, width: float, below: list[str] | None = None) -> list[int]:
        """Labels as many of its values as fit into `width` inches, decades before others. Returns
        their indices. `below` are the texts of a second line."""
        names = self.names(width)
        wide = [max(pair, key=text_width) for pair in zip(names, below or names, strict=True)]
        if not self.is_number:
            at = [(place + 0.5) * width / len(names) for place in range(len(names))]
            chosen = fitting(
                at, [max(name.split("\n"), key=text_width) for name in names], gap=0.02
            )
            axes.set_xticks([i + 1 for i in chosen], [names[i] for i in chosen])
            return chosen
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


def map_axes(axes: Axes, xs: list, ys: list) -> None:
    """Makes the axes those of a map, with a cell of side 1 for each pair of values. Cell (i, j) is
    centred at (i, j). Labels the sizes `ys`, but not `xs`."""
    axes.set_xlim(-0.5, len(xs) - 0.5)
    axes.set_ylim(-0.5, len(ys) - 0.5)
    axes.set_yticks(range(len(ys)), [count_text(size) for size in ys])
    axes.grid(visible=False)
    axes.tick_params(length=0)


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
