"""The figures, with one module each. Its name is used in specs, files and options."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pandas as pd

from analysis.figures import pgf
from analysis.figures.drawing import Drawing, Subject
from analysis.figures.names import Names
from analysis.figures.series import source_texts
from analysis.figures.style import look, save
from analysis.figures.x_axis import CHOICES
from analysis.measures.points import Data
from analysis.measures.speedups import named_baseline
from analysis.model.files import folder_for, replacing

_NAMES = Path(__file__).resolve().parents[2] / "experiments" / "spec" / "figures.inc"
_TABLE = re.findall(r'^LLOYD_FIGURE\((\w+), "(\w*)"\)', _NAMES.read_text("utf-8"), re.MULTILINE)
FIGURES: dict[str, Callable[..., Drawing]] = {
    name: import_module(f"analysis.figures.{name}").draw for name, _ in _TABLE
}
"""The figures by name, in the report's order. The program's spec reader uses the same list."""
X_OF = {name: x for name, x in _TABLE if x}
"""What the figures have on x that may have an axis there: `speedup:k` is speedup over K."""


def wrong_name(name: str) -> str:
    """Why `name` means no figure, with what was probably meant. Empty if it means one."""
    figure, colon, x = name.partition(":")
    if figure not in FIGURES:
        return f"unknown figure '{figure}'; {_meant(figure, list(FIGURES))}"
    if colon and figure not in X_OF:
        return f"'{figure}' has no axis on x that can be chosen; {', '.join(X_OF)} have one"
    if colon and x not in CHOICES:
        return f"unknown axis '{x}' of '{figure}'; {_meant(x, CHOICES)}"
    return ""


def _meant(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean '{close[0]}'?" if close else f"there are {', '.join(known)}"


FORMATS = ("svg", "png", "pdf", "pgf")


def draw(name: str, data: Data, subject: Subject, paper: float | None = None) -> Drawing:
    """Draws figure `name` (see wrong_name). With `paper`, the figure is that many inches wide,
    and its title and small print are left to a caption."""
    figure, _, x = name.partition(":")
    if not x:
        return draw_by(FIGURES[figure], data, subject, paper)
    points = data.points
    if x == "data":
        data = replace(data, points=points.assign(data=source_texts(points)))
    drawing = draw_by(lambda *given: FIGURES[figure](*given, x), data, subject, paper)
    if x == "data":  # in its rows with the whole description, as in those of other figures
        whole = dict(
            zip(zip(points["machine"], points["point"], strict=True), points["data"], strict=True)
        )
        rows = drawing.rows
        keys = zip(rows["machine"], rows["point"], strict=True)
        drawing = replace(drawing, rows=rows.assign(data=[whole.get(key) for key in keys]))
    return drawing


def draw_by(
    make: Callable[[Data, Subject], Drawing],
    data: Data,
    subject: Subject,
    paper: float | None = None,
) -> Drawing:
    """What `make` draws of `data` under names that fit into a figure."""
    subject = replace(subject, baseline=named_baseline(data.points, subject.baseline))
    names = Names(data, subject)
    with look(paper):
        return names.whole(make(*names.given()))


def write(
    drawing: Drawing, folder: Path, formats: Sequence[str] = ("svg", "png"), environment: str = ""
) -> list[Path]:
    """Writes NAME in the `formats` (see FORMATS) and NAME.csv into `folder` (made with its
    parents); with `environment` (figure or figure*) also NAME.tex, which has it and the caption.
    Returns the paths.
    """
    folder_for(folder)
    paths = []
    for ending in formats:
        if ending == "pgf":
            paths += pgf.write(drawing.figure, folder / drawing.name)
        else:
            paths.append(save(drawing.figure, folder / drawing.name, ending))
    if environment:
        text = pgf.floating(drawing.figure, drawing.name, formats, environment)
        file = folder / f"{drawing.name}.tex"
        paths.append(replacing(file, lambda beside: beside.write_text(text, "utf-8")))
    table = folder / f"{drawing.name}.csv"
    replacing(table, lambda file: file.write_text(csv_text(drawing), encoding="utf-8"))
    return [*paths, table]


def csv_text(drawing: Drawing) -> str:
    """The rows of a figure as they stand in its CSV."""
    return csv_of(drawing.rows)


def csv_of(rows: pd.DataFrame) -> str:
    """Rows as CSV."""
    rows = rows.copy()
    for column in rows.columns[rows.dtypes.eq(object)]:
        rows[column] = rows[column].map(_inert)
    return rows.to_csv(index=False, lineterminator="\n")


def _inert(cell: object) -> object:
    """Puts an apostrophe before a text that a spreadsheet would read as a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@")) else cell
