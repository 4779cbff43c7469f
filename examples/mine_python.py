#!/usr/bin/env python3
"""mine_python: Lloyd's loop in NumPy, some rows at a time.

The harness puts the module lloydbench_external, which speaks the protocol, on PYTHONPATH.
"""

import lloydbench_external


class MinePython:
    def prepare(self, problem):
        """Not part of the solve's time: import what is heavy, allocate, copy."""
        import numpy as np

        if problem.tolerance > 0 or problem.min_changes > 0:
            raise lloydbench_external.Unsupported("runs a fixed number of iterations")
        self.np, self.problem = np, problem
        self.labels = np.empty(problem.n, dtype=np.int32)
        self.rows = max(1, 2**20 // (problem.k * problem.dim))  # differences of some megabytes

    def run(self):
        """The loop, from the initial centroids. Returns the number of iterations."""
        problem, np = self.problem, self.np
        self.centroids = problem.centroids.copy()
        for _ in range(problem.iterations):
            for first in range(0, problem.n, self.rows):
                rows = slice(first, first + self.rows)
                differences = problem.points[rows, None, :] - self.centroids[None, :, :]
                # argmin() returns the first of equal distances: the lowest index.
                self.labels[rows] = (differences**2).sum(axis=2).argmin(axis=1)
            counts = np.bincount(self.labels, minlength=problem.k)
            filled = counts > 0  # an empty cluster keeps its centroid
            for t in range(problem.dim):
                sums = np.bincount(self.labels, problem.points[:, t], problem.k)  # in double
                self.centroids[filled, t] = sums[filled] / counts[filled]
        return problem.iterations

    def fetch(self):
        return self.labels, self.centroids


if __name__ == "__main__":
    lloydbench_external.main(
        MinePython,
        name="mine_python",
        parent="python_numpy",
        requires=["numpy"],
        summary="Lloyd's loop in NumPy, some rows at a time",
    )
