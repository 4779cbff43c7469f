"""Whoever follows docs/answers.md keeps answers and loads them."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "answers.md").read_text()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_page_is_followed(clone):
    (spec,), (keep,) = blocks("yaml"), blocks("sh")
    (clone.folder / "kept.yaml").write_text(spec)
    clone.follow(keep)
    script = clone.folder / "load.py"
    checks = """
sizes_of = {name: of.set_index("cluster")["size"] for name, of in table.groupby("version")}
assert sizes.tolist() == sizes_of["cpu_sequential"].tolist()
assert sizes.sum() == 10_000 and set(sizes_of) == {"cpu_sequential", "cpu_openmp"}
"""
    script.write_text("\n".join(blocks("python")) + checks)
    loaded = subprocess.run(
        [sys.executable, "-W", "error", script],
        **{"cwd": clone.folder, "env": {**os.environ, "PYTHONPATH": "."}},
        **{"capture_output": True, "text": True},
        check=False,
    )
    assert loaded.returncode == 0, loaded.stderr
    assert "precision:fp32 uint8 (5, 2)" in loaded.stdout
    assert "100.00% of the labels are the same" in loaded.stdout
    drawn = clone.follow(".venv/bin/python -m analysis figures results/kept/first")
    assert "clustering.svg" in drawn
