"""fastest: the best version for each N and K, and how far it is from the best peer and floor."""

from __future__ import annotations

import itertools
import os

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from analysis.figures import style
from analysis.figures.drawing import Drawing, Subject, csv_rows
from analysis.figures.looks import styles_in
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
from analysis.figures.x_axis import XAxis, beside, map_axes, named, nothing_on_x, x_axis
from analysis.measures.families import CHOOSERS, CHOSEN_FROM, is_peer, repeats_another
from analysis.measures.fastest import fastest
from analysis.measures.noise import noisy_mark
from analysis.measures.points import Data
from analysis.model.numbers import number_text

NAME = "fastest"
FILLS = [*style.COLOURS, "#F0E442", "#8C510A"]
"""The colours of areas. For areas, Okabe and Ito's yellow is not too light."""
SIZES = ["dim", "n", "k", "data", "batch"]
"""What makes problems differ, beside the precision and the axis on x. Seeds share a cell."""
TINT = 0.4
"""The opacity of a version's colour in its cells, so that black text is readable on all."""
LEFT, RIGHT = 0.52, 0.12
"""The inches beside the axes of a panel."""


def draw(data: Data, subject: Subject, x: str = "n") -> Drawing:
    """Draws, for each dim and precision, a map over N (or axis `x`) and K (or N, if K is on x) of
    the fastest version that is no peer. A cell has its time per iteration, and the best peer's time
    and the floor relative to it. A peer without an fp32 product takes part in fp32 with tf32."""
    name = named(NAME, x, "n")
    y = beside(x)[0]
    points = needing_no_baseline(data.points)
    ok = fastest(points[points[x].notna()], x)
    best = _best(ok, x)
    rows = csv_rows(points, best.index)
    for column in ("best_peer", "peer_over_it", "times_the_floor"):
        rows[column] = best[column].reindex(rows.index)
    if best.empty:
        return Drawing(name, None, rows, nothing_to_draw(points, f"{name}.csv"))
    if x != "n" and (why := nothing_on_x(best, x)):
        return Drawing(name, None, rows, why)

    keys = _panel_keys(best, x, y)
    panels = list(best.groupby(keys, sort=True))
    along, up = x_axis(best, x), x_axis(best, y)
    numbers = {index: _numbers(row) for index, row in best.iterrows()}
    across, written = _columns(len(panels), len(along.values), numbers)
    texts = _with_versions(numbers, best["version"], _room(across, len(along.values)))
    lines = max(len(words) for words in texts.values())
    colours = _colours(points, best, subject.baseline)
    square = {"marker": "s", "linestyle": "none", "fillstyle": "full", "alpha": TINT}
    page = Page(
        f"{subject.title}: the fastest of each {along.short} and {y.upper()}",
        subtitle(points, subject),
        small_print(points, best.index, _notes(best, ok, written, x), f"{name}.csv"),
        [", ".join(map(_title, keys, values, [of] * len(keys))) for values, of in panels],
        across,
        (0.13 * lines + 0.08 if written else 0.22) * len(up.values),
        left=LEFT,
        right=RIGHT,
        below=0.42 + along.room(style.width() / across - LEFT - RIGHT),
        legend=[(version, {"color": colour, **square}) for version, colour in colours.items()],
    )
    for (_, cells), axes in zip(panels, page.axes, strict=True):
        _draw_cells(axes, cells, along, up, colours, texts if written else {})
        map_axes(axes, along.values, up.values)
        axes.set_xticks(range(len(along.values)), along.names(page.axes_width))
    page.label_outer(along.short, y.upper())
    return Drawing(name, page.figure, rows)


def _best(ok: pd.DataFrame, x: str) -> pd.DataFrame:
    """The fastest point of each cell that is no peer's, with `best_peer`, `peer_over_it` (the
    peer's time over its own) and `times_the_floor`. `panel` is the precision, tf32 as fp32."""
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
    return best


def _panel_keys(best: pd.DataFrame, x: str, y: str) -> list[str]:
    """The columns that tell panels apart: dim, and each other one that has several values and is on
    no axis."""
    others = [c for c in ("precision", *SIZES, "machine") if c not in (x, y)]
    return [c for c in others if c == "dim" or best[c].nunique() > 1] or ["machine"]


def _columns(panels: int, cells: int, numbers: dict) -> tuple[int, bool]:
    """The columns of panels with `cells` cells in a row, and whether the numbers fit into these."""
    widest = max(text_width(word) for words in numbers.values() for word in words)
    fits = {columns: widest < _room(columns, cells) for columns in (1, 2)}
    columns = 2 if panels > 1 and (fits[2] or not fits[1]) else 1
    return columns, fits[columns]


def _room(columns: int, cells: int) -> float:
    """The width in inches of the text in one of `cells` cells side by side in a panel."""
    return (style.width() / columns - LEFT - RIGHT) / cells - 0.04


def _with_versions(numbers: dict, versions: pd.Series, room: float) -> dict:
    """The lines of each cell: the version, without the prefix that all share, and its numbers."""
    family = os.path.commonprefix([f"{version.split('_')[0]}_" for version in versions])
    return {
        index: [*break_label(version.removeprefix(family), room).split("\n"), *numbers[index]]
        for index, version in versions.items()
    }


def _colours(points: pd.DataFrame, best: pd.DataFrame, baseline: str) -> dict[str, str]:
    """A colour for each version of `best`, the one that it has in other figures. Cells have no
    markers, so of two versions with one colour only that with fewer dashes has it. The other has
    one that is left, and so has the baseline, which is grey elsewhere."""
    looks = styles_in(points, baseline)
    names = [v for v in dict.fromkeys(points["version"]) if v in set(best["version"])]
    known = [looks[name][0] | {"name": name} for name in names if name in looks]
    first: dict[str, str] = {}
    for look in sorted(known, key=lambda look: style.DASHES.index(look["linestyle"])):
        first.setdefault(look["color"], look["name"])
    left = itertools.cycle([fill for fill in FILLS if fill not in first] or FILLS)
    own = {name: colour for colour, name in first.items()}
    return {name: own.get(name) or next(left) for name in names}


def _draw_cells(
    axes: Axes, cells: pd.DataFrame, along: XAxis, up: XAxis, colours: dict[str, str], texts: dict
) -> None:
    """Draws a cell in its version's colour, with its lines in `texts`, if any."""
    for index, row in cells.iterrows():
        at, height = along.values.index(row[along.name]), up.values.index(row[up.name])
        colour = colours[row["version"]]
        axes.add_patch(
            Rectangle((at - 0.5, height - 0.5), 1, 1, fc=colour, ec="white", alpha=TINT, lw=1)
        )
        if index in texts:
            text = "\n".join(texts[index])
            axes.text(at, height, text, ha="center", va="center", color=style.INK)


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
        notes[0] += f" In a cell: {_words_of_cells(best)}."
    if noise := noisy_note(best):
        notes.append(noise)
    unverified = int((~best["verified"].eq(True)).sum())
    if unverified:
        notes.append(f"Not verified: {unverified} of {len(best)} cells.")
    versions = set(ok["version"])
    notes += [_loss(ladder, ok, x) for ladder, name in CHOOSERS.items() if name in versions]
    return notes


def _words_of_cells(best: pd.DataFrame) -> str:
    """What `_numbers` gives in at least one cell."""
    words = ["that version", "its time"]
    if np.isfinite(best["peer_over_it"]).any():
        words.append("the best peer's time as a multiple of it")
    if np.isfinite(best["times_the_floor"]).any():
        words.append("the floor as a part of it")
    return f"{', '.join(words[:-1])} and {words[-1]}"


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
