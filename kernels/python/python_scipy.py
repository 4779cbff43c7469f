#!/usr/bin/env python3
"""python_scipy: scipy.cluster.vq.kmeans2 from the given centroids.

Parent   python_numpy.
Idea     kmeans2(points, centroids, iter, minit="matrix") makes exactly `iter` steps. Each step
         calls vq() (assignment in C: plain loops where dim or k is small, else a matrix product)
         and update_cluster_means(). An empty cluster keeps its centroid there too. One thread.
Why      The loops are compiled, and there is no n × dim × k tensor.
Limits   None but memory.
Fixed    The study uses scipy's kmeans, which draws its own centroids, stops by the distortion and
         drops empty clusters. kmeans2 runs the same two compiled functions and does none of that.
Study    goldsborough: 1.54 s for n = 100,000, k = 5, dim 2, 300 iterations (its own machine), with
         kmeans.
"""

import lloydbench_external


class Kmeans2:
    def prepare(self, problem):
        import numpy as np
        from scipy.cluster.vq import kmeans2

        self.kmeans2 = kmeans2
        self.problem = problem
        dtype = np.float64 if problem.precision == "fp64" else np.float32
        self.points = problem.points.astype(dtype)
        self.start = problem.centroids.astype(dtype)

    def run(self):
        problem = self.problem
        if problem.tolerance <= 0 and problem.min_changes <= 0:
            self.step(self.start, problem.iterations)
            return problem.iterations
        # kmeans2 has neither rule, so it makes one step at a time.
        self.centroids, self.labels = self.start, None
        for iteration in range(1, problem.iterations + 1):
            before, old = self.labels, self.centroids
            self.step(old, 1)
            if lloydbench_external.stops(problem, before, self.labels, old, self.centroids):
                return iteration
        return problem.iterations

    def step(self, start, times):
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about empty clusters, which are allowed here
            self.centroids, self.labels = self.kmeans2(
                self.points, start, iter=times, minit="matrix", missing="warn", check_finite=False
            )

    def fetch(self):
        return self.labels, self.centroids


if __name__ == "__main__":
    lloydbench_external.main(
        Kmeans2,
        name="python_scipy",
        parent="python_numpy",
        requires=["numpy", "scipy"],
        precisions=["fp32", "fp64"],
        distance="expanded",
        study="goldsborough",
        summary="scipy.cluster.vq.kmeans2 from the given centroids",
    )
