"""The command line: `python -m analysis COMMAND …`."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from io import TextIOWrapper
from pathlib import Path

from analysis import choices, claims, compare, counted, published, readme, regimes, tables, tune
from analysis.derive import all_points, gather, machine_labels
from analysis.draw import FIGURES, draw, write
from analysis.escape import image
from analysis.files import printable
from analysis.load import Run, RunError, find_runs, load_run
from analysis.measures import Rows
from analysis.profiler import profiler_markdown, profiler_table, read_events
from analysis.report import subject, write_report

EPILOG = """\
A DIR is what run_experiment wrote (it holds measurements.jsonl), or a folder that holds such
directories.

  python -m analysis figures results/quickstart/20250102T030405-1a2b3c4d
  python -m analysis figures data/recorded/nvidia-h200/* --out figures --only speedup
  python -m analysis report data/recorded -o report
  python -m analysis table luigi data/recorded
  python -m analysis compare results/before results/after
  python -m analysis claims data/recorded --study wang
  python -m analysis readme README.md data/recorded --check

Exit status: 0 done; 1 --check found a file out of date, or compare a slower or lost point; 2
something given cannot be used (one line says what), or compare cannot say. """


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; returns the exit status: 0, 1 (`readme --check` would change the file) or 2
    (unusable input).
    """
    options = _parser().parse_args(arguments)
    options.unread = []
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # a path need not be UTF-8, and a terminal need not know every letter
            stream.reconfigure(errors="backslashreplace")
    try:
        status = options.command(options)
        return 2 if options.unread else status
    except RunError as error:
        for line in str(error).splitlines():
            _say(line)
    except BrokenPipeError:
        # whoever read our output has enough of it (`| head`)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        _say(f"{error.filename or 'file'}: {error.strerror}")
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m analysis",
        description="Figures, tables and reports from run directories. Needs no GPU.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    figures = commands.add_parser(
        "figures",
        help="draw the figures that the spec asks for",
        description="Draws the figures that the runs' specs ask for: NAME.svg, NAME.png and "
        "NAME.csv (the rows). Several DIRs are drawn together, each machine with lines of its own.",
    )
    figures.add_argument("dirs", nargs="+", metavar="DIR", type=Path)
    figures.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        help="where to write (default: figures/ in DIR; ./figures for several)",
    )
    figures.add_argument(
        "--only", metavar="NAME,…", help=f"draw these, whatever the spec says: {', '.join(FIGURES)}"
    )
    figures.set_defaults(command=_figures)

    report = commands.add_parser(
        "report",
        help="write every figure, table and verdict into one HTML file",
        description="Writes OUT/report.html, which needs nothing beside it, OUT/report.md and each "
        "run's figures below OUT: the studies' claims with verdicts, their published numbers "
        "beside the runs', and for each run its environment, every figure with its rows, the "
        "medians with their intervals, and the points without a result.",
    )
    report.add_argument("dirs", nargs="+", metavar="DIR", type=Path)
    report.add_argument("-o", "--out", required=True, metavar="OUT", type=Path)
    report.set_defaults(command=_report)

    versus = commands.add_parser(
        "compare",
        help="is NEW slower than OLD? For CI",
        description="Tests every point that both runs have and prints the ratio NEW / OLD of the "
        "medians with its 95% interval. A point is slower or faster when a permutation test of the "
        "launches says so (four or more on each side: measure: {launches: 5}) and the whole "
        "interval is beyond the threshold. With fewer launches, or noise, it is perhaps slower or "
        "faster. Exit status: 0 none slower or lost, 1 some, 2 some perhaps slower, or nothing "
        "could be judged.",
    )
    versus.add_argument("old", metavar="OLD", type=Path)
    versus.add_argument("new", metavar="NEW", type=Path)
    versus.add_argument(
        "--threshold",
        metavar="PERCENT",
        type=float,
        default=2.0,
        help="differences up to this are taken for none (default: 2)",
    )
    versus.add_argument("--all", action="store_true", help="list the points without a difference")
    versus.add_argument(
        "--across-machines", action="store_true", help="compare although GPU or CPU differ"
    )
    versus.set_defaults(command=_compare)

    study = commands.add_parser(
        "table",
        help="a study's tables beside the runs' values",
        description="Prints, as Markdown, every published number of STUDY with its place and what "
        "the first of the DIRs that has the row gives for it, then the study's claims. Without a "
        f"DIR: the published numbers alone. Studies: {', '.join(published.studies())}.",
    )
    study.add_argument("study", metavar="STUDY")
    study.add_argument("dirs", nargs="*", metavar="DIR", type=Path)
    study.set_defaults(command=_study)

    claim = commands.add_parser(
        "claims",
        help="check the studies' conclusions against the runs' rows",
        description="Prints a line a claim: what was published, what is here, and whether it "
        "holds, fails or cannot be judged, and then why not. A claim that several runs can judge "
        "has a line for each.",
    )
    claim.add_argument("dirs", nargs="+", metavar="DIR", type=Path)
    claim.add_argument("--study", metavar="STUDY", help="the claims of this study only")
    claim.add_argument("--only", metavar="ID,…", help="these claims only")
    claim.set_defaults(command=_claims)

    profiler = commands.add_parser(
        "profiler",
        help="time, share and calls of each kernel, copy and API call of a traced run",
        description="Prints, as Markdown, a profiler's table of each point that has a timeline "
        "(profile.timeline): share of the time, calls, average, minimum and maximum.",
    )
    profiler.add_argument("dirs", nargs="+", metavar="DIR", type=Path)
    profiler.set_defaults(command=_profiler)

    fast = commands.add_parser(
        "regimes",
        help="the regimes of sweeps/fast_regimes.yaml: every version beside other people's",
        description="Prints, as Markdown, each regime that the run has: every version's time per "
        "iteration, over the floor and over the best peer's, and what its labels are worth.",
    )
    fast.add_argument("dirs", nargs="+", metavar="DIR", type=Path)
    fast.add_argument(
        "--summary", action="store_true", help="only the best peer and the fastest of ours"
    )
    fast.set_defaults(command=_regimes)

    choice = commands.add_parser(
        "choices",
        help="fast_auto's choices beside the fastest versions",
        description="Prints, as Markdown, for each problem that fast_auto and others of its family "
        "ran what it chose, which version was the fastest, and the ratio of their times.",
    )
    choice.add_argument("dir", metavar="DIR", type=Path)
    choice.add_argument("--summary", action="store_true", help="only where it lost")
    choice.set_defaults(command=_choices)

    tuning = commands.add_parser(
        "tune",
        help="write the table by which fast_auto chooses",
        description="Writes, from the verified results of the runs, what each version took "
        "for each problem. Of several DIRs with the same problem the last one counts.",
    )
    tuning.add_argument("dirs", nargs="+", metavar="DIR", type=Path)
    tuning.add_argument("-o", "--out", metavar="FILE", type=Path, default=tune.FILE)
    tuning.set_defaults(command=_tune)

    table = commands.add_parser(
        "readme-table",
        help="print the Markdown table of a run",
        description="Prints each version's fastest result at the largest N that the baseline has.",
    )
    table.add_argument("dirs", nargs=1, metavar="DIR", type=Path)
    table.set_defaults(command=_readme_table)

    update = commands.add_parser(
        "readme",
        help="rewrite the tables and figures between markers in a Markdown file",
        description="Rewrites what stands between <!-- table:BEGIN name --> and "
        "<!-- table:END name -->, and draws the figures between <!-- figure:BEGIN name:FIGURE --> "
        "and its END into the run's folder. The name is that of a DIR's spec, or the last parts of "
        "its path (nvidia-h200/k1000), or `versions`: what the program lists; after "
        "it `:regimes`, `:choices` or `:counters` for another of the run's tables. Others are left "
        "alone.",
    )
    update.add_argument("file", type=Path, metavar="FILE.md")
    update.add_argument("dirs", nargs="+", metavar="DIR", type=Path)
    update.add_argument(
        "--program",
        metavar="RUN_EXPERIMENT",
        type=Path,
        help="the program to ask for the table named `versions`",
    )
    update.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if the file would change"
    )
    update.set_defaults(command=_readme)
    return parser


def _load(options: argparse.Namespace) -> list[Run]:
    """The runs below DIR…; of several those that can be read, the others are told and remembered
    in options.unread. What holds no run at all is left out when others do: a glob finds it."""
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
        _say(f"left out: {reason}")
    if options.unread and not runs:
        raise RunError("\n".join(options.unread))
    for reason in options.unread:
        _say(f"not read: {reason}")
    for run in runs:
        for warning in run.warnings:
            _say(f"warning: {warning}")
    return runs


def _say(message: str) -> None:
    print(printable(message), file=sys.stderr)


def _wanted_figures(only: str | None, runs: list[Run]) -> list[str]:
    if only is not None:
        names = list(dict.fromkeys(name.strip() for name in only.split(",") if name.strip()))
        for name in names:
            if name not in FIGURES:
                close = difflib.get_close_matches(name, FIGURES, n=1)
                hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(FIGURES)}"
                raise RunError(f"--only: unknown figure '{name}'; {hint}")
        return names
    asked = [name for run in runs for name in run.spec.get("figures") or []]
    names = list(dict.fromkeys(asked)) or list(FIGURES)
    for name in names:
        if name not in FIGURES:
            _say(f"{name}: this version does not draw this figure")
    return [name for name in names if name in FIGURES]


def _figures(options: argparse.Namespace) -> int:
    runs = _load(options)
    about = subject(runs)
    names = _wanted_figures(options.only, runs)
    out = options.out or (runs[0].path / "figures" if len(runs) == 1 else Path("figures"))
    labels = list(dict.fromkeys(machine_labels(runs)))
    if len(labels) > 1:
        _say(
            f"{len(runs)} runs that must not be mixed ({'; '.join(labels)}): each has lines of "
            "its own, and each speedup is over its own run's baseline"
        )
    data = gather(runs, about.baseline)
    for name in names:
        drawing = draw(name, data, about)
        if drawing.figure is None:
            _say(f"{name}: not drawn: {drawing.message}")
            continue
        for path in write(drawing, out):
            print(path)
    return 0


def _profiler(options: argparse.Namespace) -> int:
    for run in options.dirs:
        warnings: list[str] = []
        print(profiler_markdown(profiler_table(read_events(run, warnings))), end="")
        for warning in warnings:
            _say(f"warning: {warning}")
    return 0


def _report(options: argparse.Namespace) -> int:
    for path in write_report(_load(options), options.out, options.unread):
        print(path)
    return 0


def _compare(options: argparse.Namespace) -> int:
    if not 0 <= options.threshold < 1000:
        raise RunError(f"--threshold: {options.threshold:g} is not a percentage from 0 to 1000")
    found = find_runs([options.old, options.new])
    if len(found) != 2:
        raise RunError(f"OLD and NEW must be one run directory each; they hold {len(found)}")
    options.dirs = found
    runs = _load(options)
    if options.unread:
        return 2
    table = compare.compare(*runs, options.threshold / 100, options.across_machines)
    shown = table if options.all else table[table["verdict"] != compare.ALIKE]
    if len(shown):
        print(tables.comparison(shown))
    print(compare.summary(table) or "the runs have no points")
    return compare.exit_status(table)


def _study(options: argparse.Namespace) -> int:
    study = published.check_study(options.study)
    runs = [Rows(run) for run in _load(options)]
    judged = [
        judgment
        for claim in claims.read_claims()
        if claim.study == study
        for judgment in claims.judge(claim, runs)
    ]
    print(tables.published(study, published.compared(study, runs), judged), end="")
    return 0


def _claims(options: argparse.Namespace) -> int:
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


def _regimes(options: argparse.Namespace) -> int:
    for run in _load(options):
        print(regimes.summary(run) if options.summary else regimes.every_version(run))
    return 0


def _choices(options: argparse.Namespace) -> int:
    options.dirs = [options.dir]
    for run in _load(options):
        print(choices.summary(run) if options.summary else choices.choices(run))
    return 0


def _tune(options: argparse.Namespace) -> int:
    options.out.write_text(tune.table(_load(options)), encoding="utf-8")
    print(options.out)
    return 0


def _readme_table(options: argparse.Namespace) -> int:
    runs = _load(options)
    if len(runs) > 1:
        raise RunError(f"{options.dirs[0]}: holds {len(runs)} run directories; name one of them")
    print(_table(runs[0]), end="")
    return 0


def _table(run: Run) -> str:
    return tables.headline(run, all_points([run], run.baseline))


def _image(run: Run, figure: str, options: argparse.Namespace) -> str:
    """Draws a figure into the run's own folder, unless the file is only checked; its Markdown."""
    folder = run.path / "figures"
    if not options.check:
        drawing = draw(figure, gather([run], run.baseline), subject([run]))
        if drawing.figure is None:
            raise RunError(f"{options.file}: {figure} of {run.path}: {drawing.message}")
        write(drawing, folder)
    link = os.path.relpath(folder / f"{figure}.png", options.file.parent)
    return image(f"{figure}: {run.title}", Path(link).as_posix())


TABLES = {
    "": _table,
    "regimes": regimes.summary,
    "choices": choices.summary,
    "counters": counted.phases,
}
"""What a README may have of a run: `RUN` or `RUN:PART`."""


def _readme(options: argparse.Namespace) -> int:
    runs = _load(options)

    def content(kind: str, name: str) -> str | None:
        if (kind, name) == ("table", "versions") and options.program:
            return tables.versions(readme.listed_versions(options.program))
        name, _, part = name.partition(":")
        if kind == "figure" and part not in FIGURES:
            raise RunError(
                f"{options.file}: figure '{name}:{part}' must be RUN:FIGURE, "
                f"with one of {', '.join(FIGURES)}"
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

    try:
        old = options.file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise RunError(f"{options.file}: not UTF-8 text ({error})") from None
    new, left = readme.rewrite(old, str(options.file), content)
    for name in left:
        _say(f"{options.file}: {name} is of none of the given runs and is left as it is")
    if old == new:
        return 0
    if options.check:
        _say(f"{options.file}: out of date; run the same command without --check")
        return 1
    options.file.write_bytes(new.encode("utf-8"))
    print(options.file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
