#!/usr/bin/env python3
"""peer_faiss_cpu: FAISS's clustering on CPU threads, from the given centroids.

Idea     The whole of faiss.Clustering with a flat index: matrix products in blocks, fused with the
         search for the nearest where the build has that, and sums by `threads` OpenMP threads.
Why      Most vector search is built on this library, and its clustering trains its indices.
Limits   Clustering splits a cluster to fill an empty one, but here an empty cluster keeps its
         centroid. It copies the points when n = k. Both are `unsupported`, and so are stopping
         rules. It keeps no labels: after the clock has stopped, a run with one iteration less and a
         search give them.
Source   faiss-cpu on PyPI, MIT; tools/peers.sh installs it.
"""

import time

import lloydbench_external


class FaissOnCpu:
    def prepare(self, problem):
        import faiss

        if problem.tolerance > 0 or problem.min_changes > 0:
            raise lloydbench_external.Unsupported("faiss.Clustering knows no stopping rule")
        if problem.n == problem.k:
            raise lloydbench_external.Unsupported(
                f"n = k = {problem.k}: faiss.Clustering copies the points instead of iterating"
            )
        self.faiss = faiss
        self.problem = problem
        faiss.omp_set_num_threads(problem.threads)

    def run(self):
        self.clustering = self.trained(self.problem.iterations)
        return self.problem.iterations

    def trained(self, iterations):
        problem, faiss = self.problem, self.faiss
        clustering = faiss.Clustering(problem.dim, problem.k)
        clustering.niter = iterations
        clustering.min_points_per_centroid = 1
        clustering.max_points_per_centroid = problem.n  # else it takes a sample
        clustering.early_stop_threshold = -1.0  # else it ends when its error no longer falls
        faiss.copy_array_to_vector(problem.centroids.ravel(), clustering.centroids)
        index = faiss.IndexFlatL2(problem.dim)
        clustering.train(problem.points, index)
        done = clustering.iteration_stats.size()
        if done != iterations:
            raise lloydbench_external.Unsupported(
                f"faiss.Clustering ended after {done} of {iterations} iterations: its error rested"
            )
        for iteration in range(iterations):
            split = clustering.iteration_stats.at(iteration).nsplit
            if split > 0:
                raise lloydbench_external.Unsupported(
                    f"empty clusters in iteration {iteration + 1}: {split}; faiss.Clustering "
                    "splits others to fill them, where here they keep their centroids"
                )
        return clustering

    def of(self, clustering):
        flat = self.faiss.vector_to_array(clustering.centroids)
        return flat.reshape(self.problem.k, self.problem.dim)

    def labels_before_the_last_update(self):
        problem = self.problem
        centroids = problem.centroids
        if problem.iterations > 1:
            centroids = self.of(self.trained(problem.iterations - 1))
        index = self.faiss.IndexFlatL2(problem.dim)
        index.add(centroids)
        return index.search(problem.points, 1)[1][:, 0]

    def fetch(self):
        """Takes the labels from another search, which is not part of the loop."""

        begin = time.perf_counter()
        centroids = self.of(self.clustering)
        self.fetch_ms = (time.perf_counter() - begin) * 1e3
        return self.labels_before_the_last_update(), centroids


if __name__ == "__main__":
    lloydbench_external.main(
        FaissOnCpu,
        name="peer_faiss_cpu",
        axes=["threads"],
        requires=["faiss", "numpy"],
        to_have_them="`make peers` installs it, and says what to put into LLOYDBENCH_PYTHON",
        distance="expanded",
        summary="FAISS: its clustering with a flat index, on OpenMP threads",
    )
