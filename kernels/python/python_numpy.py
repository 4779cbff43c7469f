#!/usr/bin/env python3
"""python_numpy: all distances at once, without a loop over points or clusters.

Parent   None.
Idea     The points are repeated k times in an n × dim × k tensor. One subtraction, one square, one
         sum and one argmin assign every point. Each point then fills its cluster's row of an n × k
         × dim tensor of zeros; the sum of this tensor over the points gives the sums of the
         clusters.
Why      Python loops are slow. Vectorised, the loops run in NumPy's C code.
Limits   Memory for two tensors of n·dim·k values (the repeated points; the differences, which the
         zeros then overwrite) and for n·k distances. It is checked before anything is allocated.
Fixed    The study counted a cluster's points by the coordinates that are not 0, so a point with a
         coordinate of 0 did not count. It moved an empty cluster to the origin. Its zeros had 2
         dimensions, whatever dim was.
Study    goldsborough: 7.42 s for n = 100,000, k = 5, dim 2, 300 iterations (its own machine).
"""

import lloydbench_external


class VectorisedNumpy:
    def prepare(self, problem):
        import numpy as np

        self.problem = problem
        dtype = np.dtype(np.float64 if problem.precision == "fp64" else np.float32)
        n, dim, k = problem.n, problem.dim, problem.k
        lloydbench_external.check_memory(
            problem,
            dtype.itemsize * (2 * n * dim * k + n * k + n * dim),
            f"two tensors of {n:,} × {dim:,} × {k:,} values and {n:,} × {k:,} distances",
        )
        self.points = problem.points.astype(dtype)
        self.start = problem.centroids.astype(dtype)
        self.repeated = np.stack([self.points] * k, axis=-1)
        self.scratch = np.empty(n * dim * k, dtype)
        self.distances = np.empty((n, k), dtype)
        self.all_rows = np.arange(n)

    def run(self):
        import numpy as np

        problem = self.problem
        n, dim, k = problem.n, problem.dim, problem.k
        difference = self.scratch.reshape(n, dim, k)
        sparse = self.scratch.reshape(n, k, dim)
        self.centroids, self.labels = self.start, None
        for iteration in range(1, problem.iterations + 1):
            before, old = self.labels, self.centroids
            np.subtract(self.repeated, old.T, out=difference)
            np.square(difference, out=difference)
            difference.sum(axis=1, out=self.distances)
            self.labels = self.distances.argmin(axis=-1)

            sparse.fill(0)
            sparse[self.all_rows, self.labels] = self.points
            counts = np.bincount(self.labels, minlength=k).astype(sparse.dtype)[:, np.newaxis]
            means = sparse.sum(axis=0) / counts.clip(min=1)
            self.centroids = np.where(counts > 0, means, old)
            if lloydbench_external.stops(problem, before, self.labels, old, self.centroids):
                return iteration
        return problem.iterations

    def fetch(self):
        return self.labels, self.centroids


if __name__ == "__main__":
    lloydbench_external.main(
        VectorisedNumpy,
        name="python_numpy",
        requires=["numpy"],
        precisions=["fp32", "fp64"],
        study="goldsborough",
        summary="NumPy without loops: an n × dim × k tensor of differences",
    )
