"""distance: cosine, against scikit-learn with centroids that are scaled after each iteration."""

import numpy as np
import pytest
from run_program import ROOT, by_point, run
from sklearn.cluster import KMeans

from analysis.measures.generators import generate, random_points
from analysis.model.answers import answers
from analysis.model.load import load_run

N, K, DIM, ITERATIONS = 4000, 12, 8, 8
SPEC = f"""
name: cosine
versions: [cpu_sequential, cpu_openmp, "fast_cpu_*", python_numpy]
axes: {{n: {N}, k: {K}, dim: {DIM}, threads: 2}}
data: {{generator: embeddings, centers: 20, seed: 5}}
solve: {{iterations: {ITERATIONS}, distance: cosine}}
measure: {{repetitions: 1, max_seconds: 0.01}}
"""
# Versions that must be able to do it. What AMX needs, this machine may lack.
ABLE = {"cpu_sequential", "cpu_openmp", "fast_cpu_simd", "fast_cpu_gemm", "fast_cpu_bounds"}
ABLE |= {"fast_cpu_tree", "fast_cpu_auto"}


def scaled(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def spherical_kmeans():
    """Labels of the last assignment, and the centroids after it."""
    points = scaled(generate("embeddings", N, DIM, 5, centers=20).astype(float)).astype("f4")
    points = points.astype(float)
    centroids = random_points(points, K, 1)
    for _ in range(ITERATIONS):
        one = KMeans(K, init=centroids, n_init=1, max_iter=1, algorithm="lloyd").fit(points)
        labels = np.argmax(points @ centroids.T, axis=1)  # `one` has those after its update
        sums = np.stack([points[labels == j].mean(axis=0) for j in range(K)])
        np.testing.assert_allclose(one.cluster_centers_, sums, atol=1e-12)
        centroids = scaled(one.cluster_centers_)
    return points, labels, centroids


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_answers_are_those_of_scikit_learn_with_scaled_centroids(tmp_path):
    (tmp_path / "cosine.yaml").write_text(SPEC)
    out = tmp_path / "out"
    result = run(tmp_path / "cosine.yaml", "--out", out, "--save", "labels,centroids", cwd=ROOT)
    assert result.returncode == 0, result.stderr
    points, labels, centroids = spherical_kmeans()
    cosines = (points @ centroids.T).max(axis=1)
    kept = answers(load_run(out))
    measured = {rows[0]["version"]: rows[0] for rows in by_point(out).values()}
    done = {version for version, row in measured.items() if row["status"] == "ok"}
    assert done >= ABLE
    for point, answer in kept.items():
        row = by_point(out)[point][0]
        assert np.mean(answer.labels == labels) > 0.999, point  # but for near ties
        np.testing.assert_allclose(answer.centroids, centroids, atol=1e-3)
        assert np.linalg.norm(answer.centroids.astype(float), axis=1) == pytest.approx(1, abs=1e-6)
        assert row["inertia"] == pytest.approx(np.sum(2 - 2 * cosines), rel=1e-3)
        assert row["data"] == "embeddings(centers=20, sigma=1, seed=5) by cosine"
    assert measured["python_numpy"]["status"] == "unsupported"
    assert "as distance: cosine needs" in measured["python_numpy"]["reason"]


def test_initial_centroids_of_a_file_are_scaled(tmp_path):
    points = scaled(generate("normal", 300, 3, 1).astype(float))
    np.save(tmp_path / "start.npy", points[:4] * 5)
    (tmp_path / "points.csv").write_text("\n".join(",".join(map(str, row)) for row in points * 2))
    (tmp_path / "filed.yaml").write_text(
        """
name: filed
versions: [cpu_sequential]
axes: {k: 4}
data: {file: points.csv}
solve: {iterations: 1, distance: cosine, init: file, init_file: start.npy}
measure: {repetitions: 1, max_seconds: 0.01}
"""
    )
    out = tmp_path / "out"
    result = run(tmp_path / "filed.yaml", "--out", out, "--save", "labels", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    (answer,) = answers(load_run(out)).values()
    assert (answer.labels == np.argmax(points @ points[:4].T, axis=1)).all()


def test_a_point_without_direction_is_refused(tmp_path):
    (tmp_path / "zero.csv").write_text("1,2\n0,0\n3,4\n")
    (tmp_path / "zero.yaml").write_text(
        """
name: zero
versions: [cpu_sequential]
axes: {k: 1}
data: {file: zero.csv}
solve: {distance: cosine}
"""
    )
    result = run(tmp_path / "zero.yaml", "--out", tmp_path / "out", cwd=tmp_path)
    assert result.returncode != 0
    assert "row 2 is 0 in all columns" in result.stderr + result.stdout
