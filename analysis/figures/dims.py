"""dims: one map over dimension and K for each version, with the part that does not fit shaded."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.patches import Rectangle

from analysis.figures import style
from analysis.figures.drawing import Drawing, Subject, csv_rows
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
from analysis.measures.points import Data, fastest, noisy_mark
from analysis.model.numbers import count_text, number_text

NAME = "dims"
BAR = 0.5  # inches for the colour bar
SHARED_WORDS = 4096
"""The study's K <= 4096 / (1 + 2 dim) for its v3 and v4, which keep 2 dim K floats and K counts in
shared memory. Its own 4 K (1 + 2 dim) <= 49,152 bytes gives three times that."""


def draw(data: Data, subject: Subject) -> Drawing:
    """Draws, for each version, the time per iteration divided by N K dim, over K and dim. Cells of
    unsupported points are hatched. There is one row for each version × K × dim, at its fastest
    tunables."""
    points = needing_no_baseline(data.points)
    if points["dim"].nunique() < 2 or points["k"].nunique() < 2:
        rows = csv_rows(points, points.index[:0])
        return Drawing(NAME, None, rows, "a map needs two or more K and two or more dim")
    points = points[points["n"].eq(points["n"].max())]
    ok = fastest(points)
    work = ok[["n", "k", "dim", "batch"]].astype(float).prod(axis=1)
    ok = ok.assign(ps_per_term=1e9 * ok["iteration_ms"] / work)
    # one cell per version, K and dim: its fastest result, or the reason for none
    key = ["machine", "version", "precision", "k", "dim"]
    bad = points[points["status"].ne("ok")].drop_duplicates(key)
    cells = pd.concat([ok, bad]).drop_duplicates(key)
    rows = csv_rows(points, cells.index)
    rows["ps_per_term"] = cells["ps_per_term"].reindex(rows.index)
    if ok.empty:
        return Drawing(NAME, None, rows, nothing_to_draw(points, f"{NAME}.csv"))
    cells = cells.assign(series=series_names(cells))
    names = list(dict.fromkeys(cells["series"]))
    ks, dims = (sorted(int(v) for v in cells[c].unique()) for c in ("k", "dim"))
    low, high = ok["ps_per_term"].min(), ok["ps_per_term"].max()
    norm = LogNorm(low, high if high > low else low * 1.01)
    across = columns_of_panels(1 if len(names) == 1 else 2 if len(names) <= 6 else 3, 0.64, 0.9)
    unfit = cells["status"].eq("unsupported")
    lost = ~unfit & cells["status"].ne("ok")
    left, right, below = 0.52, 0.12, 0.42
    width = (style.width() / across - left - right) / len(dims)
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
        + " Line: K = 4096 / (1 + 2 dim), luigi's limit as printed; 48 KB hold three times that.",
    ]
    notes += [note for note in [noisy_note(ok)] if note]
    page = Page(
        f"{subject.title}: dimension against K",
        [*subtitle(points, subject), f"N = {count_text(points['n'].max())}"],
        small_print(points, cells.index, notes, f"{NAME}.csv"),
        # titles are larger and bolder than the text that break_label() measures
        [break_label(name, (style.width() / across - left - 0.05) / 1.26) for name in names],
        across,
        min(max(0.19 * len(ks), 0.9), 2.6),
        left=left,
        right=right,
        below=below,
        last=0 if numbered else BAR,
    )
    colours = colormaps["cividis_r"]
    if not numbered:
        _colour_bar(page, ScalarMappable(norm, colours), below)
    for place, (name, axes) in enumerate(zip(names, page.axes, strict=True)):
        of = cells[cells["series"] == name]
        for _, cell in of.iterrows():
            x, y = dims.index(int(cell["dim"])), ks.index(int(cell["k"]))
            box = {"xy": (x - 0.5, y - 0.5), "width": 1, "height": 1, "linewidth": 0}
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
                axes.text(x, y, text, ha="center", va="center", color=ink)
        _limit(axes, ks, dims)
        axes.set_xlim(-0.5, len(dims) - 0.5)
        axes.set_ylim(-0.5, len(ks) - 0.5)
        at = [(x + 0.5) * page.axes_width / len(dims) for x in range(len(dims))]
        ticks = fitting(at, [str(d) for d in dims], gap=0.02)
        axes.set_xticks(ticks, [str(dims[x]) for x in ticks])
        axes.set_yticks(range(len(ks)), [count_text(k) for k in ks])
        axes.grid(visible=False)
        axes.tick_params(length=0)
        if place % across == 0:
            axes.set_ylabel("K")
        if place + across >= len(names):
            axes.set_xlabel("dim")
    return Drawing(NAME, page.figure, rows)


def _colour_bar(page: Page, shades: ScalarMappable, below: float) -> None:
    """A colour bar under the last row, if cells are too small for their numbers."""
    high = page.figure.get_figheight()
    under = page.axes[-1].get_position().y0 * high - below
    box = (0.52 / style.width(), (under - 0.14) / high, 0.5, 0.09 / high)
    bar = page.figure.colorbar(shades, cax=page.figure.add_axes(box), orientation="horizontal")
    bar.outline.set_visible(False)
    bar.ax.xaxis.set_major_formatter(lambda value, _: number_text(value))
    bar.set_label("ps for each point × cluster × dimension")


def _limit(axes, ks: list[int], dims: list[int]) -> None:
    """The border between the cells that luigi's formula allows and the others."""
    edge = [sum(k * (1 + 2 * d) <= SHARED_WORDS for k in ks) - 0.5 for d in dims]
    xs = np.repeat(np.arange(len(dims) + 1) - 0.5, 2)[1:-1]
    ys = np.repeat(edge, 2)
    if math.isclose(min(ys), len(ks) - 0.5):
        return  # every cell is allowed
    axes.plot(xs, ys, color="white", linewidth=3, zorder=3)
    axes.plot(xs, ys, color="#D55E00", linewidth=1.6, zorder=3)
