"""The names of axes and statuses, read from the tables that the program is compiled with."""

from __future__ import annotations

import re
from pathlib import Path

TABLES = Path(__file__).resolve().parents[2] / "kernels" / "core"


def _names(table: str, macro: str) -> list[str]:
    """The first argument of each line of the table that uses the macro."""
    text = (TABLES / table).read_text(encoding="utf-8")
    return re.findall(rf"^{macro}\((\w+),", text, re.MULTILINE)


LOWEST = {
    axis: int(low)
    for axis, low in re.findall(
        r"^LLOYD_TUNABLE\((\w+), [^,]+, (\d+),",
        (TABLES / "axes.inc").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
}
"""The least value of each axis that tunes a version."""
AXES = list(LOWEST)
"""The axes that tune a version. A row has null for an axis that its version does not use."""
PROBLEM_AXES = _names("axes.inc", "LLOYD_PROBLEM_AXIS")
INPUT_AXES = _names("axes.inc", "LLOYD_INPUT_AXIS")
"""The axes that say how points and initial centroids are drawn."""
GPU_AXES = _names("axes.inc", "LLOYD_GPU_AXIS")
"""Axes of words, which only versions that run on a GPU in the program's own process use."""
STATUSES = tuple(_names("statuses.inc", "LLOYD_STATUS"))
"""The results that a point can have."""
