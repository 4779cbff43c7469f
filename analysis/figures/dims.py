"""dims: one map over dimension and K for each version, with the part that does not fit shaded.
Another axis may stand in the place of the dimension."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib import colormaps
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
from analysis.figures.x_axis import map_axes, named, x_axis
from analysis.measures.points import Data, fastest, noisy_mark
from analysis.model.numbers import count_text, number_text

NAME = "dims"
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
    ok = fastest(points, x)
    work = ok[["n", "k", "dim", "batch"]].astype(float).prod(axis=1)
    ok = ok.assign(ps_per_term=1e9 * ok["iteration_ms"] / work)
    # one cell per version, K and x: its fastest result, or the reason for none
    key = list(dict.fromkeys(["machine", "version", "precision", y, x]))
    ok = ok.sort_values("iteration_ms", kind="stable") if x != "dim" else ok
    bad = points[points["status"].ne("ok")].drop_duplicates(key)
    cells = pd.concat([ok, bad]).drop_duplicates(key)
    rows = csv_rows(points, cells.index)
    rows["ps_per_term"] = cells["ps_per_term"].reindex(rows.index)
    if ok.empty:
        return Drawing(figure_name, None, rows, nothing_to_draw(points, f"{figure_name}.csv"))
    cells = cells.assign(series=series_names(cells, x))
    names = list(dict.fromkeys(cells["series"]))
    along = x_axis(cells, x)
    ups, xs = x_axis(cells, y).values, along.values
    low, high = ok["ps_per_term"].min(), ok["ps_per_term"].max()
    norm = LogNorm(low, high if high > low else low * 1.01)
    across = columns_of_panels(1 if len(names) == 1 else 2 if len(names) <= 6 else 3, 0.64, 0.9)
    unfit = cells["status"].eq("unsupported")
    lost = ~unfit & cells["status"].ne("ok")
    left, right, below = 0.52, 0.12, 0.42
    width = (style.width() / across - left - right) / len(xs)
    widest = max(
        text_width(number_text(cell["ps_per_term"]) + noisy_mark(cell)) for _, cell in ok.iterrows()
    )
    numbered = widest < width - 0.04
    notes = [
        ("Numbers: p" if numbered else "Colours: p")
        + "icoseconds of an iteration for each point × cluster × dimension, at the fastest "
        "tunables (median). Darker is slower; every panel has the same colours."
        + (" Hatched: unsupported." if unfit.any() else "")
        + (" Crossed: no result for another reason." if lost.any() else "")
        + (_LINE if "dim" in (x, y) else ""),
    ]
    notes += [note for note in [noisy_note(ok)] if note]
    page = Page(
        f"{subject.title}: {_title(x)} against {_title(y)}",
        [
            *subtitle(points, subject),
            *(f"{_SHORT[size]} = {count_text(points[size].max())}" for size in fixed),
        ],
        small_print(points, cells.index, notes, f"{figure_name}.csv"),
        # titles are larger and bolder than the text that break_label() measures
        [break_label(name, (style.width() / across - left - 0.05) / 1.26) for name in names],
        across,
        min(max(0.19 * len(ups), 0.9), 2.6),
        left=left,
        right=right,
        below=below,
        last=0 if numbered else BAR,
    )
    colours = colormaps["cividis_r"]
    if not numbered:
        _colour_bar(page, ScalarMappable(norm, colours), below)
    for name, axes in zip(names, page.axes, strict=True):
        of = cells[cells["series"] == name]
        for _, cell in of.iterrows():
            at, up = xs.index(cell[x]), ups.index(cell[y])
            box = {"xy": (at - 0.5, up - 0.5), "width": 1, "height": 1, "linewidth": 0}
            if cell["status"] != "ok":
                hatch = "////" if cell["status"] == "unsupported" else "xx"
                axes.add_patch(
                    Rectangle(**box, facecolor="white", edgecolor="#999999", hatch=hatch)
                )
                continue
            shade = norm(cell["ps_per_term"])
            axes.add_patch(Rectangle(**box, facecolor=colours(shade)))
            if numbered:
                ink = "white" if shade > 0.5 else style.INK
                text = number_text(cell["ps_per_term"]) + noisy_mark(cell)
                axes.text(at, up, text, ha="center", va="center", color=ink)
        if "dim" in (x, y):
            _limit(axes, xs, ups, x)
        map_axes(axes, xs, ups)
        labels = [str(d) for d in xs] if x == "dim" else along.names(page.axes_width)
        middles = [(i + 0.5) * page.axes_width / len(xs) for i in range(len(xs))]
        ticks = fitting(middles, [max(t.split("\n"), key=text_width) for t in labels], gap=0.02)
        axes.set_xticks(ticks, [labels[i] for i in ticks])
    page.label_outer("dim" if x == "dim" else along.short, _SHORT[y])
    return Drawing(figure_name, page.figure, rows)


def _title(axis: str) -> str:
    return {"dim": "dimension", "n": "N", "k": "K"}.get(axis, axis.replace("_", " "))


def _colour_bar(page: Page, shades: ScalarMappable, below: float) -> None:
    """A colour bar under the last row, if cells are too small for their numbers."""
    high = page.figure.get_figheight()
    under = page.axes[-1].get_position().y0 * high - below
    box = (0.52 / style.width(), (under - 0.14) / high, 0.5, 0.09 / high)
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
