"""convergence: how far the inertia is above the best found, against iterations and against time."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis.figures import style
from analysis.figures.drawing import Drawing, Subject
from analysis.figures.notes import needing_no_baseline, noisy_note, small_print, subtitle
from analysis.figures.page import Page, columns_of_panels
from analysis.figures.scales import log_axis, tick_text
from analysis.figures.series import panel_title, series_names, series_styles, varies
from analysis.measures.convergence import SAME_BEST, TIMES, curves, solves, summary
from analysis.measures.points import Data
from analysis.model.numbers import count_text, number_text

NAME = "convergence"
LEAST = 1e-4
"""The smallest excess that the axis tells apart from the best."""
MOST_PROBLEMS = 4
STEPS = 240
"""How many places the median of several solves has along the axis of time."""


def draw(data: Data, subject: Subject) -> Drawing:
    """Draws a line for each version and kind of initial centroids: the median over its seeds and
    restarts, each of which has a thin line. A solve that has stopped keeps its last inertia. The
    rows have each iteration of each solve."""
    rows = curves(data)
    columns = ["machine", "point", "version", "restart", "iteration", "inertia", "excess"]
    if rows.empty:
        why = "the run has no convergence.jsonl (a spec with figures: [convergence] writes it)"
        return Drawing(NAME, None, pd.DataFrame(columns=["drawn", *columns]), why)
    points = needing_no_baseline(data.points)
    problem = [c for c in SAME_BEST if c in rows]
    largest = rows[problem].drop_duplicates().sort_values(["n", "k"], kind="stable")
    shown = rows.merge(largest.tail(MOST_PROBLEMS), on=problem)
    kept = rows.set_index(problem).index.isin(shown.set_index(problem).index)
    rows.insert(0, "drawn", kept)
    shown["series"] = _series(shown)
    styles = series_styles(shown, points, subject.baseline)
    panels = list(shown.groupby(problem, dropna=False, sort=True))
    titles = _titles(panels, problem, shown)
    drawn = points[points["point"].isin(shown["point"])]
    notes = [*_notes(rows, len(largest)), noisy_note(drawn, marked=False)]
    page = Page(
        f"{subject.title}: convergence",
        subtitle(points, subject),
        small_print(points, points.index, notes, f"{NAME}.csv"),
        [f"{title}: {x}" for title in titles for x in ("iterations", "time")],
        columns_of_panels(2, 0.8, 1.2),
        1.9,
        left=0.62,
        right=0.18,
        below=0.45,
        legend=list(styles.items()),  # lines that have converged end in one place
    )
    for place, (_, of) in enumerate(panels):
        _panel(page.axes[2 * place], of, "iteration", styles)
        _panel(page.axes[2 * place + 1], of, "time_ms", styles)
    return Drawing(NAME, page.figure, rows.drop(columns="stored"))


def _titles(panels: list, problem: list[str], shown: pd.DataFrame) -> list[str]:
    """What tells the problems apart, and always N and K."""
    varying = [c for c in problem if varies(shown[c]) or c in ("n", "k")]
    titles = []
    for values, of in panels:
        named = dict(zip(problem, values, strict=True))
        titles.append(panel_title(varying, tuple(named[c] for c in varying), of))
    return titles


def _notes(rows: pd.DataFrame, problems: int) -> list[str]:
    notes = [
        "Inertia above the best that any solve of the same points found; lines: the median of a "
        "version's seeds and restarts, with a thin line for each; marks: where they stopped. A "
        "solve that has stopped keeps its inertia. At or below "
        f"{100 * LEAST:g}% at the bottom. Dashed: 1% and 0.1%.",
        "Time: iterations times the median time of one, without initialisation.",
    ]
    if problems > MOST_PROBLEMS:
        notes.append(f"Shown: the largest {MOST_PROBLEMS} of {problems} problems.")
    return [*notes, *_times(summary(solves(rows)))]


def _series(rows: pd.DataFrame) -> pd.Series:
    """The version, with what the rows have several of: precision, machine, initial centroids."""
    names = series_names(rows)
    return names + " " + rows["init"].astype(str) if rows["init"].nunique() > 1 else names


def _panel(axes: Axes, of: pd.DataFrame, x: str, styles: dict) -> None:
    """The lines of a problem."""
    excess = (of["excess"].clip(lower=LEAST) * 100).to_numpy()
    log_axis(axes, "y", 100 * LEAST, max(excess.max(), 2.0))
    if x == "iteration":
        _iteration_axis(axes, of[x].max())
    else:
        _time_axis(axes, of[x])
    for within in (1.0, 0.1):
        axes.axhline(within, color=style.GREY, linewidth=0.7, linestyle=(0, (3, 2)), zorder=1.5)
    for name in (s for s in styles if s in set(_on_axis(of, x)["series"])):
        _draw_series(axes, _on_axis(of[of["series"] == name], x), x, styles[name])
    axes.set_ylabel("inertia above the best (%)")


def _iteration_axis(axes: Axes, last: int) -> None:
    """Iterations begin at 0, which the axis has beside its decades."""
    axes.set_xscale("symlog", linthresh=1, linscale=0.4)
    axes.set_xlim(-0.08, last * 1.1)
    ticks = [0, *(lead * 10**p for p in range(7) for lead in (1, 2, 5))]
    ticks = [t for t in ticks if t <= last]
    ticks = ticks if len(ticks) <= 7 else [t for t in ticks if str(t)[0] in "01"]
    axes.set_xticks(ticks, [tick_text(t) for t in ticks])
    axes.minorticks_off()
    axes.set_xlabel("iterations")


def _time_axis(axes: Axes, times: pd.Series) -> None:
    first, last = times[times > 0].min(), times.max()
    log_axis(axes, "x", first if np.isfinite(first) else 1.0, last if last > 0 else 1.0)
    axes.set_xlabel("time (ms)")


def _draw_series(axes: Axes, own: pd.DataFrame, x: str, look: dict) -> None:
    """Draws a thin line for each solve if they are several, a mark where it stopped, and the
    median."""
    line = {"color": look["color"], "linestyle": look["linestyle"]}
    each = [
        (one[x].to_numpy(float), 100 * one["excess"].clip(lower=LEAST).to_numpy())
        for _, one in own.groupby(["machine", "point", "restart"], sort=False)
    ]
    for at, values in each:
        if len(each) > 1:
            axes.plot(at, values, **line, linewidth=0.5, alpha=0.4)
        mark = {**look, "linestyle": "none", "markersize": 3}
        axes.plot(at[-1:], values[-1:], **mark, alpha=0.8)
    at, values = _median(each, x == "iteration")
    axes.plot(at, values, **line, linewidth=1.4)


def _on_axis(rows: pd.DataFrame, x: str) -> pd.DataFrame:
    """Without the moment 0, which an axis of time does not have."""
    return rows if x == "iteration" else rows[rows[x] > 0]


def _median(each: list[tuple[np.ndarray, np.ndarray]], whole: bool) -> tuple:
    """The median of lines that keep their last value: at every iteration (`whole`), or at places
    that are close together on a logarithmic axis."""
    if len(each) == 1:
        return each[0]
    last = max(at[-1] for at, _ in each)
    first = min(at[at > 0][0] for at, _ in each if (at > 0).any()) if last > 0 else 1.0
    grid = np.arange(last + 1) if whole else np.geomspace(first, max(last, first), STEPS)
    return grid, np.median([np.interp(grid, at, values) for at, values in each], axis=0)


def _times(table: pd.DataFrame) -> list[str]:
    """For few lines, the times to within 1% and 0.1% of the best."""
    if len(table) > 4:
        return ["Times to within 1% and 0.1% of the best are in the report's table of the run."]
    names = _series(table)
    told = []
    for (_, row), name in zip(table.iterrows(), names, strict=True):
        words = []
        for column, within in zip(TIMES, ("1%", "0.1%"), strict=True):
            reached = row[f"{column}_reached"]
            time = f"{number_text(row[column])} ms" if np.isfinite(row[column]) else ""
            some = f"{reached} of {row['solves']} solves" if row["solves"] > 1 and reached else ""
            words.append(f"{within}: {' in '.join(filter(None, [time, some])) or 'never'}")
        several = f" at N = {count_text(row['n'])}" if table["n"].nunique() > 1 else ""
        told.append(f"{name}{several} {', '.join(words)}")
    return [f"Median time to within: {'; '.join(told)}."]
