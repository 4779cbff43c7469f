"""The README of an artifact."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import replace
from pathlib import Path

import jinja2
import pandas as pd

from analysis.measures.points import all_points
from analysis.model.columns import name
from analysis.model.numbers import number_text
from analysis.model.rows import read_rows
from analysis.model.run import Run, machine_identity
from analysis.pages.escape import code
from analysis.pages.escape import text as markdown_text
from analysis.pages.facts import facts, rerun_command
from analysis.pages.table import markdown

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = Path(__file__).parent / "templates" / "artifact.md"
_OF_THE_RUN = ("run directory", "started", "while measuring", "data", "solve", "measure", "timing")
"""Facts that are not the machine's."""
_OF_THE_PROGRAM = ("kernels/python", "kernels/peer")
"""Where the program has external versions of its own."""


def text(
    runs: list[Run],
    folders: list[str],
    figures: list[list[str]],
    options: list[str],
    size: int,
    pythons: str,
) -> str:
    """README.md of packed `runs`, of which each has a folder below runs/ and figures; `options` are
    those of the command `figures`, and the software needs one of `pythons`."""
    # what is text of a run is escaped here
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)
    template = environment.from_string(TEMPLATE.read_text("utf-8"))
    titles = list(dict.fromkeys(run.title for run in runs))
    named = titles[0] if len(titles) == 1 else f"{titles[0]} and {len(titles) - 1} more"
    about = [
        _about(run, folder, names, options)
        for run, folder, names in zip(runs, folders, figures, strict=True)
    ]
    machines = _machines(runs, folders)
    return (
        template.render(
            title=markdown_text(named),
            runs=about,
            formats=options[1].upper().replace(",", ", "),
            pythons=pythons,
            megabytes=max(1, -(-size // 1_000_000)),
            environments=machines,
            missing=any(of["missing"] for of in about),
            warnings=_warnings(runs, folders),
            licensed=(runs[0].path.parents[1] / "software" / "LICENSE").is_file(),
        ).rstrip()
        + "\n"
    )


def _about(run: Run, folder: str, figures: list[str], options: list[str]) -> dict:
    points = all_points([run], run.baseline)
    ok = int(points["status"].eq("ok").sum())
    file = run.source().get("file")
    draw = ["/tmp/venv/bin/python", "-m", "analysis", "figures", f"../runs/{folder}"]
    draw += ["--only", ",".join(figures), *options, "--out", f"/tmp/figures/{folder}"]
    tables = [*draw[:3], "tables", draw[4], "--out", f"/tmp/tables/{folder}"]
    return {
        "folder": folder,
        "title": markdown_text(run.title).replace("|", "\\|"),
        "points": f"{len(points):,}",
        "ok": f"{ok:,}",
        "missing": ok < len(points),
        "samples": f"{int(points['samples'].sum()):,}",
        "started": markdown_text(str(run.environment.get("t_utc") or "–")),
        "lasted": _lasted(run),
        "commands": [shlex.join(words) for words in ([draw] * bool(figures) + [tables])],
        "command": rerun_command(replace(run, path=Path("runs") / folder)),
        "data_file": code(str(file)) if file else "",
        "external": ", ".join(map(code, _foreign(run))),
    }


def _foreign(run: Run) -> list[str]:
    """The external versions that are files of whoever measured, not of this program."""
    rows = run.measurements
    launched = {*rows.loc[rows["timing_basis"].eq("mpi_max"), "version"]}
    ours = {file.stem for family in _OF_THE_PROGRAM for file in (ROOT / family).glob("*.py")}
    return sorted({*run.external} - launched - ours)


def _lasted(run: Run) -> str:
    """From the start to the last sample."""
    rows = read_rows(
        run.path / "measurements.jsonl", [name("point", needed=True), name("t_utc")], []
    )
    begin, end = (
        pd.to_datetime(pd.Series([at]), errors="coerce", utc=True).iloc[0]
        for at in (run.environment.get("t_utc"), rows["t_utc"].dropna().max())
    )
    minutes = (end - begin).total_seconds() / 60
    return f"{number_text(minutes)} min" if minutes >= 0 else "–"


def _machines(runs: list[Run], folders: list[str]) -> list[dict]:
    """One table for each machine, and which runs are of it."""
    machines: dict[str, dict[str, Run]] = {}
    for run, folder in zip(runs, folders, strict=True):
        identity = repr((machine_identity(run.environment), run.nodes))
        machines.setdefault(identity, {})[folder] = run
    return [
        {"runs": ", ".join(f"`{folder}`" for folder in of), "table": _machine_table(of).rstrip()}
        for of in machines.values()
    ]


def _machine_table(runs: dict[str, Run]) -> str:
    """What is known of one machine and the programs that ran there. A value that not all runs
    have, such as a commit, is followed by the runs that have it."""
    having: dict[str, dict[tuple[str, int], list[str]]] = {}
    for folder, run in runs.items():
        seen: Counter = Counter()  # two GPUs of one machine may differ in nothing
        for what, value in facts(run):
            if what not in _OF_THE_RUN:
                seen[what, value] += 1
                of = having.setdefault(what, {}).setdefault((value, seen[what, value]), [])
                of.append(folder)
    rows = [
        [what, value if len(of) == len(runs) else (value, f" ({', '.join(of)})")]
        for what, values in having.items()
        for (value, _), of in values.items()
    ]
    return markdown(["what", "value"], rows, set()) if rows else "Not recorded.\n"


def _warnings(runs: list[Run], folders: list[str]) -> list[str]:
    said = []
    for run, folder in zip(runs, folders, strict=True):
        points = all_points([run], "")
        bad = int(points["status"].ne("ok").sum())
        throttled = int(points["throttled_samples"].fillna(0).sum())
        noisy = int(points["noisy"].eq(True).sum())
        for count, words in (
            (
                bad,
                f"{bad:,} of {len(points):,} points {'has' if bad == 1 else 'have'} no result "
                f"(`tables/{folder}/`)",
            ),
            (noisy, "1 point is noisy" if noisy == 1 else f"{noisy:,} points are noisy"),
            (throttled, f"{_samples(throttled)} taken while the GPU held its clocks back"),
        ):
            said += [f"`{folder}`: {words}."] if count else []
        if (run.environment.get("build") or {}).get("dirty"):
            said.append(f"`{folder}`: built from a tree with uncommitted changes.")
        said += [f"`{folder}`: {markdown_text(warning)}" for warning in run.warnings]
    return said


def _samples(count: int) -> str:
    return "1 sample was" if count == 1 else f"{count:,} samples were"
