#!/usr/bin/env python3
"""peer_sklearnex: k-means of oneDAL, which scikit-learn-intelex puts under scikit-learn.

Idea     daal4py.kmeans, the package's call of oneDAL's batch algorithm: blocks of points times all
         centroids by the MKL inside, the nearest, and sums for each of `threads` TBB threads.
Why      It is the usual way to a faster scikit-learn on x86 processors. KMeans.fit() of the same
         package ends in the same algorithm, but checks and copies the points first.
Limits   oneDAL moves the centroid of an empty cluster to the farthest point, but here it must keep
         its place. So an empty cluster is `unsupported`, and so are stopping rules. oneDAL ends as
         soon as its error rests: it is called again until it has made all iterations. It returns
         no labels of the last iteration but its first: after the clock has stopped, labels and
         centroids come from a second solve, cut before the last iteration.
Source   scikit-learn-intelex on PyPI, Apache-2.0; tools/peers.sh installs it.
"""

from typing import ClassVar

import lloydbench_external


class OneDal:
    # How many iterations from which centroids are known to leave no cluster empty. All problems of
    # the process share it.
    filled: ClassVar = {}

    def prepare(self, problem):
        import daal4py

        if problem.tolerance > 0 or problem.min_changes > 0:
            raise lloydbench_external.Unsupported("oneDAL stops by a rule of its own")
        if problem.k == 1:
            # With many points it crashes or hangs. The package's KMeans does not pass it on either.
            raise lloydbench_external.Unsupported("k = 1: oneDAL needs two clusters")
        self.daal4py = daal4py
        self.problem = problem
        daal4py.daalinit(problem.threads)

    def call(self, centroids, iterations, labels=False):
        return self.daal4py.kmeans(
            self.problem.k, iterations, fptype="float", accuracyThreshold=0.0, assignFlag=labels
        ).compute(self.problem.points, centroids)

    def solved(self, centroids, iterations):
        while iterations > 0:
            result = self.call(centroids, iterations)
            centroids = result.centroids
            iterations -= int(result.nIterations[0, 0])
        return centroids

    def run(self):
        self.solved(self.problem.centroids, self.problem.iterations)
        return self.problem.iterations

    def labels_of(self, centroids, iteration):
        """The nearest of `centroids`, which `iteration` begins with."""
        import numpy as np

        labels = self.call(centroids, 0, labels=True).assignments[:, 0]
        counts = np.bincount(labels, minlength=self.problem.k)
        if not counts.all():
            raise lloydbench_external.Unsupported(
                f"cluster {counts.argmin()} is empty in iteration {iteration}: oneDAL moves its "
                "centroid to the farthest point, where here it keeps its place"
            )
        return labels

    def check_no_cluster_is_empty(self):
        problem = self.problem
        key = (problem.n, problem.dim, problem.centroids.tobytes())
        first = self.filled.get(key, 0)
        if first >= problem.iterations:
            return
        centroids = self.solved(problem.centroids, first)
        for iteration in range(first, problem.iterations):
            self.labels_of(centroids, iteration + 1)
            centroids = self.solved(centroids, 1)
        self.filled[key] = problem.iterations

    def fetch(self):
        """Takes the answer from a second solve, which is neither in solve_ms nor in fetch_ms."""
        problem = self.problem
        self.check_no_cluster_is_empty()
        before = self.solved(problem.centroids, problem.iterations - 1)
        self.fetch_ms = 0.0  # centroids are in the host's memory
        return self.labels_of(before, problem.iterations), self.solved(before, 1)


if __name__ == "__main__":
    lloydbench_external.main(
        OneDal,
        name="peer_sklearnex",
        axes=["threads"],
        requires=["daal4py", "numpy"],
        to_have_them="`make peers` installs it, and says what to put into LLOYDBENCH_PYTHON",
        distance="expanded",
        summary="scikit-learn-intelex: k-means of oneDAL on TBB threads",
    )
