"""Figures with one row of marks or bars for each version."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from analysis.figures.series import bars, ring
from analysis.figures.style import INK
from analysis.figures.typeset import break_label, widest_line


def row_labels(names: list[str], width: float = 2.0) -> tuple[dict[str, str], float, int]:
    """The names of rows, broken to `width` inches, with the width of the widest one and the largest
    number of lines."""
    labels = {name: break_label(name, width) for name in names}
    most = max(label.count("\n") + 1 for label in labels.values())
    return labels, widest_line(labels.values()), most


def rows_axis(axes: Axes, labels: list[str], rows: int) -> None:
    """Labels rows from the top down, with room for `rows` of them."""
    axes.set_ylim(max(rows, 1) - 0.4, -0.6)
    axes.set_yticks(range(len(labels)), labels)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def rows_height(rows: int, lines: int) -> float:
    """The height in inches of `rows` marks whose labels have up to `lines` lines."""
    return (0.09 + 0.12 * lines) * max(rows, 2) + 0.1


def mark(axes: Axes, row: float, point: pd.DataFrame, column: str, look: dict) -> None:
    """Draws column `column` of one point as a mark with its interval, and a ring if it is noisy."""
    value = point[column].iloc[0]
    look = {**look, "linestyle": "none"}
    axes.errorbar([value], [row], xerr=bars(point, column), elinewidth=0.8, capsize=1.8, **look)
    if point["noisy"].eq(True).any():
        ring(axes, [value], [row])


def at_right(axes: Axes, row: float, text: str, colour: str = INK, inches: float = 0.0) -> None:
    """Writes `text` to the right of the axes, at a row's height, `inches` from where such text
    begins."""
    axes.annotate(
        text,
        (1, row),
        xycoords=("axes fraction", "data"),
        xytext=(4 + 72 * inches, 0),
        textcoords="offset points",
        va="center",
        color=colour,
        annotation_clip=False,
        parse_math=False,
    )
