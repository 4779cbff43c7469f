"""A run as its page of the report has it."""

from __future__ import annotations

import pandas as pd

from analysis.figures import FIGURES, csv_text, draw, wrong_name
from analysis.figures.drawing import Subject
from analysis.measures.noise import noise_note, oversubscribed_note, reasons_of, worst_of_each_kind
from analysis.measures.points import Data, gather
from analysis.measures.speedups import baseline_chosen_text, named_baseline
from analysis.model.files import RunError
from analysis.model.run import Run
from analysis.model.words import AXES
from analysis.pages import converged, tables
from analysis.pages.chart import chart
from analysis.pages.facts import facts, rerun_command
from analysis.pages.findings import finding
from analysis.pages.pictures import inline
from analysis.pages.sections import Entry, Figure, Result, Row, RunPage
from analysis.pages.table import Table

NAMED_POINTS = 3
"""More points without a result, for one reason, are counted."""


def run_page(run: Run, entry: Entry) -> RunPage:
    """Draws every figure of the run and collects what its page says."""
    data = gather([run], run.baseline)
    points = data.points
    header, cells = tables.every_point_cells(points)
    numbers = {index: place for place, index in enumerate(cells)}
    missing = points[~points["status"].eq("ok")]
    return RunPage(
        entry,
        facts(run),
        rerun_command(run),
        [
            warning.replace(f"{run.path}/", "").replace(f"{run.path}: ", "")
            for warning in run.warnings
        ],
        [figure_of(name, data, run) for name in _figures_of(run)],
        len(points),
        baseline_chosen_text(points, run.baseline),
        header,
        [Row(numbers[index], _at(points.loc[index]), words) for index, words in cells.items()],
        oversubscribed_note(points),
        noise_note(points),
        [
            [p["point"], f"{p['noisy_samples']} of {p['samples']}", _disturbed_by(p["noise"])]
            for _, p in points[points["noisy"].eq(True)].iterrows()
        ],
        _without_result(missing),
        _convergence(data, run),
        chart(points, numbers, named_baseline(points, run.baseline)),
    )


def result(page: RunPage) -> Result:
    drawn = [figure.name for figure in page.figures if figure.picture]
    return Result(page.points, len(page.rows), len(page.noisy), drawn)


def _convergence(data: Data, run: Run) -> Table | None:
    try:
        return converged.table_of(data, run)
    except RunError:
        return None


def _without_result(missing: pd.DataFrame) -> list[list[str]]:
    """A row for all points of one status and reason: their names, or their number if they are more
    than NAMED_POINTS; the status; the reason."""
    rows = []
    missing = missing.assign(reason=missing["reason"].fillna(""))
    for (status, reason), of in missing.groupby(["status", "reason"], sort=False):
        names = list(of["point"])
        if len(names) > NAMED_POINTS:
            names = [f"{len(names):,} points of {', '.join(dict.fromkeys(of['version']))}"]
        rows += [[name, status, reason] for name in names]
    return rows


def figures_asked(run: Run) -> list[str]:
    """The figures that the run's spec names."""
    return [name for name in run.spec.get("figures") or [] if not wrong_name(name)]


def _figures_of(run: Run) -> list[str]:
    """All figures, each followed by those of the spec that have another axis on x."""
    asked = [name for name in figures_asked(run) if ":" in name]
    order = list(FIGURES)
    return sorted([*FIGURES, *asked], key=lambda name: order.index(name.partition(":")[0]))


def figure_of(name: str, data: Data, run: Run, suffix: str = "") -> Figure:
    """A figure of the run. `suffix` sets its ids apart from those of the same figure of others."""
    about = Subject(run.title, [run.environment_line()], run.baseline)
    drawing = draw(name, data, about)
    if drawing.figure is None:
        return Figure(name, message=drawing.message.splitlines()[0])
    says = finding(name, drawing.rows, about.title)
    picture = inline(drawing.figure, drawing.name + suffix)
    return Figure(drawing.name, picture, says, csv_text(drawing))


def _disturbed_by(noise: object) -> str:
    """The worst of each kind, and how many different ones there are."""
    reasons = reasons_of([noise] if isinstance(noise, str) else [])
    worst = worst_of_each_kind(reasons)
    said = "; ".join(worst)
    return said if len(reasons) == len(worst) else f"at worst: {said} ({len(reasons):,} reasons)"


def _at(point: pd.Series) -> str:
    """`version=… n=… k=…`: what a link to the row, or the filter, asks for."""
    asked = ["version", "n", "k", "dim", "precision", *AXES]
    return " ".join(f"{name}={point[name]}" for name in asked if not pd.isna(point[name]))
