"""The report's page of a spec that ran on several machines."""

import json
import re

import pytest
from test_report import Page, words
from unpacked import packed_pages

from analysis.__main__ import main

H100, H200 = "NVIDIA H100", "NVIDIA H200"
CPU = "AMD EPYC 9654 96-Core Processor (96 cores)"


@pytest.fixture
def two_machines(make_run, tmp_path):
    make_run("runs/first", name="k5", k=(5,), n=(10_000,), gpu=H200)
    make_run("runs/other", name="k5", k=(5,), n=(10_000,), gpu=H100)
    make_run("runs/alone", name="k9", k=(9,), n=(10_000,), gpu=H100)
    return tmp_path / "runs"


def test_a_spec_on_two_machines_has_a_page_with_both(two_machines, tmp_path):
    out = tmp_path / "out"
    assert main(["report", str(two_machines), "-o", str(out)]) == 0
    (folder,) = [path for path in out.iterdir() if path.name.startswith("machines-")]
    file = folder / "index.html"
    page = Page(file.read_text())
    assert len(page.ids) == len(set(page.ids))
    said = words(file)
    assert said.index("Machines") < said.index(H200) < said.index("speedup")
    # one picture of each machine, in each of the spec's figures
    labels = re.findall(r'role="img" aria-label="(\w+) on ([^:]+):', file.read_text())
    machines = {name: [m for n, m in labels if n == name] for name, _ in labels}
    assert {tuple(sorted(of)) for of in machines.values()} == {(H100, H200)}
    for link in page.links:
        if link.startswith("data:"):
            continue
        target = link.partition("#")[0]
        assert not target or (folder / target).is_file(), link
    index = (out / "index.html").read_text()
    assert f'href="{folder.name}/index.html"' in index
    assert "On several machines" in index


@pytest.mark.parametrize(
    ("on_cpu", "named"),
    [
        (["first"], [f"{CPU} {CPU} none used", f"{H100} {CPU} {H100}"]),
        (["first", "other"], [f"{CPU}, beside {H200} {CPU}", f"{CPU}, beside {H100} {CPU}"]),
    ],
)
def test_a_gpu_that_was_not_used_names_no_machine(two_machines, tmp_path, on_cpu, named):
    for run in on_cpu:
        file = two_machines / run / "measurements.jsonl"
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows if row["gpu"] is None))
    out = tmp_path / "out"
    assert main(["report", str(two_machines), "-o", str(out)]) == 0
    (folder,) = [path for path in out.iterdir() if path.name.startswith("machines-")]
    said = " ".join(words(folder / "index.html").split())
    for name in named:
        assert name in said


def test_the_latest_run_of_a_machine_counts(make_run, tmp_path):
    make_run("runs/first", name="k5", k=(5,), n=(10_000,))
    make_run("runs/again", name="k5", k=(5,), n=(10_000,))
    out = tmp_path / "out"
    assert main(["report", str(tmp_path / "runs"), "-o", str(out)]) == 0
    assert not [path for path in out.iterdir() if path.name.startswith("machines-")]
    assert "On several machines" not in (out / "index.html").read_text()


def test_the_one_file_has_the_page_too(two_machines, tmp_path):
    out = tmp_path / "out"
    assert main(["report", str(two_machines), "-o", str(out), "--single-file"]) == 0
    pages = packed_pages((out / "report.html").read_text())
    (page,) = [text for name, text in pages.items() if name.startswith("machines-")]
    assert H100 in page
    assert H200 in page
