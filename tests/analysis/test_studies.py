"""Whoever cites a study cites data/published/studies.toml."""

import json
import os
import re
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest

from analysis.measures.published import studies
from analysis.measures.studies import read_studies
from analysis.pages.tables import versions

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")).resolve()
STUDIES = read_studies()
BY_NAME = pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)


def test_they_are_the_studies_whose_numbers_are_published():
    assert sorted(study.name for study in STUDIES) == studies()


@BY_NAME
def test_citation_cff_has_each_study(study):
    text = (ROOT / "CITATION.cff").read_text()
    references = re.split(r"^  - ", text[text.index("references:") :], flags=re.MULTILINE)[1:]
    assert len(references) == len(STUDIES)
    (reference,) = [" ".join(r.split()) for r in references if f'"{study.title}"' in r]
    for author in study.authors:
        assert f"{'family-names' if ' ' in author else 'name'}: {author.split()[-1]}" in reference
    assert ("year:" in reference) == bool(study.year)
    assert not study.year or f"year: {study.year}" in reference
    assert (f'url: "{study.url}"' in reference) == bool(study.url)
    for version in study.versions:
        assert version in reference


@BY_NAME
def test_each_study_stands_for_versions_that_name_it(study):
    """What the program lists as derived from a study is what the table says of it."""
    command = [BUILD / "run_experiment", "--list-versions", "--json"]
    listed = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    naming = {v["name"] for v in listed if study.name == v["study"]}
    matched = {
        v["name"] for v in listed for pattern in study.versions if fnmatch(v["name"], pattern)
    }
    assert naming
    assert naming == matched


def test_a_citation_says_what_is_known_and_what_is_not():
    known, unknown = STUDIES[0], next(study for study in STUDIES if not study.date)
    assert known.citation() == f"Luigi, {known.title}, blog post, luigicennini.it, 2025"
    assert known.citation("[T](u)").startswith("Luigi, [T](u), ")
    assert "no year given (it names neither" in unknown.citation()
    assert (known.short, unknown.short) == ("Luigi 2025", "Flores & Alves")


def test_the_table_of_versions_cites_the_studies():
    listed = [
        {"name": "fast_a", "family": "fast", "study": "", "summary": "a | b"},
        {"name": "cpu_b", "family": "cpu", "study": "luigi, flores_alves", "summary": "`c`"},
        {"name": "cpu_a", "family": "cpu", "study": "all five", "summary": "d"},
    ]
    lines = versions(listed, STUDIES).splitlines()[2:]
    assert lines == [
        f"| `cpu_b` | [Luigi 2025]({STUDIES[0].url}), Flores & Alves | `c` |",
        "| `cpu_a` | all five | d |",
        "| `fast_a` | this project | a \\| b |",
    ]
