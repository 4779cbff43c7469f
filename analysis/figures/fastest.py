"""fastest: the best version for each N and K, and how far it is from the best peer and floor."""

from __future__ import annotations

import itertools
import os

import numpy as np
import pandas as pd
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
from analysis.figures.page import Page
from analysis.figures.series import panel_title
from analysis.figures.typeset import break_label, text_width
from analysis.figures.x_axis import beside, map_axes, named, nothing_on_x, x_axis
from analysis.measures.families import CHOOSERS, CHOSEN_FROM, is_peer, repeats_another
from analysis.measures.points import Data, fastest, noisy_mark
from analysis.model.numbers import number_text

NAME = "fastest"
FILLS = [*style.COLOURS, "#F0E442", "#8C510A"]
"""The colours of areas. For areas, Okabe and Ito's yellow is not too light."""
SIZES = ["dim", "n", "k", "data", "batch"]
"""What makes problems differ, beside the precision and the axis on x. Seeds share a cell."""
TINT = 0.4
"""The opacity of a version's colour in its cells, so that black text is readable on all."""


def draw(data: Data, subject: Subject, x: str = "n") -> Drawing:
    """Draws, for each dim and precision, a map over N (or axis `x`) and K (or N, if K is on x) of
    the fastest version that is no peer. A cell has its time per iteration, and the best peer's time
    and the floor relative to it. A peer without an fp32 product takes part in fp32 with tf32."""
    name = named(NAME, x, "n")
    y = beside(x)[0]
    points = needing_no_baseline(data.points)
    ok = fastest(points[points[x].notna()], x)
    cell = list(dict.fromkeys(["machine", "panel", *SIZES, x]))
    precision = ok["precision"].where(ok["precision"].ne("tf32"), "fp32")
    ok = ok.assign(panel="" if x == "precision" else precision)
    peers = ok[is_peer(ok)]
    ours = ok.drop(index=peers.index)
    best = _least(ours[~repeats_another(ours, cell)], cell)
    peer = _least(peers, cell)[[*cell, "version", "iteration_ms"]]
    of = best.reset_index().merge(peer, how="left", on=cell, suffixes=("", "_of_peer"))
    best = of.set_index("index").rename(columns={"version_of_peer": "best_peer"})
    best["peer_over_it"] = best["iteration_ms_of_peer"] / best["iteration_ms"]
    best["times_the_floor"] = best["iteration_ms"] / best["floor_ms"].where(best["floor_ms"] > 0)
    rows = csv_rows(points, best.index)
    for column in ("best_peer", "peer_over_it", "times_the_floor"):
        rows[column] = best[column].reindex(rows.index)
    if best.empty:
        return Drawing(name, None, rows, nothing_to_draw(points, f"{name}.csv"))
    if x != "n" and (why := nothing_on_x(best, x)):
        return Drawing(name, None, rows, why)

    others = [c for c in ("precision", *SIZES, "machine") if c not in (x, y)]
    keys = [c for c in others if c == "dim" or best[c].nunique() > 1] or ["machine"]
    panels = list(best.groupby(keys, sort=True))
    titles = [", ".join(map(_title, keys, values, [of] * len(keys))) for values, of in panels]
    along = x_axis(best, x)
    xs, ys = along.values, x_axis(best, y).values
    left, right = 0.52, 0.12
    texts = {index: _numbers(row) for index, row in best.iterrows()}
    widest = max(text_width(w) for words in texts.values() for w in words)

    def room(columns: int) -> float:
        return (style.width() / columns - left - right) / len(xs) - 0.04

    def fits(columns: int) -> bool:
        return widest < room(columns)

    across = 2 if len(panels) > 1 and (fits(2) or not fits(1)) else 1
    written = fits(across)
    family = os.path.commonprefix([f"{v.split('_')[0]}_" for v in best["version"]])
    for index, version in best["version"].items():
        texts[index] = [
            *break_label(version.removeprefix(family), room(across)).split("\n"),
            *texts[index],
        ]
    lines = max(len(words) for words in texts.values())
    names = [v for v in dict.fromkeys(points["version"]) if v in set(best["version"])]
    # by its place among the versions shown, because not all versions of a run have own colours
    colours = dict(zip(names, itertools.cycle(FILLS), strict=False))
    square = {"marker": "s", "linestyle": "none", "fillstyle": "full", "alpha": TINT}
    page = Page(
        f"{subject.title}: the fastest of each {along.short} and {y.upper()}",
        subtitle(points, subject),
        small_print(points, best.index, _notes(best, ok, written, x), f"{name}.csv"),
        titles,
        across,
        (0.13 * lines + 0.08 if written else 0.22) * len(ys),
        left=left,
        right=right,
        below=0.42 + along.room(style.width() / across - left - right),
        legend=[(name, {"color": colour, **square}) for name, colour in colours.items()],
    )
    for (_, cells), axes in zip(panels, page.axes, strict=True):
        for index, row in cells.iterrows():
            at, up = xs.index(row[x]), ys.index(row[y])
            colour = colours[row["version"]]
            axes.add_patch(
                Rectangle((at - 0.5, up - 0.5), 1, 1, fc=colour, ec="white", alpha=TINT, lw=1)
            )
            if written:
                text = "\n".join(texts[index])
                axes.text(at, up, text, ha="center", va="center", color=style.INK)
        map_axes(axes, xs, ys)
        axes.set_xticks(range(len(xs)), along.names(page.axes_width))
    page.label_outer(along.short, y.upper())
    return Drawing(name, page.figure, rows)


def _title(column: str, value: object, of: pd.DataFrame) -> str:
    if column in ("precision", "machine"):
        return str(value).removeprefix("NVIDIA ")
    return panel_title([column], (value,), of)


def _least(points: pd.DataFrame, cell: list[str]) -> pd.DataFrame:
    return points.loc[points.groupby(cell, dropna=False, sort=False)["iteration_ms"].idxmin()]


def _numbers(row: pd.Series) -> list[str]:
    words = [f"{number_text(row['iteration_ms'])} ms{noisy_mark(row)}"]
    if np.isfinite(row["peer_over_it"]):
        words.append(f"peer {number_text(row['peer_over_it'])}×")
    if np.isfinite(row["times_the_floor"]):
        share = 100 / row["times_the_floor"]
        words.append(
            f"floor {share:.{2 if share < 100 else 3}g}%" if share < 1e3 else f"floor {share:,.0f}%"
        )
    return words


def _notes(best: pd.DataFrame, ok: pd.DataFrame, written: bool, x: str) -> list[str]:
    notes = [
        "Colour: the version with the least median time per iteration. Left out are peers, and a "
        "version that only chooses among others where what it chose was measured itself."
    ]
    if written:
        notes[0] += (
            " In a cell: that version, its time, the best peer's time as a multiple of it and the "
            "floor as a part of it."
        )
    if noise := noisy_note(best):
        notes.append(noise)
    unverified = int((~best["verified"].eq(True)).sum())
    if unverified:
        notes.append(f"Not verified: {unverified} of {len(best)} cells.")
    versions = set(ok["version"])
    notes += [_loss(ladder, ok, x) for ladder, name in CHOOSERS.items() if name in versions]
    return notes


def _loss(ladder: str, ok: pd.DataFrame, x: str) -> str:
    """How much time is lost by leaving the choice among a ladder's versions to its chooser."""
    chooser = CHOOSERS[ladder]
    cell = list(dict.fromkeys(["machine", "precision", *SIZES, x]))
    mine = ok["version"].eq(chooser)
    others = ok[ok["family"].isin(CHOSEN_FROM[ladder]) & ~mine]
    times = others.groupby(cell, dropna=False)["iteration_ms"].min()
    judged = ok[mine & repeats_another(ok, cell)]
    lost = (judged.set_index(cell)["iteration_ms"] / times).dropna()
    if lost.empty:
        return f"What {chooser} chose was measured itself in no cell."
    return (
        f"{chooser} takes {number_text(lost.median())} times as long as the fastest version that "
        f"it chooses from: the median of {len(lost)} cell{'' if len(lost) == 1 else 's'}; "
        f"{number_text(lost.max())} times at most."
    )
