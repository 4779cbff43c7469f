"""scaling: speedup and efficiency against threads, processes or GPUs: strong (the same problem) and
weak (N grows with the workers)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysis.figures import style
from analysis.figures.drawing import Drawing, Subject, csv_rows
from analysis.figures.notes import method_notes, needing_no_baseline, small_print, subtitle
from analysis.figures.page import Page, columns_of_panels
from analysis.figures.placement import label_ends
from analysis.figures.scales import fitting, log_axis, log_positions
from analysis.figures.series import draw_line, series_names, series_styles
from analysis.figures.typeset import break_label, text_width
from analysis.measures.points import Data
from analysis.measures.stats import ratio_interval
from analysis.model.numbers import count_text

NAME = "scaling"
WORKERS = ["threads", "processes", "gpus"]


def draw(data: Data, subject: Subject) -> Drawing:
    """Draws speedup over the baseline (or over one worker, if there is none) and efficiency for
    each problem that several numbers of workers solved. For each series of problems whose N grows
    with the workers, draws the efficiency T(1) / T(workers).

    Workers are threads × processes × GPUs. If threads vary, too, each number of processes has its
    own line, as in biason_romania's figure 6."""
    points = needing_no_baseline(data.points)
    ok = points[points["status"].eq("ok")].copy()
    counts = ok[WORKERS].astype("Float64").fillna(1).astype(float)
    ok["workers"] = counts.prod(axis=1)
    ok = ok[ok[WORKERS].notna().any(axis=1)]
    ok["series"] = series_names(ok) if len(ok) else ""
    ok = _split_processes(ok)
    strong, weak = _strong(ok, points, subject.baseline), _weak(ok)
    rows = pd.concat([part for part in (strong, weak) if len(part)] or [strong])
    if rows.empty:
        rows = csv_rows(points, ok.index[:0])
        why = "no version was run with several numbers of threads, processes or GPUs"
        return Drawing(NAME, None, rows, why)
    # the study has speedup above efficiency; here they are side by side
    panels = []
    for kind, of in (("strong", strong), ("weak", weak)):
        for key, group in of.groupby("problem", sort=False) if len(of) else []:
            if kind == "strong":
                panels.append((f"Strong: {key}, speedup", group, "speedup"))
            panels.append((f"{kind.title()}: {key}, efficiency", group, "efficiency"))
    shown = ok[ok["point"].isin(rows["point"])]
    looks = series_styles(shown, points, "")
    labels = {s: break_label(s, 0.98) for s in looks}
    widest = max(text_width(part) for text in labels.values() for part in text.split("\n"))
    lines = sum(text.count("\n") + 1 for text in labels.values())
    least = int(rows["workers"].min())
    fewest = "one worker" if least == 1 else f"{least} workers"
    over = f"{fewest} of the same version"
    if subject.baseline and rows["over"].eq(subject.baseline).any():
        over = subject.baseline
    notes = method_notes(
        shown, f"Speedup over {over}; efficiency: speedup by workers", "95% interval (bootstrap)", 0
    )
    if len(weak):
        notes.append(f"Weak: N grows with the workers; efficiency is T({fewest}) / T(workers).")
    if not rows["noisy"].notna().any():
        rows = rows.drop(columns="noisy")
    page = Page(
        f"{subject.title}: scaling",
        subtitle(shown, subject),
        small_print(points, shown.index, notes, f"{NAME}.csv"),
        [title for title, _, _ in panels],
        columns_of_panels(2 if len(panels) > 1 else 1, widest + 0.76, 1.2),
        max(1.6, 0.125 * lines),
        left=0.52,
        right=widest + 0.24,
        below=0.45,
    )
    most = rows["workers"].max()
    first = 1 if len(strong) else least
    for (_, of, what), axes in zip(panels, page.axes, strict=True):
        log_axis(axes, "x", first, most)
        ticks = sorted({int(w) for w in rows["workers"]} | {first})
        at = log_positions(axes.get_xlim(), ticks, page.axes_width)
        names = [count_text(t) for t in ticks]
        chosen = fitting(at, names, gap=0.04)
        axes.set_xticks([ticks[i] for i in chosen], [names[i] for i in chosen])
        ends = []
        if what == "speedup":
            values = of[["speedup", "speedup_low", "speedup_high"]]
            low = min(values.min(axis=None), 1.0)
            log_axis(axes, "y", low, max(values.max(axis=None), most))
            axes.plot([1, most], [1, most], color=style.GREY, lw=0.8, ls=(0, (3, 2)))
            ends.append((most, most, "ideal", style.GREY))
        else:
            top = max(1.05, of[["efficiency", "efficiency_high"]].max(axis=None) * 1.05)
            axes.set_ylim(0, top)
            axes.axhline(1, color=style.GREY, lw=0.8, ls=(0, (3, 2)))
        for name, line in of.groupby("series", sort=False):
            end = draw_line(axes, line, "workers", what, looks[name])
            ends.append((*end, labels[name], looks[name]["color"]))
        axes.set_xlabel("workers (threads × processes × GPUs)")
        axes.set_ylabel(what)
        label_ends(axes, ends)
    return Drawing(NAME, page.figure, rows)


def _split_processes(ok: pd.DataFrame) -> pd.DataFrame:
    """A line for each number of processes, if the threads of the version vary as well."""
    both = ok.groupby("version")[["threads", "processes"]].transform("nunique").gt(1).all(axis=1)
    own = ok["processes"].astype(str) + ok["processes"].eq(1).map(
        {True: " process", False: " processes"}
    )
    ok["series"] = ok["series"].where(~both, ok["series"] + " " + own)
    return ok


def _rows(of: pd.DataFrame, problem: str, kind: str, base, over: str, at: float) -> pd.DataFrame:
    """The rows of a line: the speedup of each point over the `base` samples, and its efficiency."""
    rows = of[["machine", "point", "version", "series", "n", "k", "dim", "precision", "data"]]
    rows = rows.assign(workers=of["workers"], iteration_ms=of["iteration_ms"], noisy=of["noisy"])
    ratios = np.array([ratio_interval(base, times) for times in of["times_ms"]])
    divide = of["workers"].to_numpy()[:, None] / at if kind == "strong" else 1.0
    names = ["speedup", "speedup_low", "speedup_high"]
    rows[names] = ratios if kind == "strong" else np.nan
    rows[["efficiency", "efficiency_low", "efficiency_high"]] = ratios / divide
    return rows.assign(kind=kind, problem=problem, over=over, drawn=True)


def _strong(ok: pd.DataFrame, points: pd.DataFrame, baseline: str) -> pd.DataFrame:
    parts = []
    # of a cluster, one node: a ratio of two nodes' times says nothing
    ok = ok.assign(place=ok["node"].fillna(""))
    points = points.assign(place=points["node"].fillna(""))
    same_problem = ["machine", "place", "n", "k", "dim", "data"]
    for key, of in ok.groupby(same_problem, sort=False):
        base = points[points["version"].eq(baseline) & points["status"].eq("ok")]
        for column, value in zip(same_problem, key, strict=True):
            base = base[base[column].eq(value)]
        _, _, n, k, dim, _ = key
        problem = f"N = {count_text(n)}, K = {count_text(k)}, dim {dim}"
        # only the fastest combination for each number of workers
        quickest = of.loc[of.groupby(["series", "workers"], sort=False)["iteration_ms"].idxmin()]
        for _, line in quickest.groupby("series", sort=False):
            if len(line) < 2 or line["version"].iloc[0] == baseline:
                continue
            same = base[base["precision"].eq(line["precision"].iloc[0])]
            if len(same):
                samples = same.loc[same["iteration_ms"].idxmin(), "times_ms"]
                parts.append(_rows(line, problem, "strong", samples, baseline, 1.0))
            else:
                first = line.loc[line["workers"].idxmin()]
                own = (first["times_ms"], first["version"], first["workers"])
                parts.append(_rows(line, problem, "strong", *own))
    return pd.concat(parts) if parts else ok.iloc[:0].assign(problem="", over="")


def _weak(ok: pd.DataFrame) -> pd.DataFrame:
    parts = []
    ok = ok.assign(share=ok["n"].astype(float) / ok["workers"], place=ok["node"].fillna(""))
    key = ["machine", "place", "series", "k", "dim", "share"]
    quickest = ok.loc[ok.groupby([*key, "workers"], sort=False)["iteration_ms"].idxmin()]
    for values, of in quickest.groupby(key, sort=False):
        if len(of) < 3 or of["n"].nunique() < 3:
            continue
        _, _, _, k, dim, share = values
        problem = f"{count_text(round(share))} points per worker, K = {count_text(k)}"
        first = of.loc[of["workers"].idxmin()]
        parts.append(
            _rows(of, f"{problem}, dim {dim}", "weak", first["times_ms"], first["version"], 1.0)
        )
    return pd.concat(parts) if parts else ok.iloc[:0].assign(problem="", over="")
