"""The figures: one module each, whose name is the spec's, the file's and the command line's."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import matplotlib as mpl

from analysis.derive import Data
from analysis.draw.common import Drawing, Subject
from analysis.style import RC, save

_NAMES = Path(__file__).resolve().parents[1] / "figures.inc"
FIGURES: dict[str, Callable[[Data, Subject], Drawing]] = {
    name: import_module(f"analysis.draw.{name}").draw
    for name in re.findall(r'"(\w+)"', _NAMES.read_text(encoding="utf-8"))
}
"""The figures by name, in the report's order: the list that the program's spec reader has too."""


def draw(name: str, data: Data, subject: Subject) -> Drawing:
    """Draws figure `name` (a key of FIGURES)."""
    with mpl.rc_context(RC):
        return FIGURES[name](data, subject)


def write(drawing: Drawing, folder: Path) -> list[Path]:
    """Writes NAME.svg, NAME.png and NAME.csv into `folder` (made with its parents); returns their
    paths.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = save(drawing.figure, folder / drawing.name)
    table = folder / f"{drawing.name}.csv"
    drawing.rows.to_csv(table, index=False, lineterminator="\n")
    return [*paths, table]
