#!/usr/bin/env python3
"""python_sklearn: the compiled Lloyd step of sklearn.cluster.KMeans, from the given centroids.

Parent   python_numpy.
Idea     KMeans(init=centroids, n_init=1, algorithm="lloyd").fit() calls lloyd_iter_chunked_dense
         for each iteration. It does one matrix product for each chunk of 256 points, and `threads`
         OpenMP threads share the chunks.
Why      The matrix product uses a centroid for a whole chunk while both are in cache, and chunks
         run in parallel. The step is called directly because fit() cannot make a given number of
         steps: it stops as soon as labels repeat, whatever tol and max_iter are, and labels the
         points once more after its last update. Whatever else fit() does (checks, a centred copy of
         the points, that last labelling, the inertia) is not measured here.
Limits   An empty cluster is `unsupported`: scikit-learn moves it to the farthest point, but here it
         must keep its centroid. The function is private: a scikit-learn that has it elsewhere, or
         with other arguments, is `unsupported` too.
Study    goldsborough: 1.23 s for n = 100,000, k = 5, dim 2, 300 iterations (its own machine), with
         fit().
"""

import os

import lloydbench_external


class SklearnLloyd:
    def prepare(self, problem):
        # As in KMeans, where each thread does its own product. OpenBLAS reads this when loaded.
        os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
        import numpy as np
        import sklearn

        try:
            from sklearn.cluster._k_means_lloyd import lloyd_iter_chunked_dense

            one, ones, label = np.ones((1, 1)), np.ones(1), np.zeros(1, np.int32)
            lloyd_iter_chunked_dense(one, ones, one, one.copy(), ones.copy(), label, ones.copy(), 1)
        except (ImportError, TypeError) as error:
            raise lloydbench_external.Unsupported(
                f"the Lloyd step of scikit-learn {sklearn.__version__} is not that of 1.7 ({error})"
            ) from error
        self.step = lloyd_iter_chunked_dense
        self.problem = problem
        dtype = np.float64 if problem.precision == "fp64" else np.float32
        self.points = problem.points.astype(dtype)
        self.start = problem.centroids.astype(dtype)
        self.weights = np.ones(problem.n, dtype)
        self.counts = np.empty(problem.k, dtype)
        self.moves = np.empty(problem.k, dtype)
        self.labels = np.empty(problem.n, np.int32)

    def run(self):
        problem = self.problem
        self.centroids, old = self.start.copy(), self.start.copy()
        self.labels.fill(-1)
        for iteration in range(1, problem.iterations + 1):
            before = self.labels.copy() if problem.min_changes > 0 else None
            self.centroids, old = old, self.centroids
            self.step(
                self.points,
                self.weights,
                old,
                self.centroids,
                self.counts,
                self.labels,
                self.moves,
                problem.threads,
            )
            self.check_no_cluster_is_empty(iteration)
            if lloydbench_external.stops(problem, before, self.labels, old, self.centroids):
                return iteration
        return problem.iterations

    def check_no_cluster_is_empty(self, iteration):
        # An empty cluster has a count of 1, for the point it was moved to; no label names it.
        empty = self.counts <= 1
        if not empty.any():
            return
        empty[self.labels] = False
        if empty.any():
            raise lloydbench_external.Unsupported(
                f"cluster {empty.argmax()} is empty in iteration {iteration}: scikit-learn moves "
                "it to the farthest point, where here it keeps its centroid"
            )

    def fetch(self):
        return self.labels, self.centroids


if __name__ == "__main__":
    lloydbench_external.main(
        SklearnLloyd,
        name="python_sklearn",
        parent="python_numpy",
        axes=["threads"],
        requires=["numpy", "sklearn"],
        precisions=["fp32", "fp64"],
        distance="expanded",
        study="goldsborough",
        summary="scikit-learn's Lloyd step, the one of KMeans, on OpenMP threads",
    )
