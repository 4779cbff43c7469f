"""Whoever follows docs/paper.md gets from a spec to a page of LaTeX and to an artifact."""

import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "paper.md").read_text()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def followed(clone):
    """The page's commands in order, with fewer points, and without ceilings and locked clocks."""
    (spec,) = blocks("yaml")
    shorter = {
        **{"n: [1e4, 1e5, 1e6]": "n: [200, 1000]", "k: [1000]": "k: [4]"},
        "{launches: 5}": "{launches: 2, repetitions: 3, max_seconds: 0.05}",
        "figures: [speedup, floor, noise]": "figures: [speedup]",
    }
    for whole, part in shorter.items():
        assert whole in spec
        spec = spec.replace(whole, part)
    (clone.folder / "k1000_paper.yaml").write_text(spec)
    (look, measure, draw, pack, again) = blocks("sh")
    clone.follow(re.sub("^.*--ceilings.*$", "", look, flags=re.MULTILINE))
    clone.follow(measure.replace(" --lock-clocks", ""))
    clone.follow(draw)
    clone.follow(pack)
    planned = clone.follow(f"{again.strip()} --dry-run")
    assert "n:1000" in planned
    return clone.folder


def test_the_artifact_is_whole(followed):
    packed = followed / "k1000_artifact"
    assert (packed / "README.md").is_file()
    subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=packed, check=True, timeout=60)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_the_document_is_set_by_latex(followed):
    (document,) = blocks("latex")
    run = followed / "results" / "k1000_paper" / "first"
    (run / "paper.tex").write_text(document)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    result = subprocess.run(command, cwd=run, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    assert (run / "paper.pdf").stat().st_size > 10_000
