"""Series and panels: which points belong together, and how they look."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from analysis.figures.style import GREY, INK, is_narrow, version_styles
from analysis.model.numbers import count_text

DIRECT_UP_TO = 6
"""Panels whose lines are named at their ends; with more, one legend names them and the panels get
smaller.
"""
DIRECT_IF_NARROW = 2
"""The same on a narrow page, where such a panel takes the whole width."""


def names_at_ends(panels: int) -> bool:
    """Whether the lines of that many panels are named at their ends."""
    return panels <= (DIRECT_IF_NARROW if is_narrow() else DIRECT_UP_TO)


def series_names(points: pd.DataFrame) -> pd.Series:
    """One name a line: the version, with precision and machine where the points have several."""
    names = points["version"].astype(str)
    for column in ("precision", "machine"):
        if points[column].nunique() > 1:
            names = names + " " + points[column].astype(str).str.removeprefix("NVIDIA ")
    return names


def panel_columns(points: pd.DataFrame, always: list[str]) -> list[str]:
    """What a panel stands for: `always` and, after its first, each other property in which the
    points differ. The last one changes fastest from panel to panel.
    """
    others = [c for c in ("dim", "data") if points[c].nunique() > 1]
    return [always[0], *others, *always[1:]]


def series_styles(shown: pd.DataFrame, points: pd.DataFrame, baseline: str) -> dict[str, dict]:
    """How each series of `shown` is drawn, in the plan's order of versions.

    The colour is the version's place among all versions of `points` (the whole run's), so that it
    is the same in every figure; the baseline is grey. Precisions and machines differ in dashes.
    """
    versions = [v for v in dict.fromkeys(points["version"]) if v != baseline] + [baseline]
    series = shown.drop_duplicates("series").groupby("version", sort=False)["series"].agg(list)
    looks = version_styles(versions, int(series.map(len).max()))
    looks[-1] = [{**look, "color": GREY} for look in looks[-1]]
    styles = {}
    for version, own in zip(versions, looks, strict=True):
        styles.update(zip(series.get(version, []), own, strict=False))
    return styles


def draw_line(axes: Axes, line: pd.DataFrame, x: str, y: str, look: dict) -> tuple[float, float]:
    """Column `y` against `x` with its interval (`y`_low, `y`_high) as bars; returns the last
    point's place.

    A single point gets its mark and no line; a point without an interval gets no bar.
    """
    line = line.sort_values(x)
    at, values = line[x].astype(float).tolist(), line[y].tolist()
    look = look if len(at) > 1 else {**look, "linestyle": "none"}
    axes.errorbar(at, values, yerr=bars(line, y), elinewidth=0.8, capsize=1.8, **look)
    noisy = line[line["noisy"].eq(True)]
    ring(axes, noisy[x].astype(float).tolist(), noisy[y].tolist())
    return at[-1], values[-1]


def ring(axes: Axes, x: list[float], y: list[float]) -> None:
    """Rings round the marks of noisy points."""
    if x:
        look = {"marker": "o", "markersize": 7.5, "fillstyle": "none", "linestyle": "none"}
        axes.plot(x, y, color=INK, markeredgewidth=0.8, zorder=3.5, clip_on=False, **look)


def bars(of: pd.DataFrame, column: str) -> list[list[float]]:
    """Distances from `column` down to its low and up to its high end, as errorbar() wants them; 0
    without interval.
    """
    below = (of[column] - of[f"{column}_low"]).fillna(0)
    above = (of[f"{column}_high"] - of[column]).fillna(0)
    return [below.clip(lower=0).tolist(), above.clip(lower=0).tolist()]


def panel_title(columns: list[str], values: tuple) -> str:
    """`K = 5, dim 2`: what a panel shows. A line may break after a comma, not within `K = 5`."""
    words = []
    for column, value in zip(columns, values, strict=True):
        if column in ("n", "k"):
            words.append(f"{column.upper()} = {count_text(value)}")
        else:
            words.append(str(value) if column == "data" else f"{column} {value}")
    return ", ".join(word.replace(" ", "\u00a0") for word in words)


def largest_problems(points: pd.DataFrame, most: int = 6) -> tuple[pd.DataFrame, str]:
    """`points` of at most `most` problems (N, K, dim, data; 3 on a narrow page), and in words what
    was left out: of more problems the largest N of each K and dim, of more still the largest of
    those."""
    most = min(most, 3) if is_narrow() else most
    key = ["n", "k", "dim", "data"]
    problems = points[key].drop_duplicates()
    if len(problems) <= most:
        return points, ""
    largest = problems.loc[problems.groupby(["k", "dim", "data"])["n"].idxmax()]
    largest = largest.sort_values(["n", "k", "dim"]).tail(most)
    kept = points[points[key].apply(tuple, axis=1).isin(set(map(tuple, largest.to_numpy())))]
    return kept, f"Shown: the largest {len(largest)} of {len(problems)} problems."


def problem_panels(points: pd.DataFrame) -> tuple[list[str], list[tuple[tuple, pd.DataFrame]]]:
    """A panel for each problem: the columns that its title names, and its points."""
    columns = panel_columns(points, ["k", "n"])
    return columns, list(points.groupby(columns, sort=True))
