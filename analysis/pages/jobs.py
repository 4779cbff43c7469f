"""Whole jobs: allocation, copies, set-up, the solve and the answer, beside single iterations."""

from __future__ import annotations

import pandas as pd

from analysis.measures.families import is_ours, is_peer
from analysis.measures.noise import noise_note, noisy_mark
from analysis.measures.places import require_one_place
from analysis.measures.points import all_points, samples_of
from analysis.measures.stats import Samples, median_interval, ratio_interval
from analysis.model.files import RunError
from analysis.model.run import Run
from analysis.pages.beside import least, problems, who
from analysis.pages.escape import Code, Words
from analysis.pages.table import Table
from analysis.pages.tables import interval_said, interval_text, listed


def with_jobs(run: Run) -> pd.DataFrame:
    """The run's points. `jobs` has the samples of a point's whole job, in ms, or None. Raises
    RunError if a problem was measured in several places."""
    points = all_points([run], run.baseline)
    require_one_place(points, run.path)
    rows = run.measurements
    whole = rows["end_to_end_ms"].gt(0) & rows["status"].eq("ok")
    if rows["end_to_end_floor_ms"].isna().all():
        whole &= False  # rows from before it counted what a process needs only once
    points["jobs"] = points["point"].map(samples_of(rows[whole], "end_to_end_ms"))
    return points


def least_job(points: pd.DataFrame) -> pd.Series | None:
    """The point whose whole job takes the least time."""
    of = points[points["status"].eq("ok") & points["jobs"].notna()]
    return of.loc[of["jobs"].map(lambda jobs: jobs.median).idxmin()] if len(of) else None


def job_text(p: pd.Series) -> str:
    """What the whole job takes, in ms, with a mark if the point is noisy."""
    if not isinstance(p["jobs"], Samples):
        return "–"
    return interval_text(*median_interval(p["jobs"])) + noisy_mark(p)


def who_job(p: pd.Series | None) -> Words:
    """The version of `p`, its precision and its whole job in ms."""
    if p is None:
        return "–"
    return Code(p["version"]), f" {p['precision']}: {job_text(p)}"


def job_ratio(peer: pd.Series | None, ours: pd.Series) -> str:
    """How many times as long the whole job of `peer` takes."""
    if peer is None:
        return "–"
    return interval_text(*ratio_interval(peer["jobs"], ours["jobs"]), unit="×")


def jobs(run: Run) -> Table:
    """For each problem our version with the shortest iteration and what its whole job takes, then
    ours and the library with the shortest whole job. Raises RunError if the run has no whole job of
    ours."""
    points = with_jobs(run)
    header, parts = problems(points)
    rows, shown, samples = [], [], []
    for sizes, of in parts:
        mine = of[is_ours(of)]
        quick, ours, library = least(mine), least_job(mine), least_job(of[is_peer(of)])
        if quick is None or ours is None:
            continue
        rows.append([*sizes, who(quick), job_text(quick), who_job(ours), who_job(library)])
        rows[-1].append(job_ratio(library, ours))
        shown += [p["point"] for p in (quick, ours, library) if p is not None]
        samples += [quick["times_ms"], *(p["jobs"] for p in (ours, library) if p is not None)]
    if not rows:
        raise RunError(f"{run.path}: no whole job of this project's own versions")
    known = {*header}
    numeric = known - {"data"} | {"its whole job, ms", "faster by"}
    header += ["shortest iteration of ours, ms", "its whole job, ms"]
    header += ["shortest whole job of ours, ms", "of a library, ms", "faster by"]
    counts = run.measurements["iterations"].dropna().astype(int)
    most = f"{counts.max()}" if counts.nunique() == 1 else f"up to {counts.max()}"
    said = [
        run.environment_line(),
        f"a whole job: allocation, copies, set-up, {most} iterations and the answer; median "
        f"{interval_said(samples)}",
    ]
    if noise := noise_note(points[points["point"].isin(shown)]):
        said.append(noise.rstrip("."))
    return Table("jobs", listed(said), header, rows, numeric, keys=known)
