"""The rows of a run for the chart of its page, which templates/explore.js draws with Bokeh."""

from __future__ import annotations

from importlib import resources

import numpy as np
import pandas as pd

from analysis.figures.looks import styles_in
from analysis.figures.style import COLOURS, DASHES, MARKERS
from analysis.measures.noise import noisy_mark
from analysis.measures.speedups import has_several_baselines
from analysis.model.words import AXES

_MARKS = ["circle", "square", "triangle", "diamond", "inverted_triangle", "plus", "x", "hex"]
"""MARKERS as Bokeh calls them, or what comes near."""
_LINES = ["solid", "dashed", "dotted", "dotdash"]
"""DASHES as Bokeh calls them."""


def bokeh_scripts() -> list[str]:
    """The scripts of Bokeh that the chart needs; none where it is not installed."""
    try:
        folder = resources.files("bokeh") / "server" / "static" / "js"
        return [(folder / f"{name}.min.js").read_text("utf-8") for name in ("bokeh", "bokeh-api")]
    except (ModuleNotFoundError, OSError):
        return []


def chart(points: pd.DataFrame, numbers: dict[int, int], baseline: str) -> dict:
    """Every point with a result, column by column, with its number in the page's table and how its
    version looks."""
    ok = points.loc[list(numbers)]
    columns = {"row": [numbers[index] for index in ok.index], "version": list(ok["version"])}
    for name in ("n", "k", "dim", *AXES):
        columns[name] = [None if pd.isna(value) else int(value) for value in ok[name]]
    for name in ("precision", "data"):
        columns[name] = [str(value) for value in ok[name]]
    for name, of in _quantities(ok).items():
        columns[name] = [float(f"{v:.6g}") if np.isfinite(v) else None for v in of.astype(float)]
    if has_several_baselines(ok):
        columns["over"] = list(ok["baseline"])
    columns["samples"] = [int(count) for count in ok["samples"]]
    columns["noisy"] = [bool(noisy_mark(point)) for _, point in ok.iterrows()]
    used = {name: of for name, of in columns.items() if any(v is not None for v in of)}
    return {"baseline": baseline, "looks": _looks(points, baseline), "axes": AXES, "columns": used}


def _quantities(ok: pd.DataFrame) -> dict[str, pd.Series]:
    """What can be drawn, each with the ends of its interval."""
    low, mid, high = (ok[f"iteration_ms{end}"] for end in ("_low", "", "_high"))
    floor = ok["floor_ms"].where(ok["floor_ms"].gt(0))
    return {
        **{"ms": mid, "ms_low": low, "ms_high": high},
        **{"speedup": ok["speedup"], "speedup_low": ok["speedup_low"]},
        **{"speedup_high": ok["speedup_high"]},
        **{"floor": mid / floor, "floor_low": low / floor, "floor_high": high / floor},
        "noise": 50 * (high - low) / mid,
    }


def _looks(points: pd.DataFrame, baseline: str) -> dict[str, dict]:
    """Colour (a variable of the page's), mark and line of each version, as in the figures."""
    looks = {}
    for version, (look,) in styles_in(points, baseline).items():
        looks[version] = {
            "colour": f"hue{COLOURS.index(look['color'])}",
            "mark": _MARKS[MARKERS.index(look["marker"])],
            "line": _LINES[DASHES.index(look["linestyle"])],
        }
    if baseline in set(points["version"]):
        looks[baseline] = {"colour": "grey", "mark": "circle", "line": "dashed"}
    return looks
