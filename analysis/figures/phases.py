"""phases: where the time of a solve goes. A stacked bar per version, and a panel per problem."""

from __future__ import annotations

import pandas as pd

from analysis.figures import style
from analysis.figures.drawing import Drawing, Subject, not_drawn
from analysis.figures.notes import needing_no_baseline, noisy_note, small_print, subtitle
from analysis.figures.page import Page, columns_of_panels
from analysis.figures.row_axis import at_right, row_labels, rows_axis
from analysis.figures.series import largest_problems, panel_title, problem_panels, series_names
from analysis.figures.typeset import text_width
from analysis.measures.fastest import fastest
from analysis.measures.noise import NOISY, noisy_mark
from analysis.measures.points import Data
from analysis.model.numbers import number_text
from analysis.model.run import PROBLEM

NAME = "phases"
OUTSIDE = "outside"
COLOURS = {
    "assign": "#0072B2",
    "update": "#D55E00",
    "transfer": "#E69F00",
    "converge": "#CC79A7",
    "init": "#009E73",
    OUTSIDE: "#d9d9d9",
}
_SPARE = ["#7F3C8D", "#56B4E9", "#000000"]


def draw(data: Data, subject: Subject) -> Drawing:
    """Draws each version at its fastest tunables: the shares of its phases in the time per
    iteration. There is one row for each point × phase.

    Phases come from one profiled solve. Their time is the device's time between the events around a
    phase, or the host's time on a CPU. The rest of the median iteration is `outside`."""
    points = needing_no_baseline(data.points)
    best = fastest(points)
    rows = _shares(best, data.phases)
    if rows.empty:
        why = "no point has a result" if best.empty else "the run has no phases"
        return not_drawn(NAME, points, why)
    shown = best[best["point"].isin(rows["point"])]
    shown, left_out = largest_problems(shown)
    shown = shown.assign(series=series_names(shown))
    rows["drawn"] = rows["point"].isin(shown["point"])
    columns, panels = problem_panels(shown)
    colours = _colours(rows)
    silent = sorted(set(best["version"]) - set(rows["version"]))
    notes = _notes(left_out, shown, silent)
    labels, widest, tall = row_labels(list(shown["series"]), min(1.9, 0.4 * style.width()))
    most = max(len(of) for _, of in panels)
    page = Page(
        f"{subject.title}: phases",
        subtitle(shown, subject),
        small_print(points, shown.index, notes, f"{NAME}.csv"),
        [panel_title(columns, values, of) for values, of in panels],
        columns_of_panels(1 if len(panels) == 1 else 2, widest + 0.8, 1.2),
        (0.075 + 0.12 * tall) * most + 0.05,
        left=widest + 0.2,
        right=_room_for_times(shown),
        below=0.42,
        legend=[
            (phase, {"color": colour, "marker": "s", "linestyle": "none"})
            for phase, colour in colours.items()
        ],
    )
    for (_, of), axes in zip(panels, page.axes, strict=True):
        for height, (_, point) in enumerate(of.iterrows()):
            own = rows[rows["point"].eq(point["point"]) & rows["machine"].eq(point["machine"])]
            _draw_bar(axes, page.axes_width, height, own, colours)
            at_right(axes, height, _time(point["iteration_ms"]) + noisy_mark(point))
        rows_axis(axes, [labels[s] for s in of["series"]], most)
        axes.set_xlim(0, 100)
    page.label_outer("share of the time per iteration (%)")
    return Drawing(NAME, page.figure, rows)


def _colours(rows: pd.DataFrame) -> dict[str, str]:
    """The colour of each phase of the rows: the known ones first, in their order."""
    others = [p for p in dict.fromkeys(rows["phase"]) if p not in COLOURS]
    colours = {**COLOURS, **dict(zip(others, _SPARE * 9, strict=False))}
    present = set(rows["phase"])
    return {phase: colours[phase] for phase in [*COLOURS, *others] if phase in present}


def _notes(left_out: str, shown: pd.DataFrame, silent: list[str]) -> list[str]:
    return [
        "Shares of the time per iteration at each version's fastest tunables; at the right the "
        "median in ms. Phases are of one profiled solve: device time between events around the "
        "phase, on a CPU the host's clock. Outside: what the median takes beyond their sum "
        "(launches, waiting, and by how much the profiled solve was shorter).",
        left_out,
        noisy_note(shown),
        f"Without phases: {', '.join(silent)}." if silent else "",
    ]


def _room_for_times(shown: pd.DataFrame) -> float:
    """The inches that the times at the right of the bars take."""
    mark = text_width(NOISY) if shown["noisy"].eq(True).any() else 0
    return 0.14 + max(text_width(_time(ms)) for ms in shown["iteration_ms"]) + mark


def _draw_bar(axes, width, height, shares: pd.DataFrame, colours: dict[str, str]) -> None:
    """Draws the shares of one point's phases beside each other, in the order of the colours."""
    start = 0.0
    for phase, colour in colours.items():
        share = shares.loc[shares["phase"].eq(phase), "share_percent"].sum()
        if share <= 0:
            continue
        axes.barh(height, share, left=start, color=colour, height=0.72)
        _inside(axes, width, height, start, share, phase, colour)
        start += share


def _shares(best: pd.DataFrame, phases: pd.DataFrame) -> pd.DataFrame:
    """A row for each point × phase of the solve, with `share_percent` and `ms_per_iteration`."""
    solve = phases[phases["part"].eq("solve")]
    solve = solve.assign(ms=solve["device_ms"].fillna(solve["host_ms"]))
    solve = solve.groupby(["machine", "point", "phase"], sort=False)["ms"].sum().reset_index()
    head = ["machine", "point", "version", *PROBLEM, "iteration_ms", "iterations"]
    rows = solve.merge(best[head], on=["machine", "point"])
    if rows.empty:
        return rows
    rows["ms_per_iteration"] = rows["ms"] / rows["iterations"].astype(float)
    total = rows.groupby(["machine", "point"])["ms_per_iteration"].sum()
    rest = best.set_index(["machine", "point"])["iteration_ms"].reindex(total.index) - total
    extra = rows.drop_duplicates(["machine", "point"]).copy()
    keys = pd.MultiIndex.from_frame(extra[["machine", "point"]])
    extra["ms_per_iteration"] = rest.reindex(keys).clip(lower=0).to_numpy()
    extra["phase"] = OUTSIDE
    rows = pd.concat([rows, extra[extra["ms_per_iteration"] > 0]], ignore_index=True)
    whole = rows.groupby(["machine", "point"])["ms_per_iteration"].transform("sum")
    rows["share_percent"] = 100 * rows["ms_per_iteration"] / whole
    return rows[[*head, "phase", "ms_per_iteration", "share_percent"]]


def _time(ms: float) -> str:
    return f"{number_text(ms)} ms"


def _inside(axes, width, height, start, share, phase, colour) -> None:
    """Writes the phase and its share into its part of the bar, as far as there is room."""
    room = share / 100 * width - 0.06
    for text in (f"{phase} {share:.0f}%", f"{share:.0f}%"):
        if text_width(text) <= room:
            dark = colour in ("#d9d9d9", "#E69F00", "#56B4E9")
            axes.text(
                start + share / 2,
                height,
                text,
                ha="center",
                va="center",
                color=style.INK if dark else "white",
            )
            return
