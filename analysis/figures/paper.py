"""The width of a figure for a paper."""

from __future__ import annotations

from typing import NamedTuple

from analysis.model.files import RunError

POINTS = 72.27
"""TeX's points in an inch."""


class Widths(NamedTuple):
    """The widths of column and page of a document class in TeX's points, and their source."""

    column: float
    text: float
    source: str


CLASSES = {
    "acmart": Widths(241.1475, 506.295, "acmart.cls 1.88, sigconf: 8.5in - 2 × 54pt, two columns"),
    "IEEEtran": Widths(252.0, 516.0, "IEEEtran.cls 1.8b: 21pc and 43pc"),
    "llncs": Widths(347.12354, 347.12354, "llncs.cls 2.22: 12.2cm, one column"),
    "article": Widths(345.0, 345.0, "LaTeX's article, 10pt, letter or A4, one column"),
}
NARROWEST, WIDEST = 2.5, 14.0
HIGHEST = 9.0
"""The highest figure that fits a page of letter or A4 paper, in inches."""


class Paper(NamedTuple):
    """The width of a figure for a paper in inches, and its environment."""

    width: float | None = None
    environment: str = ""


def paper_for(asked: str | None, of_class: str | None) -> Paper:
    """The paper that `--width` and `--class` describe, or an empty one without either. Raises
    RunError for an invalid width."""
    if asked is None and of_class is None:
        return Paper()
    if of_class is not None and of_class not in CLASSES:
        raise RunError(f"--class: unknown class '{of_class}'; there are {', '.join(CLASSES)}")
    if asked in (None, "column", "text"):
        if of_class is None:
            raise RunError(f"--width {asked}: of which class? add --class {'|'.join(CLASSES)}")
        widths = CLASSES[of_class]
        both = asked == "text" and widths.text > widths.column
        points = widths.text if both else widths.column
        return Paper(points / POINTS, "figure*" if both else "figure")
    try:
        inches = float(asked)
    except ValueError:
        raise RunError(f"--width: '{asked}' is not column, text or a number of inches") from None
    if not NARROWEST <= inches <= WIDEST:
        raise RunError(f"--width: {inches:g} inches; from {NARROWEST:g} to {WIDEST:g} can be drawn")
    return Paper(inches, "figure")
