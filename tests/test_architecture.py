"""The code agrees with docs/architecture.md: its paths exist, and includes go the way it says."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
ROOMS = ("kernels", "data", "profiling", "experiments")
# What the files of a room may include. A family of kernels may also include itself.
ALLOWED = {
    "kernels/core": ("kernels/core/",),
    "kernels": ("kernels/core/",),
    "data": ("data/", "kernels/core/"),
    "profiling": ("profiling/", "kernels/core/"),
    "experiments": ("experiments/", "profiling/", "data/", "kernels/core/"),
}


def sources():
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*")):
            if path.suffix in (".h", ".cuh", ".cpp", ".cu"):
                yield path.relative_to(ROOT).as_posix(), path.read_text()


def allowed(file):
    room, folder, *_ = file.split("/")
    beginnings = ALLOWED.get(f"{room}/{folder}", ALLOWED[room])
    return (*beginnings, f"{room}/{folder}/") if room == "kernels" else beginnings


def against_the_rules():
    for file, text in sources():
        for included in re.findall(r'^\s*#\s*include "([^"]+)"', text, re.MULTILINE):
            ours = included.split("/")[0] in (*ROOMS, "tests", "analysis")
            if ours and not included.startswith(allowed(file)):
                yield "/".join(file.split("/")[:2]), "/".join(included.split("/")[:2])


def test_includes_go_the_way_of_the_page():
    """An exception that is gone must leave the page's table, too."""
    exceptions = re.findall(r"^\| `(\S+)` \| `(\S+)` \|", PAGE, re.MULTILINE)
    assert set(against_the_rules()) == set(exceptions)


def includes_between_rooms_of_experiments():
    for file, text in sources():
        for included in re.findall(r'^\s*#\s*include "experiments/(\w+)/', text, re.MULTILINE):
            if file.startswith("experiments/") and included != file.split("/")[1]:
                yield file, file.split("/")[1], included


def test_rooms_of_experiments_include_only_those_before_them():
    """So they do not include each other in a circle."""
    order = re.search(r"Its rooms have an order: ([^.]*)\.", PAGE).group(1)
    order = re.findall(r"`(\w+)`", order)
    files = [file.split("/") for file, _ in sources()]
    assert sorted(order) == sorted({room for top, room, *_ in files if top == "experiments"})
    place = order.index
    edges = list(includes_between_rooms_of_experiments())
    assert len(edges) > 100
    assert not [edge for edge in edges if place(edge[1]) < place(edge[2])]


def test_only_one_source_asks_how_many_cores_there_are():
    asks = r"\b(hardware_concurrency|omp_get_num_procs|get_nprocs(_conf)?|_SC_NPROCESSORS_\w+)\b"
    assert [file for file, text in sources() if re.search(asks, text)] == ["kernels/core/cores.cpp"]


def test_every_include_names_a_file_from_the_root():
    """Otherwise the test above would not see it."""
    generated = {"build_info.h"}
    for file, text in sources():
        for included in re.findall(r'^\s*#\s*include "([^"]+)"', text, re.MULTILINE):
            assert (ROOT / included).exists() or included in generated, (file, included)


PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.md")]


@pytest.mark.parametrize("page", [p.relative_to(ROOT).as_posix() for p in PAGES])
def test_every_path_that_a_page_names_exists(page):
    text = (ROOT / page).read_text()
    rooms = "|".join((*ROOMS, "analysis", "docs", "examples", "tests", "tools"))
    paths = re.findall(rf"`((?:{rooms})/[\w./-]*)`", text)
    if page == "docs/architecture.md":
        assert len(paths) > 20
    for path in paths:
        # Capitals and "mine" stand for the reader's own names.
        if "mine" not in path and not re.search("[A-Z]{4}", path.replace("README", "")):
            assert (ROOT / path).exists(), path


PAGES += [*ROOT.glob("profiling/*.md"), *ROOT.glob("kernels/*/*.md")]
PAGES += [*ROOT.glob("analysis/*.md"), *ROOT.glob("kernels/*/*/NOTES.md")]
PAGES += [*ROOT.glob("experiments/sweeps/*.yaml")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_lines_of_documents_end_at_column_100(page):
    """Tables may be wider, and what a command writes between markers."""
    text = re.sub(r"<!-- (\w+):BEGIN .*?<!-- \1:END ", "", page.read_text(), flags=re.DOTALL)
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("|")]
    assert not [line for line in lines if len(line) > 100]
