"""Every table of a run, as files."""

from __future__ import annotations

from pathlib import Path

from analysis.figures import csv_of
from analysis.measures.points import all_points
from analysis.model.files import RunError, folder_for, replacing
from analysis.model.run import Run
from analysis.pages import choices, converged, counted, regimes, tables
from analysis.pages.facts import facts
from analysis.pages.table import Table

SOME = (regimes.every_version, choices.choices, counted.phases, converged.convergence)
"""Those that only some runs have something for; the others refuse."""


def tables_of(run: Run) -> list[Table]:
    """Headline, medians, points without a result, environment, and those of SOME that it has."""
    points = all_points([run], run.baseline)
    known = [list(fact) for fact in facts(run) if fact[0] != "run directory"]
    every = [
        tables.headline(run, points),
        tables.medians(points, run.baseline),
        tables.missing(points),
        Table("environment", f"{run.title}: environment and method.", ["what", "value"], known),
    ]
    for make in SOME:
        try:
            every.append(make(run))
        except RunError:
            continue
    return [table for table in every if table.rows]


def write_tables(run: Run, folder: Path) -> list[Path]:
    """Writes NAME.md and NAME.tex of each table into `folder` (made with its parents), and
    NAME.csv of those that have unrounded values."""
    folder_for(folder)
    paths = []
    for table in tables_of(run):
        written = {".md": table.markdown(), ".tex": table.latex()}
        if table.values is not None:
            written[".csv"] = csv_of(table.values)
        for ending, text in written.items():
            path = folder / f"{table.name}{ending}"
            paths.append(replacing(path, lambda file, text=text: file.write_text(text, "utf-8")))
    return paths
