"""occupancy: achieved occupancy and L1 hit rate of each version's kernels."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from analysis.figures import style
from analysis.figures.drawing import Drawing, Subject, not_drawn
from analysis.figures.notes import notes_alone, subtitle
from analysis.figures.page import Page, columns_of_panels
from analysis.figures.row_axis import at_right, row_labels, rows_axis
from analysis.figures.series import (
    largest_problems,
    panel_title,
    problem_panels,
    series_names,
    series_styles,
)
from analysis.measures.fastest import fastest
from analysis.measures.kernels import by_kernel, short_name
from analysis.measures.points import Data
from analysis.model.run import PROBLEM

NAME = "occupancy"
SMALLEST_SHARE = 0.05
"""A kernel has a row in the picture from this share of its version's GPU time on."""
BEYOND = 0.03
"""Inches that a mark at 100% reaches beyond the axes."""
COLUMNS = {"occupancy": "occupancy", "l1_hits": "L1 hit rate"}


def draw(data: Data, subject: Subject) -> Drawing:
    """Draws the active warps, as a share of the most that a multiprocessor can hold, and the hit
    rate of L1, in %. Each kernel has a row, at its version's fastest tunables. The CSV has one row
    for each point × kernel.
    """
    table = by_kernel(data.counters)
    table = table[table[list(COLUMNS)].notna().any(axis=1)]
    if table.empty:
        return not_drawn(NAME, data.points, "the run has no counters (profile: {counters: …})")
    best = fastest(data.points)
    head = ["machine", "point", *PROBLEM, "iteration_ms"]
    rows = table.merge(best[head], on=["machine", "point"], how="left")
    rows["kernel"] = rows["kernel"].map(short_name)
    known = rows[rows["iteration_ms"].notna()]
    if known.empty:
        rows["drawn"] = False
        why = "there are counters only for points that are not their version's fastest"
        return Drawing(NAME, None, rows, why)
    largest, left_out = largest_problems(known, most=3)
    shown = largest[_is_large(largest)]
    rows["drawn"] = rows.index.isin(shown.index)
    shown = shown.assign(
        series=series_names(shown), label=shown["version"] + " · " + shown["kernel"]
    )
    labels, widest, tall = row_labels(list(shown["label"]), 1.7)
    panels = _panels(shown)
    most = max(len(of) for _, of, _ in panels)
    page = Page(
        f"{subject.title}: occupancy and L1 hit rate",
        subtitle(best[best["point"].isin(shown["point"])], subject),
        notes_alone(_notes(left_out, len(largest) - len(shown))),
        [title for title, _, _ in panels],
        columns_of_panels(2, widest + 0.62, 0.9),
        (0.07 + 0.12 * tall) * max(most, 2) + 0.1,
        left=widest + 0.2,
        right=0.42 + BEYOND,
        below=0.42,
    )
    styles = series_styles(shown, data.points, subject.baseline)
    for (_, of, column), axes in zip(panels, page.axes, strict=True):
        _panel(axes, of, column, styles)
        rows_axis(axes, [labels[s] for s in of["label"]], most)
    page.label_outer("%")
    return Drawing(NAME, page.figure, rows)


def _panels(shown: pd.DataFrame) -> list[tuple[str, pd.DataFrame, str]]:
    """The title of each panel, its rows, and the column that it shows."""
    columns, problems = problem_panels(shown)
    return [
        (f"{panel_title(columns, values, of)}: {words}", of, column)
        for values, of in problems
        for column, words in COLUMNS.items()
    ]


def _is_large(kernels: pd.DataFrame) -> pd.Series:
    """Which kernels take SMALLEST_SHARE of their version's GPU time, or an unknown share."""
    share = kernels["seconds"] / kernels.groupby(["machine", "point"])["seconds"].transform("sum")
    return share.isna() | (share >= SMALLEST_SHARE)


def _notes(left_out: str, small: int) -> list[str]:
    """`small` is the number of kernels that take too little time for the picture."""
    return [
        "Counters come from a separate pass, not the timed one. Occupancy: warps active of the "
        "most possible, averaged over the cycles in which a multiprocessor has work. L1 hit rate: "
        "sectors found in L1. A dash: not measured, or nothing looked up.",
        left_out,
        f"{small} kernels below 5% of their version's GPU time: in the CSV." if small else "",
    ]


def _panel(axes: Axes, of: pd.DataFrame, column: str, styles: dict[str, dict]) -> None:
    """Draws a row for each kernel of `of`: its value in `column`, in %."""
    for height, (_, kernel) in enumerate(of.iterrows()):
        value = kernel[column]
        if pd.isna(value):
            at_right(axes, height, "–", style.GREY, BEYOND)
            continue
        look = {**styles[kernel["series"]], "linestyle": "none"}
        axes.plot([0, value], [height] * 2, color=look["color"], lw=1, alpha=0.5)
        axes.plot(value, height, clip_on=False, **look)
        at_right(axes, height, f"{value:.0f}%", inches=BEYOND)
    axes.set_xlim(0, 100)
