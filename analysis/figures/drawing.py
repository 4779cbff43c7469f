"""The input and the result of a figure."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from analysis.measures.points import NEWER_COLUMNS, POINT_COLUMNS


@dataclass(frozen=True)
class Subject:
    """The subject of a figure: its title, one line for each machine, and the baseline's name (empty
    if there is none).
    """

    title: str
    environment: list[str]
    baseline: str


@dataclass(frozen=True)
class Drawing:
    """A figure with the rows that it drew. If there was nothing to draw, `figure` is None and
    `message` says why.
    """

    name: str
    figure: Figure | None
    rows: pd.DataFrame
    message: str = ""


def csv_rows(points: pd.DataFrame, drawn: pd.Index) -> pd.DataFrame:
    """The rows of a figure's CSV: POINT_COLUMNS, those of NEWER_COLUMNS that have a value, and
    whether the point is in the picture."""
    rows = points[[*POINT_COLUMNS, *newer_columns(points)]].copy()
    rows.insert(0, "drawn", points.index.isin(drawn))
    return rows


def not_drawn(name: str, points: pd.DataFrame, why: str) -> Drawing:
    """A figure that has `points` as its rows and no picture."""
    return Drawing(name, None, csv_rows(points, points.index[:0]), why)


def newer_columns(points: pd.DataFrame) -> list[str]:
    """The NEWER_COLUMNS that say something here. A single launch and no noise need no column."""
    told = [column for column in NEWER_COLUMNS if points[column].notna().any()]
    plain = {"launches": not points["launches"].gt(1).any()}
    return [column for column in told if not plain.get(column, False)]
