"""A report of run directories: every figure, every median, every point without a result."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from analysis import tables
from analysis.derive import common_baseline, gather
from analysis.draw import FIGURES, Subject, draw, write
from analysis.load import Run


def subject(runs: list[Run]) -> Subject:
    """What a figure of these runs is called: their titles, their machines, their baseline."""
    titles = list(dict.fromkeys(run.title for run in runs))
    title = " · ".join(titles) if len(titles) <= 2 else f"{titles[0]} and {len(titles) - 1} more"
    environment = list(dict.fromkeys(run.environment_line() for run in runs))
    return Subject(title, environment, common_baseline(runs))


def write_report(runs: list[Run], out: Path) -> list[Path]:
    """Writes OUT/report.md and, in a folder for each run, its figures; returns the paths, the
    report's last.

    A report has one section for each run directory; runs are never mixed in it.
    """
    names = _folders(runs)
    written: list[Path] = []
    text = ["# lloydbench report\n"]
    if len(runs) > 1:
        text.append("\n".join(f"- {run.title} ({names[i]})" for i, run in enumerate(runs)) + "\n")
    for run, name in zip(runs, names, strict=True):
        data = gather([run], run.baseline)
        points = data.points
        about = subject([run])
        text.append(f"## {run.title}\n")
        text.append(f"{run.environment_line()}. Run directory: `{name}`.\n")
        text += [f"Note: {_without_folder(warning, run)}\n" for warning in run.warnings]
        for figure in FIGURES:
            drawing = draw(figure, data, about)
            if drawing.figure is None:
                text.append(f"Figure `{figure}` is not drawn: {drawing.message.splitlines()[0]}.\n")
                continue
            written += write(drawing, out / name)
            text.append(f"![{figure}: {run.title}]({name}/{figure}.png)\n")
            text.append(f"[{figure}.svg]({name}/{figure}.svg), [rows]({name}/{figure}.csv)\n")
        ok = points["status"].eq("ok")
        text.append(f"### Medians: {int(ok.sum()):,} of {len(points):,} points\n")
        if ok.any():
            over = f"; speedup over `{run.baseline}`" if run.baseline else ""
            text.append(f"Medians with 95% intervals{over}.\n")
            text.append(tables.every_point(points))
        missing = points[~ok]
        if len(missing):
            text.append(f"### Without result: {len(missing):,} points\n")
            rows = [[p["point"], p["status"], p["reason"] or ""] for _, p in missing.iterrows()]
            text.append(tables.markdown(["point", "status", "reason"], rows, set()))
    out.mkdir(parents=True, exist_ok=True)
    report = out / "report.md"
    report.write_text("\n".join(text), encoding="utf-8")
    return [*written, report]


def _folders(runs: list[Run]) -> list[str]:
    """A short folder for each run, told apart where two would be the same: the spec's name, the
    folder above it.
    """
    names = [run.name for run in runs]
    if max(Counter(names).values()) > 1:
        paths = [run.path.resolve() for run in runs]
        names = [f"{path.parent.name}-{path.name}" for path in paths]
    seen: Counter[str] = Counter()
    unique = []
    for name in names:
        seen[name] += 1
        unique.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return unique


def _without_folder(warning: str, run: Run) -> str:
    return warning.replace(f"{run.path}/", "").replace(f"{run.path}: ", "")
