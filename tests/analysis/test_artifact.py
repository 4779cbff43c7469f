"""Artifacts: packed, checked, and spoilt."""

import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from email.message import Message
from importlib.metadata import packages_distributions
from types import SimpleNamespace

import pytest
from made_runs import Sweep, realistic_faults, write_lines, write_run
from packaging.utils import canonicalize_name

from analysis.__main__ import main
from analysis.pages import artifact


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory):
    runs = tmp_path_factory.mktemp("measured") / "runs"
    small = {"threads_per_block": (256,), "threads": (2,), "repetitions": 6}
    first = Sweep(k=(5,), n=(10_000, 100_000), figures=["speedup"], **small)
    faults = realistic_faults()
    second = Sweep(k=(1000,), n=(10_000,), figures=["noise"], faults=faults, **small)
    write_run(runs / "first", first)
    (runs / "first" / "spec.yaml").write_text("name: sweep\n")
    write_run(runs / "second", second)
    return runs


@pytest.fixture(scope="module")
def packed_once(two_runs):
    out = two_runs.parent / "paper-artifact"
    assert main(["artifact", str(two_runs), "--out", str(out), "--format", "svg,pdf"]) == 0
    return out


@pytest.fixture
def packed(packed_once, tmp_path, capsys):
    capsys.readouterr()
    return shutil.copytree(packed_once, tmp_path / "paper-artifact")


def checked(path, capsys):
    """Exit status, what was found, and the faults."""
    status = main(["artifact", "--check", str(path)])
    out, err = capsys.readouterr()
    return status, out, err.splitlines()


def rewrite_sums(folder):
    names = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != "SHA256SUMS")
    done = subprocess.run(
        ["sha256sum", "--", *(str(name.relative_to(folder)) for name in names)],
        cwd=folder,
        capture_output=True,
        check=True,
    )
    (folder / "SHA256SUMS").write_bytes(done.stdout)


def test_an_artifact_has_rows_figures_tables_software_and_checksums(packed, capsys):
    names = {str(p.relative_to(packed)) for p in packed.rglob("*") if p.is_file()}
    for expected in (
        *("README.md", "SHA256SUMS", "runs/sweep/measurements.jsonl", "runs/sweep/spec.yaml"),
        *(
            "runs/sweep-2/environment.json",
            "figures/sweep/speedup.pdf",
            "figures/sweep/speedup.csv",
        ),
        *("figures/sweep-2/noise.svg", "tables/sweep/medians.tex", "tables/sweep-2/missing.md"),
        *("software/analysis/commands.py", "software/requirements.txt", "software/LICENSE"),
    ):
        assert expected in names
    done = subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=packed, check=False)
    assert done.returncode == 0
    assert len((packed / "SHA256SUMS").read_text().splitlines()) == len(names) - 1
    status, out, faults = checked(packed, capsys)
    assert (status, faults) == (0, [])
    assert re.fullmatch(
        rf"{len(names) - 1} files as packed, \d\d figures and tables rebuilt\n", out
    )


def test_the_readme_says_what_was_measured_on_what_and_how_to_rebuild_it(packed, tmp_path):
    readme = (packed / "README.md").read_text()
    for words in (
        *("AMD EPYC 9654 96-Core Processor", "NVIDIA H200", "driver 580.82.07", "GNU 12.2.0"),
        *("06af889d1c2b3a4f", "run_experiment runs/sweep/spec.yaml"),
        "`sweep-2`: 1 of 6 points has no result (`tables/sweep-2/`).",
    ):
        assert words in readme
    commands = re.findall(r"^/tmp/venv/bin/python (-m analysis .*--out )/tmp/(\S+)$", readme, re.M)
    assert [where for _, where in commands] == [
        *("figures/sweep", "tables/sweep", "figures/sweep-2", "tables/sweep-2")
    ]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    for command, where in commands[:1]:
        line = [sys.executable, *shlex.split(command), str(tmp_path / where)]
        subprocess.run(line, cwd=packed / "software", env=environment, check=True)
        for file in (packed / where).iterdir():
            assert file.read_bytes() == (tmp_path / where / file.name).read_bytes()


@pytest.mark.parametrize(
    ("of", "said"),
    [
        ({"numpy": (10, 11, 12, 13), "scipy": (11, 12, 13, 14)}, "3.11 to 3.13"),
        ({"numpy": (14,)}, "3.14"),
        ({"numpy": (10,), "scipy": (14,)}, platform.python_version()),
    ],
)
def test_the_pythons_are_those_of_the_pinned_packages(of, said, monkeypatch):
    def distribution(name):
        minors = ["3", *(f"3.{minor}" for minor in of.get(name, ()))]
        metadata = Message()
        for minor in minors:
            metadata["Classifier"] = f"Programming Language :: Python :: {minor}"
        return SimpleNamespace(metadata=metadata)

    monkeypatch.setattr(artifact, "distribution", distribution)
    assert artifact._pythons() == said


def test_the_readme_names_the_pythons_of_its_packages(packed):
    assert (
        f"This needs Linux and Python {artifact._pythons()}, no GPU"
        in (packed / "README.md").read_text()
    )


def test_the_readme_names_external_versions_whose_files_are_needed(tmp_path):
    run = write_run(tmp_path / "run", Sweep(k=(5,), n=(10_000,), figures=["speedup"]))
    rows = (run / "measurements.jsonl").read_text()
    (run / "phases.jsonl").unlink()
    launched = rows.replace('"cpu_openmp"', '"cpu_mpi"').replace("steady_clock", "mpi_max")
    (run / "measurements.jsonl").write_text(launched)
    plan = json.loads((run / "plan.json").read_text().replace('"cpu_openmp"', '"cpu_mpi"'))
    names = ("my_lazy", "also_mine", "python_numpy", "peer_torch", "cpu_mpi")

    def note(external):
        plan["fingerprints"] = {"binary": "42", "external": external}
        (run / "plan.json").write_text(json.dumps(plan))
        out = tmp_path / f"artifact-{len(external)}"
        assert main(["artifact", str(run), "--out", str(out), "--format", "svg"]) == 0
        return (out / "README.md").read_text().partition("## Measure again")[2]

    readme = note(dict.fromkeys(names, "ab"))
    assert "`runs/sweep` measures versions whose files are not part of this archive" in readme
    assert "nor of lloydbench: `also_mine`, `my_lazy`.\n" in readme
    assert "`LLOYDBENCH_VERSIONS`" in readme
    assert "LLOYDBENCH_VERSIONS" not in note(dict.fromkeys(names[2:], "ab"))


def test_the_readme_refers_to_a_table_of_missing_points_only_where_there_is_one(packed, tmp_path):
    assert "reasons (`tables/*/missing.md`) |" in (packed / "README.md").read_text()
    whole = write_run(tmp_path / "run", Sweep(k=(5,), n=(10_000,), figures=["speedup"]))
    out = tmp_path / "artifact"
    assert main(["artifact", str(whole), "--out", str(out), "--format", "svg"]) == 0
    assert not list(out.rglob("missing.md"))
    readme = (out / "README.md").read_text()
    assert "missing.md" not in readme
    assert "| every sample of every run; every point has a result |" in readme


def test_runs_of_several_programs_on_one_machine_are_of_one_machine(tmp_path):
    small = {"k": (5,), "n": (10_000,), "figures": ["speedup"]}
    runs = [tmp_path / "runs" / name for name in ("one", "two", "three", "four")]
    for run in runs:
        write_run(run, Sweep(name=run.name, **small))

    def change(run, **values):
        file = run / "environment.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | values))

    change(runs[1], build={"commit": "17bf889d1c2b3a4f", "compiler": "GNU 12.2.0"})
    change(runs[3], host="another", gpus=[{"name": "NVIDIA L4", "driver": "580"}] * 2)
    out = tmp_path / "artifact"
    assert main(["artifact", *map(str, runs), "--out", str(out), "--format", "svg"]) == 0
    readme = (out / "README.md").read_text()
    assert re.findall("^## Machine.*", readme, re.MULTILINE) == [
        "## Machine 1: `one`, `two`, `three`",
        "## Machine 2: `four`",
    ]
    first = readme.partition("## Machine 1")[2].partition("## Machine 2")[0]
    programs = [
        line for line in first.splitlines() if re.match(r"\| (program|compiler|host) ", line)
    ]
    assert programs == [
        "| host | node17 |",
        "| program | 06af889d1c2b3a4f (one, three) |",
        "| program | 17bf889d1c2b3a4f (two) |",
        "| compiler | GNU 12.2.0 |",
    ]
    assert readme.count("| NVIDIA L4 | driver 580 |") == 2


@pytest.mark.parametrize(
    ("count", "noisy", "throttled"),
    [
        (1, "1 point is noisy.", "1 sample was taken while the GPU held its clocks back."),
        (2, "2 points are noisy.", "2 samples were taken while the GPU held its clocks back."),
    ],
)
def test_the_readme_counts_one_disturbed_point_as_one(tmp_path, count, noisy, throttled):
    sweep = Sweep(k=(5,), n=(10_000,), figures=["speedup"], repetitions=6)
    file = write_run(tmp_path / "run", sweep) / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    points = list(dict.fromkeys(row["point"] for row in rows if row["gpu"]))[:count]
    for row in rows:
        row["noisy"] = row["point"] in points
        if row["noisy"] and row["repetition"] == 0:
            row["throttle"] = "sw_power_cap"
    write_lines(file, rows)
    out = tmp_path / "artifact"
    assert main(["artifact", str(file.parent), "--out", str(out), "--format", "svg"]) == 0
    readme = (out / "README.md").read_text()
    assert f"`sweep`: {noisy}\n" in readme
    assert f"`sweep`: {throttled}\n" in readme


def test_the_same_runs_give_the_same_archive(two_runs, tmp_path, capsys):
    archives = [tmp_path / place / "a.tar.gz" for place in ("one", "two")]
    for archive in archives:
        command = ["artifact", str(two_runs / "first"), "--out", str(archive), "--class", "llncs"]
        assert main([*command, "--format", "pdf"]) == 0
    assert archives[0].read_bytes() == archives[1].read_bytes()
    with tarfile.open(archives[0]) as tar:
        assert {name.split("/")[0] for name in tar.getnames()} == {"a"}
        assert "a/figures/sweep/speedup.tex" in tar.getnames()
    capsys.readouterr()
    assert checked(archives[0], capsys)[0] == 0


def test_a_changed_row_is_found_by_its_checksum_and_by_the_figures(packed, capsys):
    rows = packed / "runs" / "sweep" / "measurements.jsonl"
    text = rows.read_text()
    rows.write_text(re.sub(r'"iteration_ms": (\d)', r'"iteration_ms": 9\1', text, count=20))
    status, out, faults = checked(packed, capsys)
    assert status == 1
    assert "runs/sweep/measurements.jsonl: not the file that was packed (checksum)" in faults
    wrong = "figures/sweep/speedup.csv: differs from what the packed rows give"
    assert wrong in faults
    rewrite_sums(packed)  # whoever changes rows can change the sums, too
    status, out, faults = checked(packed, capsys)
    assert status == 1
    assert wrong in faults
    assert not any("checksum" in fault for fault in faults)
    assert out.endswith(f"; {len(faults)} faults\n")


def test_one_fault_is_one(packed, capsys):
    (packed / "more.txt").write_text("x")
    status, out, faults = checked(packed, capsys)
    assert (status, faults) == (1, ["more.txt: not in SHA256SUMS"])
    assert out.endswith("; 1 fault\n")


def test_what_is_missing_or_more_is_named(packed, capsys):
    (packed / "LICENSE").write_text("x")
    shutil.rmtree(packed / "tables" / "sweep-2")
    status, _, faults = checked(packed, capsys)
    assert status == 1
    assert "LICENSE: not in SHA256SUMS" in faults
    assert "tables/sweep-2/missing.md: missing" in faults
    assert "tables/sweep-2/missing.md: not packed" in faults


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["artifact"], "artifact needs DIR… and --out, or --check PATH (see --help)"),
        (["artifact", "RUNS", "--out", "{}"], "{}: exists already; name a new folder"),
        (["artifact", "RUNS", "--check", "{}"], "--check PATH takes no DIR and no --out"),
        (["artifact", "--check", "RUNS/first"], "has no artifact.json: not an artifact"),
        (["artifact", "--check", "{}/a.tar.gz"], "neither a folder nor a whole .tar.gz"),
        (
            ["artifact", "RUNS", "--out", "{}/x", "--class", "acm"],
            "--class: unknown class 'acm'",
        ),
    ],
)
def test_what_cannot_be_packed_or_checked_is_one_line(
    two_runs, tmp_path, capsys, arguments, message
):
    (tmp_path / "a.tar.gz").write_bytes(b"\x1f\x8b\x08garbage")
    given = [a.format(tmp_path).replace("RUNS", str(two_runs)) for a in arguments]
    assert main(given) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message.format(tmp_path) in err


def test_the_lock_of_a_run_is_not_packed(two_runs, tmp_path):
    run = shutil.copytree(two_runs / "first", tmp_path / "first")
    (run / ".lock").touch()
    out = tmp_path / "artifact"
    assert main(["artifact", str(run), "--out", str(out), "--format", "svg"]) == 0
    assert (out / "runs" / "sweep" / "measurements.jsonl").is_file()
    assert not [*out.rglob(".lock")]


def test_links_in_a_run_are_not_packed(two_runs, tmp_path, capsys):
    run = shutil.copytree(two_runs / "first", tmp_path / "run")
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "key").write_text("secret")
    (run / "folder").symlink_to(tmp_path / "private")
    (run / "file").symlink_to(tmp_path / "private" / "key")
    assert main(["artifact", str(run), "--out", str(tmp_path / "a"), "--format", "svg"]) == 0
    packed = {path.name for path in (tmp_path / "a" / "runs" / "sweep").iterdir()}
    assert "measurements.jsonl" in packed
    assert not packed & {"folder", "file"}


def test_an_archive_cannot_write_outside(packed, tmp_path, capsys):
    with tarfile.open(tmp_path / "evil.tar.gz", "w:gz") as tar:
        tar.add(packed, "a")
        tar.add(packed / "README.md", "a/../../evil.md")
    assert checked(tmp_path / "evil.tar.gz", capsys)[0] == 0
    assert not list(tmp_path.rglob("evil.md"))


def test_nothing_but_the_pinned_packages_is_needed(packed, tmp_path):
    pins = (packed / "software" / "requirements.txt").read_text()
    pinned = set(re.findall(r"^([a-z0-9-]+)==", pins, re.MULTILINE)) | {"setuptools", "tomli"}
    assert {"numpy", "matplotlib", "jinja2", "msgspec"} <= pinned
    hidden = [
        module
        for module, owners in packages_distributions().items()
        if not {canonicalize_name(owner) for owner in owners} & pinned
    ]
    assert "sklearn" in hidden
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({hidden}))\n"
        "from analysis.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    command = ["figures", "../runs/sweep", "--format", "pdf,pgf", "--out", tmp_path]
    line = [sys.executable, "-B", "-c", program, *map(str, command)]
    subprocess.run(line, cwd=packed / "software", check=True)
