"""floor: how far each version is from the best that the machine could do."""

from __future__ import annotations

import numpy as np

from analysis.figures import style
from analysis.figures.drawing import Drawing, Subject, csv_rows
from analysis.figures.notes import (
    method_notes,
    needing_no_baseline,
    nothing_to_draw,
    small_print,
    subtitle,
)
from analysis.figures.page import Page, columns_of_panels
from analysis.figures.row_axis import at_right, mark, row_labels, rows_axis, rows_height
from analysis.figures.scales import log_axis
from analysis.figures.series import (
    largest_problems,
    panel_title,
    problem_panels,
    series_names,
    series_styles,
)
from analysis.figures.typeset import text_width
from analysis.measures.points import Data, conditions, fastest
from analysis.model.numbers import number_text

NAME = "floor"


def draw(data: Data, subject: Subject) -> Drawing:
    """Draws each version's time per iteration over floor_ms: the time that the compulsory bytes and
    operations of an iteration take on the measured ceilings of its machine."""
    points = needing_no_baseline(data.points)
    apart = conditions(points)
    best = fastest(points, apart=apart)
    known = best[best["floor_ms"].notna() & (best["floor_ms"].astype(float) > 0)]
    rows = csv_rows(points, known.index)
    rows["times_the_floor"] = (rows["iteration_ms"] / rows["floor_ms"]).where(rows["drawn"])
    if known.empty:
        if best.empty:
            return Drawing(NAME, None, rows, nothing_to_draw(points, f"{NAME}.csv"))
        why = "the run has no floor_ms (run_experiment --ceilings measures what it is made of)"
        return Drawing(NAME, None, rows, why)
    shown, left_out = largest_problems(known)
    shown = shown.assign(
        series=series_names(shown, apart=apart),
        times=shown["iteration_ms"] / shown["floor_ms"],
        times_low=shown["iteration_ms_low"] / shown["floor_ms"],
        times_high=shown["iteration_ms_high"] / shown["floor_ms"],
    )
    styles = series_styles(shown, points, subject.baseline)
    columns, panels = problem_panels(shown)
    labels, widest, tall = row_labels(list(shown["series"]), min(1.9, 0.4 * style.width()))
    most = max(len(of) for _, of in panels)
    across = columns_of_panels(1 if len(panels) == 1 else 2, widest + 0.7, 1.2)
    notes = method_notes(
        shown,
        "Time per iteration over its floor: compulsory bytes and operations at the "
        "measured ceilings of what it runs on, GPU or CPU (best samples, of a GPU in bursts)",
        "95% interval of the median (order statistics)",
        int(shown["times_low"].isna().sum()),
    )
    silent = sorted(set(best["version"]) - set(known["version"]))
    notes += [f"Without a floor: {', '.join(silent)}."] if silent else []
    notes += [left_out] if left_out else []
    page = Page(
        f"{subject.title}: distance to the floor",
        subtitle(shown, subject),
        small_print(points, shown.index, notes, f"{NAME}.csv"),
        [panel_title(columns, values, of) for values, of in panels],
        across,
        rows_height(most, tall),
        left=widest + 0.2,
        right=0.14 + max(text_width(_times(value)) for value in shown["times"]),
        below=0.45,
    )
    every = shown[["times", "times_low", "times_high"]].to_numpy(float)
    low, high = min(float(np.nanmin(every)), 1.0), float(np.nanmax(every))
    for (_, of), axes in zip(panels, page.axes, strict=True):
        log_axis(axes, "x", low, high, width=page.axes_width)
        axes.axvline(1, color=style.INK, linewidth=1.2)
        ranked = of.sort_values("times", kind="stable")
        for height, (_, point) in enumerate(ranked.iterrows()):
            look = styles[point["series"]]
            axes.plot([1, point["times"]], [height] * 2, color=look["color"], lw=0.8, alpha=0.5)
            mark(axes, height, ranked.iloc[[height]], "times", look)
            at_right(axes, height, _times(point["times"]))
        rows_axis(axes, [labels[s] for s in ranked["series"]], most)
    page.label_outer("times the floor")
    return Drawing(NAME, page.figure, rows)


def _times(value: float) -> str:
    return f"{number_text(value)}×"
