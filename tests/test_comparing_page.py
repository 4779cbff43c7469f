"""Whoever follows docs/comparing.md compares initial centroids."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "comparing.md").read_text()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_page_is_followed(clone):
    (spec,), (commands,), (script,) = blocks("yaml"), blocks("sh"), blocks("python")
    fewer = re.sub(r"init_seed: .*", "init_seed: [1, 2]", spec)  # ten take half a minute
    assert fewer != spec
    (clone.folder / "initial.yaml").write_text(fewer)
    assert "convergence.svg" in clone.follow(commands)
    checks = """
assert len(ends) == 3 * 2 * 2
assert set(table.index) == {"uniform", "blobs", "cloud"}
assert set(table.columns) == {"random_points", "kmeans++"}
assert (ends.groupby("data_name")["excess_percent"].min() == 0).all()
"""
    file = clone.folder / "compare.py"
    file.write_text(script + checks)
    told = subprocess.run(
        [sys.executable, "-W", "error", file],
        **{"cwd": clone.folder, "env": {**os.environ, "PYTHONPATH": "."}},
        **{"capture_output": True, "text": True},
        check=False,
    )
    assert told.returncode == 0, told.stderr
    drawn = clone.follow(
        ".venv/bin/python -m analysis figures results/initial/first --only noise:init"
    )
    assert "noise_over_init.svg" in drawn
