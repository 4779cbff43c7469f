"""What pip installs beside the wheel is what the analysis imports."""

import ast
import re
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def imported():
    """The top-level names that the files of the analysis import, wherever in a file."""
    names = set()
    for file in (ROOT / "analysis").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.split(".")[0])
    return names - {*sys.stdlib_module_names, "analysis"}


def test_the_wheel_requires_what_the_analysis_imports_and_no_more():
    required = {Requirement(line).name.lower() for line in project()["dependencies"]}
    packages = packages_distributions()
    needed = {packages.get(name, [name])[0].lower() for name in imported()}
    assert required == needed


def pinned(file, name):
    """The versions of a package, of which each is for some versions of Python."""
    pins = re.findall(r"([\w-]+)==([\w.]+)", (ROOT / file).read_text())
    return [version for pin, version in pins if pin.lower() == name.lower()]


@pytest.mark.parametrize(
    ("file", "lines"),
    [
        ("requirements.txt", project()["dependencies"]),
        ("requirements.txt", project()["optional-dependencies"]["sklearn"]),
        ("requirements.txt", project()["optional-dependencies"]["chart"]),
        ("requirements-cuda.txt", project()["optional-dependencies"]["cuda"]),
    ],
)
def test_the_wheel_accepts_the_versions_that_the_tests_run_with(file, lines):
    for line in lines:
        wanted = Requirement(line)
        versions = pinned(file, wanted.name)
        assert versions, line
        assert all(wanted.specifier.contains(version) for version in versions), line
