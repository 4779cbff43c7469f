"""The figures: one module each, whose name is the spec's, the file's and the command line's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import pandas as pd

from analysis.draw import speedup, tpb
from analysis.draw.common import Drawing, Subject
from analysis.style import RC, save

FIGURES: dict[str, Callable[[pd.DataFrame, Subject], Drawing]] = {
    "speedup": speedup.draw,
    "tpb": tpb.draw,
}


def draw(name: str, points: pd.DataFrame, subject: Subject) -> Drawing:
    """Draws figure `name` (a key of FIGURES) of `points` (see derive.all_points)."""
    with mpl.rc_context(RC):
        return FIGURES[name](points, subject)


def write(drawing: Drawing, folder: Path) -> list[Path]:
    """Writes NAME.svg, NAME.png and NAME.csv into `folder` (made with its parents); returns their
    paths.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = save(drawing.figure, folder / drawing.name)
    table = folder / f"{drawing.name}.csv"
    drawing.rows.to_csv(table, index=False, lineterminator="\n")
    return [*paths, table]
