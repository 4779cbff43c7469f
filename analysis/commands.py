"""The commands of the command line. Each returns the exit status."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from analysis.figures import FIGURES, FORMATS, draw, draw_by, write, wrong_name
from analysis.figures.drawing import Drawing, Subject
from analysis.figures.explained import EXPLAINED, SHOWS
from analysis.figures.history import draw_history
from analysis.figures.paper import HIGHEST, paper_for
from analysis.figures.style import few_colours, look
from analysis.measures import claims, compare, history, published
from analysis.measures.lookup import Rows
from analysis.measures.places import machine_labels
from analysis.measures.points import Data, all_points, gather
from analysis.measures.speedups import over
from analysis.measures.studies import read_studies
from analysis.model.commits import commit_times
from analysis.model.compact import compact
from analysis.model.files import RunError, printable
from analysis.model.find import find_runs
from analysis.model.load import load_run, run_name
from analysis.model.parts import join_parts
from analysis.model.pixels import write_pixels
from analysis.model.run import Run
from analysis.model.timeline import events_of
from analysis.pages import (
    artifact,
    beside,
    choices,
    counted,
    gpu_model,
    jobs,
    profiler,
    readme,
    reasons,
    recordings,
    regimes,
    spec_keys,
    tables,
    tune,
)
from analysis.pages.escape import image
from analysis.pages.every_table import write_tables
from analysis.pages.findings import finding
from analysis.pages.profiler import profiler_markdown, profiler_table, profiler_tables
from analysis.pages.report import subject, write_report
from analysis.pages.table import Table


def _load(options: argparse.Namespace) -> list[Run]:
    """The runs below DIR… that can be read, the parts of a sweep as one run. The others are printed
    and added to options.unread. A path without any run, which a glob may find, is left out if other
    paths have runs."""
    runs = []
    skipped: list[str] = []
    for path in find_runs(options.dirs, skipped):
        try:
            runs.append(load_run(path))
        except RunError as error:
            options.unread.append(str(error))
        except OSError as error:
            options.unread.append(f"{error.filename or path}: {error.strerror}")
    for reason in skipped:
        say(f"left out: {reason}")
    if options.unread and not runs:
        raise RunError("\n".join(options.unread))
    for reason in options.unread:
        say(f"not read: {reason}")
    runs = join_parts(runs)
    for run in runs:
        for warning in run.warnings:
            say(f"warning: {warning}")
    return runs


def say(message: str) -> None:
    print(printable(message), file=sys.stderr)


def _wanted_figures(only: str | None, runs: list[Run]) -> list[str]:
    if only is not None:
        names = _listed(only)
        if not names:
            raise RunError(f"--only: names no figure; there are {', '.join(FIGURES)}")
        for name in names:
            if why := wrong_name(name):
                raise RunError(f"--only: {why}")
        return names
    asked = [name for run in runs for name in run.spec.get("figures") or []]
    names = list(dict.fromkeys(asked)) or list(FIGURES)
    for name in names:
        if wrong_name(name):
            say(f"{name}: this version does not draw this figure")
    return [name for name in names if not wrong_name(name)]


def _home(run: Run) -> Path:
    """Where figures and tables of a run go unless --out says it: its folder, or the folder of its
    parts. Parts that do not lie in one folder have none, so then it is the current directory."""
    beside = all(part.absolute().parent == run.path for part in run.parts)
    return run.path if beside else Path()


def run_figures(options: argparse.Namespace) -> int:
    width, environment = paper_for(options.width, options.document_class)
    formats = _formats(options.format, width)
    runs = [over(run, options.baseline) for run in _load(options)]
    about = subject(runs)
    names = _wanted_figures(options.only, runs)
    out = options.out or (_home(runs[0]) if len(runs) == 1 else Path()) / "figures"
    labels = list(dict.fromkeys(machine_labels(runs)))
    if len(labels) > 1:
        say(
            f"{len(runs)} runs that must not be mixed ({'; '.join(labels)}): each has lines of "
            "its own, and each speedup is over its own run's baseline"
        )
    data = gather(runs, about.baseline)
    for name in names:
        drawing = draw(name, data, about, width)
        if drawing.figure is None:
            for line in f"{name}: not drawn: {drawing.message}".splitlines():
                say(line)
            continue
        if width and drawing.figure.get_figheight() > HIGHEST:
            say(
                f"{name}: {drawing.figure.get_figheight():.1f} in high, more than a page: make it "
                "wider (--width text), or measure fewer problems for it"
            )
        for path in write(drawing, out, formats, environment):
            print(path)
    return 0


def _formats(asked: str | None, width: float | None) -> list[str]:
    """The formats that `--format` names. The default is svg and png, or for a paper pdf and pgf."""
    if asked is None:
        return ["pdf", "pgf"] if width else ["svg", "png"]
    names = _listed(asked)
    if not names:
        raise RunError(f"--format: names no format; there are {', '.join(FORMATS)}")
    for name in names:
        if name not in FORMATS:
            raise RunError(f"--format: unknown format '{name}'; there are {', '.join(FORMATS)}")
    return names


def _listed(text: str) -> list[str]:
    """The names in a list with commas, each once."""
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _threshold(options: argparse.Namespace) -> float:
    """The share that `--threshold` gives in percent."""
    if not 0 <= options.threshold < 1000:
        raise RunError(f"--threshold: {options.threshold:g} is not a percentage from 0 to 1000")
    return options.threshold / 100


def run_history(options: argparse.Namespace) -> int:
    threshold = _threshold(options)
    width, environment = paper_for(options.width, options.document_class)
    formats = _formats(options.format, width)
    runs = _load(options)
    every = history.recordings(runs)
    asked = {axis: getattr(options, axis) for axis in ("n", "k", "dim", "precision", "data")}
    times = commit_times(list(every["commit"].unique()), options.repository)
    of = history.history(every, asked, _listed(options.versions or ""), times, threshold)
    machines = list(dict.fromkeys(of.points["machine"]))
    empty = pd.DataFrame(columns=["machine", "point", "version"])
    data = Data(of.points, empty, empty, empty, {}, {}, {}, runs)
    title = runs[0].title if len({run.title for run in runs}) == 1 else "One problem over commits"
    drawing = draw_by(
        lambda *given: draw_history(*given, of, threshold),
        data,
        Subject(title, machines, ""),
        width,
    )
    for path in write(drawing, options.out, formats, environment):
        print(path)
    for line in history.changes(of.points):
        say(line)
    return 0


def run_artifact(options: argparse.Namespace) -> int:
    if options.check:
        if options.dirs or options.out:
            raise RunError("--check PATH takes no DIR and no --out")
        found = artifact.check(options.check)
        for fault in found.faults:
            say(fault)
        count = len(found.faults)
        wrong = f"; {count} fault{'' if count == 1 else 's'}" if count else ""
        print(f"{found.files} files as packed, {found.drawn} figures and tables rebuilt{wrong}")
        return 1 if found.faults else 0
    if not options.dirs or not options.out:
        raise RunError("artifact needs DIR… and --out, or --check PATH (see --help)")
    paper_for(options.width, options.document_class)  # a mistake is said before anything is read
    formats = _formats(options.format or ",".join(FORMATS), None)
    look = artifact.Look(formats, options.width, options.document_class)
    print(artifact.pack(_load(options), options.out, look))
    return 0


def run_profiler(options: argparse.Namespace) -> int:
    for run in _load(options):
        warnings: list[str] = []
        timed = profiler_tables(profiler_table(events_of(run, warnings)))
        if options.latex:
            _print(timed, options)
        else:
            print(profiler_markdown(timed), end="")
        for warning in warnings:
            say(f"warning: {warning}")
    return 0


def run_report(options: argparse.Namespace) -> int:
    for path in write_report(
        _load(options),
        options.out,
        options.unread,
        single=options.single_file,
        baseline=options.baseline,
    ):
        print(path)
    return 0


def run_compare(options: argparse.Namespace) -> int:
    threshold = _threshold(options)
    runs = []
    for name, path in (("OLD", options.old), ("NEW", options.new)):
        options.dirs = [path]
        found = _load(options)
        if options.unread:
            return 2
        if len(found) != 1:
            raise RunError(
                f"{name} must be one run or the parts of one sweep; {path} holds {len(found)}"
            )
        runs += found
    if runs[0].path.resolve() == runs[1].path.resolve():
        raise RunError(f"OLD and NEW are the same run: {runs[0].path}")
    table = compare.compare(*runs, threshold, options.across_machines)
    left_out = [] if options.all else [compare.ALIKE, *compare.COUNTED]
    shown = table[~table["verdict"].isin(left_out)]
    if not options.latex and (same := compare.same_program(*runs)):
        print(same)
    if len(shown):
        words = f"{runs[0].title}: OLD and NEW, {compare.summary(table)}."
        made = tables.comparison(shown, words)
        print(made.latex() if options.latex else made.table_alone())
    if not options.latex:
        if not options.all and (counted := compare.counted(table)):
            print(*map(printable, counted), "--all lists these points", sep="\n")
        if left_open := compare.not_excluded(table, threshold):
            print(left_open + ("" if options.all else "; --all shows the intervals"))
        print(compare.summary(table) or "the runs have no points")
    return compare.exit_status(table)


def run_study(options: argparse.Namespace) -> int:
    study = published.check_study(options.study)
    runs = [Rows(run) for run in _load(options)]
    judged = [
        judgment
        for claim in claims.read_claims()
        if claim.study == study
        for judgment in claims.judge(claim, runs)
    ]
    numbers = published.compared(study, runs)
    if options.latex:
        _print(tables.study_tables(study, numbers, judged), options)
    else:
        print(tables.published(study, numbers, judged), end="")
    return 0


def run_claims(options: argparse.Namespace) -> int:
    chosen = claims.read_claims()
    if options.study:
        study = published.check_study(options.study)
        chosen = [claim for claim in chosen if claim.study == study]
    if options.only:
        chosen = claims.choose(chosen, [name.strip() for name in options.only.split(",")])
    runs = [Rows(run) for run in _load(options)]
    for claim in chosen:
        for judgment in claims.judge(claim, runs):
            print(f"{claim.id}: {claim.says}: {claims.sentence(judgment)}")
    return 0


def run_regimes(options: argparse.Namespace) -> int:
    for run in _load(options):
        if options.summary and not options.latex:
            print(regimes.summary(run), end="")
            continue
        made = regimes.summary_tables(run) if options.summary else [regimes.every_version(run)]
        _print(made, options)
    return 0


def run_choices(options: argparse.Namespace) -> int:
    options.dirs = [options.dir]
    for run in _load(options):
        _print([choices.summary(run) if options.summary else choices.choices(run)], options)
    return 0


def run_tune(options: argparse.Namespace) -> int:
    out = options.out or tune.file(options.ladder)
    out.write_text(tune.table(_load(options), options.ladder), encoding="utf-8")
    print(out)
    return 0


def run_readme_table(options: argparse.Namespace) -> int:
    runs = _load(options)
    if len(runs) > 1:
        raise RunError(f"{options.dirs[0]}: holds {len(runs)} run directories; name one of them")
    _print([_table(over(runs[0], options.baseline))], options)
    return 0


def run_tables(options: argparse.Namespace) -> int:
    runs = _load(options)
    if options.out and len(runs) > 1:
        raise RunError(f"--out takes one run, and these are {len(runs)}: each gets its own tables/")
    for run in [over(run, options.baseline) for run in runs]:
        for path in write_tables(run, options.out or _home(run) / "tables"):
            print(path)
    return 0


def _print(made: list[Table], options: argparse.Namespace) -> None:
    for table in made:
        print(table.latex() if options.latex else table.markdown(), end="")


def _table(run: Run) -> Table:
    return tables.headline(run, all_points([run], run.baseline))


def _image(run: Run, figure: str, options: argparse.Namespace) -> str:
    """Draws a figure into the run's folder, unless the file is only checked. Returns Markdown.

    Recorded runs are kept in the repository, so there is only what a page shows, and its rows."""
    folder = run.path / "figures"
    if not options.check:
        drawing = _drawing(run, figure)
        if drawing.figure is None:
            raise RunError(f"{options.file}: {figure} of {run.path}: {drawing.message}")
        write(drawing, folder, ["png"])
        few_colours(folder / f"{figure}.png")
    link = os.path.relpath(folder / f"{figure}.png", options.file.parent)
    return image(f"{run.title}. {_shows(folder, figure)}", Path(link).as_posix())


def _shows(folder: Path, figure: str) -> str:
    """What stands for the figure, from its CSV, because a page is checked without drawing."""
    rows = folder / f"{figure}.csv"
    if figure in SHOWS or not rows.is_file():
        return SHOWS.get(figure, "")
    return finding(figure, pd.read_csv(rows), figure)


def _drawing(run: Run, figure: str) -> Drawing:
    if figure in EXPLAINED:
        with look():
            return EXPLAINED[figure](run)
    return draw(figure, gather([run], run.baseline), subject([run]))


TABLES = {
    "": lambda run: _table(run).markdown(),
    "regimes": regimes.summary,
    "peers": lambda run: beside.beside(run).markdown(),
    "jobs": lambda run: jobs.jobs(run).markdown(),
    "choices": lambda run: choices.summary(run).markdown(),
    "counters": lambda run: counted.phases(run).markdown(),
    "profiler": profiler.summary,
    "predicted": lambda run: gpu_model.measured(run).markdown(),
}
"""The tables of a run that a README may have: `RUN` or `RUN:PART`."""


def run_pixels(options: argparse.Namespace) -> int:
    count = write_pixels(options.picture, options.out)
    print(f"{options.out}: {count:,} × 3")
    return 0


def _tables_of_no_run(
    found: list[Path], program: Path | None
) -> dict[str, Callable[[], str | None]]:
    """What makes each table that is not of one run's rows, as Markdown. `found`: the run
    directories that were given. None for what only the program knows, without it."""
    return {
        "studies": lambda: tables.studies(read_studies()),
        "gpu-model": lambda: gpu_model.predictions().table_alone(),
        "recordings": lambda: recordings.recorded_runs(found).table_alone(),
        "reasons": lambda: reasons.reasons(found).table_alone(),
        "versions": lambda: (
            tables.versions(readme.listed_versions(program), read_studies()) if program else None
        ),
    }


def _table_of_spec(section: str, program: Path | None) -> str | None:
    """The keys of a section of a spec, as Markdown. None without the program, which knows them."""
    return spec_keys.table(readme.schema_of(program), section) if program else None


def _content_of_run(
    kind: str, name: str, runs: list[Run], options: argparse.Namespace
) -> str | None:
    """The table `RUN` or `RUN:PART`, or the figure `RUN:FIGURE`, as Markdown. None if the run is
    not among `runs`."""
    name, _, part = name.partition(":")
    if kind == "figure" and part not in {*FIGURES, *EXPLAINED}:
        raise RunError(
            f"{options.file}: figure '{name}:{part}' must be RUN:FIGURE, "
            f"with one of {', '.join([*FIGURES, *EXPLAINED])}"
        )
    if kind == "table" and part not in TABLES:
        raise RunError(
            f"{options.file}: table '{name}:{part}' must be RUN or RUN:PART, "
            f"with one of {', '.join(filter(None, TABLES))}"
        )
    meant = [run for run in runs if readme.matches(name, run.name, run.path)]
    if len(meant) > 1:
        which = ", ".join(str(run.path) for run in meant)
        raise RunError(
            f"{options.file}: {kind} '{name}' may be any of {which}; use more of its path"
        )
    if not meant:
        return None
    if kind == "figure":
        return _image(meant[0], part, options)
    return TABLES[part](meant[0])


def run_readme(options: argparse.Namespace) -> int:
    try:
        old = options.file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise RunError(f"{options.file}: not UTF-8 text ({error})") from None
    skipped: list[str] = []
    found = find_runs(options.dirs, skipped)
    options.dirs = [p for p in found if _is_named(p, old)]
    for reason in skipped:
        say(f"left out: {reason}")
    runs = _load(options)

    of_no_run = _tables_of_no_run(found, options.program)

    def content(kind: str, name: str) -> str | None:
        if kind == "table" and name in of_no_run:
            return of_no_run[name]()
        if kind == "table" and name.startswith("spec:"):
            return _table_of_spec(name.removeprefix("spec:"), options.program)
        return _content_of_run(kind, name, runs, options)

    new, left = readme.rewrite(old, str(options.file), content)
    for name in left:
        say(f"{options.file}: {name} belongs to none of the given runs and is left as it is")
    if old == new:
        return 0
    if options.check:
        say(f"{options.file}: out of date; `make docs` or this without --check rewrites it")
        return 1
    options.file.write_bytes(new.encode("utf-8"))
    print(options.file)
    return 0


def _is_named(path: Path, text: str) -> bool:
    """True if a marker in `text` may mean this run directory. Reading all others takes seconds."""
    try:
        spec = run_name(path)
    except RunError:
        return True  # _load says what is wrong with it
    return any(readme.matches(name, spec, path) for name in readme.run_names(text))


def run_compact(options: argparse.Namespace) -> int:
    for path in find_runs(options.dirs):
        before, after = compact(path)
        print(f"{path}: {before:,} B to {after:,} B")
    return 0
