"""What a report holds, before it is written as HTML and as Markdown."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.measures.claims import Judgment
from analysis.measures.published import Number


@dataclass(frozen=True)
class Figure:
    """A figure of a run; `stem` is its files' path below the report's folder without their
    endings, empty when it is not drawn: `message` says why."""

    name: str
    stem: str
    message: str


@dataclass(frozen=True)
class Section:
    """What the report says of one run. Tables are a header and rows of cells."""

    folder: str
    title: str
    environment: str
    facts: list[tuple[str, str]]
    command: str
    warnings: list[str]
    figures: list[Figure]
    points: int
    ok: int
    baseline: str
    medians: tuple[list[str], list[list[str]]]
    noise: str
    noisy: list[list[str]]
    missing: list[list[str]]


@dataclass(frozen=True)
class Study:
    """A study's numbers beside the runs' (a heading, a header and rows a table), and its claims."""

    name: str
    tables: list[tuple[str, list[str], list[list[str]]]]
    numbers: list[Number]
    judged: list[Judgment]


@dataclass(frozen=True)
class Report:
    """Everything in a report, before it is written. `unread` are the directories that could not be
    read, and why."""

    command: str
    sections: list[Section]
    studies: list[Study]
    unread: list[str]

    @property
    def judged(self) -> list[Judgment]:
        return [judgment for study in self.studies for judgment in study.judged]
