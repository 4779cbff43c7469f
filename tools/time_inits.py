"""Initial centroids: our k-means++ and k-means|| beside those of other libraries.

    tools/time_inits.py [--n 1000000] [--dim 128] [--k 1000] [--seeds 3] [--versions fast_cpu_simd]
                        [--libraries scikit-learn,cuvs-cu13]

Every library gets the same points in memory (standard normal, float32) and may use all cores. A
library that Python does not find is left out, and with --libraries all that it does not name. The
time ends when the centroids are in memory, so it has the copies to and from a GPU. cuVS draws only
within a fit, which also computes their cost once. Its seed cannot be set. `inertia` is what the
initial centroids cost, over the median of our k-means++: a method that tries several candidates for
each centroid is slower and better.

Ours are drawn by run_experiment for each of --versions in a run of its own: a version on the GPU,
such as fast_cublas, has them drawn there. flash-kmeans and FlashLib draw random points only.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")).resolve() / "run_experiment"

Draw = Callable[[np.ndarray, int, int], np.ndarray]  # points, k, seed → centroids

SPEC = """\
name: inits
versions: {version}
axes: {{n: {n}, dim: {dim}, k: {k}, init: [kmeans++, kmeans||], init_seed: [{seeds}]}}
data: {{file: points.npy}}
solve: {{iterations: 1}}
measure: {{repetitions: 1, warmup: 0, verify: false}}
profile: {{convergence: true}}
"""


def sklearn(trials: int | None) -> Draw:
    def draw(points: np.ndarray, k: int, seed: int) -> np.ndarray:
        from sklearn.cluster import kmeans_plusplus

        return kmeans_plusplus(points, k, random_state=seed, n_local_trials=trials)[0]

    return draw


def onedal(method: str, **options: Any) -> Draw:
    def draw(points: np.ndarray, k: int, seed: int) -> np.ndarray:
        import daal4py

        engine = daal4py.engines_mt19937(seed=seed, fptype="float")
        init = daal4py.kmeans_init(k, fptype="float", method=method, engine=engine, **options)
        return init.compute(points).centroids

    return draw


def faiss(method: str) -> Draw:
    def draw(points: np.ndarray, k: int, seed: int) -> np.ndarray:
        import faiss

        n, dim = points.shape
        init = faiss.ClusteringInitialization(dim, k)
        init.method, init.seed = getattr(faiss, f"ClusteringInitMethod_{method}"), seed
        centroids = np.empty((k, dim), np.float32)
        init.init_centroids(n, faiss.swig_ptr(points), faiss.swig_ptr(centroids))
        return centroids

    return draw


def cuvs(oversampling: float) -> Draw:
    """k-means||, or k-means++ where `oversampling` is 0."""

    def draw(points: np.ndarray, k: int, seed: int) -> np.ndarray:
        import torch
        from cuvs.cluster import kmeans

        parameters = kmeans.KMeansParams(
            n_clusters=k,
            init_method="KMeansPlusPlus",
            oversampling_factor=oversampling,
            max_iter=0,
            n_init=1,
        )
        centroids = torch.empty((k, points.shape[1]), device="cuda")
        kmeans.fit(parameters, torch.from_numpy(points).cuda(), centroids)
        return centroids.cpu().numpy()

    return draw


# package, method, how it draws. scikit-learn and oneDAL try 2 + ln k candidates
# for each centroid, and keep the best, unless told otherwise.
OTHERS: list[tuple[str, str, Draw]] = [
    ("scikit-learn", "k-means++, 1 candidate", sklearn(1)),
    ("scikit-learn", "k-means++, 2 + ln k candidates", sklearn(None)),
    ("scikit-learn-intelex", "k-means++, 1 candidate", onedal("plusPlusDense", nTrials=1)),
    (
        "scikit-learn-intelex",
        "k-means||",
        onedal("parallelPlusDense", oversamplingFactor=2.0, nRounds=5),
    ),
    ("faiss-cpu", "k-means++", faiss("KMEANS_PLUS_PLUS")),
    ("faiss-cpu", "AFK-MC²", faiss("AFK_MC2")),
    ("cuvs-cu13", "k-means++", cuvs(0)),
    ("cuvs-cu13", "k-means||", cuvs(2)),
]


def inertia(points: np.ndarray, centroids: np.ndarray) -> float:
    """The sum of squared distances to the nearest centroid, of float32 products."""
    norms = np.einsum("ij,ij->i", centroids, centroids)
    total = 0.0
    for begin in range(0, len(points), 8192):
        some = points[begin : begin + 8192]
        nearest = (norms - 2 * (some @ centroids.T)).min(axis=1)
        total += float(np.maximum(nearest + np.einsum("ij,ij->i", some, some), 0).sum(dtype=float))
    return total


def ours(
    folder: Path, version: str, points: np.ndarray, k: int, seeds: int
) -> Iterator[dict[str, Any]]:
    """Our rows, from a run of `version`. Its convergence pass has the inertia at the start."""
    n, dim = points.shape
    spec, run = folder / f"{version}.yaml", folder / version
    numbers = ", ".join(map(str, range(1, seeds + 1)))
    spec.write_text(SPEC.format(version=version, n=n, dim=dim, k=k, seeds=numbers))
    command = [PROGRAM, spec, "--out", run, "--quiet", "--no-shuffle"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    starts = {}
    for line in (run / "convergence.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["iteration"] == 0:
            starts[row["point"]] = row["inertia"]
    for line in (run / "measurements.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["repetition"] > 0:  # of the solve, with the same centroids
            continue
        if row["status"] != "ok":
            raise SystemExit(f"{row['point']}: {row['status']}: {row['reason']}")
        method = f"{row['init'].replace('kmeans', 'k-means')} ({row['init_device']})"
        start = starts[row["point"]]
        yield {"library": "lloydbench", "method": method, "ms": row["init_ms"], "inertia": start}


def others(
    points: np.ndarray, k: int, seeds: int, chosen: list[str] | None
) -> Iterator[dict[str, Any]]:
    for package, method, draw in OTHERS:
        if chosen is not None and package not in chosen:
            continue
        try:
            library = f"{package} {metadata.version(package)}"
        except metadata.PackageNotFoundError:
            print(f"left out: {method} of {package}, which is not installed", file=sys.stderr)
            continue
        draw(points[: 2 * k], k, 1)  # loads the library, starts its threads
        for seed in range(1, seeds + 1):
            start = time.perf_counter()
            drawn = draw(points, k, seed)
            ms = (time.perf_counter() - start) * 1e3
            cost = inertia(points, drawn)
            yield {"library": library, "method": method, "ms": ms, "inertia": cost}


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Markdown: of each method the median time over the seeds, the least and the most."""
    methods: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        methods.setdefault((row["library"], row["method"]), []).append(row)
    unit = median(row["inertia"] for row in next(iter(methods.values())))
    yield "| library | initial centroids | median ms | least | most | inertia |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for (library, method), group in methods.items():
        times = [row["ms"] for row in group]
        shown = (f"{ms:,.1f}" for ms in (median(times), min(times), max(times)))
        cost = median(row["inertia"] for row in group) / unit
        cells = (library, method.replace("|", r"\|"), *shown, f"{cost:.3f}")
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=lambda text: int(float(text)), default=1_000_000)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--k", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--versions", default="fast_cpu_simd", help="comma list")
    parser.add_argument("--libraries", help="comma list of packages (default: all that are found)")
    parser.add_argument("--out", type=Path, help="keep points, runs and inits.jsonl there")
    options = parser.parse_args()
    folder = options.out or Path(tempfile.mkdtemp(prefix="inits-"))
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(42)
    points = generator.standard_normal((options.n, options.dim), dtype=np.float32)
    np.save(folder / "points.npy", points)
    rows = []
    for version in options.versions.split(","):
        rows += ours(folder, version, points, options.k, options.seeds)
    chosen = options.libraries.split(",") if options.libraries is not None else None
    rows += others(points, options.k, options.seeds, chosen)
    (folder / "inits.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    print(f"n = {options.n:,}, dim = {options.dim}, k = {options.k:,}, {options.seeds} seeds\n")
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
