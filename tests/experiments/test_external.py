"""External versions from outside: the protocol, and every way to break it."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest
from run_program import PROGRAM, ROOT, wait_for

# Lloyd's loop without any library. A fault strikes where the name says, and only when n = 200.
SCRIPT = """#!/usr/bin/env python3
import json, os, pathlib, struct, sys, time

name = pathlib.Path(sys.argv[0]).stem
fault = name.removeprefix("toy_")
if sys.argv[1] == "describe":
    told = {"name": name, "family": "toy", "backend": "cpu", "parent": "", "axes": [],
            "precisions": ["fp64"], "distance": "direct", "study": "", "summary": "a toy",
            "available": True, "reason": ""}
    if fault == "mute":
        time.sleep(3600)
    if fault == "broken":
        sys.exit("no such flux capacitor")
    if fault == "babbling":
        print("hello")
    if fault == "endless":
        while True:
            print("x" * 1000)
    told |= {"misnamed": {"name": "toy_other"}, "axed": {"axes": ["treads"]},
             "plain": {"backend": "tpu"}, "absent": {"available": False, "reason": "sold out"},
             "typed": {"precisions": "fp64"}}.get(fault, {})
    print(json.dumps(told))
    sys.exit()

folder = pathlib.Path(sys.argv[2])
for line in sys.stdin:
    request = json.loads(line)
    do, reply = request["do"], {"ok": True}
    if do == "end":
        break
    if do == "prepare":
        p = request
        strikes = p["n"] == 200
        points, start = [
            list(struct.iter_unpack(f"<{p['dim']}f", (folder / p[file]).read_bytes()))
            for file in ("points", "centroids")
        ]
        reply |= {"setup_ms": 1.5, "transfer_ms": 0}
        if fault == "picky" and strikes:
            reply = {"ok": False, "status": "unsupported", "reason": "takes 100 points, not 200"}
        if fault == "failing" and strikes:
            reply = {"ok": False, "status": "failed", "reason": "the flux is out of phase"}
    if do == "run":
        begin = time.perf_counter()
        if strikes and fault == "crashing":
            os.kill(os.getpid(), 11)
        if strikes and fault == "exiting":
            sys.exit(3)
        if strikes and fault == "hanging":
            pathlib.Path(os.environ["TOY_LOG"]).write_text(f"{os.getpid()} {folder}")
            time.sleep(3600)
        if strikes and fault == "garbled":
            print("Epoch 1: loss 0.5")
        if strikes and fault == "flooding":
            while True:
                print("x" * 1000, end="")
        centroids = [list(c) for c in start]
        for _ in range(p["iterations"]):
            labels = [
                min(range(p["k"]), key=lambda j: sum((a - b) ** 2 for a, b in zip(x, centroids[j])))
                for x in points
            ]
            for j in range(p["k"]):
                mine = [x for x, label in zip(points, labels) if label == j]
                if mine:
                    centroids[j] = [sum(column) / len(mine) for column in zip(*mine)]
        reply |= {"iterations": p["iterations"], "solve_ms": (time.perf_counter() - begin) * 1e3}
        if strikes and fault == "boasting":
            reply["solve_ms"] = 1e6
        if strikes and fault == "negative":
            reply["solve_ms"] = -1
        if strikes and fault == "timeless":
            del reply["solve_ms"]
        if strikes and fault == "lazy":
            reply["iterations"] -= 1
    if do == "fetch":
        if strikes and fault == "short":
            labels.pop()
        if strikes and fault == "nan":
            centroids[0][0] = float("nan")
        if strikes and fault == "wrong":
            labels = [(label + 1) % p["k"] for label in labels]
        if strikes and fault == "ranging":
            labels[0] = p["k"]
        if strikes and fault == "forgetting":
            labels[-1] = -1
        if not (strikes and fault == "mean"):
            (folder / "labels.i32").write_bytes(struct.pack(f"<{len(labels)}i", *labels))
        flat = sum(centroids, [])
        (folder / "centroids.f64").write_bytes(struct.pack(f"<{len(flat)}d", *flat))
        reply |= {"fetch_ms": 0.5, "transfer_ms": 0}
    print(json.dumps(reply), flush=True)
"""

SPEC = """
name: external
versions: [cpu_sequential, {versions}]
baseline: cpu_sequential
axes: {{n: [{n}], k: [{k}], dim: [2], precision: [fp64]}}
data: {{generator: uniform, seed: 42}}
solve: {{iterations: 3}}
measure: {{repetitions: 6, max_seconds: 0.1, max_noise: 0.9, timeout: {timeout}}}
"""


def rows_of(folder):
    return [json.loads(line) for line in (folder / "measurements.jsonl").read_text().splitlines()]


@pytest.fixture
def toys(tmp_path):
    """Makes a folder of toy versions, a spec over them, and runs it."""

    class Toys:
        out = tmp_path / "out"
        folder = tmp_path / "versions"
        environment = {  # noqa: RUF012 - one instance
            **os.environ,
            "LLOYDBENCH_VERSIONS": str(tmp_path / "versions"),
            "TOY_LOG": str(tmp_path / "toy.log"),
        }

        def add(self, name, text=SCRIPT):
            path = self.folder / name
            path.write_text(text)
            path.chmod(0o755)
            return path

        def spec(self, versions, n="100, 200", k=3, timeout=60):
            path = tmp_path / "external.yaml"
            path.write_text(SPEC.format(versions=", ".join(versions), n=n, k=k, timeout=timeout))
            return path

        def run(self, *arguments, **environment):
            return subprocess.run(
                [PROGRAM, *map(str, arguments)],
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
                env=self.environment | environment,
            )

        def listed(self, **environment):
            result = self.run("--list-versions", "--json", **environment)
            assert result.returncode == 0, result.stderr
            return {version["name"]: version for version in json.loads(result.stdout)}

        def sweep(self, versions, *arguments, **options):
            result = self.run(self.spec(versions, **options), "--out", self.out, *arguments)
            return result, rows_of(self.out)

    Toys.folder.mkdir()
    return Toys()


def test_a_toy_without_any_library_is_verified_and_measured(toys):
    toys.add("toy_good.py")
    result, rows = toys.sweep(["toy_good"])
    assert result.returncode == 0, result.stderr
    rows = [row for row in rows if row["version"] == "toy_good"]
    assert len({row["point"] for row in rows}) == 2
    for row in rows:
        assert (row["status"], row["verified"]) == ("ok", True)
        assert (row["timing_basis"], row["family"], row["iterations"]) == (
            "self_reported",
            "toy",
            3,
        )
        assert (row["setup_ms"], row["transfer_ms"]) == (1.5, 0)
        assert row["end_to_end_ms"] == pytest.approx(1.5 + row["solve_ms"] + 0.5)


def test_a_problem_in_16_bits_is_handed_out_in_16_bits(toys):
    """The toy, which computes in float64, refuses coordinates that are no fp16 values; the
    reference sees the same ones, so no label differs. What fp16 cannot hold is unsupported."""
    strict = SCRIPT.replace('["fp64"]', '["fp64", "fp16"]').replace(
        '        reply |= {"setup_ms": 1.5',
        '        exact = all(v <= 65504 and v == struct.unpack("e", struct.pack("e", v))[0]\n'
        "                    for x in points for v in x)\n"
        '        assert exact == (p["precision"] == "fp16")\n'
        '        reply |= {"setup_ms": 1.5',
    )
    toys.add("toy_half.py", strict)
    spec = toys.spec(["toy_half"], n="100")
    text = spec.read_text().replace("versions: [cpu_sequential, toy_half]", "versions: [toy_half]")
    text = text.replace("baseline: cpu_sequential\n", "").replace("[fp64]", "[fp64, fp16]")
    spec.write_text(text)
    result = toys.run(spec, "--out", toys.out)
    assert result.returncode == 0, result.stderr
    rows = rows_of(toys.out)
    assert {row["precision"] for row in rows} == {"fp64", "fp16"}
    for row in rows:
        assert (row["status"], row["label_mismatches"], row["max_regret"]) == ("ok", 0, 0)
        # (dim + 4) u of a direct distance in fp64; in fp16 that of fp32, and 4 u for the operands
        half = 4 * 2**-11 + 6 * (2**-24 + 2**-53)
        bound = half if row["precision"] == "fp16" else 6 * 2**-52
        assert row["regret_bound"] == pytest.approx(bound)
    spec.write_text(text.replace("generator: uniform", "generator: uniform, range: [0, 70000]"))
    wide = toys.out.with_name("wide")
    assert toys.run(spec, "--out", wide).returncode == 0
    told = {row["precision"]: (row["status"], row["reason"]) for row in rows_of(wide)}
    assert told["fp64"][0] == "ok"
    assert told["fp16"][0] == "unsupported"
    assert re.match(r"fp16 ends at 65504: point \d+ has coordinate \d = \d+", told["fp16"][1])


def test_device_memory_is_handed_out_in_bytes(toys):
    """The toy says in its reason what it got. Rows have what the spec has."""
    frank = SCRIPT.replace('"axes": []', '"axes": ["device_memory"]').replace(
        '        reply |= {"setup_ms": 1.5',
        "        told = f\"may take {p['device_memory']} B\"\n"
        '        reply = {"ok": False, "status": "unsupported", "reason": told}\n'
        '        reply |= {"setup_ms": 1.5',
    )
    toys.add("toy_frank.py", frank)
    bytes_of = {0: 0, 2: 2 << 30, 3 << 29: 3 << 29}
    given = ",".join(map(str, bytes_of))
    result, rows = toys.sweep(["toy_frank"], "--set", f"device_memory={given}", n="100")
    assert result.returncode == 0, result.stderr
    told = {row["device_memory"]: row["reason"] for row in rows if row["version"] == "toy_frank"}
    assert told == {of: f"may take {bytes_} B" for of, bytes_ in bytes_of.items()}


FAULTS = {
    "crashing": ("failed", r"^run: toy_crashing was killed by signal 11 .*log.txt"),
    "exiting": ("failed", r"^run: toy_exiting exited with status 3"),
    "hanging": ("timeout", r"not done within 3 s"),
    "garbled": ("failed", r"^run: toy_garbled answered 'Epoch 1: loss 0.5', which is not the prot"),
    "flooding": ("failed", r"^run: toy_flooding answered 'x{60}…', which is not"),
    "failing": ("failed", r"^prepare: the flux is out of phase$"),
    "picky": ("unsupported", r"^takes 100 points, not 200$"),
    "boasting": ("failed", r"^run: reports 1000000.000 ms, but answered after"),
    "negative": ("failed", r"^reports solve_ms = -1, which is not a duration"),
    "timeless": ("failed", r"^run: reports no solve_ms and iterations"),
    "short": ("failed", r"^wrote 796 B to labels.i32: 200 labels take 800 B$"),
    "mean": ("failed", r"^did not write labels.i32$"),
    "nan": ("incorrect", r"centroid 0 has coordinate 0 = nan"),
    "wrong": ("incorrect", r"is not the mean of its \d+ points \(those with its label\)"),
    "ranging": ("incorrect", r"label"),
    "lazy": ("incorrect", r"did 2 iterations of 3"),
}


def test_a_fault_costs_its_point_and_nothing_more(toys):
    for fault in FAULTS:
        toys.add(f"toy_{fault}.py")
    result, rows = toys.sweep(['"toy_*"'], timeout=3)
    assert result.returncode == 1, result.stderr
    points = {(row["version"], row["n"]): row for row in rows}
    assert len(points) == 2 * (len(FAULTS) + 1)
    for (version, n), row in points.items():
        if n == 100 or version == "cpu_sequential":
            assert row["status"] == "ok", row
            continue
        status, reason = FAULTS[version.removeprefix("toy_")]
        assert row["status"] == status, row
        assert re.search(reason, row["reason"]), row["reason"]
        assert row["solve_ms"] is None


def test_the_message_leads_to_the_row_that_the_version_got(toys):
    """Its points are rotated, and the message names them as everybody else counts them."""
    toys.add("toy_forgetting.py")
    _, rows = toys.sweep(["toy_forgetting"], timeout=9)
    row = next(row for row in rows if row["version"] == "toy_forgetting" and row["n"] == 200)
    assert row["status"] == "incorrect"
    told = re.search(r"point (\d+) has label -1", row["reason"])
    rule = re.search(
        r"row r of the points that it got was point \((\d+) \+ r\) mod 200", row["reason"]
    )
    assert (int(rule[1]) + 199) % 200 == int(told[1]), row["reason"]


DESCRIPTIONS = {
    "mute": "describe: not done within 5 s",
    "broken": "describe: exited with status 1: no such flux capacitor",
    "babbling": "describe: prints 'hello', not one JSON object",
    "endless": "describe: does not stop printing",
    "misnamed": "describe: name must be that of the file, 'toy_misnamed', not 'toy_other'",
    "axed": "describe: axes has 'treads'; it may have device_memory, gpus, processes, ",
    "plain": "describe: backend has 'tpu'; it may have cpu, cuda",
    "typed": "describe: precisions must be a list of texts",
    "absent": "sold out",
}


def test_what_does_not_describe_itself_is_unavailable_and_named(toys):
    for fault in (*DESCRIPTIONS, "good"):
        toys.add(f"toy_{fault}.py")
    toys.add("toy_foreign", "#!/no/such/interpreter")
    toys.add("data.txt").chmod(0o644)
    listed = toys.listed()
    assert listed["toy_good"]["available"] is True
    assert "data" not in listed
    foreign = listed["toy_foreign"]["reason"]
    assert foreign.startswith("describe: exited with status 127: cannot start"), foreign
    for fault, reason in DESCRIPTIONS.items():
        version = listed[f"toy_{fault}"]
        assert version["available"] is False
        assert version["family"] == "toy"
        assert version["reason"].startswith(reason), version["reason"]

    (toys.folder / "toy_mute.py").unlink()  # it would take 5 s again
    result, rows = toys.sweep(["toy_good", "toy_absent", "toy_broken"])
    assert result.returncode == 0, result.stderr
    told = {row["version"]: (row["status"], row["reason"]) for row in rows}
    assert told["toy_good"] == ("ok", None)
    assert told["toy_absent"] == ("unsupported", "sold out")
    assert told["toy_broken"] == ("unsupported", DESCRIPTIONS["broken"])


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("def toy(:", "SyntaxError: invalid syntax"),
        ("toy()", "NameError: name 'toy' is not defined"),
    ],
)
def test_an_error_in_a_python_file_is_told_with_its_line(toys, line, error):
    toys.add("toy_slip.py", f"import json\n\n{line}\n")
    told = toys.listed()["toy_slip"]["reason"]
    assert told == f"describe: exited with status 1: {error} (toy_slip.py:3)"


def test_the_folder_of_versions_exists(toys):
    result = toys.run("--list-versions", LLOYDBENCH_VERSIONS="/no/such/folder")
    assert result.returncode == 2
    assert "LLOYDBENCH_VERSIONS=/no/such/folder: there is no such folder" in result.stderr


def test_no_process_and_no_folder_outlive_kill_9(toys):
    toys.add("toy_hanging.py")
    log = pathlib.Path(toys.environment["TOY_LOG"])
    process = subprocess.Popen(
        [PROGRAM, toys.spec(["toy_hanging"], n="200"), "--out", toys.out, "--no-shuffle"],
        env=toys.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    wait_for(lambda: log.exists() and len(log.read_text().split()) == 2)
    pid, folder = log.read_text().split()
    assert (pathlib.Path(folder) / "points.f32").stat().st_size == 200 * 2 * 4
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_for(lambda: not pathlib.Path(f"/proc/{pid}/exe").exists())
    wait_for(lambda: not pathlib.Path(folder).exists())


def test_resume_refuses_a_version_that_was_changed(toys):
    path = toys.add("toy_good.py")
    toys.sweep(["toy_good"])
    assert toys.run("--resume", toys.out).returncode == 0
    path.write_text(SCRIPT + "\n# faster now\n")
    result = toys.run("--resume", toys.out)
    assert result.returncode == 2
    assert "the external versions differ (toy_good: was " in result.stderr


def test_an_interpreter_without_the_packages_says_so(toys, tmp_path):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)
    listed = toys.listed(LLOYDBENCH_PYTHON=str(bare), PYTHONPATH="")
    assert "has no package numpy, sklearn: install" in listed["python_sklearn"]["reason"]
    gone = toys.listed(LLOYDBENCH_PYTHON="/no/such/python")
    reason = gone["python_numpy"]["reason"]
    assert "cannot start /no/such/python" in reason
    assert "LLOYDBENCH_PYTHON" in reason


def test_numpy_says_what_its_tensors_need(toys):
    _, (row,) = toys.sweep(["python_numpy"], "--filter", "python", n="400_000", k=100_000)
    assert row["status"] == "unsupported"
    assert re.search(
        r"needs 1,600,006,400,000 B of memory for two tensors of 400,000 × 2 × 100,000 values and "
        r"400,000 × 100,000 distances, [\d,]+ B are free",
        row["reason"],
    )


def test_points_are_mapped_where_memory_is_short(tmp_path):
    np = pytest.importorskip("numpy")
    points = np.arange(12, dtype="<f4").reshape(6, 2)
    points.tofile(tmp_path / "points.f32")
    sys.path.insert(0, str(ROOT / "kernels" / "python"))
    try:
        import lloydbench_external
    finally:
        sys.path.pop(0)
    conversation = lloydbench_external._Conversation(None, tmp_path, [])
    for free, mapped in [(None, False), (2 * points.nbytes, False), (points.nbytes, True)]:
        read = conversation._read("points.f32", free, 6, 2)
        assert isinstance(read, np.memmap) == mapped
        np.testing.assert_array_equal(read, points)
        read[0, 0] = 7  # a version may work in place; the file stays
        assert (tmp_path / "points.f32").read_bytes() == points.tobytes()


def served(script, folder, requests):
    """The replies of a Python version that serves `requests` in `folder`."""
    result = subprocess.run(
        [sys.executable, script, "serve", folder],
        input="".join(json.dumps(request) + "\n" for request in requests),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "kernels" / "python")},
    )
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_sklearn_s_step_is_that_of_its_kmeans(tmp_path):
    """The compiled step that python_sklearn calls goes where KMeans.fit() goes."""
    np = pytest.importorskip("numpy")
    cluster = pytest.importorskip("sklearn.cluster")
    random = np.random.default_rng(1)
    points = random.normal(size=(2000, 3)).astype(np.float32)
    centroids = points[:7].copy()
    points.tofile(tmp_path / "points.f32")
    centroids.tofile(tmp_path / "centroids.f32")
    requests = [
        {
            "do": "prepare",
            **{"n": 2000, "k": 7, "dim": 3, "precision": "fp64", "iterations": 10, "tolerance": 0},
            **{"min_changes": 0, "points": "points.f32", "centroids": "centroids.f32"},
            **{"threads": 1, "memory_bytes": None},
        },
        {"do": "run"},
        {"do": "fetch"},
        {"do": "end"},
    ]
    script = ROOT / "kernels" / "python" / "python_sklearn.py"
    replies = served(script, tmp_path, requests)
    assert [reply["ok"] for reply in replies] == [True, True, True]
    ours = np.fromfile(tmp_path / "centroids.f64").reshape(7, 3)
    fitted = cluster.KMeans(7, init=centroids, n_init=1, max_iter=10, tol=0, algorithm="lloyd")
    fitted.fit(points.astype(np.float64))
    assert fitted.n_iter_ == 10
    np.testing.assert_allclose(ours, fitted.cluster_centers_, rtol=1e-9, atol=1e-12)


def test_the_log_names_the_distribution_where_a_module_says_no_version(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "kernels" / "python"))
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "quiet").mkdir()
    (tmp_path / "quiet" / "__init__.py").write_text("")
    told = tmp_path / "quiet_package-2.5.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: quiet-package\nVersion: 2.5\n")
    (told / "RECORD").write_text("quiet/__init__.py,,\n")
    import lloydbench_external
    import quiet

    assert lloydbench_external._version_of("quiet", quiet) == "(quiet-package 2.5)"
    assert lloydbench_external._version_of("json", json) == json.__version__
    assert lloydbench_external._version_of("absent", pathlib) == "?"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("run: return None", r"TypeError: run\(\) returned None; it has to return the number of"),
        ("run: return {}['missing']", r"KeyError: 'missing' \(.*mine.py:\d+; log.txt has the"),
        ("fetch: return numpy.zeros(6, int)", r"TypeError: fetch\(\) has to return labels and"),
        (
            "fetch: return numpy.zeros(5, int), numpy.zeros((2, 3))",
            r"ValueError: fetch\(\) returned labels of shape \(5,\), not \(6,\)",
        ),
        (
            "fetch: return numpy.zeros(6, int), numpy.zeros((3, 2))",
            r"ValueError: fetch\(\) returned centroids of shape \(3, 2\), not \(2, 3\)",
        ),
        (
            "fetch: return numpy.zeros(6), numpy.zeros((2, 3))",
            r"TypeError: fetch\(\) returned labels of type float64, not integers",
        ),
        ("fetch: return numpy.zeros((6, 1), int), numpy.zeros((2, 3))", None),
    ],
)
def test_what_a_python_version_returns_is_judged_in_its_own_words(tmp_path, body, reason):
    np = pytest.importorskip("numpy")
    method, _, statement = body.partition(": ")
    script = tmp_path / "mine.py"
    script.write_text(
        "import lloydbench_external\n"
        "class Mine:\n"
        "    def prepare(self, problem): pass\n"
        "    def run(self): return 1\n"
        "    def fetch(self): pass\n"
        f"    def {method}(self):\n"
        "        import numpy\n"
        f"        {statement}\n"
        "lloydbench_external.main(Mine, name='mine_python', summary='a test')\n"
    )
    np.zeros((6, 3), np.float32).tofile(tmp_path / "points.f32")
    np.zeros((2, 3), np.float32).tofile(tmp_path / "centroids.f32")
    size = {"n": 6, "k": 2, "dim": 3, "memory_bytes": None}
    requests = [
        {"do": "prepare", **size, "points": "points.f32", "centroids": "centroids.f32"},
        *({"do": step} for step in ("run", "fetch", "end")),
    ]
    told = served(script, tmp_path, requests)
    replies = dict(zip(("prepare", "run", "fetch"), told, strict=True))
    assert replies["prepare"]["ok"]
    assert replies[method]["ok"] is (reason is None)
    assert re.match(reason or "", replies[method].get("reason", ""))


@pytest.mark.parametrize(
    "text",
    [
        "#!/usr/bin/env python3\n",
        "from lloydbench_external import External, serve\n",
        'if sys.argv[1] == "describe":\n    describe()\nelse:\n    serve(sys.argv[2])\n',
    ],
)
def test_a_version_that_is_not_executable_is_named(toys, text):
    script = toys.folder / "toy_python.py"
    script.write_text(text)
    (toys.folder / "helper.py").write_text("import json\n")  # a module of a version
    told = f"no version: {script}: is not executable; chmod +x {script}\n"
    assert toys.run("--list-versions").stderr == told
    started = toys.run(toys.spec([]), "--out", toys.out)
    assert started.returncode == 0, started.stderr
    assert told in started.stderr
    script.chmod(0o755)
    assert "toy_python" in toys.listed()


def test_the_remedy_for_a_path_with_blanks_is_a_command_that_works(toys, tmp_path):
    folder = tmp_path / "it's mine"
    folder.mkdir()
    script = folder / "toy_python.py"
    script.write_text("#!/usr/bin/env python3\n")
    listed = toys.run("--list-versions", LLOYDBENCH_VERSIONS=str(folder))
    command = listed.stderr.rstrip("\n").split("is not executable; ")[1]
    subprocess.run(["/bin/sh", "-c", command], check=True, timeout=60)
    assert os.access(script, os.X_OK)
