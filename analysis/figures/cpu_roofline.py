"""cpu_roofline: the rate at which CPU versions get through the work of an iteration, against its
operations per byte, under the machine's measured roofs (Williams, Waterman & Patterson 2009).

Virtual machines seldom have counters of operations and bytes. So both are those of the definition,
as in floor_ms: 2 N K dim operations, and one pass over points, centroids and labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis.figures import style
from analysis.figures.drawing import Drawing, Subject, csv_rows, not_drawn
from analysis.figures.notes import (
    needing_no_baseline,
    nothing_to_draw,
    small_print,
    subtitle,
)
from analysis.figures.page import Page, columns_of_panels
from analysis.figures.placement import spread
from analysis.figures.scales import log_axis
from analysis.figures.series import series_names, series_styles
from analysis.figures.style import LINE
from analysis.measures.fastest import fastest
from analysis.measures.points import Data
from analysis.model.ceilings import Ceilings
from analysis.model.numbers import number_text

NAME = "cpu_roofline"
HALVES = ("fp16", "bf16")
"""The precisions whose coordinates have 2 bytes. All others are computed from float32 points."""
LABEL_BYTES = 4
RATES = {"fp64": "fp64"}
"""The roof of a precision. Every other one has that of fp32."""

NOTES = [
    "One mark per K, at the most points that it ran with. Operations (2 N K dim) and bytes (one "
    "pass over points, centroids and labels) are those of the definition, not counted. A mark "
    "above the flat roof belongs to a version that leaves out distances, or computes them from "
    "16-bit products on matrix units, which have no roof here.",
    "Roofs: medians measured on the machine, on all cores.",
]


def draw(data: Data, subject: Subject) -> Drawing:
    """Draws a panel for each machine, dimension and precision, with a line for each CPU version
    over its problems: those with the most points for each K."""
    points = needing_no_baseline(data.points)
    best = fastest(points[points["backend"].eq("cpu")])
    best = best[best["machine"].isin(list(data.cpu_ceilings))]
    if best.empty:
        return not_drawn(NAME, points, _why_nothing(data, points))
    best = best.assign(**_work(best))
    problem = ["machine", "dim", "precision", "k"]
    shown = best[best["n"].eq(best.groupby(problem)["n"].transform("max"))]
    rows = csv_rows(points, shown.index)
    for column in ("operations_per_byte", "operations_per_second"):
        rows[column] = shown[column].reindex(rows.index)
    shown = shown.assign(series=series_names(shown))
    looks = series_styles(shown, points, subject.baseline)
    panels = list(shown.groupby(["machine", "dim", "precision"], sort=True))
    columns = columns_of_panels(1 if len(panels) == 1 else 2, 0.62, 1.4)
    several = shown["machine"].nunique() > 1
    page = Page(
        f"{subject.title}: CPU roofline",
        subtitle(shown, subject),
        small_print(points, shown.index, NOTES, f"{NAME}.csv"),
        [
            f"dim {dim}, {precision}" + (f", {machine}" if several else "")
            for (machine, dim, precision), _ in panels
        ],
        columns,
        max(min(2.6, 0.8 * style.width()), 1.8),
        left=0.62,
        below=0.42,
        legend=[(name, look) for name, look in looks.items()],
    )
    for ((machine, _, precision), of), axes in zip(panels, page.axes, strict=True):
        _panel(axes, of, data.cpu_ceilings[machine], RATES.get(precision, "fp32"), looks)
    return Drawing(NAME, page.figure, rows)


def _why_nothing(data: Data, points: pd.DataFrame) -> str:
    if not data.cpu_ceilings:
        return "no measured ceilings of the run's CPU (run_experiment --ceilings)"
    if points["backend"].eq("cpu").any():
        return nothing_to_draw(points, f"{NAME}.csv")
    return "the run has no CPU version with a result"


def _work(points: pd.DataFrame) -> dict[str, pd.Series]:
    n, k, dim, batch = (points[c].astype(float) for c in ("n", "k", "dim", "batch"))
    size = points["precision"].isin(HALVES).map({True: 2, False: 4})
    operations = 2 * batch * n * k * dim
    # labels are written once in a solve, so its iterations share them: they hardly count
    moved = (n + 2 * k) * dim * size + LABEL_BYTES * n / points["iterations"].astype(float)
    moved *= batch
    return {
        "operations_per_byte": operations / moved,
        "operations_per_second": operations / (points["iteration_ms"].astype(float) / 1e3),
    }


def _panel(axes: Axes, of: pd.DataFrame, roofs: Ceilings, rate: str, looks: dict) -> None:
    top = roofs.rates[rate].measured if rate in roofs.rates else np.inf
    x, y = of["operations_per_byte"], of["operations_per_second"] / 1e9
    ridges = [top / level.measured for level in roofs.bandwidths.values() if np.isfinite(top)]
    left, right = min([x.min(), *ridges]) / 2, max([x.max(), *ridges]) * 2
    peak = top / 1e9 if np.isfinite(top) else y.max()
    log_axis(axes, "x", left, right)
    log_axis(axes, "y", y.min() / 3, max(y.max(), peak) * 2)
    low, high = axes.get_xlim()
    starts = []
    for bandwidth in roofs.bandwidths.values():
        slope = bandwidth.measured / 1e9
        xs = np.array([low, min(high, peak / slope)])
        axes.plot(xs, xs * slope, color=style.INK, lw=0.8, zorder=1.5)
        starts.append(low * slope)
    _name_levels(axes, roofs, starts)
    if np.isfinite(top):
        begin = max(low, peak / max(b.measured / 1e9 for b in roofs.bandwidths.values()))
        axes.plot([begin, high], [peak] * 2, color=style.INK, lw=0.8, zorder=1.5)
        said = f"{rate} {number_text(top / 1e12)} TFLOP/s"
        # versions are close to the roof at its other end
        axes.text(begin, peak * 1.06, said, color=style.INK, ha="left", va="bottom")
    for name, marks in of.sort_values("operations_per_byte").groupby("series", sort=False):
        axes.plot(
            marks["operations_per_byte"],
            marks["operations_per_second"] / 1e9,
            lw=0.8,
            zorder=3,
            **{key: value for key, value in looks[name].items() if key not in {"lw", "linewidth"}},
        )
    axes.set_xlabel("operations per byte")
    axes.set_ylabel("10⁹ operations per second")


def _name_levels(axes: Axes, roofs: Ceilings, starts: list[float]) -> None:
    """Writes the levels' names at the left ends of their roofs, above each other where roofs lie
    close together."""
    bottom, top = axes.get_ylim()
    height = axes.get_position().height * axes.figure.get_figheight()
    inches = [height * np.log(y / bottom) / np.log(top / bottom) for y in starts]
    places = spread(inches, [LINE] * len(inches), 0.0, height)
    for (level, bandwidth), place in zip(roofs.bandwidths.items(), places, strict=True):
        axes.annotate(
            f"{level.upper()} {number_text(bandwidth.measured / 1e9)} GB/s",
            (0.015, place / height),
            xycoords="axes fraction",
            va="center",
            color=style.INK,
            zorder=4,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
        )
