"""The version stands in CMakeLists.txt. What cannot read it there must agree with it."""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def stated():
    text = (ROOT / "CMakeLists.txt").read_text()
    (version,) = re.findall(r"^project\(lloydbench VERSION ([0-9.]+)", text, re.MULTILINE)
    return version


def test_citation_names_the_version():
    text = (ROOT / "CITATION.cff").read_text()
    assert re.findall("^version: (.*)$", text, re.MULTILINE) == [stated()]


def test_the_changelog_begins_with_the_version():
    text = (ROOT / "CHANGELOG.md").read_text()
    first = re.search("^## (.*?) – (.*)$", text, re.MULTILINE)
    assert first[1] == stated()
    assert re.fullmatch(r"not yet released|\d{4}-\d\d-\d\d", first[2])


def test_citation_and_changelog_name_one_date():
    changelog = (ROOT / "CHANGELOG.md").read_text()
    dates = re.findall(f"^## {re.escape(stated())} – (\\d.*)$", changelog, re.MULTILINE)
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.findall("^date-released: (.*)$", citation, re.MULTILINE) == dates


def test_spack_offers_the_version_last():
    recipe = ROOT / "tools" / "packaging" / "spack" / "packages" / "lloydbench" / "package.py"
    versions = re.findall(r'version\("([0-9.]+)", tag="v([0-9.]+)"\)', recipe.read_text())
    assert versions[-1] == (stated(), stated())


def test_program_says_the_version():
    program = Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")) / "run_experiment"
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == stated()
