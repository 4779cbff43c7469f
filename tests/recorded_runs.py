"""The recorded runs, on whichever machine they were made last."""

from pathlib import Path

RECORDED = Path(__file__).resolve().parents[1] / "data" / "recorded"


def recorded_run(spec):
    """The folder of a spec that one machine has recorded."""
    runs = [plan.parent for plan in RECORDED.glob(f"*/{spec}/plan.json")]
    assert len(runs) == 1, (spec, runs)
    return runs[0]
