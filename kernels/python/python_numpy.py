#!/usr/bin/env python3
"""python_numpy: all distances at once, without a loop over points or clusters.

Parent   none.
What     the points are repeated k times into an n × dim × k tensor; one subtraction, one square,
         one sum and one argmin assign every point. Each point then fills its cluster's row of an
         n × k × dim tensor of zeros, whose sum over the points is that of every cluster.
Why      Python is slow by the loop; vectorised, the loops run in NumPy's C code.
Limits   memory: two tensors of n·dim·k values stand at once (the repeated points; the differences,
         whose place the zeros then take), and n·k distances. Checked before anything is allocated.
Study    goldsborough: 7.42 s for n = 100,000, k = 5, dim 2, 300 iterations (its own machine).
         Corrected: it counted a cluster's points by the coordinates that are not 0, so that a point
         with a coordinate of 0 did not count; it moved an empty cluster to the origin; its zeros
         had 2 dimensions, whatever dim was.
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
