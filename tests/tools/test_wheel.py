"""The wheel of the program in build/, installed into a fresh virtual environment."""

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*command, status=0, **options):
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run(ROOT / "tools" / "wheel.sh", "build", folder)
    (file,) = folder.iterdir()
    return file


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """A virtual environment that has the wheel. The packages that the wheel needs are those of this
    Python, so that the test downloads nothing.
    """
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", folder)
    run(folder / "bin" / "pip", "install", "--no-deps", "--no-index", wheel)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


@pytest.fixture(scope="module")
def results(environment, tmp_path_factory):
    """The run directory of a run of the quickstart, far from the source tree."""
    folder = tmp_path_factory.mktemp("elsewhere")
    out = run(
        environment / "bin" / "lloydbench",
        *("run", "sweeps/quickstart.yaml", "--only", "cpu_sequential,cpu_openmp"),
        *("--set", "n=1e4", "--repetitions", "2"),
        cwd=folder,
    )
    (line,) = re.findall("^results: (.*)$", out, re.MULTILINE)
    return folder / line


def test_wheel_runs_with_every_python_and_a_c_library_as_old_as_debian_12s(wheel):
    name = r"lloydbench-[0-9.]+-py3-none-manylinux_2_(\d+)_\w+\.whl"
    found = re.fullmatch(name, wheel.name)
    assert found, wheel.name
    if "bookworm" in Path("/etc/os-release").read_text():
        assert int(found[1]) <= 36


def test_wheel_leaves_one_name_in_site_packages(environment):
    (site,) = environment.glob("lib/python*/site-packages")
    installed = {path.name.split("-")[0] for path in site.iterdir() if path.name != "needed.pth"}
    usual = {"pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils"}
    assert installed - usual == {"lloydbench", "lloydbench.libs"}


def test_run_draws_the_figures_of_the_spec(results):
    figures = {path.name for path in (results / "figures").iterdir()}
    assert {"speedup.svg", "speedup.png", "speedup.csv", "clustering.svg"} <= figures


def test_installed_program_needs_nothing_of_the_source_tree(environment):
    program = environment / "bin" / "run_experiment"
    listed = run(program, "--list-versions", cwd="/")
    assert "cpu_openmp" in listed
    binary = next(environment.glob("lib/python*/site-packages/lloydbench/bin/run_experiment"))
    libraries = run("ldd", binary)
    grafted = [line.split()[2] for line in libraries.splitlines() if "libyaml-cpp" in line]
    assert [Path(path).parent.name for path in grafted] == ["lloydbench.libs"]


def test_recorded_ceilings_are_installed(environment):
    files = environment.glob("lib/python*/site-packages/lloydbench/**/recorded/*/ceilings.json")
    recorded = (ROOT / "data" / "recorded").glob("*/ceilings.json")
    assert {file.parent.name for file in files} == {file.parent.name for file in recorded} != set()


def test_external_versions_run_under_the_python_of_the_environment(environment, tmp_path):
    probe = tmp_path / "versions" / "probe.py"
    probe.parent.mkdir()
    probe.write_text("import sys\nsys.exit(f'asked with {sys.executable}')\n")
    probe.chmod(0o755)
    done = subprocess.run(
        [environment / "bin" / "run_experiment", "--list-versions"],
        env={**os.environ, "LLOYDBENCH_VERSIONS": str(probe.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"asked with {environment}/bin/python" in done.stdout + done.stderr


def test_analysis_answers_under_the_name_lloydbench(environment, results):
    lloydbench = environment / "bin" / "lloydbench"
    assert "| `cpu_openmp` |" in run(lloydbench, "readme-table", results)
    assert "| published |" in run(lloydbench, "table", "luigi")
    assert "usage: lloydbench figures" in run(lloydbench, "figures", "--help")


def test_help_names_the_commands_of_both(environment):
    text = run(environment / "bin" / "lloydbench", "--help")
    assert "\n  run SPEC" in text
    assert "\n  figures " in text
    assert "--doctor" in text


def test_importing_lloydbench_makes_the_analysis_importable(environment, results):
    code = (
        "import pathlib, sys, lloydbench; from analysis.model.load import load_run; "
        "run = load_run(pathlib.Path(sys.argv[1])); "
        "print(lloydbench.__version__, len(run.measurements))"
    )
    version, rows = run(environment / "bin" / "python", "-c", code, results, cwd="/").split()
    program = run(environment / "bin" / "run_experiment", "--version").strip()
    assert version == program
    assert int(rows) > 0


def test_man_page_and_completions_are_where_the_environment_has_such(environment):
    share = environment / "share"
    assert (share / "man" / "man1" / "run_experiment.1").exists()
    assert (share / "bash-completion" / "completions" / "run_experiment").exists()


def test_exit_status_of_the_program_is_kept(environment, tmp_path):
    lloydbench = environment / "bin" / "lloydbench"
    run(lloydbench, "run", "no-such-spec.yaml", cwd=tmp_path, status=2)
    run(lloydbench, "--no-such-option", status=2)
    run(lloydbench, status=2)
