"""dims: one map over dimension and K for each version, with the part that does not fit shaded.
Another axis may stand in the place of the dimension."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.patches import Rectangle

from analysis.figures import style
from analysis.figures.drawing import Drawing, Subject, csv_rows, not_drawn
from analysis.figures.notes import (
    needing_no_baseline,
    noisy_note,
    nothing_to_draw,
    small_print,
    subtitle,
)
from analysis.figures.page import Page, columns_of_panels
from analysis.figures.scales import fitting
from analysis.figures.series import series_names
from analysis.figures.typeset import break_label, text_width
from analysis.figures.x_axis import XAxis, map_axes, named, x_axis
from analysis.measures.fastest import fastest
from analysis.measures.noise import noisy_mark
from analysis.measures.points import Data
from analysis.model.numbers import count_text, number_text

NAME = "dims"
LEFT, RIGHT, BELOW = 0.52, 0.12, 0.42
"""The inches beside and below a panel, for its labels."""
BAR = 0.5  # inches for the colour bar
SHARED_WORDS = 4096
"""The study's K <= 4096 / (1 + 2 dim) for its v3 and v4, which keep 2 dim K floats and K counts in
shared memory. Its own 4 K (1 + 2 dim) <= 49,152 bytes gives three times that."""
_LINE = " Line: K = 4096 / (1 + 2 dim), luigi's limit as printed; 48 KB hold three times that."
_SHORT = {"n": "N", "k": "K", "dim": "dim"}


def draw(data: Data, subject: Subject, x: str = "dim") -> Drawing:
    """Draws, for each version, the time per iteration divided by N K dim, over K and axis `x` (with
    K on x, over dim and K). Sizes that are on no axis are the largest. Cells of unsupported points
    are hatched. There is one row for each version × K × x, at its fastest tunables."""
    figure_name = named(NAME, x, "dim")
    y = "dim" if x == "k" else "k"
    points = needing_no_baseline(data.points)
    points = points[points[x].notna()]
    if points[x].nunique() < 2 or points[y].nunique() < 2:
        why = f"a map needs two or more {_SHORT[y]} and two or more {_SHORT.get(x, x)}"
        return not_drawn(figure_name, points, why)
    fixed = [size for size in ("n", "dim") if size not in (x, y)]
    for size in fixed:
        points = points[points[size].eq(points[size].max())]
    cells = _cells(_timed(points, x), points, x, y)
    ok = cells[cells["status"].eq("ok")]
    rows = csv_rows(points, cells.index)
    rows["ps_per_term"] = cells["ps_per_term"].reindex(rows.index)
    if ok.empty:
        return Drawing(figure_name, None, rows, nothing_to_draw(points, f"{figure_name}.csv"))
    cells = cells.assign(series=series_names(cells, x))
    names = list(dict.fromkeys(cells["series"]))
    along, up = x_axis(cells, x), x_axis(cells, y)
    columns = columns_of_panels(1 if len(names) == 1 else 2 if len(names) <= 6 else 3, 0.64, 0.9)
    numbered = _numbers_fit(ok, (style.width() / columns - LEFT - RIGHT) / len(along.values))
    notes = _notes(ok, cells, x, y, numbered=numbered)
    page = Page(
        f"{subject.title}: {_title(x)} against {_title(y)}",
        [
            *subtitle(points, subject),
            *(f"{_SHORT[size]} = {count_text(points[size].max())}" for size in fixed),
        ],
        small_print(points, cells.index, notes, f"{figure_name}.csv"),
        # titles are larger and bolder than the text that break_label() measures
        [break_label(name, (style.width() / columns - LEFT - 0.05) / 1.26) for name in names],
        columns,
        min(max(0.19 * len(up.values), 0.9), 2.6),
        left=LEFT,
        right=RIGHT,
        below=BELOW,
        last=0 if numbered else BAR,
    )
    shades = _shades(ok["ps_per_term"])
    if not numbered:
        _colour_bar(page, shades)
    for name, axes in zip(names, page.axes, strict=True):
        _draw_cells(axes, cells[cells["series"] == name], along, up, shades, numbered=numbered)
        if "dim" in (x, y):
            _limit(axes, along.values, up.values, x)
        map_axes(axes, along.values, up.values)
        _name_columns(axes, along, page.axes_width)
    page.label_outer("dim" if x == "dim" else along.short, _SHORT[y])
    return Drawing(figure_name, page.figure, rows)


def _timed(points: pd.DataFrame, x: str) -> pd.DataFrame:
    """The points with a result at their fastest tunables, with their `ps_per_term`. Unless x is
    dim, the fastest come first."""
    ok = fastest(points, x)
    work = ok[["n", "k", "dim", "batch"]].astype(float).prod(axis=1)
    ok = ok.assign(ps_per_term=1e9 * ok["iteration_ms"] / work)
    return ok.sort_values("iteration_ms", kind="stable") if x != "dim" else ok


def _cells(timed: pd.DataFrame, points: pd.DataFrame, x: str, y: str) -> pd.DataFrame:
    """One point for each version, y and x: the first of `timed`, else one of `points` that says why
    there is none."""
    key = list(dict.fromkeys(["machine", "version", "precision", y, x]))
    bad = points[points["status"].ne("ok")].drop_duplicates(key)
    return pd.concat([timed, bad]).drop_duplicates(key)


def _shades(values: pd.Series) -> ScalarMappable:
    """The colours of these values on a logarithmic scale. Darker is more."""
    low, high = values.min(), values.max()
    return ScalarMappable(LogNorm(low, high if high > low else low * 1.01), colormaps["cividis_r"])


def _numbers_fit(ok: pd.DataFrame, cell_width: float) -> bool:
    """Whether each number fits into a cell of so many inches."""
    return max(text_width(_number(cell)) for _, cell in ok.iterrows()) < cell_width - 0.04


def _number(cell: pd.Series) -> str:
    return number_text(cell["ps_per_term"]) + noisy_mark(cell)


def _notes(ok: pd.DataFrame, cells: pd.DataFrame, x: str, y: str, *, numbered: bool) -> list[str]:
    unfit = cells["status"].eq("unsupported")
    lost = ~unfit & cells["status"].ne("ok")
    return [
        ("Numbers: p" if numbered else "Colours: p")
        + "icoseconds of an iteration for each point × cluster × dimension, at the fastest "
        "tunables (median). Darker is slower; every panel has the same colours."
        + (" Hatched: unsupported." if unfit.any() else "")
        + (" Crossed: no result for another reason." if lost.any() else "")
        + (_LINE if "dim" in (x, y) else ""),
        noisy_note(ok),
    ]


def _draw_cells(
    axes: Axes,
    cells: pd.DataFrame,
    along: XAxis,
    up: XAxis,
    shades: ScalarMappable,
    *,
    numbered: bool,
) -> None:
    """Draws each cell in the shade of its number, or hatched if it has none."""
    for _, cell in cells.iterrows():
        at, height = along.values.index(cell[along.name]), up.values.index(cell[up.name])
        box = {"xy": (at - 0.5, height - 0.5), "width": 1, "height": 1, "linewidth": 0}
        if cell["status"] != "ok":
            hatch = "////" if cell["status"] == "unsupported" else "xx"
            axes.add_patch(Rectangle(**box, facecolor="white", edgecolor="#999999", hatch=hatch))
            continue
        shade = shades.norm(cell["ps_per_term"])
        axes.add_patch(Rectangle(**box, facecolor=shades.cmap(shade)))
        if numbered:
            ink = "white" if shade > 0.5 else style.INK
            axes.text(at, height, _number(cell), ha="center", va="center", color=ink)


def _name_columns(axes: Axes, along: XAxis, width: float) -> None:
    """Labels as many columns as fit into `width` inches."""
    labels = [str(d) for d in along.values] if along.name == "dim" else along.names(width)
    middles = [(i + 0.5) * width / len(labels) for i in range(len(labels))]
    ticks = fitting(middles, [max(t.split("\n"), key=text_width) for t in labels], gap=0.02)
    axes.set_xticks(ticks, [labels[i] for i in ticks])


def _title(axis: str) -> str:
    return {"dim": "dimension", "n": "N", "k": "K"}.get(axis, axis.replace("_", " "))


def _colour_bar(page: Page, shades: ScalarMappable) -> None:
    """A colour bar under the last row, if cells are too small for their numbers."""
    high = page.figure.get_figheight()
    under = page.axes[-1].get_position().y0 * high - BELOW
    box = (LEFT / style.width(), (under - 0.14) / high, 0.5, 0.09 / high)
    bar = page.figure.colorbar(shades, cax=page.figure.add_axes(box), orientation="horizontal")
    bar.outline.set_visible(False)
    bar.ax.xaxis.set_major_formatter(lambda value, _: number_text(value))
    bar.set_label("ps for each point × cluster × dimension")


def _limit(axes, xs: list[int], ups: list[int], x: str) -> None:
    """The border between the cells that luigi's formula allows and the others."""

    def allowed(at: int, up: int) -> bool:
        k, dim = (up, at) if x == "dim" else (at, up)
        return k * (1 + 2 * dim) <= SHARED_WORDS

    edge = [sum(allowed(at, up) for up in ups) - 0.5 for at in xs]
    across = np.repeat(np.arange(len(xs) + 1) - 0.5, 2)[1:-1]
    ys = np.repeat(edge, 2)
    if math.isclose(min(ys), len(ups) - 0.5):
        return  # every cell is allowed
    axes.plot(across, ys, color="white", linewidth=3, zorder=3)
    axes.plot(across, ys, color="#D55E00", linewidth=1.6, zorder=3)
