"""tpb: time per iteration against threads per block or another axis, with a panel for each K, N."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
from matplotlib.axes import Axes

from analysis.figures import style
from analysis.figures.drawing import Drawing, Subject, csv_rows, not_drawn
from analysis.figures.notes import (
    method_notes,
    needing_no_baseline,
    nothing_to_draw,
    small_print,
    subtitle,
    tuned_axes,
)
from analysis.figures.page import Page, columns_of_panels
from analysis.figures.placement import label_ends, stacked_height
from analysis.figures.scales import log_axis
from analysis.figures.series import (
    draw_lines,
    names_at_ends,
    panel_columns,
    panel_title,
    series_names,
    series_styles,
)
from analysis.figures.typeset import break_label, widest_line
from analysis.figures.x_axis import XAxis, beside, named, nothing_on_x, x_axis
from analysis.measures.fastest import fastest
from analysis.measures.points import Data
from analysis.model.numbers import count_text
from analysis.model.words import AXES

NAME = "tpb"
BLOCK = "threads_per_block"


def draw(data: Data, subject: Subject, x: str = BLOCK) -> Drawing:
    """Draws the median time per iteration of each version that has axis `x`, with the fastest
    values of its other tunables.

    The rows contain every point of those versions, drawn or not. Each panel has its own scale,
    because N changes the time by orders of magnitude and comparisons are within a panel."""
    name = named(NAME, x, BLOCK)
    points = data.points[data.points[x].notna()]
    if why := _why_not(points, x):
        return not_drawn(name, points, why)
    points = needing_no_baseline(points)
    shown = fastest(points, x)
    rows = csv_rows(points, shown.index)
    if shown.empty:
        return Drawing(name, None, rows, nothing_to_draw(points, f"{name}.csv"))

    along = x_axis(shown, x)
    shown = shown.assign(series=series_names(shown, x), at=along.at(shown[x]))
    styles = series_styles(shown, data.points, subject.baseline)
    keys = panel_columns(shown, beside(x), x)
    panels = [(values, of) for values, of in shown.groupby(keys, sort=True)]
    direct = names_at_ends(len(panels))
    columns = _columns(len(panels), shown[keys[-1]].nunique(), direct)
    labels = _labels(styles, columns)
    height = 2.5 if columns == 1 else 1.6 if direct else 1.25
    page = Page(
        _title(subject.title, along),
        subtitle(points, subject),
        small_print(points, shown.index, _notes(points, shown, x), f"{name}.csv"),
        [panel_title(keys, values, of) for values, of in panels],
        columns,
        max(height, stacked_height(labels.values())) if direct else height,
        left=0.62,
        right=widest_line(labels.values()) + 0.24 if direct else 0.18,
        below=0.3,
        last=0.18,
        legend=None if direct else list(styles.items()),
    )
    looks = {series: along.line_style(look) for series, look in styles.items()}
    for (_, of), axes in zip(panels, page.axes, strict=True):
        ends = _panel(axes, of, along, page.axes_width, looks, labels)
        if direct:
            label_ends(axes, ends)
    page.label_outer(along.label, "time per iteration (ms)")
    return Drawing(name, page.figure, rows)


def _why_not(points: pd.DataFrame, x: str) -> str:
    """Why these points, which have axis `x`, cannot be drawn over it. Empty if they can."""
    if points.empty:
        return f"no version in this run has {x.replace('_', ' ')}"
    if x == BLOCK and points[x].nunique() == 1:
        only = count_text(points[x].iloc[0])
        return f"every version in this run has {only} threads per block: nothing to compare"
    return nothing_on_x(points, x)


def _columns(panels: int, sizes: int, direct: bool) -> int:
    """The columns of panels, of which `sizes` neighbours differ in the last property only. Lines
    whose names stand at their ends (`direct`) need wider ones."""
    columns = 1 if panels == 1 else 2 if direct else sizes if 3 <= sizes <= 4 else 4
    return columns_of_panels(columns, 1.77 if direct else 0.73, 1.2 if direct else 0.75)


def _labels(series: Iterable[str], columns: int) -> dict[str, str]:
    """The names of the lines, broken for the room beside so many columns."""
    width = 1.7 if columns == 1 and not style.is_narrow() else 0.98
    return {name: break_label(name, width) for name in series}


def _panel(
    axes: Axes,
    of: pd.DataFrame,
    along: XAxis,
    width: float,
    looks: dict[str, dict],
    labels: dict[str, str],
) -> list[tuple]:
    """Draws the lines of a problem. Returns their ends for label_ends()."""
    times = of[["iteration_ms", "iteration_ms_low", "iteration_ms_high"]]
    log_axis(axes, "y", times.min(axis=None), times.max(axis=None), wanted=4)
    along.scale(axes)
    ends = draw_lines(axes, of, "iteration_ms", looks, labels)
    if along.name in AXES:
        _mark_fastest(axes, of, looks)
    along.ticks(axes, width)
    return ends


def _title(title: str, along: XAxis) -> str:
    if along.name != BLOCK:
        return f"{title}: time over {along.short}"
    return title if along.short in title.lower() else f"{title}: {along.short}"


def _notes(points: pd.DataFrame, shown: pd.DataFrame, x: str) -> list[str]:
    notes = method_notes(
        shown,
        "Time per iteration",
        "95% interval of the median (order statistics)",
        int(shown["iteration_ms_low"].isna().sum()),
    )
    if tuned := tuned_axes(points[points["status"] == "ok"], but=(x,)):
        csv = f"{named(NAME, x, BLOCK)}.csv"
        notes.append(f"Each point at its fastest {tuned} (by median); {csv} says which.")
    if x in AXES:
        notes[0] += " Large marks: each line's fastest."
    notes[0] += " Every panel has its own time scale."
    return notes


def _mark_fastest(axes: Axes, of: pd.DataFrame, looks: dict[str, dict]) -> None:
    """Draws a large mark at the fastest point of each series that has several."""
    for series in (s for s in looks if of["series"].eq(s).sum() > 1):
        line = of[of["series"] == series]
        best = line.loc[line["iteration_ms"].idxmin()]
        axes.plot(
            best["at"],
            best["iteration_ms"],
            marker=looks[series]["marker"],
            color=looks[series]["color"],
            markersize=6,
            markeredgecolor="white",
            markeredgewidth=0.6,
            zorder=4,
        )
