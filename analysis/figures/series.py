"""Series and panels: which points belong together, and how they are drawn."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes

from analysis.figures.looks import styles_in, version_styles
from analysis.figures.style import GREY, INK, is_narrow
from analysis.measures.fastest import condition_text
from analysis.model.numbers import count_text
from analysis.model.run import PROBLEM

DIRECT_UP_TO = 6
"""Up to this many panels, lines are named at their ends. With more, one legend names them and the
panels are smaller.
"""
DIRECT_IF_NARROW = 2
"""The same limit for a narrow page, where such a panel takes the whole width."""


def names_at_ends(panels: int) -> bool:
    """True if the lines of that many panels are named at their ends."""
    return panels <= (DIRECT_IF_NARROW if is_narrow() else DIRECT_UP_TO)


def series_names(points: pd.DataFrame, x: str = "", apart: Sequence[str] = ()) -> pd.Series:
    """One name per line: the version, with precision and machine if the points have several that
    are not on x, and with the values of the axes `apart`."""
    names = points["version"].astype(str)
    for column in ("precision", "machine"):
        if column != x and points[column].nunique() > 1:
            names = names + " " + points[column].astype(str).str.removeprefix("NVIDIA ")
    for axis in apart:
        texts = points[axis].map(lambda value, axis=axis: condition_text(axis, value))
        names = (names + " " + texts).str.rstrip()
    return names


def panel_columns(points: pd.DataFrame, always: list[str], x: str = "") -> list[str]:
    """The properties of a panel: `always` and, after its first, each other property in which the
    points differ and which is not on x. The last one changes fastest from panel to panel.
    """
    others = [c for c in PROBLEM if c in points and c not in ("n", "k", "precision", x)]
    others = [c for c in others if varies(points[c])]
    return [always[0], *others, *always[1:]]


def varies(column: pd.Series) -> bool:
    """True if there are several values. A file without a seed is not another seed."""
    return column[column.ne("")].nunique() > 1


def series_styles(shown: pd.DataFrame, points: pd.DataFrame, baseline: str) -> dict[str, dict]:
    """The style of each series of `shown`, in the plan's order of versions: that of its version
    (see styles_in), or grey for the baseline. Precisions and machines differ in dashes."""
    series = shown.drop_duplicates("series").groupby("version", sort=False)["series"].agg(list)
    variants = int(series.map(len).max())
    looks = styles_in(points, baseline, variants)
    (grey,) = version_styles([baseline], variants)
    looks[baseline] = [{**look, "color": GREY} for look in grey]
    styles = {}
    for version, own in looks.items():
        styles.update(zip(series.get(version, []), own, strict=False))
    return styles


def draw_line(axes: Axes, line: pd.DataFrame, x: str, y: str, look: dict) -> tuple[float, float]:
    """Draws column `y` against `x`, with its interval (`y`_low, `y`_high) as bars. Returns the
    place of the last point.

    A single point has a mark but no line. A point without an interval has no bar.
    """
    line = line.sort_values(x)
    at, values = line[x].astype(float).tolist(), line[y].tolist()
    look = look if len(at) > 1 else {**look, "linestyle": "none"}
    axes.errorbar(at, values, yerr=bars(line, y), elinewidth=0.8, capsize=1.8, **look)
    noisy = line[line["noisy"].eq(True)]
    ring(axes, noisy[x].astype(float).tolist(), noisy[y].tolist())
    return at[-1], values[-1]


def draw_lines(
    axes: Axes, of: pd.DataFrame, y: str, looks: dict[str, dict], labels: dict[str, str]
) -> list[tuple[float, float, str, str]]:
    """Draws column `y` against column `at` for each series, in the order of `looks`. Returns what
    label_ends() needs to write `labels` at the ends."""
    ends = []
    for series in (s for s in looks if s in set(of["series"])):
        end = draw_line(axes, of[of["series"] == series], "at", y, looks[series])
        ends.append((*end, labels[series], looks[series]["color"]))
    return ends


def ring(axes: Axes, x: list[float], y: list[float]) -> None:
    """Draws rings round the marks of noisy points."""
    if x:
        look = {"marker": "o", "markersize": 7.5, "fillstyle": "none", "linestyle": "none"}
        axes.plot(x, y, color=INK, markeredgewidth=0.8, zorder=3.5, clip_on=False, **look)


def bars(of: pd.DataFrame, column: str) -> list[list[float]]:
    """The distances from `column` to its low and high ends, as errorbar() needs them. 0 if there
    is no interval.
    """
    below = (of[column] - of[f"{column}_low"]).fillna(0)
    above = (of[f"{column}_high"] - of[column]).fillna(0)
    return [below.clip(lower=0).tolist(), above.clip(lower=0).tolist()]


def panel_title(columns: list[str], values: tuple, of: pd.DataFrame) -> str:
    """The title of the panel with the points `of`: `K = 5, dim 2`. A line may break after a comma,
    not within `K = 5`."""
    words = []
    for column, value in zip(columns, values, strict=True):
        if column == "data":
            seed_apart = "data_seed" in columns
            words.append(source_text(_name_of(of), str(value), seed_apart=seed_apart))
            continue
        sized = column in ("n", "k")
        named = column.replace("_", " ")
        word = f"{column.upper()} = {count_text(value)}" if sized else f"{named} {value}"
        words.append(word.replace(" ", "\u00a0"))
    return ", ".join(words)


def _name_of(of: pd.DataFrame) -> object:
    return of["data_name"].iloc[0] if "data_name" in of else None


def source_text(name: object, description: str, *, seed_apart: bool) -> str:
    """A source of points in words: the name that the spec gives it, else its description. The seed
    of its generator is left out if it is told apart."""
    if isinstance(name, str):
        return name
    if not seed_apart:
        return description
    return re.sub(r"(, |(?<=\())seed=\d+\)", ")", description).replace("()", "")


def source_texts(points: pd.DataFrame) -> pd.Series:
    """source_text() of each point. Seeds are told apart if the points have several."""
    apart = points["data_seed"].nunique() > 1
    columns = (points[c] for c in ("data_name", "data", "data_seed"))
    texts = [
        source_text(name, data, seed_apart=apart and bool(seed)) if isinstance(data, str) else data
        for name, data, seed in zip(*columns, strict=True)
    ]
    return pd.Series(texts, points.index, dtype=object)


def largest_problems(points: pd.DataFrame, most: int = 8) -> tuple[pd.DataFrame, str]:
    """The `points` of at most `most` problems (3 on a narrow page), and a sentence
    about those left out. If there are more problems, the largest N of each K and dim is kept, and
    if these are still too many, the largest of them."""
    most = min(most, 3) if is_narrow() else most
    key = [c for c in PROBLEM if c in points and c != "precision"]
    problems = points[key].drop_duplicates()
    if len(problems) <= most:
        return points, ""
    largest = problems.loc[problems.groupby([c for c in key if c != "n"])["n"].idxmax()]
    largest = largest.sort_values(["n", "k", "dim"]).tail(most)
    kept = points[points[key].apply(tuple, axis=1).isin(set(map(tuple, largest.to_numpy())))]
    return kept, f"Shown: the largest {len(largest)} of {len(problems)} problems."


def problem_panels(points: pd.DataFrame) -> tuple[list[str], list[tuple[tuple, pd.DataFrame]]]:
    """The panels, one for each problem: the columns that its title names, and its points."""
    columns = panel_columns(points, ["k", "n"])
    return columns, list(points.groupby(columns, sort=True))
