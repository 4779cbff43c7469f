"""tpb: time per iteration against threads per block, with a panel for each K and N."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from analysis.figures import style
from analysis.figures.drawing import Drawing, Subject, csv_rows
from analysis.figures.notes import (
    method_notes,
    needing_no_baseline,
    nothing_to_draw,
    small_print,
    subtitle,
    tuned_axes,
)
from analysis.figures.page import Page, columns_of_panels
from analysis.figures.placement import label_ends
from analysis.figures.scales import fitting, log_axis, log_positions
from analysis.figures.series import (
    draw_line,
    names_at_ends,
    panel_columns,
    panel_title,
    series_names,
    series_styles,
)
from analysis.figures.typeset import break_label, text_width
from analysis.measures.points import Data
from analysis.model.numbers import count_text
from analysis.model.run import PROBLEM

NAME = "tpb"
NAME_IN_WORDS = "threads per block"


def draw(data: Data, subject: Subject) -> Drawing:
    """Draws the median time per iteration of each version that has threads per block, with the
    fastest values of its other tunables.

    The rows contain every point of those versions, drawn or not. Each panel has its own scale,
    because N changes the time by orders of magnitude and comparisons are within a panel."""
    everything = data.points
    points = everything[everything["threads_per_block"].notna()]
    if points.empty:
        rows = csv_rows(points, points.index)
        return Drawing(NAME, None, rows, "no version in this run has threads per block")
    if points["threads_per_block"].nunique() == 1:
        rows = csv_rows(points, points.index[:0])
        only = count_text(points["threads_per_block"].iloc[0])
        why = f"every version in this run has {only} threads per block: nothing to compare"
        return Drawing(NAME, None, rows, why)
    points = needing_no_baseline(points)
    ok = points[points["status"] == "ok"]
    key = ["machine", "version", *PROBLEM, "threads_per_block"]
    shown = ok.loc[ok.groupby(key, dropna=False, sort=False)["iteration_ms"].idxmin()]
    rows = csv_rows(points, shown.index)
    if shown.empty:
        return Drawing(NAME, None, rows, nothing_to_draw(points, f"{NAME}.csv"))

    shown = shown.assign(series=series_names(shown))
    styles = series_styles(shown, everything, subject.baseline)
    notes = method_notes(
        shown,
        "Time per iteration",
        "95% interval of the median (order statistics)",
        int(shown["iteration_ms_low"].isna().sum()),
    )
    tuned = tuned_axes(ok, but=("threads_per_block",))
    if tuned:
        notes.append(f"Each point at its fastest {tuned} (by median); {NAME}.csv says which.")
    notes[0] += " Large marks: each line's fastest. Every panel has its own time scale."

    keys = panel_columns(shown, ["k", "n"])
    panels = [(values, of) for values, of in shown.groupby(keys, sort=True)]
    direct = names_at_ends(len(panels))
    sizes = shown["n"].nunique()
    columns = 1 if len(panels) == 1 else 2 if direct else sizes if 3 <= sizes <= 4 else 4
    columns = columns_of_panels(columns, 1.77 if direct else 0.73, 1.2 if direct else 0.75)
    label_width = 1.7 if columns == 1 and not style.is_narrow() else 0.98
    labels = {s: break_label(s, label_width) for s in styles}
    lines = sum(label.count("\n") + 1 for label in labels.values())
    widest = max(text_width(part) for label in labels.values() for part in label.split("\n"))
    title = subject.title
    if NAME_IN_WORDS not in title.lower():
        title += f": {NAME_IN_WORDS}"
    page = Page(
        title,
        subtitle(points, subject),
        small_print(points, shown.index, notes, f"{NAME}.csv"),
        [panel_title(keys, values) for values, _ in panels],
        columns,
        max(2.5 if columns == 1 else 1.6 if direct else 1.25, 0.125 * lines if direct else 0),
        left=0.55,
        right=widest + 0.24 if direct else 0.18,
        below=0.3,
        last=0.18,
        legend=None if direct else list(styles.items()),
    )
    blocks = sorted(int(b) for b in shown["threads_per_block"].unique())
    for place, ((_, of), axes) in enumerate(zip(panels, page.axes, strict=True)):
        times = ["iteration_ms", "iteration_ms_low", "iteration_ms_high"]
        log_axis(axes, "y", of[times].min(axis=None), of[times].max(axis=None), wanted=4)
        log_axis(axes, "x", blocks[0], blocks[-1])
        ends = []
        for name in (s for s in styles if s in set(of["series"])):
            line = of[of["series"] == name]
            end = draw_line(axes, line, "threads_per_block", "iteration_ms", styles[name])
            if len(line) > 1:
                _mark_fastest(axes, line, styles[name])
            ends.append((*end, labels[name], styles[name]["color"]))
        _block_ticks(axes, blocks, page.axes_width)
        if place % columns == 0:
            axes.set_ylabel("time per iteration (ms)")
        if place + columns >= len(panels):
            axes.set_xlabel("threads per block")
        if direct:
            label_ends(axes, ends)
    return Drawing(NAME, page.figure, rows)


def _mark_fastest(axes: Axes, line: pd.DataFrame, look: dict) -> None:
    fastest = line.loc[line["iteration_ms"].idxmin()]
    axes.plot(
        fastest["threads_per_block"],
        fastest["iteration_ms"],
        marker=look["marker"],
        color=look["color"],
        markersize=6,
        markeredgecolor="white",
        markeredgewidth=0.6,
        zorder=4,
    )


def _block_ticks(axes: Axes, blocks: list[int], width: float) -> None:
    names = [count_text(b) for b in blocks]
    at = log_positions(axes.get_xlim(), blocks, width)
    chosen = fitting(at, names, gap=0.04)
    axes.set_xticks([blocks[i] for i in chosen], [names[i] for i in chosen])
