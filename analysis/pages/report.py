"""A report of run directories: verdicts, published numbers beside measured ones, and for each run
every figure, every median and every point without a result; as HTML in one file, and as Markdown.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import shlex
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from analysis.figures import FIGURES, Subject, draw, write
from analysis.measures import claims, published
from analysis.measures.lookup import Rows
from analysis.measures.points import common_baseline, gather, noise_note
from analysis.model.files import folder_for, printable, replacing
from analysis.model.load import load_run
from analysis.model.run import Run
from analysis.pages import html, markdown, tables
from analysis.pages.facts import facts, rerun_command
from analysis.pages.sections import Figure, Report, Section, Study


def subject(runs: list[Run]) -> Subject:
    """What a figure of these runs is called: their titles, their machines, their baseline."""
    titles = list(dict.fromkeys(run.title for run in runs))
    title = " · ".join(titles) if len(titles) <= 2 else f"{titles[0]} and {len(titles) - 1} more"
    environment = list(dict.fromkeys(run.environment_line() for run in runs))
    return Subject(title, environment, common_baseline(runs))


def write_report(runs: list[Run], out: Path, unread: list[str] | None = None) -> list[Path]:
    """Writes OUT/report.html (self-contained), OUT/report.md and, in a folder for each run, its
    figures; returns the paths, the reports' last.

    A report has one section for each run directory; runs are never mixed in it. Figures are drawn
    by as many processes as there are cores."""
    folder_for(out)
    folders = _folders(runs)
    jobs = min(len(os.sched_getaffinity(0)), len(runs))
    # fork, where it is not the default any more, would not import NumPy and Matplotlib anew
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(max(jobs, 1), mp_context=context) as pool:
        # the runs with the most to draw first, so that none is left alone at the end
        order = sorted(range(len(runs)), key=lambda i: -len(runs[i].measurements))
        drawn = {i: pool.submit(_section, runs[i].path, folders[i], out) for i in order}
        studies = _studies([Rows(run) for run in runs])
        sections = [drawn[i].result() for i in range(len(runs))]
    words = ["python", "-m", "analysis", "report", *(str(run.path) for run in runs)]
    command = printable(shlex.join([*words, "-o", str(out)]))
    report = Report(command, sections, studies, unread or [])
    paths = [
        out / f"{figure.stem}{ending}"
        for section in sections
        for figure in section.figures
        if figure.stem
        for ending in (".svg", ".png", ".csv")
    ]
    for path, text in (
        (out / "report.html", html.render(report, out)),
        (out / "report.md", markdown.render(report)),
    ):
        paths.append(replacing(path, lambda file, text=text: file.write_text(text, "utf-8")))
    return paths


def _studies(runs: list[Rows]) -> list[Study]:
    every = claims.read_claims()
    studies = []
    for name in published.studies():
        numbers = published.compared(name, runs)
        judged = [j for c in every if c.study == name for j in claims.judge(c, runs)]
        studies.append(Study(name, tables.published_tables(numbers), numbers, judged))
    return studies


def _section(path: Path, folder: str, out: Path) -> Section:
    run = load_run(path)
    data = gather([run], run.baseline)
    about = subject([run])
    figures = []
    for name in FIGURES:
        drawing = draw(name, data, about)
        if drawing.figure is None:
            figures.append(Figure(name, "", drawing.message.splitlines()[0]))
            continue
        write(drawing, out / folder)
        figures.append(Figure(name, f"{folder}/{name}", ""))
    points = data.points
    ok = points["status"].eq("ok")
    missing = points[~ok]
    return Section(
        folder,
        run.title,
        run.environment_line(),
        facts(run),
        rerun_command(run),
        [_without_folder(warning, run) for warning in run.warnings],
        figures,
        len(points),
        int(ok.sum()),
        run.baseline,
        tables.every_point_cells(points),
        noise_note(points),
        [
            [p["point"], f"{p['noisy_samples']} of {p['samples']}", p["noise"] or ""]
            for _, p in points[points["noisy"].eq(True)].iterrows()
        ],
        [[p["point"], p["status"], p["reason"] or ""] for _, p in missing.iterrows()],
    )


def _folders(runs: list[Run]) -> list[str]:
    """A short folder for each run, told apart where two would be the same: the spec's name, the
    folder above it.
    """
    names = [run.name for run in runs]
    if max(Counter(names).values()) > 1:
        paths = [run.path.resolve() for run in runs]
        names = [f"{path.parent.name}-{path.name}" for path in paths]
    # a name is anything: it may not lead out of the report's folder, nor end an attribute
    names = [re.sub(r"[^A-Za-z0-9._-]", "_", name)[:80].lstrip(".") or "run" for name in names]
    seen: Counter[str] = Counter()
    unique = []
    for name in names:
        seen[name] += 1
        unique.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return unique


def _without_folder(warning: str, run: Run) -> str:
    return warning.replace(f"{run.path}/", "").replace(f"{run.path}: ", "")
