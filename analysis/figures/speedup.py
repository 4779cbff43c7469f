"""speedup: the speedup over the baseline, against N or another axis, with a panel for each K."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.figures.drawing import Drawing, Subject, csv_rows
from analysis.figures.notes import (
    method_notes,
    no_result,
    nothing_to_draw,
    small_print,
    subtitle,
    tuned_axes,
)
from analysis.figures.page import Page, columns_of_panels
from analysis.figures.placement import label_ends, stacked_height
from analysis.figures.row_axis import at_right, mark, rows_height
from analysis.figures.scales import log_axis
from analysis.figures.series import (
    draw_lines,
    names_at_ends,
    panel_columns,
    panel_title,
    series_names,
    series_styles,
)
from analysis.figures.typeset import break_label, text_width, widest_line, wrap
from analysis.figures.x_axis import XAxis, beside, named, nothing_on_x, x_axis
from analysis.measures.families import ran_text
from analysis.measures.fastest import fastest
from analysis.measures.points import Data
from analysis.measures.speedups import BEST_CPU, FASTEST_CPU, fastest_cpu_beside
from analysis.model.numbers import number_text
from analysis.model.run import PROBLEM

NAME = "speedup"


def draw(data: Data, subject: Subject, x: str = "n") -> Drawing:
    """Draws speedups (see points.all_points) of each version at its fastest tunables, over axis
    `x`.

    Several N give log-log lines. Problems of one N each give a dot per version. The rows contain
    every point, drawn or not."""
    name = named(NAME, x, "n")
    points = data.points
    best = fastest(points[points[x].notna()], x)
    shown = best[best["speedup"].notna() & best["version"].ne(subject.baseline)]
    rows = csv_rows(points, shown.index)
    if not subject.baseline:
        return Drawing(name, None, rows, "the spec names no baseline")
    if shown.empty:
        if (points["status"] == "ok").any():
            why = (
                f"no version but the baseline, {subject.baseline}, has a result to compare with it"
            )
            missing = no_result(points, f"{name}.csv", limit=40)
            return Drawing(name, None, rows, "\n  ".join([why, *missing]))
        return Drawing(name, None, rows, nothing_to_draw(points, f"{name}.csv"))

    if x != "n" and (why := nothing_on_x(shown, x)):
        return Drawing(name, None, rows, why)
    shown = shown.assign(series=series_names(shown, x))
    styles = series_styles(shown, points, subject.baseline)
    notes = [*_notes(shown, points, subject, x), *_best_cpu_notes(shown, data, subject)]
    notes += _second_denominator(shown)
    notes = small_print(points, shown.index, notes, f"{name}.csv")
    keys = panel_columns(shown, beside(x), x)
    one_n = x == "n" and shown.groupby(keys)["n"].nunique().max() == 1
    if one_n:
        keys = panel_columns(shown, ["k", "n"])
    panels = [(values, of) for values, of in shown.groupby(keys, sort=True)]
    header = (subject.title, subtitle(points, subject), notes)
    if one_n:
        figure = _dots(panels, keys, header, styles, subject, shown)
    else:
        figure = _lines(panels, keys, header, styles, subject, shown, x_axis(shown, x))
    return Drawing(name, figure, rows)


def _notes(shown: pd.DataFrame, points: pd.DataFrame, subject: Subject, x: str) -> list[str]:
    compared = points.set_index(["machine", "point"], drop=False).loc[
        list(dict.fromkeys(zip(shown["machine"], shown["baseline_point"], strict=True)))
    ]
    # a baseline that is shown itself counts once
    measured = pd.concat([shown, compared]).drop_duplicates(["machine", "point"])
    notes = method_notes(
        measured,
        f"Time per iteration of {subject.baseline} over the version's",
        "95% interval of the ratio of medians (bootstrap)",
        int(shown["speedup_low"].isna().sum()),
    )
    ok = points[points["status"] == "ok"]
    tuned = tuned_axes(ok, but=(x,))
    if tuned:
        csv = f"{named(NAME, x, 'n')}.csv"
        problem = "N and K" if x in ("n", "k") else f"N, K and {x.replace('_', ' ')}"
        notes.append(
            f"Each version, the baseline too, at its fastest {tuned} for that {problem} (by "
            f"median); {csv} says which, and has every absolute time."
        )
    precision_of = points.set_index(["machine", "point"])["precision"]
    base_precision = [
        precision_of[key] for key in zip(shown["machine"], shown["baseline_point"], strict=True)
    ]
    other = shown[shown["precision"].to_numpy() != base_precision]
    for precision, of in other.groupby("precision"):
        used = sorted(
            {p for p, i in zip(base_precision, shown.index, strict=True) if i in of.index}
        )
        notes.append(f"{precision} is over the baseline's {', '.join(used)}.")
    return [*notes, *_iterations_differ(measured)]


def _iterations_differ(measured: pd.DataFrame) -> list[str]:
    """Says so where a rule ended the solves of one problem after different numbers of iterations:
    then a speedup by iterations is not one by solves."""
    single = measured[~measured["restarted"].eq(True)]
    problem = ["machine", *(column for column in PROBLEM if column != "precision")]
    ends = single.groupby(problem, dropna=False)["iterations"].agg(["min", "max"]).dropna()
    if not (ends["max"] > ends["min"]).any():
        return []
    least, most = ends.loc[(ends["max"] / ends["min"]).astype(float).idxmax()]
    return [
        f"Solves of one problem took different numbers of iterations, up to {least} and {most}; a "
        "speedup by whole solves differs by as much."
    ]


def _best_cpu_notes(shown: pd.DataFrame, data: Data, subject: Subject) -> list[str]:
    """Which version was the fastest on the CPU, if that is what speedups are over."""
    if not any(run.baseline == BEST_CPU for run in data.runs):
        return []
    taken = pd.MultiIndex.from_frame(shown[["machine", "baseline_point"]])
    points = data.points[pd.MultiIndex.from_frame(data.points[["machine", "point"]]).isin(taken)]
    ran = {version: ran_text(of) for version, of in points.groupby("version")}
    if subject.baseline != FASTEST_CPU:
        told = f", {ran[subject.baseline]}" if ran.get(subject.baseline) else ""
        return [f"{subject.baseline} is {FASTEST_CPU} of every problem here{told}."]
    problem = ["machine", "n", "k", "dim", "data", "precision"]
    counts = shown.drop_duplicates([*problem, "baseline"])["baseline"].value_counts()
    told = ", ".join(
        f"{version} ({', '.join(filter(None, (str(count), ran[version])))})"
        for version, count in counts.items()
    )
    return [f"The fastest CPU version (problems): {told}; {NAME}.csv says which."]


def _second_denominator(shown: pd.DataFrame) -> list[str]:
    """The largest speedup over the fastest CPU version, if the baseline is slower than that."""
    best = shown.loc[shown["speedup"].idxmax()]
    cpu = fastest_cpu_beside(best, shown)
    if cpu is None:
        return []
    times = number_text(cpu["iteration_ms"] / best["iteration_ms"])
    return [
        f"{FASTEST_CPU[0].upper()}{FASTEST_CPU[1:]} where {best['version']} is at "
        f"{number_text(best['speedup'])}× is {cpu['version']}: {times}× over that."
    ]


def _limits(shown: pd.DataFrame) -> tuple[float, float]:
    values = pd.concat([shown[c] for c in ("speedup", "speedup_low", "speedup_high")]).dropna()
    return min(values.min(), 1.0), max(values.max(), 1.0)


def _lines(panels, keys, header, styles, subject, shown, along: XAxis) -> Figure:
    direct = names_at_ends(len(panels))
    columns = 1 if len(panels) == 1 else 2 if direct else 3 if len(panels) <= 9 else 4
    columns = columns_of_panels(columns, 1.82 if direct else 0.86, 1.2 if direct else 0.75)
    label_width = 1.7 if columns == 1 and not style.is_narrow() else 0.98
    labels = {s: break_label(s, label_width) for s in [*styles, subject.baseline]}
    height = 2.5 if columns == 1 else 1.9 if direct else 1.4
    widest = widest_line(labels.values())
    # if each machine has its own baseline, only the CSV has the absolute times
    absolute = shown["machine"].nunique() == 1 and along.name in ("n", "k", "dim")
    grey = f"grey: {subject.baseline}, ms per iteration" if absolute else ""
    grey = "\n".join(wrap(grey, style.width() / max(columns, 2) - 0.35))
    page = Page(
        *header,
        [panel_title(keys, values, of) for values, of in panels],
        columns,
        max(height, stacked_height(labels.values())) if direct else height,
        left=0.6,
        right=widest + 0.24 if direct else 0.26,
        below=0.64 + style.LINE * grey.count("\n") - (0.25 if not grey else 0),
        legend=None if direct else list(styles.items()),
    )
    low, high = _limits(shown)
    looks = {series: along.line_style(look) for series, look in styles.items()}
    shown_at = along.at(pd.Series(along.values))
    for (_, of), axes in zip(panels, page.axes, strict=True):
        log_axis(axes, "y", low, high)
        along.scale(axes)
        axes.axhline(1, color=style.GREY, linewidth=1, linestyle=(0, (3, 2)), zorder=1.5)
        ends = [(shown_at.iloc[-1] * 1.12, 1.0, labels[subject.baseline], style.GREY)]
        placed = of.assign(at=along.at(of[along.name]))
        ends += draw_lines(axes, placed, "speedup", looks, labels)
        _ticks(axes, along, of, page.axes_width, absolute=bool(grey))
        _x_label(axes, along.label, grey)
        if direct:
            label_ends(axes, ends)
    page.label_outer(y=f"speedup over {subject.baseline}")
    return page.figure


def _ticks(axes: Axes, along: XAxis, of: pd.DataFrame, width: float, *, absolute: bool) -> None:
    """Labels the axis with its values and, if `absolute`, with the baseline's ms per iteration in
    grey."""
    base = of.drop_duplicates(along.name).set_index(along.name)["baseline_iteration_ms"]
    times = [number_text(base[v]) if v in base.index else "–" for v in along.values]
    for i in along.ticks(axes, width, times if absolute else None):
        if not absolute:
            continue
        axes.annotate(
            times[i],
            (along.values[i], 0),
            xycoords=("data", "axes fraction"),
            xytext=(0, -14.5),
            textcoords="offset points",
            ha="center",
            va="top",
            color=style.GREY,
        )


def _x_label(axes: Axes, label: str, grey: str) -> None:
    axes.set_xlabel(label, labelpad=12 if grey else 4)
    axes.annotate(
        grey,
        (0.5, 0),
        xycoords="axes fraction",
        xytext=(0, -35),
        textcoords="offset points",
        ha="center",
        va="top",
        color=style.GREY,
    )


def _dots(panels, keys, header, styles, subject, shown) -> Figure:
    most = max(of["series"].nunique() for _, of in panels)
    labels = {s: break_label(s, min(1.7, 0.35 * style.width())) for s in styles}
    widest = widest_line(labels.values())
    over_cpu = [_over_fastest_cpu(of, shown) for _, of in panels]
    first, second = _rooms(panels, over_cpu)
    right = first + second
    columns = columns_of_panels(min(len(panels), 2), widest + right + 0.2, 1.0)
    tall = max(label.count("\n") + 1 for label in labels.values())
    page = Page(
        *header,
        [panel_title(keys, values, of) for values, of in panels],
        columns,
        rows_height(most, tall),
        left=widest + 0.2,
        right=right,
        below=0.56,
        beside_title=second,
    )
    low, high = _limits(pd.concat([of for _, of in panels]))
    for (_, of), (cpu, times), axes in zip(panels, over_cpu, page.axes, strict=True):
        log_axis(axes, "x", low, high, width=page.axes_width)
        axes.axvline(1, color=style.GREY, linewidth=1, linestyle=(0, (3, 2)), zorder=1.5)
        ranked = of.sort_values("speedup", kind="stable")
        for height, (_, point) in enumerate(ranked.iterrows()):
            mark(axes, height, ranked.iloc[[height]], "speedup", styles[point["series"]])
            at_right(axes, height, _times(point["speedup"]))
            if point.name in times:
                at_right(axes, height, _times(times[point.name]), style.GREY, first)
        axes.set_ylim(-0.6, max(most, 2) - 0.4)
        if cpu:
            at = of.loc[of["version"] == cpu, "speedup"].iloc[0]
            axes.axvline(at, color=style.GREY, linewidth=1, linestyle=(0, (1, 2)), zorder=1.5)
            at_right(axes, max(most, 2) + 0.1, f"over\n{cpu}", style.GREY, first)
        axes.set_yticks(range(len(ranked)), [labels[s] for s in ranked["series"]])
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        own = of.drop_duplicates("machine")["baseline_iteration_ms"]
        absolute = f"\n({number_text(own.iloc[0])} ms per iteration)" if len(own) == 1 else ""
        axes.set_xlabel(f"speedup over {subject.baseline}{absolute}")
    return page.figure


def _rooms(panels: list, over_cpu: list[tuple[str, dict]]) -> tuple[float, float]:
    """The inches of the two columns to the right of the dots: of the speedups, and of those over
    the fastest CPU version, which has its name above. 0 where there are none of the second."""
    speedups = [_times(value) for _, of in panels for value in of["speedup"]]
    first = max(0.6, max(map(text_width, speedups)) + 0.12)
    texts = [name for name, _ in over_cpu if name]
    texts += [_times(value) for _, times in over_cpu for value in times.values()]
    return first, max(map(text_width, texts)) + 0.12 if texts else 0


def _times(value: float) -> str:
    return f"{number_text(value)}×"


def _over_fastest_cpu(of: pd.DataFrame, shown: pd.DataFrame) -> tuple[str, dict]:
    """The fastest CPU version beside the points `of` on a GPU, and by the index of each its speedup
    over that version. "" where there is no one such version, or where it is the baseline."""
    beside = {index: fastest_cpu_beside(point, shown) for index, point in of.iterrows()}
    beside = {index: cpu for index, cpu in beside.items() if cpu is not None}
    names = {cpu["version"] for cpu in beside.values()}
    if len(names) != 1 or len(of) != of["version"].nunique():
        return "", {}
    times = {
        index: cpu["iteration_ms"] / of.loc[index, "iteration_ms"] for index, cpu in beside.items()
    }
    return names.pop(), times
