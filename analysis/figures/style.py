"""One look for every figure: sizes, colours, number formats, page layout, label placement.

Figures are 7 in wide (a double column), text is at least 7 pt, and the files are the same bytes for
the same rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from analysis.model.files import replacing

WIDTH = 7.0
"""Inches: the text width of a two-column page."""

SMALL = 7.0
"""Points: the smallest text."""
TITLE = 9.0
PANEL_TITLE = 8.0

LINE = 0.128
"""Inches from one line of small text to the next."""
INK = "#222222"
GREY = "#666666"
FAINT = "#d9d9d9"

# Okabe & Ito 2008, without yellow (too light for a line) and with their black for last: told apart
# by every common kind of colour vision. Past the eighth line the dashes change.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F3C8D", "#000000"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "<"]
DASHES = ["-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1, 1, 1))]
RC = {
    "font.family": "DejaVu Sans",
    "font.size": SMALL,
    "axes.titlesize": PANEL_TITLE,
    "axes.titleweight": "bold",
    "axes.titlepad": 5,
    "axes.labelsize": SMALL,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.6,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.6,
    "svg.fonttype": "path",  # looks the same where the font is missing
    "svg.hashsalt": "lloydbench",
    "text.parse_math": False,  # a $ in a name is a $
    "savefig.dpi": 220,
}


@contextmanager
def look() -> Iterator[None]:
    """What is drawn and saved within looks like all figures; a letter that the font lacks is a box,
    and no warning."""
    with mpl.rc_context(RC), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+")
        yield


def version_styles(versions: list[str], variants: int = 1) -> list[list[dict]]:
    """Colour, marker and dashes for each version by its place, and for each of its variants."""
    looks = []
    for place in range(len(versions)):
        turn, hue = divmod(place, len(COLOURS))
        looks.append(
            [
                {
                    "color": COLOURS[hue],
                    "marker": MARKERS[(hue + turn) % len(MARKERS)],
                    "linestyle": DASHES[(turn + variant) % len(DASHES)],
                    "fillstyle": "none" if variant % 2 else "full",
                }
                for variant in range(variants)
            ]
        )
    return looks


def save(figure: Figure, stem: Path) -> list[Path]:
    """Writes stem.svg and stem.png without dates or versions, so that the same rows give the same
    bytes.
    """
    paths = [stem.with_name(stem.name + ending) for ending in (".svg", ".png")]
    with look():
        vector = {"Date": None, "Creator": None}
        replacing(paths[0], lambda file: figure.savefig(file, metadata=vector))
        replacing(paths[1], lambda file: figure.savefig(file, metadata={"Software": None}))
    return paths
