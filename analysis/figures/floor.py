"""floor: how far each version is from the best that the machine could do."""

from __future__ import annotations

import numpy as np
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
from analysis.measures.fastest import conditions, fastest
from analysis.measures.points import Data
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
        why = "the run has no floor_ms (run_experiment --ceilings measures what it is made of)"
        why = nothing_to_draw(points, f"{NAME}.csv") if best.empty else why
        return Drawing(NAME, None, rows, why)
    shown, left_out = largest_problems(known)
    shown = shown.assign(
        series=series_names(shown, apart=apart),
        times=shown["iteration_ms"] / shown["floor_ms"],
        times_low=shown["iteration_ms_low"] / shown["floor_ms"],
        times_high=shown["iteration_ms_high"] / shown["floor_ms"],
    )
    columns, panels = problem_panels(shown)
    labels, widest, tall = row_labels(list(shown["series"]), min(1.9, 0.4 * style.width()))
    most = max(len(of) for _, of in panels)
    notes = [*_notes(shown, set(best["version"]) - set(known["version"])), left_out]
    page = Page(
        f"{subject.title}: distance to the floor",
        subtitle(shown, subject),
        small_print(points, shown.index, notes, f"{NAME}.csv"),
        [panel_title(columns, values, of) for values, of in panels],
        columns_of_panels(1 if len(panels) == 1 else 2, widest + 0.7, 1.2),
        rows_height(most, tall),
        left=widest + 0.2,
        right=0.14 + max(text_width(_times(value)) for value in shown["times"]),
        below=0.45,
    )
    styles = series_styles(shown, points, subject.baseline)
    every = shown[["times", "times_low", "times_high"]].to_numpy(float)
    low, high = min(float(np.nanmin(every)), 1.0), float(np.nanmax(every))
    for (_, of), axes in zip(panels, page.axes, strict=True):
        log_axis(axes, "x", low, high, width=page.axes_width)
        ranked = of.sort_values("times", kind="stable")
        _panel(axes, ranked, styles)
        rows_axis(axes, [labels[s] for s in ranked["series"]], most)
    page.label_outer("times the floor")
    return Drawing(NAME, page.figure, rows)


def _notes(shown: pd.DataFrame, silent: set[str]) -> list[str]:
    """`silent` are the versions without a floor."""
    notes = method_notes(
        shown,
        "Time per iteration over its floor: compulsory bytes and operations at the "
        "measured ceilings of what it runs on, GPU or CPU (best samples, of a GPU in bursts)",
        "95% interval of the median (order statistics)",
        int(shown["times_low"].isna().sum()),
    )
    faster = sorted(set(shown.loc[shown["times"] < 1, "version"]))
    if faster:
        notes.append(
            f"Faster than the floor: {', '.join(faster)}. A version can be if it skips distances, "
            "reads only a part of the points, or builds products from a narrower type. Any other "
            "does a part of its work outside the loop, or a measured ceiling is too low: measure "
            "the ceilings again on an idle machine."
        )
    return [*notes, f"Without a floor: {', '.join(sorted(silent))}." if silent else ""]


def _panel(axes: Axes, ranked: pd.DataFrame, styles: dict[str, dict]) -> None:
    """Draws a row for each point, with a stem from the floor to its mark."""
    axes.axvline(1, color=style.INK, linewidth=1.2)
    for height, (_, point) in enumerate(ranked.iterrows()):
        look = styles[point["series"]]
        axes.plot([1, point["times"]], [height] * 2, color=look["color"], lw=0.8, alpha=0.5)
        mark(axes, height, ranked.iloc[[height]], "times", look)
        at_right(axes, height, _times(point["times"]))


def _times(value: float) -> str:
    return f"{number_text(value)}×"
