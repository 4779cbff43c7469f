"""The regimes of sweeps/fast_regimes.yaml: our versions beside peers, and the aims."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.measures.convergence import ROUNDED
from analysis.measures.families import is_ours, is_peer
from analysis.measures.fastest import fastest
from analysis.measures.noise import noise_note
from analysis.model.files import RunError
from analysis.model.numbers import count_text, number_text
from analysis.model.run import Run
from analysis.pages.beside import least, left_out, ratio, who
from analysis.pages.escape import Words
from analysis.pages.jobs import job_ratio, job_text, least_job, who_job, with_jobs
from analysis.pages.table import Table
from analysis.pages.tables import interval_said, listed, time_text

LUIGI_TENTH = "a tenth of luigi_v4"
STUDY = "luigi_v4_device_update"
"""The version of a study that the fast ladder begins with."""


@dataclass(frozen=True)
class Regime:
    """A problem with a name. `aim` is in ms per iteration, or LUIGI_TENTH, or – for none."""

    name: str
    n: int
    k: int
    dim: int
    half: bool
    aim: str


REGIMES = [
    Regime("A1", 1_000_000, 1000, 128, True, "≤ 0.50"),
    Regime("A2", 8_000_000, 1024, 128, True, "≤ 3.6"),
    Regime("A3", 1_000_000, 8192, 128, True, "≤ 3.3"),
    Regime("B", 1_000_000, 1000, 128, False, "≤ 0.9, labels exact"),
    Regime("C", 10_000_000, 1000, 2, False, "≤ 0.10; brute force ≤ 0.80"),
    Regime("D1", 10_000_000, 32, 2, False, "≤ 0.07"),
    Regime("D2", 100_000_000, 64, 2, False, "≤ 0.9"),
    Regime("E", 65_536, 16, 32, False, "≤ 0.010"),
    Regime("F1", 200_000, 1024, 768, True, "–"),
    Regime("F2", 200_000, 1024, 768, False, "–"),
    Regime("L", 10_000_000, 100, 2, False, LUIGI_TENTH),
]
"""In the regimes with fp32, a peer without an fp32 product uses tf32."""


def _points(run: Run) -> pd.DataFrame:
    """The run's points, with the counts of their verification and the names of their regimes."""
    points = with_jobs(run)
    counted = run.measurements.drop_duplicates("point").set_index("point")
    copied = ("label_mismatches", "max_regret", "regret_bound", "chosen", "end_to_end_floor_ms")
    for column in copied:
        points[column] = points["point"].map(counted[column])
    points["regime"] = ""
    for regime in REGIMES:
        # floats, because a run may have no value in a column
        same = points["n"].eq(regime.n) & points["k"].eq(regime.k) & points["dim"].eq(regime.dim)
        precisions = ROUNDED if regime.half else ("fp32", "tf32")
        points.loc[same.fillna(False) & points["precision"].isin(precisions), "regime"] = (
            regime.name
        )
    return points[points["regime"].ne("")]


def _present(run: Run) -> list[tuple[Regime, pd.DataFrame]]:
    points = _points(run)
    parts = [(r, points[points["regime"].eq(r.name)]) for r in REGIMES]
    found = [(regime, of) for regime, of in parts if of["status"].eq("ok").any()]
    if not found:
        raise RunError(f"{run.path}: no result of a regime (sweeps/fast_regimes.yaml has them)")
    return found


def every_version(run: Run) -> Table:
    """A table of each version in each regime: its time, also as a multiple of the floor and of the
    best peer's, and its labels. Raises RunError if the run has no regime."""
    header = ["regime", "version", "precision", "ms per iteration", "times the floor"]
    header += ["best peer / this", "labels that differ", "largest regret", "its bound"]
    present = _present(run)
    jobs = any(of["jobs"].notna().any() for _, of in present)
    header += ["ms end to end"] if jobs else []
    rows = []
    for regime, points in present:
        best, peer = fastest(points), least(points[is_peer(points)])
        lost = points[~points["version"].isin(best["version"]) & _said(points)]
        for _, p in best.sort_values("iteration_ms", kind="stable").iterrows():
            rows.append([regime.name, _name(p), p["precision"], time_text(p), _times_floor(p)])
            rows[-1] += [ratio(peer, p), *_labels(p), *([job_text(p)] if jobs else [])]
        for _, p in lost.drop_duplicates("version").iterrows():
            why = f"{p['status']}: {p['reason']}"
            rows.append([regime.name, p["version"], p["precision"], why, "", "", *_labels(p)])
            rows[-1] += [""] if jobs else []
    intervals = interval_said(p for _, of in present for p in of["times_ms"])
    said = f"Median of an iteration {intervals}; regret relative to the scale of the distance."
    if noise := noise_note(_points(run)):
        said += f" {noise}"
    said = f"{run.title}: {run.environment_line()}. {said}"
    return Table("regimes", said, header, rows, {*header} - {"regime", "version", "precision"})


def _said(points: pd.DataFrame) -> pd.Series:
    """Points without a result, for another reason than their precision."""
    reason = points["reason"].fillna("").astype(str)
    return points["status"].ne("ok") & ~reason.str.startswith("computes in ")


def summary(run: Run) -> str:
    """Markdown for a page: the tables of summary_tables."""
    problems, *results = summary_tables(run)
    return "\n".join([problems.markdown(), *(table.table_alone() for table in results)])


def summary_tables(run: Run) -> list[Table]:
    """The regimes with their floors and aims, then the best peer beside our fastest version, by an
    iteration and, if the run has it, by the whole job. Raises RunError if the run has no regime."""
    present = _present(run)
    said = listed(_said_of_summary(run, present))
    tables = [_problems_table(present, said), _results_table(present, said)]
    jobs = _jobs_table(present, said)
    return [*tables, jobs] if jobs.rows else tables


def _best_peer(points: pd.DataFrame) -> pd.Series | None:
    return least(points[is_peer(points)])


def _our_best(points: pd.DataFrame) -> pd.Series | None:
    return least(points[is_ours(points)])


def _of_study(points: pd.DataFrame) -> pd.Series | None:
    return least(points[points["version"].eq(STUDY)])


def _job_of_peer(points: pd.DataFrame) -> pd.Series | None:
    return least_job(points[is_peer(points)])


def _our_job(points: pd.DataFrame) -> pd.Series | None:
    return least_job(points[is_ours(points)])


def _said_of_summary(run: Run, present: list[tuple[Regime, pd.DataFrame]]) -> list[Words]:
    """What a reader has to know of all tables."""
    finds = (_best_peer, _of_study, _our_best, _job_of_peer, _our_job)
    found = [find(of) for _, of in present for find in finds]
    shown = pd.DataFrame([p for p in found if p is not None]).drop_duplicates("point")
    intervals = interval_said(shown["times_ms"])
    said: list[Words] = [
        run.environment_line(),
        f"median of an iteration {intervals}, on data that is on the GPU",
        "regret: how much farther a label's centroid is than the nearest, at most, as a share of "
        "what the precision's rounding allows (0: every label is float64's)",
    ]
    if noise := noise_note(shown):
        said.append(noise.rstrip("."))
    nowhere, _ = _absent(present)
    if nowhere:
        said.append(f"peers that did not run: {', '.join(nowhere)}")
    return said


def _problems_table(present: list[tuple[Regime, pd.DataFrame]], said: Words) -> Table:
    header = ["regime", "N", "K", "dim", "precision", "floor, ms", "aim, ms"]
    rows = []
    for regime, points in present:
        sizes = [count_text(regime.n), count_text(regime.k), str(regime.dim)]
        precision = "fp16, bf16" if regime.half else "fp32"
        floors = _floors(_our_best(points))
        rows.append([regime.name, *sizes, precision, floors, _aim(regime, points)])
    return Table("regimes-problems", said, header, rows, {"N", "K", "dim", "floor, ms"})


def _results_table(present: list[tuple[Regime, pd.DataFrame]], said: Words) -> Table:
    header = ["regime", "best peer, ms", f"{STUDY}, ms", "ours, ms", "faster by"]
    header += ["peer's regret", "our regret"]
    _, absent = _absent(present)
    rows = []
    for regime, points in present:
        peer, study, ours = _best_peer(points), _of_study(points), _our_best(points)
        best = (*who(peer), *(f"; {v} did not run" for v in absent.get(regime.name, [])))
        rows.append([regime.name, best, "–" if study is None else time_text(study)])
        rows[-1] += [who(ours), ratio(peer, ours), _share(peer), _share(ours)]
    return Table("regimes-summary", said, header, rows, {"faster by"}, keys={"regime"})


def _jobs_table(present: list[tuple[Regime, pd.DataFrame]], said: Words) -> Table:
    """Without rows where the run has no whole jobs."""
    header = ["regime", "floor end to end, ms", "best peer end to end, ms"]
    header += ["ours end to end, ms", "faster by"]
    rows = []
    for regime, points in present:
        peer, ours = _job_of_peer(points), _our_job(points)
        if ours is not None:
            rows.append([regime.name, _floor_of_job(ours), who_job(peer), who_job(ours)])
            rows[-1].append(job_ratio(peer, ours))
    return Table("regimes-jobs", said, header, rows, {"floor end to end, ms", "faster by"})


def _absent(present: list[tuple[Regime, pd.DataFrame]]) -> tuple[list[str], dict[str, list[str]]]:
    """The peers that were not installed or not reached: those that ran nowhere, and by regime those
    that ran in others."""
    missed, ran = [], set()
    for regime, of in present:
        peers = of[is_peer(of)]
        good = set(peers.loc[peers["status"].eq("ok"), "version"])
        lost = {*peers.loc[left_out(peers), "version"]} - good
        missed += [(version, regime.name) for version in sorted(lost)]
        ran |= good
    here: dict[str, list[str]] = {}
    for version, regime_name in missed:
        if version in ran:
            here.setdefault(regime_name, []).append(version)
    return sorted({version for version, _ in missed} - ran), here


def _aim(regime: Regime, points: pd.DataFrame) -> str:
    """The aim in ms, or a tenth of the time that the run measured for luigi_v4."""
    v4 = points[points["version"].eq(STUDY) & points["status"].eq("ok")]
    if regime.aim != LUIGI_TENTH or v4.empty:
        return regime.aim
    return f"≤ {number_text(v4['iteration_ms'].min() / 10)}, {regime.aim}"


def _name(p: pd.Series) -> str:
    return p["version"] + (f" ({p['chosen']})" if isinstance(p["chosen"], str) else "")


def _floors(p: pd.Series | None) -> str:
    """The floor, and that under sustained load where it is known and differs."""
    if p is None or not np.isfinite(p["floor_ms"]):
        return "–"
    text, sustained = number_text(p["floor_ms"]), p["floor_sustained_ms"]
    loaded = number_text(sustained) if pd.notna(sustained) else text
    return text if loaded == text else f"{text} (sustained {loaded})"


def _floor_of_job(p: pd.Series) -> str:
    floor = p["end_to_end_floor_ms"]
    return number_text(floor) if pd.notna(floor) else "–"


def _times_floor(p: pd.Series) -> str:
    known = np.isfinite(p["floor_ms"]) and p["floor_ms"] > 0
    return f"{number_text(p['iteration_ms'] / p['floor_ms'])}×" if known else "–"


def _labels(p: pd.Series) -> list[str]:
    counted = p["label_mismatches"]
    return [
        count_text(int(counted)) if pd.notna(counted) else "–",
        *(f"{p[c]:.2g}" if pd.notna(p[c]) else "–" for c in ("max_regret", "regret_bound")),
    ]


def _share(p: pd.Series | None) -> str:
    """Older runs have no regret to show."""
    if p is None or pd.isna(p["max_regret"]) or pd.isna(p["regret_bound"]):
        return "–"
    if p["max_regret"] == 0:
        return "0"
    return f"{100 * p['max_regret'] / p['regret_bound']:.2g}%" if p["regret_bound"] else "–"
