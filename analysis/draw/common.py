"""What the figures share: series, panels, and the small print that says how it was measured and
what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.derive import NEWER_COLUMNS, NOISY, POINT_COLUMNS, noise_note
from analysis.load import AXES
from analysis.style import (
    GREY,
    INK,
    WIDTH,
    break_label,
    count_text,
    shorten,
    text_width,
    version_styles,
    wrap,
)

DIRECT_UP_TO = 6
"""Panels whose lines are named at their ends; with more, one legend names them and the panels get
smaller.
"""

MAX_LISTED = 8
"""Lines of points without result under a figure; more are summarised."""

LONGEST_REASON = 300
"""Characters of a reason under a figure; the CSV has all of it."""

NOTE_WIDTH = WIDTH - 0.2

BASES = {
    "cuda_events": "CUDA events",
    "steady_clock": "the host's steady clock",
    "mpi_max": "the slowest rank's clock",
    "self_reported": "the program itself",
}


@dataclass(frozen=True)
class Subject:
    """What a figure is of: its title, one line for each machine, and the baseline's name (empty:
    none).
    """

    title: str
    environment: list[str]
    baseline: str


@dataclass(frozen=True)
class Drawing:
    """A figure with the rows that it drew; `figure` is None when there was nothing to draw, and
    `message` says why.
    """

    name: str
    figure: Figure | None
    rows: pd.DataFrame
    message: str = ""


def csv_rows(points: pd.DataFrame, drawn: pd.Index) -> pd.DataFrame:
    """The rows of a figure's CSV: POINT_COLUMNS, those of NEWER_COLUMNS that have a value, and
    whether the point is in the picture."""
    rows = points[[*POINT_COLUMNS, *newer_columns(points)]].copy()
    rows.insert(0, "drawn", points.index.isin(drawn))
    return rows


def newer_columns(points: pd.DataFrame) -> list[str]:
    """Of NEWER_COLUMNS those that say something here: one launch and no noise are not worth a
    column."""
    told = [column for column in NEWER_COLUMNS if points[column].notna().any()]
    plain = {"launches": not points["launches"].gt(1).any()}
    return [column for column in told if not plain.get(column, False)]


def series_names(points: pd.DataFrame) -> pd.Series:
    """One name a line: the version, with precision and machine where the points have several."""
    names = points["version"].astype(str)
    for column in ("precision", "machine"):
        if points[column].nunique() > 1:
            names = names + " " + points[column].astype(str).str.removeprefix("NVIDIA ")
    return names


def panel_columns(points: pd.DataFrame, always: list[str]) -> list[str]:
    """What a panel stands for: `always` and, after its first, each other property in which the
    points differ. The last one changes fastest from panel to panel.
    """
    others = [c for c in ("dim", "data") if points[c].nunique() > 1]
    return [always[0], *others, *always[1:]]


def series_styles(shown: pd.DataFrame, points: pd.DataFrame, baseline: str) -> dict[str, dict]:
    """How each series of `shown` is drawn, in the plan's order of versions.

    The colour is the version's place among all versions of `points` (the whole run's), so that it
    is the same in every figure; the baseline is grey. Precisions and machines differ in dashes.
    """
    versions = [v for v in dict.fromkeys(points["version"]) if v != baseline] + [baseline]
    series = shown.drop_duplicates("series").groupby("version", sort=False)["series"].agg(list)
    looks = version_styles(versions, int(series.map(len).max()))
    looks[-1] = [{**look, "color": GREY} for look in looks[-1]]
    styles = {}
    for version, own in zip(versions, looks, strict=True):
        styles.update(zip(series.get(version, []), own, strict=False))
    return styles


def draw_line(axes: Axes, line: pd.DataFrame, x: str, y: str, look: dict) -> tuple[float, float]:
    """Column `y` against `x` with its interval (`y`_low, `y`_high) as bars; returns the last
    point's place.

    A single point gets its mark and no line; a point without an interval gets no bar.
    """
    line = line.sort_values(x)
    at, values = line[x].astype(float).tolist(), line[y].tolist()
    look = look if len(at) > 1 else {**look, "linestyle": "none"}
    axes.errorbar(at, values, yerr=bars(line, y), elinewidth=0.8, capsize=1.8, **look)
    noisy = line[line["noisy"].eq(True)]
    ring(axes, noisy[x].astype(float).tolist(), noisy[y].tolist())
    return at[-1], values[-1]


def ring(axes: Axes, x: list[float], y: list[float]) -> None:
    """Rings round the marks of noisy points."""
    if x:
        look = {"marker": "o", "markersize": 7.5, "fillstyle": "none", "linestyle": "none"}
        axes.plot(x, y, color=INK, markeredgewidth=0.8, zorder=3.5, clip_on=False, **look)


def bars(of: pd.DataFrame, column: str) -> list[list[float]]:
    """Distances from `column` down to its low and up to its high end, as errorbar() wants them; 0
    without interval.
    """
    below = (of[column] - of[f"{column}_low"]).fillna(0)
    above = (of[f"{column}_high"] - of[column]).fillna(0)
    return [below.clip(lower=0).tolist(), above.clip(lower=0).tolist()]


def panel_title(columns: list[str], values: tuple) -> str:
    """`K = 5, dim 2`: what a panel shows. A line may break after a comma, not within `K = 5`."""
    words = []
    for column, value in zip(columns, values, strict=True):
        if column in ("n", "k"):
            words.append(f"{column.upper()} = {count_text(value)}")
        else:
            words.append(str(value) if column == "data" else f"{column} {value}")
    return ", ".join(word.replace(" ", "\u00a0") for word in words)


def subtitle(points: pd.DataFrame, subject: Subject) -> list[str]:
    """The machines and what all points have in common."""
    common = []
    if points["dim"].nunique() == 1:
        common.append(f"dim {points['dim'].dropna().iloc[0]}")
    for column in ("precision", "data"):
        if points[column].nunique() == 1:
            common.append(str(points[column].dropna().iloc[0]))
    return [*subject.environment, *([", ".join(common)] if common else [])]


def tuned_axes(points: pd.DataFrame, but: tuple[str, ...] = ()) -> str:
    """The tunables that vary within a version, in words; empty when none does."""
    axes = [a for a in AXES if a not in but and points.groupby("version")[a].nunique().max() > 1]
    return " or ".join(a.replace("_", " ") for a in axes)


def method_notes(measured: pd.DataFrame, quantity: str, bars: str, bare: int) -> list[str]:
    """How the points in `measured` (the drawn and those they are compared with) were measured.

    Samples, intervals, timing basis, throttling, verification. `bare` points have no interval.
    """
    fewest, most = measured["samples"].min(), measured["samples"].max()
    count = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    launches = sorted({int(n) for n in measured["launches"].dropna()} - {1})
    if launches:
        several = f"{launches[0]}" if len(launches) == 1 else f"{launches[0]} to {launches[-1]}"
        count += f" samples in {several} launches"
        bars += " from the medians of the launches"
    else:
        count += " samples"
    notes = [f"{quantity}, median of {count} a point. Bars: {bars}."]
    if bare:
        notes[0] += f" {_points(bare)} without a bar: an interval needs 6 samples."
    notes += _basis_notes(measured)
    throttled = int(measured["throttled_samples"].fillna(0).sum())
    if throttled:
        samples = int(measured["samples"].sum())
        notes.append(
            f"Throttled: {throttled:,} of {samples:,} samples were taken while the GPU held its "
            "clocks back; they are kept (throttled_samples in the CSV)."
        )
    if noise := noisy_note(measured):
        notes.append(noise)
    over = int(measured["oversubscribed"].eq(True).sum())
    if over:
        notes.append(f"Oversubscribed: {_points(over)} ran more threads than there are cores.")
    unverified = int((~measured["verified"].eq(True)).sum())
    if unverified:
        notes.append(f"Not verified: {_points(unverified)}.")
    return notes


def noisy_note(points: pd.DataFrame) -> str:
    """How the noisy points of a figure are marked and what disturbed them; empty without any."""
    return noise_note(points).replace(NOISY, f"Ringed, or with {NOISY}:", 1)


def _basis_notes(measured: pd.DataFrame) -> list[str]:
    used = measured.dropna(subset=["timing_basis"])
    clocks = {basis: sorted(set(of["version"])) for basis, of in used.groupby("timing_basis")}
    if not clocks:
        return ["How the points were timed is not recorded."]
    if len(clocks) == 1:
        (basis,) = clocks
        return [f"Timed: all by {BASES.get(basis, basis)}."]
    words = [f"{', '.join(versions)} by {BASES.get(b, b)}" for b, versions in clocks.items()]
    return [f"Timed: {'; '.join(words)}."]


def small_print(
    points: pd.DataFrame, drawn: pd.Index, notes: list[str], csv: str
) -> list[tuple[str, str]]:
    """Wrapped, coloured lines for under the figure: the notes, then every point that has no place
    in it.
    """
    lines = [(line, GREY) for note in notes for line in wrap(note, NOTE_WIDTH)]
    missing = no_result(points, csv)
    if missing:
        lines += [("", GREY), *((line, INK) for line in missing)]
    return lines


def no_result(points: pd.DataFrame, csv: str, limit: int = MAX_LISTED) -> list[str]:
    """The points that cannot be drawn, in at most `limit` wrapped lines below a heading; [] when
    all can.

    As much is said as there is room for: every reason, else a line for those that differ in their
    numbers only, else the first of those; `csv` is the file that has each point."""
    missing = points[points["reason"].notna() | points["status"].ne("ok")]
    if missing.empty:
        return []
    missing = missing.assign(reason=missing["reason"].fillna("no reason was recorded").astype(str))
    head = f"Without result: {len(missing):,} of {_points(len(points))}."
    exact = _groups(missing, points, missing["reason"])
    lines = [line for text in exact for line in wrap(text, NOTE_WIDTH, indent="   ")]
    if len(lines) <= limit:
        return [head, *lines]
    alike = missing["reason"].str.replace(r"\d[\d,.]*", "#", regex=True)
    groups = _groups(missing, points, alike)
    shown = groups if len(groups) <= limit else groups[: limit - 1]
    most = max(limit // len(groups), 1)
    wrapped = [wrap(text, NOTE_WIDTH, indent="   ") for text in shown]
    lines = [line for block in wrapped for line in shorten(block, most, NOTE_WIDTH)]
    if len(shown) < len(groups):
        lines.append(f"… and {len(groups) - len(shown)} more kinds.")
    return [f"{head} Each one is in {csv}.", *lines]


def _groups(missing: pd.DataFrame, points: pd.DataFrame, kind: pd.Series) -> list[str]:
    texts = []
    for _, of in missing.groupby([missing["status"], kind], sort=False):
        versions = list(dict.fromkeys(of["version"]))
        who = ", ".join(versions[:4]) + (f" and {len(versions) - 4} more" if versions[4:] else "")
        status, reason = of["status"].iloc[0], " ".join(of["reason"].iloc[0].split())
        reason = reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON]} …"
        # an ok point is listed because it cannot be compared
        status = "without a speedup" if status == "ok" else status
        colon = ", such as: " if of["reason"].nunique() > 1 else ": "
        at = _where(of, points[points["version"].isin(versions)])
        texts.append(f"{who} {status}{at} ({_points(len(of))}){colon}{reason}")
    return texts


def _where(of: pd.DataFrame, among: pd.DataFrame) -> str:
    """The values that set these points apart from the others of the same versions."""
    words = []
    for axis in ["n", "k", "dim", *AXES, "precision", "machine"]:
        here, all_values = of[axis].dropna().unique(), among[axis].dropna().unique()
        if not 0 < len(here) < len(all_values):
            continue
        text = [v if isinstance(v, str) else count_text(v) for v in sorted(here)]
        if len(text) > 3:
            text = [f"{text[0]} … {text[-1]}"]
        words.append(f"{axis}={', '.join(text)}" if axis != "machine" else ", ".join(text))
    return f" at {', '.join(words)}" if words else ""


def needing_no_baseline(points: pd.DataFrame) -> pd.DataFrame:
    """`points` for a figure without speedups, where an ok point is complete without a baseline."""
    return points.assign(reason=points["reason"].where(points["status"].ne("ok")))


def nothing_to_draw(points: pd.DataFrame, csv: str) -> str:
    """The message when no point has a result: that, and the list of them (up to 40 lines)."""
    if points.empty:
        return "the run has no points"
    return "\n  ".join(["no point has a result", *no_result(points, csv, limit=40)])


def _points(count: int) -> str:
    return f"{count:,} point{'' if count == 1 else 's'}"


def largest_problems(points: pd.DataFrame, most: int = 6) -> tuple[pd.DataFrame, str]:
    """`points` of at most `most` problems (N, K, dim, data), and in words what was left out: of
    more problems the largest N of each K and dim, of more still the largest of those."""
    key = ["n", "k", "dim", "data"]
    problems = points[key].drop_duplicates()
    if len(problems) <= most:
        return points, ""
    largest = problems.loc[problems.groupby(["k", "dim", "data"])["n"].idxmax()]
    largest = largest.sort_values(["n", "k", "dim"]).tail(most)
    kept = points[points[key].apply(tuple, axis=1).isin(set(map(tuple, largest.to_numpy())))]
    return kept, f"Shown: the largest {len(largest)} of {len(problems)} problems."


def problem_panels(points: pd.DataFrame) -> tuple[list[str], list[tuple[tuple, pd.DataFrame]]]:
    """A panel for each problem: the columns that its title names, and its points."""
    columns = panel_columns(points, ["k", "n"])
    return columns, list(points.groupby(columns, sort=True))


def row_labels(names: list[str], width: float = 2.0) -> tuple[dict[str, str], float, int]:
    """Names at the left of a row each, broken to `width` inches; the widest's width, and the most
    lines that one has."""
    labels = {name: break_label(name, width) for name in names}
    widest = max(text_width(part) for label in labels.values() for part in label.split("\n"))
    return labels, widest, max(label.count("\n") + 1 for label in labels.values())


def rows_axis(axes: Axes, labels: list[str], rows: int) -> None:
    """Rows from the top down, each with its label; room for `rows` of them."""
    axes.set_ylim(max(rows, 1) - 0.4, -0.6)
    axes.set_yticks(range(len(labels)), labels)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def at_right(axes: Axes, row: float, text: str, colour: str = INK) -> None:
    """`text` right of the axes at a row's height."""
    axes.annotate(
        text,
        (1, row),
        xycoords=("axes fraction", "data"),
        xytext=(4, 0),
        textcoords="offset points",
        va="center",
        color=colour,
        annotation_clip=False,
        parse_math=False,
    )
