"""The Makefile and tools/run.sh, with fake programs in place of what takes minutes."""

import json
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]

NAMES = ["a b.yaml", "it's.yaml", 'say "hi".yaml', "cost$HOME$$.yaml", "a;touch made;.yaml", "`id`"]

PROGRAM = """#!/usr/bin/env python3
import json, pathlib, sys
with pathlib.Path("called").open("a") as log:
    print(json.dumps(sys.argv), file=log)
"""


def fake_program(path, text=PROGRAM):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def calls(folder, program):
    lines = (folder / "called").read_text().splitlines()
    return [json.loads(line)[1:] for line in lines if json.loads(line)[0].endswith(program)]


@pytest.fixture
def tree(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / ".venv").mkdir()
    (tmp_path / "requirements.txt").touch()
    for tool in ("build", "setup-system", "setup-python", "setup-cuda", "run"):
        fake_program(tmp_path / "tools" / f"{tool}.sh")
    return tmp_path


def make(tree, *arguments, **variables):
    result = subprocess.run(
        ["make", *arguments],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nowhere", **variables},
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("name", NAMES)
def test_make_run_hands_on_the_name_of_a_spec_as_it_is(tree, name):
    make(tree, "run", f"SPEC={name}", "ARGS=--only 'cpu_*' --quiet")
    make(tree, "run", SPEC=name)
    assert calls(tree, "run.sh") == [[name, "--only", "cpu_*", "--quiet"], [name]]
    assert not (tree / "made").exists()


def test_make_run_has_a_spec_of_its_own(tree):
    make(tree, "run")
    assert calls(tree, "run.sh") == [["sweeps/quickstart.yaml"]]


def build(tree, sources):
    """Runs tools/build.sh with a fake cmake, in a folder that was configured for `sources`."""
    shutil.copy(ROOT / "tools" / "build.sh", tree / "tools")
    fake_program(tree / "bin" / "cmake")
    (tree / "build").mkdir()
    (tree / "build" / "CMakeCache.txt").write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={sources}\n")
    (tree / "build" / ".options").write_text("-DLLOYD_CUDA=OFF\n")
    return subprocess.run(
        [tree / "tools" / "build.sh", "build", "run_experiment", "-DLLOYD_CUDA=OFF"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": f"{tree / 'bin'}:/usr/bin:/bin", "JOBS": "1"},
    )


def test_a_build_folder_is_used_for_its_own_sources(tree):
    link = tree.with_name("link")
    link.symlink_to(tree)
    assert build(tree, link).returncode == 0
    assert [call[0] for call in calls(tree, "cmake")] == ["--build"]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_build_folder_that_was_copied_or_moved_is_refused(tree, tmp_path_factory, is_there):
    """CMake would build the sources that the cache names, and the reader would measure those."""
    other = tmp_path_factory.mktemp("other") if is_there else pathlib.Path("/no/such/tree")
    result = build(tree, other)
    assert result.returncode == 1
    assert f"build was made for the sources in {other}: the folder was copied" in result.stderr
    assert result.stderr.endswith("rm -r build\n")
    assert not (tree / "called").exists()


@pytest.mark.parametrize("name", NAMES)
def test_run_sh_hands_on_names_as_they_are(tree, name):
    shutil.copy(ROOT / "tools" / "run.sh", tree / "tools")
    fake_program(
        tree / "build" / "run_experiment", PROGRAM + "print('results: out/' + sys.argv[1])\n"
    )
    fake_program(tree / ".venv" / "bin" / "python")
    subprocess.run([tree / "tools" / "run.sh", name, "--quiet"], check=True, stdout=subprocess.PIPE)
    assert calls(tree, "run_experiment") == [[name, "--quiet"]]
    assert calls(tree, "python") == [["-m", "analysis", "figures", f"out/{name}"]]
    assert not (tree / "made").exists()


def test_dist_says_whether_it_packs_a_release(tmp_path):
    def git(*arguments):
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True)

    def said():
        command = ["tools/dist.sh"]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert " a.whl" in (tmp_path / "dist" / "SHA256SUMS").read_text()
        return result.stderr

    packs = "#!/bin/sh\nmkdir -p dist && touch dist/a.whl dist/lloydbench-1.2.3.tar.gz\n"
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "dist.sh", tmp_path / "tools")
    fake_program(tmp_path / "tools" / "bundle.sh", packs)
    fake_program(tmp_path / "tools" / "wheel.sh", packs)
    fake_program(tmp_path / ".venv" / "bin" / "python", "#!/bin/sh\n")
    (tmp_path / "CITATION.cff").write_text("version: 1.2.3\n")
    (tmp_path / ".gitignore").write_text("dist/\n")
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "first")
    no_release = (
        "dist: this is no release, for the tree is not a clean checkout of the tag v1.2.3\n"
    )
    assert said() == no_release
    git("tag", "v1.2")
    assert said() == no_release
    git("tag", "-m", "1.2.3", "v1.2.3")
    assert said() == ""
    (tmp_path / "new.h").touch()
    assert said() == no_release
