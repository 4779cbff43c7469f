"""The figures: one module each, whose name is the spec's, the file's and the command line's."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from analysis.figures.drawing import Drawing, Subject
from analysis.figures.names import Names
from analysis.figures.style import look, save
from analysis.measures.points import Data
from analysis.model.files import folder_for, replacing

_NAMES = Path(__file__).resolve().parents[1] / "figures.inc"
FIGURES: dict[str, Callable[[Data, Subject], Drawing]] = {
    name: import_module(f"analysis.figures.{name}").draw
    for name in re.findall(r'"(\w+)"', _NAMES.read_text(encoding="utf-8"))
}
"""The figures by name, in the report's order: the list that the program's spec reader has too."""


def draw(name: str, data: Data, subject: Subject) -> Drawing:
    """Draws figure `name` (a key of FIGURES)."""
    names = Names(data, subject)
    with look():
        return names.whole(FIGURES[name](*names.given()))


def write(drawing: Drawing, folder: Path) -> list[Path]:
    """Writes NAME.svg, NAME.png and NAME.csv into `folder` (made with its parents); returns their
    paths.
    """
    folder_for(folder)
    paths = save(drawing.figure, folder / drawing.name)
    table = folder / f"{drawing.name}.csv"
    rows = drawing.rows.copy()
    for column in rows.columns[rows.dtypes.eq(object)]:
        rows[column] = rows[column].map(_inert)
    replacing(table, lambda file: rows.to_csv(file, index=False, lineterminator="\n"))
    return [*paths, table]


def _inert(cell: object) -> object:
    """A text that a spreadsheet would take for a formula, behind an apostrophe."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@")) else cell
