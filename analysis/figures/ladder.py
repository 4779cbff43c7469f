"""ladder: the gain of each version over its parent, as a waterfall."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis.figures import style
from analysis.figures.drawing import Drawing, Subject, not_drawn
from analysis.figures.notes import (
    method_notes,
    needing_no_baseline,
    nothing_to_draw,
    small_print,
    subtitle,
)
from analysis.figures.page import Page
from analysis.figures.row_axis import at_right, rows_axis
from analysis.figures.scales import log_axis
from analysis.figures.series import largest_problems, panel_title, problem_panels, series_names
from analysis.figures.typeset import break_label, text_width, widest_line
from analysis.measures.fastest import fastest
from analysis.measures.kernels import by_kernel
from analysis.measures.noise import noisy_mark
from analysis.measures.places import PLACE
from analysis.measures.points import Data
from analysis.measures.stats import ratio_interval
from analysis.model.numbers import number_text
from analysis.model.run import PROBLEM

NAME = "ladder"
_SIZES = [column for column in PROBLEM if column != "precision"]
FASTER, SLOWER = "#0072B2", "#D55E00"
LEGEND = {
    "faster than its parent": FASTER,
    "slower than its parent": SLOWER,
    "no interval, or it includes 1×": style.GREY,
}


def draw(data: Data, subject: Subject) -> Drawing:
    """Draws a bar from the parent's time per iteration to the version's, each at its fastest
    tunables. Versions are below their parents. There is one row for each version × problem, with
    the ratio of the step.
    """
    points = needing_no_baseline(data.points)
    best, left_out = largest_problems(fastest(points), most=3)
    if best.empty:
        return not_drawn(NAME, points, nothing_to_draw(points, f"{NAME}.csv"))
    steps = _steps(best, data.parents)
    if steps.empty:
        return not_drawn(NAME, points, "each version here is derived from another, in a circle")
    if steps["parent_point"].isna().all():
        rows = steps.drop(columns="depth").assign(drawn=False)
        return Drawing(NAME, None, rows, "no version here was measured beside its parent")
    steps = _with_counters(steps, data.counters)
    rows = steps.drop(columns="depth").assign(drawn=True)
    if rows["noisy"].isna().all():
        rows = rows.drop(columns="noisy")
    steps["series"] = _series(steps, best)
    columns, panels = problem_panels(steps)
    names = {index: _indented(step) for index, step in steps.iterrows()}
    widest = widest_line(names.values())
    tall = max(name.count("\n") for name in names.values())
    rows_high = max(len(of) for _, of in panels)
    page = Page(
        f"{subject.title}: what each step brings",
        subtitle(best, subject),
        small_print(points, best.index, [*_notes(best, steps), left_out], f"{NAME}.csv"),
        [panel_title(columns, values, of) for values, of in panels],
        1,
        (0.165 + 0.11 * tall) * rows_high + 0.1,
        left=widest + 0.2,
        right=max(text_width(_text(step)) for _, step in steps.iterrows()) + 0.12,
        below=0.42,
        legend=[
            (word, {"color": colour, "marker": "s", "linestyle": "none"})
            for word, colour in LEGEND.items()
        ],
    )
    for (_, of), axes in zip(panels, page.axes, strict=True):
        _panel(axes, of)
        rows_axis(axes, [names[index] for index in of.index], rows_high)
        _align_left(axes, widest)
    return Drawing(NAME, page.figure, rows)


def _series(steps: pd.DataFrame, best: pd.DataFrame) -> pd.Series:
    """The version, with what the points have several of: machine, precision."""
    several = best["machine"].nunique() > 1 or best["precision"].nunique() > 1
    return series_names(steps) if several else steps["version"]


def _align_left(axes: Axes, widest: float) -> None:
    """Aligns the names of the rows, so that it shows how far they are indented."""
    for label in axes.get_yticklabels():
        label.set_ha("left")
    axes.tick_params(axis="y", pad=(widest + 0.1) * 72)


def _notes(best: pd.DataFrame, steps: pd.DataFrame) -> list[str]:
    notes = method_notes(
        best,
        "Bars run from the parent's time per iteration to the version's; indented: derived from "
        "the version above. Each at its fastest tunables",
        "parent's time over the version's"
        + ("" if style.is_narrow() else " with its 95% interval (bootstrap)"),
        0,
    )
    notes[0] = notes[0].replace("Bars: ", "At the right: own time and ")
    if steps["explained"].ne("").any() and not style.is_narrow():
        notes.append(
            "occ: warps active of the most possible; L1, L2: hit rates, of the assignment's "
            "slowest kernel."
        )
    return notes


def _panel(axes: Axes, of: pd.DataFrame) -> None:
    """Draws a row for each step: a bar from the parent's time, if there is one, to its own time."""
    log_axis(axes, "x", of["iteration_ms"].min(), of["iteration_ms"].max())
    for height, (_, step) in enumerate(of.iterrows()):
        own, before = step["iteration_ms"], step["parent_ms"]
        colour = style.GREY
        if np.isfinite(before):
            colour = _colour(step)
            axes.barh(height, own - before, left=before, color=colour, height=0.55, alpha=0.85)
            axes.plot([before, before], [height - 0.4, height + 0.4], color=style.INK, lw=0.7)
        axes.plot(own, height, marker="o", color=colour, markersize=3.6)
        at_right(axes, height, _text(step), colour if np.isfinite(before) else style.INK)
    axes.set_xlabel("time per iteration (ms)")


def _steps(best: pd.DataFrame, parents: dict[str, str]) -> pd.DataFrame:
    """Each version of each problem after its parent, with parent_point, parent_ms and the ratio
    parent's time / own time. If a parent was not measured, its own parent replaces it."""
    rows = []
    for _, of in best.groupby(["machine", PLACE, *_SIZES], sort=False):
        own = {}
        for _, point in of.iterrows():
            own.setdefault(point["version"], []).append(point)

        def measured_parent(version: str, own=own) -> str:
            seen = set()
            parent = parents.get(version) or ""
            while parent and parent not in own and parent not in seen:
                seen.add(parent)
                parent = parents.get(parent) or ""
            return parent if parent in own else ""

        def visit(version: str, depth: int, own=own, measured_parent=measured_parent) -> None:
            before = own.get(measured_parent(version), [])
            for point in own[version]:
                same = [b for b in before if b["precision"] == point["precision"]] or before
                step = _step(point, same[0] if same else None)
                rows.append({**step, "depth": depth, "place": len(rows)})
            for child in own:
                if child != version and measured_parent(child) == version:
                    visit(child, depth + 1)

        for version in own:
            if not measured_parent(version):
                visit(version, 0)
    return pd.DataFrame(rows)


def _step(point: pd.Series, before: pd.Series | None) -> dict:
    keep = ["machine", "point", "version", *PROBLEM]
    keep += ["iteration_ms", "iteration_ms_low", "iteration_ms_high", "samples", "noisy"]
    step = {name: point[name] for name in keep}
    if before is None:
        nothing = dict.fromkeys(["parent_ms", "ratio", "ratio_low", "ratio_high"], np.nan)
        return {**step, "parent": None, "parent_point": None, **nothing}
    ratio = ratio_interval(before["times_ms"], point["times_ms"])
    return {
        **step,
        "parent": before["version"],
        "parent_point": before["point"],
        "parent_ms": before["iteration_ms"],
        "ratio": ratio.value,
        "ratio_low": ratio.low,
        "ratio_high": ratio.high,
    }


def _with_counters(steps: pd.DataFrame, counters: pd.DataFrame) -> pd.DataFrame:
    """`explained`: occupancy and hit rates of the assignment's slowest kernel, if known."""
    table = by_kernel(counters[counters["phase"].eq("assign")])
    table = table.sort_values("seconds", ascending=False, na_position="last")
    table = table.drop_duplicates(["machine", "point"]).set_index(["machine", "point"])
    of = pd.MultiIndex.from_frame(steps[["machine", "point"]])
    columns = {"occupancy": "occ", "l1_hits": "L1", "l2_hits": "L2"}
    for column in columns:
        steps[column] = table[column].reindex(of).to_numpy()
    steps["explained"] = [
        " ".join(f"{word} {step[c]:.0f}%" for c, word in columns.items() if pd.notna(step[c]))
        for _, step in steps.iterrows()
    ]
    return steps


def _colour(step: pd.Series) -> str:
    if not np.isfinite(step["ratio_low"]) or step["ratio_low"] <= 1 <= step["ratio_high"]:
        return style.GREY
    return FASTER if step["ratio"] > 1 else SLOWER


def _indented(step: pd.Series) -> str:
    indent = "   " * int(step["depth"])
    room = 0.3 * style.width() - text_width(f"{indent}n") if style.is_narrow() else style.WIDTH
    lines = break_label(step["series"], max(room, 0.6)).split("\n")
    return "\n".join(indent + line for line in lines)


def _text(step: pd.Series) -> str:
    text = f"{number_text(step['iteration_ms'])} ms{noisy_mark(step)}"
    if np.isfinite(step["ratio"]):
        text += f"  {number_text(step['ratio'])}×"
        if np.isfinite(step["ratio_low"]) and not style.is_narrow():
            low, high = (number_text(step[c]) for c in ("ratio_low", "ratio_high"))
            text += f" [{low}, {high}]"
    explained = "" if style.is_narrow() else step.get("explained")
    return text + (f"  {explained}" if explained else "")
