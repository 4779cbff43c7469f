#!/usr/bin/env python3
"""peer_superkmeans: SuperKMeans' exact assignment on CPU threads, and SciPy's sums.

Idea     `assign` of the package finds the nearest centroids by blocks of matrix products, shared by
         `threads` OpenMP threads. A sparse matrix of ones times the points gives the sums, block by
         block on one thread.
Why      The package is made for clustering vector embeddings on CPUs.
Limits   Its train() draws the initial centroids itself and cannot go on from given ones. So it
         cannot be given our problem, and the pruning inside it does not run here.
Source   superkmeans on PyPI, MIT; tools/peers.sh installs it.
"""

import lloydbench_external

BLOCK = 1 << 15  # points that SciPy adds up in float32. The sums of the blocks are in float64.


class SuperKMeans:
    def prepare(self, problem):
        import numpy as np
        import superkmeans
        import threadpoolctl
        from scipy import sparse

        # assign() ignores the package's own n_threads.
        threadpoolctl.threadpool_limits(limits=problem.threads)
        self.np = np
        self.problem = problem
        self.engine = superkmeans.SuperKMeans(
            n_clusters=problem.k, dimensionality=problem.dim, hierarchical=False
        )
        self.points = np.ascontiguousarray(problem.points, np.float32)
        self.sparse = sparse

    def means(self, labels, old):
        np, k = self.np, self.problem.k
        sums = np.zeros(old.shape)
        for begin in range(0, len(labels), BLOCK):
            points, rows = self.points[begin : begin + BLOCK], labels[begin : begin + BLOCK]
            # k × points: each column has a one in the row of the point's cluster.
            starts = np.arange(len(rows) + 1, dtype=np.int32)
            ones = np.ones(len(rows), np.float32)
            sums += self.sparse.csc_matrix((ones, rows, starts), (k, len(rows))) @ points
        counts = np.bincount(labels, minlength=k)[:, np.newaxis]
        return np.where(counts > 0, sums / counts.clip(min=1), old).astype(np.float32)

    def run(self):
        problem = self.problem
        self.centroids = self.np.ascontiguousarray(problem.centroids, self.np.float32)
        self.labels = None
        for iteration in range(1, problem.iterations + 1):
            before, old = self.labels, self.centroids
            self.labels = self.engine.assign(self.points, old).astype(self.np.int32)
            self.centroids = self.means(self.labels, old)
            if lloydbench_external.stops(problem, before, self.labels, old, self.centroids):
                return iteration
        return problem.iterations

    def fetch(self):
        return self.labels, self.centroids


if __name__ == "__main__":
    lloydbench_external.main(
        SuperKMeans,
        name="peer_superkmeans",
        axes=["threads"],
        requires=["superkmeans", "numpy", "scipy", "threadpoolctl"],
        to_have_them="`make peers` installs it, and says what to put into LLOYDBENCH_PYTHON",
        distance="expanded",
        summary="SuperKMeans: its exact assignment on OpenMP threads, with SciPy's sums",
    )
