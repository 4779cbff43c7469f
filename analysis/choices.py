"""How good fast_auto's choices were: its time beside the fastest of its family."""

from __future__ import annotations

from analysis.derive import all_points, fastest
from analysis.load import Run, RunError
from analysis.regimes import CHOOSER, OURS
from analysis.stats import ratio_interval
from analysis.tables import interval_text, markdown

PROMISE = 0.05
"""fast_auto is to lose no more than this part of the best one's time."""


def choices(run: Run) -> str:
    """Markdown: for each problem of `run` that fast_auto and another of its family ran, what it
    chose, which was the fastest, both medians (ms per iteration) and their ratio with its interval;
    the largest loss first. Raises RunError for a run that has no such problem."""
    points = all_points([run], "")
    best = fastest(points[points["family"].eq(OURS)])
    chosen = run.measurements.drop_duplicates("point").set_index("point")["chosen"]
    losses = []
    for problem, of in best.groupby(["precision", "n", "k", "dim"], sort=False):
        auto, others = of[of["version"].eq(CHOOSER)], of[of["version"].ne(CHOOSER)]
        if auto.empty or others.empty:
            continue
        mine, fast = auto.iloc[0], others.loc[others["iteration_ms"].idxmin()]
        ratio = ratio_interval(mine["times_ms"], fast["times_ms"])
        losses.append((ratio, problem, str(chosen[mine["point"]]), mine, fast))
    if not losses:
        raise RunError(f"{run.path}: no problem that {CHOOSER} and another {OURS}_ version ran")
    losses.sort(key=lambda loss: -loss[0][0])
    over = sum(ratio[0] > 1 + PROMISE for ratio, *_ in losses)
    other = sum(name.split("/")[0] != fast["version"] for _, _, name, _, fast in losses)
    rows = [
        [
            *(str(value) for value in problem),
            *(name, f"{mine['iteration_ms']:.3g}"),
            *(fast["version"], f"{fast['iteration_ms']:.3g}"),
            interval_text(*ratio, unit="×"),
        ]
        for ratio, problem, name, mine, fast in losses
    ]
    said = (
        f"{CHOOSER} takes more than {PROMISE:.0%} longer than the fastest of the others at {over} "
        f"of {len(losses)} problems, at most {losses[0][0][0]:.2f}× its time; at {other} it chose "
        "another version."
    )
    header = ["precision", "n", "k", "dim", "chosen", "ms", "fastest", "ms", "ratio [95%]"]
    return f"{run.title}: {run.environment_line()}. {said}\n\n" + markdown(
        header, rows, {"n", "k", "dim", "ms"}
    )
