"""The options of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from analysis import commands
from analysis.figures import FIGURES, FORMATS, X_OF, paper
from analysis.figures.x_axis import CHOICES
from analysis.measures import published
from analysis.measures.families import CHOOSERS
from analysis.measures.speedups import BEST_CPU

EPILOG = """\
A DIR is what run_experiment wrote (it holds measurements.jsonl), or a folder that holds such
directories.

  python -m analysis figures results/quickstart/20260131T120000Z-1a2b3c4
  python -m analysis figures data/recorded/nvidia-h200/wang --out figures --only speedup
  python -m analysis report data/recorded -o report
  python -m analysis table luigi data/recorded
  python -m analysis compare results/before results/after
  python -m analysis claims data/recorded --study wang
  python -m analysis readme README.md data/recorded --check

Exit status: 0 done; 1 --check found a file out of date, or compare a slower or lost point; 2
something given cannot be used (one line says what), or compare cannot say. """

Add = Callable[..., argparse.ArgumentParser]
"""Adds a command to the program: add_parser() of its subparsers."""


def _count(text: str) -> int:
    """A whole number as specs have it: 1000000, 1_000_000 or 1e6."""
    value = float(text.replace("_", ""))
    if not value.is_integer():
        raise argparse.ArgumentTypeError(f"{text} is not a whole number")
    return int(value)


def _run_directories(command: argparse.ArgumentParser, number: str = "+") -> None:
    command.add_argument("dirs", nargs=number, metavar="DIR", type=Path)


def _threshold(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--threshold",
        metavar="PERCENT",
        type=float,
        default=2.0,
        help="differences up to this are taken for none (default: 2)",
    )


def _baseline_option(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--baseline",
        metavar="VERSION",
        help=f"speedups over this version (or {BEST_CPU}) instead of the spec's baseline",
    )


def _latex_option(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--latex", action="store_true", help="as LaTeX (packages array and booktabs)"
    )


def _paper_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--format",
        metavar="NAME,…",
        help=f"of {', '.join(FORMATS)} (default: svg,png; for a paper pdf,pgf)",
    )
    command.add_argument(
        "--width",
        metavar="column|text|INCHES",
        help="for a paper: of the class's column or page, or in inches",
    )
    command.add_argument(
        "--class",
        dest="document_class",
        metavar="NAME",
        help=f"the paper's document class: {', '.join(paper.CLASSES)} (--width column)",
    )


def _figures(add: Add) -> None:
    command = add(
        "figures",
        help="draw the figures that the spec asks for",
        description="Draws the figures that the runs' specs ask for: NAME.svg, NAME.png and "
        "NAME.csv (the rows). Several DIRs are drawn together, and each machine has its own lines. "
        "With --class or --width, for a paper, it draws NAME.pdf and NAME.pgf of that width. "
        "NAME.tex has the figure's environment and a caption with title and small print.",
    )
    _run_directories(command)
    command.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        help="where to write (default: figures/ in DIR; ./figures for several)",
    )
    command.add_argument(
        "--only",
        metavar="NAME,…",
        help=f"draw these instead of the spec's: {', '.join(FIGURES)}; {', '.join(X_OF)} also "
        f"as NAME:AXIS, with another axis on x ({', '.join(CHOICES)})",
    )
    _baseline_option(command)
    _paper_options(command)
    command.set_defaults(command=commands.run_figures)


def _report(add: Add) -> None:
    command = add(
        "report",
        help="write an HTML page for each run, and an index with every verdict",
        description="Writes OUT/index.html, with the studies' claims and their published numbers "
        "beside the runs', and for each run OUT/RUN/index.html: every figure, the medians with "
        "their intervals, the points without a result, the environment, and a chart that redraws "
        "for the versions that are chosen. With --single-file OUT/report.html has all of that.",
    )
    _run_directories(command)
    command.add_argument("-o", "--out", required=True, metavar="OUT", type=Path)
    command.add_argument(
        "--single-file",
        action="store_true",
        help="write OUT/report.html (or OUT, if that ends in .html), which needs nothing beside "
        "it, and no folder of pages",
    )
    _baseline_option(command)
    command.set_defaults(command=commands.run_report)


def _compare(add: Add) -> None:
    command = add(
        "compare",
        help="is NEW slower than OLD? For CI",
        description="Tests every point that both runs have and prints the ratio NEW / OLD of the "
        "medians with its 95% interval. A point is slower or faster when a permutation test of the "
        "launches says so (four or more on each side: measure: {launches: 5}) and the whole "
        "interval is beyond the threshold. With fewer launches, or noise, it is perhaps slower or "
        "faster. Points that lack a result and are not lost are counted. Exit status: 0 none "
        "slower or lost, 1 some, 2 some perhaps slower, or nothing could be judged.",
    )
    command.add_argument("old", metavar="OLD", type=Path)
    command.add_argument("new", metavar="NEW", type=Path)
    _threshold(command)
    command.add_argument(
        "--all",
        action="store_true",
        help="list every point, also those without a difference or without a result",
    )
    command.add_argument(
        "--across-machines", action="store_true", help="compare although GPU or CPU differ"
    )
    _latex_option(command)
    command.set_defaults(command=commands.run_compare)


def _table(add: Add) -> None:
    command = add(
        "table",
        help="a study's tables beside the runs' values",
        description="Prints, as Markdown, every published number of STUDY with its place, and its "
        "value in the first DIR that has the row. The study's claims follow. Without a DIR, prints "
        f"only the published numbers. Studies: {', '.join(published.studies())}.",
    )
    command.add_argument("study", metavar="STUDY")
    _run_directories(command, "*")
    _latex_option(command)
    command.set_defaults(command=commands.run_study)


def _claims(add: Add) -> None:
    command = add(
        "claims",
        help="check the studies' conclusions against the runs' rows",
        description="Prints one line per claim: the published value, the value here, and whether "
        "it holds, fails or cannot be judged (and why not). If several runs can judge a claim, "
        "each has a line.",
    )
    _run_directories(command)
    command.add_argument("--study", metavar="STUDY", help="only the claims of this study")
    command.add_argument("--only", metavar="ID,…", help="only these claims")
    command.set_defaults(command=commands.run_claims)


def _profiler(add: Add) -> None:
    command = add(
        "profiler",
        help="time, share and calls of each kernel, copy and API call of a traced run",
        description="Prints, as Markdown, a profiler's table of each point that has a timeline "
        "(profile.timeline): share of the time, calls, average, minimum and maximum.",
    )
    _run_directories(command)
    _latex_option(command)
    command.set_defaults(command=commands.run_profiler)


def _regimes(add: Add) -> None:
    command = add(
        "regimes",
        help="the regimes of sweeps/fast_regimes.yaml: every version beside other people's",
        description="Prints, as Markdown, each regime that the run has: the time per iteration of "
        "every version, also as a multiple of the floor and of the best peer's, and how exact its "
        "labels are.",
    )
    _run_directories(command)
    command.add_argument(
        "--summary", action="store_true", help="only the best peer and the fastest of ours"
    )
    _latex_option(command)
    command.set_defaults(command=commands.run_regimes)


def _choices(add: Add) -> None:
    command = add(
        "choices",
        help="the choices of fast_auto or fast_cpu_auto beside the fastest versions",
        description="Prints, as Markdown, a row for each problem that fast_auto (or fast_cpu_auto) "
        "and others of its family ran: the version that it chose, the fastest version, and the "
        "ratio of their times.",
    )
    command.add_argument("dir", metavar="DIR", type=Path)
    command.add_argument("--summary", action="store_true", help="only where it lost")
    _latex_option(command)
    command.set_defaults(command=commands.run_choices)


def _tune(add: Add) -> None:
    command = add(
        "tune",
        help="write the table by which fast_auto or fast_cpu_auto chooses",
        description="Writes the time of each version for each problem, from the verified results "
        "of the runs. If several DIRs have the same problem, the last one counts.",
    )
    _run_directories(command)
    command.add_argument(
        "--ladder", choices=CHOOSERS, default="fast", help="whose chooser (default: %(default)s)"
    )
    command.add_argument(
        "-o", "--out", metavar="FILE", type=Path, help="default: kernels/LADDER/auto/table.inc"
    )
    command.set_defaults(command=commands.run_tune)


def _tables(add: Add) -> None:
    command = add(
        "tables",
        help="write every table of a run as Markdown and as LaTeX",
        description="Writes the tables of each run as NAME.md and NAME.tex (booktabs): headline, "
        "medians, missing, environment, and regimes, choices, counters and convergence if it has "
        "them.",
    )
    _run_directories(command)
    command.add_argument(
        "--out", metavar="DIR", type=Path, help="where to write (default: tables/ in each DIR)"
    )
    _baseline_option(command)
    command.set_defaults(command=commands.run_tables)


def _history(add: Add) -> None:
    command = add(
        "history",
        help="draw one problem's medians over commits, with change points",
        description="Draws history.svg, .png and .csv: a panel for each version, a line for each "
        "machine over the commits that the runs were built from, and a triangle where the test of "
        "compare finds that the version became slower or faster. Without a choice: the problem "
        "that was measured again most often. The changes are printed, too.",
    )
    _run_directories(command)
    for size in ("n", "k", "dim"):
        command.add_argument(f"--{size}", metavar="NUMBER", type=_count, help="of the problem")
    command.add_argument("--precision", metavar="NAME", help="of the problem")
    command.add_argument("--data", metavar="TEXT", help="of the problem, as the rows have it")
    command.add_argument(
        "--versions", metavar="GLOB,…", help="these only (default: all that were measured again)"
    )
    _threshold(command)
    command.add_argument(
        "--repository",
        metavar="DIR",
        type=Path,
        help="git repository that knows when the commits were made (default: the source tree's)",
    )
    command.add_argument(
        "--out", metavar="DIR", type=Path, default=Path("figures"), help="(default: figures)"
    )
    _paper_options(command)
    command.set_defaults(command=commands.run_history)


def _artifact(add: Add) -> None:
    command = add(
        "artifact",
        help="pack runs for an artifact evaluation, or check such a package",
        description="Packs the runs' rows, specs and environments, their figures with CSVs, their "
        "tables, the software that makes these from those, checksums and a README into a folder "
        "or a .tar.gz. --check compares every file with its checksum, draws figures and tables "
        "again from the packed rows, and exits with 1 if one differs.",
    )
    _run_directories(command, "*")
    command.add_argument(
        "--out", metavar="PATH", type=Path, help="a new folder, or a file that ends in .tar.gz"
    )
    command.add_argument("--check", metavar="PATH", type=Path, help="check this folder or .tar.gz")
    _paper_options(command)
    command.set_defaults(command=commands.run_artifact)


def _compact(add: Add) -> None:
    command = add(
        "compact",
        help="make a run small enough to record",
        description="Rewrites the rows of each run, so that the common fields of consecutive rows "
        "are written once, and removes files that repeat them: benchmark.json, summary.md and "
        "timeline.json. Every sample is kept, and every other command gives the same result for a "
        "compacted run. The run can no longer be resumed.",
    )
    _run_directories(command)
    command.set_defaults(command=commands.run_compact)


def _readme_table(add: Add) -> None:
    command = add(
        "readme-table",
        help="print the Markdown table of a run",
        description="Prints each version's fastest result at the largest N that the baseline has.",
    )
    command.add_argument("dirs", nargs=1, metavar="DIR", type=Path)
    _baseline_option(command)
    _latex_option(command)
    command.set_defaults(command=commands.run_readme_table)


def _pixels(add: Add) -> None:
    command = add(
        "pixels",
        help="turn a picture into points: an npy file for a spec's data",
        description="Writes the red, green and blue (uint8) of each pixel of a picture, row by row "
        "from the top left, as the points of a spec: data: {file: OUT.npy}. Transparency is left "
        "out.",
    )
    command.add_argument("picture", metavar="PICTURE", type=Path)
    command.add_argument("out", metavar="OUT.npy", type=Path)
    command.set_defaults(command=commands.run_pixels)


def _readme(add: Add) -> None:
    command = add(
        "readme",
        help="rewrite the tables and figures between markers in a Markdown file",
        description="Rewrites the text between <!-- table:BEGIN name --> and "
        "<!-- table:END name -->, and draws the figures between <!-- figure:BEGIN name:FIGURE --> "
        "and its END into the run's folder. The name is that of a DIR's spec, or the last parts of "
        "its path (nvidia-h200/k1000), or `versions` for the program's list. With "
        "`:PART` after it, as in `k1000:peers`, it means another of the run's tables; a PART that "
        "does not exist is answered with the list. Other markers are left alone.",
    )
    command.add_argument("file", type=Path, metavar="FILE.md")
    _run_directories(command)
    command.add_argument(
        "--program",
        metavar="RUN_EXPERIMENT",
        type=Path,
        help="the program to ask for the tables `versions` and `spec:…`",
    )
    command.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if the file would change"
    )
    command.set_defaults(command=commands.run_readme)


COMMANDS = (
    _figures,
    _report,
    _compare,
    _table,
    _claims,
    _profiler,
    _regimes,
    _choices,
    _tune,
    _tables,
    _history,
    _artifact,
    _compact,
    _readme_table,
    _pixels,
    _readme,
)
"""Each adds one command with its options, in the order of --help."""


def parser(prog: str = "python -m analysis") -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog=prog,
        description="Figures, tables and reports from run directories. Needs no GPU.",
        epilog=EPILOG.replace("python -m analysis", prog),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    kinds = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command(kinds.add_parser)
    return top
