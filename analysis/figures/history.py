"""history: one problem's median times over commits, with the changes that the test of `compare`
finds, as airspeed velocity draws them."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from analysis.figures import style
from analysis.figures.drawing import Drawing, Subject, csv_rows
from analysis.figures.looks import version_styles
from analysis.figures.notes import method_notes, needing_no_baseline, small_print
from analysis.figures.page import Page, columns_of_panels
from analysis.figures.scales import fitting, log_axis
from analysis.figures.series import draw_line
from analysis.figures.typeset import text_width
from analysis.measures.compare import FASTER, OPEN_FASTER, OPEN_SLOWER, SLOWER
from analysis.measures.history import COLUMNS, TESTED, UNKNOWN, History
from analysis.measures.points import Data
from analysis.model.numbers import count_text, number_text

NAME = "history"
INKS = ["#222222", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7F3C8D"]
"""Of machines: the colours that no mark of a change has."""
MARKS = {
    SLOWER: {"marker": "^", "color": "#D55E00", "fillstyle": "full"},
    FASTER: {"marker": "v", "color": "#0072B2", "fillstyle": "full"},
    OPEN_SLOWER: {"marker": "^", "color": "#D55E00", "fillstyle": "none"},
    OPEN_FASTER: {"marker": "v", "color": "#0072B2", "fillstyle": "none"},
}
LEAST_SPAN = 1.2
"""A panel's time axis spans at least this factor, so that noise does not look like a change."""


def draw_history(data: Data, subject: Subject, of: History, threshold: float) -> Drawing:
    """Draws a panel for each version of `of`, with a line for each machine; the points are those of
    `data`. The rows are one for each version, machine and recording."""
    points = needing_no_baseline(data.points)
    shown = points[points["status"].eq("ok")]
    rows = csv_rows(points, shown.index)
    rows = pd.concat([rows, points[[*COLUMNS, *TESTED]]], axis=1)
    machines = list(dict.fromkeys(shown["machine"]))
    looks = _looks(machines)
    verdicts = [v for v in MARKS if v in set(shown["verdict"])]
    panels = list(shown.groupby("version", sort=False))
    columns = columns_of_panels(min(len(panels), 3), 0.7, 0.9)
    page = Page(
        f"{subject.title}: history",
        [*subject.environment, _problem_text(of.problem)],
        small_print(points, shown.index, _notes(shown, of, threshold), f"{NAME}.csv"),
        [name for name, _ in panels],
        columns,
        1.2 if len(panels) > 1 else 2.2,
        left=0.55,
        right=0.15,
        below=0.42,
        last=0.16,
        legend=[
            *(looks.items() if len(machines) > 1 else []),
            *((verdict, {**MARKS[verdict], "linestyle": "none"}) for verdict in verdicts),
        ],
    )
    places = int(points["place"].max()) + 1
    for (_, line), axes in zip(panels, page.axes, strict=True):
        axes.set_xlim(-0.5, places - 0.5)
        _draw_version(axes, line, looks)
        _name_commits(axes, points, page.axes_width / places, of.by_commit)
    page.label_outer("commit" if of.by_commit else "recording", "ms per iteration")
    return Drawing(NAME, page.figure, rows)


def _looks(machines: list[str]) -> dict[str, dict]:
    """A look for each machine."""
    styles = zip(machines, version_styles(machines), strict=True)
    return {
        machine: {**variants[0], "color": INKS[place % len(INKS)]}
        for place, (machine, variants) in enumerate(styles)
    }


def _problem_text(problem: dict) -> str:
    sizes = [f"{c.upper()} = {count_text(problem[c])}" for c in ("n", "k")]
    others = [f"dim {problem['dim']}", str(problem["precision"]), str(problem["data"])]
    return ", ".join([*sizes, *others])


def _draw_version(axes: Axes, line: pd.DataFrame, looks: dict[str, dict]) -> None:
    """Draws the times of a version, with a line for each machine, and marks their changes."""
    values = line[["iteration_ms", "iteration_ms_low", "iteration_ms_high"]]
    low, high = values.min(axis=None), values.max(axis=None)
    room = max((LEAST_SPAN * low / high) ** 0.5, 1.06)
    log_axis(axes, "y", low / room, high * room, wanted=4)
    for machine, own in line.groupby("machine", sort=False):
        draw_line(axes, own, "place", "iteration_ms", looks[machine])
    _mark(axes, line[line["verdict"].isin(MARKS)])


def _notes(shown: pd.DataFrame, of: History, threshold: float) -> list[str]:
    notes = method_notes(
        shown,
        "Time per iteration, each version at its fastest tunables",
        "95% interval of the median",
        int(shown["iteration_ms_low"].isna().sum()),
    )
    tested = int(shown["verdict"].notna().sum())
    notes[0] += " Every panel has its own time scale."
    notes.append(
        "Triangles: compare's test between a version's recording and the one before it on the same "
        f"machine ({tested} pairs, differences of more than {100 * threshold:g}%); between "
        "two recordings of one program any filled one has a chance of at most 5%. Hollow: perhaps, "
        "for fewer than four launches, noise or another GPU of the model cannot tell."
    )
    notes.append(
        "In the order of the commits; recordings of one commit stand side by side."
        if of.by_commit
        else "In the order of measuring: a commit is unknown to the repository (--repository)."
    )
    if of.others:
        notes.append(
            f"{of.others} other problem{'s were' if of.others > 1 else ' was'} measured more than "
            "once: --n, --k, --dim, --precision, --data."
        )
    return notes


def _mark(axes: Axes, changes: pd.DataFrame) -> None:
    """A triangle above what became slower and below what became faster, with the ratio."""
    for _, point in changes.iterrows():
        look = MARKS[point["verdict"]]
        up = 1 if look["marker"] == "^" else -1
        x, y = axes.transData.transform((point["place"], point["iteration_ms"]))
        at = axes.transData.inverted().transform((x, y + 8 * up * axes.figure.dpi / 72))
        axes.plot(*at, linestyle="none", markersize=5, zorder=5, clip_on=False, **look)
        axes.annotate(
            f"{number_text(point['ratio'])}×",
            at,
            xytext=(0, 4 * up),
            textcoords="offset points",
            ha="center",
            va="bottom" if up > 0 else "top",
            color=look["color"],
            zorder=5,
        )


def _name_commits(axes: Axes, points: pd.DataFrame, share: float, by_commit: bool) -> None:
    """Hash and day below the first place of each commit, as many as fit."""
    places = points.drop_duplicates("place").sort_values("place")
    again = places[["commit", "dirty"]].eq(places[["commit", "dirty"]].shift()).all(axis=1)
    first = places[~again]
    names = [
        _short(commit, dirty) for commit, dirty in zip(first["commit"], first["dirty"], strict=True)
    ]
    days = first["commit_utc" if by_commit else "recorded_utc"].fillna("").str[:10]
    wide = [max(pair, key=text_width) for pair in zip(names, days, strict=True)]
    chosen = fitting([(place + 0.5) * share for place in first["place"]], wide)
    axes.set_xticks(
        [int(first["place"].iloc[i]) for i in chosen],
        [f"{names[i]}\n{days.iloc[i]}" for i in chosen],
    )
    for place in first["place"]:
        axes.axvline(place - 0.5, color=style.FAINT, linewidth=0.5, zorder=0.5)
    axes.grid(visible=False, axis="x")


def _short(commit: str, dirty: bool) -> str:
    return (commit[:7] if commit != UNKNOWN else commit) + ("+" if dirty else "")
