"""External versions that cheat, one way each, and honest ones on data that make rounding visible.

Each cheat answers rightly where it thinks that it is verified. What becomes of it must not depend
on what the harness draws at random, so each is tried on several problems.
"""

import json
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")).resolve()
PROGRAM = BUILD / "run_experiment"
np = pytest.importorskip("numpy")

# Lloyd's loop in NumPy, with a fault that the name tells. The folder's precision.txt has the
# precision that it declares, distance.txt the kind of its distance.
SCRIPT = r"""#!/usr/bin/env python3
import json, os, pathlib, sys, time

path = pathlib.Path(sys.argv[0])
name = path.stem
how = name.removeprefix("cheat_")
if sys.argv[1] == "describe":
    told = lambda what: (path.parent / what).read_text().strip()
    print(json.dumps({"name": name, "family": "cheat", "backend": "cpu", "parent": "", "axes": [],
                      "precisions": [told("precision.txt")], "distance": told("distance.txt"),
                      "study": "", "summary": how, "available": True, "reason": ""}))
    sys.exit()
import numpy as np

folder = pathlib.Path(sys.argv[2])


def nearest(x, c):
    best, labels = np.full(len(x), np.inf), np.zeros(len(x), np.int32)
    for j in range(len(c)):
        d = ((x - c[j]) ** 2).sum(1)
        closer = d < best
        best[closer], labels[closer] = d[closer], j
    return labels


def means(x, labels, c):
    c, count = c.copy(), np.bincount(labels, minlength=len(c))
    for t in range(x.shape[1]):
        if x.dtype == np.float32:
            sums = np.zeros(len(c), np.float32)
            np.add.at(sums, labels, x[:, t])
        else:
            sums = np.bincount(labels, weights=x[:, t], minlength=len(c))
        c[count > 0, t] = (sums[count > 0] / count[count > 0]).astype(c.dtype)
    return c


def lloyd(x, c, iterations, tolerance, min_changes):
    labels = None
    for done in range(1, iterations + 1):
        before, old = c, labels
        labels = nearest(x, c)
        c = means(x, labels, c)
        if tolerance > 0 and np.sqrt(((c - before) ** 2).sum(1)).max() < tolerance:
            break
        if min_changes > 0 and old is not None and (old != labels).sum() < min_changes:
            break
    return labels, c, done


full = 0  # solves of the length that is timed
longest = 0
for line in sys.stdin:
    request = json.loads(line)
    do, reply = request["do"], {"ok": True}
    if do == "end":
        break
    if do == "prepare":
        p = request
        dtype = np.float32 if p["precision"] == "fp32" else np.float64
        x = np.fromfile(folder / "points.f32", "<f4").reshape(-1, p["dim"]).astype(dtype)
        start = np.fromfile(folder / "centroids.f32", "<f4").reshape(-1, p["dim"]).astype(dtype)
        size = (p["n"], p["k"], p["dim"])
        if size != globals().get("last_size"):
            full, longest, last_size = 0, p["iterations"], size
        whole = p["iterations"] == longest and longest > 1
        full += whole
        timed = whole and full > 1
        reply |= {"setup_ms": 1.0, "transfer_ms": 0}
    if do == "run":
        begin = time.perf_counter()
        asked = todo = p["iterations"]
        tolerance = p["tolerance"]
        if how in ("early15", "early10") and whole:
            todo = int(how[5:])
        if how == "shifted" and asked >= 10:
            todo = asked - 5
        if how == "threequarters":
            todo = max(1, round(0.75 * asked))
        if how == "owntolerance":
            tolerance = 1e-5
        if how == "sloppyrule" and whole:
            tolerance *= 30
        if how == "deafrule" and whole:
            tolerance = 0
        if how.startswith("random"):
            labels = np.random.default_rng(1).integers(0, p["k"], len(x)).astype(np.int32)
            c, done = means(x, labels, start), asked
        elif how not in ("nothing", "stale", "zeros") or not timed:
            labels, c, done = lloyd(x, start, todo, tolerance, p["min_changes"])
        if p["tolerance"] == p["min_changes"] == 0:
            done = asked
        if (how == "onepercent" and whole) or (how == "onepercenttimed" and timed):
            labels = labels.copy()
            wrong = np.random.default_rng(2).choice(len(x), len(x) // 100, replace=False)
            labels[wrong] = (labels[wrong] + 1) % p["k"]
            c = means(x, labels, c)
        if how == "nan" and timed:
            c = c * np.nan
        if how == "zeros" and timed:
            labels, c = np.zeros_like(labels), np.zeros_like(c)
        if how == "timetenth":
            time.sleep(0.1)
        spent = (time.perf_counter() - begin) * 1e3
        reply |= {"solve_ms": spent, "iterations": done}
        told = {"iter0": 0, "iterminus5": -5, "iterwrap": 2**32 + 20, "itermillions": 2_000_000,
                "iterone": 1}
        if how in told and timed:
            reply["iterations"] = told[how]
        claimed = {"timetiny": 1e-9, "timezero": 0, "timenegative": -1, "timenan": float("nan"),
                   "timetenth": spent / 10}
        if how in claimed and (timed or how == "timetenth"):
            reply["solve_ms"] = claimed[how]
    if do == "fetch":
        if not (how == "stale" and timed):
            labels.astype("<i4").tofile(folder / "labels.i32")
            c.astype("<f8").tofile(folder / "centroids.f64")
        reply |= {"fetch_ms": 0.1, "transfer_ms": 0}
    print(json.dumps(reply), flush=True)
"""

SPEC = """
name: cheats
versions: [{versions}]
axes: {{n: [{n}], k: [{k}], dim: [{dim}], precision: [{precision}]}}
data: {data}
solve: {solve}
measure: {{repetitions: 3, max_seconds: 0.001, max_noise: 0.9, timeout: 120}}
"""

NORMAL = "{generator: normal, seed: 42}"


@pytest.fixture
def judged(tmp_path):
    """Runs versions of SCRIPT by their names, and returns the last row of each point."""

    def run(
        names,
        n="4000, 4001, 4002",
        k=8,
        dim=2,
        data=NORMAL,
        solve="{iterations: 20}",
        precision="fp64",
        distance="direct",
    ):
        folder = tmp_path / "versions"
        folder.mkdir(exist_ok=True)
        for what, text in (("precision", precision), ("distance", distance)):
            (folder / f"{what}.txt").write_text(text)
        for name in names:
            path = folder / f"cheat_{name}.py"
            path.write_text(SCRIPT)
            path.chmod(0o755)
        spec = tmp_path / "cheats.yaml"
        versions = ", ".join(f"cheat_{name}" for name in names)
        spec.write_text(
            SPEC.format(
                versions=versions, n=n, k=k, dim=dim, data=data, solve=solve, precision=precision
            )
        )
        out = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
        result = subprocess.run(
            [PROGRAM, spec, "--out", out, "--quiet"],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
            env={**os.environ, "LLOYDBENCH_VERSIONS": str(folder)},
        )
        assert result.returncode in (0, 1), result.stderr
        rows = [json.loads(line) for line in (out / "measurements.jsonl").read_text().splitlines()]
        last = {(row["version"].removeprefix("cheat_"), row["n"]): row for row in rows}
        assert len({name for name, _ in last}) == len(names), result.stderr
        run.out, run.status = out, result.returncode
        return last

    return run


# Which of the checks of the trajectory catches a cheat depends on the iterations that are drawn.
TRAJECTORY = (
    "(the last iteration|an iteration drawn at random|an iteration before the last|centroids): "
)
# What the reason of every cheat must say, beside its status.
CHEATS = {
    "nothing": ("incorrect", "a timed solve: centroid . is not the mean of its"),
    "stale": ("failed", "did not write labels.i32"),
    "nan": ("incorrect", "a timed solve: centroid 0 has coordinate 0 = nan"),
    "zeros": ("incorrect", "a timed solve: centroid 0 is not the mean"),
    "iter0": ("failed", "run: reports 0 iterations, but 1 to 20 were asked for"),
    "iterminus5": ("failed", "run: reports -5 iterations"),
    "iterwrap": ("failed", "run: reports 4294967316 iterations"),
    "itermillions": ("failed", "run: reports 2000000 iterations"),
    "iterone": ("incorrect", "a timed solve: did 1 iterations of 20"),
    "early15": ("incorrect", TRAJECTORY),
    "early10": ("incorrect", TRAJECTORY),
    "threequarters": ("incorrect", TRAJECTORY),
    "onepercent": ("incorrect", TRAJECTORY),
    "onepercenttimed": ("incorrect", "a timed solve: "),
    "timetiny": ("failed", "run: reports 1e-09 ms for 20 iterations"),
    "timezero": ("failed", "run: reports 0(.0)? ms for 20 iterations"),
    "timenegative": ("failed", "reports solve_ms = -1, which is not a duration"),
    "timenan": ("failed", "which is not the protocol's JSON"),
    "timetenth": ("failed", "each of 3 solves leaves more than .* ms unexplained"),
}


def test_a_chain_that_starts_late_is_caught(judged):
    """Solves of ten iterations and more make five less, each going on from the one before."""
    for (_, n), row in judged(["shifted"], n="20000, 20001, 20002").items():
        assert row["status"] == "incorrect", (n, row["reason"])
        assert re.match(f"({TRAJECTORY}|centroids|labels|inertia)", row["reason"])


def test_no_cheat_is_ok(judged):
    for (name, n), row in judged(CHEATS).items():
        status, reason = CHEATS[name]
        if name == "threequarters" and row["status"] == "imprecise":
            continue  # where five iterations less end more than 1% above
        assert row["status"] == status, (name, n, row["status"], row["reason"])
        assert re.search(reason, row["reason"]), (name, n, row["reason"])
        assert row["solve_ms"] is None
        assert row["verified"] is False


def test_the_answer_of_one_iteration_more_or_less_is_caught_with_a_rule_too(judged):
    rule = "{iterations: 300, tolerance: 1e-4}"
    rows = judged(["honest", "sloppyrule", "deafrule"], solve=rule)
    for (name, n), row in rows.items():
        expected = "ok" if name == "honest" else "incorrect"
        assert row["status"] == expected, (name, n, row["status"], row["reason"])
    assert len({row["iterations"] for (name, _), row in rows.items() if name == "honest"}) > 1


def test_a_tolerance_of_its_own_is_caught(judged, tmp_path):
    """1e-5 is 1% of the points' spread: the version stops long before the 52 iterations asked."""
    x = np.random.default_rng(7).normal(0, 1e-3, size=(20_000, 2))
    np.save(tmp_path / "points.npy", x.astype("<f4"))
    rows = judged(
        ["owntolerance"],
        n="20000, 19999, 15000",
        k=5,
        data=f'{{file: "{tmp_path}/points.npy"}}',
        solve="{iterations: 52}",
    )
    for row in rows.values():
        assert row["status"] in ("incorrect", "imprecise"), row["reason"]


@pytest.mark.parametrize(("precision", "dim"), [("bf16", 128), ("fp16", 1024)])
def test_random_labels_pass_no_bound(judged, precision, dim):
    rows = judged(
        ["random", "honest"],
        n="600, 700, 800",
        dim=dim,
        solve="{iterations: 3}",
        precision=precision,
        distance="expanded",
    )
    for (name, n), row in rows.items():
        assert row["status"] == ("ok" if name == "honest" else "incorrect"), (n, row["reason"])
        if name == "honest":
            assert row["verified"] is True
            assert row["regret_bound"] < 5 * {"bf16": 2**-8, "fp16": 2**-11}[precision]


def points(kind, n):
    random = np.random.default_rng(5)
    x = random.normal(size=(n, 3))
    if kind == "grid":
        return np.round(x)
    if kind == "duplicates":
        return x[random.integers(0, 40, n)]
    if kind == "two values":
        return np.where(x > 0, 0.1, 0.7)
    if kind == "constant":
        return np.full((n, 3), 0.1)
    if kind == "offset":
        return 1e5 + x
    return x


@pytest.mark.parametrize("precision", ["fp64", "fp32"])
@pytest.mark.parametrize("kind", ["grid", "duplicates", "two values", "constant", "offset"])
def test_honest_versions_stay_ok(judged, tmp_path, kind, precision):
    np.save(tmp_path / "points.npy", points(kind, 3000).astype("<f4"))
    rows = judged(
        ["honest"],
        n="3000, 2999, 1000",
        k=6,
        dim=3,
        data=f'{{file: "{tmp_path}/points.npy"}}',
        precision=precision,
    )
    for row in rows.values():
        # Plain fp32 sums of coordinates near 1e5 move the means: that is imprecise, and said so.
        allowed = ("ok", "imprecise") if (kind, precision) == ("offset", "fp32") else ("ok",)
        assert row["status"] in allowed, row["reason"]
        if row["status"] == "ok":
            assert row["waited_ms"] >= row["solve_ms"]
            assert row["max_mean_error"] <= 1e-4


def test_what_fp32_sums_make_of_an_offset_is_imprecise(judged, tmp_path):
    """Each step keeps its bounds, and yet the run ends too high: exit status 1."""
    x = np.random.default_rng(6).normal(1e5, 1, size=(40_000, 2))
    np.save(tmp_path / "points.npy", x.astype("<f4"))
    rows = judged(
        ["honest"],
        n=40_000,
        k=4,
        data=f'{{file: "{tmp_path}/points.npy"}}',
        solve="{iterations: 8}",
        precision="fp32",
    )
    (row,) = rows.values()
    assert row["status"] == "imprecise", row["reason"]
    assert re.search(r"above the float64 reference's .*; each single step is", row["reason"])
    assert row["inertia_excess"] > 0.01
    assert row["inertia"] > 0
    assert row["verified"] is False
    assert judged.status == 1
    assert "imprecise" in (judged.out / "summary.md").read_text()

    def resumed(*options):
        environment = {**os.environ, "LLOYDBENCH_VERSIONS": str(tmp_path / "versions")}
        result = subprocess.run(
            [PROGRAM, "--resume", judged.out, "--quiet", *options],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        assert result.returncode == 1, result.stderr
        return (judged.out / "measurements.jsonl").read_text()

    before = (judged.out / "measurements.jsonl").read_text()
    assert resumed() == before
    assert resumed("--retry-failed") != before
