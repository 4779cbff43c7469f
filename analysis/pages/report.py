"""A report of run directories: an index with the studies' claims and numbers, and a page for each
run with every figure, every median and every point without a result."""

from __future__ import annotations

import multiprocessing
import os
import re
import shlex
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from analysis.figures import Subject
from analysis.measures import claims, published
from analysis.measures.lookup import Rows
from analysis.measures.speedups import common_baseline, over
from analysis.measures.studies import read_studies
from analysis.model.files import folder_for, printable, replacing
from analysis.model.run import Run
from analysis.pages import tables
from analysis.pages.html import Site
from analysis.pages.machines import Group, groups_of, machines_page
from analysis.pages.run_page import result, run_page
from analysis.pages.sections import Entry, Report, Result, StudyResult

RECORDED = Path(__file__).resolve().parents[2] / "data" / "recorded"
SINGLE_FILE = "report.html"


def subject(runs: list[Run]) -> Subject:
    """What a figure of these runs is called: their titles, their machines, their baseline."""
    titles = list(dict.fromkeys(run.title for run in runs))
    title = " · ".join(titles) if len(titles) <= 2 else f"{titles[0]} and {len(titles) - 1} more"
    environment = list(dict.fromkeys(run.environment_line() for run in runs))
    return Subject(title, environment, common_baseline(runs))


def write_report(
    runs: list[Run],
    out: Path,
    unread: list[str] | None = None,
    *,
    single: bool = False,
    baseline: str | None = None,
) -> list[Path]:
    """Writes OUT/index.html and for each run OUT/RUN/index.html with the rows of its figures beside
    it, or with `single` OUT/report.html alone (OUT itself if it ends in .html and is no folder);
    returns the paths, the index last. With `baseline`, the pages have speedups over that version.
    The studies' claims and numbers always keep the spec's.

    A page has one run directory; runs are never mixed in it. A spec that ran on several machines
    has one more page, with their figures side by side. Pages are made by as many processes as there
    are cores."""
    file = out if out.suffix == ".html" and not out.is_dir() else out / SINGLE_FILE
    folder_for(file.parent if single else out)
    entries = _entries(runs)
    runs = sorted(runs, key=lambda run: not _is_own(run))
    shown = [over(run, baseline) for run in runs]
    site = Site(entries, single=single)
    _TASK[:] = [_Task(shown, entries, site, out)]
    # fork, where it is not the default any more, would not import NumPy and Matplotlib anew, nor
    # have the runs
    context = multiprocessing.get_context("fork")
    jobs = max(min(len(os.sched_getaffinity(0)), len(runs)), 1)
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        # the runs with the most to draw first, so that none is left alone at the end
        order = sorted(range(len(runs)), key=lambda i: -_weight(runs[i]))
        pages = {i: pool.submit(_page, i) for i in order}
        groups = groups_of(shown, entries)
        compared = [pool.submit(_machines_page, group) for group in groups]
        studies = _studies([Rows(run) for run in runs])
        made = [pages[i].result() for i in range(len(runs))]
        sides = [page.result() for page in compared]
    directories = (str(path) for run in runs for path in run.directories)
    words = ["python", "-m", "analysis", "report", *directories]
    words += ["-o", str(out), *(["--single-file"] if single else [])]
    words += ["--baseline", baseline] if baseline is not None else []
    command = printable(shlex.join(words))
    results = [(entry, page.result) for entry, page in zip(entries, made, strict=True)]
    several = [(group.title, group.folder) for group in groups]
    index = site.index(Report(command, results, several, studies, unread or []))
    if single:
        mains = {e.folder: m.main for e, m in zip(entries, made, strict=True)}
        mains |= {g.folder: m.main for g, m in zip(groups, sides, strict=True)}
        whole = site.whole(index, mains)
        return [_write(file, whole)]
    shared = [_write(out / name, text) for name, text in site.files().items()]
    return [
        *(path for page in [*made, *sides] for path in page.paths),
        *shared,
        _write(out / "index.html", index),
    ]


@dataclass(frozen=True)
class _Task:
    """What the processes that make pages share."""

    runs: list[Run]
    entries: list[Entry]
    site: Site
    out: Path


_TASK: list[_Task] = []
"""One, which a forked process finds here: the runs would take seconds to send."""


@dataclass(frozen=True)
class _Made:
    """A page: the files of its folder, or its text where all go into one file; and the result if it
    is a run's."""

    result: Result | None
    paths: list[Path]
    main: str


def _page(place: int) -> _Made:
    (task,) = _TASK
    page = run_page(task.runs[place], task.entries[place])
    text = task.site.run(page)
    if task.site.single:
        return _Made(result(page), [], text)
    folder = folder_for(task.out / page.entry.folder)
    files = {f"{figure.name}.csv": figure.csv for figure in page.figures if figure.picture}
    files["index.html"] = text
    return _Made(result(page), [_write(folder / name, file) for name, file in files.items()], "")


def _machines_page(group: Group) -> _Made:
    (task,) = _TASK
    text = task.site.machines(machines_page(group))
    if task.site.single:
        return _Made(None, [], text)
    return _Made(None, [_write(folder_for(task.out / group.folder) / "index.html", text)], "")


def _write(path: Path, text: str) -> Path:
    return replacing(path, lambda file: file.write_text(text, encoding="utf-8"))


def _weight(run: Run) -> int:
    return max(len(run.plan), run.measurements["point"].nunique())


def _studies(runs: list[Rows]) -> list[StudyResult]:
    every = claims.read_claims()
    studies = []
    for study in read_studies():
        numbers = published.compared(study.name, runs)
        judged = [j for c in every if c.study == study.name for j in claims.judge(c, runs)]
        studies.append(StudyResult(study, tables.published_tables(numbers), numbers, judged))
    return studies


def _is_own(run: Run) -> bool:
    return not run.path.resolve().is_relative_to(RECORDED)


def _entries(runs: list[Run]) -> list[Entry]:
    """The runs as the index has them: the reader's own first, then those that are recorded."""
    entries = [
        Entry(folder, run.path, run.title, run.environment_line(), _is_own(run))
        for folder, run in zip(_folders(runs), runs, strict=True)
    ]
    return sorted(entries, key=lambda entry: not entry.own)


def _folders(runs: list[Run]) -> list[str]:
    """A short folder for each run, told apart where two would be the same: the spec's name, the
    folder above it.
    """
    names = [run.name for run in runs]
    if max(Counter(names).values()) > 1:
        paths = [run.path.resolve() for run in runs]
        names = [f"{path.parent.name}-{path.name}" for path in paths]
    # a name is anything: it may not lead out of the report's folder, nor end an attribute, nor be
    # that of a file which the pages share
    names = [re.sub(r"[^A-Za-z0-9_-]", "_", name)[:80] or "run" for name in names]
    unique: list[str] = []
    for name in names:
        turns = (f"{name}-{turn}" for turn in count(2))
        unique.append(next(n for n in chain([name], turns) if n not in unique))
    return unique
