"""Versions, files, names and variables that mean harm, or are merely odd: each costs itself."""

import contextlib
import json
import os
import pathlib
import re
import socket
import subprocess

import pytest
from run_program import BUILD, PROGRAM, ROOT
from test_external import (  # noqa: F401 - toys is a fixture
    SCRIPT,
    rows_of,
    toys,
)

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u202e]")


def make_odd_files(folder, good):
    """Files that are no versions, beside one that is; what is said of each, None for nothing."""
    said = {}

    def file(name, content, reason, mode=0o755):
        path = folder / name
        path.write_bytes(content)
        path.chmod(mode)
        said[name] = reason

    source = good.read_bytes()
    file("toy_empty", b"", "is empty")
    file("toy_empty.py", b"", "is empty")
    file("toy_spaced name", source, "a version is named after its file")
    file("toy_<img src=x>", source, "a version is named after its file")
    file("toy_\x1b[2J", source, "a version is named after its file")
    file("-toy", source, "a version is named after its file")
    file("toy_" + "a" * 61, source, "a version is named after its file")
    file("cpu_sequential", source, "a version cpu_sequential exists already (this program's")
    file("python_numpy.py", source, "a version python_numpy exists already (python_numpy.py)")
    file("toy_good", source, None)  # sorted first, it has the name
    said["toy_good.py"] = "a version toy_good exists already (toy_good)"
    # No versions by rule, and not a word about them.
    for name in ("toy_good.py~", ".toy_hidden.py", "#toy_good.py#", "toy.swp", "toy_a.bak"):
        file(name, source, None)
    file("data.txt", b"1 2 3", None, 0o644)
    (folder / "__pycache__").mkdir()
    os.mkfifo(folder / "toy_pipe")
    said["toy_pipe"] = "is a pipe, not a program"
    (folder / "toy_dangling").symlink_to("/no/such/file")
    said["toy_dangling"] = "is a broken link, not a program"
    (folder / "toy_loop").symlink_to("toy_loop")
    said["toy_loop"] = "cannot be read: Too many levels of symbolic links"
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(folder)  # the path of a socket is short
        server.bind("toy_socket")
    said["toy_socket"] = "is a socket, not a program"
    return said


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_odd_files_cost_themselves_and_are_named(toys):  # noqa: F811
    said = make_odd_files(toys.folder, toys.add("toy_good.py"))
    # These look like versions: they are listed, and asked.
    toys.add("toy_text", "no program\n")
    toys.add("toy_binary", "\x7fELF no program")
    toys.add("toy_gone", "#!/no/such/interpreter")
    result = toys.run("--list-versions", "--json")
    assert result.returncode == 0, result.stderr
    listed = {version["name"]: version for version in json.loads(result.stdout)}
    notes = [line for line in result.stderr.splitlines() if line.startswith("no version: ")]
    assert not CONTROL.search(result.stderr)
    for name, reason in said.items():
        shown = name.replace("\x1b", "\\x1b")
        about = [note for note in notes if note.startswith(f"no version: {toys.folder}/{shown}: ")]
        assert len(about) == (reason is not None), (name, notes)
        assert reason is None or f"/{shown}: {reason}" in about[0], about
    assert len(notes) == sum(reason is not None for reason in said.values())

    own = {name for name, version in listed.items() if version["family"] == "toy"}
    assert own == {"toy_good", "toy_text", "toy_binary", "toy_gone"}
    for name in ("toy_text", "toy_binary"):
        assert "neither a program nor a script that begins with #!" in listed[name]["reason"]
    assert "No such file or directory" in listed["toy_gone"]["reason"]
    assert not listed["cpu_sequential"]["reason"]

    result, rows = toys.sweep(["'toy_*'"])
    assert result.returncode == 0, result.stderr
    statuses = {(row["version"], row["status"]) for row in rows}
    assert statuses == {("cpu_sequential", "ok"), ("toy_good", "ok")} | {
        (name, "unsupported") for name in ("toy_text", "toy_binary", "toy_gone")
    }
    assert toys.run("--resume", toys.out).returncode == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_an_unreadable_file_costs_itself(toys):  # noqa: F811
    toys.add("toy_good.py")
    toys.add("toy_secret.py").chmod(0o111)
    result = toys.run("--list-versions", "--json")
    assert {"toy_good", "python_numpy"} <= {v["name"] for v in json.loads(result.stdout)}
    assert "toy_secret.py: cannot be read: Permission denied" in result.stderr


def test_many_files_are_asked_in_turns(toys):  # noqa: F811
    """All at once they would need more descriptors than a process has."""
    for number in range(40):
        toys.add(f"toy_{number}", '#!/bin/sh\necho "{}"\n')
    result = subprocess.run(
        ["sh", "-c", f'ulimit -n 128; exec "{PROGRAM}" --list-versions --json'],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=toys.environment,
    )
    listed = {v["name"]: v["reason"] for v in json.loads(result.stdout) if v["family"] == "toy"}
    assert len(listed) == 40
    for name, reason in listed.items():
        assert reason == f"describe: name must be that of the file, '{name}', not ''"


def test_a_name_without_an_underscore_is_a_family_of_its_own(toys):  # noqa: F811
    toys.add("solo.py", SCRIPT.replace('"family": "toy"', '"family": "solo"'))
    toys.add("other.py")
    listed = toys.listed()
    assert listed["solo"]["available"], listed["solo"]
    assert listed["other"]["reason"] == (
        "describe: family must be 'other', the part of the name before the first underscore, "
        "not 'toy'"
    )


def fake_nsys(folder):
    """As Debian's: it leaves a raw recording, and an importer stands beside it."""
    programs = {
        "bin/nsys": 'for word; do case "$word" in\n'
        '--version) echo "NVIDIA Nsight Systems version 2024.1.1";;\n'
        '--output=*) : >"${word#--output=}.qdstrm";;\n'
        "esac; done\n",
        "host-linux-x64/QdstrmImporter": ': >"${2%.qdstrm}.nsys-rep"\n',
    }
    for name, text in programs.items():
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("#!/bin/sh\n" + text)
        (folder / name).chmod(0o755)
    return folder / "bin"


def test_the_name_of_a_folder_is_no_command(toys, tmp_path):  # noqa: F811
    nsys = fake_nsys(tmp_path / "tools")
    out = "in';touch X;'$(touch Y)`touch Z`"
    result = toys.run(
        toys.spec(["cpu_openmp"], n="100"), "--out", out, "--nsys",
        PATH=f"{nsys}:{os.environ['PATH']}",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    report = tmp_path / out / "trace.nsys-rep"
    assert f"nsys: {out}/trace.nsys-rep" in result.stderr
    assert report.exists()
    assert not report.with_name("trace.qdstrm").exists()
    assert {path.name for path in tmp_path.iterdir()} == {
        "tools", "versions", "external.yaml", out,
    }  # fmt: skip


def test_no_source_starts_a_shell():
    # a script that is written for Slurm begins with #!/bin/bash, and Slurm starts it
    starts = r'\b(popen|system|execvpe?|execlp?e?|posix_spawnp)\(|"sh"|(?<!#!)/bin/(ba)?sh'
    shell = re.compile(starts)
    sources = [
        path
        for folder in ("data", "experiments", "kernels", "profiling")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".c", ".cpp", ".cu", ".cuh", ".h")
    ]
    assert len(sources) > 100
    found = [
        f"{path}: {match[0]}" for path in sources for match in shell.finditer(path.read_text())
    ]
    assert found == []


def test_the_environment_s_secrets_stay_there(toys):  # noqa: F811
    secret = "eyJhbGciOiJIUzI1NiJ9.s3cr3t"
    result = toys.run(
        toys.spec(["cpu_openmp"], n="100"), "--out", toys.out,
        CUDA_API_TOKEN=secret, OMPI_MCA_orte_hnp_uri="12.0;tcp://10.1.2.3:4567",
        OMPI_COMM_WORLD_HOSTS="node-17.internal", OMP_NUM_THREADS="2",
        NCCL_ALGO=secret + "/" + "x" * 100, CUDA_MODULE_LOADING=os.fsdecode(b"caf\xe9"),
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    environment = json.loads((toys.out / "environment.json").read_text())
    assert environment["variables"]["OMP_NUM_THREADS"] == "2"
    assert {"CUDA_API_TOKEN", "OMPI_MCA_orte_hnp_uri", "NCCL_ALGO", "CUDA_MODULE_LOADING"} <= set(
        environment["variables_not_recorded"]
    )
    for file in toys.out.rglob("*"):
        if file.is_file():
            text = file.read_bytes().decode()  # all of it is UTF-8
            assert "s3cr3t" not in text, file
            assert "10.1.2.3" not in text, file
            assert "node-17" not in text, file


def test_no_byte_of_others_breaks_a_run(toys):  # noqa: F811
    """Latin-1 in an error and in an answer, control characters in a reason: rows keep the text as
    UTF-8, terminal and Markdown show it, and the run can be resumed."""
    at_describe = SCRIPT.replace('sys.exit("no such flux capacitor")', AT_DESCRIBE)
    toys.add("toy_broken.py", at_describe)
    toys.add("toy_latin.py", in_prepare('os.write(1, b\'{"ok": false, "reason": "caf\\xe9"}\\n\')'))
    hostile = (
        "\x1b[2J\x1b]0;owned\x07|<img src=x onerror=alert(1)>`id`\n[9/9] fake  ok\u202e\x9b31m"
    )
    toys.add(
        "toy_control.py",
        in_prepare(f"print(json.dumps({{'ok': False, 'reason': {hostile!r}}}), flush=True)"),
    )
    toys.add(
        "toy_huge.py",
        in_prepare("print(json.dumps({'ok': False, 'reason': 'x' * 900_000}), flush=True)"),
    )
    spec = toys.spec(["toy_broken", "toy_latin", "toy_control", "toy_huge"], n="200")
    for arguments in ([spec, "--out", toys.out], ["--resume", toys.out, "--retry-failed"]):
        result = toys.run(*arguments)
        assert result.returncode == 1, result.stderr
        for text in (result.stdout, result.stderr):
            assert not CONTROL.search(text), text
        assert "\\x1b[2J\\x1b]0;owned\\x07|<img" in result.stderr
    reasons = {row["version"]: row["reason"] for row in rows_of(toys.out)}
    assert reasons["toy_broken"].endswith("exited with status 1: caf\ufffd \x1b[31m")
    assert reasons["toy_latin"] == "prepare: caf\ufffd"
    assert reasons["toy_control"] == "prepare: " + hostile
    assert reasons["toy_huge"].startswith("prepare: xxx")
    assert len(reasons["toy_huge"]) < 2100
    summary = (toys.out / "summary.md").read_text()
    assert not CONTROL.search(summary)
    assert not re.search(r"(?<!\\)<img", summary)
    assert "\n[9/9]" not in summary
    listed = toys.run("--list-versions")
    assert "caf\ufffd \\x1b[31m" in listed.stdout
    assert not CONTROL.search(listed.stdout)


AT_DESCRIBE = "os.write(2, b'caf\\xe9 \\x1b[31m\\n'); sys.exit(1)"


def in_prepare(answer):
    """A toy that answers so to `prepare`."""
    return SCRIPT.replace(
        '        reply |= {"setup_ms": 1.5, "transfer_ms": 0}\n',
        f"        {answer}\n        continue\n",
    )


def test_names_that_are_not_utf8(toys, tmp_path):  # noqa: F811
    toys.add("toy_good.py")
    (toys.folder / os.fsdecode(b"toy_caf\xe9.py")).write_text(SCRIPT)
    (toys.folder / os.fsdecode(b"toy_caf\xe9.py")).chmod(0o755)
    result, _ = toys.sweep(["toy_good"])
    assert result.returncode == 0, result.stderr
    assert "toy_caf\ufffd.py: a version is named after its file" in result.stderr
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    # A run directory may be anywhere, and be gone on with.
    spec = toys.spec(["toy_good"], n="100")
    result = toys.run(spec, "--out", folder / "out")
    assert result.returncode == 0, result.stderr
    assert toys.run("--resume", folder / "out").returncode == 0
    # What goes into plan.json must be text.
    result = toys.run(spec, "--filter", os.fsdecode(b"\xff"), "--dry-run")
    assert (result.returncode, result.stderr) == (
        2,
        "run_experiment: '\ufffd' is not UTF-8: the command line is kept with the results; "
        "see run_experiment --help\n",
    )
    (folder / "points.csv").write_text("1,2\n3,4\n5,6\n7,8\n")
    spec = folder / "s.yaml"
    spec.write_text(
        "name: s\nversions: [cpu_sequential]\naxes: {k: [2]}\ndata: {file: points.csv}\n"
    )
    result = toys.run(spec, "--dry-run")
    assert result.returncode == 2
    assert ":4:14: 'points.csv' has a path that is not UTF-8: " in result.stderr


# Leaves a child, a child in a session of its own and one that no parent is left of, and says so.
LEAVE = """
        def leave(daemon):
            if os.fork() == 0:
                if daemon:
                    os.setsid()
                    if os.fork() != 0:
                        os._exit(0)
                with open(os.environ["TOY_LOG"], "a") as log:
                    print(os.getpid(), file=log)
                if daemon == 2:
                    for descriptor in range(3):
                        os.close(descriptor)
                time.sleep(3600)
        for daemon in range(3):
            leave(daemon)
"""
# Fails when one of them lives.
LOOK = """
        for pid in pathlib.Path(os.environ["TOY_LOG"]).read_text().split():
            if pathlib.Path(f"/proc/{pid}").exists():
                print('{"ok": false, "reason": "there is a stray"}', flush=True)
"""


def pids_in(toys):  # noqa: F811
    return pathlib.Path(toys.environment["TOY_LOG"]).read_text().split()


def alive(pids):
    return [pid for pid in pids if pathlib.Path(f"/proc/{pid}").exists()]


def test_nothing_of_a_version_lives_when_the_next_begins(toys):  # noqa: F811
    begin = "        begin = time.perf_counter()\n"
    toys.add("toy_leaves.py", SCRIPT.replace(begin, LEAVE + begin))
    toys.add("toy_looks.py", SCRIPT.replace(begin, LOOK + begin))
    crashes = SCRIPT.replace(begin, LEAVE + "        os.kill(os.getpid(), 11)\n")
    toys.add("toy_dies.py", crashes)
    hangs = SCRIPT.replace(begin, LEAVE + "        time.sleep(3600)\n")
    toys.add("toy_hangs.py", hangs)
    for leaver, status in (("leaves", "ok"), ("dies", "failed"), ("hangs", "timeout")):
        out = toys.out.with_name(leaver)
        pathlib.Path(toys.environment["TOY_LOG"]).unlink(missing_ok=True)
        spec = toys.spec([f"toy_{leaver}", "toy_looks"], n="100", timeout=5)
        result = toys.run(spec, "--out", out, "--no-shuffle")
        rows = {row["version"]: row for row in rows_of(out)}
        assert rows[f"toy_{leaver}"]["status"] == status, rows
        assert (rows["toy_looks"]["status"], rows["toy_looks"]["reason"]) == ("ok", None)
        assert len(pids_in(toys)) >= 3
        assert alive(pids_in(toys)) == [], result.stderr


def test_nothing_of_describe_lives_on(toys):  # noqa: F811
    describe = 'if sys.argv[1] == "describe":\n'
    leave = LEAVE.replace("\n    ", "\n")
    toys.add("toy_leaves.py", SCRIPT.replace(describe, describe + leave))
    assert toys.listed()["toy_leaves"]["available"]
    assert len(pids_in(toys)) == 3
    assert alive(pids_in(toys)) == []


def test_a_built_in_version_leaves_nothing_and_its_death_is_seen(toys):  # noqa: F811
    """A daemon of it holds the pipe to the supervisor open."""
    program = BUILD / "tests" / "run_experiment_faulty"
    spec = toys.spec(["faulty_forks", "faulty_forks_and_dies"], n="100", timeout=30)
    spec.write_text(spec.read_text().replace("fp64", "fp32"))
    mark = {"LLOYDBENCH_TEST_RUN": str(toys.out)}  # other tests run this program at the same time
    result = subprocess.run(
        [program, spec, "--out", toys.out], env=os.environ | mark,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    rows = {row["version"]: row for row in rows_of(toys.out)}
    assert rows["faulty_forks"]["status"] == "incorrect", result.stderr
    died = rows["faulty_forks_and_dies"]
    assert died["status"] == "failed"
    assert "killed by signal 9" in died["reason"]
    mine = []
    of_this_test = f"LLOYDBENCH_TEST_RUN={toys.out}".encode()
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            variables = (process / "environ").read_bytes().split(b"\0")
            if (process / "exe").resolve() == program and of_this_test in variables:
                mine.append(process.name)
    assert mine == []


def test_what_a_version_prints_is_bounded(toys):  # noqa: F811
    flood = "        for number in range(300_000): os.write(2, b'%099d\\n' % number)\n"
    strikes = '        if strikes and fault == "crashing":\n'
    toys.add(
        "toy_crashing.py", SCRIPT.replace(strikes, "        if strikes:\n    " + flood + strikes)
    )
    result, rows = toys.sweep(["toy_crashing"])
    assert result.returncode == 1, result.stderr
    assert {(row["n"], row["status"]) for row in rows if row["version"] == "toy_crashing"} == {
        (100, "ok"),
        (200, "failed"),
    }
    log = (toys.out / "log.txt").read_text()
    assert len(log) < 1.2e6
    said = re.search(r"\n\[([\d,]+) B of output are left out here", log)
    assert 28e6 < int(said[1].replace(",", "")) < 30e6
    assert f"{0:099}\n" in log
    assert f"{299_999:099}\n" in log[said.end() :]


def test_a_worker_s_death_leaves_no_folder(toys):  # noqa: F811
    """The folder that a worker shared with its version is removed by the keeper, which the
    supervisor waits for."""
    killer = SCRIPT.replace(
        '        if strikes and fault == "crashing":\n',
        "        if strikes:\n"
        '            pathlib.Path(os.environ["TOY_LOG"]).write_text(str(folder))\n'
        "            os.kill(os.getppid(), 9)\n"
        "            time.sleep(3600)\n"
        '        if strikes and fault == "crashing":\n',
    )
    toys.add("toy_killer.py", killer)
    result, rows = toys.sweep(["toy_killer"], n="200")
    assert {row["status"] for row in rows} == {"ok", "failed"}, result.stderr
    folder = pathlib.Path(pathlib.Path(toys.environment["TOY_LOG"]).read_text())
    assert folder.name.startswith("lloydbench-")
    assert not folder.exists()
