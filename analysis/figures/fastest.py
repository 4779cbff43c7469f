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
from analysis.figures.typeset import break_label, text_width
from analysis.measures.families import CHOOSERS, PEER
from analysis.measures.points import Data, fastest, noisy_mark
from analysis.model.numbers import count_text, number_text

NAME = "fastest"
FILLS = [*style.COLOURS, "#F0E442", "#8C510A"]
"""The colours of areas. For areas, Okabe and Ito's yellow is not too light."""
TINT = 0.4
"""The opacity of a version's colour in its cells, so that black text is readable on all."""


def draw(data: Data, subject: Subject) -> Drawing:
    """Draws, for each dim and precision, a map over N and K of the fastest version that is no peer.
    A cell has its time per iteration, and the best peer's time and the floor relative to it. A peer
    without an fp32 product takes part in fp32 with tf32."""
    points = needing_no_baseline(data.points)
    ok = fastest(points)
    cell = ["machine", "dim", "panel", "data", "n", "k"]
    ok = ok.assign(panel=ok["precision"].where(ok["precision"].ne("tf32"), "fp32"))
    peers = ok[ok["version"].str.startswith(f"{PEER}_")]
    ours = ok.drop(index=peers.index)
    best = _least(ours[~ours["version"].isin(CHOOSERS.values())], cell)
    peer = _least(peers, cell)[[*cell, "version", "iteration_ms"]]
    of = best.reset_index().merge(peer, how="left", on=cell, suffixes=("", "_of_peer"))
    best = of.set_index("index").rename(columns={"version_of_peer": "best_peer"})
    best["peer_over_it"] = best["iteration_ms_of_peer"] / best["iteration_ms"]
    best["times_the_floor"] = best["iteration_ms"] / best["floor_ms"].where(best["floor_ms"] > 0)
    rows = csv_rows(points, best.index)
    for column in ("best_peer", "peer_over_it", "times_the_floor"):
        rows[column] = best[column].reindex(rows.index)
    if best.empty:
        return Drawing(NAME, None, rows, nothing_to_draw(points, f"{NAME}.csv"))

    several = [c for c in ("precision", "data", "machine") if best[c].nunique() > 1]
    panels = list(best.groupby(["dim", *several], sort=True))
    titles = [
        ", ".join([f"dim {key[0]}", *(str(v).removeprefix("NVIDIA ") for v in key[1:])])
        for key, _ in panels
    ]
    ns, ks = (sorted(int(v) for v in best[c].unique()) for c in ("n", "k"))
    left, right = 0.52, 0.12
    texts = {index: _numbers(row) for index, row in best.iterrows()}
    widest = max(text_width(w) for words in texts.values() for w in words)

    def room(columns: int) -> float:
        return (style.width() / columns - left - right) / len(ns) - 0.04

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
        f"{subject.title}: the fastest of each N and K",
        subtitle(points, subject),
        small_print(points, best.index, _notes(best, ok, written), f"{NAME}.csv"),
        titles,
        across,
        (0.13 * lines + 0.08 if written else 0.22) * len(ks),
        left=left,
        right=right,
        below=0.42,
        legend=[(name, {"color": colour, **square}) for name, colour in colours.items()],
    )
    for place, ((_, cells), axes) in enumerate(zip(panels, page.axes, strict=True)):
        for index, row in cells.iterrows():
            x, y = ns.index(int(row["n"])), ks.index(int(row["k"]))
            colour = colours[row["version"]]
            axes.add_patch(
                Rectangle((x - 0.5, y - 0.5), 1, 1, fc=colour, ec="white", alpha=TINT, lw=1)
            )
            if written:
                text = "\n".join(texts[index])
                axes.text(x, y, text, ha="center", va="center", color=style.INK)
        axes.set_xlim(-0.5, len(ns) - 0.5)
        axes.set_ylim(-0.5, len(ks) - 0.5)
        axes.set_xticks(range(len(ns)), [count_text(n) for n in ns])
        axes.set_yticks(range(len(ks)), [count_text(k) for k in ks])
        axes.grid(visible=False)
        axes.tick_params(length=0)
        if place % across == 0:
            axes.set_ylabel("K")
        if place + across >= len(panels):
            axes.set_xlabel("N")
    return Drawing(NAME, page.figure, rows)


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


def _notes(best: pd.DataFrame, ok: pd.DataFrame, written: bool) -> list[str]:
    notes = [
        "Colour: the version with the least median time per iteration, peers and what only chooses "
        "among the others left out."
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
    notes += [_loss(name, best, ok) for name in CHOOSERS.values() if name in versions]
    return notes


def _loss(chooser: str, best: pd.DataFrame, ok: pd.DataFrame) -> str:
    """How much time is lost by leaving the choice to the chooser."""
    cell = ["machine", "dim", "precision", "data", "n", "k"]
    auto = ok[ok["version"].eq(chooser)].set_index(cell)["iteration_ms"]
    lost = (auto / best.set_index(cell)["iteration_ms"]).dropna()
    return (
        f"{chooser} takes {100 * (lost.median() - 1):.1f}% longer than the fastest in the median "
        f"of {len(lost)} cells, {100 * (lost.max() - 1):.1f}% at most."
    )
