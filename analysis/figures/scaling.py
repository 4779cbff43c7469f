"""scaling: speedup and efficiency against threads, processes or GPUs: strong (the same problem) and
weak (N grows with the workers)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis.figures import style
from analysis.figures.drawing import Drawing, Subject, not_drawn
from analysis.figures.notes import method_notes, needing_no_baseline, small_print, subtitle
from analysis.figures.page import Page, columns_of_panels
from analysis.figures.placement import label_ends, stacked_height
from analysis.figures.scales import fitting, log_axis, log_positions
from analysis.figures.series import draw_line, series_names, series_styles, source_texts
from analysis.figures.typeset import break_label, widest_line
from analysis.figures.x_axis import XAxis, named, nothing_on_x, x_axis
from analysis.measures.places import PLACE
from analysis.measures.points import Data
from analysis.measures.stats import ratio_interval
from analysis.model.numbers import count_text
from analysis.model.words import AXES

NAME = "scaling"
ALL = "workers"
"""What is on x unless an axis is: all kinds of workers, multiplied."""
ANY = "workers"
"""What workers of several kinds are called."""
MARKS = ("noisy", "oversubscribed")
"""Columns that say why a point should not be relied on; left out where no row has them."""
LABELS = {"threads": "threads", "processes": "processes", "gpus": "GPUs"}
WORKERS = list(LABELS)
SHOWN = ["n", "k", "dim", "precision", "data"]


def draw(data: Data, subject: Subject, x: str = ALL) -> Drawing:
    """Draws speedup over the baseline (or over one worker, if there is none) and efficiency for
    each problem that several numbers of workers solved. For each series of problems whose N grows
    with the workers, draws the efficiency T(1) / T(workers).

    Workers are threads × processes × GPUs. If threads vary, too, each number of processes has its
    own line, as in biason_romania's figure 6. With one of WORKERS as `x`, the others have lines of
    their own. With another axis, each number of workers has a line over it.

    A version for several GPUs is compared with its parent on one GPU, where that was measured
    beside it and the spec names no baseline: a version may be slow on one GPU only because it can
    use several."""
    name = named(NAME, x, ALL)
    counted = [x] if x in WORKERS else WORKERS
    points = _with_workers(needing_no_baseline(data.points), counted)
    ok = _solved(points, counted, x)
    if x != ALL and (why := nothing_on_x(ok, x)):
        return not_drawn(name, points, why)
    ok = _with_series(ok, x)
    along = None if x in (ALL, *WORKERS) else x_axis(ok, x)
    parents = _Parents(points, data.parents)
    away = data.points["baseline_elsewhere"]
    strong = _strong(ok[~away[ok.index]], points, subject.baseline, parents, along)
    weak = _weak(ok, parents) if along is None else strong.iloc[:0]
    rows = pd.concat([part for part in (strong, weak) if len(part)] or [strong])
    points["reason"] = _reasons(points, data.points["reason"].where(away), ok, rows["point"])
    if rows.empty:
        return not_drawn(name, points, _why_nothing(ok, x))

    panels = _panels(strong, weak)
    shown = ok[ok["point"].isin(rows["point"])]
    workers, label = _words(shown, counted)
    looks = series_styles(shown if along is None else rows, points, subject.baseline)
    labels = {s: break_label(s, 0.98) for s in looks}
    timed = points.loc[[*shown.index, *parents.used]]
    notes = _notes(timed, rows, weak, subject.baseline, workers)
    over = "" if x == ALL else f" over {along.short if along else x}"
    page = _page(
        f"{subject.title}: scaling{over}",
        subtitle(shown, subject),
        small_print(points, timed.index, notes, f"{name}.csv"),
        [title for title, _, _ in panels],
        list(labels.values()),
        along,
    )
    ticks = sorted({int(w) for w in rows["workers"]} | ({1} if len(strong) else set()))
    for (_, of, what), axes in zip(panels, page.axes, strict=True):
        if along is None:
            _worker_axis(axes, page.axes_width, ticks, label)
        else:
            _other_axis(axes, page.axes_width, along)
        ends = _y_axis(axes, of, what, rows["workers"].max(), ideal=along is None)
        ends += _draw_lines(axes, of, what, along, looks, labels)
        label_ends(axes, ends)
    rows = rows.drop(columns=[mark for mark in MARKS if not rows[mark].notna().any()])
    return Drawing(name, page.figure, rows)


def _solved(points: pd.DataFrame, counted: list[str], x: str) -> pd.DataFrame:
    """The points with a result that have workers of the `counted` kinds, and a value on x."""
    ok = points[points["status"].eq("ok") & points[counted].notna().any(axis=1)]
    return ok if x in (ALL, *WORKERS) else ok[ok[x].notna()]


def _page(
    title: str,
    subtitles: list[str],
    notes: list[tuple[str, str]],
    panels: list[str],
    labels: list[str],
    along: XAxis | None,
) -> Page:
    """A page with room for the labels of the lines, which stand at their right ends."""
    widest = widest_line(labels)
    columns = columns_of_panels(2 if len(panels) > 1 else 1, widest + 0.76, 1.2)
    left, right = 0.52, widest + 0.24
    return Page(
        title,
        subtitles,
        notes,
        panels,
        columns,
        max(1.6, stacked_height(labels)),
        left=left,
        right=right,
        below=0.45 + (along.room(style.width() / columns - left - right) if along else 0),
    )


def _with_workers(points: pd.DataFrame, counted: list[str]) -> pd.DataFrame:
    """The points with their number of `workers`: those of the `counted` kinds, multiplied."""
    counts = points[counted].astype("Float64").fillna(1).astype(float)
    return points.assign(workers=counts.prod(axis=1))


def _with_series(ok: pd.DataFrame, x: str) -> pd.DataFrame:
    """The points with the name of their line, `series`."""
    ok = ok.assign(series=series_names(ok, x) if len(ok) else "")
    return _split_workers(ok, x) if x in WORKERS else _split_processes(ok)


def _reasons(
    points: pd.DataFrame, away: pd.Series, ok: pd.DataFrame, drawn: pd.Series
) -> pd.Series:
    """Why a point is not drawn: its own reason, or that what it would be compared with ran on
    another node. `away` has the reasons of points whose baseline did."""
    known = points["reason"].notna() | points["point"].isin(drawn)
    reasons = points["reason"].astype(object).where(known, away)
    run = ok[PLACE].str.split(":").str[0]
    same = [run, *(ok[c] for c in ("version", "n", "k", "dim", "data", "precision"))]
    for _, of in ok.groupby(same, sort=False):
        for at, point in of[~of["point"].isin(drawn)].iterrows():
            others = [place for place in dict.fromkeys(of[PLACE]) if place != point[PLACE]]
            if others and pd.isna(reasons[at]):
                here, *there = (place.partition(":")[2] for place in (point[PLACE], *others))
                words = "threads, processes or GPUs"
                reasons[at] = f"other numbers of {words} ran on {', '.join(there)}, this on {here}"
    return reasons


def _why_nothing(ok: pd.DataFrame, x: str) -> str:
    if x in WORKERS:
        return f"no problem was solved with several numbers of {x}"
    counts = "several numbers of threads, processes or GPUs"
    if ok["workers"].nunique() < 2:
        return f"no version was run with {counts}"
    return f"no problem was solved with {counts}, and no version with as many points for each"


def _panels(strong: pd.DataFrame, weak: pd.DataFrame) -> list[tuple[str, pd.DataFrame, str]]:
    """The title of each panel, its rows, and the column that it shows."""
    # the study has speedup above efficiency; here they are side by side
    panels = []
    for kind, of in (("strong", strong), ("weak", weak)):
        for key, group in of.groupby("problem", sort=False) if len(of) else []:
            if kind == "strong":
                panels.append((f"Strong: {key}, speedup", group, "speedup"))
            panels.append((f"{kind.title()}: {key}, efficiency", group, "efficiency"))
    return panels


def _words(shown: pd.DataFrame, counted: list[str]) -> tuple[str, str]:
    """What the workers are called: the one kind of which some point has several, else ANY. And the
    same for an axis, which says which kinds these are."""
    several = [w for w in counted if shown[w].fillna(1).gt(1).any()]
    used = several or [w for w in counted if shown[w].notna().any()]
    if len(used) == 1:
        return LABELS[used[0]], LABELS[used[0]]
    return ANY, f"{ANY} ({' × '.join(LABELS[w] for w in used)})"


def _notes(
    timed: pd.DataFrame, rows: pd.DataFrame, weak: pd.DataFrame, baseline: str, workers: str
) -> list[str]:
    least = int(rows["workers"].min())
    fewest = "one worker" if least == 1 else f"{least} workers"
    notes = method_notes(
        timed,
        f"Speedup over {_over(rows, baseline, fewest)}; efficiency: speedup by {workers}",
        "95% interval (bootstrap)",
        0,
    )
    if weak.empty:
        return notes
    alone = "T(1)" if weak["over"].ne(weak["version"]).any() else f"T({fewest})"
    notes.append(f"Weak: N grows with the {workers}; efficiency is {alone} / T({workers}).")
    if alone == "T(1)":
        notes[-1] += f" T(1) is that of {_over(weak, '', fewest)}."
    return notes


def _worker_axis(axes: Axes, width: float, ticks: list[int], label: str) -> None:
    """Makes the x axis one of numbers of workers, with as many ticks as fit into `width` inches."""
    log_axis(axes, "x", ticks[0], ticks[-1])
    at = log_positions(axes.get_xlim(), ticks, width)
    names = [count_text(t) for t in ticks]
    chosen = fitting(at, names, gap=0.04)
    axes.set_xticks([ticks[i] for i in chosen], [names[i] for i in chosen])
    axes.set_xlabel(label)


def _other_axis(axes: Axes, width: float, along: XAxis) -> None:
    along.scale(axes)
    along.ticks(axes, width)
    axes.set_xlabel(along.label)


def _draw_lines(
    axes: Axes,
    of: pd.DataFrame,
    what: str,
    along: XAxis | None,
    looks: dict[str, dict],
    labels: dict[str, str],
) -> list[tuple]:
    """Draws the lines of a panel. Returns their ends for label_ends()."""
    ends = []
    placed = of.assign(at=along.at(of[along.name]) if along else of["workers"])
    for series, line in placed.groupby("series", sort=False):
        look = along.line_style(looks[series]) if along else looks[series]
        end = draw_line(axes, line, "at", what, look)
        ends.append((*end, labels[series], look["color"]))
    return ends


def _y_axis(axes: Axes, of: pd.DataFrame, what: str, most: float, *, ideal: bool) -> list[tuple]:
    """Makes the y axis one of speedup or efficiency. A speedup has room for the ideal one of `most`
    workers, and its line if `ideal`. Returns the end of that line for label_ends()."""
    axes.set_ylabel(what)
    if what == "efficiency":
        top = max(1.05, of[["efficiency", "efficiency_high"]].max(axis=None) * 1.05)
        axes.set_ylim(0, top)
        axes.axhline(1, color=style.GREY, lw=0.8, ls=(0, (3, 2)))
        return []
    values = of[["speedup", "speedup_low", "speedup_high"]]
    begin = of["over_workers"].min()
    best = most / begin
    log_axis(axes, "y", min(values.min(axis=None), 1.0), max(values.max(axis=None), best))
    if not ideal:
        return []
    axes.plot([begin, most], [1, best], color=style.GREY, lw=0.8, ls=(0, (3, 2)))
    return [(most, best, "ideal", style.GREY)]


def _split_processes(ok: pd.DataFrame) -> pd.DataFrame:
    """A line for each number of processes, if the threads of the version vary as well."""
    both = ok.groupby("version")[["threads", "processes"]].transform("nunique").gt(1).all(axis=1)
    own = ok["processes"].astype(str) + ok["processes"].eq(1).map(
        {True: " process", False: " processes"}
    )
    ok["series"] = ok["series"].where(~both, ok["series"] + " " + own)
    return ok


def _split_workers(ok: pd.DataFrame, x: str) -> pd.DataFrame:
    """A line for each number of the other workers that vary within the version."""
    for other in (w for w in WORKERS if w != x):
        several = ok.groupby("version")[other].transform("nunique").gt(1)
        own = ok["series"] + " " + ok[other].astype(str) + f" {other}"
        ok["series"] = ok["series"].where(~several, own)
    return ok


class _Parents:
    """The versions for one GPU that versions for several stand on."""

    SAME = ("machine", PLACE, "n", "k", "dim", "precision", "data")

    def __init__(self, points: pd.DataFrame, parents: dict[str, str]):
        ok = points[points["status"].eq("ok") & points["gpus"].isna()]
        self._points = ok
        self._parents = parents
        self.used: list = []
        """The index of each point that others were compared with."""

    def use(self, best: pd.Series) -> list:
        """The samples of a point that others are compared with."""
        if best.name not in self.used:
            self.used.append(best.name)
        return best["times_ms"]

    def samples(self, line: pd.DataFrame, n: float) -> tuple | None:
        """The samples of the parent of the line's version on `n` points, and its name. None if it
        was not measured, or if the version does not use several GPUs."""
        first = line.iloc[0]
        parent = self._parents.get(first["version"])
        if not parent or line["gpus"].isna().all():
            return None
        same = self._points["version"].eq(parent)
        for column in self.SAME:
            same &= self._points[column].eq(n if column == "n" else first[column])
        if not same.any():
            return None
        best = self._points.loc[self._points.loc[same, "iteration_ms"].idxmin()]
        return self.use(best), parent


def _over(rows: pd.DataFrame, baseline: str, fewest: str) -> str:
    """What the ratios of `rows` are over, in words."""
    texts = []
    if baseline and rows["over"].eq(baseline).any():
        texts.append(baseline)
        rows = rows[rows["over"].ne(baseline)]
    parents = list(dict.fromkeys(rows.loc[rows["over"].ne(rows["version"]), "over"]))
    if parents:
        several = f"{', '.join(parents[:-1])} or " if parents[1:] else ""
        texts.append(f"{several}{parents[-1]}, the version for one GPU")
    if rows["over"].eq(rows["version"]).any():
        texts.append(f"{fewest} of the same version")
    return "; else over ".join(texts)


def _rows(of: pd.DataFrame, problem: str, kind: str, base, over: str, at: float) -> pd.DataFrame:
    """The rows of a line: the speedup of each point over the `base` samples, and its efficiency."""
    rows = of[["machine", "point", "version", "series", *SHOWN]]
    rows = rows.assign(**{c: of[c] for c in ("workers", "iteration_ms", *MARKS)})
    itself = (1.0, np.nan, np.nan)
    ratios = np.array(
        [itself if times is base else ratio_interval(base, times) for times in of["times_ms"]]
    )
    divide = of["workers"].to_numpy()[:, None] / at if kind == "strong" else 1.0
    names = ["speedup", "speedup_low", "speedup_high"]
    rows[names] = ratios if kind == "strong" else np.nan
    rows[["efficiency", "efficiency_low", "efficiency_high"]] = ratios / divide
    return rows.assign(kind=kind, problem=problem, over=over, over_workers=at, drawn=True)


def _strong(
    ok: pd.DataFrame,
    points: pd.DataFrame,
    baseline: str,
    parents: _Parents,
    along: XAxis | None,
) -> pd.DataFrame:
    """The rows of each line of each problem. Over an axis, each number of workers is a series."""
    parts = []
    over = [along.name] if along and along.name not in ("n", "k", "dim", "data") else []
    sources = _sources(ok)
    # a ratio of the times of two places says nothing
    same_problem = ["machine", PLACE, "n", "k", "dim", "data", *over]
    for key, of in ok.groupby(same_problem, sort=False):
        values = dict(zip(same_problem, key, strict=True))
        base = points[points["version"].eq(baseline) & points["status"].eq("ok")]
        for column, value in values.items():
            # the baseline may not have the axis on x
            if column not in AXES:
                base = base[base[column].eq(value)]
        problem = _problem_text(values, sources, along)
        # only the fastest combination for each number of workers
        quickest = of.loc[of.groupby(["series", "workers"], sort=False)["iteration_ms"].idxmin()]
        for _, line in quickest.groupby("series", sort=False):
            if line["workers"].max() == 1 or line["version"].iloc[0] == baseline:
                continue
            if reference := _reference(line, base, baseline, parents):
                parts.append(_rows(line, problem, "strong", *reference))
    if not parts:
        return ok.iloc[:0].assign(problem="", over="")
    rows = pd.concat(parts)
    if along is None:
        return rows
    # the sizes of a line's points, and the number of its workers
    count = rows["workers"].astype(int)
    words = count.map(count_text) + count.eq(1).map({True: " worker", False: " workers"})
    inputs = [c for c in (along.name, "data_name") if ok[c].notna().any()]
    own = {column: ok.loc[rows.index, column] for column in inputs}
    return rows.assign(**own, series=rows["series"] + " " + words)


def _problem_text(values: dict, sources: dict[str, str], along: XAxis | None) -> str:
    """The sizes and the source of a problem, except the one that is on x."""
    x = along.name if along else ""
    sizes = {
        "n": f"N = {count_text(values['n'])}",
        "k": f"K = {count_text(values['k'])}",
        "dim": f"dim {values['dim']}",
    }
    problem = ", ".join(text for size, text in sizes.items() if size != x)
    return problem + (sources.get(values["data"], "") if x != "data" else "")


def _reference(
    line: pd.DataFrame, base: pd.DataFrame, baseline: str, parents: _Parents
) -> tuple | None:
    """The samples that a line is compared with, their version, and its number of workers: of the
    baseline, else of the parent, else of the line itself. None if there is nothing to compare."""
    same = base[base["precision"].eq(line["precision"].iloc[0])]
    parent = None if len(same) else parents.samples(line, line["n"].iloc[0])
    if len(line) < 2 and parent is None:
        return None
    if len(same):
        # a baseline with several workers has the efficiency 1 on the fewest it ran on
        fewest = same["workers"].min()
        least = same[same["workers"].eq(fewest)]
        return parents.use(least.loc[least["iteration_ms"].idxmin()]), baseline, fewest
    if parent:
        return *parent, 1.0
    first = line.loc[line["workers"].idxmin()]
    return first["times_ms"], first["version"], first["workers"]


def _sources(ok: pd.DataFrame) -> dict[str, str]:
    """What the title of a panel says about each source of points. Nothing if there is only one."""
    if ok["data"].nunique() < 2:
        return {}
    return {data: f", {text}" for data, text in zip(ok["data"], source_texts(ok), strict=True)}


def _weak(ok: pd.DataFrame, parents: _Parents) -> pd.DataFrame:
    parts = []
    ok = ok.assign(share=ok["n"].astype(float) / ok["workers"])
    sources = _sources(ok)
    key = ["machine", PLACE, "series", "k", "dim", "share", "data"]
    quickest = ok.loc[ok.groupby([*key, "workers"], sort=False)["iteration_ms"].idxmin()]
    line = [column for column in key if column != "share"]
    shares = quickest.groupby(line, sort=False)["share"].transform("nunique")
    for values, of in quickest.groupby(key, sort=False):
        if of["n"].nunique() < 2:
            continue
        _, _, _, k, dim, share, source = values
        parent = parents.samples(of, share)
        # two points of a sweep over sizes and workers may have one share by chance
        chance = of["n"].nunique() < 3 and shares[of.index].gt(1).any()
        if parent is None and chance:
            continue
        worker = "worker" if parent is None else "GPU"
        problem = f"{count_text(round(share))} points per {worker}, K = {count_text(k)}, dim {dim}"
        problem += sources.get(source, "")
        first = of.loc[of["workers"].idxmin()]
        single = parent or (first["times_ms"], first["version"])
        parts.append(_rows(of, problem, "weak", *single, 1.0))
    return pd.concat(parts) if parts else ok.iloc[:0].assign(problem="", over="")
