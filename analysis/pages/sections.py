"""What a report holds, before it is written as HTML."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from analysis.measures.claims import UNJUDGED, Judgment
from analysis.measures.published import Number
from analysis.measures.studies import Study
from analysis.pages.table import Table
from analysis.pages.tables import PublishedTable


@dataclass(frozen=True)
class Entry:
    """What the index says of a run. `own`: it is none of those that the project has recorded."""

    folder: str
    path: Path
    title: str
    environment: str
    own: bool


@dataclass(frozen=True)
class Figure:
    """A figure of a run: the picture, the text that stands for it, and its rows. `message` says why
    one is not drawn; it has no picture."""

    name: str
    picture: Markup | str = ""
    finding: str = ""
    csv: str = ""
    message: str = ""


@dataclass(frozen=True)
class Row:
    """A point in the table of a page: its number there, what a link finds it by, its cells."""

    number: int
    at: str
    cells: list[str]


@dataclass(frozen=True)
class RunPage:
    """What the report says of one run. `chart` is for templates/explore.js."""

    entry: Entry
    facts: list[tuple[str, str]]
    command: str
    warnings: list[str]
    figures: list[Figure]
    points: int
    baseline: str
    header: list[str]
    rows: list[Row]
    oversubscribed: str
    noise: str
    noisy: list[list[str]]
    missing: list[list[str]]
    convergence: Table | None
    chart: dict


@dataclass(frozen=True)
class Result:
    """What came of a run, for the index: points, points with a result, noisy ones, figures."""

    points: int
    ok: int
    noisy: int
    figures: list[str]


@dataclass(frozen=True)
class StudyResult:
    """A study's numbers beside the runs', and its claims."""

    study: Study
    tables: list[PublishedTable]
    numbers: list[Number]
    judged: list[Judgment]

    @property
    def answered(self) -> int:
        """How many of its numbers and claims some row answers."""
        numbers = sum(number.quantity_here is not None for number in self.numbers)
        return numbers + sum(judgment.verdict != UNJUDGED for judgment in self.judged)


@dataclass(frozen=True)
class Report:
    """What the index says. `machines` are title and folder of the specs that ran on several
    machines. `unread` are the directories that could not be read, and why."""

    command: str
    runs: list[tuple[Entry, Result]]
    machines: list[tuple[str, str]]
    studies: list[StudyResult]
    unread: list[str]

    @property
    def judged(self) -> list[Judgment]:
        return [judgment for study in self.studies for judgment in study.judged]
