"""README and docs/ keep their promises: tables are up to date, links lead somewhere, and whoever
follows the README gets what it says."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from analysis.pages.regimes import REGIMES

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")).resolve()
PROGRAM = BUILD / "run_experiment"
README = (ROOT / "README.md").read_text()
OURS = ("", ".github", "analysis", "data", "docs", "examples", "experiments", "kernels")
OURS += ("packaging", "profiling", "tests", "tools")
PAGES = sorted(
    page
    for folder in OURS
    for page in (ROOT / folder).glob("**/*.md" if folder else "*.md")
    if "results" not in page.parts
)
MARKED = [page for page in PAGES if re.search("^<!-- (table|figure):BEGIN", page.read_text(), re.M)]


def path(page):
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", MARKED, ids=path)
def test_its_tables_are_up_to_date(page):
    command = [sys.executable, "-m", "analysis", "readme", path(page), "data/recorded", "--check"]
    result = subprocess.run(
        [*command, "--program", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert "is left as it is" not in result.stderr


def anchors(page):
    """The anchors that GitHub makes of a page's headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    found = []
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found.append(f"{anchor}-{found.count(anchor)}" if anchor in found else anchor)
    return found


@pytest.mark.parametrize("page", PAGES, ids=path)
def test_every_link_leads_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith(("https://", "http://", "mailto:")):
            continue
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=path)
def test_every_recorded_run_that_it_names_is_there(page):
    for run in re.findall(r"data/recorded/[a-z][\w-]*/[a-z]\w*", page.read_text()):
        assert (ROOT / run).exists(), run


def test_the_readme_links_to_every_page_of_docs():
    for page in (ROOT / "docs").glob("*.md"):
        if page.name != "style.md":  # CONTRIBUTING.md leads there
            assert f"](docs/{page.name})" in README, page.name


def test_every_target_that_the_readme_names_exists():
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"`?make ([a-z]+)", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_readme_has_no_wide_table():
    assert max(line.count(" | ") for line in README.splitlines() if line.startswith("|")) < 6


@pytest.mark.parametrize("sweep", ["fast_regimes", "fast_counters", "fast_reproducible"])
def test_the_sweeps_of_the_regimes_have_the_tables_regimes(sweep):
    command = [PROGRAM, f"sweeps/{sweep}.yaml", "--dry-run", "--json"]
    told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    points = [p for p in json.loads(told) if p["version"].startswith("fast_")]
    seen = {(p["n"], p["k"], p["dim"], p["precision"] == "fp16") for p in points}
    known = {(r.n, r.k, r.dim, r.half) for r in REGIMES}
    assert seen <= known
    if sweep == "fast_regimes":
        assert seen == known


# ---- somebody follows the README ----------------------------------------------------------------


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def results_of(clone, name):
    (run,) = (clone.folder / "results" / name).iterdir()
    return run


def listed_files(run):
    """The files that the README shows in a run directory, which are all there."""
    tree = re.search(r"^results/ladder.*?^```", README, re.MULTILINE | re.DOTALL)[0]
    shown = re.findall(r"[\w.]+\.(?:jsonl|json|md|yaml|txt)", tree)
    assert len(shown) == 10
    return [run / file for file in shown]


QUICK = "measure: {repetitions: 6, max_seconds: 0.1}\n"
"""What a test adds to a spec of the README, and nothing else but fewer points."""


def test_whoever_saves_the_sweep_gets_its_figures(clone):
    sweep = blocks("yaml")[0]
    assert len(sweep.splitlines()) == 12
    (clone.folder / "my_sweep.yaml").write_text(
        sweep.replace("n: [1e3, 1e4, 1e5]", "n: [200, 2000]") + QUICK
    )
    (commands,) = [block for block in blocks("sh") if "my_sweep.yaml" in block]
    said = clone.follow(commands)
    assert "cpu_sequential/n:2000/k:100/dim:16" in said
    run = results_of(clone, "my_sweep")
    assert all(file.is_file() for file in listed_files(run))
    for ending in ("svg", "png", "csv"):
        assert (run / "figures" / f"speedup.{ending}").stat().st_size > 100


def test_whoever_has_a_file_of_points_gets_a_figure_of_it(clone):
    rows = [f"{i % 7 + i / 997:.3f},{i % 5 - i / 499:.3f}" for i in range(300)]
    (clone.folder / "points.csv").write_text("\n".join(["height,width", *rows]) + "\n")
    (clone.folder / "my_data.yaml").write_text(blocks("yaml")[1] + QUICK)
    assert "`make run SPEC=my_data.yaml`" in " ".join(README.split())
    clone.follow("make run SPEC=my_data.yaml")
    run = results_of(clone, "my_data")
    figure = (run / "figures" / "speedup.csv").read_text()
    assert "cpu_openmp" in figure
    row = json.loads((run / "measurements.jsonl").read_text().splitlines()[0])
    assert (row["n"], row["dim"], row["data"]) == (300, 2, "points.csv")


def test_the_first_commands_are_runs_of_specs(clone):
    """Both are planned, not run: the second takes minutes."""
    commands = blocks("sh")[0].splitlines()
    assert commands[0].endswith("/OWNER/lloydbench && cd lloydbench")
    for command in commands[1:]:
        assert command.startswith("make run")
        said = clone.follow(command.partition("#")[0] + "ARGS=--dry-run")
        assert "cpu_sequential" in said
