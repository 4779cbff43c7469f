"""Subtitle and small print: how the points were measured, and which ones are missing."""

from __future__ import annotations

import pandas as pd

from analysis.figures.drawing import Subject
from analysis.figures.style import GREY, INK, WIDTH
from analysis.figures.typeset import shorten, wrap
from analysis.measures.noise import NOISY, noise_note
from analysis.measures.points import sampled
from analysis.model.numbers import count_text
from analysis.model.words import AXES

MAX_LISTED = 8
"""The limit on lines about points without result under a figure. More are summarised."""

LONGEST_REASON = 300
"""The limit on characters of a reason under a figure. The CSV has the full reason."""
NOTE_WIDTH = WIDTH - 0.2
BASES = {
    "cuda_events": "CUDA events",
    "steady_clock": "the host's steady clock",
    "mpi_max": "the slowest rank's clock",
    "self_reported": "the program itself",
}


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
    """The tunables that vary within a version, in words. Empty if none does."""
    axes = [a for a in AXES if a not in but and points.groupby("version")[a].nunique().max() > 1]
    return " or ".join(a.replace("_", " ") for a in axes)


def method_notes(measured: pd.DataFrame, quantity: str, bars: str, bare: int) -> list[str]:
    """Says how the points in `measured` (those drawn and their references) were measured.

    Samples, intervals, timing basis, throttling, verification. `bare` points have no interval.
    """
    fewest, most = measured["samples"].min(), measured["samples"].max()
    count = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    launches = sorted({int(n) for n in measured["launches"].dropna()} - {1})
    if launches:
        several = f"{launches[0]}" if len(launches) == 1 else f"{launches[0]} to {launches[-1]}"
        unit = "restarts" if measured["restarted"].eq(True).any() else "launches"
        count += f" samples in {several} {unit}"
        # with a single launch at each point they are bootstrapped (stats.draws)
        bars = bars.replace("(bootstrap)", "(Student's t)") + f" from the medians of the {unit}"
    else:
        count += " sample" if most == 1 else " samples"
        # rows of schema 1 do not say how many launches there were
        count += " of one launch" if measured["launches"].notna().any() else ""
    notes = [f"{quantity}, median of {count} per point. Bars: {bars}."]
    if bare:
        notes[0] += f" {_points(bare)} without a bar: an interval needs 6 samples."
    notes += _basis_notes(measured)
    notes += _workers_notes(measured)
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
    if part := int(sampled(measured).sum()):
        notes.append(f"Verified on a sample of the labels: {_points(part)}.")
    return notes


def noisy_note(points: pd.DataFrame, *, marked: bool = True) -> str:
    """Says how a figure marks its noisy points, if it does, and what disturbed them. Empty if there
    are none."""
    note = noise_note(points)
    if marked:
        return note.replace(NOISY, f"Ringed, or with {NOISY}:", 1)
    return note.replace(f"{NOISY} noisy", "Noisy", 1)


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


def _workers_notes(measured: pd.DataFrame) -> list[str]:
    """The threads and ranks of versions that take a number of them, where each has one number."""
    words = []
    for axis, noun in (("threads", "Threads"), ("processes", "Ranks")):
        used = measured.dropna(subset=[axis])
        if used.groupby("version")[axis].nunique().max() == 1:
            words += [
                f"{noun}: {count} ({', '.join(sorted(set(of['version'])))})."
                for count, of in used.groupby(axis)
            ]
    return [" ".join(words)] if words else []


def small_print(
    points: pd.DataFrame, drawn: pd.Index, notes: list[str], csv: str
) -> list[tuple[str, str]]:
    """Wrapped, coloured lines for the space under the figure: the notes, then every point that is
    not in it. An empty note takes no line.
    """
    lines = notes_alone(notes)
    missing = no_result(points, csv)
    if missing:
        lines += [("", GREY), *((line, INK) for line in missing)]
    return lines


def notes_alone(notes: list[str]) -> list[tuple[str, str]]:
    """The wrapped, grey lines of notes under a figure that lists no missing points. An empty note
    takes no line."""
    return [(line, GREY) for note in notes for line in wrap(note, NOTE_WIDTH)]


def no_result(points: pd.DataFrame, csv: str, limit: int = MAX_LISTED) -> list[str]:
    """The points that cannot be drawn, in at most `limit` wrapped lines below a heading. [] if all
    can.

    If there is room, every reason has a line. Otherwise reasons that differ only in their numbers
    share one, and if that is not enough, only the first ones are listed. `csv` is the file that has
    each point."""
    missing = points[points["reason"].notna() | points["status"].ne("ok")]
    if missing.empty:
        return []
    missing = missing.assign(reason=missing["reason"].fillna("no reason was recorded").astype(str))
    failed = int(missing["status"].ne("ok").sum())
    head = f"Without result: {failed:,}"
    if orphans := len(missing) - failed:  # they have a time, and their baseline has none
        head += f"; without a speedup: {orphans:,};"
    head += f" of {_points(len(points))}."
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
    axes = ["n", "k", "dim", *AXES, "precision", "machine"]
    varying = [axis for axis in axes if points[axis].nunique() > 1]
    for _, of in missing.groupby([missing["status"], kind], sort=False):
        versions = list(dict.fromkeys(of["version"]))
        who = ", ".join(versions[:4]) + (f" and {len(versions) - 4} more" if versions[4:] else "")
        status, reason = of["status"].iloc[0], " ".join(of["reason"].iloc[0].split())
        reason = reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON]} …"
        # an ok point is listed because it cannot be compared
        status = "without a speedup" if status == "ok" else status
        colon = ", such as: " if of["reason"].nunique() > 1 else ": "
        at = _where(of, points[points["version"].isin(versions)], varying)
        texts.append(f"{who} {status}{at} ({_points(len(of))}){colon}{reason}")
    return texts


def _where(of: pd.DataFrame, among: pd.DataFrame, axes: list[str]) -> str:
    """The values in `axes` that distinguish these points from the others of the same versions."""
    words = []
    for axis in axes:
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
    """The message if no point has a result, with the list of points (up to 40 lines)."""
    if points.empty:
        return "the run has no points"
    return "\n  ".join(["no point has a result", *no_result(points, csv, limit=40)])


def _points(count: int) -> str:
    return f"{count:,} point{'' if count == 1 else 's'}"
